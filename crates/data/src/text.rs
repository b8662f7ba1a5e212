//! Handles untrusted text: names of processes, and texts of foreign records and files.

/// True for a character that controls a terminal or changes the direction of text.
pub fn steers(c: char) -> bool {
    c.is_control() || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The text in one line, with a space for each character that [`steers`].
pub fn printable(text: &str) -> String {
    text.replace(steers, " ")
}

/// A CSV field by RFC 4180, section 2; line breaks are kept. A text that spreadsheets would evaluate as a formula gets an apostrophe.
pub fn csv_field(text: &str) -> String {
    let is_number = text.parse::<f64>().is_ok();
    let guard = if text.starts_with(['=', '@', '+', '-']) && !is_number { "'" } else { "" };
    if text.contains([',', '"', '\n', '\r']) || text.starts_with(' ') || text.ends_with(' ') {
        format!("\"{guard}{}\"", text.replace('"', "\"\""))
    } else {
        format!("{guard}{text}")
    }
}
