//! Checks of memory: enough free memory, no swapping, a constant amount.
//!
//! A guest's memory can change while it runs, if the hypervisor takes pages back (ballooning).

use machmeter_data::{Hazard, code};

use super::CheckDef;
use super::inputs::{Inputs, amount_in, size, three_digits};
use super::outcome::{Judged, Outcome};

const MIB: f64 = 1024.0 * 1024.0;
/// Share of all memory, and least amount in bytes, below which the kernel begins to reclaim pages.
const FREE_WARN: (f64, f64) = (0.10, 512.0 * MIB);
const FREE_FAIL: (f64, f64) = (0.03, 128.0 * MIB);
const SWAP_WARN_BYTES: f64 = 16.0 * MIB;
const SWAP_GROWTH_BYTES: f64 = MIB;
const CHANGE_WARN_PERCENT: f64 = 0.1;
const CHANGE_FAIL_PERCENT: f64 = 5.0;

pub(super) const FREE: CheckDef = CheckDef {
    code: code! { "E401" "free memory",
        what: "Free memory is available, in the machine and in the control group.",
        why: "When memory is short, the kernel reclaims pages during allocations of programs. This costs stalls of ms, and more if the buffers of a \
              measurement are swapped out.",
        how: "MemAvailable and MemTotal of /proc/meminfo, and the memory limit of the control group.",
        next: "Stop programs, or raise the group's limit (memory.max).",
        undo: "Set the former limit.",
    },
    hazards: &[Hazard::Preemption, Hazard::MemoryPlacement],
    needs: &["memory.available", "memory.total", "cgroup.memory_max"],
    judge: free,
    ..CheckDef::OF_NOTHING
};

fn free(inputs: &Inputs) -> Judged {
    let (available, total) = (inputs.amount("memory.available")?, inputs.amount("memory.total")?);
    let group = inputs.limit("cgroup.memory_max")?;
    let mut text = format!("{} available of {}", size(available), size(total));
    if group < total {
        text.push_str(&format!(", group limited to {}", size(group)));
    }
    let below = |(share, least): (f64, f64)| {
        available < (share * total).min(4.0 * least).max(least.min(total / 2.0)) || group < least
    };
    Ok(Outcome::worst(below(FREE_FAIL), below(FREE_WARN), text)
        .limit(format!("{} and 10 % of memory, up to {}", size(FREE_WARN.1), size(4.0 * FREE_WARN.1)))
        .next("stop programs that use much memory (ps -e -o rss,pid,comm --sort=-rss | head), or raise memory.max of the group")
        .undo("write the former number into memory.max"))
}

pub(super) const SWAP: CheckDef = CheckDef {
    code: code! { "E402" "swap in use",
        what: "No memory is swapped out, and none is being swapped out.",
        why: "A page that must be read back from a disk stalls its program for 100 us to some ms.",
        how: "SwapTotal minus SwapFree of /proc/meminfo, and its growth between two captures.",
        next: "swapoff -a && swapon -a reads all pages back, if there is enough memory.",
        undo: "swapon -a",
    },
    hazards: &[Hazard::Preemption, Hazard::MemoryPlacement],
    needs: &["memory.swap_total", "memory.swap_free"],
    judge: swap,
    ..CheckDef::OF_NOTHING
};

fn swap(inputs: &Inputs) -> Judged {
    let used = |facts| -> Result<f64, Outcome> {
        Ok((amount_in(facts, "memory.swap_total")? - amount_in(facts, "memory.swap_free")?).max(0.0))
    };
    let before = used(inputs.facts)?;
    let after = inputs.later.map(used).transpose()?.unwrap_or(before);
    let grows = after - before > SWAP_GROWTH_BYTES;
    let mut text = format!("{} in use", size(after.max(before)));
    if grows {
        text.push_str(&format!(", {} more than at the first capture", size(after - before)));
    }
    Ok(Outcome::worst(grows, after.max(before) > SWAP_WARN_BYTES, text)
        .limit(format!("{}, not growing", size(SWAP_WARN_BYTES)))
        .next("swapoff -a, if there is enough free memory")
        .undo("swapon -a"))
}

pub(super) const CHANGED: CheckDef = CheckDef {
    code: code! { "E405" "memory changed during the run",
        what: "The machine had the same amount of memory at both captures.",
        why: "A hypervisor that adds or removes memory (hot-plug, balloon) stops CPUs and moves pages. Figures before and after the change belong to \
              two different machines.",
        how: "MemTotal at the first and at the last capture.",
        next: "Run again. If it happens often, request a fixed memory size (no balloon).",
    },
    hazards: &[Hazard::MemoryPlacement],
    needs: &["memory.total"],
    judge: changed,
    ..CheckDef::OF_NOTHING
};

fn changed(inputs: &Inputs) -> Judged {
    let before = inputs.amount("memory.total")?;
    let Some(later) = inputs.later else {
        return Err(Outcome::unknown("the machine was captured only once")
            .next("run a measurement: it captures the machine before and after"));
    };
    let after = amount_in(later, "memory.total")?;
    if before <= 0.0 {
        return Err(Outcome::unknown("MemTotal is 0"));
    }
    let percent = 100.0 * (after - before).abs() / before;
    let text = format!("{} then {} ({} % apart)", size(before), size(after), three_digits(percent));
    Ok(Outcome::graded(percent, CHANGE_WARN_PERCENT, CHANGE_FAIL_PERCENT, text)
        .limit(format!("{CHANGE_WARN_PERCENT} %"))
        .next("run again; request a fixed memory size from the hypervisor (no balloon, no hot-plug)"))
}
