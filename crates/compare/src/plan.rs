//! The plan of a run: its verb, options, level, time, CPUs and machine. Only runs with the same plan measure the variation between runs.

use machmeter_data::Record;

use crate::environment::same_state;

/// Options of a command line that take a value and do not affect the measurement.
const OUTPUT_WITH_VALUE: [&str; 7] = ["-o", "--output", "--tag", "--name", "-n", "--raw", "--seed"];
/// Options of a command line that do not affect the measurement; a value follows after `=`.
const OUTPUT: [&str; 7] = ["--json", "--csv", "--md", "-q", "--quiet", "-v", "--no-save"];

/// Everything that the figures of a run depend on, except the state of the machine.
fn plan(r: &Record) -> impl PartialEq + '_ {
    let run = &r.run;
    let program = (&r.tool, &run.verb, &run.parameters);
    (program, &run.level, time(&run.command), &run.policy, &run.cpus, &r.machine.fingerprint)
}

/// True if two runs have one plan on one machine, without a difference in the environment.
pub fn is_alike(a: &Record, b: &Record) -> bool {
    plan(a) == plan(b) && same_state(a, b)
}

/// The command that repeats a run: its command line without options for output.
pub(crate) fn command(r: &Record) -> String {
    let mut words = r.run.command.iter().skip(1);
    let mut kept = vec!["machmeter"];
    while let Some(word) = words.next() {
        let is_one = |of: &[&str]| of.iter().any(|o| word.split('=').next() == Some(o));
        match () {
            () if OUTPUT_WITH_VALUE.contains(&word.as_str()) => drop(words.next()),
            () if is_one(&OUTPUT) || is_one(&OUTPUT_WITH_VALUE) => {}
            () => kept.push(word.as_str()),
        }
    }
    // A record without a command line gets its verb and level.
    if r.run.command.is_empty() && r.run.verb != "characterize" {
        kept.push(&r.run.verb);
    }
    if r.run.command.is_empty() && !["", "standard"].contains(&r.run.level.as_str()) {
        kept.extend(["-l", &r.run.level]);
    }
    kept.join(" ")
}

fn time(command: &[String]) -> Option<String> {
    let at = command.iter().position(|w| w == "-t" || w == "--time");
    let inline = || command.iter().find_map(|w| w.strip_prefix("--time=").or_else(|| w.strip_prefix("-t")));
    at.and_then(|at| command.get(at + 1)).map(String::as_str).or_else(inline).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(line: &str) -> Record {
        let mut r = Record::default();
        r.run.command = line.split(' ').map(str::to_owned).collect();
        r
    }

    #[test]
    fn a_command_is_repeated_without_its_output() {
        let of = |line| command(&run(line));
        assert_eq!(of("/usr/bin/machmeter ops -l quick --tag side=a -n 3 -q"), "machmeter ops -l quick");
        assert_eq!(of("machmeter -t 10 --json=x.json -o y.html --raw all"), "machmeter -t 10");
        let mut bare = Record::default();
        (bare.run.verb, bare.run.level) = ("ops".to_owned(), "quick".to_owned());
        assert_eq!(command(&bare), "machmeter ops -l quick");
    }

    #[test]
    fn runs_of_other_times_are_of_another_plan() {
        assert!(is_alike(&run("m ops -t 10"), &run("m ops --tag a=b --time=10")));
        for other in ["m ops", "m ops -t 20", "m ops -t20"] {
            assert!(!is_alike(&run("m ops -t 10"), &run(other)), "{other}");
        }
    }
}
