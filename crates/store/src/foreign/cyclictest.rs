//! cyclictest (rt-tests) JSON: how late a sleeping thread woke up. Not stolen time (W706).
//!
//! Older versions write the keys `cmdline:` and `rt_test_version:` with a colon inside. Latencies are whole microseconds, or
//! nanoseconds when `resolution_in_ns` is 1; bucket k holds [k, k+1).

use serde_json::Value;

use super::codes::{self, warn};
use super::histogram::{self, Layout};
use super::{ForeignError, Imported, Input, Reader};

pub(super) const READER: Reader = Reader {
    name: "cyclictest-json",
    description: "cyclictest --json with a histogram (-h): wake-up latency per thread",
    sniff: |input| {
        input.files.len() == 1
            && input.files.iter().all(|f| {
                f.text.trim_start().starts_with('{')
                    && f.text.contains("\"thread\"")
                    && f.text.contains("\"cycles\"")
            })
    },
    read,
};

fn read(input: &Input) -> Result<Imported, ForeignError> {
    let layout = Layout {
        format: READER.name,
        threads: "thread",
        quantity: "wakeup_latency",
        first_edge: 0.0,
        clamps: false,
        unit_ns: |d| match d.get("resolution_in_ns").and_then(Value::as_i64) {
            Some(0) | None => Some(1000.0),
            Some(1) => Some(1.0),
            Some(_) => None,
        },
    };
    let (mut out, _) = histogram::read(input, &layout)?;
    warn(
        &mut out,
        codes::OTHER_QUANTITY,
        "cyclictest measures how late a sleeping thread wakes up, not stolen time",
    );
    out.assume("bucket k holds latencies of k to k+1 us (ns where the file says so)");
    Ok(out)
}
