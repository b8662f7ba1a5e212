//! Kernels: the assembly whose cost the memory probes measure, each with what it does per turn declared beside it.
//!
//! A kernel is a naked function, so that its bytes are exactly the instructions written here, whatever the optimizer does; a
//! test reads them back and compares them with the declaration. All kernels have one form: `passes` times `turns` turns of the inner body, from the start of its operands each pass. Operand a is written, b
//! and c are read; kernels with one operand have only a. Writes store what a begins with, so that the contents of memory
//! decide also about what is written.

#[cfg(target_arch = "aarch64")]
mod aarch64;
pub mod chain;
mod declared;
#[cfg(test)]
mod decode;
#[cfg(test)]
mod tests;
#[cfg(target_arch = "x86_64")]
mod x86_64;

#[cfg(target_arch = "aarch64")]
use aarch64 as instructions;
#[cfg(target_arch = "x86_64")]
use x86_64 as instructions;

use crate::Refused;
use crate::pages::Extent;

/// Machine code of a kernel: `passes`, `turns` per pass (both at least 1), three operands, bytes from one access to the next
/// where the kernel takes a stride. Returns what keeps the work observable (a sum, the last pointer).
pub type Code = unsafe extern "C" fn(u64, u64, *mut u8, *mut u8, *mut u8, u64) -> u64;

/// Whether an access or operation needs the result of the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chain {
    /// Each needs the one before (a store what the load before it loaded, the next load the same): time per turn is latency.
    Dependent,
    /// None waits for another: time per turn is throughput.
    Independent,
}

/// What one turn of the inner body does. Prologue and epilogue are not counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Declared {
    /// Load instructions (memory read), prefetches not counted.
    pub loads: u32,
    /// Store instructions (memory written), streaming ones included.
    pub stores: u32,
    pub streaming_stores: u32,
    pub load_bytes: u32,
    pub store_bytes: u32,
    pub branches: u32,
    /// Floating-point operations (an FMA counts two), over all lanes.
    pub flops: u32,
    /// Instructions on registers besides those that count and branch; 0 for kernels that touch memory.
    pub operations: u32,
    pub chain: Chain,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Walk {
    Register,
    /// Operand a, b, c forward by so many bytes per turn.
    Forward([u32; 3]),
    /// Operand a forward by so many strides per turn; the stride is given at the call.
    Strided(u32),
    Chase,
}

#[derive(Debug, Clone, Copy)]
pub struct Kernel {
    /// Name, `read.avx512`, as in metric parameters and records.
    pub name: &'static str,
    pub width_bits: u32,
    pub available: fn() -> bool,
    pub declared: Declared,
    pub walk: Walk,
    pub code: Code,
}

/// All kernels of this architecture, sorted by instruction set and family.
pub const KERNELS: &[&[Kernel]] = instructions::KERNELS;

/// Bytes of a line that a write reads first, where accesses are a stride apart.
const LINE_BYTES: u64 = 64;

pub fn all() -> impl Iterator<Item = &'static Kernel> {
    KERNELS.iter().copied().flatten()
}

pub fn named(name: &str) -> Option<&'static Kernel> {
    all().find(|k| k.name == name)
}

/// The operands are too small, misaligned, or of a kind the kernel does not take.
fn unfit(name: &str, why: &str) -> Refused {
    Refused(format!("kernel {name}: {why}"))
}

/// A kernel with operands that were found to fit, ready to run in a measuring loop without further checks.
#[derive(Debug, Clone, Copy)]
pub struct Ready<'a> {
    kernel: &'static Kernel,
    turns: u64,
    operands: [Extent<'a>; 3],
    step_bytes: u64,
}

impl Kernel {
    pub fn bytes_per_turn(&self) -> u64 {
        u64::from(self.declared.load_bytes) + u64::from(self.declared.store_bytes)
    }

    /// Bytes that a turn moves if a cache reads every line before it is written (write-allocate): ordinary stores
    /// count twice, unless the turn loads the same bytes anyway, and strided ones a line of 64 bytes more.
    pub fn bytes_with_allocate(&self) -> u64 {
        let Declared { stores, streaming_stores, load_bytes, store_bytes, .. } = self.declared;
        let ordinary = u64::from(stores.saturating_sub(streaming_stores));
        let allocated = match self.walk {
            Walk::Register | Walk::Chase => 0,
            Walk::Strided(_) => ordinary * LINE_BYTES,
            Walk::Forward(bytes) => {
                // What is walked once but accessed twice is both loaded and stored.
                let walked: u32 = bytes.iter().sum();
                let both = (load_bytes + store_bytes).saturating_sub(walked);
                let stored = u64::from(store_bytes.saturating_sub(both));
                stored * ordinary / u64::from(stores.max(1))
            }
        };
        self.bytes_per_turn() + allocated
    }

    /// A kernel of registers, which takes no operands; `None` for others and where the processor lacks the instructions.
    pub fn of_registers(&'static self, turns: u64) -> Option<Ready<'static>> {
        let ready = || Ready { kernel: self, turns, operands: [Extent::NOTHING; 3], step_bytes: 0 };
        (self.walk == Walk::Register && turns > 0 && (self.available)()).then(ready)
    }

    /// Checks that `turns` turns stay inside the operands. Kernels of registers take none (give any), a forward walk takes one
    /// per operand it moves, a strided walk one. Chains are run by their owner.
    pub fn ready<'a>(
        &'static self,
        turns: u64,
        operands: [Extent<'a>; 3],
        step_bytes: u64,
    ) -> Result<Ready<'a>, Refused> {
        let wrong = |why: String| unfit(self.name, &why);
        if !(self.available)() {
            let why = format!("kernel {} needs instructions this processor does not have", self.name);
            return Err(Refused(why));
        }
        if turns == 0 {
            return Err(wrong("0 turns".to_owned()));
        }
        let need = |per_turn: u64, at: usize| {
            let bytes = turns.saturating_mul(per_turn);
            let has = operands[at].bytes() as u64;
            let align = u64::from(self.width_bits / 8).max(8);
            if bytes > has {
                Err(wrong(format!("{turns} turns need {bytes} bytes, operand {at} has {has}")))
            } else if per_turn > 0 && !(operands[at].address() as u64).is_multiple_of(align) {
                Err(wrong(format!("operand {at} is not aligned to {align} bytes")))
            } else {
                Ok(())
            }
        };
        match self.walk {
            Walk::Register => {}
            Walk::Forward(bytes) => {
                for (at, b) in bytes.into_iter().enumerate() {
                    need(u64::from(b), at)?;
                }
            }
            Walk::Strided(strides) => {
                if step_bytes < 8 || !step_bytes.is_multiple_of(8) {
                    return Err(wrong(format!("a stride of {step_bytes} bytes is not a multiple of 8")));
                }
                need(step_bytes.saturating_mul(u64::from(strides)), 0)?;
            }
            Walk::Chase => return Err(wrong("follows a chain; it is run by the chain".to_owned())),
        }
        Ok(Ready { kernel: self, turns, operands, step_bytes })
    }
}

impl Ready<'_> {
    pub fn kernel(&self) -> &'static Kernel {
        self.kernel
    }

    pub fn turns(&self) -> u64 {
        self.turns
    }

    #[inline]
    pub fn run(&self, passes: u64) -> u64 {
        if passes == 0 {
            return 0;
        }
        let [a, b, c] = self.operands.map(Extent::address);
        // SAFETY: `ready` has checked processor, alignment and bounds for this number of turns; every pass begins anew at the
        // start of the operands, which outlive `self`.
        unsafe { (self.kernel.code)(passes, self.turns, a, b, c, self.step_bytes) }
    }
}
