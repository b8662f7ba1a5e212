//! Burning CPU time: one loop, so that what is calibrated runs, and a job that asks the thread's own clock.

use std::hint::black_box;

use machmeter_sys::thread;

/// Longest stretch between two looks at the clock, ns: what changes of frequency or a wrong calibration can cost.
const STRETCH_NS: u64 = 200_000;
/// The rest below which no further stretch is worth the look at the clock, ns.
const REST_NS: u64 = 500;
/// Time that calibration takes, ns of CPU, and its bound in stretches.
const CALIBRATION_NS: u64 = 3_000_000;
const CALIBRATION_STRETCHES: usize = 400;

/// Turns of an empty loop. Never inlined: copies are aligned differently (interbench 0.31 runs one twice as fast).
#[inline(never)]
pub fn spin(turns: u64) {
    let mut i = 0_u64;
    while i < turns {
        i = black_box(i + 1);
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spinner {
    turns_per_ns: f64,
}

impl Spinner {
    /// Calibrates on the calling thread: about 3 ms of CPU time, bounded also where the CPU is hardly to be had.
    pub fn calibrate() -> Self {
        let mut rates: Vec<f64> = Vec::new();
        let (mut turns, begun_ns) = (1_000, thread::thread_cpu_ns());
        for _ in 0..CALIBRATION_STRETCHES {
            let before_ns = thread::thread_cpu_ns();
            spin(turns);
            let after_ns = thread::thread_cpu_ns();
            let took_ns = after_ns - before_ns;
            if took_ns > 10_000 {
                rates.push(turns as f64 / took_ns as f64);
            } else {
                turns *= 4;
            }
            if rates.len() >= 20 && after_ns - begun_ns > CALIBRATION_NS {
                break;
            }
        }
        rates.sort_by(f64::total_cmp);
        // The median: a stretch that an interrupt fell into looks slow, one counted by a coarse clock may look fast.
        Self { turns_per_ns: rates.get(rates.len() / 2).copied().unwrap_or(1.0).max(1e-3) }
    }

    /// Turns per millisecond of CPU time.
    pub fn turns_per_ms(&self) -> f64 {
        self.turns_per_ns * 1e6
    }

    /// Burns `cpu_ns` of the thread's CPU time from `before_ns` on; returns the true time. Asks `stop` every 0.2 ms.
    pub fn burn(&mut self, before_ns: u64, cpu_ns: u64, stop: &dyn Fn() -> bool) -> u64 {
        let mut used_ns = thread::thread_cpu_ns() - before_ns;
        while used_ns + REST_NS < cpu_ns && !stop() {
            let rest_ns = cpu_ns - used_ns;
            // Shorter and shorter ones: a core that others share may have slowed down by a third since the last look.
            let stretch_ns =
                if rest_ns > 2 * STRETCH_NS { STRETCH_NS } else { (rest_ns * 7 / 10).min(STRETCH_NS) };
            spin(((stretch_ns as f64 * self.turns_per_ns) as u64).max(1));
            let now_ns = thread::thread_cpu_ns() - before_ns;
            self.learn(stretch_ns, now_ns - used_ns);
            used_ns = now_ns;
        }
        used_ns
    }

    /// Follows changes of speed slowly; one stretch alone may be an interrupt's.
    fn learn(&mut self, asked_ns: u64, took_ns: u64) {
        if asked_ns >= 20_000 && took_ns > 0 {
            let ratio = (asked_ns as f64 / took_ns as f64).clamp(0.5, 2.0);
            self.turns_per_ns *= 1.0 + 0.1 * (ratio - 1.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_gets_the_cpu_time_it_asks_for() {
        let mut spinner = Spinner::calibrate();
        let mut errors: Vec<f64> = Vec::new();
        for cpu_ns in [800_000, 2_500_000, 6_666_667] {
            for _ in 0..15 {
                let before = thread::thread_cpu_ns();
                spinner.burn(before, cpu_ns, &|| false);
                let got = thread::thread_cpu_ns() - before;
                errors.push((got as f64 / cpu_ns as f64 - 1.0).abs());
            }
        }
        errors.sort_by(f64::total_cmp);
        assert!(errors[errors.len() / 2] < 0.01, "median error {}", errors[errors.len() / 2]);
    }

    #[test]
    fn a_wrong_calibration_is_mended_by_the_clock() {
        for factor in [0.2, 5.0] {
            let right = Spinner::calibrate();
            let mut wrong = Spinner { turns_per_ns: right.turns_per_ns * factor };
            let before = thread::thread_cpu_ns();
            wrong.burn(before, 20_000_000, &|| false);
            let got = (thread::thread_cpu_ns() - before) as f64;
            assert!((0.98..1.10).contains(&(got / 20e6)), "{got}");
        }
    }

    #[test]
    fn a_stop_ends_the_burning() {
        let before = thread::thread_cpu_ns();
        let used = Spinner::calibrate().burn(before, 60_000_000_000, &|| true);
        assert!(used < 1_000_000_000);
    }
}
