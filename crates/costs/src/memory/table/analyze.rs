//! From the members' rows to the table: mean and maximum over members, as Howell prints them.

use machmeter_data::metric::{Population, params};
use machmeter_data::quantity::human;
use machmeter_data::record::Warning;
use machmeter_data::shape::{Cell, TableRow};
use machmeter_data::{Interval, Metric, Unit};
use machmeter_engine::Analysis;
use machmeter_engine::cost::estimate::{LEVEL, MARK};
use machmeter_engine::cost::{Cost, Row, Rows};
use machmeter_stats::regimes::Regimes;

use super::plan::{Access, CHOICE, Choice, LINES, Operation, Source};
use super::{PART, info};
use crate::memory::Params;
use crate::memory::ladder::detect::DetectedCaches;
use crate::show;
use machmeter_engine::disturbance::placement::{self, levels};

/// One line of the table in one model, of all its members.
struct Figure {
    /// Mean over members of their medians, ns.
    mean_ns: f64,
    low_ns: f64,
    high_ns: f64,
    /// Largest median of a member, ns.
    max_member_ns: f64,
    /// Largest sample of any member, ns.
    max_ns: f64,
    n: usize,
    population: Option<Population>,
    /// How far apart the CPUs were, one way; `None` where nobody looked.
    apart_ns: Option<f64>,
}

pub(super) fn analyze(_params: &Params, rows: &Rows, _seed: u64) -> Analysis {
    let mut out = Analysis::default();
    let mut models: Vec<String> =
        rows.part(PART.name).map(|r| r.text("model")).filter(|m| !m.is_empty()).collect();
    models.dedup();
    let levels = levels(rows, PART.name);
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
        info::SMALL_BUFFER.warning(format!(
            "the table of shared accesses walks over {} per member, less than twice the last cache of {} ({})",
            human(main, Unit::Bytes),
            human(last, Unit::Bytes),
            source
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
    let small = small(rows);
    if let Some(warning) = small.clone().filter(|w| out.warnings.iter().all(|o| o.code != w.code)) {
        out.warnings.push(warning);
    }
    let small = small.is_some();
    let mut table = Vec::new();
    let mut reasons: Vec<String> = Vec::new();
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
            let found = figure(rows, &members, levels);
            let mut m = metric(&found, members[0], model, access);
            if small && m.value.is_some() && line.is_beyond_caches() {
                m.flag(info::SMALL_BUFFER.id);
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
                Ok(f) => {
                    cells[at] = Cell::Number(f.mean_ns);
                    cells[at + 1] = Cell::Number(f.max_member_ns);
                    cells[at + 2] = Cell::Number(f.max_ns);
                }
                Err(why) => {
                    cells[at] = Cell::Text(if why.starts_with('<') { why.clone() } else { "-".to_owned() });
                    if !why.starts_with('<') && !reasons.contains(&why) {
                        reasons.push(why);
                    }
                }
            }
        }
        table.push(TableRow { name: line.name.to_owned() + mark, cells });
    }
    let mut warn = |code: &machmeter_data::code::Code, text: String| {
        out.warnings.push(code.warning(text));
    };
    let thin = |why: &String| why.contains("undisturbed samples") || why.contains("not reached");
    if let Some(first) = reasons.iter().find(|w| thin(w)) {
        warn(&info::THIN, format!("shared accesses, {model}: rows without a figure, for one: {first}"));
    }
    for why in reasons.iter().filter(|w| !thin(w)) {
        let code = if why.contains("needs two CPUs") { &info::ALONE } else { &info::MODEL_FAILED };
        warn(code, format!("shared accesses, {model}: {why}"));
    }
    let columns = ["streamed, avg", "max of members", "largest sample"];
    let columns = columns.into_iter().chain(["dependent, avg", "max of members", "largest sample"]);
    let names = ["memory.table_a", "Reads and writes of own and shared memory", &caption(rows)];
    let shown = show::table(names, columns.map(|label| (label, show::NS)), table);
    out.datasets.extend(shown.map(|d| d.with_params(params([("model", model.into())]))));
}

/// Of the members' costs; the reason, or `< bound`, where not all are known.
fn figure(rows: &Rows, members: &[&Row], levels: Option<&Regimes>) -> Result<Figure, String> {
    let mut known = Vec::new();
    for row in members {
        match placement::cost(rows, row, levels) {
            Cost::Known(k) => known.push(k),
            Cost::Below { bound_ns, .. } => return Err(format!("< {}", human(bound_ns, Unit::Nanoseconds))),
            Cost::Unknown { why } => return Err(why),
        }
    }
    let n = known.len() as f64;
    let mean = |f: fn(&machmeter_engine::cost::estimate::Known) -> f64| known.iter().map(f).sum::<f64>() / n;
    Ok(Figure {
        mean_ns: mean(|k| k.value_ns),
        // The mean of the ends covers at least as often as each interval does.
        low_ns: mean(|k| k.low_ns),
        high_ns: mean(|k| k.high_ns),
        max_member_ns: known.iter().map(|k| k.value_ns).fold(0.0, f64::max),
        max_ns: known.iter().map(|k| k.max_ns).fold(0.0, f64::max),
        n: known.iter().map(|k| k.n).sum(),
        population: Population::of_all(known.iter().map(|k| k.population)),
        apart_ns: known.first().and_then(|k| k.apart_ns),
    })
}

fn metric(found: &Result<Figure, String>, row: &Row, model: &str, access: Access) -> Metric {
    let conditions = params([
        ("operation", row.operation.as_str().into()),
        ("model", model.into()),
        ("access", access.name().into()),
        ("cpus", row.int("cpus").unwrap_or(0).into()),
    ]);
    match found {
        Ok(f) => {
            let m = Metric::new(&info::SHARED, conditions, f.mean_ns, "mean of members' medians", f.n as u64);
            m.with_ci(Interval::new(LEVEL, f.low_ns, f.high_ns, "rank"))
                .with_max(f.max_member_ns)
                .with_population(f.population)
                .with_apart(f.apart_ns)
        }
        Err(why) => Metric::rejected(&info::SHARED, conditions, "mean of members' medians", why),
    }
}
