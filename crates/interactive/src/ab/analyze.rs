//! What an A/B run says: figures, findings, a table, lines to read first.

use machmeter_data::quantity::{Unit, digits, human};
use machmeter_data::record::{Finding, Warning};
use machmeter_data::shape::{Cell, CostTable, TableColumn, TableRow};
use machmeter_data::{Dataset, Interval, Metric, Params, Shape, metric};
use machmeter_stats::spread;

use super::figures::{Scale, Series, series};
use super::interim_looks::LEAST_ROUNDS;
use super::verdict::{FAMILY_ERROR, Judgment, Row, Verdict, judge};
use crate::info::{self, AB_CHANGE};
use crate::samples::Samples;

/// Smallest change that matters when a recording does not say: 10 %, or 1 point.
const DEFAULT_DELTA: f64 = 0.1;

#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// `interactive.ab_change` of every cell and figure.
    pub metrics: Vec<Metric>,
    /// One per cell, and one on the whole.
    pub findings: Vec<Finding>,
    pub warnings: Vec<Warning>,
    pub table: Option<Dataset>,
    pub lines: Vec<String>,
}

/// Verdicts of an A/B recording. Nothing when it was none: `setup.settings` must name the two settings.
pub fn analyze(samples: &Samples) -> Outcome {
    let [command_a, command_b] = samples.setup.settings.as_slice() else { return Outcome::default() };
    let delta = Some(samples.setup.ab_delta).filter(|d| d.is_finite() && *d > 0.0).unwrap_or(DEFAULT_DELTA);
    let (series, lost_rounds) = series(samples);
    let recorded = series.iter().map(|s| s.rounds.len()).max().unwrap_or(0);
    let planned_rounds = if samples.setup.ab_rounds == 0 { recorded } else { samples.setup.ab_rounds };
    let judgment = judge(&series, planned_rounds, delta);
    let cells = by_cell(&series, &judgment.rows);
    let mut lines = vec![format!("A: {command_a}"), format!("B: {command_b}")];
    lines.push(basis(&judgment, planned_rounds, delta));
    lines.extend(cells.iter().map(|c| line(c)));
    let mut findings: Vec<Finding> = cells.iter().map(|c| finding(c)).collect();
    findings.insert(0, on_the_whole(&cells, &judgment, planned_rounds, delta));
    Outcome {
        metrics: series.iter().zip(&judgment.rows).map(|(s, r)| metric_of(s, r)).collect(),
        findings,
        warnings: warnings(lost_rounds).into_iter().collect(),
        table: (!series.is_empty()).then(|| table(&series, &judgment.rows)),
        lines,
    }
}

type OfCell<'a> = Vec<(&'a Series, &'a Row)>;

fn by_cell<'a>(series: &'a [Series], rows: &'a [Row]) -> Vec<OfCell<'a>> {
    let pairs: OfCell<'a> = series.iter().zip(rows).collect();
    pairs.chunk_by(|x, y| (&x.0.task, &x.0.load) == (&y.0.task, &y.0.load)).map(<[_]>::to_vec).collect()
}

/// A change as a person says it: a ratio (`x1.31`) or points (`+3.2 points`).
fn change_text(scale: Scale, effect: f64) -> String {
    match scale {
        Scale::Ratio => format!("x{}", digits(effect.exp())),
        Scale::Points => format!("{}{} points", if effect < 0.0 { "" } else { "+" }, digits(100.0 * effect)),
    }
}

/// Its interval: `x1.20 to x1.43`, `+1.9 to +4.5 points`.
fn range_text(scale: Scale, low: f64, high: f64) -> String {
    let low = change_text(scale, low);
    format!("{} to {}", low.trim_end_matches(" points"), change_text(scale, high))
}

/// A change as it stands in the metric: relative, or a difference of shares.
fn change(scale: Scale, effect: f64) -> f64 {
    match scale {
        Scale::Ratio => effect.exp_m1(),
        Scale::Points => effect,
    }
}

/// The figure under a setting: geometric mean of lateness, or mean share, over the segments.
fn level_text(s: &Series, pick: impl Fn(&super::Round) -> f64) -> String {
    let values: Vec<f64> = s.rounds.iter().map(pick).collect();
    match (spread::mean(&values), s.figure.scale()) {
        (Some(mean), Scale::Ratio) => human(mean.exp(), Unit::Nanoseconds),
        (Some(mean), Scale::Points) => human(mean, Unit::One),
        (None, _) => "?".to_owned(),
    }
}

fn metric_of(s: &Series, row: &Row) -> Metric {
    let params: Params = metric::params([
        ("task", s.task.as_str().into()),
        ("load", s.load.as_str().into()),
        ("figure", s.figure.name().into()),
    ]);
    let scale = s.figure.scale();
    let estimator = match scale {
        Scale::Ratio => "ratio-of-geometric-means-by-round",
        Scale::Points => "difference-of-shares-by-round",
    };
    let (Some(e), Some(interval)) = (row.evidence, row.interval) else {
        let why = format!("{} whole rounds; a verdict needs {LEAST_ROUNDS}", s.rounds.len());
        return Metric::rejected(&AB_CHANGE, params, estimator, &why);
    };
    let (low, high) = (change(scale, interval.low), change(scale, interval.high));
    let blocks: Vec<f64> = s.rounds.iter().map(|r| change(scale, r.b - r.a)).collect();
    let mut m = Metric::new(&AB_CHANGE, params, change(scale, e.effect), estimator, e.rounds as u64)
        .with_ci(Interval::new(interval.level, low, high, "t-by-round-over-all-looks"));
    m.blocks = blocks;
    m
}

fn evidence_text(s: &Series, row: &Row) -> String {
    let Some(e) = row.evidence else {
        return format!("{}: fewer than 2 whole rounds", s.figure.words());
    };
    let scale = s.figure.scale();
    let mut text = format!(
        "{}: {}, {} under A, {} under B, {}",
        s.figure.words(),
        row.verdict.name(),
        level_text(s, |r| r.a),
        level_text(s, |r| r.b),
        change_text(scale, e.effect),
    );
    if let Some(i) = row.interval {
        text += &format!(" (95 %: {})", range_text(scale, i.low, i.high));
    }
    if let (Some(p), Some(adjusted)) = (row.p, row.p_adjusted) {
        text += &format!(", p {}, over all looks and figures {}", digits(p), digits(adjusted));
    }
    if let Some(d) = row.detectable {
        text += &format!(", detectable {}", change_text(scale, d));
    }
    text + &format!(", {} rounds", e.rounds)
}

fn word(cell: &OfCell<'_>) -> &'static str {
    let has = |v: Verdict| cell.iter().any(|(_, r)| r.verdict == v);
    match (has(Verdict::Better), has(Verdict::Worse)) {
        (true, true) => "mixed",
        (true, false) => Verdict::Better.name(),
        (false, true) => Verdict::Worse.name(),
        (false, false) if has(Verdict::Undecided) || cell.is_empty() => Verdict::Undecided.name(),
        (false, false) => Verdict::Equivalent.name(),
    }
}

/// The figures that a line about a cell names: those that changed; where none did, those that are undecided; else all.
fn telling<'a>(cell: &'a OfCell<'a>) -> Vec<&'a (&'a Series, &'a Row)> {
    let with = |wanted: &[Verdict]| cell.iter().filter(|c| wanted.contains(&c.1.verdict)).collect::<Vec<_>>();
    let changed = with(&[Verdict::Better, Verdict::Worse]);
    let undecided = with(&[Verdict::Undecided]);
    if !changed.is_empty() {
        changed
    } else if !undecided.is_empty() {
        undecided
    } else {
        cell.iter().collect()
    }
}

fn name(cell: &OfCell<'_>) -> String {
    cell.first().map_or(String::new(), |(s, _)| format!("{} under {}", s.task, s.load))
}

fn line(cell: &OfCell<'_>) -> String {
    let parts: Vec<String> = telling(cell)
        .into_iter()
        .map(|(s, r)| {
            let scale = s.figure.scale();
            match (r.verdict, r.evidence, r.interval, r.detectable) {
                (Verdict::Undecided, Some(_), Some(_), Some(d)) => {
                    format!("{} would need {}", s.figure.words(), change_text(scale, d))
                }
                (_, Some(e), Some(i), _) => format!(
                    "{} {} ({})",
                    s.figure.words(),
                    change_text(scale, e.effect),
                    range_text(scale, i.low, i.high)
                ),
                _ => format!("{} has {} of {LEAST_ROUNDS} rounds", s.figure.words(), s.rounds.len()),
            }
        })
        .collect();
    format!("{}: {}: {}", name(cell), word(cell), parts.join(", "))
}

fn finding(cell: &OfCell<'_>) -> Finding {
    let text = match word(cell) {
        "better" => "B is better than A",
        "worse" => "B is worse than A",
        "mixed" => "B is better than A in some figures and worse in others",
        "equivalent" => "B and A differ by less than matters, if at all",
        _ => "whether B differs from A is not decided",
    };
    Finding {
        id: "interactive.ab".to_owned(),
        verdict: word(cell).to_owned(),
        text: format!("{}: {text}.", name(cell)),
        evidence: cell.iter().map(|(s, r)| evidence_text(s, r)).collect(),
    }
}

fn basis(j: &Judgment, planned: usize, delta: f64) -> String {
    format!(
        "{} of {planned} rounds ABBA or BAAB, {} looks; what matters: x{} or {} points; any false verdict: at most {} %",
        j.rounds,
        j.looks,
        digits(1.0 + delta),
        digits(100.0 * super::verdict::margin(Scale::Points, delta)),
        digits(100.0 * FAMILY_ERROR)
    )
}

fn on_the_whole(cells: &[OfCell<'_>], j: &Judgment, planned: usize, delta: f64) -> Finding {
    let words: Vec<&str> = cells.iter().map(word).collect();
    let count = |w: &str| words.iter().filter(|x| **x == w).count();
    let verdict = match (count("better"), count("worse"), count("mixed"), count("undecided")) {
        (_, _, m, _) if m > 0 => "mixed",
        (b, w, _, _) if b > 0 && w > 0 => "mixed",
        (b, _, _, _) if b > 0 => "better",
        (_, w, _, _) if w > 0 => "worse",
        (_, _, _, u) if u > 0 || words.is_empty() => "undecided",
        _ => "equivalent",
    };
    let said: Vec<String> = ["better", "worse", "mixed", "equivalent", "undecided"]
        .iter()
        .filter(|w| count(w) > 0)
        .map(|w| format!("{} {w}", count(w)))
        .collect();
    Finding {
        id: "interactive.ab_overall".to_owned(),
        verdict: verdict.to_owned(),
        text: format!("B against A over {} cells: {}.", cells.len(), said.join(", ")),
        evidence: vec![basis(j, planned, delta)],
    }
}

fn warnings(lost_rounds: usize) -> Option<Warning> {
    let code = info::CODES.iter().find(|c| c.id == "W311")?;
    (lost_rounds > 0).then(|| {
        code.warning(format!(
            "{lost_rounds} rounds of the A/B run were left out: a segment of them is not whole"
        ))
    })
}

fn table(series: &[Series], rows: &[Row]) -> Dataset {
    let text = |t: String| Cell::Text(t);
    let row = |(s, r): (&Series, &Row)| {
        let scale = s.figure.scale();
        let shown = |x: Option<f64>| x.map_or(Cell::Empty(()), |x| text(change_text(scale, x)));
        TableRow {
            name: format!("{} under {}: {}", s.task, s.load, s.figure.words()),
            cells: vec![
                text(r.verdict.name().to_owned()),
                text(level_text(s, |x| x.a)),
                text(level_text(s, |x| x.b)),
                shown(r.evidence.filter(|_| r.interval.is_some()).map(|e| e.effect)),
                shown(r.interval.map(|i| i.low)),
                shown(r.interval.map(|i| i.high)),
                shown(r.detectable),
                r.p_adjusted.map_or(Cell::Empty(()), |p| text(digits(p))),
                Cell::Number(s.rounds.len() as f64),
            ],
        }
    };
    let texts = ["B is", "A", "B", "change", "low", "high", "detectable", "p"];
    let mut columns: Vec<TableColumn> = texts.iter().map(|name| TableColumn::new(*name, None)).collect();
    columns.push(TableColumn::new("rounds", Unit::Count));
    Dataset::new(
        "interactive.ab",
        "Setting B against setting A",
        "Change from A to B with its 95 % interval, paired by rounds that were measured in random order. Detectable \
         is the smallest change that would have been found in 9 of 10 such runs. p holds for all looks, cells and \
         figures together.",
        Shape::CostTable(CostTable { columns, rows: series.iter().zip(rows).map(row).collect() }),
    )
}
