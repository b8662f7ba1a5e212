//! FTQ as of 2025: one file per thread with a `#` header, then nanoseconds since the first window and the count.
//!
//! Windows have an absolute schedule (window i ends at first start + (i+1) lengths). After an overrun, the windows that it covered follow as zero counts,
//! all with the time at which the overrun ended. Row i is window i.

use super::columns::{Samples, WINDOWS, add_cpu, all, counts, list, number_after, samples};
use super::{Imported, Input, Reader, Result, SourceFile, sure};

pub(super) const READER: Reader = Reader {
    name: "ftq-2025",
    description: "FTQ 2025: PREFIX_THREAD.dat, a header of # lines, then nanoseconds and count",
    sniff: |input| {
        all(input, |f| f.header("# Frequency ").is_some() && f.header("# Ticks per ns: ").is_some())
    },
    fill,
};

fn fill(input: &Input, out: &mut Imported) -> Result<()> {
    let mut windows = Samples::default();
    let (mut cpus, mut real_cpus) = (Vec::new(), true);
    let mut frequency_hz: Option<f64> = None;
    for (i, file) in (0..).zip(&input.files) {
        let r = samples::<i64, 2>(file, "nanoseconds and count", out)?;
        let hz = frequency(file)?;
        let other = "has another frequency than the previous files; read one run at a time";
        sure(frequency_hz.is_none_or(|f| f == hz), || file.fault(other))?;
        frequency_hz = Some(hz);
        let (thread, core) = placement(file);
        let thread = thread.unwrap_or(i);
        real_cpus &= core.is_some() || !input.known.cpus.is_empty();
        let number = core.unwrap_or_else(|| input.known.cpu_of(thread));
        add_cpu(&mut cpus, number, "thread or CPU", file)?;
        windows.add(number, r.column(0), counts(&r.column(1), &r.lines, file)?);
    }
    let hz = frequency_hz.unwrap_or(1.0);
    out.note("frequency_hz", hz.to_string());
    out.note("work_quantum", "63");
    for text in [
        "each thread's time starts at its own first window, so coincidence between CPUs is unknown",
        "row i is window i of an absolute schedule; a window with count zero has the time at which the overrun ended",
    ] {
        out.assume(text);
    }
    let notes = [
        ("tick_hz", "1000000000".to_owned()),
        ("t0_ticks", "0".to_owned()),
        ("window_ticks", format!("{:.0}", 1e9 / hz)),
        ("axis", "uniform".to_owned()),
        ("cpu_is", if real_cpus { "cpu" } else { "thread" }.to_owned()),
        ("cpus", list(&cpus)),
    ];
    windows.into_table(out, "noise_windows", WINDOWS, &notes);
    Ok(())
}

fn frequency(file: &SourceFile) -> Result<f64> {
    file.header("# Frequency ")
        .and_then(|t| t.parse::<f64>().ok())
        .filter(|hz| *hz >= 1e-3 && *hz <= 1e9)
        .ok_or_else(|| file.fault("the header's \"# Frequency\" is not a number of hertz"))
}

/// Thread and core from `# thread 0, core -1` (core -1 is unknown; Linux builds always write it), else from the name.
fn placement(file: &SourceFile) -> (Option<i32>, Option<i32>) {
    let (thread, core) = file.header("# thread ").and_then(|t| t.split_once(", core ")).unwrap_or(("", ""));
    let of_name = || number_after(file.name().strip_suffix(".dat")?, '_').map(|(_, n)| n);
    (thread.parse().ok().or_else(of_name), core.parse().ok().filter(|c: &i32| *c >= 0))
}
