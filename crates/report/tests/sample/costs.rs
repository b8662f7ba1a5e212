//! What the probes of memory, synchronization and operations add to a record of the one-minute page, made without chance:
//! as many figures, datasets and rows as a machine of two CPUs gave.

use machmeter_data::metric::params;
use machmeter_data::shape::{
    Axis, Cell, CostTable, Curve, CurveRow, Dataset, DecadeRow, Decades, Mark, Matrix, Scatter, ScatterGroup,
    Shape, TableColumn, TableRow,
};
use machmeter_data::{Better, Interval, Metric, MetricInfo, Params, Record, Unit};

use super::Dice;

const fn info(id: &'static str, unit: Unit, better: Better) -> MetricInfo {
    MetricInfo { id, params: &[], unit, better, description: "", may_be_negative: false }
}

/// Ids with the number of their figures.
const KINDS: [(MetricInfo, usize); 20] = [
    (info("memory.latency", Unit::Nanoseconds, Better::Lower), 12),
    (info("memory.core_clock", Unit::Hertz, Better::Higher), 1),
    (info("memory.cache_size", Unit::Bytes, Better::Neither), 4),
    (info("memory.line_size", Unit::Bytes, Better::Neither), 1),
    (info("memory.bandwidth", Unit::BytesPerSecond, Better::Higher), 30),
    (info("memory.bandwidth_with_allocate", Unit::BytesPerSecond, Better::Higher), 12),
    (info("memory.peak_flops", Unit::FlopsPerSecond, Better::Higher), 2),
    (info("memory.loaded_latency", Unit::Nanoseconds, Better::Lower), 8),
    (info("memory.loaded_bandwidth", Unit::BytesPerSecond, Better::Higher), 4),
    (info("memory.shared", Unit::Nanoseconds, Better::Lower), 30),
    (info("memory.core_to_core", Unit::Nanoseconds, Better::Lower), 12),
    (info("sync.regime_share", Unit::One, Better::Neither), 2),
    (info("sync.cost", Unit::Nanoseconds, Better::Lower), 110),
    (info("sync.fairness", Unit::One, Better::Higher), 12),
    (info("sync.lock_fairness", Unit::One, Better::Higher), 8),
    (info("sync.handoff", Unit::Nanoseconds, Better::Lower), 8),
    (info("sync.false_sharing", Unit::Bytes, Better::Neither), 2),
    (info("sync.longest_streak", Unit::Count, Better::Neither), 8),
    (info("ops.cost", Unit::Nanoseconds, Better::Lower), 80),
];

/// Operations, so that parameters differ as much as they do.
const OPERATIONS: [&str; 10] = [
    "fetch_add",
    "store_load",
    "read_localcache",
    "semaphore_post_wait",
    "page_fault_file",
    "put_32768b",
    "hand_over",
    "clock_gettime",
    "mutex_pthread",
    "write_nt.avx2",
];

/// Adds the figures and datasets of the three probes.
pub fn add(record: &mut Record) {
    let mut dice = Dice(9);
    for (kind, n) in &KINDS {
        for i in 0..*n {
            record.metrics.push(metric(kind, i, &mut dice));
        }
    }
    record.datasets.extend(memory(&mut dice));
    record.datasets.extend(sync(&mut dice));
    record.datasets.extend(ops(&mut dice));
}

fn metric(kind: &MetricInfo, i: usize, dice: &mut Dice) -> Metric {
    let key = params([
        ("cpus", (1 + i % 2).into()),
        ("kind", if i.is_multiple_of(3) { "throughput" } else { "latency" }.into()),
        ("model", ["threads", "processes", "user-threads"][i / 3 % 3].into()),
        ("operation", format!("{}_{}", OPERATIONS[i % 10], i / 10).as_str().into()),
    ]);
    let v = match kind.unit {
        Unit::One => dice.roll(),
        Unit::Bytes | Unit::Count => (1000.0 * dice.roll()).floor(),
        _ => 10_f64.powf(4.0 * dice.roll()),
    };
    if i % 11 == 10 {
        return Metric::rejected(kind, key, "median of differences", "not reached in the time given");
    }
    let ci = Interval::new(0.95, v * (1.0 - 0.2 * dice.roll()), v * (1.0 + 0.2 * dice.roll()), "rank");
    let mut m = Metric::new(kind, key, v, "median of differences", 40 + (dice.roll() * 99.0) as u64)
        .with_ci(ci)
        .with_quantiles(&[(0.05, v * (1.0 - 0.3 * dice.roll())), (0.95, v * (1.0 + 0.3 * dice.roll()))]);
    for code in ["E104", "E105", "E106", "E111"] {
        m.flag(code);
    }
    m
}

fn set(id: &str, title: &str, caption: &str, shape: Shape) -> Dataset {
    Dataset { id: id.into(), params: Params::new(), title: title.into(), caption: caption.into(), shape }
}

fn lines(names: &[&str], n: usize, x: Axis, y: Axis, dice: &mut Dice) -> Shape {
    let row = |name: &&str| CurveRow {
        name: (*name).to_owned(),
        x: (0..n).map(|i| 4096.0 * 2_f64.powf(16.0 * i as f64 / n as f64)).collect(),
        y: (0..n).map(|i| 1.2 * 1.1_f64.powi(i as i32 % 40) * (1.0 + 0.1 * dice.roll())).collect(),
    };
    let rows = names.iter().map(row).collect();
    let mark =
        |x: f64, label: &str| Mark { x, y: None, label: label.into(), detail: "found, 95 % sure".into() };
    Shape::Curve(Curve {
        x,
        y,
        rows,
        marks: vec![mark(32_768.0, "L1"), mark(524_288.0, "L2"), mark(5e6, "LLC")],
    })
}

fn table(columns: &[(&str, Option<Unit>)], rows: usize, dice: &mut Dice) -> Shape {
    let cell = |unit: &Option<Unit>, i: usize, dice: &mut Dice| match unit {
        None => Cell::Text(format!("{} touches with one fault each", 1000 + 7 * i)),
        Some(_) if dice.roll() < 0.2 => Cell::Empty(()),
        Some(Unit::One) => Cell::Number(dice.roll()),
        Some(_) => Cell::Number(10_f64.powf(4.0 * dice.roll())),
    };
    let rows = (0..rows)
        .map(|i| TableRow {
            name: format!("{}, {} CPUs, {} bytes apart", OPERATIONS[i % 10], 1 + i % 2, 8 << (i % 8)),
            cells: columns.iter().map(|(_, unit)| cell(unit, i, dice)).collect(),
        })
        .collect();
    let columns =
        columns.iter().map(|(label, unit)| TableColumn { label: (*label).into(), unit: *unit }).collect();
    Shape::CostTable(CostTable { columns, rows })
}

const NS: Option<Unit> = Some(Unit::Nanoseconds);

fn memory(dice: &mut Dice) -> Vec<Dataset> {
    let size = || Axis::log("working set", Unit::Bytes);
    let rate = || Axis::log("requested bytes", Unit::BytesPerSecond);
    let orders = [
        "random, 4 KiB pages",
        "random inside pages, 4 KiB pages",
        "one line per page",
        "random, 2 MiB pages",
    ];
    let levels = ["L1", "L2", "LLC", "DRAM", "with write-allocate", "2 CPUs", "huge pages", "zeros"];
    let levels: Vec<(&str, Option<Unit>)> = levels.map(|l| (l, Some(Unit::BytesPerSecond))).to_vec();
    let members = ["streamed, avg", "max of members", "largest sample", "dependent, avg", "max", "largest"]
        .map(|l| (l, NS));
    vec![
        set(
            "memory.staircase",
            "Latency over working set",
            "What a load costs whose address comes from the load before.",
            lines(&orders, 60, size(), Axis::log("latency", Unit::Nanoseconds), dice),
        ),
        set(
            "memory.bandwidth_table",
            "Bandwidth by kernel",
            "Bytes loaded and stored per second.",
            table(&levels, 11, dice),
        ),
        set(
            "memory.bandwidth_sizes",
            "Bandwidth over working sets",
            "One CPU, small pages.",
            lines(&["read", "write", "copy"], 6, size(), rate(), dice),
        ),
        set(
            "memory.roofline",
            "Roofline",
            "Operations per second that a loop can reach.",
            lines(
                &["L1", "L2", "LLC", "DRAM", "fma"],
                8,
                size(),
                Axis::log("operations", Unit::FlopsPerSecond),
                dice,
            ),
        ),
        set(
            "memory.loaded_latency",
            "Latency under load",
            "The curve bends where memory is full.",
            lines(&["read", "copy"], 8, rate(), Axis::linear("latency", Unit::Nanoseconds), dice),
        ),
        set("memory.table_a", "Own and shared memory", "One access, ns.", table(&members, 15, dice)),
    ]
}

fn sync(dice: &mut Dice) -> Vec<Dataset> {
    let kinds = ["cas", "store_load_1", "store_load_2", "read_dirty", "read_clean"].map(|l| (l, NS));
    let contention =
        [("per operation", NS), ("p5", NS), ("p95", NS), ("fairness", Some(Unit::One)), ("batches", None)];
    let locks = [
        ("alone", NS),
        ("wanted by 2", NS),
        ("hand-off", NS),
        ("fairness", Some(Unit::One)),
        ("longest streak", Some(Unit::Count)),
    ];
    let points = (0..180).map(|i| (f64::from(i) * 14e6, 95.0 + 10.0 * dice.roll())).collect();
    let regimes = Scatter {
        x: Axis::linear("time", Unit::Nanoseconds),
        y: Axis::log("one way", Unit::Nanoseconds),
        groups: vec![ScatterGroup { name: "regime 1".into(), points }],
    };
    let names = || vec!["CPU 0".to_owned(), "CPU 1".to_owned()];
    let cells = vec![vec![None, Some(92.8)], vec![Some(95.4), None]];
    let matrix = Matrix::named("to", names(), names(), Axis::linear("one way", Unit::Nanoseconds), cells);
    let distance = Axis::log("distance", Unit::Bytes);
    vec![
        set(
            "sync.transfer",
            "A cache line from one CPU to another",
            "Half a round trip.",
            table(&kinds, 2, dice),
        ),
        set("sync.core_to_core", "Core to core", "Row: the CPU that asks.", Shape::Matrix(matrix)),
        set("sync.regimes", "CPU 0 and 1 over time", "One point per lap.", Shape::Scatter(regimes)),
        set(
            "sync.contention",
            "Shared and separate words",
            "Cost for each CPU.",
            table(&contention, 20, dice),
        ),
        set(
            "sync.false_sharing",
            "False sharing",
            "Cost while another CPU works on a word so many bytes away.",
            lines(
                &["fetch_add", "store_load"],
                6,
                distance,
                Axis::log("per operation", Unit::Nanoseconds),
                dice,
            ),
        ),
        set("sync.locks", "Locks", "Alone: lock, add, unlock by one thread.", table(&locks, 12, dice)),
        set(
            "sync.primitives",
            "Barriers",
            "Cost of one barrier.",
            table(&[("cost", NS), ("from", NS), ("to", NS)], 12, dice),
        ),
        set("sync.wakeups", "Wake-ups, one way", "Half a round trip.", table(&kinds[..4], 6, dice)),
        set("sync.models", "Three programming models", "Medians.", table(&kinds[..3], 14, dice)),
    ]
}

fn ops(dice: &mut Dice) -> Vec<Dataset> {
    let columns = [
        ("cost", NS),
        ("95 % low", NS),
        ("95 % high", NS),
        ("pairs", Some(Unit::Count)),
        ("kind", None),
        ("proof", None),
    ];
    let part = |name: &str, title: &str, rows: usize, dice: &mut Dice| Dataset {
        params: params([("part", name.into())]),
        ..set(
            "ops.costs",
            title,
            "Cost of one call on one CPU with warm caches.",
            table(&columns, rows, dice),
        )
    };
    let rows = (0..24)
        .map(|i| {
            let value = 10_f64.powf(0.3 * f64::from(i));
            let (low, high) = (Some(value * (1.0 - 0.2 * dice.roll())), Some(value * 1.2));
            DecadeRow { name: format!("{} {i}", OPERATIONS[i as usize % 10]), value, low, high }
        })
        .collect();
    let ladder = Decades { value: Axis::log("cost", Unit::Nanoseconds), rows };
    vec![
        part("arithmetic", "Arithmetic and clocks", 17, dice),
        part("calls", "System calls", 36, dice),
        part("processes", "Threads and processes", 15, dice),
        set("ops.ladder", "Ten to the power minus", "By the decade of its seconds.", Shape::Decades(ladder)),
    ]
}
