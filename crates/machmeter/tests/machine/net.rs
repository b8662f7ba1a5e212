//! The net probe as a user runs it: figures that hang together, refusals, ends that are killed, nothing left behind.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests fail and tell their figures")]

use std::time::Duration;

use crate::program::{Lab, descendants, is_loaded, is_root, prompt_policy, soon, value, warned, words};
use machmeter_sys::process::{commands_with, kill_process, pid_is_alive, stop_process};
use rustix::process::Signal;

/// Whether it says that it skips for want of a second CPU.
fn has_one_cpu() -> bool {
    let cpus = machmeter_sys::affinity::mask().unwrap().to_vec().len();
    if cpus < 2 {
        println!("skipped: one CPU");
    }
    cpus < 2
}

#[test]
fn figures_of_a_run_hang_together() {
    if has_one_cpu() {
        return;
    }
    let lab = Lab::alone();
    // Ends that wait by polling, beside more loops than CPUs, hardly ever run at once under the ordinary policy.
    let ended = lab.line(&format!("net -t 6 --sizes 1-64K --prio {} --json -q", prompt_policy()));
    assert!(ended.wall < Duration::from_secs(12), "{:?}", ended.wall);
    let record = ended.record();
    let trip = |transport: &str, wait: &str| {
        value(&record, "net.round_trip", &[("transport", transport), ("wait", wait)]).unwrap()
    };
    for transport in ["shm", "unix", "tcp"] {
        let [polling, sleeping] = ["polling", "sleeping"].map(|wait| trip(transport, wait));
        println!("{transport}: {polling} ns polling, {sleeping} ns asleep");
        assert!(polling > 20.0 && sleeping > polling, "{transport}: {polling} {sleeping}");
        let far = [("transport", transport), ("direction", "there"), ("from_bytes", "1")];
        let metric = record.metric("net.message_time", &far).unwrap();
        let Some(each) = metric.value else {
            assert!(is_loaded(&record) && metric.why.is_some(), "{metric:?}");
            println!("{transport}: not judged, other threads kept the ends from running: {:?}", metric.why);
            continue;
        };
        // A message of a train costs no more than a round trip, and the bytes of 64 KiB some nanoseconds at least.
        assert!(each > 1.0 && each < 1.5 * polling, "{transport}: {each} beside {polling}");
    }
    // What the kernel takes no part in is the quickest, and calls beat no cache line.
    assert!(["shm", "unix", "tcp"].map(|transport| trip(transport, "polling")).is_sorted_by(|a, b| a < b));
    assert_eq!(value(&record, "net.sync_threshold", &[("transport", "shm")]), Some(1_048_576.0));
    // The stored samples say the same again.
    let again = lab.run(&["report", "last", "--json"]).record();
    let key = ("net.round_trip", [("transport", "tcp"), ("wait", "polling")]);
    assert_eq!(value(&again, key.0, &key.1), value(&record, key.0, &key.1));
}

#[test]
fn one_cpu_and_wrong_words_are_one_line() {
    let lab = Lab::new();
    let cpu = machmeter_sys::affinity::mask().unwrap().to_vec()[0];
    lab.line(&format!("net -c {cpu} -q")).failed(4, "needs two CPUs");
    lab.line("net --transports smoke -q").refused("'smoke' is not one of");
    lab.line("net --sizes 9-1 -q").refused("--sizes 9-1");
    assert!(lab.files().is_empty());
}

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
    let lab = Lab::alone();
    let hit = |how: fn(i32) -> std::io::Result<()>| {
        let running = lab.start("net -t 4 --json -q");
        let far = far_end(running.id());
        std::thread::sleep(Duration::from_millis(600));
        how(far).unwrap();
        let ended = running.end();
        assert!(ended.wall < Duration::from_secs(14), "{:?}", ended.wall);
        assert!(soon(|| !pid_is_alive(far)), "the far end was left behind");
        ended.record()
    };
    // The far end is gone: what was measured stays, the rest has a reason.
    warned(&hit(kill_process), "W460");
    // It stands still: waits end at their limits.
    hit(stop_process);
    // The near end is killed: the far end goes with it.
    let near = lab.command(&["net", "-t", "20", "-q"]).spawn().unwrap();
    let far = far_end(near.id());
    killed(near);
    assert!(soon(|| !pid_is_alive(far)), "the far end outlived the near one");
    // A signal ends it early, with what there is.
    let running = lab.start("net -t 60 --json -q");
    far_end(running.id());
    std::thread::sleep(Duration::from_millis(500));
    running.send(Signal::INT);
    let ended = running.end();
    assert!(ended.wall < Duration::from_secs(10), "{:?}", ended.wall);
    ended.expect(130).record();
}

#[test]
fn a_plain_user_needs_no_rights() {
    if !is_root() || has_one_cpu() {
        return println!("skipped: needs root to become somebody else");
    }
    let record = Lab::alone().nobody("net -t 2 --sizes 1-4K --json -q").record();
    let tcp = [("transport", "tcp"), ("wait", "polling")];
    assert!(value(&record, "net.round_trip", &tcp).is_some() || is_loaded(&record));
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
    // The eager limit of 4 KiB lies between its sizes of 3073 and 4097 B; it announced no change.
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
    // Twice the 7 us of its first lines.
    assert!(trip("np.out").is_some_and(|ns| (12e3..18e3).contains(&ns)), "{:?}", trip("np.out"));
}

#[test]
fn another_machine_serves_and_is_killed_or_not_there() {
    if has_one_cpu() {
        return;
    }
    let lab = Lab::alone();
    let token = lab.work().join("token");
    std::fs::write(&token, "0123456789abcdef").unwrap();
    let mine = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&token, mine).unwrap();
    // A port of its own: other tests may serve, too.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let serve = format!("serve --listen {port} --token-file token -t 40");
    let net = format!("net --peer {port} --token-file token -t 5 -q --json");
    lab.line(&net).failed(4, "is `machmeter serve` running there?");
    let wait = || assert!(soon(|| std::net::TcpStream::connect(&port).is_ok()), "it does not listen");
    let serving = lab.start(&serve);
    wait();
    let record = lab.line(&format!("{net} --load burn --sizes 1-4K")).record();
    for load in [&[][..], &[("load", "burn")]] {
        let key = [&[("transport", "tcp"), ("wait", "sleeping"), ("peer", port.as_str())], load].concat();
        assert!(value(&record, "net.round_trip", &key).is_some(), "{key:?}");
    }
    serving.end().expect(0);
    // The far end is killed in the middle: a valid record with reasons, in time.
    let serving = lab.command(&words(&serve)).spawn().unwrap();
    wait();
    let running = lab.start(&net);
    std::thread::sleep(Duration::from_millis(1_500));
    killed(serving);
    let ended = running.end();
    assert!(ended.wall < Duration::from_secs(20), "{:?}", ended.wall);
    ended.record();
    // The near end is killed: the server says so, is done and ends.
    let serving = lab.start(&serve);
    wait();
    let near = lab.command(&words(&net)).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(1_500));
    killed(near);
    let served = serving.end();
    assert!(served.wall < Duration::from_secs(20), "{:?}", served.wall);
    // A signal ends one that waits.
    let serving = lab.start(&serve);
    wait();
    serving.send(Signal::INT);
    serving.end().expect(130);
}
