//! interbench's names of tasks and loads, in its order.

use crate::failure::Failure;

/// A simulation: a benchmark, a load, or both.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Label {
    /// As printed; machmeter's own name is the same in lower case.
    pub(super) label: &'static str,
    pub(super) task: Option<TaskLabel>,
    pub(super) load: Option<LoadLabel>,
}

/// How it is benchmarked.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TaskLabel {
    /// Whether it has deadlines, and a column for them.
    pub(super) deadlines: bool,
    /// Whether `-r` runs it.
    pub(super) real_time: bool,
}

/// How it serves as load.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LoadLabel {
    /// Whether it runs without being named.
    pub(super) by_default: bool,
}

/// What a name is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Task,
    Load,
}

const LOAD: Option<LoadLabel> = Some(LoadLabel { by_default: true });
const NAMED_LOAD: Option<LoadLabel> = Some(LoadLabel { by_default: false });

const fn task(deadlines: bool, real_time: bool) -> Option<TaskLabel> {
    Some(TaskLabel { deadlines, real_time })
}

/// All, in the order in which interbench runs and prints them.
pub(super) const LABELS: &[Label] = &[
    Label { label: "None", task: None, load: LOAD },
    Label { label: "Audio", task: task(true, true), load: None },
    Label { label: "Video", task: task(true, true), load: LOAD },
    Label { label: "X", task: task(true, false), load: LOAD },
    Label { label: "Gaming", task: task(false, false), load: None },
    Label { label: "Burn", task: None, load: LOAD },
    Label { label: "Write", task: None, load: LOAD },
    Label { label: "Read", task: None, load: LOAD },
    Label { label: "Ring", task: None, load: NAMED_LOAD },
    Label { label: "Compile", task: None, load: LOAD },
    Label { label: "Memload", task: None, load: LOAD },
    Label { label: "Hack", task: None, load: NAMED_LOAD },
    CUSTOM,
];

const CUSTOM: Label = Label { label: "Custom", task: task(true, true), load: LOAD };

impl Label {
    /// The name that machmeter's tasks and loads have.
    pub(super) fn own_name(&self) -> String {
        self.label.to_lowercase()
    }

    /// Whether it is described by `-C` and `-I`.
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
    LABELS.iter().filter(|l| l.is(side)).map(|l| l.label).collect::<Vec<_>>().join(", ")
}

/// The label of that name, in any case of letters.
///
/// # Errors
/// A usage error that lists the names there are. Any name may be excluded.
pub(super) fn find(
    program: &str,
    text: &str,
    side: Side,
    excluded: bool,
    custom: bool,
) -> Result<&'static Label, Failure> {
    let (option, what) = match (side, excluded) {
        (Side::Load, false) => ("-w", "load"),
        (Side::Load, true) => ("-x", "load"),
        (Side::Task, false) => ("-W", "benchmark"),
        (Side::Task, true) => ("-X", "benchmark"),
    };
    let found = LABELS.iter().find(|l| l.label.eq_ignore_ascii_case(text) && (excluded || l.is(side)));
    let Some(label) = found else {
        return Err(Failure::usage(format!("{program}: {option}: there is no {what} '{text}'"))
            .help(format!("one of {}", list(side))));
    };
    if label.is_custom() && !custom && !excluded {
        return Err(Failure::usage(format!("{program}: {option} Custom needs -C and -I to describe it"))
            .help("-C 10 -I 20000 is 10 % of a CPU in intervals of 20 ms"));
    }
    Ok(label)
}
