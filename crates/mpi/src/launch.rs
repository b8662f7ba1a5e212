//! A launch: what rank 0 measures, with whoever plays, and how its rows come to who asked.

use machmeter_engine::cost::Row;
use machmeter_engine::deadline::Deadline;
use machmeter_engine::experiment::{Cell, CellList, Enough, Experiment, Finished, Outlook, Set};
use machmeter_engine::sampling::Sampler;
use machmeter_engine::{Level, Progress};
use machmeter_sys::clock::{SourceId, TickRate};
use serde::{Deserialize, Serialize};

use crate::cells::{Looks, Scene, ThresholdCell, TurnsCell};
use crate::operations::{Operation, POLLING, SLEEPING, Sized, TRAINS, named};
use crate::pairs;
use crate::stage::{Play, Shared};
use crate::windows::WindowsCell;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Plan {
    pub(crate) operations: Vec<String>,
    /// Bytes, ascending.
    pub(crate) sizes: Vec<u64>,
    /// Those that are measured in windows, too.
    pub(crate) isolated: Vec<u64>,
    /// How many of the ranks collective operations have, each in turn.
    pub(crate) ranks: Vec<usize>,
    /// Whether all pairs of ranks are measured.
    pub(crate) pairs: bool,
    pub(crate) level: Level,
    pub(crate) seed: u64,
    /// When it has to be over, monotonic ns.
    pub(crate) until_ns: u64,
    pub(crate) source: SourceId,
    pub(crate) tick_hz: f64,
}

impl Plan {
    pub(crate) fn rate(&self) -> TickRate {
        TickRate::from_hz(self.tick_hz).unwrap_or(TickRate::NANOSECONDS)
    }

    pub(crate) fn most_bytes(&self) -> u64 {
        self.sizes.last().copied().unwrap_or(0)
    }

    pub(crate) fn all_ranks(&self) -> usize {
        self.ranks.last().copied().unwrap_or(0)
    }

    pub(crate) fn has(&self, is_such: impl Fn(&Operation) -> bool) -> bool {
        self.operations.iter().filter_map(|name| named(name)).any(is_such)
    }
}

/// Hands on what is new of a row, with its number.
pub(crate) type Hand<'h> = dyn FnMut(usize, Row) + 'h;

struct Cells<'h> {
    all: CellList<'static>,
    /// Pairs of each cell that were handed on.
    handed: Vec<usize>,
    hand: &'h mut Hand<'h>,
}

impl Cells<'_> {
    /// Rows are numbered through all cells.
    fn hand_on(&mut self) {
        let mut number = 0;
        for index in 0..self.all.count() {
            for row in self.all.cell(index).rows() {
                self.handed.resize(self.handed.len().max(number + 1), 0);
                let pairs = row.pairs[self.handed[number]..].to_vec();
                self.handed[number] = row.pairs.len();
                let rest = Row { pairs: Vec::new(), ..row.clone() };
                (self.hand)(number, Row { pairs, ..rest });
                number += 1;
            }
        }
    }
}

impl Set for Cells<'_> {
    fn count(&self) -> usize {
        self.all.count()
    }

    fn cell(&mut self, index: usize) -> &mut (dyn Cell + '_) {
        self.all.cell(index)
    }

    fn propose(&mut self, _outlook: &Outlook) {
        self.hand_on();
    }

    fn finish(mut self: Box<Self>) -> Finished {
        self.hand_on();
        Finished::default()
    }
}

/// Measures with this stage until all have enough or the time is over; rows go out as they grow. The last error of the stage is the
/// reason why it ended before.
pub(crate) fn measure(
    stage: &Shared,
    plan: &Plan,
    progress: &dyn Progress,
    hand: &mut Hand<'_>,
) -> Result<(), String> {
    let rate = plan.rate();
    let mut cells = CellList::default();
    let looks = Looks::of(stage, &plan.ranks, rate);
    let scene = |play| Scene { stage: stage.clone(), play, rate };
    if plan.has(|o| o.name == "send" || o.name == TRAINS[0]) {
        for search in [&SLEEPING, &POLLING] {
            cells.push(ThresholdCell::new(scene(Play::of(search, 0, 2)), plan.most_bytes()));
        }
    }
    for operation in plan.operations.iter().filter_map(|name| named(name)) {
        for play in plays(operation, plan) {
            cells.push(TurnsCell::new(scene(play), &looks));
            if plan.isolated.contains(&play.bytes) || matches!(operation.sized, Sized::Only(_)) {
                cells.push(WindowsCell::new(scene(play), &looks));
            }
        }
    }
    if plan.pairs && !plan.ranks.is_empty() {
        for cell in pairs::cells(stage, plan) {
            cells.push(cell);
        }
    }
    let mut sampler = Sampler::new(stage.clone(), rate, plan.seed);
    let deadline = Deadline::until(plan.until_ns);
    let mut experiment = Experiment::new(None);
    experiment.add(Box::new(Cells { all: cells, handed: Vec::new(), hand }), 1.0);
    experiment.run(&mut sampler, &deadline, Enough::at(plan.level), plan.seed, progress);
    stage.failed().map_or(Ok(()), Err)
}

/// An operation at all its sizes, and the collective ones with all numbers of ranks.
fn plays(operation: &'static Operation, plan: &Plan) -> Vec<Play> {
    let fixed = match operation.sized {
        Sized::Only(bytes) => vec![bytes],
        _ => plan.sizes.clone(),
    };
    let ranks: &[usize] = match operation.is_collective {
        // OpenSHMEM's barrier is of all.
        true if operation.is_shmem() => &plan.ranks[plan.ranks.len().saturating_sub(1)..],
        true => &plan.ranks,
        false => &[2],
    };
    let sizes = fixed.into_iter().filter(|bytes| operation.fits(*bytes));
    sizes.flat_map(|bytes| ranks.iter().map(move |ranks| Play::of(operation, bytes, *ranks))).collect()
}
