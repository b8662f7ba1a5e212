//! Machine code of the release as assembly text: libraries through objdump, so that what is read is what `make` has built.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde_json::Value;

use crate::said;

/// Libraries of the release, disassembled, in the order of `packages`. If there is a release, it is brought up to date; otherwise
/// only these libraries are compiled.
pub(crate) fn libraries(root: &Path, packages: &[&str]) -> Result<Vec<String>> {
    let mut build = vec!["build", "--release", "--locked", "--quiet", "--message-format", "json"];
    if !root.join("target/release/machmeter").exists() {
        build.extend(packages.iter().flat_map(|p| ["-p", p]));
    }
    let built = said(root, env!("CARGO"), &build, &[])?;
    let text = |package: &&str| {
        let library =
            library(&built, package).with_context(|| format!("no library of {package} was built"))?;
        let listing = said(root, "objdump", &["-dr", "--no-show-raw-insn", "-M", "suffix", &library], &[])
            .context("objdump is needed: install binutils")?;
        Ok(labeled(&listing))
    };
    packages.iter().map(text).collect()
}

/// Assembly text of an example, compiled as in a release.
pub(crate) fn example(root: &Path, package: &str, name: &str) -> Result<String> {
    let compile = ["rustc", "--quiet", "--release", "--locked", "-p", package, "--example", name];
    let emit = ["--", "--emit", "asm", "-C", "codegen-units=1", "-C", "debuginfo=0"];
    said(root, env!("CARGO"), &[&compile[..], &emit].concat(), &[])?;
    Ok(std::fs::read_to_string(newest(&root.join("target/release/examples"), &format!("{name}-"))?)?)
}

fn newest(folder: &Path, prefix: &str) -> Result<PathBuf> {
    std::fs::read_dir(folder)?
        .filter_map(|e| Some(e.ok()?.path()))
        .filter(|p| p.extension().is_some_and(|e| e == "s"))
        .filter(|p| p.file_name().is_some_and(|n| n.to_string_lossy().starts_with(prefix)))
        .max_by_key(|p| std::fs::metadata(p).and_then(|m| m.modified()).ok())
        .context("no assembly file was written")
}

/// Path of a package's library in cargo's messages about a build.
fn library(built: &str, package: &str) -> Option<String> {
    let name = package.replace('-', "_");
    let messages = built.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut files = messages
        .filter(|m| m["target"]["name"].as_str() == Some(&name))
        .flat_map(|m| m["filenames"].as_array().cloned().unwrap_or_default());
    files.find_map(|f| {
        f.as_str().filter(|f| Path::new(f).extension().is_some_and(|e| e == "rlib")).map(str::to_owned)
    })
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
            out.push_str(&finished(&function));
            function.clear();
            if let Some((_, name)) = line.strip_suffix(">:").and_then(|l| l.split_once('<')) {
                out.push_str(&format!("{name}:\n"));
            }
        }
    }
    out
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
    fn the_library_of_a_package_is_the_one_of_its_name() {
        let of =
            |name: &str, file: &str| format!(r#"{{"target":{{"name":"{name}"}},"filenames":["{file}"]}}"#);
        let built =
            [of("machmeter_loop", "/a.rlib"), of("machmeter_loops", "/b.rlib"), "text".to_owned()].join("\n");
        assert_eq!(library(&built, "machmeter-loops").as_deref(), Some("/b.rlib"));
        assert_eq!(library(&built, "machmeter-flow"), None);
    }
}
