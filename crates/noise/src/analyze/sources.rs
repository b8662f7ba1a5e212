//! Who took the time: shares per source, and the anatomy of each source's detours.

use std::collections::BTreeMap;

use machmeter_data::metric::params;
use machmeter_data::quantity::Unit;
use machmeter_data::shape::{Cell, CostTable, TableColumn, TableRow};
use machmeter_data::{Dataset, Metric, Shape};
use machmeter_stats::quantile::median_of;

use super::figures::{BLOCKS, CpuView};
use crate::attribute::matching::Attributed;
use crate::attribute::testimony::{Source, Testimony};
use crate::info;

/// What one source did on one CPU.
#[derive(Debug, Clone, Default)]
struct Account {
    detours: u64,
    ticks: f64,
    longest_ticks: f64,
    durations: Vec<f64>,
    entry: Vec<f64>,
    exit: Vec<f64>,
    blocks: Vec<f64>,
}

/// Name and kind of a source with the process id taken off, so that all threads of one name are one source.
pub fn group(source: &Source) -> (String, &'static str) {
    let name = match source.name.rsplit_once(':') {
        Some((comm, pid)) if !pid.is_empty() && pid.bytes().all(|b| b.is_ascii_digit()) => comm,
        _ => &source.name,
    };
    (name.to_owned(), source.kind.name())
}

type Accounts = BTreeMap<(String, &'static str), Account>;

/// Charges each gap to its main source: entry, handlers and exit together are what the program lost to it. Where a gap
/// holds several threads, each is charged with its own time and the main one with the rest.
fn accounts(view: &CpuView<'_>, attributed: &[Attributed], testimony: &Testimony) -> Accounts {
    let unit = view.split.reference_ticks;
    let t0 = view.setup.schedule.t0_ticks;
    let wall = view.split.wall_ticks;
    let mut out = Accounts::new();
    let key = |s: u32| testimony.sources.get(s as usize).map(group);
    for (g, a) in view.cpu.gaps.iter().zip(attributed) {
        let lost = (g.ticks() as f64 - unit).max(0.0);
        let block =
            ((g.start_ticks.saturating_sub(t0) as f64 / wall * BLOCKS as f64) as usize).min(BLOCKS - 1);
        let Some(main) = key(a.main) else { continue };
        let mut rest = lost;
        for (s, ticks) in &a.parts {
            let Some(k) = key(*s) else { continue };
            if k == main || k.1 != "thread" || *ticks == 0 {
                continue;
            }
            let own = (*ticks as f64).min(rest);
            rest -= own;
            let other = out.entry(k).or_default();
            other.charge(own, block);
        }
        let account = out.entry(main).or_default();
        account.charge(rest, block);
        account.durations.push(lost);
        account.entry.push(a.entry_ticks as f64);
        account.exit.push(a.exit_ticks as f64);
        account.longest_ticks = account.longest_ticks.max(lost);
        account.detours += 1;
    }
    out
}

impl Account {
    fn charge(&mut self, ticks: f64, block: usize) {
        self.blocks.resize(BLOCKS, 0.0);
        self.blocks[block] += ticks;
        self.ticks += ticks;
    }
}

/// Sources named one by one; what is left is summed up per kind, since a busy machine has hundreds of threads.
const NAMED: usize = 12;

/// The sources that took most, largest first, then the rest of each kind together.
fn leading(accounts: Accounts) -> Vec<((String, &'static str), Account)> {
    let mut all: Vec<_> = accounts.into_iter().collect();
    all.sort_by(|a, b| b.1.ticks.total_cmp(&a.1.ticks));
    let rest = all.split_off(all.len().min(NAMED));
    let mut others = Accounts::new();
    for ((_, kind), a) in rest {
        let into = others.entry((format!("other {kind}"), kind)).or_default();
        into.detours += a.detours;
        into.ticks += a.ticks;
        into.longest_ticks = into.longest_ticks.max(a.longest_ticks);
        into.blocks.resize(BLOCKS, 0.0);
        for (sum, block) in into.blocks.iter_mut().zip(&a.blocks) {
            *sum += block;
        }
    }
    all.extend(others);
    all
}

/// Metrics `noise.source_fraction` of one CPU, largest first.
pub fn metrics(view: &CpuView<'_>, attributed: &[Attributed], testimony: &Testimony) -> Vec<Metric> {
    let wall = view.split.wall_ticks;
    let ns = view.setup.ns_per_tick();
    leading(accounts(view, attributed, testimony))
        .into_iter()
        .map(|((name, kind), a)| {
            let p = params([
                ("cpu", view.cpu.cpu.into()),
                ("source", name.as_str().into()),
                ("kind", kind.into()),
            ]);
            let block_ticks = wall / BLOCKS as f64;
            let blocks: Vec<f64> = a.blocks.iter().map(|t| t / block_ticks).collect();
            let ci = machmeter_stats::bootstrap::block_bootstrap(
                &blocks,
                |xs| xs.iter().sum::<f64>() / xs.len() as f64,
                &machmeter_stats::bootstrap::BootstrapOptions { resamples: 400, ..Default::default() },
            );
            Metric::new(&info::SOURCE, p, a.ticks / wall, "time-share", a.detours)
                .with_ci(ci.and_then(|i| {
                    machmeter_data::Interval::new(i.level, i.low.max(0.0), i.high, "block-bootstrap")
                }))
                .with_max(a.longest_ticks / wall)
                .with_blocks(blocks, block_ticks * ns)
        })
        .map(|mut m| {
            // The maximum of a share is meaningless; the longest detour stands in the table.
            m.max = None;
            m
        })
        .collect()
}

/// The table of sources over all CPUs: share, rate, median and longest detour, entry and exit lag.
pub fn table(
    views: &[CpuView<'_>],
    attributed: &[Vec<Attributed>],
    testimony: &Testimony,
) -> Option<Dataset> {
    let mut merged: Accounts = BTreeMap::new();
    for (v, a) in views.iter().zip(attributed) {
        for (k, account) in accounts(v, a, testimony) {
            let into = merged.entry(k).or_default();
            into.detours += account.detours;
            into.ticks += account.ticks;
            into.longest_ticks = into.longest_ticks.max(account.longest_ticks);
            into.durations.extend(account.durations);
            into.entry.extend(account.entry);
            into.exit.extend(account.exit);
        }
    }
    if merged.is_empty() {
        return None;
    }
    let wall: f64 = views.iter().map(|v| v.split.wall_ticks).sum();
    let stolen: f64 = merged.values().map(|a| a.ticks).sum();
    let ns = views.first()?.setup.ns_per_tick();
    let mut rows: Vec<_> = merged.into_iter().collect();
    rows.sort_by(|a, b| b.1.ticks.total_cmp(&a.1.ticks));
    rows.truncate(25);
    let number = |v: f64| if v.is_finite() { Cell::Number(v) } else { Cell::Empty(()) };
    let median = |v: &[f64]| median_of(v).map_or(Cell::Empty(()), |m| number(m * ns));
    let rows = rows
        .into_iter()
        .map(|((name, kind), a)| TableRow {
            name,
            cells: vec![
                Cell::Text(kind.to_owned()),
                number(a.ticks / wall),
                number(if stolen > 0.0 { a.ticks / stolen } else { 0.0 }),
                number(a.detours as f64 / (wall * ns / 1e9)),
                median(&a.durations),
                number(a.longest_ticks * ns),
                median(&a.entry),
                median(&a.exit),
            ],
        })
        .collect();
    let column = |label: &str, unit: Option<Unit>| TableColumn { label: label.to_owned(), unit };
    Some(Dataset {
        id: "noise.sources".to_owned(),
        params: machmeter_data::Params::new(),
        title: "Who took the time".to_owned(),
        caption: format!(
            "Stolen time by source, all measured CPUs; witness: {}. Entry lag is the time from the last good turn to the first \
             event in the kernel (on a virtual machine mostly the hypervisor), exit lag the way back; where nothing was seen \
             inside, the whole detour is entry lag.",
            testimony.witness
        ),
        shape: Shape::CostTable(CostTable {
            columns: vec![
                column("kind", None),
                column("of CPU time", Some(Unit::One)),
                column("of stolen time", Some(Unit::One)),
                column("rate per CPU", Some(Unit::Hertz)),
                column("median detour", Some(Unit::Nanoseconds)),
                column("longest", Some(Unit::Nanoseconds)),
                column("entry lag", Some(Unit::Nanoseconds)),
                column("exit lag", Some(Unit::Nanoseconds)),
            ],
            rows,
        }),
    })
}
