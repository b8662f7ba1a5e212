//! The work units on the real processor. Each is a type: one loop instance per unit, no conditional on it in the loop.
//!
//! As in FTQ: 1 is the counting itself; 15, 31, 63 add 8 + 7, 16 + 15, 32 + 31 ups and downs, one dependent chain.
use std::arch::asm;

use super::measure::WorkUnit;

/// `UP` increments followed by `DOWN` decrements of one register.
#[derive(Debug, Clone, Copy, Default)]
pub struct Increments<const UP: usize, const DOWN: usize> {
    value: u64,
}

/// Quantum 1: the loop's own count is the work.
pub type Quantum1 = Increments<0, 0>;
pub type Quantum15 = Increments<8, 7>;
pub type Quantum31 = Increments<16, 15>;
pub type Quantum63 = Increments<32, 31>;

impl<const UP: usize, const DOWN: usize> WorkUnit for Increments<UP, DOWN> {
    #[inline(always)]
    fn unit(&mut self) {
        if UP + DOWN == 0 {
            return;
        }
        #[cfg(target_arch = "x86_64")]
        // SAFETY: adds to one register that the compiler hands over; touches neither memory nor stack.
        unsafe {
            asm!(
                ".rept {up}", "add {v}, 1", ".endr",
                ".rept {down}", "sub {v}, 1", ".endr",
                v = inout(reg) self.value, up = const UP, down = const DOWN,
                options(nomem, nostack)
            );
        }
        #[cfg(target_arch = "aarch64")]
        // SAFETY: as above.
        unsafe {
            asm!(
                ".rept {up}", "add {v}, {v}, #1", ".endr",
                ".rept {down}", "sub {v}, {v}, #1", ".endr",
                v = inout(reg) self.value, up = const UP, down = const DOWN,
                options(nomem, nostack)
            );
        }
    }
}

/// Reads [`LINES_PER_UNIT`] cache lines per unit, round a buffer: its speed shows what others do to shared caches.
#[derive(Debug)]
pub struct CacheSweep {
    lines: Box<[[u64; 8]]>,
    mask: usize,
    position: usize,
    sum: u64,
}
pub const LINES_PER_UNIT: usize = 16;

impl CacheSweep {
    /// A sweep over `bytes`, rounded up to a power of two of at least 16 lines.
    pub fn new(bytes: usize) -> Self {
        let count = (bytes / 64).max(LINES_PER_UNIT).next_power_of_two();
        Self { lines: vec![[1_u64; 8]; count].into_boxed_slice(), mask: count - 1, position: 0, sum: 0 }
    }
}

impl WorkUnit for CacheSweep {
    #[inline(always)]
    fn unit(&mut self) {
        let base = self.lines.as_ptr();
        let mut sum = self.sum;
        for i in 0..LINES_PER_UNIT {
            // SAFETY: the index is masked to the length of the buffer, a power of two.
            let line = unsafe { base.add((self.position + i) & self.mask) };
            // SAFETY: `line` points into the buffer; volatile so that the read is not removed.
            sum = sum.wrapping_add(unsafe { line.cast::<u64>().read_volatile() });
        }
        self.sum = sum;
        self.position = (self.position + LINES_PER_UNIT) & self.mask;
    }
}

/// Dependent additions in one call of [`dependent_adds`].
pub const DEPENDENT_ADDS: u64 = 4096;

/// Runs a chain of [`DEPENDENT_ADDS`]; every processor here retires one per core cycle: its duration tells the clock.
#[inline(never)]
pub fn dependent_adds() -> u64 {
    let mut value: u64 = 0;
    for _ in 0..DEPENDENT_ADDS / 128 {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: adds to one register; no memory, no stack. A register operand, since additions of constants are folded.
        unsafe {
            asm!(".rept 128", "add {v}, {one}", ".endr",
                 v = inout(reg) value, one = in(reg) 1_u64, options(nomem, nostack));
        }
        #[cfg(target_arch = "aarch64")]
        // SAFETY: as above.
        unsafe {
            asm!(".rept 128", "add {v}, {v}, {one}", ".endr",
                 v = inout(reg) value, one = in(reg) 1_u64, options(nomem, nostack));
        }
    }
    value
}

/// The smallest loop that measures noise, as a C compiler writes it at -O2: the yardstick. Turns and ticks.
#[cfg(target_arch = "x86_64")]
#[inline(never)]
pub fn bare_loop(duration_ticks: u64, threshold_ticks: u64) -> (u64, u64) {
    let (turns, start, end): (u64, u64, u64);
    // SAFETY: registers only; rdtsc is permitted (the clock was qualified with it); the loop ends at its deadline.
    unsafe {
        asm!(
            "rdtsc", "shl rdx, 32", "or rax, rdx",
            "mov {start}, rax", "mov {previous}, rax", "mov {deadline}, rax", "add {deadline}, {duration}",
            "xor {turns:e}, {turns:e}", "xor {gaps:e}, {gaps:e}",
            ".p2align 5",
            "2:",
            "rdtsc", "shl rdx, 32", "or rax, rdx",
            "add {turns}, 1",
            "mov {delta}, rax", "sub {delta}, {previous}", "mov {previous}, rax",
            "cmp {delta}, {threshold}", "jae 3f",
            "4:",
            "cmp rax, {deadline}", "jb 2b",
            "jmp 5f",
            "3:", "add {gaps}, 1", "jmp 4b",
            "5:",
            start = out(reg) start, previous = out(reg) end, deadline = out(reg) _, turns = out(reg) turns,
            gaps = out(reg) _, delta = out(reg) _,
            duration = in(reg) duration_ticks, threshold = in(reg) threshold_ticks,
            out("rax") _, out("rdx") _, options(nomem, nostack)
        );
    }
    (turns, end - start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_cancel_to_one_count() {
        let mut q = Quantum63::default();
        (0..1000).for_each(|_| q.unit());
        assert_eq!(q.value, 1000, "32 up and 31 down leave one per unit, as a count does");
        let mut q = Quantum15::default();
        (0..7).for_each(|_| q.unit());
        assert_eq!(q.value, 7);
    }

    #[test]
    fn the_sweep_goes_round_its_whole_buffer() {
        let mut s = CacheSweep::new(100_000);
        assert_eq!(s.lines.len(), 2_048);
        for _ in 0..2_048 / LINES_PER_UNIT {
            s.unit();
        }
        assert_eq!(s.sum, 2_048, "every line holds 1 in its first word and was read once");
        assert_eq!(s.position, 0);
    }

    #[test]
    fn the_chain_adds_what_it_declares() {
        assert_eq!(dependent_adds(), DEPENDENT_ADDS);
    }

    #[cfg(target_arch = "x86_64")]
    #[test]
    fn the_bare_loop_keeps_its_deadline() {
        let (turns, ticks) = bare_loop(1_000_000, 200);
        assert!(turns > 100 && ticks >= 1_000_000);
    }
}
