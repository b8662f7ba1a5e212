//! Machine code of the release as assembly text: libraries through objdump, so that `asm` reads what `make` builds.

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::Value;

use crate::said;

/// Builds the program `name` of `package` in the release directory with the features of the released `machmeter`, so that both builds share
/// every crate. Returns the disassembly of the program and of the libraries of `packages`, in this order.
pub(crate) fn program_and_libraries(
    root: &Path,
    package: &str,
    name: &str,
    packages: &[&str],
) -> Result<Vec<String>> {
    let build = ["build", "--release", "--locked", "--quiet", "--message-format", "json"];
    // Cargo unites the features of all packages that are named, but compiles only the program.
    let targets = ["-p", "machmeter", "-p", package, "--bin", name];
    let built = said(root, env!("CARGO"), &[&build[..], &targets].concat(), &[])?;
    let program = artifact(&built, name, |m| m["executable"].as_str().map(str::to_owned));
    let mut files = vec![program.with_context(|| format!("no program {name} was built"))?];
    for package in packages {
        let found = artifact(&built, &package.replace('-', "_"), library);
        files.push(found.with_context(|| format!("no library of {package} was built"))?);
    }
    files.iter().map(|file| disassembled(root, file)).collect()
}

fn disassembled(root: &Path, file: &str) -> Result<String> {
    let listing = said(root, "objdump", &["-dr", "--no-show-raw-insn", "-M", "suffix", file], &[])
        .context("objdump is needed: install binutils")?;
    Ok(labeled(&listing))
}

/// A file of the target `name`, chosen by `file`, in cargo's messages about a build.
fn artifact(built: &str, name: &str, file: impl Fn(&Value) -> Option<String>) -> Option<String> {
    let messages = built.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    messages.filter(|m| m["target"]["name"].as_str() == Some(name)).find_map(|m| file(&m))
}

/// The compiled library among the files of a message.
fn library(message: &Value) -> Option<String> {
    let mut files = message["filenames"].as_array()?.iter().filter_map(Value::as_str);
    files.find(|f| Path::new(f).extension().is_some_and(|e| e == "rlib")).map(str::to_owned)
}

/// A listing of objdump in the form of a compiler's assembly text: functions with a label and an end, jumps to labels, and calls
/// with the names of their targets.
fn labeled(listing: &str) -> String {
    let mut out = String::new();
    let mut function: Vec<(&str, String)> = Vec::new();
    for line in listing.lines().chain([""]) {
        if let Some((_, target)) = line.split_once(": R_X86_64_") {
            if let (Some(last), Some(name)) = (function.last_mut(), target.split_whitespace().nth(1)) {
                last.1 = with_target(&last.1, name);
            }
        } else if let Some((address, instruction)) = line.split_once(":\t") {
            let instruction = instruction.split(" #").next().unwrap_or_default().trim();
            function.push((address.trim(), as_compiled(instruction)));
        } else {
            let code = function.iter().rposition(|(_, i)| !is_padding(i)).map_or(0, |last| last + 1);
            out.push_str(&finished(&function[..code]));
            function.clear();
            if let Some((_, name)) = line.strip_suffix(">:").and_then(|l| l.split_once('<')) {
                out.push_str(&format!("{name}:\n"));
            }
        }
    }
    out
}

/// Whether an instruction only fills the space between two functions of a program.
fn is_padding(instruction: &str) -> bool {
    let words = ["nop", "data16", "cs", "int3", "xchg\t%ax, %ax"];
    words.iter().any(|w| instruction.starts_with(w))
}

/// An instruction in the compiler's notation: operands apart by ", ", and offsets in decimal.
fn as_compiled(instruction: &str) -> String {
    let Some((op, operands)) = instruction.split_once(char::is_whitespace) else {
        return instruction.to_owned();
    };
    let (mut out, mut depth) = (format!("{op}\t"), 0);
    for (i, c) in operands.trim().char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        out.push(c);
        if c == ',' && depth == 0 && !operands.trim()[i + 1..].starts_with(' ') {
            out.push(' ');
        }
    }
    let mut decimal = String::new();
    let mut rest = out.as_str();
    while let Some((before, hex)) = rest.split_once("0x") {
        let digits = hex.len() - hex.trim_start_matches(|c: char| c.is_ascii_hexdigit()).len();
        match u64::from_str_radix(&hex[..digits], 16) {
            Ok(value) => decimal.push_str(&format!("{before}{value}")),
            Err(_) => decimal.push_str(&format!("{before}0x{}", &hex[..digits])),
        }
        rest = &hex[digits..];
    }
    decimal + rest
}

/// An instruction with the name that a relocation gives to its empty offset.
fn with_target(instruction: &str, name: &str) -> String {
    let name = name.rsplit_once("-0x").map_or(name, |(name, _)| name);
    let (op, operand) = instruction.split_once(char::is_whitespace).unwrap_or((instruction, ""));
    if op.starts_with("call") && !operand.trim_start().starts_with('*') {
        return format!("{op}\t{name}");
    }
    instruction.replace("0(%rip)", &format!("{name}(%rip)"))
}

/// A function's instructions, with labels where its jumps lead, and its end.
fn finished(function: &[(&str, String)]) -> String {
    let jump = |instruction: &str| {
        let (op, operand) = instruction.split_once(char::is_whitespace)?;
        let (address, _) = operand.trim().split_once(" <")?;
        op.starts_with('j').then(|| (op.to_owned(), address.to_owned()))
    };
    let targets: Vec<String> = function.iter().filter_map(|(_, i)| Some(jump(i)?.1)).collect();
    let mut out = String::new();
    for (address, instruction) in function {
        if targets.iter().any(|t| t == address) {
            out.push_str(&format!(".L{address}:\n"));
        }
        match jump(instruction) {
            Some((op, to)) => out.push_str(&format!("\t{op}\t.L{to}\n")),
            None => out.push_str(&format!("\t{instruction}\n")),
        }
    }
    if !function.is_empty() {
        out.push_str("\t.cfi_endproc\n");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listing_becomes_text_with_labels_and_names() {
        let listing = "Disassembly of section .text.f:\n\n0000000000000000 <f>:\n   0:\trdtsc\n   2:\tmovl   %eax,-0x10(%rsi,%rdx,4)\n   \
                       5:\tjb     0 <f>\n   7:\tcallq  c <f+0xc>\n\t\t\t8: R_X86_64_PLT32\tg-0x4\n   c:\tcallq  *0x0(%rip)        \
                       # 12 <f+0x12>\n\t\t\te: R_X86_64_GOTPCREL\th-0x4\n  12:\tretq\n\n";
        let text = labeled(listing);
        assert_eq!(
            text,
            "f:\n.L0:\n\trdtsc\n\tmovl\t%eax, -16(%rsi,%rdx,4)\n\tjb\t.L0\n\tcallq\tg\n\tcallq\t*h(%rip)\n\tretq\n\t.cfi_endproc\n"
        );
    }

    #[test]
    fn padding_between_functions_is_left_out() {
        let listing = "0000000000001000 <f>:\n    1000:\tnop\n    1001:\tretq\n    1002:\tdata16 cs nopw 0x0(%rax,%rax,1)\n    \
                       100d:\txchg   %ax,%ax\n\n0000000000001010 <g>:\n    1010:\tretq\n    1011:\tint3\n\n";
        assert_eq!(labeled(listing), "f:\n\tnop\n\tretq\n\t.cfi_endproc\ng:\n\tretq\n\t.cfi_endproc\n");
    }

    #[test]
    fn the_file_of_a_target_is_the_one_of_its_name() {
        let of = |name: &str, file: &str| {
            format!(r#"{{"target":{{"name":"{name}"}},"filenames":["/m.rmeta","{file}"],"executable":null}}"#)
        };
        let program = r#"{"target":{"name":"off"},"filenames":["/off"],"executable":"/off"}"#;
        let built = [
            of("machmeter_loop", "/a.rlib"),
            of("machmeter_loops", "/b.rlib"),
            "text".to_owned(),
            program.to_owned(),
        ]
        .join("\n");
        assert_eq!(artifact(&built, "machmeter_loops", library).as_deref(), Some("/b.rlib"));
        assert_eq!(artifact(&built, "machmeter_flow", library), None);
        let executable = |m: &Value| m["executable"].as_str().map(str::to_owned);
        assert_eq!(artifact(&built, "off", executable).as_deref(), Some("/off"));
        assert_eq!(artifact(&built, "machmeter_loops", executable), None);
    }
}
