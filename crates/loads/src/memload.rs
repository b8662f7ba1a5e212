//! Memload: constant memory pressure, as interbench's load of the same name, but without harm to others.
//!
//! Incompressible memory is allocated, moved and freed all the time: in a group of its own a tenth more than its limit, so
//! that an out-of-memory kill hits nobody else; elsewhere at most half of what is available, giving way when it runs short.

mod budget;
mod touch;

use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;

use machmeter_data::quantity::Unit;
use machmeter_engine::load::{LoadError, LoadInfo};
use machmeter_engine::role::{Role, RoleError};
use machmeter_sys::Refused;
use machmeter_sys::cgroup::{Group, Plan, Request};
use machmeter_sys::fs_root::FsRoot;
use machmeter_sys::oom::MemoryLeft;
use machmeter_sys::pressure::{self, Resource};
use machmeter_sys::thread::monotonic_ns;

use crate::message::Message;
use crate::work::{LoadEntry, Work, usage};
use budget::{BLOCK_BYTES, LEAST_BYTES, WorkingSet};
use touch::TouchOrder;

pub(crate) use touch::TOUCHER;

/// How long the process that takes the memory gets to end by itself.
const END_WITHIN_NS: u64 = 300_000_000;
const LISTEN_NS: u64 = 50_000_000;
/// After so many kills in its group the load is not what it should be.
const RESTARTS_MAX: u64 = 20;
const SIGKILL: i32 = 9;

pub(crate) static MEMLOAD: LoadEntry = LoadEntry {
    info: LoadInfo {
        name: "memload",
        description: "Memory pressure: allocates, touches, moves and frees memory, in its own memory control group if possible.",
        work: "bytes touched",
        unit: Unit::BytesPerSecond,
        ..LoadEntry::USUAL.info
    },
    check: |request| match request.memory_bytes {
        Some(bytes) if bytes < LEAST_BYTES => {
            let why = format!("{bytes} bytes of memory are too few: give at least {LEAST_BYTES}");
            Err(usage(request, why))
        }
        _ => Ok(()),
    },
    run: Some(run),
};

fn run(work: &Work) -> Result<(), LoadError> {
    let left = MemoryLeft::of_this_process(&FsRoot::host()).map_err(LoadError::Cannot)?;
    let asked_bytes = work.request.memory_bytes;
    let (file_most_bytes, why_no_file) = match file_allowed_bytes(work) {
        Ok(bytes) => (bytes, None),
        Err(why) => (0, Some(why)),
    };
    let mut limit_bytes = budget::limit(asked_bytes, left, true).map_err(LoadError::Cannot)?;
    if asked_bytes.is_none() && left.swap_free_bytes < limit_bytes / 2 {
        limit_bytes = budget::reclaimable_limit(limit_bytes, file_most_bytes);
    }
    let load = match own_group(work, limit_bytes) {
        Ok(group) => {
            if let Some(why) = why_no_file {
                work.caveat(format!("without a file: {why}"));
            }
            Memload::grouped(work, left, limit_bytes, file_most_bytes, group)
        }
        Err(e) => {
            work.caveat(format!(
                "no own memory control group ({e}): at most half of the available memory is used"
            ));
            Memload::ungrouped(work, left)?
        }
    };
    if let Some(asked) = asked_bytes.filter(|asked| *asked >= load.limit_bytes + BLOCK_BYTES) {
        let (asked, given) = (asked >> 20, load.limit_bytes >> 20);
        work.caveat(format!(
            "{given} MiB instead of {asked} MiB: at most half of the available memory is used"
        ));
    }
    load.run()
}

fn own_group(work: &Work, limit_bytes: u64) -> Result<Group, Refused> {
    let request = Request { memory_bytes: Some(limit_bytes), ..Request::default() };
    let plan = Plan::new(&request, "memload")?;
    for directory in plan.directories() {
        work.remove_group(directory);
    }
    plan.make()
}

/// The part of the load that takes no memory, and watches the part that does.
struct Memload<'w> {
    work: &'w Work,
    group: Option<Group>,
    limit_bytes: u64,
    set: WorkingSet,
    ready: bool,
}

impl<'w> Memload<'w> {
    fn grouped(
        work: &'w Work,
        left: MemoryLeft,
        limit_bytes: u64,
        file_most_bytes: u64,
        group: Group,
    ) -> Self {
        let set = WorkingSet::for_limit(limit_bytes, left.swap_free_bytes, file_most_bytes);
        if left.swap_free_bytes < limit_bytes / 2 {
            work.caveat("too little swap space: its group reclaims page cache only, and pages nothing out");
        }
        if set.bytes() <= limit_bytes {
            work.caveat(format!(
                "its group of {} MiB has nothing to reclaim: {} MiB of memory and {} MiB of a file fit into it",
                limit_bytes >> 20,
                set.anonymous_bytes >> 20,
                set.file_bytes >> 20
            ));
        }
        Self { work, group: Some(group), limit_bytes, set, ready: false }
    }

    fn ungrouped(work: &'w Work, left: MemoryLeft) -> Result<Self, LoadError> {
        let limit_bytes = budget::limit(work.request.memory_bytes, left, false).map_err(LoadError::Cannot)?;
        if left.swap_free_bytes == 0 {
            work.caveat("no swap space: memory is allocated and freed, and nothing is paged out");
        }
        if let Err(why) = pressure::of_machine(&FsRoot::host(), Resource::Memory) {
            work.caveat(format!("only the available memory is monitored, not memory pressure: {why}"));
        }
        let set = WorkingSet { anonymous_bytes: limit_bytes, file_bytes: 0 };
        Ok(Self { work, group: None, limit_bytes, set, ready: false })
    }

    /// Runs the process that takes the memory, again and again if it is killed for want of memory in its group.
    fn run(mut self) -> Result<(), LoadError> {
        let mut ended = Ok(());
        let mut restarts = 0;
        while !self.work.stopped() {
            let before = self.kills();
            let mut toucher = self.start()?;
            let status = self.watch(&mut toucher)?;
            if self.work.stopped() {
                break;
            }
            let kills = self.kills();
            if status.signal() != Some(SIGKILL) || kills == before {
                ended = Err(format!("the process that allocates the memory ended early ({status})"));
            } else if restarts == RESTARTS_MAX {
                ended = Err(format!("it was killed {restarts} times because its group ran out of memory"));
            }
            if ended.is_err() {
                break;
            }
            restarts += 1;
            // The next one leaves a little more room.
            self.set.anonymous_bytes -= self.set.anonymous_bytes / 10;
        }
        if self.kills() > 0 {
            self.work.side_effect(format!(
                "{} out-of-memory kills in its own group; it restarted {restarts} times",
                self.kills()
            ));
        }
        ended.map_err(LoadError::Cannot)
    }

    fn kills(&self) -> u64 {
        self.group.as_ref().and_then(Group::oom_kills).unwrap_or(0)
    }

    fn start(&self) -> Result<Role<TouchOrder, Message>, LoadError> {
        let cannot = |e: &dyn std::fmt::Display| LoadError::Cannot(format!("its memory process: {e}"));
        let file = match self.set.file_bytes {
            0 => None,
            bytes => Some((self.work.directory()?.join("pages"), bytes)),
        };
        let order = TouchOrder {
            anonymous_bytes: self.set.anonymous_bytes,
            file,
            grouped: self.group.is_some(),
            seed: self.work.request.seed,
            counters_fd: self.work.counters_fd(),
        };
        let mut toucher = Role::start(self.work.spawn(TOUCHER.name)).map_err(|e| cannot(&e))?;
        if let Some(group) = &self.group {
            group.add(toucher.peer().pid()).map_err(|e| cannot(&e))?;
        }
        // Only now does it begin: all its memory is charged to the group.
        toucher.send(&order).map_err(|e| cannot(&e))?;
        Ok(toucher)
    }

    /// Listens to the process until it ends or the load shall.
    fn watch(&mut self, toucher: &mut Role<TouchOrder, Message>) -> Result<ExitStatus, LoadError> {
        let cannot = |e: &RoleError| LoadError::Cannot(format!("its memory process {e}"));
        while !self.work.stopped() {
            match toucher.receive(monotonic_ns() + LISTEN_NS) {
                Ok(Message::Ready) if !std::mem::replace(&mut self.ready, true) => self.work.ready(),
                Ok(Message::Caveat(text)) => self.work.caveat(text),
                Ok(Message::Failure { text, .. }) => return Err(LoadError::Cannot(text)),
                Ok(_) | Err(RoleError::Late) => {}
                Err(RoleError::Ended(_)) => break,
                Err(e) => return Err(cannot(&e)),
            }
        }
        toucher.close();
        if let Some(status) = toucher.peer_mut().wait(END_WITHIN_NS) {
            return Ok(status);
        }
        toucher.kill();
        toucher.peer_mut().wait(END_WITHIN_NS).ok_or_else(|| cannot(&RoleError::Late))
    }
}

/// Bytes that a file may take in the load's directory.
fn file_allowed_bytes(work: &Work) -> Result<u64, String> {
    let directory = work.directory().map_err(|e| e.to_string())?;
    if lies_in_memory(directory).map_err(|e| format!("{}: {e}", directory.display()))? {
        return Err(format!("{} is in memory (tmpfs); choose a directory on a disk", directory.display()));
    }
    crate::write::allowed_bytes(directory, work.request.disk_bytes).map_err(|e| e.to_string())
}

/// Files of such a file system can only go to swap space.
fn lies_in_memory(directory: &Path) -> std::io::Result<bool> {
    const TMPFS_MAGIC: i64 = 0x0102_1994;
    const RAMFS_MAGIC: i64 = 0x8584_58f6;
    let kind = rustix::fs::statfs(directory)?.f_type as i64;
    Ok(kind == TMPFS_MAGIC || kind == RAMFS_MAGIC)
}
