//! Tests of interbench: its table on the console and in the log, and its duration.

use super::*;

fn kernel_log(lab: &Lab) -> PathBuf {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    lab.work().join(format!("{}.log", release.trim()))
}

#[test]
fn interbench_writes_its_table_to_console_and_log() {
    let lab = folder();
    let out = ok(&lab, "interbench -t 1 -W Video -w None -w Burn -L 1 -m first_of_two");
    let log = fs::read_to_string(kernel_log(&lab)).unwrap();
    assert_eq!(out.stdout, log, "the same lines");
    let lines: Vec<&str> = log.lines().collect();
    let at = lines.iter().position(|l| l.starts_with("--- ")).unwrap();
    assert_eq!(lines[at], "--- Benchmarking simulated cpu of Video in the presence of simulated ---");
    assert_eq!(lines[at + 1], "Load\tLatency +/- SD (ms)  Max Latency   % Desired CPU  % Deadlines Met");
    for (line, load) in [(lines[at + 2], "None"), (lines[at + 3], "Burn")] {
        let tabs: Vec<&str> = line.split('\t').collect();
        assert_eq!((tabs.len(), tabs[0], tabs[2]), (5, load, ""), "{line}");
        for share in [tabs[3], tabs[4]] {
            let percent: f64 = share.trim().parse().unwrap();
            assert!((0.0..=100.0).contains(&percent), "{line}");
        }
    }
    assert!(lines.contains(&"Comment: first_of_two"), "{log}");
    assert!(log.contains("running every load for 1 seconds\n"), "{log}");
    assert_eq!(out.stderr.matches("machmeter interactive").count(), 1, "one hint: {}", out.stderr);
    assert_eq!(lab.files().len(), NAMES.split(' ').count() + 1, "{:?}", lab.files());
    // A second run is appended, and the reader takes the last.
    let again = ok(&lab, "interbench -t 1 -W Audio -w None");
    assert_eq!(fs::read_to_string(kernel_log(&lab)).unwrap(), log + &again.stdout);
    let read = read_knowing(&[kernel_log(&lab)], &SideFacts::default()).unwrap();
    assert!(read.metrics.iter().all(|m| m.params["task"].to_string() == "audio"));
    assert!(read.warnings.iter().all(|w| w.code == "W712"), "{:?}", read.warnings);
}

#[test]
fn interbench_to_the_console_only_leaves_no_log_bears_a_closed_pipe_and_keeps_its_seconds() {
    let lab = folder();
    let took_s = |seconds: u8| {
        let mut command = called(&lab, &format!("interbench -c -t {seconds} -W audio -w none"));
        command.stdout(std::io::pipe().unwrap().1);
        let ended = Running::of(command).end();
        ended.expect(0).wall.as_secs_f64()
    };
    let (short, long) = (took_s(1), took_s(4));
    assert!((1.5..=12.0).contains(&(long - short)) && short >= 1.0 && long >= 4.0, "{short} {long}");
    assert!(!kernel_log(&lab).exists());
}

#[test]
fn a_log_that_cannot_be_written_is_told_before_anything_runs() {
    let lab = folder();
    fs::create_dir(kernel_log(&lab)).unwrap();
    let out = run(&lab, "interbench -t 1 -W Audio -w None");
    assert!(out.expect(4).errors()[0].contains("log file"), "{}", out.stderr);
}

#[test]
fn report_draws_an_old_interbench_log() {
    let lab = folder();
    let log = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures/foreign/interbench/plain.log");
    let page = lab.run(&["report", log, "-o", "old.html", "-o", "old.json"]);
    let alone = "video    98.5 % met alone, 29.4 % under compile";
    assert!(page.expect(0).stdout.contains(alone), "{}", page.stdout);
    let record = lab.record("old.json");
    let tables = ["interactive.met", "interactive.latency_table"].map(|id| record.datasets(id).count());
    assert_eq!(tables, [1, 4]);
    let html = fs::read_to_string(lab.work().join("old.html")).unwrap();
    assert!(html.contains("Latency of gaming") && html.contains("root mean square"));
}
