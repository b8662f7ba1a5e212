//! The poorest witness: counters before and after. They tell how often each interrupt came and how much time the
//! hypervisor took, but not when.

use machmeter_sys::counters::{Interrupts, ProcStat};

use super::testimony::{Sight, Testimony};
use super::{Meter, Witness};

/// Counters at the start.
pub(super) struct Totals {
    interrupts: Option<Interrupts>,
    stat: Option<ProcStat>,
}

impl Totals {
    /// Reads the counters.
    pub(super) fn start(_cpus: &[usize]) -> Self {
        Self { interrupts: Interrupts::read().ok(), stat: ProcStat::read().ok() }
    }

    /// Adds what the counters gained since the start to a testimony.
    pub(super) fn add_to(&self, testimony: &mut Testimony, meters: &[Meter]) {
        if let (Some(before), Ok(after)) = (&self.interrupts, Interrupts::read()) {
            let gained = after.since(before);
            for m in meters {
                for (name, count) in gained.on_cpu(m.cpu) {
                    if count > 0 {
                        testimony.counters.push((m.cpu, name, count));
                    }
                }
            }
        }
        let after = ProcStat::read().ok();
        testimony.steal_ns = meters
            .iter()
            .map(|m| {
                let (before, after) = (self.stat.as_ref()?, after.as_ref()?);
                Some(after.steal_ns(m.cpu)?.saturating_sub(before.steal_ns(m.cpu)?))
            })
            .collect();
    }
}

impl Witness for Totals {
    fn attach(&self, _index: usize) -> Result<(), String> {
        Ok(())
    }

    fn drain(&self) {}

    fn finish(self: Box<Self>, meters: &[Meter]) -> Testimony {
        let mut t = Testimony { witness: "counters".to_owned(), sight: Sight::Nothing, ..Testimony::none() };
        t.spans = vec![Vec::new(); meters.len()];
        t.lost = vec![0; meters.len()];
        self.add_to(&mut t, meters);
        t
    }
}
