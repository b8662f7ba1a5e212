//! The analysis finds what was planted; the measurement on this machine obeys what must hold on any.

use std::sync::atomic::Ordering;

use machmeter_data::Metric;
use machmeter_data::shape::{Cell, CostTable, Shape};
use machmeter_engine::Analysis;
use machmeter_engine::cost::{Estimator, Row, Rows};
use machmeter_sys::kernel;
use machmeter_sys::pages::Backing;

use super::analyze::{analyze, saturation};
use super::plan::{self, Depth, Request, Spec, widest};
use super::sizes::{self, Level};
use super::stream::{Buffer, CHUNK_BYTES, Contents, Stream};
use super::{BUFFER_BYTES, CPUS, DATA, LAST_CACHE_BYTES};

use crate::memory::ladder::detect::{DETECTED_CACHES, DetectedCaches};
use crate::memory::reported::ReportedCaches;
use crate::testing::{codes, metric, params};

mod machine;

const MEMORY_BYTES: usize = 128 << 20;

/// Of random data.
fn spec(family: &str, level: Level, cpus: usize) -> Spec {
    let working_set_bytes = match level {
        Level::L1 => 24 << 10,
        Level::L2 => 512 << 10,
        _ => MEMORY_BYTES,
    };
    Spec { cpus, ..Spec::new(widest(family).unwrap(), level, working_set_bytes, Contents::Random) }
}

/// A line of the page, of the widest kernel of a family.
fn line(family: &str, rest: &str) -> String {
    format!("{}, {rest}", widest(family).unwrap().name)
}

/// A row of random data in memory with this bandwidth, on one CPU.
fn in_memory(family: &str, rate: f64) -> Row {
    planted(&spec(family, Level::Memory, 1), rate)
}

/// A row with this bandwidth, bytes per second, at a tick per ns; every fifth pair is disturbed.
fn planted(spec: &Spec, rate: f64) -> Row {
    let row = spec.row(1_000);
    let short_ns = 100.0 * row.per_turn / rate * 1e9;
    let pair = |i| {
        let disturbed = if i % 5 == 0 { short_ns * 0.7 } else { f64::from(i % 3) };
        ((800.0 + short_ns) as u64, (800.0 + 2.0 * short_ns + disturbed) as u64)
    };
    row.planted(100, (0..40).map(pair))
}

fn analysis(rows: Vec<Row>) -> Analysis {
    analysis_on(rows, 2, 128 << 20)
}

fn analysis_on(rows: Vec<Row>, cpus: usize, memory_bytes: usize) -> Analysis {
    let mut rows = Rows::in_nanoseconds(rows);
    rows.facts.set(&CPUS, cpus);
    rows.facts.set(&DATA, "random".to_owned());
    rows.facts.set(&BUFFER_BYTES, memory_bytes);
    rows.facts.set(&LAST_CACHE_BYTES, 32 << 20);
    analyze(&params(&[]), &rows, 1)
}

fn bandwidth<'a>(a: &'a Analysis, kernel: &str, cpus: &str) -> &'a Metric {
    metric(a, "memory.bandwidth", &[("kernel", kernel), ("cpus", cpus), ("data", "random")]).unwrap()
}

fn shape<'a>(a: &'a Analysis, id: &str) -> Option<&'a Shape> {
    a.datasets.iter().find(|d| d.id == id).map(|d| &d.shape)
}

fn table(a: &Analysis) -> &CostTable {
    let Some(Shape::CostTable(table)) = shape(a, "memory.bandwidth_table") else { panic!("no table") };
    table
}

fn close(m: &Metric, truth: f64) {
    let v = m.value.unwrap_or_else(|| panic!("{m:?}"));
    let ci = m.ci.as_ref().unwrap();
    assert!((v / truth - 1.0).abs() < 0.01, "{}: {v} for {truth}", m.key());
    assert!(ci.low <= v && v <= ci.high && m.n == 40, "{m:?}");
}

#[test]
fn every_kernel_keeps_its_estimator() {
    for (level, cpus) in [(Level::L1, 1), (Level::Memory, 1), (Level::Memory, 2)] {
        crate::testing::assert_keeps(&spec("read", level, cpus).row(64), Estimator::Batches);
    }
}

#[test]
fn planted_bandwidths_are_found_and_stores_count_twice_with_their_allocation() {
    let rates = [
        ("read", 24e9),
        ("write", 23e9),
        ("write_nt", 27e9),
        ("copy", 22e9),
        ("triad", 21e9),
        ("update", 20e9),
    ];
    let mut rows: Vec<Row> = rates.iter().map(|(family, rate)| in_memory(family, *rate)).collect();
    rows.push(planted(&spec("read", Level::Memory, 2), 34e9));
    rows.push(planted(&spec("read", Level::L1, 1), 210e9));
    let a = analysis(rows);
    for (family, rate) in rates {
        close(bandwidth(&a, &format!("{family}."), "1"), rate);
    }
    close(bandwidth(&a, "read.", "2"), 34e9);
    for (kernel, rate) in [("write.", 46e9), ("copy.", 33e9), ("triad.", 28e9)] {
        close(
            metric(&a, "memory.bandwidth_with_allocate", &[("kernel", kernel), ("cpus", "1")]).unwrap(),
            rate,
        );
    }
    let allocating = a.metrics.iter().filter(|m| m.id == "memory.bandwidth_with_allocate").count();
    assert_eq!(allocating, 3, "streaming stores, reads and updates allocate nothing");
    close(metric(&a, "memory.scaling", &[("kernel", "read."), ("cpus", "2")]).unwrap(), 34.0 / 24.0);
    let told = crate::testing::row_texts(&crate::memory::info::INFO, &a);
    for (family, row) in [
        ("read", "4 KiB pages, 1 CPU | 2 CPUs: 24.0 GB/s | 34.0 GB/s"),
        ("write", "4 KiB pages, 1 CPU: 23.0 GB/s"),
        ("read", "L1, 1 CPU: 210 GB/s"),
    ] {
        assert!(told.contains(&line(family, row)), "{row}: {told:?}");
    }
    assert!(a.warnings.is_empty(), "{:?}", a.warnings);
    let table = table(&a);
    assert!(table.rows.iter().all(|r| r.cells.len() == table.columns.len()));
    assert_eq!(table.columns.iter().map(|c| c.label.as_str()).collect::<Vec<_>>()[..2], ["L1", "DRAM"]);
}

#[test]
fn a_buffer_that_fits_the_last_cache_says_nothing_of_memory() {
    let mut rows =
        Rows::in_nanoseconds(vec![in_memory("read", 42e9), planted(&spec("read", Level::L1, 1), 210e9)]);
    rows.facts.set(&LAST_CACHE_BYTES, 32 << 20);
    for (bytes, is_told) in [(8 << 20, false), (64 << 20, true), (128 << 20, true)] {
        rows.facts.set(&BUFFER_BYTES, bytes);
        let a = analyze(&params(&[]), &rows, 1);
        let told = crate::testing::row_texts(&crate::memory::info::INFO, &a);
        assert_eq!(told.contains(&line("read", "4 KiB pages, 1 CPU: 42.0 GB/s")), is_told, "{told:?}");
        let flagged = a.metrics.iter().filter(|m| m.flags.contains(&"W406".to_owned())).count();
        assert_eq!(flagged, usize::from(bytes < 128 << 20));
    }
}

#[test]
fn quick_zeros_are_flagged_and_only_they() {
    let zeros =
        |family, rate| planted(&Spec { contents: Contents::Zeros, ..spec(family, Level::Memory, 1) }, rate);
    let quick = analysis(vec![
        in_memory("write", 23e9),
        in_memory("write_nt", 27e9),
        zeros("write", 26e9),
        zeros("write_nt", 75e9),
    ]);
    let finding = quick.findings.iter().find(|f| f.id == "memory.data_dependence").unwrap();
    assert_eq!(finding.verdict, "present");
    assert!(finding.text.contains("write_nt") && finding.text.contains("2.78"), "{}", finding.text);
    assert!(quick.warnings.iter().any(|w| w.code == "W407"), "{:?}", quick.warnings);
    // What the page says is the bandwidth of real data.
    let told = crate::testing::row_texts(&crate::memory::info::INFO, &quick);
    assert_eq!(told, [line("write", "4 KiB pages, 1 CPU: 23.0 GB/s")]);
    let alike = analysis(vec![in_memory("write", 23e9), zeros("write", 24e9)]);
    assert_eq!(alike.findings[0].verdict, "none_seen");
    assert!(alike.warnings.iter().all(|w| w.code != "W407"));
}

#[test]
fn saturation_is_where_more_cpus_give_no_more() {
    assert_eq!(saturation(&[(1, 24.0), (2, 40.0), (4, 61.0), (8, 62.0), (16, 60.5)]), Some(4));
    assert_eq!(saturation(&[(1, 10.0), (2, 20.0), (4, 40.0)]), Some(4));
    assert_eq!(saturation(&[(1, 30.0), (2, 25.0)]), Some(1));
    assert_eq!(saturation(&[]), None);
    let rows = [(1, 24e9), (2, 40e9), (4, 61e9), (8, 62e9)];
    let a = analysis(rows.iter().map(|(n, r)| planted(&spec("read", Level::Memory, *n), *r)).collect());
    assert_eq!(metric(&a, "memory.saturation_cpus", &[("kernel", "read.")]).unwrap().value, Some(4.0));
    let finding = a.findings.iter().find(|f| f.id == "memory.scaling").unwrap();
    assert_eq!(finding.verdict, "saturates");
    assert!(a.datasets.iter().any(|d| d.id == "memory.bandwidth_cpus"));
}

#[test]
fn the_roofline_bends_where_bandwidth_meets_the_peak() {
    let mut rows =
        vec![in_memory("read", 25e9), planted(&spec("read", Level::L1, 1), 200e9), in_memory("triad", 24e9)];
    let mut peak = planted(&spec("read", Level::L1, 1), 50e9);
    peak.operation = "fma.test".to_owned();
    peak.params = [("level".to_owned(), "registers".into())].into();
    rows.push(peak);
    let a = analysis(rows);
    close(metric(&a, "memory.peak_flops", &[("kernel", "fma.test")]).unwrap(), 50e9);
    let Some(Shape::Curve(c)) = shape(&a, "memory.roofline") else { panic!("no roofline") };
    let memory = c.rows.iter().find(|r| r.name == "DRAM read").unwrap();
    assert!((memory.x[1] - 2.0).abs() < 0.02 && (memory.y[1] / 50e9 - 1.0).abs() < 0.01, "{memory:?}");
    assert!(c.rows.iter().all(|r| r.y.iter().all(|y| *y <= 50.5e9)));
    // 2 operations per 24 bytes at 24 GB/s.
    assert!((c.marks[0].y.unwrap() / 2e9 - 1.0).abs() < 0.01, "{:?}", c.marks);
}

#[test]
fn what_is_missing_is_said_and_never_a_number() {
    let s = spec("read", Level::Memory, 2);
    let huge = Spec { pages: Backing::Huge, cpus: 1, ..s };
    let rows = vec![s.refused("needs two CPUs, has 1"), huge.refused("huge pages granted for 0 of 9 bytes")];
    let a = analysis_on(rows, 1, 16 << 20);
    assert!(a.metrics.iter().all(|m| m.value.is_none() && m.why.is_some()), "{:?}", a.metrics);
    assert_eq!(codes(&a), ["W406", "W408", "W409"], "{:?}", a.warnings);
    assert!(a.datasets.is_empty());
}

#[test]
fn sizes_fit_their_caches_whatever_is_claimed() {
    const CLAIMS: [&[usize]; 6] = [
        &[32 << 10, 1 << 20, 32 << 20],
        &[48 << 10, 1_280 << 10, 24 << 20],
        &[32 << 10, 512 << 10, 16 << 20],
        &[64 << 10],
        &[128 << 10, 16 << 20],
        &[],
    ];
    for claimed in CLAIMS {
        let c = ReportedCaches::planted(claimed);
        let [l1, l2] = [1, 2].map(|level| c.level_bytes(level));
        let last = c.last_bytes().unwrap_or(0);
        let levels = sizes::cached(&c);
        assert!(levels.windows(2).all(|w| w[0].1 < w[1].1), "{c:?}: {levels:?}");
        for (level, bytes) in &levels {
            match level {
                Level::L1 => assert!(*bytes <= l1.max(32 << 10) * 3 / 4),
                Level::L2 => assert!(*bytes > l1 && *bytes <= l2 / 2),
                _ => assert!(*bytes >= 2 * l2 && *bytes <= last / 2),
            }
        }
        assert!(sizes::memory_wanted(&c) >= 4 * last.max(16 << 20));
    }
    assert_eq!(sizes::within(128 << 20, 100 << 20), Some(64 << 20));
    assert_eq!(sizes::within(128 << 20, 5 << 20), None);
    for (text, bytes) in
        [("65536", 65_536), ("64M", 64 << 20), ("64MiB", 64 << 20), ("1.5g", 3 << 29), ("8kb", 8 << 10)]
    {
        assert_eq!(sizes::parse_bytes(text), Ok(bytes), "{text}");
    }
    for text in ["", "x", "-5M", "5 apples", "0", "nan", "1e99G", "M"] {
        let said = sizes::parse_bytes(text).unwrap_err();
        assert!(said.contains("not a size") && !said.contains('\n'), "{said}");
    }
}

#[test]
fn what_was_asked_for_wrongly_is_one_line() {
    let asked: [(&[&str], [&str; 2]); 8] = [
        (&["--kernels", "reed"], ["'reed'", "read"]),
        (&["--kernels", "chase.1"], ["'chase.1'", "is not one of"]),
        (&["--threads", "3"], ["--threads 3", "1 to 2 CPUs"]),
        (&["--threads", "0"], ["--threads 0", "1 to 2 CPUs"]),
        (&["--buffer", "64 apples"], ["--buffer", "not a size"]),
        (&["--buffer", "4K"], ["--buffer", "at least 8M"]),
        (&["--data", "ones"], ["'ones'", "random, zeros"]),
        (&["--data", "zeros", "--kernels", "read,update"], ["'update.", "--data zeros"]),
    ];
    for (words, told) in asked {
        let said = Request::new(&params(words), 2).unwrap_err();
        assert!(told.iter().all(|t| said.contains(t)) && !said.contains('\n'), "{said}");
    }
    let named = Request::new(&params(&["--kernels", "copy,read.scalar"]), 2).unwrap();
    assert_eq!(named.kernels.iter().map(|k| k.name).collect::<Vec<_>>()[1], "read.scalar");
}

#[test]
fn plans_name_each_row_once_and_the_page_has_few() {
    let cached = sizes::cached(&ReportedCaches::planted(&[32 << 10, 1 << 20, 32 << 20]));
    let request = Request::new(&params(&[]), 2).unwrap();
    let plan = |depth| plan::rows(depth, &request, &cached, MEMORY_BYTES);
    let key = |s: &Spec| format!("{:?}{}", s.row(1).params, s.kernel.name);
    for depth in [Depth::Least, Depth::Page, Depth::Full] {
        let p = plan(depth);
        let keys: std::collections::BTreeSet<String> = p.single.iter().chain(&p.together).map(key).collect();
        assert_eq!(keys.len(), p.single.len() + p.together.len(), "{depth:?}");
        assert!(p.together.iter().all(|s| s.cpus == 2));
        assert!(!p.peaks.is_empty());
    }
    let page = plan(Depth::Page);
    let rows = page.single.iter().chain(&page.together).map(|s| planted(s, 2e10));
    let metrics = analysis(rows.collect()).metrics.len();
    assert!((30..=40).contains(&metrics), "{metrics} metrics on the page");
    assert!(plan(Depth::Full).single.len() > 2 * page.single.len());
}

#[test]
fn streams_stay_inside_and_move_what_they_say() {
    let buffer = Buffer::new(3 << 20, Backing::Small, Contents::Random).unwrap();
    buffer.fill(5);
    let words = || buffer.pages.extent().atomics().iter().map(|w| w.load(Ordering::Relaxed));
    let sum = || words().fold(0_u64, u64::wrapping_add);
    assert!(words().all(|w| (1.0..2.0).contains(&f64::from_bits(w)) && w % 2 == 1));
    for kernel in kernel::all().filter(|k| super::stream::moved(k).is_some() && (k.available)()) {
        for bytes in [24 << 10, 100_000, 3 << 20] {
            let mut stream = Stream::new(kernel, &buffer, bytes, CHUNK_BYTES).unwrap();
            let before = sum();
            stream.walk(stream.round() + 1);
            let moved = stream.bytes_per_turn() * stream.round();
            // Bytes accessed for each byte of the working set: two where an operand is read and written.
            let walked: usize = super::stream::moved(kernel).unwrap().iter().sum();
            let most = bytes as u64 * kernel.bytes_per_turn() / walked as u64;
            assert!(moved <= most && moved > most / 2, "{} {bytes}: {moved}", kernel.name);
            if kernel.declared.stores == 0 {
                assert_eq!(sum(), before, "{} wrote", kernel.name);
            }
        }
        for bytes in [8 << 20, 7] {
            assert!(Stream::new(kernel, &buffer, bytes, CHUNK_BYTES).is_err(), "{}", kernel.name);
        }
    }
}

fn curves<'a>(a: &'a Analysis, id: &str) -> Vec<(&'a str, usize)> {
    let Some(Shape::Curve(c)) = shape(a, id) else { return Vec::new() };
    c.rows.iter().map(|r| (r.name.as_str(), r.x.len())).collect()
}

#[test]
fn chosen_kernels_are_drawn_and_others_by_family() {
    let at = |family: &str, level, working_set_bytes, cpus| {
        planted(&Spec { working_set_bytes, cpus, ..spec(family, level, cpus) }, 2e10)
    };
    let of = |family: &str| {
        let alone = [(Level::L1, 24 << 10), (Level::Sweep, 1 << 20), (Level::Sweep, 2 << 20)];
        let alone = alone.into_iter().map(|(level, bytes)| at(family, level, bytes, 1));
        let together = [1, 2, 4].map(|cpus| at(family, Level::Memory, MEMORY_BYTES, cpus));
        alone.chain(together).collect::<Vec<Row>>()
    };
    let rows = Rows::in_nanoseconds(["triad", "update", "read"].map(of).concat());
    let name = |family| widest(family).unwrap().name;
    let usual = analyze(&params(&[]), &rows, 1);
    assert_eq!(curves(&usual, "memory.bandwidth_sizes"), [(name("read"), 4)]);
    assert_eq!(curves(&usual, "memory.bandwidth_cpus"), [(name("read"), 3), (name("triad"), 3)]);
    let chosen = analyze(&params(&["--kernels", "triad,update,read"]), &rows, 1);
    for (id, points) in [("memory.bandwidth_sizes", 4), ("memory.bandwidth_cpus", 3)] {
        assert_eq!(curves(&chosen, id), ["triad", "update", "read"].map(|f| (name(f), points)), "{id}");
    }
}

#[test]
fn rows_as_stream_have_columns() {
    let plain = |cpus| spec("triad", Level::Memory, cpus);
    let as_stream = |cpus| Spec { as_stream: true, ..plain(cpus) };
    let a = analysis(vec![
        planted(&plain(1), 24e9),
        planted(&plain(2), 30e9),
        planted(&as_stream(1), 21e9),
        planted(&as_stream(2), 28e9),
    ]);
    let table = table(&a);
    for (label, truth) in [("DRAM", 24e9), ("2 CPUs", 30e9), ("as STREAM", 21e9), ("as STREAM, 2 CPUs", 28e9)]
    {
        let at = table.columns.iter().position(|c| c.label == label).unwrap_or_else(|| panic!("{label}"));
        let cell = &table.rows[0].cells[at];
        let Cell::Number(rate) = cell else { panic!("{label}: {cell:?}") };
        assert!((rate / truth - 1.0).abs() < 0.01, "{label}: {rate}");
    }
}

#[test]
fn rows_of_the_last_cache_that_do_not_fit_what_was_found_are_flagged() {
    let last = Spec { working_set_bytes: 3 << 20, ..spec("read", Level::Last, 1) };
    let flags = |low: usize| {
        let rows = vec![planted(&last, 60e9), planted(&spec("read", Level::L2, 1), 9e10)];
        let mut rows = Rows::in_nanoseconds(rows);
        let found = DetectedCaches { last_bytes: Some((low as u64, 9 << 20)) };
        rows.facts.set(&DETECTED_CACHES, found);
        let a = analyze(&params(&[]), &rows, 1);
        let warned = a.warnings.iter().filter(|w| w.code == "W404").count();
        let flagged = a.metrics.iter().filter(|m| m.flags.contains(&"W404".to_owned()));
        (warned, flagged.map(|m| m.params["level"].to_string()).collect::<Vec<_>>())
    };
    assert_eq!(flags(2 << 20), (1, vec!["LLC".to_owned()]));
    assert_eq!(flags(4 << 20), (0, Vec::new()));
}
