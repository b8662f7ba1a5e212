//! Lets teams do the rows of table A, in rounds of random order, until the time is over.

use std::ops::Range;

use machmeter_engine::ProbeError;
use machmeter_engine::budget::stop_requested;
use machmeter_engine::cost::{Pair, Row};
use machmeter_engine::sampling::HostTiming;
use machmeter_engine::team::{Seats, Team};
use machmeter_stats::random::Random;
use machmeter_sys::oom::MemoryLeft;
use machmeter_sys::pages::Fill;
use machmeter_sys::thread;
use machmeter_sys::tree::Tree;

use super::member::{Floor, PAIRS, Taken, Visit, per_turn};
use super::plan::{Choice, Known, LINES, Line, MOST_BYTES, Sizes, models};
use crate::memory::Params;
use crate::memory::ladder::detect::DetectedCaches;
use crate::placement::Watch;
use machmeter_engine::part::At;

/// Length of a short batch, ns: long against the clock, short against the scheduler's ticks.
const BATCH_NS: f64 = 150_000.0;
/// Turns of a short batch along a chain beyond the caches: a thousand loads.
const DEAR_TURNS: u64 = 64;
/// A visit may take this long before its members give up, ns.
const VISIT_NS: u64 = 2_000_000_000;
/// And as much longer where its memory is filled, ns per byte: on a busy CPU.
const FILL_NS_PER_BYTE: u64 = 4;
/// Rounds at most.
const ROUNDS: usize = 40;
/// Members at most: a row in which more take part says nothing new, and their memory adds up.
const MEMBERS: usize = 8;
/// From one look at the placement to the next, at least, ns: a look takes about as long as a visit.
const LOOK_NS: u64 = 50_000_000;
/// Share of the available memory that the buffers may take.
const MEMORY_SHARE: u64 = 4;
/// Share of the time that building chains in large buffers may take, once each.
const BUILDING: f64 = 0.5;
/// Time to link a node of a chain beyond the caches, at most, ns.
const LINK_NS: f64 = 100.0;
/// Buffers up to this size are taken however short the time is: most rows need no chain, bytes.
const ALWAYS_BYTES: u64 = 64 << 20;

/// Rows measured together: one line with one active member, or with all.
struct Slot {
    line: Line,
    active: usize,
    rows: Vec<Row>,
    /// Placement of its two members when last looked at, ns one way; 0 where nobody looks.
    regime_ns: f64,
}

pub(super) fn measure(at: &mut At<'_, '_>, params: &Params) -> Result<Vec<Row>, ProbeError> {
    let models = models(&params.models)?;
    let mut cpus = at.cpus();
    cpus.truncate(MEMBERS);
    // Shared memory counts against the limits of control groups as any other does.
    let left = MemoryLeft::of_this_process(&Tree::host());
    let room = left.map_or(u64::MAX, |left| left.available_bytes) / MEMORY_SHARE;
    let known = known(at);
    let most_bytes =
        MOST_BYTES.min(room / cpus.len().max(1) as u64).min(by_time(at, models.len(), cpus.len()));
    let choice = Choice::of(params, &known, most_bytes)?;
    let sizes = choice.sizes;
    let needed = (sizes.main_bytes as u64).saturating_mul(cpus.len() as u64);
    if needed > room {
        let said = format!(
            "table A needs {needed} bytes, and may take {room}, a {MEMORY_SHARE}th of the memory available: give a smaller --cache-size"
        );
        return Err(if params.cache_size.is_some() {
            ProbeError::Usage(said)
        } else {
            ProbeError::Cannot(said)
        });
    }
    tell(at, &choice, &known);
    let floor = Floor::new(sizes, cpus.len()).map_err(|e| ProbeError::Cannot(e.to_string()))?;
    let seats = Seats { cpus, policy: at.policy };
    let mut placement = Watch::of(at).map(|w| w.rarely(LOOK_NS));
    let start_ns = thread::monotonic_ns();
    let mut rows = Vec::new();
    for (i, model) in models.iter().enumerate() {
        let share_ns = at.left_ns() / (models.len() - i) as u64;
        let time_ns = start_ns..thread::monotonic_ns() + share_ns;
        rows.extend(of_model(at, *model, &seats, &floor, sizes, time_ns, &mut placement));
    }
    Ok(rows)
}

/// Facts for the analysis.
fn tell(at: &mut At<'_, '_>, choice: &Choice, known: &Known) {
    let Choice { sizes, first, last, block } = choice;
    for (name, value) in [
        ("cached_bytes", sizes.cached_bytes.to_string()),
        ("main_bytes", sizes.main_bytes.to_string()),
        ("block_bytes", sizes.block_bytes.to_string()),
        ("block_source", block.source.name().to_owned()),
        ("first_source", first.source.name().to_owned()),
        ("last_bytes", last.bytes.to_string()),
        ("last_source", last.source.name().to_owned()),
        ("last_claimed_bytes", known.last_bytes.unwrap_or(0).to_string()),
    ] {
        at.facts.insert(format!("table_{name}"), value);
    }
}

/// What the ladder of this run found, and what the system claims of the caches of the first measured CPU.
fn known(at: &At<'_, '_>) -> Known {
    let cpu = at.host.cpus.first().unwrap_or(0);
    let mut caches = (1..=4).filter_map(|level| at.host.topology.cache(cpu, level));
    let sizes: Vec<u64> = caches.clone().filter_map(|c| c.size_bytes).collect();
    Known {
        seen: DetectedCaches::from_facts(at.facts),
        first_bytes: sizes.first().copied(),
        last_bytes: sizes.last().copied(),
        line_bytes: caches.find_map(|c| c.line_bytes),
    }
}

/// Largest buffer whose chains can be built in the time there is, once in each row that needs one.
fn by_time(at: &At<'_, '_>, models: usize, members: usize) -> u64 {
    let dear = LINES.into_iter().filter_map(Line::dependent).filter(|l| l.is_dear());
    let visits: usize = dear.map(|l| if l.all { 1 } else { members }).sum();
    let nodes = at.left_ns() as f64 * BUILDING / LINK_NS / (visits * models).max(1) as f64;
    ((nodes * 64.0) as u64).max(ALWAYS_BYTES)
}

/// Rows of one model; moments count from the beginning of `time_ns`, which is that of all models.
fn of_model(
    at: &mut At<'_, '_>,
    model: &dyn Team,
    seats: &Seats,
    floor: &Floor,
    sizes: Sizes,
    time_ns: Range<u64>,
    placement: &mut Option<Watch>,
) -> Vec<Row> {
    let members = seats.cpus.len();
    let mut slots = slots(model.model(), members, sizes);
    let seed = at.host.seed;
    // Incompressible, since some machines move zeros faster; sums of it wrap around. Each member touches its own memory first.
    let fill_ns = VISIT_NS + (sizes.main_bytes + sizes.cached_bytes) as u64 * FILL_NS_PER_BYTE;
    let begin = model.run(seats, fill_ns, &|m| {
        for (e, salt) in [floor.main(m.rank), floor.cached(m.rank)].into_iter().flatten().zip(0..) {
            e.fill(Fill::Random(seed ^ (2 * m.rank as u64 + salt)));
        }
    });
    if let Err(e) = begin {
        slots.iter_mut().flat_map(|s| &mut s.rows).for_each(|r| r.refused = Some(e.to_string()));
        return slots.into_iter().flat_map(|s| s.rows).collect();
    }
    let start_ns = time_ns.start;
    let mut random = Random::new(seed);
    let mut order: Vec<usize> = (0..slots.len()).collect();
    'rounds: for round in 0..ROUNDS {
        for i in (1..order.len()).rev() {
            order.swap(i, ((random.unit() * (i + 1) as f64) as usize).min(i));
        }
        // What is quickly had comes first, so that a short run has most of the table.
        order.sort_by_key(|i| slots[*i].line.turn());
        for &i in &order {
            if stop_requested() || thread::monotonic_ns() >= time_ns.end {
                break 'rounds;
            }
            let slot = &mut slots[i];
            if slot.rows.iter().all(|r| r.refused.is_none()) {
                if slot.line.needs_two() {
                    let look = |p: &mut Watch| p.beside(&seats.cpus, random.bits());
                    slot.regime_ns = placement.as_mut().map_or(0.0, look);
                }
                visit(at, model, seats, floor, slot, start_ns, seed ^ round as u64);
            }
        }
    }
    for row in slots.iter_mut().flat_map(|s| &mut s.rows) {
        if row.refused.is_none() && row.pairs.is_empty() && row.rejected.total() == 0 {
            row.refused = Some("not reached in the time given".to_owned());
        }
    }
    slots.into_iter().flat_map(|s| s.rows).collect()
}

/// Lines as the seed has them, dependent accesses behind; a line of one active member once per member.
fn slots(model: &str, members: usize, sizes: Sizes) -> Vec<Slot> {
    let lines = LINES.into_iter().chain(LINES.into_iter().filter_map(Line::dependent));
    let mut slots = Vec::new();
    for line in lines {
        let row = |rank| {
            let mut row = line.row(model, members, rank).per_turn(per_turn(line, sizes));
            if line.needs_two() && members < 2 {
                row.refused = Some("needs two CPUs, has 1".to_owned());
            }
            row
        };
        if line.all {
            slots.push(Slot { line, active: 0, rows: (0..members).map(row).collect(), regime_ns: 0.0 });
        } else {
            let own = |rank| Slot { line, active: rank, rows: vec![row(rank)], regime_ns: 0.0 };
            slots.extend((0..members).map(own));
        }
    }
    slots
}

/// One visit of a slot: calibrated on the first, then as many pairs as its line can afford.
fn visit(
    at: &At<'_, '_>,
    model: &dyn Team,
    seats: &Seats,
    floor: &Floor,
    slot: &mut Slot,
    start_ns: u64,
    seed: u64,
) {
    let Slot { line, active, rows, regime_ns } = slot;
    let go = |short_turns: u64, pairs: usize| {
        floor.clear();
        let visit = Visit {
            floor,
            line: *line,
            active: *active,
            short_turns,
            long_turns: 2 * short_turns,
            pairs,
            timing: HostTiming::new(at.host.source()),
            seed,
        };
        model.run(seats, VISIT_NS, &|m| visit.work(m)).map_err(|e| e.to_string())
    };
    let rank_of = |i: usize| if line.all { i } else { *active };
    if rows[0].long_turns == 0 {
        // A chain is not built only to learn how long it takes.
        let mut short_turns = if line.is_dear() { DEAR_TURNS } else { 4 };
        for _ in 0..if line.is_dear() { 0 } else { 2 } {
            if let Err(why) = go(short_turns, 1) {
                refuse(rows, &why);
                return;
            }
            if let Some(Taken::Clean { long_ticks, .. }) = floor.taken(rank_of(0), 1).first() {
                let each_ns = at.host.rate.ns(*long_ticks) / (2 * short_turns) as f64;
                short_turns = ((BATCH_NS / each_ns.max(0.1)) as u64).clamp(4, 1 << 24) / 4 * 4;
            }
        }
        for r in rows.iter_mut() {
            (r.short_turns, r.long_turns) = (short_turns, 2 * short_turns);
        }
    }
    let at_ns = thread::monotonic_ns().saturating_sub(start_ns) as f64;
    let pairs = if line.is_dear() { PAIRS } else { PAIRS / 2 };
    if let Err(why) = go(rows[0].short_turns, pairs) {
        refuse(rows, &why);
        return;
    }
    for (i, row) in rows.iter_mut().enumerate() {
        for taken in floor.taken(rank_of(i), pairs) {
            match taken {
                Taken::Clean { short_ticks, long_ticks } => {
                    row.pairs.push(Pair {
                        at_ns,
                        short_ticks,
                        long_ticks,
                        regime_ns: *regime_ns,
                        ..Pair::default()
                    });
                }
                Taken::Preempted => row.rejected.preempted += 1,
                Taken::Apart => row.rejected.partner += 1,
            }
        }
    }
}

fn refuse(rows: &mut [Row], why: &str) {
    for r in rows {
        r.refused = Some(why.to_owned());
    }
}
