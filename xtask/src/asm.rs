//! The machine code of the measured loops: compiled as in a release and read. A loop that measures may read the clock at
//! most twice, once more after a note, and neither call nor divide nor write outside the buffers it was given.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

/// Crate that has the loop.
const PACKAGE: &str = "machmeter-noise";
/// Part of the mangled name of the loop.
const FUNCTION: &str = "machmeter_noise7measure6record";
/// Instances expected at least.
const INSTANCES: usize = 5;

/// What one function may do at most.
struct Rule {
    /// Tick reads: before the first turn, in the turn, after a note.
    reads: usize,
    /// Stores through a register other than the stack pointer, in the whole function: two for a gap, four for a window, one each
    /// for its sums, the rest for the list, the histogram and the result.
    stores: usize,
}

const RULE: Rule = Rule { reads: 3, stores: 48 };

/// Compiles the crate with assembly output and checks the loop.
pub(crate) fn check(root: &Path) -> Result<()> {
    if !cfg!(target_arch = "x86_64") {
        println!("asm: skipped, the rules are written for x86-64");
        return Ok(());
    }
    let text = assembly(root)?;
    let mut found = functions(&text, FUNCTION);
    // The self-test's instance stalls on purpose, by a call into the self-test.
    found.retain(|(_, body)| !body.iter().any(|l| l.contains("selftest")));
    if found.len() < INSTANCES {
        bail!("asm: {} instances of {FUNCTION}, {INSTANCES} expected", found.len());
    }
    for (name, body) in &found {
        judge(&RULE, body).with_context(|| format!("asm: {name}"))?;
    }
    println!("asm: {} instances of {FUNCTION} keep their rule", found.len());
    Ok(())
}

/// Assembly text of the crate, compiled as in a release.
fn assembly(root: &Path) -> Result<String> {
    let folder = root.join("target/asm");
    let status = Command::new(env!("CARGO"))
        .args(["rustc", "--quiet", "--release", "-p", PACKAGE, "--lib", "--target-dir"])
        .arg(&folder)
        .args(["--", "--emit", "asm", "-C", "codegen-units=1", "-C", "debuginfo=0"])
        .current_dir(root)
        .status()
        .context("cargo rustc could not be run")?;
    if !status.success() {
        bail!("{PACKAGE} does not compile");
    }
    Ok(std::fs::read_to_string(newest(&folder.join("release/deps"), &PACKAGE.replace('-', "_"))?)?)
}

fn newest(folder: &Path, prefix: &str) -> Result<PathBuf> {
    std::fs::read_dir(folder)?
        .filter_map(|e| Some(e.ok()?.path()))
        .filter(|p| p.extension().is_some_and(|e| e == "s"))
        .filter(|p| p.file_name().is_some_and(|n| n.to_string_lossy().starts_with(prefix)))
        .max_by_key(|p| std::fs::metadata(p).and_then(|m| m.modified()).ok())
        .context("no assembly file was written")
}

/// Functions whose label contains `part`, with their instructions.
fn functions(text: &str, part: &str) -> Vec<(String, Vec<String>)> {
    let mut out: Vec<(String, Vec<String>)> = Vec::new();
    let mut inside = false;
    for line in text.lines() {
        if let Some(label) = line.strip_suffix(':').filter(|l| !l.starts_with(['.', ' ', '\t'])) {
            inside = label.contains(part);
            if inside {
                out.push((label.to_owned(), Vec::new()));
            }
        } else if line.trim_start().starts_with(".cfi_endproc") {
            inside = false;
        } else if inside && let Some(f) = out.last_mut() {
            let line = line.trim();
            if !line.starts_with(['#', '/']) && !line.is_empty() {
                f.1.push(line.to_owned());
            }
        }
    }
    out
}

/// Checks one function's instructions.
fn judge(rule: &Rule, body: &[String]) -> Result<()> {
    let calls: Vec<&String> = with_opcode(body, &["call", "callq", "syscall"])
        // The monotonic clock is a call by nature; the rule is for counters read in place.
        .filter(|l| !l.contains("clock_gettime"))
        .collect();
    let by_call = body.iter().any(|l| l.contains("clock_gettime"));
    if !calls.is_empty() && !by_call {
        bail!("calls: {}", calls.iter().map(|c| c.as_str()).collect::<Vec<_>>().join("; "));
    }
    let divides = with_opcode(body, &["div", "divq", "divl", "idiv", "idivq", "idivl"]).count();
    if divides > 0 {
        bail!("{divides} divisions");
    }
    let reads = with_opcode(body, &["rdtsc", "rdtscp"]).count();
    if reads > rule.reads {
        bail!("{reads} tick reads, at most {} allowed", rule.reads);
    }
    let stores = body.iter().filter(|l| is_store(l)).count();
    if stores > rule.stores {
        bail!("{stores} stores outside the stack, at most {} expected", rule.stores);
    }
    hot_path(body)
}

/// Instructions with one of these opcodes.
fn with_opcode<'a>(body: &'a [String], opcodes: &'a [&str]) -> impl Iterator<Item = &'a String> {
    body.iter().filter(move |l| opcodes.iter().any(|o| l.split_whitespace().next() == Some(o)))
}

/// A store to memory that is not the stack (AT&T syntax: the last operand is the target).
fn is_store(line: &str) -> bool {
    let mut words = line.splitn(2, char::is_whitespace);
    let (Some(op), Some(operands)) = (words.next(), words.next()) else { return false };
    let reads_only = ["cmp", "test", "lea", "j", "nop", "bt", "prefetch", "push", "ret"];
    if op.starts_with('.') || reads_only.iter().any(|r| op.starts_with(r)) {
        return false;
    }
    let target = operands.rsplit_once(", ").map_or(operands, |(_, t)| t).trim();
    let target = target.rsplit_once(',').filter(|(_, t)| !t.contains(')')).map_or(target, |(_, t)| t.trim());
    target.ends_with(')') && !target.contains("(%rsp") && !target.contains("(%rbp") && target.contains('(')
}

/// The turn itself stores nothing: at least one tick read is followed by the two comparisons of a turn without a store.
fn hot_path(body: &[String]) -> Result<()> {
    let reads: Vec<usize> = (0..body.len()).filter(|at| body[*at].starts_with("rdtsc")).collect();
    if reads.is_empty() || reads.iter().any(|at| is_turn(&body[*at..])) {
        return Ok(());
    }
    bail!("the turn stores: no tick read is followed by two comparisons without a store")
}

/// Whether two conditional jumps come before any store and any other jump.
fn is_turn(body: &[String]) -> bool {
    let mut conditions = 0;
    for line in body {
        let op = line.split_whitespace().next().unwrap_or_default();
        if is_store(line) || op == "jmp" {
            return false;
        }
        conditions += usize::from(op.starts_with('j'));
        if conditions == 2 {
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(|l| l.trim().to_owned()).collect()
    }

    const RULE: Rule = Rule { reads: 2, stores: 1 };

    #[test]
    fn what_a_loop_must_not_do_is_seen() {
        let good =
            lines("rdtsc\nmovl %eax, (%rsi,%rdx,4)\nrdtsc\naddq $1, %rcx\ncmpq %rax, %rbx\njb .L1\njae .L2");
        assert!(judge(&RULE, &good).is_ok());
        for bad in ["callq foo", "divq %rcx", "rdtsc\nrdtsc\nrdtsc", "movq %rax, (%rdi)\nmovq %rax, 8(%rdi)"]
        {
            let mut body = good.clone();
            body.splice(0..0, lines(bad));
            assert!(judge(&RULE, &body).is_err(), "{bad}");
        }
        let stores_each_turn = lines("rdtsc\nrdtsc\nmovq %rax, (%rdi)\ncmpq %rax, %rbx\njb .L1");
        assert!(judge(&RULE, &stores_each_turn).is_err());
    }

    #[test]
    fn stores_are_told_from_loads() {
        for store in
            ["movq %rax, (%rdi)", "addq $1, 16(%rsi,%rcx,8)", "incq 8(%rdx)", "movups %xmm0, (%r8,%rcx)"]
        {
            assert!(is_store(store), "{store}");
        }
        for other in [
            "movq (%rdi), %rax",
            "cmpq (%rdi), %rax",
            "leaq 8(%rdi), %rax",
            "movq %rax, 8(%rsp)",
            "movzbl (%rdi,%rax), %ecx",
        ] {
            assert!(!is_store(other), "{other}");
        }
    }

    #[test]
    fn functions_are_cut_at_their_ends() {
        let text = "a5noise7measure6recordZ:\n\trdtsc\n\tret\n\t.cfi_endproc\nother:\n\tcallq x\n";
        let f = functions(text, "5noise7measure6record");
        assert_eq!((f.len(), f[0].1.len()), (1, 2));
    }
}
