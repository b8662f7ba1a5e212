//! Memory pressure harms nobody: with a memory group of its own and without rights.

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use machmeter_engine::load::{LoadReport, LoadRequest, Loads};
use machmeter_engine::worker::{self, Worker};
use machmeter_loads::AllLoads;
use machmeter_sys::cgroup;
use machmeter_sys::fs_root::FsRoot;
use machmeter_sys::oom;
use machmeter_sys::process;
use machmeter_sys::thread::monotonic_ns;

use crate::tools::{SECOND_NS, entries, pause_ns, request, within, workers};

pub(crate) const TESTS: &[(&str, fn())] = &[
    ("memload_in_its_group_reclaims_and_kills_nobody_else", in_a_group),
    ("memload_restarts_after_an_out_of_memory_kill_of_its_own", killed_for_want_of_memory),
    ("memload_of_its_own_choice_starts_and_stops_in_time", of_its_own_choice),
    ("memload_without_rights_keeps_to_half_of_what_is_free", without_rights),
];

pub(crate) const ROLE: Worker = Worker { name: "test-memload", run: run_and_report };

const MIB: u64 = 1 << 20;
const NOBODY: u32 = 65_534;

/// The budget of most tests.
const MEMORY_BYTES: Option<u64> = Some(64 * MIB);

/// Has as much disk as the working set wants.
fn run(directory: &Path, memory_bytes: Option<u64>, for_ns: u64, beside: impl FnOnce(&[i32])) -> LoadReport {
    let request = LoadRequest { memory_bytes, disk_bytes: 256 * MIB, ..request("memload", directory) };
    let mut running = AllLoads.start(&request).unwrap();
    beside(&running.processes());
    pause_ns(for_ns);
    assert_eq!(running.failure(), None);
    let begin_ns = monotonic_ns();
    let report = running.stop();
    assert!(monotonic_ns() - begin_ns < 2 * SECOND_NS);
    assert!(entries(directory).is_empty(), "{:?}", entries(directory));
    assert_eq!(report.failure, None);
    report
}

fn memory_group_is_usable() -> bool {
    let plan = cgroup::Plan::new(&"memory=64M".parse().unwrap(), "test");
    if let Err(why) = &plan {
        println!("skipped: {why}");
    }
    plan.is_ok()
}

/// Anonymous memory from `/proc/PID/status`, bytes.
fn anonymous_bytes(pid: i32) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = text.lines().find_map(|l| l.strip_prefix("RssAnon:"));
    line.and_then(|v| v.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()).unwrap_or(0) * 1024
}

fn largest(processes: &[i32]) -> i32 {
    *processes.iter().max_by_key(|pid| anonymous_bytes(**pid)).unwrap()
}

/// The directory of the memory group of a process.
fn group_directory(pid: i32) -> PathBuf {
    let text = std::fs::read_to_string(format!("/proc/{pid}/cgroup")).unwrap();
    let line =
        text.lines().find(|l| l.split(':').nth(1).is_some_and(|c| c.split(',').any(|c| c == "memory")));
    let line = line.or_else(|| text.lines().find(|l| l.starts_with("0::"))).unwrap();
    let group = line.rsplit(':').next().unwrap();
    let mounts = ["/sys/fs/cgroup/memory", "/sys/fs/cgroup", "/sys/fs/cgroup/unified"];
    mounts.into_iter().map(|m| PathBuf::from(format!("{m}{group}"))).find(|d| d.exists()).unwrap()
}

/// How often the group reached its limit.
fn times_at_the_limit(group: &Path) -> u64 {
    let read = |file: &str| std::fs::read_to_string(group.join(file)).ok();
    let events = read("memory.events");
    let two = events.as_ref().and_then(|t| t.lines().find_map(|l| l.strip_prefix("max ")));
    two.map(str::to_owned).or_else(|| read("memory.failcnt")).unwrap().trim().parse().unwrap()
}

fn in_a_group() {
    if !memory_group_is_usable() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let kills = oom::kills_of_machine(&FsRoot::host());
    let report = run(directory.path(), MEMORY_BYTES, 3 * SECOND_NS, |processes| {
        let pid = largest(processes);
        let group = group_directory(pid);
        assert!(group.to_string_lossy().contains("/machmeter-"), "{}", group.display());
        let score = std::fs::read_to_string(format!("/proc/{pid}/oom_score_adj")).unwrap();
        assert_eq!(score.trim(), "1000");
        assert!(anonymous_bytes(pid) <= 64 * MIB);
        // It reclaims, and goes on doing so.
        for _ in 0..3 {
            let before = times_at_the_limit(&group);
            assert!(within(10 * SECOND_NS, || times_at_the_limit(&group) > before + 10));
        }
        println!("{} times at the limit", times_at_the_limit(&group));
    });
    println!("with a group: {report:?}");
    assert!(report.work > 100 * MIB, "{report:?}");
    let later = oom::kills_of_machine(&FsRoot::host());
    assert!(!report.caveats.iter().any(|c| c.contains("ran short")), "{report:?}");
    // Kills in its group would be among its side effects.
    assert!(kills == later || report.side_effects.iter().any(|t| t.contains("kills in its own group")));
    assert!(workers().is_empty());
}

fn killed_for_want_of_memory() {
    if !memory_group_is_usable() {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let report = run(directory.path(), MEMORY_BYTES, SECOND_NS, |processes| {
        let first = largest(processes);
        let group = group_directory(first);
        // Somebody else in the group takes more than there is, and a process of the load is the first to go.
        let script = "read go; x=$(head -c 58720256 /dev/zero | tr '\\0' x); read stay";
        let mut shell = Command::new("sh");
        let mut other =
            shell.args(["-c", script]).stdin(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        std::fs::write(group.join("cgroup.procs"), other.id().to_string()).unwrap();
        other.stdin.as_mut().unwrap().write_all(b"go\n").unwrap();
        let died = within(10 * SECOND_NS, || !process::pid_is_alive(first));
        other.kill().unwrap();
        other.wait().unwrap();
        assert!(died);
    });
    println!("killed: {report:?}");
    assert!(report.work > 50 * MIB);
    assert!(report.side_effects.iter().any(|t| t.contains("out-of-memory kills in its own group")));
    assert!(workers().is_empty());
}

/// With the memory and the group, or the lack of one, that it chooses itself.
fn of_its_own_choice() {
    let directory = tempfile::tempdir().unwrap();
    let report = run(directory.path(), None, SECOND_NS, |_| {});
    println!("its own choice: {report:?}");
    assert!(report.work > 50 * MIB);
    assert!(!report.caveats.iter().any(|c| c.contains("nothing to reclaim")));
    assert!(workers().is_empty());
}

fn without_rights() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o777)).unwrap();
    let kills = oom::kills_of_machine(&FsRoot::host());
    let mut program = Command::new("/proc/self/exe");
    program.args([worker::ARGUMENT, ROLE.name]).arg(directory.path()).stdin(Stdio::null());
    if machmeter_sys::thread::effective_user() == 0 {
        program.uid(NOBODY).gid(NOBODY);
    }
    let output = program.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let report: LoadReport = serde_json::from_slice(&output.stdout).unwrap();
    println!("without rights: {report:?}");
    assert!(report.work > 100 * MIB, "{report:?}");
    assert!(report.caveats.iter().any(|c| c.contains("no own memory control group (")), "{report:?}");
    assert_eq!(oom::kills_of_machine(&FsRoot::host()), kills);
    assert!(workers().is_empty() && entries(directory.path()).is_empty());
}

fn run_and_report(arguments: &[OsString]) -> u8 {
    let Some(directory) = arguments.first() else { return 2 };
    let report = run(Path::new(directory), MEMORY_BYTES, 3 * SECOND_NS, |processes| {
        let pid = largest(processes);
        assert!(anonymous_bytes(pid) <= 80 * MIB);
    });
    println!("{}", serde_json::to_string(&report).unwrap());
    0
}
