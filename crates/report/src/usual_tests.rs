//! Tests of the usual ranges: published ranges against the fixtures, ranges grown from records, and the kind of a machine.
#![allow(clippy::unwrap_used, reason = "tests fail loudly")]

use machmeter_data::metric::params;
use machmeter_data::{Fact, FactValue, MetricInfo, Unit};
use serde_json::json;

use super::*;

fn cas(from: i64, to: i64, ns: f64) -> Metric {
    let of = params([
        ("from", from.into()),
        ("to", to.into()),
        ("kind", "cas".into()),
        ("placement", "near".into()),
    ]);
    Metric::new(&MetricInfo::of("memory.core_to_core", Unit::Nanoseconds), of, ns, "median", 9)
}

fn latency(level: &str, ns: f64) -> Metric {
    let of = params([("level", level.into()), ("order", "global".into()), ("pages", "small".into())]);
    Metric::new(&MetricInfo::of("memory.latency", Unit::Nanoseconds), of, ns, "median", 9)
}

/// A record with these texts as facts, two cores of two threads, and rows that show all of these metrics.
fn record(facts: &[(&str, &str)], metrics: Vec<Metric>) -> Record {
    let figures: Vec<_> =
        metrics.iter().map(|m| json!({"condition": "", "id": m.id, "params": m.params})).collect();
    let mut record = Record::default();
    let rows = json!([{"section": "MEMORY", "name": "all", "figures": figures}]);
    record.summary.rows = serde_json::from_value(rows).unwrap();
    for (path, text) in facts {
        let source = if *path == "virt.product" { "/sys/firmware/devicetree/base/model" } else { "/sys" };
        record.machine.before.set(*path, Fact::known(*text, source));
    }
    let core = |(cpus, core): (&str, i64)| {
        FactValue::map([("cpus", cpus.into()), ("package", 0_i64.into()), ("core", core.into())])
    };
    let cores = [("0,2", 0), ("1,3-4", 1)].map(core).to_vec();
    record.machine.before.set("cpu.topology", Fact::known(cores, "/sys"));
    record.metrics = metrics;
    record
}

fn is_range(found: &Usual, low: f64, high: f64, n: u32) {
    assert!((found.low - low).abs() < 1e-3 && (found.high - high).abs() < 1e-3 && found.n == n, "{found:?}");
}

fn published(metric: &Metric, record: &Record) -> Option<Usual> {
    usual_shown(&[], metric, &Shows::Value, record)
}

#[test]
fn published_ranges_are_those_of_an_independent_calculation() {
    // 10th and 90th percentile (Hyndman and Fan, type 7) of the fixtures, computed in Python with its own parser and sort. A published range applies to its
    // own definition: kind of machine, operation, level, different cores.
    let truth = [("desktop", 16.06, 105.14, 10), ("server", 29.86, 192.0, 13)];
    for (kind, low, high, n) in truth {
        let record = record(&[("virt.chassis", kind), ("virt.hypervisor", "none")], Vec::new());
        let found = published(&cas(0, 3, 50.0), &record).unwrap();
        is_range(&found, low, high, n);
        assert!(found.kind == kind && found.source.contains("core-to-core-latency"), "{found:?}");
        assert_eq!(published(&cas(0, 2, 7.0), &record), None, "two threads of one core");
        assert_eq!(published(&cas(0, 9, 50.0), &record), None, "a CPU that the topology lacks");
        assert_eq!(published(&latency("L1", 1.0), &record), None, "no source for this kind");
    }
    let board = record(&[("virt.product", "Example Single Board Computer")], Vec::new());
    let found = published(&latency("L1", 1.5), &board).unwrap();
    is_range(&found, 1.4182, 2.5186, 45);
    assert_eq!(published(&latency("DRAM", 150.0), &board), None, "pages of the sources are unknown");
    let mut other = cas(0, 3, 50.0);
    other.params.insert("kind".to_owned(), "read_clean".into());
    assert_eq!(published(&other, &record(&[("virt.chassis", "server")], Vec::new())), None);
}

#[test]
fn the_kind_is_what_the_record_tells_and_nothing_else() {
    let told = [
        (&[("virt.hypervisor", "kvm"), ("virt.chassis", "desktop")][..], Some("guest")),
        (&[("virt.hypervisor", "unnamed")], Some("guest")),
        (&[("virt.product", "linux,dummy-virt")], Some("guest")),
        (&[("virt.hypervisor", "none"), ("virt.chassis", "convertible")], Some("laptop")),
        (&[("virt.product", "Example Phone"), ("virt.chassis", "handset")], None),
        (&[("virt.product", "Example Board"), ("virt.chassis", "embedded")], Some("board")),
        (&[("virt.hypervisor", "none"), ("virt.chassis", "other")], None),
        (&[("virt.hypervisor", "none")], None),
        (&[], None),
    ];
    for (facts, expected) in told {
        assert_eq!(kind(&record(facts, Vec::new())), expected, "{facts:?}");
    }
}

#[test]
fn ranges_grow_from_five_machines_of_a_kind() {
    let server = [("virt.hypervisor", "none"), ("virt.chassis", "server")];
    let machine = |ns: f64| figures(&record(&server, vec![latency("DRAM", ns)])).unwrap();
    let five: Vec<Vec<Figure>> = [104.0, 100.0, 101.0, 103.0, 102.0].map(machine).to_vec();
    let grow = |n: usize| grown(five.iter().take(n).map(|f| ("server", f.as_slice())));
    assert!(grow(4).is_empty());
    let (of, there) = (latency("DRAM", 90.0), record(&server, Vec::new()));
    let found = usual_shown(&grow(5), &of, &Shows::Value, &there).unwrap();
    // Positions 0.4 and 3.6 among 100 to 104.
    assert!((found.low - 100.4).abs() < 1e-9 && (found.high - 103.6).abs() < 1e-9, "{found:?}");
    assert_eq!(found.n, 5);
    assert_eq!(usual_shown(&grow(5), &of, &Shows::Max, &there), None);
    assert_eq!(usual_shown(&grow(5), &latency("L2", 4.0), &Shows::Value, &there), None);
    let desktop = record(&[("virt.chassis", "desktop")], Vec::new());
    assert_eq!(usual_shown(&grow(5), &of, &Shows::Value, &desktop), None);
}

#[test]
fn weak_figures_do_not_count_and_hostile_records_are_refused() {
    let mut weak = latency("L1", 1.0);
    weak.flag("W314");
    let planted = vec![weak, cas(0, 2, 7.0), cas(0, 1, 50.0), latency("L2", 4.0), latency("L2", 4.0)];
    let keys: Vec<String> = figures(&record(&[], planted)).unwrap().into_iter().map(|f| f.0).collect();
    let expected = [
        "memory.core_to_core{from=0,kind=cas,placement=near,to=1}",
        "memory.latency{level=L2,order=global,pages=small}",
    ];
    assert_eq!(keys, expected);
    for text in ["*", "a,level=b", "}", "\u{1b}[2J", &"x".repeat(400)] {
        let refused = figures(&record(&[], vec![latency(text, 1.0)])).unwrap_err();
        assert!(refused.contains("an unknown key") && refused.len() < 80, "{refused}");
    }
    let many = (0..=MAX_FIGURES).map(|i| latency(&i.to_string(), 1.0)).collect();
    assert!(figures(&record(&[], many)).unwrap_err().contains("more than 1000"));
}
