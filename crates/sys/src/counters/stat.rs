//! `/proc/stat`: how the kernel accounts each CPU's time, in steps of 1/`USER_HZ` (10 ms on common machines).

/// `USER_HZ` is 100 on every Linux that machmeter runs on.
pub const NS_PER_TICK: u64 = 10_000_000;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuTime {
    pub cpu: usize,
    /// Time for programs, the kernel and interrupts.
    pub busy_ns: u64,
    /// The hypervisor ran something else while this CPU wanted to run; 0 where it does not tell.
    pub steal_ns: u64,
}

/// A snapshot of `/proc/stat`, or the difference of two.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CpuTimes {
    cpus: Vec<CpuTime>,
}

impl CpuTimes {
    /// Reads the file's text with times in 1/`user_hz` seconds; `None` if there is no CPU line.
    pub fn parse(text: &str, user_hz: u64) -> Option<Self> {
        let step_ns = 1_000_000_000_u64.checked_div(user_hz)?;
        let cpus: Vec<CpuTime> = text.lines().filter_map(|l| parse_cpu(l, step_ns)).collect();
        (!cpus.is_empty()).then_some(Self { cpus })
    }

    pub fn on_cpu(&self, cpu: usize) -> Option<&CpuTime> {
        self.cpus.iter().find(|c| c.cpu == cpu)
    }

    /// Time stolen from all CPUs together, ns.
    pub fn steal_ns(&self) -> u64 {
        self.cpus.iter().map(|c| c.steal_ns).sum()
    }

    /// What came since `earlier`; time that steps back in the kernel's accounting counts as zero.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let difference = |now: &CpuTime| {
            let old = earlier.on_cpu(now.cpu).copied().unwrap_or_default();
            CpuTime {
                cpu: now.cpu,
                busy_ns: now.busy_ns.saturating_sub(old.busy_ns),
                steal_ns: now.steal_ns.saturating_sub(old.steal_ns),
            }
        };
        Self { cpus: self.cpus.iter().map(difference).collect() }
    }
}

/// One `cpuN user nice system idle iowait irq softirq steal guest guest_nice` line.
fn parse_cpu(line: &str, step_ns: u64) -> Option<CpuTime> {
    let mut words = line.split_ascii_whitespace();
    let cpu = words.next()?.strip_prefix("cpu")?.parse().ok()?;
    let steps = words.map(str::parse).collect::<Result<Vec<u64>, _>>().ok()?;
    // Old kernels have fewer columns.
    let ns = |i: usize| steps.get(i).copied().unwrap_or(0).saturating_mul(step_ns);
    let busy_ns = [0, 1, 2, 5, 6].into_iter().map(ns).fold(0, u64::saturating_add);
    (steps.len() >= 4).then(|| CpuTime { cpu, busy_ns, steal_ns: ns(7) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const STAT: &str = "cpu  4975 1 839 95646 1512 3 32 7 0 0\ncpu0 1507 1 299 49628 66 3 12 2 0 0\n\
                        cpu1 3468 0 540 46018 1446 0 20 4 0 0\nintr 143802 0 0 0\nctxt 261725\nbtime 1\n\
                        processes 9000\nprocs_running 2\n";

    #[test]
    fn columns_become_nanoseconds() {
        let times = CpuTimes::parse(STAT, 100).unwrap();
        let cpu0 = times.on_cpu(0).unwrap();
        assert_eq!((cpu0.busy_ns, cpu0.steal_ns), (18_220_000_000, 20_000_000));
        assert_eq!((times.cpus.len(), times.steal_ns()), (2, 60_000_000));
        assert_eq!(CpuTimes::parse("ctxt 5\n", 100), None);
        assert_eq!(CpuTimes::parse(STAT, 0), None);
    }

    #[test]
    fn differences_never_go_below_zero() {
        let before = CpuTimes::parse(STAT, 100).unwrap();
        let after = CpuTimes::parse(&STAT.replace("20 4 0", "10 9 0"), 100).unwrap();
        let cpu1 = *after.since(&before).on_cpu(1).unwrap();
        assert_eq!(cpu1, CpuTime { cpu: 1, steal_ns: 50_000_000, ..CpuTime::default() });
    }

    proptest! {
        #[test]
        fn random_text_never_panics(text in "(cpu[0-9]{0,3} [0-9 ]{0,40}\n){0,4}ctxt [0-9]{0,25}\n", user_hz: u64) {
            let _ = CpuTimes::parse(&text, user_hz);
        }
    }
}
