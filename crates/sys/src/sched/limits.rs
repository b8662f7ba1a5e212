//! What the kernel takes from real-time threads on purpose: throttling, the fair server, group budgets.

use std::fmt;
use std::fs;

use crate::cgroup::{group_of, mount_of};
use crate::fs_root::FsRoot;
use crate::pseudofs::KernelMount;

/// Version of the running kernel, as far as decisions need it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct KernelVersion {
    pub major: u32,
    pub minor: u32,
}

impl KernelVersion {
    /// Reads `/proc/sys/kernel/osrelease`; `None` if it is not there or not understood.
    pub fn read() -> Option<Self> {
        Self::parse(&fs::read_to_string("/proc/sys/kernel/osrelease").ok()?)
    }

    /// Reads the first two numbers of a release such as `6.18.44-generic`.
    pub fn parse(release: &str) -> Option<Self> {
        let mut numbers = release.trim().split(|c: char| !c.is_ascii_digit()).map(str::parse);
        let major = numbers.next()?.ok()?;
        let minor = numbers.next()?.ok()?;
        Some(Self { major, minor })
    }
}

impl fmt::Display for KernelVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

/// The first version with a fair server.
pub const FAIR_SERVER_SINCE: KernelVersion = KernelVersion { major: 6, minor: 12 };

/// The deadline server that gives normal threads a share of a CPU a real-time thread occupies (Linux 6.12 and later).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FairServer {
    /// Per CPU: number, runtime, period.
    Known { per_cpu_ns: Vec<(usize, u64, u64)> },
    /// debugfs is not readable, but the kernel is recent enough to have one; the default is 50 ms in each second.
    Presumed { why: String },
    /// The kernel is older than 6.12.
    Absent,
    /// Neither debugfs nor the kernel version could be read.
    Unknown { why: String },
}

impl FairServer {
    /// Reads the server's parameters through debugfs, mounted or not.
    pub fn read(version: Option<KernelVersion>) -> Self {
        let read = KernelMount::of_debugfs().map_err(|e| e.to_string());
        match read.and_then(|mount| Self::from_tree(&FsRoot::at(mount.path()))) {
            Ok(per_cpu_ns) => Self::Known { per_cpu_ns },
            Err(why) => Self::without_debugfs(version, why),
        }
    }

    /// What the version tells where the parameters could not be read, for the reason `why`.
    pub fn without_debugfs(version: Option<KernelVersion>, why: String) -> Self {
        match version {
            Some(v) if v >= FAIR_SERVER_SINCE => Self::Presumed { why },
            Some(_) => Self::Absent,
            None => Self::Unknown { why },
        }
    }

    fn from_tree(debug: &FsRoot) -> Result<Vec<(usize, u64, u64)>, String> {
        const SERVERS: &str = "sched/fair_server";
        fs::read_dir(debug.root().join(SERVERS)).map_err(|e| format!("debugfs {SERVERS}: {e}"))?;
        let number = |cpu: usize, leaf: &str| -> Result<u64, String> {
            let file = format!("{SERVERS}/cpu{cpu}/{leaf}");
            let text = debug.read(&file).map_err(|e| format!("debugfs {file}: {e}"))?;
            text.parse().map_err(|_| format!("fair_server/cpu{cpu}/{leaf} holds '{text}'"))
        };
        let of_cpu = |cpu| Ok((cpu, number(cpu, "runtime")?, number(cpu, "period")?));
        let cpus = debug.numbered(SERVERS, "cpu");
        let none = || Err(format!("debugfs {SERVERS} lists no CPU"));
        if cpus.is_empty() { none() } else { cpus.into_iter().map(of_cpu).collect() }
    }

    /// `(runtime_ns, period_ns)` on `cpu`: known, presumed default, or `None` when there is none or nothing is known.
    pub fn on_cpu(&self, cpu: usize) -> Option<(u64, u64)> {
        match self {
            Self::Known { per_cpu_ns } => {
                per_cpu_ns.iter().find(|(c, _, _)| *c == cpu).map(|&(_, run, per)| (run, per))
            }
            Self::Presumed { .. } => Some((50_000_000, 1_000_000_000)),
            Self::Absent | Self::Unknown { .. } => None,
        }
    }
}

/// Real-time budget of the calling thread's control group (`CONFIG_RT_GROUP_SCHED`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GroupBudget {
    /// The kernel has no group budgets, or the thread is where they don't apply.
    NotConfigured,
    /// Of version 1: the group's path in the `cpu` controller, and `cpu.rt_runtime_us` (0 refuses real-time threads, -1 is unlimited).
    Known { group: String, runtime_us: i64 },
    /// The version 2 controller is active in a group of its own: such groups have budget 0 if the kernel was built with
    /// `CONFIG_RT_GROUP_SCHED`, and no file shows it.
    Hidden { group: String },
}

impl GroupBudget {
    pub fn read() -> Self {
        Self::of(&FsRoot::host())
    }

    fn of(tree: &FsRoot) -> Self {
        let text = |file: &str| tree.text(file).unwrap_or_default();
        let (membership, mounts) = (text("proc/thread-self/cgroup"), text("proc/self/mountinfo"));
        let read = |kind: &str, controller: Option<&str>, group: &str, file: &str| {
            let (mount, _) = mount_of(&mounts, kind, controller)?;
            tree.text(&format!("{mount}/{}/{file}", group.trim_start_matches('/')))
        };
        if let Some(group) = group_of(&membership, "cpu") {
            let runtime = read("cgroup", Some("cpu"), group, "cpu.rt_runtime_us");
            return match runtime.and_then(|t| t.parse().ok()) {
                Some(runtime_us) => Self::Known { group: group.to_owned(), runtime_us },
                None => Self::NotConfigured,
            };
        }
        match group_of(&membership, "").filter(|group| *group != "/") {
            Some(group) if read("cgroup2", None, group, "cpu.max").is_some() => {
                Self::Hidden { group: group.to_owned() }
            }
            _ => Self::NotConfigured,
        }
    }

    /// The cause in words if this budget refuses real-time threads.
    pub fn refusal(&self) -> Option<String> {
        match self {
            Self::Known { group, runtime_us: 0, .. } => Some(format!(
                "the control group {group} has no real-time budget (cpu.rt_runtime_us = 0); move the process to the \
                 root group of the cpu controller or write a budget there"
            )),
            Self::Hidden { group } => Some(format!(
                "the control group {group} probably has no real-time budget (kernel with CONFIG_RT_GROUP_SCHED); move \
                 the process to the root group or boot with rt_group_sched=0"
            )),
            _ => None,
        }
    }
}

/// The limits on real-time threads as the calling thread meets them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RtLimits {
    /// `sched_rt_runtime_us`; `None` is unlimited (-1).
    pub throttle_runtime_us: Option<u64>,
    /// `sched_rt_period_us`; 0 when it could not be read.
    pub throttle_period_us: u64,
    pub fair_server: FairServer,
    pub group_budget: GroupBudget,
    pub kernel: Option<KernelVersion>,
}

impl RtLimits {
    /// Reads all limits; what cannot be read is stated in the fields.
    pub fn read() -> Self {
        let number = |name: &str| FsRoot::host().number::<u64>(&format!("proc/sys/kernel/{name}"));
        let kernel = KernelVersion::read();
        Self {
            throttle_runtime_us: number("sched_rt_runtime_us"),
            throttle_period_us: number("sched_rt_period_us").unwrap_or(0),
            fair_server: FairServer::read(kernel),
            group_budget: GroupBudget::read(),
            kernel,
        }
    }

    /// Upper bound of the time per second a spinning real-time thread on `cpu` loses to normal threads, with the
    /// mechanism's name. `None`: nothing is taken as far as is known.
    pub fn loss_ns_per_s(&self, cpu: usize) -> Option<(f64, &'static str)> {
        let server = self.fair_server.on_cpu(cpu).filter(|(run, per)| *run > 0 && *per > 0);
        if let Some((runtime_ns, period_ns)) = server {
            return Some((runtime_ns as f64 / period_ns as f64 * 1e9, "fair server"));
        }
        let (runtime_us, period_us) = (self.throttle_runtime_us?, self.throttle_period_us);
        // Before 6.12 throttling of the root group did this work; later kernels have it only for group budgets.
        let throttles = matches!(self.fair_server, FairServer::Absent)
            || matches!(self.group_budget, GroupBudget::Known { .. });
        (throttles && period_us > runtime_us)
            .then(|| ((period_us - runtime_us) as f64 / period_us as f64 * 1e9, "real-time throttling"))
    }

    /// What a real-time thread on `cpu` loses on purpose, in words, and what turns that off.
    pub fn explain(&self, cpu: usize) -> String {
        let Some((loss_ns, mechanism)) = self.loss_ns_per_s(cpu) else {
            return format!(
                "no mechanism is known that takes time from a real-time thread on CPU {cpu} on purpose"
            );
        };
        let loss_ms = loss_ns / 1e6;
        match (mechanism, &self.fair_server) {
            ("fair server", FairServer::Presumed { why }) => format!(
                "presumed (kernel {} has the fair server; {why}): normal threads that wait on CPU {cpu} get {loss_ms:.0} ms of \
                 each second, seen as gaps of about that length in a real-time thread; keep other threads off the CPU",
                self.kernel.map_or_else(|| "unknown".to_owned(), |k| k.to_string()),
            ),
            ("fair server", _) => format!(
                "fair server: normal threads that wait on CPU {cpu} get {loss_ms:.0} ms of each second, seen as gaps of about \
                 that length in a real-time thread; keep other threads off the CPU, or write 0 to debugfs \
                 sched/fair_server/cpu{cpu}/runtime"
            ),
            _ => format!(
                "real-time throttling: real-time threads stop for {loss_ms:.0} ms of each second when they use CPU {cpu} fully; \
                 keep sleeping in between, or write -1 to /proc/sys/kernel/sched_rt_runtime_us"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs_root::tests::tree_of;

    fn budget(membership: &str, file: &str) -> GroupBudget {
        const MOUNTS: &str = "30 24 0:26 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu,cpuacct\\n\
                              31 24 0:27 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw";
        let recording = format!(
            "proc/thread-self/cgroup\t{membership}\nproc/self/mountinfo\t{MOUNTS}\nsys/fs/cgroup/{file}\n"
        );
        GroupBudget::of(&tree_of(&recording).1)
    }

    #[test]
    fn releases_are_read() {
        assert_eq!(KernelVersion::parse("6.18.44-fc\n"), Some(KernelVersion { major: 6, minor: 18 }));
        assert_eq!(KernelVersion::parse("5.4"), Some(KernelVersion { major: 5, minor: 4 }));
        assert_eq!(KernelVersion::parse("unknown"), None);
    }

    #[test]
    fn version_one_budget_comes_from_the_threads_own_group() {
        let budget = budget("5:cpu,cpuacct:/box\\n0::/", "cpu/box/cpu.rt_runtime_us\t0");
        assert_eq!(budget, GroupBudget::Known { group: "/box".to_owned(), runtime_us: 0 });
        assert!(budget.refusal().is_some());
    }

    #[test]
    fn version_two_budget_is_hidden_only_where_the_controller_is_active() {
        let (group, file) = ("0::/user.slice/a", "unified/user.slice/a/cpu.max\tmax 100000");
        assert!(matches!(budget(group, file), GroupBudget::Hidden { .. }));
        assert_eq!(budget(group, "unified/cpu.max\tmax 100000"), GroupBudget::NotConfigured);
        assert_eq!(budget("0::/", file), GroupBudget::NotConfigured);
    }

    fn limits(fair_server: FairServer, group_budget: GroupBudget) -> RtLimits {
        RtLimits {
            throttle_runtime_us: Some(950_000),
            throttle_period_us: 1_000_000,
            fair_server,
            group_budget,
            kernel: Some(KernelVersion { major: 6, minor: 18 }),
        }
    }

    #[test]
    fn the_loss_of_fifty_milliseconds_is_named_by_mechanism() {
        let presumed = limits(FairServer::Presumed { why: "denied".to_owned() }, GroupBudget::NotConfigured);
        assert_eq!(presumed.loss_ns_per_s(0), Some((50e6, "fair server")));
        assert!(
            presumed.explain(0).contains("50 ms of each second")
                && presumed.explain(0).starts_with("presumed")
        );
        let old = limits(FairServer::Absent, GroupBudget::NotConfigured);
        assert_eq!(old.loss_ns_per_s(0).map(|l| l.1), Some("real-time throttling"));
        let off =
            limits(FairServer::Known { per_cpu_ns: vec![(0, 0, 1_000_000_000)] }, GroupBudget::NotConfigured);
        assert_eq!(off.loss_ns_per_s(0), None);
    }

    #[test]
    fn fair_server_is_presumed_from_the_version_only() {
        let v = |major, minor| Some(KernelVersion { major, minor });
        let why = || "x".to_owned();
        assert!(matches!(FairServer::without_debugfs(v(6, 12), why()), FairServer::Presumed { .. }));
        assert_eq!(FairServer::without_debugfs(v(6, 11), why()), FairServer::Absent);
        assert!(matches!(FairServer::without_debugfs(None, why()), FairServer::Unknown { .. }));
    }

    #[test]
    fn this_machines_limits_are_read_and_explained_in_one_line() {
        let limits = RtLimits::read();
        let text = limits.explain(0);
        println!("{limits:?}\n{text}");
        assert!(!text.is_empty() && !text.contains('\n'));
    }
}
