//! Expressions over the costs and laws of records: the calculator of a data sheet, as `100*allreduce(p=P,d=8) + 2000*syscall`.
//!
//! Names are operations with laws or costs in p and d ([`Sheet`]), figures of a record, and one free variable. Sizes are numbers, times have a unit:
//! what cannot be added is refused. An interval holds however errors go together.

mod bind;
mod evaluate;
mod parse;
mod record;
mod sheet;

pub use bind::{Bound, bind};
pub use evaluate::{Answer, Outside};
pub use parse::{Expr, parse};
pub use record::fill;
pub use sheet::Sheet;

/// Why an expression has no value, in one line.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct ExprError {
    /// Fact and cause.
    pub what: String,
    /// What to do; may be empty.
    pub help: String,
}

impl ExprError {
    fn new(what: impl Into<String>) -> Self {
        Self { what: what.into(), help: String::new() }
    }

    fn help(mut self, help: impl Into<String>) -> Self {
        self.help = help.into();
        self
    }
}

/// Power of time in a unit: 1 of ns, -1 of a rate; `None` of what fits all, a literal 0.
pub type Dimension = Option<i32>;
