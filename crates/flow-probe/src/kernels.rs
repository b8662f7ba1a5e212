//! Kernels by name: `table-mirror-bitmap`. Each word is one of the published kernel's three ways, or the faster one.

use machmeter_flow::{Choice, Queues, Ready};

/// A kernel: whether chains are fused, how queues work, how it is known who is ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Kernel {
    pub(crate) is_fused: bool,
    pub(crate) queues: Queues,
    pub(crate) ready: Ready,
}

impl Kernel {
    /// The published one.
    pub(crate) const CLASSIC: Self = Self { is_fused: false, queues: Queues::Copying, ready: Ready::Heap };
    /// The one with all three ideas.
    pub(crate) const FAST: Self = Self { is_fused: true, queues: Queues::Mirrored, ready: Ready::Bitmap };

    pub(crate) fn all() -> impl Iterator<Item = Self> {
        (0..8).map(|bits| Self {
            is_fused: bits & 4 > 0,
            queues: if bits & 2 > 0 { Queues::Mirrored } else { Queues::Copying },
            ready: if bits & 1 > 0 { Ready::Bitmap } else { Ready::Heap },
        })
    }

    pub(crate) fn choice(self, granularity: u32) -> Choice {
        Choice { queues: self.queues, ready: self.ready, granularity }
    }

    pub(crate) fn name(self) -> String {
        let firing = if self.is_fused { "fused" } else { "table" };
        let queues = if self.queues == Queues::Copying { "copy" } else { "mirror" };
        let ready = if self.ready == Ready::Heap { "heap" } else { "bitmap" };
        format!("{firing}-{queues}-{ready}")
    }

    /// A kernel of words, in any order; what is not said is as in [`Kernel::FAST`].
    pub(crate) fn of_words(words: &[String]) -> Result<Self, String> {
        let mut kernel = Self::FAST;
        for word in words {
            match word.as_str() {
                "table" => kernel.is_fused = false,
                "fused" => kernel.is_fused = true,
                "copy" => kernel.queues = Queues::Copying,
                "mirror" => kernel.queues = Queues::Mirrored,
                "heap" => kernel.ready = Ready::Heap,
                "bitmap" => kernel.ready = Ready::Bitmap,
                _ => {
                    return Err(format!("'{word}' is none of table, fused; copy, mirror; heap, bitmap"));
                }
            }
        }
        Ok(kernel)
    }
}

#[cfg(test)]
mod tests {
    use super::Kernel;

    #[test]
    fn names_are_read_back() {
        let names: Vec<String> = Kernel::all().map(Kernel::name).collect();
        assert_eq!(names.len(), 8);
        for (kernel, name) in Kernel::all().zip(&names) {
            let words: Vec<String> = name.split('-').map(str::to_owned).collect();
            assert_eq!(Kernel::of_words(&words), Ok(kernel));
        }
        assert!(names.contains(&Kernel::CLASSIC.name()) && names.contains(&Kernel::FAST.name()));
        assert!(Kernel::of_words(&["stack".to_owned()]).unwrap_err().contains("'stack'"));
    }
}
