//! Checks that sessions in documents reproduce.
//!
//! Blocks fenced as `console` in README.md and in the book hold sessions. The test runs the commands of blocks tagged `console run`, and each line shown
//! must appear in the output again: words as they are, numbers masked, runs of spaces as one, `...` for omitted lines. A command ends with code 0 unless
//! the block continues with `$ echo $?` and the code. [`super::promises`] checks that the program accepts the command lines of all other blocks, too.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests fail and tell what they checked")]

use std::fs;
use std::path::Path;

use crate::program::Lab;
use crate::shown::{calls, pages};

struct Block {
    /// Page, and line of its fence from 1.
    place: String,
    is_run: bool,
    lines: Vec<String>,
}

/// A command with its output on the page.
#[derive(Debug, Default)]
struct Shown {
    arguments: Vec<String>,
    output: Vec<String>,
    code: i32,
}

/// The blocks of a page whose fence begins with `console`.
fn blocks_of(page: &Path, text: &str) -> Vec<Block> {
    let lines: Vec<&str> = text.lines().collect();
    let fences: Vec<usize> = (0..lines.len()).filter(|i| lines[*i].starts_with("```")).collect();
    let (pairs, rest) = fences.as_chunks::<2>();
    assert!(rest.is_empty(), "{}: a fenced block does not end", page.display());
    let block = |[begin, end]: &[usize; 2]| {
        let tags = lines[*begin].strip_prefix("```console")?;
        Some(Block {
            place: format!("{}:{}", page.display(), begin + 1),
            is_run: tags.split([' ', ',']).any(|t| t == "run"),
            lines: lines[begin + 1..*end].iter().map(|l| (*l).to_owned()).collect(),
        })
    };
    pairs.iter().filter_map(block).collect()
}

fn blocks() -> Vec<Block> {
    pages().iter().flat_map(|p| blocks_of(p, &fs::read_to_string(p).unwrap())).collect()
}

/// Arguments of a line that calls machmeter, without those of other programs; `None` for other lines.
fn arguments(line: &str) -> Option<Vec<String>> {
    let call = line.strip_prefix("$ ").filter(|call| call.split(' ').next() == Some("machmeter"))?;
    calls(call).unwrap().first().map(|words| words[1..].to_vec())
}

/// The commands of a block with their output.
fn commands(block: &Block) -> Vec<Shown> {
    let mut out: Vec<Shown> = Vec::new();
    // Lines after the command of another program are not checked.
    let mut ours = false;
    let mut wants_code = false;
    for line in &block.lines {
        if let Some(arguments) = arguments(line) {
            out.push(Shown { arguments, ..Shown::default() });
            (ours, wants_code) = (true, false);
        } else if line.trim() == "$ echo $?" {
            (ours, wants_code) = (false, true);
        } else if line.starts_with("$ ") {
            (ours, wants_code) = (false, false);
        } else if let Some(last) = out.last_mut() {
            if wants_code {
                last.code = line.trim().parse().unwrap();
            } else if ours {
                last.output.push(line.clone());
            }
        }
    }
    out
}

/// The shape of a line: numbers masked, also lists of them such as 0-3,8; runs of spaces as one.
fn shape(line: &str) -> String {
    let mut out = String::new();
    let mut rest = line.chars().peekable();
    while let Some(c) = rest.next() {
        if c.is_ascii_digit() {
            while rest.next_if(|n| n.is_ascii_digit() || ",.-".contains(*n)).is_some() {}
            out.push('#');
        } else if c.is_whitespace() {
            if !out.ends_with(' ') {
                out.push(' ');
            }
        } else {
            out.push(c);
        }
    }
    out.trim().to_owned()
}

/// The first shown line that the output lacks, in the order shown.
fn missing<'a>(shown: &'a [String], came_out: &str) -> Option<&'a str> {
    let mut there = came_out.lines().map(shape);
    shown
        .iter()
        .map(String::as_str)
        .filter(|l| !l.trim().is_empty() && l.trim() != "...")
        .find(|l| !there.any(|t| t == shape(l)))
}

#[test]
fn commands_that_are_shown_to_be_run_do_what_is_shown() {
    let mut run = 0;
    for block in blocks().iter().filter(|b| b.is_run) {
        let (place, lab, commands) = (&block.place, Lab::new(), commands(block));
        assert!(!commands.is_empty(), "{place}: nothing to run");
        for c in commands {
            let ended = lab.run(&c.arguments.iter().map(String::as_str).collect::<Vec<_>>());
            let all = format!("{}\n{}", ended.stdout, ended.stderr);
            assert_eq!(ended.code, Some(c.code), "{place}: machmeter {}\n{all}", ended.shown);
            if let Some(line) = missing(&c.output, &all) {
                panic!("{place}: machmeter {} does not give the line\n{line}\nbut\n{all}", ended.shown);
            }
            run += 1;
        }
    }
    println!("{run} commands of the documents run");
    assert!(run >= 10, "only {run} commands are checked");
}

#[test]
fn a_wrong_page_is_noticed() {
    let text = "```text\n$ machmeter x\n```\n\n```console run\n$ machmeter list\nnoise.turn  ns\n...\n$ echo $?\n2\n$ ls\nfile\n```\n";
    let blocks = blocks_of(Path::new("page.md"), text);
    assert_eq!((blocks.len(), blocks[0].place.as_str(), blocks[0].is_run), (1, "page.md:5", true));
    let c = &commands(&blocks[0])[0];
    assert_eq!((c.arguments.join(" ").as_str(), c.code), ("list", 2));
    assert_eq!(c.output, ["noise.turn  ns", "..."]);
    assert_eq!(missing(&c.output, "a\nnoise.turn ns\n"), None);
    assert_eq!(missing(&c.output, "noise.turn us\n"), Some("noise.turn  ns"));
    assert_eq!(shape("CPUs 0-1 of 0-63,  1.5 ms"), shape("CPUs 0 of 0-7, 12 ms"));
    assert_ne!(shape("1.5 ms"), shape("1.5 us"));
    let export = arguments("$ machmeter export --to csv last | head").unwrap();
    assert_eq!(export, ["export", "--to", "csv", "last"]);
    assert_eq!(arguments("$ machmeters"), None);
}
