//! Tick sources: raw counters of the machine, what one read costs, how fine they step, how fast they run and how far
//! apart they are on different CPUs.
//!
//! A measuring loop is generic over [`TickSource`] and stores raw ticks; [`TickRate`] turns them into ns afterwards.
//! [`qualify`] looks at the source before a run and says whether it can be trusted; where it can't, the verdict names
//! [`MonotonicRaw`] and the reason.

#![allow(clippy::inline_always, reason = "a stamp in a timed region must not become a call")]

mod cost;
mod exchange;
mod kernel_rate;
mod offset;
mod pinned;
mod qualify;
mod rate;
mod step;
mod survey;
mod trust;

#[cfg(target_arch = "aarch64")]
mod aarch64;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
pub use aarch64::{Cntvct, CntvctIsb, barrier, settle};
pub use kernel_rate::{KernelRate, kernel_rate};
pub use offset::{Exchange, OffsetEstimate, offset_from_exchanges};
pub use qualify::{CpuQuality, CrossCpu, Qualification, SourceQuality, qualify};
pub use rate::{Bracket, RateEstimate, TickRate, rate_from_brackets};
pub use step::{StepEstimate, step_from_deltas};
pub use trust::Verdict;
#[cfg(target_arch = "x86_64")]
pub(crate) use x86_64::hypervisor_signature;
#[cfg(target_arch = "x86_64")]
pub use x86_64::{LfenceRdtsc, Rdtsc, Rdtscp, barrier, settle};

use serde::{Deserialize, Serialize};

use crate::Refused;

/// The unfenced counter of this architecture: the type to name in a loop that wants the cheapest stamp.
#[cfg(target_arch = "x86_64")]
pub type Counter = Rdtsc;
#[cfg(target_arch = "aarch64")]
pub type Counter = Cntvct;

/// The counter read that waits for all earlier instructions: for stamps that must not move.
#[cfg(target_arch = "x86_64")]
pub type OrderedCounter = LfenceRdtsc;
#[cfg(target_arch = "aarch64")]
pub type OrderedCounter = CntvctIsb;

/// A way to read a free-running counter. Zero-sized and inlined, so that a loop over it compiles to the bare read.
pub trait TickSource: Copy + Send + Sync + 'static {
    const ID: SourceId;

    fn now() -> u64;
}

/// `clock_gettime(CLOCK_MONOTONIC_RAW)`; one tick is 1 ns, not steered by NTP, as the kernel's own rate. It works everywhere, and costs a vDSO
/// call or, where the kernel distrusts the counter, a system call.
#[derive(Debug, Clone, Copy)]
pub struct MonotonicRaw;

impl TickSource for MonotonicRaw {
    const ID: SourceId = SourceId::MonotonicRaw;

    #[inline(always)]
    fn now() -> u64 {
        let mut t = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        // SAFETY: `t` is a live timespec, and the clock exists since Linux 2.6.28: the call can't fail.
        unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC_RAW, &raw mut t) };
        t.tv_sec as u64 * 1_000_000_000 + t.tv_nsec as u64
    }
}

/// Names of all tick sources, of every architecture, so that a record can be read anywhere.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SourceId {
    /// x86-64 `rdtsc`: the cheapest; may move a few instructions either way.
    Rdtsc,
    /// x86-64 `lfence; rdtsc`: waits until earlier instructions are done.
    LfenceRdtsc,
    /// x86-64 `rdtscp`: waits until earlier loads are done, and names the CPU.
    Rdtscp,
    /// aarch64 `mrs cntvct_el0`.
    Cntvct,
    /// aarch64 `isb; mrs cntvct_el0`: waits until earlier instructions are done.
    CntvctIsb,
    /// `clock_gettime(CLOCK_MONOTONIC_RAW)`, one tick per ns.
    #[default]
    MonotonicRaw,
}

impl SourceId {
    /// All sources, cheapest first within an architecture.
    pub const ALL: [Self; 6] =
        [Self::Rdtsc, Self::LfenceRdtsc, Self::Rdtscp, Self::Cntvct, Self::CntvctIsb, Self::MonotonicRaw];

    pub fn name(self) -> &'static str {
        match self {
            Self::Rdtsc => "rdtsc",
            Self::LfenceRdtsc => "lfence_rdtsc",
            Self::Rdtscp => "rdtscp",
            Self::Cntvct => "cntvct",
            Self::CntvctIsb => "cntvct_isb",
            Self::MonotonicRaw => "monotonic_raw",
        }
    }

    /// Whether this machine can read the source at all; says nothing about its quality.
    pub fn is_available(self) -> bool {
        now(self).is_ok()
    }

    pub fn available() -> Vec<Self> {
        Self::ALL.into_iter().filter(|s| s.is_available()).collect()
    }

    /// The source to use before anything was measured: the plain counter if the hardware and the kernel call it
    /// steady, else [`SourceId::MonotonicRaw`]. [`qualify`] looks closer.
    pub fn best() -> Self {
        trust::choose_unmeasured().source
    }
}

impl std::fmt::Display for SourceId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// Work that is generic over the tick source, to be run for a source chosen at run time by [`dispatch`].
pub trait WithSource {
    type Output;

    fn run<S: TickSource>(self) -> Self::Output;
}

/// Runs `work` compiled for the source `id`. Errors: this machine has none such; `work` has not run then.
pub fn dispatch<W: WithSource>(id: SourceId, work: W) -> Result<W::Output, Refused> {
    match id {
        SourceId::MonotonicRaw => Ok(work.run::<MonotonicRaw>()),
        #[cfg(target_arch = "x86_64")]
        SourceId::Rdtsc => Ok(work.run::<Rdtsc>()),
        #[cfg(target_arch = "x86_64")]
        SourceId::LfenceRdtsc => Ok(work.run::<LfenceRdtsc>()),
        #[cfg(target_arch = "x86_64")]
        SourceId::Rdtscp if x86_64::has_rdtscp() => Ok(work.run::<Rdtscp>()),
        #[cfg(target_arch = "aarch64")]
        SourceId::Cntvct => Ok(work.run::<Cntvct>()),
        #[cfg(target_arch = "aarch64")]
        SourceId::CntvctIsb => Ok(work.run::<CntvctIsb>()),
        _ => Err(Refused(format!("clock source `{id}` is not available on this machine: use monotonic_raw"))),
    }
}

/// The counter of the source `id` now, ticks; where it is compared or stored, not where time is measured by it.
pub fn now(id: SourceId) -> Result<u64, Refused> {
    struct Now;
    impl WithSource for Now {
        type Output = u64;
        fn run<S: TickSource>(self) -> u64 {
            S::now()
        }
    }
    dispatch(id, Now)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::thread::monotonic_ns;

    struct TwoReads;
    impl WithSource for TwoReads {
        type Output = (SourceId, u64, u64);
        fn run<S: TickSource>(self) -> Self::Output {
            (S::ID, S::now(), S::now())
        }
    }

    #[test]
    fn every_available_source_is_dispatched_to_itself_and_does_not_run_backward() {
        for id in SourceId::available() {
            let (ran, first, second) = dispatch(id, TwoReads).unwrap();
            assert_eq!(ran, id);
            assert!(second >= first, "{id}: {first} then {second}");
        }
        assert!(SourceId::available().contains(&SourceId::MonotonicRaw));
        assert!(SourceId::best().is_available());
    }

    /// Subjects dispatch inside their timed region: an instruction that a hypervisor traps there is priced with them.
    #[test]
    fn a_thousand_dispatches_take_less_than_a_millisecond() {
        for id in SourceId::available() {
            let thousand = || {
                let begin_ns = monotonic_ns();
                (0..1_000).for_each(|_| assert!(now(std::hint::black_box(id)).is_ok()));
                monotonic_ns() - begin_ns
            };
            // The quickest of several: any one may be switched out.
            let took_ns = (0..20).map(|_| thousand()).min().unwrap();
            assert!(took_ns < 1_000_000, "{id}: {took_ns} ns");
        }
    }

    #[test]
    fn a_foreign_source_is_refused_in_one_line() {
        for id in SourceId::ALL.into_iter().filter(|s| !s.is_available()) {
            let message = dispatch(id, TwoReads).unwrap_err().to_string();
            assert!(message.contains(id.name()) && !message.contains('\n'), "{message}");
        }
    }
}
