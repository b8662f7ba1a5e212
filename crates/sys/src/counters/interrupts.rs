//! `/proc/interrupts` and `/proc/softirqs`, which share one form: a header naming the CPUs, then a line of counts per source.

use std::collections::HashMap;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InterruptLine {
    /// What stands before the colon: an interrupt number, `LOC`, `RES`, `TIMER`.
    pub id: String,
    /// Counts in the order of [`InterruptCounts::cpus`]; a single one for lines the kernel does not split by CPU (`ERR`, `MIS`).
    pub counts: Vec<u64>,
    /// What stands after the counts: controller, trigger and the handlers' names, or a description; empty for soft interrupts.
    pub description: String,
}

impl InterruptLine {
    /// The name a reader knows: the handlers' names (`virtio1-req.0`) of a numbered interrupt, the description of a named one
    /// (`Local timer interrupts`), else the id.
    pub fn name(&self) -> &str {
        if self.description.is_empty() {
            return &self.id;
        }
        if self.id.bytes().all(|b| b.is_ascii_digit()) {
            // Handler names come last, joined by commas: "IO-APIC 4-edge ttyS0", "... a, b".
            let mut spaces = self.description.rmatch_indices(' ');
            let before = spaces.find(|(at, _)| !self.description[..*at].ends_with(','));
            return &self.description[before.map_or(0, |(at, _)| at + 1)..];
        }
        &self.description
    }
}

/// A snapshot of all sources, or the difference of two.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct InterruptCounts {
    /// Numbers of the CPUs counted, in the order of the columns; offline ones are missing.
    pub cpus: Vec<usize>,
    /// Sources in the kernel's order.
    pub lines: Vec<InterruptLine>,
}

impl InterruptCounts {
    /// Reads the file's text; `None` if the header is not one.
    pub fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let header = lines.next()?.split_ascii_whitespace();
        let cpus = header.map(|w| w.strip_prefix("CPU")?.parse().ok()).collect::<Option<Vec<usize>>>()?;
        if cpus.is_empty() {
            return None;
        }
        let lines = lines.filter_map(|line| parse_line(line, cpus.len())).collect();
        Some(Self { cpus, lines })
    }

    pub fn line(&self, id: &str) -> Option<&InterruptLine> {
        self.lines.iter().find(|l| l.id == id)
    }

    /// Sources that counted on `cpu`, largest first.
    pub fn on_cpu(&self, cpu: usize) -> Vec<(&InterruptLine, u64)> {
        let Some(column) = self.cpus.iter().position(|c| *c == cpu) else { return Vec::new() };
        let split = self.lines.iter().filter(|l| l.counts.len() == self.cpus.len());
        let mut counted: Vec<_> = split.map(|l| (l, l.counts[column])).filter(|(_, n)| *n > 0).collect();
        counted.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
        counted
    }

    /// What came since `earlier`. Sources that are new count from zero; the kernel's 32-bit counters may have gone around once.
    /// CPUs that were not counted before start from zero as well.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        let columns: Vec<Option<usize>> =
            self.cpus.iter().map(|cpu| earlier.cpus.iter().position(|c| c == cpu)).collect();
        let before: HashMap<(&str, &str), &InterruptLine> =
            earlier.lines.iter().map(|l| ((l.id.as_str(), l.description.as_str()), l)).collect();
        let difference = |line: &InterruptLine| {
            let old = before.get(&(line.id.as_str(), line.description.as_str()));
            let old_count = |i: usize| {
                let column = if line.counts.len() == columns.len() { columns[i] } else { Some(i) };
                old.and_then(|l| l.counts.get(column?).copied()).unwrap_or(0)
            };
            let counts =
                line.counts.iter().enumerate().map(|(i, n)| counter_step(old_count(i), *n)).collect();
            InterruptLine { id: line.id.clone(), counts, description: line.description.clone() }
        };
        Self { cpus: self.cpus.clone(), lines: self.lines.iter().map(difference).collect() }
    }
}

fn parse_line(line: &str, cpus: usize) -> Option<InterruptLine> {
    let (id, rest) = line.split_once(':')?;
    let mut words = rest.split_ascii_whitespace().peekable();
    let mut counts = Vec::with_capacity(cpus);
    while counts.len() < cpus
        && let Some(count) = words.peek().and_then(|w| w.parse::<u64>().ok())
    {
        counts.push(count);
        words.next();
    }
    let description = words.collect::<Vec<_>>().join(" ");
    (!counts.is_empty()).then(|| InterruptLine { id: id.trim().to_owned(), counts, description })
}

/// The growth of a counter of 32 bits that may have gone around.
fn counter_step(before: u64, after: u64) -> u64 {
    if after >= before {
        after - before
    } else if u32::try_from(before).is_ok() {
        after + (1 << 32) - before
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    // CPU 1 is offline here.
    const INTERRUPTS: &str = "\
           CPU0       CPU2       \n\
  4:          1         13   IO-APIC   4-edge      ttyS0\n\
 16:          0         20   IO-APIC  16-fasteoi   ehci_hcd:usb1, mmc0\n\
 36:          0      33113  PCI-MSIX-0000:00:02.0   1-edge      virtio1-req.0\n\
 90:          7          0  PCI-MSI 524288-edge\n\
NMI:          0          0   Non-maskable interrupts\n\
LOC:      53214 4294967290   Local timer interrupts\n\
ERR:          3\n\
MIS:          0\n";

    #[test]
    fn sources_have_counts_per_cpu_and_the_name_people_know() {
        let counts = InterruptCounts::parse(INTERRUPTS).unwrap();
        assert_eq!(counts.cpus, [0, 2]);
        let line = |id| counts.line(id).unwrap();
        assert_eq!((line("36").counts[1], line("LOC").counts[0]), (33_113, 53_214));
        let name = |id| line(id).name();
        assert_eq!(name("4"), "ttyS0");
        assert_eq!(name("16"), "ehci_hcd:usb1, mmc0");
        assert_eq!(name("36"), "virtio1-req.0");
        assert_eq!(name("LOC"), "Local timer interrupts");
        assert_eq!((name("ERR"), line("ERR").counts.as_slice()), ("ERR", [3].as_slice()));
        let busiest: Vec<&str> = counts.on_cpu(2).iter().map(|(l, _)| l.id.as_str()).collect();
        assert_eq!(busiest, ["LOC", "36", "16", "4"]);
    }

    #[test]
    fn differences_survive_wrapping_new_sources_and_new_cpus() {
        let before = InterruptCounts::parse(INTERRUPTS).unwrap();
        let after = "CPU0 CPU1 CPU2\n 4: 2 5 13 IO-APIC 4-edge ttyS0\nLOC: 53300 9 10 Local timer interrupts\n\
                     99: 1 1 1 new\nERR: 4\n";
        let delta = InterruptCounts::parse(after).unwrap().since(&before);
        let counts: Vec<&[u64]> = delta.lines.iter().map(|l| l.counts.as_slice()).collect();
        assert_eq!(counts, [&[1, 5, 0][..], &[86, 9, 16], &[1, 1, 1], &[1]]);
    }

    #[test]
    fn soft_interrupts_have_the_same_form() {
        let text = "                    CPU0       CPU1       \n          HI:          0          0\n       TIMER:       4983       6293\n";
        let counts = InterruptCounts::parse(text).unwrap();
        let timer = counts.line("TIMER").unwrap();
        assert_eq!((timer.counts[1], timer.name()), (6_293, "TIMER"));
    }

    proptest! {
        #[test]
        fn random_text_never_panics(text in "[ -~\\n]{0,300}", header in prop::bool::ANY) {
            let text = if header { format!("CPU0 CPU1\n{text}") } else { text };
            if let Some(counts) = InterruptCounts::parse(&text) {
                prop_assert!(counts.lines.iter().all(|l| l.counts.len() <= counts.cpus.len()));
                let zero = counts.since(&counts);
                prop_assert!(counts.lines.iter().all(|l| l.name().len() <= l.description.len().max(l.id.len())));
                prop_assert_eq!(zero.lines.len(), counts.lines.len());
            }
        }
    }
}
