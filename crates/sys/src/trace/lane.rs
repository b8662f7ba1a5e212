//! Reading one CPU's ring buffer, with an account of what it lost and when.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;

use super::decode::Decoder;
use super::instance::Instance;
use super::log::{Loss, TraceEvent};
use super::page::Missed;

#[derive(Debug)]
pub(super) struct Lane {
    pub(super) cpu: u16,
    pub(super) events: Vec<TraceEvent>,
    pub(super) dropped: u64,
    /// A loss whose end is not known yet: last time before it and the number lost.
    pub(super) open_loss: Option<(u64, Option<u64>)>,
}

impl Lane {
    pub(super) fn new(cpu: u16) -> Self {
        Self { cpu, events: Vec::new(), dropped: 0, open_loss: None }
    }

    /// Notes a loss that begins after the event before index `at`.
    fn open_loss(&mut self, at: usize, lost: Option<u64>) {
        let after_ticks = at.checked_sub(1).map_or(0, |i| self.events[i].ticks);
        self.open_loss = Some(match self.open_loss {
            None => (after_ticks, lost),
            Some((earlier, n)) => (earlier, n.zip(lost).map(|(a, b)| a + b)),
        });
    }

    /// Ends an open loss at the event with index `at`, if both exist.
    fn close_loss(&mut self, at: usize) -> Option<Loss> {
        let before_ticks = self.events.get(at)?.ticks;
        let (after_ticks, events) = self.open_loss.take()?;
        Some(Loss { cpu: usize::from(self.cpu), after_ticks, before_ticks, events })
    }
}

/// Reads all that one CPU has recorded. The file is opened each time, so that nothing keeps the instance from being removed.
pub(super) fn read_lane(
    instance: &Instance,
    decoder: &mut Decoder,
    lane: &mut Lane,
    losses: &mut Vec<Loss>,
    page: &mut [u8],
) -> io::Result<()> {
    let stats = format!("per_cpu/cpu{}/stats", lane.cpu);
    let before = BufferStats::parse(&instance.read(&stats)?);
    let first = lane.events.len();
    let path = instance.path(&format!("per_cpu/cpu{}/trace_pipe_raw", lane.cpu));
    let mut pipe = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    loop {
        let len = match pipe.read(page) {
            Ok(0) => break,
            Ok(len) => len,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(e),
        };
        let at = lane.events.len();
        match decoder.decode(&page[..len], lane.cpu, &mut lane.events) {
            Missed::None => {}
            Missed::Some => lane.open_loss(at, None),
            Missed::Count(n) => lane.open_loss(at, Some(n)),
        }
        losses.extend(lane.close_loss(at));
    }
    drop(pipe);
    // Without overwriting, the kernel notes losses only in its statistics. The buffer was full then, so what it held at the
    // beginning of this read lies before the loss, and what came while reading lies behind it.
    let held = (first + before.entries as usize).min(lane.events.len());
    if before.lost > lane.dropped {
        lane.open_loss(held, Some(before.lost - lane.dropped));
        losses.extend(lane.close_loss(held));
    }
    // A loss during this read may be anywhere in what was read since; its end shows at the next read.
    let after = BufferStats::parse(&instance.read(&stats)?);
    if after.lost > before.lost {
        lane.open_loss(held, Some(after.lost - before.lost));
    }
    lane.dropped = after.lost;
    Ok(())
}

/// What a `per_cpu/cpuN/stats` text says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct BufferStats {
    entries: u64,
    /// Events lost since the start, for whatever reason.
    lost: u64,
}

impl BufferStats {
    fn parse(stats: &str) -> Self {
        let sum = |keys: &[&str]| {
            let values = stats.lines().filter_map(|line| {
                let (key, value) = line.split_once(':')?;
                if keys.contains(&key.trim()) { value.trim().parse::<u64>().ok() } else { None }
            });
            values.sum()
        };
        Self { entries: sum(&["entries"]), lost: sum(&["overrun", "commit overrun", "dropped events"]) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_summed_from_the_statistics() {
        let stats = "entries: 50\noverrun: 2\ncommit overrun: 1\nbytes: 90\noldest event ts: 1.5\nnow ts: 9.1\n\
                     dropped events: 40\nread events: 7\n";
        assert_eq!(BufferStats::parse(stats), BufferStats { entries: 50, lost: 43 });
        assert_eq!(BufferStats::parse(""), BufferStats { entries: 0, lost: 0 });
    }
}
