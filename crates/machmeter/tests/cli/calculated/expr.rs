//! Tests of `predict --expr`: calculations with the costs of records.

use machmeter_data::Unit;
use machmeter_data::metric::ParamValue;

use super::given::plant;
use super::planted::{record, save};
use crate::program::Lab;

/// allreduce on 2 to 64 ranks: 200 + 100 log p ns; a system call of 80 ns in another record.
fn lab() -> Lab {
    let lab = Lab::new();
    let (mut mpi, mut ops) = (record("0123456789abcdef"), record("0123456789abcdee"));
    let allreduce = || ("operation", ParamValue::from("allreduce"));
    for (term, ns, reach) in [("1", 200.0, 10.0), ("log(p)", 100.0, 5.0)] {
        let keys = [allreduce(), ("term", term.into()), ("from_bytes", 0i64.into())];
        plant(&mut mpi, "mpi.coefficient", Unit::Nanoseconds, &keys, ns, reach);
    }
    for (ranks, bytes) in [(2i64, 0i64), (2, 1024), (8, 0), (8, 1024), (64, 0), (64, 1024)] {
        let keys = [allreduce(), ("ranks", ranks.into()), ("size_bytes", bytes.into())];
        plant(&mut mpi, "mpi.cost", Unit::Nanoseconds, &keys, 1.0, 0.1);
    }
    let keys = [("operation", "getppid".into()), ("code", "libc".into())];
    plant(&mut ops, "ops.cost", Unit::Nanoseconds, &keys, 80.0, 4.0);
    save(&lab, mpi, &[], "mpi.json");
    save(&lab, ops, &[], "ops.json");
    lab
}

#[test]
fn an_expression_has_values_over_a_variable_and_warns_beyond_what_was_measured() {
    let lab = lab();
    let line = |over: &str, more: &str| {
        let expression = "100*allreduce(p=P,d=8)+2000*syscall";
        lab.line(&format!("predict --expr {expression} --on mpi.json --with ops.json --over {over} {more}"))
    };
    let shown = line("P=2-64", "-o inside.json").expect(0).stdout.clone();
    assert!(shown.contains("PREDICT") && !shown.contains("W911"), "{shown}");
    let record = lab.record("inside.json");
    assert_eq!(record.run.verb, "predict");
    for k in 1..=6u32 {
        let at = (1u32 << k).to_string();
        let metric = record.metric("predict.time", &[("variable", "P"), ("at", &at)]).unwrap();
        let (planted, reach) = (f64::from(20_000 + k * 10_000 + 160_000), f64::from(1000 + k * 500 + 8000));
        let ci = metric.ci.as_ref().unwrap();
        let found = [metric.value.unwrap(), ci.low, ci.high];
        for (found, planted) in found.iter().zip([planted, planted - reach, planted + reach]) {
            assert!((found - planted).abs() < 1e-6, "P = {at}: {found}, planted {planted}");
        }
    }
    assert_eq!(record.datasets("predict.expression").count(), 1);
    lab.line("report inside.json").expect(0);
    let shown = line("P=2-4096", "--no-save").expect(0).stdout.clone();
    // The page breaks a note at words; its beginning is there at least.
    assert!(
        shown.contains("W911  allreduce of 128 to 4096 ranks is extrapolated: measured numbers of ranks are"),
        "{shown}"
    );
    let whole = line("P=2-4096", "--no-save --json").expect(0).record();
    let text = "allreduce of 128 to 4096 ranks is extrapolated: measured numbers of ranks are 2 to 64";
    assert!(whole.warnings.iter().any(|w| w.text == text), "{:?}", whole.warnings);
    lab.line("predict --expr 2*3 --on mpi.json --no-save").expect(0);
    let listed = lab.line("predict --expr list --on mpi.json --with ops.json").expect(0).stdout.clone();
    for (name, by) in
        [("allreduce  ", "by ranks, bytes"), ("getppid  ", "1 figure"), ("syscall  ", "1 figure")]
    {
        assert!(listed.lines().any(|l| l.starts_with(name) && l.contains(by)), "{name}: {listed}");
    }
    let json = lab.line("predict --expr list --on mpi.json --json").expect(0).stdout.clone();
    assert!(serde_json::from_str::<Vec<String>>(&json).is_ok_and(|all| all.len() > 2), "{json}");
    lab.line("predict --expr allreduce(p=8,d=8)/syscall --on mpi.json --with ops.json --no-save").expect(0);
}

#[test]
fn what_has_no_value_is_one_line() {
    let lab = lab();
    for (expression, about) in [
        ("allredce(p=2,d=8)", "no cost or law 'allredce'"),
        ("syscal", "no cost or law 'syscal'"),
        ("1/0", "character 2: division by zero"),
        ("1/(2-P)", "division by zero at P = 2"),
        ("1+", "ends where a number or name is missing"),
        ("allreduce(d=8)", "allreduce needs p="),
        ("syscall+1", "a time + a number"),
        ("syscall^2", "the result is a time to the power of 2"),
    ] {
        lab.line(&format!("predict --expr {expression} --on mpi.json --with ops.json --over P=1-4"))
            .refused(about);
    }
    lab.line("predict --expr 1+1").refused("--on");
    lab.line("predict --expr 1+1 --on mpi.json --over P=4-2").refused("is not a variable with a range");
    lab.line("predict --expr 1+1 --on nothere.json").refused("nothere.json");
    lab.line("predict last --expr 1+1 --on mpi.json").refused("cannot be used with");
}
