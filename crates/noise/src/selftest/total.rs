//! Stolen time in blocks with an injector minus blocks without, in one recording, against the injector's log.

use machmeter_stats::quantile::median_of;
use machmeter_sys::sched::Policy;

use super::inject::{Log, NAME, Setting, with_injector};
use super::lab::Lab;
use super::score::{cover, duration_error, excess_ticks, shift};
use super::{Options, SelfCheck, Shown, State, check, percent};
use crate::analyze::split::split;
use crate::attribute::activity_log::{Sight, SourceKind};
use crate::attribute::matching::Part;
use crate::samples::Samples;

/// Length of a block, and what is left out at each of its ends, ns.
const BLOCK_NS: u64 = 40_000_000;
const EDGE_NS: f64 = 1_500_000.0;
/// Blocks of each kind that are needed.
const MIN_BLOCKS: usize = 8;
/// A block counts if other threads had no more than this share of it.
const OTHERS: f64 = 0.005;
const ERROR: f64 = 0.05;
/// Few and long bursts, so that the cost of switching is small against what the log says.
const SETTING: Setting = Setting { hz: 190.0, burst_us: 500.0, block_ns: Some(BLOCK_NS) };
/// Policy of the meter: ordinary threads would blur the difference.
const METER: Policy = Policy::Fifo(45);

struct Block {
    on: bool,
    stolen: f64,
    bursts: f64,
    count: f64,
    others: f64,
    length_ticks: f64,
}

pub(super) fn checks(lab: &Lab, options: &Options) -> Vec<SelfCheck> {
    let what = format!(
        "thread {NAME}, 500 us at 190 Hz in every other block of 40 ms, meter under {METER}: on minus off"
    );
    let bar = "within 5 % of bursts plus switches";
    let order = lab.here(Some(METER), if options.quick { 2_500_000_000 } else { 5_000_000_000 });
    let shown =
        with_injector(lab, SETTING, &what, order).and_then(|(samples, log)| judge(lab, &samples, &log));
    vec![check("total", &what, bar, shown)]
}

fn judge(lab: &Lab, samples: &Samples, log: &Log) -> Shown {
    let blocks = blocks(lab, samples, log);
    let clean = |on: bool| blocks.iter().filter(move |b| b.on == on && b.others <= OTHERS);
    let (on, off): (Vec<&Block>, Vec<&Block>) = (clean(true).collect(), clean(false).collect());
    if samples.activity_log.sight != Sight::Everything {
        return Err("without the kernel's trace other threads' time is not known".to_owned());
    }
    if on.len() < MIN_BLOCKS || off.len() < MIN_BLOCKS {
        let (all, on, off) = (blocks.len(), on.len(), off.len());
        return Err(format!(
            "of {all} blocks only {on} with and {off} without bursts were free of other threads"
        ));
    }
    let cpu = samples.cpus.first().ok_or("the recording holds no CPU")?;
    let excess = excess_ticks(&log.bursts, &cpu.gaps, &cover(&log.bursts, &cpu.gaps));
    let switch_ticks = duration_error(&excess).map_or(0.0, |e| e.bias);
    let stolen: Vec<f64> = off.iter().map(|b| b.stolen).collect();
    let own = median_of(&stolen).unwrap_or(0.0);
    // While the injector has the CPU, the machine's own detours take nothing from the meter: they hide in the bursts.
    let truth_of = |b: &Block| (b.bursts + b.count * switch_ticks / b.length_ticks) * (1.0 - own);
    let mean = |f: &dyn Fn(&Block) -> f64| on.iter().map(|b| f(b)).sum::<f64>() / on.len() as f64;
    let (truth, bursts) = (mean(&truth_of), mean(&|b| b.bursts));
    let switches = mean(&|b| b.count * switch_ticks / b.length_ticks);
    // What is left of each block when the truth is taken off should be what blocks without bursts have.
    let left: Vec<f64> = on.iter().map(|b| b.stolen - truth_of(b)).collect();
    let (excess, half) = shift(&left, &stolen).ok_or("too few blocks")?;
    let found = truth + excess;
    let error = found / truth - 1.0;
    let state = if half > ERROR * truth { State::NotShown } else { State::of(error.abs() <= ERROR) };
    let wide =
        if state == State::NotShown { "; the machine's own noise makes this too uncertain" } else { "" };
    let [truth, bursts, switches, own, found, half] =
        [truth, bursts, switches, own, found, half].map(percent);
    let (on, off, error) = (on.len(), off.len(), error * 100.0);
    let truth = format!(
        "{truth} more: bursts {bursts}, switches {switches}, less the machine's own {own} that hide in them"
    );
    let found = format!("{found} +- {half} ({on} and {off} blocks), error {error:+.2} %{wide}");
    Ok((truth, found, state))
}

fn blocks(lab: &Lab, samples: &Samples, log: &Log) -> Vec<Block> {
    let Some(cpu) = samples.cpus.first() else { return Vec::new() };
    let schedule = samples.setup.schedule;
    let stolen_ticks = split(cpu, &schedule).stolen_ticks();
    let block_ticks = lab.machine.rate.ticks(BLOCK_NS as f64);
    let edge_ticks = lab.machine.rate.ticks(EDGE_NS);
    let other = |p: &&Part| {
        let s = &samples.activity_log.sources[p.source as usize];
        s.kind == SourceKind::Thread && !s.thread.starts_with(NAME)
    };
    let parts = cpu.attributed.iter().flat_map(|a| &a.parts).filter(other);
    let others: Vec<(u64, u64)> = parts.map(|p| (p.start_ticks, p.start_ticks + p.ticks)).collect();
    let mut out = Vec::new();
    for k in 0_u64.. {
        let start = log.origin_ticks + k * block_ticks + edge_ticks;
        let end = start + block_ticks - 2 * edge_ticks;
        if end > schedule.end_ticks() {
            break;
        }
        if start < schedule.t0_ticks {
            continue;
        }
        let w = schedule.window_ticks;
        let first = (start - schedule.t0_ticks).div_ceil(w) as usize;
        let last = ((end - schedule.t0_ticks) / w) as usize;
        let (from, to) = (schedule.t0_ticks + first as u64 * w, schedule.t0_ticks + last as u64 * w);
        let length_ticks = (to - from) as f64;
        let inside = |a: u64, b: u64| b.min(to).saturating_sub(a.max(from)) as f64;
        let bursts = log.bursts.iter().map(|b| inside(b.start_ticks, b.end_ticks));
        let stolen = stolen_ticks.get(first..last).unwrap_or(&[]);
        out.push(Block {
            on: k.is_multiple_of(2),
            stolen: stolen.iter().sum::<f64>() / length_ticks,
            bursts: bursts.clone().sum::<f64>() / length_ticks,
            count: bursts.filter(|b| *b > 0.0).count() as f64,
            others: others.iter().map(|o| inside(o.0, o.1)).sum::<f64>() / length_ticks,
            length_ticks,
        });
    }
    out
}
