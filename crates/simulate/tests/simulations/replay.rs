//! Simulated executions written as traces and replayed: the same ends of all ranks, on the same costs and on others.

use machmeter_data::Table;
use machmeter_data::trace::COMMUNICATORS;
use machmeter_simulate::goal::{Goal, Schedule, read_text, write_text};
use machmeter_simulate::noise::Quiet;
use machmeter_simulate::patterns::find;
use machmeter_simulate::replay::{
    Calls, Observed, Options, Priced, Replay, Work, events, operations, replay, schedule as goal_of, split,
};
use machmeter_simulate::{Dialect, Line, Params, Part, Time as _, Traced, run};

use crate::given::{Row, tables};
use crate::programs::{Do, program, schedule};
use crate::quiet;
use crate::schedules::Costs;

/// The execution of a program as its trace: each call lasts until what follows it begins.
fn traced(program: &[Vec<Do>], params: &Params) -> (Vec<Table>, Vec<u64>) {
    let (goal, ops) = schedule(program);
    let mut quiet = Quiet;
    let mut observed = Observed::new(&mut quiet, goal.ranks());
    let done = run::<Traced, _, _>(&mut Schedule::new(&goal), params, &mut observed, &|| false).unwrap();
    let mut rows = Vec::new();
    for (rank, all) in program.iter().enumerate() {
        let own: std::collections::BTreeMap<u32, Work> = observed.works[1..]
            .iter()
            .filter(|w| w.rank as usize == rank && !w.takes)
            .map(|w| (w.op, *w))
            .collect();
        let work = |at: usize| ops[rank][at].map(|op| own[&op]);
        let end_ps = done.ends[rank].ps();
        let mut now = 0;
        for (at, what) in all.iter().enumerate() {
            let mut follow = at + 1..all.len();
            let next = follow.find_map(work).map_or(end_ps, |w| w.begin_ps);
            let until = match what {
                Do::Compute(_) => work(at).unwrap().end_ps,
                _ if matches!(all.get(at + 1), Some(Do::Compute(_))) => next,
                Do::Send { blocks: false, .. } => work(at).unwrap().end_ps,
                Do::Receive { blocks: false, .. } => now,
                _ => next,
            };
            let start = std::mem::replace(&mut now, until);
            let call = |name, bytes: u64, peer: u32, tag: u32| -> Row {
                let ns = |ps: u64| (ps / 1000) as i64;
                assert_eq!((start % 1000, until % 1000), (0, 0), "whole ns");
                (rank as i32, name, ns(start), ns(until - start), bytes as i64, peer as i32, tag as i32)
            };
            rows.push(match *what {
                Do::Compute(_) => continue,
                Do::Send { to, bytes, tag, blocks } => {
                    call(if blocks { "Send" } else { "Isend" }, bytes, to, tag)
                }
                Do::Receive { from, tag, blocks } => {
                    call(if blocks { "Recv" } else { "Irecv" }, 1 << 20, from, tag)
                }
                Do::Waitall => call("Waitall", 0, 0, 0),
                Do::Allreduce(bytes) => call("Allreduce", bytes, 0, 0),
            });
        }
    }
    let ends: Vec<u64> = done.ends.iter().map(|t| t.ps()).collect();
    (tables(&rows, &ends.iter().map(|ps| (ps / 1000) as i64).collect::<Vec<_>>()), ends)
}

fn options() -> Options {
    Options { algorithms: [("allreduce", find("allreduce").unwrap())].into(), ..Options::default() }
}

fn ends(replay: &Replay, prices: &[u64], params: &Params) -> Vec<u64> {
    quiet(&mut replay.running(prices), params).ends
}

/// Costs of seeds are whole ns; rendezvous begin at 1,000 or 65,536 bytes.
#[test]
fn a_simulated_trace_gives_the_simulation_again_on_any_costs() {
    let (mut compared, mut calls) = (0, 0);
    for seed in 1..=200 {
        let program = program(seed);
        let params = Costs::of_seed(seed).params(Dialect::Machmeter);
        let (tables, ends_ps) = traced(&program, &params);
        let found = Calls::find(&tables).unwrap();
        calls += found.count();
        let again = replay(&found, &options()).unwrap();
        assert!(
            again.left_out.is_empty() && again.guesses.receives == 0,
            "seed {seed}: {:?}",
            again.left_out
        );
        assert_eq!(ends(&again, &[], &params), ends_ps, "seed {seed}");
        for other in 1..=5 {
            let params = Costs::of_seed(seed * 7 + other).params(Dialect::Machmeter);
            let params = params.map(|s| s.latency_ps += 1234 * other);
            let (goal, _) = schedule(&program);
            let direct = quiet::<u64>(&mut Schedule::new(&goal), &params);
            assert_eq!(ends(&again, &[], &params), direct.ends, "seed {seed}, costs {other}");
            compared += 1;
        }
    }
    assert!(compared == 1000 && calls > 20_000, "{compared} compared, {calls} calls");
}

fn simple(l: u64, o: u64) -> Params {
    let cpu = Line { first_ps: o * 1000, per_byte: 0 };
    Params::simple(cpu, Line::default(), l * 1000, u64::MAX, Dialect::Machmeter)
}

/// Rank 0 calculates 1 us, rank 1 3 us, then both; the table of a call of 100 ns each.
fn together(name: &'static str, root: i32) -> Calls {
    let rows = [
        (0, name, 1000, 2100, 64, root, -3),
        (1, name, 3000, 100, 64, root, -3),
        (0, "Barrier", 3100, 100, 0, -3, -3),
        (1, "Barrier", 3100, 100, 0, -3, -3),
    ];
    Calls::find(&tables(&rows, &[3200, 3200])).unwrap()
}

#[test]
fn collectives_wait_for_those_that_they_need_and_take_their_cost() {
    let params = simple(0, 0);
    for (name, root, wanted) in [
        ("Allreduce", -3, [3500, 3500]),
        // The root is rank 0: nobody waits for rank 1.
        ("Bcast", 0, [1500, 3500]),
        ("Bcast", 1, [3500, 3500]),
        ("Reduce", 0, [3500, 3500]),
        ("Reduce", 1, [1500, 3500]),
        ("Iallreduce", -3, [1000, 3000]),
        ("Comm_dup", -3, [3000, 3000]),
    ] {
        let all = replay(&together(name, root), &Options::default()).unwrap();
        let operation = all.priced.iter().find(|p| p.operation != "barrier").map(|p| p.operation);
        let prices: Vec<u64> =
            all.priced.iter().map(|p| if p.operation == "barrier" { 0 } else { 500_000 }).collect();
        let ends = ends(&all, &prices, &params);
        // The barrier brings them together.
        let last = wanted.into_iter().max().unwrap() * 1000;
        assert_eq!(ends, [last, last], "{name} {root} {operation:?}");
        let found = split(&all, &prices, &params, &mut Quiet, &|| false).unwrap();
        let compute: Vec<u64> = found.ranks.iter().map(|r| r.compute_ps).collect();
        assert_eq!(compute, [1_000_000, 3_000_000]);
        for r in &found.ranks {
            assert_eq!(r.compute_ps + r.messages_ps + r.waiting_ps + r.noise_ps, last);
        }
        let waited = last - 1_000_000 - found.ranks[0].messages_ps;
        assert_eq!(found.ranks[0].waiting_ps, waited);
        if name == "Allreduce" {
            assert_eq!((found.ranks[0].waiting_ps, found.ranks[0].messages_ps), (2_000_000, 500_000));
            assert_eq!(found.end.spent_ps[Part::Collective as usize], 500_000);
            assert!(found.ranks[1].path_ps >= 3_000_000);
            assert_eq!(found.path[0], ("Allreduce", 1, 500_000));
        }
    }
}

#[test]
fn a_late_sender_is_waited_for_and_the_message_is_not() {
    let rows = [(0, "Recv", 1000, 3000, 64, 1, 5), (1, "Send", 3000, 100, 8, 0, 5)];
    let calls = Calls::find(&tables(&rows, &[4000, 3100])).unwrap();
    let all = replay(&calls, &Options::default()).unwrap();
    let found = split(&all, &[], &simple(700, 100), &mut Quiet, &|| false).unwrap();
    let [receiver, sender] = found.ranks[..] else { panic!() };
    assert_eq!((receiver.end_ps, sender.end_ps), (3_900_000, 3_100_000));
    // Until the sender has let it go; then L and the receiver's o.
    assert_eq!(
        (receiver.compute_ps, receiver.waiting_ps, receiver.messages_ps),
        (1_000_000, 2_100_000, 800_000)
    );
    assert_eq!((sender.compute_ps, sender.waiting_ps, sender.messages_ps), (3_000_000, 800_000, 100_000));
    assert_eq!((found.end.count(Part::Latency), found.end.count(Part::Overhead)), (1, 2));
    assert_eq!((receiver.path_ps, sender.path_ps), (100_000, 3_800_000));
}

#[test]
fn more_ranks_repeat_messages_and_rebuild_collectives() {
    let rows = [
        (0, "Send", 1000, 100, 8, 1, 5),
        (1, "Recv", 1000, 100, 64, 0, 5),
        (0, "Alltoall", 2000, 100, 64, -3, -3),
        (1, "Alltoall", 2000, 100, 64, -3, -3),
    ];
    let calls = Calls::find(&tables(&rows, &[2100, 2100])).unwrap();
    let options = Options { copies: 3, cpu_scale: 2.0, ..Options::default() };
    let all = replay(&calls, &options).unwrap();
    assert_eq!(all.priced, [Priced { operation: "alltoall", ranks: 6, bytes: 32 }]);
    assert_eq!((all.rebuilt, all.calculation_ps.len()), (1, 6));
    let ends = ends(&all, &[400_000], &simple(700, 100));
    // 2 us, the message of 0.9 us, 2 x 0.9 us.
    assert_eq!(ends, [5_100_000; 6]);
}

/// What a trace does not say is taken from the order of calls.
#[test]
fn receives_from_anybody_and_requests_are_matched_by_order() {
    let rows = [
        (0, "Sendrecv", 0, 900, 8, 1, 5),
        (1, "Sendrecv", 500, 400, 8, 0, 5),
        (0, "Recv", 1000, 500, 64, -1, -1),
        (1, "Ssend", 1200, 300, 16, 0, 9),
        (1, "Irecv", 1600, 0, 64, 0, 1),
        (1, "Irecv", 1600, 0, 64, 0, 2),
        // The second message came first: the first wait can only have been for it.
        (1, "Wait", 1600, 500, 0, -3, -3),
        (1, "Wait", 3100, 500, 0, -3, -3),
        (0, "Send", 2000, 10, 8, 1, 2),
        (0, "Send", 3500, 10, 8, 1, 1),
        (0, "Put", 3600, 10, 8, 1, -3),
        (0, "Recv", 3700, 10, 8, 1, 77),
    ];
    let mut all = tables(&rows, &[4000, 4000]);
    all.push(Table::new(COMMUNICATORS, Vec::new()).unwrap());
    let found = replay(&Calls::find(&all).unwrap(), &Options::default()).unwrap();
    assert_eq!((found.guesses.receives, found.guesses.waits), (3, 1));
    let left: Vec<(&str, u64)> = found.left_out.iter().map(|(name, n)| (name.as_str(), *n)).collect();
    assert_eq!(left, [("Put", 1), ("receives without a message", 1)]);
    assert_eq!(found.largest_bytes, Some(16));
    let ends = ends(&found, &[], &simple(0, 0));
    // Calculation of rank 0: 100 + 500 + 1490 + 90 + 90 + 290 ns; of rank 1: 500, 300, 100, then 1000 after the first wait.
    assert_eq!(ends.len(), 2);
    let split = split(&found, &[], &simple(0, 0), &mut Quiet, &|| false).unwrap();
    assert_eq!(split.ranks[1].waiting_ps + split.ranks[1].compute_ps, split.end.ps());
}

/// What memory a replay takes is said before it is made, of calls that start many messages, too.
#[test]
fn calls_that_start_all_requests_count_as_what_they_start() {
    let of = |rank, name, peer| (0..30).map(move |tag| (rank, name, 10 * i64::from(tag), 5, 8, peer, tag));
    let starts = (0..60).map(|n| (n % 2, "Startall", 1000 + 10 * i64::from(n), 5, 0, -3, -3));
    let rows: Vec<Row> = of(0, "Send_init", 1).chain(of(1, "Recv_init", 0)).chain(starts).collect();
    let calls = Calls::find(&tables(&rows, &[2000; 2])).unwrap();
    let made = replay(&calls, &Options::default()).unwrap();
    let (goal, _) = goal_of(&calls).unwrap();
    assert_eq!(goal.messages(), 30 * 30);
    let said = (events(&calls, &Options::default()), operations(&calls));
    assert!(said.0 >= made.events() && said.1 >= goal.operations(), "{said:?}");
}

#[test]
fn tables_that_cannot_be_are_refused() {
    let message = |rows: &[Row]| Calls::find(&tables(rows, &[1])).unwrap_err();
    assert_eq!(message(&[]), "the trace has no calls");
    assert_eq!(message(&[(-1, "Send", 0, 900, 8, 1, 5)]), "row 0 of mpi_events: rank -1");
    assert!(Calls::find(&[]).unwrap_err().contains("no table mpi_events"));
    // A rank that is in no row is there, and does nothing.
    let calls = Calls::find(&tables(&[(3, "Send", 0, 900, 8, 1, 5)], &[1])).unwrap();
    let all = replay(&calls, &Options::default()).unwrap();
    assert_eq!(all.calculation_ps.len(), 4);
}

/// The schedule of calls, written and read again.
fn exported(calls: &Calls) -> Goal {
    let (goal, _) = goal_of(calls).unwrap();
    let mut text = Vec::new();
    write_text(&goal, &mut text).unwrap();
    let read = read_text(&text).unwrap();
    assert_eq!(read, goal);
    read
}

#[test]
fn an_exported_schedule_ends_as_the_traced_execution() {
    for seed in 1..=100 {
        let program = program(seed);
        let params = Costs::of_seed(seed).params(Dialect::Machmeter);
        let (tables, ends_ps) = traced(&program, &params);
        let calls = Calls::find(&tables).unwrap();
        let goal = exported(&calls);
        let estimate = operations(&calls) as f64 / goal.operations() as f64;
        assert!((1.0..4.0).contains(&estimate), "seed {seed}: {estimate} of {}", goal.operations());
        let again = quiet::<u64>(&mut Schedule::new(&goal), &params);
        assert_eq!(again.ends, ends_ps, "seed {seed}");
    }
}

#[test]
fn every_collective_is_messages_in_a_schedule() {
    let params = simple(1000, 100);
    let names = "Barrier Bcast Scatterv Gather Allgatherv Alltoallw Reduce Iallreduce Reduce_scatter_block Exscan \
                 Comm_dup Comm_split";
    for name in names.split(' ') {
        let root = if ["Bcast", "Scatterv", "Gather", "Reduce"].contains(&name) { 1 } else { -3 };
        let goal = exported(&together(name, root));
        assert!(goal.messages() > 2, "{name} and a barrier: {} messages", goal.messages());
        let done = quiet::<u64>(&mut Schedule::new(&goal), &params);
        // Rank 1 comes after 3 us, and its message to the barrier takes 1.2 us.
        assert!(done.ends[0] >= 4_200_000 && done.ends[1] >= 3_000_000, "{name}: {:?}", done.ends);
    }
}
