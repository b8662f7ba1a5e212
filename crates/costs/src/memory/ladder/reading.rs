//! Rows as curves.

use std::collections::BTreeMap;

use machmeter_engine::cost::{Cost, Pair, Row, Rows};
use machmeter_engine::neighbour;

use super::NAME;
use super::chase::{HUGE, SMALL, STRIDE_BYTES};
use super::hierarchy::Point;

/// Fewest pairs alone on the core that speak for a size.
const ALONE_LEAST: usize = 4;

/// The rows of the ladder, with what is needed to read them.
pub(super) struct Reading<'r> {
    rows: &'r Rows,
    /// Time of the last pair of each round.
    round_ends_ns: Vec<f64>,
    /// Width of the core without neighbours, where somebody looked.
    whole_width: Option<f64>,
}

impl<'r> Reading<'r> {
    /// Of these rows.
    pub(super) fn of(rows: &'r Rows) -> Self {
        let ends = rows.facts.get("ladder.rounds_ns").map_or("", String::as_str);
        let round_ends_ns = ends.split(',').filter_map(|t| t.parse().ok()).collect();
        Self { rows, round_ends_ns, whole_width: rows.whole_width() }
    }

    /// All rows of the ladder.
    pub(super) fn rows(&self) -> impl Iterator<Item = &'r Row> {
        self.rows.part(NAME)
    }

    /// A fact of the ladder.
    pub(super) fn fact(&self, name: &str) -> Option<&'r str> {
        self.rows.facts.get(&format!("ladder.{name}")).map(String::as_str)
    }

    /// A fact that is a number.
    pub(super) fn number(&self, name: &str) -> Option<f64> {
        self.fact(name)?.parse().ok().filter(|n: &f64| n.is_finite())
    }

    /// All facts.
    pub(super) fn facts(&self) -> &'r BTreeMap<String, String> {
        &self.rows.facts
    }

    /// Rounds that took place.
    pub(super) fn rounds(&self) -> usize {
        self.round_ends_ns.len()
    }

    /// Page size of the rows that sizes are detected on: small where there are any.
    pub(super) fn first_pages(&self) -> &'static str {
        if self.rows().any(|r| r.text("pages") == SMALL) { SMALL } else { HUGE }
    }

    /// The row of a chase.
    pub(super) fn chase(
        &self,
        order: &str,
        pages: &str,
        bytes: usize,
        stride_bytes: usize,
    ) -> Option<&'r Row> {
        self.rows().find(|r| {
            is_chase(r, order, pages, stride_bytes) && r.int("working_set_bytes") == Some(bytes as i64)
        })
    }

    /// Whether somebody looked for neighbours on the core.
    pub(super) fn looked(&self) -> bool {
        self.whole_width.is_some()
    }

    /// What a row costs.
    pub(super) fn cost(&self, row: &Row) -> Cost {
        self.rows.cost(row)
    }

    /// The curve of an order and page size, by working set in bytes.
    pub(super) fn points(&self, order: &str, pages: &str) -> Vec<Point> {
        self.curve("working_set_bytes", |r| is_chase(r, order, pages, STRIDE_BYTES))
    }

    /// Curve of the rows of an operation over one of their conditions.
    pub(super) fn curve(&self, over: &str, which: impl Fn(&Row) -> bool) -> Vec<Point> {
        self.curve_of(over, which, |_| true)
    }

    fn curve_of(&self, over: &str, which: impl Fn(&Row) -> bool, of: impl Fn(&Pair) -> bool) -> Vec<Point> {
        let costs_ns = |r: &Row| self.costs_of(r, r.pairs.iter().filter(|p| of(p)));
        let mut points: Vec<Point> = self
            .rows()
            .filter(|r| which(r))
            .filter_map(|r| Some(Point { size: r.int(over)? as f64, costs_ns: costs_ns(r) }))
            .filter(|p| !p.costs_ns.is_empty())
            .collect();
        points.sort_by(|a, b| a.size.total_cmp(&b.size));
        points
    }

    /// [`Reading::points`] by the pairs during which nobody else used the core.
    pub(super) fn quiet_points(&self, order: &str, pages: &str) -> Vec<Point> {
        self.quiet_curve("working_set_bytes", |r| is_chase(r, order, pages, STRIDE_BYTES))
    }

    /// [`Reading::curve`] by the pairs during which nobody else used the core; without those points that have too few of them.
    /// Empty where nobody looked.
    pub(super) fn quiet_curve(&self, over: &str, which: impl Fn(&Row) -> bool) -> Vec<Point> {
        let quiet = |r: &Row| which(r) && self.alone(r) >= ALONE_LEAST;
        self.curve_of(over, quiet, |p| self.is_alone(p))
    }

    /// Pairs of a row during which nobody else used the core, as far as is known.
    pub(super) fn alone(&self, row: &Row) -> usize {
        row.pairs.iter().filter(|p| self.is_alone(p)).count()
    }

    fn is_alone(&self, pair: &Pair) -> bool {
        self.whole_width.is_some_and(|whole| neighbour::alone(pair, whole) == Some(true))
    }

    /// Round and cost of each pair: the quicker of its two batches. Unlike the difference of both it is never less than
    /// what the loads took; what it has too much is the clock's reading, one part in thousands of a batch.
    pub(super) fn costs_ns(&self, row: &Row) -> Vec<(usize, f64)> {
        self.costs_of(row, row.pairs.iter())
    }

    fn costs_of<'p>(&self, row: &Row, pairs: impl Iterator<Item = &'p Pair>) -> Vec<(usize, f64)> {
        let ns_per_tick = self.rows.ns_per_tick();
        let each = |ticks: u64, turns: u64| ticks as f64 * ns_per_tick / (turns.max(1) as f64 * row.per_turn);
        let cost = |p: &Pair| {
            let long_ns = each(p.long_ticks, row.long_turns);
            if p.short_ticks == 0 { long_ns } else { long_ns.min(each(p.short_ticks, row.short_turns)) }
        };
        let round = |p: &Pair| self.round_ends_ns.partition_point(|end| *end < p.at_ns);
        pairs.map(|p| (round(p), cost(p))).filter(|(_, ns)| *ns > 0.0 && ns.is_finite()).collect()
    }
}

fn is_chase(row: &Row, order: &str, pages: &str, stride_bytes: usize) -> bool {
    row.operation == "chase"
        && row.text("order") == order
        && row.text("pages") == pages
        && row.int("stride_bytes") == Some(stride_bytes as i64)
}
