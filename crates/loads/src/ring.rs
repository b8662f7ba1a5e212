//! Ring: threads that pass a token round, so that the scheduler is what is busy (an undocumented load of interbench).

use std::io::{PipeReader, PipeWriter, Read, Write, pipe};
use std::sync::Mutex;

use machmeter_engine::load::{LoadError, LoadInfo};

use crate::work::{LoadEntry, Work, usage};

const THREADS_MIN: usize = 2;
/// Each thread has two descriptors; the usual limit is 1024.
const THREADS_MAX: u32 = 400;

pub(crate) static RING: LoadEntry = LoadEntry {
    info: LoadInfo {
        name: "ring",
        description: "Threads that pass a token around through pipes: by default one per CPU, at least two.",
        work: "passes of the token",
        ..LoadEntry::USUAL.info
    },
    check: |request| match request.threads {
        Some(n) if !(THREADS_MIN as u32..=THREADS_MAX).contains(&n) => {
            Err(usage(request, format!("{n} threads: give {THREADS_MIN} to {THREADS_MAX}")))
        }
        _ => Ok(()),
    },
    run: Some(circle),
};

type Place = Mutex<Option<(PipeReader, PipeWriter)>>;

fn circle(work: &Work) -> Result<(), LoadError> {
    let n = work.threads_or_one_per_cpu()?.clamp(THREADS_MIN, THREADS_MAX as usize);
    let cannot = |e: std::io::Error| LoadError::Cannot(format!("load 'ring': a pipe of {n}: {e}"));
    let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
    for _ in 0..n {
        let (input, output) = pipe().map_err(cannot)?;
        inputs.push(input);
        outputs.push(output);
    }
    // Everybody writes to the next one's pipe.
    outputs.rotate_left(1);
    outputs[n - 1].write_all(&[1]).map_err(cannot)?;
    let places: Vec<Place> = inputs.into_iter().zip(outputs).map(|pair| Mutex::new(Some(pair))).collect();
    work.ready();
    work.threads("mm-ring", n, |lane| {
        let place = places[lane].lock().ok().and_then(|mut p| p.take());
        let Some((mut input, mut output)) = place else { return Ok(()) };
        let count = work.count(lane);
        let mut token = [0_u8];
        // A neighbor that has ended closes its pipes: that is the end, too.
        while input.read_exact(&mut token).is_ok() && output.write_all(&token).is_ok() {
            count.add(1);
            // Asked after the token went on, so that the next one wakes up and asks, too.
            if work.stopped() {
                break;
            }
        }
        Ok(())
    })
}
