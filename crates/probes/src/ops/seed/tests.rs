//! The table of the seed from planted costs.

use machmeter_engine::cost::{Kind, Pair, Row, Rows};

use super::{OPERATIONS, PART, Params, Shape, Unit, analyze};

fn params(words: &[&str]) -> Params {
    use clap::{Args, Command, FromArgMatches};
    let command = Params::augment_args(Command::new("ops").no_binary_name(true));
    Params::from_arg_matches(&command.try_get_matches_from(words).unwrap()).unwrap()
}

fn planted(costs_ns: &[(&str, f64)]) -> Rows {
    let row = |(name, ns): &(&str, f64)| {
        let mut row = Row::new(PART.name, name, Kind::Throughput);
        (row.short_turns, row.long_turns) = (1_000, 2_000);
        row.pairs = (0..20)
            .map(|i| Pair {
                at_ns: f64::from(i),
                short_ticks: 5_000 + (1_000.0 * ns) as u64,
                long_ticks: 5_000 + (2_000.0 * ns) as u64,
                ..Pair::default()
            })
            .collect();
        row
    };
    Rows { tick_hz: 1e9, step_ticks: 1, rows: costs_ns.iter().map(row).collect(), ..Rows::default() }
}

#[test]
fn the_seeds_rounding_brings_its_two_tables_together() {
    // Table A says 328, 69, 184 and 11 ns; table B -6, -7, -6, -7.
    let rows = planted(&[
        ("read_main_8000", 328.0),
        ("read_cache_8000", 69.0),
        ("write_main_8000", 184.0),
        ("write_cache_8000", 11.0),
    ]);
    let seed = analyze(&params(&["--seed-rounding"]), &rows, 1).summary.lines.remove(0).lines;
    assert_eq!(seed[2], "    rd main mem 8000 : -6");
    assert_eq!(seed[3], "   rd cache mem 8000 : -7");
    assert_eq!(seed[4], "    wr main mem 8000 : -6");
    assert_eq!(seed[5], "   wr cache mem 8000 : -7");
    let exact = analyze(&params(&[]), &rows, 1);
    assert!(exact.summary.lines.is_empty(), "the ladder says it");
    let Shape::Decades(d) = &exact.datasets[0].shape else { panic!("a ladder") };
    assert_eq!(d.rows[3].decade(Unit::Nanoseconds), Some((-8, false)), "11 ns are nearest to ten");
}

#[test]
fn every_operation_of_the_seed_has_its_row_and_unknown_ones_are_left_out_with_a_reason() {
    let all: Vec<(&str, f64)> = OPERATIONS.iter().map(|o| (o.0, 25.0)).collect();
    let mut rows = planted(&all);
    rows.rows[0].refused = Some("/full: no space left on device".to_owned());
    let a = analyze(&params(&[]), &rows, 1);
    assert_eq!(a.metrics.len(), 12);
    assert_eq!(
        (a.metrics[0].value, a.metrics[0].why.as_deref()),
        (None, Some("/full: no space left on device"))
    );
    let Shape::Decades(d) = &a.datasets[0].shape else { panic!("a ladder") };
    assert_eq!(d.rows.len(), 11, "what is not known has no place on the ladder");
    assert!(d.rows.iter().all(|r| r.name != "fopen"));
}
