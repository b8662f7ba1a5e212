//! Operations of nearly known cost, the meter's own test (see `fit`): additions, clocks, `daxpy`, copies, fills.

mod fit;
mod selftest;

#[cfg(test)]
mod tests;

use machmeter_data::Metric;
use machmeter_data::metric::{Population, params};
use machmeter_data::record::{Finding, Warning};
use machmeter_engine::cost::{Kind, Rows};
use machmeter_engine::experiment::CellList;
use machmeter_engine::sampling::{Pace, Subject};
use machmeter_engine::{Analysis, ProbeError};
use machmeter_sys::clock::SourceId;
use machmeter_sys::kernel::{self, Ready, Walk};
use machmeter_sys::pages::Pages;

use super::Params;
use super::cost::{COST, NO_FIGURE};
use super::prices;
use super::table::{self, Priced};
use crate::show;
use fit::{HIDING, Ladder, MOST_RESIDUAL, Rung};
use machmeter_engine::part::{Part, PartContext};
use machmeter_loops::ops::arithmetic::{Bytes, Grows, Reads, Sums};
use machmeter_loops::ops::daxpy::Daxpy;
use machmeter_loops::ops::passes::Passes;
use machmeter_loops::ops::repeated::{Planned, filled};

const PART_NAME: &str = "arithmetic";

machmeter_data::code! { KNOWN_COSTS = "W441" "timing check failed",
    what: "The timing check failed: 1 to 64 dependent additions do not lie on a line, or do not cost a whole number of cycles.",
    why: "The same error can affect every other row. The processor's speed changed between rows, or the core was shared.",
    how: "A least-squares line through the costs of 4, 8, ... 64 additions per turn: its intercept and residuals, limit 1 %. The costs of 1 and 2 \
          additions may equal that of the empty loop.",
    next: "Repeat on a quieter machine, or with a fixed frequency. Do not trust small differences between rows.",
}

pub(super) const PART: Part<Params> = Part {
    codes: &[KNOWN_COSTS],
    selftest: &[
        ("operations of known length", selftest::planted),
        ("additions of known cost", selftest::known),
        ("a thousand costs of next to nothing", selftest::nothing),
    ],
    ..Part::of(PART_NAME, 15, measure, analyze)
};

/// Lengths of the chains of additions, per turn of the kernels `adds.N`.
pub(super) const CHAINS: [u64; 7] = [1, 2, 4, 8, 16, 32, 64];
/// Turns of the inner loop in a pass: the branch at its end is mispredicted once a pass, which must not show.
const PASS_TURNS: u64 = 4_096;
/// Elements of Howell's daxpy rows.
const ELEMENTS: [usize; 3] = [100, 1_000, 10_000];
/// Sizes of copies and fills, bytes.
const SIZES: [usize; 4] = [64, 4 << 10, 64 << 10, 1 << 20];
/// Few, for many visits: visits differ by more than pairs do. Fewer would take less time than the settling before them.
const PAIRS_PER_VISIT: usize = 6;
const PACE: Pace = Pace { settle_ns: Pace::SETTLE_NS, ..Pace::of(Pace::BATCH_NS, PAIRS_PER_VISIT) };

/// All rows, in the process that prices them: what a pass over a buffer takes depends on where it lies, by up to a third.
pub(super) fn with_all<T>(seed: u64, work: impl FnOnce(Vec<Planned<'_>>) -> T) -> T {
    let room_bytes = ELEMENTS[2] * size_of::<f64>();
    let pages = filled(2 * room_bytes.next_multiple_of(4_096), 1.0_f64.to_bits());
    let mut planned = ladder();
    // No read of a clock needs the one before; those that do not wait by themselves overlap.
    let clock = |id: SourceId| throughput("read_clock", Reads::new(id)).with("code", id.name()).first();
    planned.extend(SourceId::available().into_iter().map(clock));
    planned.extend(daxpys(&pages));
    for bytes in SIZES {
        for (operation, fill) in [("memcpy", false), ("memset", true)] {
            let row = throughput(operation, Bytes::new(bytes, fill, seed)).with("bytes", bytes);
            planned.push(if bytes == SIZES[1] { row.first() } else { row });
        }
    }
    work(planned)
}

fn measure(at: &mut PartContext<'_>, params: &Params) -> Result<(), ProbeError> {
    at.host.begin()?;
    let cells = prices::cells(PART_NAME, at, params, prices::Files::none(), PACE)?;
    at.run(cells.into_iter().collect::<CellList<'_>>());
    Ok(())
}

fn throughput<'a>(operation: &str, subject: impl Subject + 'a) -> Planned<'a> {
    Planned::new(operation, Kind::Throughput, subject)
}

fn registers(name: &str) -> Option<Ready<'static>> {
    kernel::named(name)?.of_registers(PASS_TURNS)
}

fn ladder<'a>() -> Vec<Planned<'a>> {
    let chain = |additions: u64| {
        let per_pass = additions * PASS_TURNS;
        let sums = Sums::new(registers(&format!("adds.{additions}"))?, per_pass);
        let row = Planned::new("add", Kind::Latency, sums).per_turn(per_pass as f64).of_differences();
        // A neighbor slows the loop around a short chain.
        let is_core_clock = additions as f64 >= HIDING;
        Some(Planned { is_core_clock, ..row.with("chain", additions as i64).first() })
    };
    let empty = |ready| {
        let row = Planned::new("empty_loop", Kind::Latency, Passes(ready));
        row.per_turn(PASS_TURNS as f64).of_differences().first()
    };
    CHAINS.into_iter().filter_map(chain).chain(registers("empty").map(empty)).collect()
}

fn daxpys(pages: &Result<Pages, String>) -> Vec<Planned<'_>> {
    let mut planned = Vec::new();
    for n in ELEMENTS {
        let compiled = match Daxpy::new(n) {
            Ok(daxpy) => throughput("daxpy", daxpy),
            Err(why) => Planned::refused("daxpy", &why),
        };
        planned.push(compiled.with("elements", n).with("code", "compiled").first());
        for k in kernel::all().filter(|k| k.name.starts_with("daxpy.") && (k.available)()) {
            let row = match pages {
                Ok(pages) => whole(k, n, pages).map(|grows| throughput("daxpy", grows)),
                Err(why) => Some(Planned::refused("daxpy", why)),
            };
            planned.extend(row.map(|row| row.with("elements", n).with("code", k.name)));
        }
    }
    planned
}

/// The kernel over exactly `n` elements; `None` where its turns do not come out even.
fn whole<'a>(k: &'static kernel::Kernel, n: usize, pages: &'a Pages) -> Option<Grows<'a>> {
    let Walk::Forward([turn_bytes, ..]) = k.walk else { return None };
    let bytes = n * size_of::<f64>();
    if turn_bytes == 0 || !bytes.is_multiple_of(turn_bytes as usize) {
        return None;
    }
    let half = pages.bytes() / 2 / 4_096 * 4_096;
    let (y, x) = (pages.extent().part(0, half)?, pages.extent().part(half, half)?);
    let ready = k.ready((bytes / turn_bytes as usize) as u64, [y, x, x], 0).ok()?;
    Some(Grows::new(ready, y.part(0, bytes)?.atomics()))
}

fn analyze(_params: &Params, rows: &Rows, _seed: u64) -> Analysis {
    let caption =
        "Latency: each operation needs the one before. Throughput: they overlap as the machine likes.";
    let names = ["Arithmetic and clocks", caption];
    let mut out = table::analysis(rows, PART_NAME, names, &[NO_FIGURE], |_| NO_FIGURE);
    if !out.metrics.is_empty() {
        let (fitted, finding, warning) = known_costs(&table::priced(rows, PART_NAME));
        out.metrics.insert(0, fitted);
        out.findings.push(finding);
        out.warnings.splice(..0, warning);
    }
    out
}

/// What a further addition costs in a chain: the slope of the chains, not a turn of the loop around the shortest.
pub(super) fn addition(rows: &Rows) -> Metric {
    known_costs(&table::priced(rows, PART_NAME)).0
}

/// The cycle and the addition, what the ladder of known costs says, and the warning when it does not hold.
fn known_costs(priced: &[Priced<'_>]) -> (Metric, Finding, Option<Warning>) {
    // A neighbor slows the loop around a short chain; it slows no addition of a long one.
    let is_own = |p: &&Priced<'_>| p.cost.population() != Some(Population::CoreShared);
    let rung = |p: &Priced<'_>| {
        let additions = p.row.int("chain")? as f64;
        Some(Rung { additions, turn_ns: p.cost.value_ns()? * additions })
    };
    let chains = priced.iter().filter(|p| p.row.operation == "add");
    let rungs: Vec<Rung> = chains.filter(is_own).filter_map(rung).collect();
    let told = |verdict, text: String, evidence| show::finding("ops.known_costs", verdict, text, evidence);
    let empty = priced.iter().find(|p| p.row.operation == "empty_loop").and_then(|p| p.cost.known());
    let empty_ns = empty.map(|k| k.slow_ns);
    let key = params([("operation", "add".into()), ("kind", Kind::Latency.name().into())]);
    let population = Population::of_all(priced.iter().map(|p| p.cost.population()));
    let population = population.map(|_| Population::Undisturbed);
    let ladder = match Ladder::fit(&rungs, empty_ns) {
        Ok(ladder) => ladder,
        Err(why) => {
            let none = Metric::rejected(&COST, key, "least squares", &why);
            let finding =
                told("unknown", format!("Operations of known cost were not checked: {why}."), Vec::new());
            return (none, finding, None);
        }
    };
    let fitted = Metric::new(&COST, key, ladder.cycle_ns, "least squares", ladder.n as u64)
        .with_ci(ladder.interval.clone())
        .with_population(population);
    let figures = format!(
        "chains of additions are up to {:.2} % off a straight line (slope {:.4} ns per cycle, {:.3} of that of the longest chain; intercept {:.3} cycles)",
        ladder.residual * 100.0,
        ladder.cycle_ns,
        ladder.against_longest,
        ladder.intercept_cycles
    );
    let cycles = |ns: f64| format!("{:.3} cycles", ns / ladder.cycle_ns);
    let chains = rungs.iter().map(|r| format!("{} dependent additions: {}", r.additions, cycles(r.turn_ns)));
    let empty = empty.map(|k| {
        format!(
            "a turn of the empty loop: {}, 95 % of the turns below {}",
            cycles(k.value_ns),
            cycles(k.slow_ns)
        )
    });
    let evidence: Vec<String> = chains.chain(empty).collect();
    if ladder.holds() {
        let text = format!("Operations of known cost are measured correctly: {figures}.");
        return (fitted, told("holds", text, evidence), None);
    }
    let text = format!(
        "Operations of known cost are measured wrongly (more than {} % off): {figures}.",
        MOST_RESIDUAL * 100.0
    );
    let warning = KNOWN_COSTS.warning(format!("the timing check failed: {figures}"));
    (fitted, told("fails", text, evidence), Some(warning))
}
