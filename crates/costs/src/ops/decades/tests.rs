//! Howell's table from planted costs.

use machmeter_engine::cost::{Kind, Proof, Row, Rows};

use super::{Analysis, Decades, ON_FILES, OPERATIONS, PART, Params, Shape, Unit, analyze, elsewhere, row_of};
use crate::testing::params;

fn ladder(a: &Analysis) -> &Decades {
    let Shape::Decades(d) = &a.datasets[0].shape else { panic!("a ladder") };
    d
}

/// All operations at 25 ns.
fn all() -> Rows {
    planted(&OPERATIONS.map(|o| (o.0, 25.0)))
}

fn planted(costs_ns: &[(&str, f64)]) -> Rows {
    let row = |(name, ns): &(&str, f64)| {
        let own = || Row::new(PART.name, name, Kind::Throughput);
        let ticks = |turns: f64| 5_000 + (turns * ns) as u64;
        let pairs = (0..20).map(|_| (ticks(1_000.0), ticks(2_000.0)));
        elsewhere(name).map_or_else(own, |(_, row)| row).planted(1_000, pairs)
    };
    Rows::in_nanoseconds(costs_ns.iter().map(row).collect())
}

#[test]
fn truncated_decades_bring_the_two_tables_of_1998_together() {
    // The first table says 328, 69, 184 and 11 ns; the second -6, -7, -6, -7.
    let rows = planted(&[
        ("read_main_8000", 328.0),
        ("read_cache_8000", 69.0),
        ("write_main_8000", 184.0),
        ("write_cache_8000", 11.0),
    ]);
    let truncated = analyze(&params(&["--truncate-decades"]), &rows, 1).summary.lines.remove(0).lines;
    let lines = [
        "rd main mem 8000 : -6",
        "rd cache mem 8000 : -7",
        "wr main mem 8000 : -6",
        "wr cache mem 8000 : -7",
    ];
    assert_eq!(truncated[2..6], lines.map(|line| format!("{line:>25}")));
    let exact = analyze(&params(&[]), &rows, 1);
    assert!(exact.summary.lines.is_empty(), "the ladder says it");
    assert_eq!(
        ladder(&exact).rows[3].decade(Unit::Nanoseconds),
        Some((-8, false)),
        "11 ns are nearest to ten"
    );
}

#[test]
fn every_operation_of_1998_has_its_row_and_unknown_ones_are_left_out_with_a_reason() {
    let mut rows = all();
    rows.rows[0].refused = Some("/full: no space left on device".to_owned());
    let a = analyze(&params(&[]), &rows, 1);
    assert_eq!(a.metrics.len(), 12);
    let first = &a.metrics[0];
    assert_eq!((first.value, first.why.as_deref()), (None, Some("/full: no space left on device")));
    let d = ladder(&a);
    assert_eq!(d.rows.len(), 11, "what is not known has no place on the ladder");
    assert!(d.rows.iter().all(|r| r.name != "fopen"));
}

#[test]
fn operations_without_a_figure_are_named_on_the_page_even_if_there_is_no_other() {
    let mut rows = all();
    for row in &mut rows.rows {
        let is_on_files = ON_FILES.contains(&row.operation.as_str());
        row.refused = Some(if is_on_files { "/full: no space" } else { "too little memory" }.to_owned());
    }
    let told = |rows: &Rows| -> Vec<(String, String)> {
        analyze(&params(&[]), rows, 1).warnings.into_iter().map(|w| (w.code, w.text)).collect()
    };
    let none = analyze(&params(&["--truncate-decades"]), &rows, 1);
    assert!(none.datasets.is_empty() && none.summary.lines.is_empty() && none.metrics.len() == 12);
    let warnings = told(&rows);
    let text = "fopen, fprintf, printf, fclose: /full: no space";
    assert_eq!(warnings[0], ("W442".to_owned(), text.to_owned()));
    assert!(warnings[1].0 == "W446" && warnings.len() == 2);
    let told_of = |r: &Row| warnings.iter().any(|w| w.1.contains(&r.operation));
    assert!(rows.rows.iter().all(told_of), "{warnings:?}");
    // A stream whose witness saw less, and a word of memory that was not written, have a figure no more than those.
    let mut rows = all();
    for i in [0, 7] {
        rows.rows[i].proof = Some(Proof::new("seen", 9, 8));
    }
    let warnings = told(&rows);
    let text = "fopen, write_cache_8000: seen: 8 seen, 9 expected";
    assert_eq!(warnings, [("W446".to_owned(), text.to_owned())]);
    assert!(told(&all()).is_empty());
}

#[test]
fn what_another_part_prices_is_read_there() {
    let mut rows = planted(&[("fopen", 600.0), ("thr_create", 19_000.0), ("daxpy100", 28.0)]);
    for row in &mut rows.rows[1..] {
        row.part = "another".to_owned();
    }
    let a = analyze(&params(&[]), &rows, 1);
    assert_eq!(a.metrics.len(), 1, "one figure for one thing");
    assert_eq!(a.metrics[0].key(), "ops.cost{kind=throughput,operation=fopen}");
    let names: Vec<&str> = ladder(&a).rows.iter().map(|r| r.name.as_str()).collect();
    assert_eq!(names, ["fopen", "thr_create", "daxpy100"]);
    assert!(row_of(&rows, "daxpy1000").is_none());
    let measures = |words: &[&str]| params::<Params>(words).measures("processes");
    assert!(measures(&[]) && !measures(&["--parts", "decades"]));
}
