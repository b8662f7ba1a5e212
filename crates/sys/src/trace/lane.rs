//! Reading one CPU's ring buffer, with the number of events it lost.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;

use super::decode::Decoder;
use super::instance::Instance;
use super::log::TraceEvent;

#[derive(Debug)]
pub(super) struct Lane {
    pub(super) cpu: u16,
    pub(super) events: Vec<TraceEvent>,
    /// Events the kernel lost since the start, for whatever reason.
    pub(super) dropped: u64,
}

/// Reads all that one CPU has recorded. The file is opened each time, so that nothing keeps the instance from being removed.
pub(super) fn read_lane(
    instance: &Instance,
    decoder: &mut Decoder,
    lane: &mut Lane,
    page: &mut [u8],
) -> io::Result<()> {
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
        decoder.decode(&page[..len], lane.cpu, &mut lane.events);
    }
    drop(pipe);
    // Without overwriting, the kernel notes losses only in its statistics.
    lane.dropped = lost(&instance.read(&format!("per_cpu/cpu{}/stats", lane.cpu))?);
    Ok(())
}

/// The losses that a `per_cpu/cpuN/stats` text tells of.
fn lost(stats: &str) -> u64 {
    let values = stats.lines().filter_map(|line| {
        let (key, value) = line.split_once(':')?;
        let is_loss = ["overrun", "commit overrun", "dropped events"].contains(&key.trim());
        if is_loss { value.trim().parse::<u64>().ok() } else { None }
    });
    values.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_are_summed_from_the_statistics() {
        let stats = "entries: 50\noverrun: 2\ncommit overrun: 1\nbytes: 90\noldest event ts: 1.5\nnow ts: 9.1\n\
                     dropped events: 40\nread events: 7\n";
        assert_eq!((lost(stats), lost("")), (43, 0));
    }
}
