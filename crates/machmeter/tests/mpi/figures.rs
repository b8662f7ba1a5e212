//! Tests of the mpi probe's figures: all operations, thresholds, pairs of ranks, and the library in their parameters.

use std::time::Duration;

use machmeter_data::Record;
use machmeter_sys::mpi::{Flavor, Installed};

use crate::program::{Lab, Running, is_root, value, warned};
use crate::{launched, mpis, nobody_is_left, on, priority};

#[test]
fn every_operation_has_a_cost_and_a_law_or_a_reason() {
    for mpi in mpis() {
        let lab = Lab::alone();
        let line = format!("mpi -n 2 -t 9 -l quick --json -q {}", priority());
        let ended = Running::of(on(&lab, &mpi, &line)).end();
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
        // The version text comes from the launcher's library.
        let library = record.metrics.iter().find_map(|m| m.params.get("library")).unwrap().to_string();
        assert_eq!(library, mpi.version);
        // A round trip costs at least two sends, if the CPUs are free.
        let cost =
            |operation, size| value(&record, "mpi.cost", &[("operation", operation), ("size_bytes", size)]);
        if let (Some(small), Some(large)) = (cost("pingpong", "8"), cost("pingpong", "1048576")) {
            assert!(small > 50.0 && large > 5.0 * small, "{small} {large}");
        }
        // The stored samples give the same laws again.
        let again = lab.line("report last --json").record();
        let laws = |r: &Record| r.metrics.iter().filter(|m| m.id == "mpi.coefficient").count();
        assert_eq!(laws(&again), laws(&record));
        nobody_is_left();
    }
}

/// The threshold with the eager limit of Open MPI's shared memory, or that of UCX, set to `limit`.
fn threshold(mpi: &Installed, limit: &str) -> Option<f64> {
    let lab = Lab::alone();
    let line = format!("mpi -n 2 -t 6 --ops send --sizes 0-32K --json -q {}", priority());
    let mut command = on(&lab, mpi, &line);
    command.env("OMPI_MCA_btl_vader_eager_limit", limit).env("UCX_RNDV_THRESH", limit);
    let record = Running::of(command).end().record();
    let found = record.metric("mpi.threshold", &[("receiver", "polling")]).unwrap();
    println!("{}, {limit}: {:?} {:?}", mpi.version, found.value, found.why);
    found.value
}

#[test]
fn the_eager_limit_moves_as_it_is_set() {
    for mpi in mpis() {
        // Searches can differ if other programs use the CPUs.
        let found = |limit| (0..3).find_map(|_| threshold(&mpi, limit));
        let (Some(small), Some(large)) = (found("4096"), found("8192")) else {
            assert!(!is_root(), "{}: no limit in three runs", mpi.version);
            println!("skipped: {}: the CPUs are not left to the ranks", mpi.version);
            continue;
        };
        let libraries = std::fs::read(&mpi.library).unwrap();
        let is_ucx = libraries.windows(6).any(|name| name == b"libucp");
        match mpi.flavor {
            Flavor::OpenMpi => assert_eq!(large - small, 4_096.0, "{small} to {large}"),
            _ if is_ucx => assert_eq!((small, large), (4_095.0, 8_191.0)),
            // Other libraries have a limit that these variables do not change.
            _ => assert_eq!(small, large),
        }
    }
}

#[test]
fn pairs_have_a_latency_a_bandwidth_and_a_verdict() {
    for mpi in mpis() {
        let lab = Lab::alone();
        let line = format!("mpi --parts pairs -t 2 --json -q {}", priority());
        let own = Running::of(on(&lab, &mpi, &format!("{line} -n 2"))).end();
        for ended in [own, launched(&lab, &mpi, 2, &line)] {
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
    for mpi in mpis() {
        let cpus = machmeter_sys::affinity::mask().unwrap().to_vec().len();
        let ranks = (cpus + 1).to_string();
        let lab = Lab::alone();
        // Ranks of MPICH keep the CPU from the ranks they wait for, so there are few samples.
        let words =
            "--oversubscribe --ops barrier,pingpong --sizes 8 -t 4 --launches 1 --parts pairs --json -q";
        let record = Running::of(on(&lab, &mpi, &format!("mpi -n {ranks} {words}"))).end().record();
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
    for mpi in mpis() {
        let line = "mpi -t 1 --ops pingpong --sizes 8 --json -q";
        let record = launched(&Lab::alone(), &mpi, 2, line).record();
        assert_eq!(record.metrics.iter().filter(|m| m.id == "mpi.cost").count(), 1);
    }
}
