//! Predicting as a user does: traced runs on measured costs, and what is wrong.

#![allow(clippy::unwrap_used, reason = "tests fail and tell their figures")]

mod program;

use machmeter_data::Record;
use machmeter_data::record::{Run, Tool};
use program::Lab;

fn record(id: &str) -> Record {
    let tool = Tool { name: "machmeter".to_owned(), version: "1".to_owned(), ..Tool::default() };
    Record::new(id.to_owned(), tool, Run::default())
}

fn lab() -> Lab {
    let lab = Lab::new();
    let mut bare = record("0123456789abcdef");
    machmeter_store::history::save_as(&mut bare, &[], &lab.work().join("bare.json")).unwrap();
    lab
}

#[test]
fn what_cannot_be_is_refused() {
    let lab = lab();
    for (line, about) in [
        ("predict", "nothing to predict"),
        ("predict bare.json --on bare.json", "bare.json: no trace of an MPI program"),
        ("predict nothere.json --on bare.json", "nothere.json"),
    ] {
        lab.line(line).refused(about);
    }
}
