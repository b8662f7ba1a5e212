//! The mpi probe as a user runs it, under every MPI of this machine: figures of all operations, both thresholds, refusals, ranks that are
//! killed, nothing left behind. One test at a time, each limited in time.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests fail and tell their figures")]

mod program;

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use machmeter_data::Record;
use machmeter_sys::mpi::{Flavor, Installed, installed};
use machmeter_sys::process::{commands_with, kill_process};
use program::{Ended, Lab, Running, descendants, is_root, soon, turn, warned};

/// Ranks of launches that other tests do not have.
const ROLE: &str = "mpi-rank";

/// MPIs with a launcher; says so where there is none, or one CPU.
fn mpis() -> Vec<Installed> {
    let all: Vec<_> = installed(None).unwrap().into_iter().filter(|m| m.launcher.is_some()).collect();
    let cpus = machmeter_sys::affinity::mask().unwrap().to_vec().len();
    if all.is_empty() || cpus < 2 {
        println!("skipped: {} MPI libraries with a launcher, {cpus} CPU(s)", all.len());
        return Vec::new();
    }
    all
}

fn library(mpi: &Installed) -> String {
    mpi.library.to_str().unwrap().to_owned()
}

fn value(record: &Record, id: &str, params: &[(&str, &str)]) -> Option<f64> {
    record.metric(id, params)?.value
}

/// This program under a launcher of somebody.
fn launched(lab: &Lab, mpi: &Installed, ranks: &str, arguments: &[&str]) -> Ended {
    let program = lab.command(arguments);
    let mut command = Command::new(mpi.launcher.as_ref().unwrap());
    command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    command.args(["-n", ranks]).arg(program.get_program()).args(program.get_args());
    lab.set_up(&mut command);
    Running::of(command).end()
}

fn nobody_is_left() {
    assert!(soon(|| commands_with(ROLE).is_empty()), "{:?} are left", commands_with(ROLE));
}

#[test]
fn every_operation_has_a_cost_and_a_law_or_a_reason() {
    let _turn = turn();
    for mpi in mpis() {
        let lab = Lab::new();
        let mut command = lab.command(&["mpi", "-n", "2", "-t", "18", "-l", "quick", "--json", "-q"]);
        command.args(["--lib", &library(&mpi)]);
        // Ranks that wait spin, and get nowhere beside others who want their CPUs.
        if is_root() {
            command.args(["--prio", "fifo:5"]);
        }
        let ended = Running::of(command).end();
        assert!(ended.wall < Duration::from_secs(30), "{:?}", ended.wall);
        let record = ended.record();
        let costs = record.metrics.iter().filter(|m| m.id == "mpi.cost");
        let (known, all) = costs.fold((0, 0), |(known, all), m| (known + u32::from(m.ci.is_some()), all + 1));
        let why = record.metrics.iter().find_map(|m| m.why.as_deref());
        println!("{}: {known} of {all} costs known", mpi.version);
        assert!(known > 150 || !is_root(), "{known} of {all}; {why:?}");
        let table = record.datasets.iter().find(|d| d.id == "mpi.operations").unwrap();
        let text = serde_json::to_string(table).unwrap();
        let names = "send ssend rsend recv recvmin irecv1 irecv2 irecvoverlap sendrecv pingpong alltoall gather allgather reduce \
                     allreduce bcast barrier scatter reduce_scatter scan ibcast iallreduce ialltoall put get fetch_and_op";
        for name in names.split_whitespace() {
            assert!(text.contains(&format!("\"name\":\"{name}\"")), "{}: no row {name}", mpi.version);
        }
        // The launcher's library named itself.
        let library = record.metrics.iter().find_map(|m| m.params.get("library")).unwrap().to_string();
        assert_eq!(library, mpi.version);
        // A round trip is two sends at least, where the machine left them alone.
        let cost =
            |operation, size| value(&record, "mpi.cost", &[("operation", operation), ("size_bytes", size)]);
        if let (Some(small), Some(large)) = (cost("pingpong", "8"), cost("pingpong", "1048576")) {
            assert!(small > 50.0 && large > 5.0 * small, "{small} {large}");
        }
        // The stored samples say the same again.
        let again = lab.run(&["report", "last", "--json"]).record();
        let laws = |r: &Record| r.metrics.iter().filter(|m| m.id == "mpi.coefficient").count();
        assert_eq!(laws(&again), laws(&record));
        nobody_is_left();
    }
}

/// A threshold, with Open MPI's eager limit of shared memory or UCX's set to `limit`.
fn threshold(mpi: &Installed, receiver: &str, limit: &str) -> Option<f64> {
    let lab = Lab::new();
    let mut command = lab.command(&["mpi", "-n", "2", "-t", "12", "--ops", "send", "--sizes", "0-32K"]);
    command.args(["--lib", &library(mpi), "--json", "-q"]);
    command.env("OMPI_MCA_btl_vader_eager_limit", limit).env("UCX_RNDV_THRESH", limit);
    let record = Running::of(command).end().record();
    let found = record.metric("mpi.threshold", &[("receiver", receiver)]).unwrap();
    println!("{}, {receiver}, {limit}: {:?} {:?}", mpi.version, found.value, found.why);
    found.value
}

#[test]
fn the_eager_limit_moves_as_it_is_set() {
    let _turn = turn();
    for mpi in mpis() {
        let [small, large] = ["4096", "8192"].map(|limit| threshold(&mpi, "polling", limit));
        let (Some(small), Some(large)) = (small, large) else { continue };
        match mpi.flavor {
            Flavor::OpenMpi => assert_eq!(large - small, 4_096.0, "{small} to {large}"),
            // Where UCX carries messages; others have limits of their own.
            _ => assert!(small == large || (small, large) == (4_095.0, 8_191.0), "{small} to {large}"),
        }
    }
}

#[test]
fn pairs_have_a_latency_a_bandwidth_and_a_verdict() {
    let _turn = turn();
    for mpi in mpis() {
        let lab = Lab::new();
        let priority: &[&str] = if is_root() { &["--prio", "fifo:5"] } else { &[] };
        let words = [&["mpi", "--parts", "pairs", "-t", "8", "--json", "-q"], priority].concat();
        let mut command = lab.command(&words);
        command.args(["-n", "2", "--lib", &library(&mpi)]);
        for ended in [Running::of(command).end(), launched(&lab, &mpi, "2", &words)] {
            let record = ended.record();
            let of = |id| value(&record, id, &[("ranks", "2")]);
            let (latency, rate) = (of("mpi.link_latency"), of("mpi.pair_bandwidth"));
            println!("{}: {latency:?} ns, {rate:?} B/s", mpi.version);
            assert!(latency.is_some_and(|ns| ns > 50.0) || !is_root());
            assert!(rate.is_some_and(|rate| (1e7..1e12).contains(&rate)) || !is_root());
            assert!(record.metrics.iter().all(|m| m.id != "mpi.cost"));
            let finding = record.findings.iter().find(|f| f.id == "mpi.slow_pairs").unwrap();
            assert_eq!(finding.verdict, "unknown", "{finding:?}");
        }
        let again = lab.run(&["report", "last", "--json"]).record();
        assert!(again.datasets.iter().any(|d| d.id == "mpi.pairs"));
        nobody_is_left();
    }
}

#[test]
fn more_ranks_than_cpus_are_marked_in_every_figure() {
    let _turn = turn();
    for mpi in mpis() {
        let cpus = machmeter_sys::affinity::mask().unwrap().to_vec().len();
        let ranks = (cpus + 1).to_string();
        let lab = Lab::new();
        // Ranks of MPICH keep the CPU from those they wait for: few samples come.
        let words = ["mpi", "-n", &ranks, "--oversubscribe", "--ops", "barrier,pingpong", "--sizes", "8"];
        let mut command = lab.command(&words);
        command.args([
            "-t",
            "9",
            "--launches",
            "1",
            "--parts",
            "pairs",
            "--json",
            "-q",
            "--lib",
            &library(&mpi),
        ]);
        let record = Running::of(command).end().record();
        let known = record.metrics.iter().filter(|m| m.value.is_some()).count();
        println!("{}, {ranks} ranks: {known} of {} figures known", mpi.version, record.metrics.len());
        warned(&record, "W512");
        let own: Vec<_> = record.metrics.iter().filter(|m| m.id.starts_with("mpi.")).collect();
        assert!(!own.is_empty() && own.iter().all(|m| m.flags.iter().any(|f| f == "W512")), "{own:?}");
        assert!(own.iter().any(|m| m.params.get("ranks").is_some_and(|r| r.to_string() == ranks)));
        nobody_is_left();
    }
}

#[test]
fn under_a_launcher_one_rank_speaks() {
    let _turn = turn();
    for mpi in mpis() {
        let lab = Lab::new();
        let ended = launched(
            &lab,
            &mpi,
            "2",
            &["mpi", "-t", "5", "--ops", "pingpong", "--sizes", "8", "--json", "-q"],
        );
        let record = ended.record();
        assert_eq!(record.metrics.iter().filter(|m| m.id == "mpi.cost").count(), 1);
        let ended = launched(&lab, &mpi, "2", &["mpi", "--ops", "nothing"]);
        assert_ne!(ended.code, Some(0));
        let told = ended.errors().iter().filter(|l| l.contains("'nothing' is not one of")).count();
        assert_eq!(told, 1, "{:?}", ended.errors());
        for (ranks, said) in [("1", "between 1 rank"), ("9", "9 ranks on")] {
            let ended = launched(&lab, &mpi, ranks, &["mpi", "-t", "2"]);
            let text = ended.stderr.clone();
            // Open MPI itself starts no more ranks than it finds places for.
            assert!(text.contains(said) || text.contains("not enough slots"), "{ranks}: {text}");
            assert_ne!(ended.code, Some(0));
        }
    }
}

#[test]
fn another_launcher_is_named() {
    let _turn = turn();
    let all = mpis();
    let of = |flavor| all.iter().find(|m| m.flavor == flavor);
    let (Some(open), Some(mpich)) = (of(Flavor::OpenMpi), of(Flavor::Mpich)) else {
        return println!("skipped: needs Open MPI and MPICH");
    };
    let lab = Lab::new();
    let ended = launched(&lab, open, "2", &["mpi", "-t", "2", "--lib", &library(mpich)]);
    let text = ended.stderr.clone();
    assert!(text.contains("the launcher of another MPI started this program"), "{text}");
    assert_ne!(ended.code, Some(0));
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
        (&["mpi", "--sizes", "0-1G", "-q"], 2, "--sizes 0-1G"),
        (&["mpi", "-n", "2", "--lib", "/nowhere/libmpi.so", "-q"], 4, "/nowhere/libmpi.so"),
    ] {
        let ended = lab.run(words);
        ended.expect(code);
        assert!(ended.errors()[0].contains(said), "{:?}", ended.errors());
    }
    assert!(lab.files().is_empty());
}

#[test]
fn a_rank_that_is_killed_leaves_a_partial_record_and_nobody() {
    let _turn = turn();
    for mpi in mpis() {
        let lab = Lab::new();
        // Launches of 5 s, of which the second loses a rank.
        let words = [
            "mpi",
            "-n",
            "2",
            "-t",
            "15",
            "-l",
            "soak",
            "--ops",
            "pingpong,barrier",
            "--sizes",
            "0-64",
            "--json",
            "-q",
        ];
        let mut command = lab.command(&words);
        command.args(["--lib", &library(&mpi)]);
        let running = Running::of(command);
        std::thread::sleep(Duration::from_secs(7));
        let main = i32::try_from(running.id()).unwrap();
        // Two ranks and their launcher bear the role; the youngest is a rank.
        let own = || descendants(main).into_iter().filter(|p| commands_with(ROLE).contains(p)).max();
        assert!(soon(|| own().is_some_and(|rank| kill_process(rank).is_ok())), "{}: no ranks", mpi.version);
        let ended = running.end();
        println!("{}: {:?}", mpi.version, ended.wall);
        ended.expect(5);
        let record = ended.record();
        assert!(!record.complete);
        warned(&record, "W511");
        nobody_is_left();
    }
}

#[test]
fn a_program_that_is_killed_takes_its_ranks_along() {
    let _turn = turn();
    for mpi in mpis() {
        let lab = Lab::new();
        let mut command = lab.command(&["mpi", "-n", "2", "-t", "30", "--ops", "pingpong"]);
        let mut running = command.args(["--lib", &library(&mpi), "-q"]).spawn().unwrap();
        let started = soon(|| commands_with(ROLE).len() >= 3);
        running.kill().unwrap();
        running.wait().unwrap();
        assert!(started, "{}: no ranks", mpi.version);
        nobody_is_left();
    }
}

#[test]
fn noise_across_ranks_is_one_record() {
    let _turn = turn();
    for mpi in mpis() {
        let lab = Lab::new();
        let ended = launched(&lab, &mpi, "2", &["noise", "-t", "4", "--json", "-q"]);
        let record = ended.record();
        for rank in ["0", "1", "all"] {
            assert!(value(&record, "noise.stolen_fraction", &[("rank", rank)]).is_some(), "{rank}");
        }
        assert!(record.metrics.iter().all(|m| !m.params.contains_key("cpu")));
        for operation in ["barrier", "allreduce"] {
            let found =
                record.metric("noise.collective", &[("operation", operation), ("ranks", "2")]).unwrap();
            println!("{}, {operation}: {:?} of {} turns", mpi.version, found.value, found.n);
            assert!(found.value.is_some_and(|ns| ns > 100.0) && found.n > 0);
            let late =
                |rank| value(&record, "noise.late_fraction", &[("operation", operation), ("rank", rank)]);
            let shares = late("0").unwrap_or(0.0) + late("1").unwrap_or(0.0);
            assert!((shares - 1.0).abs() < 1e-9, "{shares}");
        }
        assert!(record.findings.iter().any(|f| f.id == "noise.slow_ranks"));
        assert!(ended.wall < Duration::from_secs(12), "{:?}", ended.wall);
        // The stored samples say the same again.
        let again = lab.run(&["report", "last", "--json"]).record();
        let cost = |r: &Record| value(r, "noise.collective", &[("operation", "barrier")]).unwrap();
        assert!((cost(&again) / cost(&record) - 1.0).abs() < 1e-3);
    }
}

#[test]
fn ranks_that_cannot_be_measured_together_are_told_in_one_line() {
    let _turn = turn();
    for mpi in mpis() {
        let lab = Lab::new();
        let on_one = lab.command(&["noise", "-t", "2", "-q"]);
        let line = format!("taskset -c 0 {}", on_one.get_program().display());
        let program = lab.script("pinned", &format!("#!/bin/sh\nexec {line} \"$@\"\n"));
        let told = |arguments: &[&str]| {
            let mut command = Command::new(mpi.launcher.as_ref().unwrap());
            command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
            command.args(arguments);
            lab.set_up(&mut command);
            Running::of(command).end()
        };
        let own = on_one.get_program().to_str().unwrap().to_owned();
        let noise = ["noise", "-t", "2", "-q"];
        let both = told(&[&["-n", "2", &program][..], &noise].concat());
        assert!(both.stderr.contains("ranks 0 and 1 are both on CPU 0"), "{}", both.stderr);
        let other =
            told(&[&["-n", "1", &own][..], &noise, &[":", "-n", "1", &own, "mpi", "-t", "2", "-q"]].concat());
        let lines = other.stderr.lines().filter(|l| l.contains("start one version on all machines"));
        assert_eq!(lines.count(), 1, "{}", other.stderr);
        assert_ne!((both.code, other.code), (Some(0), Some(0)));
    }
}

#[test]
fn a_rank_of_noise_that_is_killed_leaves_nobody() {
    let _turn = turn();
    for mpi in mpis() {
        let lab = Lab::new();
        let mut command = Command::new(mpi.launcher.as_ref().unwrap());
        command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        let program = lab.command(&["noise", "-t", "20", "-o", "killed.json", "-q"]);
        command.args(["-n", "2"]).arg(program.get_program()).args(program.get_args());
        lab.set_up(&mut command);
        let mut launcher = command.spawn().unwrap();
        let main = i32::try_from(launcher.id()).unwrap();
        let own = || descendants(main).into_iter().filter(|p| commands_with("killed.json").contains(p)).max();
        std::thread::sleep(Duration::from_secs(5));
        let killed = soon(|| own().is_some_and(|rank| kill_process(rank).is_ok()));
        // The exit code is the launcher's.
        let mut status = None;
        let ended = soon(|| {
            status = launcher.try_wait().unwrap();
            status.is_some()
        });
        if !ended {
            launcher.kill().unwrap();
            launcher.wait().unwrap();
        }
        assert!(killed && ended, "{}: killed {killed}, ended {ended}", mpi.version);
        assert!(status.is_some_and(|s| !s.success()));
        assert!(soon(|| commands_with("killed.json").is_empty()), "ranks are left");
        // A launcher that asks before it kills leaves rank 0 time for what it has.
        let complete = |name: &String| lab.record(name).complete;
        let kept: Vec<_> = lab
            .files()
            .into_iter()
            .filter(|f| Path::new(f).extension().is_some_and(|e| e == "json"))
            .collect();
        println!("{}: {status:?}, kept {kept:?}", mpi.version);
        assert!(!kept.iter().any(complete), "a record that says it is complete");
    }
}
