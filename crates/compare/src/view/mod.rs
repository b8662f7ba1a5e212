//! A comparison as text: for a terminal or a mail, as Markdown, as CSV.

mod csv;
mod figure;
mod markdown;
mod text;

pub use csv::csv;
pub use markdown::markdown;
pub use text::text;
