//! Hack: groups of threads that all talk to each other through sockets, as hackbench does (a chat server of its time).

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock};
use std::thread::{Builder, Scope};

use machmeter_engine::load::{LoadError, LoadInfo};
use machmeter_sys::task_headroom::TaskHeadroom;
use machmeter_sys::thread::{monotonic_ns, nanosleep_until};

use crate::work::{LoadEntry, Work, usage};

/// Threads that send and threads that receive in a group, and bytes of a message, as in hackbench.
const SENDERS: usize = 20;
const RECEIVERS: usize = 20;
const MESSAGE_BYTES: usize = 100;

const GROUP_THREADS: usize = SENDERS + RECEIVERS;

/// Groups when none are asked for, and at most.
const GROUPS: usize = 10;

/// Of the room for tasks and files, no more than one part in this many is used: the rest of the machine wants to live.
const ROOM_PARTS: u64 = 2;

/// Messages between two looks at the shared counter.
const COUNT_EVERY: u64 = 16;

/// Threads need little stack, and there are many.
const STACK_BYTES: usize = 64 << 10;

const LOOK_EVERY_NS: u64 = 20_000_000;

pub(crate) static HACK: LoadEntry = LoadEntry {
    info: LoadInfo {
        name: "hack",
        description: "At most 10 groups of 20 threads that send to 20 other threads through socket pairs (hackbench).",
        work: "messages of 100 bytes",
        by_default: false,
        ..LoadEntry::USUAL.info
    },
    check: |request| match request.threads {
        Some(n) if n as usize > GROUPS => {
            let why = format!("{n} groups of {GROUP_THREADS} threads are too many: give 1 to {GROUPS}");
            Err(usage(request, why))
        }
        _ => Ok(()),
    },
    run: Some(|work| {
        let asked = work.request.threads.map_or(GROUPS, |n| n as usize);
        let groups = groups_that_fit(work, asked)?;
        let stop = work.stop_flag();
        let counts: Vec<_> = (0..groups * RECEIVERS).map(|receiver| work.count(receiver)).collect();
        talk(groups, &stop, &|receiver, messages| counts[receiver].add(messages), &|begun| {
            if begun < groups {
                work.caveat(format!(
                    "only {begun} of {groups} groups run: the system allowed no more threads"
                ));
            }
            work.ready();
        })
    }),
};

/// As many of the groups asked for as threads and files can be had for, with a caveat if that is fewer.
fn groups_that_fit(work: &Work, asked: usize) -> Result<usize, LoadError> {
    let tasks = TaskHeadroom::now();
    let by_tasks = tasks.as_ref().map_or(asked, |r| fitting(r.tasks, GROUP_THREADS));
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let by_files = limit.map_or(asked, |files| fitting(files, 2 * RECEIVERS));
    let groups = asked.min(by_tasks).min(by_files);
    let why = match &tasks {
        Some(room) if by_tasks <= by_files => room.limit.clone(),
        _ => format!("the limit of {} open files (ulimit -n)", limit.unwrap_or(u64::MAX)),
    };
    if groups == 0 {
        return Err(LoadError::Cannot(format!(
            "even one group of {GROUP_THREADS} threads would leave too little for other programs: {why}"
        )));
    }
    if groups < asked {
        work.caveat(format!(
            "only {groups} of {asked} groups run, to leave enough for other programs: {why}"
        ));
    }
    Ok(groups)
}

fn fitting(room: u64, each: usize) -> usize {
    usize::try_from(room / ROOM_PARTS).unwrap_or(usize::MAX) / each
}

/// The sockets of a group: each receiver has a pair, whose other end all senders share.
struct Group(Vec<(UnixStream, UnixStream)>);

impl Group {
    fn new() -> std::io::Result<Self> {
        (0..RECEIVERS).map(|_| UnixStream::pair()).collect::<std::io::Result<_>>().map(Self)
    }

    /// Whoever waits for one of the sockets, or will, gets its end.
    fn shut(&self) {
        for (to, _) in &self.0 {
            // Fails only when it is shut already.
            let _ = to.shutdown(Shutdown::Both);
        }
    }
    fn send(&self, stop: &AtomicBool) {
        let message = [0x5a_u8; MESSAGE_BYTES];
        while !stop.load(Ordering::Relaxed) {
            for (to, _) in &self.0 {
                if (&mut &*to).write_all(&message).is_err() {
                    return;
                }
            }
        }
        // The first one that sees the flag wakes the others: the thread that set it may not get a CPU for long.
        self.shut();
    }
    fn receive(&self, receiver: usize, add: &dyn Fn(u64)) {
        let mut message = [0_u8; MESSAGE_BYTES];
        let mut counted = 0;
        let from = &mut &self.0[receiver].1;
        while from.read_exact(&mut message).is_ok() {
            counted += 1;
            if counted == COUNT_EVERY {
                add(counted);
                counted = 0;
            }
        }
        add(counted);
    }

    /// Starts the threads of group `number`, which send when the gate is open; whether all could be had.
    fn start<'s>(
        &'s self,
        scope: &'s Scope<'s, '_>,
        number: usize,
        gate: &'s RwLock<()>,
        stop: &'s AtomicBool,
        add: &'s Add<'s>,
    ) -> bool {
        let thread = || Builder::new().name("mm-hack".to_owned()).stack_size(STACK_BYTES);
        let receivers = (0..RECEIVERS).all(|r| {
            let receive = move || self.receive(r, &|n| add(number * RECEIVERS + r, n));
            thread().spawn_scoped(scope, receive).is_ok()
        });
        let send = move || {
            drop(gate.read().unwrap_or_else(PoisonError::into_inner));
            self.send(stop);
        };
        receivers && (0..SENDERS).all(|_| thread().spawn_scoped(scope, send).is_ok())
    }
}

/// Is told by receiver (counted over all groups) how many messages it got.
type Add<'a> = dyn Fn(usize, u64) + Sync + 'a;

/// Lets `groups` groups talk until `stop`. Calls `begun` with the number of groups that could be started.
fn talk(groups: usize, stop: &AtomicBool, add: &Add<'_>, begun: &dyn Fn(usize)) -> Result<(), LoadError> {
    let no_sockets = |e| LoadError::Cannot(format!("{RECEIVERS} socket pairs: {e}"));
    let all: Vec<_> =
        (0..groups).map(|_| Group::new()).collect::<std::io::Result<_>>().map_err(no_sockets)?;
    // Shut until all are there: those that talk already would keep the last ones from being started.
    let gate = RwLock::new(());
    std::thread::scope(|scope| {
        let shut = gate.write().unwrap_or_else(PoisonError::into_inner);
        let mut complete = 0;
        for group in &all {
            if !group.start(scope, complete, &gate, stop, add) {
                // Its threads end; fewer groups talk on.
                group.shut();
                break;
            }
            complete += 1;
        }
        if complete == 0 {
            return Err(LoadError::Cannot(format!("the system did not allow {GROUP_THREADS} threads")));
        }
        begun(complete);
        drop(shut);
        while !stop.load(Ordering::Relaxed) {
            nanosleep_until(monotonic_ns() + LOOK_EVERY_NS);
        }
        all.iter().for_each(Group::shut);
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn all_receivers_get_messages_and_a_stop_ends_blocked_threads() {
        let stop = AtomicBool::new(false);
        let got: Vec<AtomicU64> = (0..2 * RECEIVERS).map(|_| AtomicU64::new(0)).collect();
        let stopped_ns = AtomicU64::new(0);
        let add = |receiver: usize, n: u64| {
            got[receiver].fetch_add(n, Ordering::Relaxed);
        };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                talk(2, &stop, &add, &|begun| assert_eq!(begun, 2)).unwrap();
                stopped_ns.store(monotonic_ns(), Ordering::Relaxed);
            });
            let deadline_ns = monotonic_ns() + 30_000_000_000;
            let all_got = || got.iter().all(|g| g.load(Ordering::Relaxed) >= 10 * COUNT_EVERY);
            while !all_got() && monotonic_ns() < deadline_ns {
                nanosleep_until(monotonic_ns() + 1_000_000);
            }
            assert!(all_got(), "{got:?}");
            let asked_ns = monotonic_ns();
            stop.store(true, Ordering::Relaxed);
            while stopped_ns.load(Ordering::Relaxed) == 0 && monotonic_ns() < asked_ns + 30_000_000_000 {
                nanosleep_until(monotonic_ns() + 1_000_000);
            }
            let took_ns = stopped_ns.load(Ordering::Relaxed).saturating_sub(asked_ns);
            assert!(took_ns > 0 && took_ns < 10_000_000_000, "{took_ns}");
        });
    }

    #[test]
    fn a_receiver_counts_each_message_and_the_rest_at_the_end() {
        let group = Group::new().unwrap();
        let messages = 3 * COUNT_EVERY + 5;
        let total = AtomicU64::new(0);
        std::thread::scope(|scope| {
            scope.spawn(|| group.receive(7, &|n| _ = total.fetch_add(n, Ordering::Relaxed)));
            for _ in 0..messages {
                (&group.0[7].0).write_all(&[1; MESSAGE_BYTES]).unwrap();
            }
            group.shut();
        });
        assert_eq!(total.load(Ordering::Relaxed), messages);
    }

    #[test]
    fn a_part_of_the_room_is_left_to_others() {
        assert_eq!(fitting(799, GROUP_THREADS), 9);
        assert_eq!(fitting(79, GROUP_THREADS), 0);
        assert_eq!(fitting(u64::MAX, GROUP_THREADS), usize::MAX / 2 / GROUP_THREADS);
    }
}
