//! The flow probe as a user runs it: figures that hang together, refusals.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests fail and tell their figures")]

mod program;

use machmeter_data::Record;
use program::{Lab, turn};

fn value(record: &Record, id: &str, params: &[(&str, &str)]) -> f64 {
    record.metric(id, params).and_then(|m| m.value).unwrap_or_else(|| panic!("{id} {params:?}"))
}

#[test]
fn figures_of_a_run_hang_together() {
    let _turn = turn();
    let lab = Lab::new();
    let record = lab.run(&["flow", "-t", "8", "--graph", "e_comm,noise_removal", "--json", "-q"]).record();
    let cost = |operation: &str, kernel: &str, more: &[(&str, &str)]| {
        value(&record, "flow.cost", &[&[("operation", operation), ("kernel", kernel)], more].concat())
    };
    let (bare, firing) = (cost("bare call", "none", &[]), cost("firing", "fast", &[]));
    let [fast, classic] = ["fast", "classic"].map(|k| cost("activation", k, &[]));
    println!("bare {bare}, firing {firing}, activation {fast} and {classic} ns");
    assert!(bare > 0.2 && firing < 4.0 * bare && fast > firing && fast < classic);
    // What is mirrored costs the same whatever its length; what is copied does not.
    let block =
        |kernel: &str, bytes: &str| cost("block, activations included", kernel, &[("size_bytes", bytes)]);
    assert!(block("fast", "65536") < 3.0 * block("fast", "64"));
    assert!(block("classic", "65536") > 10.0 * block("fast", "65536"));
    for graph in ["e_comm", "noise_removal"] {
        let of = |id: &str, kernel: &str| value(&record, id, &[("graph", graph), ("kernel", kernel)]);
        let [fast, classic] = ["fused-mirror-bitmap", "table-copy-heap"].map(|k| of("flow.efficiency", k));
        println!("{graph}: {fast} and {classic}");
        assert!(classic > 0.5 && classic < fast && fast < 1.0);
        assert!(of("flow.overhead", "fused-mirror-bitmap") > 0.0);
    }
    assert!(!record.warnings.iter().any(|w| w.code == "W471"), "{:?}", record.warnings);
    // The stored samples say the same again.
    let again = lab.run(&["report", "last", "--json"]).record();
    let key = [("graph", "e_comm"), ("kernel", "table-copy-heap")];
    assert!(
        value(&again, "flow.overhead", &key).to_bits() == value(&record, "flow.overhead", &key).to_bits()
    );
}

#[test]
fn wrong_words_are_one_line() {
    let lab = Lab::new();
    for (arguments, said) in [
        (&["--graph", "nope"][..], "it is none of rt_stap_easy, e_comm, noise_removal"),
        (&["--kernel", "table,stack"], "'stack' is none of table, fused; copy, mirror; heap, bitmap"),
        (&["--granularity", "0"], "a number from 1 to 4096"),
        (&["--granularity", "8-4"], "the smaller first"),
    ] {
        let ended = lab.run(&[&["flow", "-t", "1"][..], arguments].concat());
        ended.expect(2);
        assert!(ended.errors().len() == 1 && ended.errors()[0].contains(said), "{:?}", ended.errors());
    }
}
