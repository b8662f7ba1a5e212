//! `machmeter list WHAT`: the registries.

use clap::{Arg, ArgMatches, Command};

use machmeter_data::Hazard;
use machmeter_data::record::Run;
use machmeter_interactive::tasks::TASKS;

use super::{CommandEntry, explain};
use crate::Registries;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::globals::Globals;
use crate::{output, state};

pub(crate) const ENTRY: CommandEntry = CommandEntry { name: "list", define, run };

const KINDS: [&str; 8] = ["codes", "formats", "loads", "metrics", "probes", "readers", "runs", "tasks"];

fn define() -> Command {
    Command::new(ENTRY.name)
        .about(
            "What there is: runs, probes, metrics, codes, tasks, loads, export formats, readers of foreign files",
        )
        .arg(Arg::new("what").value_name("WHAT").default_value("metrics").value_parser(KINDS))
}

fn run(registries: &Registries, _globals: &Globals, matches: &ArgMatches) -> Result<Exit, Failure> {
    let what = matches.get_one::<String>("what").map_or("metrics", String::as_str);
    let rows: Vec<[String; 3]> = match what {
        "codes" => explain::all(registries)
            .iter()
            .map(|c| [c.id.to_owned(), c.name.to_owned(), c.what.to_owned()])
            .collect(),
        "formats" => machmeter_report::format::FORMATS
            .iter()
            .map(|f| [f.name.to_owned(), format!(".{}", f.extension), f.description.to_owned()])
            .chain([[
                "parquet".to_owned(),
                ".parquet".to_owned(),
                "Raw samples, one file per table.".to_owned(),
            ]])
            .collect(),
        "loads" => registries
            .loads
            .infos()
            .iter()
            .map(|l| {
                let usual = if l.by_default { "usual" } else { "by name" };
                [l.name.to_owned(), usual.to_owned(), format!("{} Counts {}.", l.description, l.work)]
            })
            .collect(),
        "tasks" => TASKS
            .iter()
            .map(|t| {
                let seed = if t.classic { "seed" } else { "" };
                [t.name.to_owned(), seed.to_owned(), t.description.to_owned()]
            })
            .collect(),
        "probes" => registries
            .probes
            .iter()
            .map(|p| [p.info.name.to_owned(), p.info.example_job.to_owned(), p.info.question.to_owned()])
            .collect(),
        "readers" => machmeter_store::foreign::READERS
            .iter()
            .map(|r| [r.name.to_owned(), String::new(), r.description.to_owned()])
            .collect(),
        "runs" => runs()?,
        _ => registries
            .probes
            .iter()
            .flat_map(|p| p.info.metrics())
            .map(|m| {
                let better = format!("{:?}", m.better).to_lowercase();
                [
                    format!("{}{{{}}}", m.id, m.params.join(",")),
                    format!("{}, {better}", m.unit.ucum()),
                    format!("{} Weakened by: {}.", m.description, Hazard::names(m.weakened_by)),
                ]
            })
            .collect(),
    };
    let width = |i: usize| rows.iter().map(|r| r[i].chars().count()).max().unwrap_or(0);
    let (a, b) = (width(0), width(1));
    let text: String = rows.iter().map(|r| format!("{:a$}  {:b$}  {}\n", r[0], r[1], r[2])).collect();
    // Tags and errors come from files.
    let text: String = text.chars().map(|c| if c.is_control() && c != '\n' { ' ' } else { c }).collect();
    output::print(&text).map_err(Failure::cannot)?;
    Ok(Exit::Fine)
}

/// Stored runs, the newest first: name, when and what, tags and size. One that cannot be read says so.
fn runs() -> Result<Vec<[String; 3]>, Failure> {
    let history = state::history().map_err(Failure::usage)?;
    let row = |(i, name): (usize, String)| {
        let told = history.resolve(&name).map_err(|e| e.to_string()).and_then(|path| {
            let text = std::fs::read(&path).map_err(|e| e.to_string())?;
            let record: serde_json::Value = serde_json::from_slice(&text).map_err(|e| e.to_string())?;
            let run: Run = serde_json::from_value(record["run"].clone()).map_err(|e| e.to_string())?;
            Ok((record["complete"] == true, run, text.len()))
        });
        let last = if i == 0 { "last".to_owned() } else { format!("last~{i}") };
        match told {
            Ok((complete, run, bytes)) => {
                let state = if complete { "" } else { ", incomplete" };
                let tags: String = run.tags.iter().map(|(k, v)| format!("  {k}={v}")).collect();
                let what = format!("{}  {} {}{state}", run.started, run.verb, run.level);
                [last, what, format!("{} kB{tags}", bytes.div_ceil(1000))]
            }
            Err(why) => [last, name, format!("cannot be read: {why}")],
        }
    };
    Ok(history.list().map_err(Failure::usage)?.into_iter().rev().enumerate().map(row).collect())
}
