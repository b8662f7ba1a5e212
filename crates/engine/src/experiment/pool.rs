//! The pool: which cell is visited next, and when all is done.

use machmeter_stats::random::Random;

use super::{Cell, Enough, Finished, Set, Visit};
use crate::cost::Row;
use crate::deadline::{Deadline, stop_requested};
use crate::disturbance::sibling;
use crate::host::Progress;
use crate::sampling::Sampler;

/// From one look at the samples of all to the next, ns: it takes some milliseconds.
const LOOK_NS: u64 = 500_000_000;
/// Looks from one message to the next.
const TOLD_EVERY: u32 = 4;

/// What a part may still count on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Outlook {
    /// Time for this part, ns.
    pub left_ns: u64,
    /// The whole width of the core, where somebody looked.
    pub core_width: Option<f64>,
}

struct Entrant<'a> {
    set: Box<dyn Set + 'a>,
    weight: f64,
    used_ns: u64,
    /// Cells of this round that are still to be visited.
    round: Vec<usize>,
    /// Rounds that have begun.
    rounds: u32,
    states: Vec<State>,
    over: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct State {
    visits: u32,
    longest_ns: u64,
    enough: bool,
}

#[derive(Default)]
pub struct Experiment<'a> {
    entrants: Vec<Entrant<'a>>,
    width_before: Option<f64>,
}

impl<'a> Experiment<'a> {
    /// With what is known of the core's whole width from earlier runs.
    pub fn new(width_before: Option<f64>) -> Self {
        Self { entrants: Vec::new(), width_before }
    }

    pub fn add(&mut self, set: Box<dyn Set + 'a>, weight: f64) {
        let (round, states) = (Vec::new(), Vec::new());
        self.entrants.push(Entrant { set, weight, used_ns: 0, round, rounds: 0, states, over: false });
    }

    /// Runs until all have enough, the time is over or a signal comes; what each part measured, in order of addition.
    pub fn run(
        mut self,
        sampler: &mut Sampler,
        deadline: &Deadline,
        enough: Enough,
        seed: u64,
        progress: &dyn Progress,
    ) -> Vec<Finished> {
        let mut random = Random::new(seed ^ 0x6578_7065_7269);
        let mut core_width = self.width_before;
        let (mut next_look_ns, mut looks) = (sampler.now_ns(), 0_u32);
        let until_ns = deadline.until_ns();
        loop {
            let now_ns = sampler.now_ns();
            if stop_requested() || now_ns >= until_ns {
                break;
            }
            if now_ns >= next_look_ns {
                core_width = self.core_width();
                if looks % TOLD_EVERY == TOLD_EVERY - 1 {
                    let [done, all] = self.count(enough, core_width);
                    progress.step(&format!("{done} of {all} costs have their samples"));
                }
                looks += 1;
                next_look_ns = sampler.now_ns() + LOOK_NS;
            }
            let weights: f64 = self.entrants.iter().filter(|e| !e.over).map(|e| e.weight).sum();
            // A short run has a visit of each row before it has a second one of any.
            let is_first = self.entrants.iter().any(|e| !e.over && e.is_in_first_round());
            let Some(next) = self
                .entrants
                .iter_mut()
                .filter(|e| !e.over && (!is_first || e.is_in_first_round()))
                .min_by(|a, b| (a.used_ns as f64 / a.weight).total_cmp(&(b.used_ns as f64 / b.weight)))
            else {
                break;
            };
            let left_ns = ((until_ns - now_ns) as f64 * next.weight / weights) as u64;
            let outlook = Outlook { left_ns, core_width };
            match next.choose(&outlook, until_ns - now_ns, enough, &mut random) {
                Some(index) => next.visit(index, sampler, until_ns, random.bits()),
                None => next.over = true,
            }
            next.used_ns += sampler.now_ns().saturating_sub(now_ns);
        }
        self.entrants.into_iter().map(|e| e.set.finish()).collect()
    }

    fn core_width(&mut self) -> Option<f64> {
        let mut widths = Vec::new();
        for e in &mut self.entrants {
            for i in 0..e.set.count() {
                let pairs = e.set.cell(i).rows().iter().flat_map(|r| &r.pairs);
                widths.extend(pairs.map(|p| p.core.width).filter(|w| *w > 0.0));
            }
        }
        let seen = sibling::whole_width(&widths);
        [seen, self.width_before].into_iter().flatten().reduce(f64::max)
    }

    fn count(&mut self, enough: Enough, core_width: Option<f64>) -> [usize; 2] {
        let mut done = 0;
        for e in &mut self.entrants {
            e.judge(enough, core_width);
            done += e.states.iter().filter(|s| s.enough).count();
        }
        [done, self.entrants.iter().map(|e| e.states.len()).sum()]
    }
}

impl Entrant<'_> {
    /// Whether a cell known from the start still waits for its first visit.
    fn is_in_first_round(&self) -> bool {
        self.rounds == 0 || (self.rounds == 1 && !self.round.is_empty())
    }

    /// The next cell; `None` when none is open that `most_ns` suffice for.
    fn choose(
        &mut self,
        outlook: &Outlook,
        most_ns: u64,
        enough: Enough,
        random: &mut Random,
    ) -> Option<usize> {
        for begun in [true, false] {
            if !begun {
                self.begin(outlook, enough, random);
            }
            while let Some(index) = self.round.pop() {
                if self.next_ns(index) <= most_ns {
                    return Some(index);
                }
            }
        }
        None
    }

    /// A round: all open cells in a random order, those visited least first, so that a round cut short leaves no holes.
    fn begin(&mut self, outlook: &Outlook, enough: Enough, random: &mut Random) {
        if !self.states.is_empty() {
            self.set.propose(outlook);
        }
        self.judge(enough, outlook.core_width);
        let open = |i: &usize| self.set.wants(*i, self.states[*i].enough);
        let mut round: Vec<usize> = (0..self.states.len()).filter(open).collect();
        random.shuffle(&mut round);
        round.sort_by_key(|i| std::cmp::Reverse(self.states[*i].visits));
        self.round = round;
        self.rounds += 1;
    }

    fn judge(&mut self, enough: Enough, core_width: Option<f64>) {
        self.states.resize(self.set.count(), State::default());
        for (i, state) in self.states.iter_mut().enumerate() {
            state.enough = has_enough(self.set.cell(i).rows(), state.visits, enough, core_width);
        }
    }

    fn next_ns(&mut self, index: usize) -> u64 {
        match self.states[index].longest_ns {
            0 => self.set.cell(index).expected_ns(),
            ns => ns,
        }
    }

    fn visit(&mut self, index: usize, sampler: &mut Sampler, until_ns: u64, bits: u64) {
        let state = &mut self.states[index];
        let begin_ns = sampler.now_ns();
        let cell: &mut dyn Cell = self.set.cell(index);
        cell.visit(&mut Visit { sampler, until_ns, number: state.visits, bits });
        state.visits += 1;
        state.longest_ns = state.longest_ns.max(sampler.now_ns().saturating_sub(begin_ns)).max(1);
    }
}

/// Whether each row is refused or has enough samples that nobody on the core disturbed, as far as somebody looked.
fn has_enough(rows: &[Row], visits: u32, enough: Enough, core_width: Option<f64>) -> bool {
    let alone = |row: &Row| {
        let shared = |p| core_width.is_some_and(|whole| sibling::alone(p, whole) == Some(false));
        row.pairs.iter().filter(|p| !shared(p)).count()
    };
    let full = |row: &Row| visits >= enough.visits && alone(row) >= enough.samples;
    rows.iter().all(|row| row.refused.is_some() || full(row))
}
