//! Views of a comparison: text for a terminal or e-mail, Markdown, CSV, HTML page.

mod csv;
mod figure;
mod forest;
mod markdown;
mod text;

pub use csv::csv;
pub use figure::calibration;
pub use forest::{Reports, html};
pub use markdown::markdown;
pub use text::text;
