//! Earlier runs like this one: what differs between runs can only be learned from them.

use machmeter_data::Record;
use machmeter_store::History;

/// Complete runs of the history before it of the same verb with the same parameters on the same kind of machine, the latest first: `most` at
/// most, among the latest `files`. What cannot be read is no run.
pub(crate) fn like(history: &History, record: &Record, most: usize, files: usize) -> Vec<Record> {
    let Ok(names) = history.list() else { return Vec::new() };
    names
        .iter()
        .rev()
        .take(files)
        .filter_map(|n| history.read(n).ok())
        .filter(|r| {
            let machine = &r.machine.fingerprint;
            machine.is_some()
                && *machine == record.machine.fingerprint
                && r.complete
                && r.run.started < record.run.started
        })
        .filter(|r| r.run.verb == record.run.verb && r.run.parameters == record.run.parameters)
        .take(most)
        .collect()
}
