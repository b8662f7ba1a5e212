//! The near end: starts the far end, orders patterns, and sends and receives while time is taken.

use std::io::{ErrorKind, Write};

use machmeter_engine::cpu_work::spin;
use machmeter_engine::role::{Peer, Role, RoleError};
use machmeter_loops::net::{Train, look_ns, per_call_ns, receive_train, send_train, spin_until};
use machmeter_sys::buffer::Buffer;
use machmeter_sys::link::{LIMIT_NS, Link, Transport, Wait};
use machmeter_sys::process::{ReadUntil, Spawn};
use machmeter_sys::thread::monotonic_ns;

use crate::far;
use crate::orders::{Answer, END, Ended, NUMBERS, Order, Turns};

/// What an answer beside the link may take, ns: a message moved in part has the limit twice, a third is for ends without a CPU.
const ANSWER_WITHIN_NS: u64 = 3 * LIMIT_NS + 1_000_000_000;
/// Ends of a pattern that are sent where messages get lost.
const ENDS: usize = 3;
/// Turns in a row that may be lost before the rest of the pattern is given up: messages of this size do not arrive.
const MOST_LOST: u32 = 20;
/// What a message that may be lost is waited for, ns.
const LOST_AFTER_NS: u64 = 50_000_000;

/// Orders and answers, over whatever stream.
pub(crate) trait Control {
    fn send(&mut self, order: &Order) -> Result<(), RoleError>;
    fn receive(&mut self, within_ns: u64) -> Result<Answer, RoleError>;
}

impl<P: Peer, W: Write, R: ReadUntil> Control for Role<Order, Answer, P, W, R> {
    fn send(&mut self, order: &Order) -> Result<(), RoleError> {
        Role::send(self, order)
    }

    fn receive(&mut self, within_ns: u64) -> Result<Answer, RoleError> {
        Role::receive(self, monotonic_ns().saturating_add(within_ns))
    }
}

/// A link of which the far end has the other end.
pub(crate) struct OpenLink {
    pub(crate) transport: &'static Transport,
    pub(crate) wait: Wait,
    pub(crate) link: Box<dyn Link>,
    broken: Option<String>,
    /// Turns in a row of which a message was lost.
    lost: u32,
}

pub(crate) const fn name_of(wait: Wait) -> &'static str {
    match wait {
        Wait::Polling => "polling",
        Wait::Sleeping => "sleeping",
    }
}

impl OpenLink {
    pub(crate) fn new(transport: &'static Transport, wait: Wait, link: Box<dyn Link>) -> Self {
        Self { transport, wait, link, broken: None, lost: 0 }
    }

    /// Remembers what went wrong, unless a message was merely lost.
    fn failed(&mut self, error: &std::io::Error) -> bool {
        self.lost += 1;
        if !self.transport.loses || error.kind() != ErrorKind::TimedOut {
            self.broken.get_or_insert_with(|| format!("{}: {error}", self.transport.name));
        }
        false
    }
}

/// The near end of all links.
pub(crate) struct Near {
    control: Box<dyn Control>,
    pub(crate) links: Vec<OpenLink>,
    /// Work of so many turns, between messages.
    pub(crate) work: Box<dyn FnMut(u64)>,
    message: Buffer,
    turns: Option<Turns>,
    pattern: u8,
    number: u8,
    /// Messages back of this turn so far.
    back: u32,
    sent: u64,
    /// What the far end saw of the last pattern.
    pub(crate) ended: Ended,
}

impl Near {
    /// Starts the far end on a CPU with fresh links of these kinds.
    pub(crate) fn start(
        cpu: usize,
        kinds: &[(&'static Transport, Wait)],
        congestion: Option<&str>,
    ) -> Result<Self, String> {
        let mut links = Vec::new();
        let mut passed = Vec::new();
        for (transport, wait) in kinds {
            let failed = |e: std::io::Error| format!("{}: {e}", transport.name);
            let [near, far] = transport.pair().map_err(failed)?;
            for end in [&near, &far] {
                congestion.map_or(Ok(()), |name| end.set_congestion_control(name)).map_err(failed)?;
            }
            links.push(OpenLink::new(transport, *wait, near.open(*wait).map_err(failed)?));
            passed.push((transport.name, *wait, far));
        }
        let mut spawn = Spawn::worker(far::WORKER.name).arg(cpu.to_string()).die_with_parent();
        for (transport, wait, end) in &passed {
            let numbers: Vec<String> =
                end.fds().map(|fd| std::os::fd::AsRawFd::as_raw_fd(&fd).to_string()).collect();
            spawn = spawn.arg(format!("{transport}:{}:{}", name_of(*wait), numbers.join(",")));
            for fd in end.fds() {
                spawn = spawn.pass_fd(fd);
            }
        }
        let role: Role<Order, Answer> =
            Role::start(spawn).map_err(|e| format!("the far end could not be started: {e}"))?;
        Ok(Self::over(Box::new(role), links))
    }

    /// With a far end that has the other ends already, in the same order.
    pub(crate) fn over(control: Box<dyn Control>, links: Vec<OpenLink>) -> Self {
        let (work, ended) = (Box::new(spin), Ended::default());
        let (message, turns, pattern, number, back, sent) = (Buffer::empty(1), None, 0, 0, 0, 0);
        Self { control, links, work, message, turns, pattern, number, back, sent, ended }
    }

    /// Orders a pattern and waits until the far end is ready.
    /// Errors: one line; the link is not to be used again.
    pub(crate) fn begin(&mut self, turns: Turns) -> Result<(), String> {
        self.pattern = (self.pattern + 1) % NUMBERS;
        let turns = Turns { pattern: self.pattern, ..turns };
        if let Some(why) = &self.links[turns.link].broken {
            return Err(why.clone());
        }
        let limit_ns = if self.links[turns.link].transport.loses { LOST_AFTER_NS } else { LIMIT_NS };
        let _ = self.links[turns.link].link.set_limit(limit_ns);
        let no_memory = |e: std::io::Error| format!("messages of {} B: {e}", turns.bytes);
        self.message.resize(turns.bytes as usize).map_err(no_memory)?;
        self.message.move_on();
        let answer =
            self.control.send(&Order::Turns(turns)).and_then(|()| self.control.receive(ANSWER_WITHIN_NS));
        let why = match answer {
            Ok(Answer::Ready) => {
                (self.turns, self.sent) = (Some(turns), 0);
                self.links[turns.link].lost = 0;
                return Ok(());
            }
            Ok(Answer::Cannot(why)) => return Err(format!("the far end refuses: {why}")),
            Ok(Answer::Ended(_)) => "the far end is out of step".to_owned(),
            Err(e) => format!("the far end {e}"),
        };
        self.lose(why)
    }

    /// The far end is lost, and with it all links.
    fn lose<T>(&mut self, why: String) -> Result<T, String> {
        for link in &mut self.links {
            link.broken = Some(why.clone());
        }
        Err(why)
    }

    /// One turn of the pattern that was begun, with `work` between the messages there; false when the link failed or a message was lost.
    #[inline]
    pub(crate) fn turn(&mut self, work: u64) -> bool {
        self.send_there(work) && self.receive_back(0)
    }

    /// A turn whose messages back are waited for until all of them are there; time of each receive call but the first, ns.
    pub(crate) fn waited_turn(&mut self, delay_ns: u64) -> Option<f64> {
        if !self.send_there(0) || !self.receive_back(1) {
            return None;
        }
        let look_ns = look_ns();
        let begin_ns = spin_until(monotonic_ns() + delay_ns);
        let done = self.receive_back(0);
        let calls = self.turns.map_or(1, |t| t.back.saturating_sub(1).max(1));
        done.then(|| per_call_ns(begin_ns, look_ns, calls))
    }

    #[inline]
    pub(crate) fn send_there(&mut self, work: u64) -> bool {
        let Some(turns) = self.turns else { return false };
        let open = &mut self.links[turns.link];
        if open.broken.is_some() || open.lost > MOST_LOST {
            return false;
        }
        self.number = (self.number + 1) % NUMBERS;
        self.back = 0;
        self.message[0] = self.number;
        let train = Train { messages: turns.there, work };
        match send_train(&mut *open.link, &self.message, train, &mut *self.work, &mut self.sent) {
            Ok(()) => true,
            Err(e) => open.failed(&e),
        }
    }

    /// Receives what is still missing of the turn, or the first `most` messages if that is not 0.
    #[inline]
    fn receive_back(&mut self, most: u32) -> bool {
        let Some(turns) = self.turns else { return false };
        let open = &mut self.links[turns.link];
        let wanted = if most == 0 { turns.back } else { most };
        match receive_train(&mut *open.link, &mut self.message, self.number, wanted, &mut self.back) {
            Ok(()) => {
                open.lost = 0;
                true
            }
            Err(e) => open.failed(&e),
        }
    }

    /// Ends the pattern; what the far end saw of it stands in `ended`.
    /// Errors: one line; the link is not to be used again.
    pub(crate) fn end(&mut self) -> Result<u64, String> {
        let Some(turns) = self.turns.take() else { return Ok(0) };
        let open = &mut self.links[turns.link];
        self.message[0] = END | turns.pattern;
        for _ in 0..if open.transport.loses { ENDS } else { 1 } {
            // What cannot be sent the far end misses after the limit of the link.
            let _ = open.link.send(&self.message);
        }
        let why = match self.control.receive(ANSWER_WITHIN_NS) {
            Ok(Answer::Ended(ended)) => {
                self.ended = ended;
                match &self.ended.why {
                    None => return Ok(self.sent),
                    Some(_) if open.transport.loses => return Ok(self.sent),
                    Some(why) => format!("the far end: {why}"),
                }
            }
            Ok(_) => return self.lose("the far end is out of step".to_owned()),
            Err(e) => return self.lose(format!("the far end {e}")),
        };
        open.broken = Some(why.clone());
        Err(why)
    }
}
