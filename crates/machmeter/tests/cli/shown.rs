//! Finds command lines in documents; it runs nothing.
//!
//! A command line is in a fenced block (with or without `$ `), in inline code, or advice in prose and output ("How to fix: machmeter doctor -v, or ...").
//! Each has its place.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use clap::{ArgAction, Command};

/// Programs that start the rest of their command line.
const LAUNCHERS: [&str; 6] = ["sudo", "mpirun", "srun", "taskset", "chrt", "nice"];

/// The form of a command line in its document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Form {
    /// A line of a fenced block: complete.
    Session,
    /// Inline code: may lack arguments of a verb, and may contain placeholders.
    Inline,
    /// Advice in output or prose.
    Advice,
}

/// A command line with its place.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    /// Page, and line from 1.
    pub(crate) place: String,
    pub(crate) form: Form,
    /// The program (`machmeter`, `make`, ...) and its arguments.
    pub(crate) words: Vec<String>,
    /// The exit code that the page shows after it.
    pub(crate) code: i32,
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// Files below a folder of the repository with this extension, sorted.
pub(crate) fn files(folder: &str, extension: &str) -> Vec<PathBuf> {
    let (mut found, mut folders) = (Vec::new(), vec![root().join(folder)]);
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == extension) {
                found.push(path);
            }
        }
    }
    found.sort();
    found
}

/// README.md and the pages of the book.
pub(crate) fn pages() -> Vec<PathBuf> {
    let mut found = files("docs", "md");
    found.push(root().join("README.md"));
    found.sort();
    found
}

/// A path relative to the repository.
pub(crate) fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

/// Command lines of a page, in order.
/// Errors: the place of a line that calls machmeter in an unknown way.
pub(crate) fn in_page(page: &str, text: &str, tree: &Command) -> Result<Vec<Line>, String> {
    let mut found: Vec<Line> = Vec::new();
    let (mut in_block, mut wants_code) = (false, false);
    let mut paragraph = (1, String::new());
    let mut lines = text.lines().enumerate().map(|(i, l)| (i + 1, l));
    while let Some((number, line)) = lines.next() {
        let place = format!("{page}:{number}");
        let is_fence = line.trim_start().starts_with("```");
        if is_fence || (!in_block && line.trim().is_empty()) {
            found.extend(in_prose(page, &paragraph, tree)?);
            paragraph = (number + 1, String::new());
            in_block ^= is_fence;
            wants_code = false;
        } else if !in_block {
            paragraph.1 += &format!("{line}\n");
        } else if line.trim() == "$ echo $?" {
            wants_code = true;
        } else if wants_code {
            let code = line.trim().parse().map_err(|_| format!("{place}: no exit code"))?;
            found.last_mut().ok_or("an exit code before any command")?.code = code;
            wants_code = false;
        } else {
            let mut whole = line.trim().to_owned();
            while whole.ends_with('\\') {
                whole.pop();
                whole += lines.next().map_or("", |(_, next)| next).trim();
            }
            found.extend(in_block_line(&place, &whole, tree)?);
        }
    }
    found.extend(in_prose(page, &paragraph, tree)?);
    Ok(found)
}

fn in_block_line(place: &str, line: &str, tree: &Command) -> Result<Vec<Line>, String> {
    let command = line.strip_prefix("$ ");
    let begins = |name| line.split(' ').next() == Some(name);
    if command.is_some() || ["machmeter", "make", "cargo"].into_iter().any(begins) {
        let calls = calls(command.unwrap_or(line)).map_err(|e| format!("{place}: {e}"))?;
        return Ok(calls.into_iter().map(|words| at(place, Form::Session, words)).collect());
    }
    Ok(advice(line, tree).into_iter().map(|words| at(place, Form::Advice, words)).collect())
}

fn at(place: &str, form: Form, words: Vec<String>) -> Line {
    Line { place: place.to_owned(), form, words, code: 0 }
}

/// Inline code in a paragraph that calls machmeter, and advice between.
fn in_prose(page: &str, (first, text): &(usize, String), tree: &Command) -> Result<Vec<Line>, String> {
    let mut found = Vec::new();
    let mut number = *first;
    let mut rest = text.as_str();
    while !rest.is_empty() {
        let prose = rest.find('`').unwrap_or(rest.len());
        for (i, line) in rest[..prose].lines().enumerate() {
            let place = format!("{page}:{}", number + i);
            found.extend(advice(line, tree).into_iter().map(|words| at(&place, Form::Advice, words)));
        }
        number += rest[..prose].matches('\n').count();
        rest = &rest[prose..];
        let ticks: String = rest.chars().take_while(|c| *c == '`').collect();
        rest = &rest[ticks.len()..];
        if let Some(end) = rest.find(&ticks).filter(|_| !ticks.is_empty()) {
            let code = rest[..end].replace('\n', " ").replace("\\|", "|");
            let place = format!("{page}:{number}");
            // Words that are not a command line, such as `cargo test -p machmeter`.
            let calls =
                if is_call(&code) { calls(&code).map_err(|e| format!("{place}: {e}"))? } else { Vec::new() };
            found.extend(calls.into_iter().map(|words| at(&place, Form::Inline, words)));
            number += rest[..end].matches('\n').count();
            rest = &rest[end + ticks.len()..];
        }
    }
    Ok(found)
}

fn is_call(code: &str) -> bool {
    let mut words = code.split_whitespace();
    let first = words.next().unwrap_or_default();
    // A name alone is not a command.
    let is_own = ["machmeter", "make", "cargo"].contains(&first) && code != first;
    is_own || LAUNCHERS.contains(&first) && code.contains("machmeter ")
}

/// Commands in a shell line that call a program of this repository: the program and its arguments.
/// Errors: a word `machmeter` whose arguments can't be separated from those of another program.
pub(crate) fn calls(line: &str) -> Result<Vec<Vec<String>>, String> {
    let mut found = Vec::new();
    for command in commands(line) {
        let words = &command[command.iter().take_while(|w| is_assignment(w)).count()..];
        let Some(first) = words.first() else { continue };
        if ["machmeter", "make", "cargo"].contains(&first.as_str()) || first.starts_with("./") {
            found.push(words.to_vec());
        } else if let Some(begin) = words.iter().position(|w| w == "machmeter") {
            if !LAUNCHERS.contains(&first.as_str()) {
                return Err(format!("'{first}' is not known to start machmeter"));
            }
            found.push(words[begin..].to_vec());
        } else {
            for inner in words.iter().filter(|w| w.starts_with("machmeter ")) {
                found.extend(calls(inner)?);
            }
        }
    }
    Ok(found)
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=')
        .is_some_and(|(name, _)| !name.is_empty() && name.chars().all(|c| c.is_ascii_uppercase() || c == '_'))
}

/// Simple commands of a shell line, as words without quotes and redirections.
fn commands(line: &str) -> Vec<Vec<String>> {
    let (mut all, mut words) = (Vec::new(), Vec::new());
    let (mut word, mut is_word, mut quote, mut is_target) = (String::new(), false, None, false);
    // The space at the end closes the last word.
    for c in line.chars().chain([' ']) {
        match quote {
            Some(open) if c == open => quote = None,
            None if c == '\'' || c == '"' => (quote, is_word) = (Some(c), true),
            None if c == ' ' && !is_word => {}
            None if c == ' ' => {
                is_word = false;
                match (std::mem::take(&mut word).as_str(), is_target) {
                    ("#", _) => break,
                    (">" | "2>" | ">>" | "<", _) => is_target = true,
                    ("|" | "&&" | "||" | ";" | "&", _) => all.push(std::mem::take(&mut words)),
                    (_, true) => is_target = false,
                    (plain, false) => words.push(plain.to_owned()),
                }
            }
            _ => {
                word.push(c);
                is_word = true;
            }
        }
    }
    all.push(words);
    all
}

/// Commands recommended by a text: `machmeter VERB` with the following options and values, up to the end of the clause.
pub(crate) fn advice(text: &str, tree: &Command) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    for (begin, name) in text.match_indices("machmeter ") {
        let before = text[..begin].chars().next_back();
        if before.is_some_and(|c| !c.is_whitespace() && !"('\"`".contains(c)) {
            continue;
        }
        let quoted = with_quotes(&text[begin + name.len()..]);
        let mut words = quoted.iter().map(String::as_str).peekable();
        let mut line = vec!["machmeter".to_owned()];
        let Some(verb) = words.peek().and_then(|w| tree.find_subcommand(ended(w).0)) else { continue };
        let mut place = 0;
        let (mut wants, mut is_inner) = (true, false);
        while let Some(word) = words.next_if(|w| {
            wants || is_inner || w.starts_with('-') || w.contains(' ') || is_positional(verb, place, w)
        }) {
            let (plain, is_last) = if word.contains(' ') { (word, false) } else { ended(word) };
            line.push(plain.to_owned());
            place += usize::from(!wants && !plain.starts_with('-'));
            wants = plain.starts_with('-') && takes_value(verb, plain);
            is_inner |= plain == "--";
            if is_last {
                break;
            }
        }
        found.push(line);
    }
    found
}

/// Words of a text; a part in single quotes is one word.
fn with_quotes(text: &str) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let mut is_open = false;
    for word in text.split_whitespace() {
        match words.last_mut() {
            Some(last) if is_open => *last += &format!(" {}", word.trim_end_matches('\'')),
            _ => words.push(word.trim_start_matches('\'').to_owned()),
        }
        is_open = (is_open || word.starts_with('\'')) && !word.ends_with('\'');
    }
    words
}

/// A word without the punctuation after it; true if the punctuation ends the clause.
fn ended(word: &str) -> (&str, bool) {
    let plain = word.trim_end_matches(['.', ',', ';', ':', ')', '\'', '"', '`']);
    (plain, plain.len() < word.len())
}

fn takes_value(verb: &Command, option: &str) -> bool {
    let is_it = |a: &&clap::Arg| {
        a.get_long().is_some_and(|l| option == format!("--{l}"))
            || a.get_short().is_some_and(|s| option == format!("-{s}"))
    };
    let arg = verb.get_arguments().find(is_it);
    arg.is_some_and(|a| {
        matches!(a.get_action(), ArgAction::Set | ArgAction::Append) && !a.is_require_equals_set()
    })
}

/// True if a word can be the argument of the verb at this position: one of its possible values, a code, or a file.
fn is_positional(verb: &Command, place: usize, word: &str) -> bool {
    let (plain, _) = ended(word);
    let argument = verb.get_positionals().nth(place).or_else(|| verb.get_positionals().last());
    let values: BTreeSet<String> =
        argument.iter().flat_map(|a| a.get_possible_values()).map(|v| v.get_name().to_owned()).collect();
    let is_code =
        plain.len() == 4 && plain.starts_with(['E', 'W']) && plain[1..].chars().all(|c| c.is_ascii_digit());
    let is_name = plain.starts_with("last") || [".json", ".goal"].iter().any(|e| plain.ends_with(e));
    argument.is_some() && (values.contains(plain) || is_code || is_name)
}
