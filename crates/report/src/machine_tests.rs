//! Drawings of machines that are told by facts alone.

use machmeter_data::Fact;
use serde_json::json;

use super::*;

/// A record with these cores, levels of the ladder (name, ns) and latencies between CPUs (from, to, ns).
fn record(cores: &[&str], levels: &[(&str, f64)], pairs: &[(i64, i64, f64)]) -> Record {
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
    let lines: Vec<String> = cores.iter().map(|c| (*c).to_owned()).collect();
    record.machine.before.set("cpu.topology", Fact::known(lines, "/sys"));
    record.machine.before.set("memory.total", Fact::known(16_u64 << 30, "/proc/meminfo").with_unit("By"));
    record
}

const LADDER: [(&str, f64); 4] = [("L1", 1.0), ("L2", 4.0), ("LLC", 13.0), ("DRAM", 95.0)];

/// Two packages of two caches of two cores of two threads: CPU 0 to 7, their threads 8 to 15.
fn server() -> Vec<String> {
    let core = |i: usize| {
        format!("cpus {i},{}: package {} die 0 core {} node {} cache {}", i + 8, i / 4, i % 4, i / 4, i / 2)
    };
    (0..8).map(core).collect()
}

#[test]
fn every_way_has_the_latency_of_its_pairs() {
    let lines = server();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
    // Threads of a core 7; cores of a cache 20, 22 and 90; caches of a package 60; packages 150.
    let pairs = [(0, 8, 7.0), (0, 1, 20.0), (2, 3, 22.0), (6, 7, 90.0), (1, 2, 60.0), (0, 4, 150.0)];
    let (svg, size) = draw(&record(&lines, &LADDER, &pairs)).unwrap();
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

#[test]
fn what_is_not_known_is_not_drawn() {
    let guest = ["cpus 0: package 0 core 0", "cpus 1: package 0 core 1"];
    let (svg, _) = draw(&record(&guest, &LADDER, &[])).unwrap();
    assert!(svg.contains("CPU 1") && !svg.contains("Package") && !svg.contains("between"), "{svg}");
    // Without numbers of caches the last one is not placed; without pairs no way has a figure.
    assert!(!svg.contains("LLC") && !svg.contains("class=\"axis\""), "{svg}");
    assert!(draw(&record(&guest, &[], &[(0, 1, 20.0)])).is_none(), "no ladder");
    assert!(draw(&record(&[], &LADDER, &[])).is_none(), "no cores");
    for odd in ["cpus 9999999999999999999: core 0", "cores", "cpus a-b:", "cpus 0 package"] {
        assert!(draw(&record(&[odd], &LADDER, &[])).is_none(), "{odd}");
    }
}
