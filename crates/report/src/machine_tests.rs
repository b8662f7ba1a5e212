//! Tests of machine drawings, from facts alone.

use machmeter_data::Fact;
use serde_json::json;

use super::*;

/// A core with these CPUs and these numbers of the units around it.
fn core(cpus: &str, ids: &[(&str, i64)]) -> FactValue {
    let ids = ids.iter().map(|(key, id)| (*key, (*id).into()));
    FactValue::map(ids.chain([("cpus", cpus.into())]))
}

/// A record with these cores, levels of the ladder (name, ns) and latencies between CPUs (from, to, ns).
fn record(cores: Vec<FactValue>, levels: &[(&str, f64)], pairs: &[(i64, i64, f64)]) -> Record {
    let metric = |id: &str, params: serde_json::Value, value: f64| {
        json!({"id": id, "params": params, "unit": "ns", "better": "lower", "value": value, "estimator": "median", "ci": null,
               "n": 9, "quality": "ok"})
    };
    let rungs = levels.iter().map(|(name, ns)| metric("memory.latency", json!({"level": name}), *ns));
    let ways = pairs.iter().map(|(from, to, ns)| {
        metric("memory.core_to_core", json!({"from": from, "kind": "cas", "to": to}), *ns)
    });
    let row = |name: &str| {
        let figure = json!({"condition": "latency", "id": "memory.latency", "params": {"level": name}});
        json!({"section": "LADDER", "name": name, "figures": [figure]})
    };
    let rows: Vec<_> = levels.iter().map(|(name, _)| row(name)).collect();
    let mut record = Record::default();
    record.summary.rows = serde_json::from_value(json!(rows)).unwrap();
    record.metrics = serde_json::from_value(json!(rungs.chain(ways).collect::<Vec<_>>())).unwrap();
    record.machine.before.set("cpu.topology", Fact::known(cores, "/sys"));
    record.machine.before.set("memory.total", Fact::known(16_u64 << 30, "/proc/meminfo").with_unit("By"));
    record
}

const LADDER: [(&str, f64); 4] = [("L1", 1.0), ("L2", 4.0), ("LLC", 13.0), ("DRAM", 95.0)];

/// Latencies in ns between CPUs of [`server`]: threads of a core 7; cores of a cache 20, 22 and 90; caches of a package 60; packages 150.
const PAIRS: [(i64, i64, f64); 6] =
    [(0, 8, 7.0), (0, 1, 20.0), (2, 3, 22.0), (6, 7, 90.0), (1, 2, 60.0), (0, 4, 150.0)];

/// Two packages of two caches of two cores of two threads: CPUs 0 to 7, their threads 8 to 15.
fn server() -> Vec<FactValue> {
    let ids = |i: i64| [("package", i / 4), ("die", 0), ("core", i % 4), ("node", i / 4), ("cache", i / 2)];
    (0..8).map(|i| core(&format!("{i},{}", i + 8), &ids(i))).collect()
}

#[test]
fn every_way_has_the_latency_of_its_pairs() {
    let (svg, size) = draw(&record(server(), &LADDER, &PAIRS)).unwrap();
    for text in [
        "Memory 16.0 GiB, DRAM: 95.0 ns",
        "Package 0",
        "LLC: 13.0 ns",
        "CPUs 0,8",
        "between its threads: 7.00 ns",
        "L1: 1.00 ns",
        "L2: 4.00 ns",
        ">20.0 ns to 90.0 ns<",
        ">60.0 ns<",
        ">150 ns<",
        ">CPUs 1,9<",
        "1 cache",
        "1 package",
    ] {
        assert!(svg.contains(text), "{text} in {svg}");
    }
    assert!(size.width < 1_100.0 && size.height < 300.0, "{size:?}");
}

/// Earlier versions recorded a core as a line of text.
#[test]
fn a_record_of_an_earlier_version_has_the_same_drawing() {
    let today = record(server(), &LADDER, &PAIRS);
    let line = |i: usize| {
        format!("cpus {i},{}: package {} die 0 core {} node {} cache {}", i + 8, i / 4, i % 4, i / 4, i / 2)
    };
    let mut json = serde_json::to_value(&today).unwrap();
    json["machine"]["before"]["cpu.topology"]["value"] = json!((0..8).map(line).collect::<Vec<_>>());
    let read = |json: &serde_json::Value| Record::from_json(json.to_string().as_bytes()).unwrap();
    assert_eq!(read(&json).machine, today.machine);
    assert_eq!(draw(&read(&json)).unwrap().0, draw(&today).unwrap().0);
    json["machine"]["before"]["cpu.topology"]["value"] = json!(["cpus 0 package", "cores"]);
    assert!(draw(&read(&json)).is_none(), "lines that no version wrote");
}

#[test]
fn what_is_not_known_is_not_drawn() {
    let guest = || vec![core("0", &[("package", 0), ("core", 0)]), core("1", &[("package", 0), ("core", 1)])];
    let (svg, _) = draw(&record(guest(), &LADDER, &[])).unwrap();
    assert!(svg.contains("CPU 1") && !svg.contains("Package") && !svg.contains("between"), "{svg}");
    // Without cache numbers the last-level cache has no box; without pairs no way has a figure.
    assert!(!svg.contains("LLC") && !svg.contains("class=\"axis\""), "{svg}");
    assert!(draw(&record(guest(), &[], &[(0, 1, 20.0)])).is_none(), "no ladder");
    assert!(draw(&record(Vec::new(), &LADDER, &[])).is_none(), "no cores");
    let odd = ["9999999999999999999", "a-b", "", "0-"].map(|cpus| core(cpus, &[("core", 0)]));
    let others = ["cpus 0: core 0".into(), FactValue::map([("core", 0_i64.into())])];
    for odd in odd.into_iter().chain(others) {
        assert!(draw(&record(vec![odd.clone()], &LADDER, &[])).is_none(), "{odd:?}");
    }
}
