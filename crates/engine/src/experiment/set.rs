//! Sets of cells: what a part gives to the pool.

use super::{Cell, Enough, Experiment, Outlook, Visit};
use crate::cost::{Facts, Row};
use crate::deadline::Deadline;
use crate::host::Silent;
use crate::sampling::{Bench, Pace, Sampler};

pub trait Set {
    fn count(&self) -> usize;

    fn cell(&mut self, index: usize) -> &mut (dyn Cell + '_);

    /// Whether a cell is to be visited once more: see [`Cell::wants`].
    fn wants(&mut self, index: usize, enough: bool) -> bool {
        self.cell(index).wants(enough)
    }

    /// Adds cells that the samples so far make worth measuring; called after every round.
    fn propose(&mut self, _outlook: &Outlook) {}

    fn finish(self: Box<Self>) -> Finished;
}

/// What a part measured.
#[derive(Debug, Default)]
pub struct Finished {
    pub rows: Vec<Row>,
    /// What its analysis needs beside the rows.
    pub facts: Facts,
}

/// Cells that are known beforehand.
#[derive(Default)]
pub struct CellList<'a>(Vec<Box<dyn Cell + 'a>>);

impl<'a> CellList<'a> {
    pub fn push(&mut self, cell: impl Cell + 'a) {
        self.0.push(Box::new(cell));
    }

    /// Benches that are all visited at one pace.
    #[must_use]
    pub fn of_benches(benches: Vec<Bench<'a>>, pace: Pace) -> Self {
        benches.into_iter().map(|bench| BenchCell { bench, pace }).collect()
    }
}

impl CellList<'_> {
    pub fn into_rows(self) -> Vec<Row> {
        self.0.into_iter().flat_map(Cell::into_rows).collect()
    }
}

impl<'a, C: Cell + 'a> FromIterator<C> for CellList<'a> {
    fn from_iter<I: IntoIterator<Item = C>>(cells: I) -> Self {
        Self(cells.into_iter().map(|c| Box::new(c) as Box<dyn Cell + 'a>).collect())
    }
}

impl Set for CellList<'_> {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn cell(&mut self, index: usize) -> &mut (dyn Cell + '_) {
        &mut *self.0[index]
    }

    fn finish(self: Box<Self>) -> Finished {
        Finished { rows: self.into_rows(), ..Finished::default() }
    }
}

impl Set for &mut CellList<'_> {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn cell(&mut self, index: usize) -> &mut (dyn Cell + '_) {
        &mut *self.0[index]
    }

    fn finish(self: Box<Self>) -> Finished {
        Finished::default()
    }
}

/// Visits cells in random rounds until all have enough or it is `until_ns` on the sampler's clock; rows keep samples.
pub fn sample(sampler: &mut Sampler, cells: &mut CellList<'_>, enough: Enough, until_ns: u64) {
    let mut experiment = Experiment::new(None);
    experiment.add(Box::new(cells), 1.0);
    experiment.run(sampler, &Deadline::until(until_ns), enough, sampler.start_ns, &Silent);
}

/// [`sample`] of benches: their rows.
pub fn sample_benches(
    sampler: &mut Sampler,
    benches: Vec<Bench<'_>>,
    pace: Pace,
    enough: Enough,
    until_ns: u64,
) -> Vec<Row> {
    let mut cells = CellList::of_benches(benches, pace);
    sample(sampler, &mut cells, enough, until_ns);
    cells.into_rows()
}

pub struct BenchCell<'a> {
    pub bench: Bench<'a>,
    pub pace: Pace,
}

impl Cell for BenchCell<'_> {
    fn rows(&self) -> &[Row] {
        std::slice::from_ref(&self.bench.row)
    }

    fn expected_ns(&self) -> u64 {
        self.pace.visit_ns()
    }

    fn visit(&mut self, visit: &mut Visit<'_>) {
        visit.sampler.visit(&mut self.bench, &self.pace, visit.until_ns);
    }

    fn into_rows(mut self: Box<Self>) -> Vec<Row> {
        self.bench.row.proof = self.bench.subject.proof().or(self.bench.row.proof.take());
        vec![self.bench.row]
    }
}
