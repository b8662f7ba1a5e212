//! Tests of the flow probe: refusals, graphs over files, a published table.

#![allow(clippy::unwrap_used, reason = "tests fail and print their figures")]

use std::fs;

use crate::program::{Ended, Lab, value};
use machmeter_data::Record;

#[test]
fn wrong_words_are_one_line() {
    let lab = Lab::new();
    for (options, said) in [
        ("--graph nope", "it is not one of rt_stap_easy, e_comm, noise_removal"),
        ("--kernel table,stack", "'stack' is none of table, fused; copy, mirror; heap, bitmap"),
        ("--granularity 0", "a number from 1 to 4096"),
        ("--granularity 8-4", "or a range such as 1-256"),
    ] {
        lab.line(&format!("flow -t 1 {options}")).refused(said);
    }
}

/// A quick run of one graph with one kernel.
fn quick(lab: &Lab, words: &str) -> Ended {
    lab.line(&format!("flow -t 100ms -q --parts graphs --kernel fused,mirror,bitmap --graph {words}"))
}

/// A WAV file with one channel of floats at 16 kHz.
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
    let lab = Lab::new();
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
        ("noise_removal --in job.toml", "--in job.toml: it is not a WAV file"),
        ("e_comm --in nan.wav", "--in nan.wav: 8044 bytes are not a multiple of a c32 sample"),
        ("rt_stap_easy --in good.wav", "rt_stap_easy processes no file"),
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
    let lab = Lab::new();
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
    // Values of table 3 of the paper, for this processor.
    for (graph, efficiency, overhead_ns) in
        [("rt_stap_easy", 0.9670, 1692.0), ("e_comm", 0.9050, 2731.0), ("noise_removal", 0.9514, 1780.0)]
    {
        let of = |id: &str| value(&record, id, &[("graph", graph), ("processor", "AltiVec1")]).unwrap();
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
