//! The data that an interactive run adds to a record: tasks under loads, generated deterministically.

use machmeter_data::metric::params;
use machmeter_data::shape::{
    Axis, Cell, CostTable, Dataset, Distribution, DistributionRow, Matrix, Shape, TableColumn, TableRow,
};
use machmeter_data::{Better, Interval, Metric, MetricInfo, Record, Unit};

use super::Dice;

pub const TASKS: &str =
    "audio video x gaming custom audio-pro audio-desktop video24 video144 compositor typing launch";
pub const LOADS: &str = "none video x burn write read compile memload hack ring membw rt-hog custom";

const fn info(id: &'static str, unit: Unit, better: Better) -> MetricInfo {
    MetricInfo { better, ..MetricInfo::of(id, unit) }
}

/// Ids with unit and direction; the flag is true if they have blocks.
const KINDS: [(MetricInfo, bool); 20] = [
    (info("interactive.deadlines_met", Unit::One, Better::Higher), true),
    (info("interactive.lateness_mean", Unit::Nanoseconds, Better::Lower), true),
    (info("interactive.lateness_sd", Unit::Nanoseconds, Better::Lower), false),
    (info("interactive.lateness_p50", Unit::Nanoseconds, Better::Lower), true),
    (info("interactive.lateness_p90", Unit::Nanoseconds, Better::Lower), true),
    (info("interactive.lateness_p99", Unit::Nanoseconds, Better::Lower), true),
    (info("interactive.lateness_p999", Unit::Nanoseconds, Better::Lower), false),
    (info("interactive.lateness_max", Unit::Nanoseconds, Better::Lower), false),
    (info("interactive.desired_cpu", Unit::One, Better::Higher), true),
    (info("interactive.dropped", Unit::One, Better::Lower), false),
    (info("interactive.longest_miss_run", Unit::Count, Better::Lower), false),
    (info("interactive.wake", Unit::Nanoseconds, Better::Lower), true),
    (info("interactive.preempted", Unit::Nanoseconds, Better::Lower), true),
    (info("interactive.cpu", Unit::Nanoseconds, Better::Lower), false),
    (info("interactive.run_delay", Unit::Nanoseconds, Better::Lower), false),
    (info("interactive.xruns_k2", Unit::Hertz, Better::Lower), false),
    (info("interactive.safe_buffer", Unit::Count, Better::Lower), false),
    (info("interactive.frame_low", Unit::Hertz, Better::Higher), false),
    (info("interactive.stutters", Unit::Hertz, Better::Lower), false),
    (info("interactive.switches", Unit::Hertz, Better::Neither), false),
];

/// Adds tasks x loads cells of `kinds` ids each, and their datasets.
pub fn add(record: &mut Record, tasks: usize, loads: usize, kinds: usize) {
    let (tasks, loads): (Vec<&str>, Vec<&str>) =
        (TASKS.split(' ').take(tasks).collect(), LOADS.split(' ').take(loads).collect());
    let mut dice = Dice(5);
    for (kind, blocks) in &KINDS[..kinds] {
        for task in &tasks {
            for load in &loads {
                record.metrics.push(metric(kind, *blocks, task, load, &mut dice));
            }
        }
    }
    let met_caption = "Share of jobs of each task that ended before their deadline while each load ran. Gaming has no deadlines.";
    let met = Shape::Matrix(met(&tasks, &loads, &mut dice));
    let mut datasets = vec![Dataset::new("interactive.met", "Deadlines met", met_caption, met)];
    let kind = |task: &str| params([("task", task.into())]);
    for task in &tasks {
        let caption =
            "How late jobs began, what CPU time they got of what they asked for, and how many ended in time.";
        let table = Shape::CostTable(latency(&loads, &mut dice));
        let d = Dataset::new("interactive.latency_table", "Latency and deadlines by load", caption, table);
        datasets.push(d.with_params(kind(task)));
    }
    for task in &tasks {
        let caption =
            "How late the worst share of jobs was, against the moment at which each was due to begin.";
        let curves = Shape::Distribution(lateness(&loads, &mut dice));
        let d = Dataset::new("interactive.lateness", "Lateness by percentile", caption, curves);
        datasets.push(d.with_params(kind(task)));
    }
    let caption = "The price of latency: what each load did per second while the tasks ran.";
    let work = Shape::CostTable(work(&loads, &mut dice));
    datasets.push(Dataset::new("interactive.load_work", "Work that the loads got done", caption, work));
    datasets.append(&mut record.datasets);
    record.datasets = datasets;
}

fn metric(kind: &MetricInfo, blocks: bool, task: &str, load: &str, dice: &mut Dice) -> Metric {
    let key = params([("load", load.into()), ("task", task.into())]);
    if task == "gaming" && kind.id == "interactive.deadlines_met" {
        return Metric::rejected(kind, key, "share of jobs", "the task has no deadlines");
    }
    let v = match kind.unit {
        Unit::One => 1.0 - dice.roll().powi(4),
        Unit::Count => (dice.roll() * 9.0).floor(),
        Unit::Hertz => 60.0 * dice.roll(),
        _ => 10_f64.powf(3.5 + 4.0 * dice.roll()),
    };
    let ci =
        Interval::new(0.95, v * (1.0 - 0.2 * dice.roll()), v * (1.0 + 0.2 * dice.roll()), "block-bootstrap");
    let mut m = Metric::new(kind, key, v, "mean of segments", 600 + (dice.roll() * 9.0) as u64).with_ci(ci);
    if blocks {
        m = m.with_blocks((0..20).map(|_| v * (0.8 + 0.4 * dice.roll())).collect(), 1.5e9);
    }
    if load == "rt-hog" || load == "memload" {
        m.flag("E306");
    }
    m
}

fn met(tasks: &[&str], loads: &[&str], dice: &mut Dice) -> Matrix {
    let hard = |load: &str| match load {
        "none" => 0.0,
        "video" | "ring" => 0.0004,
        "x" | "read" => 0.004,
        "write" | "custom" => 0.02,
        "burn" | "compile" | "membw" => 0.12,
        _ => 0.8,
    };
    let cell = |task: &str, load: &str, dice: &mut Dice| {
        (task != "gaming").then(|| 1.0 - (hard(load) * (0.3 + 1.2 * dice.roll())).min(1.0))
    };
    let values = tasks.iter().map(|t| loads.iter().map(|l| cell(t, l, dice)).collect()).collect();
    let names = |list: &[&str]| list.iter().map(|s| (*s).to_owned()).collect();
    Matrix::named("load", names(loads), names(tasks), Axis::linear("deadlines met", Unit::One), values)
}

fn latency(loads: &[&str], dice: &mut Dice) -> CostTable {
    let heads = ["Latency (ms)", "SD (ms)", "Max Latency", "% Desired CPU", "% Deadlines Met"];
    let row = |load: &&str| {
        let mean = 0.02 * 10_f64.powf(2.5 * dice.roll());
        let cells = [
            format!("{mean:.3}"),
            format!("+/- {:.2}", mean * 2.0 * dice.roll()),
            format!("{:.1}", mean * (4.0 + 30.0 * dice.roll())),
            format!("{:.1}", 100.0 - 30.0 * dice.roll().powi(4)),
            format!("{:.1}", 100.0 - 40.0 * dice.roll().powi(4)),
        ];
        TableRow { name: (*load).to_owned(), cells: cells.map(Cell::Text).to_vec() }
    };
    let rows = loads.iter().map(row).collect();
    CostTable { columns: heads.map(|h| TableColumn::new(h, None)).to_vec(), rows }
}

fn lateness(loads: &[&str], dice: &mut Dice) -> Distribution {
    let rows = loads
        .iter()
        .map(|load| {
            let (at, slope) = (2_000.0 * 10_f64.powf(dice.roll()), 0.4 + 0.7 * dice.roll());
            let tails = (0..40).map(|i| 600_f64.powf(f64::from(i) / 39.0));
            let mut quantiles: Vec<(f64, f64)> = tails.map(|x| (1.0 - 1.0 / x, at * x.powf(slope))).collect();
            quantiles.push((1.0, at * 700_f64.powf(slope)));
            DistributionRow { name: (*load).to_owned(), n: 600, quantiles }
        })
        .collect();
    Distribution { value: Axis::log("lateness", Unit::Nanoseconds), rows, limits: Vec::new() }
}

fn work(loads: &[&str], dice: &mut Dice) -> CostTable {
    let row = |load: &&str| {
        let unit = Cell::Text("turns/s".to_owned());
        let cells = vec![unit, Cell::Number(1e6 * dice.roll()), Cell::Number(dice.roll())];
        TableRow { name: (*load).to_owned(), cells }
    };
    let rows = loads.iter().map(row).collect();
    let columns = vec![
        TableColumn::new("Unit", None),
        TableColumn::new("Work per second", Unit::Count),
        TableColumn::new("CPU time", Unit::One),
    ];
    CostTable { columns, rows }
}
