//! Cells of a launch: operations back to back, and the search for the size from which on a send waits.

use std::cell::RefCell;
use std::rc::Rc;

use machmeter_engine::calibration::{Tried, turns_for};
use machmeter_engine::cost::{Estimator, Kind, Row};
use machmeter_engine::experiment::{Cell, Visit};
use machmeter_engine::sampling::{Bench, Company, Pace};
use machmeter_sys::clock::TickRate;

use crate::operations::named;
use crate::stage::{Play, Shared, Turns, Window, Windows};
use crate::windows::LATE_NS;

/// Names of rows' part and of how they were measured.
pub(crate) const PART: &str = "costs";
pub(crate) const BACK_TO_BACK: &str = "back_to_back";
pub(crate) const ISOLATED: &str = "isolated";

/// Length of a short batch; the long one has three times as many turns, so that the order, which is the same for both, cancels.
const BATCH_NS: f64 = 30_000.0;
const LONG_OF_SHORT: u64 = 3;
/// Pairs of a visit, and where a turn alone is longer than this, ns.
const PAIRS: usize = 4;
const LONG_TURN_NS: f64 = 1e6;
/// What work beside an operation is set by: turns and tries of the blocking one.
const BESIDE_TURNS: u64 = 8;
const BESIDE_TRIES: usize = 5;
/// Shortest work, ns: several readings of the clock.
const LEAST_BESIDE_NS: u64 = 500;

/// Of a play, without the launch.
pub(crate) fn row(play: &Play, mode: &str) -> Row {
    let row =
        Row { estimator: Estimator::MiddleDifferences, ..Row::new(PART, play.operation.name, Kind::Latency) };
    row.with("mode", mode).with("size_bytes", play.bytes).with("ranks", play.ranks)
}

/// An operation under its conditions, and who plays it.
pub(crate) struct Scene {
    pub(crate) stage: Shared,
    pub(crate) play: Play,
    pub(crate) rate: TickRate,
}

impl Scene {
    /// How long `Compute` of the play is: as long as a turn of the blocking operation, which is tried.
    pub(crate) fn beside_ns(&self) -> Result<u64, String> {
        let Some(operation) = self.play.operation.beside.and_then(named) else { return Ok(0) };
        let play = Play { operation, ..self.play };
        let once = |_| self.stage.with(|s| s.back_to_back(&play, BESIDE_TURNS));
        let tried = (0..BESIDE_TRIES).map(once).collect::<Result<Vec<u64>, String>>()?;
        let least = tried.into_iter().min().unwrap_or(u64::MAX);
        Ok(((self.rate.ns(least) / BESIDE_TURNS as f64) as u64).max(LEAST_BESIDE_NS))
    }
}

/// Ping-pongs of a look at the placement, looks of which the shortest counts, and from one look to the next at least, ns: a host
/// moves CPUs after seconds.
const LOOK_TURNS: u64 = 32;
const LOOKS: usize = 3;
const LOOK_EVERY_NS: u64 = 5_000_000;

/// How far the two ranks of a job are apart: a host may move their CPUs, and with them all costs.
#[derive(Clone)]
pub(crate) struct Looks(Option<Rc<RefCell<Looked>>>);

struct Looked {
    stage: Shared,
    rate: TickRate,
    next_ns: u64,
    half_ns: f64,
}

impl Looks {
    /// Of a job of more than two ranks nobody looks: how far two are apart says nothing of the others.
    pub(crate) fn of(stage: &Shared, ranks: &[usize], rate: TickRate) -> Self {
        let looked = Looked { stage: stage.clone(), rate, next_ns: 0, half_ns: 0.0 };
        Self((ranks == [2]).then(|| Rc::new(RefCell::new(looked))))
    }

    /// Half a round trip of an empty message now or a little before, ns; 0 where nobody looks.
    pub(crate) fn half_ns(&self, now_ns: u64) -> f64 {
        let Some(looked) = &self.0 else { return 0.0 };
        let mut looked = looked.borrow_mut();
        if now_ns >= looked.next_ns {
            let Some(play) = named("pingpong").map(|o| Play::of(o, 0, 2)) else { return 0.0 };
            let look = |_| looked.stage.with(|s| s.back_to_back(&play, LOOK_TURNS)).ok();
            let least = (0..LOOKS).filter_map(look).min();
            looked.half_ns = least.map_or(0.0, |ticks| looked.rate.ns(ticks) / (2 * LOOK_TURNS) as f64);
            looked.next_ns = now_ns + LOOK_EVERY_NS;
        }
        looked.half_ns
    }
}

pub(crate) struct TurnsCell {
    bench: Bench<'static>,
    scene: Scene,
    pace: Pace,
    looks: Looks,
}

impl TurnsCell {
    pub(crate) fn new(scene: Scene, looks: &Looks) -> Self {
        let row = row(&scene.play, BACK_TO_BACK);
        let bench = Bench::new(row, Turns { stage: scene.stage.clone(), play: scene.play });
        let pace = Pace::of(BATCH_NS, PAIRS).among(Company::Partner);
        Self { bench, scene, pace, looks: looks.clone() }
    }

    /// Turns of both batches, and the work beside them.
    fn calibrate(&mut self, visit: &Visit<'_>) -> Result<(), String> {
        self.scene.play.beside_ns = self.scene.beside_ns()?;
        let Scene { stage, play, rate } = &self.scene;
        self.bench.subject = Box::new(Turns { stage: stage.clone(), play: *play });
        let most = play.operation.most_turns(play.bytes) / LONG_OF_SHORT;
        let turns = turns_for(BATCH_NS, |turns| {
            let turns = turns.min(most.max(1));
            let ticks = stage.with(|s| s.back_to_back(play, turns)).ok()?;
            // Where no more turns fit, they are enough.
            Some(Tried { ns: rate.ns(ticks), late: turns == most || visit.left_ns() == 0 })
        });
        let turns = turns.ok_or_else(|| stage.failed().unwrap_or_default())?.clamp(1, most.max(1));
        let ticks = stage.with(|s| s.back_to_back(play, turns))?;
        if rate.ns(ticks) / turns as f64 > LONG_TURN_NS {
            self.pace.pairs_per_visit = 1;
        }
        (self.bench.row.short_turns, self.bench.row.long_turns) = (turns, LONG_OF_SHORT * turns);
        Ok(())
    }
}

impl Cell for TurnsCell {
    fn rows(&self) -> &[Row] {
        std::slice::from_ref(&self.bench.row)
    }

    fn expected_ns(&self) -> u64 {
        2 * self.pace.visit_ns()
    }

    fn visit(&mut self, visit: &mut Visit<'_>) {
        if self.bench.row.long_turns == 0
            && let Err(why) = self.calibrate(visit)
        {
            self.bench.row.refused = Some(why);
            return;
        }
        let regime_ns = self.looks.half_ns(visit.sampler.now_ns());
        let before = self.bench.row.pairs.len();
        visit.sampler.visit(&mut self.bench, &self.pace, visit.until_ns);
        self.bench.row.pairs[before..].iter_mut().for_each(|p| p.regime_ns = regime_ns);
    }

    fn into_rows(self: Box<Self>) -> Vec<Row> {
        vec![kept(self.bench.row)]
    }
}

/// A row whose stage failed later keeps the samples it has.
pub(crate) fn kept(mut row: Row) -> Row {
    if !row.pairs.is_empty() {
        row.refused = None;
    }
    row.reached()
}

/// Facts of a row of searches: what they found at least and at most, bytes, and their number.
pub(crate) const FOUND: [&str; 3] = ["least_bytes", "most_bytes", "searches"];
/// How long a receiver stays away, ns: thousands of times what a send takes. One that took half of it waited.
const AWAY_NS: u64 = 2_000_000;
/// A send that returned early is proof. One that was late may have been switched out: late counts after so many tries.
const TRIES: usize = 3;
/// Tries in windows that were none are not counted, but end.
const MOST_TRIES: usize = 30;
/// The search for the largest message that a send hands over while the receiver is away.
pub(crate) struct ThresholdCell {
    row: Row,
    scene: Scene,
    most_bytes: u64,
    found: bool,
}

impl ThresholdCell {
    pub(crate) fn new(mut scene: Scene, most_bytes: u64) -> Self {
        scene.play.beside_ns = AWAY_NS;
        let mut row = row(&scene.play, ISOLATED);
        row.params.remove("size_bytes");
        Self { row, scene, most_bytes, found: false }
    }

    /// Whether a send of so many bytes waits.
    fn waits(&self, bytes: u64) -> Result<bool, String> {
        let Scene { stage, play, rate } = &self.scene;
        let play = Play { bytes, ..*play };
        let windows = Windows { count: 1, period_ns: 2 * AWAY_NS };
        let mut late = 0;
        for _ in 0..MOST_TRIES {
            let played = stage.with(|s| s.isolated(&play, windows))?;
            // A receiver that came late was still in MPI, where it takes any message.
            let all = played.iter().map(|stamps| Window::of(stamps, play.operation));
            for window in all.filter(|w| rate.ns(w.late.unsigned_abs()) <= LATE_NS) {
                let took_ns = rate.ns(u64::try_from(window.end - window.begin).unwrap_or(0));
                if took_ns < AWAY_NS as f64 / 2.0 {
                    return Ok(false);
                }
                late += 1;
            }
            if late >= TRIES {
                return Ok(true);
            }
        }
        Err("the ranks were late at every try".to_owned())
    }

    /// The largest that does not wait; `None` where none waits.
    pub(crate) fn search(&self) -> Result<Option<u64>, String> {
        let (mut low, mut high, mut bytes) = (0, None, 1);
        // By powers of two first: large messages cost time.
        while high.is_none() && bytes <= self.most_bytes {
            if self.waits(bytes)? {
                high = Some(bytes);
            } else {
                low = bytes;
            }
            bytes *= 2;
        }
        let Some(mut high) = high else { return Ok(None) };
        while high - low > 1 {
            let middle = low.midpoint(high);
            if self.waits(middle)? { high = middle } else { low = middle }
        }
        Ok(Some(low))
    }
}

impl Cell for ThresholdCell {
    fn rows(&self) -> &[Row] {
        std::slice::from_ref(&self.row)
    }

    fn expected_ns(&self) -> u64 {
        40 * TRIES as u64 * AWAY_NS
    }

    /// One search a launch.
    fn wants(&self, _enough: bool) -> bool {
        !self.found && self.row.refused.is_none()
    }

    fn visit(&mut self, _visit: &mut Visit<'_>) {
        match self.search() {
            Ok(found) => {
                self.found = true;
                let bytes = found.unwrap_or(u64::MAX) as f64;
                self.row.extras.extend(FOUND.map(str::to_owned).into_iter().zip([bytes, bytes, 1.0]));
            }
            Err(why) => self.row.refused = Some(why),
        }
    }

    fn into_rows(self: Box<Self>) -> Vec<Row> {
        // It has no pairs.
        vec![if self.found { self.row } else { self.row.reached() }]
    }
}
