//! The poorest witness: counters before and after. How often each interrupt came and what was stolen, not when.

use machmeter_sys::counters::Counters;

use super::activity_log::{ActivityLog, Sight};
use super::{Meter, Witness};

pub(super) struct Totals {
    before: Result<Counters, String>,
}

impl Totals {
    pub(super) fn start() -> Self {
        Self { before: Counters::read().map_err(|e| e.to_string()) }
    }

    /// True if a hypervisor stole time from one of these CPUs since the system started, so that the kernel has a steal clock.
    pub(super) fn has_steal(&self, cpus: &[usize]) -> bool {
        let stolen =
            |c: &Counters| cpus.iter().any(|cpu| c.times.on_cpu(*cpu).is_some_and(|t| t.steal_ns > 0));
        self.before.as_ref().is_ok_and(stolen)
    }

    /// Adds what the counters gained since the start to a activity log.
    pub(super) fn add_to(&self, activity_log: &mut ActivityLog, meters: &[Meter]) {
        let gained = match (&self.before, Counters::read()) {
            (Ok(before), Ok(after)) => after.since(before),
            (Err(e), _) => return activity_log.notes.push(format!("counters: {e}")),
            (_, Err(e)) => return activity_log.notes.push(format!("counters: {e}")),
        };
        for m in meters {
            let irqs = gained.interrupts.on_cpu(m.cpu).into_iter().map(|(l, n)| (l.name().to_owned(), n));
            let soft =
                gained.softirqs.on_cpu(m.cpu).into_iter().map(|(l, n)| (format!("softirq {}", l.name()), n));
            let all = irqs.chain(soft).filter(|(_, n)| *n > 0);
            activity_log.counters.extend(all.map(|(name, n)| (m.cpu, name, n)));
            activity_log.steal_ns.push(gained.times.on_cpu(m.cpu).map(|t| t.steal_ns));
        }
    }
}

impl Witness for Totals {
    fn finish(self: Box<Self>, meters: &[Meter]) -> ActivityLog {
        let mut t =
            ActivityLog { witness: "counters".to_owned(), sight: Sight::Nothing, ..ActivityLog::none() };
        t.spans = vec![Vec::new(); meters.len()];
        t.lost = vec![0; meters.len()];
        self.add_to(&mut t, meters);
        t
    }
}
