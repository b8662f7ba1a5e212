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

/// A [`Code`]: `code! { "E104" "short name", what: "...", why: "...", how: "...", next: "..." }`, with `undo: "..."` where what it advises
/// can be undone; as a constant with a name in front: `code! { pub NAME = "E104" "short name", ... }`.
#[macro_export]
macro_rules! code {
    (@undo) => { None };
    (@undo $undo:expr) => { Some($undo) };
    ($vis:vis $const:ident = $id:literal $name:literal, what: $what:literal, $($rest:tt)*) => {
        #[doc = $what]
        $vis const $const: $crate::Code = $crate::code!($id $name, what: $what, $($rest)*);
    };
    (
        $id:literal $name:literal,
        what: $what:expr, why: $why:expr, how: $how:expr, next: $next:expr $(, undo: $undo:expr)? $(,)?
    ) => {
        $crate::Code {
            id: $id,
            name: $name,
            what: $what,
            why: $why,
            how: $how,
            next: $next,
            undo: $crate::code!(@undo $($undo)?),
        }
    };
}
