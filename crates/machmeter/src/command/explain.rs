//! `machmeter explain CODE...`: what the last run said under a code, what it means, why it matters, what to do and how to undo it.

use clap::{Arg, ArgMatches, Command};
use machmeter_data::{Code, Record, code};
use machmeter_report::terminal::printable;

use crate::{Exit, Failure, Globals, Registries, Result, output, state};

pub(crate) const CODES: &[Code] = &[
    code! { "W900" "not measured",
        what: "The command failed; the record says why and holds no figures.",
        why: "A reader of JSON gets a valid document in every outcome.",
        how: "Written when --json was given and the command could not do its work.",
        next: "Do what the warning's text says.",
    },
    code! { "W901" "not kept",
        what: "The run or its best values could not be kept in the state directory.",
        why: "`report last`, `compare last~1 last` and comparisons with the best ever seen need earlier runs.",
        how: "The state directory is MACHMETER_STATE, XDG_STATE_HOME/machmeter or ~/.local/state/machmeter.",
        next: "Make that directory writable, name a file with -o, or give --no-save.",
    },
    code! { "W902" "raw samples missing",
        what: "The record was stored without its raw samples.",
        why: "Figures and pictures are complete; a later analysis of the samples is not possible.",
        how: "Writing the Parquet files failed, usually for lack of space.",
        next: "Free space, or give --raw none.",
    },
    code! { "W903" "part left out",
        what: "A part of the page could not be measured; the others were.",
        why: "The record says nothing of that part.",
        how: "The probe refused, or the system refused it.",
        next: "See the text; often more time is needed: -t 30 or more for the whole page.",
    },
    code! { "W904" "process lost",
        what: "A process of the run was ended by a signal that machmeter did not send. The run is partial.",
        why: "What that process measured or did as a load is missing, even where figures could be had without it.",
        how: "Its exit status.",
        next: "Run it again; dmesg tells whether memory had run out.",
    },
    code! { "W910" "parameter assumed",
        what: "A simulation used a value for a parameter that the link's record only bounds or does not hold.",
        why: "Simulated times are off by as much as that value is.",
        how: "Figures net.latency, net.overhead_send, net.overhead_recv and net.gap of the run of --on have no value; each says why.",
        next: "Measure the link again with more time, or choose another with --link.",
    },
    code! { "W911" "cost extrapolated",
        what: "A prediction uses a law or cost at a number of ranks or bytes where nothing was measured.",
        why: "Libraries change their algorithms with ranks and sizes: beyond its points a law may be far off, and its interval does not tell.",
        how: "Ranks and sizes of mpi.cost or simulate.cost of the operation in the run of --on.",
        next: "Measure there: machmeter mpi with more ranks or sizes, or machmeter simulate --table for more ranks than the machine has.",
    },
    code! { "W912" "calls left out",
        what: "Calls of a trace have no part in its replay: they take no time there and nobody waits for them.",
        why: "A prediction is too short by what they cost.",
        how: "One-sided and neighborhood calls, files, probes of messages, messages whose other side left no trace, collectives that do not match.",
        next: "Look for their share of the time in the trace; predict on the costs of the machine where it was traced and compare.",
    },
    code! { "W913" "order assumed",
        what: "A trace does not say which message or request a call was about; it was taken from the order of calls.",
        why: "Where ranks take messages in another order, others wait in the prediction than in the program.",
        how: "Receives from any rank, waits for one of several requests, starts of persistent requests.",
        next: "Nothing, where the order is that of the program; else trace with named ranks and waits for all.",
    },
    code! { "W914" "ranks share CPUs",
        what: "There are more ranks than CPUs of the machine that was traced, or whose costs are used.",
        why: "Ranks of a replay have a CPU each. Traced calculation of ranks that shared one has the time of the others.",
        how: "cpu.count of the records.",
        next: "Trace no more ranks than CPUs. For more ranks: costs of a cluster, or of one link with simulated collectives (simulate --table).",
    },
    code! { "W915" "prices do not vary",
        what: "A parameter was varied (--vary) for a program whose collectives have a price, which stays as it was measured.",
        why: "The change of the predicted time is that of single messages alone: the whole one is larger.",
        how: "Collectives are priced by their measured laws or costs, which no parameter of messages is part of.",
        next: "Replay them message by message: --algorithm allreduce=recursive-doubling; `machmeter simulate --pattern list` shows all.",
    },
    code! { "W916" "traced without a CPU",
        what: "Threads of the traced program had no CPU for more than a tenth of their time: they slept, or others had it.",
        why: "Time inside a call without a CPU is in no model: a run takes longer than predicted, by up to that share, and the interval does not hold it.",
        how: "mpi.on_cpu of the trace below 0.9: predictions of ranks that had a CPU all the time were off by up to 0.11, and here as much is missing.",
        next: "Trace with a CPU for each rank and nothing beside it: mpirun --bind-to core, a real-time priority (chrt -f 1).",
    },
];

/// All codes of the program, its checks and its probes.
pub(crate) fn all(registries: &Registries) -> Vec<&'static Code> {
    let mut all: Vec<&'static Code> = machmeter_doctor::codes().collect();
    all.extend(registries.probes.iter().flat_map(|p| p.info.codes()));
    all.extend(super::trace::INFO.codes());
    all.extend(machmeter_store::foreign::codes::CODES);
    all.extend(CODES);
    all.sort_by_key(|c| c.id);
    // Probes share some.
    all.dedup();
    all
}

pub(super) fn define(name: &'static str) -> Command {
    Command::new(name).about("What a code of a check or warning means, and what to do").arg(
        Arg::new("code").value_name("CODE").num_args(1..).required(true).help("Codes such as E104 or W301"),
    )
}

pub(super) fn run(registries: &Registries, _: &Globals, matches: &ArgMatches) -> Result<Exit> {
    let all = all(registries);
    let find = |name: &String| {
        let unknown = || Failure::usage(format!("no code '{name}'")).help("machmeter list codes names all");
        all.iter().find(|c| c.id.eq_ignore_ascii_case(name)).copied().ok_or_else(unknown)
    };
    let given = matches.get_many::<String>("code").into_iter().flatten();
    let wanted = given.map(find).collect::<Result<Vec<_>, _>>()?;
    let last = last_run();
    let texts: Vec<String> = wanted.iter().map(|c| explained(c, last.as_ref())).collect();
    output::print(&texts.join("\n")).map_err(Failure::cannot)?;
    Ok(Exit::Fine)
}

fn explained(c: &Code, last: Option<&Record>) -> String {
    let mut text = format!("{}  {}\n\n", c.id, c.name);
    for said in last.iter().flat_map(|r| said_by(r, c.id)) {
        text += &format!("Last run\n  {said}\n");
    }
    // Checks state what should hold, warnings what does not.
    let heading = if c.id.starts_with('E') { "What should hold" } else { "What it says" };
    text += &format!("{heading}\n  {}\nWhat to do\n  {}\n", c.what, c.next);
    if let Some(undo) = c.undo {
        text += &format!("How to undo that\n  {undo}\n");
    }
    text + &format!("Why it matters\n  {}\nHow it is measured\n  {}\n", c.why, c.how)
}

/// The newest run of the history, where there is one.
fn last_run() -> Option<Record> {
    machmeter_store::json::read(&state::past().ok()?.resolve("last").ok()?).ok()
}

/// What a run says under a code. Texts of records are not believed to be without control characters.
fn said_by(record: &Record, id: &str) -> Vec<String> {
    let warnings = record.warnings.iter().filter(|w| w.code == id).map(|w| w.text.clone());
    let checks = record.checks.iter().filter(|c| c.id == id).map(|c| {
        let limit = c.limit.as_ref().map_or(String::new(), |l| format!(" (limit {l})"));
        format!("{:?}: {}{limit}", c.state, c.observed)
    });
    warnings.chain(checks).map(|said| printable(&said)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_unique_and_explained() {
        let all = all(&Registries::default());
        let ids: Vec<&str> = all.iter().map(|c| c.id).collect();
        assert!(ids.is_sorted_by(|a, b| a < b), "{ids:?}");
        for c in all {
            assert!([c.what, c.why, c.how, c.next].iter().all(|text| !text.is_empty()), "{}", c.id);
        }
    }
}
