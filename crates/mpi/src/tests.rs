//! Scripts end, planted costs are found.

use machmeter_engine::Level;
use machmeter_engine::cost::{Row, Rows};
use machmeter_engine::host::Silent;
use machmeter_sys::clock::SourceId;

use crate::cells::{FOUND, ISOLATED};
use crate::launch::{Plan, measure};
use crate::operations::{Collective, OPERATIONS, Operation, numbered};
use crate::simulated::{Noise, Planted, STEP_NS, Simulated};
use crate::stage::{Play, Shared, Stage};

const PLANTED: Planted = Planted {
    send_ns: 180.0,
    recv_ns: 140.0,
    post_ns: 70.0,
    wait_ns: 95.0,
    latency_ns: 600.0,
    put_ns: 110.0,
    flush_ns: 60.0,
    per_byte_ns: 0.2,
    inline_bytes: 256,
    eager_bytes: 4_040,
    collective: |collective, p, d| (1_000.0 + 50.0 * collective as u8 as f64) * p.log2() + 0.3 * p * d,
};
const NOISE: Noise = Noise { base: 0.02, spikes: 0.05, preempted: 0.02 };
const SIZES: [u64; 4] = [0, 8, 1_024, 65_536];
const RANKS: [usize; 3] = [2, 4, 8];

fn plan(seconds: u64) -> Plan {
    Plan {
        operations: OPERATIONS.iter().map(|o| o.name.to_owned()).collect(),
        sizes: SIZES.to_vec(),
        isolated: SIZES.to_vec(),
        ranks: RANKS.to_vec(),
        level: Level::Standard,
        seed: 7,
        time_ns: seconds * 1_000_000_000,
        source: SourceId::MonotonicRaw,
        tick_hz: 1e9,
    }
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
        "put" | "get" | "fetch_and_op" => both(110.0 + further + 60.0),
        "ibcast" => both(70.0 + all(Collective::Bcast) / 2.0),
        "iallreduce" => both(70.0 + all(Collective::Allreduce) / 2.0),
        "ialltoall" => both(70.0 + all(Collective::Alltoall) / 2.0),
        _ => match operation.root[1] {
            crate::operations::Phase::Each([crate::operations::Step::All(of)]) => both(all(*of)),
            _ => panic!("{}: no truth", operation.name),
        },
    }
}

/// Rows of a launch as they come in.
pub(crate) fn rows(stage: &Shared, plan: &Plan) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let mut hand = |index: usize, new: Row| match rows.get_mut(index) {
        Some(row) => {
            let mut pairs = std::mem::take(&mut row.pairs);
            pairs.extend(new.pairs.iter().copied());
            *row = Row { pairs, ..new };
        }
        None => rows.push(new),
    };
    measure(stage, plan, &Silent, &mut hand).unwrap();
    rows
}

#[test]
fn every_script_ends_with_any_number_of_turns() {
    for number in 0..OPERATIONS.len() + 2 {
        for ranks in if numbered(number).unwrap().is_collective { vec![2, 3, 8] } else { vec![2, 8] } {
            let mut stage = Simulated::new(PLANTED, Noise::NONE, 8, 1);
            let play = Play { operation: number, bytes: 8, ranks, beside_ns: 5_000 };
            for turns in [1, 2, 30] {
                stage.back_to_back(&play, turns).unwrap();
            }
        }
    }
}

#[test]
fn every_row_recovers_what_was_planted() {
    let stage = Shared::new(Simulated::new(PLANTED, NOISE, 8, 3));
    let rows = rows(&stage, &plan(60));
    let all = Rows { tick_hz: 1e9, step_ticks: STEP_NS, rows, ..Rows::default() };
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
    let rows = rows(&stage, &plan);
    for (name, bytes) in [("inline", 256.0), ("eager", 4_040.0)] {
        let row = rows.iter().find(|r| r.operation == name).unwrap();
        assert_eq!(FOUND.map(|f| row.extras[f]), [bytes, bytes, 3.0], "{name}");
    }
}
