//! Text to tree.

use super::{Dimension, ExprError};

/// Tokens at most: trees of so many are walked by recursion.
const MOST_TOKENS: usize = 1000;
/// Brackets, signs and powers within each other at most.
const DEEPEST: u32 = 64;

/// A tree: literals with the power of their time, texts in quotes, which are arguments alone, names with arguments where they have brackets,
/// signs and operators. `at` counts characters from 1.
#[derive(Debug, Clone, PartialEq)]
pub enum Expr {
    Number(f64, Dimension),
    Text(String),
    Name { name: String, arguments: Vec<(Option<String>, Expr)>, at: usize },
    Negative(Box<Expr>),
    Two { operator: char, of: Box<[Expr; 2]>, at: usize },
}

#[derive(Debug, Clone, PartialEq)]
enum Token {
    Number(f64, Dimension),
    Name(String),
    Text(String),
    Sign(char),
}

/// Reads an expression, or says where it is none.
pub fn parse(text: &str) -> Result<Expr, ExprError> {
    let tokens = tokens(text)?;
    let mut parser = Parser { tokens: &tokens, next: 0, depth: 0 };
    let expr = parser.sum()?;
    match parser.tokens.get(parser.next) {
        None => Ok(expr),
        Some((at, _)) => Err(ExprError::new(format!("character {at}: an operator is missing"))),
    }
}

fn tokens(text: &str) -> Result<Vec<(usize, Token)>, ExprError> {
    let chars: Vec<char> = text.chars().collect();
    let part = |from: usize, to: usize| chars[from..to].iter().collect::<String>();
    let mut all = Vec::new();
    let mut i = 0;
    while let Some(&c) = chars.get(i) {
        let at = i + 1;
        let run = |from: usize, is: &dyn Fn(char) -> bool| {
            chars[from..].iter().take_while(|c| is(**c)).count() + from
        };
        let (token, end) = if c.is_whitespace() {
            i += 1;
            continue;
        } else if c.is_ascii_digit() || c == '.' {
            let of_digits = end_of_number(&chars, i);
            let end = run(of_digits, &|c| c.is_ascii_alphanumeric() || c == '_');
            let (digits, unit) = (part(i, of_digits), part(of_digits, end));
            let token = number(&digits, &unit).ok_or_else(|| {
                ExprError::new(format!("character {at}: '{digits}{unit}' is not a number"))
                    .help("write numbers such as 100, 1e6, 8K (2^10), 64M, 20us")
            })?;
            (token, end)
        } else if c.is_ascii_alphabetic() || c == '_' {
            let end = run(i, &|c| c.is_ascii_alphanumeric() || c == '_' || c == '.');
            (Token::Name(part(i, end)), end)
        } else if c == '\'' || c == '"' {
            let end = run(at, &|other| other != c);
            if end == chars.len() {
                return Err(ExprError::new(format!("character {at}: a quote without its end")));
            }
            (Token::Text(part(at, end)), end + 1)
        } else if "+-*/^(),={}".contains(c) {
            // Keys of figures stand in braces.
            let sign = match c {
                '{' => '(',
                '}' => ')',
                c => c,
            };
            (Token::Sign(sign), at)
        } else {
            return Err(ExprError::new(format!("character {at}: '{c}' is not allowed here")));
        };
        i = end;
        all.push((at, token));
        if all.len() > MOST_TOKENS {
            return Err(ExprError::new(format!("more than {MOST_TOKENS} numbers, names and signs")));
        }
    }
    Ok(all)
}

/// Digits, a point, an exponent that has digits.
fn end_of_number(chars: &[char], from: usize) -> usize {
    let digits = |at: usize| chars[at..].iter().take_while(|c| c.is_ascii_digit()).count() + at;
    let mut end = digits(from);
    if chars.get(end) == Some(&'.') {
        end = digits(end + 1);
    }
    if matches!(chars.get(end), Some('e' | 'E')) {
        let sign = usize::from(matches!(chars.get(end + 1), Some('+' | '-')));
        let exponent = (end + 1 + sign).min(chars.len());
        if digits(exponent) > exponent {
            end = digits(exponent);
        }
    }
    end
}

fn number(digits: &str, unit: &str) -> Option<Token> {
    let value: f64 = digits.parse().ok()?;
    let (scale, time) = match unit {
        "" | "B" => (1.0, 0),
        "k" | "K" | "KiB" => (1024.0, 0),
        "M" | "MiB" => (1_048_576.0, 0),
        "G" | "GiB" => (1_073_741_824.0, 0),
        "ns" => (1.0, 1),
        "us" => (1e3, 1),
        "ms" => (1e6, 1),
        "s" => (1e9, 1),
        _ => return None,
    };
    let value = value * scale;
    let fits_all = value == 0.0 && unit.is_empty();
    value.is_finite().then_some(Token::Number(value, (!fits_all).then_some(time)))
}

struct Parser<'a> {
    tokens: &'a [(usize, Token)],
    next: usize,
    depth: u32,
}

impl Parser<'_> {
    /// Takes one of these signs.
    fn sign(&mut self, wanted: &str) -> Option<(usize, char)> {
        match self.tokens.get(self.next) {
            Some((at, Token::Sign(c))) if wanted.contains(*c) => {
                self.next += 1;
                Some((*at, *c))
            }
            _ => None,
        }
    }

    fn deeper<T>(&mut self, of: impl FnOnce(&mut Self) -> Result<T, ExprError>) -> Result<T, ExprError> {
        if self.depth == DEEPEST {
            return Err(ExprError::new(format!("more than {DEEPEST} nested brackets, signs and powers")));
        }
        self.depth += 1;
        let found = of(self);
        self.depth -= 1;
        found
    }

    fn row(&mut self, signs: &str, of: fn(&mut Self) -> Result<Expr, ExprError>) -> Result<Expr, ExprError> {
        let mut left = of(self)?;
        while let Some((at, operator)) = self.sign(signs) {
            left = Expr::Two { operator, of: Box::new([left, of(self)?]), at };
        }
        Ok(left)
    }

    fn sum(&mut self) -> Result<Expr, ExprError> {
        self.row("+-", Self::product)
    }

    fn product(&mut self) -> Result<Expr, ExprError> {
        self.row("*/", Self::signed)
    }

    fn signed(&mut self) -> Result<Expr, ExprError> {
        if self.sign("-").is_some() {
            return self.deeper(|p| Ok(Expr::Negative(Box::new(p.signed()?))));
        }
        self.power()
    }

    /// To the right: 2^3^2 is 2^9.
    fn power(&mut self) -> Result<Expr, ExprError> {
        let base = self.one()?;
        let Some((at, operator)) = self.sign("^") else { return Ok(base) };
        let exponent = self.deeper(Self::signed)?;
        Ok(Expr::Two { operator, of: Box::new([base, exponent]), at })
    }

    fn one(&mut self) -> Result<Expr, ExprError> {
        let Some((at, token)) = self.tokens.get(self.next) else {
            return Err(ExprError::new("the expression ends where a number or name is missing"));
        };
        self.next += 1;
        match token {
            Token::Number(value, dimension) => Ok(Expr::Number(*value, *dimension)),
            Token::Text(text) => Ok(Expr::Text(text.clone())),
            Token::Name(name) => {
                let has_arguments = self.sign("(").is_some();
                let arguments = if has_arguments { self.deeper(|p| p.arguments(*at))? } else { Vec::new() };
                Ok(Expr::Name { name: name.clone(), arguments, at: *at })
            }
            Token::Sign('(') => {
                let inner = self.deeper(Self::sum)?;
                self.end(*at)?;
                Ok(inner)
            }
            Token::Sign(c) => {
                Err(ExprError::new(format!("character {at}: a number or name is missing before '{c}'")))
            }
        }
    }

    fn end(&mut self, begun: usize) -> Result<(), ExprError> {
        let ended = self.sign(")").map(|_| ());
        ended.ok_or_else(|| ExprError::new(format!("character {begun}: a bracket without its end")))
    }

    fn arguments(&mut self, begun: usize) -> Result<Vec<(Option<String>, Expr)>, ExprError> {
        let mut all = Vec::new();
        if self.sign(")").is_some() {
            return Ok(all);
        }
        loop {
            let key = match self.tokens.get(self.next..self.next + 2) {
                Some([(_, Token::Name(key)), (_, Token::Sign('='))]) => {
                    self.next += 2;
                    Some(key.clone())
                }
                _ => None,
            };
            all.push((key, self.sum()?));
            if self.sign(",").is_none() {
                self.end(begun)?;
                return Ok(all);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// With all brackets.
    fn whole(expr: &Expr) -> String {
        match expr {
            Expr::Number(n, _) => n.to_string(),
            Expr::Negative(of) => format!("(-{})", whole(of)),
            Expr::Two { operator, of, .. } => format!("({}{operator}{})", whole(&of[0]), whole(&of[1])),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn operators_bind_as_in_print() {
        let tree = |text: &str| parse(text).unwrap();
        for (text, planted) in [
            ("1+2*3", "(1+(2*3))"),
            ("8-4-2", "((8-4)-2)"),
            ("8/4*2", "((8/4)*2)"),
            ("-2^2", "(-(2^2))"),
            ("2^-3^2", "(2^(-(3^2)))"),
            ("2*-(3+1)", "(2*(-(3+1)))"),
        ] {
            assert_eq!(whole(&tree(text)), planted, "{text}");
        }
        assert_eq!(tree("64K"), Expr::Number(65536.0, Some(0)));
        assert_eq!(tree("1.5e3us"), Expr::Number(1.5e6, Some(1)));
        assert!(matches!(tree("a.b{c=d,'e'}"), Expr::Name { arguments, .. } if arguments.len() == 2));
    }

    #[test]
    fn what_is_no_expression_says_where() {
        for (text, about) in [
            ("", "ends where a number or name is missing"),
            ("2*", "ends where"),
            ("2 3", "character 3: an operator is missing"),
            ("(1", "character 1: a bracket without its end"),
            ("f(1,", "ends where"),
            ("*2", "character 1: a number or name is missing before '*'"),
            ("2 $ 3", "character 3: '$' is not allowed here"),
            ("3x", "character 1: '3x' is not a number"),
            ("1..2", "an operator is missing"),
            ("'open", "a quote without its end"),
        ] {
            let found = parse(text).unwrap_err().to_string();
            assert!(found.contains(about), "{text}: {found}");
        }
        for deep in ["(".repeat(5000), "-".repeat(900), "2^".repeat(400), "f(".repeat(400), "1+".repeat(9999)]
        {
            assert!(parse(&deep).is_err());
        }
        assert!(parse(&format!("{}1", "1+".repeat(400))).is_ok());
    }
}
