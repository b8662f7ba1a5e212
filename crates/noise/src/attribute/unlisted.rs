//! The sources of gaps that are too short for the list.
//!
//! Beyond some thousand gaps a second the list holds the longer ones only. The trace is complete at any rate: here it is summed per source
//! and slice of the run, over everything that touches no listed gap. Events that follow each other closely belong to one gap.

use super::activity_log::{ActivityLog, SourceKind, Span};
use super::matching::{SLACK_TICKS, exclusive, leading};
use machmeter_loops::noise::measure::{Gap, Schedule};

/// Slices of a run in which the time of each source is kept.
pub const SLICES: usize = 200;

/// What the trace of one CPU shows beside its list of gaps.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Traced {
    /// Sums over the unlisted gaps, by source and slice.
    pub unlisted: Vec<Unlisted>,
    /// Turns of each source with more than a twentieth of its gaps unlisted: the list is no sample of their times.
    pub turns: Vec<Turn>,
}

/// What one source had of the unlisted gaps of one slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unlisted {
    /// Index of the source.
    pub source: u32,
    /// Slice in which the gaps begin, below [`SLICES`].
    pub slice: u32,
    /// Gaps that it is charged with.
    pub gaps: u64,
    /// Its own time in the kernel's trace, ticks; what entering and leaving the kernel takes is not in it.
    pub ticks: u64,
}

/// A turn of a source on the CPU, in a listed gap or another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Turn {
    /// Index of the source.
    pub source: u32,
    /// Start, ticks.
    pub start_ticks: u64,
    /// Its time, ticks.
    pub ticks: u64,
}

/// Turns that are kept of each source: the first ones, so that no selection by length makes a rhythm.
pub const MOST_TURNS: usize = 20_000;
/// Share of unlisted gaps up to which the list stands for all gaps of a source.
const FEW: f64 = 0.05;

/// What one source had on a CPU.
struct Account {
    slices: [(u64, u64); SLICES],
    /// Gaps charged to it in all.
    gaps: u64,
    turns: Vec<Turn>,
}

/// Reads the spans of one CPU (the `index`-th) beside its listed gaps, which are in order of time.
pub fn read(activity_log: &ActivityLog, index: usize, gaps: &[Gap], schedule: &Schedule) -> Traced {
    let spans: &[Span] = activity_log.spans.get(index).map_or(&[], Vec::as_slice);
    let kinds: Vec<SourceKind> = activity_log.sources.iter().map(|s| s.kind).collect();
    let (begin, end_of_run) = (schedule.t0_ticks, schedule.end_ticks());
    let slice = (end_of_run - begin).div_ceil(SLICES as u64).max(1);
    let account = || Account { slices: [(0, 0); SLICES], gaps: 0, turns: Vec::new() };
    let mut accounts: Vec<Account> = kinds.iter().map(|_| account()).collect();
    let mut from = 0;
    while from < spans.len() {
        let (mut to, mut end) = (from + 1, spans[from].end_ticks);
        while to < spans.len() && spans[to].start_ticks <= end.saturating_add(SLACK_TICKS) {
            end = end.max(spans[to].end_ticks);
            to += 1;
        }
        let (group, start) = (&spans[from..to], spans[from].start_ticks);
        from = to;
        if start < begin || end > end_of_run {
            continue;
        }
        let next = gaps.partition_point(|g| g.end_ticks.saturating_add(SLACK_TICKS) < start);
        let is_listed = gaps.get(next).is_some_and(|g| g.start_ticks <= end.saturating_add(SLACK_TICKS));
        let at = (((start - begin) / slice) as usize).min(SLICES - 1);
        let parts = exclusive(group);
        for part in &parts {
            let account = &mut accounts[part.source as usize];
            if account.turns.len() < MOST_TURNS {
                account.turns.push(Turn {
                    source: part.source,
                    start_ticks: part.start_ticks,
                    ticks: part.ticks,
                });
            }
            if !is_listed {
                account.slices[at].1 += part.ticks;
            }
        }
        if let Some(main) = leading(&parts, &kinds) {
            let account = &mut accounts[main as usize];
            account.gaps += 1;
            account.slices[at].0 += u64::from(!is_listed);
        }
    }
    let mut out = Traced::default();
    for (source, account) in accounts.into_iter().enumerate() {
        let some = account.slices.iter().enumerate().filter(|(_, (gaps, ticks))| *gaps + *ticks > 0);
        let row = |(slice, (gaps, ticks)): (usize, &(u64, u64))| Unlisted {
            source: source as u32,
            slice: slice as u32,
            gaps: *gaps,
            ticks: *ticks,
        };
        out.unlisted.extend(some.map(row));
        let unlisted: u64 = account.slices.iter().map(|s| s.0).sum();
        if unlisted as f64 > FEW * account.gaps as f64 {
            out.turns.extend(account.turns);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::super::activity_log::Source;
    use super::*;

    #[test]
    fn what_touches_no_listed_gap_is_summed_by_source_and_slice() {
        let mut log = ActivityLog::none();
        let tick = log.intern(Source::new("timer tick", SourceKind::Tick));
        let thief = log.intern(Source::thread("thief", "thief", 7));
        let span = |start_ticks: u64, end_ticks: u64, source: u32, depth: u8| Span {
            start_ticks,
            end_ticks,
            source,
            depth,
        };
        let schedule = Schedule::all_listed(1_000_000, 1_000_000, 200, 100);
        log.spans = vec![vec![
            // Before the recording; a wake-up with its thread; in a listed gap; a tick alone, twice in the last slice.
            span(900_000, 900_500, thief, 0),
            span(1_100_000, 1_101_000, tick, 1),
            span(1_103_000, 1_113_000, thief, 0),
            span(1_500_000, 1_560_000, thief, 0),
            span(200_100_000, 200_101_000, tick, 1),
            span(200_500_000, 200_502_000, tick, 1),
        ]];
        let listed = [Gap { start_ticks: 1_499_000, end_ticks: 1_570_000 }];
        let traced = read(&log, 0, &listed, &schedule);
        let row = |source, slice, gaps, ticks| Unlisted { source, slice, gaps, ticks };
        assert_eq!(
            traced.unlisted,
            [row(tick, 0, 0, 1_000), row(tick, 199, 2, 3_000), row(thief, 0, 1, 10_000)]
        );
        // Of both sources most gaps are unlisted: their turns are kept, those in the listed gap as well.
        let starts = |source| {
            traced.turns.iter().filter(|t| t.source == source).map(|t| t.start_ticks).collect::<Vec<_>>()
        };
        assert_eq!(starts(thief), [1_103_000, 1_500_000]);
        assert_eq!(starts(tick), [1_100_000, 200_100_000, 200_500_000]);
        assert_eq!(read(&ActivityLog::none(), 0, &listed, &schedule), Traced::default());
        // A list with all gaps stands for itself.
        let all = [Gap { start_ticks: 1_099_000, end_ticks: 200_600_000 }];
        assert_eq!(read(&log, 0, &all, &schedule), Traced::default());
    }
}
