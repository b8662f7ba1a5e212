//! Published tables, judged: what follows from their own rows beside what is printed, laws of counts, and what greatest values hide.

use machmeter_data::metric::params;
use machmeter_data::{Dataset, Metric};
use machmeter_engine::Analysis;
use machmeter_engine::cost::{Fact, Rows};
use machmeter_flow::Group;
use machmeter_flow::laws::broken;
use machmeter_flow::table::{Row, Table, least_tail, plain};
use serde::{Deserialize, Serialize};

use crate::info::{CONTRADICTS, EFFICIENCY, OVERHEAD, SHARE, TAIL};
use crate::show;

#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Published {
    pub(crate) graph: String,
    pub(crate) processor: String,
    pub(crate) table: Table,
    /// Shares of the overhead that the text claims, by group or in `total`, percent.
    pub(crate) claims: Vec<(String, f64)>,
}

pub(crate) const PUBLISHED: Fact<Vec<Published>> = Fact::named("graphs.published");

/// Printed digits: four of means, two behind the point of percentages.
const MEANS_OFF: f64 = 2e-3;
const PERCENT_OFF: f64 = 0.006;
/// Shares in the text are whole percentages.
const CLAIMS_OFF: f64 = 1.0;
/// Schedules that may be ready when counting begins or ends: no published graph has more.
const SLACK: u64 = 16;
/// Calls of more than so many means are the tail; it is told from this share of the time on.
const TAIL_MEANS: f64 = 10.0;
const LEAST_TAIL: f64 = 0.1;

pub(crate) fn analyze(rows: &Rows, out: &mut Analysis) {
    for p in rows.facts.get(&PUBLISHED).unwrap_or_default() {
        out.metrics.extend(metrics(&p));
        out.datasets.push(dataset(&p));
        for (code, told) in [(CONTRADICTS, contradictions(&p)), (TAIL, tails(&p.table))] {
            if !told.is_empty() {
                out.warnings.push(code.warning(format!("{}: {}", p.graph, told.join("; "))));
            }
        }
    }
}

fn metrics(p: &Published) -> Vec<Metric> {
    let keys = || {
        params([
            ("graph", p.graph.as_str().into()),
            ("kernel", "published".into()),
            ("processor", p.processor.as_str().into()),
        ])
    };
    let n = p.table.row("apply").map_or(0, |r| r.called);
    let of = |info, keys, value, n| Metric::new(info, keys, value, "totals of a published table", n);
    let mut out: Vec<_> = p.table.efficiency().map(|e| of(&EFFICIENCY, keys(), e, n)).into_iter().collect();
    out.extend(p.table.overhead_ns().map(|ns| of(&OVERHEAD, keys(), ns, n)));
    let overhead_ns = p.table.total_ns() * (1.0 - p.table.efficiency().unwrap_or(0.0));
    for r in p.table.rows.iter().filter(|r| r.name != "apply") {
        let mut keys = keys();
        keys.insert("timer".to_owned(), plain(&r.name).into());
        out.push(of(&SHARE, keys, r.total_ns / overhead_ns, r.called));
    }
    out
}

fn dataset(p: &Published) -> Dataset {
    let id = format!("flow.published.{}", p.graph);
    let caption = "As published: exclusive times of single calls, in the columns of the table.";
    Dataset::new(&id, format!("Times, {} on {}", p.graph, p.processor), caption, show::times(&p.table))
}

/// What the table says against itself, one text each.
fn contradictions(p: &Published) -> Vec<String> {
    let mut out = Vec::new();
    let total_ns = p.table.total_ns();
    let applies = p.table.row("apply").map_or(0, |r| r.called);
    for r in &p.table.rows {
        let mut differs = |what: &str, printed: f64, found: f64, bound: f64| {
            if (printed - found).abs() > bound {
                out.push(format!("{} of {} is {found:.4}, printed {printed:.4}", what, r.name));
            }
        };
        let mean_ns = r.total_ns / r.called.max(1) as f64;
        differs("mean, ns,", r.mean_ns, mean_ns, MEANS_OFF * mean_ns);
        differs("percentage", r.percent, 100.0 * r.total_ns / total_ns, PERCENT_OFF + MEANS_OFF * r.percent);
        let each_ns = r.total_ns / applies.max(1) as f64;
        differs("time a firing, ns,", r.per_firing_ns, each_ns, MEANS_OFF * each_ns);
    }
    let shares = p.table.shares();
    let of = |group: &str| shares.iter().find(|(g, _)| g.text() == group).map(|(_, s)| 100.0 * s);
    let rest = of(Group::Rest.text()).unwrap_or(0.0);
    for (group, printed) in &p.claims {
        // A total adds up what its groups were rounded by.
        let (what, found, bound) = if group == "total" {
            let bound = CLAIMS_OFF * (p.claims.len() - 1).max(1) as f64;
            ("all groups together are".to_owned(), Some(100.0 - rest), bound)
        } else {
            (format!("{group} is"), of(group), CLAIMS_OFF)
        };
        if let Some(found) = found.filter(|f| (f - printed).abs() > bound) {
            out.push(format!("{what} {found:.0} % of the overhead, printed {printed:.0} %"));
        }
    }
    let count = |name: &str| {
        let of = p.table.rows.iter().filter(|r| plain(&r.name) == name);
        Some(of.map(|r| r.called).sum())
    };
    out.extend(broken(&count, SLACK));
    out
}

/// Names of which rare calls have much of the time, by what the columns allow.
fn tails(table: &Table) -> Vec<String> {
    let of = |r: &Row| {
        let share = least_tail(r.called, r.mean_ns, r.deviation_ns, r.most_ns, TAIL_MEANS * r.mean_ns);
        (share >= LEAST_TAIL).then(|| format!("{} {:.0} %", r.name, 100.0 * share))
    };
    table.rows.iter().filter_map(of).collect()
}
