//! A link with planted parameters in real time: stamps through shared memory, and ends that spin. What was achieved is logged.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use machmeter_sys::link::Link;
use machmeter_sys::thread::monotonic_ns;

use crate::orders::END;
use machmeter_loops::net::spin_until;

#[allow(clippy::struct_field_names, reason = "units")]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parameters {
    pub(crate) send_ns: u64,
    pub(crate) recv_ns: u64,
    pub(crate) gap_ns: u64,
    pub(crate) per_byte_ns: f64,
    pub(crate) latency_ns: u64,
}

/// What parts of messages took, as both ends logged it.
#[derive(Debug, Default)]
pub(crate) struct Achieved(Mutex<Log>);

/// The log of an end: sends, receives and flights.
type Log = [Sum; 3];
const SENDS: usize = 0;
const RECEIVES: usize = 1;
const FLIGHTS: usize = 2;

/// Sum and count of what was not far above what was planted.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    ns: u64,
    n: u64,
}

/// Times of more than this above what was planted are of ends that lost their CPU, ns.
const LOST_NS: u64 = 1_000;

impl Sum {
    fn add(&mut self, ns: u64, planted_ns: u64) {
        if ns < planted_ns + LOST_NS {
            self.ns += ns;
            self.n += 1;
        }
    }
}

impl Achieved {
    /// Means of a send, a receive and the way of a byte, ns.
    pub(crate) fn means_ns(&self) -> [f64; 3] {
        self.log().map(|s| s.ns as f64 / s.n.max(1) as f64)
    }

    fn log(&self) -> MutexGuard<'_, Log> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One end. It keeps its log to itself until it is dropped: a line that both ends wrote would cost more than what is logged.
pub(crate) struct PlantedLink {
    stamps: Box<dyn Link + Send>,
    parameters: Parameters,
    achieved: Arc<Achieved>,
    log: Log,
    free_ns: u64,
}

impl PlantedLink {
    pub(crate) fn new(stamps: Box<dyn Link + Send>, parameters: Parameters, achieved: Arc<Achieved>) -> Self {
        Self { stamps, parameters, achieved, log: Log::default(), free_ns: 0 }
    }
}

impl Drop for PlantedLink {
    fn drop(&mut self) {
        for (all, own) in self.achieved.log().iter_mut().zip(self.log) {
            (all.ns, all.n) = (all.ns + own.ns, all.n + own.n);
        }
    }
}

/// Bytes of a stamp: departure, arrival, first byte of the message.
const STAMP: usize = 17;

impl Link for PlantedLink {
    fn send(&mut self, message: &[u8]) -> io::Result<()> {
        let p = self.parameters;
        let begin_ns = monotonic_ns();
        let further_ns = (p.per_byte_ns * (message.len() as f64 - 1.0)) as u64;
        // A pattern that ends pays nothing.
        let busy_ns = if message[0] & END == 0 { p.send_ns } else { 0 };
        let departs_ns = spin_until(begin_ns + busy_ns).max(self.free_ns);
        self.free_ns = departs_ns + p.gap_ns + further_ns;
        let mut stamp = [message[0]; STAMP];
        stamp[..8].copy_from_slice(&departs_ns.to_ne_bytes());
        stamp[8..16].copy_from_slice(&(departs_ns + p.latency_ns + further_ns).to_ne_bytes());
        self.stamps.send(&stamp)?;
        if busy_ns > 0 {
            self.log[SENDS].add(monotonic_ns() - begin_ns, busy_ns);
        }
        Ok(())
    }

    fn receive(&mut self, message: &mut [u8]) -> io::Result<()> {
        let mut stamp = [0; STAMP];
        self.stamps.receive(&mut stamp)?;
        let word = |at: usize| u64::from_ne_bytes(std::array::from_fn(|i| stamp[at + i]));
        let (departed_ns, arrives_ns) = (word(0), word(8));
        let was_late = monotonic_ns() > arrives_ns;
        let begin_ns = spin_until(arrives_ns);
        message[0] = stamp[STAMP - 1];
        if !was_late {
            let further_ns = arrives_ns - departed_ns - self.parameters.latency_ns;
            self.log[FLIGHTS].add(begin_ns - departed_ns - further_ns, self.parameters.latency_ns);
        }
        if message[0] & END == 0 {
            let end_ns = spin_until(begin_ns + self.parameters.recv_ns);
            self.log[RECEIVES].add(end_ns - begin_ns, self.parameters.recv_ns);
        }
        Ok(())
    }

    fn set_limit(&mut self, limit_ns: u64) -> io::Result<()> {
        self.stamps.set_limit(limit_ns)
    }

    fn describe(&self) -> String {
        "planted".to_owned()
    }
}
