//! Tests of defects of the writing programs, on recorded files and on files with a known truth.

use super::*;

type Files = Vec<(String, String)>;

/// Two columns of an FTQ 2009 pair with windows of 1024 ticks.
fn pair(prefix: &str, thread: usize, samples: &[(i64, i64)]) -> Files {
    let lines = |f: fn(&(i64, i64)) -> i64| {
        samples.iter().map(|s| [f(s).to_string(), "\n".to_owned()].concat()).collect()
    };
    vec![
        (format!("{prefix}_{thread}_times.dat"), lines(|s| s.0)),
        (format!("{prefix}_{thread}_counts.dat"), lines(|s| s.1)),
    ]
}

fn read_pairs(files: &[(String, String)], known: SideFacts) -> Imported {
    let files = files.iter().map(|(n, t)| SourceFile::new(n.as_str(), t.as_bytes())).collect();
    read_input(&Input { files, known }).unwrap()
}

#[test]
fn missing_windows_come_back_as_windows_without_work() {
    // Windows 0 to 9 of 1024 ticks; an overrun in window 3 lasts into window 7.
    let samples: Vec<(i64, i64)> =
        (0..10).filter(|i| !(4..=6).contains(i)).map(|i| (50_000 * 1024 + i * 1024 + 3, 40)).collect();
    let out = read_pairs(&pair("x", 0, &samples), SideFacts { tick_hz: Some(1e6), ..SideFacts::default() });
    let t = out.table("noise_windows").unwrap();
    assert_eq!(t.i32s("count").unwrap(), [40, 40, 40, 40, 0, 0, 0, 40, 40, 40]);
    assert_eq!(t.i64s("start_ticks").unwrap()[4], 50_004 * 1024);
    assert_eq!(t.note("axis"), Some("uniform"));
    assert_eq!(t.note("tick_hz"), Some("1000000"));
    let w = out.warnings.iter().find(|w| w.code == codes::MISSING_WINDOWS.id).unwrap();
    assert_eq!(w.text, "thread 0: 3 windows are missing in 1 place, which hide 3.072 ms, 30.00 % of the run");
    assert!(!codes_of(&out).contains(&codes::TICK_RATE.id), "the rate was given");
}

#[test]
fn the_recorded_lossy_run_hid_most_of_its_time() {
    let out = read(&["ftq-2009/lossy"]);
    let t = out.table("noise_windows").unwrap();
    let counts = t.i32s("count").unwrap();
    assert_eq!(counts.iter().filter(|c| **c > 0).count(), 600);
    // Counted by hand from the recorded starts: 3319 windows in 14 places.
    assert_eq!(counts.len(), 600 + 3319);
    let w = out.warnings.iter().find(|w| w.code == codes::MISSING_WINDOWS.id).unwrap();
    assert!(w.text.contains("3319 windows are missing in 14 places"), "{}", w.text);
}

/// The files that threaded FTQ 2009 writes for `threads` threads of `n` samples: half the stride of the recording.
fn misplaced(threads: usize, n: usize) -> (Files, Vec<(i64, i64)>) {
    let recorded: Vec<(i64, i64)> = (0..threads)
        .flat_map(|k| {
            (0..n)
                .map(move |i| (1_024_000 + 1024 * i as i64 + 7 * k as i64, 30 + (i * 5 + k * 3) as i64 % 11))
        })
        .collect();
    let array: Vec<i64> = recorded.iter().flat_map(|s| [s.0, s.1]).collect();
    let files = (0..threads)
        .flat_map(|k| {
            let part: Vec<(i64, i64)> = array[n * k..n * k + 2 * n].chunks(2).map(|c| (c[0], c[1])).collect();
            pair("x", k, &part)
        })
        .collect();
    (files, recorded)
}

#[test]
fn samples_under_the_wrong_thread_are_put_back() {
    for (threads, n, whole, rest) in [(2, 100, 1, 50), (4, 100, 2, 50), (3, 101, 2, 0), (5, 64, 3, 0)] {
        let (files, recorded) = misplaced(threads, n);
        let out = read_pairs(&files, SideFacts::default());
        assert!(codes_of(&out).contains(&codes::THREAD_STRIDE.id), "{threads} threads");
        assert!(!codes_of(&out).contains(&codes::MISSING_WINDOWS.id));
        let t = out.table("noise_windows").unwrap();
        let kept = whole * n + rest;
        assert_eq!(t.rows(), kept);
        let rows = t.i64s("start_ticks").unwrap().iter().zip(t.i32s("count").unwrap());
        let found: Vec<(i64, i64)> = rows.map(|(s, c)| (*s, i64::from(*c))).collect();
        assert_eq!(found, recorded[..kept]);
        assert_eq!(t.i32s("cpu").unwrap()[kept - 1], if rest > 0 { whole as i32 } else { whole as i32 - 1 });
    }
}

#[test]
fn a_misplaced_file_by_itself_loses_only_the_other_threads_half() {
    for n in [100, 101] {
        let (files, recorded) = misplaced(2, n);
        let out = read_pairs(&files[2..], SideFacts::default());
        assert!(codes_of(&out).contains(&codes::THREAD_STRIDE.id), "{n}");
        let t = out.table("noise_windows").unwrap();
        assert_eq!(t.i64s("start_ticks").unwrap()[0], recorded[n].0);
        assert!(t.i32s("cpu").unwrap().iter().all(|c| *c == 1));
    }
}

#[test]
fn the_recorded_threaded_runs_have_the_defect() {
    for (name, kept) in [("ftq-2009/two", 600), ("ftq-2009/odd", 202)] {
        let out = read(&[name]);
        let w = out.warnings.iter().find(|w| w.code == codes::THREAD_STRIDE.id).unwrap();
        assert!(w.text.contains(&format!("{kept} of ")), "{}", w.text);
        let t = out.table("noise_windows").unwrap();
        assert_eq!(t.i32s("count").unwrap().iter().filter(|c| **c > 0).count(), kept);
        assert!(!codes_of(&out).contains(&codes::BACKWARD_TIME.id));
    }
}

#[test]
fn healthy_threads_are_not_called_misplaced() {
    let run =
        |k: i64| (0..50).map(|i| (1_024_000 + 1024 * i + k, 40 + (i * k) % 7)).collect::<Vec<(i64, i64)>>();
    let files: Vec<_> = pair("x", 0, &run(1)).into_iter().chain(pair("x", 1, &run(2))).collect();
    let out = read_pairs(&files, SideFacts { cpus: vec![2, 5], ..SideFacts::default() });
    assert_eq!(codes_of(&out), [codes::TICK_RATE.id]);
    let t = out.table("noise_windows").unwrap();
    assert_eq!((t.note("cpus"), t.note("cpu_is")), (Some("2,5"), Some("cpu")));
}

#[test]
fn time_that_runs_backwards_is_told_with_its_place() {
    let mut run: Vec<(i64, i64)> = (0..50).map(|i| (1_024_000 + 1024 * i, 40)).collect();
    run[30].0 = 1_024_000;
    let out = read_pairs(&pair("x", 0, &run), SideFacts::default());
    let w = out.warnings.iter().find(|w| w.code == codes::BACKWARD_TIME.id).unwrap();
    assert!(w.text.contains("sample 31"), "{}", w.text);
    assert_eq!(out.table("noise_windows").unwrap().note("axis"), Some("observed"));
}

#[test]
fn a_threshold_below_an_ordinary_turn_is_told() {
    let out = read(&["netgauge/selfish.out"]);
    let w = out.warnings.iter().find(|w| w.code == codes::THRESHOLD.id).unwrap();
    assert!(w.text.contains("96.3 %") && w.text.contains("shortest turn 0.385 ns"), "{}", w.text);

    let good = "# Benchmark Method: selfish\n# Selfish Benchmark\n# Minimal cycle length [ns]: 9.500000 \n\
                # Number of iterations (recorded+unrecorded): 100000000 \n# Threshold: [% minimal cycle length]: 900 \n\
                0.00\t1000.00\n4000000.00\t20000.50\n";
    let out = read_input(&in_memory(&[("ng.out.3", good)])).unwrap();
    assert!(out.warnings.is_empty(), "{:?}", out.warnings);
    let t = out.table("noise_gaps").unwrap();
    assert_eq!(t.i64s("end_ticks").unwrap(), [1000, 4_020_001]);
    assert_eq!(t.i32s("cpu").unwrap(), [3, 3]);
    assert_eq!(t.note("threshold_ns"), Some("85.5"));
}

#[test]
fn quantiles_out_of_order_are_told() {
    let text = fs::read_to_string(fixture("sysjitter/summary.txt")).unwrap();
    assert!(read(&["sysjitter/summary.txt"]).warnings.is_empty());
    let wrong = text.replace("int_min(ns): 20623", "int_min(ns): 950000000");
    let out = read_input(&in_memory(&[("s.txt", &wrong)])).unwrap();
    assert_eq!(codes_of(&out), [codes::WRONG_EXTREMES.id]);
    assert!(out.warnings[0].text.contains("core 0"));
}

#[test]
fn files_cut_short_lose_their_last_line_only() {
    let files = [("x_0_times.dat", "1024\n2048\n3072\n40"), ("x_0_counts.dat", "7\n7\n7\n7\n")];
    let out = read_input(&in_memory(&files)).unwrap();
    assert!(codes_of(&out).contains(&codes::CUT_FILE.id));
    assert_eq!(out.table("noise_windows").unwrap().i64s("start_ticks").unwrap(), [1024, 2048, 3072]);

    let raw = fs::read_to_string(fixture("sysjitter/raw.0")).unwrap();
    let shorter = &raw[..=raw.trim_end().rfind('\n').unwrap()];
    let out = read_input(&in_memory(&[("raw.0", shorter)])).unwrap();
    assert!(out.warnings.iter().any(|w| w.text == "raw.0 has 8 of 9 interruptions"), "{:?}", out.warnings);
}
