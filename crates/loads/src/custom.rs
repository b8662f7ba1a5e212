//! Custom: a periodic load of any share and period (interbench's -C and -I).

use machmeter_engine::load::{LoadError, LoadInfo, LoadRequest};

use crate::streams::play_share;
use crate::work::{LoadEntry, usage};

/// Below this period a job is mostly the cost of waking up.
const PERIOD_MIN_NS: u64 = 50_000;
const PERIOD_MAX_NS: u64 = 60_000_000_000;

pub(crate) static CUSTOM: LoadEntry = LoadEntry {
    info: LoadInfo {
        name: "custom",
        description: "A periodic load with the CPU share and interval of --custom-cpu and --custom-interval.",
        work: "jobs",
        by_default: false,
        ..LoadEntry::USUAL.info
    },
    check: |request| demand(request).map(|_| ()),
    run: Some(|work| play_share(work, "mm-custom", demand(&work.request)?)),
};

/// Share of a CPU, and period, ns.
fn demand(request: &LoadRequest) -> Result<(f64, u64), LoadError> {
    let refused = |why: String| Err(usage(request, why));
    let Some((share, period_ns)) = request.custom else {
        return refused("give the CPU share (--custom-cpu) and the interval (--custom-interval)".to_owned());
    };
    if !(share > 0.0 && share <= 1.0) {
        return refused(format!("{} % of a CPU: it must be above 0 and at most 100", share * 100.0));
    }
    if !(PERIOD_MIN_NS..=PERIOD_MAX_NS).contains(&period_ns) {
        return refused(format!("an interval of {period_ns} ns: it must be 50 us to 60 s"));
    }
    Ok((share, period_ns))
}
