//! First stage: includes, macros, comments.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::io::{self, Write};
use std::path::Path;

/// Macros in macros, at most; more would be a circle.
const DEPTH_MAX: usize = 64;

/// Writes the unit `name` in `directory` to `to` with all that it includes, macros expanded, comments removed. Returns the
/// files that were read, in order.
pub(super) fn preprocess(directory: &Path, name: &str, to: &mut impl Write) -> io::Result<Vec<String>> {
    let mut state = State { directory, macros: HashMap::new(), seen: HashSet::new(), files: Vec::new() };
    state.file(name, to)?;
    Ok(state.files)
}

struct State<'d> {
    directory: &'d Path,
    macros: HashMap<String, String>,
    seen: HashSet<String>,
    files: Vec<String>,
}

impl State<'_> {
    fn file(&mut self, name: &str, to: &mut impl Write) -> io::Result<()> {
        if !self.seen.insert(name.to_owned()) {
            return Ok(());
        }
        self.files.push(name.to_owned());
        let path = self.directory.join(name);
        let text = fs::read_to_string(&path)
            .map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", path.display())))?;
        let mut expanded = String::new();
        for line in text.lines() {
            let line = line.split_once("//").map_or(line, |(code, _)| code).trim();
            if let Some(included) = line.strip_prefix("#include ") {
                self.file(included.trim_matches('"'), to)?;
            } else if let Some((name, body)) =
                line.strip_prefix("#define ").and_then(|rest| rest.split_once(' '))
            {
                self.macros.insert(name.to_owned(), body.to_owned());
            } else if !line.is_empty() {
                expanded.clear();
                self.expand(line, 0, &mut expanded)?;
                expanded.push('\n');
                to.write_all(expanded.as_bytes())?;
            }
        }
        Ok(())
    }

    fn expand(&self, text: &str, depth: usize, to: &mut String) -> io::Result<()> {
        if depth > DEPTH_MAX {
            return Err(io::Error::other(format!("macros go in a circle: {text}")));
        }
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let mut rest = text;
        while let Some(start) = rest.find(is_word) {
            to.push_str(&rest[..start]);
            let end = rest[start..].find(|c| !is_word(c)).map_or(rest.len(), |n| start + n);
            let word = &rest[start..end];
            match self.macros.get(word) {
                Some(body) => self.expand(body, depth + 1, to)?,
                None => to.push_str(word),
            }
            rest = &rest[end..];
        }
        to.push_str(rest);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(files: &[(&str, &str)]) -> io::Result<(String, Vec<String>)> {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in files {
            fs::write(directory.path().join(name), text).unwrap();
        }
        let mut out = Vec::new();
        let read = preprocess(directory.path(), files[0].0, &mut out)?;
        Ok((String::from_utf8(out).unwrap(), read))
    }

    #[test]
    fn includes_come_once_macros_are_expanded_and_comments_go() {
        let (text, read) = of(&[
            ("u", "// c\n#include \"h1\"\n#include \"h0\"\nx = H1_0 + H1_00; // y\n\n"),
            ("h0", "#define H0 5\nin h0\n"),
            ("h1", "#include \"h0\"\n#define H1_0 (H0 * 2)\nin h1\n"),
        ])
        .unwrap();
        assert_eq!(text, "in h0\nin h1\nx = (5 * 2) + H1_00;\n");
        assert_eq!(read, ["u", "h1", "h0"]);
    }

    #[test]
    fn circles_end_and_absent_headers_are_named() {
        let e = of(&[("u", "#define A B\n#define B A\nx = A;\n")]).unwrap_err().to_string();
        assert!(e.contains("circle"), "{e}");
        let e = of(&[("u", "#include \"h9\"\n")]).unwrap_err().to_string();
        assert!(e.contains("h9"), "{e}");
        assert_eq!(of(&[("u", "#include \"u\"\n1\n")]).unwrap().0, "1\n");
    }
}
