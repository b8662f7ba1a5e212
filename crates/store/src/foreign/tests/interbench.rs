//! Tests of interbench logs: every figure is found, and a figure with a wrong name in the log gets its correct one.

use machmeter_data::{Metric, Quality, Shape};
use proptest::prelude::*;

use super::super::{INTERBENCH_MARK, INTERBENCH_METRICS};
use super::*;

fn metric<'a>(out: &'a Imported, id: &str, task: &str, load: &str) -> &'a Metric {
    let of = |m: &Metric, key: &str| m.params.get(key).map(ToString::to_string).unwrap_or_default();
    out.metrics
        .iter()
        .find(|m| m.id == format!("interactive.{id}") && of(m, "task") == task && of(m, "load") == load)
        .unwrap_or_else(|| panic!("no {id} of {task} under {load}"))
}

fn value(out: &Imported, id: &str, task: &str, load: &str) -> f64 {
    metric(out, id, task, load).value.unwrap()
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * b.abs()
}

#[test]
fn every_row_of_a_log_is_there() {
    let out = read(&["interbench/plain.log"]);
    let rows = 8 + 7 + 7 + 8;
    let n = |id: &str| out.metrics.iter().filter(|m| m.id == id).count();
    assert_eq!(n("interactive.lateness"), rows);
    assert_eq!(n("interactive.deadlines_met"), rows - 8, "not of gaming");
    assert!(near(value(&out, "lateness", "video", "burn"), 12.6e6));
    assert!(near(metric(&out, "lateness", "video", "burn").max.unwrap(), 41.6e6));
    assert!(near(value(&out, "desired_cpu", "video", "burn"), 0.979));
    assert!(near(value(&out, "deadlines_met", "video", "burn"), 0.365));
    for (key, value) in [
        ("kernel", "6.1.0-21-amd64"),
        ("datestamp", "202405171612"),
        ("comment", "two CPUs, idle"),
        ("loops_per_ms", "1847211"),
        ("seconds_per_cell", "30"),
        ("burn_threads", "2"),
    ] {
        assert!(out.notes.contains(&(key.to_owned(), value.to_owned())), "{key}: {:?}", out.notes);
    }
    assert_eq!(codes_of(&out), [codes::HIDDEN_LATENESS.id]);
    let ids: Vec<&str> = INTERBENCH_METRICS.iter().map(|m| m.id).collect();
    assert!(out.metrics.iter().all(|m| ids.contains(&m.id.as_str())));
}

#[test]
fn what_is_printed_as_sd_is_a_root_mean_square() {
    let out = read(&["interbench/plain.log"]);
    let jitter = metric(&out, "jitter", "gaming", "compile");
    let (mean, rms): (f64, f64) = (241.8e6, 246.3e6);
    let sd = (rms.powi(2) - mean.powi(2)).sqrt();
    assert!(near(jitter.value.unwrap(), sd), "{jitter:?}");
    let ci = jitter.ci.as_ref().unwrap();
    assert!(ci.low < sd && sd < ci.high && ci.high - ci.low < 0.03 * sd, "{ci:?}");
    assert!(out.provenance.assumptions.iter().any(|a| a.contains("root mean square")));
    // A mean above the root mean square is impossible, so no deviation follows from it.
    let text = "--- Benchmarking simulated cpu of X in the presence of simulated ---\n\
        Load\tLatency +/- SD (ms)  Max Latency   % Desired CPU  % Deadlines Met\n\
        None\t  0.495 +/- 0.494         45\t\t 100\t         96\n";
    let out = read_input(&in_memory(&[("x.log", text)])).unwrap();
    let jitter = metric(&out, "jitter", "x", "none");
    assert_eq!((jitter.value, jitter.quality), (None, Quality::Rejected));
    assert!(jitter.why.as_ref().is_some_and(|w| w.contains("below the mean")));
}

#[test]
fn a_true_deviation_lies_within_the_bounds_of_the_printed_digits() {
    for k in 0..200_u32 {
        let samples: Vec<f64> =
            (0..400).map(|i| f64::from((i * (k + 7) + i * i) % 97) * 0.05 * f64::from(k % 9 + 1)).collect();
        let n = samples.len() as f64;
        let mean = samples.iter().sum::<f64>() / n;
        let rms = (samples.iter().map(|x| x * x).sum::<f64>() / n).sqrt();
        let truth = (samples.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n).sqrt();
        let text = format!(
            "--- Benchmarking simulated cpu of Audio in the presence of simulated ---\n\
             Load\tLatency +/- SD (ms)  Max Latency   % Desired CPU  % Deadlines Met\n\
             Burn\t{mean:6.1} +/- {rms:<8.1}{:6.1}\t\t 100\t        100\n",
            99.0
        );
        let out = read_input(&in_memory(&[("x.log", &text)])).unwrap();
        let ci = metric(&out, "jitter", "audio", "burn").ci.clone().unwrap();
        assert!((ci.low..=ci.high).contains(&(truth * 1e6)), "{k}: {truth} not in {ci:?}");
    }
}

#[test]
fn real_time_logs_count_in_microseconds() {
    let out = read(&["interbench/real-time.log"]);
    assert!(near(value(&out, "lateness", "audio", "compile"), 101e3));
    assert!(near(metric(&out, "lateness", "audio", "compile").max.unwrap(), 50_046e3));
    // SD and maximum touch in this row.
    assert!(near(metric(&out, "lateness", "video", "hack").max.unwrap(), 1_234_567.8e3));
    assert!(out.notes.contains(&("policy.audio".to_owned(), "real time, load nice 5".to_owned())));
}

#[test]
fn the_last_run_of_an_appended_log_is_read_and_its_cut_row_told() {
    let out = read(&["interbench/appended.log"]);
    assert_eq!(codes_of(&out), [codes::SEVERAL_RUNS.id, codes::CUT_FILE.id, codes::HIDDEN_LATENESS.id]);
    assert!(out.warnings[0].text.contains("2 runs") && out.warnings[0].text.contains("202405161209"));
    assert!(near(value(&out, "lateness", "audio", "burn"), 3.8e6));
    assert!(out.warnings[1].text.contains("audio under compile"));
}

#[test]
fn the_fork_prints_a_true_deviation_and_a_median() {
    let out = read(&["interbench/aeolio.log"]);
    assert!(near(value(&out, "jitter", "audio", "burn"), 1_234.5e3));
    let lateness = metric(&out, "lateness", "audio", "burn");
    assert_eq!((lateness.quantiles.get("0.5"), lateness.max), (Some(&2500.0), Some(34_327e3)));
    assert!(metric(&out, "lateness", "gaming", "none").quantiles.is_empty(), "beyond the fork's histogram");
    assert!(out.provenance.assumptions.iter().any(|a| a.contains("aeolio")));
}

#[test]
fn a_log_of_machmeter_is_not_taken_for_the_originals() {
    let text = fs::read_to_string(fixture("interbench/plain.log")).unwrap();
    let ours = text.replacen(
        "Comment:",
        &format!("{INTERBENCH_MARK} 9.9.9: SD is the standard deviation\nComment:"),
        1,
    );
    let out = read_input(&in_memory(&[("x.log", &ours)])).unwrap();
    assert!(near(value(&out, "jitter", "video", "burn"), 15.9e6));
    assert_eq!((codes_of(&out).len(), metric(&out, "jitter", "video", "burn").quality), (0, Quality::Ok));
}

#[test]
fn pictures_are_a_matrix_and_a_table_per_task() {
    let out = read(&["interbench/plain.log"]);
    let Shape::Matrix(m) = &out.datasets[0].shape else { panic!("{:?}", out.datasets[0]) };
    assert_eq!((&out.datasets[0].id[..], &m.rows.join(" ")[..]), ("interactive.met", "audio video x"));
    assert_eq!(m.column_names.join(" "), "none video x burn write read compile memload");
    assert_eq!((m.values[1][0], m.values[1][1]), (Some(0.985), None), "no task is measured under itself");
    let tables: Vec<&machmeter_data::Dataset> =
        out.datasets.iter().filter(|d| d.id == "interactive.latency_table").collect();
    assert_eq!(tables.len(), 4);
    let lines = &out.summary.lines[0].lines;
    assert!(lines[1].starts_with("video") && lines[1].contains("29.4 % under compile"), "{lines:?}");
}

#[test]
fn rows_that_are_none_are_told_with_their_line() {
    let text = fs::read_to_string(fixture("interbench/plain.log")).unwrap();
    let e = |from: &str, to: &str| {
        read_input(&in_memory(&[("x.log", &text.replacen(from, to, 1))])).unwrap_err().to_string()
    };
    assert!(e("   0.4 +/- 2.3 ", "   zero +/- 2.3 ").starts_with("x.log, line "));
    assert!(e("Write\t", "Burn\t").contains("second row of load burn"));
    assert!(e("Load\tLatency +/- SD (ms)", "Load\tLatency +/- SD (fs)").contains("heading"));
    let many: String = (0..70).map(|i| format!("L{i}\t 0.1 +/- 0.1  0.1\t\t100\t100\n")).collect();
    let head = text.split_inclusive('\n').find(|l| l.starts_with("Load\t")).unwrap();
    let crowd = format!("--- Benchmarking simulated cpu of X in the presence of simulated ---\n{head}{many}");
    assert!(read_input(&in_memory(&[("x.log", &crowd)])).unwrap_err().to_string().contains("more than 64"));
    let two = [("a.log", text.as_str()), ("b.log", text.as_str())];
    assert!(read_input(&in_memory(&two)).unwrap_err().to_string().contains("one at a time"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_text_in_a_table_makes_the_reader_panic(
        lines in proptest::collection::vec("[A-Za-z]{0,5}\t[ 0-9.e+/\\-]{0,24}[ \t0-9.naé]{0,30}", 0..12),
        heading in 0_usize..4,
        end in "\n?",
    ) {
        let headings = [
            "Load\tLatency +/- SD (ms)  Max Latency   % Desired CPU  % Deadlines Met",
            "Load\tLatency +/- SD (us)  Max Latency   % Desired CPU",
            "Load\tLatency +/- SD   median  max [us]\tDesired CPU  Deadlines met [%]",
            "Load\tLatency +/- SD   median  max [100]\tDesired CPU",
        ];
        let text = format!("--- Benchmarking simulated cpu of X in the presence of simulated ---\n{}\n{}{end}", headings[heading], lines.join("\n"));
        let read = read_input(&in_memory(&[("x.log", &text)]));
        match read {
            Err(e) => prop_assert_eq!(e.to_string().lines().count(), 1),
            Ok(out) => for m in &out.metrics {
                prop_assert!(m.value.is_none_or(|v| v.is_finite() && v >= 0.0), "{:?}", m);
            },
        }
    }
}
