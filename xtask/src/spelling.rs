//! American spelling of what people read: the book, and texts and comments in the sources.

use std::path::Path;

use anyhow::Result;

use crate::{files, none};

/// British stems of words.
const BRITISH: &str = "neighbour colour behaviour favour honour centre metres grey catalogue analysed optimise normalis initialis \
                       serialis recognis summaris synchronis organis cancelled labelled modelled travelled whilst judgement";

/// Text that quotes others: results of other tools, and generated pages, whose source is checked instead.
const LEFT_OUT: [&str; 4] = ["docs/reference", "fixtures", "vendor", "spelling.rs"];

/// Fails where a page or a source spells a word as the British do.
pub(crate) fn run(root: &Path) -> Result<()> {
    let mut found = Vec::new();
    for path in files(root, &["*.md", "*.rs"])? {
        let name = path.strip_prefix(root).unwrap_or(&path).display().to_string();
        if LEFT_OUT.iter().any(|part| name.contains(part)) {
            continue;
        }
        let text = std::fs::read_to_string(&path)?;
        found.extend(misspelled(&text).into_iter().map(|(line, stem)| format!("{name}:{line}: {stem}")));
    }
    none(&found, "British spelling")
}

/// Lines from 1, each with the British stem. Paths, links and ids keep their letters.
fn misspelled(text: &str) -> Vec<(usize, &'static str)> {
    let mut found = Vec::new();
    for (line, text) in text.lines().enumerate() {
        let text = text.to_lowercase();
        let words = text.split_whitespace().filter(|w| {
            !w.contains(['/', '_', '`', '&', '=', '"']) && !["::", ".md"].iter().any(|p| w.contains(p))
        });
        for word in words {
            let british = BRITISH.split(' ').find(|stem| word.contains(stem));
            found.extend(british.map(|stem| (line + 1, stem)));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn british_words_are_found_and_paths_are_left() {
        let text = "One.\nIts Neighbours, and the modelled cost\n[a](adr/0018-neighbour-on-the-core.md)";
        assert_eq!(misspelled(text), [(2, "neighbour"), (2, "modelled")]);
    }
}
