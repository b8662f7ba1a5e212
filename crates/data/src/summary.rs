//! What a person reads first: rows of figures, and what the machine is fit for. Rows name metrics; views look them up and word them,
//! so that one figure reads the same on the page, the report, the card and in Markdown.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::metric::{Metric, Params};
use crate::quantity::Unit;

/// What a person should read first.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// Rows of the page, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rows: Vec<Row>,
    /// What the machine is fit for, a purpose each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fitness: Vec<Fitness>,
    /// The same in full, as text.
    #[serde(default)]
    pub lines: Vec<SummaryLine>,
    /// Tiles of the card, in order of importance.
    #[serde(default)]
    pub tiles: Vec<Tile>,
    /// What came out, in one sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub verdict: String,
}

/// A row of the page: a name and up to a few figures of one kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Row {
    /// `NOISE`, `WAKE-UP`, `MEMORY`, ...
    pub section: String,
    /// What it is: `latency`.
    pub name: String,
    /// Its figures, each under a condition.
    pub figures: Vec<RowFigure>,
}

/// A figure of a row.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RowFigure {
    /// Condition in words (`2 MiB pages`); empty where the name says all.
    pub condition: String,
    /// Id of the metric.
    pub id: String,
    /// Its parameters.
    pub params: Params,
    /// What of it is shown.
    #[serde(default)]
    pub shows: Shows,
}

/// What a figure shows of its metric.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Shows {
    /// Its value, with its interval.
    #[default]
    Value,
    /// Its largest sample.
    Max,
    /// A quantile, by probability written as text.
    Quantile(String),
}

impl Shows {
    /// The figure, where the metric has it.
    pub fn of(&self, metric: &Metric) -> Option<f64> {
        match self {
            Self::Value => metric.value,
            Self::Max => metric.max,
            Self::Quantile(p) => metric.quantiles.get(p).copied(),
        }
    }
}

/// A tile of the card.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tile {
    /// What it is.
    pub label: String,
    /// The figure with unit.
    pub value: String,
    /// Interval or condition in small print.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// Text of a section.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SummaryLine {
    /// `A/B`, `SELFTEST`, ...
    pub section: String,
    /// Lines; the first stands beside the heading.
    pub lines: Vec<String>,
}

/// How well a machine serves a purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Fit {
    /// Nothing speaks against it.
    Yes,
    /// Too little was seen to say.
    Unknown,
    /// With a reservation.
    Partly,
    /// Not.
    No,
}

/// Whether the machine is fit for a purpose, and why.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Fitness {
    /// `latency under 1 ms`, ...
    pub purpose: String,
    /// The judgement.
    pub fit: Fit,
    /// Its reason, with figures.
    pub reason: String,
}

/// Purposes in the order in which they are told.
pub const PURPOSES: [&str; 4] = ["latency under 1 ms", "audio, video", "throughput", "message passing"];

impl Summary {
    /// Adds what another probe says. Of two judgements of one purpose the worse stands.
    pub fn add(&mut self, other: Self) {
        self.rows.extend(other.rows);
        for new in other.fitness {
            match self.fitness.iter_mut().find(|f| f.purpose == new.purpose) {
                Some(old) if new.fit > old.fit => *old = new,
                Some(_) => {}
                None => self.fitness.push(new),
            }
        }
        let place = |f: &Fitness| PURPOSES.iter().position(|p| *p == f.purpose);
        self.fitness.sort_by_key(|f| place(f).unwrap_or(PURPOSES.len()));
        self.tiles.extend(other.tiles);
        for new in other.lines {
            match self.lines.iter_mut().find(|l| l.section == new.section) {
                Some(old) => old.lines.extend(new.lines),
                None => self.lines.push(new),
            }
        }
        if !self.verdict.is_empty() && !other.verdict.is_empty() {
            self.verdict.push(' ');
        }
        self.verdict.push_str(&other.verdict);
    }
}

/// A row as a probe declares it.
#[derive(Debug, Clone, Copy)]
pub struct RowInfo {
    /// `MEMORY`, ...
    pub section: &'static str,
    /// What it is; `{name}` stands for a parameter of the first figure.
    pub name: &'static str,
    /// Which figures it shows.
    pub picks: &'static [Pick],
    /// A row for each value of this parameter of the first pick.
    pub each: Option<&'static str>,
}

/// A figure of a row as a probe declares it.
#[derive(Debug, Clone, Copy)]
pub struct Pick {
    condition: &'static str,
    selector: &'static str,
    max: bool,
    quantile: Option<&'static str>,
    choice: Choice,
}

#[derive(Debug, Clone, Copy)]
enum Choice {
    First,
    Greatest,
    Least,
    Most(&'static str),
}

impl RowInfo {
    /// A row of these figures.
    pub const fn new(section: &'static str, name: &'static str, picks: &'static [Pick]) -> Self {
        Self { section, name, picks, each: None }
    }

    /// A row for each value of this parameter.
    #[must_use]
    pub const fn each(self, param: &'static str) -> Self {
        Self { each: Some(param), ..self }
    }
}

impl Pick {
    /// The metric that `selector` names: `memory.latency{level=DRAM,kernel=read.*,!load=none}`. A value that ends in `*` stands for all that
    /// begin so; `!` for all but this; a parameter that is not named may be anything. `{name}` in `condition` stands for a parameter.
    pub const fn new(condition: &'static str, selector: &'static str) -> Self {
        Self { condition, selector, max: false, quantile: None, choice: Choice::First }
    }

    /// Its largest sample.
    #[must_use]
    pub const fn max(self) -> Self {
        Self { max: true, ..self }
    }

    /// A quantile of it.
    #[must_use]
    pub const fn quantile(self, p: &'static str) -> Self {
        Self { quantile: Some(p), ..self }
    }

    /// Of several metrics that of the greatest figure.
    #[must_use]
    pub const fn greatest(self) -> Self {
        Self { choice: Choice::Greatest, ..self }
    }

    /// Of several metrics that of the least figure.
    #[must_use]
    pub const fn least(self) -> Self {
        Self { choice: Choice::Least, ..self }
    }

    /// Of several metrics that with most of a parameter, where it is more than 1.
    #[must_use]
    pub const fn most(self, param: &'static str) -> Self {
        Self { choice: Choice::Most(param), ..self }
    }

    /// Id and names of parameters that it asks for.
    pub fn names(&self) -> (&'static str, Vec<&'static str>) {
        let (id, conditions) = split(self.selector);
        (id, conditions.into_iter().map(|c| c.0.trim_start_matches('!')).collect())
    }

    fn shows(&self) -> Shows {
        match (self.max, self.quantile) {
            (true, _) => Shows::Max,
            (_, Some(p)) => Shows::Quantile(p.to_owned()),
            _ => Shows::Value,
        }
    }

    /// The metrics it may mean, with their figures.
    fn candidates<'m>(&self, metrics: &'m [Metric]) -> Vec<(&'m Metric, f64)> {
        let (id, conditions) = split(self.selector);
        let holds = |m: &Metric, (name, wanted): &(&str, &str)| {
            let is = |name: &str| {
                let Some(value) = m.params.get(name) else { return false };
                let value = value.to_string();
                wanted.strip_suffix('*').map_or(value == *wanted, |begin| value.starts_with(begin))
            };
            name.strip_prefix('!').map_or_else(|| is(name), |name| !is(name))
        };
        let shows = self.shows();
        let of = metrics.iter().filter(|m| m.id == id && conditions.iter().all(|c| holds(m, c)));
        of.filter_map(|m| Some((m, shows.of(m)?))).collect()
    }

    fn chosen<'m>(&self, metrics: &'m [Metric], each: Option<(&str, &str)>) -> Option<&'m Metric> {
        let is_each =
            |m: &Metric| each.is_none_or(|(p, v)| m.params.get(p).is_some_and(|x| x.to_string() == v));
        let all = self.candidates(metrics).into_iter().filter(|(m, _)| is_each(m));
        let number = |m: &Metric, param| {
            m.params.get(param).and_then(|v| v.to_string().parse::<i64>().ok()).unwrap_or(0)
        };
        match self.choice {
            Choice::First => all.map(|c| c.0).next(),
            Choice::Greatest => all.max_by(|a, b| a.1.total_cmp(&b.1)).map(|c| c.0),
            Choice::Least => all.min_by(|a, b| a.1.total_cmp(&b.1)).map(|c| c.0),
            Choice::Most(param) => {
                all.map(|c| c.0).filter(|m| number(m, param) > 1).max_by_key(|m| number(m, param))
            }
        }
    }
}

/// Id and conditions of a selector.
fn split(selector: &'static str) -> (&'static str, Vec<(&'static str, &'static str)>) {
    let Some((id, rest)) = selector.split_once('{') else { return (selector, Vec::new()) };
    let pairs = rest.trim_end_matches('}').split(',').filter_map(|c| c.split_once('='));
    (id, pairs.collect())
}

/// The rows of `infos` whose figures are among `metrics`.
pub fn rows(infos: &[RowInfo], metrics: &[Metric]) -> Vec<Row> {
    infos.iter().flat_map(|info| rows_of(info, metrics)).collect()
}

fn rows_of(info: &RowInfo, metrics: &[Metric]) -> Vec<Row> {
    let Some(param) = info.each else { return row(info, metrics, None).into_iter().collect() };
    let mut values: Vec<String> = Vec::new();
    for (metric, _) in info.picks.iter().flat_map(|p| p.candidates(metrics)) {
        let value = metric.params.get(param).map(ToString::to_string);
        values.extend(value.filter(|v| !values.contains(v)));
    }
    values.iter().filter_map(|v| row(info, metrics, Some((param, v)))).collect()
}

fn row(info: &RowInfo, metrics: &[Metric], each: Option<(&str, &str)>) -> Option<Row> {
    let found: Vec<(&Pick, &Metric)> =
        info.picks.iter().filter_map(|p| Some((p, p.chosen(metrics, each)?))).collect();
    let (_, first) = found.first()?;
    let figure = |(pick, m): &(&Pick, &Metric)| RowFigure {
        condition: filled(pick.condition, &m.params),
        id: m.id.clone(),
        params: m.params.clone(),
        shows: pick.shows(),
    };
    Some(Row {
        section: info.section.to_owned(),
        name: filled(info.name, &first.params),
        figures: found.iter().map(figure).collect(),
    })
}

/// A text with its `{name}`s replaced by parameters.
fn filled(text: &str, params: &Params) -> String {
    params
        .iter()
        .fold(text.to_owned(), |text, (name, value)| text.replace(&format!("{{{name}}}"), &value.to_string()))
}

/// A figure of a row, found among metrics.
#[derive(Debug, Clone, Copy)]
pub struct Shown<'m> {
    /// Whose it is.
    pub metric: &'m Metric,
    /// The figure.
    pub value: f64,
    /// Its unit.
    pub unit: Unit,
}

impl RowFigure {
    /// The figure among the metrics of its record.
    pub fn find<'m>(&self, metrics: &'m [Metric]) -> Option<Shown<'m>> {
        let metric = metrics.iter().find(|m| m.id == self.id && m.params == self.params)?;
        Some(Shown { metric, value: self.shows.of(metric)?, unit: metric.unit })
    }
}

#[cfg(test)]
#[path = "summary_tests.rs"]
mod tests;
