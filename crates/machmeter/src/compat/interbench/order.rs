//! Plans the cells in interbench's order: one task after the other, each under every load but itself.

use std::path::PathBuf;

use machmeter_engine::attributes::Attributes;
use machmeter_engine::load::LoadRequest;
use machmeter_engine::stream::Stream;
use machmeter_interactive::tasks::{self, Choices};

use super::names::{SIMULATIONS, Simulation};
use super::options::Options;
use crate::{Failure, Result};

/// Most bytes of files of the disk loads, as in interbench 0.31. The loads also keep to their share of the free space.
const DISK_BYTES: u64 = 1 << 30;

#[derive(Debug, Clone, PartialEq)]
pub(super) struct CellOrder {
    pub(super) task: &'static str,
    pub(super) load: &'static str,
    pub(super) stream: Stream,
    pub(super) task_attributes: Attributes,
    pub(super) load_request: LoadRequest,
    /// Length of the recording, ns.
    pub(super) segment_ns: u64,
}

/// A table: a task and its cells.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Table {
    pub(super) task: &'static Simulation,
    pub(super) cells: Vec<CellOrder>,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct Place {
    /// List of the CPUs that the run may use.
    pub(super) cpus: String,
    /// Parent of the directories of loads with files.
    pub(super) directory: PathBuf,
}

/// All tables, and the names of usual loads that this program does not have. `available` are the existing loads.
/// Errors: a usage error if a requested load does not exist, or nothing is left to run.
pub(super) fn plan(
    name: &str,
    options: &Options,
    place: &Place,
    available: &[&str],
) -> Result<(Vec<Table>, Vec<&'static str>)> {
    let there = |l: &Simulation| available.contains(&l.own_name().as_str());
    if let Some(missing) = options.loads.only.iter().find(|l| !there(l)) {
        return Err(Failure::usage(format!("{name}: -w {}: this program has no such load", missing.label)));
    }
    let usual =
        |l: &Simulation, by_default: bool| if l.is_custom() { options.custom.is_some() } else { by_default };
    let taken: Vec<&'static Simulation> = SIMULATIONS
        .iter()
        .filter(|l| l.load.is_some_and(|by_default| options.loads.takes(l, usual(l, by_default))))
        .collect();
    let missing = taken.iter().filter(|l| !there(l)).map(|l| l.label).collect();
    let mut tables = Vec::new();
    for task in SIMULATIONS {
        let Some(how) = &task.task else { continue };
        let in_mode = how.real_time || !options.real_time;
        if !options.tasks.takes(task, usual(task, true)) || !in_mode {
            continue;
        }
        let loads = taken.iter().filter(|l| there(l) && l.label != task.label);
        let cells = loads.map(|l| cell(task, l, options, place)).collect::<Result<Vec<_>, _>>()?;
        if !cells.is_empty() {
            tables.push(Table { task, cells });
        }
    }
    if tables.is_empty() {
        let what = if options.real_time { " (-r runs Audio, Video and Custom only)" } else { "" };
        return Err(Failure::usage(format!("{name}: no benchmark and load are left to run{what}"))
            .help("a simulation never runs under itself; see -w, -x, -W, -X"));
    }
    Ok((tables, missing))
}

fn cell(
    task: &'static Simulation,
    load: &'static Simulation,
    options: &Options,
    place: &Place,
) -> Result<CellOrder> {
    let segment_ns = options.seconds * 1_000_000_000;
    let choices = Choices {
        custom: options.custom,
        audio_buffers: 1,
        turns_per_ms: options.turns_per_ms,
        segment_ns,
        overload: None,
    };
    let stream = tasks::find(&task.own_name())
        .and_then(|t| t.stream(&choices))
        .ok_or_else(|| Failure::cannot(format!("this program has no task '{}'", task.own_name())))?;
    let pinned = options.uniprocessor.then(|| place.cpus.clone());
    let attributes = |policy| Attributes { policy, cpus: pinned.clone(), ..Attributes::default() };
    let load_request = LoadRequest {
        name: load.own_name(),
        threads: matches!(load.label, "Burn" | "Compile").then_some(options.burn_threads),
        custom: options.custom.filter(|_| load.is_custom()),
        attributes: attributes(options.load_policy()),
        cpus: place.cpus.clone(),
        directory: place.directory.clone(),
        disk_bytes: DISK_BYTES,
        memory_bytes: None,
        seed: 0,
    };
    Ok(CellOrder {
        task: task.label,
        load: load.label,
        stream,
        task_attributes: attributes(options.task_policy()),
        load_request,
        segment_ns,
    })
}

#[cfg(test)]
pub(super) const EVERY_LOAD: &[&str] =
    &["burn", "compile", "custom", "hack", "memload", "none", "read", "ring", "video", "write", "x"];

#[cfg(test)]
mod tests {
    use machmeter_engine::stream::Demand;

    use super::super::options::parsed;
    use super::*;

    fn place() -> Place {
        Place { cpus: "0-1".to_owned(), directory: PathBuf::from(".") }
    }

    fn planned(words: &[&str]) -> Result<Vec<Table>, String> {
        plan("interbench", &parsed(words)?, &place(), EVERY_LOAD).map(|p| p.0).map_err(|f| f.what)
    }

    /// `Audio: None Video ...`, one line per table.
    fn shown(words: &[&str]) -> String {
        let line = |t: &Table| {
            let loads: Vec<&str> = t.cells.iter().map(|c| c.load).collect();
            format!("{}: {}", t.task.label, loads.join(" "))
        };
        planned(words).unwrap().iter().map(line).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn the_default_is_every_task_under_every_usual_load_but_itself() {
        assert_eq!(
            shown(&[]),
            "Audio: None Video X Burn Write Read Compile Memload\n\
             Video: None X Burn Write Read Compile Memload\n\
             X: None Video Burn Write Read Compile Memload\n\
             Gaming: None Video X Burn Write Read Compile Memload"
        );
    }

    #[test]
    fn custom_comes_in_with_its_description_and_hack_when_named() {
        assert!(shown(&["-C", "10", "-I", "20000", "-W", "Audio"]).ends_with("Memload Custom"));
        assert_eq!(shown(&["-C", "10", "-I", "20000", "-W", "custom", "-w", "Burn"]), "Custom: Burn");
        assert_eq!(shown(&["-W", "Audio", "-w", "Hack", "-w", "None"]), "Audio: None Hack");
    }

    #[test]
    fn exclusion_wins_over_inclusion_and_real_time_has_its_own_tasks() {
        let excluded = shown(&["-W", "X", "-x", "Write", "-x", "read", "-x", "compile"]);
        assert_eq!(excluded, "X: None Video Burn Memload");
        assert_eq!(shown(&["-r", "-w", "Burn"]), "Audio: Burn\nVideo: Burn");
        assert_eq!(shown(&["-X", "Audio", "-X", "Gaming", "-w", "x"]), "Video: X");
        assert!(planned(&["-r", "-W", "X"]).unwrap_err().contains("-r runs"));
        assert!(planned(&["-W", "Video", "-w", "Video"]).unwrap_err().contains("left to run"));
        assert!(planned(&["-w", "Burn", "-x", "Burn"]).is_err());
    }

    #[test]
    fn cells_carry_what_was_asked_for() {
        let words = "-t 7 -L 3 -B 5 -N 10 -W Video -w Burn".split(' ').collect::<Vec<_>>();
        let tables = planned(&words).unwrap();
        let c = &tables[0].cells[0];
        assert_eq!(c.segment_ns, 7_000_000_000, "-t is kept to the second");
        assert_eq!(c.load_request.threads, Some(3));
        assert_eq!(c.task_attributes.policy.as_deref(), Some("other:5"));
        assert_eq!(c.load_request.attributes.policy.as_deref(), Some("other:10"));
        assert_eq!((c.task_attributes.cpus.as_deref(), c.load_request.cpus.as_str()), (None, "0-1"));
        let one = planned(&["-u", "-l", "1000", "-W", "Video", "-w", "Burn"]).unwrap();
        let c = &one[0].cells[0];
        assert_eq!(c.task_attributes.cpus, c.load_request.attributes.cpus);
        assert!(c.task_attributes.cpus.is_some());
        assert_eq!(c.stream.demand, Demand::Turns { turns: 6_666 }, "-l is fixed work");
    }

    #[test]
    fn loads_that_are_not_there_are_told() {
        let options = parsed(&[]).unwrap();
        let (tables, missing) = plan("interbench", &options, &place(), &["none", "burn"]).unwrap();
        assert_eq!(missing, ["Video", "X", "Write", "Read", "Compile", "Memload"]);
        assert_eq!(tables[0].cells.len(), 2);
        let named = parsed(&["-w", "Hack"]).unwrap();
        let e = plan("interbench", &named, &place(), &["none"]).unwrap_err();
        assert!(e.what.contains("-w Hack: this program has no such load"));
    }
}
