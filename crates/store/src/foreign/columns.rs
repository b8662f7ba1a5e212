//! Parses lines of numbers into table columns.

use machmeter_data::{Column, Table, Unit, Values};

use super::{Imported, Input, Result, SourceFile, StoreError, codes, sure};

/// A number in a text file. Foreign files hold times, durations and counts, so negative ones are rejected.
pub(super) trait Cell: Copy {
    fn parse(text: &str) -> Option<Self>;
}
impl Cell for i64 {
    fn parse(text: &str) -> Option<Self> {
        text.parse().ok().filter(|v| *v >= 0)
    }
}
impl Cell for f64 {
    fn parse(text: &str) -> Option<Self> {
        text.parse().ok().filter(|v: &Self| v.is_finite() && *v >= 0.0)
    }
}

/// The rows of a file with their line numbers.
pub(super) struct Rows<T, const N: usize> {
    pub(super) cells: Vec<[T; N]>,
    pub(super) lines: Vec<usize>,
    /// True if the last line had no line end and was left out.
    pub(super) cut: bool,
}

impl<T: Copy, const N: usize> Rows<T, N> {
    pub(super) fn column(&self, i: usize) -> Vec<T> {
        self.cells.iter().map(|r| r[i]).collect()
    }
}

/// Reads rows of exactly N numbers; skips empty lines and lines that start with `#`.
/// Errors: the first line of any other form, or a file without rows.
pub(super) fn rows<T: Cell, const N: usize>(file: &SourceFile, expected: &str) -> Result<Rows<T, N>> {
    let row = |text: &str| -> Option<[T; N]> {
        text.split_whitespace().map(T::parse).collect::<Option<Vec<T>>>()?.try_into().ok()
    };
    let mut found = Rows { cells: Vec::new(), lines: Vec::new(), cut: false };
    for (i, line) in file.text.lines().enumerate() {
        if !passed_over(line) {
            found.cells.push(row(line).ok_or_else(|| unexpected(file, i, line, expected))?);
            found.lines.push(i + 1);
        }
    }
    // A number without a line end may lack its last digits.
    let complete = file.text.ends_with('\n') || found.lines.last() != Some(&file.text.lines().count());
    if !complete && found.cells.len() > 1 {
        found.cells.pop();
        found.lines.pop();
        found.cut = true;
    }
    Ok(found)
}

pub(super) fn passed_over(line: &str) -> bool {
    line.trim().is_empty() || line.trim_start().starts_with('#')
}

/// The error for an unexpected line, counted from 0.
pub(super) fn unexpected(file: &SourceFile, line: usize, text: &str, expected: &str) -> StoreError {
    file.fault_at(line + 1, format!("found {:?}, expected {expected}", shortened(text.trim())))
}

/// The beginning of a text, short enough for an error line.
pub(super) fn shortened(text: &str) -> String {
    if text.chars().count() > 40 {
        text.chars().take(37).chain("...".chars()).collect()
    } else {
        text.to_owned()
    }
}

/// The rows of a non-empty file, with a warning if it ended within a line.
pub(super) fn samples<T: Cell, const N: usize>(
    file: &SourceFile,
    expected: &str,
    to: &mut Imported,
) -> Result<Rows<T, N>> {
    let found = rows(file, expected)?;
    sure(!found.cells.is_empty(), || file.fault("no samples in it"))?;
    warn_if_cut(found.cut, file, to);
    Ok(found)
}

/// Warns about a file that ended within a line.
pub(super) fn warn_if_cut(cut: bool, file: &SourceFile, to: &mut Imported) {
    if cut {
        codes::warn(to, codes::CUT_FILE, format!("{} ends in the middle of a line", file.name()));
    }
}

/// Counts as 32-bit numbers.
pub(super) fn counts(values: &[i64], lines: &[usize], file: &SourceFile) -> Result<Vec<i32>> {
    let wrong = |v: &i64, line| file.fault_at(line, format!("{v} is not a count of one window (above 2^31)"));
    let count = |(v, line): (&i64, &usize)| i32::try_from(*v).map_err(|_| wrong(v, *line));
    values.iter().zip(lines).map(count).collect()
}

/// A whole number at the end of `text` after `separator`: `x_3` or `x.3`.
pub(super) fn number_after(text: &str, separator: char) -> Option<(&str, i32)> {
    let (before, digits) = text.rsplit_once(separator)?;
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    Some((before, digits.parse().ok()?))
}

/// Adds a table; its columns have equal length.
pub(super) fn add_table(out: &mut Imported, name: &str, columns: Vec<Column>, notes: &[(&str, String)]) {
    let notes = notes.iter().map(|(k, v)| ((*k).to_owned(), v.clone())).collect();
    out.tables.push(Table { name: name.to_owned(), notes, columns });
}

/// Adds gaps as a table, in order of CPU and start.
pub(super) fn add_gaps(out: &mut Imported, mut gaps: Vec<(i32, i64, i64)>, notes: &[(&str, String)]) {
    gaps.sort_unstable();
    let mut all = Samples::default();
    for (cpu, start, end) in gaps {
        all.add(cpu, [start], vec![end]);
    }
    all.into_table(out, "noise_gaps", [("start_ticks", Unit::Ticks), ("end_ticks", Unit::Ticks)], notes);
}

/// Collects samples of all CPUs, two numbers each.
#[derive(Default)]
pub(super) struct Samples<T> {
    cpu: Vec<i32>,
    pub(super) first: Vec<i64>,
    pub(super) second: Vec<T>,
}

/// Columns of windows, and of pieces of work.
pub(super) const WINDOWS: [(&str, Unit); 2] = [("start_ticks", Unit::Ticks), ("count", Unit::Count)];
pub(super) const WORK: [(&str, Unit); 2] = [("index", Unit::Count), ("duration_ticks", Unit::Ticks)];

impl<T> Samples<T>
where
    Values: From<Vec<T>>,
{
    pub(super) fn add(&mut self, cpu: i32, first: impl IntoIterator<Item = i64>, second: Vec<T>) {
        self.first.extend(first);
        self.second.extend(second);
        self.cpu.resize(self.second.len(), cpu);
    }

    /// Adds them as a table.
    pub(super) fn into_table(
        self,
        out: &mut Imported,
        name: &str,
        [first, second]: [(&str, Unit); 2],
        notes: &[(&str, String)],
    ) {
        let columns = vec![
            Column::new("cpu", Unit::Count, self.cpu),
            Column::new(first.0, first.1, self.first),
            Column::new(second.0, second.1, self.second),
        ];
        add_table(out, name, columns, notes);
    }
}

/// The least number; 0 without any.
pub(super) fn least(numbers: &[i64]) -> i64 {
    numbers.iter().copied().min().unwrap_or(0)
}

/// Adds the thread or CPU of a file to those of the run.
pub(super) fn add_cpu(cpus: &mut Vec<i32>, number: i32, what: &str, file: &SourceFile) -> Result<()> {
    let second = || file.fault(format!("a second file for {what} {number}; read one run at a time"));
    sure(!cpus.contains(&number), second)?;
    cpus.push(number);
    Ok(())
}

/// True if there are files and all of them fit.
pub(super) fn all(input: &Input, fits: impl Fn(&SourceFile) -> bool) -> bool {
    !input.files.is_empty() && input.files.iter().all(fits)
}

/// A list of numbers as a note: `0,1,3`.
pub(super) fn list(numbers: &[i32]) -> String {
    numbers.iter().map(i32::to_string).collect::<Vec<_>>().join(",")
}
