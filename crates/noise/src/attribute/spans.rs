//! Turns the kernel's events on one CPU into nested spans of who had it.

use std::collections::HashMap;

use machmeter_sys::trace::{EventKind, TraceEvent, TraceLog, softirq_name};

use super::activity_log::{ActivityLog, HELD_BACK, Source, SourceKind, Span};
use super::{Meter, stolen};

/// Depth of a span of another thread; interrupts lie above it.
const THREAD_DEPTH: u8 = 0;

struct Open {
    start_ticks: u64,
    source: u32,
    closes: Closes,
    /// Of a timer interrupt: whether the scheduler's tick was due, as far as the expired timers show it.
    is_tick: Option<bool>,
}

#[derive(PartialEq, Eq, Clone, Copy)]
enum Closes {
    Irq(i32),
    Softirq(u8),
    Vector,
}

/// Name of the process of each thread id that was seen alive.
pub(super) type Processes = HashMap<i32, String>;

/// What the kernel's names for its own things are.
#[derive(Debug, Default)]
pub(super) struct Kernel {
    /// Processes of threads.
    pub(super) processes: Processes,
    /// Addresses of the functions that the scheduler's tick calls; empty if addresses are hidden.
    pub(super) tick_functions: Vec<u64>,
}

/// Adds the spans of the meter's CPU to the activity log. `ns_per_tick` converts durations that events carry in ns.
pub(super) fn add(
    log: &TraceLog,
    meter: &Meter,
    ns_per_tick: f64,
    kernel: &Kernel,
    activity_log: &mut ActivityLog,
) {
    let sleepers = activity_log.intern(Source::new(SLEEP_TIMER, SourceKind::Irq));
    let mut walk = Walk { sleepers, ..Walk::default() };
    let mut last_ticks = 0;
    for e in log.on_cpu(meter.cpu) {
        walk.event(e, log, meter, ns_per_tick, kernel, activity_log);
        last_ticks = e.ticks;
    }
    walk.close(0, last_ticks);
    walk.end_thread(last_ticks);
    walk.spans.sort_by_key(|s| s.start_ticks);
    activity_log.stolen.push(stolen::read(log, meter, ns_per_tick, &walk.spans, activity_log));
    activity_log.spans.push(walk.spans);
}

#[derive(Default)]
struct Walk {
    spans: Vec<Span>,
    open: Vec<Open>,
    /// The other thread that has the CPU: since when, and its source.
    thread: Option<(u64, u32)>,
    running: Option<i32>,
    /// Source of timer interrupts in which only timers of sleepers expired.
    sleepers: u32,
}

/// Name of timer interrupts that wake a sleeping thread, and are not the scheduler's tick.
const SLEEP_TIMER: &str = "sleep timer";

impl Walk {
    fn event(
        &mut self,
        e: &TraceEvent,
        log: &TraceLog,
        meter: &Meter,
        ns_per_tick: f64,
        kernel: &Kernel,
        t: &mut ActivityLog,
    ) {
        let processes = &kernel.processes;
        match e.kind {
            EventKind::SwitchTo { prev_pid, prev_comm, next_pid, next_comm, .. } => {
                // Some kernels do not record every switch: a thread that leaves and did not come had the CPU meanwhile.
                let came = self.running.replace(next_pid);
                if came.is_some_and(|came| came != prev_pid) && !meter.is_own(prev_pid) {
                    let source = thread(log.name(prev_comm), prev_pid, processes, "thread not recorded");
                    // When it began is not known: an event without duration names the gap that it ended in and no other.
                    self.push(e.ticks, e.ticks, t.intern(source), THREAD_DEPTH);
                }
                self.end_thread(e.ticks);
                if !meter.is_own(next_pid) {
                    let source = thread(log.name(next_comm), next_pid, processes, HELD_BACK);
                    self.thread = Some((e.ticks, t.intern(source)));
                }
            }
            EventKind::IrqEntry { irq, name } => {
                self.begin(e.ticks, t.intern(Source::new(log.name(name), SourceKind::Irq)), Closes::Irq(irq));
            }
            EventKind::IrqExit { irq } => self.end(e.ticks, Closes::Irq(irq)),
            EventKind::SoftirqEntry { vec } => {
                let source = Source::new(&format!("softirq {}", softirq_name(vec)), SourceKind::Softirq);
                self.begin(e.ticks, t.intern(source), Closes::Softirq(vec));
            }
            EventKind::SoftirqExit { vec } => self.end(e.ticks, Closes::Softirq(vec)),
            EventKind::VectorEntry { name } => {
                let source = vector(log.name(name));
                self.begin(e.ticks, t.intern(source), Closes::Vector);
            }
            EventKind::VectorExit { .. } => self.end(e.ticks, Closes::Vector),
            EventKind::TimerExpired { function } => self.timer(function, kernel),
            EventKind::PageFault { .. } => {
                // The kernel traces the entry only; the rest of the gap is its exit lag.
                let source = t.intern(Source::new("page fault", SourceKind::Fault));
                self.span(e.ticks, e.ticks, source);
            }
            EventKind::Nmi { delta_ns } => {
                let ticks = (delta_ns as f64 / ns_per_tick) as u64;
                let source = t.intern(Source::new("NMI", SourceKind::Irq));
                self.span(e.ticks.saturating_sub(ticks), e.ticks, source);
            }
            // Work items run inside kernel worker threads, which the switches name already.
            EventKind::Other { .. }
            | EventKind::Ran { .. }
            | EventKind::Woken { .. }
            | EventKind::Moved { .. }
            | EventKind::Forked { .. } => {}
        }
    }

    fn begin(&mut self, start_ticks: u64, source: u32, closes: Closes) {
        self.open.push(Open { start_ticks, source, closes, is_tick: None });
    }

    /// A timer expires in the timer interrupt that is open: several in one interrupt are the tick if one of them is.
    fn timer(&mut self, function: u64, kernel: &Kernel) {
        if kernel.tick_functions.is_empty() {
            return;
        }
        let is_tick = kernel.tick_functions.contains(&function);
        if let Some(open) = self.open.iter_mut().rev().find(|o| o.closes == Closes::Vector) {
            open.is_tick = Some(is_tick || open.is_tick == Some(true));
        }
    }

    /// Closes the innermost open span that this exit belongs to; what was left open inside it ends with it.
    fn end(&mut self, ticks: u64, closes: Closes) {
        if let Some(at) = self.open.iter().rposition(|o| o.closes == closes) {
            self.close(at, ticks);
        }
    }

    /// Ends what is open from the `outermost` on.
    fn close(&mut self, outermost: usize, ticks: u64) {
        while self.open.len() > outermost
            && let Some(o) = self.open.pop()
        {
            let source = if o.is_tick == Some(false) { self.sleepers } else { o.source };
            self.span(o.start_ticks, ticks, source);
        }
    }

    /// A span above those that are open.
    fn span(&mut self, start_ticks: u64, end_ticks: u64, source: u32) {
        let depth = THREAD_DEPTH + 1 + self.open.len().min(200) as u8;
        self.push(start_ticks, end_ticks, source, depth);
    }

    fn end_thread(&mut self, ticks: u64) {
        if let Some((start_ticks, source)) = self.thread.take() {
            self.push(start_ticks, ticks, source, THREAD_DEPTH);
        }
    }

    fn push(&mut self, start_ticks: u64, end_ticks: u64, source: u32, depth: u8) {
        self.spans.push(Span { start_ticks, end_ticks, source, depth });
    }
}

/// A thread. The meter never sleeps: the idle task runs in its place when it is held back, or for one not recorded.
fn thread(comm: &str, pid: i32, processes: &Processes, idle: &str) -> Source {
    if pid == 0 {
        return Source::new(idle, SourceKind::Thread);
    }
    Source::thread(processes.get(&pid).map_or(comm, String::as_str), comm, pid)
}

/// The local timer is the tick, unless the timers that expire in it show otherwise; every other vector is an interrupt.
fn vector(name: &str) -> Source {
    if name == "local_timer" {
        Source::new("timer tick", SourceKind::Tick)
    } else {
        Source::new(&name.replace('_', " "), SourceKind::Irq)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::activity_log::Sight;
    use crate::attribute::matching::attribute;
    use machmeter_loops::noise::measure::Gap;
    use machmeter_sys::trace::{NameId, Names, TaskState};

    const METER: Meter = Meter { cpu: 1, tid: 42, main_tid: 41 };

    /// What a trace of these events tells of the meter's CPU.
    fn told(events: Vec<(u64, u16, EventKind)>, names: Names) -> ActivityLog {
        let events = events.into_iter().map(|(ticks, cpu, kind)| TraceEvent { ticks, cpu, kind }).collect();
        let log = TraceLog { events, names, ..TraceLog::default() };
        let mut t = ActivityLog { sight: Sight::Everything, lost: vec![0], ..ActivityLog::none() };
        let kernel = Kernel { processes: [(7, "gcc".to_owned())].into(), tick_functions: vec![0xa, 0xb] };
        add(&log, &METER, 1.0, &kernel, &mut t);
        t
    }

    fn switch((prev_pid, prev_comm): (i32, NameId), (next_pid, next_comm): (i32, NameId)) -> EventKind {
        EventKind::SwitchTo { prev_pid, prev_comm, prev_state: TaskState(0), next_pid, next_comm }
    }

    #[test]
    fn names_cannot_steer_a_terminal() {
        let s = thread("a\n\u{1b}[2J\u{202e}b", 9, &Processes::new(), HELD_BACK);
        assert_eq!((s.name.as_str(), s.thread.as_str()), ("a  [2J b", "a  [2J b:9"));
    }

    #[test]
    fn a_preemption_with_a_tick_inside_is_charged_to_the_thread() {
        let mut names = Names::default();
        let (timer, meter, cc1) =
            (names.intern(b"local_timer"), names.intern(b"mm-noise"), names.intern(b"cc1"));
        let events = vec![
            (110, 1, EventKind::VectorEntry { name: timer }),
            (112, 0, EventKind::VectorEntry { name: timer }),
            (114, 1, EventKind::SoftirqEntry { vec: 7 }),
            (116, 1, EventKind::SoftirqExit { vec: 7 }),
            (120, 1, EventKind::VectorExit { name: timer }),
            (125, 1, switch((42, meter), (7, cc1))),
            (180, 1, switch((7, cc1), (42, meter))),
        ];
        let mut t = told(events, names);
        let a = &attribute(&mut t, 0, &[Gap { start_ticks: 100, end_ticks: 200 }])[0];
        assert_eq!(t.sources[a.main as usize], Source::thread("gcc", "cc1", 7));
        assert_eq!(t.sources[a.main as usize].full_name(), "gcc/cc1");
        assert_eq!((a.entry_ticks, a.exit_ticks), (10, 20));
        let time = |name: &str| {
            let i = t.sources.iter().position(|s| s.name == name).unwrap() as u32;
            a.parts.iter().find(|p| p.source == i).unwrap().ticks
        };
        assert_eq!((time("timer tick"), time("softirq SCHED"), time("gcc")), (8, 2, 55));
    }

    #[test]
    fn a_timer_interrupt_is_the_tick_only_if_the_tick_was_due() {
        let mut names = Names::default();
        let timer = names.intern(b"local_timer");
        let interrupt = |at: u64, functions: &[u64]| {
            let expired =
                functions.iter().map(move |f| (at + 1, 1, EventKind::TimerExpired { function: *f }));
            let entry = (at, 1, EventKind::VectorEntry { name: timer });
            let exit = (at + 5, 1, EventKind::VectorExit { name: timer });
            std::iter::once(entry).chain(expired).chain([exit]).collect::<Vec<_>>()
        };
        let cases: [&[u64]; 5] = [&[0xa], &[0xc], &[0xc, 0xb], &[0xb, 0xc], &[]];
        let events = cases.iter().zip(1..).flat_map(|(f, i)| interrupt(i * 100, f)).collect();
        let t = told(events, names);
        let of: Vec<&str> = t.spans[0].iter().map(|s| t.sources[s.source as usize].name.as_str()).collect();
        assert_eq!(of, ["timer tick", SLEEP_TIMER, "timer tick", "timer tick", "timer tick"]);
    }

    #[test]
    fn a_thread_whose_coming_was_not_recorded_names_the_gap_it_ended_in() {
        let mut names = Names::default();
        let (meter, worker) = (names.intern(b"mm-noise"), names.intern(b"worker"));
        let (first, back) = (switch((0, worker), (42, meter)), switch((9, worker), (42, meter)));
        let mut t = told(vec![(5, 1, first), (190, 1, back)], names);
        let gaps = [(50, 60), (100, 200)].map(|(start_ticks, end_ticks)| Gap { start_ticks, end_ticks });
        let a = attribute(&mut t, 0, &gaps);
        assert_eq!(t.sources[a[0].main as usize].kind, SourceKind::Outside);
        let source = &t.sources[a[1].main as usize];
        assert_eq!(source.thread, "worker:9");
        assert_eq!(source.full_name(), "worker", "its process was gone before it was asked for");
    }

    #[test]
    fn the_meters_main_thread_is_no_source() {
        let mut names = Names::default();
        let (main, meter, cc1) =
            (names.intern(b"machmeter"), names.intern(b"mm-noise"), names.intern(b"cc1"));
        let events = vec![
            (110, 1, switch((42, meter), (7, cc1))),
            (150, 1, switch((7, cc1), (41, main))),
            (160, 1, switch((41, main), (42, meter))),
        ];
        let t = told(events, names);
        let spans: Vec<_> = t.spans[0].iter().map(|s| (s.start_ticks, s.end_ticks)).collect();
        assert_eq!(spans, [(110, 150)]);
    }

    #[test]
    fn an_exit_whose_entry_was_lost_does_no_harm() {
        let mut names = Names::default();
        let timer = names.intern(b"local_timer");
        let events = vec![
            (10, 1, EventKind::VectorExit { name: timer }),
            (20, 1, EventKind::IrqEntry { irq: 3, name: timer }),
            (30, 1, EventKind::SoftirqExit { vec: 1 }),
        ];
        let t = told(events, names);
        assert_eq!(t.spans[0].len(), 1, "the open interrupt ends with the log");
        assert_eq!(t.spans[0][0].end_ticks, 30);
    }
}
