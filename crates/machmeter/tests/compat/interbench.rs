//! interbench: its table on the console and in the log, and what it refuses.

use super::*;

fn kernel_log(dir: &Path) -> std::path::PathBuf {
    let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap();
    dir.join(format!("{}.log", release.trim()))
}

/// The program as interbench with a state directory of its own.
fn interbench(dir: &Path, words: &[&str]) -> Command {
    let mut command = Command::new(dir.join("interbench"));
    command.args(words).current_dir(dir).env("MACHMETER_STATE", dir.join("state"));
    command
}

#[test]
fn interbench_writes_its_table_to_console_and_log() {
    let dir = folder();
    let words = ["-t", "1", "-W", "Video", "-w", "None", "-w", "Burn", "-L", "1", "-m", "first of two"];
    let out = interbench(dir.path(), &words).output().unwrap();
    assert!(out.status.success(), "{}", text(&out.stderr));
    let console = text(&out.stdout);
    let log = fs::read_to_string(kernel_log(dir.path())).unwrap();
    assert_eq!(console, log, "the same lines");
    let lines: Vec<&str> = console.lines().collect();
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
    assert!(
        console.contains("running every load for 1 seconds\n")
            && console.contains("\nComment: first of two\n")
    );
    let said = text(&out.stderr);
    assert_eq!(said.matches("machmeter interactive").count(), 1, "one hint: {said}");
    // Nothing else is left behind.
    let mut left: Vec<String> =
        fs::read_dir(dir.path()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    left.retain(|name| NAMES.split(' ').all(|n| n != name) && name != "state");
    assert_eq!(left.len(), 1, "{left:?}");
    // A second run is added, and the reader takes the last.
    let again = interbench(dir.path(), &["-t", "1", "-W", "Audio", "-w", "None"]).output().unwrap();
    assert!(again.status.success(), "{}", text(&again.stderr));
    let both = fs::read_to_string(kernel_log(dir.path())).unwrap();
    assert_eq!(both, format!("{log}{}", text(&again.stdout)));
    let read = read_any(&[kernel_log(dir.path())]).unwrap();
    assert!(read.metrics.iter().all(|m| m.params["task"].to_string() == "audio"));
    assert!(read.warnings.iter().all(|w| w.code == "W712"), "{:?}", read.warnings);
}

#[test]
fn interbench_to_the_console_only_leaves_no_log_and_bears_a_closed_pipe() {
    let dir = folder();
    let words = ["-c", "-t", "1", "-W", "audio", "-w", "none"];
    let mut child =
        interbench(dir.path(), &words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    let out = child.wait_with_output().unwrap();
    assert!(out.status.success(), "{}", text(&out.stderr));
    assert!(!kernel_log(dir.path()).exists());
}

#[test]
fn interbench_keeps_the_seconds_asked_for() {
    let dir = folder();
    let took = |seconds: &str| {
        let begin = Instant::now();
        let out =
            interbench(dir.path(), &["-c", "-t", seconds, "-W", "Audio", "-w", "None"]).output().unwrap();
        assert!(out.status.success(), "{}", text(&out.stderr));
        begin.elapsed().as_secs_f64()
    };
    let (short, long) = (took("1"), took("4"));
    assert!((1.5..=12.0).contains(&(long - short)) && short >= 1.0 && long >= 4.0, "{short} {long}");
}

#[test]
fn interbench_refuses_in_one_line() {
    let dir = folder();
    for (words, says) in [
        (vec!["-w", "Bern"], "'Bern'"),
        (vec!["-W", "Memload"], "'Memload'"),
        (vec!["-C", "50"], "needs an interval"),
        (vec!["-C", "101", "-I", "1000"], "101"),
        (vec!["-t", "0"], "0"),
        (vec!["-r", "-W", "X"], "-r runs"),
        (vec!["-q"], "-q"),
        (vec!["-B", "77"], "77"),
    ] {
        let out = interbench(dir.path(), &words).output().unwrap();
        let said = text(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{words:?}: {said}");
        let first = said.lines().next().unwrap_or("");
        assert!(first.starts_with("error: interbench: ") && first.contains(says), "{words:?}: {said}");
        assert!(out.stdout.is_empty() && !kernel_log(dir.path()).exists(), "{words:?}");
    }
    fs::create_dir(kernel_log(dir.path())).unwrap();
    let out = interbench(dir.path(), &["-t", "1", "-W", "Audio", "-w", "None"]).output().unwrap();
    assert_eq!(out.status.code(), Some(4), "{}", text(&out.stderr));
    assert!(text(&out.stderr).contains("log file"), "{}", text(&out.stderr));
}
