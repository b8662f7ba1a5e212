//! LLNL FWQ: durations of equal pieces of work, one per line, in clock ticks (its summary line calls them nanoseconds).

use super::codes::{self, warn};
use super::columns::{Samples, WORK, add_cpu, all, least, list, number_after, samples};
use super::{Imported, Input, Reader, Result};

pub(super) const READER: Reader = Reader {
    name: "fwq",
    description: "LLNL FWQ: PREFIX_THREAD_times.dat without a file of counts, one duration in ticks per line",
    sniff: |input| all(input, |f| f.name().ends_with("_times.dat")),
    fill,
};

fn fill(input: &Input, out: &mut Imported) -> Result<()> {
    let mut work = Samples::default();
    let mut cpus = Vec::new();
    for file in &input.files {
        let r = samples::<i64, 1>(file, "one duration in ticks per line, as FWQ writes", out)?;
        let durations = r.column(0);
        if durations.len() > 2 && durations.windows(2).all(|w| w[1] > w[0]) {
            let what = "its numbers only increase: these are times of FTQ, whose _counts.dat is missing";
            return Err(file.fault(what));
        }
        let stem = file.name().trim_end_matches("_times.dat");
        let number = input.known.cpu_of(number_after(stem, '_').map_or(0, |(_, n)| n));
        add_cpu(&mut cpus, number, "thread", file)?;
        work.add(number, 0..durations.len() as i64, durations);
    }
    if input.known.tick_hz.is_none() {
        warn(out, codes::TICK_RATE, "durations are in clock ticks of unknown length");
    }
    out.assume("thread k ran on CPU k, to which the program pins it in threaded runs");
    out.assume("the work per piece (2^bits turns) is not in the files; the shortest piece stands for undisturbed work");
    let notes = [
        ("tick_hz", input.known.tick_hz_note()),
        ("min_ticks", least(&work.second).to_string()),
        ("cpu_is", "cpu".to_owned()),
        ("cpus", list(&cpus)),
    ];
    work.into_table(out, "noise_work", WORK, &notes);
    Ok(())
}
