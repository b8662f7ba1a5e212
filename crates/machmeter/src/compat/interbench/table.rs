//! Formats the log and the console like interbench: a preamble, and per task a title, a heading, and a row per load.

use machmeter_engine::stream::{Demand, Job, Release};
use machmeter_interactive::samples::Cell;
use machmeter_stats::spread;
use machmeter_store::foreign::INTERBENCH_MARK;

use super::names::Simulation;
use super::options::Options;

/// Figures of a cell in interbench's columns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Figures {
    /// Mean lateness over all scheduled releases, ns.
    pub(super) mean_ns: f64,
    /// Standard deviation of these, ns; 0 for a single one, as in the original.
    pub(super) sd_ns: f64,
    /// Largest lateness, ns.
    pub(super) max_ns: f64,
    /// Completed work over requested work; for a task that never sleeps, over wall time.
    pub(super) desired_cpu: f64,
    /// Share of scheduled releases completed by their deadline; `None` for tasks without deadlines.
    pub(super) deadlines_met: Option<f64>,
}

impl Figures {
    /// Figures over all segments of a cell; `None` if no job was released.
    pub(super) fn of(cell: &Cell) -> Option<Self> {
        let jobs: Vec<&Job> = cell.segments.iter().flat_map(|s| &s.jobs).collect();
        let late_ns: Vec<f64> = jobs.iter().map(|j| j.lateness_ns(&cell.stream) as f64).collect();
        let met = jobs.iter().filter_map(|j| j.met(&cell.stream)).filter(|met| *met).count();
        Some(Self {
            mean_ns: spread::mean(&late_ns)?,
            sd_ns: spread::stddev(&late_ns).unwrap_or(0.0),
            max_ns: late_ns.iter().copied().fold(0.0, f64::max),
            desired_cpu: desired_cpu(cell, &jobs),
            deadlines_met: cell.stream.deadline_ns().map(|_| met as f64 / jobs.len() as f64),
        })
    }
}

fn desired_cpu(cell: &Cell, jobs: &[&Job]) -> f64 {
    let turns = |j: &&Job| match cell.stream.demand.of_job(j.number) {
        Demand::Turns { turns } => Some(turns as f64),
        _ => None,
    };
    let cpu_ns: f64 = jobs.iter().map(|j| j.cpu_ns as f64).sum();
    let (got, asked) = if matches!(cell.stream.release, Release::Closed { think_ns: 0 }) {
        // Jobs back to back: their sum is the running time of the task.
        (cpu_ns, jobs.iter().map(|j| j.response_ns as f64).sum())
    } else if let Some(asked) = jobs.iter().map(turns).collect::<Option<Vec<f64>>>() {
        let done = jobs.iter().zip(&asked).filter(|(j, _)| j.ran()).map(|(_, turns)| turns).sum();
        (done, asked.iter().sum())
    } else {
        (cpu_ns, jobs.iter().filter_map(|j| cell.stream.cpu_ns(j.number)).map(|ns| ns as f64).sum())
    };
    // The first step of the ramp requests nothing. Clocks let a job overrun by a fraction of a percent.
    let asked: f64 = asked;
    if asked > 0.0 { (got / asked).min(1.0) } else { 1.0 }
}

/// The preamble, with a line on the origin of the SD column. `datestamp` is `YYYYMMDDhhmm`.
pub(super) fn preamble(options: &Options, loops_per_ms: u64, kernel: &str, datestamp: &str) -> String {
    let mut text = format!(
        "Load set to {} processors\n\nUsing {loops_per_ms} loops per ms, running every load for {} seconds\n\
         Benchmarking kernel {kernel} at datestamp {datestamp}\n{INTERBENCH_MARK} {}: SD is the standard deviation\n",
        options.burn_threads,
        options.seconds,
        env!("CARGO_PKG_VERSION")
    );
    if let Some(comment) = &options.comment {
        text += &format!("Comment: {comment}\n");
    }
    text.push('\n');
    text
}

/// Title and heading of a task's table.
pub(super) fn title(task: &Simulation, options: &Options) -> String {
    let mut text = format!("--- Benchmarking simulated cpu of {} ", task.label);
    if options.real_time {
        text += "real time ";
    } else if options.task_nice != 0 {
        text += &format!("nice {} ", options.task_nice);
    }
    text += "in the presence of simulated ";
    if options.load_nice != 0 {
        text += &format!("nice {} ", options.load_nice);
    }
    text += "---\n";
    let unit = if options.real_time { "us" } else { "ms" };
    text += &format!("Load\tLatency +/- SD ({unit})  Max Latency   % Desired CPU");
    if task.task.as_ref().is_some_and(|t| t.deadlines) {
        text += "  % Deadlines Met";
    }
    text.push('\n');
    text
}

/// A row, in ms, or in us under `-r`.
pub(super) fn row(load: &str, f: &Figures, real_time: bool) -> String {
    let unit_ns = if real_time { 1e3 } else { 1e6 };
    let time = |ns: f64| three_digits(ns / unit_ns);
    let (sd, max) = (time(f.sd_ns), time(f.max_ns));
    // Two very wide columns touch in the original; these do not.
    let max = if sd.len() >= 8 && max.len() >= 8 { format!(" {max}") } else { max };
    let mut text =
        format!("{load}\t{:>7} +/- {sd:<8}{max:>8}\t\t{:>4}", time(f.mean_ns), percent(f.desired_cpu));
    if let Some(met) = f.deadlines_met {
        text += &format!("\t{:>11}", percent(met));
    }
    text.push('\n');
    text
}

/// Three significant digits without an exponent; whole numbers above 100.
fn three_digits(value: f64) -> String {
    if value <= 0.0 || !value.is_finite() {
        return "0".to_owned();
    }
    let decimals = (2 - value.log10().floor() as i32).clamp(0, 9) as usize;
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// A percentage with three digits; 100 only for the full share. The original also prints 100 for 99.95.
fn percent(share: f64) -> String {
    let text = three_digits(share * 100.0);
    if text == "100" && share < 1.0 { "99.9".to_owned() } else { text }
}

#[cfg(test)]
mod tests {
    use super::super::names::SIMULATIONS;
    use super::super::options::parsed;
    use super::*;

    #[test]
    fn rows_stand_in_the_columns_of_the_readmes_sample() {
        let f = |mean: f64, sd: f64, max: f64, cpu: f64, met: f64| Figures {
            mean_ns: mean * 1e6,
            sd_ns: sd * 1e6,
            max_ns: max * 1e6,
            desired_cpu: cpu / 100.0,
            deadlines_met: Some(met / 100.0),
        };
        // The rows of the readme, byte by byte.
        for (figures, line) in [
            (f(0.495, 0.495, 45.0, 100.0, 96.0), "None\t  0.495 +/- 0.495         45\t\t 100\t         96\n"),
            (f(11.7, 11.7, 1815.0, 89.6, 62.7), "Video\t   11.7 +/- 11.7        1815\t\t89.6\t       62.7\n"),
            (f(27.9, 28.1, 3335.0, 78.5, 44.0), "Burn\t   27.9 +/- 28.1        3335\t\t78.5\t         44\n"),
            (f(4.02, 4.03, 372.0, 97.0, 78.7), "Write\t   4.02 +/- 4.03         372\t\t  97\t       78.7\n"),
        ] {
            assert_eq!(row(line.split('\t').next().unwrap(), &figures, false), line);
        }
        let us = row("Burn", &Figures { deadlines_met: None, ..f(0.0125, 0.5, 50.0, 100.0, 100.0) }, true);
        assert_eq!(us, "Burn\t   12.5 +/- 500        50000\t\t 100\n");
        let wide = row("Burn", &f(12_345_678.0, 12_345_678.0, 12_345_678.0, 1.0, 0.0), false);
        assert_eq!(wide.split_whitespace().count(), 7, "{wide}");
    }

    #[test]
    fn nearly_all_is_not_all() {
        assert_eq!([1.0, 0.9999, 0.0, 0.00123].map(percent), ["100", "99.9", "0", "0.123"]);
        assert_eq!([9.999, 99.96, 1815.4].map(three_digits), ["10", "100", "1815"]);
    }

    #[test]
    fn titles_and_preamble_say_what_was_asked_for() {
        let find = |name: &str| SIMULATIONS.iter().find(|l| l.label == name).unwrap();
        let title_of = |name: &str, words: &[&str]| title(find(name), &parsed(words).unwrap());
        assert_eq!(
            title_of("X", &[]),
            "--- Benchmarking simulated cpu of X in the presence of simulated ---\n\
             Load\tLatency +/- SD (ms)  Max Latency   % Desired CPU  % Deadlines Met\n"
        );
        let rt = title_of("Audio", &["-r", "-B", "3", "-N", "5"]);
        let begin =
            "--- Benchmarking simulated cpu of Audio real time in the presence of simulated nice 5 ---\n";
        assert!(rt.starts_with(begin) && rt.contains("SD (us)"));
        let gaming = title_of("Gaming", &["-B", "3"]);
        assert!(gaming.contains("Gaming nice 3 in") && gaming.ends_with("% Desired CPU\n"));
        let options = parsed(&["-t", "5", "-m", "a b"]).unwrap();
        let text = preamble(&options, 42, "6.1", "202611221200");
        assert!(text.contains("\nUsing 42 loops per ms, running every load for 5 seconds\n"));
        assert!(text.contains("\nBenchmarking kernel 6.1 at datestamp 202611221200\n"));
        assert!(text.ends_with("\nComment: a b\n\n"));
    }
}
