//! `machmeter list WHAT`: the registries.

use clap::{Arg, ArgMatches, Command};

use machmeter_interactive::tasks::TASKS;

use super::{CommandEntry, explain};
use crate::Registries;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::globals::Globals;
use crate::output;

pub(crate) const ENTRY: CommandEntry = CommandEntry { name: "list", define, run };

const KINDS: [&str; 7] = ["codes", "formats", "loads", "metrics", "probes", "readers", "tasks"];

fn define() -> Command {
    Command::new(ENTRY.name)
        .about(
            "What there is: probes, metrics, codes, tasks, loads, export formats, readers of foreign files",
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
        _ => registries
            .probes
            .iter()
            .flat_map(|p| p.info.metrics())
            .map(|m| {
                let better = format!("{:?}", m.better).to_lowercase();
                [
                    format!("{}{{{}}}", m.id, m.params.join(",")),
                    format!("{}, {better}", m.unit.ucum()),
                    m.description.to_owned(),
                ]
            })
            .collect(),
    };
    let width = |i: usize| rows.iter().map(|r| r[i].chars().count()).max().unwrap_or(0);
    let (a, b) = (width(0), width(1));
    let text: String = rows.iter().map(|r| format!("{:a$}  {:b$}  {}\n", r[0], r[1], r[2])).collect();
    output::print(&text).map_err(Failure::cannot)?;
    Ok(Exit::Fine)
}
