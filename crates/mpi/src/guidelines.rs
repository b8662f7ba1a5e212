//! Performance guidelines: no call should cost more than others that do the same together (Traeff, Gropp, Thakur: "Self-consistent MPI
//! performance guidelines", TPDS 21, 2010). By isolated costs, each until the last rank is through, so that a sum is what both cost one after
//! the other at most.

use machmeter_data::quantity::{Unit, human};
use machmeter_data::record::{Finding, Warning};
use machmeter_model::laws::table::At;

use crate::analyze::Found;
use crate::info::GUIDELINE;

/// A call, and those that do the same, for the same bytes of a rank.
const GUIDELINES: [(&str, &[&str]); 5] = [
    ("allreduce", &["reduce", "bcast"]),
    ("reduce", &["allreduce"]),
    ("gather", &["allgather"]),
    ("allgather", &["alltoall"]),
    ("scatter", &["alltoall"]),
];
/// Intervals have to be apart by this share.
const APART: f64 = 0.1;

/// Calls that break a guideline, each at the size where it is worst.
pub(crate) fn broken(found: &[Found]) -> Vec<(Finding, Warning)> {
    GUIDELINES.iter().filter_map(|(call, others)| worst(found, call, others)).collect()
}

fn worst(found: &[Found], call: &str, others: &[&str]) -> Option<(Finding, Warning)> {
    let of = |name: &str| found.iter().find(|f| f.operation.name == name);
    let own = of(call)?;
    let broken = |((ranks, bytes), at): (&(u32, u64), &At)| {
        let all: Option<Vec<&At>> =
            others.iter().map(|name| of(name)?.isolated.get(&(*ranks, *bytes))).collect();
        let all = all?;
        let (sum, high): (f64, f64) = (all.iter().map(|a| a.ns).sum(), all.iter().map(|a| a.high_ns).sum());
        (at.low_ns > high * (1.0 + APART)).then_some((at.ns / sum, *ranks, *bytes))
    };
    let worst = own.isolated.iter().filter_map(broken).max_by(|a, b| a.0.total_cmp(&b.0))?;
    let (ratio, ranks, bytes) = worst;
    let size = human(bytes as f64, Unit::Bytes);
    let text = format!("{call} of {size} at p = {ranks} costs {ratio:.1} times {}", others.join(" + "));
    let finding = Finding {
        id: "mpi.guideline".to_owned(),
        verdict: "present".to_owned(),
        text: text.clone(),
        evidence: vec!["isolated costs, intervals apart".to_owned()],
    };
    Some((finding, GUIDELINE.note(text)))
}
