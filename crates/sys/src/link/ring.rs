//! A link through shared memory: a ring of bytes for each direction.
//!
//! The sender owns `head` and the receiver `tail`, both counts of bytes that only grow. Either believes of the other's no more than that
//! it lies within the ring.

use std::io;
use std::os::fd::OwnedFd;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use rustix::mm::MapFlags;
use rustix::thread::futex::{self, Flags};

use super::{LIMIT_NS, Link, Patience, Wait};
use crate::region::{Mapping, READ_WRITE, check_sealed, sealed_file};
use crate::thread::timespec;

/// Bytes on the way, at most, in one direction.
pub(super) const CAPACITY: usize = 1 << 20;
/// Bytes before the data of a direction: its counts, each on lines of its own.
const COUNTS: usize = 4096;
/// From one count to the next, bytes: two lines of 64, since processors fetch lines in pairs.
const APART: usize = 128;
const DIRECTION: usize = COUNTS + CAPACITY;
const BYTES: usize = 2 * DIRECTION;
/// Bytes that are written before the receiver may read them: half of a first cache of 32 KiB, so that both ends copy at once.
const PUBLISHED: usize = 16 << 10;
/// Looks at the other end between two looks at the clock.
const LOOK_EVERY: u32 = 1 << 12;

/// What others may change is reached through atomics, data by the owner of the counts around it.
struct Memory(Mapping);

pub(super) fn create() -> io::Result<OwnedFd> {
    sealed_file(c"machmeter-ring", BYTES)
}

impl Memory {
    fn open(fd: &OwnedFd) -> io::Result<Self> {
        check_sealed(fd, BYTES, |bytes| format!("the descriptor holds no ring ({bytes} bytes)"))?;
        Ok(Self(Mapping::of_file(fd, BYTES, READ_WRITE, MapFlags::SHARED | MapFlags::POPULATE)?))
    }

    fn at(&self, offset: usize) -> NonNull<u8> {
        assert!(offset < BYTES, "offset {offset} of {BYTES}");
        // SAFETY: inside the mapping, as just checked.
        unsafe { self.0.start().add(offset) }
    }

    fn word(&self, offset: usize) -> &AtomicU64 {
        // SAFETY: mapped for as long as self, aligned (all offsets are multiples of 128), and reached through atomics only.
        unsafe { AtomicU64::from_ptr(self.at(offset).as_ptr().cast()) }
    }

    fn flag(&self, offset: usize) -> &AtomicU32 {
        // SAFETY: as in `word`.
        unsafe { AtomicU32::from_ptr(self.at(offset).as_ptr().cast()) }
    }
}

/// Where counts and data lie in a direction, from its start.
const HEAD: usize = 0;
const TAIL: usize = APART;
/// 1 while the receiver sleeps or is about to.
const RECEIVER_SLEEPS: usize = 2 * APART;
const SENDER_SLEEPS: usize = 3 * APART;

pub(super) struct Ring {
    memory: Memory,
    /// Where the directions start.
    out: usize,
    inward: usize,
    /// Own counts, and the last seen of the other end, so that a look at its line is made only where needed.
    sent: u64,
    taken: u64,
    acknowledged: u64,
    arrived: u64,
    wait: Wait,
    limit_ns: u64,
}

impl Ring {
    /// The first end sends through the first ring.
    pub(super) fn open(fd: &OwnedFd, is_first: bool, wait: Wait) -> io::Result<Self> {
        let memory = Memory::open(fd)?;
        let (out, inward) = if is_first { (0, DIRECTION) } else { (DIRECTION, 0) };
        let now = |offset: usize| memory.word(offset).load(Ordering::Acquire);
        let (sent, acknowledged) = (now(out + HEAD), now(out + TAIL));
        let (taken, arrived) = (now(inward + TAIL), now(inward + HEAD));
        Ok(Self { memory, out, inward, sent, taken, acknowledged, arrived, wait, limit_ns: LIMIT_NS })
    }

    /// Waits until the count at `offset` is another than `old`; the count.
    #[inline]
    fn wait_for(&self, offset: usize, sleeps: usize, old: u64) -> io::Result<u64> {
        let count = self.memory.word(offset);
        let (mut looks, mut patience) = (0_u32, Patience::new(self.limit_ns));
        loop {
            let now = count.load(Ordering::Acquire);
            if now != old {
                return Ok(now);
            }
            looks = looks.wrapping_add(1);
            if self.wait == Wait::Sleeping {
                self.sleep(offset, sleeps, old);
            } else if !looks.is_multiple_of(LOOK_EVERY) {
                std::hint::spin_loop();
                continue;
            }
            patience.look()?;
        }
    }

    /// Sleeps while the count is `old`, a tenth of the limit at most.
    fn sleep(&self, offset: usize, sleeps: usize, old: u64) {
        let flag = self.memory.flag(sleeps);
        flag.store(1, Ordering::SeqCst);
        if self.memory.word(offset).load(Ordering::SeqCst) == old {
            // Whatever ends it, the count is looked at again.
            let _ = futex::wait(flag, Flags::empty(), 1, Some(&timespec(self.limit_ns / 10)));
        }
        flag.store(0, Ordering::Relaxed);
    }

    /// Publishes an own count and wakes the other end where it sleeps.
    #[inline]
    fn publish(&self, offset: usize, sleeps: usize, count: u64) {
        self.memory.word(offset).store(count, Ordering::Release);
        if self.wait == Wait::Sleeping {
            // Store of the count before the load of the flag, as the sleeper does it the other way round.
            fence(Ordering::SeqCst);
            let flag = self.memory.flag(sleeps);
            if flag.load(Ordering::SeqCst) == 1 {
                flag.store(0, Ordering::SeqCst);
                let _ = futex::wake(flag, Flags::empty(), 1);
            }
        }
    }

    /// Bytes between two counts, refused where the other end's cannot be.
    fn between(newer: u64, older: u64) -> io::Result<usize> {
        match usize::try_from(newer.wrapping_sub(older)) {
            Ok(n) if n <= CAPACITY => Ok(n),
            _ => Err(io::Error::new(io::ErrorKind::InvalidData, "the other end broke the ring's counts")),
        }
    }
}

/// Bytes that can be copied at once from the place of `count`: up to the end of the ring.
fn stretch(count: u64, bytes: usize) -> (usize, usize) {
    let place = (count % CAPACITY as u64) as usize;
    (place, bytes.min(CAPACITY - place))
}

impl Link for Ring {
    fn send(&mut self, message: &[u8]) -> io::Result<()> {
        let out = self.out;
        let mut rest = message;
        while !rest.is_empty() {
            let mut free = CAPACITY - Self::between(self.sent, self.acknowledged)?;
            if free < rest.len() {
                self.acknowledged = match free {
                    0 => self.wait_for(out + TAIL, out + SENDER_SLEEPS, self.acknowledged)?,
                    _ => self.memory.word(out + TAIL).load(Ordering::Acquire),
                };
                free = CAPACITY - Self::between(self.sent, self.acknowledged)?;
            }
            let (place, bytes) = stretch(self.sent, rest.len().min(free).min(PUBLISHED));
            // SAFETY: `place + bytes` is within the data of the direction; the receiver reads no byte from `sent` on.
            unsafe {
                let to = self.memory.at(out + COUNTS + place).as_ptr();
                std::ptr::copy_nonoverlapping(rest.as_ptr(), to, bytes);
            }
            self.sent = self.sent.wrapping_add(bytes as u64);
            self.publish(out + HEAD, out + RECEIVER_SLEEPS, self.sent);
            rest = &rest[bytes..];
        }
        Ok(())
    }

    fn receive(&mut self, message: &mut [u8]) -> io::Result<()> {
        let inward = self.inward;
        let mut at = 0;
        while at < message.len() {
            if self.arrived == self.taken {
                self.arrived = self.wait_for(inward + HEAD, inward + RECEIVER_SLEEPS, self.taken)?;
            }
            let there = Self::between(self.arrived, self.taken)?;
            let (place, bytes) = stretch(self.taken, (message.len() - at).min(there));
            // SAFETY: `place + bytes` is within the data of the direction; the sender writes no byte before `taken + CAPACITY`.
            unsafe {
                let from = self.memory.at(inward + COUNTS + place).as_ptr();
                std::ptr::copy_nonoverlapping(from.cast_const(), message[at..].as_mut_ptr(), bytes);
            }
            self.taken = self.taken.wrapping_add(bytes as u64);
            self.publish(inward + TAIL, inward + SENDER_SLEEPS, self.taken);
            at += bytes;
        }
        Ok(())
    }

    fn set_limit(&mut self, limit_ns: u64) -> io::Result<()> {
        self.limit_ns = limit_ns;
        Ok(())
    }

    fn describe(&self) -> String {
        format!("rings of {CAPACITY} B")
    }
}
