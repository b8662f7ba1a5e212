//! Every load starts, works, and stops in time.

use machmeter_engine::load::{LoadError, Loads};
use machmeter_loads::{AllLoads, LOADS};
use machmeter_sys::process;
use machmeter_sys::thread::monotonic_ns;

use crate::tools::{SECOND_NS, entries, request, within, workers};

pub(crate) const TESTS: &[(&str, fn())] = &[
    ("every_load_starts_works_and_stops", every_load_starts_works_and_stops),
    ("wrong_requests_are_refused_in_one_line", wrong_requests_are_refused_in_one_line),
    ("refused_attributes_name_the_cause", refused_attributes_name_the_cause),
];

fn every_load_starts_works_and_stops() {
    let directory = tempfile::tempdir().unwrap();
    for load in LOADS.iter().filter(|l| l.run.is_some()) {
        let name = load.info.name;
        let begin_ns = monotonic_ns();
        let mut running = match AllLoads.start(&request(name, directory.path())) {
            Ok(running) => running,
            Err(LoadError::Usage(why)) if name == "rt-hog" => {
                assert!(why.contains("CAP_SYS_NICE") || why.contains("RT"), "{why}");
                println!("{name}: refused here: {why}");
                continue;
            }
            Err(e) => panic!("{name}: {e}"),
        };
        let started_ns = monotonic_ns() - begin_ns;
        let processes = running.processes();
        assert!(processes.len() >= 2 && processes.iter().all(|p| process::pid_is_alive(*p)), "{name}");
        assert!(within(10 * SECOND_NS, || running.work() > 0), "{name}: no work is done");
        assert!(within(10 * SECOND_NS, || running.work() > 1), "{name}: no more work is done");
        assert_eq!(running.failure(), None, "{name}");
        let begin_ns = monotonic_ns();
        let report = running.stop();
        let stopped_ns = monotonic_ns() - begin_ns;
        assert_eq!(report.failure, None, "{name}");
        assert!(report.work > 1 && stopped_ns < 2 * SECOND_NS, "{name}: {report:?} after {stopped_ns} ns");
        assert!(workers().is_empty() && process::processes_of_group(processes[0]).is_empty(), "{name}");
        assert!(entries(directory.path()).is_empty(), "{name}: {:?}", entries(directory.path()));
        println!("{name}: start {started_ns} ns, stop {stopped_ns} ns, {} {}", report.work, load.info.work);
    }
}

fn refusal(change: impl FnOnce(&mut machmeter_engine::load::LoadRequest)) -> String {
    let directory = tempfile::tempdir().unwrap();
    let mut request = request("burn", directory.path());
    change(&mut request);
    match AllLoads.start(&request) {
        Err(LoadError::Usage(why)) => {
            assert!(!why.contains('\n'), "{why}");
            assert!(workers().is_empty());
            why
        }
        Err(other) => panic!("not the request's fault: {other}"),
        Ok(_) => panic!("accepted: {request:?}"),
    }
}

fn wrong_requests_are_refused_in_one_line() {
    assert!(refusal(|r| r.name = "brun".to_owned()).contains("'brun'"));
    assert!(refusal(|r| r.threads = Some(0)).contains("0 threads"));
    assert!(refusal(|r| r.threads = Some(1_000_000)).contains("1000000"));
    assert!(refusal(|r| r.attributes.policy = Some("fifo:100".to_owned())).contains("100"));
    assert!(refusal(|r| r.attributes.policy = Some("fifo:99".to_owned())).contains("99"));
    assert!(refusal(|r| r.attributes.cpus = Some("1-x".to_owned())).contains("1-x"));
    assert!(refusal(|r| r.cpus = "a".to_owned()).contains("'a'"));
}

fn refused_attributes_name_the_cause() {
    let why = refusal(|r| r.attributes.cpus = Some("1023".to_owned()));
    assert!(why.contains("1023"), "{why}");
}
