//! Names the machine in the few words that fit into a heading, from the facts of a record.

use machmeter_data::quantity::human;
use machmeter_data::record::ClockRecord;
use machmeter_data::{FactValue, Facts, Record, Unit};

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Identity {
    pub(crate) name: String,
    pub(crate) cpu: String,
    pub(crate) cpus: Option<u64>,
    pub(crate) kernel: String,
    pub(crate) virtualization: String,
    pub(crate) mitigations: String,
    pub(crate) memory: String,
    pub(crate) clock: String,
}

impl Identity {
    pub(crate) fn of(record: &Record) -> Self {
        let facts = &record.machine.before;
        let text = |path| said(facts, path);
        Self {
            name: text("private.hostname")
                .or_else(|| text("host.name"))
                .unwrap_or_else(|| "unnamed machine".to_owned()),
            cpu: text("cpu.model").unwrap_or_else(|| "CPU model unknown".to_owned()),
            cpus: counted(facts, "cpu.count").filter(|v| *v >= 1.0).map(|v| v as u64),
            kernel: text("kernel.release")
                .map_or_else(|| "kernel unknown".to_owned(), |k| format!("Linux {k}")),
            virtualization: virtualization(facts),
            mitigations: mitigations(facts),
            memory: text("memory.total").unwrap_or_else(|| "unknown".to_owned()),
            clock: record.clock.as_ref().map_or_else(|| "not recorded".to_owned(), clock),
        }
    }

    /// `AMD EPYC, 2 CPUs, KVM guest, Linux 6.18.44`.
    pub(crate) fn line(&self) -> String {
        format!("{}, {}", self.machine(), self.kernel)
    }

    /// `AMD EPYC, 2 CPUs, KVM guest`.
    pub(crate) fn machine(&self) -> String {
        let mut parts = vec![self.cpu.clone()];
        if let Some(n) = self.cpus {
            parts.push(if n == 1 { "1 CPU".to_owned() } else { format!("{n} CPUs") });
        }
        if self.virtualization != "unknown" {
            parts.push(self.virtualization.clone());
        }
        parts.join(", ")
    }
}

/// `rdtsc at 2.60 GHz, step 0.385 ns, read 9.60 ns`.
fn clock(c: &ClockRecord) -> String {
    let ns_per_tick = if c.rate_hz > 0.0 { 1e9 / c.rate_hz } else { 0.0 };
    let [step, read] =
        [c.step_ticks as f64, c.read_cost_ticks].map(|ticks| human(ticks * ns_per_tick, Unit::Nanoseconds));
    format!("{} at {}, step {step}, read {read}", c.source, human(c.rate_hz, Unit::Hertz))
}

/// A number, or the length of a list.
fn counted(facts: &Facts, path: &str) -> Option<f64> {
    match facts.get(path)?.value.as_ref()? {
        FactValue::List(l) => Some(l.len() as f64),
        _ => facts.number(path),
    }
}

fn said(facts: &Facts, path: &str) -> Option<String> {
    facts.get(path)?.human().filter(|words| !words.is_empty())
}

pub(crate) fn virtualization(facts: &Facts) -> String {
    match said(facts, "virt.hypervisor").as_deref() {
        Some("none" | "no" | "bare-metal" | "bare metal") => "bare metal".to_owned(),
        Some("unnamed") => "virtual machine".to_owned(),
        Some(h) => format!("{} guest", if h == "kvm" { "KVM" } else { h }),
        None => "unknown".to_owned(),
    }
}

/// The number of processor flaws that are mitigated, open and not applicable.
fn mitigations(facts: &Facts) -> String {
    let (mut on, mut open, mut unaffected) = (0, 0, 0);
    for (path, fact) in &facts.0 {
        let Some(text) = fact.text().filter(|_| path.contains("mitigation") || path.contains("vulnerabilit"))
        else {
            continue;
        };
        if text.starts_with("Not affected") {
            unaffected += 1;
        } else if text.starts_with("Vulnerable") {
            open += 1;
        } else {
            on += 1;
        }
    }
    if on + open + unaffected == 0 {
        return "unknown".to_owned();
    }
    format!("{on} active, {open} vulnerable, {unaffected} not affected")
}
