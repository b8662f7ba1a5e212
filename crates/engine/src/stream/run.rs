//! The runner: one loop for every stream, generic over the machine it runs on.

use machmeter_stats::random::Random;

use super::{Demand, Fate, Job, Overload, Release, Stream};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Spent {
    /// CPU time, ns.
    pub cpu_ns: u64,
    /// Waits for wake-ups after the job had begun (the hops of a chain), ns.
    pub wake_ns: u64,
    /// When the last stage was done, on the machine's clock, ns.
    pub ended_ns: u64,
}

pub trait Machine {
    /// Time, ns (monotonic).
    fn now_ns(&mut self) -> u64;
    /// Sleeps until `at_ns`; returns at once when that has passed.
    fn sleep_until(&mut self, at_ns: u64);
    /// Executes a job's demand and then its further stages.
    fn execute(&mut self, demand: Demand, stages: &[Demand], job: u64) -> Spent;
    /// Whether somebody asked to stop.
    fn stopped(&self) -> bool;
}

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    Time,
    Asked,
    Full,
}

struct Schedule {
    release: Release,
    random: Random,
    /// Number and time after the start of the next release.
    number: u64,
    next_ns: u64,
}

impl Schedule {
    fn new(release: Release, seed: u64) -> Self {
        let mut s = Self { release, random: Random::new(seed), number: 0, next_ns: 0 };
        if let Release::Poisson { mean_ns } = release {
            s.next_ns = s.interval(mean_ns);
        }
        s
    }

    fn interval(&mut self, mean_ns: u64) -> u64 {
        (self.random.exponential() * mean_ns as f64) as u64
    }

    /// Takes the next release. A closed loop counts from the end of the job before.
    fn take(&mut self, ended_ns: u64) -> (u64, u64) {
        if let Release::Closed { think_ns } = self.release
            && self.number > 0
        {
            self.next_ns = ended_ns + think_ns;
        }
        let taken = (self.number, self.next_ns);
        self.number += 1;
        match self.release {
            Release::Periodic { period_ns } => self.next_ns += period_ns,
            Release::Poisson { mean_ns } => self.next_ns += self.interval(mean_ns),
            Release::Closed { .. } => {}
        }
        taken
    }

    /// Whether the next release has passed at `now_ns` after the start.
    fn has_passed(&self, now_ns: u64) -> bool {
        !matches!(self.release, Release::Closed { .. }) && self.next_ns <= now_ns
    }
}

/// Runs `stream`, each release executed or dropped into `jobs` up to its capacity. Nothing is allocated.
pub fn run<M: Machine>(
    machine: &mut M,
    stream: &Stream,
    t0_ns: u64,
    length_ns: u64,
    seed: u64,
    jobs: &mut Vec<Job>,
) -> Stop {
    let mut schedule = Schedule::new(stream.release, seed);
    let deadline_ns = stream.deadline_ns();
    let mut ended_ns = 0;
    loop {
        if machine.stopped() {
            return Stop::Asked;
        }
        if jobs.len() == jobs.capacity() {
            return Stop::Full;
        }
        let (number, release_ns) = schedule.take(ended_ns);
        if release_ns >= length_ns {
            return Stop::Time;
        }
        let mut now_ns = machine.now_ns();
        let slept = now_ns < t0_ns + release_ns;
        if slept {
            machine.sleep_until(t0_ns + release_ns);
            now_ns = machine.now_ns();
            if machine.stopped() {
                return Stop::Asked;
            }
        }
        let begun_ns = now_ns.saturating_sub(t0_ns).max(release_ns);
        let wake_ns = begun_ns - release_ns;
        let give_up = match stream.overload {
            Overload::Drop => schedule.has_passed(begun_ns),
            Overload::Queue { most_periods: 0 } => false,
            Overload::Queue { most_periods } => {
                stream.period_ns().is_some_and(|p| wake_ns > p * u64::from(most_periods))
            }
            Overload::Skip => deadline_ns.is_some_and(|d| wake_ns > d),
        };
        if give_up {
            ended_ns = begun_ns;
            let fate = if slept { Fate::Overslept } else { Fate::Dropped };
            jobs.push(dropped(number, release_ns, begun_ns, fate));
            if stream.overload != Overload::Skip && !drop_passed(&mut schedule, begun_ns, length_ns, jobs) {
                return Stop::Full;
            }
            continue;
        }
        let spent = machine.execute(stream.demand.of_job(number), &stream.stages, number);
        ended_ns = spent.ended_ns.saturating_sub(t0_ns).max(begun_ns);
        jobs.push(Job {
            number,
            release_ns,
            wake_ns: wake_ns + spent.wake_ns,
            response_ns: ended_ns - release_ns,
            cpu_ns: spent.cpu_ns,
            fate: if slept { Fate::Ran } else { Fate::RanBehind },
        });
        if stream.overload == Overload::Drop && !drop_passed(&mut schedule, ended_ns, length_ns, jobs) {
            return Stop::Full;
        }
    }
}

fn dropped(number: u64, release_ns: u64, now_ns: u64, fate: Fate) -> Job {
    let wait_ns = now_ns - release_ns;
    Job { number, release_ns, wake_ns: wait_ns, response_ns: wait_ns, cpu_ns: 0, fate }
}

/// Drops every release that has passed at `now_ns`; false when there is no room for one.
fn drop_passed(schedule: &mut Schedule, now_ns: u64, length_ns: u64, jobs: &mut Vec<Job>) -> bool {
    while schedule.has_passed(now_ns) && schedule.next_ns < length_ns {
        if jobs.len() == jobs.capacity() {
            return false;
        }
        let (number, release_ns) = schedule.take(0);
        jobs.push(dropped(number, release_ns, now_ns, Fate::Dropped));
    }
    true
}

#[cfg(test)]
mod tests {
    use super::super::Deadline;
    use super::*;

    /// A machine that is alone except in given intervals.
    struct Planned {
        clock_ns: u64,
        busy: Vec<(u64, u64)>,
        wake_cost_ns: u64,
    }

    impl Planned {
        fn wait_if_busy(&mut self) {
            for &(from, to) in &self.busy {
                if self.clock_ns >= from && self.clock_ns < to {
                    self.clock_ns = to;
                }
            }
        }
    }

    impl Machine for Planned {
        fn now_ns(&mut self) -> u64 {
            self.clock_ns
        }
        fn sleep_until(&mut self, at_ns: u64) {
            self.clock_ns = self.clock_ns.max(at_ns) + self.wake_cost_ns;
            self.wait_if_busy();
        }
        fn execute(&mut self, demand: Demand, _: &[Demand], _: u64) -> Spent {
            let Demand::Cpu { ns } = demand else { panic!("not simulated") };
            for _ in 0..ns {
                self.wait_if_busy();
                self.clock_ns += 1;
            }
            self.wait_if_busy();
            Spent { cpu_ns: ns, wake_ns: 0, ended_ns: self.clock_ns }
        }
        fn stopped(&self) -> bool {
            false
        }
    }

    fn stream(overload: Overload) -> Stream {
        Stream {
            release: Release::Periodic { period_ns: 100 },
            demand: Demand::Cpu { ns: 40 },
            deadline: Deadline::Next,
            overload,
            stages: Vec::new(),
        }
    }

    fn jobs(overload: Overload, busy: &[(u64, u64)]) -> Vec<(u64, u64, u64, Fate)> {
        let mut out = Vec::with_capacity(100);
        let mut machine = Planned { clock_ns: 990, busy: busy.to_vec(), wake_cost_ns: 0 };
        assert_eq!(run(&mut machine, &stream(overload), 1000, 600, 1, &mut out), Stop::Time);
        assert_eq!(out.len(), 6, "every release is accounted for");
        out.iter().map(|j| (j.release_ns, j.wake_ns, j.response_ns, j.fate)).collect()
    }

    #[test]
    fn an_undisturbed_stream_meets_every_deadline() {
        for j in jobs(Overload::Drop, &[]) {
            assert_eq!((j.1, j.2), (0, 40));
        }
    }

    #[test]
    fn what_is_late_is_dropped_queued_or_skipped() {
        use Fate::{Dropped, Overslept, Ran, RanBehind};
        let queue = |most_periods| Overload::Queue { most_periods };
        let given_up = (100, 150, 150, Overslept);
        // Release 100 begins, is preempted at 130, ends at 320; releases 200 and 300 are gone.
        let preempted =
            [(100, 0, 220, Ran), (200, 120, 120, Dropped), (300, 20, 20, Dropped), (400, 0, 40, Ran)];
        assert_eq!(jobs(Overload::Drop, &[(1130, 1310)])[1..5], preempted);
        let caught_up =
            [(100, 150, 190, Ran), (200, 90, 130, RanBehind), (300, 30, 70, RanBehind), (400, 0, 40, Ran)];
        assert_eq!(jobs(queue(2), &[(1090, 1250)])[1..5], caught_up);
        for (overload, second) in [
            (Overload::Drop, (200, 50, 50, Dropped)),
            (queue(1), (200, 50, 50, Dropped)),
            (Overload::Skip, (200, 50, 90, RanBehind)),
        ] {
            assert_eq!(jobs(overload, &[(1090, 1250)])[1..4], [given_up, second, (300, 0, 40, Ran)]);
        }
    }

    #[test]
    fn a_closed_loop_waits_for_its_own_end() {
        let stream = Stream {
            release: Release::Closed { think_ns: 10 },
            deadline: Deadline::None,
            ..stream(Overload::Drop)
        };
        let mut out = Vec::with_capacity(100);
        let mut machine = Planned { clock_ns: 0, busy: vec![(45, 60)], wake_cost_ns: 2 };
        run(&mut machine, &stream, 0, 200, 1, &mut out);
        let seen: Vec<_> = out.iter().map(|j| (j.release_ns, j.wake_ns, j.response_ns)).collect();
        assert_eq!(seen, [(0, 0, 40), (50, 10, 50), (110, 2, 42), (162, 2, 42)]);
    }

    #[test]
    fn a_closed_loop_that_skips_goes_on_from_there() {
        let stream = Stream {
            release: Release::Closed { think_ns: 10 },
            deadline: Deadline::After { ns: 5 },
            ..stream(Overload::Skip)
        };
        let mut out = Vec::with_capacity(100);
        let mut machine = Planned { clock_ns: 0, busy: vec![(45, 60)], wake_cost_ns: 0 };
        assert_eq!(run(&mut machine, &stream, 0, 200, 1, &mut out), Stop::Time);
        let seen: Vec<_> = out.iter().map(|j| (j.release_ns, j.wake_ns, j.fate)).collect();
        assert_eq!(seen[..3], [(0, 0, Fate::RanBehind), (50, 10, Fate::Overslept), (70, 0, Fate::Ran)]);
    }

    #[test]
    fn a_poisson_stream_keeps_its_mean_and_is_repeatable() {
        let stream = Stream {
            release: Release::Poisson { mean_ns: 1000 },
            demand: Demand::Cpu { ns: 1 },
            deadline: Deadline::After { ns: 500 },
            overload: Overload::Queue { most_periods: 0 },
            stages: Vec::new(),
        };
        let of = |seed| {
            let mut out = Vec::with_capacity(stream.jobs_in(1_000_000));
            let mut machine = Planned { clock_ns: 0, busy: Vec::new(), wake_cost_ns: 0 };
            run(&mut machine, &stream, 0, 1_000_000, seed, &mut out);
            out
        };
        let jobs = of(7);
        assert!((900..1100).contains(&jobs.len()), "{}", jobs.len());
        assert_eq!(jobs, of(7));
        assert_ne!(jobs, of(8));
    }

    #[test]
    fn the_ramp_goes_from_nothing_to_all() {
        let ramp = Demand::Ramp { most_ns: 100, steps: 101 };
        let asked: Vec<u64> = (0..103).filter_map(|k| ramp.cpu_ns(k)).collect();
        assert_eq!((asked[0], asked[50], asked[100], asked[101]), (0, 50, 100, 0));
    }
}
