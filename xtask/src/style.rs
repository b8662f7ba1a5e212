//! The style of prose: turns of phrase that pages and comments must not use, because readers stumble over them.
//!
//! A page or crate whose prose was rewritten stays free of them. The rest is listed in [`NOT_YET`]; a name leaves that list when its
//! prose is rewritten, and none is added.

use std::path::Path;

use anyhow::Result;

use crate::{files, none};

/// Words and phrases in lower case, each between spaces.
const REFUSED: [&str; 16] = [
    "somebody",
    "nobody",
    "anybody",
    "is told",
    "are told",
    "was told",
    "is had",
    "are had",
    "is meant",
    "are meant",
    "so many",
    "so many-th",
    "one's own",
    "says of itself",
    "goes round",
    "to be had",
];

/// Pages and sources with prose of the old style, by the begin of their path; decision records stay as they were written.
const NOT_YET: &str = "docs/adr docs/reference docs/noise/ docs/mpi docs/net docs/flow docs/compat docs/sync docs/ops crates/costs crates/engine \
                       crates/flow crates/interactive crates/loads crates/loops crates/machine-code crates/model crates/mpi crates/net \
                       crates/noise crates/pmpi crates/simulate crates/stats crates/sys fuzz fixtures bench xtask";

/// Fails if a page, or a comment of a source, uses a phrase of [`REFUSED`].
pub(crate) fn run(root: &Path) -> Result<()> {
    let mut found = Vec::new();
    for path in files(root, &["*.md", "*.rs"])? {
        let name = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        if NOT_YET.split_whitespace().any(|begin| name.starts_with(begin)) {
            continue;
        }
        let text = std::fs::read_to_string(&path)?;
        let is_page = path.extension().is_some_and(|e| e == "md");
        found.extend(
            stumbles(&text, is_page).into_iter().map(|(line, phrase)| format!("{name}:{line}: {phrase}")),
        );
    }
    none(&found, "refused phrases (xtask/src/style.rs)")
}

/// Lines from 1, each with a refused phrase: of a page those outside code blocks, of a source its comments.
fn stumbles(text: &str, is_page: bool) -> Vec<(usize, &'static str)> {
    let mut found = Vec::new();
    let mut is_code = false;
    for (line, text) in text.lines().enumerate() {
        let begin = text.trim_start();
        if is_page && begin.starts_with("```") {
            is_code = !is_code;
        }
        if is_code || !(is_page || begin.starts_with("//")) {
            continue;
        }
        let letter =
            |c: char| if c.is_alphanumeric() || c == '\'' || c == '-' { c.to_ascii_lowercase() } else { ' ' };
        // Names between backticks are no prose.
        let prose: Vec<&str> = text.split('`').step_by(2).collect();
        let words = prose.join(" ").chars().map(letter).collect::<String>();
        let words = format!(" {} ", words.split_whitespace().collect::<Vec<_>>().join(" "));
        let uses = |phrase: &&&str| words.contains(&format!(" {phrase} "));
        found.extend(REFUSED.iter().filter(uses).map(|phrase| (line + 1, *phrase)));
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phrases_are_found_in_prose_and_comments_only() {
        let page = "Nobody knows `somebody`.\n```\nnobody\n```\nEach run is\ntold; it is told so.\nbusybody";
        assert_eq!(stumbles(page, true), [(1, "nobody"), (6, "is told")]);
        let source = "let nobody = 1; // so many\n    // So many times\n/// one's own";
        assert_eq!(stumbles(source, false), [(2, "so many"), (3, "one's own")]);
    }
}
