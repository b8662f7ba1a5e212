//! The ranks of an MPI job as a stage: rank 0 leads, the others follow its orders until it ends them.

use std::path::Path;
use std::rc::Rc;

use machmeter_data::text::printable;
use machmeter_engine::sampling::Mark;
use machmeter_sys::affinity;
use machmeter_sys::clock::{OrderedCounter, SourceId, TickRate, now};
use machmeter_sys::mpi::clock::{APART_NS, RankClock, align};
use machmeter_sys::mpi::shmem::Shmem;
use machmeter_sys::mpi::{Comm, Error, Operation as Reduction, Session};
use machmeter_sys::sched::{self, Policy};
use machmeter_sys::thread::monotonic_ns;

use crate::orders::{Order, Words};
use crate::stage::{Play, Stage, Stamp, Windows};
use machmeter_loops::mpi::player::{Moment, Player, SHMEM_WORDS_BYTES, Stamps};

/// Why ranks end that rank 0 does not lead.
pub(crate) const GAVE_UP: &str = "rank 0 gave up";
/// What all ranks have to run.
const PROGRAM: &str = concat!("machmeter ", env!("CARGO_PKG_VERSION"), " mpi");
/// From an order to its first window, ns: time for the order to reach all ranks.
const LEAD_NS: u64 = 30_000;

pub(crate) struct Ensemble {
    pub(crate) session: Session,
    /// All ranks.
    pub(crate) control: Comm,
    /// By numbers of ranks that take part; those that this rank belongs to.
    players: Vec<(usize, Player)>,
    source: SourceId,
    rate: TickRate,
    clocks: Vec<RankClock>,
    last: Mark,
}

/// What an ensemble is made of; the same on all ranks.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Setup {
    pub(crate) most_bytes: u64,
    /// Whether all ranks play together, so that each needs room for a message of every other.
    pub(crate) collectives: bool,
    pub(crate) source: SourceId,
    pub(crate) tick_hz: f64,
    /// Whether `OpenSHMEM` is started, too.
    pub(crate) shmem: bool,
}

impl Ensemble {
    /// Starts MPI in this process and compares versions and clocks; rank 0's `setup` counts. Collective.
    pub(crate) fn start(lib: Option<&Path>, setup: impl FnOnce() -> Option<Setup>) -> Result<Self, String> {
        // Helper threads of the library inherit it.
        let asked = sched::current().map_err(|e| e.to_string())?;
        sched::apply(Policy::ordinary()).map_err(|e| e.to_string())?;
        let session = Session::start(lib, false).map_err(text)?;
        let control = session.world().clone();
        // Others learn it from rank 0; without one all end.
        let setup = if control.rank() == 0 { setup() } else { None };
        let agreed = control.all_run(PROGRAM).and_then(|()| {
            let flag = |of: bool| f64::from(u8::from(of));
            let words = |s: Setup| {
                let (shmem, collectives) = (flag(s.shmem), flag(s.collectives));
                [s.most_bytes as f64, number(s.source), s.tick_hz, shmem, below(asked), collectives]
            };
            let mut words = setup.map_or([0.0; 6], words);
            control.bcast(&mut words, 0).map_err(text)?;
            let rate = TickRate::from_hz(words[2]).map_err(|_| GAVE_UP.to_owned());
            rate.map(|rate| (words, rate))
        });
        let (words, rate) = match agreed {
            Ok(agreed) => agreed,
            // All ranks know it, and end in order.
            Err(why) => {
                drop(control);
                session.finish();
                return Err(why);
            }
        };
        let source = SourceId::ALL.into_iter().find(|s| number(*s).total_cmp(&words[1]).is_eq());
        let source = source.filter(|s| s.is_available()).ok_or("a rank has no such clock as rank 0")?;
        let mut players = Self::players(&control, words[0] as usize, words[5] > 0.0, rate)?;
        if words[3] > 0.0 {
            let shmem = Rc::new(Shmem::start(&session, SHMEM_WORDS_BYTES + words[0] as usize).map_err(text)?);
            for (_, player) in &mut players {
                player.shmem = Some(Rc::clone(&shmem));
            }
        }
        if words[4] > 0.0 {
            sched::apply(Policy::Fifo(words[4] as u8)).map_err(|e| e.to_string())?;
        }
        let clocks = align::<OrderedCounter>(&control, APART_NS).map_err(text)?;
        let last = Mark::of_current_thread();
        Ok(Self { session, control, players, source, rate, clocks, last })
    }

    fn players(
        control: &Comm,
        most_bytes: usize,
        collectives: bool,
        rate: TickRate,
    ) -> Result<Vec<(usize, Player)>, String> {
        let mut players = Vec::new();
        for ranks in crate::plan::numbers_of_ranks(control.size()) {
            if let Some(comm) = control.split(control.rank() < ranks).map_err(text)? {
                let player = Player::new(comm, most_bytes, collectives, rate.ns_per_tick());
                players.push((ranks, player.map_err(text)?));
            }
        }
        Ok(players)
    }

    /// How far clocks of these ranks may be apart after their offsets are taken off, ns.
    pub(crate) fn clock_bound_ns(&self, of: impl Fn(&&RankClock) -> bool) -> f64 {
        let worst = self.clocks.iter().filter(of).map(RankClock::within_ticks).fold(0.0, f64::max);
        worst * self.rate.ns_per_tick()
    }

    /// Where each rank runs, on rank 0: the CPU as its system counts, -1 where unknown. Collective.
    pub(crate) fn cpus(&self) -> Result<Vec<i64>, String> {
        let own = affinity::current_cpu().and_then(|c| i64::try_from(c).ok()).unwrap_or(-1);
        let mut all = vec![-1; self.control.size()];
        self.control.gather(&[own], &mut all, 0).map_err(text)?;
        Ok(all)
    }

    /// The machine of each rank, by its number in the names of all machines. Collective.
    pub(crate) fn machines(&self) -> Result<(Vec<usize>, Vec<String>), String> {
        let own = self.session.processor_name().unwrap_or_default();
        let all = self.control.texts(&own).map_err(text)?;
        let mut names: Vec<String> = Vec::new();
        let number = |name: String| {
            // Strangers name machines.
            let name = printable(&name);
            names.iter().position(|n| *n == name).unwrap_or_else(|| {
                names.push(name);
                names.len() - 1
            })
        };
        Ok((all.into_iter().map(number).collect(), names))
    }

    fn order(&self, order: Order) -> Result<(), String> {
        let mut words: Words = order.to_words();
        self.control.bcast(&mut words, 0).map_err(text)
    }

    /// Does what rank 0 orders until it is over.
    pub(crate) fn follow(mut self) -> Result<(), String> {
        loop {
            let mut words: Words = [0; 11];
            self.control.bcast(&mut words, 0).map_err(text)?;
            match Order::of_words(&words) {
                Order::Turns(play, turns) => _ = self.turns(&play, turns)?,
                Order::Windows(play, windows, start) => _ = self.windows(&play, windows, start)?,
                Order::Report => _ = self.report()?,
                Order::End => return self.finish(),
            }
        }
    }

    fn finish(self) -> Result<(), String> {
        // The end needs the library's helpers, too.
        sched::apply(Policy::ordinary()).map_err(|e| e.to_string())?;
        for (_, player) in self.players {
            player.finish().map_err(text)?;
        }
        drop(self.control);
        self.session.finish();
        Ok(())
    }

    /// The player of a play; `None` where this rank takes no part.
    fn player(&mut self, play: &Play) -> Option<&mut Player> {
        self.players.iter_mut().find(|p| p.0 == play.ranks).map(|p| &mut p.1)
    }

    /// This rank's part of turns back to back.
    fn turns(&mut self, play: &Play, turns: u64) -> Result<Stamps, String> {
        let source = self.source;
        let Some(player) = self.player(play) else { return Ok(Stamps::default()) };
        play.prepare(player).and_then(|()| player.comm.barrier()).map_err(text)?;
        perform(source, player, play, turns, None)
    }

    /// This rank's part of windows; on rank 0 what all said.
    fn windows(&mut self, play: &Play, windows: Windows, start: u64) -> Result<Vec<Vec<Stamp>>, String> {
        let (source, rate) = (self.source, self.rate);
        let clock = self.clocks.get(self.control.rank()).copied();
        let Some(player) = self.player(play) else { return Ok(Vec::new()) };
        play.prepare(player).map_err(text)?;
        let count = windows.count as usize;
        let mut own = vec![0_i64; 3 * count];
        for (i, stamps) in own.chunks_exact_mut(3).enumerate() {
            let at = start + rate.ticks(i as f64 * windows.period_ns as f64);
            let (at, off) = clock.as_ref().map_or((at, 0.0), |c| c.here(at));
            let played = perform(source, player, play, 1, Some(at))?;
            let since = |t: u64| if t > 0 { t.wrapping_sub(at) as i64 } else { 0 };
            stamps.copy_from_slice(&[since(played.begin), since(played.end), off.ceil() as i64]);
        }
        let comm = &player.comm;
        let mut all = vec![0_i64; if comm.rank() == 0 { own.len() * comm.size() } else { 0 }];
        comm.gather(&own, &mut all, 0).map_err(text)?;
        let stamp = |i: usize, of: &[i64]| Stamp { begin: of[3 * i], end: of[3 * i + 1], off: of[3 * i + 2] };
        let window = |i: usize| all.chunks_exact(own.len()).map(|of| stamp(i, of)).collect();
        Ok(if all.is_empty() { Vec::new() } else { (0..count).map(window).collect() })
    }

    /// Whether any rank beside 0 was disturbed since the last report; known on rank 0.
    fn report(&mut self) -> Result<bool, String> {
        let mark = Mark::of_current_thread();
        let disturbed =
            mark.involuntary_switches != self.last.involuntary_switches || mark.cpu != self.last.cpu;
        self.last = mark;
        let own = [i64::from(disturbed && self.control.rank() != 0)];
        let mut all = [0];
        self.control.reduce(&own, &mut all, Reduction::Max, 0).map_err(text)?;
        Ok(all[0] > 0)
    }
}

/// Rank 0 of a job, which ends the others when it is dropped.
pub(crate) struct Leader(Option<Ensemble>);

impl Leader {
    pub(crate) fn of(ensemble: Ensemble) -> Self {
        Self(Some(ensemble))
    }

    fn ensemble(&mut self) -> Result<&mut Ensemble, String> {
        self.0.as_mut().ok_or_else(|| "the ranks have ended".to_owned())
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        // After an error of MPI the session's own end takes the others along.
        if let Some(ensemble) = self.0.take()
            && ensemble.order(Order::End).is_ok()
        {
            let _ = ensemble.finish();
        }
    }
}

impl Stage for Leader {
    fn back_to_back(&mut self, play: &Play, turns: u64) -> Result<u64, String> {
        let ensemble = self.ensemble()?;
        ensemble.order(Order::Turns(*play, turns))?;
        let stamps = ensemble.turns(play, turns)?;
        Ok(stamps.end.saturating_sub(stamps.begin))
    }

    fn isolated(&mut self, play: &Play, windows: Windows) -> Result<Vec<Vec<Stamp>>, String> {
        let ensemble = self.ensemble()?;
        let lead = ensemble.rate.ticks(LEAD_NS as f64);
        let start = now(ensemble.source).map_err(|e| e.to_string())? + lead;
        ensemble.order(Order::Windows(*play, windows, start))?;
        ensemble.windows(play, windows, start)
    }

    fn others_disturbed(&mut self) -> Result<bool, String> {
        let ensemble = self.ensemble()?;
        ensemble.order(Order::Report)?;
        ensemble.report()
    }

    fn mark(&self) -> Mark {
        Mark::of_current_thread()
    }

    fn now_ns(&self) -> u64 {
        monotonic_ns()
    }

    fn ticks(&self) -> u64 {
        self.0.as_ref().and_then(|e| now(e.source).ok()).unwrap_or(0)
    }
}

fn perform(
    source: SourceId,
    player: &mut Player,
    play: &Play,
    turns: u64,
    moment: Moment,
) -> Result<Stamps, String> {
    let script = play.operation.script(player.seat);
    player.play_by(source, script, play.sizes(), turns, moment).map_err(|e| e.to_string())?.map_err(text)
}

/// Real-time priority of ranks while they measure, one below what rank 0 was given; 0 for ordinary policies. Ranks that wait spin: their
/// launcher and who reads from them have to come before, and helper threads of the library have to run while it starts and ends.
fn below(asked: Policy) -> f64 {
    match asked {
        Policy::Fifo(priority) | Policy::Rr(priority) => f64::from(priority.saturating_sub(1)),
        _ => 0.0,
    }
}

fn number(source: SourceId) -> f64 {
    SourceId::ALL.iter().position(|s| *s == source).unwrap_or(0) as f64
}

#[allow(clippy::needless_pass_by_value, reason = "for map_err")]
fn text(e: Error) -> String {
    e.to_string()
}
