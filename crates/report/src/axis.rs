//! Maps values to pixels, on linear and logarithmic axes, and chooses round ticks.

/// Least and greatest of `values`; `(inf, -inf)` if there are none.
pub(crate) fn ends(values: impl Iterator<Item = f64>) -> (f64, f64) {
    values.fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(v), b.max(v)))
}

/// A mapping of the values `[low, high]` to the pixels `[from, to]`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Scale {
    pub(crate) low: f64,
    pub(crate) high: f64,
    pub(crate) log: bool,
    from: f64,
    to: f64,
}

impl Scale {
    /// A scale with round ends that holds all finite `values`. It is logarithmic only if requested and a positive value exists; values at or below zero then
    /// map to the lower edge.
    pub(crate) fn fit(values: impl Iterator<Item = f64> + Clone, log: bool, from: f64, to: f64) -> Self {
        let finite = values.filter(|v| v.is_finite());
        let positive = finite.clone().filter(|v| *v > 0.0);
        let least_positive = positive.fold(f64::INFINITY, f64::min);
        if log && least_positive.is_finite() {
            let greatest = finite.fold(least_positive, f64::max);
            let (low, high) = round_log(least_positive, greatest);
            return Self { low, high, log: true, from, to };
        }
        let (least, greatest) = ends(finite);
        let (low, high) = round_linear(least, greatest);
        Self { low, high, log: false, from, to }
    }

    pub(crate) fn exact(low: f64, high: f64, log: bool, from: f64, to: f64) -> Self {
        let high = if high > low { high } else { low + low.abs().max(1.0) };
        Self { low, high, log: log && low > 0.0, from, to }
    }

    /// Pixel of `value`, clamped to the drawing area.
    pub(crate) fn at(&self, value: f64) -> f64 {
        let share = if self.log {
            if value <= self.low { 0.0 } else { (value / self.low).ln() / (self.high / self.low).ln() }
        } else {
            (value - self.low) / (self.high - self.low)
        };
        let share = if share.is_finite() { share.clamp(0.0, 1.0) } else { 0.0 };
        self.from + share * (self.to - self.from)
    }

    /// About `wanted` round values on the scale.
    pub(crate) fn ticks(&self, wanted: usize) -> Vec<f64> {
        if self.log { self.log_ticks(wanted) } else { self.linear_ticks(wanted) }
    }

    /// At most `wanted` powers of two on a logarithmic scale: the round values of sizes. `None` if the scale spans less than a factor of 8.
    pub(crate) fn powers_of_two(&self, wanted: usize) -> Option<Vec<f64>> {
        if !self.log || self.high / self.low < 8.0 {
            return None;
        }
        let first = (self.low.log2() - 1e-9).ceil() as i32;
        let last = (self.high.log2() + 1e-9).floor() as i32;
        let every = ((last - first + 1) as usize).div_ceil(wanted.max(1)).max(1);
        let begin = first + (-first).rem_euclid(every as i32);
        Some((begin..=last).step_by(every).map(|e| 2_f64.powi(e)).collect())
    }

    fn linear_ticks(&self, wanted: usize) -> Vec<f64> {
        let step = round_step((self.high - self.low) / wanted.max(1) as f64);
        let first = (self.low / step - 1e-9).ceil();
        let ticks = (0..100).map(|i| (first + f64::from(i)) * step);
        let within = ticks.take_while(|t| *t <= self.high + step * 1e-6);
        within.map(|t| if t.abs() < step * 1e-6 { 0.0 } else { t }).collect()
    }

    fn log_ticks(&self, wanted: usize) -> Vec<f64> {
        let first = (self.low.log10() - 1e-9).ceil() as i32;
        let last = (self.high.log10() + 1e-9).floor() as i32;
        let decades = (last - first + 1).max(0) as usize;
        if decades < 3 {
            let within = |t: &f64| *t >= self.low * 0.999_999 && *t <= self.high * 1.000_001;
            let all = (first - 1..=last).flat_map(|e| [1.0, 2.0, 5.0].map(|m| m * 10_f64.powi(e)));
            return all.filter(within).collect();
        }
        let every = decades.div_ceil(wanted.max(1)).max(1);
        (first..=last).step_by(every).map(|e| 10_f64.powi(e)).collect()
    }
}

fn round_linear(least: f64, greatest: f64) -> (f64, f64) {
    if !least.is_finite() || !greatest.is_finite() {
        return (0.0, 1.0);
    }
    // The axis includes zero unless all values are far from it.
    let low = if least > 0.0 && least < 0.6 * greatest { 0.0 } else { least };
    if greatest <= low {
        let half = if low == 0.0 { 1.0 } else { low.abs() * 0.5 };
        return (low - half, low + half);
    }
    let step = round_step((greatest - low) / 5.0);
    ((low / step + 1e-9).floor() * step, (greatest / step - 1e-9).ceil() * step)
}

fn round_log(least: f64, greatest: f64) -> (f64, f64) {
    let low = 10_f64.powf((least.log10() + 1e-9).floor());
    let high = 10_f64.powf((greatest.log10() - 1e-9).ceil());
    if high > low { (low, high) } else { (low, low * 10.0) }
}

fn round_step(rough: f64) -> f64 {
    if !(rough.is_finite() && rough > 0.0) {
        return 1.0;
    }
    let decade = 10_f64.powf(rough.log10().floor());
    let nice = [1.0, 2.0, 5.0].into_iter().find(|nice| rough / decade <= *nice);
    nice.unwrap_or(10.0) * decade
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn decades_get_one_tick_each() {
        let s = Scale::fit([3.0, 7_000.0].into_iter(), true, 0.0, 100.0);
        assert_eq!((s.low, s.high), (1.0, 10_000.0));
        assert_eq!(s.ticks(6), [1.0, 10.0, 100.0, 1000.0, 10_000.0]);
        assert!((s.at(100.0) - 50.0).abs() < 1e-9);
    }

    #[test]
    fn sizes_get_ticks_at_powers_of_two() {
        let s = Scale::exact(3_000.0, 300e6, true, 0.0, 100.0);
        let kib = |k: f64| k * 1024.0;
        let nine = [4.0, 16.0, 64.0, 256.0, 1024.0, 4096.0, 16384.0, 65536.0, 262_144.0].map(kib);
        assert_eq!(s.powers_of_two(9).unwrap(), nine);
        assert_eq!(s.powers_of_two(5).unwrap(), [4.0, 64.0, 1024.0, 16384.0, 262_144.0].map(kib));
        let four = |low, high| Scale::exact(low, high, true, 0.0, 1.0).powers_of_two(4);
        assert_eq!(four(8.0, 4096.0).unwrap(), [8.0, 64.0, 512.0, 4096.0]);
        assert_eq!([four(4096.0, 8192.0), four(0.0, 8192.0)], [None, None]);
    }

    #[test]
    fn a_log_axis_without_positive_values_is_linear() {
        let s = Scale::fit([0.0, 0.0].into_iter(), true, 0.0, 100.0);
        assert!(!s.log);
        assert!(s.at(0.0).is_finite());
    }

    #[test]
    fn a_constant_sits_in_the_middle() {
        let s = Scale::fit([5.0, 5.0].into_iter(), false, 0.0, 100.0);
        assert!((s.at(5.0) - 50.0).abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn pixels_stay_inside_and_keep_order(mut v in prop::collection::vec(-1e12_f64..1e12, 1..30), log: bool) {
            v.sort_by(f64::total_cmp);
            let s = Scale::fit(v.iter().copied(), log, 10.0, 310.0);
            let px: Vec<f64> = v.iter().map(|x| s.at(*x)).collect();
            prop_assert!(px.iter().all(|p| (10.0..=310.0).contains(p)));
            prop_assert!(px.windows(2).all(|w| w[0] <= w[1]));
            prop_assert!(s.ticks(6).len() <= 40);
            prop_assert!(s.ticks(6).iter().all(|t| t.is_finite()));
        }
    }
}
