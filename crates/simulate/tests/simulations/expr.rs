//! Expressions over planted figures: values, intervals, units, warnings, and what is refused; no text breaks the parser.

use machmeter_data::metric::params;
use machmeter_data::{Metric, MetricInfo, Record, Unit};
use machmeter_simulate::expr::{Answer, ExprError, Sheet, bind, parse};
use machmeter_stats::random::Random;

use crate::given::plant;

/// allreduce: 100 + 10 log p + 2 d ns at 2 to 64 ranks, 8 to 1024 B, from 1025 B on 5000 + d; barrier: 300 ns of two ranks.
fn record() -> Record {
    let mut r = Record::default();
    let ns = Unit::Nanoseconds;
    for p in [2i64, 8, 64] {
        for d in [8i64, 1024, 1025, 8192] {
            let keys = [("operation", "allreduce".into()), ("ranks", p.into()), ("size_bytes", d.into())];
            plant(&mut r, "mpi.cost", ns, &keys, 1.0, 0.0);
        }
    }
    for (term, from, value, reach) in [
        ("1", 8i64, 100.0, 10.0),
        ("log(p)", 8, 10.0, 1.0),
        ("d", 8, 2.0, 0.1),
        ("1", 1025, 5000.0, 0.0),
        ("d", 1025, 1.0, 0.0),
    ] {
        let keys = [("operation", "allreduce".into()), ("term", term.into()), ("from_bytes", from.into())];
        plant(&mut r, "mpi.coefficient", ns, &keys, value, reach);
    }
    let barrier = [("operation", "barrier".into()), ("ranks", 2i64.into()), ("size_bytes", 0i64.into())];
    plant(&mut r, "mpi.cost", ns, &barrier, 300.0, 30.0);
    for (code, value) in [("libc", 80.0), ("inline", 70.0)] {
        let keys = [("operation", "getppid".into()), ("code", code.into()), ("kind", "latency".into())];
        plant(&mut r, "ops.cost", ns, &keys, value, 4.0);
    }
    plant(&mut r, "memory.bandwidth", Unit::BytesPerSecond, &[("cpus", 1i64.into())], 1e10, 0.0);
    let info = MetricInfo::of("net.gap", ns);
    r.metrics.push(Metric::rejected(&info, params([("transport", "shm".into())]), "line", "at most 5 ns"));
    r
}

fn ask(text: &str, variable: f64) -> Result<(Answer, i32, Vec<String>), ExprError> {
    let sheet = Sheet::of(&[record()]);
    let bound = bind(&parse(text)?, &sheet, Some("P"))?;
    let answer = bound.at(variable)?;
    let lines = answer.outside.lines(&sheet);
    Ok((answer, bound.dimension, lines))
}

fn near(found: f64, planted: f64) {
    assert!((found - planted).abs() <= 1e-9 * planted.abs(), "{found}, planted {planted}");
}

#[test]
fn a_value_is_that_of_its_laws_and_costs_and_its_interval_holds_all_ends() {
    let (found, dimension, lines) = ask("100*allreduce(p=P,d=8) + 2000*syscall", 16.0).unwrap();
    assert_eq!((dimension, lines.len(), found.figures.len()), (1, 0, 4));
    near(found.value, 100.0 * (100.0 + 40.0 + 16.0) + 2000.0 * 80.0);
    let (low, high) = found.interval.unwrap();
    let reach = 100.0 * (10.0 + 4.0 + 0.8) + 2000.0 * 4.0;
    near(high - found.value, reach);
    near(found.value - low, reach);
    for (text, planted, dimension) in [
        ("allreduce(p=2,d=8K)", 5000.0 + 8192.0, 1),
        ("allreduce(p=2,d=1025)", 6025.0, 1),
        ("barrier", 300.0, 1),
        ("barrier - barrier + 3us", 3000.0, 1),
        ("syscall(code=inline)/syscall", 70.0 / 80.0, 0),
        ("getppid{code=libc}", 80.0, 1),
        ("ops.cost(operation=getppid, code='inline')", 70.0, 1),
        ("1M/bandwidth", 1_048_576.0 / 10.0, 1),
        ("max(0, barrier, 2*syscall) + sqrt(barrier^2)", 600.0, 1),
        ("log2(P)*1us^1 - -1us", 5000.0, 1),
        ("2^3^2 + ceil(1.2) + floor(1.9)", 515.0, 0),
        ("bandwidth", 10.0, -1),
        ("barrier/1s", 300.0 / 1e9, 0),
    ] {
        let (found, power, lines) = ask(text, 16.0).unwrap();
        assert_eq!((power, lines), (dimension, Vec::<String>::new()), "{text}");
        near(found.value, planted);
    }
    let twice = ask("barrier - barrier + 3us", 1.0).unwrap().0;
    assert_eq!(twice.interval, Some((3000.0, 3000.0)), "one figure errs once");
    assert_eq!(ask("allreduce(p=2,d=8K)", 1.0).unwrap().0.interval, None, "no figure has an interval");
}

#[test]
fn beyond_what_was_measured_it_warns_always() {
    for (text, about) in [
        (
            "allreduce(p=P,d=8)",
            "allreduce of 4096 ranks is extrapolated: measured numbers of ranks are 2 to 64",
        ),
        ("allreduce(p=8,d=1M)", "allreduce of 1048576 B is extrapolated: measured sizes are 8 to 8192 B"),
        ("allreduce(p=8,d=0)", "allreduce of 0 B is extrapolated"),
        ("barrier(p=P)", "barrier of 4096 ranks has no law: the nearest measured cost is used (2 ranks)"),
    ] {
        let lines = ask(text, 4096.0).unwrap().2;
        assert!(lines.len() == 1 && lines[0].contains(about), "{text}: {lines:?}");
    }
    let sheet = Sheet::of(&[record()]);
    let bound = bind(&parse("allreduce(p=P,d=8)").unwrap(), &sheet, Some("P")).unwrap();
    let mut all = bound.at(8.0).unwrap().outside;
    for p in [128.0, 4096.0] {
        all.add(&bound.at(p).unwrap().outside);
    }
    assert!(all.lines(&sheet)[0].starts_with("allreduce of 128 to 4096 ranks"), "{:?}", all.lines(&sheet));
}

#[test]
fn what_has_no_meaning_is_refused_with_what_to_do() {
    for (text, about, help) in [
        ("allredce(p=2,d=8)", "no cost or law 'allredce'", "similar: allreduce"),
        ("getpid", "no cost or law 'getpid'", "similar: getppid"),
        ("Q", "no cost or law 'Q'", "names here:"),
        ("getppid", "getppid is 2 figures", "choose by code (inline, libc)"),
        ("getppid(code=rust)", "no getppid with code=rust", "code is inline, libc"),
        ("getppid(cod=libc)", "no getppid with cod=libc", "getppid has no cod: its keys are code, kind"),
        ("getppid(code=P)", "its code cannot be the variable P", "laws of p and d"),
        ("net.gap", "net.gap{transport=shm} has no value: at most 5 ns", ""),
        ("allreduce(d=8)", "allreduce needs p=", "known: 2 to 64 ranks"),
        ("allreduce(p=2)", "allreduce needs d=", "known: 8 to 8192 B"),
        ("allreduce(p=2.5,d=8)", "p = 2.5 is not possible", "from 1 on"),
        ("allreduce(p=0,d=8)", "p = 0 is not possible", "from 1 on"),
        ("allreduce(p=2,d=barrier)", "d is a time", ""),
        ("1/(barrier-barrier)", "character 2: division by zero", ""),
        ("1/0", "character 2: division by zero", ""),
        ("barrier + 5", "character 9: a time + a number", "20us"),
        ("sqrt(barrier)", "sqrt of a time", ""),
        ("barrier^P", "to the power of", ""),
        ("(0-1)^0.5", "not a finite number", ""),
        ("min(1, barrier)", "min of a number and a time", ""),
        ("log(1,2)", "log takes one argument", ""),
        ("10^300*10^300", "not a finite number", ""),
    ] {
        let found = ask(text, 4.0).unwrap_err();
        assert!(found.what.contains(about) && found.help.contains(help), "{text}: {found:?}");
        assert!(!found.what.contains('\n'));
    }
}

#[test]
fn no_text_breaks_it() {
    let words: Vec<&str> =
        "allreduce barrier syscall P p d = ( ) , + - * / ^ 8 1e9 0 2us getppid 'x' { } max log \u{e9}"
            .split(' ')
            .collect();
    let mut random = Random::new(7);
    let (mut read, mut valued) = (0, 0);
    for _ in 0..200_000 {
        let text: String = (0..=random.below(12)).map(|_| words[random.below(words.len())]).collect();
        read += u32::from(parse(&text).is_ok());
        valued += u32::from(ask_of(&text));
    }
    assert!(read > 5000 && valued > 500, "{read} read, {valued} with a value");
}

fn ask_of(text: &str) -> bool {
    thread_local!(static SHEET: Sheet = Sheet::of(&[record()]));
    SHEET.with(|sheet| {
        let Ok(expr) = parse(text) else { return false };
        let Ok(bound) = bind(&expr, sheet, Some("P")) else { return false };
        bound.at(3.0).is_ok_and(|a| {
            a.value.is_finite() && a.interval.is_none_or(|(l, h)| l <= a.value && a.value <= h)
        })
    })
}
