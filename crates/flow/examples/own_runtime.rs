//! The timers around somebody else's scheduler: three lines give its table.

use std::collections::VecDeque;

use machmeter_flow::table::Table;
use machmeter_flow::timer::{Log, On, Timer};

const NAMES: &[&str] = &["apply", "scheduler"];
const APPLY: u8 = 0;
const SCHEDULER: u8 = 1;

fn main() {
    let log = Log::new(NAMES).calibrated();
    let mut tasks: VecDeque<Box<dyn FnMut() -> bool>> = VecDeque::new();
    for n in 1..=10_u32 {
        let mut left = 100 * n;
        tasks.push_back(Box::new(move || {
            left -= 1;
            left > 0
        }));
    }
    log.start();
    On::enter(&log, SCHEDULER);
    while let Some(mut task) = tasks.pop_front() {
        On::enter(&log, APPLY);
        let goes_on = task();
        On::leave(&log);
        if goes_on {
            tasks.push_back(task);
        }
    }
    On::leave(&log);
    log.stop();
    let table = Table::new(NAMES, &log.sums(), 1.0, false);
    assert_eq!(table.row("apply").map(|r| r.called), Some(5_500));
    // In ticks here; give the length of one for ns.
    assert!(table.efficiency().is_some() && table.overhead_ns().is_some());
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_runs() {
        super::main();
    }
}
