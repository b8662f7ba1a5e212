//! The machine around the program: rights, processes, files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::Signal;

/// Policy for tests of figures; as root, a policy whose threads do not wait for other programs.
pub(crate) fn prompt_policy() -> &'static str {
    if is_root() { "fifo:5" } else { "auto" }
}

/// True if a file system can be mounted at `place` in a separate mount namespace.
pub(crate) fn can_mount(place: &Path) -> bool {
    let mut mount = Command::new("unshare");
    mount.args(["-m", "mount", "-t", "tmpfs", "none"]).arg(place).stderr(Stdio::null());
    mount.status().is_ok_and(|s| s.success())
}

/// A command for which Open MPI starts programs as root, too.
pub(crate) fn allowed(mut command: Command) -> Command {
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    command
}

/// True if the tests run as root.
pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// All descendants of `main` in the process tree.
pub(crate) fn descendants(main: i32) -> Vec<i32> {
    let parent = |pid: i32| -> Option<i32> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
    };
    let all = names_in(Path::new("/proc")).into_iter().filter_map(|name| name.parse().ok());
    let all: Vec<(i32, i32)> = all.filter_map(|pid| Some((pid, parent(pid)?))).collect();
    let mut found = vec![main];
    let mut next = 0;
    while next < found.len() {
        let of = found[next];
        found.extend(all.iter().filter(|(_, p)| *p == of).map(|(pid, _)| *pid));
        next += 1;
    }
    found.split_off(1)
}

/// True if the condition becomes true within ten seconds.
pub(crate) fn soon(mut comes_true: impl FnMut() -> bool) -> bool {
    (0..1_000).any(|_| {
        thread::sleep(Duration::from_millis(10));
        comes_true()
    })
}

/// Names in a folder, sorted; empty if it does not exist.
pub(crate) fn names_in(dir: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(dir) else { return Vec::new() };
    let mut names: Vec<String> =
        entries.map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

/// Record files in the history of a state directory, in order of time.
pub(crate) fn kept_runs(state: &Path) -> Vec<PathBuf> {
    let runs = state.join("runs");
    let records = names_in(&runs).into_iter().map(|n| runs.join(n));
    records.filter(|p| p.extension().is_some_and(|e| e == "json")).collect()
}

/// True if the process has a handler for the signal.
pub(crate) fn catches(pid: u32, signal: Signal) -> bool {
    let Ok(status) = fs::read_to_string(format!("/proc/{pid}/status")) else { return false };
    let mask = status.lines().find_map(|l| l.strip_prefix("SigCgt:"));
    let mask = mask.and_then(|m| u64::from_str_radix(m.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal.as_raw() - 1) & 1 == 1
}

/// CPU time of the process without its children (`proc_pid_stat(5)`, fields 14 and 15).
pub(crate) fn cpu_time(pid: u32) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let fields = stat.rsplit_once(") ").map_or("", |(_, after_name)| after_name);
    let ticks: u64 = fields.split(' ').skip(11).take(2).filter_map(|f| f.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 1_000 / rustix::param::clock_ticks_per_second())
}

/// A CPU that the tests may use.
pub(crate) fn some_cpu() -> usize {
    machmeter_sys::affinity::mask().unwrap().to_vec()[0]
}

/// True if a test must be skipped because there is only one CPU; prints that.
pub(crate) fn has_one_cpu() -> bool {
    let cpus = machmeter_sys::affinity::mask().unwrap().to_vec().len();
    if cpus < 2 {
        println!("skipped: one CPU");
    }
    cpus < 2
}
