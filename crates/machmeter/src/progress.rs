//! Shows progress on stderr: a line for each part at its end, and on a terminal a bar that is redrawn.

use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use machmeter_engine::probe::Outcome;
use machmeter_engine::{Entry, Progress};
use machmeter_report::terminal::printable;
use machmeter_sys::affinity;
use machmeter_sys::thread::{monotonic_ns, spawn_plain};
use machmeter_sys::topology::CpuSet;

use crate::Globals;
use crate::output::say;

/// Interval between two drawings of the bar: at 50 us each they take 0.01 % of a CPU.
const REDRAWN: Duration = Duration::from_millis(500);
const BAR: usize = 20;
/// Rows of a part that its line contains.
const ROWS: usize = 3;
/// Interval between two lines of a calculation without a terminal, ns.
const LINE_NS: u64 = 30_000_000_000;
const CLEAR: &str = "\r\u{1b}[2K";

pub(crate) struct Reporter {
    shared: Arc<Shared>,
    ticker: Option<JoinHandle<()>>,
}

struct Shared {
    quiet: bool,
    /// True if each step is a line: with -v and without a terminal.
    steps: bool,
    ascii: bool,
    width: usize,
    begun_ns: u64,
    total_ns: AtomicU64,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    step: String,
    /// Time of the last line of a calculation, ns from the begin.
    told_ns: u64,
    /// True while the bar is on the screen.
    drawn: bool,
    over: bool,
}

impl State {
    fn clear(&mut self) {
        if std::mem::take(&mut self.drawn) {
            let _ = write!(std::io::stderr().lock(), "{CLEAR}");
        }
    }
}

impl Reporter {
    /// Progress of a run of `total_ns` on `cpus`. On a terminal a thread redraws the bar, on another CPU if there is one.
    pub(crate) fn new(globals: &Globals, width: usize, total_ns: u64, cpus: &CpuSet) -> Self {
        let is_live = !globals.quiet && std::io::stderr().is_terminal() && !crate::state::is_dumb();
        let steps = globals.verbose > 0 && !is_live;
        let shared = Arc::new(Shared {
            quiet: globals.quiet,
            ascii: globals.ascii || crate::state::is_ascii(),
            ..Shared::new(steps, width, total_ns)
        });
        let others = affinity::mask().map(|all| all.difference(cpus)).unwrap_or_default();
        let ticker = is_live.then(|| {
            let shared = Arc::clone(&shared);
            spawn_plain("progress", move || {
                if !others.is_empty() {
                    let _ = affinity::set_mask(&others);
                }
                shared.redraw();
            })
        });
        Self { shared, ticker: ticker.and_then(Result::ok) }
    }

    /// A share of a calculation is done; the rest is estimated in proportion. Without a terminal, a line is printed from time to time.
    pub(crate) fn done(&self, share: f64) {
        let spent_ns = monotonic_ns().saturating_sub(self.shared.begun_ns);
        self.shared.total_ns.store((spent_ns as f64 / share) as u64, Ordering::Relaxed);
        let text = format!("{:.0} % done", 100.0 * share);
        let is_due = self.ticker.is_none() && spent_ns - self.shared.lock().told_ns >= LINE_NS;
        if is_due && share < 1.0 {
            self.shared.lock().told_ns = spent_ns;
            let [spent, total] = self.shared.seconds();
            self.shared.line(&format!("[{spent} of {total} s] {text}"));
        }
        self.shared.lock().step = text;
    }

    pub(crate) fn ended(&self, entry: &Entry, outcome: &Outcome) {
        let metrics = &outcome.analysis.metrics;
        let rows = machmeter_data::summary::rows(entry.info.rows, metrics);
        let texts = rows.iter().filter(|r| !r.detail).filter_map(|r| r.text(metrics));
        let figures: Vec<String> = texts.take(ROWS).map(|t| format!("{} {}", t.name, t.line())).collect();
        let figures = if figures.is_empty() { "no figure".to_owned() } else { figures.join("; ") };
        let [spent, total] = self.shared.seconds();
        self.shared.line(&format!("[{spent} of {total} s] {}: {figures}", entry.info.name));
    }
}

impl Drop for Reporter {
    fn drop(&mut self) {
        self.shared.lock().over = true;
        self.shared.changed.notify_all();
        if let Some(ticker) = self.ticker.take() {
            let _ = ticker.join();
        }
        self.shared.lock().clear();
    }
}

impl Progress for Reporter {
    fn step(&self, text: &str) {
        if self.shared.steps {
            self.shared.line(text);
        }
        text.clone_into(&mut self.shared.lock().step);
    }

    fn figure(&self, text: &str) {
        self.shared.line(text);
    }
}

impl Shared {
    fn new(steps: bool, width: usize, total_ns: u64) -> Self {
        let (state, changed) = (Mutex::default(), Condvar::new());
        let (begun_ns, total_ns) = (monotonic_ns(), AtomicU64::new(total_ns));
        Self { quiet: false, steps, ascii: false, width, begun_ns, total_ns, state, changed }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Elapsed and total time, s.
    fn seconds(&self) -> [u64; 2] {
        let total_ns = self.total_ns.load(Ordering::Relaxed);
        let spent_ns = monotonic_ns().saturating_sub(self.begun_ns).min(total_ns);
        [spent_ns, total_ns].map(|ns| (ns + 500_000_000) / 1_000_000_000)
    }

    fn line(&self, text: &str) {
        if !self.quiet {
            let mut state = self.lock();
            state.clear();
            say(text);
        }
    }

    fn redraw(&self) {
        let mut state = self.lock();
        while !state.over {
            let [spent, total] = self.seconds();
            // Written at once: each system call competes with the measurement.
            let text = CLEAR.to_owned() + &bar(spent, total, &state.step, self.ascii, self.width);
            state.drawn = std::io::stderr().lock().write_all(text.as_bytes()).is_ok();
            state = self.changed.wait_timeout(state, REDRAWN).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// The bar with the elapsed time, cut to the width of the terminal.
fn bar(spent: u64, total: u64, step: &str, ascii: bool, width: usize) -> String {
    let full = (BAR as u64 * spent / total.max(1)) as usize;
    let [done, left] = if ascii { ["=", "-"] } else { ["━", "─"] };
    let bar = format!("{}{}", done.repeat(full.min(BAR)), left.repeat(BAR - full.min(BAR)));
    let text = format!(" {bar}  {spent} of {total} s, {} s left   {step}", total.saturating_sub(spent));
    printable(&text).chars().take(width.saturating_sub(1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_says_how_far_the_run_is_and_fits() {
        let burn = " =====---------------  15 of 60 s, 45 s left   load burn";
        assert_eq!(bar(15, 60, "load burn", true, 80), burn);
        let over = format!(" {}  60 of 60 s, 0 s left", "=".repeat(20));
        assert_eq!(bar(60, 60, "", true, 80).trim_end(), over);
        assert_eq!(bar(1, 60, &"long ".repeat(40), false, 80).chars().count(), 79);
        assert!(!bar(0, 0, "a\u{1b}[2Jb", true, 80).contains('\u{1b}'));
    }

    #[test]
    fn nothing_is_left_on_the_screen() {
        let shared = Shared::new(false, 80, 10_000_000_000);
        shared.lock().over = true;
        shared.redraw();
        assert!(!shared.lock().drawn);
    }
}
