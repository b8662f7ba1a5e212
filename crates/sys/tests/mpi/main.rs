//! The binding under every MPI of this machine, on two ranks, which are this program again. One test at a time, since a rank of
//! MPICH spins, and each limited in time.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "tests and ranks answer by a panic and in words"
)]

mod ranks;

use std::io::Read;
use std::path::Path;
use std::process::Stdio;
use std::sync::{Mutex, MutexGuard, PoisonError};

use machmeter_sys::mpi::launcher::{Start, command};
use machmeter_sys::mpi::{Flavor, Installed, installed};
use machmeter_sys::process::commands_with;
use machmeter_sys::thread::{monotonic_ns, nanosleep_until};

const LIMIT_NS: u64 = 60_000_000_000;

fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// MPIs with a launcher; says so where there is none.
fn mpis() -> Vec<Installed> {
    let all: Vec<_> = installed(None).unwrap().into_iter().filter(|m| m.launcher.is_some()).collect();
    if all.is_empty() {
        println!("skipped: no MPI with a launcher is installed");
    }
    all
}

struct Said {
    code: Option<i32>,
    text: String,
}

/// Starts two ranks in `mode`, each on a CPU of its own where there are two.
/// Panics: when they do not end in time, or one is left.
fn ranks(mpi: &Installed, mode: &str, lib: Option<&Path>) -> Said {
    let tag = format!("tag-{mode}-{}-{}", std::process::id(), monotonic_ns());
    let cpus: Vec<usize> = machmeter_sys::affinity::mask().unwrap().iter().take(2).collect();
    let cpus = if cpus.len() == 2 { &cpus[..] } else { &[] };
    let start = Start { ranks: 2, cpus, oversubscribe: cpus.is_empty() };
    let mut command = command(mpi, &start).unwrap();
    command.arg(std::env::current_exe().unwrap());
    // The tag is an argument without meaning, by which ranks that are left are found.
    command.args(["--exact", "ranks::rank", "--nocapture", "--skip", &tag]);
    command.env(ranks::MODE, mode).envs(lib.map(|l| (ranks::LIBRARY, l)));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let deadline_ns = monotonic_ns() + LIMIT_NS;
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if monotonic_ns() > deadline_ns {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("{mode} under {} did not end in 60 s", mpi.version);
        }
        nanosleep_until(monotonic_ns() + 10_000_000);
    };
    // The launcher's own daemon may outlive it by a moment.
    let gone_ns = monotonic_ns() + 5_000_000_000;
    while !commands_with(&tag).is_empty() {
        assert!(monotonic_ns() < gone_ns, "{mode} under {}: ranks are left", mpi.version);
        nanosleep_until(monotonic_ns() + 10_000_000);
    }
    let mut text = String::new();
    child.stdout.unwrap().read_to_string(&mut text).unwrap();
    child.stderr.unwrap().read_to_string(&mut text).unwrap();
    Said { code: status.code(), text }
}

#[test]
fn every_call_does_what_it_says() {
    let _one = alone();
    for mpi in mpis() {
        let said = ranks(&mpi, "calls", None);
        assert_eq!(said.code, Some(0), "{mpi:?}: {}", said.text);
        assert!(said.text.contains(&format!("done: 2 ranks of {}", mpi.version)), "{}", said.text);
        println!("{}: {}", mpi.version, said.text.trim());
    }
}

#[test]
fn shmem_works_beside_mpi_and_ends_with_code_0() {
    let _one = alone();
    let Some(mpi) = mpis().into_iter().find(|m| m.flavor == Flavor::OpenMpi) else {
        return println!("skipped: no Open MPI");
    };
    if !mpi.launcher.as_ref().is_some_and(|l| l.with_file_name("oshrun").exists()) {
        return println!("skipped: this Open MPI has no OpenSHMEM");
    }
    let said = ranks(&mpi, "shmem", None);
    assert_eq!(said.code, Some(0), "{}", said.text);
    assert!(said.text.contains("done"), "{}", said.text);
}

#[test]
fn a_rank_that_fails_or_is_killed_takes_the_others_with_it() {
    let _one = alone();
    for mpi in mpis() {
        for mode in ["error", "killed"] {
            let said = ranks(&mpi, mode, None);
            assert!(said.code != Some(0) && !said.text.contains("done"), "{mode} {mpi:?}: {}", said.text);
        }
    }
}

#[test]
fn the_launcher_of_another_mpi_is_refused_in_one_line() {
    let _one = alone();
    let all = mpis();
    let [a, b, ..] = &all[..] else { return println!("skipped: two MPIs are needed") };
    for (library, launcher) in [(a, b), (b, a)] {
        let said = ranks(launcher, "calls", Some(&library.library));
        assert!(said.text.contains("its launcher started 2"), "{}", said.text);
        assert_ne!(said.code, Some(0), "{}", said.text);
    }
}
