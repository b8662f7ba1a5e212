//! Whether somebody else uses the core: its other hardware thread, by another guest of the host or by a program on a sibling CPU.
//!
//! Two hardware threads of a core share its execution units, and while both are at work each has only half of what holds instructions
//! under way. So a mixture of them takes longer: a chain of floating-point additions, and beside it so many integer additions that
//! the next chain cannot begin unless all of them are held. A chain of dependent integer additions waits for itself and takes as long as
//! ever. The ratio of the two, the core's width as far as it is ours, knows neither the clock of the core nor that of the machine. Integer
//! additions alone do not do: a neighbor that waits for memory or adds doubles leaves them as quick as ever while loops over
//! vectors take twice their time. Nothing else tells of it inside a virtual machine: time is
//! not stolen, counters of the processor are not there, and topologies often hide the siblings.

use machmeter_stats::quantile::{median_of, quantile, sorted};
use machmeter_sys::kernel::{Ready, named};
use serde::{Deserialize, Serialize};

use crate::cost::Pair;

/// Share of the whole width at which nobody else used the core. A neighbor takes at least a tenth; the ratio is known to 2 %.
pub const ALONE: f64 = 0.95;
/// Share of the greatest widths that are passed over.
const WILD: f64 = 0.02;
/// Pairs that are dense, and times as many as just below: only the widths of a whole core end in an edge.
const FEWEST: usize = 12;
const DENSER: usize = 2;
/// Most steps on the way to the densest width.
const STEPS: usize = 50;
/// Turns of the chain: 2,048 additions, about 0.6 us; more by a whole factor where the clock is coarse.
const DEPENDENT_TURNS: u64 = 32;
/// Turns of the mixture: 6,840 instructions, about as long.
const MIXED_TURNS: u64 = 40;
/// Steps of the clock that a look lasts at least. Each end is off by less than one, so that the ratio of two looks is known to 2 %.
const STEPS_OF_CLOCK: u64 = 57;
/// Readings of the clock that tell its step, and runs of the chain that tell how long it takes.
const READINGS: usize = 64;
const RUNS: usize = 3;

/// What looks at the core saw; zeros where nobody looked.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct CoreLook {
    /// Instructions of the mixture that the core did in the time of one dependent addition.
    pub width: f64,
    /// Ticks of a dependent addition: a cycle of the core.
    pub addition_ticks: f64,
}

/// Looks at a core around batches: before, between and after.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct CoreLooks {
    looks: [CoreLook; 3],
    taken: usize,
}

impl CoreLooks {
    pub(crate) fn add(&mut self, look: CoreLook) {
        if let Some(free) = self.looks.get_mut(self.taken) {
            *free = look;
            self.taken += 1;
        }
    }

    /// A neighbor seen once counts. Of the clock the median: a stall of one look is no slower clock.
    pub(crate) fn together(self) -> CoreLook {
        let looks = &self.looks[..self.taken];
        let additions: Vec<f64> = looks.iter().map(|l| l.addition_ticks).filter(|t| *t > 0.0).collect();
        let width = looks.iter().map(|l| l.width).reduce(f64::min).unwrap_or_default();
        CoreLook { width, addition_ticks: median_of(&additions).unwrap_or_default() }
    }
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct SiblingDetector {
    dependent: Ready<'static>,
    /// The same chain of twice as many additions.
    twice: Ready<'static>,
    mixed: Ready<'static>,
}

impl SiblingDetector {
    /// For the clock that says what ticks work takes, and its reading. `None` where a kernel is missing.
    pub(crate) fn new(
        mut time: impl FnMut(&mut dyn FnMut()) -> u64,
        mut ticks: impl FnMut() -> u64,
    ) -> Option<Self> {
        let ready = |name, turns| named(name)?.of_registers(turns);
        let dependent = ready("adds.64", DEPENDENT_TURNS)?;
        let readings: Vec<u64> = (0..READINGS).map(|_| ticks()).collect();
        let steps = readings.windows(2).map(|r| r[1].saturating_sub(r[0])).filter(|d| *d > 0);
        let step = steps.min().unwrap_or(1);
        let mut run = || {
            time(&mut || {
                std::hint::black_box(dependent.run(1));
            })
        };
        let least = (0..RUNS).map(|_| run()).min().unwrap_or(0).max(1);
        let factor = (STEPS_OF_CLOCK * step).div_ceil(least).clamp(1, STEPS_OF_CLOCK);
        let dependent = ready("adds.64", DEPENDENT_TURNS * factor)?;
        let twice = ready("adds.64", 2 * DEPENDENT_TURNS * factor)?;
        Some(Self { dependent, twice, mixed: ready("mix.160", MIXED_TURNS * factor)? })
    }

    /// A look, with the ticks that `time` says work takes. Zeros where the clock saw no time pass.
    ///
    /// What reading the clock adds cancels in the difference of both chains; it overlaps with them, so none of it can be taken off one.
    pub(crate) fn look(&self, mut time: impl FnMut(&mut dyn FnMut()) -> u64) -> CoreLook {
        let mut timed = |kernel: &Ready<'_>| {
            time(&mut || {
                std::hint::black_box(kernel.run(1));
            })
        };
        // Once before, with the reading of the clock: their code may have left the caches.
        timed(&self.dependent);
        let (dependent_ticks, twice_ticks) = (timed(&self.dependent), timed(&self.twice));
        timed(&self.mixed);
        let mixed_ticks = timed(&self.mixed);
        if dependent_ticks == 0 || mixed_ticks == 0 {
            return CoreLook::default();
        }
        let of =
            |kernel: &Ready<'_>| (u64::from(kernel.kernel().declared.operations) * kernel.turns()) as f64;
        let (additions, mixed) = (of(&self.dependent), of(&self.mixed));
        let width = dependent_ticks as f64 / additions / (mixed_ticks as f64 / mixed);
        CoreLook { width, addition_ticks: twice_ticks.saturating_sub(dependent_ticks) as f64 / additions }
    }
}

/// The whole width of the core: the highest place where widths are dense and above which there are hardly any.
/// Where they do not end so, the widest but single ones. A core always shared looks like a narrow one.
pub fn whole_width(widths: &[f64]) -> Option<f64> {
    let widths = sorted(widths).ok()?;
    let up_to = |most: f64| widths.partition_point(|w| *w <= most);
    let is_dense = |top: &f64| {
        let below = up_to(ALONE * top);
        let (here, next) = (up_to(*top) - below, below - up_to(ALONE * ALONE * top));
        here >= FEWEST && here >= DENSER * next
    };
    let dense = widths.iter().rev().copied().find(is_dense).and_then(|top| densest_near(&widths, top));
    let beyond = |width: f64| (widths.len() - up_to(width / ALONE)) as f64;
    dense.filter(|width| beyond(*width) <= WILD * widths.len() as f64).or_else(|| {
        let single = widths.len().saturating_sub(FEWEST);
        Some(quantile(&widths, 1.0 - WILD)?.max(*widths.get(single)?))
    })
}

/// The median of all nearby, gone to until it stays.
fn densest_near(widths: &[f64], start: f64) -> Option<f64> {
    let mut whole = start;
    for _ in 0..STEPS {
        let near = widths.iter().filter(|w| (**w - whole).abs() <= (1.0 - ALONE) * whole).copied();
        let next = median_of(&near.collect::<Vec<f64>>())?;
        if next == whole {
            break;
        }
        whole = next;
    }
    Some(whole)
}

/// Leak where the widths of a run are not known: a fiftieth passed, and a twentieth is granted (ADR 22).
pub(crate) const LEAK: f64 = 0.05;

/// Tells undisturbed pairs from shared ones.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Filter {
    /// The whole width of the core.
    pub whole: f64,
    /// Share of the shared pairs that pass.
    pub leak: f64,
}

impl Filter {
    /// As [`alone`].
    pub fn alone(&self, pair: &Pair) -> Option<bool> {
        alone(pair, self.whole)
    }
}

/// Share of the shared pairs whose width passes for the `whole` one. Widths beside a neighbor become rarer towards the whole width,
/// since the least of three looks counts: as many as lie within 5 % below the edge pass at most. Undisturbed pairs there are counted, too.
pub fn leak(widths: &[f64], whole: f64) -> f64 {
    let below = |most: f64| widths.iter().filter(|w| **w < most * whole).count() as f64;
    let (shared, farther) = (below(ALONE), below(ALONE * ALONE));
    let beside = shared - farther;
    if shared > 0.0 { beside / (shared + beside) } else { 0.0 }
}

/// Whether nobody else used the core while a pair was taken, given its whole width; unknown where nobody looked.
pub fn alone(pair: &Pair, whole: f64) -> Option<bool> {
    (pair.core.width > 0.0).then_some(pair.core.width >= ALONE * whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use machmeter_stats::random::Random;
    use machmeter_sys::thread::monotonic_ns;

    #[test]
    fn the_width_is_the_ratio_of_what_both_kernels_take() {
        let sibling = SiblingDetector::new(|_| 2_000, || 0).unwrap();
        let mut ticks = [5_000, 4_096, 8_064, 4_000, 3_420].into_iter();
        let look = sibling.look(|work| {
            work();
            ticks.next().unwrap()
        });
        // 2 ticks a dependent addition, half a tick an instruction of the mixture; 128 more were the clock's.
        assert_eq!(look, CoreLook { width: 4.0, addition_ticks: 3_968.0 / 2_048.0 });
        assert_eq!(sibling.look(|_| 0), CoreLook::default());
    }

    #[test]
    fn a_coarse_clock_makes_looks_longer() {
        let turns = |step: u64| {
            let mut now = 0;
            let reading = move || {
                now += step;
                now
            };
            SiblingDetector::new(|_| 600, reading).unwrap().dependent.turns() / DEPENDENT_TURNS
        };
        let steps = [1, 10, 40, 1_000];
        assert_eq!(steps.map(turns), [1, 1, 4, 57], "steps in ticks, of which the chain takes 600");
    }

    #[test]
    fn of_three_looks_the_least_width_and_the_clock_in_the_middle_count() {
        let mut looks = CoreLooks::default();
        assert_eq!(looks.together(), CoreLook::default());
        let mut together = |width, addition_ticks| {
            looks.add(CoreLook { width, addition_ticks });
            looks.together()
        };
        assert_eq!(together(3.9, 0.5).addition_ticks, 0.5);
        assert_eq!(together(2.1, 0.75).addition_ticks, 0.625);
        assert_eq!(together(3.8, 1.5), CoreLook { width: 2.1, addition_ticks: 0.75 });
    }

    #[test]
    fn the_whole_width_is_found_beside_neighbours_and_wild_values() {
        let mut random = Random::new(3);
        let cases = [(0.5, 2.0, 3.7), (0.05, 2.0, 3.7), (1.0, 2.0, 5.4), (0.3, 3.3, 3.9)];
        for (alone, with_one, truth) in cases {
            // Of each pair the least of three looks; a neighbor is at work all the time, or for part of a look.
            let mut look = |is_alone: bool| {
                let part = if random.unit() < 0.5 { 0.0 } else { random.unit() };
                let width = if is_alone { truth } else { with_one + (truth - with_one) * part };
                let wild = if random.unit() < 0.01 { 1.0 + random.unit() } else { 1.0 };
                width * wild * (1.0 + 0.015 * random.normal())
            };
            let mut pair = |i: usize| {
                let is_alone = (i % 100) as f64 >= 100.0 * (1.0 - alone);
                (0..3).map(|_| look(is_alone)).fold(f64::INFINITY, f64::min)
            };
            let widths: Vec<f64> = (0..3_000).map(&mut pair).collect();
            let found = whole_width(&widths).unwrap();
            assert!((found / truth - 1.0).abs() < 0.03, "{found}, planted {truth}");
        }
        assert_eq!(whole_width(&[]), None);
    }

    #[test]
    fn a_core_that_is_whole_for_one_look_in_three_hundred_is_known() {
        let mut random = Random::new(5);
        let widths: Vec<f64> = (0..5_000)
            .map(|i| if i % 300 == 0 { 3.9 + 0.1 * random.unit() } else { 2.0 + 1.5 * random.unit().powi(3) })
            .collect();
        assert!((whole_width(&widths).unwrap() / 3.95 - 1.0).abs() < 0.01);
    }

    #[test]
    fn this_processor_does_several_instructions_at_a_time() {
        let timed = |work: &mut dyn FnMut()| {
            let begin_ns = monotonic_ns();
            work();
            monotonic_ns() - begin_ns
        };
        let sibling = SiblingDetector::new(timed, monotonic_ns).unwrap();
        let greatest = (0..2_000).map(|_| sibling.look(timed).width).fold(0.0, f64::max);
        assert!(greatest > 1.5, "{greatest}");
    }
}
