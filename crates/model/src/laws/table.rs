//! Costs and laws of operations as a table of texts, that of measured and of simulated ranks alike.

use std::collections::BTreeMap;

use super::{Law, LawError, Prediction, Segment};

/// The size whose cost stands in the table, bytes.
pub const SHOWN: u64 = 8;
/// Headings of the columns after the name.
pub const COLUMNS: [&str; 6] = ["bytes", "time (us)", "at 8 B (us)", "off", "Q", "isolated (us)"];
/// Headings on the page, where an operation has a line, and where its columns begin.
const ON_PAGE: [&str; 6] =
    ["operation", "at 8 B (us)", "isolated", "small messages (us)", "large, from bytes on", "Q"];
const STARTS: [usize; 6] = [0, 15, 28, 37, 58, 81];
/// Columns that the page has beside its heading.
const WIDTH: usize = 86;
/// Misfit that rounds to a percent.
const LEAST_MISFIT: f64 = 0.005;

/// What an operation costs at one number of ranks and one size, its interval and its standard error, ns.
#[derive(Debug, Clone, PartialEq)]
#[allow(clippy::struct_field_names, reason = "units")]
pub struct At {
    pub ns: f64,
    pub low_ns: f64,
    pub high_ns: f64,
    pub error_ns: f64,
    /// Degrees of freedom of what launches differ by in the error; infinite where that is not known.
    pub freedom: f64,
    pub n: u64,
    /// Launches behind it; 0 where nothing was launched.
    pub launches: usize,
}

/// Costs by ranks and bytes.
pub type Costs = BTreeMap<(u32, u64), At>;

#[derive(Debug)]
pub struct Found {
    pub name: &'static str,
    /// In words: the time of what its cost is.
    pub what: &'static str,
    /// One after the other.
    pub costs: Costs,
    /// Each by itself.
    pub isolated: Costs,
    /// Laws of `costs`, in us.
    pub laws: Result<Vec<Law>, LawError>,
    /// Why there are no costs at all.
    pub refused: Option<String>,
    /// Why the first of them that is not known is not, where there are costs.
    pub isolated_refused: Option<String>,
    /// Whether it has one size alone, so that it needs no reason for having no law.
    pub has_one_size: bool,
}

impl Found {
    /// Cost by the law that holds for so many ranks, us.
    pub fn predict(&self, ranks: u32, bytes: u64) -> Option<Prediction> {
        self.laws.as_ref().ok()?.iter().find_map(|law| law.predict(ranks, bytes))
    }
}

/// Rows of name and cells, and why there is no Q or no law.
#[derive(Debug, Default)]
pub struct Table {
    /// A row a law and range of sizes, or a cost where there is no law.
    pub rows: Vec<(String, [String; 6])>,
    /// Each once.
    pub reasons: Vec<String>,
    /// A line an operation.
    brief: Vec<[String; 6]>,
    /// Operations without a cost, or without one by themselves, by the reason.
    refused: Vec<(String, Vec<String>)>,
    /// Ranges of sizes that the lines leave out.
    left_out: usize,
    /// The law that is farthest from one of its points, and by how much.
    farthest: Option<(f64, String)>,
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
fn shown(costs: &Costs, law: &Law, s: &Segment, text: fn(&At) -> String) -> String {
    let is_of =
        |p: u32, d: u64| law.only_p.is_none_or(|r| r == p) && (s.from_bytes..=s.to_bytes).contains(&d);
    let of = || costs.iter().filter(|((p, d), _)| is_of(*p, *d));
    let none = || of().next().filter(|((_, d), _)| *d == 0);
    of().find(|((_, d), _)| *d == SHOWN).or_else(none).map_or("-".to_owned(), |(_, at)| text(at))
}

/// A size as options give it.
fn bytes(b: u64) -> String {
    match b {
        b if b > 0 && b.is_multiple_of(1 << 20) => format!("{}M", b >> 20),
        b if b > 0 && b.is_multiple_of(1 << 10) => format!("{}K", b >> 10),
        b => b.to_string(),
    }
}

fn sizes(law: &Law, s: &Segment) -> String {
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
    pub fn of(found: &[Found]) -> Self {
        let mut table = Self::default();
        for entry in found {
            match &entry.laws {
                Ok(laws) => laws.iter().for_each(|law| table.law(entry, law, laws.len() > 1)),
                Err(why) => table.costs(entry, why),
            }
            if let Some(why) = &entry.isolated_refused {
                table.refuse(format!("{} isolated", entry.name), why);
            }
        }
        table
    }

    fn reason(&mut self, why: String) {
        if !self.reasons.contains(&why) {
            self.reasons.push(why);
        }
    }

    fn refuse(&mut self, name: String, why: &str) {
        match self.refused.iter_mut().find(|(reason, _)| reason == why) {
            Some((_, names)) => names.push(name),
            None => self.refused.push((why.to_owned(), vec![name])),
        }
    }

    fn law(&mut self, entry: &Found, law: &Law, is_one_of_several: bool) {
        let of = law.only_p.filter(|_| is_one_of_several).map_or(String::new(), |p| format!(", p = {p}"));
        let name = format!("{}{of}", entry.name);
        for (i, s) in law.segments.iter().enumerate() {
            if let Err(why) = &s.q {
                self.reason(why.to_string());
            }
            let of = |costs: &Costs, text: fn(&At) -> String| shown(costs, law, s, text);
            let sizes = sizes(law, s);
            if s.misfit > LEAST_MISFIT.max(self.farthest.as_ref().map_or(0.0, |f| f.0)) {
                self.farthest = Some((s.misfit, format!("{name} (bytes: {sizes})")));
            }
            let off = format!("{:.0} %", 100.0 * s.misfit);
            let (cost, isolated) = (of(&entry.costs, with_interval), of(&entry.isolated, |at| us(at.ns)));
            let cells = [sizes, s.chosen().text(), cost, off, q(s), isolated];
            self.rows.push((if i == 0 { name.clone() } else { String::new() }, cells));
        }
        self.brief_law(entry, law, name);
    }

    /// The law of the size that is shown, and that of the largest.
    fn brief_law(&mut self, entry: &Found, law: &Law, name: String) {
        let holds = |s: &&Segment| (s.from_bytes..=s.to_bytes).contains(&SHOWN);
        let Some(small) = law.segments.iter().find(holds).or(law.segments.first()) else { return };
        let large = law.segments.last().filter(|s| s.from_bytes > small.from_bytes);
        let of = |costs: &Costs, text: fn(&At) -> String| shown(costs, law, small, text);
        let least = law.segments.iter().filter_map(|s| s.q.as_ref().ok().copied()).min_by(f64::total_cmp);
        let least = least.map_or("-".to_owned(), |q| format!("{q:.2}"));
        let large_text =
            large.map_or(String::new(), |s| format!("{}, {}+", s.chosen().text(), bytes(s.from_bytes)));
        self.left_out += law.segments.len() - 1 - usize::from(large.is_some());
        let cost = of(&entry.costs, |at| short(&with_interval(at)));
        let isolated = of(&entry.isolated, |at| us(at.ns));
        self.brief.push([name, cost, isolated, small.chosen().text(), large_text, least]);
    }

    /// The costs themselves where they have no law.
    fn costs(&mut self, entry: &Found, why: &LawError) {
        let none = || "-".to_owned();
        for (i, ((p, d), cost)) in entry.costs.iter().enumerate() {
            let name = if i == 0 { entry.name.to_owned() } else { String::new() };
            let isolated = entry.isolated.get(&(*p, *d)).map_or(String::new(), |at| us(at.ns));
            let several = entry.costs.keys().any(|k| k.0 != *p);
            let of = if several { format!(", p = {p}") } else { String::new() };
            let sizes = format!("{d}{of}");
            let of = if entry.has_one_size { of } else { format!("{of}, {d} B") };
            let (brief, cost_text) = (format!("{}{of}", entry.name), short(&with_interval(cost)));
            self.brief.push([brief, cost_text, isolated.clone(), String::new(), String::new(), none()]);
            self.rows.push((name, [sizes, us(cost.ns), with_interval(cost), none(), none(), isolated]));
        }
        if entry.costs.is_empty() {
            let why = entry.refused.clone().unwrap_or_else(|| why.to_string());
            self.refuse(entry.name.to_owned(), &why);
            self.rows.push((entry.name.to_owned(), ["", &why, "", "", "", ""].map(str::to_owned)));
        } else if !entry.has_one_size {
            self.reason(format!("{}: {why}", entry.name));
        }
    }

    /// Heading and a line an operation in columns; what has no cost, the law that fits worst, and the reasons.
    pub fn lines(&self) -> Vec<String> {
        let line = |cells: [&str; 6]| {
            let mut line = String::new();
            for (text, start) in cells.into_iter().zip(STARTS) {
                // A long law takes from the room of the next cell.
                let gap = start.saturating_sub(line.chars().count()).max(usize::from(start > 0));
                line.extend(std::iter::repeat_n(' ', gap).chain(text.chars()));
            }
            line.trim_end().to_owned()
        };
        let mut lines = Vec::new();
        if !self.brief.is_empty() {
            lines.push(line(ON_PAGE));
        }
        for cells in &self.brief {
            let [name, cost, isolated, small, large, q] = cells.each_ref().map(String::as_str);
            let one = line([name, cost, isolated, small, large, q]);
            if one.chars().count() <= WIDTH {
                lines.push(one);
            } else {
                lines.extend([line([name, cost, isolated, small, "", ""]), line(["", "", "", large, "", q])]);
            }
        }
        lines.extend(self.refused.iter().map(|(why, names)| format!("{}: {why}", names.join(", "))));
        let left_out = match self.left_out {
            0 => None,
            n => Some(format!(
                "Ranges of sizes in between that have laws of their own: {n} (-v, or the report)."
            )),
        };
        let farthest = self.farthest.as_ref().map(|(misfit, of)| {
            format!("Farthest from its law lies a cost of {of}: {:.0} %.", 100.0 * misfit)
        });
        lines.extend(left_out.into_iter().chain(farthest).chain(self.reasons.iter().cloned()));
        lines
    }
}

/// Goodness of fit; why there is none stands below the table.
fn q(s: &Segment) -> String {
    match s.q {
        Ok(q) if q < 0.001 => "< 0.001".to_owned(),
        Ok(q) => format!("{q:.2}"),
        Err(_) => "-".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Point, fit};
    use super::*;

    #[test]
    fn an_operation_has_a_line_with_the_laws_of_small_and_large_messages() {
        let sizes: Vec<u64> = (2..17).map(|i| 1 << i).collect();
        let us_of = |d: u64| {
            let (base, slope) =
                [(0.5, 0.001), (2.0, 0.0005), (9.0, 0.0001)][usize::from(d > 128) + usize::from(d > 4_096)];
            base + slope * d as f64
        };
        let point = |launch, d: &u64| {
            let value = us_of(*d) * (1.0 + 1e-4 * f64::from(launch));
            Point { p: 2, d: *d, launch, value, standard_error: 1e-4 * value }
        };
        let points: Vec<Point> = (0..3).flat_map(|l| sizes.iter().map(move |d| point(l, d))).collect();
        let at = |d: &u64| {
            let ns = 1e3 * us_of(*d);
            let (low_ns, high_ns) = (0.99 * ns, 1.02 * ns);
            ((2, *d), At { ns, low_ns, high_ns, error_ns: 0.01 * ns, freedom: 2.0, n: 9, launches: 3 })
        };
        let found = |name, costs, laws, refused: Option<&str>| Found {
            name,
            what: "",
            costs,
            isolated: Costs::new(),
            laws,
            refused: refused.map(str::to_owned),
            isolated_refused: None,
            has_one_size: false,
        };
        let none =
            |name| found(name, Costs::new(), Err(LawError::Empty), Some("not reached in the time given"));
        let bcast = found("bcast", sizes.iter().map(at).collect(), fit(&points), None);
        let table = Table::of(&[bcast, none("scan"), none("get")]);
        let lines = table.lines();
        assert!(
            lines[1].starts_with("bcast          0.508 \u{b1}0.010 -        0.5000 + 0.001"),
            "{lines:?}"
        );
        assert!(lines[2].contains("*d, 8K+ ") && lines[2].ends_with("1.00"), "{lines:?}");
        assert_eq!(lines[3], "scan, get: not reached in the time given");
        assert!(lines[4].contains("of their own: 1 ("), "{lines:?}");
        assert_eq!(table.rows.len(), 3 + 2, "all ranges are in the table: {table:?}");
    }
}
