//! User threads made, joined and switched, on the thread that measures.

use std::cell::Cell;

use machmeter_engine::cost::{Cost, Kind, Proof, Row};
use machmeter_engine::experiment::{Enough, sample_benches};
use machmeter_engine::sampling::{Bench, Pace, Subject};
use machmeter_engine::selftest::machine::Machine;
use machmeter_engine::selftest::{Options, Shown, State};
use machmeter_sys::thread::monotonic_ns;
use machmeter_sys::user_threads::{Stacks, bare_switches, create_and_join, run_all};

const STACK_BYTES: usize = 64 * 1024;

/// Maps `n` stacks, the first time.
fn map_stacks(stacks: &mut Stacks, n: usize) -> Result<(), String> {
    if stacks.count() == 0 {
        *stacks = Stacks::new(n, STACK_BYTES).map_err(|e| e.to_string())?;
    }
    Ok(())
}

/// Made on a stack that was in use before, or on a new one each time.
pub(super) struct Create {
    new_stack: bool,
    stacks: Stacks,
    made: u64,
    ran: Cell<u64>,
}

impl Create {
    pub(super) fn new(new_stack: bool) -> Self {
        Self { new_stack, stacks: Stacks::default(), made: 0, ran: Cell::new(0) }
    }
}

impl Subject for Create {
    fn prepare(&mut self) -> Result<(), String> {
        map_stacks(&mut self.stacks, 1)
    }

    fn run(&mut self, turns: u64) -> bool {
        self.made += turns;
        let ran = &self.ran;
        let work = |_: &machmeter_sys::user_threads::Turn<'_>| {
            ran.set(ran.get() + 1);
            true
        };
        if !self.new_stack {
            return create_and_join(&mut self.stacks, turns, &work) == turns;
        }
        (0..turns)
            .all(|_| Stacks::new(1, STACK_BYTES).is_ok_and(|mut s| create_and_join(&mut s, 1, &work) == 1))
    }

    fn proof(&mut self) -> Option<Proof> {
        Some(Proof::new("user threads that added one", self.made, self.ran.get()))
    }
}

/// Two user threads of one worker in turns: a turn here is one of each.
#[derive(Default)]
pub(super) struct Switch {
    stacks: Stacks,
    asked: u64,
    switched: Cell<u64>,
}

impl Subject for Switch {
    fn prepare(&mut self) -> Result<(), String> {
        map_stacks(&mut self.stacks, 2)
    }

    fn run(&mut self, turns: u64) -> bool {
        self.asked += 2 * turns;
        let switched = &self.switched;
        let ends = run_all(&mut self.stacks, &|_, turn| {
            for _ in 0..turns {
                turn.yield_now();
            }
            switched.set(switched.get() + turns);
        });
        ends.iter().all(Result::is_ok)
    }

    fn proof(&mut self) -> Option<Proof> {
        Some(Proof::new("switches made", self.asked, self.switched.get()))
    }
}

/// The same in a plain loop that resumes them.
#[derive(Default)]
struct Bare(Stacks);

impl Subject for Bare {
    fn prepare(&mut self) -> Result<(), String> {
        map_stacks(&mut self.0, 2)
    }

    fn run(&mut self, turns: u64) -> bool {
        bare_switches(&mut self.0, turns) == 2 * turns
    }
}

/// Most by which the run queue may make a switch costlier.
const COSTLIER: f64 = 0.20;

/// Self-test: switches by the run queue beside those in a plain loop.
pub(super) fn beside_a_bare_loop(machine: &Machine, options: &Options) -> Shown {
    let seconds = if options.quick { 1 } else { 3 };
    let rows = machine.sample(|sampler| {
        let row = |name: &str| Row::new("selftest", name, Kind::Latency).per_turn(2.0);
        let benches =
            vec![Bench::new(row("switch"), Switch::default()), Bench::new(row("bare"), Bare::default())];
        let (pace, until_ns) = (Pace::of(Pace::BATCH_NS, 4), monotonic_ns() + seconds * 1_000_000_000);
        sample_benches(sampler, benches, pace, Enough::visits(1_000), until_ns)
    })?;
    let (ns_per_tick, step) = machine.tick();
    let costs: Vec<Cost> = rows.iter().map(|row| Cost::of(row, ns_per_tick, step)).collect();
    let [Some(ours_ns), Some(bare_ns)] = [0, 1].map(|i| costs[i].value_ns()) else {
        return Err(format!("{costs:?}"));
    };
    let ratio = ours_ns / bare_ns;
    let found = format!("{ours_ns:.2} ns with the run queue, {ratio:.3} times as much");
    Ok((
        format!("{bare_ns:.2} ns a switch in a plain loop"),
        found,
        State::of((ratio - 1.0).abs() <= COSTLIER),
    ))
}
