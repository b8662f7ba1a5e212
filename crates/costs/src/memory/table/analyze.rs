//! From the members' rows to the table: mean and maximum over members, as Howell prints them.

use machmeter_data::metric::{Population, params};
use machmeter_data::quantity::human;
use machmeter_data::record::Warning;
use machmeter_data::shape::{Cell, TableRow};
use machmeter_data::{Interval, Metric, Unit};
use machmeter_engine::Analysis;
use machmeter_engine::cost::estimate::{Known, LEVEL, MARK};
use machmeter_engine::cost::{Cost, Row, Rows};
use machmeter_stats::regimes::Regimes;

use super::plan::{Access, CHOICE, Choice, LINES, Operation, Source};
use super::{ALONE, MODEL_FAILED, PART, SHARED, SMALL_BUFFER, THIN};
use crate::memory::Params;
use crate::memory::ladder::detect::DetectedCaches;
use crate::show;
use machmeter_engine::disturbance::placement::{self, levels};

pub(super) fn analyze(_params: &Params, rows: &Rows, _seed: u64) -> Analysis {
    let mut out = Analysis::default();
    let models = show::distinct(rows.part(PART.name).map(|r| r.text("model")).filter(|m| !m.is_empty()));
    let levels = levels(rows, PART.name);
    out.warnings.extend(small(rows).filter(|_| !models.is_empty()));
    for model in &models {
        of_model(&mut out, rows, model, levels.as_ref());
    }
    out.warnings.extend(placement::moved("shared accesses", levels.as_ref()));
    out
}

const DETECTED: &str = "detected";

/// The last cache, bytes, and who says so: the ladder of the same run, which sees what others leave of it, or who chose the buffers.
fn last_cache(rows: &Rows, choice: &Choice) -> (f64, &'static str) {
    match (DetectedCaches::from_facts(&rows.facts).last_bytes, choice.last) {
        (Some((_, most)), said) if said.source != Source::Asked => (most as f64, DETECTED),
        (_, said) => (said.bytes as f64, said.source.name()),
    }
}

/// What is said where buffers are less than twice the last cache.
fn small(rows: &Rows) -> Option<Warning> {
    let choice = rows.facts.get(&CHOICE)?;
    let (main, (last, source)) = (choice.sizes.main_bytes as f64, last_cache(rows, &choice));
    (main < 2.0 * last).then(|| {
        let [main, last] = [main, last].map(|b| human(b, Unit::Bytes));
        SMALL_BUFFER.warning(format!(
            "the table of shared accesses may partly hit the cache: {main} per member is less than twice the last cache of {last} ({source})"
        ))
    })
}

/// What the table shows and on how much memory, with who says how large the caches are.
fn caption(rows: &Rows) -> String {
    let size = |bytes: f64| human(bytes, Unit::Bytes);
    let sizes = rows.facts.get(&CHOICE).map_or(String::new(), |c| {
        let (last, source) = last_cache(rows, &c);
        let mut said = format!("{} {source}", size(last));
        if source == DETECTED {
            said += &format!("; {} {}", size(c.last.bytes as f64), c.last.source.name());
        }
        format!(
            " Cache: {} per member, half of a first cache as {}; local and neighbor: {} each (last cache: {said}); one access \
             every {} (line as {}).",
            size(c.sizes.cached_bytes as f64),
            c.first.source.name(),
            size(c.sizes.main_bytes as f64),
            size(c.sizes.block_bytes as f64),
            c.block.source.name(),
        )
    });
    format!(
        "One access, ns; mean and maximum over members, and the largest sample. One member at a time, or all at \
         once.{sizes} Incompressible data. Streamed accesses overlap; dependent ones follow a random chain, and dependent writes \
         write each line that they come through."
    )
}

fn of_model(out: &mut Analysis, rows: &Rows, model: &str, levels: Option<&Regimes>) {
    let small = out.warnings.iter().any(|w| w.code == SMALL_BUFFER.id);
    let (mut table, mut reasons) = (Vec::new(), Vec::new());
    for line in LINES {
        let mut cells = vec![Cell::Empty(()); 6];
        let mut mark = "";
        for access in [Access::Dependent, Access::Streamed] {
            let is = |r: &&Row| {
                r.operation == line.name && r.text("model") == model && r.text("access") == access.name()
            };
            let members: Vec<&Row> = rows.part(PART.name).filter(is).collect();
            if members.is_empty() {
                continue;
            }
            let (mut m, found) = figure(rows, &members, levels);
            if small && m.value.is_some() && line.is_beyond_caches() {
                m.flag(SMALL_BUFFER.id);
            }
            if m.is_shared() {
                mark = MARK;
            }
            // The loop and the clock are priced by `machmeter ops`.
            if !matches!(line.operation, Operation::Empty | Operation::Timer) {
                out.metrics.push(m);
            }
            // The first three lines are neither streamed nor dependent accesses and stand in two columns of their own.
            let at = if access == line.access() { 0 } else { 3 };
            match found {
                Ok(figures_ns) => cells[at..at + 3].clone_from_slice(&figures_ns.map(Cell::Number)),
                Err(bound) if bound.starts_with('<') => cells[at] = Cell::Text(bound),
                Err(why) => {
                    cells[at] = Cell::Text("-".to_owned());
                    reasons.push(why);
                }
            }
        }
        table.push(TableRow { name: line.name.to_owned() + mark, cells });
    }
    let reasons = show::distinct(reasons);
    let thin = |why: &&String| why.contains("undisturbed samples") || why.contains("not reached");
    if let Some(first) = reasons.iter().find(thin) {
        let text = format!("shared accesses, {model}: some rows have no figure, for example: {first}");
        out.warnings.push(THIN.warning(text));
    }
    for why in reasons.iter().filter(|why| !thin(why)) {
        let code = if why.contains("needs two CPUs") { ALONE } else { MODEL_FAILED };
        out.warnings.push(code.warning(format!("shared accesses, {model}: {why}")));
    }
    let columns = ["streamed, avg", "max of members", "largest sample"];
    let columns = columns.into_iter().chain(["dependent, avg", "max of members", "largest sample"]);
    let names = ["memory.table_a", "Reads and writes of own and shared memory", &caption(rows)];
    let shown = show::table(names, columns.map(|label| (label, show::NS)), table);
    out.datasets.extend(shown.map(|d| d.with_params(params([("model", model.into())]))));
}

/// A line of all its members: the metric; mean and maximum of lower quartiles and largest sample, ns, or why not.
fn figure(rows: &Rows, members: &[&Row], levels: Option<&Regimes>) -> (Metric, Result<[f64; 3], String>) {
    const ESTIMATOR: &str = "mean of members' lower quartiles";
    let mut conditions = members[0].params.clone();
    conditions.remove("rank");
    conditions.insert("operation".to_owned(), members[0].operation.as_str().into());
    let known = |row: &&Row| match placement::cost(rows, row, levels) {
        Cost::Known(k) => Ok(k),
        Cost::Below { bound_ns, .. } => Err(format!("< {}", human(bound_ns, Unit::Nanoseconds))),
        Cost::Unknown { why } => Err(why),
    };
    let known: Vec<Known> = match members.iter().map(known).collect() {
        Ok(known) => known,
        Err(why) => return (Metric::rejected(&SHARED, conditions, ESTIMATOR, &why), Err(why)),
    };
    let mean = |f: fn(&Known) -> f64| known.iter().map(f).sum::<f64>() / known.len() as f64;
    let most = |f: fn(&Known) -> f64| known.iter().map(f).fold(0.0, f64::max);
    let figures_ns = [mean(|k| k.value_ns), most(|k| k.value_ns), most(|k| k.max_ns)];
    let n = known.iter().map(|k| k.n as u64).sum();
    // The mean of the ends covers at least as often as each interval does.
    let ci = Interval::new(LEVEL, mean(|k| k.low_ns), mean(|k| k.high_ns), "rank");
    let m = Metric::new(&SHARED, conditions, figures_ns[0], ESTIMATOR, n)
        .with_ci(ci)
        .with_max(figures_ns[1])
        .with_population(Population::of_all(known.iter().map(|k| k.population)))
        .with_apart(known.first().and_then(|k| k.apart_ns));
    (m, Ok(figures_ns))
}
