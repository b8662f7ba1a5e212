//! `machmeter explain CODE`: what a code means, why it matters, how it is measured, what to do and how to undo it.

use clap::{Arg, ArgMatches, Command};
use machmeter_data::Code;
use machmeter_engine::checks;

use super::CommandEntry;
use crate::Registries;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::globals::Globals;
use crate::output;

pub(crate) const ENTRY: CommandEntry = CommandEntry { name: "explain", define, run };

pub(crate) const CODES: &[Code] = &[
    Code {
        id: "W900",
        name: "not measured",
        what: "The command failed; the record says why and holds no figures.",
        why: "A reader of JSON gets a valid document in every outcome.",
        how: "Written when --json was given and the command could not do its work.",
        next: "Do what the warning's text says.",
        undo: None,
    },
    Code {
        id: "W901",
        name: "not kept",
        what: "The run or its best values could not be kept in the state directory.",
        why: "`report last`, `compare last~1 last` and comparisons with the best ever seen need earlier runs.",
        how: "The state directory is MACHMETER_STATE, XDG_STATE_HOME/machmeter or ~/.local/state/machmeter.",
        next: "Make that directory writable, name a file with -o, or give --no-save.",
        undo: None,
    },
    Code {
        id: "W902",
        name: "raw samples missing",
        what: "The record was stored without its raw samples.",
        why: "Figures and pictures are complete; a later analysis of the samples is not possible.",
        how: "Writing the Parquet files failed, usually for lack of space.",
        next: "Free space, or give --raw none.",
        undo: None,
    },
    Code {
        id: "W903",
        name: "part left out",
        what: "A part of the page could not be measured; the others were.",
        why: "The record says nothing of that part.",
        how: "The probe refused, or the system refused it.",
        next: "See the text; often more time is needed: -t 30 or more for the whole page.",
        undo: None,
    },
];

/// All codes of the program, its checks and its probes.
pub(crate) fn all(registries: &Registries) -> Vec<&'static Code> {
    let mut all: Vec<&'static Code> = checks::codes().collect();
    all.extend(registries.probes.iter().flat_map(|p| p.info.codes()));
    all.extend(machmeter_store::foreign::codes::CODES);
    all.extend(CODES);
    all.sort_by_key(|c| c.id);
    // Probes share some.
    all.dedup();
    all
}

fn define() -> Command {
    Command::new(ENTRY.name)
        .about("What a code of a check or warning means, and what to do about it")
        .arg(Arg::new("code").value_name("CODE").required(true).help("A code such as E104 or W301"))
}

fn run(registries: &Registries, _globals: &Globals, matches: &ArgMatches) -> Result<Exit, Failure> {
    let wanted = matches.get_one::<String>("code").map_or("", String::as_str);
    let all = all(registries);
    let Some(c) = all.iter().find(|c| c.id.eq_ignore_ascii_case(wanted)) else {
        let known: Vec<&str> = all.iter().map(|c| c.id).collect();
        return Err(Failure::usage(format!("no code '{wanted}'")).help(format!("codes: {}", known.join(" "))));
    };
    let mut text = format!("{}  {}\n\n{}\n\nWhy it matters\n  {}\n", c.id, c.name, c.what, c.why);
    text += &format!("How it is measured\n  {}\nWhat to do\n  {}\n", c.how, c.next);
    if let Some(undo) = c.undo {
        text += &format!("How to undo that\n  {undo}\n");
    }
    output::print(&text).map_err(Failure::cannot)?;
    Ok(Exit::Fine)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_explained() {
        let all = all(&Registries::default());
        assert!(
            all.windows(2).all(|w| w[0].id < w[1].id),
            "{:?}",
            all.iter().map(|c| c.id).collect::<Vec<_>>()
        );
        for c in all {
            assert!(
                !c.what.is_empty() && !c.why.is_empty() && !c.how.is_empty() && !c.next.is_empty(),
                "{}",
                c.id
            );
        }
    }
}
