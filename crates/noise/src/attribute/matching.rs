//! Matching gaps with what a witness saw: a pure pass over both lists in order of time.
//!
//! A detour is entry lag (to the first event in the kernel: on a virtual machine the hypervisor's exit and injection),
//! handlers and threads, and exit lag (back to the loop). The parts always sum to the gap.

use std::collections::BinaryHeap;

use super::activity_log::{ActivityLog, Sight, Source, SourceKind, Span};
use super::stolen;
use machmeter_loops::noise::measure::Gap;

#[derive(Debug, Clone, PartialEq)]
pub struct Attributed {
    /// Index of the source that is charged with the gap.
    pub main: u32,
    /// From the start of the gap to the first event in it, ticks; the whole gap when there was none.
    pub entry_ticks: u64,
    /// From the last event to the end, ticks.
    pub exit_ticks: u64,
    pub parts: Vec<Part>,
}

/// What one source had of a gap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    pub source: u32,
    /// When it began first in the gap, ticks.
    pub start_ticks: u64,
    /// Its time, nested time counted once; ticks.
    pub ticks: u64,
}

impl Attributed {
    /// Whether `source` had a part in the gap.
    pub fn names(&self, source: u32) -> bool {
        self.parts.iter().any(|p| p.source == source)
    }
}

/// Clocks of witness and loop may disagree by this much, ticks.
pub(super) const SLACK_TICKS: u64 = 5_000;

/// Attributes every gap of one CPU (the `index`-th); adds sources for unexplained gaps.
///
/// Turns before a gap prove that the meter had the CPU: only what began in the gap can explain it. Some kernels do not
/// record every switch, and a span without an end would explain everything after it.
pub fn attribute(activity_log: &mut ActivityLog, index: usize, gaps: &[Gap]) -> Vec<Attributed> {
    let lost = activity_log.lost.get(index).copied().unwrap_or(0) > 0;
    let silent = unexplained(activity_log.sight, lost);
    let silent = activity_log.intern(silent);
    let spans: &[Span] = activity_log.spans.get(index).map_or(&[], Vec::as_slice);
    let kinds: Vec<SourceKind> = activity_log.sources.iter().map(|s| s.kind).collect();
    let mut attributed: Vec<Attributed> = gaps
        .iter()
        .map(|g| {
            let from = spans.partition_point(|s| s.start_ticks + SLACK_TICKS < g.start_ticks);
            let to = spans.partition_point(|s| s.start_ticks <= g.end_ticks);
            let inside = spans.get(from..to).unwrap_or(&[]);
            explain(g, inside, &kinds, silent)
        })
        .collect();
    if let Some(stolen) = activity_log.stolen.get(index).filter(|s| !s.is_empty()).cloned() {
        let host = activity_log.intern(Source::new(stolen::HYPERVISOR, SourceKind::Outside));
        stolen::charge(&stolen, gaps, host, &mut attributed);
    }
    attributed
}

fn unexplained(sight: Sight, lost: bool) -> Source {
    match sight {
        Sight::Everything if !lost => Source::new("outside the kernel", SourceKind::Outside),
        Sight::Everything => Source::new("not traced", SourceKind::Unknown),
        Sight::Switches if !lost => Source::new("interrupt or hypervisor", SourceKind::Unknown),
        Sight::Switches | Sight::Nothing => Source::new("unknown", SourceKind::Unknown),
    }
}

/// Explains one gap by the spans that may overlap it.
fn explain(gap: &Gap, spans: &[Span], kinds: &[SourceKind], silent: u32) -> Attributed {
    let clipped: Vec<Span> = spans
        .iter()
        .filter(|s| s.end_ticks >= gap.start_ticks && s.start_ticks <= gap.end_ticks)
        .map(|s| Span {
            start_ticks: s.start_ticks.max(gap.start_ticks),
            end_ticks: s.end_ticks.min(gap.end_ticks),
            ..*s
        })
        .collect();
    let (Some(first), Some(last)) =
        (clipped.iter().map(|s| s.start_ticks).min(), clipped.iter().map(|s| s.end_ticks).max())
    else {
        return Attributed { main: silent, entry_ticks: gap.ticks(), exit_ticks: 0, parts: Vec::new() };
    };
    let parts = exclusive(&clipped);
    let main = leading(&parts, kinds).unwrap_or(silent);
    Attributed { main, entry_ticks: first - gap.start_ticks, exit_ticks: gap.end_ticks - last, parts }
}

/// The source that a gap of these parts is charged to: a thread that got the CPU, however long the interrupt that woke it; else the
/// source that took longest.
pub(super) fn leading(parts: &[Part], kinds: &[SourceKind]) -> Option<u32> {
    let rank = |p: &&Part| (kinds.get(p.source as usize) == Some(&SourceKind::Thread), p.ticks);
    parts.iter().max_by_key(rank).map(|p| p.source)
}

/// Time per source, nested time to the deepest span only. Events of unknown duration are listed with zero.
pub(super) fn exclusive(spans: &[Span]) -> Vec<Part> {
    let mut edges: Vec<u64> = spans.iter().flat_map(|s| [s.start_ticks, s.end_ticks]).collect();
    edges.sort_unstable();
    edges.dedup();
    let mut parts: Vec<Part> = Vec::new();
    let mut add =
        |source: u32, start_ticks: u64, ticks: u64| match parts.iter_mut().find(|p| p.source == source) {
            Some(p) => {
                p.ticks += ticks;
                p.start_ticks = p.start_ticks.min(start_ticks);
            }
            None => parts.push(Part { source, start_ticks, ticks }),
        };
    for s in spans {
        add(s.source, s.start_ticks, 0);
    }
    // A long gap holds thousands of spans: walk them once, the open ones in a heap with the deepest on top.
    let mut by_start: Vec<usize> = (0..spans.len()).collect();
    by_start.sort_by_key(|i| spans[*i].start_ticks);
    let mut waiting = by_start.into_iter().peekable();
    let mut open: BinaryHeap<(u8, usize)> = BinaryHeap::new();
    for pair in edges.windows(2) {
        let (a, b) = (pair[0], pair[1]);
        while let Some(i) = waiting.next_if(|i| spans[*i].start_ticks <= a) {
            open.push((spans[i].depth, i));
        }
        while open.peek().is_some_and(|(_, i)| spans[*i].end_ticks <= a) {
            open.pop();
        }
        if let Some((_, i)) = open.peek() {
            add(spans[*i].source, a, b - a);
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is made of `gaps` where a witness with this sight saw these spans of a tick (0) and a thread (1).
    fn told(sight: Sight, lost: u64, spans: Vec<Span>, gaps: &[Gap]) -> (ActivityLog, Vec<Attributed>) {
        let mut t = ActivityLog { sight, spans: vec![spans], lost: vec![lost], ..ActivityLog::none() };
        t.intern(Source::new("timer", SourceKind::Tick));
        t.intern(Source::new("cc1", SourceKind::Thread));
        let attributed = attribute(&mut t, 0, gaps);
        (t, attributed)
    }

    fn span(start_ticks: u64, end_ticks: u64, source: u32, depth: u8) -> Span {
        Span { start_ticks, end_ticks, source, depth }
    }

    fn gap(start_ticks: u64, end_ticks: u64) -> Gap {
        Gap { start_ticks, end_ticks }
    }

    #[test]
    fn anatomy_sums_to_the_gap_and_nested_time_counts_once() {
        // A thread from 120 to 190 with an interrupt inside it from 150 to 160, after a tick from 110 to 118.
        let spans = vec![span(110, 118, 0, 1), span(120, 190, 1, 0), span(150, 160, 0, 1)];
        let (t, a) = told(Sight::Everything, 0, spans, &[gap(100, 200)]);
        let a = &a[0];
        assert_eq!((a.entry_ticks, a.exit_ticks), (10, 10));
        assert_eq!(
            a.parts.iter().map(|p| (p.source, p.start_ticks, p.ticks)).collect::<Vec<_>>(),
            [(0, 110, 18), (1, 120, 60)]
        );
        assert_eq!(t.sources[a.main as usize].name, "cc1", "the thread is the cause");
        let inner_hole = 2;
        assert_eq!(
            a.entry_ticks + a.exit_ticks + inner_hole + a.parts.iter().map(|p| p.ticks).sum::<u64>(),
            100
        );
    }

    #[test]
    fn a_gap_with_very_many_spans_is_explained_at_once() {
        // One thread away for a whole second, interrupted every 10 us: quadratic work would take minutes.
        let mut spans = vec![span(0, 1_000_000_000, 1, 0)];
        spans.extend((0..100_000).map(|i| span(i * 10_000, i * 10_000 + 1_000, 0, 1)));
        let (_, a) = told(Sight::Everything, 0, spans, &[gap(0, 1_000_000_000)]);
        assert_eq!(
            a[0].parts.iter().map(|p| (p.source, p.ticks)).collect::<Vec<_>>(),
            [(1, 900_000_000), (0, 100_000_000)]
        );
    }

    #[test]
    fn silence_is_called_outside_only_when_nothing_was_lost() {
        let gaps = [gap(5, 25), gap(100, 200)];
        let (t, a) = told(Sight::Everything, 0, vec![span(10, 20, 0, 1)], &gaps);
        assert_eq!(t.sources[a[1].main as usize].kind, SourceKind::Outside);
        assert_eq!(a[1].entry_ticks, 100);
        for (sight, lost, name) in
            [(Sight::Everything, 3, "not traced"), (Sight::Switches, 0, "interrupt or hypervisor")]
        {
            let (t, a) = told(sight, lost, vec![], &gaps);
            let source = &t.sources[a[1].main as usize];
            assert_eq!((source.name.as_str(), source.kind), (name, SourceKind::Unknown));
        }
    }

    #[test]
    fn a_span_whose_end_was_not_recorded_explains_only_the_gap_it_began_in() {
        let long = span(100_000, 900_000, 1, 0);
        let spans = vec![long, span(500_000, 500_010, 0, 1)];
        let gaps = [gap(99_000, 140_000), gap(499_990, 500_050), gap(600_000, 700_000)];
        let (t, a) = told(Sight::Everything, 0, spans, &gaps);
        assert!(a[0].names(1));
        assert_eq!(t.sources[a[1].main as usize].name, "timer");
        assert_eq!(t.sources[a[2].main as usize].kind, SourceKind::Outside);
    }

    #[test]
    fn clocks_may_disagree_a_little() {
        let (_, a) = told(Sight::Switches, 0, vec![span(99_000, 150_000, 1, 0)], &[gap(100_000, 160_000)]);
        assert!(a[0].names(1));
        assert_eq!((a[0].entry_ticks, a[0].exit_ticks), (0, 10_000));
    }

    #[test]
    fn an_event_of_unknown_duration_still_names_its_gap() {
        let (_, a) = told(Sight::Everything, 0, vec![span(150, 150, 0, 1)], &[gap(100, 200)]);
        assert_eq!((a[0].main, a[0].entry_ticks, a[0].exit_ticks), (0, 50, 50));
    }
}
