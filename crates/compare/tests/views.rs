//! Tests of the views of a comparison, as readers and parsers use them.
#![allow(clippy::unwrap_used, reason = "tests fail on surprises")]

mod machines;

use machines::{QUIET, known, metric, record};
use std::collections::BTreeSet;

use machmeter_compare::{Comparison, Options, compare, csv, html, markdown, text};
use machmeter_data::{Better, Fact, Unit};
use machmeter_stats::random::Random;

fn sample() -> Comparison {
    let size = |v| metric("memory.cache_size", Unit::Bytes, Better::Neither, v, "detected");
    let turn = |cpu: &str, v| {
        let mut m = known("ops.cost", Unit::Nanoseconds, Better::Lower, v);
        m.params.insert("cpu".to_owned(), cpu.into());
        m
    };
    let long = known("interactive.deadlines_met_of_all_tasks|odd", Unit::One, Better::Higher, 0.5);
    let mut a = record("a", vec![turn("0", 9.5), turn("1", 9.5), size(32768.0), long]);
    let mut b = record("b", vec![turn("0", 9.5), turn("1", 95.0), size(40960.0), turn("2", 1.0)]);
    a.run.tags.insert("name".to_owned(), "v6.17, \"old\" | été".to_owned());
    a.machine.before.set("kernel.release", Fact::known("6.17.9", "uname"));
    b.machine.before.set("kernel.release", Fact::known("6.18.44", "uname"));
    compare(&[a], &[b], &Options::default())
}

#[test]
fn the_table_is_ascii_short_and_keeps_to_its_width() {
    let mut r = Random::new(1);
    let mut runs = |changed| vec![QUIET.run(0, 449, changed, 1.5, &mut r)];
    let many = compare(&runs(0), &runs(200), &Options::default());
    assert!(many.counts.worse > 150);
    for c in [&sample(), &many] {
        let all = |t: &str| t.split_whitespace().map(str::to_owned).collect::<BTreeSet<_>>();
        let widest = all(&text(c, 400, false));
        for width in 20..=200 {
            let t = text(c, width, false);
            assert!(t.is_ascii() && (t.lines().count() <= 30 || width < 80), "{t}");
            // No figure, unit or name is cut; a single word may be longer than a line.
            let cut: Vec<String> = all(&t).into_iter().filter(|w| !widest.contains(w) && w != "..").collect();
            assert!(cut.is_empty(), "{width} columns: {cut:?}\n{t}");
            assert!(t.lines().all(|l| l.len() <= width || !l.trim().contains(' ')), "{width} columns:\n{t}");
        }
    }
    assert!(text(&many, 100, true).lines().count() > 449);
}

#[test]
fn the_table_says_what_was_found_first_and_what_was_not() {
    let t = text(&sample(), 100, false);
    let line = |s: &str| t.lines().find(|l| l.contains(s)).unwrap_or_else(|| panic!("no {s} in\n{t}"));
    assert!(
        t.lines().nth(2).unwrap().starts_with("WORSE     ops.cost 1 ")
            && line("ops.cost 1 ").contains("x10.0")
    );
    assert!(line("ops.cost 0 ").starts_with("unclear"));
    assert!(line("3 metrics").contains("1 worse, 2 unclear"));
    assert!(t.replace(char::is_whitespace, " ").contains("assumed, without earlier runs"));
    assert!(line("environment differs").contains("6.17.9 -> 6.18.44"));
    assert!(line("only in B").contains("cpu=2"));
    assert!(t.contains("Several runs a side measure what runs of this machine differ by"), "{t}");
    assert!(line("3 metrics").contains("1.00 % assumed"), "{t}");
    assert!(serde_json::to_string(&sample()).unwrap().contains("\"verdict\":\"worse\""));
}

#[test]
fn limits_beyond_the_tenfold_are_no_numbers() {
    let wild = || {
        let ci = machmeter_data::Interval::new(0.95, 1.0, 1e4, "rank");
        record(
            "w",
            vec![metric("noise.detour_rate", Unit::Hertz, Better::Lower, 100.0, "median").with_ci(ci)],
        )
    };
    let t = text(&compare(&[wild()], &[wild()], &Options::default()), 100, false);
    assert!(t.contains("(<-90 to >+900 %)"), "{t}");
}

#[test]
fn a_line_has_one_notation() {
    let of = |value: f64, half: f64| {
        let ci = machmeter_data::Interval::new(0.95, value - half, value + half, "rank");
        let m = metric("memory.latency", Unit::Nanoseconds, Better::Lower, value, "median").with_ci(ci);
        vec![record("r", vec![m])]
    };
    for (a, b) in [(100.0, 30.0), (100.0, 40.0), (100.0, 250.0), (100.0, 350.0), (100.0, 103.0)] {
        let t = text(&compare(&of(a, 0.1), &of(b, 0.1), &Options::default()), 120, false);
        let line = t.lines().nth(2).unwrap();
        let told = line.split(" ns ").last().unwrap();
        assert_eq!(told.contains('%'), !told.contains(['x', '/']), "{line}");
        assert!(told.contains(" to "), "{line}");
    }
}

#[test]
fn csv_has_as_many_fields_in_every_line() {
    let c = csv(&sample());
    let fields = |line: &str| {
        let mut quoted = false;
        1 + line
            .chars()
            .filter(|ch| {
                quoted ^= *ch == '"';
                *ch == ',' && !quoted
            })
            .count()
    };
    let counts: Vec<usize> = c.split_terminator("\r\n").map(fields).collect();
    assert_eq!(counts.len(), 1 + 3 + 2);
    assert!(counts.iter().all(|n| *n == counts[0]), "{counts:?}\n{c}");
}

#[test]
fn markdown_cells_cannot_break_the_table() {
    let m = markdown(&sample());
    let bars = |l: &str| l.replace("\\|", "").matches('|').count();
    assert!(m.lines().take_while(|l| l.starts_with('|')).all(|l| bars(l) == 6), "{m}");
    assert!(m.contains("**WORSE**"));
}

#[test]
fn the_page_has_a_line_a_row_and_no_markup_of_others() {
    let mut c = sample();
    c.a.label = "<script>alert(1)</script>".to_owned();
    let run = c.a.runs[0].id.clone();
    let page = html(&c, &[(run, "./a\"b.html".to_owned())].into());
    assert!(!page.contains("<script") && page.contains("&lt;script&gt;"));
    assert!(page.contains("<a href=\"./a&quot;b.html\">report of "), "{page}");
    assert_eq!(page.matches("<circle").count(), c.rows.iter().filter(|r| r.change_ci.is_some()).count());
    assert!(!page.contains("NaN") && page.contains("class=\"worse\""));
}
