//! oslat (rt-tests) JSON: how long each turn of a spinning loop took.
//!
//! Bucket k counts turns of k-1 to k us (from the program's source: the index is the whole number of us, printed plus one). The
//! last bucket also holds everything beyond it.

use super::histogram::{self, Layout};
use super::{ForeignError, Imported, Input, Reader};

pub(super) const READER: Reader = Reader {
    name: "oslat-json",
    description: "oslat --json: histogram of loop turns per CPU, in buckets of 1 us",
    sniff: |input| {
        input.files.len() == 1
            && input.files.iter().all(|f| {
                f.text.trim_start().starts_with('{')
                    && f.text.contains("\"thread\"")
                    && f.text.contains("\"freq\"")
            })
    },
    read,
};

fn read(input: &Input) -> Result<Imported, ForeignError> {
    let layout = Layout {
        format: READER.name,
        threads: "thread",
        quantity: "turn_duration",
        first_edge: -1.0,
        clamps: true,
        unit_ns: |_| Some(1000.0),
    };
    let (mut out, document) = histogram::read(input, &layout)?;
    out.assume(
        "bucket k holds turns of k-1 to k us; the lowest holds the undisturbed turns, which are no detours",
    );
    out.assume("there are no time stamps, so neither periods nor coincidence between CPUs can be found");
    let command = ["cmdline", "cmdline:"].iter().find_map(|k| document.get(k)?.as_str()).map(str::to_owned);
    if let Some(command) = command
        && command.split_whitespace().any(|w| matches!(w, "-B" | "--bias"))
    {
        out.assume(
            "run with --bias: the shortest turn was subtracted from every value, and is not in the file",
        );
    }
    Ok(out)
}
