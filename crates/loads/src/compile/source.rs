//! The program that is compiled: headers and units in a small language, made from a seed.
//!
//! ```text
//! #include "h07"                     once a unit, with all that it includes
//! #define H12_3 (H07_1 * 5 + 2)      macros without parameters
//! function f17_2(a, b, c) {          expressions of + - * ^ & and calls, on words of 64 bits
//!   t0 = a * H12_3 - b;
//!   t1 = call h07_0(t0, b, 9);
//!   return t1;
//! }
//! ```

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::Path;

use machmeter_stats::random::Random;

/// Units and headers of the program.
pub(super) const UNITS: usize = 64;
const HEADERS: usize = 40;

/// Bytes that the source may take at most (tested; about 2.4 MB is usual).
pub(super) const SOURCE_BYTES: u64 = 4 << 20;

const MACROS_PER_HEADER: usize = 20;
const FUNCTIONS_PER_HEADER: usize = 3;
const FUNCTIONS_MEAN: f64 = 9.0;
const FUNCTIONS_MAX: usize = 30;
const STATEMENTS_MEAN: f64 = 90.0;
const STATEMENTS_MAX: usize = 600;
const HEADER_STATEMENTS: usize = 30;

/// File of header `number` below the program's directory.
pub(super) fn header_name(number: usize) -> String {
    format!("h{number:02}")
}

/// File of unit `number` below the program's directory.
pub(super) fn unit_name(number: usize) -> String {
    format!("u{number:02}")
}

/// Writes the program into `directory`; returns its bytes.
pub(super) fn generate(directory: &Path, seed: u64) -> io::Result<u64> {
    let mut random = Random::new(seed);
    let mut bytes = 0;
    for number in 0..HEADERS {
        let text = header(number, &mut random);
        bytes += text.len() as u64;
        fs::write(directory.join(header_name(number)), text)?;
    }
    for number in 0..UNITS {
        let text = unit(number, &mut random);
        bytes += text.len() as u64;
        fs::write(directory.join(unit_name(number)), text)?;
    }
    Ok(bytes)
}

fn header(number: usize, random: &mut Random) -> String {
    let mut text = format!("// header {number} of {HEADERS}\n");
    // Headers include lower ones only, so that there are no circles.
    let included: Vec<usize> = (0..number.min(3)).map(|_| random.below(number)).collect();
    includes(&included, &mut text);
    for i in 0..MACROS_PER_HEADER {
        let other = included.first().map_or("1".to_owned(), |h| format!("H{h:02}_{i}"));
        let (a, b) = (random.below(1_000), random.below(1_000));
        let _ = writeln!(text, "#define H{number:02}_{i} ({other} * {a} + {b}) // {}", random.bits());
    }
    let known = Known { headers: included };
    for i in 0..FUNCTIONS_PER_HEADER {
        function(
            &format!("h{number:02}_{i}"),
            1 + random.below(HEADER_STATEMENTS),
            &known,
            random,
            &mut text,
        );
    }
    text
}

fn unit(number: usize, random: &mut Random) -> String {
    let mut text = format!("// unit {number} of {UNITS}\n");
    let known = Known { headers: (0..5 + random.below(5)).map(|_| random.below(HEADERS)).collect() };
    includes(&known.headers, &mut text);
    let functions = skewed(FUNCTIONS_MEAN, FUNCTIONS_MAX, random);
    for i in 0..functions {
        let statements = skewed(STATEMENTS_MEAN, STATEMENTS_MAX, random);
        function(&format!("f{number:02}_{i}"), statements, &known, random, &mut text);
    }
    text
}

/// Sizes in programs are skewed: many small, a few large.
fn skewed(mean: f64, most: usize, random: &mut Random) -> usize {
    (1 + (random.exponential() * mean) as usize).min(most)
}

fn includes(headers: &[usize], text: &mut String) {
    for h in headers {
        let _ = writeln!(text, "#include \"{}\"", header_name(*h));
    }
}

/// What may be named.
struct Known {
    headers: Vec<usize>,
}

fn function(name: &str, statements: usize, known: &Known, random: &mut Random, text: &mut String) {
    let _ = writeln!(text, "function {name}(a, b, c) {{");
    for i in 0..statements {
        let _ = write!(text, "  t{i} = ");
        if random.below(12) == 0 {
            let callee = match known.headers.first() {
                Some(h) if random.below(2) == 0 => format!("h{h:02}_{}", random.below(FUNCTIONS_PER_HEADER)),
                _ => format!("f{:02}_0", random.below(UNITS)),
            };
            let _ = write!(text, "call {callee}(");
            for end in [", ", ", ", ")"] {
                leaf(i, known, random, text);
                text.push_str(end);
            }
        } else {
            expression(3, i, known, random, text);
        }
        text.push_str(if random.below(4) == 0 { "; // so it is\n" } else { ";\n" });
    }
    let _ = writeln!(text, "  return t{};\n}}", statements - 1);
}

fn expression(depth: usize, defined: usize, known: &Known, random: &mut Random, text: &mut String) {
    if depth == 0 || random.below(4) == 0 {
        return leaf(defined, known, random, text);
    }
    let bracketed = random.below(2) == 0;
    text.push_str(if bracketed { "(" } else { "" });
    expression(depth - 1, defined, known, random, text);
    text.push_str([" + ", " - ", " * ", " ^ ", " & "][random.below(5)]);
    expression(depth - 1, defined, known, random, text);
    text.push_str(if bracketed { ")" } else { "" });
}

fn leaf(defined: usize, known: &Known, random: &mut Random, text: &mut String) {
    let _ = match random.below(8) {
        0 => write!(text, "{}", random.below(100_000)),
        1 | 2 => text.write_str(["a", "b", "c"][random.below(3)]),
        3 if !known.headers.is_empty() => {
            let h = known.headers[random.below(known.headers.len())];
            write!(text, "H{h:02}_{}", random.below(MACROS_PER_HEADER))
        }
        // Mostly what was computed lately, as people write.
        _ if defined > 0 => {
            let reach = if random.below(3) == 0 { defined } else { defined.min(12) };
            let back = random.below(reach);
            write!(text, "t{}", defined - 1 - back)
        }
        _ => text.write_str("a"),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seed_determines_the_program_and_it_keeps_to_its_size() {
        let written = |seed| {
            let directory = tempfile::tempdir().unwrap();
            let bytes = generate(directory.path(), seed).unwrap();
            let text = fs::read_to_string(directory.path().join(unit_name(UNITS - 1))).unwrap();
            assert_eq!(fs::read_dir(directory.path()).unwrap().count(), UNITS + HEADERS);
            (bytes, text)
        };
        assert_eq!(written(1), written(1));
        assert_ne!(written(1).1, written(2).1);
        for seed in 0..20 {
            let bytes = written(seed).0;
            assert!(bytes < SOURCE_BYTES && bytes > SOURCE_BYTES / 8, "{bytes}");
        }
    }
}
