//! Whether somebody else uses the core: its other hardware thread, by another guest of the host or by a program on a sibling CPU.
//!
//! Two hardware threads of a core share its execution units, so independent additions take longer while the other one works;
//! a chain of dependent ones waits for itself and takes as long as ever. Their ratio, the core's width as far as it is ours,
//! knows neither the clock of the core nor that of the machine. Nothing else tells of it inside a virtual machine: time is
//! not stolen, counters of the processor are not there, and topologies often hide the siblings.

use machmeter_sys::kernel::{Ready, named};

use crate::cost::{Pair, Row};

/// Share of the greatest width at which nobody else used the core. A neighbour takes at least a tenth; the ratio is known to 2 %.
pub const ALONE: f64 = 0.95;
/// Turns of the chain: 2,048 additions, about 0.6 us.
const DEPENDENT_TURNS: u64 = 32;
/// Turns side by side: 7,680 additions, about as long.
const SIDE_TURNS: u64 = 128;

/// The two kernels.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Witness {
    dependent: Ready<'static>,
    side: Ready<'static>,
}

impl Witness {
    /// `None` where a kernel is missing.
    pub(crate) fn new() -> Option<Self> {
        let ready = |name, turns| named(name)?.of_registers(turns);
        Some(Self { dependent: ready("adds.64", DEPENDENT_TURNS)?, side: ready("side.60", SIDE_TURNS)? })
    }

    /// Additions that the core made beside each other in the time of one, with the ticks that `time` says work takes. 0 where
    /// the clock saw no time pass.
    pub(crate) fn width(&self, mut time: impl FnMut(&mut dyn FnMut()) -> u64) -> f64 {
        let mut each = |kernel: &Ready<'_>| {
            // Once before: its code may have left the caches.
            kernel.run(1);
            let ticks = time(&mut || {
                std::hint::black_box(kernel.run(1));
            });
            ticks as f64 / (u64::from(kernel.kernel().declared.operations) * kernel.turns()) as f64
        };
        let (dependent, side) = (each(&self.dependent), each(&self.side));
        if dependent > 0.0 && side > 0.0 { dependent / side } else { 0.0 }
    }
}

/// The whole width of the core: the greatest that any pair saw. `None` where nobody looked.
pub fn whole_width(rows: &[Row]) -> Option<f64> {
    let widths = rows.iter().flat_map(|r| &r.pairs).map(|p| p.core_width);
    Some(widths.fold(0.0, f64::max)).filter(|w| *w > 0.0)
}

/// Whether nobody else used the core while a pair was taken, given its whole width; unknown where nobody looked.
pub fn alone(pair: &Pair, whole: f64) -> Option<bool> {
    (pair.core_width > 0.0).then_some(pair.core_width >= ALONE * whole)
}

#[cfg(test)]
mod tests {
    use super::*;
    use machmeter_sys::thread::monotonic_ns;

    #[test]
    fn the_width_is_the_ratio_of_what_both_kernels_take() {
        let witness = Witness::new().unwrap();
        let mut ticks = [4_096, 3_840].into_iter();
        let width = witness.width(|work| {
            work();
            ticks.next().unwrap()
        });
        // 2 ticks a dependent addition, half a tick one of the others.
        assert!((width - 4.0).abs() < 1e-9, "{width}");
        assert_eq!(witness.width(|_| 0), 0.0);
    }

    #[test]
    fn this_processor_adds_several_numbers_at_a_time() {
        let witness = Witness::new().unwrap();
        let timed = |work: &mut dyn FnMut()| {
            let begin_ns = monotonic_ns();
            work();
            monotonic_ns() - begin_ns
        };
        let greatest = (0..2_000).map(|_| witness.width(timed)).fold(0.0, f64::max);
        assert!(greatest > 1.5, "{greatest}");
    }
}
