//! The counter rate the kernel works with, from wherever it shows it.

use serde::{Deserialize, Serialize};

/// Where the kernel's rate was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KernelRateSource {
    /// `time_mult` and `time_shift` of a perf event's page: what the scheduler clock uses.
    PerfPage,
    /// The generic timer's `cntfrq_el0`.
    Cntfrq,
    /// CPUID leaf 0x40000010: the rate the hypervisor states.
    CpuidHypervisor,
    /// CPUID leaf 0x15: crystal rate and ratio.
    CpuidCrystal,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct KernelRate {
    /// Ticks per second.
    pub rate_hz: f64,
    /// Half of the last digit it was published with, in parts per million.
    pub rounding_ppm: f64,
    pub source: KernelRateSource,
}

/// The kernel's own figure for this architecture's counter, the most exact one that can be seen; `None` where the
/// system shows none (perf forbidden, no CPUID leaf).
pub fn kernel_rate() -> Option<KernelRate> {
    from_perf_page().or_else(from_cpu)
}

#[cfg(target_arch = "x86_64")]
fn from_cpu() -> Option<KernelRate> {
    use super::x86_64::leaf;
    let stated = leaf(0x4000_0010)
        .filter(|r| r[0] > 0)
        .map(|r| published(f64::from(r[0]) * 1e3, 500.0, KernelRateSource::CpuidHypervisor));
    stated.or_else(|| {
        let [denominator, numerator, crystal_hz, _] = leaf(0x15)?;
        let rate_hz = f64::from(crystal_hz) * f64::from(numerator) / f64::from(denominator);
        (denominator > 0 && rate_hz > 0.0).then(|| published(rate_hz, 0.5, KernelRateSource::CpuidCrystal))
    })
}

#[cfg(target_arch = "aarch64")]
fn from_cpu() -> Option<KernelRate> {
    let hz = super::aarch64::counter_hz();
    (hz > 0).then(|| published(hz as f64, 0.5, KernelRateSource::Cntfrq))
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn from_cpu() -> Option<KernelRate> {
    None
}

fn published(rate_hz: f64, half_digit_hz: f64, source: KernelRateSource) -> KernelRate {
    KernelRate { rate_hz, rounding_ppm: half_digit_hz / rate_hz * 1e6, source }
}

/// `struct perf_event_attr` of its first published size (`PERF_ATTR_SIZE_VER0`), as words; zero but for type, size,
/// config and flags.
fn dummy_event() -> [u64; 8] {
    const TYPE_SOFTWARE: u64 = 1;
    const SIZE_BYTES: u64 = 64;
    const CONFIG_DUMMY: u64 = 9;
    const DISABLED: u64 = 1;
    const EXCLUDE_KERNEL: u64 = 1 << 5;
    const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
    // Two 32-bit fields in a word: the first one in memory is the low half on a little-endian machine.
    let type_and_size = TYPE_SOFTWARE | SIZE_BYTES << 32;
    [type_and_size, CONFIG_DUMMY, 0, 0, 0, DISABLED | EXCLUDE_KERNEL | EXCLUDE_HYPERVISOR, 0, 0]
}

/// Reads `time_mult` and `time_shift` from the page of a software event that counts nothing (`perf_event_open(2)`,
/// `struct perf_event_mmap_page`): `ns = ticks * mult >> shift`.
#[cfg(target_endian = "little")]
fn from_perf_page() -> Option<KernelRate> {
    use std::os::fd::{FromRawFd, OwnedFd};

    use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

    /// `PERF_FLAG_FD_CLOEXEC`, which the libc crate does not have.
    const FLAG_CLOSE_ON_EXEC: libc::c_ulong = 1 << 3;
    const CAPABILITIES_BYTE: usize = 40;
    const SHIFT_BYTE: usize = 50;
    const MULT_BYTE: usize = 52;
    const CAP_USER_TIME: u64 = 1 << 3;

    let attr = dummy_event();
    let (pid, cpu, group): (libc::pid_t, libc::c_int, libc::c_int) = (0, -1, -1);
    // SAFETY: `attr` is laid out as the kernel expects, states its own size, and is only read.
    let raw = unsafe {
        libc::syscall(libc::SYS_perf_event_open, attr.as_ptr(), pid, cpu, group, FLAG_CLOSE_ON_EXEC)
    };
    let raw = i32::try_from(raw).ok().filter(|fd| *fd >= 0)?;
    // SAFETY: the call just made gave this descriptor to us alone.
    let fd = unsafe { OwnedFd::from_raw_fd(raw) };
    let length_bytes = rustix::param::page_size();
    // SAFETY: a new mapping at an address of the kernel's choice; unmapped below.
    let page = unsafe { mmap(std::ptr::null_mut(), length_bytes, ProtFlags::READ, MapFlags::SHARED, &fd, 0) }
        .ok()?;
    // SAFETY: the page is mapped, the offset lies in it and is aligned; volatile because the kernel writes it.
    let capabilities = unsafe { page.wrapping_byte_add(CAPABILITIES_BYTE).cast::<u64>().read_volatile() };
    // SAFETY: as above.
    let shift = unsafe { page.wrapping_byte_add(SHIFT_BYTE).cast::<u16>().read_volatile() };
    // SAFETY: as above.
    let mult = unsafe { page.wrapping_byte_add(MULT_BYTE).cast::<u32>().read_volatile() };
    // SAFETY: exactly the mapping made above; nothing points into it any more.
    let unmapped = unsafe { munmap(page, length_bytes) };
    debug_assert!(unmapped.is_ok());
    rate_from_mult(capabilities & CAP_USER_TIME != 0, mult, shift)
}

#[cfg(not(target_endian = "little"))]
fn from_perf_page() -> Option<KernelRate> {
    None
}

fn rate_from_mult(valid: bool, mult: u32, shift: u16) -> Option<KernelRate> {
    let ns_per_tick = f64::from(mult) / 2_f64.powi(i32::from(shift));
    let rounding_ppm = 0.5e6 / f64::from(mult);
    (valid && mult > 0 && shift < 64).then_some(KernelRate {
        rate_hz: 1e9 / ns_per_tick,
        rounding_ppm,
        source: KernelRateSource::PerfPage,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mult_and_shift_give_the_rate_and_a_page_without_time_none() {
        // What clocks_calc_mult_shift makes of 2600 MHz with shift 31.
        let rate = rate_from_mult(true, 825_955_249, 31).unwrap();
        assert!((rate.rate_hz / 2.6e9 - 1.0).abs() < 1e-8, "{rate:?}");
        assert_eq!(rate_from_mult(false, 825_955_249, 31), None);
        assert_eq!(rate_from_mult(true, 0, 31), None);
    }

    #[test]
    fn what_this_machine_publishes_is_a_possible_rate() {
        if let Some(rate) = kernel_rate() {
            assert!((1e6..1e11).contains(&rate.rate_hz), "{rate:?}");
            assert!((0.0..100.0).contains(&rate.rounding_ppm), "{rate:?}");
        }
    }
}
