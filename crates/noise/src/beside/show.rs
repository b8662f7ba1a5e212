//! Makes metrics, tables and sentences of what was seen.

use std::collections::BTreeMap;

use machmeter_data::metric::{Params, params};
use machmeter_data::quantity::human;
use machmeter_data::record::SummaryLine;
use machmeter_data::shape::{Cell, CostTable, TableColumn, TableRow};
use machmeter_data::text::printable;
use machmeter_data::{Column, Dataset, Metric, MetricInfo, Shape, Table, Unit};
use machmeter_engine::Analysis;

use super::caught::{Keeper, Turn, Who};
use super::info::{LONGEST, LOST, NO_NAMES, OWN, QUOTA, RAN, SOURCE, TAKEN, WAIT, WAITS};
use super::wait::{Holder, Wait};
use super::watch::Seen;

/// Programs with a row of their own; the others are in the row of their cause.
const MOST_SOURCES: usize = 5;
/// Threads in the table.
const MOST_THREADS: usize = 50;

/// Table of the turns around a wait that ended the watch.
const TURNS: &str = "beside_turns";

const OTHERS: &str = "other programs";
const KERNEL: &str = "kernel threads";
const OWN_THREADS: &str = "own threads";

/// Cause of a wait, for a reader.
fn cause(seen: &Seen, holder: Holder) -> &'static str {
    match holder {
        Holder::Own(_) => OWN_THREADS,
        Holder::Other(tid) if seen.strangers.get(&tid).is_some_and(|s| s.is_kernel) => KERNEL,
        Holder::Other(_) => OTHERS,
        Holder::HeldBack if seen.throttled.is_some_and(|t| t.ns > 0) => "quota",
        Holder::HeldBack => "held back by the kernel",
        Holder::Waking => "idle CPU waking up",
    }
}

/// Name of the holder of a CPU.
fn name(seen: &Seen, holder: Holder) -> String {
    match holder {
        Holder::Own(tid) => format!("own thread {}", thread(seen, tid)),
        Holder::Other(tid) => {
            printable(seen.strangers.get(&tid).map_or("a thread without a name", |s| s.name.as_str()))
        }
        held => cause(seen, held).to_owned(),
    }
}

fn thread(seen: &Seen, tid: i32) -> String {
    let name = seen.names.get(&tid).map_or("thread", String::as_str);
    format!("{}:{tid}", printable(name))
}

/// The result of a watch of `wall_ns`.
pub fn analyze(seen: &Seen, wall_ns: u64) -> Analysis {
    let accounts = &seen.accounts;
    let sum = |of: fn(&super::account::Thread) -> u64| accounts.all().map(|(_, t)| of(t)).sum::<u64>();
    let (ran_ns, waited_ns, waits) = (sum(|t| t.ran_ns), sum(|t| t.waited_ns), sum(|t| t.waits));
    let could_run_ns = (ran_ns + waited_ns).max(1) as f64;
    let mut out = Analysis::default();
    let mut add = |info: &MetricInfo, of: Params, value: f64, n: u64| {
        let mut metric = Metric::new(info, of, value, "sum of the whole run", n);
        if seen.lost > 0 {
            metric.flag(LOST.id);
        }
        out.metrics.push(metric);
    };
    let of_cause = |cause: &str| params([("cause", cause.into())]);
    if ran_ns + waited_ns == 0 {
        let why = "no thread of the program was seen to run or to wait";
        out.metrics.push(Metric::rejected(&WAIT, of_cause("all"), "sum of the whole run", why));
        warn(seen, &mut out);
        return out;
    }
    add(&RAN, Params::new(), ran_ns as f64, accounts.all().count() as u64);
    add(&WAIT, of_cause("all"), waited_ns as f64 / could_run_ns, waits);
    let mut causes: BTreeMap<&str, u64> = BTreeMap::new();
    let mut sources: BTreeMap<(String, &str), u64> = BTreeMap::new();
    for (holder, ns) in &accounts.holders {
        let cause = cause(seen, *holder);
        *causes.entry(cause).or_default() += ns;
        if [OTHERS, KERNEL].contains(&cause) {
            *sources.entry((name(seen, *holder), cause)).or_default() += ns;
        }
    }
    let known_ns: u64 = causes.values().sum();
    if seen.without_trace.is_some() {
        let quota_ns = seen.throttled.map_or(0, |t| t.ns.min(waited_ns));
        causes.extend(seen.throttled.map(|_| ("quota", quota_ns)));
        causes.insert("unknown", waited_ns - quota_ns);
    } else {
        // What the trace can see and did not is zero, and no gap in the table.
        for cause in [OTHERS, OWN_THREADS, KERNEL] {
            causes.entry(cause).or_default();
        }
        // A CPU without any traced switch has an unknown holder.
        causes.extend(Some(("unknown", waited_ns.saturating_sub(known_ns))).filter(|u| u.1 > 0));
    }
    let mut causes: Vec<(&str, u64)> = causes.into_iter().collect();
    causes.sort_by_key(|c| std::cmp::Reverse(c.1));
    for (cause, ns) in causes {
        add(&WAIT, of_cause(cause), ns as f64 / could_run_ns, waits);
    }
    let mut sources: Vec<((String, &str), u64)> = sources.into_iter().collect();
    sources.sort_by_key(|s| std::cmp::Reverse(s.1));
    for ((source, kind), ns) in sources.iter().take(MOST_SOURCES).filter(|s| s.1 > 0) {
        let kind = if *kind == KERNEL { "kernel" } else { "program" };
        let of = params([("source", source.as_str().into()), ("kind", kind.into())]);
        add(&SOURCE, of, *ns as f64 / could_run_ns, waits);
    }
    if seen.without_trace.is_none() && ran_ns > 0 {
        let handlers_ns: u64 = accounts.taken.handlers.values().sum();
        if seen.knows_handlers {
            add(&TAKEN, of_cause("interrupts"), handlers_ns as f64 / ran_ns as f64, waits);
        }
        if seen.knows_stolen {
            add(&TAKEN, of_cause("hypervisor"), accounts.taken.stolen_ns() as f64 / ran_ns as f64, waits);
        }
        add(&WAITS, Params::new(), waits as f64, waits);
    }
    if let Some(longest) = accounts.longest.first() {
        add(&LONGEST, Params::new(), longest.ns as f64, waits);
    }
    let watched_ns = accounts.span_ns.map_or(wall_ns, |(first, last)| last - first);
    add(&OWN, Params::new(), seen.own_ns as f64 / watched_ns.max(1) as f64, 1);
    out.datasets = datasets(seen, could_run_ns, &sources);
    out.summary.lines.extend(
        accounts
            .longest
            .first()
            .map(|w| SummaryLine { section: "LONGEST WAIT".to_owned(), lines: vec![sentence(seen, w)] }),
    );
    if let Some((wait, _)) = accounts.keeper.as_ref().and_then(Keeper::caught) {
        let lines = vec![
            sentence(seen, wait),
            "The watch ended here. If the run is stored, it has the last 200 ms of all CPUs: machmeter export last --to perfetto -o stop.pftrace".to_owned(),
        ];
        out.summary.lines.push(SummaryLine { section: "STOPPED".to_owned(), lines });
    }
    warn(seen, &mut out);
    out
}

/// The turns on all CPUs around the wait that ended the watch, as a raw table.
pub fn tables(seen: &Seen) -> Vec<Table> {
    let Some((_, turns)) = seen.accounts.keeper.as_ref().and_then(Keeper::caught) else { return Vec::new() };
    let start_ns = seen.accounts.span_ns.map_or(0, |s| s.0);
    let name = |t: &&Turn| match &t.who {
        Who::Thread(0) => "idle".to_owned(),
        Who::Thread(tid) if seen.names.contains_key(tid) => thread(seen, *tid),
        Who::Thread(tid) => format!("{}:{tid}", name(seen, Holder::Other(*tid))),
        Who::Handler(name) => printable(name),
    };
    let ns = |of: fn(&Turn) -> u64| turns.iter().map(|t| of(t) as i64).collect::<Vec<i64>>();
    let starts: Vec<i64> = turns.iter().map(|t| t.start_ns as i64 - start_ns as i64).collect();
    let columns = vec![
        Column::new("cpu", Unit::One, turns.iter().map(|t| i32::from(t.cpu)).collect::<Vec<i32>>()),
        Column::new("start_ns", Unit::Nanoseconds, starts),
        Column::new("duration_ns", Unit::Nanoseconds, ns(|t| t.ns)),
        Column::new("name", Unit::One, turns.iter().map(name).collect::<Vec<String>>()),
    ];
    Table::new(TURNS, columns).into_iter().collect()
}

fn warn(seen: &Seen, out: &mut Analysis) {
    if let Some(why) = &seen.without_trace {
        out.warnings.push(NO_NAMES.note(format!("amounts without causes: {why}")));
    }
    if seen.lost > 0 {
        out.warnings.push(LOST.note(format!("the trace lost {} events", seen.lost)));
    }
    if let Some(t) = seen.throttled.filter(|t| t.ns > 0) {
        let ns = human(t.ns as f64, Unit::Nanoseconds);
        out.warnings.push(QUOTA.note(format!(
            "the quota of CPU time held the program back in {} of {} periods, {ns} in all over its CPUs",
            t.throttled_periods, t.periods
        )));
    }
}

/// `solver:812 waited 2.30 ms for CPU 2, 11.8 s after the start: backup 2.20 ms, own thread solver:811 100 us`.
fn sentence(seen: &Seen, wait: &Wait) -> String {
    let text = |ns: u64| human(ns as f64, Unit::Nanoseconds);
    let start_ns = seen.accounts.span_ns.map_or(0, |s| s.0);
    format!(
        "{} waited {} for CPU {}, {} after the start: {}",
        thread(seen, wait.tid),
        text(wait.ns),
        wait.cpu,
        text(wait.start_ns.saturating_sub(start_ns)),
        holders(seen, wait)
    )
}

/// The holders of the CPU during a wait, the longest first.
fn holders(seen: &Seen, wait: &Wait) -> String {
    let mut parts = wait.parts.clone();
    parts.sort_by_key(|p| std::cmp::Reverse(p.1));
    let text = |(holder, ns): &(Holder, u64)| {
        format!("{} {}", name(seen, *holder), human(*ns as f64, Unit::Nanoseconds))
    };
    let all: Vec<String> = parts.iter().take(3).map(text).collect();
    if all.is_empty() { "unknown".to_owned() } else { all.join(", ") }
}

fn datasets(seen: &Seen, could_run_ns: f64, sources: &[((String, &str), u64)]) -> Vec<Dataset> {
    let ns = |label: &str| TableColumn::new(label, Unit::Nanoseconds);
    let number = |ns: u64| Cell::Number(ns as f64);
    let mut out = Vec::new();
    let mut table = |id: &str, title: &str, caption: &str, columns: Vec<TableColumn>, rows: Vec<TableRow>| {
        if !rows.is_empty() {
            out.push(Dataset::new(id, title, caption, Shape::CostTable(CostTable { columns, rows })));
        }
    };
    let rows = sources.iter().filter(|s| s.1 > 0).map(|((source, cause), ns)| TableRow {
        name: source.clone(),
        cells: vec![Cell::Text((*cause).to_owned()), number(*ns), Cell::Number(*ns as f64 / could_run_ns)],
    });
    table(
        "beside.sources",
        "Who had the CPU while the program waited",
        "Time of all waits in which another program or a thread of the kernel had the CPU, and its share of the time in which the program could run.",
        vec![TableColumn::new("kind", None), ns("time"), TableColumn::new("share", Unit::One)],
        rows.collect(),
    );
    let start_ns = seen.accounts.span_ns.map_or(0, |s| s.0);
    let rows = seen.accounts.longest.iter().map(|w| TableRow {
        name: thread(seen, w.tid),
        cells: vec![
            Cell::Text(format!("CPU {}", w.cpu)),
            number(w.start_ns.saturating_sub(start_ns)),
            number(w.ns),
            Cell::Text(holders(seen, w)),
        ],
    });
    table(
        "beside.waits",
        "Longest waits",
        "Waits for a CPU: from the moment that a thread was woken or preempted until it ran.",
        vec![
            TableColumn::new("for", None),
            ns("after the start"),
            ns("waited"),
            TableColumn::new("who had the CPU", None),
        ],
        rows.collect(),
    );
    let mut threads: Vec<_> = seen.accounts.all().filter(|(_, t)| t.ran_ns + t.waited_ns > 0).collect();
    threads.sort_by_key(|(_, t)| std::cmp::Reverse(t.waited_ns));
    let rows = threads.iter().take(MOST_THREADS).map(|(tid, t)| TableRow {
        name: thread(seen, *tid),
        cells: vec![
            number(t.ran_ns),
            number(t.waited_ns),
            Cell::Number(t.waited_ns as f64 / (t.ran_ns + t.waited_ns) as f64),
        ],
    });
    table(
        "beside.threads",
        "Threads of the program",
        "Time on a CPU, time runnable without a CPU, and the share of the wait in both. The threads that waited longest come first.",
        vec![ns("ran"), ns("waited"), TableColumn::new("share", Unit::One)],
        rows.collect(),
    );
    out
}
