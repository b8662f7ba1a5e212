//! Costs and laws of operations as a table of texts, that of measured and of simulated ranks alike.

use std::collections::BTreeMap;

use super::{Law, LawError, Segment};

/// The size whose cost stands in the table, bytes.
pub const SHOWN: u64 = 8;
/// Headings of the columns after the name.
pub const COLUMNS: [&str; 6] = ["time (us)", "at 8 B (us)", "off", "Q", "isolated (us)", "bytes"];
/// The same on the page, and where its columns begin.
const ON_PAGE: [&str; 7] = ["operation", "time (us)", "at 8 B", "off", "Q", "isolated", "bytes"];
const STARTS: [usize; 7] = [0, 15, 39, 52, 58, 66, 75];

/// What an operation costs at one number of ranks and one size, ns.
#[derive(Debug, Clone, PartialEq)]
#[allow(clippy::struct_field_names, reason = "units")]
pub struct At {
    /// Cost.
    pub ns: f64,
    /// Lower end of its interval.
    pub low_ns: f64,
    /// Upper end of its interval.
    pub high_ns: f64,
    /// Standard error.
    pub error_ns: f64,
    /// Degrees of freedom of what launches differ by in the error; infinite where that is not known.
    pub freedom: f64,
    /// Samples behind it.
    pub n: u64,
    /// Launches behind it; 0 where nothing was launched.
    pub launches: usize,
}

/// Costs by ranks and bytes.
pub type Costs = BTreeMap<(u32, u64), At>;

/// What is known of an operation.
#[derive(Debug)]
pub struct Entry<'a> {
    /// Name.
    pub name: &'a str,
    /// One after the other.
    pub costs: &'a Costs,
    /// Each by itself.
    pub isolated: &'a Costs,
    /// Laws of `costs`, in us.
    pub laws: &'a Result<Vec<Law>, LawError>,
    /// Why there are no costs at all.
    pub refused: Option<&'a str>,
    /// Whether it has one size alone, so that it needs no reason for having no law.
    pub has_one_size: bool,
}

/// Rows of name and cells, and why there is no Q or no law.
#[derive(Debug, Default)]
pub struct Table {
    /// A row a law and range of sizes, or a cost where there is no law.
    pub rows: Vec<(String, [String; 6])>,
    /// Each once.
    pub reasons: Vec<String>,
}

/// Three decimals below 10 us, one above.
fn us(ns: f64) -> String {
    let us = ns / 1e3;
    let digits = if us < 10.0 { 3 } else { 1 };
    format!("{us:.digits$}")
}

fn with_interval(at: &At) -> String {
    format!("{} [{}, {}]", us(at.ns), us(at.low_ns), us(at.high_ns))
}

/// `0.152 [0.139, 0.166]` is 0.152 and the farther end of the interval.
fn short(cost: &str) -> String {
    let Some((value, interval)) = cost.split_once(" [") else { return cost.to_owned() };
    let number = |text: &str| text.trim_end_matches(']').trim().parse::<f64>().unwrap_or(f64::NAN);
    let ends = interval.split(',').map(|end| (number(end) - number(value)).abs());
    let digits = value.split_once('.').map_or(0, |(_, after)| after.len());
    format!("{value} \u{b1}{:.digits$}", ends.fold(0.0, f64::max))
}

/// The cost of the size that is shown, or of no bytes, of the fewest ranks or of the only ones.
fn shown(costs: &Costs, ranks: Option<u32>, from: u64, to: u64) -> Option<&At> {
    let of =
        || costs.iter().filter(move |((p, d), _)| ranks.is_none_or(|r| r == *p) && (from..=to).contains(d));
    let none = || of().next().filter(|((_, d), _)| *d == 0);
    of().find(|((_, d), _)| *d == SHOWN).or_else(none).map(|(_, at)| at)
}

fn sizes(law: &Law, s: &Segment) -> String {
    let bytes = |b: u64| match b {
        b if b > 0 && b.is_multiple_of(1 << 20) => format!("{}M", b >> 20),
        b if b > 0 && b.is_multiple_of(1 << 10) => format!("{}K", b >> 10),
        b => b.to_string(),
    };
    let is_first = law.segments.first().is_some_and(|first| first.from_bytes == s.from_bytes);
    let is_last = law.segments.last().is_some_and(|last| last.to_bytes == s.to_bytes);
    match (is_first, is_last) {
        (true, true) => "all".to_owned(),
        (true, false) => format!("< {}", bytes(s.to_bytes + 1)),
        (false, _) => format!("{} on", bytes(s.from_bytes)),
    }
}

impl Table {
    /// Of operations in their order.
    pub fn of<'a>(entries: impl IntoIterator<Item = Entry<'a>>) -> Self {
        let mut table = Self::default();
        for entry in entries {
            match entry.laws {
                Ok(laws) => laws.iter().for_each(|law| table.law(&entry, law, laws.len() > 1)),
                Err(why) => table.costs(&entry, why),
            }
        }
        table
    }

    fn reason(&mut self, why: String) {
        if !self.reasons.contains(&why) {
            self.reasons.push(why);
        }
    }

    fn law(&mut self, entry: &Entry<'_>, law: &Law, is_one_of_several: bool) {
        for (i, s) in law.segments.iter().enumerate() {
            let of = law.only_p.filter(|_| is_one_of_several).map_or(String::new(), |p| format!(", p = {p}"));
            let name = if i == 0 { format!("{}{of}", entry.name) } else { String::new() };
            let q = match &s.q {
                Ok(q) if *q < 0.001 => "< 0.001".to_owned(),
                Ok(q) => format!("{q:.2}"),
                Err(why) => {
                    self.reason(why.to_string());
                    "-".to_owned()
                }
            };
            let of = |costs, text: fn(&At) -> String| {
                shown(costs, law.only_p, s.from_bytes, s.to_bytes).map_or("-".to_owned(), text)
            };
            let cost = of(entry.costs, with_interval);
            let off = format!("{:.0} %", 100.0 * s.misfit);
            let alone = of(entry.isolated, |at| us(at.ns));
            self.rows.push((name, [s.chosen().text(), cost, off, q, alone, sizes(law, s)]));
        }
    }

    /// The costs themselves where they have no law.
    fn costs(&mut self, entry: &Entry<'_>, why: &LawError) {
        let none = || "-".to_owned();
        for (i, ((p, d), cost)) in entry.costs.iter().enumerate() {
            let name = if i == 0 { entry.name.to_owned() } else { String::new() };
            let isolated = entry.isolated.get(&(*p, *d)).map_or(String::new(), |at| us(at.ns));
            let several = entry.costs.keys().any(|k| k.0 != *p);
            let sizes = if several { format!("{d}, p = {p}") } else { d.to_string() };
            self.rows.push((name, [us(cost.ns), with_interval(cost), none(), none(), isolated, sizes]));
        }
        if entry.costs.is_empty() {
            let why = entry.refused.map_or_else(|| why.to_string(), str::to_owned);
            let mut cells: [String; 6] = std::array::from_fn(|_| String::new());
            cells[0] = why;
            self.rows.push((entry.name.to_owned(), cells));
        } else if !entry.has_one_size {
            self.reason(format!("{}: {why}", entry.name));
        }
    }

    /// Heading and rows in columns, and the reasons.
    pub fn lines(&self) -> Vec<String> {
        let line = |cells: [&str; 7]| {
            let mut line = String::new();
            for (text, start) in cells.into_iter().zip(STARTS) {
                // A long law takes from the room of the next cell.
                let gap = start.saturating_sub(line.chars().count()).max(usize::from(start > 0));
                line.extend(std::iter::repeat_n(' ', gap).chain(text.chars()));
            }
            line.trim_end().to_owned()
        };
        let rows = self.rows.iter().map(|(name, cells)| {
            let [a, b, c, d, e, f] = cells.each_ref().map(String::as_str);
            line([name, a, &short(b), c, d, e, f])
        });
        [line(ON_PAGE)].into_iter().chain(rows).chain(self.reasons.iter().cloned()).collect()
    }
}
