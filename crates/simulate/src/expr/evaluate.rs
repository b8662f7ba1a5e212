//! Values, their intervals, and where laws are asked beyond what was measured.

use std::collections::{BTreeMap, BTreeSet};

use super::sheet::{Operation, Segment};
use super::{Bound, ExprError, Sheet};

#[derive(Debug, Clone, Copy)]
pub(super) enum Function {
    /// One of several values of one unit.
    Choice(fn(f64, f64) -> f64),
    Root,
    OfNumber(fn(f64) -> f64),
}

impl Function {
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "min" => Self::Choice(f64::min),
            "max" => Self::Choice(f64::max),
            "sqrt" => Self::Root,
            // Laws print it so.
            "log" | "log2" => Self::OfNumber(f64::log2),
            "ceil" => Self::OfNumber(f64::ceil),
            "floor" => Self::OfNumber(f64::floor),
            _ => return None,
        })
    }
}

#[derive(Debug, Clone)]
pub(super) enum Node {
    Number(f64),
    Variable,
    Figure(usize),
    Operation { operation: usize, p: Option<Box<Node>>, d: Option<Box<Node>> },
    Call(Function, Vec<Node>),
    Negative(Box<Node>),
    Two { operator: char, of: Box<[Node; 2]>, at: usize },
}

#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    /// Value, in ns to the power of the expression's dimension.
    pub value: f64,
    /// Ends that hold however the errors of figures go together; `None` where no figure has one, or one end has no value.
    pub interval: Option<(f64, f64)>,
    /// Places of the figures behind it.
    pub figures: BTreeSet<usize>,
    /// Where laws were asked beyond their points.
    pub outside: Outside,
}

/// Least and largest number asked for, by operation and by whether it was a number of ranks.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outside(BTreeMap<(usize, bool), (u64, u64)>);

impl Outside {
    /// Puts those of another answer in.
    pub fn add(&mut self, other: &Self) {
        for (key, (low, high)) in &other.0 {
            self.push(*key, *low, *high);
        }
    }

    fn push(&mut self, key: (usize, bool), low: u64, high: u64) {
        let own = self.0.entry(key).or_insert((low, high));
        *own = (own.0.min(low), own.1.max(high));
    }

    /// In words, one line each.
    pub fn lines(&self, sheet: &Sheet) -> Vec<String> {
        let range = |(low, high): (u64, u64)| {
            if low == high { low.to_string() } else { format!("{low} to {high}") }
        };
        let line = |(&(place, is_ranks), asked): (&(usize, bool), &(u64, u64))| {
            let o = &sheet.operations[place];
            let (name, asked) = (&o.name, range(*asked));
            if !is_ranks {
                let known = range(o.sizes().unwrap_or_default());
                return format!("{name} of {asked} B is extrapolated: measured sizes are {known} B");
            }
            let (first, last) = o.ranks().unwrap_or_default();
            let known = range((first.into(), last.into()));
            if o.laws.contains_key(&None) {
                format!("{name} of {asked} ranks is extrapolated: measured numbers of ranks are {known}")
            } else {
                format!(
                    "{name} of {asked} ranks has no law: the nearest measured cost is used ({known} ranks)"
                )
            }
        };
        self.0.iter().map(line).collect()
    }
}

/// What one evaluation is made with, and what it met.
struct Walk<'a> {
    sheet: &'a Sheet,
    variable: f64,
    /// A figure that has another value.
    moved: Option<(usize, f64)>,
    figures: BTreeSet<usize>,
    outside: Outside,
}

impl Bound<'_> {
    /// The value where the free variable is so, or why there is none: division by zero, p or d that cannot be, no finite number.
    pub fn at(&self, variable: f64) -> Result<Answer, ExprError> {
        let walk = |moved| {
            let (figures, outside) = Default::default();
            let mut walk = Walk { sheet: self.sheet, variable, moved, figures, outside };
            let value = walk.value(&self.root)?;
            Ok::<_, ExprError>((value, walk))
        };
        let (value, Walk { figures, outside, .. }) = walk(None)?;
        // Each figure at each of its ends, the others at their values: their sum holds whatever goes together.
        let (mut low, mut high) = (value, value);
        let mut is_known = figures.iter().any(|f| self.sheet.metrics[*f].ci.is_some());
        for figure in &figures {
            let [_, from, to] = self.sheet.value(*figure);
            let ends = [from, to].map(|end| walk(Some((*figure, end))).map(|(value, _)| value));
            let [Ok(a), Ok(b)] = ends else {
                is_known = false;
                continue;
            };
            low += (a.min(b) - value).min(0.0);
            high += (a.max(b) - value).max(0.0);
        }
        is_known &= low.is_finite() && high.is_finite();
        Ok(Answer { value, interval: is_known.then_some((low, high)), figures, outside })
    }
}

impl Sheet {
    /// What an operation of `ranks` costs with so many bytes, ns; `None` where nothing is known of it.
    pub fn cost(&self, operation: &str, ranks: u32, bytes: u64) -> Option<Answer> {
        let operation = self.operations.iter().position(|o| o.name == operation)?;
        let number = |n| Some(Box::new(Node::Number(n)));
        let root = Node::Operation { operation, p: number(f64::from(ranks)), d: number(bytes as f64) };
        Bound { sheet: self, root, dimension: 1 }.at(0.0).ok()
    }
}

impl Walk<'_> {
    fn value(&mut self, node: &Node) -> Result<f64, ExprError> {
        let value = match node {
            Node::Number(n) => *n,
            Node::Variable => self.variable,
            Node::Figure(figure) => self.figure(*figure),
            Node::Operation { operation, p, d } => {
                let sheet = self.sheet;
                let o = &sheet.operations[*operation];
                let mut whole = |of: &Option<Box<Node>>, what: &str, least: f64, most: f64| match of {
                    None => Ok(None),
                    Some(node) => {
                        let found = self.value(node)?;
                        let fits = found.fract() == 0.0 && (least..=most).contains(&found);
                        fits.then_some(Some(found as u64)).ok_or_else(|| {
                            ExprError::new(format!("{}: {what} = {found} is not possible", o.name))
                                .help("p must be an integer from 1 on, d an integer from 0 on")
                        })
                    }
                };
                let p = whole(p, "p", 1.0, f64::from(u32::MAX))?;
                let d = whole(d, "d", 0.0, 9e15)?;
                self.operation(*operation, o, p.map(|p| p as u32), d)?
            }
            Node::Call(function, of) => {
                let values = of.iter().map(|n| self.value(n)).collect::<Result<Vec<f64>, _>>()?;
                let first = values.first().copied().unwrap_or(f64::NAN);
                match function {
                    Function::Choice(of) => values.into_iter().fold(first, of),
                    Function::Root => first.sqrt(),
                    Function::OfNumber(of) => of(first),
                }
            }
            Node::Negative(of) => -self.value(of)?,
            Node::Two { operator, of, at } => {
                let (a, b) = (self.value(&of[0])?, self.value(&of[1])?);
                match operator {
                    '+' => a + b,
                    '-' => a - b,
                    '*' => a * b,
                    '/' if b == 0.0 => {
                        return Err(ExprError::new(format!("character {at}: division by zero")));
                    }
                    '/' => a / b,
                    _ => a.powf(b),
                }
            }
        };
        if value.is_finite() {
            Ok(value)
        } else {
            Err(ExprError::new("an intermediate value is not a finite number"))
        }
    }

    fn figure(&mut self, figure: usize) -> f64 {
        self.figures.insert(figure);
        match self.moved {
            Some((moved, value)) if moved == figure => value,
            _ => self.sheet.value(figure)[0],
        }
    }

    fn operation(
        &mut self,
        place: usize,
        o: &Operation,
        p: Option<u32>,
        d: Option<u64>,
    ) -> Result<f64, ExprError> {
        let needs = |what: &str, range: String| {
            Err(ExprError::new(format!("{} needs {what}", o.name)).help(format!("known: {range}")))
        };
        let (Some((first, last)), Some((least, most))) = (o.ranks(), o.sizes()) else {
            return Err(ExprError::new(format!("{} has no costs", o.name)));
        };
        let Some(p) = p.or((first == last).then_some(first)) else {
            return needs("p=", format!("{first} to {last} ranks"));
        };
        let Some(d) = d.or((least == most).then_some(least)) else {
            return needs("d=", format!("{least} to {most} B"));
        };
        let costs = || o.costs.keys().copied();
        let nearest = |all: &mut dyn Iterator<Item = u32>| all.min_by_key(|known| known.abs_diff(p));
        let of_law = nearest(&mut o.laws.keys().flatten().copied());
        let holds_for_all = o.laws.get(&None);
        // No law in p says what lies between two that were measured.
        let known = match (holds_for_all, of_law) {
            (Some(_), _) => p.clamp(first, last),
            (None, own) => own.or(nearest(&mut costs())).unwrap_or(first),
        };
        if known != p {
            self.outside.push((place, true), p.into(), p.into());
        }
        if d < least || d > most {
            self.outside.push((place, false), d, d);
        }
        Ok(match (holds_for_all, o.laws.get(&Some(known)), o.costs.get(&known)) {
            (Some(segments), ..) => self.law(segments, p, d),
            (None, Some(segments), _) => self.law(segments, known, d),
            (None, None, costs) => {
                let costs: Vec<(u64, usize)> = costs.into_iter().flatten().map(|(d, f)| (*d, *f)).collect();
                self.between(&costs, d)
            }
        })
    }

    fn law(&mut self, segments: &BTreeMap<u64, Segment>, p: u32, d: u64) -> f64 {
        let of_size = segments.values().find(|s| s.to_bytes.is_some_and(|to| d <= to));
        let own = of_size.or(segments.values().next_back());
        let terms = own.map_or(&[][..], |s| &s.terms);
        terms.iter().map(|(term, figure)| self.figure(*figure) * term.at(p, d)).sum()
    }

    /// Costs at sizes in order, a line between them; the first and last beyond.
    fn between(&mut self, costs: &[(u64, usize)], d: u64) -> f64 {
        let after = costs.iter().position(|(at, _)| *at >= d).unwrap_or(costs.len().saturating_sub(1));
        let Some(&(at, high)) = costs.get(after) else { return f64::NAN };
        let above = self.figure(high);
        if after == 0 || at <= d {
            return above;
        }
        let (before, low) = costs[after - 1];
        let share = (d - before) as f64 / (at - before) as f64;
        let below = self.figure(low);
        below + share * (above - below)
    }
}
