//! Stable codes. Every check (`E`), warning (`W`) and remark of a model (`M`) has one, with texts for `machmeter explain`.

use crate::record::Warning;

/// One registered code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Code {
    /// `E104`.
    pub id: &'static str,
    /// Short name.
    pub name: &'static str,
    /// Statement of the code.
    pub what: &'static str,
    /// Reason why it matters.
    pub why: &'static str,
    /// Method of measurement.
    pub how: &'static str,
    /// Advice.
    pub next: &'static str,
    /// How to undo the advice.
    pub undo: Option<&'static str>,
}

impl Code {
    /// An important warning: the page prints its `text` as a line.
    pub fn note(&self, text: impl Into<String>) -> Warning {
        Warning { changes: true, ..self.warning(text) }
    }

    /// A warning with this code; `text` states what happened, with figures.
    pub fn warning(&self, text: impl Into<String>) -> Warning {
        Warning { code: self.id.to_owned(), text: text.into(), next: self.next.to_owned(), changes: false }
    }
}

/// A [`Code`]: `code! { "E104" "short name", what: "...", why: "...", how: "...", next: "..." }`, with `undo: "..."` if the advice can be undone. A name in
/// front makes it a constant: `code! { pub NAME = "E104" "short name", ... }`.
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
