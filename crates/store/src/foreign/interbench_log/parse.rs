//! Parses the text of a log into runs, tables and rows.

use super::super::columns::shortened;
use super::super::{Result, SourceFile, sure};
use super::OUR_MARK;

/// Most tasks or loads. It is several times the number in interbench; a text with more is not one of its logs.
const MOST_NAMES: usize = 64;

#[derive(Debug, Default)]
pub(super) struct Run {
    pub(super) loops_per_ms: Option<u64>,
    /// Length of a cell, s.
    pub(super) seconds: Option<u64>,
    pub(super) kernel: Option<String>,
    /// Local time as `YYYYMMDDhhmm`.
    pub(super) datestamp: Option<String>,
    pub(super) comment: Option<String>,
    pub(super) processors: Option<u64>,
    pub(super) by_machmeter: bool,
    pub(super) blocks: Vec<Block>,
    /// (task, load) of rows that were begun but have no figures.
    pub(super) unfinished: Vec<(String, String)>,
}

/// One table: a task under its loads.
#[derive(Debug)]
pub(super) struct Block {
    pub(super) task: String,
    pub(super) real_time: bool,
    pub(super) nice: Option<i32>,
    pub(super) load_nice: Option<i32>,
    layout: Option<Layout>,
    pub(super) rows: Vec<Row>,
}

/// Layout of the rows of a table, from its heading.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Layout {
    unit_ns: f64,
    deadlines: bool,
    /// The fork: a median comes before the maximum, in columns that can touch.
    aeolio: bool,
}

/// A row. Times in ns, shares as fractions; not finite if the program printed no number.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row {
    pub(super) load: String,
    pub(super) mean: Printed,
    pub(super) spread: Printed,
    pub(super) max_ns: f64,
    pub(super) median_ns: Option<f64>,
    pub(super) desired_cpu: f64,
    pub(super) deadlines_met: Option<f64>,
}

/// A time with half a unit of its last printed digit, both ns.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Printed {
    pub(super) ns: f64,
    pub(super) half_step_ns: f64,
}

impl Run {
    pub(super) fn rows(&self) -> usize {
        self.blocks.iter().map(|b| b.rows.len()).sum()
    }
}

impl Block {
    /// True if "SD" is the root mean square, as in all versions but the fork.
    pub(super) fn spread_is_rms(&self) -> bool {
        self.layout.is_some_and(|l| !l.aeolio)
    }
}

/// True if the text has a heading of interbench's tables.
pub(super) fn has_table(text: &str) -> bool {
    text.lines().any(|l| title(l).is_some()) && text.lines().any(|l| heading(l).is_some())
}

/// The runs of a log, to which the program appends.
/// Errors: an invalid row, with its line; a log with more names than interbench has.
pub(super) fn parse(file: &SourceFile) -> Result<Vec<Run>> {
    let (mut runs, mut run) = (Vec::new(), Run::default());
    let mut in_table = false;
    let last = file.text.lines().count();
    for (i, line) in file.text.lines().map(str::trim_end).enumerate() {
        if let Some(block) = title(line) {
            in_table = true;
            if run.blocks.iter().any(|b| b.task == block.task) {
                runs.push(std::mem::take(&mut run));
            }
            run.blocks.push(block);
        } else if line.is_empty() {
            in_table = false;
        } else if !in_table {
            preamble(line, &mut run, &mut runs);
        } else if let Some(layout) = heading(line) {
            if let Some(b) = run.blocks.last_mut() {
                b.layout = Some(layout);
            }
        } else {
            let complete = i + 1 < last || file.text.ends_with('\n');
            row(line, complete, &mut run)
                .map_err(|what| file.fault_at(i + 1, format!("found {:?}, {what}", shortened(line))))?;
        }
    }
    runs.push(run);
    let most = runs.iter().flat_map(|r| r.blocks.iter().map(|b| b.rows.len()).chain([r.blocks.len()])).max();
    let too_many = || file.fault(format!("more than {MOST_NAMES} tasks or loads: not a log of interbench"));
    sure(most.unwrap_or(0) <= MOST_NAMES, too_many)?;
    Ok(runs)
}

/// `--- Benchmarking simulated cpu of Audio real time in the presence of simulated nice 5 ---`
fn title(line: &str) -> Option<Block> {
    let text = line.strip_prefix("--- Benchmarking ")?;
    let text = text.strip_prefix("simulated cpu of ").unwrap_or(text);
    let (task, load) = text.split_once(" in the presence of ")?;
    let mut words = task.split_whitespace();
    let name = words.next()?;
    let how: Vec<&str> = words.collect();
    Some(Block {
        task: name.to_lowercase(),
        real_time: how.starts_with(&["real", "time"]),
        nice: nice(&how),
        load_nice: nice(&load.split_whitespace().collect::<Vec<_>>()),
        layout: None,
        rows: Vec::new(),
    })
}

fn nice(words: &[&str]) -> Option<i32> {
    let at = words.iter().position(|w| *w == "nice")?;
    words.get(at + 1)?.parse().ok().filter(|n| (-20..=19).contains(n))
}

fn heading(line: &str) -> Option<Layout> {
    if !line.contains("Latency +/- SD") {
        return None;
    }
    // Under -r the fork prints its own clock units of 100 ns.
    let units = [
        ("SD (ms)", 1e6, false),
        ("SD (us)", 1e3, false),
        ("max [us]", 1e3, true),
        ("max [100]", 100.0, true),
    ];
    let fits =
        |(unit, _, aeolio): &(&str, f64, bool)| line.contains(unit) && (!aeolio || line.contains("median"));
    let (_, unit_ns, aeolio) = units.into_iter().find(fits)?;
    Some(Layout { unit_ns, deadlines: line.to_lowercase().contains("deadlines met"), aeolio })
}

fn preamble(line: &str, run: &mut Run, runs: &mut Vec<Run>) {
    let number = |text: &str| text.split_whitespace().next().and_then(|w| w.parse::<u64>().ok());
    let using = line.strip_prefix("Using ").filter(|r| r.contains(" loops per ms"));
    let load = line.strip_prefix("Load set to ");
    let kernel = line.strip_prefix("Benchmarking kernel ");
    let is_used = !run.blocks.is_empty() || run.loops_per_ms.is_some();
    if (using.is_some() || load.is_some()) && is_used || kernel.is_some() && run.kernel.is_some() {
        runs.push(std::mem::take(run));
    }
    if let Some(rest) = using {
        run.loops_per_ms = number(rest);
        run.seconds = rest.split_once("load for ").and_then(|(_, r)| number(r));
    } else if let Some(rest) = load {
        run.processors = number(rest);
    } else if let Some(rest) = kernel {
        let (kernel, date) = rest.split_once(" at datestamp ").unwrap_or((rest, ""));
        run.kernel = Some(kernel.trim().to_owned());
        run.datestamp = Some(date.trim().to_owned()).filter(|d| !d.is_empty());
    } else if let Some(rest) = line.strip_prefix("Comment: ") {
        run.comment = Some(rest.to_owned());
    } else if line.starts_with(OUR_MARK) {
        run.by_machmeter = true;
    }
}

/// Parses a row of the current table. `complete` is false for a last line without a line end.
fn row(line: &str, complete: bool, run: &mut Run) -> Result<(), String> {
    let Some(block) = run.blocks.last_mut() else { return Ok(()) };
    let Some(layout) = block.layout else {
        return Err("expected the heading of the table (Load, Latency +/- SD, ...)".to_owned());
    };
    let Some(load) = line.split_whitespace().next().filter(|_| !line.starts_with(char::is_whitespace)) else {
        return Ok(());
    };
    let load = load.to_lowercase();
    if line.split_whitespace().count() == 1 {
        run.unfinished.push((block.task.clone(), load));
        return Ok(());
    }
    let read = if layout.aeolio { aeolio_row(line, layout) } else { plain_row(line, layout) };
    match read {
        // Its last figure may lack digits.
        _ if !complete => run.unfinished.push((block.task.clone(), load)),
        Some(_) if block.rows.iter().any(|r| r.load == load) => {
            return Err(format!("a second row of load {load} in one table"));
        }
        Some(row) => block.rows.push(Row { load, ..row }),
        None => {
            let columns = if layout.deadlines { "" } else { " (no deadlines)" };
            return Err(format!("expected a load and the figures named in the table's heading{columns}"));
        }
    }
    Ok(())
}

/// `None <tab> 0.4 +/- 2.3 22.7 100 98.5`. Under `-r`, a long SD and a long maximum touch; both have one decimal.
fn plain_row(line: &str, layout: Layout) -> Option<Row> {
    let mut words: Vec<&str> = line.split_whitespace().skip(1).collect();
    if words.len() == 4 + usize::from(layout.deadlines) {
        let glued = *words.get(2)?;
        let (first, second) = glued.split_at_checked(glued.find('.')? + 2)?;
        words.splice(2..3, [first, second]);
    }
    let [mean, "+/-", sd, max, desired, ref met @ ..] = words[..] else { return None };
    figures([mean, sd, max, desired], met, layout)
}

/// A row from these words; the last one is the share of deadlines met, if there is one.
fn figures([mean, sd, max, desired]: [&str; 4], met: &[&str], layout: Layout) -> Option<Row> {
    if met.len() != usize::from(layout.deadlines) {
        return None;
    }
    let met = met.iter().map(|met| Some(number(met)? / 100.0)).collect::<Option<Vec<f64>>>()?;
    Some(Row {
        load: String::new(),
        mean: printed(mean, layout.unit_ns)?,
        spread: printed(sd, layout.unit_ns)?,
        max_ns: number(max)? * layout.unit_ns,
        median_ns: None,
        desired_cpu: number(desired)? / 100.0,
        deadlines_met: met.first().copied(),
    })
}

/// The fork's columns: SD in at least 8 characters, median in 4, maximum in at least 5, which can touch.
fn aeolio_row(line: &str, layout: Layout) -> Option<Row> {
    let (before, after) = line.split_once(" +/- ")?;
    let mean = before.split_whitespace().nth(1)?;
    let sd = after.split_whitespace().next()?;
    let rest = after.get(sd.len().max(8)..)?;
    let median = rest.get(..4)?.trim();
    let words: Vec<&str> = rest.get(4..)?.split_whitespace().collect();
    let [max, desired, ref met @ ..] = words[..] else { return None };
    // The last bucket of its histogram, 1000, includes everything beyond.
    let median_ns = Some(number(median)?).filter(|m| *m < 1000.0).map(|m| m * 100.0);
    Some(Row { median_ns, ..figures([mean, sd, max, desired], met, layout)? })
}

/// A number as printed by C, including `nan` and `-nan`.
fn number(text: &str) -> Option<f64> {
    if text.trim_start_matches('-').starts_with("nan") { Some(f64::NAN) } else { text.parse().ok() }
}

fn printed(text: &str, unit_ns: f64) -> Option<Printed> {
    let value = number(text)?;
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let decimals = mantissa.split_once('.').map_or(0, |(_, d)| d.len() as i32);
    let exponent: i32 = exponent.parse().ok().filter(|e: &i32| e.abs() < 300)?;
    Some(Printed { ns: value * unit_ns, half_step_ns: 0.5 * 10f64.powi(exponent - decimals) * unit_ns })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Layout = Layout { unit_ns: 1e6, deadlines: true, aeolio: false };
    const FORK: Layout = Layout { unit_ns: 1e3, deadlines: true, aeolio: true };

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-9 * b.abs()
    }

    #[test]
    fn titles_carry_policy_and_nice() {
        for (text, told) in [
            (
                "simulated cpu of Audio real time in the presence of simulated nice 5",
                ("audio", true, None, Some(5)),
            ),
            ("simulated cpu of X nice -5 in the presence of simulated", ("x", false, Some(-5), None)),
            ("Video in the presence of loads", ("video", false, None, None)),
        ] {
            let b = title(&format!("--- Benchmarking {text} ---")).unwrap();
            assert_eq!((b.task.as_str(), b.real_time, b.nice, b.load_nice), told);
        }
        assert!(title("--- Benchmarking ---").is_none());
    }

    #[test]
    fn rows_of_all_versions_are_read() {
        let r = plain_row("Video\t   11.7 +/- 11.7        1815\t\t89.6\t       62.7", PLAIN).unwrap();
        assert!(
            near(r.mean.ns, 11.7e6) && near(r.mean.half_step_ns, 5e4) && near(r.max_ns, 1.815e9),
            "{r:?}"
        );
        assert!(near(r.desired_cpu, 0.896) && near(r.deadlines_met.unwrap(), 0.627), "{r:?}");
        let r = plain_row("None   0.4 +/- 2.3       22.7   100   98.5", PLAIN).unwrap();
        assert!(near(r.spread.ns, 2.3e6) && near(r.max_ns, 22.7e6), "{r:?}");
        let touching = "Burn\t12345.6 +/- 123456.7234567.8\t\t97.9\t       36.5";
        let r = plain_row(touching, Layout { unit_ns: 1e3, ..PLAIN }).unwrap();
        assert!(near(r.spread.ns, 123_456_700.0) && near(r.max_ns, 234_567_800.0), "{r:?}");
        let nan = plain_row("Burn\t   nan +/- -nan       0.0\t\t   0\t          0", PLAIN).unwrap();
        assert!(nan.mean.ns.is_nan() && nan.spread.ns.is_nan());
        assert!(plain_row("Burn\t 1.0 +/- 2.0  3.0\t\t4", PLAIN).is_none());
        assert!(plain_row("Gaming words that say nothing", PLAIN).is_none());
    }

    #[test]
    fn the_forks_touching_columns_are_told_apart() {
        let r = aeolio_row("Burn\t  90.6 +/- 1234.5    2534327\t\t97.9\t     36.5", FORK).unwrap();
        assert!(near(r.spread.ns, 1_234_500.0) && near(r.max_ns, 34_327_000.0), "{r:?}");
        assert_eq!(r.median_ns, Some(2500.0));
        let r = aeolio_row("None\t   2.5 +/- 3.4     1000   99\t\t 100\t      100", FORK).unwrap();
        assert_eq!((r.median_ns, r.deadlines_met), (None, Some(1.0)));
        let long = aeolio_row("Burn\t 99999.9 +/- 1.2346e+05  25 3432\t\t97.9\t     36.5", FORK).unwrap();
        assert!(near(long.spread.ns, 123_460_000.0) && near(long.max_ns, 3_432_000.0), "{long:?}");
    }
}
