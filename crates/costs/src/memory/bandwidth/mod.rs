//! Bandwidth and roofline. Bytes are counted as requested (STREAM), and with write-allocate (Hager and Wellein).

mod analyze;
mod datasets;
pub mod info;
mod plan;
mod roofline;
pub(super) mod sizes;
pub(super) mod stream;
#[cfg(test)]
mod tests;
pub(super) mod together;

use machmeter_engine::ProbeError;
use machmeter_engine::cost::{Fact, Kind, Row};
use machmeter_engine::experiment::CellList;
use machmeter_engine::sampling::{Bench, Pace};
use machmeter_sys::kernel::Kernel;
use machmeter_sys::pages::{Backing, Pages};
use machmeter_sys::thread::monotonic_ns;

use super::Params;
use super::reported::ReportedCaches;
use machmeter_engine::part::{Part, PartContext};
use machmeter_loops::ops::passes::Passes;
pub(super) use plan::widest;
use plan::{Depth, Plan, Request, Spec};
use stream::{Buffer, CHUNK_BYTES, Contents, Stream};
use together::TogetherCell;

const NAME: &str = "bandwidth";

pub(super) const PART: Part<Params> = Part {
    metrics: &[info::BANDWIDTH, info::WITH_ALLOCATE, info::PEAK, info::SATURATION, info::SCALING],
    codes: &[
        info::SMALL_BUFFER,
        info::DATA_MATTERS,
        info::NO_HUGE,
        info::ONE_CPU,
        info::NOT_TOGETHER,
        info::NOT_REACHED,
    ],
    ..Part::of(NAME, 25, measure, analyze::analyze)
};

/// Share of the part's time that writing one buffer may take.
const FILLING: f64 = 0.1;
/// Share of the part's time up to which a buffer asked for by name may be written.
const FILLING_ASKED: f64 = 0.4;
const BUFFER_BYTES: Fact<usize> = Fact::named("bandwidth.memory_bytes");
/// The last cache as the system claims it.
const LAST_CACHE_BYTES: Fact<usize> = Fact::named("bandwidth.last_cache_bytes");
const CPUS: Fact<usize> = Fact::named("bandwidth.cpus");
/// What most buffers hold.
const DATA: Fact<String> = Fact::named("bandwidth.data");
/// Share of the available memory that all buffers take at most: three other parts hold theirs at the same time.
const MEMORY: f64 = 0.25;
/// Written to learn how fast memory is written.
const TRIAL_BYTES: usize = 2 << 20;
/// Length of a short batch, ns: some chunks of memory long.
const BATCH_NS: f64 = 250_000.0;
/// Pairs per visit of a row: as many as make a figure, since coming to a large working set takes longer than they do.
const PAIRS: usize = 8;
/// Part of a mapping that must be in huge pages to be called so.
const HUGE_SHARE: f64 = 0.9;

fn measure(at: &mut PartContext<'_>, params: &Params) -> Result<(), ProbeError> {
    let cpus = at.cpus();
    let request = Request::new(params, cpus.len()).map_err(ProbeError::Usage)?;
    let depth = Depth::of(at.left_ns());
    let claimed = ReportedCaches::of(&at.host.topology, cpus.first().copied().unwrap_or(0));
    let memory_bytes = memory_bytes(at, &request, &claimed)?;
    let plan = plan::rows(depth, &request, &sizes::cached(&claimed), memory_bytes);
    at.facts.set(&BUFFER_BYTES, memory_bytes);
    at.facts.set(&LAST_CACHE_BYTES, claimed.last_bytes().unwrap_or(0));
    at.facts.set(&CPUS, cpus.len());
    at.facts.set(&DATA, request.contents.name().to_owned());
    let first = Buffer::new(memory_bytes, Backing::Small, request.contents)?;
    first.fill(at.host.seed);
    let extra = Extra::of(&plan, &first, at.host.seed);
    let more = if plan.together.is_empty() { 1 } else { request.cpus };
    let others = (1..more).map(|_| Buffer::new(memory_bytes, Backing::Small, request.contents));
    let others = others.collect::<Result<Vec<_>, _>>().unwrap_or_else(|why| {
        at.rows.extend(plan.together.iter().map(|s| s.refused(&why.to_string())));
        Vec::new()
    });
    if cpus.len() < 2 {
        at.rows.extend(one_cpu(&request, memory_bytes));
    }
    let buffers = std::iter::once(&first).chain(&others).collect();
    let setting = together::Setting::of(at, &cpus[..request.cpus], buffers);
    let mut cells = alone(at, &plan, &first, &extra);
    for spec in plan.together.iter().filter(|_| !others.is_empty()) {
        match TogetherCell::new(&setting, spec) {
            Ok(cell) => cells.push(cell),
            Err(why) => at.rows.push(spec.refused(&why)),
        }
    }
    at.run(cells);
    Ok(())
}

/// The working set in memory that the machine has room and the part has time for.
fn memory_bytes(
    at: &PartContext<'_>,
    request: &Request,
    claimed: &ReportedCaches,
) -> Result<usize, ProbeError> {
    let available_bytes = sizes::available_bytes();
    // One for each CPU, one with zeros, one on huge pages.
    let by_memory = available_bytes * MEMORY / (request.cpus + 2) as f64;
    if let Some(bytes) = request.buffer_bytes.filter(|bytes| *bytes as f64 > by_memory) {
        return Err(ProbeError::Usage(format!(
            "--buffer: {} buffers of {bytes} bytes are more than a quarter of the {available_bytes} bytes of memory available",
            request.cpus + 2
        )));
    }
    at.host.begin()?;
    let trial = Buffer::new(2 * TRIAL_BYTES, Backing::Small, request.contents)?;
    // The quicker of two, since one may be switched out.
    let ns_per_byte = [0, TRIAL_BYTES].map(|offset| {
        let begin_ns = monotonic_ns();
        trial.fill_part(offset, TRIAL_BYTES, at.host.seed);
        (monotonic_ns() - begin_ns) as f64 / TRIAL_BYTES as f64
    });
    let ns_per_byte = ns_per_byte[0].min(ns_per_byte[1]).max(1e-3);
    let by_time = |share: f64| at.left_ns() as f64 * share / ns_per_byte;
    if let Some(bytes) = request.buffer_bytes {
        if bytes as f64 > by_time(FILLING_ASKED) {
            let seconds = bytes as f64 * ns_per_byte / 1e9 / FILLING_ASKED;
            return Err(ProbeError::Cannot(format!(
                "writing a buffer of {bytes} bytes takes too much of its time; it would need {seconds:.1} s"
            )));
        }
        return Ok(bytes);
    }
    let wanted = sizes::memory_wanted(claimed).min(sizes::most_bytes(at.host.level));
    // However short the time is: what lies in the last cache is no memory.
    let by_time = by_time(FILLING).max(sizes::MEMORY_LEAST_BYTES as f64);
    sizes::within(wanted, by_memory.min(by_time) as usize)
        .ok_or_else(|| ProbeError::Cannot("too little memory for a buffer larger than caches".to_owned()))
}

/// Memory of other contents and pages, where rows want it.
struct Extra {
    contents: Option<Result<Buffer, String>>,
    huge: Option<Result<Buffer, String>>,
}

impl Extra {
    fn of(plan: &Plan, first: &Buffer, seed: u64) -> Self {
        let other = if first.contents == Contents::Random { Contents::Zeros } else { Contents::Random };
        let made = |pages: Backing, contents: Contents| {
            let wanted = plan.single.iter().any(|s| s.pages == pages && s.contents == contents);
            wanted.then(|| {
                let buffer = Buffer::new(first.bytes, pages, contents).map_err(|e| e.to_string())?;
                buffer.fill(seed ^ 0x5a5a);
                if pages == Backing::Huge { granted(&buffer.pages).map(|()| buffer) } else { Ok(buffer) }
            })
        };
        Self { contents: made(Backing::Small, other), huge: made(Backing::Huge, first.contents) }
    }

    fn buffer<'a>(&'a self, s: &Spec, first: &'a Buffer) -> Result<&'a Buffer, String> {
        let made = match (s.pages, s.contents == first.contents) {
            (Backing::Huge, _) => &self.huge,
            (_, true) => return Ok(first),
            (_, false) => &self.contents,
        };
        made.as_ref().ok_or("no such memory")?.as_ref().map_err(Clone::clone)
    }
}

fn alone<'a>(at: &mut PartContext<'_>, plan: &Plan, first: &'a Buffer, extra: &'a Extra) -> CellList<'a> {
    let mut benches = Vec::new();
    for s in &plan.single {
        let stream =
            extra.buffer(s, first).and_then(|b| Stream::new(s.kernel, b, s.working_set_bytes, CHUNK_BYTES));
        match stream {
            Ok(stream) => benches.push(Bench::new(s.row(stream.kernel_turns()), stream)),
            Err(why) => at.rows.push(s.refused(&why)),
        }
    }
    benches.extend(plan.peaks.iter().filter_map(|k| peak(k)));
    CellList::of_benches(benches, Pace::of(BATCH_NS, PAIRS))
}

/// Whether (nearly) all of a mapping lies in huge pages; else one line.
pub(super) fn granted(pages: &Pages) -> Result<(), String> {
    let huge = pages.huge_bytes().map_err(|e| format!("cannot read whether huge pages were granted: {e}"))?;
    if (huge as f64) < pages.bytes() as f64 * HUGE_SHARE {
        return Err(format!("huge pages granted for {huge} of {} bytes", pages.bytes()));
    }
    Ok(())
}

/// Turns of a peak kernel in one turn of its row: long against the call.
const PEAK_TURNS: u64 = 1_000;

fn peak(kernel: &'static Kernel) -> Option<Bench<'static>> {
    let ready = kernel.of_registers(PEAK_TURNS)?;
    let row = Row::new(NAME, kernel.name, Kind::Throughput)
        .of_batches()
        .with("level", "registers")
        .per_turn(f64::from(kernel.declared.flops) * PEAK_TURNS as f64);
    Some(Bench::new(row, Passes(ready)))
}

/// What is not measured because there is one CPU.
fn one_cpu(request: &Request, memory_bytes: usize) -> Option<Row> {
    let kernel = request.kernels.first().copied().or_else(|| plan::widest("read"))?;
    let spec = Spec::new(kernel, sizes::Level::Memory, memory_bytes, request.contents);
    Some(Spec { cpus: 2, ..spec }.refused("needs two CPUs, has 1"))
}
