//! Which rows are measured, most important first: by the time there is, the CPUs, and what was asked for.

use machmeter_engine::cost::{Kind, Row};
use machmeter_sys::kernel::{self, Kernel};
use machmeter_sys::pages::Backing;

use super::sizes::{self, Level};
use super::stream::{Contents, moved};
use crate::memory::Params;
use crate::memory::ladder::chase::pages_name;

/// Families of the first rows of every table, in its order.
pub(super) const FAMILIES: [&str; 9] =
    ["read", "write", "write_nt", "copy", "copy_nt", "scale", "add", "triad", "update"];
/// Families of caches, and of curves over working sets.
pub(super) const USUAL: [&str; 3] = ["read", "write", "copy"];
/// Families that STREAM has; it counts what they load and store, and nothing else.
pub(super) const STREAM_FAMILIES: [&str; 4] = ["copy", "scale", "add", "triad"];
/// The family that changes the sign of what it finds.
const UPDATE: &str = "update";
/// Variants by vector width. Others (`rep_stosb`) are ways of their own and measured beside them.
const VECTORS: [&str; 5] = ["scalar", "sse2", "neon", "avx2", "avx512"];

#[derive(Debug, Clone, Copy)]
pub(super) struct Spec {
    pub(super) kernel: &'static Kernel,
    pub(super) level: Level,
    /// All operands together, per CPU, bytes.
    pub(super) working_set_bytes: usize,
    pub(super) cpus: usize,
    pub(super) contents: Contents,
    pub(super) pages: Backing,
    /// Compiled-code width, for comparison with the STREAM program.
    pub(super) as_stream: bool,
}

impl Spec {
    /// On one CPU, in small pages.
    pub(super) fn new(
        kernel: &'static Kernel,
        level: Level,
        working_set_bytes: usize,
        contents: Contents,
    ) -> Self {
        Self { kernel, level, working_set_bytes, cpus: 1, contents, pages: Backing::Small, as_stream: false }
    }

    /// The row it fills. `per_turn` is in bytes requested, over all CPUs.
    pub(super) fn row(&self, kernel_turns: u64) -> Row {
        let declared = self.kernel.declared;
        let requested = self.kernel.bytes_per_turn().max(1) as f64;
        let mut row = Row::new(super::NAME, self.kernel.name, Kind::Throughput)
            .of_batches()
            .with("level", self.level.name())
            .with("working_set_bytes", self.working_set_bytes)
            .with("cpus", self.cpus)
            .with("data", self.contents.name())
            .with("pages", pages_name(self.pages))
            .per_turn(requested * kernel_turns as f64 * self.cpus as f64);
        if self.as_stream {
            row = row.with("convention", "stream");
        }
        let allocated = self.kernel.bytes_with_allocate() as f64;
        row.extras.insert("allocated_per_requested".to_owned(), allocated / requested);
        row.extras.insert("flops_per_byte".to_owned(), f64::from(declared.flops) / requested);
        row.extras.insert("width_bits".to_owned(), f64::from(self.kernel.width_bits));
        row
    }

    pub(super) fn refused(&self, why: &str) -> Row {
        self.row(1).refused(why)
    }
}

pub(super) fn split(name: &str) -> (&str, &str) {
    name.split_once('.').unwrap_or((name, ""))
}

/// Kernels for bandwidth: those that walk forward over memory.
fn streams() -> impl Iterator<Item = &'static Kernel> {
    kernel::all().filter(|k| moved(k).is_some())
}

/// The widest variant of a family that this processor runs.
pub(in crate::memory) fn widest(family: &str) -> Option<&'static Kernel> {
    let vector = |k: &&Kernel| {
        let (f, variant) = split(k.name);
        f == family && VECTORS.contains(&variant) && (k.available)()
    };
    kernel::all().filter(vector).max_by_key(|k| k.width_bits)
}

#[derive(Debug, Clone)]
pub(super) struct Request {
    /// Chosen kernels; none for the plan's own choice.
    pub(super) kernels: Vec<&'static Kernel>,
    pub(super) cpus: usize,
    /// Working set in memory, bytes.
    pub(super) buffer_bytes: Option<usize>,
    /// Contents of all rows that are not about contents.
    pub(super) contents: Contents,
}

impl Request {
    pub(super) fn new(params: &Params, cpus: usize) -> Result<Self, String> {
        let kernels: Vec<&Kernel> =
            params.kernels.iter().map(|name| asked(name)).collect::<Result<_, _>>()?;
        let threads = params.threads.map_or(cpus, |t| t as usize);
        if threads == 0 || threads > cpus {
            return Err(format!("--threads {threads}: 1 to {cpus} CPUs are measured"));
        }
        let buffer = params.buffer.as_deref().map(sizes::parse_bytes).transpose();
        let buffer = buffer.map_err(|why| format!("--buffer: {why}"))?;
        if let Some(b) = buffer.filter(|b| *b < sizes::MEMORY_FEWEST_BYTES as u64) {
            return Err(format!("--buffer: {b} bytes fit a cache; at least 8M"));
        }
        let contents = match params.data.as_str() {
            "random" => Contents::Random,
            "zeros" => Contents::Zeros,
            other => return Err(format!("--data '{other}' is not one of random, zeros")),
        };
        let update = kernels.iter().find(|k| split(k.name).0 == UPDATE);
        if let Some(k) = update.filter(|_| contents == Contents::Zeros) {
            return Err(format!(
                "--data zeros with kernel '{}': a change of sign makes zeros that are not all zero bits; leave one of them out",
                k.name
            ));
        }
        let buffer_bytes = buffer.map(|b| usize::try_from(b).unwrap_or(usize::MAX));
        Ok(Self { kernels, cpus: threads, buffer_bytes, contents })
    }
}

fn asked(name: &str) -> Result<&'static Kernel, String> {
    let found = streams().find(|k| k.name == name);
    match found.or_else(|| widest(name).filter(|k| moved(k).is_some())) {
        Some(k) if (k.available)() => Ok(k),
        Some(k) => Err(format!("kernel '{}' needs instructions this processor does not have", k.name)),
        None => Err(format!("kernel '{name}' is not one of {}", known())),
    }
}

/// Families, and one name as an example of a width.
fn known() -> String {
    let families = crate::show::ascending(streams().filter(|k| (k.available)()).map(|k| split(k.name).0));
    let example = widest("read").map_or("read.scalar", |k| k.name);
    format!("{} (or one width of them, as {example})", families.join(", "))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Depth {
    /// Under 1.1 s.
    Least,
    Page,
    Full,
}

impl Depth {
    pub(super) fn of(left_ns: u64) -> Self {
        match left_ns {
            0..1_100_000_000 => Self::Least,
            1_100_000_000..7_000_000_000 => Self::Page,
            _ => Self::Full,
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Plan {
    pub(super) single: Vec<Spec>,
    pub(super) together: Vec<Spec>,
    pub(super) peaks: Vec<&'static Kernel>,
}

/// Chooses the rows. `cached` are working sets by level, `memory_bytes` the one in memory.
pub(super) fn rows(depth: Depth, request: &Request, cached: &[(Level, usize)], memory_bytes: usize) -> Plan {
    let mut plan = Plan::default();
    let spec = |kernel, level, working_set_bytes| {
        Spec::new(kernel, level, working_set_bytes, contents_of(kernel, request.contents))
    };
    let asked = || Some(request.kernels.clone()).filter(|kernels| !kernels.is_empty());
    let chosen = |list: &[&str]| asked().unwrap_or_else(|| list.iter().filter_map(|f| widest(f)).collect());
    let everything = || asked().unwrap_or_else(|| streams().filter(|k| (k.available)()).collect());
    let full = depth == Depth::Full;
    let (in_caches, in_memory, at_once): (&[&str], &[&str], &[&str]) = match depth {
        Depth::Least => (&USUAL, &["read", "write", "write_nt", "copy", "triad"], &["read", "copy"]),
        Depth::Page => (&USUAL, &FAMILIES, &["read", "write", "copy", "triad"]),
        Depth::Full => (&[], &[], &FAMILIES),
    };
    let all_or = |list| if full { everything() } else { chosen(list) };
    let (in_caches, in_memory, at_once) = (all_or(in_caches), all_or(in_memory), chosen(at_once));
    plan.single.extend(in_memory.iter().map(|k| spec(k, Level::Memory, memory_bytes)));
    for (level, bytes) in cached {
        // Streaming stores go to memory, however small the working set.
        let caching = in_caches.iter().filter(|k| k.declared.streaming_stores == 0);
        plan.single.extend(caching.map(|k| spec(k, *level, *bytes)));
    }
    plan.peaks = peaks(depth);
    if let Some(k) = widest("daxpy").filter(|_| depth > Depth::Least && request.kernels.is_empty()) {
        plan.single.extend(cached.first().map(|(level, bytes)| spec(k, *level, *bytes)));
    }
    if depth > Depth::Least {
        let zeroed = if full { chosen(&FAMILIES) } else { chosen(&["write", "write_nt"]) };
        let huge = if full { chosen(&FAMILIES) } else { chosen(&["read", "copy"]) };
        let memory = |k: &&'static Kernel| spec(k, Level::Memory, memory_bytes);
        if request.contents == Contents::Random {
            let ordinary = zeroed.iter().map(memory).filter(|s| s.contents == Contents::Random);
            plan.single.extend(ordinary.map(|s| Spec { contents: Contents::Zeros, ..s }));
        }
        plan.single.extend(huge.iter().map(memory).map(|s| Spec { pages: Backing::Huge, ..s }));
    }
    let counts = cpu_counts(request.cpus, depth);
    let together = |k: &'static Kernel, cpus| Spec { cpus, ..spec(k, Level::Memory, memory_bytes) };
    plan.together.extend(counts.iter().flat_map(|n| at_once.iter().map(|k| together(k, *n))));
    if full {
        for k in chosen(&USUAL) {
            plan.single.extend(sizes::sweep(memory_bytes).into_iter().map(|b| spec(k, Level::Sweep, b)));
        }
        let compiled =
            STREAM_FAMILIES.iter().filter_map(|f| compiled_width(f)).filter(|_| request.kernels.is_empty());
        for k in compiled {
            plan.single.push(Spec { as_stream: true, ..spec(k, Level::Memory, memory_bytes) });
            let all = counts.last().map(|n| Spec { as_stream: true, ..together(k, *n) });
            plan.together.extend(all);
        }
    }
    for specs in [&mut plan.single, &mut plan.together] {
        // A change of sign makes zeros that are not all zero bits, and the other rows share the memory.
        specs.retain(|s| s.contents == Contents::Random || split(s.kernel.name).0 != UPDATE);
        let mut seen = std::collections::BTreeSet::new();
        specs.retain(|s| {
            let row = s.row(1);
            seen.insert((row.operation, row.params))
        });
    }
    plan
}

/// The instruction that zeroes a line writes zeros whatever it is given.
fn contents_of(kernel: &Kernel, asked: Contents) -> Contents {
    if split(kernel.name).1 == "zva" { Contents::Zeros } else { asked }
}

/// What a compiler emits for STREAM's loops without further flags.
fn compiled_width(family: &str) -> Option<&'static Kernel> {
    ["sse2", "neon"].iter().find_map(|v| kernel::named(&format!("{family}.{v}"))).filter(|k| (k.available)())
}

fn peaks(depth: Depth) -> Vec<&'static Kernel> {
    let widest = widest("fma").map(|k| k.name);
    let wanted = |name: &str| match depth {
        Depth::Least => Some(name) == widest,
        Depth::Page => Some(name) == widest || name == "fma.scalar",
        Depth::Full => split(name).0 == "fma",
    };
    kernel::all().filter(|k| wanted(k.name) && (k.available)()).collect()
}

/// 2, 4, 8, ... and all of the CPUs; all of them alone where time is short.
fn cpu_counts(cpus: usize, depth: Depth) -> Vec<usize> {
    let powers = (1..usize::BITS).map(|s| 1_usize << s).take_while(|n| *n < cpus);
    powers.filter(|_| depth == Depth::Full).chain((cpus > 1).then_some(cpus)).collect()
}
