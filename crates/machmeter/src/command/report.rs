//! `machmeter report RUN`: draws a saved run, a report, or another tool's files.

use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use machmeter_data::Record;
use machmeter_data::summary::{self, RowInfo};
use machmeter_report::card;
use machmeter_store::document::{self, Document};
use machmeter_store::foreign::{self, SideFacts};
use machmeter_store::{history, json};

use super::CommandEntry;
use crate::Registries;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::globals::Globals;
use crate::session::{self, empty_record};
use crate::{output, state, view};

pub(crate) const ENTRY: CommandEntry = CommandEntry { name: "report", define, run };

fn define() -> Command {
    Command::new(ENTRY.name)
        .about("Draw a saved run, or another tool's files, as page, HTML or card")
        .long_about(
            "Draws a saved run (last, last~1, a tag, a file, - for stdin) or files of FTQ, FWQ, Netgauge, sysjitter, oslat, \
             cyclictest, interbench, ramlat, lat_mem_rd or multichase. Writes HTML, or the one-page card, to the file named by -o; shows the page on stdout.",
        )
        .arg(
            Arg::new("run")
                .value_name("RUN|FILE")
                .num_args(1..)
                .default_value("last")
                .value_parser(value_parser!(PathBuf))
                .help("last, last~N, a tag, a record, a report, or foreign files"),
        )
        .arg(Arg::new("card").long("card").action(ArgAction::SetTrue).help("One-page card (SVG) instead of the report"))
        .arg(
            Arg::new("tick-hz")
                .long("tick-hz")
                .value_name("HZ")
                .value_parser(value_parser!(f64))
                .help("Ticks per second of a foreign file that does not say"),
        )
}

fn run(registries: &Registries, globals: &Globals, matches: &ArgMatches) -> Result<Exit, Failure> {
    let names: Vec<PathBuf> = matches.get_many("run").into_iter().flatten().cloned().collect();
    let known = SideFacts { tick_hz: matches.get_one("tick-hz").copied(), ..SideFacts::default() };
    let record = load(registries, &names, &known)?;
    let as_card = matches.get_flag("card");
    let mut outputs = globals.output.clone();
    if outputs.is_empty() {
        let stem = names.first().and_then(|n| n.file_stem()).map_or("report".into(), |s| s.to_string_lossy());
        let stem = if stem == "-" { "stdin".to_owned() } else { stem.replace('~', "-") };
        outputs.push(PathBuf::from(format!("machmeter-{stem}.{}", if as_card { "svg" } else { "html" })));
    }
    let mut saved = Vec::new();
    for path in &outputs {
        let text = if as_card || path.extension().is_some_and(|e| e == "svg") {
            card::render(&record)
        } else if path.extension().is_some_and(|e| e == "json") {
            json::to_string(&record).map_err(Failure::cannot)?
        } else {
            view::page(&record)
        };
        machmeter_store::text::write(path, &text).map_err(Failure::cannot)?;
        saved.push(format!("{} ({} kB)", path.display(), text.len().div_ceil(1000)));
    }
    let trouble = view::show(&record, &[], globals, &saved);
    for t in &trouble {
        output::say(&format!("error: {t}"));
    }
    Ok(if trouble.is_empty() { Exit::Fine } else { Exit::CannotMeasure })
}

/// The record that names mean: a run of ours, or one made from foreign files.
pub(super) fn load(registries: &Registries, names: &[PathBuf], known: &SideFacts) -> Result<Record, Failure> {
    if let [one] = names {
        if one.as_os_str() == "-" {
            return json::read_from(&mut std::io::stdin().lock(), Path::new("-")).map_err(Failure::usage);
        }
        if !one.exists()
            && let Ok(history) = state::history()
            && let Ok(path) = history.resolve(&one.to_string_lossy())
        {
            return json::read(&path).map_err(Failure::usage);
        }
    }
    let mut record = match document::open(names, known).map_err(Failure::usage)? {
        Document::Record(record) => *record,
        Document::Foreign(imported) => record_of(registries, *imported),
    };
    // Records of other tools, and of versions that knew no rows.
    if record.summary.rows.is_empty() {
        let infos: Vec<RowInfo> = registries.probes.iter().flat_map(|p| p.info.rows).copied().collect();
        record.summary.rows = summary::rows(&infos, &record.metrics);
    }
    Ok(record)
}

/// A run of ours by name or file, and the file.
pub(super) fn located(name: &Path) -> Result<(Record, PathBuf), Failure> {
    let path = if name.is_file() {
        name.to_owned()
    } else {
        let history = state::history().map_err(Failure::usage)?;
        history.resolve(&name.to_string_lossy()).map_err(Failure::usage)?
    };
    Ok((json::read(&path).map_err(Failure::usage)?, path))
}

/// Raw tables of a run of ours, where they are still there.
pub(super) fn tables(record: &Record, path: &Path) -> Result<Vec<machmeter_data::Table>, Failure> {
    history::raw_tables(record, path).map_err(Failure::usage)
}

fn record_of(registries: &Registries, imported: foreign::Imported) -> Record {
    let mut record = empty_record();
    record.complete = true;
    "import".clone_into(&mut record.run.verb);
    "end of file".clone_into(&mut record.stopped_by);
    for p in registries.probes {
        if let Ok(analysis) = (p.reanalyze)(&imported.tables, 1) {
            session::add(&mut record, analysis);
        }
    }
    record.metrics.extend(imported.metrics);
    record.datasets.extend(imported.datasets);
    record.summary.lines.extend(imported.summary.lines);
    record.warnings.extend(imported.warnings);
    for (key, value) in imported.notes {
        record.extra.insert(key, serde_json::Value::String(value));
    }
    record.provenance = Some(imported.provenance);
    record
}
