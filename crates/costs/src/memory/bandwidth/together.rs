//! Rows with several CPUs: each walks over its own memory; a sample is from first start to last end.

use std::sync::{Mutex, PoisonError};

use machmeter_engine::cost::Row;
use machmeter_engine::experiment::{Cell, Visit};
use machmeter_engine::part::PartContext;
use machmeter_engine::team::sampler::{Clocked, HostClock, JointOperation, Rule, TeamCell, TeamVisit, Turns};
use machmeter_engine::team::threads::Threads;
use machmeter_engine::team::{Member, Seats};

use super::plan::Spec;
use super::stream::{Buffer, CHUNK_BYTES, Stream};
use super::{BATCH_NS, PAIRS};

/// Longest visit, ns: the first one fills the memory of a CPU that others may use.
const MOST_VISIT_NS: u64 = 2_000_000_000;

/// Who works, and on which memory: a buffer for each, as long as the other's.
pub(in crate::memory) struct Setting<'a> {
    pub(in crate::memory) seats: Seats,
    pub(in crate::memory) buffers: Vec<&'a Buffer>,
    pub(in crate::memory) clock: HostClock,
    pub(in crate::memory) seed: u64,
}

impl<'a> Setting<'a> {
    pub(in crate::memory) fn of(at: &PartContext<'_>, cpus: &[usize], buffers: Vec<&'a Buffer>) -> Self {
        let seats = Seats { cpus: cpus.to_vec(), policy: at.policy };
        Self { seats, buffers, clock: at.clock(), seed: at.host.seed }
    }

    pub(in crate::memory) fn team(&self, visit: &Visit<'_>) -> TeamVisit<'_> {
        let limit_ns = visit.left_ns().clamp(1, MOST_VISIT_NS);
        TeamVisit::new(&Threads, &self.seats, &self.clock, visit.sampler.start_ns, limit_ns, visit.bits)
    }
}

struct Walks<'a> {
    setting: &'a Setting<'a>,
    streams: Vec<Mutex<Stream<'a>>>,
}

impl<'a> Walks<'a> {
    fn with(&self, member: &Member<'_>, work: impl FnOnce(&mut Stream<'a>)) -> bool {
        let stream = self.streams.get(member.rank);
        stream.map(|s| work(&mut s.lock().unwrap_or_else(PoisonError::into_inner))).is_some()
    }
}

impl JointOperation for Walks<'_> {
    fn prepare(&self, member: &Member<'_>) -> bool {
        // Member 0's has been filled on its CPU.
        if let Some(buffer) = self.setting.buffers.get(member.rank).filter(|_| member.rank > 0) {
            buffer.fill_once(self.setting.seed + member.rank as u64);
        }
        self.with(member, Stream::warm)
    }

    #[inline(never)]
    fn batch(&self, member: &Member<'_>, turns: u64) -> bool {
        self.with(member, |stream| stream.walk(turns))
    }
}

pub(super) struct TogetherCell<'a> {
    row: Row,
    walks: Walks<'a>,
}

impl<'a> TogetherCell<'a> {
    pub(super) fn new(setting: &'a Setting<'a>, spec: &Spec) -> Result<Self, String> {
        let stream = |b: &&'a Buffer| Stream::new(spec.kernel, b, spec.working_set_bytes, CHUNK_BYTES);
        let streams = setting.buffers.iter().take(spec.cpus).map(stream);
        let streams: Vec<Stream<'a>> = streams.collect::<Result<_, _>>()?;
        let row = spec.row(streams.first().map_or(1, Stream::kernel_turns));
        let walks = Walks { setting, streams: streams.into_iter().map(Mutex::new).collect() };
        Ok(Self { row, walks })
    }
}

impl Cell for TogetherCell<'_> {
    fn rows(&self) -> &[Row] {
        std::slice::from_ref(&self.row)
    }

    fn expected_ns(&self) -> u64 {
        3 * (PAIRS as u64 + 2) * BATCH_NS as u64
    }

    fn visit(&mut self, visit: &mut Visit<'_>) {
        let cell = TeamCell {
            clocked: Clocked::FirstToLast,
            rule: Rule::Together,
            ..TeamCell::new(&self.walks, self.walks.streams.len(), Turns::of(BATCH_NS), PAIRS)
        };
        if let Err(why) = self.walks.setting.team(visit).take_row(cell, &mut self.row, 0.0) {
            self.row.refused = Some(why);
        }
    }

    fn into_rows(self: Box<Self>) -> Vec<Row> {
        vec![self.row.reached()]
    }
}
