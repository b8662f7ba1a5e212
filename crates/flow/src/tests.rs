//! Small graphs on all kernels: the same tokens, bit for bit.

use std::cell::RefCell;
use std::rc::Rc;

use crate::boxes::{Blocks, Stage, function};
use crate::timer::{Off, On, Timer};
use crate::{
    Choice, Ended, Graph, In, Lent, Many, Name, Out, Outcome, Primitive, Program, Queues, ReadPort, Reader,
    Ready, Sampling, WritePort, Writer,
};

/// Counts up, for so many firings.
fn count(end: u32) -> impl Primitive<Ports = Out<u32>> {
    let mut next = 0;
    function::<Out<u32>, _>(move |y: &mut [u32]| {
        if next >= end {
            return Outcome::Over;
        }
        for y in y {
            *y = next;
            next += 1;
        }
        Outcome::Done
    })
}

fn sum(by: usize) -> impl Stage<u32, u32> {
    Blocks::one_to_one(by, 1, |x: &[u32], y: &mut [u32]| y[0] = x.iter().copied().fold(0, u32::wrapping_add))
}

type Seen = Rc<RefCell<Vec<u32>>>;

fn keep(seen: Seen) -> impl Primitive<Ports = In<u32>> {
    function::<In<u32>, _>(move |x: &[u32]| {
        seen.borrow_mut().extend_from_slice(x);
        Outcome::Done
    })
}

/// Reads queues as it likes: odd numbers of tokens.
fn nibble(seen: Seen) -> impl Primitive<Ports = ReadPort<u32>> {
    let mut turn = 0;
    function::<ReadPort<u32>, _>(move |mut x: Reader<'_, u32>| {
        turn += 1;
        let n = (1 + turn * 7 % 13).min(x.available());
        if let Some(tokens) = x.read(n) {
            seen.borrow_mut().extend_from_slice(tokens);
            x.consume(n);
        }
        Outcome::Done
    })
}

pub(crate) fn choices(granularity: u32) -> [Choice; 4] {
    let [copying, mirrored] = [Queues::Copying, Queues::Mirrored]
        .map(|queues| [Ready::Heap, Ready::Bitmap].map(|ready| Choice { queues, ready, granularity }));
    [copying[0], copying[1], mirrored[0], mirrored[1]]
}

fn run(graph: Graph, choice: Choice) -> Program {
    let mut program = Program::new(graph, choice).unwrap();
    let sampling = if choice.granularity.is_multiple_of(2) { Sampling::Always } else { Sampling::Never };
    assert_eq!(program.run(sampling, 1_000_000, 1), Ended::Over);
    assert_eq!(program.broken_laws(), [""; 0], "{choice:?}");
    program
}

#[test]
fn queues_hand_on_all_tokens_in_order_to_all_who_read_them() {
    for granularity in [1, 2, 5, 64] {
        for choice in choices(granularity) {
            let (one, other) = (Seen::default(), Seen::default());
            let mut g = Graph::new("fan-out");
            g.schedule("source");
            g.iterations(30_000 / 12);
            let (raw, q) = (g.edge("raw"), g.queue("q", 100));
            g.add("count", count(u32::MAX), raw.output(12));
            g.add("sum", sum(3), (raw.input(3), q.output(1)));
            g.schedule("pairs");
            let pairs = g.edge("pairs");
            g.add("add", sum(2), (q.input(2), pairs.output(1)));
            g.add("keep", keep(Rc::clone(&one)), pairs.input(1));
            g.schedule("nibble");
            g.add("nibble", nibble(Rc::clone(&other)), q.reader(1));
            assert_eq!((g.box_count(), g.schedule_count(), g.queue_count()), (5, 3, 1));
            let program = run(g, choice);
            let truth: Vec<u32> = (0..30_000 / 12 * 4_u32).map(|i| 9 * i + 3).collect();
            assert!(*other.borrow() == truth, "{choice:?}");
            let truth: Vec<u32> = truth.chunks_exact(2).map(|p| p[0] + p[1]).collect();
            assert!(*one.borrow() == truth, "{choice:?}");
            assert_eq!(program.copied_bytes() == 0, choice.queues == Queues::Mirrored, "{choice:?}");
            assert_eq!(program.queues().next().map(|q| q.2), Some(0));
        }
    }
}

/// Each token changes what becomes of the next.
fn follow(mut last: u32) -> impl Stage<u32, u32> {
    Blocks::one_to_one(1, 1, move |x: &[u32], y: &mut [u32]| {
        last = last.wrapping_mul(31).wrapping_add(x[0]);
        y[0] = last;
    })
}

#[test]
fn members_of_a_chain_give_what_the_table_gives_whatever_they_get_at_once() {
    // One token, tiles of 16, and tokens behind them.
    for granularity in [1, 2, 15, 16, 17, 53] {
        let given = |is_fused| {
            let seen = Seen::default();
            let mut g = Graph::new("followers").fused(is_fused);
            let (x, y) = (g.edge("x"), g.edge("y"));
            g.add("count", count(3 * granularity), x.output(1));
            crate::chain!(g, x => "a" follow(1), "b" follow(2), "c" follow(3) => y, 0);
            g.add("keep", keep(Rc::clone(&seen)), y.input(1));
            assert_eq!(g.box_count(), 5);
            run(g, Choice { granularity, ..Choice::FAST });
            seen.take()
        };
        let fused = given(true);
        assert_eq!((fused.len() as u32, &fused), (3 * granularity, &given(false)));
    }
}

#[test]
fn cycles_with_tokens_at_the_beginning_run_iteration_by_iteration() {
    for choice in choices(6) {
        let seen = Seen::default();
        let mut g = Graph::new("accumulator");
        let (x, y) = (g.edge("x"), g.delayed("y", &[100]));
        g.add("count", count(600), x.output(3));
        // Adds what it gave last.
        let add = |x: &[u32], last: &[u32], y: &mut [u32]| y[0] = x[0].wrapping_add(last[0]);
        g.add("accumulate", Blocks::two_to_one(1, 1, add), (x.input(1), y.input(1), y.output(1)));
        g.add("keep", keep(Rc::clone(&seen)), y.input(1));
        let program = run(g, choice);
        let seen = seen.borrow();
        // What is read is what was there before.
        let truth: Vec<u32> = (0..seen.len() as u32).map(|i| 100 + (0..i).sum::<u32>()).collect();
        assert_eq!((seen.len(), &*seen), (600, &truth));
        let sums = program.log().sums();
        let called = |n: Name| sums.of(n as u8).called;
        assert_eq!(called(Name::RunSchedPass), called(Name::Apply) + called(Name::RunSchedule));
        assert_eq!(sums.raw_ticks(), sums.wall_ticks);
    }
}

/// Sends segments to branches in turn: segment `i` has `lengths[i]` tokens `1000 i, 1000 i + 1, ...`.
fn distribute(lengths: Vec<u32>) -> impl Primitive<Ports = Vec<WritePort<u32>>> {
    let (mut segment, mut begun) = (0, None);
    function::<Vec<WritePort<u32>>, _>(move |mut branches: Many<'_, WritePort<u32>>| {
        let Some(length) = lengths.get(segment).copied() else { return Outcome::Over };
        let branch = (segment * 7 / 3) % branches.len();
        let mut y: Writer<'_, u32> = branches.at(branch);
        let sent = match begun {
            Some(sent) => sent,
            None if y.segment_begin() => 0,
            None => return Outcome::Wait,
        };
        let n = (length - sent).min(1 + sent % 5).min(y.room() as u32);
        if let Some(room) = y.write(n as usize) {
            let first = 1_000 * segment as u32 + sent;
            room.iter_mut().zip(first..).for_each(|(y, i)| *y = i);
        }
        y.produce(n as usize);
        begun = Some(sent + n);
        if sent + n == length {
            y.segment_end();
            (begun, segment) = (None, segment + 1);
        }
        Outcome::Done
    })
}

/// Adds a state that all branches share to sums of two, and counts segments and tokens in it.
struct Branch {
    shared: Lent<u32>,
    first: bool,
}
impl Primitive for Branch {
    type Ports = (In<u32>, Out<u32>);
    fn apply(&mut self, (x, y): (&[u32], &mut [u32])) -> Outcome {
        let mut shared = self.shared.borrow();
        for (x, y) in x.chunks_exact(2).zip(y) {
            *shared = shared.wrapping_mul(31).wrapping_add(x[0] + x[1] + u32::from(self.first));
            *y = *shared;
            self.first = false;
        }
        Outcome::Done
    }
    fn reset(&mut self) {
        self.first = true;
    }
}

fn merge(seen: Seen) -> impl Primitive<Ports = Vec<ReadPort<u32>>> {
    function::<Vec<ReadPort<u32>>, _>(move |mut branches: Many<'_, ReadPort<u32>>| {
        for i in 0..branches.len() {
            let mut x = branches.at(i);
            let n = x.available();
            if let Some(tokens) = x.read(n) {
                seen.borrow_mut().extend_from_slice(tokens);
            }
            x.consume(n);
            if x.in_segment() && x.is_ended() {
                seen.borrow_mut().push(u32::MAX);
                x.next_segment();
            }
        }
        Outcome::Done
    })
}

pub(crate) fn segments(lengths: &[u32], choice: Choice) -> (Vec<u32>, u64) {
    let seen = Seen::default();
    let mut g = Graph::new("exclusive");
    g.schedule("distribute");
    let inputs: Vec<_> = (0..3).map(|i| g.segmented::<u32>(&format!("in{i}"), 50)).collect();
    let outputs: Vec<_> = (0..3).map(|i| g.segmented::<u32>(&format!("out{i}"), 50)).collect();
    g.add("distribute", distribute(lengths.to_vec()), inputs.iter().map(|q| q.writer(1)).collect());
    let family: Vec<_> = inputs.iter().copied().zip(outputs.iter().copied()).collect();
    let group = g.exclusive(&family);
    let shared = g.state(7_u32);
    for (i, (x, y)) in family.iter().enumerate() {
        g.schedule(&format!("branch{i}"));
        g.add("branch", Branch { shared: group.lend(&shared, i), first: false }, (x.input(2), y.output(1)));
    }
    g.schedule("merge");
    g.add("merge", merge(Rc::clone(&seen)), outputs.iter().map(|q| q.reader(1)).collect());
    g.reading_any();
    let program = run(g, choice);
    let discarded = program.queues().map(|q| q.3).sum();
    let left: u64 = program.queues().map(|q| q.2).sum();
    assert_eq!(left, 0, "{lengths:?} {choice:?}");
    (seen.take(), discarded)
}

/// What a single branch would do.
pub(crate) fn reference(lengths: &[u32]) -> (Vec<u32>, u64) {
    let (mut seen, mut shared, mut discarded) = (Vec::new(), 7_u32, 0);
    for (i, length) in lengths.iter().enumerate() {
        let tokens: Vec<u32> = (0..*length).map(|k| 1_000 * i as u32 + k).collect();
        for (k, pair) in tokens.chunks_exact(2).enumerate() {
            shared = shared.wrapping_mul(31).wrapping_add(pair[0] + pair[1] + u32::from(k == 0));
            seen.push(shared);
        }
        discarded += u64::from(length % 2);
        seen.push(u32::MAX);
    }
    (seen, discarded)
}

#[test]
fn exclusive_branches_do_what_a_single_one_would() {
    for choice in choices(3).into_iter().chain(choices(8)) {
        for lengths in [vec![], vec![0], vec![0, 0, 0, 0], vec![4, 4, 4], vec![1, 200, 0, 7, 33, 2, 0, 0, 99]]
        {
            assert_eq!(segments(&lengths, choice), reference(&lengths), "{lengths:?} {choice:?}");
        }
    }
}

#[test]
fn the_timer_books_all_ticks_and_counts_each_event_once() {
    let names = &["outer", "inner"];
    let log = crate::timer::Log::new(names);
    let calibration = log.calibrate();
    assert!(calibration.own.mean > 0.0 && calibration.pair.mean > calibration.own.mean, "{calibration:?}");
    log.start();
    for _ in 0..10_000 {
        On::enter(&log, 0);
        On::enter(&log, 1);
        On::leave(&log);
        On::enter(&log, 1);
        On::turn(&log, 0);
        On::leave(&log);
        Off::enter(&log, 1);
    }
    log.stop();
    let sums = log.sums();
    assert_eq!((sums.of(0).called, sums.of(1).called), (20_000, 20_000));
    assert_eq!((sums.of(0).slices, sums.of(1).slices), (30_000, 20_000));
    assert_eq!(sums.raw_ticks(), sums.wall_ticks);
    // Half of the empty events take less than half a stamp; a mean would be that of whoever took the CPU meanwhile.
    let table = crate::table::Table::new(names, &sums, 1.0, false);
    let middle = table.row("inner").and_then(|r| r.p50_ns);
    assert!(middle.is_some_and(|ticks| ticks < 0.5 * calibration.own.mean), "{middle:?} {calibration:?}");
}

#[test]
fn what_is_wrong_with_a_graph_is_said_with_box_and_port() {
    type Make<'a> = &'a dyn Fn(&mut Graph);
    let keep = || keep(Seen::default());
    let lonely: Make<'_> = &|g| {
        let x = g.edge("x");
        g.add("count", count(1), x.output(1));
    };
    let leaves: Make<'_> = &|g| {
        g.schedule("a");
        let x = g.edge("x");
        g.add("count", count(1), x.output(1));
        g.schedule("b");
        g.add("keep", keep(), x.input(1));
    };
    let large: Make<'_> = &|g| {
        g.schedule("a");
        let q = g.queue("q", 10);
        g.add("count", count(1), q.output(1));
        g.schedule("b");
        g.add("keep", keep(), q.input(100_000));
    };
    let nothing: Make<'_> = &|g| {
        let x = g.edge("x");
        g.add("count", count(1), x.output(0));
        g.add("keep", keep(), x.input(1));
    };
    let too_large = "keep takes 100000 of q, 100000 an iteration, and the queue holds 1024: make it larger";
    for (make, said) in [
        (lonely, "edge x has no reader"),
        (leaves, "edge x from count to keep leaves its schedule: make it a queue"),
        (large, too_large),
        (nothing, "count gives 0 of x: a rate of 0"),
        (&|_: &mut Graph| {}, "wrong: a graph without boxes"),
    ] {
        let mut g = Graph::new("wrong");
        make(&mut g);
        let choice = Choice { granularity: 4, ..Choice::FAST };
        assert_eq!(Program::new(g, choice).err().map(|e| e.to_string()).as_deref(), Some(said));
    }
}
