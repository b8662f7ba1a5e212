//! The cells of the table of shared accesses: each a line that teams do.

use std::cell::RefCell;
use std::rc::Rc;

use machmeter_engine::ProbeError;
use machmeter_engine::cost::Row;
use machmeter_engine::experiment::{Cell, CellList, Visit};
use machmeter_engine::sampling::HostTiming;
use machmeter_engine::team::sampler::{Clocked, HostClock, Others, Rule, TeamCell, TeamVisit, Turns};
use machmeter_engine::team::{Member, Seats, Team};
use machmeter_sys::fs_root::FsRoot;
use machmeter_sys::oom::MemoryLeft;

use super::member::{Buffers, LineOperation, per_turn};
use super::plan::{CHOICE, Choice, LINES, Line, MOST_BYTES, Operation, models};
use crate::memory::Params;
use crate::memory::bandwidth::sizes;
use crate::memory::reported::ReportedCaches;
use machmeter_engine::disturbance::placement::PlacementDetector;
use machmeter_engine::part::PartContext;

/// Length of a short batch, ns: long against the clock, short against the scheduler's ticks.
const BATCH_NS: f64 = 150_000.0;
/// Turns of a short batch along a chain beyond the caches: a thousand loads.
const EXPENSIVE_TURNS: u64 = 64;
/// Pairs of a visit of a dear line, and twice those of another.
const PAIRS: usize = 16;
/// A visit may take this long before its members give up, ns.
const VISIT_NS: u64 = 2_000_000_000;
/// And as much longer where its memory is filled, ns per byte: on a busy CPU.
const FILL_NS_PER_BYTE: u64 = 4;
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

pub(super) fn measure(at: &mut PartContext<'_>, params: &Params) -> Result<(), ProbeError> {
    let models = models(&params.models)?;
    let mut cpus = at.cpus();
    cpus.truncate(MEMBERS);
    // Shared memory counts against the limits of control groups as any other does.
    let left = MemoryLeft::of_this_process(&FsRoot::host());
    let room = left.map_or(u64::MAX, |left| left.available_bytes) / MEMORY_SHARE;
    let most_bytes =
        MOST_BYTES.min(room / cpus.len().max(1) as u64).min(by_time(at, models.len(), cpus.len()));
    let most_bytes = most_bytes.min(sizes::most_bytes(at.host.level) as u64);
    let reported = ReportedCaches::of(&at.host.topology, cpus.first().copied().unwrap_or(0));
    let choice = Choice::of(params, &reported, most_bytes)?;
    let sizes = choice.sizes;
    let needed = (sizes.main_bytes as u64).saturating_mul(cpus.len() as u64);
    if needed > room {
        let said = format!(
            "the table of shared accesses needs {needed} bytes, but may use {room}, a {MEMORY_SHARE}th of the available memory: give a smaller --cache-size"
        );
        let error = if params.cache_size.is_some() { ProbeError::Usage } else { ProbeError::Cannot };
        return Err(error(said));
    }
    at.host.begin()?;
    at.facts.set(&CHOICE, choice);
    let buffers = Buffers::new(sizes, cpus.len()).map_err(|e| ProbeError::Cannot(e.to_string()))?;
    let setting = Rc::new(Setting {
        buffers: &buffers,
        seats: Seats { cpus, policy: at.policy },
        clock: at.clock(),
        seed: at.host.seed,
        placement: RefCell::new(PlacementDetector::of(at).map(|w| w.rarely(LOOK_NS))),
    });
    let mut cells = CellList::default();
    for model in models {
        let filled = setting.fill(model);
        for mut cell in lines(model, &setting) {
            if let Err(why) = &filled {
                cell.refuse(why);
            }
            cells.push(cell);
        }
    }
    at.run(cells);
    Ok(())
}

struct Setting<'b> {
    buffers: &'b Buffers,
    seats: Seats,
    clock: HostClock,
    seed: u64,
    placement: RefCell<Option<PlacementDetector>>,
}

impl Setting<'_> {
    /// Incompressible, since some machines move zeros faster; sums of it wrap around. Each member touches its own memory first.
    fn fill(&self, model: &dyn Team) -> Result<(), String> {
        let (buffers, seed) = (self.buffers, self.seed);
        let sizes = buffers.sizes;
        let fill_ns = VISIT_NS + (sizes.main_bytes + sizes.cached_bytes) as u64 * FILL_NS_PER_BYTE;
        let fill = |m: &Member<'_>| {
            for (e, salt) in [buffers.main(m.rank), buffers.cached(m.rank)].into_iter().flatten().zip(0..) {
                e.fill(seed ^ (2 * m.rank as u64 + salt));
            }
        };
        model.run(&self.seats, fill_ns, &fill).map(drop).map_err(|e| e.to_string())
    }
}

/// Rows measured together: one line with one active member, or with all.
struct LineCell<'b> {
    line: Line,
    active: usize,
    rows: Vec<Row>,
    model: &'static dyn Team,
    setting: Rc<Setting<'b>>,
}

impl Cell for LineCell<'_> {
    fn rows(&self) -> &[Row] {
        &self.rows
    }

    fn expected_ns(&self) -> u64 {
        let chain_ns = self.setting.buffers.sizes.main_bytes as f64 / 64.0 * LINK_NS;
        BATCH_NS as u64 * 3 * PAIRS as u64 + if self.line.is_expensive() { chain_ns as u64 } else { 0 }
    }

    fn visit(&mut self, visit: &mut Visit<'_>) {
        if self.rows.iter().any(|r| r.refused.is_some()) {
            return;
        }
        let mut placement = self.setting.placement.borrow_mut();
        let looks = placement.as_mut().filter(|_| self.line.needs_two());
        let regime_ns = looks.map_or(0.0, |p| p.beside(&self.setting.seats.cpus, visit.bits));
        drop(placement);
        if let Err(why) = self.sample(visit, regime_ns) {
            self.refuse(&why);
        }
    }

    fn into_rows(self: Box<Self>) -> Vec<Row> {
        self.rows.into_iter().map(Row::reached).collect()
    }
}

/// Largest buffer whose chains can be built in the time there is, once in each row that needs one.
fn by_time(at: &PartContext<'_>, models: usize, members: usize) -> u64 {
    let dear = LINES.into_iter().filter_map(Line::dependent).filter(|l| l.is_expensive());
    let visits: usize = dear.map(|l| if l.all { 1 } else { members }).sum();
    let nodes = at.left_ns() as f64 * BUILDING / LINK_NS / (visits * models).max(1) as f64;
    ((nodes * 64.0) as u64).max(ALWAYS_BYTES)
}

/// Lines as Howell has them, dependent accesses behind; a line of one active member once per member.
fn lines<'b>(model: &'static dyn Team, setting: &Rc<Setting<'b>>) -> Vec<LineCell<'b>> {
    let (members, sizes) = (setting.seats.cpus.len(), setting.buffers.sizes);
    let mut cells = Vec::new();
    for line in LINES.into_iter().chain(LINES.into_iter().filter_map(Line::dependent)) {
        let row = |rank| {
            let mut row = line.row(model.model(), members, rank).per_turn(per_turn(line, sizes));
            if line.needs_two() && members < 2 {
                row.refused = Some("needs two CPUs, has 1".to_owned());
            }
            row
        };
        let cell = |active, rows| LineCell { line, active, rows, model, setting: Rc::clone(setting) };
        if line.all {
            cells.push(cell(0, (0..members).map(row).collect()));
        } else {
            cells.extend((0..members).map(|rank| cell(rank, vec![row(rank)])));
        }
    }
    cells
}

impl LineCell<'_> {
    fn refuse(&mut self, why: &str) {
        self.rows.iter_mut().for_each(|r| r.refused = Some(why.to_owned()));
    }

    /// As many pairs as the line can afford. A chain is not built only to learn how long it takes.
    fn sample(&mut self, visit: &Visit<'_>, regime_ns: f64) -> Result<(), String> {
        let Self { line, active, rows, model, setting } = self;
        let timing = HostTiming::new(setting.clock.source);
        let operation =
            LineOperation::new(setting.buffers, *line, *active, timing, setting.seed ^ visit.bits);
        let members = operation.members();
        let cpus = setting.seats.cpus.iter().copied().skip(*active).take(members).collect();
        let (turns, pairs) = if line.is_expensive() {
            (Turns::fixed(EXPENSIVE_TURNS), PAIRS)
        } else {
            (Turns { batch_ns: BATCH_NS, least: 4, most: 1 << 24 }, PAIRS / 2)
        };
        let cell = TeamCell {
            clocked: Clocked::EachMember,
            // At a barrier all end together.
            others: if line.operation == Operation::Barrier { Others::SameTurns } else { Others::UntilLast },
            rule: Rule::Together,
            known_turns: if rows[0].pairs.is_empty() { 0 } else { rows[0].short_turns },
            ..TeamCell::new(&operation, members, turns, pairs)
        };
        let seats = Seats { cpus, policy: setting.seats.policy };
        let start_ns = visit.sampler.start_ns;
        let found =
            TeamVisit::new(*model, &seats, &setting.clock, start_ns, VISIT_NS, visit.bits).take(&[cell])?;
        for (member, row) in rows.iter_mut().enumerate() {
            found.record(0, member, row, regime_ns);
        }
        Ok(())
    }
}
