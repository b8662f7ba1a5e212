//! Earlier runs like this one: what differs between runs can only be learned from them.

use machmeter_data::Record;

use crate::state;

/// Complete runs in the history of the same verb with the same parameters on the same kind of machine, the latest first, `most` at
/// most. None where there is no history.
pub(crate) fn like(record: &Record, most: usize) -> Vec<Record> {
    let Ok(history) = state::history() else { return Vec::new() };
    let Ok(names) = history.list() else { return Vec::new() };
    names
        .iter()
        .rev()
        .filter_map(|n| machmeter_store::json::read(&history.resolve(n).ok()?).ok())
        .filter(|r| {
            let machine = &r.machine.fingerprint;
            machine.is_some() && *machine == record.machine.fingerprint && r.complete
        })
        .filter(|r| r.run.verb == record.run.verb && r.run.parameters == record.run.parameters)
        .take(most)
        .collect()
}
