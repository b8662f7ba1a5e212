//! The machine code of loops whose cost is a figure, as it is in the release. A loop that measures may read the clock at
//! most twice, once more after a note, and neither call nor divide nor write outside the buffers it was given. The dataflow kernel
//! fires a box in a few instructions, and timers that are off leave none.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};

use crate::disassembly::program_and_libraries;

/// What one measuring function may do at most.
struct Limits {
    /// Tick reads: before the first turn, in the turn, after a note.
    reads: usize,
    /// Stores through a register other than the stack pointer, in the whole function: two for a gap, four for a window, one each
    /// for its sums, the rest for the list, the histogram and the result.
    stores: usize,
}

const LIMITS: Limits = Limits { reads: 3, stores: 49 };
/// Parts of the mangled names of functions: of those that measure, that fire boxes, and that do the same with a timer off.
const MEASURING: &[&str] = &["machmeter_loops5noise7measure6record"];
const FIRING: &[&str] = &["machmeter_flow9scheduler", "machmeter_flow7program7Program3run"];
const UNTIMED: &[&str] = &["3off5plain", "3off5timed"];
/// Instructions to fire a box at most, the call included and the box not.
const MOST_TO_FIRE: usize = 14;
/// Of the kernel's `Entry`: how far apart the lines of the firing table are.
const LINE_BYTES: usize = 32;

/// Reads the machine code of the release and checks it.
pub(crate) fn check(root: &Path) -> Result<()> {
    if !cfg!(target_arch = "x86_64") {
        println!("asm: skipped, the rules are written for x86-64");
        return Ok(());
    }
    let libraries = ["machmeter-loops", "machmeter-flow"];
    let texts = program_and_libraries(root, "machmeter-machine-code", "off", &libraries).context("asm")?;
    let [off, loops, flow] = &texts[..] else { bail!("asm: {} texts", texts.len()) };
    println!("asm: {}", measure(loops, 5)?);
    // Two copies for each of the four kernels, and one for static graphs.
    println!("asm: {}", fire(flow, FIRING, 9, MOST_TO_FIRE)?);
    println!("asm: {}", add_none(off)?);
    Ok(())
}

type Function = (String, Vec<String>);

/// Functions of these names. The instance with stalls, which a self-test plants, calls on purpose.
fn found(text: &str, names: &[&str]) -> Vec<Function> {
    let all = names.iter().flat_map(|part| functions(text, part));
    all.filter(|(_, body)| !body.iter().any(|l| l.contains("8stalling"))).collect()
}

/// What is told of so many instances; fewer than `least` are none of a rule that is kept.
fn kept(names: &[&str], instances: usize, least: usize) -> Result<String> {
    let names = names.join(", ");
    ensure!(instances >= least, "asm: {instances} instances of {names}, {least} expected");
    Ok(format!("{instances} instances of {names} keep their rule"))
}

fn measure(text: &str, least: usize) -> Result<String> {
    let found = found(text, MEASURING);
    for (name, body) in &found {
        judge(&LIMITS, body).with_context(|| format!("asm: {name}"))?;
    }
    kept(MEASURING, found.len(), least)
}

fn fire(text: &str, names: &[&str], least: usize, most: usize) -> Result<String> {
    let found = found(text, names);
    let loops: Vec<_> = found.iter().flat_map(|(name, body)| firings(body).map(move |n| (name, n))).collect();
    if let Some((name, n)) = loops.iter().find(|(_, n)| *n > most) {
        bail!("asm: {name}: {n} instructions to fire a box, at most {most} allowed");
    }
    kept(names, loops.len(), least)
}

/// The two functions have the same instructions.
fn add_none(text: &str) -> Result<String> {
    let found = found(text, UNTIMED);
    let told = kept(UNTIMED, found.len(), 2)?;
    same(&found[0], &found[1])?;
    Ok(told)
}

/// Functions whose label contains `part`, with their instructions.
fn functions(text: &str, part: &str) -> Vec<Function> {
    let mut out: Vec<Function> = Vec::new();
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

/// Instructions of each loop that fires boxes without a timer: the smallest around a call through a table that also steps to the
/// table's next line. What the box itself does is not in it.
fn firings(body: &[String]) -> impl Iterator<Item = usize> {
    let steps = |(from, to): (usize, usize)| body[from..to].iter().filter_map(|l| step_bytes(l));
    let calls = (0..body.len()).filter(|at| is_call_through_table(&body[*at]));
    let loops = calls.filter_map(move |call| {
        let around = backward_jumps(body).filter(|(from, to)| (*from..*to).contains(&call));
        around.filter(|l| steps(*l).next().is_some()).min_by_key(|(from, to)| to - from)
    });
    let firing = loops.filter(move |l| steps(*l).any(|bytes| bytes == LINE_BYTES));
    let bodies = firing.map(|(from, to)| &body[from..=to]);
    let untimed = bodies.filter(|b| with_opcode(b, &["rdtsc"]).count() == 0);
    untimed.map(|b| b.iter().filter(|l| !l.starts_with('.')).count())
}

/// Labels with the jumps behind them that lead back there.
fn backward_jumps(body: &[String]) -> impl Iterator<Item = (usize, usize)> {
    let jumps = (0..body.len()).filter(|at| body[*at].starts_with('j'));
    jumps.filter_map(|at| {
        let label = body[at].split_whitespace().last()?;
        let from = body[..at].iter().position(|l| l.strip_suffix(':') == Some(label))?;
        Some((from, at))
    })
}

/// A call of what a register points to: not of a library's function, nor of one kept on the stack.
fn is_call_through_table(line: &str) -> bool {
    let operand = line.strip_prefix("callq").or_else(|| line.strip_prefix("call")).unwrap_or_default().trim();
    let on_stack_or_named = operand.contains("(%rip") || operand.contains("(%rsp");
    operand.starts_with('*') && operand.contains("(%") && !on_stack_or_named
}

fn step_bytes(line: &str) -> Option<usize> {
    let (op, operands) = line.split_once(char::is_whitespace)?;
    let (first, _) = operands.trim().rsplit_once(", ")?;
    let bytes = match op {
        "leaq" => first.split_once("(%").filter(|(_, register)| !register.contains(','))?.0,
        "addq" => first.strip_prefix('$')?,
        _ => return None,
    };
    bytes.parse().ok()
}

/// Checks that two functions have the same instructions, whatever their operands.
fn same((name, body): &Function, (other_name, other): &Function) -> Result<()> {
    let opcodes = |body: &[String]| -> Vec<String> {
        let instructions = body.iter().filter(|l| !l.starts_with('.'));
        instructions.filter_map(|l| l.split_whitespace().next().map(str::to_owned)).collect()
    };
    let (all, others) = (opcodes(body), opcodes(other));
    if all == others {
        return Ok(());
    }
    let at = all.iter().zip(&others).take_while(|(a, b)| a == b).count();
    let (n, others_n) = (all.len(), others.len());
    bail!("asm: {other_name} has {others_n} instructions, {name} has {n}: they differ from number {at} on");
}

fn judge(rule: &Limits, body: &[String]) -> Result<()> {
    let calls: Vec<&String> = with_opcode(body, &["call", "callq", "syscall"])
        // The monotonic clock is a call by nature; the rule is for counters read in place.
        .filter(|l| !l.contains("clock_gettime"))
        .collect();
    let by_call = body.iter().any(|l| l.contains("clock_gettime"));
    let told = || calls.iter().map(|c| c.as_str()).collect::<Vec<_>>().join("; ");
    ensure!(calls.is_empty() || by_call, "calls: {}", told());
    let divides = with_opcode(body, &["div", "divq", "divl", "idiv", "idivq", "idivl"]).count();
    ensure!(divides == 0, "{divides} divisions");
    let reads = with_opcode(body, &["rdtsc", "rdtscp"]).count();
    ensure!(reads <= rule.reads, "{reads} tick reads, at most {} allowed", rule.reads);
    let stores = body.iter().filter(|l| is_store(l)).count();
    ensure!(stores <= rule.stores, "{stores} stores outside the stack, at most {} expected", rule.stores);
    settles(body)?;
    hot_path(body)
}

/// The stores of a note end before the tick read behind it: `sys::clock::settle` stands there as instructions, not as a memory order.
fn settles(body: &[String]) -> Result<()> {
    let opcodes: Vec<&str> = body.iter().filter_map(|l| l.split_whitespace().next()).collect();
    let settled = opcodes.windows(2).any(|pair| pair == ["mfence", "lfence"]);
    ensure!(settled, "no mfence with lfence: the stores of a note fall into the next turn");
    ensure!(!body.iter().any(|l| l.starts_with("lock")), "a locked instruction orders no tick read");
    Ok(())
}

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
    let turns = reads.is_empty() || reads.iter().any(|at| is_turn(&body[*at..]));
    ensure!(turns, "the turn stores: no tick read is followed by two comparisons without a store");
    Ok(())
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

    const RULE: Limits = Limits { reads: 2, stores: 1 };

    #[test]
    fn what_a_loop_must_not_do_is_seen() {
        let good = lines(
            "rdtsc\nmovl %eax, (%rsi,%rdx,4)\nmfence\nlfence\nrdtsc\naddq $1, %rcx\ncmpq %rax, %rbx\njb .L1\njae .L2",
        );
        assert!(judge(&RULE, &good).is_ok());
        assert!(judge(&RULE, &good.iter().filter(|l| *l != "mfence").cloned().collect::<Vec<_>>()).is_err());
        for bad in [
            "callq foo",
            "divq %rcx",
            "rdtsc\nrdtsc\nrdtsc",
            "movq %rax, (%rdi)\nmovq %rax, 8(%rdi)",
            "lock orl $0, -64(%rsp)",
        ] {
            let mut body = good.clone();
            body.splice(0..0, lines(bad));
            assert!(judge(&RULE, &body).is_err(), "{bad}");
        }
        let stores_each_turn =
            lines("mfence\nlfence\nrdtsc\nrdtsc\nmovq %rax, (%rdi)\ncmpq %rax, %rbx\njb .L1");
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

    /// What is told of a function `turn` with a firing loop of 5 instructions at most, and within it what is given.
    fn turn(inner: &str) -> Result<String> {
        let called_again = ".L3:\ncallq *24(%rsp)\ncmpb $1, %al\nje .L3\nje .L2";
        let text = format!(
            "turn:\npushq %rax\n.L1:\nleaq 32(%r12), %r13\n{inner}\n.L2:\nmovq %r13, %r12\njne .L1\n{called_again}\n.cfi_endproc\n"
        );
        fire(&text, &["turn"], 1, 5)
    }

    #[test]
    fn a_firing_is_counted_without_what_is_rare() {
        assert!(turn("callq *(%r12)\ntestb %al, %al").is_ok());
        let long = turn("callq *(%r12)\ntestb %al, %al\nnop").unwrap_err();
        assert!(long.to_string().contains("6 instructions"), "{long}");
        // The loop that calls again is no way to hide.
        let nested = turn(".L4:\nnop\ncallq *(%r12)\nje .L4").unwrap_err();
        assert!(nested.to_string().contains("6 instructions"), "{nested}");
    }

    const OTHER_TABLE: &str = ".L5:\ncallq *8(%rax)\naddq $16, %rbp\njne .L5";

    #[test]
    fn a_loop_that_calls_otherwise_or_is_timed_is_none_that_fires() {
        for other in [
            "callq *free@GOTPCREL(%rip)",
            "callq *8(%rsp)",
            "callq *%rax",
            "rdtsc\ncallq *(%r12)",
            OTHER_TABLE,
        ] {
            let none = turn(other).unwrap_err();
            assert!(none.to_string().contains("0 instances"), "{other}: {none}");
        }
    }

    #[test]
    fn instructions_that_a_timer_adds_are_seen() {
        let pair = |plain: &str, timed: &str| {
            let text = format!("3off5plain:\n{plain}\n.cfi_endproc\n3off5timed:\n{timed}\n.cfi_endproc\n");
            add_none(&text)
        };
        assert!(pair("movl $1, %eax\njmp .L1", "movl $2, %eax\n.p2align 4\njmp .L2").is_ok());
        assert!(pair("movl $1, %eax", "movl $2, %eax\nnop").is_err());
        assert!(pair("movl $1, %eax", "addl $2, %eax").is_err());
        // One of the two was left out.
        assert!(add_none("3off5plain:\nret\n.cfi_endproc\n").is_err());
    }
}
