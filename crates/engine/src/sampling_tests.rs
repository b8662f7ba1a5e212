//! The sampler on simulated time.

use super::*;
use crate::cost::{Cost, Kind};
use crate::experiment::{Enough, sample_benches};
use std::cell::Cell;
use std::rc::Rc;

/// Simulated time: one tick per ns; every 37th batch is preempted for 3 ms.
#[derive(Clone, Default)]
struct Fake {
    now_ns: Rc<Cell<u64>>,
    switches: Rc<Cell<u64>>,
    batches: u64,
}

impl Timing for Fake {
    fn time(&mut self, work: &mut dyn FnMut()) -> u64 {
        let start = self.now_ns.get();
        work();
        self.batches += 1;
        if self.batches.is_multiple_of(37) {
            self.now_ns.set(self.now_ns.get() + 3_000_000);
            self.switches.set(self.switches.get() + 1);
        }
        self.now_ns.set(self.now_ns.get() + 23);
        self.now_ns.get() - start
    }
    fn ticks(&mut self) -> u64 {
        self.now_ns.get()
    }
    fn mark(&mut self) -> Mark {
        Mark { involuntary_switches: self.switches.get(), cpu: Some(0), ..Mark::default() }
    }
    fn now_ns(&self) -> u64 {
        self.now_ns.get()
    }
}

struct Costs {
    now_ns: Rc<Cell<u64>>,
    each_ns: f64,
    fails: bool,
}

impl Subject for Costs {
    fn run(&mut self, turns: u64) -> bool {
        self.now_ns.set(self.now_ns.get() + 40 + (turns as f64 * self.each_ns) as u64);
        !self.fails
    }
}

fn costs(fake: &Fake, each_ns: f64) -> Costs {
    Costs { now_ns: fake.now_ns.clone(), each_ns, fails: false }
}

fn sampled(fake: &Fake, bench: Bench<'_>, pace: Pace, enough: Enough, until_ns: u64) -> Row {
    let mut sampler = Sampler::new(fake.clone(), TickRate::NANOSECONDS, 7);
    sample_benches(&mut sampler, vec![bench], pace, enough, until_ns).remove(0)
}

#[test]
fn planted_costs_are_found_among_preemptions_and_failures_are_refused() {
    let fake = Fake::default();
    let bench = |each_ns: f64, fails| {
        let costs = Costs { fails, ..costs(&fake, each_ns) };
        Bench::new(Row::new("test", "planted", Kind::Latency), costs)
    };
    let planted = [0.27, 3.8, 151.0, 515_000.0];
    let mut benches: Vec<Bench<'_>> = planted.iter().map(|ns| bench(*ns, false)).collect();
    benches.push(bench(10.0, true));
    let mut sampler = Sampler::new(fake.clone(), TickRate::NANOSECONDS, 7);
    let pace = Pace::of(Pace::BATCH_NS, 5);
    let rows = sample_benches(&mut sampler, benches, pace, Enough::visits(8), u64::MAX);
    for (row, truth) in rows.iter().zip(planted) {
        let cost = Cost::of(row, 1.0, 1);
        let k = cost.known().unwrap_or_else(|| panic!("{cost:?}"));
        assert!((k.value_ns / truth - 1.0).abs() < 0.001, "{truth}: {k:?}");
        assert!(k.max_ns < truth * 1.01, "no preempted pair was kept: {k:?}");
        let batch_ns = row.short_turns as f64 * truth;
        assert!(batch_ns > Pace::BATCH_NS / 4.0, "a disturbed calibration was kept: {batch_ns}");
    }
    assert!(rows.iter().map(|r| r.rejected.preempted).sum::<u64>() > 3);
    assert_eq!(rows[4].refused.as_deref(), Some("the operation fails"));
}

/// Takes twice its time until it has been busy for 1 ms of its visit, as cores do after a rest.
struct Settles {
    costs: Costs,
    busy_until_ns: u64,
}

impl Subject for Settles {
    fn prepare(&mut self) -> Result<(), String> {
        self.busy_until_ns = self.costs.now_ns.get() + 1_000_000;
        Ok(())
    }

    fn run(&mut self, turns: u64) -> bool {
        let rested = self.costs.now_ns.get() < self.busy_until_ns;
        self.costs.run(if rested { 2 * turns } else { turns })
    }
}

#[test]
fn a_core_that_rested_is_not_timed_before_it_has_settled() {
    let cost = |settle_ns| {
        let fake = Fake::default();
        let subject = Settles { costs: costs(&fake, 5.0), busy_until_ns: 0 };
        let row = Row::new("t", "x", Kind::Throughput);
        let pace = Pace { settle_ns, ..Pace::of(20_000.0, 4) };
        let row = sampled(&fake, Bench::new(row, subject), pace, Enough::visits(10), u64::MAX);
        Cost::of(&row, 1.0, 1).value_ns().expect("known")
    };
    assert!((cost(Pace::SETTLE_NS) - 5.0).abs() < 0.01, "{}", cost(Pace::SETTLE_NS));
    assert!(cost(0) > 9.0, "{}", cost(0));
}

/// Uses up one of its stock with every turn.
struct UsesUp {
    costs: Costs,
    stock: u64,
}

impl Subject for UsesUp {
    fn run(&mut self, turns: u64) -> bool {
        let enough = self.stock >= turns;
        self.stock = self.stock.saturating_sub(turns);
        self.costs.run(turns) && enough
    }

    fn partners_moved(&mut self) -> bool {
        self.stock = 128;
        true
    }
}

#[test]
fn what_a_preempted_pair_used_up_is_replaced() {
    let fake = Fake::default();
    let mut row = Row::new("t", "x", Kind::Latency);
    (row.short_turns, row.long_turns) = (32, 96);
    let subject = UsesUp { costs: costs(&fake, 5.0), stock: 160 };
    let rejected =
        sampled(&fake, Bench::new(row, subject), Pace::of(1.0, 100), Enough::visits(1), u64::MAX).rejected;
    assert!(rejected.preempted > 2 && rejected.total() == rejected.preempted, "{rejected:?}");
}

#[test]
fn the_time_given_is_kept() {
    let fake = Fake::default();
    let (row, pace) = (Row::new("t", "x", Kind::Latency), Pace::of(500_000.0, 3));
    let pairs = sampled(&fake, Bench::new(row, costs(&fake, 5.0)), pace, Enough::ENDLESS, 100_000_000).pairs;
    assert!(pairs.len() > 20, "{}", pairs.len());
    assert!(fake.now_ns.get() < 120_000_000, "{}", fake.now_ns.get());
}

#[test]
fn turns_are_timed_one_by_one_without_the_meters_own_time() {
    let fake = Fake::default();
    for each_ns in [900.0, 4_400.0] {
        let row = Row { long_turns: 1, ..Row::new("test", "single", Kind::Latency) };
        let bench = Bench::new(row, costs(&fake, each_ns));
        let row = sampled(&fake, bench, Pace::one_by_one(16), Enough::visits(4), u64::MAX);
        assert!((row.short_turns, row.long_turns) == (0, 1) && row.pairs.len() > 48, "{row:?}");
        // A turn and the batch around it take 63 ns more, by themselves, too.
        assert!(row.pairs.iter().all(|p| p.short_ticks == 63 && p.long_ticks == 63 + each_ns as u64));
        assert_eq!(Cost::of(&row, 1.0, 1).value_ns(), Some(each_ns));
    }
}
