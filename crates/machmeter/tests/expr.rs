//! Calculating with the costs of records as a user does: `predict --expr`.

#![allow(clippy::unwrap_used, reason = "tests fail and tell their figures")]

mod program;

use machmeter_data::metric::ParamValue;
use machmeter_data::record::{Run, Tool};
use machmeter_data::{Better, Interval, Metric, MetricInfo, Record, Unit};
use program::Lab;

fn plant(record: &mut Record, id: &'static str, keys: &[(&str, ParamValue)], ns: f64, reach: f64) {
    let info = MetricInfo {
        id,
        params: &[],
        unit: Unit::Nanoseconds,
        better: Better::Lower,
        weakened_by: &[],
        description: "",
        may_be_negative: false,
    };
    let keys = keys.iter().map(|(k, v)| ((*k).to_owned(), v.clone())).collect();
    let ci = Interval::new(0.95, ns - reach, ns + reach, "planted");
    record.metrics.push(Metric::new(&info, keys, ns, "planted", 9).with_ci(ci));
}

/// allreduce of 2 to 64 ranks: 200 + 100 log p ns; a system call of 80 ns in another record.
fn lab() -> Lab {
    let lab = Lab::new();
    let tool = Tool { name: "machmeter".to_owned(), version: "1".to_owned(), ..Tool::default() };
    let save = |id: &str, name: &str, fill: &dyn Fn(&mut Record)| {
        let mut record = Record::new(id.to_owned(), tool.clone(), Run::default());
        fill(&mut record);
        machmeter_store::history::save_as(&mut record, &[], &lab.work().join(name)).unwrap();
    };
    let allreduce = || ("operation", ParamValue::from("allreduce"));
    save("0123456789abcdef", "mpi.json", &|r| {
        for (term, ns, reach) in [("1", 200.0, 10.0), ("log(p)", 100.0, 5.0)] {
            let keys = [allreduce(), ("term", term.into()), ("from_bytes", 0i64.into())];
            plant(r, "mpi.coefficient", &keys, ns, reach);
        }
        for ranks in [2i64, 8, 64] {
            for bytes in [0i64, 1024] {
                plant(
                    r,
                    "mpi.cost",
                    &[allreduce(), ("ranks", ranks.into()), ("size_bytes", bytes.into())],
                    1.0,
                    0.1,
                );
            }
        }
    });
    save("0123456789abcdee", "ops.json", &|r| {
        plant(r, "ops.cost", &[("operation", "getppid".into()), ("code", "libc".into())], 80.0, 4.0);
    });
    lab
}

#[test]
fn an_expression_has_values_over_a_variable_and_warns_beyond_what_was_measured() {
    let lab = lab();
    let line = |over: &str, more: &str| {
        let mut all = vec!["predict", "--expr", "100*allreduce(p=P,d=8) + 2000*syscall", "--on", "mpi.json"];
        all.extend(["--with", "ops.json", "--over", over]);
        all.extend(more.split(' '));
        lab.run(&all)
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
    assert!(shown.contains("W911"), "{shown}");
    assert!(shown.contains("allreduce of 128 to 4096 ranks lies beyond the known ones (2 to 64)"), "{shown}");
    lab.line("predict --expr 2*3 --on mpi.json --no-save").expect(0);
    lab.line("predict --expr allreduce(p=8,d=8)/syscall --on mpi.json --with ops.json --no-save").expect(0);
}

#[test]
fn what_has_no_value_is_one_line() {
    let lab = lab();
    for (expression, about) in [
        ("allredce(p=2,d=8)", "nothing is called 'allredce'"),
        ("syscal", "nothing is called 'syscal'"),
        ("1/0", "character 2: division by zero"),
        ("1/(2-P)", "division by zero at P = 2"),
        ("1+", "ends where a number or name is missing"),
        ("allreduce(d=8)", "allreduce needs p="),
        ("syscall+1", "a time + a number"),
        ("syscall^2", "a time to the power of 2 is no figure"),
    ] {
        let line =
            ["predict", "--expr", expression, "--on", "mpi.json", "--with", "ops.json", "--over", "P=1-4"];
        lab.run(&line).refused(about);
    }
    lab.line("predict --expr 1+1").refused("--on");
    lab.line("predict --expr 1+1 --on mpi.json --over P=4-2").refused("is no variable over a range");
    lab.line("predict --expr 1+1 --on nothere.json").refused("nothere.json");
    lab.line("predict last --expr 1+1 --on mpi.json").refused("cannot be used with");
}
