//! A rank that plays its part of a script with MPI.

use std::rc::Rc;

use machmeter_sys::Refused;
use machmeter_sys::buffer::Buffer;
use machmeter_sys::clock::{SourceId, TickSource, WithSource, dispatch};
use machmeter_sys::mpi::shmem::Shmem;
use machmeter_sys::mpi::{Comm, Error, Operation as Reduction, Request, Window};
use machmeter_sys::thread::{monotonic_ns, nanosleep_until};

use super::script::{Collective, Phase, Shmem as Call, Step};

/// Words at the beginning of the symmetric memory, and what they take, bytes.
const LOCK_AT: usize = 0;
const COUNTER_AT: usize = 64;
const SIGNAL_AT: usize = 128;
pub const SHMEM_WORDS_BYTES: usize = 192;

const DATA: i32 = 1;
const EMPTY: i32 = 2;
/// No rank sends messages with this tag.
const NEVER: i32 = 3;

/// When a rank waits for its agreed moment, ticks of its own clock; `None` back to back.
pub type Moment = Option<u64>;

/// Bytes of a message, and the length of the work that overlaps with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sizes {
    pub bytes: u64,
    /// Length of `Compute`, `Sleep` and `Poll`, ns.
    pub beside_ns: u64,
}

/// Stamps of a script, ticks of this rank's clock; zeros where it has none. Work beside is taken off the end.
#[derive(Debug, Clone, Copy, Default)]
pub struct Stamps {
    pub begin: u64,
    pub end: u64,
}

/// What a rank plays with: memory for the largest size of all ranks, requests and a window for one-sided calls.
pub struct Player {
    pub comm: Comm,
    /// Part of the script, and who plays the other.
    pub seat: usize,
    partner: usize,
    out: Buffer,
    into: Buffer,
    words_out: Buffer<f64>,
    words_into: Buffer<f64>,
    /// Script and size of the last play: those of a row are played in one visit.
    last: (*const Phase, u64),
    requests: Vec<Request>,
    request_bytes: usize,
    next_request: usize,
    next_wait: usize,
    window: Option<Window>,
    /// Where it was started; its memory begins with a lock, a counter and the word that this rank waits for.
    pub shmem: Option<Rc<Shmem>>,
    /// Numbers that were signalled, and awaited.
    signalled: i64,
    awaited: i64,
    ns_per_tick: f64,
    beside: Beside,
}

/// Work beside in a play, ticks: wanted each time and done; how often the clock was read meanwhile, and how often it began.
#[derive(Default)]
struct Beside {
    wanted: u64,
    passed: u64,
    readings: u64,
    times: u64,
}

impl Beside {
    /// With what lies outside of the stamps of each: the time from one reading to the next.
    fn ticks(&self) -> u64 {
        self.passed + self.times * self.passed / self.readings.max(1)
    }
}

impl Player {
    /// Collective over `comm`; with room for one message of every rank where there are `collectives`.
    pub fn new(comm: Comm, most_bytes: usize, collectives: bool, ns_per_tick: f64) -> Result<Self, Error> {
        let messages = if collectives { comm.size() } else { 1 };
        let (all, words) = (most_bytes * messages, most_bytes / 8 * messages);
        let window = if comm.size() == 2 { Some(comm.window(most_bytes.max(8))?) } else { None };
        Ok(Self {
            seat: comm.rank(),
            partner: comm.rank(),
            comm,
            out: Buffer::new(all, 1)?,
            into: Buffer::new(all, 0)?,
            words_out: Buffer::new(words, 1.0)?,
            words_into: Buffer::new(words, 0.0)?,
            last: (std::ptr::null(), 0),
            requests: Vec::new(),
            request_bytes: usize::MAX,
            next_request: 0,
            next_wait: 0,
            window,
            shmem: None,
            signalled: 0,
            awaited: 0,
            ns_per_tick,
            beside: Beside::default(),
        })
    }

    /// Frees what all ranks have together; collective.
    pub fn finish(self) -> Result<(), Error> {
        self.window.map_or(Ok(()), Window::free)
    }

    /// Sets seat and partner, and creates the missing `requests` (count, bytes of each). Not timed.
    ///
    /// # Errors
    /// If the library makes no such request.
    pub fn prepare(
        &mut self,
        (seat, partner): (usize, usize),
        requests: Option<(usize, usize)>,
    ) -> Result<(), Error> {
        (self.seat, self.partner) = (seat, partner);
        let Some((count, bytes)) = requests else { return Ok(()) };
        if self.request_bytes != bytes {
            self.requests.clear();
            self.request_bytes = bytes;
        }
        while self.requests.len() < count {
            self.requests.push(Request::new(&self.comm, bytes, bytes)?);
        }
        Ok(())
    }

    /// Moves the buffers to other pages where another row is played than before: once a visit.
    fn move_on(&mut self, script: &[Phase], bytes: u64) {
        let now = (script.as_ptr(), bytes);
        if std::mem::replace(&mut self.last, now) != now {
            self.out.move_on();
            self.into.move_on();
            self.words_out.move_on();
            self.words_into.move_on();
        }
    }

    /// Plays a script by this clock.
    ///
    /// # Errors
    /// If the machine has no such clock (nothing was played then), or if a call fails.
    pub fn play_by(
        &mut self,
        source: SourceId,
        script: &[Phase],
        play: Sizes,
        turns: u64,
        moment: Moment,
    ) -> Result<Result<Stamps, Error>, Refused> {
        self.move_on(script, play.bytes);
        dispatch(source, Performance { player: self, script, play, turns, moment })
    }

    fn play<S: TickSource>(
        &mut self,
        script: &[Phase],
        play: Sizes,
        turns: u64,
        moment: Moment,
    ) -> Result<Stamps, Error> {
        let mut stamps = Stamps::default();
        let wanted = (play.beside_ns as f64 / self.ns_per_tick) as u64;
        (self.next_request, self.next_wait) = (0, 0);
        self.beside = Beside { wanted, ..Beside::default() };
        for phase in script {
            match phase {
                Phase::Begin => {
                    stamps.begin = S::now();
                    while moment.is_some_and(|at| stamps.begin < at) {
                        std::hint::spin_loop();
                        stamps.begin = S::now();
                    }
                }
                Phase::End => stamps.end = S::now().saturating_sub(self.beside.ticks()),
                Phase::Close(_) if moment.is_some() => {}
                Phase::Once(step) | Phase::Close(step) => self.step::<S>(*step, play, 1)?,
                Phase::Each([step]) => self.step::<S>(*step, play, turns)?,
                Phase::Each(steps) => {
                    for step in (0..turns).flat_map(|_| *steps) {
                        self.step::<S>(*step, play, 1)?;
                    }
                }
            }
        }
        Ok(stamps)
    }

    /// Each step has a loop of its own: choosing one a turn took a third of the shortest calls.
    fn step<S: TickSource>(&mut self, step: Step, play: Sizes, turns: u64) -> Result<(), Error> {
        let (partner, bytes) = (self.partner, play.bytes as usize);
        match step {
            Step::Send => repeat(turns, || self.comm.send(&self.out[..bytes], partner, DATA)),
            Step::Ssend => repeat(turns, || self.comm.ssend(&self.out[..bytes], partner, DATA)),
            Step::Rsend => repeat(turns, || self.comm.rsend(&self.out[..bytes], partner, DATA)),
            Step::Recv => repeat(turns, || self.comm.recv(&mut self.into[..bytes], partner, DATA)),
            Step::Sendrecv => repeat(turns, || {
                self.comm.sendrecv(&self.out[..bytes], partner, &mut self.into[..bytes], partner, DATA)
            }),
            Step::Ask => repeat(turns, || self.comm.send::<u8>(&[], partner, EMPTY)),
            Step::Hear => repeat(turns, || self.comm.recv::<u8>(&mut [], partner, EMPTY)),
            Step::Isend => repeat(turns, || self.next_request().isend(bytes, partner, DATA)),
            Step::Irecv => repeat(turns, || self.next_request().irecv(bytes, partner, DATA)),
            Step::Wait => repeat(turns, || next(&mut self.requests, &mut self.next_wait).wait()),
            Step::All(collective) => repeat(turns, || self.all(collective, bytes)),
            Step::Start(collective) => repeat(turns, || self.start(collective, bytes)),
            Step::Compute => repeat(turns, || {
                self.busy::<S>();
                Ok(())
            }),
            Step::Put => {
                let window = self.window()?;
                repeat(turns, || window.put(bytes, partner, 0).and_then(|()| window.flush()))
            }
            Step::Get => {
                let window = self.window()?;
                repeat(turns, || window.get(bytes, partner, 0).and_then(|()| window.flush()))
            }
            Step::FetchAndOp => {
                let window = self.window()?;
                repeat(turns, || window.fetch_and_op(1, partner, 0).and_then(|()| window.flush()))
            }
            Step::Shmem(call) => self.shmem(call, bytes, turns),
            Step::Sleep => {
                nanosleep_until(monotonic_ns() + turns * play.beside_ns);
                Ok(())
            }
            Step::Poll => {
                let until_ns = monotonic_ns() + turns * play.beside_ns;
                while monotonic_ns() < until_ns {
                    self.comm.iprobe(partner, NEVER)?;
                }
                Ok(())
            }
        }
    }

    fn next_request(&mut self) -> &mut Request {
        next(&mut self.requests, &mut self.next_request)
    }

    fn window(&mut self) -> Result<&mut Window, Error> {
        self.window.as_mut().ok_or_else(|| Error::Argument("one-sided calls are of two ranks".to_owned()))
    }

    fn shmem(&mut self, call: Call, bytes: usize, turns: u64) -> Result<(), Error> {
        let none = || Error::Argument("OpenSHMEM was not started".to_owned());
        let (shmem, partner) = (self.shmem.as_ref().ok_or_else(none)?, self.partner);
        match call {
            Call::Put => repeat(turns, || {
                shmem.put(SHMEM_WORDS_BYTES, &self.out[..bytes], partner)?;
                shmem.quiet();
                Ok(())
            }),
            Call::Get => repeat(turns, || shmem.get(&mut self.into[..bytes], SHMEM_WORDS_BYTES, partner)),
            Call::Add => repeat(turns, || shmem.fetch_add(COUNTER_AT, 1, partner).map(drop)),
            Call::Quiet => repeat(turns, || {
                shmem.quiet();
                Ok(())
            }),
            Call::Lock => repeat(turns, || {
                shmem.set_lock(LOCK_AT)?;
                shmem.clear_lock(LOCK_AT)
            }),
            Call::TestLock => repeat(turns, || {
                shmem.test_lock(LOCK_AT)?;
                shmem.clear_lock(LOCK_AT)
            }),
            Call::Barrier => repeat(turns, || {
                shmem.barrier_all();
                Ok(())
            }),
            Call::Signal => repeat(turns, || {
                self.signalled += 1;
                shmem.put(SIGNAL_AT, &self.signalled.to_ne_bytes(), partner)
            }),
            Call::Await => repeat(turns, || {
                self.awaited += 1;
                shmem.wait_until(SIGNAL_AT, self.awaited)
            }),
        }
    }

    /// Keeps the CPU busy by the clock.
    fn busy<S: TickSource>(&mut self) {
        let (begin, mut passed) = (S::now(), 0);
        self.beside.times += 1;
        while passed < self.beside.wanted {
            passed = S::now().saturating_sub(begin);
            self.beside.readings += 1;
        }
        self.beside.passed += passed;
    }

    fn all(&mut self, collective: Collective, bytes: usize) -> Result<(), Error> {
        let (comm, words) = (&self.comm, bytes / 8);
        let (all, all_words) = (bytes * comm.size(), words * comm.size());
        let (out, into) = (&self.out[..bytes], &mut self.into[..all]);
        let (words_out, words_into) = (&self.words_out[..words], &mut self.words_into[..words]);
        match collective {
            Collective::Barrier => comm.barrier(),
            Collective::Bcast => comm.bcast(&mut into[..bytes], 0),
            Collective::Scatter => comm.scatter(&self.out[..all], &mut into[..bytes], 0),
            Collective::Gather => comm.gather(out, into, 0),
            Collective::Allgather => comm.allgather(out, into),
            Collective::Alltoall => comm.alltoall(&self.out[..all], into),
            Collective::Reduce => comm.reduce(words_out, words_into, Reduction::Sum, 0),
            Collective::Allreduce => comm.allreduce(words_out, words_into, Reduction::Sum),
            Collective::ReduceScatter => {
                comm.reduce_scatter_block(&self.words_out[..all_words], words_into, Reduction::Sum)
            }
            Collective::Scan => comm.scan(words_out, words_into, Reduction::Sum),
        }
    }

    fn start(&mut self, collective: Collective, bytes: usize) -> Result<(), Error> {
        let request = self.next_request();
        match collective {
            Collective::Bcast => request.ibcast(bytes, 0),
            Collective::Allreduce => request.iallreduce(bytes / 8, Reduction::Sum),
            Collective::Alltoall => request.ialltoall(bytes),
            _ => Err(Error::Argument(format!("{collective:?} has no form that does not block here"))),
        }
    }
}

struct Performance<'a> {
    player: &'a mut Player,
    script: &'a [Phase],
    play: Sizes,
    turns: u64,
    moment: Moment,
}

impl WithSource for Performance<'_> {
    type Output = Result<Stamps, Error>;

    fn run<S: TickSource>(self) -> Self::Output {
        self.player.play::<S>(self.script, self.play, self.turns, self.moment)
    }
}

#[inline]
fn repeat(turns: u64, mut call: impl FnMut() -> Result<(), Error>) -> Result<(), Error> {
    (0..turns).try_for_each(|_| call())
}

/// One after the other, from the first again after the last.
#[inline]
fn next<'r>(requests: &'r mut [Request], at: &mut usize) -> &'r mut Request {
    let own = *at;
    *at = if own + 1 < requests.len() { own + 1 } else { 0 };
    &mut requests[own]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_beside_ends_with_the_readings_around_it() {
        let beside = |times| Beside { wanted: 95, passed: 100 * times, readings: 10 * times, times };
        assert_eq!([0, 1, 15].map(|times| beside(times).ticks()), [0, 110, 15 * 110]);
    }
}
