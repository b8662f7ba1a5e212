//! Small graphs on all kernels: the same tokens, bit for bit.

use std::cell::RefCell;
use std::rc::Rc;

use crate::timer::{Off, On, Timer};
use crate::{
    Choice, Ended, Graph, In, Lent, Many, Name, Out, Outcome, Primitive, Program, Queues, ReadPort, Reader,
    Ready, Sampling, WritePort, Writer,
};

/// Counts up, for so many firings.
struct Count {
    next: u32,
    end: u32,
}
impl Primitive for Count {
    type Ports = Out<u32>;
    fn apply(&mut self, y: &mut [u32]) -> Outcome {
        if self.next >= self.end {
            return Outcome::Over;
        }
        for y in y {
            *y = self.next;
            self.next += 1;
        }
        Outcome::Done
    }
}

/// Sums `by` tokens to one.
struct Sum {
    by: usize,
}
impl Primitive for Sum {
    type Ports = (In<u32>, Out<u32>);
    fn apply(&mut self, (x, y): (&[u32], &mut [u32])) -> Outcome {
        for (x, y) in x.chunks_exact(self.by).zip(y) {
            *y = x.iter().copied().fold(0, u32::wrapping_add);
        }
        Outcome::Done
    }
}

type Seen = Rc<RefCell<Vec<u32>>>;

struct Keep(Seen);
impl Primitive for Keep {
    type Ports = In<u32>;
    fn apply(&mut self, x: &[u32]) -> Outcome {
        self.0.borrow_mut().extend_from_slice(x);
        Outcome::Done
    }
}

/// Reads queues as it likes: odd numbers of tokens.
struct Nibble {
    seen: Seen,
    turn: usize,
}
impl Primitive for Nibble {
    type Ports = ReadPort<u32>;
    fn apply(&mut self, mut x: Reader<'_, u32>) -> Outcome {
        self.turn += 1;
        let n = (1 + self.turn * 7 % 13).min(x.available());
        if let Some(tokens) = x.read(n) {
            self.seen.borrow_mut().extend_from_slice(tokens);
            x.consume(n);
        }
        Outcome::Done
    }
}

pub(crate) fn choices(granularity: u32) -> Vec<Choice> {
    let mut all = Vec::new();
    for queues in [Queues::Copying, Queues::Mirrored] {
        for ready in [Ready::Heap, Ready::Bitmap] {
            all.push(Choice { queues, ready, granularity });
        }
    }
    all
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
            g.add("count", Count { next: 0, end: u32::MAX }, raw.output(12));
            g.add("sum", Sum { by: 3 }, (raw.input(3), q.output(1)));
            g.schedule("pairs");
            let pairs = g.edge("pairs");
            g.add("add", Sum { by: 2 }, (q.input(2), pairs.output(1)));
            g.add("keep", Keep(Rc::clone(&one)), pairs.input(1));
            g.schedule("nibble");
            g.add("nibble", Nibble { seen: Rc::clone(&other), turn: 0 }, q.reader(1));
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
struct Follow(u32);
impl Primitive for Follow {
    type Ports = (In<u32>, Out<u32>);
    fn apply(&mut self, (x, y): (&[u32], &mut [u32])) -> Outcome {
        for (x, y) in x.iter().zip(y) {
            self.0 = self.0.wrapping_mul(31).wrapping_add(*x);
            *y = self.0;
        }
        Outcome::Done
    }
}

#[test]
fn members_of_a_chain_give_what_the_table_gives_whatever_they_get_at_once() {
    // One token, tiles of 16, and tokens behind them.
    for granularity in [1, 2, 15, 16, 17, 53] {
        let given = |is_fused| {
            let seen = Seen::default();
            let mut g = Graph::new("followers").fused(is_fused);
            let (x, y) = (g.edge("x"), g.edge("y"));
            g.add("count", Count { next: 0, end: 3 * granularity }, x.output(1));
            crate::chain!(g, x => "a" Follow(1), "b" Follow(2), "c" Follow(3) => y, 0);
            g.add("keep", Keep(Rc::clone(&seen)), y.input(1));
            run(g, Choice { granularity, ..Choice::FAST });
            seen.take()
        };
        let fused = given(true);
        assert_eq!((fused.len() as u32, &fused), (3 * granularity, &given(false)));
    }
}

/// Adds what it gave last.
struct Accumulate;
impl Primitive for Accumulate {
    type Ports = (In<u32>, In<u32>, Out<u32>);
    fn apply(&mut self, (x, last, y): (&[u32], &[u32], &mut [u32])) -> Outcome {
        for ((x, last), y) in x.iter().zip(last).zip(y) {
            *y = x.wrapping_add(*last);
        }
        Outcome::Done
    }
}

#[test]
fn cycles_with_tokens_at_the_beginning_run_iteration_by_iteration() {
    for choice in choices(6) {
        let seen = Seen::default();
        let mut g = Graph::new("accumulator");
        let (x, y) = (g.edge("x"), g.delayed("y", &[100]));
        g.add("count", Count { next: 0, end: 600 }, x.output(3));
        g.add("accumulate", Accumulate, (x.input(1), y.input(1), y.output(1)));
        g.add("keep", Keep(Rc::clone(&seen)), y.input(1));
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
struct Distribute {
    lengths: Vec<u32>,
    segment: usize,
    sent: Option<u32>,
}
impl Primitive for Distribute {
    type Ports = Vec<WritePort<u32>>;
    fn apply(&mut self, mut branches: Many<'_, WritePort<u32>>) -> Outcome {
        let Some(length) = self.lengths.get(self.segment).copied() else { return Outcome::Over };
        let branch = (self.segment * 7 / 3) % branches.len();
        let mut y: Writer<'_, u32> = branches.at(branch);
        let sent = match self.sent {
            Some(sent) => sent,
            None if y.segment_begin() => 0,
            None => return Outcome::Wait,
        };
        let n = (length - sent).min(1 + sent % 5).min(y.room() as u32);
        if let Some(room) = y.write(n as usize) {
            let first = 1_000 * self.segment as u32 + sent;
            room.iter_mut().zip(first..).for_each(|(y, i)| *y = i);
        }
        y.produce(n as usize);
        self.sent = Some(sent + n);
        if sent + n == length {
            y.segment_end();
            (self.sent, self.segment) = (None, self.segment + 1);
        }
        Outcome::Done
    }
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

struct Merge(Seen);
impl Primitive for Merge {
    type Ports = Vec<ReadPort<u32>>;
    fn apply(&mut self, mut branches: Many<'_, ReadPort<u32>>) -> Outcome {
        for i in 0..branches.len() {
            let mut x = branches.at(i);
            let n = x.available();
            if n > 0
                && let Some(tokens) = x.read(n)
            {
                self.0.borrow_mut().extend_from_slice(tokens);
                x.consume(n);
            }
            if x.in_segment() && x.is_ended() {
                self.0.borrow_mut().push(u32::MAX);
                x.next_segment();
            }
        }
        Outcome::Done
    }
}

pub(crate) fn segments(lengths: &[u32], choice: Choice) -> (Vec<u32>, u64) {
    let seen = Seen::default();
    let mut g = Graph::new("exclusive");
    g.schedule("distribute");
    let inputs: Vec<_> = (0..3).map(|i| g.segmented::<u32>(&format!("in{i}"), 50)).collect();
    let outputs: Vec<_> = (0..3).map(|i| g.segmented::<u32>(&format!("out{i}"), 50)).collect();
    let distribute = Distribute { lengths: lengths.to_vec(), segment: 0, sent: None };
    g.add("distribute", distribute, inputs.iter().map(|q| q.writer(1)).collect());
    let family: Vec<_> = inputs.iter().copied().zip(outputs.iter().copied()).collect();
    let group = g.exclusive(&family);
    let shared = g.state(7_u32);
    for (i, (x, y)) in family.iter().enumerate() {
        g.schedule(&format!("branch{i}"));
        g.add("branch", Branch { shared: group.lend(&shared, i), first: false }, (x.input(2), y.output(1)));
    }
    g.schedule("merge");
    g.add("merge", Merge(Rc::clone(&seen)), outputs.iter().map(|q| q.reader(1)).collect());
    g.reading_any();
    let program = run(g, choice);
    let discarded = program.queues().map(|q| q.3).sum();
    let left: u64 = program.queues().map(|q| q.2).sum();
    assert_eq!(left, 0, "{lengths:?} {choice:?}");
    let seen = seen.take();
    (seen, discarded)
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
    let log = crate::timer::Log::new(&["outer", "inner"]);
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
    let table = crate::table::Table::new(log.names(), &sums, 1.0, false);
    let middle = table.row("inner").and_then(|r| r.p50_ns);
    assert!(middle.is_some_and(|ticks| ticks < 0.5 * calibration.own.mean), "{middle:?} {calibration:?}");
}

#[test]
fn what_is_wrong_with_a_graph_is_said_with_box_and_port() {
    let count = || Count { next: 0, end: 1 };
    let keep = || Keep(Seen::default());
    let said = |make: &dyn Fn(&mut Graph)| {
        let mut g = Graph::new("wrong");
        make(&mut g);
        let choice = Choice { granularity: 4, ..Choice::FAST };
        Program::new(g, choice).err().map_or_else(String::new, |e| e.to_string())
    };
    let lonely = said(&|g| {
        let x = g.edge("x");
        g.add("count", count(), x.output(1));
    });
    assert_eq!(lonely, "edge x: nobody reads it");
    let leaves = said(&|g| {
        g.schedule("a");
        let x = g.edge("x");
        g.add("count", count(), x.output(1));
        g.schedule("b");
        g.add("keep", keep(), x.input(1));
    });
    assert_eq!(leaves, "edge x from count to keep leaves its schedule: make it a queue");
    let large = said(&|g| {
        g.schedule("a");
        let q = g.queue("q", 10);
        g.add("count", count(), q.output(1));
        g.schedule("b");
        g.add("keep", keep(), q.input(100_000));
    });
    assert_eq!(
        large,
        "keep takes 100000 of q, 100000 an iteration, and the queue holds 1024: make it larger"
    );
    let nothing = said(&|g| {
        let x = g.edge("x");
        g.add("count", count(), x.output(0));
        g.add("keep", keep(), x.input(1));
    });
    assert_eq!(nothing, "count gives 0 of x: a rate of 0");
    assert!(said(&|_| {}).contains("a graph without boxes"));
}
