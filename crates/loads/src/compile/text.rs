//! What is built: a program of headers and units made of random words, and what the stages of a build do to its text.
//!
//! ```text
//! #include h07            all lines of another file, once a unit
//! // w1a3 w90c            a comment
//! w04f w7b2 w04f w611     words, mostly of those used before
//! ```

use std::fmt::Write as _;
use std::fs;
use std::io::{self, Write};
use std::path::Path;

use machmeter_stats::random::Random;

pub(super) const UNITS: usize = 64;
const HEADERS: usize = 40;

/// Bytes that the source may take at most (tested; about 2.4 MB is usual).
pub(super) const SOURCE_BYTES: u64 = 4 << 20;

/// Lines of units (mean, most) and of headers: a unit with its headers has 90 kB on average.
const UNIT_LINES: (f64, usize) = (900.0, 3_000);
const HEADER_LINES: (f64, usize) = (75.0, 400);
const WORDS_PER_LINE: usize = 8;
const DIFFERENT_WORDS: usize = 1 << 12;

/// Passes over the text of a unit. Two take 13 ms of CPU time (measured on a server with 2.6 GHz).
const PASSES: u64 = 2;

fn header_name(number: usize) -> String {
    format!("h{number:02}")
}

pub(super) fn unit_name(number: usize) -> String {
    format!("u{number:02}")
}

pub(super) fn generate(directory: &Path, seed: u64) -> io::Result<u64> {
    let mut random = Random::new(seed);
    let mut bytes = 0;
    let mut write = |name: String, text: String| {
        bytes += text.len() as u64;
        fs::write(directory.join(name), text)
    };
    for number in 0..HEADERS {
        // Headers include lower ones only, so that there are no circles.
        write(header_name(number), file(number.min(3), number, HEADER_LINES, &mut random))?;
    }
    for number in 0..UNITS {
        let included = 5 + random.below(5);
        write(unit_name(number), file(included, HEADERS, UNIT_LINES, &mut random))?;
    }
    Ok(bytes)
}

/// Text of a file that includes so many of the lowest `headers`. Sizes of files are skewed: many small, a few large.
fn file(included: usize, headers: usize, (mean, most): (f64, usize), random: &mut Random) -> String {
    let mut text = String::new();
    for _ in 0..included {
        let _ = writeln!(text, "#include {}", header_name(random.below(headers)));
    }
    for _ in 0..(1 + (random.exponential() * mean) as usize).min(most) {
        text.push_str(if random.below(8) == 0 { "//" } else { "" });
        for _ in 0..WORDS_PER_LINE {
            let _ = write!(text, "w{:03x} ", random.below(DIFFERENT_WORDS));
        }
        text.push('\n');
    }
    text
}

/// First stage: writes `name` with all that it includes that is not in `files`, without comments; notes what it read.
pub(super) fn gather(
    directory: &Path,
    name: &str,
    files: &mut Vec<String>,
    to: &mut impl Write,
) -> io::Result<()> {
    if files.iter().any(|f| f == name) {
        return Ok(());
    }
    files.push(name.to_owned());
    let path = directory.join(name);
    let text = fs::read_to_string(&path)
        .map_err(|e| io::Error::new(e.kind(), format!("{}: {e}", path.display())))?;
    for line in text.lines().filter(|l| !l.starts_with("//")) {
        match line.strip_prefix("#include ") {
            Some(included) => gather(directory, included, files, to)?,
            None => writeln!(to, "{line}")?,
        }
    }
    Ok(())
}

/// Second stage: each pass sorts all words and replaces each by its place and a hash of its line so far, as long as before.
pub(super) fn transform(text: String) -> String {
    (0..PASSES).fold(text, |text, pass| {
        let mut words: Vec<&str> = text.split_ascii_whitespace().collect();
        words.sort_unstable();
        words.dedup();
        let mut out = String::with_capacity(text.len());
        for line in text.lines() {
            let mut hash = pass;
            for word in line.split_ascii_whitespace() {
                let place = words.binary_search(&word).unwrap_or_default() as u64;
                hash = checksum(hash, word.as_bytes());
                let _ = write!(out, "{:03x}{:x} ", place & 0xfff, hash & 0xf);
            }
            out.push('\n');
        }
        out
    })
}

/// Third stage: the bytes of an object file, the last eight a checksum of the rest.
pub(super) fn seal(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.extend(checksum(0, &bytes).to_le_bytes());
    bytes
}

pub(super) fn open(bytes: &[u8]) -> Result<&[u8], &'static str> {
    let (rest, sum) = bytes.split_last_chunk::<8>().ok_or("too short")?;
    if checksum(0, rest) == u64::from_le_bytes(*sum) { Ok(rest) } else { Err("damaged") }
}

/// FNV-1a of 64 bits (Fowler, Noll, Vo 1991), begun with `seed`.
fn checksum(seed: u64, bytes: &[u8]) -> u64 {
    let begin = 0xcbf2_9ce4_8422_2325 ^ seed;
    bytes.iter().fold(begin, |h, b| (h ^ u64::from(*b)).wrapping_mul(0x0000_0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn the_seed_determines_the_program_and_it_keeps_to_its_size() {
        let written = |seed| {
            let directory = tempfile::tempdir().unwrap();
            let bytes = generate(directory.path(), seed).unwrap();
            assert_eq!(fs::read_dir(directory.path()).unwrap().count(), UNITS + HEADERS);
            let mut unit = Vec::new();
            let mut files = Vec::new();
            gather(directory.path(), &unit_name(UNITS - 1), &mut files, &mut unit).unwrap();
            (bytes, String::from_utf8(unit).unwrap(), files)
        };
        assert_eq!(written(1), written(1));
        let (one, other) = (written(1).1, written(2).1);
        assert_ne!(transform(one.clone()), transform(other));
        assert_eq!(transform(one.clone()), transform(one.clone()));
        assert_ne!(transform(one.replacen("w0", "w1", 1)), transform(one), "every word counts");
        for seed in 0..20 {
            let (bytes, _, files) = written(seed);
            assert!(bytes < SOURCE_BYTES && bytes > SOURCE_BYTES / 8, "{bytes}");
            let different = files.iter().collect::<HashSet<_>>().len();
            assert!(files.len() > 5 && different == files.len(), "{files:?}");
        }
    }

    #[test]
    fn includes_come_once_comments_go_and_absent_headers_are_named() {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in [
            ("u", "// c\n#include h1\n#include h0\nx y\n#include u\n"),
            ("h0", "in h0\n"),
            ("h1", "#include h0\nin h1\n"),
            ("v", "#include h9\n"),
        ] {
            fs::write(directory.path().join(name), text).unwrap();
        }
        let (mut files, mut out) = (Vec::new(), Vec::new());
        gather(directory.path(), "u", &mut files, &mut out).unwrap();
        assert_eq!((files.join(" ").as_str(), &out[..]), ("u h1 h0", &b"in h0\nin h1\nx y\n"[..]));
        let e = gather(directory.path(), "v", &mut files, &mut out).unwrap_err().to_string();
        assert!(e.contains("h9"), "{e}");
    }

    #[test]
    fn damage_to_an_object_is_seen() {
        assert_eq!(checksum(0, b"foobar"), 0x8594_4171_f739_67e8, "as published");
        let bytes = seal(b"words".to_vec());
        assert_eq!(open(&bytes), Ok(&b"words"[..]));
        for i in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[i] ^= 4;
            assert_eq!(open(&damaged), Err("damaged"), "byte {i}");
            assert!(open(&bytes[..i]).is_err());
        }
    }
}
