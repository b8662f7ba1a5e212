//! From names to figures, and from units to whether they can be added.

use super::evaluate::{Function, Node};
use super::parse::Expr;
use super::{Dimension, ExprError, Sheet};

/// An expression whose names have a meaning.
#[derive(Debug, Clone)]
pub struct Bound<'a> {
    pub(super) sheet: &'a Sheet,
    pub(super) root: Node,
    /// Power of time of its unit: 1 of ns, 0 of a number.
    pub dimension: i32,
}

/// Gives names their meaning, or says which has none or several, or a unit that does not fit: `variable` is the free one.
pub fn bind<'a>(expr: &Expr, sheet: &'a Sheet, variable: Option<&str>) -> Result<Bound<'a>, ExprError> {
    let binder = Binder { sheet, variable };
    let (root, dimension) = binder.node(expr)?;
    Ok(Bound { sheet, root, dimension: dimension.unwrap_or(0) })
}

struct Binder<'a> {
    sheet: &'a Sheet,
    variable: Option<&'a str>,
}

fn unit(dimension: Dimension) -> String {
    match dimension {
        None | Some(0) => "a number".to_owned(),
        Some(1) => "a time".to_owned(),
        Some(-1) => "a rate".to_owned(),
        Some(power) => format!("a time to the power of {power}"),
    }
}

type Made = Result<(Node, Dimension), ExprError>;

impl Binder<'_> {
    fn node(&self, expr: &Expr) -> Made {
        match expr {
            Expr::Number(value, dimension) => Ok((Node::Number(*value), *dimension)),
            Expr::Text(text) => Err(ExprError::new(format!("'{text}' in quotes is not a number"))),
            Expr::Negative(of) => {
                let (of, dimension) = self.node(of)?;
                Ok((Node::Negative(Box::new(of)), dimension))
            }
            Expr::Two { operator, of, at } => self.two(*operator, &of[0], &of[1], *at),
            Expr::Name { name, arguments, at } => self.name(name, arguments, *at),
        }
    }

    fn two(&self, operator: char, left: &Expr, right: &Expr, at: usize) -> Made {
        let ((left, a), (right, b)) = (self.node(left)?, self.node(right)?);
        let sums = |a: Dimension, b: Dimension| Some(a.unwrap_or(0).saturating_add(b.unwrap_or(0)));
        let dimension = match operator {
            '*' => sums(a, b),
            '/' => sums(a, b.map(|b| -b)),
            '^' => power(a, b, &right)?,
            _ => same(a, b).ok_or_else(|| {
                ExprError::new(format!("character {at}: {} {operator} {}", unit(a), unit(b)))
                    .help("a time needs a unit: 20us")
            })?,
        };
        Ok((Node::Two { operator, of: Box::new([left, right]), at }, dimension))
    }

    fn name(&self, name: &str, arguments: &[(Option<String>, Expr)], at: usize) -> Made {
        if self.variable == Some(name) && arguments.is_empty() {
            return Ok((Node::Variable, Some(0)));
        }
        if let Some(function) = Function::named(name).filter(|_| !arguments.is_empty()) {
            return self.call(function, name, arguments, at);
        }
        let place = self.sheet.operations.iter().position(|o| o.name == name);
        let is_of_law = |key: &Option<String>| matches!(key.as_deref(), Some("p" | "d"));
        if let Some(operation) = place.filter(|_| arguments.iter().all(|(key, _)| is_of_law(key))) {
            let of = |wanted: &str| {
                let found = arguments.iter().find(|(key, _)| key.as_deref() == Some(wanted));
                found.map(|(_, expr)| self.number(expr, wanted, at).map(Box::new)).transpose()
            };
            return Ok((Node::Operation { operation, p: of("p")?, d: of("d")? }, Some(1)));
        }
        let keys = arguments.iter().map(|(key, value)| self.key(name, key.as_deref(), value));
        let figure = self.sheet.figure(name, &keys.collect::<Result<Vec<_>, _>>()?).map_err(|e| {
            let is_free = self.variable.is_none() && arguments.is_empty() && name.len() == 1;
            if is_free { e.help(format!("a free variable takes --over {name}=2-1K")) } else { e }
        })?;
        Ok((Node::Figure(figure), Some(self.sheet.dimension(figure))))
    }

    /// A key of a figure, as text.
    fn key(&self, name: &str, key: Option<&str>, value: &Expr) -> Result<(String, String), ExprError> {
        let Some(key) = key else {
            return Err(ExprError::new(format!("{name}: an argument without its key"))
                .help(format!("write {name}(key=value), such as ops.cost(operation=getppid)")));
        };
        let text = match value {
            Expr::Text(text) => text.clone(),
            Expr::Number(number, _) => number.to_string(),
            Expr::Name { name: word, arguments, .. } if arguments.is_empty() => {
                if self.variable == Some(word) {
                    return Err(ExprError::new(format!(
                        "{name} has no law: its {key} cannot be the variable {word}"
                    ))
                    .help("records of machmeter mpi and simulate --table have laws of p and d"));
                }
                word.clone()
            }
            _ => return Err(ExprError::new(format!("{name}: {key} is not a name or a number"))),
        };
        Ok((key.to_owned(), text))
    }

    fn number(&self, expr: &Expr, what: &str, at: usize) -> Result<Node, ExprError> {
        match self.node(expr)? {
            (node, None | Some(0)) => Ok(node),
            (_, dimension) => Err(ExprError::new(format!("character {at}: {what} is {}", unit(dimension)))),
        }
    }

    fn call(&self, function: Function, name: &str, arguments: &[(Option<String>, Expr)], at: usize) -> Made {
        if let Some((Some(key), _)) = arguments.iter().find(|(key, _)| key.is_some()) {
            return Err(ExprError::new(format!("character {at}: {name} has no key {key}")));
        }
        if arguments.len() != 1 && !matches!(function, Function::Choice(_)) {
            return Err(ExprError::new(format!("character {at}: {name} takes one argument")));
        }
        let made = arguments.iter().map(|(_, expr)| self.node(expr)).collect::<Result<Vec<_>, _>>()?;
        let (nodes, dimensions): (Vec<Node>, Vec<Dimension>) = made.into_iter().unzip();
        let mut all = dimensions.iter().copied();
        let first = all.next().flatten();
        let dimension = match function {
            Function::Choice(_) => all.try_fold(first, same),
            Function::Root => first.filter(|d| d % 2 == 0).map(|d| Some(d / 2)),
            Function::OfNumber(_) => matches!(first, None | Some(0)).then_some(Some(0)),
        };
        let dimension = dimension.ok_or_else(|| {
            let units: Vec<String> = dimensions.into_iter().map(unit).collect();
            ExprError::new(format!("character {at}: {name} of {}", units.join(" and ")))
        })?;
        Ok((Node::Call(function, nodes), dimension))
    }
}

/// The dimension of a sum; `None` where there is none.
fn same(a: Dimension, b: Dimension) -> Option<Dimension> {
    match (a, b) {
        (Some(a), Some(b)) if a != b => None,
        _ => Some(a.or(b)),
    }
}

/// Of a power: a time needs a whole number that is known.
fn power(base: Dimension, exponent: Dimension, node: &Node) -> Result<Dimension, ExprError> {
    let exponent_is_number = matches!(exponent, None | Some(0));
    let number = |node: &Node| if let Node::Number(n) = node { Some(*n) } else { None };
    let constant = if let Node::Negative(of) = node { number(of).map(|n| -n) } else { number(node) };
    match (base, constant) {
        (None | Some(0), _) if exponent_is_number => Ok(Some(0)),
        (Some(d), Some(n)) if exponent_is_number && n.fract() == 0.0 && n.abs() <= 8.0 => {
            Ok(Some(d.saturating_mul(n as i32)))
        }
        _ => Err(ExprError::new(format!(
            "{} to the power of a number that is not an integer up to 8",
            unit(base)
        ))),
    }
}
