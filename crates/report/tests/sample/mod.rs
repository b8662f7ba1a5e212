//! A rich synthetic record: two CPUs, every shape, every state of a check, made without chance.
#![allow(
    dead_code,
    unreachable_pub,
    reason = "shared by several tests and the example, each of which uses a part"
)]

pub mod costs;
pub mod interactive;
mod shapes;

use std::collections::BTreeMap;

use machmeter_data::metric::params;
use machmeter_data::record::{
    ClockRecord, Finding, Machine, RawFile, Record, Run, Summary, SummaryLine, Tile, Tool, Warning,
};
use machmeter_data::{
    Better, Check, CheckState, Column, Fact, FactState, Facts, Interval, Metric, MetricInfo, Table, Unit,
    Values,
};

/// Even pseudo-random numbers in [0, 1): a 64-bit linear congruential generator, high bits.
pub struct Dice(pub u64);

impl Dice {
    pub fn roll(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }
}

pub fn record(cpus: usize, buckets: usize) -> Record {
    let tool = Tool {
        name: "machmeter".to_owned(),
        version: "0.1.0".to_owned(),
        commit: Some("e7812a9c5d".to_owned()),
        target: "x86_64-unknown-linux-gnu".to_owned(),
        rustc: Some("1.95.0".to_owned()),
    };
    Record {
        complete: true,
        stopped_by: "time".to_owned(),
        machine: machine(cpus),
        clock: Some(ClockRecord {
            source: "rdtsc".to_owned(),
            rate_hz: 2.6e9,
            rate_error_ppm: 0.4,
            kernel_deviation_ppm: Some(0.12),
            step_ticks: 26,
            read_cost_ticks: 21.0,
            cross_cpu_ticks: Some(310.0),
            backward_steps: 0,
            why: "invariant TSC, cheapest of three".to_owned(),
        }),
        summary: summary(),
        checks: checks(),
        metrics: (0..cpus).flat_map(metrics_of).collect(),
        datasets: shapes::datasets(cpus, buckets),
        findings: findings(),
        warnings: vec![Warning {
            code: "W301".to_owned(),
            text:
                "93 % of the loss comes from 12 detours longer than 1 ms: the mean will not settle in 10 s."
                    .to_owned(),
            next: "Use --time 2m, or read the percentiles.".to_owned(),
        }],
        raw: vec![RawFile {
            file: "machmeter-vm-20261121T194200Z.noise_gaps.parquet".to_owned(),
            table: "noise_gaps".to_owned(),
            rows: 41_207,
            sha256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08".to_owned(),
        }],
        ..Record::new("0192f0c1-7a52-7c11-9c1e-5b8f2f6f2a01".to_owned(), tool, run())
    }
}

fn run() -> Run {
    Run {
        started: "2026-11-21T19:42:00Z".to_owned(),
        wall_ns: 10_040_000_000,
        command: ["machmeter", "noise", "--time", "10"].map(str::to_owned).to_vec(),
        verb: "noise".to_owned(),
        level: "standard".to_owned(),
        seed: 7,
        euid: 0,
        policy: "fifo:45".to_owned(),
        parameters: BTreeMap::from([(
            "noise".to_owned(),
            serde_json::json!({"window_ns": 100_000, "quantum": 1}),
        )]),
        tags: BTreeMap::from([("rack".to_owned(), "7".to_owned())]),
        cpus: "0-1".to_owned(),
        side_effects: vec!["private tracefs instance machmeter-4711".to_owned()],
    }
}

fn machine(cpus: usize) -> Machine {
    let mut before = Facts::default();
    before.set("private.hostname", Fact::known("vm </script><b>bold</b>", "uname"));
    before.set("cpu.model", Fact::known("AMD EPYC 9B14", "/proc/cpuinfo"));
    before.set("cpu.count", Fact::known(cpus, "/sys/devices/system/cpu/online"));
    before.set("cpu.cores", Fact::known(cpus, "/sys/devices/system/cpu/cpu0/topology"));
    before.set(
        "cpu.online",
        Fact::known((0..cpus as i64).collect::<Vec<_>>(), "/sys/devices/system/cpu/online"),
    );
    before.set("memory.nodes", Fact::known(vec!["node 0: CPU 0-1"], "/sys/devices/system/node"));
    before.set("kernel.release", Fact::known("6.18.44", "uname"));
    before.set("kernel.preempt", Fact::known("PREEMPT_DYNAMIC (lazy)", "/sys/kernel/debug/sched/preempt"));
    before.set("virt.hypervisor", Fact::known("kvm", "cpuid 0x40000000"));
    before.set("memory.total", Fact::known(11_811_160_064_u64, "/proc/meminfo").with_unit("By"));
    before
        .set("mitigations.spectre_v2", Fact::known("Mitigation: Enhanced IBRS", "/sys/.../vulnerabilities"));
    before.set("mitigations.meltdown", Fact::known("Not affected", "/sys/.../vulnerabilities"));
    before.set("mitigations.tsa", Fact::known("Vulnerable: no microcode", "/sys/.../vulnerabilities"));
    before.set("load.psi_cpu_some", Fact::known(0.884_f64, "/proc/pressure/cpu").with_unit("1"));
    let why = "the hypervisor shows no cpufreq";
    before.set("freq.governor", Fact::missing(FactState::Absent, "/sys/devices/system/cpu/cpufreq", why));
    before.set(
        "dmi.bios",
        Fact::missing(FactState::Denied, "/sys/class/dmi/id/bios_version", "permission denied"),
    );
    let mut after = before.clone();
    after.set("memory.total", Fact::known(25_769_803_776_u64, "/proc/meminfo").with_unit("By"));
    after.set("load.psi_cpu_some", Fact::known(0.41_f64, "/proc/pressure/cpu").with_unit("1"));
    let changed = before.changed(&after);
    Machine { before, after, changed, fingerprint: Some("5d41402abc4b2a76".to_owned()) }
}

fn summary() -> Summary {
    let line = |section: &str, lines: &[&str]| SummaryLine {
        section: section.to_owned(),
        lines: lines.iter().map(|l| (*l).to_owned()).collect(),
    };
    let tile = |label: &str, value: &str, note: &str| Tile {
        label: label.to_owned(),
        value: value.to_owned(),
        note: note.to_owned(),
    };
    Summary {
        lines: vec![
            line(
                "NOISE",
                &[
                    "2.31 % of CPU time lost [2.24, 2.40]   worst CPU 1: 2.9 %   longest detour 27.6 ms",
                    "mostly: other threads 2.1 %, timer tick 0.12 % (250.0 Hz), hypervisor 0.09 %",
                ],
            ),
            line("TURN", &["9.47 ns per turn [9.41, 9.52]"]),
            line("RESOLUTION", &["in 10 s this machine can tell apart changes of >= 3.1 % (typical)"]),
        ],
        tiles: vec![
            tile("CPU time lost", "2.31 %", "[2.24, 2.40] %, 95 %"),
            tile("Longest detour", "27.6 ms", "CPU 1, cc1plus"),
            tile("Detours", "311 /s", "CPU 1"),
            tile("Timer tick", "250.0 Hz", "3.0 us each"),
            tile("p99 of detours", "4.0 ms", "41,207 detours"),
            tile("Fit for", "throughput", "not for tail latency"),
        ],
        verdict: "Usable for throughput work, not for tail latency: 1 warning, 1 unknown.".to_owned(),
    }
}

fn checks() -> Vec<Check> {
    let check = |id: &str, name: &str, state, observed: &str| Check {
        id: id.to_owned(),
        name: name.to_owned(),
        state,
        observed: observed.to_owned(),
        limit: None,
        source: "/proc".to_owned(),
        hurts: Vec::new(),
        next: None,
        undo: None,
    };
    let mut load = check("E104", "load", CheckState::Fail, "PSI cpu some avg10 = 88 %");
    load.limit = Some("2 %".to_owned());
    load.hurts = vec!["noise.*".to_owned(), "interactive.*".to_owned()];
    load.next = Some("Wait, or measure an idle CPU with --cpus.".to_owned());
    let mut steal = check("E110", "steal", CheckState::Warn, "1.9 % during the run");
    steal.limit = Some("0.5 %".to_owned());
    steal.next = Some("Use a dedicated instance, or --blocks 20.".to_owned());
    vec![
        check("E101", "clock", CheckState::Pass, "tsc, 10 ns step, no backward step in 10^7"),
        load,
        steal,
        check("E201", "governor", CheckState::NotApplicable, "no cpufreq in this guest"),
        check(
            "E202",
            "smt",
            CheckState::Unknown,
            "guest reports 1 thread per core; the host may share cores",
        ),
    ]
}

fn findings() -> Vec<Finding> {
    vec![
        Finding {
            id: "noise.constant_interference".to_owned(),
            verdict: "none_seen".to_owned(),
            text: "No constant interference: the quietest windows agree with the unloaded turn cost."
                .to_owned(),
            evidence: vec!["fastest 1 % of windows: 9.44 ns per turn; shortest run: 9.41 ns".to_owned()],
        },
        Finding {
            id: "noise.periodic".to_owned(),
            verdict: "present".to_owned(),
            text: "A timer tick of 250.0 Hz and a worker thread once per second.".to_owned(),
            evidence: vec![
                "250.000 Hz, p < 1e-9, 2,500 events".to_owned(),
                "1.00 Hz, p = 3e-6, 10 events".to_owned(),
            ],
        },
    ]
}

const fn info(id: &'static str, unit: Unit, better: Better, description: &'static str) -> MetricInfo {
    MetricInfo { id, params: &["cpu"], unit, better, description, may_be_negative: false }
}

fn metrics_of(cpu: usize) -> Vec<Metric> {
    let p = || params([("cpu", cpu.into())]);
    let scale = 1.0 + cpu as f64 * 0.3;
    let stolen = info("noise.stolen_fraction", Unit::One, Better::Lower, "share of time taken by others");
    let rate = info("noise.detour_rate", Unit::Hertz, Better::Lower, "detours per second");
    let length = info("noise.detour_duration", Unit::Nanoseconds, Better::Lower, "duration of a detour");
    let slow = info("noise.slowdown_fraction", Unit::One, Better::Lower, "share of time lost while running");
    let mut fraction = Metric::new(&stolen, p(), 0.0231 * scale, "time-share", 100_000)
        .with_ci(Interval::new(0.95, 0.0224 * scale, 0.0240 * scale, "block-bootstrap"))
        .with_blocks((0..20).map(|i| 0.02 + 0.0003 * f64::from(i)).collect(), 5e8);
    fraction.flag("E104");
    let mut sources = Vec::new();
    for (source, kind, share) in
        [("cc1plus", "thread", 0.021), ("local_timer", "tick", 0.0012), ("quote\"\\ü", "irq", 0.0004)]
    {
        let i = info("noise.source_fraction", Unit::One, Better::Lower, "share of time taken by one source");
        let key = params([("cpu", cpu.into()), ("kind", kind.into()), ("source", source.into())]);
        sources.push(Metric::new(&i, key, share * scale, "time-share", 4000));
    }
    let mut all = vec![
        fraction,
        Metric::new(&rate, p(), 311.0 * scale, "count/time", 3110).with_ci(Interval::new(
            0.95,
            300.0 * scale,
            322.0 * scale,
            "normal",
        )),
        Metric::new(&length, p(), 3_100.0, "median", 3110)
            .with_ci(Interval::new(0.95, 3_000.0, 3_240.0, "rank"))
            .with_quantiles(&[(0.5, 3_100.0), (0.99, 4e6)])
            .with_max(27.6e6),
        Metric::rejected(&slow, p(), "median", "fewer than 20 undisturbed windows"),
    ];
    all.extend(sources);
    all
}

/// Gaps of two CPUs at 2.6 GHz: a 250 Hz tick of 3 us and now and then a thread of 2 ms; and the names of their sources.
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
    let column = |name: &str, unit, values| Column { name: name.to_owned(), unit, values };
    let mut gaps = Table::new(
        "noise_gaps",
        vec![
            column("cpu", Unit::Count, Values::I32(cpu)),
            column("start_ticks", Unit::Ticks, Values::I64(start)),
            column("end_ticks", Unit::Ticks, Values::I64(end)),
            column("source", Unit::Count, Values::I32(source)),
        ],
    )
    .expect("columns of equal length");
    gaps.notes = vec![
        ("tick_hz".to_owned(), "2600000000".to_owned()),
        ("t0_ticks".to_owned(), "1000000000000".to_owned()),
    ];
    let names = vec!["timer tick".to_owned(), "cc1plus".to_owned()];
    let sources = Table::new("noise_sources", vec![column("name", Unit::Count, Values::Text(names))])
        .expect("columns of equal length");
    vec![gaps, sources]
}

/// The one-minute page: noise, two tasks against two loads, memory, synchronization and operations.
pub fn one_minute() -> Record {
    let mut r = record(2, 500);
    r.datasets.retain(|d| d.id.starts_with("noise."));
    interactive::add(&mut r, 2, 2, 20);
    costs::add(&mut r);
    r
}
