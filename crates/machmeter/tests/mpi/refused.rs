//! What cannot be measured: one line, the documented exit code, and no hang.

use std::fs;

use machmeter_sys::mpi::{Flavor, Installed, installed};

use crate::program::{Ended, Lab, Running, can_mount, turn};
use crate::{PROGRAM, launched, launcher, library, mpis};

/// With this exit code, which launchers pass on, and one line of all ranks.
#[track_caller]
fn told_once(ended: &Ended, code: i32, said: &str) {
    ended.expect(code);
    let errors = ended.errors();
    assert!(errors.len() == 1 && errors[0].contains(said), "machmeter {}: {errors:?}", ended.shown);
}

#[test]
fn another_launcher_is_named() {
    let _turn = turn();
    let all = mpis();
    let of = |flavor| all.iter().find(|m| m.flavor == flavor);
    let (Some(open), Some(mpich)) = (of(Flavor::OpenMpi), of(Flavor::Mpich)) else {
        return println!("skipped: needs Open MPI and MPICH");
    };
    for (own, other) in [(open, mpich), (mpich, open)] {
        let lab = Lab::new();
        let ended = launched(&lab, own, "2", &["mpi", "-t", "2", "-q", "--lib", &library(other)]);
        told_once(&ended, 4, "the launcher of another MPI started this program");
    }
}

#[test]
fn without_an_mpi_the_line_says_what_to_install() {
    let _turn = turn();
    let all: Vec<Installed> = installed(None).unwrap();
    let lab = Lab::new();
    if !can_mount(&lab.work()) {
        return println!("skipped: libraries can only be hidden where mounting is permitted");
    }
    let hide =
        all.iter().map(|mpi| format!("mount --bind /dev/null {} && ", library(mpi))).collect::<String>();
    let without = |command| lab.after(&["unshare", "-m", "sh", "-c"], &format!("{hide}true"), &command);
    let said = "install one (Debian: apt-get install openmpi-bin)";
    told_once(&Running::of(without(lab.command(&["mpi", "-n", "2", "-q"]))).end(), 4, said);
    for mpi in mpis() {
        let command = launcher(&lab, &mpi, &["-n", "2", PROGRAM, "mpi", "-q"]);
        let mut command = without(command);
        command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        told_once(&Running::of(command).end(), 4, said);
    }
    assert!(lab.files().is_empty());
}

#[test]
fn another_version_on_a_rank_is_named() {
    let _turn = turn();
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
        let lab = Lab::new();
        let patched = lab.script("other", "");
        fs::write(&patched, &program).unwrap();
        for measurement in ["mpi", "noise"] {
            let words = [measurement, "-t", "2", "-q"];
            let both = [&["-n", "1", PROGRAM][..], &words, &[":", "-n", "1", &patched], &words].concat();
            let ended = Running::of(launcher(&lab, &mpi, &both)).end();
            let said =
                format!("rank 1 is {other} {measurement}, rank 0 {version} {measurement}: start one version");
            told_once(&ended, 4, &said);
        }
    }
}

#[test]
fn ranks_of_a_launcher_refuse_with_one_voice() {
    let _turn = turn();
    for mpi in mpis() {
        let lab = Lab::new();
        // Open MPI itself starts no more ranks than it finds places for.
        let more = if mpi.flavor == Flavor::OpenMpi { &["--oversubscribe"][..] } else { &[] };
        for (ranks, words, code, said) in [
            ("1", "mpi -q", 2, "between 1 rank"),
            ("9", "mpi -q", 2, "9 ranks on"),
            ("2", "mpi --ops nothing -q", 2, "'nothing' is not one of send,"),
            ("2", "mpi --sizes 0-1G -q", 2, "--sizes 0-1G: "),
            ("2", "mpi --lib /nowhere/libmpi.so -q", 4, "/nowhere/libmpi.so"),
        ] {
            let words: Vec<&str> = words.split(' ').collect();
            let all = [&["-n", ranks][..], more, &[PROGRAM], &words].concat();
            told_once(&Running::of(launcher(&lab, &mpi, &all)).end(), code, said);
        }
        assert!(lab.files().is_empty());
    }
}

#[test]
fn wrong_words_are_one_line() {
    let lab = Lab::new();
    for (words, code, said) in [
        (&["mpi", "-n", "0", "-q"][..], 2, "'0' for '--ranks"),
        (&["mpi", "-n", "1", "-q"], 2, "between 1 rank"),
        (&["mpi", "-n", "4096", "-q"], 2, "4096 ranks on"),
        (&["mpi", "-n", "2", "-c", "0", "-q"], 2, "2 ranks on 1 CPU"),
        (&["mpi", "--ops", "sned", "-q"], 2, "'sned' is not one of send,"),
        (&["mpi", "--sizes", "9-1", "-q"], 2, "--sizes 9-1"),
        (&["mpi", "--sizes", "0-1G", "-q"], 2, "--sizes 0-1G: "),
        (&["mpi", "-n", "999", "--oversubscribe", "--sizes", "0-64M", "-q"], 2, "buffers of 999 ranks take"),
        (&["mpi", "-n", "2", "--lib", "/nowhere/libmpi.so", "-q"], 4, "/nowhere/libmpi.so"),
    ] {
        let ended = lab.run(words);
        told_once(&ended, code, said);
    }
    assert!(lab.files().is_empty());
}

#[test]
fn ranks_that_cannot_be_measured_together_are_told_in_one_line() {
    let _turn = turn();
    for mpi in mpis() {
        let lab = Lab::new();
        let program = lab.script("pinned", &format!("#!/bin/sh\nexec taskset -c 0 {PROGRAM} \"$@\"\n"));
        let told = |words: &[&str]| Running::of(launcher(&lab, &mpi, words)).end();
        let noise = ["noise", "-t", "2", "-q"];
        let both = told(&[&["-n", "2", &program][..], &noise].concat());
        told_once(&both, 2, "ranks 0 and 1 are both on CPU 0");
        let mixed = [&["-n", "1", PROGRAM][..], &noise, &[":", "-n", "1", PROGRAM, "mpi", "-t", "2", "-q"]];
        told_once(&told(&mixed.concat()), 4, "start one version on all machines");
    }
}
