//! Rows as declarations of probes: names, and selectors that find the metrics of a run.

use super::{Row, RowFigure, Shows};
use crate::metric::{Metric, Params};
use crate::quantity::Better;

/// Most rows of one declaration with a row per CPU, level or source. Tables have all.
const MOST_EACH: usize = 16;

/// A declaration of a row.
#[derive(Debug, Clone, Copy)]
pub struct RowInfo {
    /// `MEMORY`, ...
    pub section: &'static str,
    /// The quantity; `{name}` is replaced by a parameter of the first figure.
    pub name: &'static str,
    /// The figures of the row.
    pub picks: &'static [Pick],
    /// A parameter of the first pick: the row is repeated for each of its values.
    pub each: Option<&'static str>,
    /// A parameter with one value for all figures of the row: the value that most figures have, among equals the last in the record.
    pub share: Option<&'static str>,
    /// True if only the page of its own probe shows the row.
    pub detail: bool,
}

/// A declaration of a figure in a row.
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
    Worst,
    Most(&'static str),
    Last(&'static str),
}

/// Rows under a name: `rows! { ROWS: "SECTION" { row "name": ["condition" "selector" greatest, ...]; detail "name" each "param": [...]; } }`.
/// `each` and `share` are methods of [`RowInfo`]; the words after a selector are methods of [`Pick`], for example `most("cpus")`.
#[macro_export]
macro_rules! rows {
    (@row $($of:tt)*) => { $crate::summary::RowInfo::new($($of)*) };
    (@detail $($of:tt)*) => { $crate::summary::RowInfo::detail($($of)*) };
    ($vis:vis $rows:ident: $($section:literal { $(
        $kind:ident $name:literal $($word:ident $param:literal)*:
        [$($condition:literal $selector:literal $($choice:ident $(($of:literal))?)*),* $(,)?];
    )* })*) => {
        $vis const $rows: &[$crate::summary::RowInfo] = &[$($(
            $crate::rows!(@$kind $section, $name, &[$(
                $crate::summary::Pick::new($condition, $selector)$(.$choice($($of)?))*
            ),*])$(.$word($param))*,
        )*)*];
    };
}

impl RowInfo {
    /// A row of these figures.
    pub const fn new(section: &'static str, name: &'static str, picks: &'static [Pick]) -> Self {
        Self { section, name, picks, each: None, share: None, detail: false }
    }

    /// A row that only the page of its probe shows.
    pub const fn detail(section: &'static str, name: &'static str, picks: &'static [Pick]) -> Self {
        Self { detail: true, ..Self::new(section, name, picks) }
    }

    /// Repeats the row for each value of this parameter.
    #[must_use]
    pub const fn each(self, param: &'static str) -> Self {
        Self { each: Some(param), ..self }
    }

    /// Restricts the figures to one value of this parameter, for example one kernel per row.
    #[must_use]
    pub const fn share(self, param: &'static str) -> Self {
        Self { share: Some(param), ..self }
    }

    /// The value of the shared parameter in this row.
    fn shared(&self, metrics: &[Metric], fixed: &[(&str, &str)]) -> Option<(&'static str, String)> {
        let param = self.share?;
        let value = |m: &Metric| m.params.get(param).map(ToString::to_string);
        let all: Vec<Vec<String>> = self
            .picks
            .iter()
            .map(|p| p.candidates(metrics, fixed).iter().filter_map(|c| value(c.0)).collect())
            .collect();
        let figures = |v: &String| all.iter().filter(|of| of.contains(v)).count();
        // Among equals, `max_by_key` returns the last.
        let common = metrics.iter().filter_map(value).filter(|v| figures(v) > 0).max_by_key(figures)?;
        Some((param, common))
    }
}

impl Pick {
    /// The metric that matches `selector`: `memory.latency{level=DRAM,kernel=read.*,!load=none}`. A value that ends in `*` matches every value with this
    /// beginning, `!` excludes a value, and a parameter without a condition may have any. `{name}` in `condition` is replaced by a parameter.
    pub const fn new(condition: &'static str, selector: &'static str) -> Self {
        Self { condition, selector, max: false, quantile: None, choice: Choice::First }
    }

    /// Shows the largest sample of the metric.
    #[must_use]
    pub const fn max(self) -> Self {
        Self { max: true, ..self }
    }

    /// Shows a quantile of the metric.
    #[must_use]
    pub const fn quantile(self, p: &'static str) -> Self {
        Self { quantile: Some(p), ..self }
    }

    /// Chooses the metric with the greatest figure, if several match.
    #[must_use]
    pub const fn greatest(self) -> Self {
        Self { choice: Choice::Greatest, ..self }
    }

    /// Chooses the metric with the least figure, if several match.
    #[must_use]
    pub const fn least(self) -> Self {
        Self { choice: Choice::Least, ..self }
    }

    /// Chooses the metric with the worst figure; none if a matching metric has no figure, because it may be worse.
    #[must_use]
    pub const fn worst(self) -> Self {
        Self { choice: Choice::Worst, ..self }
    }

    /// Chooses the metric with the largest value of a parameter, if it is above 1.
    #[must_use]
    pub const fn most(self, param: &'static str) -> Self {
        Self { choice: Choice::Most(param), ..self }
    }

    /// Chooses the metric with the greatest value of a parameter.
    #[must_use]
    pub const fn last(self, param: &'static str) -> Self {
        Self { choice: Choice::Last(param), ..self }
    }

    /// Id and names of the parameters in its selector.
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

    /// The matching metrics whose parameters have the values in `fixed`, with their figures.
    fn candidates<'m>(&self, metrics: &'m [Metric], fixed: &[(&str, &str)]) -> Vec<(&'m Metric, f64)> {
        let shows = self.shows();
        let of = metrics.iter().filter(|m| selects(self.selector, m) && is_of(m, fixed));
        of.filter_map(|m| Some((m, shows.of(m)?))).collect()
    }

    /// The first matching metric that has a reason in place of a figure.
    fn refused<'m>(&self, metrics: &'m [Metric], fixed: &[(&str, &str)]) -> Option<&'m Metric> {
        let of = |m: &&Metric| selects(self.selector, m) && is_of(m, fixed);
        metrics.iter().filter(of).find(|m| self.shows().of(m).is_none() && m.why.is_some())
    }

    fn chosen<'m>(&self, metrics: &'m [Metric], fixed: &[(&str, &str)]) -> Option<&'m Metric> {
        let all = self.candidates(metrics, fixed).into_iter();
        let number = |m: &Metric, param| {
            m.params.get(param).and_then(|v| v.to_string().parse::<i64>().ok()).unwrap_or(0)
        };
        match self.choice {
            Choice::First => all.map(|c| c.0).next(),
            Choice::Greatest => all.max_by(|a, b| a.1.total_cmp(&b.1)).map(|c| c.0),
            Choice::Least => all.min_by(|a, b| a.1.total_cmp(&b.1)).map(|c| c.0),
            Choice::Worst => {
                let shows = self.shows();
                let mut asked = metrics.iter().filter(|m| selects(self.selector, m) && is_of(m, fixed));
                let badness =
                    |(m, figure): &(&Metric, f64)| if m.better == Better::Higher { -figure } else { *figure };
                let worst = all.max_by(|a, b| badness(a).total_cmp(&badness(b)));
                worst.map(|c| c.0).filter(|_| asked.all(|m| shows.of(m).is_some()))
            }
            Choice::Last(param) => all.map(|c| c.0).max_by_key(|m| number(m, param)),
            Choice::Most(param) => {
                all.map(|c| c.0).filter(|m| number(m, param) > 1).max_by_key(|m| number(m, param))
            }
        }
    }
}

/// True if the parameters of the metric have these values.
fn is_of(metric: &Metric, fixed: &[(&str, &str)]) -> bool {
    fixed.iter().all(|(name, value)| metric.params.get(*name).is_some_and(|v| v.to_string() == *value))
}

/// True if the selector, in the syntax of [`Pick::new`], matches the metric.
pub fn selects(selector: &str, metric: &Metric) -> bool {
    let (id, conditions) = split(selector);
    let holds = |(name, wanted): &(&str, &str)| {
        let is = |name: &str| {
            let Some(value) = metric.params.get(name) else { return false };
            let value = value.to_string();
            wanted.strip_suffix('*').map_or(value == *wanted, |begin| value.starts_with(begin))
        };
        name.strip_prefix('!').map_or_else(|| is(name), |name| !is(name))
    };
    metric.id == id && conditions.iter().all(holds)
}

/// Id and conditions of a selector.
fn split(selector: &str) -> (&str, Vec<(&str, &str)>) {
    let Some((id, rest)) = selector.split_once('{') else { return (selector, Vec::new()) };
    let pairs = rest.trim_end_matches('}').split(',').filter_map(|c| c.split_once('='));
    (id, pairs.collect())
}

/// The rows of `infos` whose figures are among `metrics`. A row of the short page stays without a figure if a metric has the reason.
pub fn rows(infos: &[RowInfo], metrics: &[Metric]) -> Vec<Row> {
    infos.iter().flat_map(|info| rows_of(info, metrics)).collect()
}

fn rows_of(info: &RowInfo, metrics: &[Metric]) -> Vec<Row> {
    let Some(param) = info.each else { return row(info, metrics, &[]).into_iter().collect() };
    let mut values: Vec<String> = Vec::new();
    for (metric, _) in info.picks.iter().flat_map(|p| p.candidates(metrics, &[])) {
        let value = metric.params.get(param).map(ToString::to_string);
        values.extend(value.filter(|v| !values.contains(v)));
    }
    values.iter().take(MOST_EACH).filter_map(|v| row(info, metrics, &[(param, v)])).collect()
}

fn row(info: &RowInfo, metrics: &[Metric], each: &[(&str, &str)]) -> Option<Row> {
    let shared = info.shared(metrics, each);
    let mut fixed = each.to_vec();
    fixed.extend(shared.as_ref().map(|(param, value)| (*param, value.as_str())));
    let mut found: Vec<(&Pick, &Metric)> =
        info.picks.iter().filter_map(|p| Some((p, p.chosen(metrics, &fixed)?))).collect();
    if found.is_empty() && !info.detail {
        found = info.picks.iter().filter_map(|p| Some((p, p.refused(metrics, &fixed)?))).collect();
    }
    let (_, first) = found.first()?;
    let figure = |(pick, m): &(&Pick, &Metric)| RowFigure {
        condition: filled(pick.condition, &m.params),
        id: m.id.clone(),
        params: m.params.clone(),
        shows: pick.shows(),
        earlier: Vec::new(),
        usual: None,
    };
    Some(Row {
        section: info.section.to_owned(),
        name: filled(info.name, &first.params),
        figures: found.iter().map(figure).collect(),
        detail: info.detail,
    })
}

/// A text with each `{name}` replaced by a parameter.
fn filled(text: &str, params: &Params) -> String {
    params
        .iter()
        .fold(text.to_owned(), |text, (name, value)| text.replace(&format!("{{{name}}}"), &value.to_string()))
}
