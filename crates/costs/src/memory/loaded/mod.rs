//! Loaded latency: a dependent load while other CPUs move data (as Intel's Memory Latency Checker, multiload of multichase).

mod analyze;
mod measure;
mod plan;
#[cfg(test)]
mod tests;

use machmeter_engine::ProbeError;
use machmeter_engine::cost::{Fact, Kind, Row};
use machmeter_engine::experiment::CellList;
use machmeter_sys::kernel::chain::{Chain, ChainSpec, Order};
use machmeter_sys::pages::{Backing, Pages};
use machmeter_sys::thread::monotonic_ns;

use super::Params;
use super::bandwidth::stream::{Buffer, Contents, pages};
use super::bandwidth::together::Setting;
use super::bandwidth::{granted, sizes};
use super::ladder::chase::pages_name;
use super::reported::ReportedCaches;
use machmeter_engine::part::{Part, PartContext};
use measure::{Loaded, PointCell};
use plan::{Chase, STRIDE_BYTES};

const NAME: &str = "loaded";

pub(super) const PART: Part<Params> = Part {
    metrics: &[LATENCY, TRAFFIC],
    codes: &[SMALL_CHAIN, LOAD_STOOD],
    ..Part::of(NAME, 10, measure, analyze::analyze)
};

machmeter_data::metrics! {
    ["load", "load_cpus", "pause_ns", "working_set_bytes", "stride_bytes", "pages"]
    Nanoseconds Lower weakened by [Frequency, SharedCore, MemoryPlacement, Clock] {
        LATENCY = "memory.loaded_latency"
            "Latency of a dependent load from memory on one CPU while other CPUs run the load, with a pause after each 16 KiB.";
    }
    ["load", "load_cpus", "pause_ns", "working_set_bytes", "stride_bytes", "pages"]
    BytesPerSecond Neither weakened by [Frequency, SharedCore, MemoryPlacement, Clock] {
        TRAFFIC = "memory.loaded_bandwidth"
            "Bytes per second that the load requested while the latency was measured.";
    }
}

machmeter_data::code! { SMALL_CHAIN = "W412" "short chain of the loaded latency",
    what: "The chain of dependent loads has fewer lines than twice the last cache that the system claims.",
    why: "Some loads hit that cache while the machine is idle and miss it under load. The latency then rises more than that of memory.",
    how: "Lines of the chain against the claimed capacity. Time and free memory limit the chain.",
    next: "Give more time (-t), or measure this part alone (--parts loaded).",
}
machmeter_data::code! { LOAD_STOOD = "W413" "loaded latency disturbed",
    what: "Most samples of the loaded latency were rejected: a thread was switched out during the sample.",
    why: "The remaining samples are from moments when nothing else ran. They may be too few for a figure.",
    how: "Samples kept against samples taken.",
    next: "Stop other programs on these CPUs.",
}

const LINE_BYTES: usize = 64;
/// Share of the part's time that building the chain, and that filling the memory of the load, may take.
const BUILDING: f64 = 0.25;
/// Share of the available memory that all of it takes at most: three other parts hold theirs at the same time.
const MEMORY: f64 = 0.25;
/// Built to learn how fast chains are built.
const TRIAL_BYTES: usize = 512 << 10;
/// By how much building beyond the caches is slower than the trial.
const BEYOND_CACHES: f64 = 3.0;

const CPUS: Fact<usize> = Fact::named("loaded.cpus");
/// Lines of the chain.
const CHAIN_BYTES: Fact<usize> = Fact::named("loaded.chain_bytes");
/// The last cache as the system claims it.
const LAST_CACHE_BYTES: Fact<usize> = Fact::named("loaded.last_cache_bytes");

fn measure(at: &mut PartContext<'_>, params: &Params) -> Result<(), ProbeError> {
    at.host.begin()?;
    let cpus = at.cpus();
    at.facts.set(&CPUS, cpus.len());
    let most = params.threads.map_or(cpus.len(), |t| (t as usize).saturating_add(1).min(cpus.len()));
    if most < 2 {
        let row = Row::new(NAME, "chase", Kind::Latency).refused("needs two CPUs, has 1");
        at.rows.push(row);
        return Ok(());
    }
    let cpus = &cpus[..most];
    let points = plan::points(at.left_ns(), most - 1);
    let claimed = ReportedCaches::of(&at.host.topology, cpus[0]);
    let wanted = sizes::memory_wanted(&claimed).min(sizes::most_bytes(at.host.level));
    let bytes = chain_bytes(at, wanted, cpus.len())?;
    // On huge pages where there are any, so that translation does not hide what memory does.
    let pages = pages(bytes, Backing::Huge).or_else(|_| pages(bytes, Backing::Small))?;
    let chain = build(&pages, bytes, at.host.seed)?;
    let backing = if granted(&pages).is_ok() { pages.backing() } else { Backing::Small };
    at.facts.set(&CHAIN_BYTES, chain.nodes() * LINE_BYTES);
    at.facts.set(&LAST_CACHE_BYTES, claimed.last_bytes().unwrap_or(0));
    let buffers = (1..most).map(|_| Buffer::new(bytes / 2, Backing::Small, Contents::Random));
    let buffers = buffers.collect::<Result<Vec<_>, _>>()?;
    let setting = Setting::of(at, cpus, buffers.iter().collect());
    let chase = Chase { working_set_bytes: bytes, pages: pages_name(backing) };
    let loaded = Loaded::new(&setting, chain).map_err(ProbeError::Cannot)?;
    let cell = |point| PointCell::new(&loaded, point, &chase);
    let cells = points.iter().map(cell).collect::<Result<Vec<_>, _>>().map_err(ProbeError::Cannot)?;
    at.run(cells.into_iter().collect::<CellList<'_>>());
    Ok(())
}

fn build(pages: &Pages, working_set_bytes: usize, seed: u64) -> Result<Chain<'_>, ProbeError> {
    let spec = ChainSpec { working_set_bytes, stride_bytes: STRIDE_BYTES, order: Order::Global, seed };
    Chain::build(pages.extent(), &spec).map_err(|e| ProbeError::Cannot(e.to_string()))
}

/// The working set that the machine has room and the part has time for.
fn chain_bytes(at: &PartContext<'_>, wanted: usize, cpus: usize) -> Result<usize, ProbeError> {
    let trial = pages(TRIAL_BYTES, Backing::Small)?;
    // The quickest of three: the first touches the pages, and one may be switched out.
    let mut ns_per_byte = f64::INFINITY;
    for _ in 0..3 {
        let begin_ns = monotonic_ns();
        build(&trial, TRIAL_BYTES, at.host.seed)?;
        let ns = (monotonic_ns() - begin_ns) as f64 / TRIAL_BYTES as f64 * BEYOND_CACHES;
        ns_per_byte = ns_per_byte.min(ns.max(1e-3));
    }
    // Load threads take half as much each.
    let by_memory = sizes::available_bytes() * MEMORY / (1.0 + cpus as f64 / 2.0);
    // Where time is very short, a little is better than nothing, and said to be little.
    let by_time = (at.left_ns() as f64 * BUILDING / ns_per_byte).max(sizes::MEMORY_FEWEST_BYTES as f64 * 2.0);
    sizes::within(wanted, by_memory.min(by_time) as usize)
        .ok_or_else(|| ProbeError::Cannot("too little memory for a chain larger than caches".to_owned()))
}
