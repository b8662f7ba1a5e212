//! Tests that the readers read the output of the writers.

use super::write::*;
use super::*;

fn lines_of(write: impl FnOnce(&mut Vec<u8>)) -> String {
    let mut out = Vec::new();
    write(&mut out);
    String::from_utf8(out).unwrap()
}

/// The lines of a recorded file without their numbers.
fn shape(text: &str) -> Vec<String> {
    text.lines()
        .map(|l| {
            l.split(|c: char| c.is_ascii_digit() || c == '.' || c == '-').filter(|w| !w.is_empty()).collect()
        })
        .collect()
}

#[test]
fn ftq_2009_pairs_come_back_with_their_side_file() {
    let dir = tempfile::tempdir().unwrap();
    let prefix = dir.path().join("ftq");
    let starts: Vec<i64> = (0..100).map(|i| 1 << 40 | (i << 20)).collect();
    let counts: Vec<i32> = (0..100).map(|i| 9000 - i).collect();
    for thread in 0..2 {
        let moved: Vec<i64> = starts.iter().map(|s| s + thread as i64).collect();
        ftq_2009(&prefix, thread, &moved, &counts).unwrap();
    }
    let facts = SideFacts { tick_hz: Some(2.6e9), cpus: vec![4, 6], ..SideFacts::default() };
    side_file(&prefix, &facts).unwrap();
    assert_eq!(fs::read_to_string(dir.path().join("ftq_1_counts.dat")).unwrap().lines().next(), Some("9000"));
    for path in ["ftq", "ftq_counts.dat"] {
        let out = read_any(&[dir.path().join(path)]).unwrap();
        assert!(out.warnings.is_empty(), "{:?}", out.warnings);
        let t = out.table("noise_windows").unwrap();
        assert_eq!(t.i64s("start_ticks").unwrap()[..100], starts);
        assert_eq!(t.i32s("count").unwrap()[100..], counts);
        assert_eq!((t.note("tick_hz"), t.note("cpus")), (Some("2600000000"), Some("4,6")));
    }
    let user = SideFacts { tick_hz: Some(1e9), ..SideFacts::default() };
    let out = read_knowing(std::slice::from_ref(&prefix), &user).unwrap();
    assert_eq!(out.tables[0].note("tick_hz"), Some("1000000000"), "the user's word wins");
    fs::write(dir.path().join("ftq.machmeter.json"), "{\"tick_hz\": 0}").unwrap();
    assert!(read_any(&[prefix]).unwrap_err().to_string().contains("expected a positive number"));
}

#[test]
fn ftq_2009_lines_come_back() {
    let text = lines_of(|out| ftq_2009_lines(out, &[1024, 2048, 3072], &[5, 6, 7]).unwrap());
    assert_eq!(text, "1024 5\n2048 6\n3072 7\n");
    let out = read_input(&in_memory(&[("out.txt", &text)])).unwrap();
    assert_eq!(out.tables[0].i32s("count").unwrap(), [5, 6, 7]);
}

#[test]
fn ftq_2025_has_the_header_of_the_original() {
    let header = Ftq2025Header {
        frequency_hz: 1000.0,
        ticks_per_ns: 2.599_99,
        thread: 0,
        cpu: None,
        start_delay_ms: 0,
        total_count: 8_394_256,
        max_work: 8_602_600,
        pinned: false,
        system: vec!["Linux".to_owned()],
    };
    let text = lines_of(|out| ftq_2025(out, &header, &[0, 1_000_022], &[41_498, 42_595]).unwrap());
    let original = fs::read_to_string(fixture("ftq-2025/run_0.dat")).unwrap();
    let head: Vec<&str> = original.lines().take(12).collect();
    assert_eq!(text.lines().take(12).collect::<Vec<_>>(), head);
    let out = read_input(&in_memory(&[("run_0.dat", &text)])).unwrap();
    assert_eq!(out.tables[0].i64s("start_ticks").unwrap(), [0, 1_000_022]);
    let pinned = Ftq2025Header { cpu: Some(3), pinned: true, ..header };
    let text = lines_of(|out| ftq_2025(out, &pinned, &[0], &[1]).unwrap());
    let out = read_input(&in_memory(&[("run_0.dat", &text)])).unwrap();
    assert_eq!((out.tables[0].note("cpus"), out.tables[0].note("cpu_is")), (Some("3"), Some("cpu")));
    assert_eq!(ftq_2025_path(Path::new("a/ftq"), 2), Path::new("a/ftq_2.dat"));
}

#[test]
fn fwq_files_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let path = fwq(&dir.path().join("fwq"), 1, &[92_100, 92_150, 92_101]).unwrap();
    assert_eq!(path.file_name().unwrap(), "fwq_1_times.dat");
    let out = read_any(&[path]).unwrap();
    assert_eq!(out.tables[0].i64s("duration_ticks").unwrap(), [92_100, 92_150, 92_101]);
    assert_eq!(out.tables[0].i32s("cpu").unwrap(), [1, 1, 1]);
}

#[test]
fn netgauge_files_look_like_the_originals_and_come_back() {
    let system = ["Sysname", "Nodename", "Release", "Version", "Machine"];
    let header = NetgaugeHeader {
        duration_us: 100,
        samples: 300,
        system: system.iter().map(|n| ((*n).to_owned(), "x".to_owned())).collect(),
    };
    let facts = SelfishFacts { turn_ns: 9.5, turns: 1_000_000_000, threshold_percent: 900 };
    let gaps = [(500.0, 1509.5), (4_000_500.0, 4_020_509.5), (9e9, 9e9 + 509.5)];
    let texts = [
        ("selfish", lines_of(|out| netgauge_selfish(out, &header, &facts, &gaps).unwrap())),
        ("ftq", lines_of(|out| netgauge_ftq(out, &header, &[1997, 2000]).unwrap())),
        ("fwq", lines_of(|out| netgauge_fwq(out, &header, &[106_999, 102_000]).unwrap())),
    ];
    for (method, text) in &texts {
        let original = fs::read_to_string(fixture(&format!("netgauge/{method}.out"))).unwrap();
        let heading = |t: &str| {
            let is_told = |l: &String| !system.iter().any(|s| l.starts_with(&format!("# {s}")));
            shape(t).into_iter().filter(|l| l.starts_with('#') && is_told(l)).collect::<Vec<_>>()
        };
        assert_eq!(heading(text), heading(&original), "{method}");
        for name in system {
            let start =
                |t: &str| t.lines().find(|l| l.starts_with(&format!("# {name}"))).map(|l| l.find(':'));
            assert_eq!(start(text), start(&original), "{method} {name}");
        }
    }
    let read = |i: usize| read_input(&in_memory(&[("ng.out", &texts[i].1)])).unwrap();
    let gaps = read(0);
    assert!(gaps.warnings.is_empty(), "{:?}", gaps.warnings);
    assert_eq!(gaps.tables[0].i64s("start_ticks").unwrap(), [0, 4_000_000, 8_999_999_500]);
    assert_eq!(gaps.tables[0].i64s("end_ticks").unwrap(), [1000, 4_020_000, 9_000_000_000]);
    assert_eq!(read(1).tables[0].i32s("count").unwrap(), [1997, 2000]);
    assert_eq!(read(2).tables[0].i64s("duration_ticks").unwrap(), [106, 102]);
}
