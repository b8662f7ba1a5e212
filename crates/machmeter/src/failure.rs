//! Errors of the program: one line and one line of advice, as text, or as a record under `--json`.

use std::ffi::OsString;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use machmeter_data::text::printable;
use machmeter_engine::ProbeError;

use crate::session::{empty_record, warning};
use crate::{Exit, output};

#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) exit: Exit,
    pub(crate) what: String,
    pub(crate) help: Option<String>,
}

impl Failure {
    pub(crate) fn usage(what: impl fmt::Display) -> Self {
        Self { exit: Exit::Usage, what: one_line(&what.to_string()), help: None }
    }

    /// An error of the system.
    pub(crate) fn cannot(what: impl fmt::Display) -> Self {
        Self { exit: Exit::CannotMeasure, what: one_line(&what.to_string()), help: None }
    }

    pub(crate) fn help(mut self, help: impl fmt::Display) -> Self {
        self.help = Some(one_line(&help.to_string()));
        self
    }

    /// Adds `help` to a usage error, unless its own help names another command (`compat`).
    pub(crate) fn ending_in(mut self, help: &str) -> Self {
        if self.exit == Exit::Usage && !self.help.as_ref().is_some_and(|own| own.ends_with(" -h")) {
            self.help = Some(self.help.map_or_else(|| help.to_owned(), |own| format!("{own}; {help}")));
        }
        self
    }

    /// Prints the error to stderr, and as a record to stdout if requested; returns the exit code.
    pub(crate) fn report(self, as_json: bool) -> Exit {
        output::say(&format!("error: {}", self.what));
        if let Some(help) = &self.help {
            output::say(&format!("help: {help}"));
        }
        if as_json {
            let mut record = empty_record();
            "error".clone_into(&mut record.stopped_by);
            record.warnings.push(warning("W900", self.what, &self.help.unwrap_or_default()));
            if let Ok(text) = machmeter_store::json::to_string(&record) {
                let _ = output::print(&text);
            }
        }
        self.exit
    }
}

impl From<ProbeError> for Failure {
    fn from(e: ProbeError) -> Self {
        match e {
            ProbeError::Usage(what) => Self::usage(what),
            ProbeError::Cannot(_) | ProbeError::DryRun => Self::cannot(e),
        }
    }
}

/// Message and position of a defect of this program.
static DEFECT: Mutex<Option<String>> = Mutex::new(None);

/// Keeps the first panic for [`defect`] instead of printing it in several lines. `RUST_BACKTRACE` then has no effect.
pub(crate) fn tell_defects_in_one_line() {
    std::panic::set_hook(Box::new(|info| {
        let said = info.payload_as_str().unwrap_or("no message");
        let place = info.location().map_or_else(String::new, |l| format!(" ({}:{})", l.file(), l.line()));
        DEFECT.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(|| format!("{said}{place}"));
    }));
}

pub(crate) fn defect() -> Failure {
    let said = DEFECT.lock().unwrap_or_else(PoisonError::into_inner).take();
    Failure::cannot(format!("a bug in this program: {}", said.unwrap_or_default()))
        .help("please report this line together with the command")
}

/// Most characters kept at the beginning and at the end of a message; the middle is left out.
const TOLD: [usize; 2] = [600, 300];

fn one_line(text: &str) -> String {
    let text = printable(&text.split_whitespace().collect::<Vec<_>>().join(" "));
    let behind = text.chars().count().saturating_sub(TOLD[1]);
    if behind <= TOLD[0] {
        return text;
    }
    let part = |skipped, n| text.chars().skip(skipped).take(n).collect::<String>();
    format!("{} ... {}", part(0, TOLD[0]), part(behind, TOLD[1]))
}

/// True if stdout must be a JSON document. Decided before the command line is parsed, so that a wrong one gets a document, too.
pub(crate) fn wants_json(arguments: &[OsString]) -> bool {
    arguments.iter().take_while(|a| *a != "--").any(|a| a == "--json" || a == "--json=-")
}
