//! `machmeter explain CODE...`: prints the last run's text under a code, the meaning of the code, its importance, advice, and how to undo it.

use clap::{Arg, ArgMatches, Command};
use machmeter_data::{Code, Record, code};
use machmeter_report::terminal::printable;

use crate::{Exit, Failure, Globals, Registries, Result, output, state};

pub(crate) const CODES: &[Code] = &[
    code! { "W900" "not measured",
        what: "The command failed. The record contains the reason and no figures.",
        why: "With --json, stdout is a valid document in every outcome.",
        how: "The record is written if --json was given and the command failed.",
        next: "Follow the text of the warning.",
    },
    code! { "W901" "run not saved",
        what: "The run, or its best values, could not be saved in the state directory.",
        why: "`report last`, `compare last~1 last` and comparisons with the best earlier values need saved runs.",
        how: "The state directory is MACHMETER_STATE, XDG_STATE_HOME/machmeter or ~/.local/state/machmeter.",
        next: "Make that directory writable, name a file with -o, or give --no-save.",
    },
    code! { "W902" "raw samples missing",
        what: "The record was saved without its raw samples.",
        why: "Figures and charts are complete, but the samples cannot be analyzed again later.",
        how: "Writing the Parquet files failed, usually because the disk was full.",
        next: "Free disk space, or give --raw none.",
    },
    code! { "W903" "part not measured",
        what: "A part of the page was not measured; the other parts were.",
        why: "The record has no figures of that part.",
        how: "The probe or the system refused the part.",
        next: "The text gives the reason. Often more time helps: -t 30 or more for the whole page.",
    },
    code! { "W904" "process lost",
        what: "A signal that machmeter did not send ended a process of the run. The run is partial.",
        why: "The measurements or the load of that process are missing, even if figures exist without them.",
        how: "The exit status of the process.",
        next: "Run again. dmesg shows whether memory ran out.",
    },
    code! { "W910" "parameter assumed",
        what: "A simulation assumed a value for a parameter that the link's record does not contain or only bounds.",
        why: "Simulated times are wrong by the error of that value.",
        how: "Figures net.latency, net.overhead_send, net.overhead_recv and net.gap of the run given with --on have no value. Each states the reason.",
        next: "Measure the link again with more time, or choose another link with --link.",
    },
    code! { "W911" "cost extrapolated",
        what: "A prediction uses a law or cost at a number of ranks or bytes that was not measured.",
        why: "Libraries change their algorithms with ranks and sizes. Outside the measured range a law may be far off, and its interval does not include this error.",
        how: "Ranks and sizes of mpi.cost or simulate.cost of the operation in the run given with --on.",
        next: "Measure there: machmeter mpi with more ranks or sizes, or machmeter simulate --table for more ranks than the machine has.",
    },
    code! { "W912" "calls left out",
        what: "Some calls of a trace are not replayed: they take no time, and no rank waits for them.",
        why: "The prediction is too short by the cost of these calls.",
        how: "One-sided and neighborhood calls, file operations, message probes, messages without a trace of the other side, collectives that do not match.",
        next: "Check their share of the time in the trace. Predict with the costs of the traced machine, and compare with the trace.",
    },
    code! { "W913" "order assumed",
        what: "A trace does not record which message or request a call took. The replay assumes the order of the calls.",
        why: "If the program took messages in another order, other ranks wait in the prediction than in the program.",
        how: "Receives from any rank, waits for one of several requests, starts of persistent requests.",
        next: "If the program keeps this order, do nothing. Else trace a program that names the ranks and waits for all requests.",
    },
    code! { "W914" "ranks share CPUs",
        what: "There are more ranks than CPUs of the traced machine, or of the machine whose costs are used.",
        why: "Each rank of a replay has its own CPU. The traced computation of ranks that shared a CPU includes the time of the other ranks.",
        how: "cpu.count of the records.",
        next: "Trace no more ranks than CPUs. For more ranks, use costs of a cluster, or of one link with simulated collectives (simulate --table).",
    },
    code! { "W915" "collective costs do not vary",
        what: "A parameter was varied (--vary), but the collectives of the program have a measured cost that does not depend on it.",
        why: "The predicted change covers single messages only. The real change is larger.",
        how: "Collectives use their measured laws or costs, which no message parameter enters.",
        next: "Replay them message by message: --algorithm allreduce=recursive-doubling. `machmeter simulate --pattern list` shows all algorithms.",
    },
    code! { "W916" "traced without a CPU",
        what: "Threads of the traced program had no CPU for more than a tenth of their time: they slept, or other threads used it.",
        why: "No model covers the time that a rank waits for a CPU inside a call. A run takes longer than predicted, by up to that share, and the \
              interval does not include it.",
        how: "mpi.on_cpu of the trace is below 0.9. With a CPU all the time, predictions were off by up to 0.11; here that much time is missing.",
        next: "Trace with one CPU per rank and no other load: mpirun --bind-to core, or a real-time priority (chrt -f 1).",
    },
];

/// All codes of the program, its checks and its probes.
pub(crate) fn all(registries: &Registries) -> Vec<&'static Code> {
    let mut all: Vec<&'static Code> = machmeter_doctor::codes().collect();
    all.extend(registries.probes.iter().flat_map(|p| p.info.codes()));
    all.extend(
        [&super::trace::INFO, &machmeter_noise::beside::INFO]
            .into_iter()
            .flat_map(machmeter_engine::Info::codes),
    );
    all.extend(machmeter_store::foreign::codes::CODES);
    all.extend(CODES);
    all.sort_by_key(|c| c.id);
    // Several probes share a code.
    all.dedup();
    all
}

pub(super) fn define(name: &'static str) -> Command {
    Command::new(name).about("Explain the code of a check or note, and what to do").arg(
        Arg::new("code").value_name("CODE").num_args(1..).required(true).help("Codes such as E104 or W301"),
    )
}

pub(super) fn run(registries: &Registries, _: &Globals, matches: &ArgMatches) -> Result<Exit> {
    let all = all(registries);
    let find = |name: &String| {
        let unknown =
            || Failure::usage(format!("no code '{name}'")).help("machmeter list codes prints all codes");
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
    // The text of a check is a condition that should hold; the text of a warning is one that does not.
    let heading = if c.id.starts_with('E') { "What should hold" } else { "What it means" };
    text += &format!("{heading}\n  {}\nWhat to do\n  {}\n", c.what, c.next);
    if let Some(undo) = c.undo {
        text += &format!("How to undo that\n  {undo}\n");
    }
    text + &format!("Why it matters\n  {}\nHow it is measured\n  {}\n", c.why, c.how)
}

/// The newest run of the history, if there is one.
fn last_run() -> Option<Record> {
    machmeter_store::json::read(&state::past().ok()?.resolve("last").ok()?).ok()
}

/// The texts of a run under a code. Texts of records may contain control characters, which are removed.
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
