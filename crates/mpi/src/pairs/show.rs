//! From rows of pairs to figures, a table, a matrix and names.

use std::collections::{BTreeMap, BTreeSet};

use machmeter_data::metric::{Params as Keys, params};
use machmeter_data::quantity::{Unit, human};
use machmeter_data::record::Finding;
use machmeter_data::shape::{Axis, Cell, CostTable, Matrix, TableColumn, TableRow};
use machmeter_data::{Dataset, Interval, Metric, Shape};
use machmeter_engine::Analysis;
use machmeter_engine::cost::estimate::LEVEL;
use machmeter_engine::cost::{Row, Rows};
use machmeter_model::laws::table::At;
use machmeter_stats::quantile::{median, quantile, quantile_interval, sorted};

use super::slow::{Link, Slow, slow};
use super::{AT_ONCE, LINK, WAYS};
use crate::analyze::{ByLaunch, by_launch, launches_differ, method, metric, together};
use crate::cells::PART;
use crate::info::{LINK_LATENCY, PAIR_BANDWIDTH, PAIR_LATENCY, SLOW_PAIRS};
use crate::operations::STREAM;
use crate::run::MACHINES;
use crate::worker::About;

/// Slow ranks and links that are named.
const MOST_NAMED: usize = 16;
/// Ranks whose matrix is drawn: more make a picture of dots and a record of megabytes.
const MOST_DRAWN: usize = 256;

struct Pairs<'a> {
    ranks: usize,
    links: Vec<Link>,
    /// By pairs at once and bytes: half a round trip, and a byte of all streams together.
    latencies: BTreeMap<(u32, u64), At>,
    streams: BTreeMap<(u32, u64), At>,
    /// By rank; and their names, where they are known.
    machines: &'a [usize],
    names: Vec<String>,
}

/// Metrics, findings, pictures and, last of them, lines of the page; nothing where no pairs were asked for.
pub(crate) fn analyze(rows: &Rows, launches: &[About], library: &str) -> Option<(Analysis, Vec<String>)> {
    let own = |mode: &'static str| rows.part(PART).filter(move |r| r.text("mode") == mode);
    let ranks = usize::try_from(own(LINK).next()?.int("ranks")?).ok()?;
    let machines = launches.first().map_or(&[][..], |l| &l.machines);
    let at_once = |is_stream: bool| {
        let of = own(AT_ONCE).filter(|r| (r.operation == STREAM.name) == is_stream);
        let found: ByLaunch = by_launch(rows, of, "pairs", None).0;
        let between = launches_differ(&found);
        together(found, between)
    };
    let pairs = Pairs {
        ranks,
        links: links(rows, own(LINK), machines),
        latencies: at_once(false),
        streams: at_once(true),
        machines,
        names: rows.facts.get(&MACHINES).unwrap_or_default(),
    };
    let step_ns = rows.step_ticks.max(1) as f64 * rows.ns_per_tick() / 2.0;
    let found = slow(&pairs.links, ranks, step_ns);
    let mut out = Analysis { metrics: pairs.metrics(library), ..Analysis::default() };
    out.datasets = [Some(pairs.table()), pairs.matrix()].into_iter().flatten().collect();
    let finding = pairs.finding(found.as_deref());
    if finding.verdict == "present" {
        out.warnings.push(SLOW_PAIRS.note(finding.evidence.join("; ")));
    }
    let mut lines = pairs.lines();
    lines.push(finding.text.clone());
    lines.extend(finding.evidence.iter().map(|line| format!("  {line}")));
    out.findings.push(finding);
    Some((out, lines))
}

/// Means of launches; of the ends of intervals, too, so that they are no narrower than those of a launch.
fn links<'r>(rows: &Rows, of: impl Iterator<Item = &'r Row>, machines: &[usize]) -> Vec<Link> {
    let mut found: BTreeMap<[usize; 2], Vec<[f64; 5]>> = BTreeMap::new();
    for row in of {
        let rank = |name: &str| usize::try_from(row.int(name)?).ok();
        let way = |name: &str| row.extras.get(name).copied();
        let cost = rows.cost(row);
        if let (Some(from), Some(to), Some(known), [Some(there), Some(back), Some(off)]) =
            (rank("from"), rank("to"), cost.known(), WAYS.map(way))
        {
            found.entry([from, to]).or_default().push([known.value_ns, known.low_ns, there, back, off]);
        }
    }
    let link = |(ranks, of): ([usize; 2], Vec<[f64; 5]>)| {
        let mean = |i: usize| of.iter().map(|l| l[i]).sum::<f64>() / of.len() as f64;
        let is_near = machines.get(ranks[0]) == machines.get(ranks[1]);
        let (ns, low_ns, ways_ns, off_ns) = (mean(0), mean(1), [mean(2), mean(3)], mean(4));
        Link { ranks, ns, low_ns, ways_ns, off_ns, is_near }
    };
    found.into_iter().map(link).collect()
}

impl Pairs<'_> {
    /// `rank 17 (c04)`.
    fn name(&self, rank: usize) -> String {
        let of = |machine: &usize| match self.names.get(*machine) {
            Some(name) => format!(" ({name})"),
            None => format!(" (machine {machine})"),
        };
        let several = self.machines.iter().any(|m| *m > 0);
        let machine = self.machines.get(rank).filter(|_| several).map_or_else(String::new, of);
        format!("rank {rank}{machine}")
    }

    fn metrics(&self, library: &str) -> Vec<Metric> {
        let keys = |more: &[(&str, u64)]| -> Keys {
            let mut keys = params([("library", library.into()), ("ranks", self.ranks.into())]);
            keys.extend(more.iter().map(|(name, n)| ((*name).to_owned(), (*n).into())));
            keys
        };
        let of = |key: &(u32, u64)| keys(&[("pairs", u64::from(key.0)), ("size_bytes", key.1)]);
        let mut out: Vec<Metric> =
            self.latencies.iter().map(|(key, at)| metric(at, &PAIR_LATENCY, of(key))).collect();
        out.extend(self.streams.iter().map(|(key, at)| {
            let rate = |ns: f64| 1e9 / ns.max(f64::MIN_POSITIVE);
            let interval = Interval::new(LEVEL, rate(at.high_ns), rate(at.low_ns), method(at));
            let estimator = "mean of launches' medians";
            Metric::new(&PAIR_BANDWIDTH, of(key), rate(at.ns), estimator, at.n).with_ci(interval)
        }));
        let n = self.links.len();
        let values = sorted(&self.links.iter().map(|l| l.ns).collect::<Vec<f64>>());
        match values.ok().and_then(|v| Some((median(&v)?, v))) {
            None => {
                let why = "the time was over before any pair was measured";
                out.push(Metric::rejected(&LINK_LATENCY, keys(&[]), "median of pairs", why));
            }
            Some((middle, all)) => {
                let quantiles = [0.05, 0.95, 1.0].map(|p| (p, quantile(&all, p).unwrap_or(middle)));
                let interval = quantile_interval(&all, 0.5, LEVEL);
                let interval = interval.and_then(|i| Interval::new(LEVEL, i.low, i.high, "rank, of pairs"));
                let metric = Metric::new(&LINK_LATENCY, keys(&[]), middle, "median of pairs", n as u64);
                out.push(metric.with_quantiles(&quantiles).with_ci(interval));
            }
        }
        out
    }

    /// What so many pairs at once get: its cells, by number of pairs.
    fn at_once(&self) -> Vec<(String, [String; 2])> {
        let numbers: BTreeSet<u32> = self.latencies.keys().chain(self.streams.keys()).map(|k| k.0).collect();
        let of = |costs: &BTreeMap<(u32, u64), At>, pairs: u32, text: &dyn Fn(&At) -> String| {
            costs.iter().find(|(key, _)| key.0 == pairs).map_or("-".to_owned(), |(_, at)| text(at))
        };
        let cells = |pairs: u32| {
            let half = if pairs as usize == self.ranks / 2 { ", bisection" } else { "" };
            let (ns, rate) =
                (|ns| human(ns, Unit::Nanoseconds), |ns: f64| human(1e9 / ns, Unit::BytesPerSecond));
            let latency = |at: &At| format!("{} [{}, {}]", ns(at.ns), ns(at.low_ns), ns(at.high_ns));
            let stream = |at: &At| {
                let most = if at.low_ns > 0.0 { rate(at.low_ns) } else { "-".to_owned() };
                format!("{} [{}, {most}]", rate(at.ns), rate(at.high_ns))
            };
            let (a, b) = (of(&self.latencies, pairs, &latency), of(&self.streams, pairs, &stream));
            (format!("{pairs}{half}"), [a, b])
        };
        numbers.into_iter().map(cells).collect()
    }

    /// Sizes in words: of what latency and bandwidth are.
    fn sizes(&self) -> [String; 2] {
        let words = |bytes: u64| human(bytes as f64, Unit::Bytes).replace(".00 ", " ").replace(".0 ", " ");
        let size =
            |of: &BTreeMap<(u32, u64), At>| of.keys().next().map_or("-".to_owned(), |key| words(key.1));
        [size(&self.latencies), size(&self.streams)]
    }

    /// How many pairs there are, and what was left out.
    fn counted(&self) -> String {
        let (n, all) = (self.links.len(), self.ranks * self.ranks.saturating_sub(1) / 2);
        match all - n {
            0 if all == 1 => "1 pair".to_owned(),
            0 => format!("{all} pairs"),
            left => format!("{n} of {all} pairs ({left} without enough samples)"),
        }
    }

    fn lines(&self) -> Vec<String> {
        let [small, large] = self.sizes();
        let mut first = format!("{} of {} ranks in rounds of all", self.counted(), self.ranks);
        let values = sorted(&self.links.iter().map(|l| l.ns).collect::<Vec<f64>>()).unwrap_or_default();
        if let (Some(low), Some(middle), Some(high)) = (values.first(), median(&values), values.last()) {
            let [low, middle, high] = [*low, middle, *high].map(|ns| human(ns, Unit::Nanoseconds));
            let range = if values.len() > 1 { format!(", {low} to {high}") } else { String::new() };
            first.push_str(&format!(": half a round trip of {small} takes {middle}{range}"));
        }
        let wide = |a: &str, b: &str, c: &str| format!("{a:17}{b:31}{c}").trim_end().to_owned();
        let head =
            wide("pairs at once", &format!("half a round trip, {small}"), &format!("all streams, {large}"));
        let at_once = self.at_once();
        [first, head].into_iter().chain(at_once.iter().map(|(name, [a, b])| wide(name, a, b))).collect()
    }

    fn table(&self) -> Dataset {
        let [small, large] = self.sizes();
        let row =
            |(name, cells): (String, [String; 2])| TableRow { name, cells: cells.map(Cell::Text).into() };
        let rows = self.at_once().into_iter().map(row).collect();
        let columns = [format!("half a round trip, {small}"), format!("all streams together, {large}")];
        let columns = columns.map(|label| TableColumn::new(label, None)).into();
        let caption = "Random pairs of ranks that communicate at the same time, drawn again at each visit. A stream is 16 messages and an answer. If all ranks \
                       are in pairs, they form a bisection. Its bandwidth is the mean over random bisections.";
        let shape = Shape::CostTable(CostTable { columns, rows });
        Dataset::new("mpi.pairs", "Pairs of ranks at once", caption, shape)
    }

    fn matrix(&self) -> Option<Dataset> {
        if self.links.is_empty() || self.ranks > MOST_DRAWN {
            return None;
        }
        let mut values = vec![vec![None; self.ranks]; self.ranks];
        for l in &self.links {
            let [a, b] = l.ranks;
            (values[a][b], values[b][a]) = (Some(l.ns), Some(l.ns));
        }
        let names = || (0..self.ranks).map(|rank| rank.to_string()).collect::<Vec<String>>();
        let cell = Axis::log("half a round trip", Unit::Nanoseconds);
        let shape = Shape::Matrix(Matrix::named("rank", names(), names(), cell, values));
        let caption = format!("{}, measured in rounds in which all ranks communicate.", self.counted());
        Some(Dataset::new("mpi.links", "Latency of pairs of ranks", caption, shape))
    }

    fn finding(&self, found: Option<&[Slow]>) -> Finding {
        let (counted, ranks, all) = (self.counted(), self.ranks, found.unwrap_or_default());
        let of_ranks = all.iter().filter(|s| s.ranks.len() == 1).count();
        let of_links = all.len() - of_ranks;
        let (verdict, text) = match found {
            None => ("unknown", format!("{counted} of {ranks} ranks: too few to detect a slow rank.")),
            Some([]) => ("none_seen", format!("No rank is slow, and no link of {counted}.")),
            Some(_) => ("present", format!("Slow: {of_ranks} of {ranks} ranks, {of_links} of {counted}.")),
        };
        let evidence = all.iter().take(MOST_NAMED).map(|s| self.words(s)).collect();
        Finding { id: "mpi.slow_pairs".to_owned(), verdict: verdict.to_owned(), text, evidence }
    }

    fn words(&self, slow: &Slow) -> String {
        let name = |rank: &usize| self.name(*rank);
        let both: Vec<String> = slow.ranks.iter().map(name).collect();
        let way = match (&both[..], slow.ways) {
            (_, [Some(true), Some(true)]) => "in both directions".to_owned(),
            ([_], [Some(true), Some(false)]) => "in what it sends".to_owned(),
            ([_], [Some(false), Some(true)]) => "in what it receives".to_owned(),
            ([a, b], [Some(true), Some(false)]) => format!("from {a} to {b}"),
            ([a, b], [Some(false), Some(true)]) => format!("from {b} to {a}"),
            _ => "in which direction the clocks do not tell".to_owned(),
        };
        format!("{}: {:.1} times the median, {way}", both.join(" and "), slow.ratio)
    }
}
