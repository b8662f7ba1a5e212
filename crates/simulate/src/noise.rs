//! What takes CPUs from ranks: gaps that were recorded, or a process that is described.

use std::sync::Arc;

use machmeter_data::gaps::{Gaps, GapsError};
use machmeter_stats::random::Random;

use crate::engine::{SimulateError, run};
use crate::params::{Dialect, Params};
use crate::program::{Moment, Program};

/// Gaps of a described process that does not repeat: ranks start at random places among them.
const DRAWN_GAPS: usize = 1 << 16;

/// Time that is taken from ranks, by somebody who may watch what their CPUs do.
pub trait Noise {
    /// Time taken from a CPU of a rank while it works for `work_ps` from `at_ps` on, ps: the work ends so much later.
    fn stolen_ps(&mut self, rank: u32, cpu: u8, at_ps: u64, work_ps: u64) -> u64;
    /// What a CPU of a rank does and when. `work` set the time: of an end the work that ends, otherwise the one before it on the critical
    /// path. Returns the number of the work that begins.
    fn observe(&mut self, _moment: Moment, _rank: u32, _cpu: u8, _op: u32, _at_ps: u64, work: u32) -> u32 {
        work
    }
}

#[derive(Debug, Clone, Copy, Default)]
pub struct Quiet;

impl Noise for Quiet {
    fn stolen_ps(&mut self, _: u32, _: u8, _: u64, _: u64) -> u64 {
        0
    }
}

/// The gaps of one CPU over a time, after which they repeat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Trace {
    /// All figures in ps.
    length: u64,
    start: Vec<u64>,
    /// Time to work before each gap.
    left: Vec<u64>,
    /// Time in all gaps.
    stolen: u64,
}

impl Trace {
    /// Gaps (start, duration) in any order, which leave some time. Those that overlap become one; what lies beyond the length is cut off.
    pub fn new(mut gaps: Vec<(u64, u64)>, length_ps: u64) -> Result<Self, String> {
        gaps.sort_unstable();
        let (mut starts, mut left, mut busy_until, mut all) = (Vec::new(), Vec::new(), 0, 0);
        for (start, duration) in gaps {
            let (start, end) = (start.max(busy_until), start.saturating_add(duration).min(length_ps));
            if end > start {
                starts.push(start);
                left.push(start - all);
                all += end - start;
                busy_until = end;
            }
        }
        if all >= length_ps {
            let (stolen, length) = (all / 1000, length_ps / 1000);
            return Err(format!("gaps of {stolen} ns in {length} ns leave no time for work"));
        }
        Ok(Self { length: length_ps, start: starts, left, stolen: all })
    }

    /// Share of the time in gaps.
    pub fn share(&self) -> f64 {
        self.stolen as f64 / self.length as f64
    }

    /// Number of gaps that begin up to a place.
    fn begun(&self, at_ps: u64) -> usize {
        self.start.partition_point(|start| *start <= at_ps)
    }

    /// Time in the first `gaps` of them.
    fn stolen(&self, gaps: usize) -> u64 {
        self.start.get(gaps).map_or(self.stolen, |start| start - self.left[gaps])
    }

    /// Time to work from the start to a place.
    fn left_until(&self, at_ps: u64) -> u64 {
        match self.begun(at_ps) {
            0 => at_ps,
            n => at_ps.saturating_sub(self.stolen(n)).max(self.left[n - 1]),
        }
    }

    /// What work of `work_ps` from a place on loses: each gap that begins before its end, what these delay included.
    fn stolen_ps(&self, at_ps: u64, work_ps: u64) -> u64 {
        if work_ps == 0 || self.start.is_empty() {
            return 0;
        }
        let per_round = self.length - self.stolen;
        let target = self.left_until(at_ps).saturating_add(work_ps);
        // The end lies in (0, per_round] of its round: a gap that begins at the end takes nothing.
        let rounds = (target - 1) / per_round;
        let rest = target - rounds * per_round;
        let gaps = self.left.partition_point(|left| *left < rest);
        let end = (rounds.saturating_mul(self.length)).saturating_add(rest + self.stolen(gaps));
        end.saturating_sub(at_ps).saturating_sub(work_ps)
    }

    /// The rule of `LogGOPSim`: the rest of the gap at the place, and all gaps that begin in the span, which they do not prolong.
    fn stolen_once_ps(&self, at_ps: u64, work_ps: u64) -> u64 {
        let begun = self.begun(at_ps);
        let last = self.start.partition_point(|start| *start < at_ps + work_ps).max(begun);
        let under_way = begun.checked_sub(1).map_or(0, |gap| self.left[gap] + self.stolen(begun));
        under_way.saturating_sub(at_ps) + self.stolen(last) - self.stolen(begun)
    }
}

/// The CPUs of a machine: one rank runs on each, and all share a clock, so that gaps that coincide stay together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Machine {
    pub cpus: Vec<Trace>,
}

impl Machine {
    /// The CPUs of a recording, each of which was free at some time.
    pub fn recorded(tables: &[machmeter_data::Table]) -> Result<Self, String> {
        let gaps = Gaps::find(tables).map_err(|e| match e {
            GapsError::Missing(what) => format!("the run has no list of gaps: {what}"),
            GapsError::EndsBeforeStart(row) => {
                format!("the list of gaps is damaged: row {row} ends before it starts")
            }
        })?;
        let ps = |ns: f64| (ns * 1000.0).round() as u64;
        let of_cpu = |cpu: i32| {
            let own = (0..gaps.cpu.len()).filter(|i| gaps.cpu[*i] == cpu);
            let own: Vec<(u64, u64)> = own.map(|i| (ps(gaps.start_ns(i)), ps(gaps.duration_ns(i)))).collect();
            Trace::new(own, ps(gaps.recorded_ns(cpu)))
        };
        Ok(Self { cpus: gaps.cpus().into_iter().map(of_cpu).collect::<Result<_, _>>()? })
    }

    /// A machine of one CPU with gaps at equal distances.
    pub fn periodic(period_ps: u64, duration_ps: u64) -> Result<Self, String> {
        Ok(Self { cpus: vec![Trace::new(vec![(0, duration_ps)], period_ps)?] })
    }

    /// A machine of one CPU with gaps at random (a Poisson process), of equal or exponential durations: 65,536 of them, then again.
    pub fn random(distance_ps: u64, duration_ps: u64, exponential: bool) -> Result<Self, String> {
        let mut random = Random::new(0);
        let mut at = 0.0;
        let mut draw = || {
            at += random.exponential() * distance_ps as f64;
            let duration = duration_ps as f64 * if exponential { random.exponential() } else { 1.0 };
            (at as u64, duration as u64)
        };
        let gaps: Vec<(u64, u64)> = (0..DRAWN_GAPS).map(|_| draw()).collect();
        let length = gaps[gaps.len() - 1].0 + distance_ps;
        Ok(Self { cpus: vec![Trace::new(gaps, length)?] })
    }
}

/// Where in their gaps machines are at the start of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Starts {
    /// Each machine somewhere else, by the seed.
    Apart(u64),
    /// All at one place, by the seed: noise that is fully coincident between machines.
    Together(u64),
    /// Each machine m at this place + m times that step, ps: for comparisons with other simulators.
    Steps(u64, u64),
}

/// Noise of ranks on machines of one kind.
#[derive(Debug, Clone)]
pub struct OnMachines {
    machine: Arc<Machine>,
    starts_ps: Vec<u64>,
    /// All gaps count until the work is done, or those of the undisturbed span alone, as `LogGOPSim` has it.
    dialect: Dialect,
}

impl OnMachines {
    /// So many ranks, one on each CPU.
    pub fn new(machine: Arc<Machine>, ranks: u32, starts: Starts, dialect: Dialect) -> Self {
        let machines = (ranks as usize).div_ceil(machine.cpus.len().max(1));
        let length = machine.cpus.iter().map(|t| t.length).max().unwrap_or(0);
        let draw = |random: &mut Random| (random.unit() * length as f64) as u64;
        let starts_ps = match starts {
            Starts::Apart(seed) => {
                let mut random = Random::new(seed);
                (0..machines).map(|_| draw(&mut random)).collect()
            }
            Starts::Together(seed) => vec![draw(&mut Random::new(seed)); machines],
            Starts::Steps(first, step) => (0..machines as u64).map(|m| first + m * step).collect(),
        };
        Self { machine, starts_ps, dialect }
    }
}

impl Noise for OnMachines {
    fn stolen_ps(&mut self, rank: u32, cpu: u8, at_ps: u64, work_ps: u64) -> u64 {
        let cpus = self.machine.cpus.len();
        let trace = &self.machine.cpus[(rank as usize + usize::from(cpu)) % cpus];
        let at = at_ps.wrapping_add(self.starts_ps[rank as usize / cpus]) % trace.length;
        match self.dialect {
            Dialect::Machmeter => trace.stolen_ps(at, work_ps),
            Dialect::LogGopSim => trace.stolen_once_ps(at, work_ps),
        }
    }
}

/// Runs a program quiet or beside noise: the end of its last rank, ps.
pub(crate) fn last_end_ps(
    program: &mut impl Program,
    params: &Params,
    noise: Option<OnMachines>,
    stop: &dyn Fn() -> bool,
) -> Result<u64, SimulateError> {
    let done = match noise {
        Some(mut noise) => run::<u64, _, _>(program, params, &mut noise, stop),
        None => run::<u64, _, _>(program, params, &mut Quiet, stop),
    }?;
    Ok(done.last().1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Against stepping through the gaps picosecond by picosecond.
    #[test]
    fn work_ends_when_all_of_it_had_the_cpu() {
        let mut random = Random::new(5);
        for _ in 0..200 {
            let length = 50 + random.below(200) as u64;
            let gaps =
                (0..random.below(12)).map(|_| (random.below(length as usize) as u64, random.below(9) as u64));
            let Ok(trace) = Trace::new(gaps.collect(), length) else { continue };
            let mut is_gap = vec![false; length as usize];
            for (i, start) in trace.start.iter().enumerate() {
                let duration = trace.stolen(i + 1) - trace.stolen(i);
                is_gap[*start as usize..(start + duration) as usize].fill(true);
            }
            for _ in 0..50 {
                let (at, work) = (random.below(length as usize) as u64, random.below(600) as u64);
                let (mut now, mut done) = (at, 0);
                while done < work {
                    done += u64::from(!is_gap[(now % length) as usize]);
                    now += 1;
                }
                assert_eq!(trace.stolen_ps(at, work), now - at - work, "{trace:?} from {at} for {work}");
                if at + work < length {
                    let gap_at = (0..=at).rev().take_while(|t| is_gap[*t as usize]).count() as u64;
                    let once = trace.stolen_once_ps(at, work);
                    assert!(once <= now - at - work || gap_at > 0, "no more than with what they delay");
                }
            }
        }
    }

    #[test]
    fn ranks_of_a_machine_keep_their_coincidence() {
        let both = |at| Trace::new(vec![(at, 100)], 10_000).unwrap();
        let machine = Arc::new(Machine { cpus: vec![both(500), both(500)] });
        for seed in 0..50 {
            let mut noise = OnMachines::new(machine.clone(), 4, Starts::Apart(seed), Dialect::Machmeter);
            let [a, b, c, d] = [0, 1, 2, 3].map(|rank| noise.stolen_ps(rank, 0, 0, 5000));
            assert_eq!((a, c), (b, d));
        }
        assert!(Trace::new(vec![(0, 20), (10, 40)], 50).is_err());
        assert!((Machine::periodic(1000, 50).unwrap().cpus[0].share() - 0.05).abs() < 1e-12);
        let random = Machine::random(1_000_000, 10_000, true).unwrap();
        assert!((random.cpus[0].share() - 0.01).abs() < 0.001, "{}", random.cpus[0].share());
    }
}
