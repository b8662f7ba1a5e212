//! Cells of pairs.

use machmeter_engine::cost::{Pair, Row};
use machmeter_engine::disturbance::Disturbance;
use machmeter_engine::experiment::{Cell, Enough, Visit};
use machmeter_model::loggps::TRAIN;
use machmeter_stats::quantile::median_of;
use machmeter_stats::random::Random;

use super::{AT_ONCE, LINK, WAYS};
use crate::cells::{Scene, kept, row};
use crate::launch::Plan;
use crate::operations::{Operation, STREAM, THERE_AND_BACK};
use crate::pairing::{Pairing, rounds};
use crate::plan::numbers_of_ranks;
use crate::stage::{Play, Shared, Stamp};
use crate::windows::{LATE_NS, LEAST_WINDOWS, Timetable};

/// Messages whose latency is measured, bytes.
const SMALL: u64 = 8;
/// Links that are measured at most, of random rounds: their rows stay below some 100 MB. 127 ranks have fewer.
const MOST_LINKS: usize = 8_000;
/// A pair that is late by less than this share of a turn changes it by no more.
const LATE_SHARE: f64 = 0.01;
/// As many pairs may be late of those at once: their load is as large up to this share.
const LATE_PAIRS: f64 = 0.1;

pub(crate) struct PairsCell {
    /// A row a pair of a round; one of pairs at once.
    rows: Vec<Row>,
    timetable: Timetable,
    /// From each link's first rank to its second and back, and by how much clocks may be off, ticks.
    ways: Vec<[Vec<f64>; 3]>,
    /// Visits made, and to be made.
    visits: [u32; 2],
}

/// All of `ranks`: rounds in a random order, and 1, 2, 4 ... pairs at once up to a half of the ranks to the other.
pub(crate) fn cells(stage: &Shared, plan: &Plan) -> Vec<PairsCell> {
    let (ranks, most_bytes, rate) = (plan.all_ranks(), plan.most_bytes(), plan.rate());
    let visits = Enough::at(plan.level).visits;
    let mut order: Vec<u32> = (0..rounds(ranks) as u32).collect();
    Random::new(plan.seed).shuffle(&mut order);
    order.truncate((MOST_LINKS / (ranks / 2).max(1)).max(1));
    let new = |operation: &'static Operation, bytes, pairing, rows: Vec<Row>| {
        let play = Play { pairing, ..Play::of(operation, bytes, ranks) };
        let ways = vec![Default::default(); rows.len()];
        let timetable = Timetable::new(Scene { stage: stage.clone(), play, rate }, LEAST_WINDOWS);
        PairsCell { rows, timetable, ways, visits: [0, visits] }
    };
    let small = SMALL.min(most_bytes);
    let row = |operation: &'static Operation, mode: &str, bytes: u64, per_turn| {
        let row = row(&Play::of(operation, bytes, ranks), mode);
        Row { long_turns: 1, ..row }.per_turn(per_turn)
    };
    let link =
        |[from, to]: [usize; 2]| row(&THERE_AND_BACK, LINK, small, 2.0).with("from", from).with("to", to);
    let round = |round| {
        let pairing = Pairing::Round(round);
        new(&THERE_AND_BACK, small, pairing, pairing.pairs(ranks).into_iter().map(link).collect())
    };
    let at_once = numbers_of_ranks(ranks / 2 * 2).into_iter().map(|ranks| ranks / 2).flat_map(|pairs| {
        let pairing = Pairing::Random { pairs: pairs as u32, seed: 0 };
        let row = |operation: &'static Operation, bytes, per_turn| {
            let row = row(operation, AT_ONCE, bytes, per_turn).with("pairs", pairs);
            new(operation, bytes, pairing, vec![row])
        };
        let streamed = f64::from(TRAIN) * most_bytes as f64 * pairs as f64;
        [Some(row(&THERE_AND_BACK, small, 2.0)), (most_bytes > 0).then(|| row(&STREAM, most_bytes, streamed))]
    });
    order.into_iter().map(round).chain(at_once.flatten()).collect()
}

impl PairsCell {
    fn play(&mut self, at_ns: f64, bits: u64) -> Result<(), String> {
        let is_link = matches!(self.timetable.scene.play.pairing, Pairing::Round(_));
        if let Pairing::Random { seed, .. } = &mut self.timetable.scene.play.pairing {
            *seed = bits as u32;
        }
        let pairs = self.timetable.scene.play.pairing.pairs(self.timetable.scene.play.ranks);
        let (played, own) = self.timetable.visit()?;
        let visit = self.visits[0] + 1;
        // A message that is stamped on its arrival waits for that before it goes back.
        let stamps = if self.timetable.scene.play.operation == &THERE_AND_BACK { 2 } else { 1 };
        let sample =
            |long_ticks| Pair { at_ns, visit, short_ticks: stamps * own, long_ticks, ..Pair::default() };
        let mut valid = 0;
        for stamps in &played {
            let in_time = |pair: &[usize; 2]| self.turn(stamps, *pair);
            let turns: Vec<Option<[Stamp; 2]>> = pairs.iter().map(in_time).collect();
            valid += turns.iter().flatten().count();
            if is_link {
                for ((row, ways), turn) in self.rows.iter_mut().zip(&mut self.ways).zip(turns) {
                    let Some([root, other]) = turn else {
                        row.rejected.count(Disturbance::Partner);
                        continue;
                    };
                    row.pairs.push(sample(took(&root)));
                    let (there, back) = (other.end - root.begin, root.end - other.end);
                    let ways_ticks = [there - own as i64, back - own as i64, root.off + other.off];
                    for (to, ticks) in ways.iter_mut().zip(ways_ticks) {
                        to.push(ticks as f64);
                    }
                }
            } else {
                let row = &mut self.rows[0];
                match mean(&turns, row.operation == STREAM.name) {
                    Some(ticks) => row.pairs.push(sample(ticks)),
                    None => row.rejected.count(Disturbance::Partner),
                }
            }
        }
        for (row, ways) in self.rows.iter_mut().zip(&self.ways).filter(|(row, _)| !row.pairs.is_empty()) {
            for (name, ticks) in WAYS.iter().zip(ways) {
                let middle = median_of(ticks).map(|t| t * self.timetable.scene.rate.ns_per_tick());
                row.extras.extend(middle.map(|ns| ((*name).to_owned(), ns)));
            }
        }
        self.timetable.judge(valid, played.len() * pairs.len());
        Ok(())
    }

    /// What both of a pair stamped, where it began in time.
    fn turn(&self, stamps: &[Stamp], pair: [usize; 2]) -> Option<[Stamp; 2]> {
        let [root, other] = [*stamps.get(pair[0])?, *stamps.get(pair[1])?];
        let late = (LATE_SHARE * took(&root) as f64).max(self.timetable.scene.rate.ticks(LATE_NS) as f64);
        (root.end > root.begin && root.begin as f64 <= late).then_some([root, other])
    }
}

fn took(root: &Stamp) -> u64 {
    (root.end - root.begin).unsigned_abs()
}

/// What a turn of pairs at once took, ticks: of latencies the mean, of streams the time at the mean rate. `None` where too many were late.
fn mean(turns: &[Option<[Stamp; 2]>], is_stream: bool) -> Option<u64> {
    let took: Vec<f64> = turns.iter().flatten().map(|[root, _]| took(root) as f64).collect();
    let late = (turns.len() - took.len()) as f64;
    let n = took.len() as f64;
    let mean =
        if is_stream { n / took.iter().map(|t| 1.0 / t).sum::<f64>() } else { took.iter().sum::<f64>() / n };
    (!took.is_empty() && late <= LATE_PAIRS * turns.len() as f64).then_some(mean.round() as u64)
}

impl Cell for PairsCell {
    fn rows(&self) -> &[Row] {
        &self.rows
    }

    fn expected_ns(&self) -> u64 {
        self.timetable.expected_ns()
    }

    fn wants(&self, _enough: bool) -> bool {
        self.visits[0] < self.visits[1]
    }

    fn visit(&mut self, visit: &mut Visit<'_>) {
        let at_ns = visit.sampler.now_ns().saturating_sub(visit.sampler.start_ns) as f64;
        if let Err(why) = self.play(at_ns, visit.bits) {
            self.rows.iter_mut().for_each(|row| row.refused = Some(why.clone()));
        }
        self.visits[0] += 1;
    }

    fn into_rows(self: Box<Self>) -> Vec<Row> {
        self.rows.into_iter().map(kept).collect()
    }
}
