//! Second stage: from text to instructions for a machine with few registers.
//!
//! Value numbering with constant folding (Cocke and Schwartz 1970), dead code elimination, then `registers` assigns
//! registers. A program that comes out wrong would show in the tests, which run it.

use std::collections::HashMap;
use std::fmt::Write as _;

use super::registers::{self, Place};

/// An operation of two operands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Operation {
    Add,
    Subtract,
    Multiply,
    ExclusiveOr,
    And,
}

impl Operation {
    /// From weakest to strongest binding.
    const LEVELS: [&[(u8, Self)]; 3] = [
        &[(b'^', Self::ExclusiveOr), (b'&', Self::And)],
        &[(b'+', Self::Add), (b'-', Self::Subtract)],
        &[(b'*', Self::Multiply)],
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Add => "add",
            Self::Subtract => "sub",
            Self::Multiply => "mul",
            Self::ExclusiveOr => "xor",
            Self::And => "and",
        }
    }

    fn of(self, a: u64, b: u64) -> u64 {
        match self {
            Self::Add => a.wrapping_add(b),
            Self::Subtract => a.wrapping_sub(b),
            Self::Multiply => a.wrapping_mul(b),
            Self::ExclusiveOr => a ^ b,
            Self::And => a & b,
        }
    }

    fn commutes(self) -> bool {
        self != Self::Subtract
    }
}

/// A value; operands are the numbers of earlier ones.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) enum Value {
    Parameter(usize),
    Constant(u64),
    Computed(Operation, usize, usize),
    /// The name's number and the arguments. Two calls are never the same value.
    Call {
        callee: usize,
        arguments: [usize; 3],
        turn: usize,
    },
}

impl Value {
    /// The values it is made of.
    pub(super) fn operands(&self) -> Vec<usize> {
        match self {
            Self::Parameter(_) | Self::Constant(_) => Vec::new(),
            Self::Computed(_, a, b) => vec![*a, *b],
            Self::Call { arguments, .. } => arguments.to_vec(),
        }
    }
}

/// Translates the preprocessed text of a unit.
pub(super) fn translate(text: &str) -> Result<String, String> {
    let mut tokens = Tokens { text: text.as_bytes(), at: 0 };
    let mut out = String::with_capacity(text.len());
    while let Some(token) = tokens.next()? {
        if token != Token::Word("function") {
            return Err(format!("at byte {}: a function is expected, not {token:?}", tokens.at));
        }
        let mut function = Function::default();
        let name = tokens.word()?;
        function.body(&mut tokens).map_err(|e| format!("function {name}, byte {}: {e}", tokens.at))?;
        function.write(name, &mut out);
    }
    Ok(out)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Token<'t> {
    Word(&'t str),
    Number(u64),
    Sign(u8),
}

struct Tokens<'t> {
    text: &'t [u8],
    at: usize,
}

impl<'t> Tokens<'t> {
    fn next(&mut self) -> Result<Option<Token<'t>>, String> {
        let rest = &self.text[self.at..];
        let blank = rest.iter().take_while(|b| b.is_ascii_whitespace()).count();
        let rest = &rest[blank..];
        let Some(first) = rest.first() else { return Ok(None) };
        let is_word = |b: &u8| b.is_ascii_alphanumeric() || *b == b'_';
        let len = rest.iter().take_while(|b| is_word(b)).count().max(1);
        self.at += blank + len;
        let word = std::str::from_utf8(&rest[..len]).map_err(|_| "no text".to_owned())?;
        Ok(Some(match first {
            b'0'..=b'9' => Token::Number(word.parse().map_err(|_| format!("'{word}' is no number"))?),
            b if is_word(b) => Token::Word(word),
            b => Token::Sign(*b),
        }))
    }

    fn peek(&mut self) -> Result<Option<Token<'t>>, String> {
        let at = self.at;
        let token = self.next();
        self.at = at;
        token
    }

    fn word(&mut self) -> Result<&'t str, String> {
        match self.next()? {
            Some(Token::Word(word)) => Ok(word),
            other => Err(format!("a name is expected, not {other:?}")),
        }
    }

    fn sign(&mut self, sign: u8) -> Result<(), String> {
        match self.next()? {
            Some(Token::Sign(s)) if s == sign => Ok(()),
            other => Err(format!("'{}' is expected, not {other:?}", char::from(sign))),
        }
    }
}

#[derive(Debug, Default)]
struct Function<'t> {
    values: Vec<Value>,
    numbers: HashMap<Value, usize>,
    variables: HashMap<&'t str, usize>,
    callees: Vec<&'t str>,
    result: usize,
}

impl<'t> Function<'t> {
    fn body(&mut self, tokens: &mut Tokens<'t>) -> Result<(), String> {
        tokens.sign(b'(')?;
        for (i, end) in [b',', b',', b')'].into_iter().enumerate() {
            let name = tokens.word()?;
            let number = self.number(Value::Parameter(i));
            self.variables.insert(name, number);
            tokens.sign(end)?;
        }
        tokens.sign(b'{')?;
        loop {
            match tokens.word()? {
                "return" => {
                    self.result = self.expression(0, tokens)?;
                    tokens.sign(b';')?;
                    return tokens.sign(b'}');
                }
                name => {
                    tokens.sign(b'=')?;
                    let number = self.expression(0, tokens)?;
                    self.variables.insert(name, number);
                    tokens.sign(b';')?;
                }
            }
        }
    }

    fn expression(&mut self, level: usize, tokens: &mut Tokens<'t>) -> Result<usize, String> {
        let Some(operations) = Operation::LEVELS.get(level) else { return self.leaf(tokens) };
        let mut left = self.expression(level + 1, tokens)?;
        while let Some(Token::Sign(sign)) = tokens.peek()?
            && let Some((_, operation)) = operations.iter().find(|(s, _)| *s == sign)
        {
            tokens.next()?;
            let right = self.expression(level + 1, tokens)?;
            left = self.computed(*operation, left, right);
        }
        Ok(left)
    }

    fn leaf(&mut self, tokens: &mut Tokens<'t>) -> Result<usize, String> {
        match tokens.next()? {
            Some(Token::Number(n)) => Ok(self.number(Value::Constant(n))),
            Some(Token::Sign(b'(')) => {
                let inner = self.expression(0, tokens)?;
                tokens.sign(b')')?;
                Ok(inner)
            }
            Some(Token::Word("call")) => self.call(tokens),
            Some(Token::Word(name)) => {
                self.variables.get(name).copied().ok_or_else(|| format!("'{name}' has no value"))
            }
            other => Err(format!("a value is expected, not {other:?}")),
        }
    }

    fn call(&mut self, tokens: &mut Tokens<'t>) -> Result<usize, String> {
        let name = tokens.word()?;
        let callee = self.callees.iter().position(|c| *c == name).unwrap_or_else(|| {
            self.callees.push(name);
            self.callees.len() - 1
        });
        tokens.sign(b'(')?;
        let mut arguments = [0; 3];
        for (argument, end) in arguments.iter_mut().zip([b',', b',', b')']) {
            *argument = self.expression(0, tokens)?;
            tokens.sign(end)?;
        }
        Ok(self.number(Value::Call { callee, arguments, turn: self.values.len() }))
    }

    /// The number of a value, which is the same for the same value.
    fn number(&mut self, value: Value) -> usize {
        *self.numbers.entry(value).or_insert_with_key(|value| {
            self.values.push(value.clone());
            self.values.len() - 1
        })
    }

    fn computed(&mut self, operation: Operation, a: usize, b: usize) -> usize {
        // One order for what may be swapped, so that the same is found to be the same.
        let (a, b) = if operation.commutes() && a > b { (b, a) } else { (a, b) };
        let constant = |i: usize| if let Value::Constant(c) = self.values[i] { Some(c) } else { None };
        let folded = match (operation, constant(a), constant(b)) {
            (_, Some(x), Some(y)) => Some(Value::Constant(operation.of(x, y))),
            (Operation::Subtract | Operation::ExclusiveOr, ..) if a == b => Some(Value::Constant(0)),
            (Operation::Multiply | Operation::And, Some(0), _)
            | (Operation::Multiply | Operation::And, _, Some(0)) => Some(Value::Constant(0)),
            (Operation::Add | Operation::Subtract | Operation::ExclusiveOr, _, Some(0))
            | (Operation::Multiply, _, Some(1)) => return a,
            (Operation::Add | Operation::ExclusiveOr, Some(0), _) | (Operation::Multiply, Some(1), _) => {
                return b;
            }
            _ => None,
        };
        self.number(folded.unwrap_or(Value::Computed(operation, a, b)))
    }

    /// Which values the result or a call needs.
    fn needed(&self) -> Vec<bool> {
        let mut needed = vec![false; self.values.len()];
        needed[self.result] = true;
        // Operands come before what is made of them, so one pass from the end finds all.
        for i in (0..self.values.len()).rev() {
            if needed[i] || matches!(self.values[i], Value::Call { .. }) {
                needed[i] = true;
                self.values[i].operands().into_iter().for_each(|o| needed[o] = true);
            }
        }
        needed
    }

    fn write(&self, name: &str, out: &mut String) {
        let needed = self.needed();
        let places = registers::assign(&self.values, &needed, self.result);
        let _ = writeln!(out, ".function {name}");
        let at = |i: usize| match places[i] {
            Place::Register(r) => format!("r{r}"),
            Place::Memory(slot) => format!("m{slot}"),
        };
        for (i, value) in self.values.iter().enumerate().filter(|(i, _)| needed[*i]) {
            let to = at(i);
            let _ = match value {
                Value::Parameter(p) => writeln!(out, "par {to} {p}"),
                Value::Constant(c) => writeln!(out, "set {to} {c}"),
                Value::Computed(o, a, b) => writeln!(out, "{} {to} {} {}", o.name(), at(*a), at(*b)),
                Value::Call { callee, arguments: [a, b, c], .. } => {
                    writeln!(out, "arg {} {} {}\ncall {to} {}", at(*a), at(*b), at(*c), self.callees[*callee])
                }
            };
        }
        let _ = writeln!(out, "ret {}", at(self.result));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::{preprocess, source};

    /// What a call gives in both evaluations below.
    fn called(name: &str, arguments: [u64; 3]) -> u64 {
        name.bytes().map(u64::from).chain(arguments).fold(7, |h, x| h.rotate_left(9).wrapping_mul(31) ^ x)
    }

    /// Runs the instructions of one function.
    fn run(code: &str, parameters: [u64; 3]) -> u64 {
        let mut places: HashMap<&str, u64> = HashMap::new();
        let mut arguments = [0; 3];
        for line in code.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            let value = |i: usize| places[words[i]];
            let result = match words[0] {
                "par" => parameters[words[2].parse::<usize>().unwrap()],
                "set" => words[2].parse().unwrap(),
                "add" => value(2).wrapping_add(value(3)),
                "sub" => value(2).wrapping_sub(value(3)),
                "mul" => value(2).wrapping_mul(value(3)),
                "xor" => value(2) ^ value(3),
                "and" => value(2) & value(3),
                "arg" => {
                    arguments = [value(1), value(2), value(3)];
                    continue;
                }
                "call" => called(words[2], arguments),
                "ret" => return value(1),
                other => panic!("{other}"),
            };
            places.insert(words[1], result);
        }
        panic!("no ret");
    }

    /// Evaluates one function as it is written: another way to the same result.
    fn evaluate(text: &str, parameters: [u64; 3]) -> u64 {
        let mut names: HashMap<String, u64> =
            ["a", "b", "c"].map(str::to_owned).into_iter().zip(parameters).collect();
        for line in text.lines().skip(1) {
            let line = line.trim().trim_end_matches(';');
            if let Some(rest) = line.strip_prefix("return ") {
                return level(rest, &names);
            }
            let (name, rest) = line.split_once(" = ").unwrap();
            let result = level(rest, &names);
            names.insert(name.to_owned(), result);
        }
        panic!("no return");
    }

    /// Splits at the last operator of the weakest level outside of brackets.
    fn level(text: &str, names: &HashMap<String, u64>) -> u64 {
        let text = text.trim();
        if let Some(rest) = text.strip_prefix("call ") {
            let (name, arguments) = rest.strip_suffix(')').unwrap().split_once('(').unwrap();
            let mut parts = Vec::new();
            let (mut depth, mut begin) = (0, 0);
            for (i, c) in arguments.char_indices().chain([(arguments.len(), ',')]) {
                depth += i32::from(c == '(') - i32::from(c == ')');
                if c == ',' && depth == 0 {
                    parts.push(level(&arguments[begin..i], names));
                    begin = i + 1;
                }
            }
            return called(name, parts.try_into().unwrap());
        }
        for signs in ["^&", "+-", "*"] {
            let mut depth = 0;
            for (i, c) in text.char_indices().rev() {
                depth += i32::from(c == ')') - i32::from(c == '(');
                if depth == 0 && signs.contains(c) {
                    let (a, b) = (level(&text[..i], names), level(&text[i + 1..], names));
                    return match c {
                        '+' => a.wrapping_add(b),
                        '-' => a.wrapping_sub(b),
                        '*' => a.wrapping_mul(b),
                        '^' => a ^ b,
                        _ => a & b,
                    };
                }
            }
        }
        match text.strip_prefix('(') {
            Some(inner) => level(inner.strip_suffix(')').unwrap(), names),
            None => text.parse().unwrap_or_else(|_| names[text]),
        }
    }

    #[test]
    fn translated_programs_compute_what_the_text_says() {
        let directory = tempfile::tempdir().unwrap();
        source::generate(directory.path(), 5).unwrap();
        let mut functions = 0;
        for unit in 0..4 {
            let mut text = Vec::new();
            preprocess::preprocess(directory.path(), &source::unit_name(unit), &mut text).unwrap();
            let text = String::from_utf8(text).unwrap();
            let code = translate(&text).unwrap();
            let codes: Vec<&str> = code.split(".function ").skip(1).collect();
            let texts: Vec<&str> = text.split("function ").skip(1).collect();
            assert_eq!(codes.len(), texts.len());
            for (code, text) in codes.iter().zip(texts) {
                let (name, code) = code.split_once('\n').unwrap();
                assert!(text.starts_with(name));
                for parameters in [[0, 0, 0], [1, 2, 3], [u64::MAX, 1 << 40, 12_345]] {
                    assert_eq!(run(code, parameters), evaluate(text, parameters), "{name}");
                }
                functions += 1;
            }
        }
        assert!(functions > 50, "{functions}");
    }

    #[test]
    fn what_is_known_is_folded_and_what_nobody_needs_goes() {
        let text = "function f(a, b, c) {\nt0 = (2 + 3) * 4;\nt1 = b * c;\nt2 = a + t0 * 1;\nt3 = t0 + a;\n\
                    return (t2 ^ t3) + t3;\n}";
        let code = translate(text).unwrap();
        assert_eq!(
            code.lines().filter(|l| l.starts_with("mul") || l.starts_with("xor")).count(),
            0,
            "{code}"
        );
        assert_eq!(code.lines().filter(|l| l.starts_with("add")).count(), 1, "{code}");
        assert_eq!(run(code.split_once('\n').unwrap().1, [7, 0, 0]), 27);
    }

    #[test]
    fn wrong_text_is_refused_with_its_place() {
        for (text, word) in [
            ("x", "a function is expected"),
            ("function f(a, b, c) { return d; }", "'d'"),
            ("function f(a, b, c) { t0 = a + ; return a; }", "a value is expected"),
            ("function f(a, b", "function f"),
            ("function f(a, b, c) { return 99999999999999999999; }", "no number"),
        ] {
            let e = translate(text).unwrap_err();
            assert!(e.contains(word), "{text}: {e}");
        }
    }
}
