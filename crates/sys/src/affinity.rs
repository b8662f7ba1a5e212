//! Which CPUs the calling thread may run on, and where it is.

use crate::Refused;
use crate::topology::CpuSet;

/// Bits of the first mask buffer; doubled until the kernel's own mask fits.
const FIRST_MASK_BITS: usize = 1024;
const LARGEST_MASK_BITS: usize = 1 << 20;

/// The CPUs the calling thread may run on. Errors: the kernel refuses, as seccomp filters make it do.
pub fn mask() -> Result<CpuSet, Refused> {
    let mut bits = FIRST_MASK_BITS;
    loop {
        let mut words = vec![0_u64; bits / 64];
        // SAFETY: `words` is writable for the stated number of bytes, and any bit pattern is a valid `u64`.
        let rc = unsafe { libc::sched_getaffinity(0, bits / 8, words.as_mut_ptr().cast()) };
        if rc == 0 {
            return Ok((0..bits).filter(|cpu| words[cpu / 64] >> (cpu % 64) & 1 == 1).collect());
        }
        let os = std::io::Error::last_os_error();
        if os.raw_os_error() != Some(libc::EINVAL) || bits >= LARGEST_MASK_BITS {
            return Err(Refused(format!("can't read the CPU affinity: {os}")));
        }
        bits *= 2;
    }
}

/// Lets the calling thread run on `cpus` only; the kernel leaves out those that are offline or outside the cpuset.
/// Errors: an empty set, or no CPU of it can be used.
pub fn set_mask(cpus: &CpuSet) -> Result<(), Refused> {
    let empty = || Refused("empty CPU set: name at least one CPU".to_owned());
    let highest = cpus.iter().next_back().ok_or_else(empty)?;
    let refused = |os: &str| {
        let why =
            format!("can't run on CPU {cpus}: none of them is online and inside the cgroup's cpuset ({os})");
        Err(Refused(why))
    };
    if highest >= LARGEST_MASK_BITS {
        return refused("no such CPU");
    }
    let mut words = vec![0_u64; highest / 64 + 1];
    for cpu in cpus.iter() {
        words[cpu / 64] |= 1 << (cpu % 64);
    }
    // SAFETY: `words` is readable for the stated number of bytes; the call keeps no pointer.
    let rc = unsafe { libc::sched_setaffinity(0, words.len() * 8, words.as_ptr().cast()) };
    if rc == 0 { Ok(()) } else { refused(&std::io::Error::last_os_error().to_string()) }
}

/// Binds the calling thread to one CPU. The thread runs there when the call returns.
pub fn pin(cpu: usize) -> Result<(), Refused> {
    set_mask(&CpuSet::single(cpu))
}

/// The CPU the calling thread is running on; it may have moved by the time the caller looks, unless it is bound.
pub fn current_cpu() -> Option<usize> {
    // SAFETY: takes no arguments and has no preconditions.
    usize::try_from(unsafe { libc::sched_getcpu() }).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pinned_thread_runs_on_its_cpu_and_the_mask_is_given_back() {
        crate::testing::in_thread(|| {
            let before = mask().unwrap();
            assert!(!before.is_empty());
            for cpu in before.iter() {
                pin(cpu).unwrap();
                assert_eq!(mask().unwrap(), CpuSet::single(cpu));
                assert_eq!(current_cpu(), Some(cpu));
            }
            set_mask(&before).unwrap();
            assert_eq!(mask().unwrap(), before);
        });
    }

    #[test]
    fn impossible_masks_are_refused_and_change_nothing() {
        let before = mask().unwrap();
        assert!(set_mask(&CpuSet::default()).unwrap_err().to_string().contains("empty CPU set"));
        let message = pin(1_000_000).unwrap_err().to_string();
        assert!(message.contains("1000000"), "{message}");
        assert!(pin(usize::MAX).is_err());
        assert_eq!(mask().unwrap(), before);
    }
}
