//! Loads that are job streams: the same runner as for the tasks that are measured, which interbench does, too.

use machmeter_engine::load::LoadError;
use machmeter_engine::stream::{Deadline, Demand, Overload, RealMachine, Release, Stream, run};
use machmeter_engine::worker::{ARGUMENT, NOTHING};
use machmeter_sys::process;
use machmeter_sys::thread::monotonic_ns;
use std::sync::Arc;

use crate::work::Work;

/// Least length of a round that takes a share of a CPU, ns.
const ROUND_NS: u64 = 1_000_000_000;

/// Takes a share of a CPU in each period, see [`play`].
pub(crate) fn play_share(work: &Work, name: &str, (share, period_ns): (f64, u64)) -> Result<(), LoadError> {
    let demand = Demand::Cpu { ns: (share * period_ns as f64) as u64 };
    play(work, name, period_ns, demand, (ROUND_NS / period_ns).max(1))
}

/// Runs a periodic stream that drops what is late, in 1 thread unless asked, until stopped. A round has `jobs` releases.
pub(crate) fn play(
    work: &Work,
    name: &str,
    period_ns: u64,
    demand: Demand,
    jobs: u64,
) -> Result<(), LoadError> {
    let stream = &Stream {
        release: Release::Periodic { period_ns },
        demand,
        deadline: Deadline::Next,
        overload: Overload::Drop,
        stages: Vec::new(),
    };
    let round_ns = period_ns * jobs;
    work.ready();
    work.threads(name, work.request.threads.unwrap_or(1) as usize, |lane| {
        let nothing = (process::program(), vec![ARGUMENT.into(), NOTHING.name.into()]);
        let machine = RealMachine::new(stream, work.stop_flag(), nothing);
        let count = work.count(lane);
        let mut machine =
            machine.map_err(|e| LoadError::Cannot(e.to_string()))?.telling(Arc::new(move |_| count.add(1)));
        let mut done = Vec::with_capacity(stream.jobs_in(round_ns));
        let mut t0_ns = monotonic_ns();
        while !work.stopped() {
            done.clear();
            run(&mut machine, stream, t0_ns, round_ns, work.request.seed, &mut done);
            // A round that was slept through (suspend, SIGSTOP) is not made up for.
            t0_ns = (t0_ns + round_ns).max(monotonic_ns().saturating_sub(period_ns));
        }
        Ok(())
    })
}
