//! interbench's names of tasks and loads, in its order.

use crate::{Failure, Result};

/// A simulation: a benchmark, a load, or both.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Simulation {
    /// The printed name; machmeter's name is the same in lower case.
    pub(super) label: &'static str,
    pub(super) task: Option<AsTask>,
    /// For a load: true if it runs without being named.
    pub(super) load: Option<bool>,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) struct AsTask {
    /// True if it has deadlines, and a column for them.
    pub(super) deadlines: bool,
    /// True if `-r` runs it.
    pub(super) real_time: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Task,
    Load,
}

const LOAD: Option<bool> = Some(true);
const NAMED_LOAD: Option<bool> = Some(false);

const fn task(deadlines: bool, real_time: bool) -> AsTask {
    AsTask { deadlines, real_time }
}

/// All simulations, in the order in which interbench runs and prints them.
pub(super) const SIMULATIONS: &[Simulation] = &[
    Simulation { label: "None", task: None, load: LOAD },
    Simulation { label: "Audio", task: Some(task(true, true)), load: None },
    Simulation { label: "Video", task: Some(task(true, true)), load: LOAD },
    Simulation { label: "X", task: Some(task(true, false)), load: LOAD },
    Simulation { label: "Gaming", task: Some(task(false, false)), load: None },
    Simulation { label: "Burn", task: None, load: LOAD },
    Simulation { label: "Write", task: None, load: LOAD },
    Simulation { label: "Read", task: None, load: LOAD },
    Simulation { label: "Ring", task: None, load: NAMED_LOAD },
    Simulation { label: "Compile", task: None, load: LOAD },
    Simulation { label: "Memload", task: None, load: LOAD },
    Simulation { label: "Hack", task: None, load: NAMED_LOAD },
    CUSTOM,
];

const CUSTOM: Simulation = Simulation { label: "Custom", task: Some(task(true, true)), load: LOAD };

impl Simulation {
    /// The name of the task or load in machmeter.
    pub(super) fn own_name(&self) -> String {
        self.label.to_lowercase()
    }

    /// True if `-C` and `-I` describe it.
    pub(super) fn is_custom(&self) -> bool {
        *self == CUSTOM
    }

    fn is(&self, side: Side) -> bool {
        match side {
            Side::Task => self.task.is_some(),
            Side::Load => self.load.is_some(),
        }
    }
}

/// The names of a side, for messages.
pub(super) fn list(side: Side) -> String {
    SIMULATIONS.iter().filter(|l| l.is(side)).map(|l| l.label).collect::<Vec<_>>().join(", ")
}

/// The simulation with this name, in any case of letters. `excluded` allows every name.
/// Errors: a usage error that lists the known names.
pub(super) fn find(
    program: &str,
    text: &str,
    side: Side,
    excluded: bool,
    custom: bool,
) -> Result<&'static Simulation> {
    let (option, what) = match (side, excluded) {
        (Side::Load, false) => ("-w", "load"),
        (Side::Load, true) => ("-x", "load"),
        (Side::Task, false) => ("-W", "benchmark"),
        (Side::Task, true) => ("-X", "benchmark"),
    };
    let found = SIMULATIONS.iter().find(|l| l.label.eq_ignore_ascii_case(text) && (excluded || l.is(side)));
    let Some(label) = found else {
        return Err(Failure::usage(format!("{program}: {option}: no {what} '{text}'"))
            .help(format!("one of {}", list(side))));
    };
    if label.is_custom() && !custom && !excluded {
        return Err(Failure::usage(format!("{program}: {option} Custom needs -C and -I"))
            .help("-C 10 -I 20000 is 10 % of a CPU at intervals of 20 ms"));
    }
    Ok(label)
}
