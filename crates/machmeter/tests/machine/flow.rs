//! The flow probe as a user runs it: figures that hang together, refusals.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests fail and tell their figures")]

use std::fs;

use crate::program::{Ended, Lab, prompt_policy};
use machmeter_data::shape::Cell;
use machmeter_data::{Record, Shape};

const ONE_GRAPH: &str = "flow --parts graphs --graph noise_removal --json -q";

fn value(record: &Record, id: &str, params: &[(&str, &str)]) -> f64 {
    crate::program::value(record, id, params).unwrap_or_else(|| panic!("{id} {params:?}"))
}

#[test]
fn figures_of_a_run_hang_together() {
    let lab = Lab::alone();
    let line = format!("flow -t 20 --graph e_comm,noise_removal --prio {} --json -q", prompt_policy());
    let record = lab.line(&line).record();
    let cost = |operation: &str, kernel: &str, more: &[(&str, &str)]| {
        value(&record, "flow.cost", &[&[("operation", operation), ("kernel", kernel)], more].concat())
    };
    let (bare, firing) = (cost("bare call", "none", &[]), cost("firing", "fast", &[]));
    let [fast, classic] = ["fast", "classic"].map(|k| cost("activation", k, &[]));
    println!("bare {bare}, firing {firing}, activation {fast} and {classic} ns");
    assert!(bare > 0.2 && firing < 4.0 * bare && fast > firing && fast < classic);
    // What is mirrored costs the same whatever its length; what is copied does not.
    let block = |kernel: &str, bytes: &str| cost("block", kernel, &[("size_bytes", bytes)]);
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
    let [again, first] = [&again, &record].map(|r| value(r, "flow.overhead", &key).to_bits());
    assert_eq!(again, first);
}

#[test]
fn other_granularities_are_predicted_from_a_stored_run() {
    let lab = Lab::alone();
    let graph = format!("{ONE_GRAPH} --kernel fused --prio {}", prompt_policy());
    let record = lab.line(&format!("{graph} --granularity 1-16 -t 4")).record();
    let at = |record: &Record, id: &str, granularity: &str| {
        value(record, id, &[("graph", "noise_removal"), ("granularity", granularity)])
    };
    assert!(at(&record, "flow.rate", "16") > 0.8 * at(&record, "flow.rate", "1"));
    assert!(at(&record, "flow.latency", "1") > 0.0);
    let table = |record: &Record, id: &str| {
        let d = record.datasets.iter().find(|d| d.id == id).unwrap_or_else(|| panic!("{id}"));
        match &d.shape {
            Shape::CostTable(t) => t.rows.clone(),
            _ => panic!("{id} is no table"),
        }
    };
    // With all chains fused: 4 boxes of the input, 3 branches of 10, 2 of the output.
    assert_eq!(table(&record, "flow.boxes.noise_removal").len(), 36);
    let queues = table(&record, "flow.edges.noise_removal");
    let queues = queues.iter().filter(|e| e.cells[2] == Cell::Text("queue".to_owned()));
    assert_eq!(queues.count(), 7);
    lab.line("export last --to perfetto -o trace").expect(0);
    let trace = fs::read(lab.work().join("trace")).unwrap();
    assert!(trace.windows(11).filter(|w| *w == b"overlap-add").count() > 10);
    // Held out: neither 1, 2, 4, 8 nor 16.
    let predicted = lab.line(&format!("{graph} --granularity 6 --predict-from last -t 3")).record();
    let ratio = at(&predicted, "flow.prediction", "6");
    println!("predicted over measured: {ratio}");
    // Counts are exact; time is that of a machine that others use.
    assert!((0.5..2.0).contains(&ratio), "{ratio}");
    let row = &table(&predicted, "flow.predicted")[0];
    assert_eq!(row.cells[2], Cell::Text("the same".to_owned()), "{row:?}");
    assert_eq!(row.cells[3], Cell::Text("1, 2, 4, 8, 16".to_owned()));
    for (from, graph, said) in [
        ("nope", "noise_removal", "no such file, tag or run"),
        (
            "last",
            "e_comm",
            "it has no run of e_comm by fused-mirror-bitmap, but of noise_removal by fused-mirror-bitmap",
        ),
    ] {
        lab.line(&format!("flow --predict-from {from} --graph {graph} --kernel fused")).refused(said);
    }
}

#[test]
fn what_each_idea_takes_away_adds_up() {
    let lab = Lab::alone();
    let graph = format!("{ONE_GRAPH} --prio {}", prompt_policy());
    let record = lab.line(&format!("{graph} --ablation -t 6")).record();
    let ratio = value(&record, "flow.published_ratio", &[("graph", "noise_removal")]);
    let shares = ["mirrored queues", "bitmap", "fused boxes"]
        .map(|idea| value(&record, "flow.worth", &[("graph", "noise_removal"), ("idea", idea)]));
    println!("{ratio}: {shares:?}");
    // Medians of each need not add up exactly; an idea may be worth less than nothing.
    let sum: f64 = shares.iter().sum();
    assert!(ratio > 1.2 && (0.5..1.5).contains(&sum) && shares[0] > 0.3, "{ratio} {shares:?}");
    // Turns here and there cost the same a call, and break no law.
    let record = lab.line(&format!("{graph} --kernel fused --one-of 5 -t 2")).record();
    let efficiency = value(&record, "flow.efficiency", &[("graph", "noise_removal")]);
    assert!(efficiency > 0.8 && !record.warnings.iter().any(|w| w.code == "W471"), "{efficiency}");
}

#[test]
fn wrong_words_are_one_line() {
    let lab = Lab::new();
    for (options, said) in [
        ("--graph nope", "it is none of rt_stap_easy, e_comm, noise_removal"),
        ("--kernel table,stack", "'stack' is none of table, fused; copy, mirror; heap, bitmap"),
        ("--granularity 0", "a number from 1 to 4096"),
        ("--granularity 8-4", "the smaller first"),
    ] {
        lab.line(&format!("flow -t 1 {options}")).refused(said);
    }
}

/// A quick run of one graph by one kernel.
fn quick(lab: &Lab, words: &str) -> Ended {
    lab.line(&format!("flow -t 1 -q --parts graphs --kernel fused,mirror,bitmap --graph {words}"))
}

/// A WAV file of one channel of floats, 16 kHz, as its format has been since 1994.
fn wav(samples: &[f32]) -> Vec<u8> {
    let bytes = 4 * samples.len() as u32;
    let header: [&[u8]; 5] =
        [b"RIFF", &(36 + bytes).to_le_bytes(), b"WAVEfmt ", &16_u32.to_le_bytes(), &[3, 0, 1, 0]];
    let rates = [16_000_u32, 64_000, 4 | 32 << 16].map(u32::to_le_bytes).concat();
    let data = samples.iter().copied().flat_map(f32::to_le_bytes).collect();
    [header.concat(), rates, b"data".to_vec(), bytes.to_le_bytes().to_vec(), data].concat()
}

#[test]
fn graphs_run_over_files_and_write_what_they_give() {
    let lab = Lab::alone();
    let noise: Vec<f32> =
        (0_u32..5000).map(|i| (i.wrapping_mul(2_654_435_761) >> 8) as f32 / 16_777_216.0 - 0.5).collect();
    fs::write(lab.work().join("noisy.wav"), wav(&noise)).unwrap();
    let record = quick(&lab, "noise_removal --in noisy.wav --out clean.wav --json").record();
    let clean = fs::read(lab.work().join("clean.wav")).unwrap();
    let data = clean.windows(4).position(|w| w == b"data").unwrap() + 8;
    assert_eq!(clean.len() - data, 4 * noise.len());
    let energy = |x: &[f32]| x.iter().map(|x| x * x).sum::<f32>();
    let values: Vec<f32> = clean[data..].as_chunks::<4>().0.iter().map(|x| f32::from_le_bytes(*x)).collect();
    assert!(energy(&values) > 0.0 && energy(&values[2500..]) < 0.5 * energy(&noise[2500..]));
    let note = |r: &Record| r.warnings.iter().find(|w| w.code == "W476").unwrap().text.clone();
    assert!(note(&record).contains("noise_removal ran over noisy.wav: 5000 samples at 16000 Hz"));
    let effects = &record.run.side_effects;
    assert!(effects.iter().any(|s| s == "wrote \"clean.wav\""), "{effects:?}");
    assert_eq!(record.run.parameters["flow"]["in"], "noisy.wav");

    quick(&lab, "e_comm --out heard.c32").expect(0);
    let record = quick(&lab, "e_comm --in heard.c32 --out again.c32 --json").record();
    assert!(note(&record).contains("; 100 frames received, 0 of them out of step"), "{}", note(&record));
    let [heard, again] = ["heard.c32", "again.c32"].map(|name| fs::read(lab.work().join(name)).unwrap());
    assert!(heard == again);
}

#[test]
fn files_that_cannot_be_are_refused_before_anything_is_measured() {
    let lab = Lab::new();
    let mut samples = vec![0.1; 2000];
    fs::write(lab.work().join("good.wav"), wav(&samples)).unwrap();
    samples[1234] = f32::NAN;
    fs::write(lab.work().join("nan.wav"), wav(&samples)).unwrap();
    fs::write(lab.work().join("empty"), "").unwrap();
    fs::write(lab.work().join("job.toml"), "[flow]\ngraph = [\"noise_removal\"]\nout = \"x.wav\"\n").unwrap();
    let before = lab.files();
    for (words, said) in [
        ("noise_removal --in none.wav", "--in none.wav: no such file"),
        ("noise_removal --in empty", "--in empty: it is empty"),
        ("noise_removal --in nan.wav --dry-run", "--in nan.wav: sample 1234 is NaN"),
        ("noise_removal --in job.toml", "--in job.toml: it is no WAV file"),
        ("e_comm --in nan.wav", "--in nan.wav: 8044 bytes are no whole number of c32 samples"),
        ("rt_stap_easy --in good.wav", "rt_stap_easy has no samples of a file"),
        ("e_comm,noise_removal --in good.wav", "exactly one graph"),
        (
            "noise_removal --in good.wav --out none/x.wav",
            "none/x.wav: cannot write: the folder does not exist",
        ),
        ("noise_removal --in good.wav --out . --dry-run", "it is a folder"),
        ("noise_removal --in good.wav --out ./good.wav", "it is the file of --in"),
    ] {
        quick(&lab, words).refused(said);
    }
    let job = lab.line("--job job.toml -q -t 1");
    job.refused("the job writes a file: \"x.wav\" (flow.out)");
    let plan = lab.line("--job job.toml -q -t 1 --dry-run");
    assert!(plan.expect(0).stdout.contains("; writes \"x.wav\" (flow.out)"), "{}", plan.stdout);
    assert_eq!(lab.files(), before);
}

#[test]
fn what_was_measured_is_kept_where_the_disk_is_full() {
    let lab = Lab::alone();
    let ended = quick(&lab, "noise_removal --out /dev/full -o r.json");
    ended.failed(4, "/dev/full: cannot write: no space left");
    let record = lab.record("r.json");
    assert!(record.metrics.iter().any(|m| m.id == "flow.efficiency"));
    assert!(!record.run.side_effects.iter().any(|s| s.contains("full")), "{:?}", record.run.side_effects);
}

#[test]
fn a_published_table_is_recomputed_and_its_mistakes_are_told() {
    let lab = Lab::new();
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/foreign/gedae/altivec1.csv");
    let record = lab.run(&["report", file, "--json"]).record();
    // As the paper's table 3 has them for this processor.
    for (graph, efficiency, overhead_ns) in
        [("rt_stap_easy", 0.9670, 1692.0), ("e_comm", 0.9050, 2731.0), ("noise_removal", 0.9514, 1780.0)]
    {
        let of = |id: &str| value(&record, id, &[("graph", graph), ("processor", "AltiVec1")]);
        assert!((of("flow.efficiency") - efficiency).abs() < 5e-4, "{graph}");
        assert!((of("flow.overhead") / overhead_ns - 1.0).abs() < 2e-3, "{graph}");
    }
    let told = |code: &str| record.warnings.iter().find(|w| w.code == code).map_or("", |w| w.text.as_str());
    let wrong = told("W473");
    assert!(wrong.contains("noise_removal: copies is 18 % of the overhead, printed 9 %"), "{wrong}");
    assert!(wrong.contains("all groups together are 78 % of the overhead, printed 68 %"), "{wrong}");
    assert!(wrong.contains("rt_stap_easy: run-sched-pass = apply + run-schedule"), "{wrong}");
    assert!(!wrong.contains("e_comm") && wrong.matches(';').count() == 2, "{wrong}");
    let tails = told("W474");
    assert!(tails.contains("read-dq-copy1 7") && tails.contains("rt_stap_easy: apply"), "{tails}");
}
