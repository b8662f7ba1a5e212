//! Turns at agreed moments: a row of windows, and the cell of an operation by itself.

use machmeter_engine::cost::{Pair, Row};
use machmeter_engine::disturbance::Disturbance;
use machmeter_engine::experiment::{Cell, Visit};
use machmeter_stats::quantile::median_of;

use crate::cells::{ISOLATED, Looks, Scene, kept, row};
use crate::operations::NOTHING;
use crate::pairing::Pairing;
use crate::stage::{Play, Stamp, Window, Windows};

/// A rank that begins later than so many ns after the agreed moment was late.
pub(crate) const LATE_NS: f64 = 250.0;
/// Windows of a visit, their longest time together, ns, and what is added to an operation's own time for their period, ns.
const MOST_WINDOWS: u32 = 32;
pub(crate) const LEAST_WINDOWS: u32 = 4;
const WINDOWS_NS: u64 = 8_000_000;
const APART_NS: u64 = 20_000;
/// Periods are doubled at most so often.
const MOST_DOUBLED: u32 = 8;

/// Windows of an operation, whose period grows where ranks come late.
pub(crate) struct Timetable {
    pub(crate) scene: Scene,
    most: u32,
    period_ns: u64,
    doubled: u32,
}

impl Timetable {
    /// Of so many windows a visit at most.
    pub(crate) fn new(scene: Scene, most: u32) -> Self {
        Self { scene, most, period_ns: 0, doubled: 0 }
    }

    /// Length of a visit at first, ns.
    pub(crate) fn expected_ns(&self) -> u64 {
        u64::from(self.most) * (self.period_ns + APART_NS)
    }

    /// How long a turn takes, tried by the ranks of the script.
    fn look(&mut self) -> Result<(), String> {
        self.scene.play.beside_ns = self.scene.beside_ns()?;
        let Scene { stage, play, rate, .. } = &self.scene;
        let ranks = if play.pairing == Pairing::Script { play.ranks } else { 2 };
        let alone = Play { ranks, pairing: Pairing::Script, ..*play };
        let ticks = stage.with(|s| s.back_to_back(&alone, 1))?;
        self.period_ns = 3 * (rate.ns(ticks) as u64 + play.beside_ns) + APART_NS;
        Ok(())
    }

    /// What the ranks stamped in the windows of a visit, and what the root's stamps take in windows of nothing, ticks.
    pub(crate) fn visit(&mut self) -> Result<(Vec<Vec<Stamp>>, u64), String> {
        if self.period_ns == 0 {
            self.look()?;
        }
        let count =
            (WINDOWS_NS / self.period_ns.max(1)).clamp(u64::from(LEAST_WINDOWS), u64::from(self.most));
        let windows = Windows { count: count as u32, period_ns: self.period_ns };
        let Scene { stage, play, .. } = &self.scene;
        let played = stage.with(|s| s.isolated(play, windows))?;
        let nothing = Play { operation: &NOTHING, pairing: Pairing::Script, ..*play };
        let empty = stage.with(|s| s.isolated(&nothing, Windows { period_ns: APART_NS, ..windows }))?;
        let own = empty.iter().filter_map(|stamps| stamps.first()).map(|s| (s.end - s.begin) as f64);
        let own = median_of(&own.collect::<Vec<f64>>()).unwrap_or(0.0);
        Ok((played, own.round() as u64))
    }

    /// Each visit agrees on new moments; ranks that were late even so get more time between them.
    pub(crate) fn judge(&mut self, valid: usize, all: usize) {
        if 2 * valid < all && self.doubled < MOST_DOUBLED {
            self.period_ns *= 2;
            self.doubled += 1;
        }
    }
}

/// Turns at agreed moments, each by itself.
pub(crate) struct WindowsCell {
    row: Row,
    timetable: Timetable,
    looks: Looks,
}

impl WindowsCell {
    pub(crate) fn new(scene: Scene, looks: &Looks) -> Self {
        let mut row = row(&scene.play, ISOLATED);
        row.long_turns = 1;
        Self { row, timetable: Timetable::new(scene, MOST_WINDOWS), looks: looks.clone() }
    }

    fn play(&mut self, at_ns: f64, regime_ns: f64) -> Result<(), String> {
        let (played, short_ticks) = self.timetable.visit()?;
        let (visit, rate) = (self.row.next_visit(), self.timetable.scene.rate);
        let mut valid = 0;
        for stamps in &played {
            let window = Window::of(stamps, self.timetable.scene.play.operation);
            let long_ticks = u64::try_from(window.end - window.begin).unwrap_or(0);
            if long_ticks > 0 && window.late <= rate.ticks(LATE_NS) as i64 {
                let pair = Pair { at_ns, visit, short_ticks, long_ticks, ..Pair::default() };
                self.row.pairs.push(Pair { regime_ns, ..pair });
                valid += 1;
            } else {
                self.row.rejected.count(Disturbance::Partner);
            }
        }
        self.timetable.judge(valid, played.len());
        Ok(())
    }
}

impl Cell for WindowsCell {
    fn rows(&self) -> &[Row] {
        std::slice::from_ref(&self.row)
    }

    fn expected_ns(&self) -> u64 {
        self.timetable.expected_ns()
    }

    fn visit(&mut self, visit: &mut Visit<'_>) {
        if self.row.refused.is_some() {
            return;
        }
        let at_ns = visit.sampler.now_ns().saturating_sub(visit.sampler.start_ns) as f64;
        let regime_ns = self.looks.half_ns(visit.sampler.now_ns());
        self.row.refused = self.play(at_ns, regime_ns).err();
    }

    fn into_rows(self: Box<Self>) -> Vec<Row> {
        vec![kept(self.row)]
    }
}
