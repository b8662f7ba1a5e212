//! Tests of the readers of latency ladders.

use super::*;

fn lines(out: &Imported) -> &[String] {
    &out.summary.lines[0].lines
}

#[test]
fn every_table_of_ramlat_is_a_line() {
    let out = read(&["latency/ramlat.txt"]);
    let [little, big] = lines(&out) else { panic!("{:?}", out.summary) };
    assert!(little.starts_with("cpu0 (Cortex-A55): L1 32.0 KiB to 64.0 KiB 1.1"), "{little}");
    let shown = "cpu4 (Cortex-A76): L1 64.0 KiB to 128 KiB 1.70 ns, L2 ";
    assert!(big.starts_with(shown) && big.contains(", LLC ") && big.contains(", memory "), "{big}");
    let size = out.metrics.iter().find(|m| m.key() == "memory.cache_size{level=L1}").expect("a size");
    let ci = size.ci.as_ref().expect("a bracket");
    assert_eq!((ci.low, ci.high, ci.method.as_str()), (32_768.0, 65_536.0, "bracket"));
}

#[test]
fn megabytes_of_lmbench_and_sizes_with_units_are_bytes() {
    let out = read(&["latency/lat_mem_rd.txt"]);
    let line = &lines(&out)[0];
    assert!(line.starts_with("L1 32.0 KiB to 48.0 KiB 1.09 ns, L2 "), "{line}");
    let latency = out.metrics.iter().find(|m| m.key() == "memory.latency{level=LLC,stride_bytes=128}");
    assert!(latency.and_then(|m| m.value).is_some_and(|ns| (13.0..16.0).contains(&ns)), "{line}");
    let out = read(&["latency/multichase.txt"]);
    let line = &lines(&out)[0];
    assert!(line.starts_with("L1 32.0 KiB to 64.0 KiB 1.25 ns, L2 1.19 MiB to 4.00 MiB 3.5"), "{line}");
    let bytes = in_memory(&[("chase", "4096 1.0\n8192 1.0\n16384 1.0\n32768 1.0\n65536 4.0\n131072 4.1\n")]);
    let out = read_input(&bytes).expect("bytes without a unit");
    assert_eq!(out.metrics[0].value, Some(1.0));
}

#[test]
fn damaged_curves_are_refused_by_line() {
    let refused = |text: &str| read_input(&in_memory(&[("f", text)])).expect_err("damaged").to_string();
    let said = refused("\"stride=64\n0.00049 1.1\n0.00098\n");
    assert!(said.starts_with("f, line 3: found \"0.00098\", expected megabytes"), "{said}");
    let said = refused("size: 1x32 1xPTR\n4k: 1.0 1.1\n8k: 1.0\n");
    assert!(said.contains("line 3") && said.contains("every column"), "{said}");
    let said = refused("\"stride=64\n0.5 1.1\n0.25 1.2\n0.1 1.0\n");
    assert!(said.contains("stride 64 B: size") && said.contains("ascending"), "{said}");
    assert!(refused("\"stride=64\n").contains("no curve"));
}
