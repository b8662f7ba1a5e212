//! A synthetic record with every shape and every state of a check. `record.json` has two CPUs and a time line of 900 points; `costs.json` holds the part
//! of memory, synchronization and operations in a one-minute page.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "shared by several tests and the example, each of which uses a part"
)]

pub mod graph;
pub mod interactive;

use machmeter_data::{Column, Metric, Record, Shape, Table, Unit};

/// Even pseudo-random numbers in [0, 1): a 64-bit linear congruential generator, high bits.
pub struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }
}

/// The record with rows for `cpus` CPUs, each derived from one of the two, and `buckets` points of time.
pub fn record(cpus: usize, buckets: usize) -> Record {
    let mut record: Record = serde_json::from_str(include_str!("../fixtures/record.json")).expect("a record");
    let of_two = std::mem::take(&mut record.metrics);
    let (first, second) = of_two.split_at(of_two.len() / 2);
    for cpu in 0..cpus {
        let of = |m: &Metric| {
            let mut m = m.clone();
            m.params.insert("cpu".to_owned(), cpu.into());
            m
        };
        record.metrics.extend(if cpu % 2 == 0 { first } else { second }.iter().map(of));
    }
    for d in &mut record.datasets {
        match &mut d.shape {
            Shape::Series(s) => {
                s.step_ns = 1e10 / buckets as f64;
                s.rows = rows(&s.rows, cpus, |r, name, scale| {
                    r.name = name;
                    for values in [&mut r.min, &mut r.mean, &mut r.max] {
                        values.truncate(buckets);
                        for v in values.iter_mut() {
                            *v = (*v * scale).min(1.0);
                        }
                    }
                });
            }
            Shape::Curve(c) => {
                c.rows = rows(&c.rows, cpus, |r, name, scale| {
                    r.name = name;
                    r.y.iter_mut().for_each(|v| *v *= scale);
                });
            }
            Shape::Distribution(x) => {
                x.rows = rows(&x.rows, cpus, |r, name, scale| {
                    r.name = name;
                    r.quantiles.iter_mut().for_each(|q| q.1 *= scale);
                });
            }
            Shape::Matrix(m) if d.id == "noise.coincidence" => {
                m.values = rows(&m.values, cpus, |r, _, scale| {
                    r.iter_mut().flatten().for_each(|v| *v *= scale);
                });
                m.rows = (0..cpus).map(|cpu| format!("CPU {cpu}")).collect();
            }
            // The matrix has eight CPUs.
            Shape::Matrix(m) => {
                m.columns.truncate(cpus);
                m.rows.truncate(cpus);
                m.values.truncate(cpus);
                m.values.iter_mut().for_each(|r| r.truncate(cpus));
            }
            _ => {}
        }
    }
    record
}

/// Rows for `cpus` CPUs; `change` sets the name of each and scales it by a factor that differs per pair.
fn rows<R: Clone>(of_two: &[R], cpus: usize, change: impl Fn(&mut R, String, f64)) -> Vec<R> {
    let row = |cpu: usize| {
        let mut row = of_two[cpu % 2].clone();
        change(&mut row, format!("CPU {cpu}"), 1.0 + (cpu / 2) as f64 * 0.007);
        row
    };
    (0..cpus).map(row).collect()
}

/// Gaps of two CPUs at 2.6 GHz, with the names of their sources: a 250 Hz tick of 3 us, and an occasional thread of 2 ms.
pub fn tables() -> Vec<Table> {
    let (mut cpu, mut start, mut end, mut source) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let ticks = |ns: f64| (ns * 2.6) as i64;
    for c in 0..2 {
        for i in 0..500_i32 {
            let long = i % 50 == 7;
            let at_ns = f64::from(i) * 4e6 + f64::from(c) * 1e5;
            cpu.push(c);
            start.push(1_000_000_000_000 + ticks(at_ns));
            end.push(1_000_000_000_000 + ticks(at_ns + if long { 2e6 } else { 3e3 }));
            source.push(i32::from(long));
        }
    }
    let columns = vec![
        Column::new("cpu", Unit::Count, cpu),
        Column::new("start_ticks", Unit::Ticks, start),
        Column::new("end_ticks", Unit::Ticks, end),
        Column::new("source", Unit::Count, source),
    ];
    let mut gaps = Table::new("noise_gaps", columns).expect("columns of equal length");
    let notes = [("tick_hz", "2600000000"), ("t0_ticks", "1000000000000")];
    gaps.notes = notes.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
    let names = Column::new("name", Unit::Count, ["timer tick", "cc1plus"].map(str::to_owned).to_vec());
    let sources = Table::new("noise_sources", vec![names]).expect("one column");
    vec![gaps, sources]
}

/// The one-minute page: noise, two tasks against two loads, memory, synchronization and operations.
pub fn one_minute() -> Record {
    let mut r = record(2, 500);
    r.datasets.retain(|d| d.id.starts_with("noise."));
    interactive::add(&mut r, 2, 2, 20);
    let mut costs: serde_json::Value =
        serde_json::from_str(include_str!("../fixtures/costs.json")).expect("JSON");
    let metrics: Vec<Metric> = serde_json::from_value(costs["metrics"].take()).expect("metrics");
    r.metrics.extend(metrics);
    let datasets: Vec<machmeter_data::Dataset> =
        serde_json::from_value(costs["datasets"].take()).expect("datasets");
    r.datasets.extend(datasets);
    r
}
