//! Records of the perf ring buffer and the clock of its first page: pure functions over bytes.

const RECORD_LOST: u32 = 2;
const RECORD_SWITCH: u32 = 14;
const MISC_SWITCH_OUT: u16 = 1 << 13;
const MISC_SWITCH_OUT_PREEMPT: u16 = 1 << 14;
const HEADER_BYTES: usize = 8;
/// Size of the largest record this event makes: a loss with its identity.
pub(super) const LARGEST_BYTES: usize = 48;

/// One context switch of the watched thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Switch {
    /// Time in counter ticks.
    pub ticks: u64,
    /// The thread left the CPU; else it came back.
    pub out: bool,
    /// It was preempted, as opposed to going to sleep. False for a return, and before Linux 4.17.
    pub preempted: bool,
    pub cpu: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Entry {
    Switch(Switch),
    /// So many records were lost because the ring was full.
    Lost(u64),
    Skipped,
}

/// Takes the first record off `bytes`; `None` if it is cut or makes no sense. Returns its length too. `ticks` gives the
/// counter at a time of the event's clock in ns.
pub(super) fn take(bytes: &[u8], ticks: impl Fn(u64) -> u64) -> Option<(Entry, usize)> {
    let word = |at: usize| Some(u32::from_ne_bytes(*bytes.get(at..)?.first_chunk()?));
    let long = |at: usize| Some(u64::from_ne_bytes(*bytes.get(at..)?.first_chunk()?));
    let kind = word(0)?;
    let misc = u16::from_ne_bytes(*bytes.get(4..)?.first_chunk()?);
    let size = usize::from(u16::from_ne_bytes(*bytes.get(6..)?.first_chunk()?));
    if size < HEADER_BYTES || size > bytes.len() {
        return None;
    }
    let entry = match kind {
        // The sample identity follows: pid and tid, time, cpu and a reserved word.
        RECORD_SWITCH if size >= HEADER_BYTES + 24 => Entry::Switch(Switch {
            ticks: ticks(long(HEADER_BYTES + 8)?),
            out: misc & MISC_SWITCH_OUT != 0,
            preempted: misc & MISC_SWITCH_OUT != 0 && misc & MISC_SWITCH_OUT_PREEMPT != 0,
            cpu: word(HEADER_BYTES + 16)?,
        }),
        RECORD_SWITCH => return None,
        // The event's id precedes the number.
        RECORD_LOST if size >= HEADER_BYTES + 16 => Entry::Lost(long(HEADER_BYTES + 8)?),
        _ => Entry::Skipped,
    };
    Some((entry, size))
}

/// The kernel's conversion between ticks and event time (`cap_user_time`, `cap_user_time_zero`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageClock {
    /// Binary places of `mult`.
    pub shift: u16,
    /// Nanoseconds per tick times 2^`shift`.
    pub mult: u32,
    /// Event time of tick 0; wraps.
    pub zero_ns: u64,
}

impl PageClock {
    /// Event time of `ticks`, computed as `perf_event.h` tells.
    pub fn time_ns(&self, ticks: u64) -> u64 {
        let (quotient, rest) = (ticks >> self.shift, ticks & ((1 << self.shift) - 1));
        let mult = u64::from(self.mult);
        self.zero_ns
            .wrapping_add(quotient.wrapping_mul(mult))
            .wrapping_add(((u128::from(rest) * u128::from(mult)) >> self.shift) as u64)
    }

    /// The first tick whose event time is `time_ns` or later: exact up to the nanosecond to which the kernel rounds.
    pub fn ticks(&self, time_ns: u64) -> u64 {
        let since_zero_ns = u128::from(time_ns.wrapping_sub(self.zero_ns));
        (since_zero_ns << self.shift).div_ceil(u128::from(self.mult.max(1))) as u64
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    pub(in crate::perf) fn switch(time_ns: u64, misc: u16, cpu: u32) -> Vec<u8> {
        let mut bytes = RECORD_SWITCH.to_ne_bytes().to_vec();
        bytes.extend(misc.to_ne_bytes());
        bytes.extend(32_u16.to_ne_bytes());
        bytes.extend([7_u32.to_ne_bytes(), 8_u32.to_ne_bytes()].concat());
        bytes.extend(time_ns.to_ne_bytes());
        bytes.extend([cpu.to_ne_bytes(), [0; 4]].concat());
        bytes
    }

    #[test]
    fn directions_and_losses_are_read() {
        let raw = |misc| match take(&switch(99, misc, 3), |ns| 2 * ns) {
            Some((Entry::Switch(s), 32)) => (s.ticks, s.out, s.preempted, s.cpu),
            other => panic!("{other:?}"),
        };
        assert_eq!(raw(0), (198, false, false, 3));
        assert_eq!(raw(MISC_SWITCH_OUT), (198, true, false, 3));
        assert_eq!(raw(MISC_SWITCH_OUT | MISC_SWITCH_OUT_PREEMPT), (198, true, true, 3));
        let mut lost = RECORD_LOST.to_ne_bytes().to_vec();
        lost.extend([0, 0]);
        lost.extend(48_u16.to_ne_bytes());
        lost.extend(1_u64.to_ne_bytes());
        lost.extend(55_u64.to_ne_bytes());
        lost.resize(48, 0);
        assert_eq!(take(&lost, |ns| ns), Some((Entry::Lost(55), 48)));
    }

    proptest! {
        #[test]
        fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Some((_, size)) = take(&bytes, |ns| ns) {
                prop_assert!(size >= 8 && size <= bytes.len());
            }
        }

        #[test]
        fn the_inverse_is_exact_to_the_kernels_nanosecond(
            ticks in 0_u64..1 << 50, mult in 1_u32 << 20..u32::MAX, shift in 20_u16..32, zero_ns: u64,
        ) {
            let clock = PageClock { shift, mult, zero_ns };
            let time_ns = clock.time_ns(ticks);
            let back = clock.ticks(time_ns);
            prop_assert!(back <= ticks);
            prop_assert_eq!(clock.time_ns(back), time_ns);
        }
    }
}
