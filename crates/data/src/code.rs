//! Stable codes: every check (`E`), warning (`W`) and model remark (`M`) has one, with a text for `machmeter explain`.

use crate::record::Warning;

/// One registered code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Code {
    /// `E104`.
    pub id: &'static str,
    /// Short name.
    pub name: &'static str,
    /// What it says.
    pub what: &'static str,
    /// Why it matters.
    pub why: &'static str,
    /// How it is measured.
    pub how: &'static str,
    /// What to do.
    pub next: &'static str,
    /// How to undo that.
    pub undo: Option<&'static str>,
}

impl Code {
    /// A warning that changes what is read on the page of the whole machine: its `text` is a line.
    pub fn note(&self, text: impl Into<String>) -> Warning {
        Warning { changes: true, ..self.warning(text) }
    }

    /// A warning of this code; `text`: what happened, with figures.
    pub fn warning(&self, text: impl Into<String>) -> Warning {
        Warning { code: self.id.to_owned(), text: text.into(), next: self.next.to_owned(), changes: false }
    }
}
