//! Tests of the net probe: refusals, killed or stopped ends, a server on another machine, files of other benchmarks.

#![allow(clippy::unwrap_used, reason = "tests fail and print their figures")]

use std::time::Duration;

use crate::program::{Lab, descendants, has_one_cpu, some_cpu, soon, value, warned, words};
use machmeter_sys::process::{commands_with, kill_process, pid_is_alive, stop_process};
use rustix::process::Signal;

#[test]
fn one_cpu_and_wrong_words_are_one_line() {
    let lab = Lab::new();
    lab.line(&format!("net -c {} -q", some_cpu())).failed(4, "needs two CPUs");
    lab.line("net --transports smoke -q").refused("'smoke' is not one of");
    lab.line("net --sizes 9-1 -q").refused("--sizes 9-1");
    assert!(lab.files().is_empty());
}

/// Line on stderr before the messages are timed.
const MADE_READY: &str = "links made ready";
/// Part of the line that reports the progress of the timing.
const TIMED: &str = "costs have their samples";

fn killed(mut child: std::process::Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

/// The far end of a running probe.
fn far_end(main: u32) -> i32 {
    let mut found = None;
    soon(|| {
        let below = descendants(i32::try_from(main).unwrap());
        found = commands_with("net-far").into_iter().find(|p| below.contains(p));
        found.is_some()
    });
    found.expect("the far end was not started")
}

#[test]
fn either_end_may_be_killed_or_stopped_and_nothing_hangs_or_stays() {
    if has_one_cpu() {
        return;
    }
    let lab = Lab::new();
    let hit = |how: fn(i32) -> std::io::Result<()>| {
        let mut running = lab.start("net -t 3 --json -v");
        let far = far_end(running.id());
        running.hear(MADE_READY).expect("it did not begin");
        std::thread::sleep(Duration::from_millis(300));
        how(far).unwrap();
        let ended = running.end();
        assert!(ended.wall < Duration::from_secs(14), "{:?}", ended.wall);
        assert!(soon(|| !pid_is_alive(far)), "the far end was left behind");
        ended.record()
    };
    // The far end is killed: its figures so far stay, the rest has a reason.
    warned(&hit(kill_process), "W460");
    // The far end is stopped: waits end at their limits.
    hit(stop_process);
    // The near end is killed: the far end exits, too.
    let near = lab.command(&["net", "-t", "20", "-q"]).spawn().unwrap();
    let far = far_end(near.id());
    killed(near);
    assert!(soon(|| !pid_is_alive(far)), "the far end outlived the near one");
}

#[test]
fn files_of_netgauge_and_netpipe_are_fitted_anew() {
    let lab = Lab::new();
    let fixture = |name: &str| {
        let path = format!("{}/../../fixtures/foreign/{name}", env!("CARGO_MANIFEST_DIR"));
        lab.run(&["report", &path, "--json"]).record()
    };
    let record = fixture("netgauge/loggp.out");
    warned(&record, "W714");
    warned(&record, "W715");
    // The eager limit of 4 KiB is between the sizes 3073 and 4097 B; the file does not state it.
    let begins: Vec<i64> = record
        .metrics
        .iter()
        .filter(|m| m.id == "net.message_time" && m.value.is_some())
        .filter_map(|m| m.params["from_bytes"].to_string().parse().ok())
        .collect();
    assert!(begins.len() >= 2 && begins.contains(&4_097), "{begins:?}");
    let sound = |m: &machmeter_data::Metric| m.value.is_none_or(|v| v >= 0.0 && v.is_finite());
    assert!(record.metrics.iter().all(sound));
    let record = fixture("netpipe/np.out");
    let trip =
        |transport: &str| value(&record, "net.round_trip", &[("transport", transport), ("wait", "polling")]);
    // Twice the 7 us in its first lines.
    assert!(trip("np.out").is_some_and(|ns| (12e3..18e3).contains(&ns)), "{:?}", trip("np.out"));
}

#[test]
fn another_machine_serves_and_is_killed_or_not_there() {
    if has_one_cpu() {
        return;
    }
    let lab = Lab::new();
    let token = lab.work().join("token");
    std::fs::write(&token, "0123456789abcdef").unwrap();
    let mine = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&token, mine).unwrap();
    // A separate port, because other tests may serve, too.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let serve = format!("serve --listen {port} --token-file token -t 40");
    let net = format!("net --peer {port} --token-file token -t 2 -v --json");
    let longer = net.replace("-t 2", "-t 10");
    lab.line(&net).failed(4, "start `machmeter serve` there");
    let wait = || assert!(soon(|| std::net::TcpStream::connect(&port).is_ok()), "it does not listen");
    let serving = lab.start(&serve);
    wait();
    let record = lab.line(&format!("{net} --load burn --sizes 1-4K")).record();
    for load in [&[][..], &[("load", "burn")]] {
        let key = [&[("transport", "tcp"), ("wait", "sleeping"), ("peer", port.as_str())], load].concat();
        assert!(value(&record, "net.round_trip", &key).is_some(), "{key:?}");
    }
    serving.end().expect(0);
    // The far end is killed during the run: a valid record with reasons, in time.
    let serving = lab.command(&words(&serve)).spawn().unwrap();
    wait();
    let mut running = lab.start(&longer);
    running.hear(TIMED).expect("nothing was timed");
    killed(serving);
    let ended = running.end();
    assert!(ended.wall < Duration::from_secs(20), "{:?}", ended.wall);
    ended.record();
    // The near end is killed: the server reports it and ends.
    let serving = lab.start(&serve);
    wait();
    let mut near = lab.start(&longer);
    near.hear(TIMED).expect("nothing was timed");
    near.send(Signal::KILL);
    let served = serving.end();
    assert!(served.wall < Duration::from_secs(20), "{:?}", served.wall);
}
