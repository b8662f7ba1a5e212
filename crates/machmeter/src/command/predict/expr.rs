//! `machmeter predict --expr EXPR --on RECORD`: evaluates expressions over the costs and laws of records.

use std::path::{Path, PathBuf};

use machmeter_data::record::Warning;
use machmeter_simulate::expr::{self, Answer, ExprError, Outside, Sheet};
use serde_json::json;

use super::MEASURE_THERE;
use crate::command::keep::keep_figures;
use crate::command::simulate::{doublings, record_of};
use crate::command::{measure, report};
use crate::session::warning;
use crate::{Exit, Failure, Globals, output};

/// A free variable and its values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Over {
    name: String,
    values: Vec<u64>,
}

/// Parses `P=2-4096`: all doublings of the first value up to the last, and the last.
pub(super) fn over(text: &str) -> Result<Over, String> {
    let wrong = || format!("'{text}' is not a variable with a range, such as P=2-4096 or d=8-1M");
    let (name, range) = text.split_once('=').ok_or_else(wrong)?;
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let values = doublings(range, 1, 1 << 53).filter(|_| is_name).ok_or_else(wrong)?;
    Ok(Over { name: name.to_owned(), values: values.collect() })
}

fn refused(e: &ExprError) -> Failure {
    let failure = Failure::usage(format!("--expr: {e}"));
    if e.help.is_empty() { failure } else { failure.help(&e.help) }
}

/// Prints the names that an expression can use.
fn listed(sheet: &Sheet, globals: &Globals) -> Result<Exit, Failure> {
    let (lines, target) = (sheet.listing(), globals.json.as_deref());
    let text = match target {
        Some(_) => serde_json::to_string_pretty(&lines).map_err(Failure::cannot)?,
        None => lines.join("\n"),
    };
    output::put(target.unwrap_or(Path::new("-")), &format!("{text}\n")).map_err(Failure::cannot)?;
    Ok(Exit::Fine)
}

/// Evaluates and prints an expression. `on` is the record of costs, then records for the figures that it lacks.
pub(super) fn run(
    text: &str,
    over: Option<&Over>,
    on: &[&PathBuf],
    globals: &Globals,
) -> Result<Exit, Failure> {
    let records = report::records(on)?;
    let Some(first) = records.first() else {
        return Err(Failure::usage("no costs for the expression")
            .help("give --on RECORD, a run of any probe; more with --with"));
    };
    let sheet = Sheet::of(&records);
    if text.trim() == "list" {
        return listed(&sheet, globals);
    }
    let expr = expr::parse(text).map_err(|e| refused(&e))?;
    let variable = over.map(|o| o.name.as_str());
    let bound = expr::bind(&expr, &sheet, variable).map_err(|e| refused(&e))?;
    if !bound.has_unit() {
        let what = format!("--expr: the result is a time to the power of {}", bound.dimension);
        return Err(Failure::usage(what).help("the result must be a time, a rate or a number"));
    }
    let values: Vec<f64> = over.map_or_else(|| vec![0.0], |o| o.values.iter().map(|v| *v as f64).collect());
    let answer = |at: f64| Ok((at, bound.at(at).map_err(|e| refused(&of_variable(&e, variable, at)))?));
    let answers: Vec<(f64, Answer)> = values.into_iter().map(answer).collect::<Result<_, Failure>>()?;
    if globals.dry_run {
        let what =
            format!("plan: {text} with the costs of {} records, {} values", records.len(), answers.len());
        return measure::planned(globals, &what);
    }
    let ids: Vec<&str> = records.iter().map(|r| r.id.as_str()).collect();
    let parameters = json!({ "expr": text, "on": ids, "over": over.map(|o| json!({ "name": o.name, "values": o.values })) });
    let mut record = record_of("predict", parameters, first.machine.clone(), globals);
    let name = |run: &&PathBuf| run.file_name().map_or(String::new(), |n| n.to_string_lossy().into_owned());
    let names: Vec<String> = on.iter().map(name).collect();
    let title = format!("{text}, by {}", names.join(", "));
    expr::fill(&mut record, &title, text, &bound, variable, &answers);
    let mut outside = Outside::default();
    for (_, answer) in &answers {
        outside.add(&answer.outside);
    }
    for line in outside.lines(&sheet) {
        record.warn(Warning { changes: true, ..warning("W911", line, MEASURE_THERE) });
    }
    Ok(keep_figures(record, globals))
}

/// Adds the position in the range to an error.
fn of_variable(e: &ExprError, variable: Option<&str>, at: f64) -> ExprError {
    let place = variable.map_or(String::new(), |v| format!(" at {v} = {at}"));
    ExprError { what: format!("{}{place}", e.what), help: e.help.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_double_and_have_their_ends() {
        let values = |text: &str| over(text).unwrap().values;
        assert_eq!(values("P=2-16"), [2, 4, 8, 16]);
        assert_eq!(values("d=8-1K").len(), 8);
        assert_eq!(values("P=3-10"), [3, 6, 10]);
        assert_eq!(values("P=7"), [7]);
        for wrong in ["P", "P=", "=2-4", "P=4-2", "P=0-4", "2=2-4", "a b=1-2", "P=1-9e99", "P=-1-2"] {
            assert!(over(wrong).is_err(), "{wrong}");
        }
    }
}
