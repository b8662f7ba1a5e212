//! Self-test: costs and sizes that wait, planted into simulated ranks, and found by the cells, the sampler and the estimates that real ones get.

mod ranks;

use machmeter_engine::Level;
use machmeter_engine::cost::{Row, Rows};
use machmeter_engine::host::Silent;
use machmeter_engine::selftest::machine::Machine;
use machmeter_engine::selftest::{Options, SelfCheck, State, percent};
use machmeter_sys::clock::SourceId;

use crate::cells::FOUND;
use crate::launch::{Plan, measure};
use crate::run::merge;
use crate::simulated::{Noise, Planted, STEP_NS, Simulated};
use crate::stage::Shared;

pub(crate) use ranks::{WORKER as RANK, checks as ranks};

pub(crate) const PLANTED: Planted = Planted {
    send_ns: 180.0,
    recv_ns: 140.0,
    post_ns: 70.0,
    wait_ns: 95.0,
    latency_ns: 600.0,
    put_ns: 110.0,
    flush_ns: 60.0,
    stamp_ns: 30.0,
    per_byte_ns: 0.2,
    inline_bytes: 256,
    eager_bytes: 4_040,
    link: |_, _| 1.0,
    collective: |collective, p, d| (1_000.0 + 50.0 * f64::from(collective as u8)) * p.log2() + 0.3 * p * d,
};
pub(crate) const NOISE: Noise = Noise { base: 0.02, spikes: 0.05, preempted: 0.02, apart: 0.0 };
/// Figures may be off by this share.
const OFF: f64 = 0.02;

/// Rows of a launch of simulated ranks.
pub(crate) fn rows(stage: &Shared, plan: &Plan) -> Result<Rows, String> {
    let mut rows: Vec<Row> = Vec::new();
    measure(stage, plan, &Silent, &mut |index, row| merge(&mut rows, index, row))?;
    Ok(Rows { tick_hz: 1e9, step_ticks: STEP_NS, rows, ..Rows::default() })
}

pub(crate) fn plan(operations: &[&str], sizes: &[u64], ranks: &[usize], seconds: u64) -> Plan {
    Plan {
        operations: operations.iter().map(|o| (*o).to_owned()).collect(),
        sizes: sizes.to_vec(),
        isolated: sizes.to_vec(),
        ranks: ranks.to_vec(),
        pairs: false,
        level: Level::Standard,
        seed: 7,
        until_ns: seconds * 1_000_000_000,
        source: SourceId::MonotonicRaw,
        tick_hz: 1e9,
    }
}

pub(crate) fn planted(_machine: &Machine, options: &Options) -> Vec<SelfCheck> {
    let what = "eight simulated ranks with planted costs, preemption and late ranks";
    let plan =
        plan(&["send", "allreduce"], &[8, 4_096, 65_536], &[2, 4, 8], if options.quick { 20 } else { 60 });
    let found = match rows(&Shared::new(Simulated::new(PLANTED, NOISE, 8, 3)), &plan) {
        Ok(found) => found,
        Err(why) => return vec![SelfCheck::not_shown("mpi.planted", what, "within 2 %", why)],
    };
    let truth_ns = |r: &Row| {
        let (d, p) = (r.int("size_bytes")? as f64, r.int("ranks")? as f64);
        let all = (PLANTED.collective)(crate::operations::Collective::Allreduce, p, d);
        Some(if r.operation == "send" { PLANTED.send_ns + PLANTED.per_byte_ns * d } else { all })
    };
    let off = |r: &Row| Some((found.cost(r).value_ns()? / truth_ns(r)? - 1.0).abs());
    let worst = found.rows.iter().filter(|r| !r.pairs.is_empty()).filter_map(off).fold(0.0, f64::max);
    let limits: Vec<f64> = found.rows.iter().filter_map(|r| r.extras.get(FOUND[1]).copied()).collect();
    let right = limits == [PLANTED.inline_bytes as f64, PLANTED.eager_bytes as f64];
    let (truth, told) =
        ("costs by the planted laws".to_owned(), format!("off by {} at most", percent(worst)));
    let costs = SelfCheck::new("mpi.planted", what, "within 2 %", truth, told, State::of(worst <= OFF));
    let (what, told) = ("sizes from which a planted send waits", format!("{limits:?} B"));
    let truth = format!("{} and {} B", PLANTED.inline_bytes, PLANTED.eager_bytes);
    vec![costs, SelfCheck::new("mpi.thresholds", what, "to the byte", truth, told, State::of(right))]
}
