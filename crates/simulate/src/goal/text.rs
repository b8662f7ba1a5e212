//! Schedules read from text.
//!
//! `num_ranks N`, then blocks `rank R { ... }` for 0 to N - 1 in order. A line of a block is an operation, `label: ` before it
//! where others name it: `send 8b to 1`, `recv 8b from 0`, each with `tag T`, `cpu C`, `nic K` in this order where they are not 0, or
//! `calc 100` (ns) with `cpu C`. Or it is a requirement: `a requires b` (its end), `a irequires b` (its start). Labels are defined
//! before they are used. A sender or tag of -1 takes any. Comments are those of C++.

use std::collections::HashMap;

use crate::engine::ANY;
use crate::program::{Op, Verb};

use super::Goal;
use super::build::{Builder, Require};

/// Operations of Portals 4, which extensions of the language have.
const PORTALS: [&str; 9] = ["append", "put", "get", "tappend", "tput", "tget", "test", "calcgem5", "ctrig"];

/// Reads a schedule, or says what is wrong first, with line and column.
pub fn read_text(text: &[u8]) -> Result<Goal, String> {
    let mut reader = Reader { text, line: 1, ..Reader::default() };
    reader.header()?;
    for rank in 0..reader.ranks {
        reader.open_rank(rank)?;
        while !reader.close_rank(rank)? {
            reader.statement()?;
        }
        if let Err(op) = reader.builder.end_rank() {
            let text = format!("rank {rank}: this operation requires itself through other operations");
            return Err(at_place(reader.lines[op as usize], 1, &text));
        }
    }
    reader.skip_lines();
    if reader.at < text.len() {
        let last = reader.ranks - 1;
        return Err(reader.error(reader.at, &format!("nothing may follow rank {last}, the last one")));
    }
    Ok(reader.builder.build())
}

#[cold]
fn at_place(line: u32, column: u32, text: &str) -> String {
    format!("line {line}, column {column}: {text}")
}

#[derive(Default)]
struct Reader<'a> {
    text: &'a [u8],
    at: usize,
    line: u32,
    line_start: usize,
    ranks: u32,
    builder: Builder,
    /// Operations of the rank at hand by label, and the line of each.
    names: HashMap<&'a [u8], u32>,
    lines: Vec<u32>,
}

impl<'a> Reader<'a> {
    #[cold]
    fn error(&self, at: usize, text: &str) -> String {
        let column = at.saturating_sub(self.line_start) as u32 + 1;
        at_place(self.line, column, text)
    }

    #[cold]
    fn expected(&self, what: &str) -> String {
        let rest = &self.text[self.at..];
        let end = rest
            .iter()
            .position(u8::is_ascii_whitespace)
            .unwrap_or(rest.len())
            .clamp(rest.len().min(1), 20.min(rest.len()));
        let found = match rest.first() {
            None => "the end of the file".to_owned(),
            Some(b'\n') => "the end of the line".to_owned(),
            Some(_) => format!("`{}`", String::from_utf8_lossy(&rest[..end]).escape_debug()),
        };
        self.error(self.at, &format!("expected {what}, found {found}"))
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.at).copied()
    }

    fn starts_with(&self, what: &[u8]) -> bool {
        self.text[self.at..].starts_with(what)
    }

    /// Skips blanks and comments within a line.
    fn skip_blanks(&mut self) {
        loop {
            match self.peek() {
                Some(b' ' | b'\t' | b'\r') => self.at += 1,
                Some(b'/') if self.starts_with(b"//") => {
                    while self.peek().is_some_and(|c| c != b'\n') {
                        self.at += 1;
                    }
                }
                Some(b'/') if self.starts_with(b"/*") => {
                    self.at += 2;
                    while self.at < self.text.len() && !self.starts_with(b"*/") {
                        if self.text[self.at] == b'\n' {
                            self.line += 1;
                            self.line_start = self.at + 1;
                        }
                        self.at += 1;
                    }
                    self.at = (self.at + 2).min(self.text.len());
                }
                _ => return,
            }
        }
    }

    fn skip_lines(&mut self) {
        self.skip_blanks();
        while self.peek() == Some(b'\n') {
            self.at += 1;
            self.line += 1;
            self.line_start = self.at;
            self.skip_blanks();
        }
    }

    fn end_line(&mut self, instead: &str) -> Result<(), String> {
        self.skip_blanks();
        match self.peek() {
            Some(b'\n') | None => Ok(()),
            Some(_) => Err(self.expected(&format!("{instead}the end of the line"))),
        }
    }

    /// A word of letters, digits and underscores that begins with a letter; empty if none is there.
    fn word(&mut self) -> &'a [u8] {
        let rest = &self.text[self.at..];
        if !rest.first().is_some_and(u8::is_ascii_alphabetic) {
            return &[];
        }
        let end = rest.iter().position(|c| !(c.is_ascii_alphanumeric() || *c == b'_')).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn number(&mut self, what: &str, max: u64) -> Result<u64, String> {
        self.skip_blanks();
        let start = self.at;
        let mut number = 0u64;
        while let Some(digit) = self.peek().filter(u8::is_ascii_digit) {
            let next = number.checked_mul(10).and_then(|n| n.checked_add(u64::from(digit - b'0')));
            let Some(next) = next.filter(|n| *n <= max) else {
                return Err(self.error(start, &format!("{what} is at most {max}")));
            };
            number = next;
            self.at += 1;
        }
        if self.at == start { Err(self.expected(what)) } else { Ok(number) }
    }

    fn number_or_any(&mut self, what: &str, max: u64) -> Result<u32, String> {
        self.skip_blanks();
        if self.starts_with(b"-1") {
            self.at += 2;
            return Ok(ANY);
        }
        Ok(self.number(what, max)? as u32)
    }

    fn keyword(&mut self, word: &str) -> bool {
        self.skip_blanks();
        let found = self.starts_with(word.as_bytes());
        if found {
            self.at += word.len();
        }
        found
    }

    /// A word that has to stand here, and what a message calls it.
    fn required(&mut self, word: &str, what: &str) -> Result<(), String> {
        if self.keyword(word) { Ok(()) } else { Err(self.expected(what)) }
    }

    fn header(&mut self) -> Result<(), String> {
        self.skip_lines();
        self.required("num_ranks", "`num_ranks`")?;
        self.skip_blanks();
        let start = self.at;
        self.ranks = self.number("a number of ranks", u64::from(u32::MAX - 1))? as u32;
        if self.ranks > 0 { Ok(()) } else { Err(self.error(start, "a schedule has at least one rank")) }
    }

    fn open_rank(&mut self, rank: u32) -> Result<(), String> {
        let ranks = self.ranks;
        self.names.clear();
        self.lines.clear();
        self.skip_lines();
        if !self.keyword("rank") {
            return Err(self.expected(&format!("`rank {rank}` of {ranks}")));
        }
        self.skip_blanks();
        let start = self.at;
        if self.number("a rank", u64::from(u32::MAX))? != u64::from(rank) {
            return Err(self.error(start, &format!("ranks stand in order: expected rank {rank} of {ranks}")));
        }
        self.required("{", "`{`")
    }

    fn close_rank(&mut self, rank: u32) -> Result<bool, String> {
        self.skip_lines();
        match self.peek() {
            Some(b'}') => {
                self.at += 1;
                Ok(true)
            }
            Some(_) => Ok(false),
            None => Err(self.expected(&format!("`}}` of rank {rank}"))),
        }
    }

    fn statement(&mut self) -> Result<(), String> {
        let (start, line) = (self.at, self.line);
        let word = self.word();
        if let Some(verb) = verb(word) {
            self.operation(verb, line)?;
            return Ok(());
        }
        if word.is_empty() {
            return Err(self.expected("an operation, a label or `}`"));
        }
        self.skip_blanks();
        if self.peek() == Some(b':') {
            self.at += 1;
            self.skip_blanks();
            let at = self.at;
            let Some(verb) = self.text.get(at..at + 4).and_then(verb) else {
                return Err(self.unknown_verb(at));
            };
            self.at += 4;
            let op = self.operation(verb, line)?;
            if self.names.insert(word, op).is_some() {
                let text = format!("label `{}` is defined twice", String::from_utf8_lossy(word));
                return Err(at_place(line, 1 + (start - self.line_start.min(start)) as u32, &text));
            }
            return Ok(());
        }
        let what = if self.keyword("requires") {
            Require::End
        } else if self.keyword("irequires") {
            Require::Start
        } else {
            return Err(self.unknown_verb(start));
        };
        let op = self.known(word, start)?;
        self.skip_blanks();
        let at = self.at;
        let required = self.word();
        if required.is_empty() {
            return Err(self.expected("a label"));
        }
        let required = self.known(required, at)?;
        if op == required {
            return Err(self.error(start, "an operation cannot require itself"));
        }
        self.builder.require(op, required, what);
        self.end_line("")
    }

    fn known(&self, name: &[u8], at: usize) -> Result<u32, String> {
        self.names.get(name).copied().ok_or_else(|| {
            let name = String::from_utf8_lossy(name);
            self.error(at, &format!("label `{name}` is not defined before this line"))
        })
    }

    fn unknown_verb(&mut self, at: usize) -> String {
        self.at = at;
        let word = String::from_utf8_lossy(self.word()).into_owned();
        self.at = at;
        if PORTALS.contains(&word.as_str()) {
            return self.error(at, &format!("`{word}` is an operation of Portals, which is not supported"));
        }
        self.expected("`send`, `recv`, `calc` or a requirement")
    }

    fn operation(&mut self, verb: Verb, line: u32) -> Result<u32, String> {
        self.lines.push(line);
        if verb == Verb::Calculate {
            let ns = self.number("a time in ns", u64::MAX)?;
            let cpu = self.place("cpu", "a CPU")?;
            self.end_line("`cpu` or ")?;
            return Ok(self.builder.add(Op { cpu, ..Op::calculate(ns) }));
        }
        let amount = self.number("a number of bytes", u64::MAX)?;
        self.required("b", "`b` for bytes")?;
        let sends = verb == Verb::Send;
        let (word, what) = if sends { ("to", "`to`") } else { ("from", "`from`") };
        self.required(word, what)?;
        self.skip_blanks();
        let at = self.at;
        let last = u64::from(u32::MAX - 1);
        let peer =
            if sends { self.number("a rank", last)? as u32 } else { self.number_or_any("a rank", last)? };
        if peer >= self.ranks && peer != ANY {
            return Err(self.error(at, &format!("rank {peer} is none of the {} ranks", self.ranks)));
        }
        let tag = if self.keyword("tag") { self.number_or_any("a tag", last)? } else { 0 };
        let (cpu, nic) = (self.place("cpu", "a CPU")?, self.place("nic", "a network interface")?);
        self.end_line("`tag`, `cpu`, `nic` in this order or ")?;
        Ok(self.builder.add(Op { verb, peer, amount, tag, cpu, nic }))
    }

    fn place(&mut self, word: &str, what: &str) -> Result<u8, String> {
        if self.keyword(word) { Ok(self.number(what, 254)? as u8) } else { Ok(0) }
    }
}

fn verb(word: &[u8]) -> Option<Verb> {
    match word {
        b"send" => Some(Verb::Send),
        b"recv" => Some(Verb::Receive),
        b"calc" => Some(Verb::Calculate),
        _ => None,
    }
}
