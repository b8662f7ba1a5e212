//! Wake-ups: from telling a thread that something happened until it runs, as half a round trip between two that wake each
//! other by turns. Apart by where the one who is woken is: on the waker's CPU (a switch), on an idle CPU (which has to leave
//! its idle state; in a guest, an exit to the host), on a CPU busy with another thread (which has to be preempted), or awake
//! and looking. Before it wakes an idle one, a member waits until it is idle; that time is taken off. Each trip is timed. That it slept is proven by the kernel's count of its switches.

mod analyze;
mod measure;
#[cfg(test)]
mod tests;

use super::Params;
use machmeter_engine::part::Part;

const NAME: &str = "wakeups";

pub(super) const PART: Part<Params> =
    Part { codes: &[AWAKE], ..Part::of(NAME, 20, measure::measure, analyze::analyze) };

machmeter_data::code! { pub(super) AWAKE = "W433" "partner not asleep",
    what: "A wake-up was to be measured, but the partner had not gone to sleep yet.",
    why: "Then nobody is woken, and the time is that of a polling partner: too short.",
    how: "The kernel's count of voluntary switches (of all switches, on one CPU) in each batch; fewer than 90 % of those that \
          waking takes, and all trips of the batch are left out.",
    next: "Measure on an otherwise idle machine, or longer (-t).",
}
