//! Scripts end, planted costs are found.

use machmeter_engine::Analysis;

use crate::cells::{FOUND, ISOLATED};
use crate::launch::Plan;
use crate::operations::{Collective, OPERATIONS, Operation, numbered};
use crate::selftest::{NOISE, PLANTED, rows};
use crate::simulated::{Noise, Simulated};
use crate::stage::{Play, Shared, Stage};

const SIZES: [u64; 4] = [0, 8, 1_024, 65_536];
const RANKS: [usize; 3] = [2, 4, 8];

fn plan(seconds: u64) -> Plan {
    let all: Vec<&str> = OPERATIONS.iter().map(|o| o.name).collect();
    crate::selftest::plan(&all, &SIZES, &RANKS, seconds)
}

/// What the planted steps of an operation take, ns: back to back and isolated.
fn truth(operation: &Operation, d: f64, p: f64) -> [f64; 2] {
    let further = 0.2 * d;
    let (send, recv) = (180.0 + further, 140.0 + further);
    let all = |of: Collective| (PLANTED.collective)(of, p, d);
    let both = |ns| [ns, ns];
    match operation.name {
        // The receiver is quicker than the sender.
        "send" | "ssend" | "rsend" => both(send),
        "recv" => [send, send + 600.0 + recv],
        "recvmin" => both(recv),
        "irecv1" => both(70.0),
        "irecv2" => both(95.0 + further),
        // Posting and asking; the message is there when the work, as long as a round trip, is done.
        "irecvoverlap" => both(70.0 + 180.0 + 95.0 + further),
        "sendrecv" => both(send + 600.0 + recv),
        "pingpong" => both(2.0 * (send + 600.0 + recv)),
        // Of 16 messages the last one back comes after its way; the sender is the slower end.
        "train" | "train_with_work" => both(16.0 * send + 600.0 + recv + send + 600.0 + recv),
        "shmem_get" => both(110.0 + further),
        "shmem_fadd" => both(110.0),
        "shmem_quiet" => both(60.0),
        "shmem_lock" | "shmem_test_lock" => both(220.0),
        "shmem_wait_until" => both(2.0 * (110.0 + 600.0 + 60.0)),
        "shmem_barrier" => both(all(Collective::Barrier)),
        "shmem_put" | "put" | "get" | "fetch_and_op" => both(110.0 + further + 60.0),
        "ibcast" => both(70.0 + all(Collective::Bcast) / 2.0),
        "iallreduce" => both(70.0 + all(Collective::Allreduce) / 2.0),
        "ialltoall" => both(70.0 + all(Collective::Alltoall) / 2.0),
        _ => match operation.root[1] {
            crate::operations::Phase::Each([crate::operations::Step::All(of)]) => both(all(*of)),
            _ => panic!("{}: no truth", operation.name),
        },
    }
}

#[test]
fn every_script_ends_with_any_number_of_turns() {
    for operation in (0..OPERATIONS.len() + 5).filter_map(numbered) {
        for ranks in if operation.is_collective { vec![2, 3, 8] } else { vec![2, 8] } {
            let mut stage = Simulated::new(PLANTED, NOISE, 8, 1);
            let play = Play { beside_ns: 5_000, ..Play::of(operation, 8, ranks) };
            for turns in [1, 2, 30] {
                stage.back_to_back(&play, turns).unwrap();
            }
        }
    }
}

#[test]
fn every_row_recovers_what_was_planted() {
    let stage = Shared::new(Simulated::new(PLANTED, NOISE, 8, 3));
    let all = rows(&stage, &plan(60)).unwrap();
    let mut judged = 0;
    for row in all.rows.iter().filter(|r| !r.extras.contains_key(FOUND[0])) {
        let operation = OPERATIONS.iter().find(|o| o.name == row.operation).unwrap();
        let [bytes, ranks] = ["size_bytes", "ranks"].map(|name| row.int(name).unwrap() as f64);
        let truth_ns = truth(operation, bytes, ranks)[usize::from(row.text("mode") == ISOLATED)];
        let cost = all.cost(row);
        let known = cost.known().unwrap_or_else(|| panic!("{} {:?}: {cost:?}", row.operation, row.params));
        let off = (known.value_ns / truth_ns - 1.0).abs();
        let inside = known.low_ns <= truth_ns && truth_ns <= known.high_ns;
        assert!(off < 0.02 || inside, "{} {:?}: {known:?}, true {truth_ns}", row.operation, row.params);
        judged += 1;
    }
    assert!(judged > 300, "{judged} rows");
}

#[test]
fn both_thresholds_are_found_to_the_byte() {
    let stage = Shared::new(Simulated::new(PLANTED, NOISE, 2, 5));
    let plan = Plan { operations: vec!["send".to_owned()], ..plan(20) };
    let rows = rows(&stage, &plan).unwrap().rows;
    for (name, bytes) in [("inline", 256.0), ("eager", 4_040.0)] {
        let row = rows.iter().find(|r| r.operation == name).unwrap();
        assert_eq!(FOUND.map(|f| row.extras[f]), [bytes, bytes, 1.0], "{name}");
    }
}

/// Of rows as of one launch.
fn analyzed(stage: &Shared, plan: &Plan) -> Analysis {
    let mut found = rows(stage, plan).unwrap();
    for row in &mut found.rows {
        row.params.insert("launch".to_owned(), 1_i64.into());
    }
    let params = serde_json::from_str(r#"{"sizes": "0-1M", "launches": 1}"#).unwrap();
    crate::analyze::analyze(&params, &found, 1)
}

#[test]
fn costs_are_told_where_the_ranks_were_most_of_the_time() {
    let stage = Shared::new(Simulated::new(PLANTED, Noise { apart: 0.3, ..NOISE }, 2, 4));
    let names = ["send", "pingpong", "allreduce"];
    let analysis = analyzed(&stage, &crate::selftest::plan(&names, &[8, 1_024], &[2], 60));
    assert!(analysis.warnings.iter().any(|w| w.code == "W421"), "{:?}", analysis.warnings);
    let costs = analysis.metrics.iter().filter(|m| m.id == "mpi.cost" || m.id == "mpi.isolated");
    let mut judged = 0;
    for m in costs {
        let operation = OPERATIONS.iter().find(|o| o.name == m.params["operation"].to_string()).unwrap();
        let bytes: f64 = m.params["size_bytes"].to_string().parse().unwrap();
        let truth_ns = truth(operation, bytes, 2.0)[usize::from(m.id == "mpi.isolated")];
        let value_ns = m.value.unwrap();
        assert!((value_ns / truth_ns - 1.0).abs() < 0.02, "{:?}: {value_ns}, true {truth_ns}", m.params);
        judged += 1;
    }
    assert_eq!(judged, 12);
}

#[test]
fn planted_loggps_parameters_are_found() {
    let noise = Noise { base: 0.005, spikes: 0.02, preempted: 0.01, apart: 0.0 };
    let stage = Shared::new(Simulated::new(PLANTED, noise, 2, 9));
    let sizes: Vec<u64> = (3..=20).map(|k| 1 << k).collect();
    let analysis = analyzed(&stage, &crate::selftest::plan(&crate::operations::LOGGPS, &sizes, &[2], 200));
    let value = |id: &str, receive: &str| {
        let of = |m: &&machmeter_data::Metric| m.id == id && m.params["receive"].to_string() == receive;
        analysis.metrics.iter().find(of).unwrap_or_else(|| panic!("{id} {receive}")).clone()
    };
    for (id, receive, truth) in [
        ("mpi.overhead_send", "posted", 180.0 + 8.0 * 0.2),
        ("mpi.overhead_recv", "posted", 70.0 + 95.0 + 8.0 * 0.2),
        ("mpi.overhead_recv", "unexpected", 140.0 + 8.0 * 0.2),
        ("mpi.gap_per_byte", "posted", 0.2),
        ("mpi.message_time", "posted", 180.0 + 8.0 * 0.2),
    ] {
        let m = value(id, receive);
        let (value, ci) = (m.value.unwrap(), m.ci.clone().unwrap());
        let near = (value / truth - 1.0).abs() < 0.03 || (ci.low <= truth && truth <= ci.high);
        assert!(near, "{id} {receive}: {value} {ci:?}, true {truth}");
    }
}

#[test]
fn what_does_not_stand_above_the_stamps_is_a_bound() {
    let planted = crate::simulated::Planted { wait_ns: 2.0, ..PLANTED };
    let stage = Shared::new(Simulated::new(planted, NOISE, 2, 11));
    let analysis = analyzed(&stage, &crate::selftest::plan(&["irecv2"], &[8, 65_536], &[2], 20));
    let isolated: Vec<_> = analysis.metrics.iter().filter(|m| m.id == "mpi.isolated").collect();
    let [small, large] = &isolated[..] else { panic!("{isolated:?}") };
    let is_bound = |why: &String| why.starts_with("below resolution at 8 B: at most ");
    assert!(small.value.is_none() && small.why.as_ref().is_some_and(is_bound), "{small:?}");
    assert!(large.value.is_some(), "{large:?}");
}
