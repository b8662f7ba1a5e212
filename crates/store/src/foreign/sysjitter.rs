//! sysjitter's raw files, one per core: a time stamp, the time since the previous one, and the interruption in cycles and ns.
//!
//! The program reads the time stamp after the interruption, so it is the gap's *end* (from its source). Times in ns
//! come from a clock rate rounded down to whole MHz; cycles are exact, so gaps are stored in cycles.

use super::codes::{self, warn};
use super::columns::{add_cpu, add_gaps, all, list, number_after, rows, warn_if_cut};
use super::{Imported, Input, Reader, Result, SourceFile};

pub(super) const READER: Reader = Reader {
    name: "sysjitter-raw",
    description: "sysjitter --raw PREFIX: PREFIX.CORE with time stamps and interruptions, also with --sort",
    sniff: |input| {
        all(input, |f| f.header("# cpu_mhz:").is_some() && f.header("# n_interruptions:").is_some())
    },
    fill,
};

fn fill(input: &Input, out: &mut Imported) -> Result<()> {
    let mut gaps = Vec::new();
    let mut cpus: Vec<i32> = Vec::new();
    let mut rate_mhz = None;
    let (mut wall_cycles, mut threshold_ns) = (0_i64, None);
    for (i, file) in (0..).zip(&input.files) {
        let mhz = header(file, "# cpu_mhz:")
            .filter(|m| (1..=100_000).contains(m))
            .ok_or_else(|| file.fault("no \"# cpu_mhz: N\" with a rate in its header"))?;
        let cpu = number_after(file.name(), '.').map_or(i, |(_, n)| n);
        add_cpu(&mut cpus, cpu, "core", file)?;
        if rate_mhz.is_some_and(|m| m != mhz) {
            let text =
                format!("core {cpu} was calibrated to {mhz} MHz, its ends are converted with that rate");
            out.assume(text);
        }
        rate_mhz = rate_mhz.or(Some(mhz));
        threshold_ns = threshold_ns
            .or_else(|| file.header("# threshold:")?.strip_suffix("ns")?.trim().parse::<i64>().ok());
        wall_cycles = wall_cycles.max(header(file, "# total_runtime:").unwrap_or(0));
        let before = gaps.len();
        read_gaps(file, cpu, mhz, &mut gaps, out)?;
        let (found, announced) = (gaps.len() - before, header(file, "# n_interruptions:").unwrap_or(0));
        if found as i64 != announced {
            warn(out, codes::CUT_FILE, format!("{} has {found} of {announced} interruptions", file.name()));
        }
    }
    let hz = input.known.tick_hz.unwrap_or(rate_mhz.unwrap_or(1) as f64 * 1e6);
    if input.known.tick_hz.is_none() {
        warn(out, codes::ROUGH_RATE, format!("the clock rate is given as {} MHz", rate_mhz.unwrap_or(1)));
    }
    out.assume("time stamps are ends of interruptions; each core's time starts at its own first clock read");
    let mut notes = vec![
        ("tick_hz", hz.to_string()),
        ("t0_ticks", "0".to_owned()),
        ("cpu_is", "cpu".to_owned()),
        ("cpus", list(&cpus)),
    ];
    if wall_cycles > 0 {
        notes.push(("wall_ticks", wall_cycles.to_string()));
    }
    if let Some(ns) = threshold_ns {
        notes.push(("threshold_ns", ns.to_string()));
    }
    add_gaps(out, gaps, &notes);
    Ok(())
}

/// Reads both layouts: with the time since the previous line (4 columns), and sorted by size without it (3 columns).
fn read_gaps(
    file: &SourceFile,
    cpu: i32,
    mhz: i64,
    gaps: &mut Vec<(i32, i64, i64)>,
    out: &mut Imported,
) -> Result<()> {
    let first = file.text.lines().find(|l| !l.trim().is_empty() && !l.starts_with('#')).unwrap_or("");
    let (stamps_ns, cycles, cut) = if first.split_whitespace().count() == 3 {
        let r = rows::<i64, 3>(file, "time stamp in ns, interruption in cycles and in ns")?;
        (r.column(0), r.column(1), r.cut)
    } else {
        let r = rows::<i64, 4>(file, "time stamp in ns, delta in us, interruption in cycles and in ns")?;
        (r.column(0), r.column(2), r.cut)
    };
    warn_if_cut(cut, file, out);
    gaps.extend(stamps_ns.iter().zip(&cycles).map(|(stamp_ns, cycles)| {
        // The program computed ns = cycles * 1000 / MHz. The inverse is accurate to 1 ns, like the stamp.
        let end = i64::try_from(i128::from(*stamp_ns) * i128::from(mhz) / 1000).unwrap_or(i64::MAX);
        (cpu, end.saturating_sub(*cycles).max(0), end)
    }));
    Ok(())
}

fn header(file: &SourceFile, key: &str) -> Option<i64> {
    file.header(key)?.split_whitespace().next()?.parse().ok().filter(|v| *v >= 0)
}
