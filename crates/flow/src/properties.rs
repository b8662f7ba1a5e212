//! Random graphs: those that can run keep every edge within its bounds, those that cannot are refused with the cycle; random segments.

use std::cell::Cell;
use std::rc::Rc;

use machmeter_stats::random::Random;

use crate::boxes::function;
use crate::tests::{choices, reference, segments};
use crate::{Edge, Ended, FlowError, Graph, In, Many, Out, Outcome, Primitive, Program, Sampling};

/// Wrong tokens, and firings.
type Counts = (Cell<u64>, Cell<u64>);
type Ports = (Vec<In<u32>>, Vec<Out<u32>>);

/// Sees that each input counts up from 0, and counts up on each output from these.
fn counter(inputs: usize, mut written: Vec<u32>, counts: Rc<Counts>) -> impl Primitive<Ports = Ports> {
    let mut read = vec![0; inputs];
    function::<Ports, _>(move |(mut x, mut y): (Many<'_, In<u32>>, Many<'_, Out<u32>>)| {
        for (i, next) in read.iter_mut().enumerate() {
            for token in x.at(i) {
                counts.0.set(counts.0.get() + u64::from(token != next));
                *next += 1;
            }
        }
        for (i, next) in written.iter_mut().enumerate() {
            for token in y.at(i) {
                (*token, *next) = (*next, *next + 1);
            }
        }
        counts.1.set(counts.1.get() + 1);
        Outcome::Done
    })
}

struct Arc {
    from: usize,
    to: usize,
    gives: u32,
    takes: u32,
    initial: u32,
}

/// A connected graph whose boxes fire so often an iteration, with cycles that have tokens enough.
fn arcs(random: &mut Random) -> (usize, Vec<Arc>) {
    let boxes = 2 + random.below(8);
    let firings: Vec<u32> = (0..boxes).map(|_| 1 + random.below(6) as u32).collect();
    let mut all = Vec::new();
    let mut connect = |random: &mut Random, from: usize, to: usize| {
        let times = 1 + random.below(3) as u32;
        let (gives, takes) = (times * firings[to], times * firings[from]);
        let initial =
            if from >= to { takes * firings[to] } else { (random.below(3) * random.below(5)) as u32 };
        all.push(Arc { from, to, gives, takes, initial });
    };
    for to in 1..boxes {
        let from = random.below(to);
        connect(random, from, to);
    }
    for _ in 0..random.below(5) {
        let (from, to) = (random.below(boxes), random.below(boxes));
        connect(random, from, to);
    }
    (boxes, all)
}

fn graph(boxes: usize, arcs: &[Arc], counts: &Rc<Counts>) -> Graph {
    let mut g = Graph::new("random");
    g.schedule("all");
    g.iterations(20);
    let edges: Vec<Edge<u32>> = arcs
        .iter()
        .enumerate()
        .map(|(i, a)| g.delayed(&format!("e{i}"), &(0..a.initial).collect::<Vec<_>>()))
        .collect();
    for b in 0..boxes {
        let (mut inputs, mut outputs, mut written) = (Vec::new(), Vec::new(), Vec::new());
        for (a, e) in arcs.iter().zip(&edges) {
            if a.to == b {
                inputs.push(e.input(a.takes));
            }
            if a.from == b {
                outputs.push(e.output(a.gives));
                written.push(a.initial);
            }
        }
        let counter = counter(inputs.len(), written, Rc::clone(counts));
        g.add(&format!("b{b}"), counter, (inputs, outputs));
    }
    g
}

#[test]
fn consistent_graphs_run_within_their_bounds_and_others_are_refused_with_the_cycle() {
    let mut random = Random::new(7);
    let (mut inconsistent, mut deadlocked) = (0, 0);
    for round in 0..1_000 {
        let (boxes, mut arcs) = arcs(&mut random);
        let counts = Rc::<Counts>::default();
        let choice = choices(1 + random.below(9) as u32)[round % 4];
        let mut program = Program::new(graph(boxes, &arcs, &counts), choice).unwrap();
        assert_eq!(program.run(Sampling::Never, u64::MAX, 1), Ended::Over);
        assert!(counts.1.get() > 0 && counts.0.get() == 0, "round {round}: {} wrong tokens", counts.0.get());
        // The arcs after the tree close cycles: one other rate contradicts it.
        if arcs.len() >= boxes {
            arcs[boxes - 1].gives += 1;
            match Program::new(graph(boxes, &arcs, &counts), choice) {
                Err(FlowError::Inconsistent(_, cycle)) => assert!(cycle.contains(" of e"), "{cycle}"),
                other => panic!("round {round}: {:?}", other.err()),
            }
            arcs[boxes - 1].gives -= 1;
            inconsistent += 1;
        }
        if let Some(back) = arcs.iter_mut().find(|a| a.from >= a.to) {
            back.initial = back.takes - 1;
            let (b, to) = (format!("b{}", back.from), format!("b{}", back.to));
            match Program::new(graph(boxes, &arcs, &counts), choice) {
                Err(FlowError::Deadlock(_, cycle)) => {
                    assert!(cycle.contains(&b) && cycle.contains(&to), "{cycle}");
                    deadlocked += 1;
                }
                // Another way between the two may have tokens enough.
                Ok(_) => {}
                Err(other) => panic!("round {round}: {other}"),
            }
        }
    }
    assert!(inconsistent > 500 && deadlocked > 200, "{inconsistent} {deadlocked}");
}

#[test]
fn random_segments_on_exclusive_branches_are_those_of_a_single_branch() {
    let mut random = Random::new(11);
    for round in 0..10_000 {
        let n = random.below(12);
        let mut length = || {
            let most = if random.below(100) < 20 { 1 } else { 1 << random.below(7) };
            random.below(most) as u32
        };
        let lengths: Vec<u32> = (0..n).map(|_| length()).collect();
        let choice = choices(1 + random.below(6) as u32)[round % 4];
        assert!(segments(&lengths, choice) == reference(&lengths), "{lengths:?} {choice:?}");
    }
}
