//! Who took the time: shares per source, and the anatomy of each source's detours.

use std::collections::BTreeMap;

use machmeter_data::metric::params;
use machmeter_data::quantity::Unit;
use machmeter_data::shape::{Cell, CostTable, TableColumn, TableRow};
use machmeter_data::{Dataset, Metric, Shape};
use machmeter_stats::quantile::median_of;

use super::figures::{CpuView, of_source};
use crate::attribute::activity_log::{ActivityLog, Source, SourceKind};
use crate::attribute::unlisted::SLICES;
use crate::info;

#[derive(Debug, Clone, Default)]
struct Account {
    detours: u64,
    ticks: f64,
    longest_ticks: f64,
    durations: Vec<f64>,
    entry: Vec<f64>,
    exit: Vec<f64>,
    /// Empty until something is charged.
    slices: Vec<f64>,
    threads: BTreeMap<String, f64>,
}

/// Name of a process, interrupt and so on, and kind: all processes of one name are one source.
pub fn group(source: &Source) -> (String, &'static str) {
    (source.name.clone(), source.kind.name())
}

type Accounts = BTreeMap<(String, &'static str), Account>;

/// Charges each gap to its main source, other processes and the hypervisor with their own time in it. Gaps end with the last window. What is
/// not listed is a source too, and so are micro-stalls: together they make the stolen time.
fn accounts(view: &CpuView<'_>, activity_log: &ActivityLog) -> Accounts {
    let unit = view.split.reference_ticks;
    let (t0, wall) = (view.setup.schedule.t0_ticks, view.split.wall_ticks);
    let slice = wall / SLICES as f64;
    let mut out = Accounts::new();
    let within = |ticks: u64| (ticks.saturating_sub(t0) as f64).min(wall);
    for (i, g) in view.cpu.gaps.iter().enumerate() {
        let (from, to) = (within(g.start_ticks), within(g.end_ticks));
        let lost = (to - from - unit).max(0.0);
        let at = (from / slice, to / slice);
        let Some(a) = view.cpu.attributed.get(i) else { continue };
        let Some(main) = activity_log.source(a.main) else { continue };
        let key = group(main);
        let mut rest = lost;
        for p in &a.parts {
            let Some(s) = activity_log.source(p.source) else { continue };
            if !matches!(s.kind, SourceKind::Thread | SourceKind::Outside) || p.ticks == 0 {
                continue;
            }
            let own = (p.ticks as f64).min(rest);
            let other = out.entry(group(s)).or_default();
            *other.threads.entry(s.full_name()).or_default() += own;
            if group(s) != key {
                rest -= own;
                other.charge(own, at);
            }
        }
        let account = out.entry(key).or_default();
        account.charge(rest, at);
        account.durations.push(lost);
        account.entry.push(a.entry_ticks as f64);
        account.exit.push(a.exit_ticks as f64);
        account.longest_ticks = account.longest_ticks.max(lost);
        account.detours += 1;
    }
    if !view.cpu.attributed.is_empty() || !view.cpu.sums.is_empty() {
        not_listed(view, activity_log, &mut out);
    }
    out
}

/// Gaps that are not listed: by source as far as the trace shows them, the rest without a name.
fn not_listed(view: &CpuView<'_>, activity_log: &ActivityLog, accounts: &mut Accounts) {
    let split = view.split;
    let mut short = Account { slices: slices(&split.detour_ticks), ..Account::default() };
    for listed in accounts.values() {
        for (s, l) in short.slices.iter_mut().zip(&listed.slices) {
            *s -= l;
        }
    }
    // A detour over two slices lies a little otherwise in windows than in the list.
    short.slices.iter_mut().for_each(|s| *s = s.max(0.0));
    let listed: f64 = accounts.values().map(|a| a.ticks).sum();
    short.ticks = split.detours.stolen(split.reference_ticks) - listed;
    short.detours = split.detours.count.saturating_sub(view.cpu.gaps.len() as u64);
    // Slices that were cut at zero gave the others too much: together they have what was stolen.
    let of_slices: f64 = short.slices.iter().sum();
    if of_slices > 0.0 {
        let scale = short.ticks.max(0.0) / of_slices;
        short.slices.iter_mut().for_each(|s| *s *= scale);
    }
    by_trace(view, activity_log, &mut short, accounts);
    if short.detours > 0 && short.ticks > 0.0 {
        let from = view.cpu.complete_from_ticks(&view.setup.schedule);
        let name = from.map_or("not listed".to_owned(), |t| below(t as f64 * view.setup.ns_per_tick()));
        accounts.insert((name, NOT_LISTED), short);
    }
    if split.stalls.count > 0 {
        let mut stalls = Account { detours: split.stalls.count, ..Account::default() };
        stalls.ticks = split.stalls.stolen(split.reference_ticks);
        stalls.slices = slices(&split.stall_ticks);
        accounts.insert(("micro-stalls".to_owned(), STALL), stalls);
    }
}
/// Moves the time of unlisted gaps to the sources that the trace names. Each gap of a slice costs the same beside the time of its
/// sources: the way into the kernel and back. A slice never gives away more than was stolen in it.
fn by_trace(view: &CpuView<'_>, activity_log: &ActivityLog, short: &mut Account, accounts: &mut Accounts) {
    let rows = &view.cpu.traced.unlisted;
    if rows.is_empty() || short.ticks <= 0.0 {
        return;
    }
    let mut gaps = unlisted_by_slice(view);
    let (mut traced, mut charged) = (vec![0.0; SLICES], vec![0.0; SLICES]);
    for row in rows {
        traced[row.slice as usize] += row.ticks as f64;
        charged[row.slice as usize] += row.gaps as f64;
    }
    gaps.iter_mut().zip(&charged).for_each(|(gaps, charged)| *gaps = gaps.max(*charged).max(1.0));
    let mut given = vec![0.0; SLICES];
    for row in rows {
        let Some(source) = activity_log.source(row.source) else { continue };
        let at = row.slice as usize;
        let stolen = short.slices[at];
        let way = (stolen - traced[at]).max(0.0) / gaps[at];
        let share = if traced[at] > stolen { stolen / traced[at] } else { 1.0 };
        let ticks = row.ticks as f64 * share + row.gaps as f64 * way;
        let account = accounts.entry(group(source)).or_default();
        account.slices.resize(SLICES, 0.0);
        account.slices[at] += ticks;
        account.ticks += ticks;
        account.detours += row.gaps;
        if source.kind == SourceKind::Thread {
            *account.threads.entry(source.full_name()).or_default() += ticks;
        }
        given[at] += ticks;
    }
    short.detours = short.detours.saturating_sub(rows.iter().map(|r| r.gaps).sum());
    short.ticks = (short.ticks - given.iter().sum::<f64>()).max(0.0);
    short.slices.iter_mut().zip(&given).for_each(|(short, given)| *short = (*short - given).max(0.0));
}

/// Gaps of each slice that are not in the list, from the counts of windows.
fn unlisted_by_slice(view: &CpuView<'_>) -> Vec<f64> {
    let windows = view.cpu.sums.len().max(1);
    let mut out = vec![0.0; SLICES];
    for (k, sums) in view.cpu.sums.iter().enumerate() {
        out[k * SLICES / windows] += f64::from(sums.detours);
    }
    let (t0, slice) = (view.setup.schedule.t0_ticks, (view.split.wall_ticks / SLICES as f64).max(1.0));
    for g in &view.cpu.gaps {
        let at = (g.start_ticks.saturating_sub(t0) as f64 / slice) as usize;
        out[at.min(SLICES - 1)] -= 1.0;
    }
    out.into_iter().map(|n: f64| n.max(0.0)).collect()
}

fn slices(windows: &[f64]) -> Vec<f64> {
    let mut out = vec![0.0; SLICES];
    for (k, w) in windows.iter().enumerate() {
        out[k * SLICES / windows.len()] += w;
    }
    out
}
const NOT_LISTED: &str = "unlisted";
const STALL: &str = "stall";

/// Name of the detours shorter than the listed ones.
fn below(ns: f64) -> String {
    let (value, unit) = match ns {
        ns if ns < 999.5 => (ns, "ns"),
        ns if ns < 999.5e3 => (ns / 1e3, "us"),
        _ => (ns / 1e6, "ms"),
    };
    format!("below_{value:.0}{unit}")
}

impl Account {
    /// Adds time that lay evenly in a stretch, from one slice to another.
    fn charge(&mut self, ticks: f64, (from, to): (f64, f64)) {
        self.ticks += ticks;
        self.slices.resize(SLICES, 0.0);
        let (first, last) = ((from as usize).min(SLICES - 1), (to as usize).min(SLICES - 1));
        for k in first..=last {
            let inside = to.min(k as f64 + 1.0) - from.max(k as f64);
            self.slices[k] += if first == last { ticks } else { ticks * inside.max(0.0) / (to - from) };
        }
    }

    fn add(&mut self, other: &Self) {
        self.detours += other.detours;
        self.ticks += other.ticks;
        self.longest_ticks = self.longest_ticks.max(other.longest_ticks);
        self.durations.extend(&other.durations);
        self.entry.extend(&other.entry);
        self.exit.extend(&other.exit);
        self.slices.resize(SLICES, 0.0);
        self.slices.iter_mut().zip(&other.slices).for_each(|(a, b)| *a += b);
        for (thread, ticks) in &other.threads {
            *self.threads.entry(thread.clone()).or_default() += ticks;
        }
    }

    /// The threads that took most, where a process has several.
    fn leading_threads(&self) -> String {
        let mut all: Vec<_> = self.threads.iter().collect();
        all.sort_by(|a, b| b.1.total_cmp(a.1));
        let names: Vec<&str> =
            all.iter().take(3).map(|(n, _)| n.rsplit_once('/').map_or(n.as_str(), |n| n.1)).collect();
        let more = if all.len() > 3 { format!(" and {} more", all.len() - 3) } else { String::new() };
        if all.len() > 1 { names.join(", ") + &more } else { String::new() }
    }
}

/// Sources named one by one, for each CPU and in the table; a busy machine has hundreds of threads.
const NAMED: usize = 12;
const NAMED_IN_TABLE: usize = 20;

/// The sources that took most, largest first, then the rest of each kind together: nothing is left out of the sum.
fn leading(accounts: Accounts, named: usize) -> Vec<((String, &'static str), Account)> {
    let mut all: Vec<_> = accounts.into_iter().collect();
    all.sort_by(|a, b| b.1.ticks.total_cmp(&a.1.ticks));
    let rest = all.split_off(all.len().min(named));
    let mut others = Accounts::new();
    for ((_, kind), a) in rest {
        others.entry((format!("other {kind}"), kind)).or_default().add(&a);
    }
    all.extend(others);
    all
}

/// Metrics `noise.source_fraction` of one CPU, largest first.
pub fn metrics(view: &CpuView<'_>, activity_log: &ActivityLog) -> Vec<Metric> {
    let wall = view.split.wall_ticks;
    let metric = |((name, kind), a): ((String, &'static str), Account)| {
        let p =
            params([("cpu", view.cpu.cpu.into()), ("source", name.as_str().into()), ("kind", kind.into())]);
        let m = Metric::new(&info::SOURCE, p, a.ticks / wall, "time-share", a.detours);
        let step = 2.0 * view.setup.step_ticks as f64 * a.detours as f64 / wall;
        of_source(m, &a.slices, (wall / SLICES as f64, step), view.setup.ns_per_tick())
    };
    leading(accounts(view, activity_log), NAMED).into_iter().map(metric).collect()
}

/// Metrics `noise.source_fraction` over all CPUs: a source that moves between CPUs is one.
pub fn over_all(views: &[CpuView<'_>], activity_log: &ActivityLog) -> Vec<Metric> {
    let Some(first) = views.first() else { return Vec::new() };
    let wall: f64 = views.iter().map(|v| v.split.wall_ticks).sum();
    let metric = |((name, kind), a): ((String, &'static str), Account)| {
        let p = params([("cpu", "all".into()), ("source", name.as_str().into()), ("kind", kind.into())]);
        let m = Metric::new(&info::SOURCE, p, a.ticks / wall, "time-share", a.detours);
        let step = 2.0 * first.setup.step_ticks as f64 * a.detours as f64 / wall;
        of_source(m, &a.slices, (wall / SLICES as f64, step), first.setup.ns_per_tick())
    };
    leading(merged(views, activity_log), NAMED).into_iter().map(metric).collect()
}

/// The accounts of all CPUs together.
fn merged(views: &[CpuView<'_>], activity_log: &ActivityLog) -> Accounts {
    let mut merged = Accounts::new();
    for (key, account) in views.iter().flat_map(|v| accounts(v, activity_log)) {
        merged.entry(key).or_default().add(&account);
    }
    merged
}

/// Share of the CPU's time that was stolen without a name, and in all. Micro-stalls have none by nature and do not count.
pub fn nameless(view: &CpuView<'_>, activity_log: &ActivityLog) -> (f64, f64) {
    let wall = view.split.wall_ticks;
    let accounts = accounts(view, activity_log);
    let sum = |of: &dyn Fn(&str) -> bool| {
        accounts.iter().filter(|((_, kind), _)| of(kind)).map(|(_, a)| a.ticks).sum::<f64>() / wall
    };
    let all = sum(&|kind| kind != STALL);
    (sum(&|kind| kind == NOT_LISTED || kind == SourceKind::Unknown.name()), all)
}

/// The table of sources over all CPUs: share, rate, median and longest detour, entry and exit lag.
pub fn table(views: &[CpuView<'_>], activity_log: &ActivityLog) -> Option<Dataset> {
    let merged = merged(views, activity_log);
    if merged.is_empty() {
        return None;
    }
    let wall: f64 = views.iter().map(|v| v.split.wall_ticks).sum();
    let stolen: f64 = merged.values().map(|a| a.ticks).sum();
    let ns = views.first()?.setup.ns_per_tick();
    let number = |v: f64| if v.is_finite() { Cell::Number(v) } else { Cell::Empty(()) };
    let median = |v: &[f64]| median_of(v).map_or(Cell::Empty(()), |m| number(m * ns));
    let rows = leading(merged, NAMED_IN_TABLE)
        .into_iter()
        .map(|((name, kind), a)| TableRow {
            name,
            cells: vec![
                Cell::Text(kind.to_owned()),
                number(a.ticks / wall),
                number(if stolen > 0.0 { a.ticks / stolen } else { 0.0 }),
                number(a.detours as f64 / (wall * ns / 1e9)),
                median(&a.durations),
                // What is known as a sum alone has no longest.
                number(if a.longest_ticks > 0.0 { a.longest_ticks * ns } else { f64::NAN }),
                median(&a.entry),
                median(&a.exit),
                Cell::Text(a.leading_threads()),
            ],
        })
        .collect();
    let columns = vec![
        TableColumn::new("kind", None),
        TableColumn::new("of CPU time", Unit::One),
        TableColumn::new("of stolen time", Unit::One),
        TableColumn::new("rate per CPU", Unit::Hertz),
        TableColumn::new("median gap", Unit::Nanoseconds),
        TableColumn::new("longest", Unit::Nanoseconds),
        TableColumn::new("entry lag", Unit::Nanoseconds),
        TableColumn::new("exit lag", Unit::Nanoseconds),
        TableColumn::new("threads", None),
    ];
    Some(Dataset::new(
        "noise.sources",
        "Who took the time",
        format!(
            "Stolen time by source, all measured CPUs; witness: {}. Entry lag is the time from the last good turn to the first \
             event in the kernel (on a virtual machine mostly the hypervisor), exit lag the way back; where nothing was seen \
             inside, the whole gap is entry lag. Gaps too short for the list are named by the trace, if there is one; micro-stalls have no name.",
            activity_log.witness
        ),
        Shape::CostTable(CostTable { columns, rows }),
    ))
}
