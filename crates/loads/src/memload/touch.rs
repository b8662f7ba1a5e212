//! The process that takes the memory. It is the first that the out-of-memory killer would choose.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use machmeter_engine::load::LoadError;
use machmeter_engine::role::{self, MessageReader};
use machmeter_engine::worker::Worker;
use machmeter_stats::random::Random;
use machmeter_sys::fs_root::FsRoot;
use machmeter_sys::oom::{self, MemoryLeft};
use machmeter_sys::pressure::{self, Resource};
use machmeter_sys::region::Region;
use machmeter_sys::thread::monotonic_ns;
use serde::{Deserialize, Serialize};

use super::budget::{self, BLOCK_BYTES};
use crate::message::{Message, Replies};
use crate::work::{Count, take_order};

pub(crate) const TOUCHER: Worker = Worker { name: "load-memory", run: touch };

/// It works from when it holds all it should, or after this time.
const READY_WITHIN_NS: u64 = 1_500_000_000;
const LOOK_EVERY_NS: u64 = 20_000_000;
/// After it gave way it does not grow again for this long.
const CALM_NS: u64 = 2_000_000_000;
/// One in this many passes over a block of the file writes it anew, so that there are dirty pages too.
const REWRITE_ONE_IN: usize = 8;

/// What it gets when it is in its group.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct TouchOrder {
    pub(super) anonymous_bytes: u64,
    pub(super) file: Option<(PathBuf, u64)>,
    pub(super) grouped: bool,
    pub(super) seed: u64,
    pub(super) counters_fd: i32,
}

fn touch(_: &[OsString]) -> u8 {
    let Ok((requests, mut to)) = role::starter() else { return 1 };
    match prepare(requests).and_then(|toucher| toucher.work(&mut to)) {
        Ok(()) => 0,
        Err(e) => {
            Message::failure(&LoadError::Cannot(e.to_string())).send(&mut to);
            1
        }
    }
}

fn prepare(requests: MessageReader<TouchOrder>) -> io::Result<Toucher> {
    oom::volunteer()?;
    let (order, stop) = take_order(requests).map_err(|e| io::Error::other(format!("its starter {e}")))?;
    let count = Count::of_child(order.counters_fd, 0)?;
    let scratch = order.file.as_ref().map(|(path, bytes)| Scratch::create(path, *bytes)).transpose()?;
    Ok(Toucher {
        wanted_bytes: order.anonymous_bytes,
        allowed_bytes: 0,
        grouped: order.grouped,
        random: Random::new(order.seed),
        blocks: Vec::new(),
        spare: vec![0; BLOCK_BYTES as usize],
        scratch,
        look: Look::default(),
        yielded: false,
        count,
        stop,
    })
}

struct Toucher {
    wanted_bytes: u64,
    allowed_bytes: u64,
    grouped: bool,
    random: Random,
    blocks: Vec<Region>,
    /// What is read from the file and written to it.
    spare: Vec<u8>,
    scratch: Option<Scratch>,
    look: Look,
    yielded: bool,
    count: Count,
    stop: Arc<AtomicBool>,
}

impl Toucher {
    fn work(mut self, to: &mut Replies) -> io::Result<()> {
        let ready_at_ns = monotonic_ns() + READY_WITHIN_NS;
        let mut ready = false;
        while !self.stop.load(Ordering::Relaxed) {
            self.keep_to_what_is_allowed(to)?;
            let growing = self.held_bytes() + BLOCK_BYTES <= self.allowed_bytes;
            if !growing {
                self.change_something()?;
            } else if let Err(e) = self.add_block() {
                self.wanted_bytes = self.held_bytes();
                self.allowed_bytes = self.wanted_bytes;
                let mib = self.wanted_bytes >> 20;
                Message::Caveat(format!("the system allows it at most {mib} MiB: {e}")).send(to);
            }
            if let Err(e) = self.pass_over_file() {
                self.scratch = None;
                Message::Caveat(format!("it stopped using the file: {e}")).send(to);
            }
            if !ready && (!growing || monotonic_ns() > ready_at_ns) {
                ready = true;
                Message::Ready.send(to);
            }
        }
        Ok(())
    }

    fn held_bytes(&self) -> u64 {
        self.blocks.len() as u64 * BLOCK_BYTES
    }

    /// Looks at the machine now and then, and gives back at once what is too much.
    fn keep_to_what_is_allowed(&mut self, to: &mut Replies) -> io::Result<()> {
        let Some(seen) = self.look.now(self.grouped).map_err(io::Error::other)? else { return Ok(()) };
        let held_bytes = self.held_bytes();
        let stall = seen.full_stall_percent;
        let most_bytes = budget::allowed(seen.left, stall, held_bytes, self.wanted_bytes, self.grouped);
        self.allowed_bytes = most_bytes;
        if budget::must_yield(seen.left, stall, self.grouped) {
            self.look.calm_until_ns = monotonic_ns() + CALM_NS;
            if !std::mem::replace(&mut self.yielded, true) {
                let text = "the machine ran short of memory: the load released a part of its memory";
                Message::Caveat(text.to_owned()).send(to);
            }
        } else if monotonic_ns() < self.look.calm_until_ns {
            self.allowed_bytes = most_bytes.min(held_bytes);
        }
        self.blocks.truncate((self.allowed_bytes / BLOCK_BYTES) as usize);
        if self.blocks.is_empty() && self.allowed_bytes < BLOCK_BYTES {
            // Nothing may be held: wait instead of asking all the time.
            std::thread::sleep(std::time::Duration::from_nanos(LOOK_EVERY_NS));
        }
        Ok(())
    }

    fn add_block(&mut self) -> io::Result<()> {
        let mut block = Region::new(BLOCK_BYTES as usize)?;
        fill(&mut self.random, block.as_mut_slice());
        self.blocks.push(block);
        self.count.add(BLOCK_BYTES);
        Ok(())
    }

    /// Moves the contents of one block into another, or replaces a block by a new one.
    fn change_something(&mut self) -> io::Result<()> {
        if self.blocks.is_empty() {
            return Ok(());
        }
        let (from, onto) = (self.random.below(self.blocks.len()), self.random.below(self.blocks.len()));
        if from == onto || self.random.below(4) == 0 {
            drop(self.blocks.swap_remove(onto));
            return self.add_block();
        }
        let [source, target] = self.blocks.get_disjoint_mut([from, onto]).map_err(io::Error::other)?;
        target.as_mut_slice().copy_from_slice(source.as_slice());
        self.count.add(2 * BLOCK_BYTES);
        Ok(())
    }

    /// The next block of the file: written as long as the file grows, then read, and now and then written again.
    fn pass_over_file(&mut self) -> io::Result<()> {
        let Some(scratch) = &mut self.scratch else { return Ok(()) };
        if scratch.written_bytes < scratch.bytes {
            fill(&mut self.random, &mut self.spare);
            scratch.file.write_all_at(&self.spare, scratch.written_bytes)?;
            scratch.written_bytes += BLOCK_BYTES;
        } else {
            scratch.file.read_exact_at(&mut self.spare, scratch.position_bytes)?;
            if self.random.below(REWRITE_ONE_IN) == 0 {
                fill(&mut self.random, &mut self.spare);
                scratch.file.write_all_at(&self.spare, scratch.position_bytes)?;
            }
            scratch.position_bytes = (scratch.position_bytes + BLOCK_BYTES) % scratch.bytes;
        }
        self.count.add(BLOCK_BYTES);
        Ok(())
    }
}

/// Bytes that nothing can compress.
fn fill(random: &mut Random, bytes: &mut [u8]) {
    for word in bytes.chunks_exact_mut(8) {
        word.copy_from_slice(&random.bits().to_ne_bytes());
    }
}

struct Scratch {
    file: File,
    bytes: u64,
    written_bytes: u64,
    position_bytes: u64,
}

impl Scratch {
    fn create(path: &PathBuf, bytes: u64) -> io::Result<Self> {
        let file = File::options().read(true).write(true).create_new(true).open(path)?;
        // A restarted process makes its own; the pages and the space go back when nobody holds the file.
        std::fs::remove_file(path)?;
        Ok(Self { file, bytes, written_bytes: 0, position_bytes: 0 })
    }
}

struct Seen {
    left: MemoryLeft,
    full_stall_percent: Option<f64>,
}

#[derive(Default)]
struct Look {
    next_ns: u64,
    calm_until_ns: u64,
    /// When it last looked at stalls, and their total then.
    stalls: Option<(u64, u64)>,
}

impl Look {
    fn now(&mut self, grouped: bool) -> Result<Option<Seen>, String> {
        let now_ns = monotonic_ns();
        if now_ns < self.next_ns {
            return Ok(None);
        }
        self.next_ns = now_ns + LOOK_EVERY_NS;
        let tree = FsRoot::host();
        let left =
            if grouped { MemoryLeft::of_groups_above(&tree)? } else { MemoryLeft::of_this_process(&tree)? };
        let full = pressure::of_machine(&tree, Resource::Memory).ok().and_then(|p| p.full);
        // The kernel's average follows with a delay of seconds; what has come since the last look does not.
        let full_stall_percent = full.map(|full| {
            let fresh = self.stalls.map_or(0.0, |(then_ns, total_ns)| {
                full.total_ns.saturating_sub(total_ns) as f64 / (now_ns - then_ns).max(1) as f64 * 100.0
            });
            full.average_10s_percent.max(fresh)
        });
        self.stalls = full.map(|full| (now_ns, full.total_ns));
        Ok(Some(Seen { left, full_stall_percent }))
    }
}
