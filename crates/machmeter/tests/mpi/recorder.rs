//! Tests the recorder file of `machmeter trace`: its place while a program runs, that ranks load it from there, and that it is removed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use rustix::process::{Pid, Signal, kill_process_group};

use crate::program::{Ended, Lab, Running, allowed, can_mount, is_root, names_in, soon, words};
use crate::trace::{LIBRARIES, compiled, files, recorder};

/// Name of the file while a program runs.
const FILE: &str = ".machmeter-recorder.so";

/// A directory for temporary files in the lab.
fn temporary(lab: &Lab) -> PathBuf {
    let path = lab.work().join("tmp");
    fs::create_dir_all(&path).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o1777)).unwrap();
    path
}

/// The program alone in its folder, started by an unprivileged user if the test is root. Its environment has only a search path and a place for temporary
/// files.
fn alone(lab: &Lab, arguments: &[&str]) -> Command {
    let mut command = if is_root() { lab.as_nobody(arguments) } else { lab.command(arguments) };
    command.env_clear().envs(std::env::vars_os().filter(|(name, _)| name == "PATH"));
    command.env("TMPDIR", temporary(lab));
    command
}

#[track_caller]
fn recorded(ended: &Ended) {
    let record = ended.expect(0).record();
    let calls = record.metric("mpi.calls", &[("operation", "barrier")]).unwrap().value;
    assert_eq!((calls, record.complete), (Some(200.0), true), "{ended:?}");
}

#[test]
fn ranks_load_it_wherever_traces_are() {
    for library in LIBRARIES {
        let lab = Lab::alone();
        let Some(program) = compiled(&lab, library, "ends.c") else { continue };
        let launcher = format!("mpiexec.{library}");
        let trace = |options: &str| {
            let line = format!("trace --json {options} -- {launcher} -n 2 {program} well 100");
            alone(&lab, &words(&line))
        };
        let is_in_memory = |ended: &Ended| ended.stderr.contains("the recorder is in memory");
        let ended = Running::of(trace("")).end();
        recorded(&ended);
        assert!(!is_in_memory(&ended), "{ended:?}");
        // LD_PRELOAD would read it as two names.
        let ended = Running::of(trace("--dir two:words")).end();
        recorded(&ended);
        assert!(is_in_memory(&ended), "{ended:?}");
        assert_eq!(files(&lab.work().join("two:words")).len(), 2);
        let tmp = temporary(&lab);
        if is_root() && can_mount(&tmp) {
            let mount = format!("mount -t tmpfs -o noexec,mode=1777 none {}", tmp.display());
            let plain = trace("");
            for user in ["env", "setpriv --reuid 65534 --regid 65534 --clear-groups"] {
                let user = words(user);
                let mut by_user = Command::new(user[0]);
                by_user.args(&user[1..]).arg(plain.get_program()).args(plain.get_args());
                let mut command = lab.after(&["unshare", "-m", "sh", "-c"], &mount, &by_user);
                command.env("TMPDIR", &tmp);
                let ended = Running::of(allowed(command)).end();
                recorded(&ended);
                assert!(is_in_memory(&ended) && ended.stderr.contains("noexec"), "{ended:?}");
            }
        } else {
            println!("skipped noexec: no private mount namespace here");
        }
        assert!(names_in(&tmp).is_empty(), "{:?}", names_in(&tmp));
    }
}

#[test]
fn a_batch_job_is_recorded_by_the_file_that_the_program_wrote() {
    for library in LIBRARIES {
        let lab = Lab::alone();
        let Some(program) = compiled(&lab, library, "ends.c") else { continue };
        let traces = lab.work().join("traces");
        fs::create_dir(&traces).unwrap();
        let mut job = Command::new(format!("mpiexec.{library}"));
        lab.set_up(job.args(["-n", "2", "env"]).arg(format!("LD_PRELOAD={}", recorder(&lab).display())));
        job.args([program.as_str(), "well", "100"]).env("MACHMETER_TRACE_DIR", &traces);
        let done = allowed(job).output().unwrap();
        assert!(done.status.success(), "{done:?}");
        recorded(&lab.line("trace --collect traces --json"));
    }
}

/// A run of `trace` whose program has begun.
fn started(lab: &Lab, options: &str) -> Child {
    let begun = lab.work().join("begun");
    let _ = fs::remove_file(&begun);
    let line = ["sh", "-c", "touch begun; sleep 100"];
    let mut command = lab.command(&[&words(&format!("trace -q {options} --")), line.as_slice()].concat());
    let child = command.env("TMPDIR", temporary(lab)).spawn().unwrap();
    assert!(soon(|| begun.exists()));
    child
}

fn killed(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

/// True if the recorder is in the directory and only its owner can read it.
fn is_there(directory: &Path) -> bool {
    fs::metadata(directory.join(FILE)).is_ok_and(|m| m.permissions().mode() & 0o777 == 0o500)
}

#[test]
fn what_a_killed_run_leaves_is_removed_by_the_next() {
    let lab = Lab::new();
    let (tmp, dir) = (temporary(&lab), lab.work().join("traces"));
    let next = |line: &str| {
        Running::of({
            let mut command = lab.command(&words(line));
            command.env("TMPDIR", &tmp);
            command
        })
        .end()
    };
    let child = started(&lab, "");
    let group = Pid::from_child(&child);
    let made = tmp.join(&names_in(&tmp)[0]);
    assert!(is_there(&made));
    next("list formats").expect(0);
    assert!(is_there(&made), "its maker lives");
    killed(child);
    // The traced program still runs.
    kill_process_group(group, Signal::KILL).unwrap();
    next("list formats").expect(0);
    assert!(names_in(&tmp).is_empty());

    let child = started(&lab, "--dir traces");
    let group = Pid::from_child(&child);
    next("trace --collect traces").refused("no file ends in .mpitrace");
    assert!(is_there(&dir), "a run uses it");
    killed(child);
    kill_process_group(group, Signal::KILL).unwrap();
    next("trace --collect traces").refused("no file ends in .mpitrace");
    assert!(names_in(&dir).is_empty());
    // After a signal that can be caught, nothing is left.
    let child = started(&lab, "--dir traces");
    let group = Pid::from_child(&child);
    assert!(is_there(&dir));
    kill_process_group(group, Signal::TERM).unwrap();
    child.wait_with_output().unwrap();
    assert!(names_in(&dir).is_empty());
}
