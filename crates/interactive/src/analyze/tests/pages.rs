//! The page and the pictures of a recording.

use machmeter_data::Shape;
use machmeter_data::shape::Cell as TableCell;
use machmeter_data::summary::Fit;
use machmeter_engine::Analysis;

use super::{cell, job, of, segment, task};
use crate::samples::Cell;

const MS: u64 = 1_000_000;

fn grid(loads: &[&str]) -> Vec<Cell> {
    let mut out = Vec::new();
    for name in ["audio-pro", "video"] {
        let s = task(name);
        for (i, load) in loads.iter().enumerate() {
            let every = 50 / (i as u64 + 1);
            let late = |k: u64| {
                let hit = i > 0 && k % every == every - 1;
                job(&s, k, 50_000 + 1000 * (k % 10), if hit { 12 * MS } else { 0 })
            };
            let mut seg = segment(&s, (0..600).map(late).collect());
            (seg.load_work, seg.load_ns) = (1000, seg.length_ns);
            out.push(cell(name, load, vec![seg]));
        }
    }
    out
}

#[test]
fn the_short_page_has_rows_and_a_judgment() {
    let a = of(grid(&["none", "burn"]));
    let rows = machmeter_data::summary::rows(crate::info::INFO.rows, &a.metrics);
    let told: Vec<String> =
        rows.iter().filter_map(|r| r.text(&a.metrics)).map(|t| format!("{}: {}", t.name, t.line())).collect();
    let met = "audio-pro deadlines met, idle | under burn: 100 % | 96.0 %";
    for row in ["audio-pro p99: 59.0 us", met, "video p99: 59.0 us"] {
        assert!(told.contains(&row.to_owned()), "{row}: {told:?}");
    }
    assert!(a.summary.lines.is_empty(), "{:?}", a.summary.lines);
    let fitness = |a: &Analysis| a.summary.fitness.iter().map(|f| (f.fit, f.reason.clone())).next().unwrap();
    assert_eq!(fitness(&a), (Fit::Partly, "video missed 24 of 600 deadlines under burn".to_owned()));
    let (fit, reason) = fitness(&of(grid(&["none"])));
    assert_eq!(fit, Fit::Yes, "{reason}");
    assert_eq!(
        reason,
        "at most 0.498 % of deadlines missed under any load; 1 period of buffer (2.67 ms) is safe for audio-pro"
    );
    let mut few = grid(&["none"]);
    for segment in few.iter_mut().flat_map(|cell| &mut cell.segments) {
        segment.jobs.truncate(150);
        segment.scheduled = 150;
    }
    let few = fitness(&of(few));
    let why = "video missed none of 150 deadlines on the idle machine; too little was measured to decide: measure longer (-t)";
    assert_eq!(few, (Fit::Unknown, why.to_owned()), "0 of 150 can be 2 %");
}

#[test]
fn late_jobs_and_what_was_not_measured_are_said() {
    let judged = |name: &str, jobs: u64, late: &[usize]| {
        let s = task(name);
        let mut all: Vec<_> = (0..jobs).map(|k| job(&s, k, 50_000 + 1000 * (k % 10), 0)).collect();
        for k in late {
            all[*k] = job(&s, *k as u64, 50_000, 60 * MS);
        }
        let a = of(vec![cell(name, "none", vec![segment(&s, all)])]);
        (a.summary.fitness[0].fit, a.summary.fitness[0].reason.clone())
    };
    // Beyond the deadline means beyond the only buffer that the classic task has.
    let (fit, reason) = judged("audio", 220, &[50, 150]);
    let expected = "audio missed 2 of 220 deadlines on the idle machine; even 1 period of buffer ran dry for audio under \
                    no load; video was not measured";
    assert_eq!((fit, reason.as_str()), (Fit::Partly, expected));
    let (fit, reason) = judged("video", 4000, &[1000, 3000]);
    assert!(
        fit == Fit::Yes && reason.ends_with("under any load; audio was not measured"),
        "{fit:?} {reason}"
    );
    for (jobs, late) in [(250, vec![120]), (24, vec![3, 17])] {
        let (fit, reason) = judged("video", jobs, &late);
        let begin =
            format!("video missed {} of {jobs} deadlines on the idle machine; too little", late.len());
        assert!(fit == Fit::Unknown && reason.starts_with(&begin), "{fit:?} {reason}");
    }
    let all: Vec<usize> = (0..24).collect();
    let (fit, reason) = judged("video", 24, &all);
    assert!(fit == Fit::No && reason.starts_with("video missed 100 % of its deadlines"), "{fit:?} {reason}");
}

#[test]
fn the_page_has_a_table_per_task() {
    let a = of(grid(&["none", "burn", "compile"]));
    let line = &a.summary.lines[0];
    assert_eq!(line.section, "INTERACTIVE");
    let text = line.lines.join("\n");
    let expected = "\
audio-pro: studio audio: 48 kHz, 128 frames, 30 % of a CPU, k buffers
load       lateness mean +- sd      p99      max  %CPU  %met    xruns/min";
    assert!(text.starts_with(expected), "{text}");
    assert!(line.lines.iter().all(|l| l.chars().count() <= 86), "{text}");
    let row = "burn           54.5 +- 2.87 us  59.0 us  59.0 us   100  96.0          900  <- misses";
    assert!(text.contains(row), "{text}");
}

#[test]
fn pictures_have_the_shapes_the_views_expect() {
    let a = of(grid(&["none", "burn", "compile"]));
    let shape = |id: &str| &a.datasets.iter().find(|d| d.id == id).unwrap().shape;
    let Shape::Matrix(m) = shape("interactive.met") else { panic!("a matrix") };
    assert_eq!(m.rows.join(" "), "audio-pro video");
    assert_eq!(m.column_names.join(" "), "none burn compile");
    assert_eq!(m.values[1][..2], [Some(1.0), Some(0.96)]);
    let Shape::CostTable(t) = shape("interactive.latency_table") else { panic!("a table") };
    assert_eq!((t.columns.len(), t.rows.len()), (5, 3));
    let Shape::Distribution(d) = shape("interactive.lateness") else { panic!("a distribution") };
    assert!(d.rows.iter().all(|r| r.quantiles.len() <= 25));
    let Shape::CostTable(t) = shape("interactive.load_work") else { panic!("a table") };
    assert_eq!(t.rows.iter().map(|r| r.name.as_str()).collect::<Vec<_>>(), ["burn", "compile"]);
    let Shape::CostTable(t) = shape("interactive.audio") else { panic!("a table") };
    assert_eq!(t.rows[1].cells[8], TableCell::Text("5 (13.3 ms)".to_owned()));
    let Shape::CostTable(t) = shape("interactive.frames") else { panic!("a table") };
    assert_eq!(t.rows.len(), 3);
    for m in &a.metrics {
        assert!(crate::info::METRICS.iter().any(|i| i.id == m.id), "{} is not registered", m.id);
        let ordered = m.ci.as_ref().zip(m.value).is_none_or(|(c, v)| c.low <= v + 1e-9 && v <= c.high + 1e-9);
        assert!(ordered, "{}: {:?} {:?}", m.key(), m.value, m.ci);
    }
}
