//! The views of one comparison, checked for what a reader and a parser rely on.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests fail and print their tables")]

#[allow(dead_code, reason = "shared by the tests of this folder, each of which uses a part")]
mod machines;

use machines::{cost, metric, record};
use machmeter_compare::{Comparison, Options, compare, csv, markdown, text};
use machmeter_data::{Better, Fact, Interval, Metric, Unit};
use machmeter_stats::random::Random;

fn turn(cpu: &str, level: f64, seed: u64) -> Metric {
    let mut r = Random::new(seed);
    let blocks: Vec<f64> = (0..20).map(|_| level * (0.01 * r.normal()).exp()).collect();
    let mut m = cost(&blocks).with_ci(Interval::new(0.95, 0.98 * level, 1.02 * level, "rank"));
    m.params.insert("cpu".to_owned(), cpu.into());
    m
}

fn sample() -> Comparison {
    let size = |v| metric("memory.cache_size", Unit::Bytes, Better::Neither, v, "detected");
    let long =
        |v| metric("interactive.deadlines_met_of_all_tasks|odd", Unit::One, Better::Higher, v, "share");
    let mut a = record("a", vec![turn("0", 9.5, 1), turn("1", 9.5, 2), size(32768.0), long(0.5)]);
    let mut b = record("b", vec![turn("0", 9.5, 3), turn("1", 14.0, 4), size(49152.0), turn("2", 1.0, 5)]);
    a.run.tags.insert("name".to_owned(), "v6.17, \"old\" | été".to_owned());
    a.machine.before.set("kernel.release", Fact::known("6.17.9", "uname"));
    b.machine.before.set("kernel.release", Fact::known("6.18.44", "uname"));
    compare(&a, &b, &Options::default())
}

#[test]
fn the_table_is_ascii_and_keeps_to_its_width() {
    for width in [0, 72, 78, 80, 120] {
        let t = text(&sample(), width);
        assert!(t.is_ascii());
        assert!(t.lines().all(|l| l.len() <= width.max(72)), "{t}");
    }
}

#[test]
fn the_table_says_what_was_found_and_what_was_not() {
    let t = text(&sample(), 78);
    println!("{t}");
    let line = |s: &str| t.lines().find(|l| l.contains(s)).unwrap_or_else(|| panic!("no {s} in\n{t}"));
    assert!(line(" cpu=0").contains('~') && line(" cpu=0").contains("(>= "));
    assert!(line(" cpu=1").contains("+47.") && line(" cpu=1").contains("*** WORSE"));
    assert!(line("3 metrics").contains("1 worse, 1 same, 1 unclear"));
    assert!(line("environment differs").contains("6.17.9 -> 6.18.44"));
    assert!(line("only in B").contains("cpu=2"));
    assert!(serde_json::to_string(&sample()).unwrap().contains("\"verdict\":\"worse\""));
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
