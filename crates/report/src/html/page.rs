//! The document being written.
//!
//! Tables of figures leave out the end tags of cells, which HTML permits: there are thousands of cells.

use std::fmt;

#[derive(Debug, Default)]
pub(super) struct Page(String);

impl Page {
    pub(super) fn raw(&mut self, markup: &str) {
        self.0.push_str(markup);
    }

    /// Adds formatted markup; use through [`put`].
    pub(super) fn write(&mut self, parts: fmt::Arguments<'_>) {
        // Writing to a String can't fail.
        let _ = fmt::Write::write_fmt(&mut self.0, parts);
    }

    pub(super) fn finish(self) -> String {
        self.0
    }
}

/// Adds formatted markup to a [`Page`].
macro_rules! put {
    ($page:expr, $($parts:tt)*) => { $page.write(format_args!($($parts)*)) };
}
pub(super) use put;
