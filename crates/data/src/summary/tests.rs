//! Tests of rows found among metrics, and of verdicts from several probes.

use super::*;
use crate::metric::{Interval, MetricInfo, Population, Quality, params};

const INFO: MetricInfo = MetricInfo::of("memory.bandwidth", Unit::BytesPerSecond);

fn rate(kernel: &str, cpus: i64, value: f64) -> Metric {
    let of = params([("kernel", kernel.into()), ("cpus", cpus.into())]);
    Metric::new(&INFO, of, value, "median", 30).with_max(2.0 * value)
}

fn metrics() -> Vec<Metric> {
    vec![
        rate("read.sse2", 1, 1e9),
        rate("read.avx2", 1, 2e9),
        rate("read.avx2", 2, 3e9),
        rate("read.avx2", 4, 4e9),
        rate("copy.avx2", 1, 5e8),
    ]
}

fn told(info: RowInfo) -> Vec<(String, Vec<(String, f64)>)> {
    let metrics = metrics();
    let figures =
        |r: &Row| r.figures.iter().map(|f| (f.condition.clone(), f.find(&metrics).unwrap().value)).collect();
    rows(&[info], &metrics).iter().map(|r| (r.name.clone(), figures(r))).collect()
}

const WITHOUT: RowInfo = RowInfo::new("MEMORY", "write", &[Pick::new("", "memory.bandwidth{kernel=write*}")]);

#[test]
fn a_row_finds_its_figures_among_the_metrics() {
    const READ: RowInfo = RowInfo::new(
        "MEMORY",
        "{kernel}",
        &[
            Pick::new("{cpus} CPU", "memory.bandwidth{kernel=read.*,cpus=1}"),
            Pick::new("{cpus} CPUs", "memory.bandwidth{kernel=read.*}").most("cpus"),
            Pick::new("", "memory.bandwidth{kernel=nothing}"),
        ],
    )
    .share("kernel");
    let expected = vec![("1 CPU".to_owned(), 2e9), ("4 CPUs".to_owned(), 4e9)];
    assert_eq!(told(READ), [("read.avx2".to_owned(), expected)]);
    assert!(told(WITHOUT).is_empty());
}

#[test]
fn a_shared_parameter_is_that_of_most_figures_then_the_last() {
    const READ: RowInfo = RowInfo::new(
        "MEMORY",
        "{kernel}",
        &[
            Pick::new("1", "memory.bandwidth{kernel=read.*,cpus=1}"),
            Pick::new("2", "memory.bandwidth{kernel=read.*,cpus=2}"),
        ],
    )
    .share("kernel");
    let names = |all: &[Metric]| rows(&[READ], all).iter().map(|r| r.name.clone()).collect::<Vec<_>>();
    // The fastest kernel on one CPU was not measured on two.
    let all = [rate("read.sse2", 1, 1e9), rate("read.avx2", 1, 9e9), rate("read.sse2", 2, 2e9)];
    assert_eq!(names(&all), ["read.sse2"]);
    assert_eq!(names(&all[..2]), ["read.avx2"]);
}

#[test]
fn a_row_for_each_value_and_all_but_one() {
    const EACH: RowInfo = RowInfo::new(
        "MEMORY",
        "by {kernel}",
        &[Pick::new("", "memory.bandwidth{!kernel=read.sse2,cpus=1}").max()],
    )
    .each("kernel");
    let row = |name: &str, value| (name.to_owned(), vec![(String::new(), value)]);
    assert_eq!(told(EACH), [row("by read.avx2", 4e9), row("by copy.avx2", 1e9)]);
}

#[test]
fn the_worst_figure_is_none_where_one_is_unknown() {
    const SLOWEST: RowInfo = RowInfo::new("MEMORY", "slowest", &[Pick::new("", "memory.bandwidth").worst()]);
    const TAIL: RowInfo =
        RowInfo::new("MEMORY", "tail", &[Pick::new("", "memory.bandwidth").quantile("0.99").worst()]);
    let mut all = metrics();
    let told = |info, all: &[Metric]| rows(&[info], all).first()?.text(all).map(|t| t.line());
    for (better, worst) in [(Better::Higher, "500 MB/s"), (Better::Lower, "4.00 GB/s")] {
        for m in &mut all {
            (m.better, m.quantiles) = (better, [("0.99".to_owned(), 1e9)].into());
        }
        assert_eq!(told(SLOWEST, &all).as_deref(), Some(worst));
    }
    assert_eq!(told(TAIL, &all).as_deref(), Some("1.00 GB/s"));
    all[2].quantiles.clear();
    assert_eq!(told(TAIL, &all), None, "what has too few samples for this quantile may be worse");
    all[0].reject("none up to 8");
    assert_eq!(told(SLOWEST, &all), None);
}

#[test]
fn a_row_without_any_figure_has_the_reason() {
    const READ: RowInfo = RowInfo::new(
        "MEMORY",
        "{kernel}",
        &[
            Pick::new("1 CPU", "memory.bandwidth{kernel=read.*,cpus=1}"),
            Pick::new("2", "memory.bandwidth{cpus=2}"),
        ],
    );
    const DETAIL: RowInfo = RowInfo::detail("MEMORY", "{kernel}", READ.picks);
    let mut all = vec![rate("read.avx2", 1, 2e9), rate("read.avx2", 2, 3e9)];
    all[0].reject("the buffer fits the last cache");
    let row = &rows(&[READ], &all)[0];
    assert_eq!((row.text(&all).unwrap().line().as_str(), row.missing(&all)), ("3.00 GB/s", None));
    all[1].reject("one CPU was taken away");
    all[0].flag("W406");
    let row = &rows(&[READ], &all)[0];
    assert_eq!(row.text(&all), None);
    assert_eq!(
        row.missing(&all),
        Some(("read.avx2", "no figure: the buffer fits the last cache (W406)".to_owned()))
    );
    assert!(rows(&[DETAIL], &all).is_empty());
}

#[test]
fn the_worse_of_two_judgments_stands() {
    let of = |purpose: &str, fit| Fitness { purpose: purpose.to_owned(), fit, reason: format!("{fit:?}") };
    let mut all = Summary { fitness: vec![of(Purpose::Throughput.name(), Fit::Yes)], ..Summary::default() };
    let fitness = vec![of(Purpose::Throughput.name(), Fit::Partly), of(Purpose::Latency.name(), Fit::No)];
    all.add(Summary { fitness, ..Summary::default() });
    all.add(Summary { fitness: vec![of(Purpose::Latency.name(), Fit::Unknown)], ..Summary::default() });
    let reasons: Vec<&str> = all.fitness.iter().map(|f| f.reason.as_str()).collect();
    assert_eq!(reasons, ["No", "Partly"]);
}

#[test]
fn a_wide_interval_is_printed_by_its_ends() {
    const COPY: RowInfo = RowInfo::new("MEMORY", "copy", &[Pick::new("", "memory.bandwidth{kernel=copy}")]);
    let words = |low: f64, high: f64| {
        let metrics = [rate("copy", 1, 1e9).with_ci(Interval::new(0.95, low, high, "rank"))];
        rows(&[COPY], &metrics)[0].text(&metrics).unwrap().interval
    };
    assert_eq!(words(0.96e9, 1.02e9).as_deref(), Some("± 4.00 %"));
    assert_eq!(words(0.13e9, 2.9e9).as_deref(), Some("130 MB/s to 2.90 GB/s"));
    assert_eq!(words(0.92e9, 1e9).as_deref(), Some("at least 920 MB/s"));
    assert_eq!(words(1e9, 1.2e9).as_deref(), Some("at most 1.20 GB/s"));
    assert_eq!(words(1e9, 1e9), None);
}

#[test]
fn each_figure_has_its_unit_and_shares_have_intervals_in_points() {
    const SHARE: MetricInfo = MetricInfo::of("noise.stolen_fraction", Unit::One);
    const WAIT: MetricInfo = MetricInfo::of("noise.wait", Unit::Nanoseconds);
    const TAKEN: RowInfo = RowInfo::new("NOISE", "x", &[Pick::new("", "noise.stolen_fraction")]);
    const WAITS: RowInfo = RowInfo::new(
        "NOISE",
        "x",
        &[Pick::new("a", "noise.wait{kind=a}"), Pick::new("b", "noise.wait{kind=b}")],
    );
    let row = |name: &str, info: RowInfo, metrics: &[Metric]| {
        let text = rows(&[info], metrics)[0].text(metrics).unwrap();
        assert_eq!(text.name, name);
        (text.line(), text.interval, text.marks)
    };
    let share = |low, high| {
        let mut m = Metric::new(&SHARE, Params::new(), 0.0232, "time-share", 30);
        m = m.with_ci(Interval::new(0.95, low, high, "rank"));
        row("x", TAKEN, &[m])
    };
    assert_eq!(share(0.0191, 0.0262), ("2.32 %".to_owned(), Some("± 0.41".to_owned()), vec![]));
    assert_eq!(share(0.0101, 0.0462).1.as_deref(), Some("1.01 % to 4.62 %"));
    let of = |kind: &str, ns| Metric::new(&WAIT, params([("kind", kind.into())]), ns, "median", 30);
    let mut metrics = [of("a", 210_000.0), of("b", 2_040_000.0)];
    metrics[1].quality = Quality::Suspect;
    metrics[1].population = Some(Population::CoreShared);
    let marks = vec![Mark::CoreShared, Mark::Suspect];
    assert_eq!(row("x, a | b", WAITS, &metrics), ("210 us | 2.04 ms".to_owned(), None, marks));
}
