//! The counter rate the kernel works with, from wherever it shows it.

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct KernelRate {
    pub rate_hz: f64,
    /// Half of the last digit it was published with, in parts per million.
    pub rounding_ppm: f64,
}

/// The kernel's most exact figure for this counter; `None` where it shows none (no perf, no CPUID leaf).
pub fn kernel_rate() -> Option<KernelRate> {
    let from_perf_page = crate::perf::page_clock().map(|c| rate_from_mult(c.mult, c.shift));
    from_perf_page.or_else(from_cpu)
}

/// What the hypervisor states in CPUID leaf 0x40000010, or crystal rate and ratio of leaf 0x15.
#[cfg(target_arch = "x86_64")]
fn from_cpu() -> Option<KernelRate> {
    use super::x86_64::leaf;
    let stated = leaf(0x4000_0010).filter(|r| r[0] > 0).map(|r| published(f64::from(r[0]) * 1e3, 500.0));
    stated.or_else(|| {
        let [denominator, numerator, crystal_hz, _] = leaf(0x15)?;
        let rate_hz = f64::from(crystal_hz) * f64::from(numerator) / f64::from(denominator);
        (denominator > 0 && rate_hz > 0.0).then(|| published(rate_hz, 0.5))
    })
}

#[cfg(target_arch = "aarch64")]
fn from_cpu() -> Option<KernelRate> {
    let hz = super::aarch64::counter_hz();
    (hz > 0).then(|| published(hz as f64, 0.5))
}

fn published(rate_hz: f64, half_digit_hz: f64) -> KernelRate {
    KernelRate { rate_hz, rounding_ppm: half_digit_hz / rate_hz * 1e6 }
}

/// Of `ns = ticks * mult >> shift`.
fn rate_from_mult(mult: u32, shift: u16) -> KernelRate {
    let ns_per_tick = f64::from(mult) / 2_f64.powi(i32::from(shift));
    KernelRate { rate_hz: 1e9 / ns_per_tick, rounding_ppm: 0.5e6 / f64::from(mult) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mult_and_shift_give_the_rate() {
        // What clocks_calc_mult_shift makes of 2600 MHz with shift 31.
        let rate = rate_from_mult(825_955_249, 31);
        assert!((rate.rate_hz / 2.6e9 - 1.0).abs() < 1e-8, "{rate:?}");
    }

    #[test]
    fn what_this_machine_publishes_is_a_possible_rate() {
        if let Some(rate) = kernel_rate() {
            assert!((1e6..1e11).contains(&rate.rate_hz), "{rate:?}");
            assert!((0.0..100.0).contains(&rate.rounding_ppm), "{rate:?}");
        }
    }
}
