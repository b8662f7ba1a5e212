//! LLNL FWQ: durations of equal pieces of work, one per line, in clock ticks (its summary line calls them nanoseconds).

use super::codes::{self, warn};
use super::columns::{add_cpu, all, list, number_after, samples, work_table};
use super::{ForeignError, Imported, Input, Reader, imported};

pub(super) const READER: Reader = Reader {
    name: "fwq",
    description: "LLNL FWQ: PREFIX_THREAD_times.dat without counts beside it, one duration in ticks per line",
    sniff: |input| all(input, |f| f.name().ends_with("_times.dat")),
    read,
};

fn read(input: &Input) -> Result<Imported, ForeignError> {
    let mut out = imported(READER.name, input);
    let (mut cpu, mut index, mut duration) = (Vec::new(), Vec::new(), Vec::new());
    let mut cpus = Vec::new();
    for file in &input.files {
        let r = samples::<i64, 1>(file, "one duration in ticks per line, as FWQ writes", &mut out)?;
        let durations = r.column(0);
        if durations.len() > 2 && durations.windows(2).all(|w| w[1] > w[0]) {
            return Err(ForeignError::new(
                &file.path,
                "its numbers only rise: these are times of FTQ, whose _counts.dat must lie beside it",
            ));
        }
        let stem = file.name().trim_end_matches("_times.dat");
        let number = input.known.cpu_of(number_after(stem, '_').map_or(0, |(_, n)| n));
        add_cpu(&mut cpus, number, "thread", file)?;
        cpu.resize(cpu.len() + durations.len(), number);
        index.extend(0..durations.len() as i64);
        duration.extend(durations);
    }
    if input.known.tick_hz.is_none() {
        warn(&mut out, codes::TICK_RATE, "durations are in clock ticks of unknown length");
    }
    out.assume("thread k ran on CPU k, where the program pins it in threaded runs");
    out.assume("the work per piece (2^bits turns) is not in the files; the shortest piece stands for undisturbed work");
    let notes = [
        ("tick_hz", input.known.tick_hz_note()),
        ("min_ticks", duration.iter().copied().min().unwrap_or(0).to_string()),
        ("cpu_is", "cpu".to_owned()),
        ("cpus", list(&cpus)),
    ];
    out.tables.push(work_table(cpu, index, duration, &notes, input)?);
    Ok(out)
}
