//! Burn: threads that want the CPU all the time (interbench's load of the same name).

use machmeter_engine::cpu_work::Spinner;
use machmeter_engine::load::LoadInfo;
use machmeter_sys::thread;

use crate::work::LoadEntry;

/// CPU time of one unit of work, ns.
const STRETCH_NS: u64 = 1_000_000;

pub(crate) static BURN: LoadEntry = LoadEntry {
    info: LoadInfo {
        name: "burn",
        description: "Threads that compute all the time, by default one per CPU.",
        work: "intervals of 1 ms CPU time",
        ..LoadEntry::USUAL.info
    },
    run: Some(|work| {
        let threads = work.threads_or_one_per_cpu()?;
        work.ready();
        work.threads("mm-burn", threads, |lane| {
            let mut spinner = Spinner::calibrate();
            let count = work.count(lane);
            while !work.stopped() {
                spinner.burn(thread::thread_cpu_ns(), STRETCH_NS, &|| work.stopped());
                count.add(1);
            }
            Ok(())
        })
    }),
    ..LoadEntry::USUAL
};
