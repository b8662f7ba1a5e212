//! Writes the report, the card and every export of a synthetic record into a folder, for looking at:
//! `cargo run -p machmeter-report --example sample_report -- FOLDER [CPUS]`.

#[path = "../tests/sample/mod.rs"]
mod sample;

use std::path::PathBuf;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = PathBuf::from(arguments.next().ok_or("usage: sample_report FOLDER [CPUS]")?);
    let cpus: usize = arguments.next().map_or(Ok(2), |n| n.parse())?;
    std::fs::create_dir_all(&folder)?;
    let record = sample::record(cpus, 900);
    std::fs::write(folder.join("report.html"), machmeter_report::html::render(&record))?;
    Ok(())
}
