//! CPUs and network interfaces of the ranks, and what waits for them.
//!
//! Operations and messages that wait for the same resources form one queue by stamp. One of them stands in the event queue for
//! all, at the time when the resources are free; an older one that comes takes its place. The order is that of trying all of
//! them again at each such time, without the tries.

use super::queue::{Kind, NONE, Pool, Queue};
use super::time::Time;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Need {
    Cpu,
    /// A CPU and an interface to send.
    CpuSend,
    /// A CPU and an interface to receive.
    CpuReceive,
}

#[derive(Debug, Clone, Copy)]
struct Waiting {
    /// The event that stands in the queue.
    first: u32,
    others: u32,
}

#[derive(Debug)]
pub(super) struct Resources<T> {
    cpus: usize,
    nics: usize,
    cpu_free: Vec<T>,
    send_free: Vec<T>,
    receive_free: Vec<T>,
    waiting: Vec<Waiting>,
}

impl<T: Time> Resources<T> {
    pub(super) fn new(ranks: u32, cpus: u8, nics: u8) -> Self {
        let (ranks, cpus, nics) = (ranks as usize, usize::from(cpus.max(1)), usize::from(nics.max(1)));
        Self {
            cpus,
            nics,
            cpu_free: vec![T::default(); ranks * cpus],
            send_free: vec![T::default(); ranks * nics],
            receive_free: vec![T::default(); ranks * nics],
            waiting: vec![Waiting { first: NONE, others: NONE }; ranks * (cpus + 2 * cpus * nics)],
        }
    }

    /// When a CPU is free.
    pub(super) fn cpu(&mut self, rank: u32, cpu: u8) -> &mut T {
        &mut self.cpu_free[rank as usize * self.cpus + usize::from(cpu)]
    }

    /// When an interface can send.
    pub(super) fn sender(&mut self, rank: u32, nic: u8) -> &mut T {
        &mut self.send_free[rank as usize * self.nics + usize::from(nic)]
    }

    /// When an interface can receive.
    pub(super) fn receiver(&mut self, rank: u32, nic: u8) -> &mut T {
        &mut self.receive_free[rank as usize * self.nics + usize::from(nic)]
    }

    /// When all that is needed is free.
    #[inline]
    pub(super) fn free(&mut self, need: Need, rank: u32, cpu: u8, nic: u8) -> T {
        let free = *self.cpu(rank, cpu);
        match need {
            Need::Cpu => free,
            Need::CpuSend => free.later(*self.sender(rank, nic)),
            Need::CpuReceive => free.later(*self.receiver(rank, nic)),
        }
    }

    /// The latest time of a rank's CPUs.
    pub(super) fn last(&self, rank: u32) -> T {
        let first = rank as usize * self.cpus;
        self.cpu_free[first..first + self.cpus].iter().fold(T::default(), |last, t| last.later(*t))
    }

    #[inline]
    fn waiting(&mut self, need: Need, rank: u32, cpu: u8, nic: u8) -> &mut Waiting {
        let both = usize::from(cpu) * self.nics + usize::from(nic);
        let class = match need {
            Need::Cpu => usize::from(cpu),
            Need::CpuSend => self.cpus + both,
            Need::CpuReceive => self.cpus + self.cpus * self.nics + both,
        };
        &mut self.waiting[rank as usize * (self.cpus + 2 * self.cpus * self.nics) + class]
    }

    /// Lets an event wait until `free`.
    #[cold]
    #[inline(never)]
    pub(super) fn wait(
        &mut self,
        (need, rank, cpu, nic): (Need, u32, u8, u8),
        at: u32,
        free: T,
        pool: &mut Pool<T>,
        queue: &mut Queue,
    ) {
        let waiting = self.waiting(need, rank, cpu, nic);
        if waiting.first != NONE && waiting.first != at {
            let mut other = at;
            if pool.get(at).stamp < pool.get(waiting.first).stamp {
                // The one in the queue goes to the heap; its place in the queue stays behind, void.
                let first = std::mem::replace(&mut waiting.first, at);
                let mut event = *pool.get(first);
                pool.get_mut(first).kind = Kind::Void;
                event.is_first = false;
                other = pool.add(event);
            }
            waiting.others = pool.merge(waiting.others, other);
            if waiting.first != at {
                return;
            }
        }
        waiting.first = at;
        let event = pool.get_mut(at);
        (event.time, event.is_first) = (free, true);
        queue.push(pool, at);
    }

    /// Lets the oldest of those that wait take the place in the queue that another one leaves.
    pub(super) fn succeed(
        &mut self,
        (need, rank, cpu, nic): (Need, u32, u8, u8),
        now: T,
        pool: &mut Pool<T>,
        queue: &mut Queue,
    ) {
        let waiting = self.waiting(need, rank, cpu, nic);
        let next = waiting.others;
        waiting.first = next;
        if next == NONE {
            return;
        }
        waiting.others = pool.without_top(next);
        let free = now.later(self.free(need, rank, cpu, nic));
        let event = pool.get_mut(next);
        (event.time, event.is_first) = (free, true);
        queue.push(pool, next);
    }
}
