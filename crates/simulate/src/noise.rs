//! What takes CPUs from ranks.

/// Time that is taken from ranks.
pub trait Noise {
    /// Time taken from a CPU of a rank while it works for `work_ps` from `at_ps` on, ps: the work ends so much later.
    fn stolen_ps(&mut self, rank: u32, cpu: u8, at_ps: u64, work_ps: u64) -> u64;
}

/// No noise.
#[derive(Debug, Clone, Copy, Default)]
pub struct Quiet;

impl Noise for Quiet {
    fn stolen_ps(&mut self, _: u32, _: u8, _: u64, _: u64) -> u64 {
        0
    }
}
