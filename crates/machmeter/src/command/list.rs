//! `machmeter list WHAT`: prints the entries of a registry, or the stored runs.

use clap::{Arg, ArgMatches, Command};
use machmeter_data::{Hazard, MetricInfo, Record};
use machmeter_engine::{Info, LoadInfo};
use machmeter_interactive::tasks::TASKS;
use machmeter_report::format::FORMATS;
use machmeter_report::terminal::printable;
use machmeter_store::foreign::READERS;

use super::{explain, export, trace};
use crate::{Exit, Failure, Globals, Registries, Result, output, state};

const KINDS: [&str; 8] = ["codes", "formats", "loads", "metrics", "probes", "readers", "runs", "tasks"];

pub(super) fn define(name: &'static str) -> Command {
    Command::new(name)
        .about("List runs, metrics, codes, tasks, loads, formats, probes, readers")
        .arg(Arg::new("what").value_name("WHAT").default_value("metrics").value_parser(KINDS))
}

pub(super) fn run(registries: &Registries, globals: &Globals, matches: &ArgMatches) -> Result<Exit> {
    let what = matches.get_one::<String>("what").map_or("metrics", String::as_str);
    let row = |a: &str, b: &str, c: &str| [a, b, c].map(str::to_owned);
    let probes = registries.probes.iter().map(|p| p.info);
    let rows: Vec<[String; 3]> = match what {
        "codes" => explain::all(registries).iter().map(|c| row(c.id, c.name, c.what)).collect(),
        "formats" => FORMATS
            .iter()
            .map(|f| row(f.name, &format!(".{}", f.extension), f.description))
            .chain(export::SCHEDULES.iter().map(|f| row(f.name, &format!(".{}", f.extension), f.description)))
            .chain([row("parquet", ".parquet", "Raw samples, one file per table.")])
            .collect(),
        "loads" => {
            let usual = |l: &LoadInfo| if l.by_default { "usual" } else { "by name" };
            let text = |l: &LoadInfo| format!("{} Counts {}.", l.description, l.work);
            registries.loads.infos().iter().map(|l| row(l.name, usual(l), &text(l))).collect()
        }
        "tasks" => {
            TASKS.iter().map(|t| row(t.name, if t.classic { "classic" } else { "" }, t.description)).collect()
        }
        "probes" => probes.map(|i| row(i.name, i.example_job, i.question)).collect(),
        "readers" => READERS.iter().map(|r| row(r.name, "", r.description)).collect(),
        "runs" => runs()?,
        _ => {
            let better = |m: &MetricInfo| format!("{:?}", m.better).to_lowercase();
            let id = |m: &MetricInfo| format!("{}{{{}}}", m.id, m.params.join(","));
            let unit = |m: &MetricInfo| format!("{}, {}", m.unit.ucum(), better(m));
            let text =
                |m: &MetricInfo| format!("{} Weakened by: {}.", m.description, Hazard::names(m.weakened_by));
            probes
                .chain([&trace::INFO, &machmeter_noise::beside::INFO])
                .flat_map(Info::metrics)
                .map(|m| row(&id(m), &unit(m), &text(m)))
                .collect()
        }
    };
    // Tags and errors come from files and may contain control characters.
    let rows: Vec<[String; 3]> = rows.iter().map(|r| r.each_ref().map(|text| printable(text))).collect();
    if let Some(target) = &globals.json {
        let object = |r: &[String; 3]| serde_json::json!({"name": r[0], "kind": r[1], "text": r[2]});
        let all: serde_json::Value = rows.iter().map(object).collect();
        output::put(target, &format!("{all:#}\n")).map_err(Failure::cannot)?;
        return Ok(Exit::Fine);
    }
    let width = |i: usize| rows.iter().map(|r| r[i].chars().count()).max().unwrap_or(0);
    let (a, b) = (width(0), width(1));
    let line = |r: &[String; 3]| format!("{:a$}  {:b$}  {}\n", r[0], r[1], r[2]);
    let text: String = rows.iter().map(line).collect();
    output::print(&text).map_err(Failure::cannot)?;
    Ok(Exit::Fine)
}

/// Stored runs, the newest first: name, time and verb, tags and size. An unreadable run has its error.
fn runs() -> Result<Vec<[String; 3]>> {
    let history = state::past().map_err(Failure::usage)?;
    let row = |(i, name): (usize, String)| {
        let told = history.resolve(&name).map_err(|e| e.to_string()).and_then(|path| {
            let text = std::fs::read(&path).map_err(|e| e.to_string())?;
            let record = Record::from_json(&text).map_err(|e| e.to_string())?;
            Ok((record.complete, record.run, text.len()))
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
