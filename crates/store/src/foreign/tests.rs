//! Tests of the readers on recorded runs, on wrong input and on random bytes.

use machmeter_data::Values;
use proptest::prelude::*;

use super::*;

mod defects;
mod interbench;
mod ladder;
mod round_trips;
mod trains;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/foreign").join(name)
}

fn read_any(paths: &[PathBuf]) -> Result<Imported> {
    read_knowing(paths, &SideFacts::default())
}

fn read(names: &[&str]) -> Imported {
    let paths: Vec<PathBuf> = names.iter().map(|n| fixture(n)).collect();
    read_any(&paths).unwrap_or_else(|e| panic!("{e}"))
}

fn in_memory(files: &[(&str, &str)]) -> Input {
    Input {
        files: files.iter().map(|(name, text)| SourceFile::new(*name, text.as_bytes())).collect(),
        known: SideFacts::default(),
    }
}

fn codes_of(out: &Imported) -> Vec<&str> {
    out.warnings.iter().map(|w| w.code.as_str()).collect()
}

fn sum(v: &[i32]) -> i64 {
    v.iter().map(|c| i64::from(*c)).sum()
}

/// All recorded runs, with paths as a user gives them.
const RECORDED: &[(&str, &[&str])] = &[
    ("cyclictest-json", &["rt-tests/cyclictest.json"]),
    ("ftq-2009", &["ftq-2009/quiet_0_counts.dat"]),
    ("ftq-2009", &["ftq-2009/quiet_0_times.dat"]),
    ("ftq-2009", &["ftq-2009/quiet"]),
    ("ftq-2009", &["ftq-2009/quiet_counts.dat"]),
    ("ftq-2009", &["ftq-2009/lossy"]),
    ("ftq-2009", &["ftq-2009/two"]),
    ("ftq-2009", &["ftq-2009/odd"]),
    ("ftq-2009-stdout", &["ftq-2009/stdout.txt"]),
    ("ftq-2025", &["ftq-2025/run"]),
    ("ftq-2025", &["ftq-2025/run_1.dat"]),
    ("fwq", &["fwq/run"]),
    ("fwq", &["fwq/run_0_times.dat", "fwq/run_1_times.dat"]),
    ("gedae-table", &["gedae/altivec1.csv"]),
    ("interbench-log", &["interbench/aeolio.log"]),
    ("interbench-log", &["interbench/appended.log"]),
    ("interbench-log", &["interbench/early.log"]),
    ("interbench-log", &["interbench/plain.log"]),
    ("interbench-log", &["interbench/real-time.log"]),
    ("jitterdebugger-json", &["jitterdebugger/results.json"]),
    ("lat-mem-rd", &["latency/lat_mem_rd.txt"]),
    ("netgauge-loggp", &["netgauge/loggp.out"]),
    ("netgauge-noise", &["netgauge/selfish.out"]),
    ("netgauge-noise", &["netgauge/ftq.out"]),
    ("netgauge-noise", &["netgauge/fwq.out"]),
    ("netpipe", &["netpipe/np.out"]),
    ("oslat-json", &["rt-tests/oslat.json"]),
    ("ramlat", &["latency/ramlat.txt"]),
    ("size-ns", &["latency/multichase.txt"]),
    ("sysjitter-raw", &["sysjitter/raw"]),
    ("sysjitter-raw", &["sysjitter/sorted.1"]),
    ("sysjitter-summary", &["sysjitter/summary.txt"]),
];

#[test]
fn readers_are_sorted_unique_and_described() {
    for pair in READERS.windows(2) {
        assert!(pair[0].name < pair[1].name, "{} before {}", pair[0].name, pair[1].name);
    }
    for r in READERS {
        assert!(r.description.len() > 20, "{}", r.name);
        assert!(RECORDED.iter().any(|(name, _)| *name == r.name), "{} has no recorded file", r.name);
    }
    for pair in codes::CODES.windows(2) {
        assert!(pair[0].id < pair[1].id);
    }
}

#[test]
fn recorded_files_are_read_by_exactly_their_reader() {
    for (name, paths) in RECORDED {
        let full: Vec<PathBuf> = paths.iter().map(|p| fixture(p)).collect();
        let input = locate::load(&full).unwrap_or_else(|e| panic!("{e}"));
        let fit: Vec<&str> = READERS.iter().filter(|r| (r.sniff)(&input)).map(|r| r.name).collect();
        assert_eq!(fit, [*name], "{paths:?}");
        let out = read(paths);
        assert_eq!(out.provenance.format, *name);
        assert_eq!(out.provenance.files.len(), input.files.len());
        assert!(out.provenance.files.iter().all(|f| !f.contains('/')));
        assert!(!out.provenance.assumptions.is_empty());
        // Files without samples give only rows.
        for t in out.tables.iter().filter(|t| !t.name.starts_with("net_") && !t.name.starts_with("flow_")) {
            assert!(t.rows() > 0, "{paths:?}: {}", t.name);
            assert!(t.columns.iter().all(|c| c.values.len() == t.rows()));
            assert!(t.note("cpus").is_some_and(|c| !c.is_empty()), "{}", t.name);
        }
        for w in &out.warnings {
            assert!(!w.next.is_empty() && w.text.lines().count() == 1, "{w:?}");
        }
    }
}

#[test]
fn a_quiet_ftq_run_keeps_its_numbers() {
    let out = read(&["ftq-2009/quiet"]);
    let t = out.table("noise_windows").unwrap();
    assert_eq!(t.note("window_ticks"), Some("262144"));
    assert_eq!(t.note("tick_hz"), Some("unknown"));
    assert_eq!(codes_of(&out).last(), Some(&codes::TICK_RATE.id));
    let counts = fs::read_to_string(fixture("ftq-2009/quiet_0_counts.dat")).unwrap();
    let counts: i64 = counts.lines().map(|l| l.parse::<i64>().unwrap()).sum();
    assert_eq!(sum(t.i32s("count").unwrap()), counts);
    let starts = t.i64s("start_ticks").unwrap();
    let t0: i64 = t.note("t0_ticks").unwrap().parse().unwrap();
    assert_eq!(t.note("axis"), Some("uniform"));
    assert!(starts.iter().zip(0..).all(|(s, i)| (s - t0) / 262_144 == i), "row i is window i");
}

#[test]
fn ftq_2025_keeps_zero_windows_and_takes_ns() {
    let out = read(&["ftq-2025/run"]);
    let t = out.table("noise_windows").unwrap();
    let notes = ["tick_hz", "window_ticks", "cpus"].map(|key| t.note(key).unwrap());
    assert_eq!((t.rows(), notes), (200, ["1000000000", "1000000", "0,1"]));
    assert_eq!(t.i64s("start_ticks").unwrap()[..2], [0, 1_000_022]);
    assert!(out.notes.contains(&("frequency_hz".to_owned(), "1000".to_owned())));
}

#[test]
fn fwq_durations_stay_in_ticks() {
    let out = read(&["fwq/run"]);
    let t = out.table("noise_work").unwrap();
    assert_eq!(t.rows(), 2000);
    assert_eq!(t.i64s("duration_ticks").unwrap()[..2], [126_620, 125_918]);
    assert_eq!(codes_of(&out), [codes::TICK_RATE.id]);
}

#[test]
fn sysjitter_gaps_end_at_the_time_stamp() {
    let out = read(&["sysjitter/raw"]);
    let t = out.table("noise_gaps").unwrap();
    assert_eq!(t.rows(), 24);
    assert_eq!(t.note("tick_hz"), Some("2597000000"));
    let (s, e) = (t.i64s("start_ticks").unwrap()[0], t.i64s("end_ticks").unwrap()[0]);
    assert_eq!(e - s, 63_050);
    // 275659929 ns at 2597 MHz.
    assert_eq!(e, 275_659_929 * 2597 / 1000);
    let sorted = read(&["sysjitter/sorted.1"]);
    let starts = sorted.table("noise_gaps").unwrap().i64s("start_ticks").unwrap();
    assert!(starts.windows(2).all(|w| w[0] < w[1]), "in order of time again");
}

#[test]
fn oslat_buckets_are_intervals_and_their_sum_is_every_turn() {
    let out = read(&["rt-tests/oslat.json"]);
    let t = out.table("noise_histogram").unwrap();
    let (Values::F64(low), Values::F64(high), Values::I64(count)) = (
        &t.column("low_ns").unwrap().values,
        &t.column("high_ns").unwrap().values,
        &t.column("count").unwrap().values,
    ) else {
        panic!("column types");
    };
    assert_eq!((low[0], high[0], count[0]), (0.0, 1000.0, 93_622_118));
    assert_eq!(t.note("quantity"), Some("turn_duration"));
    // The last bucket of CPU 0 extends to the largest value.
    let last = t.i32s("cpu").unwrap().iter().rposition(|c| *c == 0).unwrap();
    assert_eq!((low[last], high[last], count[last]), (31_000.0, 1_539_000.0, 11));
    assert!(codes_of(&out).contains(&codes::OVERFLOW.id));
    assert_eq!(t.note("wall_ns.cpu0"), Some("1999000000"));
    assert!(out.notes.iter().any(|(k, v)| k == "command" && v.starts_with("oslat ")));
}

#[test]
fn wake_up_latency_is_not_called_stolen_time() {
    for paths in [["rt-tests/cyclictest.json"], ["jitterdebugger/results.json"]] {
        let out = read(&paths);
        assert!(codes_of(&out).contains(&codes::OTHER_QUANTITY.id), "{paths:?}");
        assert_eq!(out.table("noise_histogram").unwrap().note("quantity"), Some("wakeup_latency"));
    }
    // All 2 x 2000 wake-ups are in a bucket; those beyond the histogram are in an open one.
    let out = read(&["rt-tests/cyclictest.json"]);
    assert_eq!(out.table("noise_histogram").unwrap().i64s("count").unwrap().iter().sum::<i64>(), 4000);
    assert!(codes_of(&out).contains(&codes::OVERFLOW.id));
}

#[test]
fn wrong_input_gets_one_line_with_its_place() {
    let e = |files: &[(&str, &str)]| {
        let text = read_input(&in_memory(files)).unwrap_err().to_string();
        assert_eq!(text.lines().count(), 1, "{text}");
        text
    };
    assert!(e(&[("notes.txt", "hello\n")]).contains("none of the known formats"));
    assert!(e(&[("x_0_counts.dat", "1\n")]).contains("partner x_0_times.dat is missing"));
    let bad = e(&[("x_0_counts.dat", "1\nabc\n3\n"), ("x_0_times.dat", "1\n2\n3\n")]);
    let expected = "found \"abc\", expected one whole number per line, as FTQ 2009 writes";
    assert_eq!(bad, format!("x_0_counts.dat, line 2: {expected}"));
    assert!(e(&[("x_0_counts.dat", "-1\n"), ("x_0_times.dat", "1\n")]).contains("line 1"));
    assert!(e(&[("x_0_counts.dat", ""), ("x_0_times.dat", "")]).contains("no samples"));
    assert!(e(&[("x_0_counts.dat", "3000000000\n"), ("x_0_times.dat", "1\n")]).contains("above 2^31"));
    let two = [
        ("x_0_counts.dat", "1\n"),
        ("x_0_times.dat", "1\n"),
        ("y_0_counts.dat", "1\n"),
        ("y_0_times.dat", "1\n"),
    ];
    assert!(e(&two).contains("another run"));
    assert!(e(&[("x_0_times.dat", "10\n20\n30\n40\n")]).contains("only increase"));
    assert!(e(&[("o.json", "{\"thread\": {\"0\": {\"freq\": 1}}}")]).contains("no histogram"));
    assert!(e(&[("o.json", "{\"thread\": \"freq\": ")]).contains("line 1: broken JSON"));
    let missing = read_any(&[PathBuf::from("/nonexistent/ftq")]).unwrap_err().to_string();
    assert!(missing.contains("no such file"), "{missing}");
    assert!(read_any(&[std::env::temp_dir()]).unwrap_err().to_string().contains("a directory"));
    assert!(read_any(&[]).is_err());
}

/// File names that select each reader.
const NAMES: &[&[&str]] = &[
    &["x_0_counts.dat", "x_0_times.dat"],
    &["x_1_counts.dat", "x_1_times.dat", "x_0_counts.dat", "x_0_times.dat"],
    &["x_0_times.dat"],
    &["x_0.dat", "x_1.dat"],
    &["x.0", "x.1"],
    &["x.json"],
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn random_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..400), which in 0..NAMES.len()) {
        let files = NAMES[which].iter().map(|n| SourceFile::new(*n, &bytes)).collect();
        let input = Input { files, known: SideFacts::default() };
        for r in READERS {
            let _ = (r.sniff)(&input);
            if let Err(e) = r.read(&input) {
                prop_assert_eq!(e.to_string().lines().count(), 1, "{}: {}", r.name, e);
            }
        }
    }

    #[test]
    fn random_numbers_never_panic(
        rows in proptest::collection::vec((any::<u64>(), 0_u64..1 << 40, any::<u32>()), 0..60),
        columns in 1_usize..5,
        which in 0..NAMES.len(),
        header in 0_usize..4,
    ) {
        let headers = [
            "",
            "# Frequency 10000.0\n# Ticks per ns: 2.6\n# thread 0, core 1\n",
            "# cpu_mhz: 2600\n# threshold: 200ns\n# n_interruptions: 3\n# total_runtime: 99 cycles\n",
            "# Benchmark Method: selfish\n# Compute-Cycle Duration: 100 usec\n# Minimal cycle length [ns]: 9.5 \n",
        ];
        let mut text = headers[header].to_owned();
        for (a, b, c) in &rows {
            let all = [a.to_string(), b.to_string(), c.to_string(), (a / 3).to_string()];
            text += &all[..columns].join(" ");
            text.push('\n');
        }
        let files = NAMES[which].iter().map(|n| SourceFile::new(*n, text.as_bytes())).collect();
        let input = Input { files, known: SideFacts::default() };
        for r in READERS {
            if let Ok(out) = r.read(&input) {
                for t in &out.tables {
                    prop_assert!(t.columns.iter().all(|c| c.values.len() == t.rows()));
                }
            }
        }
    }

    #[test]
    fn damaged_recordings_never_panic(which in 0..RECORDED.len(), at in any::<usize>(), byte in any::<u8>(), cut in any::<usize>()) {
        let paths: Vec<PathBuf> = RECORDED[which].1.iter().map(|p| fixture(p)).collect();
        let mut input = locate::load(&paths).unwrap();
        for f in &mut input.files {
            let mut bytes = f.text.clone().into_bytes();
            let n = bytes.len();
            bytes[at % n] = byte;
            bytes.truncate(n - (cut % (2 * n)).saturating_sub(n));
            *f = SourceFile::new(f.path.clone(), &bytes);
        }
        for r in READERS {
            if let Err(e) = r.read(&input) {
                prop_assert_eq!(e.to_string().lines().count(), 1);
            }
        }
    }
}

#[test]
fn the_documented_names_of_a_single_run_are_second_names_of_its_files() {
    let dir = tempfile::tempdir().unwrap();
    let prefix = dir.path().join("x");
    let at = |name: &str| dir.path().join(name);
    write::ftq_2009(&prefix, 0, &[1024, 2048, 3072], &[5, 5, 4]).unwrap();
    std::os::unix::fs::symlink("x_0_counts.dat", at("x_counts.dat")).unwrap();
    std::fs::copy(at("x_0_times.dat"), at("x_times.dat")).unwrap();
    for name in ["x", "x_0_counts.dat", "x_counts.dat"] {
        let read = read_any(&[at(name)]).unwrap();
        assert_eq!(read.table("noise_windows").unwrap().rows(), 3, "{name}");
    }
    // A different run under the second name is an error.
    std::fs::write(at("x_times.dat"), "9216\n10240\n11264\n").unwrap();
    assert!(read_any(&[at("x")]).is_err());
}
