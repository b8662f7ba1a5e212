//! The table from planted costs, the sizes, and a short real run.

use machmeter_engine::cost::{Estimator, Pair, Rows};

use super::plan::{Access, CHOICE, Choice, LINES, Line, MOST_BYTES, Sizes, Source, models};
use super::{ALONE, SHARED, SMALL_BUFFER, analyze};
use crate::memory::ladder::detect::{DETECTED_CACHES, DetectedCaches};
use crate::memory::reported::ReportedCaches;
use crate::testing::{codes, metric, params};
use machmeter_engine::disturbance::placement::MOVES;

/// Rows of two members whose costs are 10 ns times the number of the line, the second member's 20 % more.
fn planted() -> Rows {
    let mut rows = Rows::in_nanoseconds(Vec::new());
    let dependent = LINES.into_iter().filter_map(Line::dependent);
    for (i, line) in LINES.into_iter().chain(dependent).enumerate() {
        for rank in 0..2 {
            let ns = 10.0 * (i + 1) as f64 * if rank == 0 { 1.0 } else { 1.2 };
            let pair = (40 + (800.0 * ns) as u64, 40 + (1_600.0 * ns) as u64);
            let row = line.row("threads", 2, rank).per_turn(8.0);
            rows.rows.push(row.planted(100, [pair; 12]));
        }
    }
    rows
}

fn needs_two(operation: &str) -> bool {
    operation == "barrier" || operation.contains("neighbour") || operation.starts_with("all")
}

#[test]
fn every_line_keeps_its_estimator() {
    for line in LINES.into_iter().chain(LINES.into_iter().filter_map(Line::dependent)) {
        crate::testing::assert_keeps(&line.row("threads", 2, 0), Estimator::Batches);
    }
}

#[test]
fn the_mean_and_the_largest_member_are_told_apart() {
    let a = analyze::analyze(&params(&[]), &planted(), 1);
    assert_eq!(a.metrics.len(), 25, "13 lines and 12 dependent ones; loop and clock are priced elsewhere");
    let of = |operation: &str, access: Access| {
        metric(&a, SHARED.id, &[("operation", operation), ("access", access.name())]).unwrap()
    };
    // Line 6 of Howell's table: 60 and 72 ns.
    let m = of("read_local", Access::Streamed);
    assert!((m.value.unwrap() - 66.0).abs() < 0.1 && (m.max.unwrap() - 72.0).abs() < 0.1, "{m:?}");
    assert!(of("read_local", Access::Dependent).value.unwrap() > 150.0);
    assert!(of("write_neighbour", Access::Dependent).value.unwrap() > 150.0);
    assert!(a.warnings.is_empty());
}

#[test]
fn rows_of_two_are_told_at_the_placement_that_ruled_most_of_the_time() {
    let mut rows = planted();
    for row in &mut rows.rows {
        let (one, follows) = (row.pairs[0], needs_two(&row.operation));
        // Three quarters of the visits at one placement, the rest where the same costs five times as much.
        let pair = |k: u32| {
            let level = if k % 40 < 30 || !follows { 1 } else { 5 };
            let look_ns = 24.0 * level as f64 * (1.0 + 0.002 * f64::from(k % 9));
            Pair {
                at_ns: f64::from(k) * 1e7,
                short_ticks: 40 + (one.short_ticks - 40) * level,
                long_ticks: 40 + (one.long_ticks - 40) * level,
                regime_ns: if follows { look_ns } else { 0.0 },
                ..Pair::default()
            }
        };
        row.pairs = (0..80).map(pair).collect();
    }
    let a = analyze::analyze(&params(&[]), &rows, 1);
    let plain = analyze::analyze(&params(&[]), &planted(), 1);
    for (m, without) in a.metrics.iter().zip(&plain.metrics) {
        assert!((m.value.unwrap() / without.value.unwrap() - 1.0).abs() < 1e-3, "{m:?}");
        let name = m.params["operation"].to_string();
        assert!(m.flags.is_empty() && m.apart_ns.is_some() == needs_two(&name), "{name}");
    }
    assert_eq!(codes(&a), [MOVES.id]);
    assert!(a.warnings[0].text.contains(": shared accesses at "), "{}", a.warnings[0].text);
}

#[test]
fn one_cpu_is_said_once_and_never_a_number() {
    let mut rows = planted();
    for r in rows.rows.iter_mut().filter(|r| needs_two(&r.operation)) {
        r.refused = Some("needs two CPUs, has 1".to_owned());
    }
    let a = analyze::analyze(&params(&[]), &rows, 1);
    assert_eq!(codes(&a), [ALONE.id]);
    for m in a.metrics.iter().filter(|m| m.params["operation"].to_string().contains("neighbour")) {
        assert!(m.value.is_none() && m.why.as_deref().unwrap().contains("two CPUs"));
    }
}

#[test]
fn sizes_hold_whole_turns_and_wrong_ones_are_one_line() {
    let planted = ReportedCaches::planted;
    let of = |words: &[&str], known: &ReportedCaches, most| Choice::of(&params(words), known, most).unwrap();
    let usual = planted(&[32 << 10, 32 << 20]);
    let c = of(&[], &usual, MOST_BYTES);
    assert_eq!((c.sizes.cached_bytes, c.sizes.main_bytes, c.sizes.block_bytes), (16 << 10, 64 << 20, 64));
    assert_eq!((c.last.bytes, c.last.source, c.block.source), (32 << 20, Source::Claimed, Source::Claimed));
    let c = of(&["--cache-size", "3M", "--block-size", "128"], &planted(&[48 << 10, 32 << 20]), MOST_BYTES);
    let Sizes { main_bytes, cached_bytes, .. } = c.sizes;
    assert!(main_bytes >= 6_000_000 && [main_bytes, cached_bytes].iter().all(|b| b.is_multiple_of(1_024)));
    assert_eq!((c.last.source, c.block.source), (Source::Asked, Source::Asked));
    // What is asked for is not bounded; what is not asked for is.
    assert_eq!(of(&["--cache-size", "512M"], &usual, 1 << 20).sizes.main_bytes, 1 << 30);
    assert_eq!(of(&[], &usual, 5_000_000).sizes.main_bytes, 5_000_000 / 512 * 512);
    assert_eq!(of(&[], &planted(&[32 << 10, 1 << 30]), MOST_BYTES).sizes.main_bytes as u64, MOST_BYTES);
    assert_eq!(of(&[], &planted(&[]), MOST_BYTES).last.source, Source::Assumed);
    for wrong in
        [["--block-size", "63"], ["--block-size", "0"], ["--block-size", "8192"], ["--cache-size", "a lot"]]
    {
        let said = Choice::of(&params(&wrong), &usual, MOST_BYTES).unwrap_err().to_string();
        assert!(said.contains(wrong[0]) && !said.contains('\n'), "{said}");
    }
    let said = models(&["fibers".to_owned()]).err().unwrap().to_string();
    assert!(said.contains("fibers") && said.contains("threads"), "{said}");
}

#[test]
fn buffers_within_the_last_cache_are_told_and_flagged() {
    let analyzed = |main_bytes: usize, last_bytes: u64| {
        let mut rows = planted();
        let reported = ReportedCaches::planted(&[32 << 10, 32 << 20]);
        let mut choice = Choice::of(&params(&[]), &reported, MOST_BYTES).unwrap();
        choice.sizes.main_bytes = main_bytes;
        rows.facts.set(&CHOICE, choice);
        rows.facts.set(&DETECTED_CACHES, DetectedCaches { last_bytes: Some((last_bytes, last_bytes)) });
        analyze::analyze(&params(&[]), &rows, 1)
    };
    let small = analyzed(8 << 20, 5_000_000);
    assert_eq!(codes(&small), [SMALL_BUFFER.id]);
    for m in &small.metrics {
        let operation = m.params["operation"].to_string();
        let beyond = operation.ends_with("_local") || operation.ends_with("_neighbour");
        assert_eq!(!m.flags.is_empty(), beyond, "{m:?}");
    }
    let caption = &small.datasets[0].caption;
    assert!(caption.contains("last cache: 4.77 MiB detected; 32.0 MiB claimed"), "{caption}");
    let enough = analyzed(10_000_000, 5_000_000);
    assert!(enough.warnings.is_empty() && enough.metrics.iter().all(|m| m.flags.is_empty()));
}
