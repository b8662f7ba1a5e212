//! Opens any supported file: a record, a report page that contains one, or files of another tool.

use std::path::PathBuf;

use machmeter_data::Record;

use crate::foreign::{self, Imported, SideFacts};
use crate::{Result, StoreError, json};

/// The content of the files.
#[derive(Debug, Clone, PartialEq)]
pub enum Document {
    Record(Box<Record>),
    /// Raw samples of another tool, still to be analyzed.
    Foreign(Box<Imported>),
}

/// Opens `paths`: one record or report page, or the files (or their common prefix) of one run of another tool.
/// Errors: one line with the file, the position in it, and the expected content.
pub fn open(paths: &[PathBuf], known: &SideFacts) -> Result<Document> {
    if let Some(ours) = paths.iter().find(|p| paths.len() > 1 && p.is_file() && foreign::is_ours(p)) {
        let what = "give one record; machmeter compare takes several";
        return Err(StoreError::new(ours, what.to_owned()));
    }
    if let [path] = paths
        && path.is_file()
    {
        match json::read(path) {
            Ok(record) => return Ok(Document::Record(Box::new(record))),
            // A page, or JSON with this program's format, is not a file of another tool, so its own error is reported.
            Err(e) if foreign::is_ours(path) => return Err(e),
            Err(_) => {}
        }
    }
    Ok(Document::Foreign(Box::new(foreign::read_knowing(paths, known)?)))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;
    use crate::history::tests::sample_record;

    #[test]
    fn records_pages_and_foreign_files_are_told_apart() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str, text: &str| {
            let path = dir.path().join(name);
            fs::write(&path, text).unwrap();
            vec![path]
        };
        let known = SideFacts::default();
        let text = json::to_string(&sample_record()).unwrap();
        let block = machmeter_data::deflated::write(&text);
        let page = format!("<html><script id=\"machmeter-record\">{block}</script></html>");
        for paths in [at("r.json", &text), at("r.html", &page)] {
            assert_eq!(open(&paths, &known).unwrap(), Document::Record(Box::new(sample_record())));
        }
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/foreign");
        for name in ["rt-tests/oslat.json", "ftq-2009/quiet", "ftq-2009/stdout.txt"] {
            let opened = open(&[fixtures.join(name)], &known).unwrap();
            assert!(matches!(opened, Document::Foreign(_)), "{name}");
        }
        for (paths, says) in [
            (at("new.json", &text.replace("\"1.0\"", "\"2.0\"")), "newer than this program"),
            (at("cut.json", &text[..text.len() / 2]), "broken JSON"),
            (at("page.html", "<html></html>"), "without a machmeter record"),
            (at("other.txt", "hello"), "none of the known formats"),
            (vec![dir.path().join("none")], "no such file"),
        ] {
            let e = open(&paths, &known).unwrap_err().to_string();
            assert!(e.contains(says) && e.lines().count() == 1, "{e}");
        }
    }
}
