//! Rallies: the members of a team do batches of one joint operation, all at the same time. Member 0 sets the number of turns,
//! takes the time and judges; the others follow. A batch counts only if no member that matters was switched out (where the
//! operation itself makes them sleep: only as often as it must).
//!
//! Nobody leaves a batch that began: operations such as a barrier would never end for the rest. So member 0 alone decides,
//! between batches, that it is over.

use std::sync::atomic::{AtomicU64, Ordering};

use machmeter_engine::calibration::{self, Tried};
use machmeter_engine::cost::{Pair, Row};
use machmeter_engine::sampling::{Disturbance, HostTiming, Timing};
use machmeter_engine::team::{Arena, Member, Seats, Team};
use machmeter_sys::clock::{SourceId, TickRate};
use machmeter_sys::sched::Policy;
use machmeter_sys::thread::{Usage, monotonic_ns};

/// An operation that members do together.
pub(in crate::sync) trait Joint: Sync {
    /// Time of every turn that members spend waiting on purpose, ns; it is taken off the time of a batch.
    fn pause_ns(&self) -> u64 {
        0
    }

    /// Makes ready for a batch; in member 0, while all others wait.
    fn ready(&self) {}

    /// A member's part of a batch. The return of member 0 ends the time. False when it could not be done.
    fn batch(&self, member: &Member<'_>, turns: u64) -> bool;

    /// Looks at what was done; in member 0, after all have come back from a batch of so many turns. `clean`: the batch is one of a pair, and
    /// nobody who matters was switched out against its will.
    fn judge(&self, _turns: u64, _clean: bool) -> Option<Disturbance> {
        None
    }
}

/// How often members must, and may, be switched out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::sync) enum Rule {
    /// Not against their will.
    Undisturbed,
    /// The players sleep so often in a turn, all together, and are not switched out against their will.
    Sleeps(u64),
    /// The two players share a CPU, which is switched twice in a turn and no more.
    Switches,
}

/// Of the switches that must be, this share has to be seen: a waker may be so late that the partner has not gone to sleep yet.
const SLEPT: f64 = 0.9;

/// Where and how long.
#[derive(Clone)]
pub(in crate::sync) struct Visit<'a> {
    /// Programming model.
    pub(in crate::sync) team: &'a dyn Team,
    /// CPUs of the members by rank.
    pub(in crate::sync) cpus: Vec<usize>,
    /// Policy of the members.
    pub(in crate::sync) policy: Policy,
    /// Clock.
    pub(in crate::sync) source: SourceId,
    /// Its rate.
    pub(in crate::sync) rate: TickRate,
    /// Members from 0 on whose switches count; the rest only keeps CPUs busy.
    pub(in crate::sync) players: usize,
    /// What may happen to them.
    pub(in crate::sync) rule: Rule,
    /// Length of a short batch, ns.
    pub(in crate::sync) batch_ns: f64,
    /// Fewest turns of a short batch.
    pub(in crate::sync) min_turns: u64,
    /// Most turns of a short batch.
    pub(in crate::sync) most_turns: u64,
    /// Pairs to take.
    pub(in crate::sync) pairs: usize,
    /// Time for the visit, ns.
    pub(in crate::sync) limit_ns: u64,
    /// Start of the measurement, monotonic ns.
    pub(in crate::sync) start_ns: u64,
    /// Bits that say which batch of a pair comes first.
    pub(in crate::sync) order: u64,
}

/// Cells of the board.
const CAME_BACK: usize = 0;
const ROUND: usize = 1;
const TURNS: usize = 2;
const FAILED: usize = 3;
const READY: usize = 4;
const GO: usize = 5;
const FIRST_MEMBER: usize = 6;
/// Rounds never come this far.
const OVER: u64 = u64::MAX;
/// Members that hear nothing of member 0 for so long after the end leave by themselves.
const GRACE_NS: u64 = 2_000_000_000;
/// One of so many turns tells whether the known number still makes a batch about as long as wanted: no farther off than this factor.
const LOOKING: u64 = 64;
const FAR_OFF: f64 = 8.0;
/// One of so many turns warms the rest.
const WARMING: u64 = 8;

/// Further tries of a batch that was disturbed while the number of turns is sought.
const TRIES: usize = 4;

/// Words of an entry in the ledger: fate, short ticks, long ticks, moment, switches by will, against it, turns.
const ENTRY: usize = 7;
/// Words before the entries: turns of a short batch, number of entries.
const HEAD: usize = 2;

/// What rallies of a row have seen of the kernel's switches, in its `extras`.
pub(in crate::sync) const SLEEPS: &str = "voluntary_switches";
pub(in crate::sync) const TAKEN_OFF: &str = "involuntary_switches";
pub(in crate::sync) const TURNS_SEEN: &str = "turns_seen";
pub(in crate::sync) const AWAKE_PAIRS: &str = "awake_pairs";

impl Visit<'_> {
    /// Lets the team visit `joint` once; pairs go to `row`.
    ///
    /// # Errors
    /// When the team could not work: one line.
    pub(in crate::sync) fn take(&self, row: &mut Row, joint: &dyn Joint) -> Result<(), String> {
        let members = self.cpus.len();
        let heap_bytes = (HEAD + self.pairs * ENTRY) * 8;
        let board = Arena::new(FIRST_MEMBER + 2 * members, heap_bytes).map_err(|e| e.to_string())?;
        let ledger = board.heap().atomics();
        let rally = Rally { visit: self, board: &board, ledger, joint };
        if let Some(turns) = ledger.first() {
            // As long as there is no pair nothing is known of the length.
            turns.store(if row.pairs.is_empty() { 0 } else { row.short_turns }, Ordering::Relaxed);
        }
        let seats = Seats { cpus: self.cpus.clone(), policy: self.policy };
        let attended = self.team.run(&seats, self.limit_ns, &|member| rally.attend(member));
        let attended = attended.map_err(|e| e.to_string())?;
        let stayed = attended.iter().take(self.players).all(|a| a.stayed);
        rally.collect(row, stayed);
        Ok(())
    }
}

struct Rally<'a> {
    visit: &'a Visit<'a>,
    board: &'a Arena,
    ledger: &'a [AtomicU64],
    joint: &'a dyn Joint,
}

impl Rally<'_> {
    fn cell(&self, i: usize) -> &AtomicU64 {
        // A board that is too small is a mistake of this file; the first word of the ledger then shows it as nonsense turns.
        self.board.cell(i).unwrap_or(&self.ledger[0])
    }

    fn attend(&self, member: &Member<'_>) {
        if member.rank == 0 {
            self.lead(member);
        } else {
            self.follow(member);
        }
    }

    fn follow(&self, member: &Member<'_>) {
        let give_up_ns = member.deadline_ns.saturating_add(GRACE_NS);
        for round in 1_u64.. {
            self.cell(CAME_BACK).fetch_add(1, Ordering::AcqRel);
            let mut said = 0;
            while said < round {
                said = 0;
                member.wait(|| {
                    said = self.cell(ROUND).load(Ordering::Acquire);
                    said >= round
                });
                if said < round && monotonic_ns() > give_up_ns {
                    return;
                }
            }
            if said == OVER {
                return;
            }
            self.serve(member, round);
        }
    }

    /// Whether every member has a CPU of its own. Then all wait, running, for the start, so that nobody is still waiting for a
    /// CPU when the time begins; that a member lost its CPU while it waited is seen too. Members that share a CPU can't.
    fn starts_together(&self) -> bool {
        let mut cpus = self.visit.cpus.clone();
        cpus.sort_unstable();
        cpus.windows(2).all(|two| two[0] != two[1])
    }

    /// One batch with the switches it took.
    fn serve(&self, member: &Member<'_>, round: u64) {
        let turns = self.cell(TURNS).load(Ordering::Relaxed);
        let before = Usage::of_current_thread();
        if self.starts_together() {
            self.cell(READY).fetch_add(1, Ordering::AcqRel);
            // Member 0 always says so, if late.
            while self.cell(GO).load(Ordering::Acquire) < round {
                (member.relax)();
            }
        }
        let done = self.joint.batch(member, turns);
        let seen = Usage::of_current_thread().since(&before);
        let cell = |i| self.cell(FIRST_MEMBER + 2 * member.rank + i);
        cell(0).store(seen.voluntary_switches, Ordering::Relaxed);
        cell(1).store(seen.involuntary_switches, Ordering::Relaxed);
        if !done {
            self.cell(FAILED).store(1, Ordering::Relaxed);
        }
    }

    fn lead(&self, member: &Member<'_>) {
        let mut leader = Leader {
            rally: self,
            member,
            round: 0,
            timing: HostTiming::new(self.visit.source),
            in_pairs: false,
        };
        leader.sample();
        self.cell(ROUND).store(OVER, Ordering::Release);
    }

    fn collect(&self, row: &mut Row, stayed: bool) {
        let word = |i: usize| self.ledger.get(i).map_or(0, |w| w.load(Ordering::Acquire));
        let turns = word(0);
        if turns == 0 {
            row.rejected.failed += 1;
            return;
        }
        let scale = share_turns(row, turns);
        for entry in 0..(word(1) as usize).min(self.visit.pairs) {
            let w = |i: usize| word(HEAD + entry * ENTRY + i);
            let mut add = |name: &str, v: f64| *row.extras.entry(name.to_owned()).or_default() += v;
            match Fate::of(w(0)) {
                Fate::Kept if stayed => {
                    add(SLEEPS, w(4) as f64);
                    add(TAKEN_OFF, w(5) as f64);
                    add(TURNS_SEEN, w(6) as f64);
                    let [short_ticks, long_ticks] = [w(1), w(2)].map(|t| scaled(t, scale));
                    row.pairs.push(Pair { at_ns: w(3) as f64, short_ticks, long_ticks, ..Pair::default() });
                }
                Fate::Kept => row.rejected.migrated += 1,
                Fate::Preempted => row.rejected.preempted += 1,
                Fate::Partner => row.rejected.partner += 1,
                Fate::Awake => {
                    row.rejected.partner += 1;
                    add(AWAKE_PAIRS, 1.0);
                }
                Fate::Failed => row.rejected.failed += 1,
            }
        }
    }
}

/// Gives the row the turns of a visit or keeps its own, whichever are more: one row has one number of turns, and ticks of batches of
/// fewer are those that so many would have taken. The factor for ticks of this visit.
fn share_turns(row: &mut Row, turns: u64) -> f64 {
    if !row.pairs.is_empty() && turns <= row.short_turns {
        return row.short_turns as f64 / turns as f64;
    }
    for p in &mut row.pairs {
        let factor = turns as f64 / row.short_turns as f64;
        [p.short_ticks, p.long_ticks] = [p.short_ticks, p.long_ticks].map(|t| scaled(t, factor));
    }
    (row.short_turns, row.long_turns) = (turns, turns * 2);
    1.0
}

fn scaled(ticks: u64, factor: f64) -> u64 {
    (ticks as f64 * factor).round() as u64
}

/// What became of a pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Kept,
    Preempted,
    Partner,
    Awake,
    Failed,
}

impl Fate {
    fn of(word: u64) -> Self {
        [Self::Kept, Self::Preempted, Self::Partner, Self::Awake]
            .get(word as usize)
            .copied()
            .unwrap_or(Self::Failed)
    }
}

/// Switches of the players in a batch.
#[derive(Debug, Clone, Copy, Default)]
struct Switches {
    voluntary: u64,
    involuntary: u64,
}

struct Batch {
    ticks: u64,
    switches: Switches,
    disturbance: Option<Disturbance>,
}

struct Leader<'a> {
    rally: &'a Rally<'a>,
    member: &'a Member<'a>,
    round: u64,
    timing: HostTiming,
    /// Whether the number of turns is settled.
    in_pairs: bool,
}

impl Leader<'_> {
    fn sample(&mut self) {
        let (ledger, visit) = (self.rally.ledger, self.rally.visit);
        let found = match ledger[0].load(Ordering::Relaxed) {
            0 => self.turns_for_batch(),
            known => self.turns_again(known),
        };
        // A visit that is broken off here says so by no turns.
        ledger[0].store(found.unwrap_or(0), Ordering::Relaxed);
        let Some(turns) = found else { return };
        self.in_pairs = true;
        for entry in 0..visit.pairs {
            if monotonic_ns() >= self.member.deadline_ns {
                return;
            }
            let long_first = visit.order >> (entry % 64) & 1 == 1;
            let at_ns = monotonic_ns().saturating_sub(visit.start_ns);
            let lengths = if long_first { [2, 1] } else { [1, 2] };
            let Some(first) = self.batch(turns * lengths[0]) else { return };
            let Some(second) = self.batch(turns * lengths[1]) else { return };
            let (short, long) = if long_first { (second, first) } else { (first, second) };
            let words = [
                fate(visit.rule, &short, &long, turns * 3) as u64,
                short.ticks,
                long.ticks,
                at_ns,
                short.switches.voluntary + long.switches.voluntary,
                short.switches.involuntary + long.switches.involuntary,
                turns * 3,
            ];
            for (i, word) in words.into_iter().enumerate() {
                ledger[HEAD + entry * ENTRY + i].store(word, Ordering::Relaxed);
            }
            ledger[1].store(entry as u64 + 1, Ordering::Release);
        }
    }

    /// Turns of which a batch takes about as long as it should; `None` when the operation or a partner fails.
    fn turns_for_batch(&mut self) -> Option<u64> {
        let visit = self.rally.visit;
        let turns = calibration::turns_for(visit.batch_ns, 1, |turns| {
            let batch = self.clean_batch(turns)?;
            let late = turns >= visit.most_turns || monotonic_ns() >= self.member.deadline_ns;
            let tried = Tried { ns: visit.rate.ns(batch.ticks), late };
            (batch.disturbance != Some(Disturbance::Failed)).then_some(tried)
        });
        turns.map(|t| t.min(visit.most_turns).max(visit.min_turns))
    }

    /// The turns of the visits before, warmed by a part of them, unless a smaller part takes far longer or shorter than it should: whoever
    /// waits for a lock spins in one visit and sleeps in another, which costs hundreds of times as much.
    fn turns_again(&mut self, known: u64) -> Option<u64> {
        let visit = self.rally.visit;
        let part = |of: u64| (known / of).max(visit.min_turns).max(1);
        let expected_ns = visit.batch_ns * part(LOOKING) as f64 / known as f64;
        let look = self.clean_batch(part(LOOKING))?;
        if look.disturbance == Some(Disturbance::Failed) {
            return None;
        }
        if (expected_ns / FAR_OFF..=expected_ns * FAR_OFF).contains(&visit.rate.ns(look.ticks)) {
            self.batch(part(WARMING))?;
            return Some(known);
        }
        self.turns_for_batch()
    }

    /// A batch in which nobody who has a CPU of its own lost it: without a partner that holds it up, an operation looks quick.
    /// After a few tries, whatever there is.
    fn clean_batch(&mut self, turns: u64) -> Option<Batch> {
        let mut batch = self.batch(turns)?;
        for _ in 0..TRIES {
            let lost = self.rally.starts_together() && batch.switches.involuntary > 0;
            if !lost || monotonic_ns() >= self.member.deadline_ns {
                break;
            }
            batch = self.batch(turns)?;
        }
        Some(batch)
    }

    /// All members do one batch. `None` when a member is missing.
    fn batch(&mut self, turns: u64) -> Option<Batch> {
        let rally = self.rally;
        let came_back = |round: u64| {
            let all = (self.member.members as u64 - 1) * round;
            self.member.wait(|| rally.cell(CAME_BACK).load(Ordering::Acquire) >= all)
        };
        if !came_back(self.round + 1) {
            return None;
        }
        rally.joint.ready();
        rally.cell(FAILED).store(0, Ordering::Relaxed);
        rally.cell(TURNS).store(turns, Ordering::Relaxed);
        self.round += 1;
        rally.cell(ROUND).store(self.round, Ordering::Release);
        let before = Usage::of_current_thread();
        if rally.starts_together() {
            let all = (self.member.members as u64 - 1) * self.round;
            self.member.wait(|| rally.cell(READY).load(Ordering::Acquire) >= all);
            rally.cell(GO).store(self.round, Ordering::Release);
        }
        let mut done = false;
        let ticks = self.timing.time(&mut || done = rally.joint.batch(self.member, turns));
        let waited_ns = rally.joint.pause_ns() as f64 * turns as f64;
        let ticks = ticks.saturating_sub((waited_ns / rally.visit.rate.ns_per_tick()) as u64);
        let seen = Usage::of_current_thread().since(&before);
        if !came_back(self.round + 1) {
            return None;
        }
        let mut switches =
            Switches { voluntary: seen.voluntary_switches, involuntary: seen.involuntary_switches };
        for rank in 1..rally.visit.players {
            let cell = |i| rally.cell(FIRST_MEMBER + 2 * rank + i).load(Ordering::Relaxed);
            switches.voluntary += cell(0);
            switches.involuntary += cell(1);
        }
        let failed = !done || ticks == 0 || rally.cell(FAILED).load(Ordering::Relaxed) != 0;
        let judged = rally.joint.judge(turns, self.in_pairs && switches.involuntary == 0);
        let disturbance = if failed { Some(Disturbance::Failed) } else { judged };
        Some(Batch { ticks, switches, disturbance })
    }
}

/// What becomes of a pair of batches with so many turns in all.
fn fate(rule: Rule, short: &Batch, long: &Batch, turns: u64) -> Fate {
    match short.disturbance.or(long.disturbance) {
        Some(Disturbance::Failed) => return Fate::Failed,
        Some(Disturbance::Partner) => return Fate::Partner,
        Some(_) => return Fate::Preempted,
        None => {}
    }
    let voluntary = short.switches.voluntary + long.switches.voluntary;
    let involuntary = short.switches.involuntary + long.switches.involuntary;
    // At the beginning of each of the two batches a member may not have gone to sleep yet.
    let must = |per_turn: u64| (((per_turn * turns) as f64 * SLEPT) as u64).saturating_sub(per_turn);
    match rule {
        Rule::Undisturbed | Rule::Sleeps(_) if involuntary > 0 => Fate::Preempted,
        Rule::Sleeps(per_turn) if voluntary < must(per_turn) => Fate::Awake,
        // Beginning and end of each of the two batches may add one.
        Rule::Switches if voluntary + involuntary > 2 * turns + 4 => Fate::Preempted,
        Rule::Switches if voluntary + involuntary < must(2) => Fate::Awake,
        _ => Fate::Kept,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(voluntary: u64, involuntary: u64, disturbance: Option<Disturbance>) -> Batch {
        Batch { ticks: 100, switches: Switches { voluntary, involuntary }, disturbance }
    }

    #[test]
    fn visits_of_other_turns_say_the_same() {
        let mut row = Row::new("locks", "x", machmeter_engine::cost::Kind::Latency);
        // 7 ticks a turn, and 30 beside.
        for turns in [10, 400, 16, 400, 7] {
            let scale = share_turns(&mut row, turns);
            let [short_ticks, long_ticks] = [turns, 2 * turns].map(|t| scaled(30 + 7 * t, scale));
            row.pairs.push(Pair { short_ticks, long_ticks, ..Pair::default() });
        }
        assert_eq!((row.short_turns, row.long_turns), (400, 800));
        let each = machmeter_engine::cost::estimate::values_ns(&row, &row.pairs, 1.0);
        assert!(each.iter().all(|ns| (ns - 7.0).abs() < 0.01), "{each:?}");
    }

    #[test]
    fn switches_decide_what_becomes_of_a_pair() {
        let pair = |rule, v, i| fate(rule, &batch(v, i, None), &batch(2 * v, 0, None), 30);
        assert_eq!(pair(Rule::Undisturbed, 7, 0), Fate::Kept);
        assert_eq!(pair(Rule::Undisturbed, 0, 1), Fate::Preempted);
        assert_eq!(pair(Rule::Sleeps(2), 20, 0), Fate::Kept);
        assert_eq!(pair(Rule::Sleeps(2), 17, 0), Fate::Awake);
        assert_eq!(pair(Rule::Sleeps(1), 10, 0), Fate::Kept);
        assert_eq!(pair(Rule::Sleeps(2), 20, 1), Fate::Preempted);
        assert_eq!(pair(Rule::Switches, 15, 15), Fate::Kept);
        assert_eq!(pair(Rule::Switches, 5, 5), Fate::Awake);
        assert_eq!(pair(Rule::Switches, 20, 9), Fate::Preempted);
        let lost = Some(Disturbance::Failed);
        assert_eq!(fate(Rule::Undisturbed, &batch(0, 0, None), &batch(0, 0, lost), 30), Fate::Failed);
        assert_eq!((Fate::of(0), Fate::of(3), Fate::of(99)), (Fate::Kept, Fate::Awake, Fate::Failed));
    }
}
