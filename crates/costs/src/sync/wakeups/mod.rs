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

machmeter_data::code! { pub(super) AWAKE = "W433" "partner awake",
    what: "A wake-up was not measured: the partner thread had not gone to sleep yet.",
    why: "A partner that still polls needs no wake-up, so the time would be too short.",
    how: "The kernel's count of voluntary switches in each batch (of all switches, on one CPU). A batch with fewer than 90 % of the expected switches is rejected.",
    next: "Close other programs, or measure longer (-t).",
}
