//! Writes the report, the card and every export of a synthetic record into a folder, for looking at:
//! `cargo run -p machmeter-report --example sample_report -- FOLDER [CPUS [TASKS LOADS KINDS]]`.

#[path = "../tests/sample/mod.rs"]
mod sample;

use std::path::PathBuf;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder =
        PathBuf::from(arguments.next().ok_or("usage: sample_report FOLDER [CPUS [TASKS LOADS KINDS]]")?);
    let cpus: usize = arguments.next().map_or(Ok(2), |n| n.parse())?;
    std::fs::create_dir_all(&folder)?;
    let mut record = sample::record(cpus, 900);
    let sizes: Vec<usize> = arguments.map(|n| n.parse()).collect::<Result<_, _>>()?;
    if let [tasks, loads, kinds] = sizes[..] {
        sample::interactive::add(&mut record, tasks, loads, kinds);
    }
    std::fs::write(folder.join("report.html"), machmeter_report::html::render(&record))?;
    std::fs::write(folder.join("card.svg"), machmeter_report::card::render(&record))?;
    let style = machmeter_report::terminal::TerminalStyle { width: 100, color: false, ascii: false };
    let mut text = machmeter_report::terminal::page(&record, &style);
    for d in &record.datasets {
        text.push_str(&machmeter_report::terminal::dataset(d, &style));
    }
    std::fs::write(folder.join("page.txt"), text)?;
    let tables = sample::tables();
    for f in machmeter_report::format::FORMATS {
        let mut out = Vec::new();
        (f.write)(&record, &tables, &mut out)?;
        std::fs::write(folder.join(format!("export.{}", f.extension)), out)?;
    }
    Ok(())
}
