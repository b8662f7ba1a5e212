//! Tests of refusals: one line, the documented exit code, and no hang.

use std::fs;

use machmeter_sys::mpi::{Flavor, Installed, installed};

use crate::program::{Lab, Running, allowed, can_mount, words};
use crate::{PROGRAM, launched, launcher, library, mpis};

#[test]
fn another_launcher_is_named() {
    let all = mpis();
    let of = |flavor| all.iter().find(|m| m.flavor == flavor);
    let (Some(open), Some(mpich)) = (of(Flavor::OpenMpi), of(Flavor::Mpich)) else {
        return println!("skipped: needs Open MPI and MPICH");
    };
    for (own, other) in [(open, mpich), (mpich, open)] {
        let lab = Lab::alone();
        launched(&lab, own, 2, &format!("mpi -t 2 -q --lib {}", library(other)))
            .failed(4, "the launcher of another MPI started this program");
    }
}

#[test]
fn without_an_mpi_the_line_says_what_to_install() {
    let all: Vec<Installed> = installed(None).unwrap();
    let lab = Lab::alone();
    if !can_mount(&lab.work()) {
        return println!("skipped: libraries can only be hidden where mounting is permitted");
    }
    let hide =
        all.iter().map(|mpi| format!("mount --bind /dev/null {} && ", library(mpi))).collect::<String>();
    let without = |command| lab.after(&["unshare", "-m", "sh", "-c"], &format!("{hide}true"), &command);
    let said = "install one (Debian: apt-get install openmpi-bin)";
    Running::of(without(lab.command(&["mpi", "-n", "2", "-q"]))).end().failed(4, said);
    for mpi in mpis() {
        let command = without(launcher(&lab, &mpi, &["-n", "2", PROGRAM, "mpi", "-q"]));
        Running::of(allowed(command)).end().failed(4, said);
    }
    assert!(lab.files().is_empty());
}

#[test]
fn another_version_on_a_rank_is_named() {
    let version = concat!("machmeter ", env!("CARGO_PKG_VERSION"));
    let other = version.replace(|c: char| c.is_ascii_digit(), "9");
    let mut program = fs::read(PROGRAM).unwrap();
    let found: Vec<usize> = (0..program.len() - version.len())
        .filter(|at| program[*at..].starts_with(version.as_bytes()))
        .collect();
    for at in found {
        program[at..at + version.len()].copy_from_slice(other.as_bytes());
    }
    for mpi in mpis() {
        let lab = Lab::alone();
        let patched = lab.script("other", "");
        fs::write(&patched, &program).unwrap();
        for measurement in ["mpi", "noise"] {
            let line = format!("{measurement} -t 2 -q");
            let both = format!("-n 1 {PROGRAM} {line} : -n 1 {patched} {line}");
            let said =
                format!("rank 1 is {other} {measurement}, rank 0 {version} {measurement}: start one version");
            Running::of(launcher(&lab, &mpi, &words(&both))).end().failed(4, &said);
        }
    }
}

#[test]
fn ranks_of_a_launcher_refuse_with_one_voice() {
    for mpi in mpis() {
        let lab = Lab::alone();
        // Open MPI starts no more ranks than it has slots.
        let more = if mpi.flavor == Flavor::OpenMpi { "--oversubscribe" } else { "" };
        for (ranks, line, code, said) in [
            (1, "mpi -q", 2, "MPI needs two ranks, has 1"),
            (9, "mpi -q", 2, "9 ranks on"),
            (2, "mpi --ops nothing -q", 2, "'nothing' is not one of send,"),
            (2, "mpi --sizes 0-1G -q", 2, "--sizes 0-1G: "),
            (2, "mpi --lib /nowhere/libmpi.so -q", 4, "/nowhere/libmpi.so"),
        ] {
            let all = format!("-n {ranks} {more} {PROGRAM} {line}");
            Running::of(launcher(&lab, &mpi, &words(&all))).end().failed(code, said);
        }
        assert!(lab.files().is_empty());
    }
}

#[test]
fn wrong_words_are_one_line() {
    let lab = Lab::new();
    for (options, code, said) in [
        ("-n 0", 2, "'0' for '--ranks"),
        ("-n 1", 2, "MPI needs two ranks, has 1"),
        ("-n 4096", 2, "4096 ranks on"),
        ("-n 2 -c 0", 2, "2 ranks on 1 CPU"),
        ("--ops sned", 2, "'sned' is not one of send,"),
        ("--sizes 9-1", 2, "--sizes 9-1"),
        ("--sizes 0-1G", 2, "--sizes 0-1G: "),
        ("-n 999 --oversubscribe --sizes 0-64M", 2, "buffers of 999 ranks take"),
        ("-n 2 --lib /nowhere/libmpi.so", 4, "/nowhere/libmpi.so"),
    ] {
        lab.line(&format!("mpi -q {options}")).failed(code, said);
    }
    assert!(lab.files().is_empty());
}

#[test]
fn ranks_that_cannot_be_measured_together_are_told_in_one_line() {
    for mpi in mpis() {
        let lab = Lab::alone();
        let program = lab.script("pinned", &format!("#!/bin/sh\nexec taskset -c 0 {PROGRAM} \"$@\"\n"));
        let told = |line: &str| Running::of(launcher(&lab, &mpi, &words(line))).end();
        told(&format!("-n 2 {program} noise -t 2 -q")).failed(2, "ranks 0 and 1 are both on CPU 0");
        told(&format!("-n 1 {PROGRAM} noise -t 2 -q : -n 1 {PROGRAM} mpi -t 2 -q"))
            .failed(4, "start one version on all machines");
    }
}
