//! What weakens a recording, said with figures.

use machmeter_data::Metric;
use machmeter_data::quantity::{Unit, human};
use machmeter_data::record::Warning;

use super::figures::CpuView;
use crate::attribute::activity_log::Sight;
use crate::info::CODES;
use crate::samples::Samples;

/// Half of the stolen time in fewer detours than this will not settle.
const FEW: usize = 30;

/// A warning and the CPU whose figures it weakens; all, if none.
pub(super) struct Weakness {
    pub(super) warning: Warning,
    cpu: Option<usize>,
}

fn weakness(code: &str, cpu: Option<usize>, text: String) -> Weakness {
    let warning = CODES.iter().find(|c| c.id == code).map(|c| c.warning(text)).unwrap_or_default();
    Weakness { warning, cpu }
}

pub(super) fn all(samples: &Samples, views: &[CpuView<'_>]) -> Vec<Weakness> {
    let mut out = Vec::new();
    for v in views {
        out.extend(few_rule(v));
        let (cpu, name) = (v.cpu.cpu, v.name());
        let mut add = |code: &str, text: String| out.push(weakness(code, Some(cpu), text));
        let Some(t) = v.cpu.thread else { continue };
        if t.stops > 0 {
            let longest =
                human(v.cpu.lengths.longest_ticks as f64 * v.setup.ns_per_tick(), Unit::Nanoseconds);
            let times = if t.stops == 1 { "once".to_owned() } else { format!("{} times", t.stops) };
            add(
                "W320",
                format!(
                    "{name}: the meter was stopped {times}; the longest gap is {longest}, cut off at the end of the recording"
                ),
            );
        }
        if t.page_faults > 0 {
            add("W303", format!("{name}: the measuring loop took {} page faults", t.page_faults));
        }
        if let Some(on) = t.ended_on_cpu.filter(|c| *c != cpu) {
            add("W309", format!("the thread of {name} ended on CPU {on}: its figures mix CPUs"));
        }
        let (closed, all) = (v.cpu.counts.len(), samples.setup.schedule.windows);
        if closed < all {
            add("W307", format!("{name}: the recording ended after {closed} of {all} windows"));
        }
    }
    let log = &samples.activity_log;
    out.extend(views.iter().filter_map(|v| nameless(v, samples)));
    out.extend(samples.setup.real_time_share.iter().map(|text| weakness("W304", None, text.clone())));
    let lost: u64 = log.lost.iter().sum();
    if lost > 0 {
        out.push(weakness("W305", None, format!("the trace ({}) lost {lost} events", log.witness)));
    }
    if log.sight != Sight::Everything && views.iter().any(|v| v.cpu.thread.is_some()) {
        let why = if log.notes.is_empty() { "not requested".to_owned() } else { log.notes.join("; ") };
        let text = format!("sources of noise have no names: recorded with {} only ({why})", log.witness);
        out.push(weakness("W306", None, text));
    }
    out
}
pub(super) fn flag(metrics: &mut [Metric], Weakness { warning, cpu }: &Weakness) {
    let hurts: &[&str] = match warning.code.as_str() {
        "W301" => &["noise.stolen_fraction"],
        "W304" => &["noise.stolen_fraction", "noise.detour_duration"],
        "W320" => &[
            "noise.stolen_fraction",
            "noise.lost_fraction",
            "noise.source_fraction",
            "noise.detour_duration",
        ],
        "W303" | "W309" => &["noise.stolen_fraction", "noise.detour_rate", "noise.detour_duration"],
        "W305" | "W321" => &["noise.source_fraction"],
        _ => &[],
    };
    let cpu = cpu.map(|c| c.to_string());
    for m in metrics.iter_mut().filter(|m| hurts.contains(&m.id.as_str())) {
        let of = m.params.get("cpu").map(ToString::to_string);
        if cpu.is_none() || of == cpu || of.as_deref() == Some("all") {
            m.flag(&warning.code);
        }
    }
}

/// Share of the stolen time without a name from which on a note says so.
const NAMELESS: f64 = 0.1;

/// Time that a complete trace leaves without a name.
fn nameless(view: &CpuView<'_>, samples: &Samples) -> Option<Weakness> {
    if samples.activity_log.sight != Sight::Everything {
        return None;
    }
    let (share, stolen) = super::sources::nameless(view, &samples.activity_log);
    let name = view.name();
    let (share, part) = (share / stolen, human(share, Unit::One));
    (share > NAMELESS).then(|| {
        let text =
            format!("{name}: {} of the time taken ({part} of the CPU) has no name", human(share, Unit::One));
        weakness("W321", Some(view.cpu.cpu), text)
    })
}

fn few_rule(view: &CpuView<'_>) -> Option<Weakness> {
    let mut durations = view.durations_ns();
    let total: f64 = durations.iter().sum();
    // Below one part in a thousand of the wall time nobody minds.
    if durations.is_empty() || total < 1e-3 * view.wall_s() * 1e9 {
        return None;
    }
    durations.sort_by(|a, b| b.total_cmp(a));
    let mut sum = 0.0;
    let half = durations.iter().take_while(|d| {
        let before = sum;
        sum += **d;
        before < total / 2.0
    });
    let few = half.count();
    let (name, cpu, ns) = (view.name(), view.cpu.cpu, |v: f64| human(v, Unit::Nanoseconds));
    let text = format!(
        "{name}: half of the stolen time comes from {few} gaps of {} or more; the share of stolen time does not \
         settle in {}",
        ns(durations[few.saturating_sub(1)]),
        ns(view.wall_s() * 1e9)
    );
    (few < FEW).then(|| weakness("W301", Some(cpu), text))
}
