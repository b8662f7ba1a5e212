//! Counts and levels in virtual time are those of a real run, and planted costs come back exactly.

use super::*;
use crate::graphs::{e_comm, noise_removal, rt_stap_easy};
use crate::tests::choices;

fn stap(g: Graph) -> Graph {
    rt_stap_easy::graph(g, &rt_stap_easy::Parameters { intervals: 4, ..Default::default() }).0
}
fn modem(g: Graph) -> Graph {
    e_comm::graph(g, &e_comm::Parameters { frames: 8, ..Default::default() }).0
}
fn tight_modem(g: Graph) -> Graph {
    e_comm::graph(g, &e_comm::Parameters { frames: 8, queue_frames: 2, ..Default::default() }).0
}
fn speech(g: Graph) -> Graph {
    noise_removal::graph(g, &noise_removal::Parameters { frames: 120, ..Default::default() }).0
}

/// Lines that tell each box and name from the others, in whole ns.
fn planted(boxes: usize) -> Costs {
    let line = |i: usize| Cost { points: vec![(0.0, (10 + i) as f64), (1.0, (11 + i + i % 7) as f64)] };
    Costs { boxes: (0..boxes).map(line).collect(), names: (0..Name::ALL.len()).map(line).collect() }
}

#[test]
fn counts_and_levels_are_those_of_a_real_run() {
    let graphs = [("stap", stap as fn(Graph) -> Graph), ("modem", modem), ("speech", speech)];
    for (name, build) in graphs {
        let new = |is_fused| build(Graph::new(name).fused(is_fused));
        let choices = [1, 4, 16].into_iter().flat_map(choices);
        for (is_fused, choice) in choices.flat_map(|c| [(false, c), (true, c)]) {
            let tape = Tape::of(new(is_fused)).unwrap();
            let boxes = Topology::of(&new(is_fused)).boxes.len();
            let found = forecast(new(is_fused), choice, &planted(boxes), &tape).unwrap();
            let mut real = Program::new(new(is_fused), choice).unwrap();
            real.run(Sampling::Always, u64::MAX, 1);
            let called: Vec<u64> = real.log().sums().all().iter().map(|s| s.called).collect();
            let queues: Vec<_> = real.queues().map(|(n, a, b, c)| (n.to_owned(), a, b, c)).collect();
            assert_eq!(found.called, called, "{name} {is_fused} {choice:?}");
            assert_eq!(found.queues, queues, "{name} {is_fused} {choice:?}");
            assert_eq!(found.copied_bytes, real.copied_bytes(), "{name} {is_fused} {choice:?}");
        }
    }
}

#[test]
fn a_tape_holds_for_other_sizes_of_queues() {
    let tape = Tape::of(modem(Graph::new("modem"))).unwrap();
    let costs = planted(Topology::of(&modem(Graph::new("modem"))).boxes.len());
    let choice = Choice { granularity: 16, ..Choice::FAST };
    let wide = forecast(modem(Graph::new("modem")), choice, &costs, &tape).unwrap();
    let tight = forecast(tight_modem(Graph::new("modem")), choice, &costs, &tape).unwrap();
    let mut real = Program::new(tight_modem(Graph::new("modem")), choice).unwrap();
    real.run(Sampling::Always, u64::MAX, 1);
    let most: Vec<u64> = real.queues().map(|q| q.1).collect();
    assert_eq!(tight.queues.iter().map(|q| q.1).collect::<Vec<_>>(), most);
    assert!(tight.queues.iter().zip(&wide.queues).any(|(t, w)| t.1 < w.1), "{tight:?} {wide:?}");
}

#[test]
fn planted_costs_come_back_exactly() {
    // Seen by firings: static boxes fire once an iteration, and each costs its own line.
    let new = || stap(Graph::new("stap"));
    let (tape, boxes) = (Tape::of(new()).unwrap(), Topology::of(&new()).boxes.len());
    let costs = planted(boxes);
    let at =
        |granularity: u32| forecast(new(), Choice { granularity, ..Choice::FAST }, &costs, &tape).unwrap();
    // Four intervals, one apply each; at a granularity of four all in one apply.
    let (one, two, four) = (at(1), at(2), at(4));
    assert_eq!((one.called[0], four.called[0]), (4 * boxes as u64, boxes as u64));
    let fixed: f64 = costs.boxes.iter().map(|b| b.at(0)).sum();
    assert!((one.boxes_ns - four.boxes_ns - 3.0 * fixed).abs() < 1e-6, "{one:?} {four:?} {fixed}");
    // The line through what was charged is the line that was planted.
    for cost in &costs.boxes {
        let load = |load| Load { load, calls: 10 - load, mean_ns: cost.at(load) };
        for loads in [vec![load(1), load(4)], vec![load(1), load(4), load(7)]] {
            let found = Cost::through(&loads);
            assert!([0, 1, 2, 6, 50].iter().all(|l| (found.at(*l) - cost.at(*l)).abs() < 1e-9), "{found:?}");
        }
    }
    let each = |i: usize| two.called[i] as f64 * costs.names[i].at(2);
    let truth_ns = (1..Name::ALL.len()).map(each).sum::<f64>();
    assert!((two.kernel_ns - truth_ns).abs() < 1e-6 && truth_ns > 0.0, "{two:?} {truth_ns}");
}

#[test]
fn costs_are_never_below_zero_and_one_load_is_proportional() {
    let load = |load, calls, mean_ns| Load { load, calls, mean_ns };
    let at = |loads: &[Load], x| Cost::through(loads).at(x);
    assert!((at(&[load(4, 1, 40.0)], 6) - 60.0).abs() < 1e-12);
    assert!((at(&[load(0, 1, 7.0)], 5) - 7.0).abs() < 1e-12 && at(&[], 3) < 1e-12);
    assert!((Cost::level(3.0).at(99) - 3.0).abs() < 1e-12);
    // Between measured loads by their own line; equal loads count by their calls.
    let bent = [load(1, 1, 10.0), load(4, 1, 60.0), load(4, 3, 20.0), load(8, 1, 130.0)];
    assert!((at(&bent, 4) - 30.0).abs() < 1e-12 && (at(&bent, 6) - 80.0).abs() < 1e-12);
    let falling = [load(1, 1, 9.0), load(2, 1, 3.0)];
    assert!(at(&falling, 3) < 1e-12 && (at(&falling, 0) - 15.0).abs() < 1e-12);
}

#[test]
fn what_virtual_time_cannot_stand_for_is_refused() {
    let costs = planted(1);
    let text = |e: Result<Forecast, FlowError>| e.unwrap_err().to_string();
    let why = text(forecast(stap(Graph::new("stap")), Choice::FAST, &costs, &Tape::default()));
    assert!(why.contains("another graph"), "{why}");
    let new = || modem(Graph::new("modem"));
    let boxes = Topology::of(&new()).boxes.len();
    let short = Tape(vec![Vec::new(); boxes]);
    let why = text(forecast(new(), Choice::FAST, &planted(boxes), &short));
    assert!(why.contains("more values"), "{why}");
    let mut periodic = Graph::new("periodic");
    periodic.schedule("clock");
    periodic.every(1_000_000);
    periodic.iterations(2);
    let tick = periodic.edge::<u8>("tick");
    periodic.add(
        "from",
        crate::boxes::Blocks::one_to_one(1, 1, |x: &[u8], y: &mut [u8]| y.copy_from_slice(x)),
        (tick.input(1), tick.output(1)),
    );
    let why = Tape::of(periodic).unwrap_err().to_string();
    assert!(why.contains("schedule clock") && why.contains("period"), "{why}");
}
