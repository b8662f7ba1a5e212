//! Recording kernel events on some CPUs, from start to finished log.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::decode::Decoder;
use super::format::{EventFormat, PageFormat};
use super::instance::Instance;
use super::log::{Dropped, NameId, SkippedEvent, TraceClock, TraceEvent, TraceLog};
use crate::Refused;
use crate::pseudofs::KernelMount;
use crate::topology::CpuSet;

/// What takes a CPU from a program, as `group/event`; `group/*` means every `_entry` and `_exit` event of the group.
pub const DEFAULT_EVENTS: &[&str] = &[
    "sched/sched_switch",
    "irq/irq_handler_entry",
    "irq/irq_handler_exit",
    "irq/softirq_entry",
    "irq/softirq_exit",
    #[cfg(target_arch = "x86_64")]
    "irq_vectors/*",
    #[cfg(target_arch = "x86_64")]
    "exceptions/page_fault_user",
    #[cfg(target_arch = "x86_64")]
    "exceptions/page_fault_kernel",
    #[cfg(target_arch = "aarch64")]
    "ipi/*",
    "timer/hrtimer_expire_entry",
    "nmi/nmi_handler",
    "workqueue/workqueue_execute_start",
    "workqueue/workqueue_execute_end",
];

/// What makes a thread wait for a CPU or ends its wait, beside the switches.
pub const WAITING_EVENTS: &[&str] =
    &["sched/sched_wakeup", "sched/sched_wakeup_new", "sched/sched_migrate_task", "sched/sched_process_fork"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TraceConfig {
    pub cpus: CpuSet,
    /// Ring buffer of each CPU in bytes; about 50 bytes per event. Halved until the kernel grants it.
    pub buffer_bytes_per_cpu: usize,
    /// Events as `group/event` or `group/*`; see [`DEFAULT_EVENTS`].
    pub events: Vec<String>,
    /// Clocks in the order of preference.
    pub clocks: &'static [TraceClock],
}

impl TraceConfig {
    /// The default events on `cpus`, stamped by the TSC where there is one, 4 MiB per CPU.
    pub fn on(cpus: CpuSet) -> Self {
        Self {
            cpus,
            buffer_bytes_per_cpu: 4 << 20,
            events: DEFAULT_EVENTS.iter().map(|e| (*e).to_owned()).collect(),
            clocks: &TraceClock::ALL,
        }
    }
}

fn in_step(step: &str) -> impl FnOnce(io::Error) -> Refused {
    move |e| Refused(format!("trace instance: {step}: {e}"))
}

fn not_understood(file: &str) -> Refused {
    Refused(format!("trace instance: {file} of this kernel was not understood"))
}

/// A running recording. Dropping it removes the instance and forgets the events.
#[derive(Debug)]
pub struct TraceSession {
    instance: Instance,
    decoder: Decoder,
    lanes: Vec<Lane>,
    clock: TraceClock,
    skipped_events: Vec<SkippedEvent>,
    page: Vec<u8>,
}

impl TraceSession {
    /// Makes a private instance and starts recording; missing events are no error. Errors:
    /// no root or no tracefs; else the step that failed.
    pub fn start(config: &TraceConfig) -> Result<Self, Refused> {
        if config.cpus.is_empty() {
            return Err(Refused("no CPU to trace: name at least one".to_owned()));
        }
        let instance = KernelMount::of_tracefs().and_then(Instance::create);
        let instance = instance.map_err(|e| Refused(format!("kernel events are not available: {e}")))?;
        instance.write("tracing_on", "0").map_err(in_step("stopping"))?;
        let clock = set_clock(&instance, config.clocks)?;
        instance.write("options/overwrite", "0").map_err(in_step("setting 'no overwrite'"))?;
        instance
            .write("tracing_cpumask", &mask_text(&config.cpus))
            .map_err(in_step("setting the CPU mask"))?;
        size_buffers(&instance, config)?;
        let header = instance.read("events/header_page").map_err(in_step("reading events/header_page"))?;
        let page = PageFormat::parse(&header).ok_or_else(|| not_understood("events/header_page"))?;
        let (formats, skipped_events) = enable_events(&instance, &config.events);
        let decoder = Decoder::new(page, &formats);
        let lane = |cpu| Lane { cpu: cpu as u16, events: Vec::new() };
        let lanes = config.cpus.iter().map(lane).collect();
        let page = vec![0; decoder.page.subbuf_bytes];
        let session = Self { instance, decoder, lanes, clock, skipped_events, page };
        session.instance.write("tracing_on", "1").map_err(in_step("starting"))?;
        Ok(session)
    }

    pub fn clock(&self) -> TraceClock {
        self.clock
    }

    /// Reads what was recorded, so that the buffers have room; from a CPU that is not measured. Events read.
    pub fn drain(&mut self) -> Result<usize, Refused> {
        let before: usize = self.lanes.iter().map(|l| l.events.len()).sum();
        for lane in &mut self.lanes {
            read_lane(&self.instance, &mut self.decoder, lane, &mut self.page)
                .map_err(in_step(&format!("reading CPU {}", lane.cpu)))?;
        }
        Ok(self.lanes.iter().map(|l| l.events.len()).sum::<usize>() - before)
    }

    /// Events read so far, CPU by CPU.
    pub fn recorded(&self) -> impl Iterator<Item = &[TraceEvent]> {
        self.lanes.iter().map(|l| l.events.as_slice())
    }

    /// Takes what was read so far, in order of time. Later events of one CPU can be older than events of another CPU that were taken already.
    pub fn take(&mut self) -> Vec<TraceEvent> {
        let mut events: Vec<TraceEvent> = self.lanes.iter_mut().flat_map(|l| l.events.drain(..)).collect();
        events.sort_by_key(|e| (e.ticks, e.cpu));
        events
    }

    /// A name in the events read so far.
    pub fn name(&self, id: NameId) -> &str {
        self.decoder.names.text(id)
    }

    /// Stops, reads the rest and removes the instance. Errors: the step that failed; it is removed all the same.
    pub fn stop(mut self) -> Result<TraceLog, Refused> {
        self.instance.write("tracing_on", "0").map_err(in_step("stopping"))?;
        self.drain()?;
        let Self { instance, decoder, lanes, clock, skipped_events, .. } = self;
        let mut dropped = Vec::new();
        let mut events = Vec::with_capacity(lanes.iter().map(|l| l.events.len()).sum());
        for mut lane in lanes {
            let cpu = usize::from(lane.cpu);
            // Without overwriting, the kernel notes losses only in its statistics.
            let stats = instance.read(&format!("per_cpu/cpu{cpu}/stats"));
            let lost = lost(&stats.map_err(in_step("reading what was lost"))?);
            dropped.push(Dropped { cpu, events: lost });
            events.append(&mut lane.events);
        }
        // Each lane is in order already, which a stable sort makes use of.
        events.sort_by_key(|e| (e.ticks, e.cpu));
        let Decoder { names, malformed_records, .. } = decoder;
        let clock = Some(clock);
        Ok(TraceLog { events, names, dropped, clock, skipped_events, malformed_records })
    }
}

#[derive(Debug)]
struct Lane {
    cpu: u16,
    events: Vec<TraceEvent>,
}

/// Reads all that one CPU has recorded. The file is opened each time, so that nothing keeps the instance from being removed.
fn read_lane(instance: &Instance, decoder: &mut Decoder, lane: &mut Lane, page: &mut [u8]) -> io::Result<()> {
    let path = instance.path(&format!("per_cpu/cpu{}/trace_pipe_raw", lane.cpu));
    let mut pipe = File::options().read(true).custom_flags(libc::O_NONBLOCK).open(path)?;
    loop {
        let len = match pipe.read(page) {
            Ok(0) => break,
            Ok(len) => len,
            Err(e) if e.kind() == io::ErrorKind::WouldBlock => break,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(e),
        };
        decoder.decode(&page[..len], lane.cpu, &mut lane.events);
    }
    Ok(())
}

/// The losses that a `per_cpu/cpuN/stats` text tells of.
fn lost(stats: &str) -> u64 {
    let values = stats.lines().filter_map(|line| {
        let (key, value) = line.split_once(':')?;
        let is_loss = ["overrun", "commit overrun", "dropped events"].contains(&key.trim());
        if is_loss { value.trim().parse::<u64>().ok() } else { None }
    });
    values.sum()
}

fn set_clock(instance: &Instance, clocks: &[TraceClock]) -> Result<TraceClock, Refused> {
    let listed = instance.read("trace_clock").map_err(in_step("reading trace_clock"))?;
    let available: Vec<&str> = listed.split_whitespace().map(|c| c.trim_matches(['[', ']'])).collect();
    let is_set =
        |c: &&TraceClock| available.contains(&c.name()) && instance.write("trace_clock", c.name()).is_ok();
    clocks.iter().find(is_set).copied().ok_or_else(|| not_understood("trace_clock"))
}

/// The kernel's mask format: 32-bit groups in hexadecimal, highest first, separated by commas.
fn mask_text(cpus: &CpuSet) -> String {
    let mut groups = vec![0_u32; cpus.iter().next_back().unwrap_or(0) / 32 + 1];
    for cpu in cpus.iter() {
        groups[cpu / 32] |= 1 << (cpu % 32);
    }
    let texts: Vec<String> = groups.iter().rev().map(|g| format!("{g:08x}")).collect();
    texts.join(",")
}

/// Gives the traced CPUs their buffers and takes them from the others, which record nothing.
fn size_buffers(instance: &Instance, config: &TraceConfig) -> Result<(), Refused> {
    const SMALLEST_BYTES: usize = 64 << 10;
    instance.write("buffer_size_kb", "64").map_err(in_step("shrinking the buffers"))?;
    let grant = |bytes: usize| {
        let kib = (bytes >> 10).to_string();
        let mut files = config.cpus.iter().map(|cpu| format!("per_cpu/cpu{cpu}/buffer_size_kb"));
        files.try_for_each(|file| instance.write(&file, &kib))
    };
    let mut bytes = config.buffer_bytes_per_cpu.max(SMALLEST_BYTES);
    loop {
        match grant(bytes) {
            Ok(()) => return Ok(()),
            Err(e) if e.raw_os_error() == Some(libc::ENOMEM) && bytes / 2 >= SMALLEST_BYTES => bytes /= 2,
            Err(e) => return Err(in_step("sizing the buffers (does every CPU exist?)")(e)),
        }
    }
}

/// Switches the events on; returns the formats of those that are, and those that are not with the reason.
fn enable_events(instance: &Instance, events: &[String]) -> (Vec<EventFormat>, Vec<SkippedEvent>) {
    let mut formats = Vec::new();
    let mut skipped = Vec::new();
    for event in events {
        let found = match event.strip_suffix("/*") {
            Some(group) => entry_exit_events(&instance.path("events").join(group), group),
            None => Ok(vec![event.clone()]),
        };
        let names = found.unwrap_or_else(|e| {
            skipped.push(SkippedEvent { event: event.clone(), why: reason(&e) });
            Vec::new()
        });
        for name in names {
            match enable_event(instance, &name) {
                Ok(format) => formats.push(format),
                Err(e) => skipped.push(SkippedEvent { event: name, why: reason(&e) }),
            }
        }
    }
    (formats, skipped)
}

fn reason(error: &io::Error) -> String {
    if error.kind() == io::ErrorKind::NotFound {
        "this kernel does not have it".to_owned()
    } else {
        error.to_string()
    }
}

fn entry_exit_events(dir: &Path, group: &str) -> io::Result<Vec<String>> {
    let mut names: Vec<String> = fs::read_dir(dir)?
        .flatten()
        .filter_map(|e| e.file_name().into_string().ok())
        .filter(|n| n.ends_with("_entry") || n.ends_with("_exit"))
        .map(|n| format!("{group}/{n}"))
        .collect();
    names.sort();
    Ok(names)
}

fn enable_event(instance: &Instance, name: &str) -> io::Result<EventFormat> {
    let text = instance.read(&format!("events/{name}/format"))?;
    let group = name.split('/').next().unwrap_or_default();
    let format =
        EventFormat::parse(group, &text).ok_or_else(|| io::Error::other("its format was not understood"))?;
    instance.write(&format!("events/{name}/enable"), "1")?;
    Ok(format)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_have_the_kernels_form() {
        assert_eq!(mask_text(&"0-1".parse().unwrap()), "00000003");
        assert_eq!(mask_text(&"3,35".parse().unwrap()), "00000008,00000008");
        assert_eq!(mask_text(&"64".parse().unwrap()), "00000001,00000000,00000000");
    }

    #[test]
    fn an_empty_cpu_set_is_refused_before_anything_is_touched() {
        let e = TraceSession::start(&TraceConfig::on(CpuSet::default())).unwrap_err();
        assert!(e.to_string().starts_with("no CPU to trace"));
    }

    #[test]
    fn losses_are_summed_from_the_statistics() {
        let stats = "entries: 50\noverrun: 2\ncommit overrun: 1\nbytes: 90\noldest event ts: 1.5\nnow ts: 9.1\n\
                     dropped events: 40\nread events: 7\n";
        assert_eq!((lost(stats), lost("")), (43, 0));
    }
}
