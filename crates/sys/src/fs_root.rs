//! The system's description of itself below a root path: `/` on the host, a directory with a recorded machine in tests.

use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Writes a file of the kernel's, which exists or is not to be had: none is ever created.
pub(crate) fn write_existing(path: &Path, value: &str) -> io::Result<()> {
    fs::OpenOptions::new().write(true).open(path)?.write_all(value.as_bytes())
}

/// A root directory that holds `proc/` and `sys/`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FsRoot {
    root: PathBuf,
}

impl FsRoot {
    pub fn host() -> Self {
        Self::at(Path::new("/"))
    }

    pub(crate) fn at(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub(crate) fn below(&self, path: &str) -> Self {
        Self { root: self.join(path) }
    }

    fn join(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// The trimmed content of a file; bytes that are not UTF-8 are replaced.
    pub fn read(&self, path: &str) -> io::Result<String> {
        let bytes = fs::read(self.join(path))?;
        Ok(String::from_utf8_lossy(&bytes).trim().trim_matches('\0').to_owned())
    }

    /// As [`FsRoot::read`], at most the first `limit_bytes`: some files cost more the further one reads.
    pub fn read_start(&self, path: &str, limit_bytes: u64) -> io::Result<String> {
        let mut bytes = Vec::new();
        fs::File::open(self.join(path))?.take(limit_bytes).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    /// The trimmed content of a file that is there and readable.
    pub fn text(&self, path: &str) -> Option<String> {
        self.read(path).ok()
    }

    pub fn number<T: std::str::FromStr>(&self, path: &str) -> Option<T> {
        self.text(path)?.parse().ok()
    }

    /// Inode number of what a path leads to.
    pub fn inode(&self, path: &str) -> Option<u64> {
        fs::metadata(self.join(path)).ok().map(|m| m.ino())
    }

    pub fn exists(&self, path: &str) -> bool {
        self.join(path).exists()
    }

    /// The numbers of the entries `<prefix><number>` (`cpu0`, `node1`) of a directory, ascending.
    pub fn numbered(&self, directory: &str, prefix: &str) -> Vec<usize> {
        let number = |name: String| {
            let digits = name.strip_prefix(prefix)?;
            digits.bytes().all(|b| b.is_ascii_digit()).then(|| digits.parse().ok())?
        };
        let mut numbers: Vec<usize> = self.names(directory).into_iter().filter_map(number).collect();
        numbers.sort_unstable();
        numbers
    }

    /// The names in a directory, ascending; empty if there is no such directory.
    pub fn names(&self, directory: &str) -> Vec<String> {
        let entries = fs::read_dir(self.join(directory)).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries.filter_map(|e| e.file_name().into_string().ok()).collect();
        names.sort_unstable();
        names
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use tempfile::TempDir;

    use super::*;

    /// A machine of `fixtures/sys/`, written out; kept until the directory is dropped.
    pub(crate) fn recorded(machine: &str) -> (TempDir, FsRoot) {
        let file =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/sys").join(format!("{machine}.txt"));
        tree_of(&fs::read_to_string(&file).unwrap_or_else(|e| panic!("{}: {e}", file.display())))
    }

    /// A recording, written out until it is dropped: lines `path<TAB>content`, with `\n`, `\t` and `\\` escaped.
    pub(crate) fn tree_of(recording: &str) -> (TempDir, FsRoot) {
        let directory = tempfile::tempdir().unwrap();
        for line in recording.lines().filter(|l| !l.is_empty() && !l.starts_with('#')) {
            let (path, content) = line.split_once('\t').unwrap();
            let file = directory.path().join(path);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, unescape(content)).unwrap();
        }
        let tree = FsRoot::at(directory.path());
        (directory, tree)
    }

    fn unescape(content: &str) -> String {
        let parts = content.split(r"\\").map(|part| part.replace(r"\n", "\n").replace(r"\t", "\t"));
        // As the kernel ends its files.
        parts.collect::<Vec<_>>().join("\\") + "\n"
    }

    #[test]
    fn a_recording_is_expanded_and_read_back() {
        let text = "# a comment\nsys/a/cpu10/x\t1\nsys/a/cpu2/x\ttwo\\nlines\\tand \\\\\nsys/a/cpufreq/y\t\n";
        let (_keep, tree) = tree_of(text);
        assert_eq!(tree.number("sys/a/cpu10/x"), Some(1_u32));
        assert_eq!(tree.text("/sys/a/cpu2/x").as_deref(), Some("two\nlines\tand \\"));
        assert_eq!(tree.text("sys/a/cpufreq/y").as_deref(), Some(""));
        assert_eq!(tree.numbered("sys/a", "cpu"), [2, 10]);
        assert_eq!(tree.names("sys/a"), ["cpu10", "cpu2", "cpufreq"]);
        assert!(tree.exists("sys/a") && !tree.exists("sys/b") && tree.numbered("sys/b", "cpu").is_empty());
        assert_eq!(tree.read("sys/b").unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}
