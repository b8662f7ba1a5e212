use machmeter_data::trace::OPERATIONS;

use super::*;
use crate::engine::PARTS;
use crate::machine::Errors;
use crate::params::{Dialect, Line};
use crate::replay::{Call, Calls, Options, Thread, replay};

/// One message of a byte from rank 0 to rank 1, at the start.
fn message() -> Calls {
    let call = |name: &str, peer: i32| Call {
        operation: OPERATIONS.iter().position(|o| o.name == name).unwrap(),
        start_ns: 0,
        end_ns: 0,
        bytes: 1,
        peer,
        tag: 1,
        communicator: Some(0),
    };
    let thread = |rank, call| Thread { rank, calls: vec![call] };
    let threads = vec![thread(0, call("Send", 1)), thread(1, call("Recv", 0))];
    Calls { ranks: 2, threads, end_ns: vec![0, 0], ..Calls::default() }
}

/// o 1 us, L 100 us; the standard error of L over L.
fn link(relative: f64) -> OfLink {
    let cpu = Line { first_ps: 1_000_000, per_byte: 0 };
    let params = Params::simple(cpu, Line::default(), 100_000_000, u64::MAX, Dialect::Machmeter);
    let mut errors = Errors { range: 0, relative: [0.0; PARTS] };
    errors.relative[Part::Latency as usize] = relative;
    OfLink { name: "planted".to_owned(), params, errors: vec![errors], assumptions: Vec::new() }
}

#[test]
fn runs_differ_by_the_errors_of_costs() {
    let replay = replay(&message(), &Options::default()).unwrap();
    let times = |relative: f64, change| {
        let link = link(relative);
        let all = Prediction::new(&replay, &link, &Sheet::default(), None).unwrap();
        (0..400).map(|run| all.time(run, change, &|| false).unwrap() as f64 / 1e6).collect::<Vec<f64>>()
    };
    assert_eq!(times(0.0, None), [102.0; 400]);
    let drawn = times(0.05, None);
    let mean = drawn.iter().sum::<f64>() / 400.0;
    let deviation = (drawn.iter().map(|t| (t - mean).powi(2)).sum::<f64>() / 399.0).sqrt();
    // 5 us of 400: the mean is known to 0.25 us, the deviation to 4 %.
    assert!((mean - 102.0).abs() < 1.25 && (deviation - 5.0).abs() < 1.0, "{mean} +- {deviation} us");
    let twice = times(0.05, Some(Variation { part: Part::Latency, factor: 2.0 }));
    for (one, two) in drawn.iter().zip(twice) {
        assert!((2.0 * (one - 2.0) - (two - 2.0)).abs() < 1e-5, "the same draw: {one}, {two}");
    }
    let answer =
        Answer { value: 10.0, interval: Some((8.0, 11.0)), figures: [].into(), outside: Outside::default() };
    assert_eq!(
        [0.0, 1.959_964, -1.959_964, -100.0].map(|z| draw::price(&answer, z)),
        [10_000, 11_000, 8000, 0]
    );
}

#[test]
fn the_next_run_lies_between_the_39_others() {
    let times = |n: u64| Times::of((0..n).map(|i| (i, 1000 * ((i * 17) % n)))).unwrap();
    let of = |n| times(n).interval().map(|i| (i.low, i.high));
    assert_eq!((of(1), of(38)), (None, None));
    assert_eq!(of(39), Some((0.0, 38.0)));
    assert_eq!(of(79), Some((1.0, 77.0)));
    assert_eq!(times(39).median().1, 19_000);
    assert_eq!(times(4).median().1, 1000);
    assert!(Times::of([]).is_none());
}

#[test]
fn variations_have_a_parameter_and_a_factor() {
    let parsed = |text: &str| text.parse::<Variation>();
    assert_eq!(parsed("L=0.5x"), Ok(Variation { part: Part::Latency, factor: 0.5 }));
    assert_eq!(parsed("G=2x").map(|v| v.name()), Ok("G 2x".to_owned()));
    for wrong in ["", "L", "L=", "L=2", "L=-1x", "x=2x", "L=nanx", "L=1e9x"] {
        assert!(parsed(wrong).is_err(), "{wrong}");
    }
}
