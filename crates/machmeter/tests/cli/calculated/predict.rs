//! Tests of `predict`: traced runs on measured costs, and wrong input.

use machmeter_data::{Metric, Record, Table, Unit};

use super::given::{Row, plant, tables};
use super::planted::{plant_link, record, save};
use crate::program::Lab;

const ROUND_NS: i64 = 30_000;
/// Rank 0 calculates 10 us and sends 1 B; 10 us after the answer an allreduce of 8 B. Rank 1 receives, calculates 5 us and answers.
const CALLS: [Row; 6] = [
    (0, "Send", 10_000, 100, 1, 1, 7),
    (0, "Recv", 10_100, 9000, 1, 1, 8),
    (0, "Allreduce", 29_100, 900, 8, -3, -3),
    (1, "Recv", 0, 12_000, 1, 0, 7),
    (1, "Send", 17_000, 100, 1, 0, 8),
    (1, "Allreduce", 17_100, 12_900, 8, -3, -3),
];

fn rounds(count: i64) -> Vec<Table> {
    let of = |n| CALLS.map(|c| (c.0, c.1, c.2 + n * ROUND_NS, c.3, c.4, c.5, c.6));
    tables(&(0..count).flat_map(of).collect::<Vec<Row>>(), &[count * ROUND_NS; 2])
}

/// Stores a traced run of `count` rounds under this name.
pub(crate) fn save_rounds(lab: &Lab, count: i64, name: &str) {
    save(lab, record("0123456789abcdea"), &rounds(count), name);
}

/// The planted link for two MPI ranks; an allreduce of 900 ns.
fn costs(id: &str, reach: f64) -> Record {
    let mut record = record(id);
    let keys = [("receive", "posted".into()), ("from_bytes", 1i64.into())];
    plant_link(&mut record, "mpi", &keys, reach);
    let keys = [("operation", "allreduce".into()), ("ranks", 2i64.into()), ("size_bytes", 8i64.into())];
    plant(&mut record, "mpi.cost", Unit::Nanoseconds, &keys, 900.0, reach * 900.0);
    record
}

pub(crate) fn lab() -> Lab {
    let lab = Lab::new();
    save(&lab, record("0123456789abcdef"), &[], "bare.json");
    save(&lab, record("0123456789abcdee"), &rounds(10), "run.json");
    save(&lab, costs("0123456789abcded", 0.0), &[], "exact.json");
    save(&lab, costs("0123456789abcdec", 0.1), &[], "on.json");
    lab
}

fn wall(record: &Record, change: &str) -> Metric {
    record.metric("predict.wall", &[("change", change)]).unwrap().clone()
}

/// 10 us, a message, 5 us, a message, 10 us, 900 ns: each message is 100 + 500 + 100 ns.
#[test]
fn a_traced_run_takes_what_its_calls_cost_there() {
    let lab = lab();
    let said = lab.line("predict run.json --on exact.json --vary L=1x,2x --vary o=0x -o p.json");
    let said = said.expect(0).stdout.clone();
    assert!(said.contains("2 ranks, 300 us traced -> 273 us"), "{said}");
    let p = lab.record("p.json");
    assert_eq!(p.run.verb, "predict");
    let value = |change: &str| wall(&p, change).value.unwrap();
    assert_eq!([value("none"), value("L 1x"), value("L 2x")], [273_000.0, 273_000.0, 283_000.0]);
    assert_eq!(value("o 0x"), 269_000.0);
    assert_eq!((wall(&p, "none").n, wall(&p, "none").ci), (1, None));
    let metric = |id: &str, key, of: &str| p.metric(id, &[(key, of)]).unwrap().value.unwrap();
    let sensitivity = |of: &str| metric("predict.sensitivity", "parameter", of);
    assert_eq!(["L", "o", "g", "G"].map(sensitivity), [20.0, 40.0, 0.0, 0.0]);
    let share = ["compute", "messages", "waiting", "noise"].map(|part| metric("predict.share", "part", part));
    assert!((share.iter().sum::<f64>() - 1.0).abs() < 1e-9, "{share:?}");
    // Both ranks compute 20 + 5 us of 27.3 us per round.
    assert!((share[0] - 25.0 / 54.6).abs() < 1e-9 && share[3] == 0.0, "{share:?}");
    lab.line("predict run.json --on exact.json --cpu-scale 2 -q -o p.json").expect(0);
    assert_eq!(wall(&lab.record("p.json"), "none").value, Some(523_000.0));
    lab.line("report p.json").expect(0);
}

/// The cost of an allreduce does not contain L.
#[test]
fn what_prices_and_cpus_leave_out_is_said() {
    let lab = lab();
    let said =
        lab.line("predict run.json --on exact.json --vary L=1x,2x -v -o p.json").expect(0).stdout.clone();
    assert!(said.contains("dT/dL >= 20, dT/do >= 40"), "{said}");
    assert!(said.contains("3.3 % of the critical path is allreduce at its measured cost"), "{said}");
    assert!(
        said.contains("W915") && said.contains("does not change the measured cost of allreduce"),
        "{said}"
    );
    assert!(!said.contains("W916"), "{said}");
    let line =
        "predict run.json --on exact.json --vary L=2x --algorithm allreduce=recursive-doubling -v --no-save";
    let said = lab.line(line).expect(0).stdout.clone();
    assert!(
        !said.contains("W915") && !said.contains(">=") && !said.contains("at its measured cost"),
        "{said}"
    );
    for (share, is_warned) in [(0.56, true), (0.95, false)] {
        let mut traced = record("0123456789abcdea");
        plant(&mut traced, "mpi.on_cpu", Unit::One, &[], share, 0.0);
        save(&lab, traced, &rounds(10), "shared.json");
        let said = lab.line("predict shared.json --on exact.json -v --no-save").expect(0).stdout.clone();
        assert_eq!(
            said.contains("W916") && said.contains("had a CPU for only 56 % of the time"),
            is_warned,
            "{said}"
        );
    }
}

/// An uncertainty of costs of 10 % moves 14 of 273 us.
#[test]
fn the_interval_has_the_errors_of_costs_and_noise() {
    let lab = lab();
    lab.line("predict run.json --on on.json -q -o p.json").expect(0);
    let quiet = wall(&lab.record("p.json"), "none");
    let ci = quiet.ci.clone().unwrap();
    assert!(ci.low < 273_000.0 && 273_000.0 < ci.high, "{ci:?}");
    assert!((500.0..8000.0).contains(&(ci.high - ci.low)), "{ci:?}");
    assert_eq!(quiet.n, 39);
    lab.line("predict run.json --on on.json --noise period=100us,duration=10us -q -o noisy.json").expect(0);
    let noisy = lab.record("noisy.json");
    // All computation is on the critical path: 250 us lose one in nine. A message during a gap waits for its end, too.
    let longer = wall(&noisy, "none").value.unwrap() - quiet.value.unwrap();
    assert!((25_000.0..60_000.0).contains(&longer), "{longer} ns");
    let share = noisy.metric("predict.share", &[("part", "noise")]).unwrap().value.unwrap();
    assert!((0.02..0.09).contains(&share), "{share}");
    // The same result again.
    lab.line("predict run.json --on on.json -q -o again.json").expect(0);
    assert_eq!(wall(&lab.record("again.json"), "none"), quiet);
}

#[test]
fn more_ranks_and_what_was_not_measured_are_said() {
    let lab = lab();
    let said = lab.line("predict run.json --on exact.json --ranks 8 -v -o p.json").expect(0).stdout.clone();
    assert!(
        said.contains("messages of 2 ranks repeated 4 times, 10 collectives of all ranks rebuilt"),
        "{said}"
    );
    assert!(said.contains("W911") && said.contains("allreduce of 8 ranks has no law"), "{said}");
    // Rank 1 entered long before. Rank 0 takes the waiting message and sends, 200 ns; rank 1 waits for the last message.
    lab.line("predict run.json --on exact.json --algorithm allreduce=dissemination -q -o p.json").expect(0);
    assert_eq!(
        wall(&lab.record("p.json"), "none").value,
        Some(10.0 * 26_400.0 + 9.0 * 200.0 + 100.0 + 703.5)
    );
    let said =
        lab.line("predict run.json --on exact.json --bytes-scale 100 --no-save").expect(0).stdout.clone();
    assert!(said.contains("allreduce of 800 B is extrapolated: measured sizes are 8 B"), "{said}");
}

#[test]
fn what_cannot_be_is_refused() {
    let lab = lab();
    for (line, about) in [
        ("predict", "nothing to predict"),
        ("predict bare.json --on bare.json", "bare.json: the run has no trace of an MPI program"),
        ("predict nothere.json --on bare.json", "nothere.json"),
        ("predict run.json", "no costs for the prediction"),
        ("predict run.json --on bare.json", "no parameters of links: measure them with machmeter net"),
        ("predict run.json --on exact.json --link tcp", "no link 'tcp' in the record: mpi posted"),
        ("predict run.json --on exact.json --ranks 3", "--ranks 3 is not a multiple of the 2 traced ranks"),
        (
            "predict run.json --on exact.json --algorithm allreduce=nothing",
            "no pattern 'nothing'; patterns are binomial, ",
        ),
        (
            "predict run.json --on exact.json --algorithm nothing=ring",
            "no operation 'nothing'; operations are barrier, ",
        ),
        ("predict run.json --on exact.json --algorithm ring", "is not an operation with a pattern"),
        ("predict run.json --on exact.json --vary L", "'L=' is not L, o, g or G with a factor"),
        ("predict run.json --on exact.json --vary L=1x,2", "'L=2' is not L, o, g or G with a factor"),
        ("predict run.json --on exact.json --vary z=2x", "'z=2x' is not L, o, g or G with a factor"),
        ("predict run.json --on exact.json --cpu-scale=-1", "'-1' is not a factor"),
        ("predict run.json --on exact.json --cpu-scale nan", "'nan' is not a factor"),
        (
            "predict run.json --on exact.json --noise bare.json",
            "--noise bare.json: the run has no list of gaps",
        ),
        ("predict run.json --on exact.json --ranks 16000000", "a run needs up to"),
    ] {
        lab.line(line).refused(about);
    }
    let mut record = costs("0123456789abcdeb", 0.0);
    record.metrics.retain(|m| m.id != "mpi.cost");
    save(&lab, record, &[], "link.json");
    lab.line("predict run.json --on link.json").refused("--on link.json: no cost of allreduce");
    lab.line("predict run.json --on link.json --with exact.json -q").expect(0);
    lab.line("predict run.json --on link.json --algorithm allreduce=ring -q").expect(0);
}
