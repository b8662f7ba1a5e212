//! A comparison as text: for a terminal or a mail, as Markdown, as CSV, as a page.

mod csv;
mod figure;
mod forest;
mod markdown;
mod text;

pub use csv::csv;
pub use figure::calibration;
pub use forest::html;
pub use markdown::markdown;
pub use text::text;
