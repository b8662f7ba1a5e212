//! What was asked for, what the system reports of its caches, which working sets are visited, and the memory they lie in.

use machmeter_engine::ProbeError;
use machmeter_engine::cost::Fact;
use machmeter_engine::deadline::stop_requested;
use machmeter_engine::part::PartContext;
use machmeter_stats::random::Random;
use machmeter_sys::pages::{Backing, HUGE_PAGE_BYTES, Pages};
use machmeter_sys::thread::monotonic_ns;
use serde::{Deserialize, Serialize};

use super::super::Params;
use super::super::bandwidth::sizes::parse_bytes;
use super::super::reported::ReportedCaches;
use super::chase::{self, Ground};

/// Smallest working set, bytes.
pub(super) const LEAST_BYTES: usize = 4_096;

/// Up to here the first look takes many sizes, bytes.
const MANY_BYTES: usize = 4 << 20;

/// Working sets from [`LEAST_BYTES`] to `most_bytes`, `per_octave` evenly spaced in each octave, in whole base pages.
pub(super) fn sizes(per_octave: u32, most_bytes: usize) -> Vec<usize> {
    let mut out = Vec::new();
    let mut octave = LEAST_BYTES;
    while octave <= most_bytes {
        for i in 0..per_octave as usize {
            let pages = (octave / LEAST_BYTES).saturating_mul(i).div_ceil(per_octave as usize);
            let bytes = octave.saturating_add(pages.saturating_mul(LEAST_BYTES));
            if bytes <= most_bytes && out.last().is_none_or(|last| *last < bytes) {
                out.push(bytes);
            }
        }
        let Some(next) = octave.checked_mul(2) else { break };
        octave = next;
    }
    out
}

/// Working sets of the first look: fewer beyond [`MANY_BYTES`], where building chains takes most of the time.
pub(super) fn first_look(most_bytes: usize) -> Vec<usize> {
    let mut out = sizes(4, most_bytes.min(MANY_BYTES));
    out.extend(sizes(2, most_bytes).into_iter().filter(|s| *s > MANY_BYTES));
    if out.last().is_some_and(|last| *last < most_bytes) {
        out.push(most_bytes);
    }
    out
}

/// Working sets to add where a curve sampled at `sizes` rises near `bytes`: 16 per octave from two sizes below to two above.
pub(super) fn refined(sizes: &[usize], bytes: f64) -> Vec<usize> {
    let at = sizes.partition_point(|s| (*s as f64) <= bytes);
    let (Some(first), Some(last)) = (sizes.get(at.saturating_sub(2)), sizes.get(at + 1).or(sizes.last()))
    else {
        return Vec::new();
    };
    let octave = (*first).max(LEAST_BYTES).ilog2();
    let step = ((1_usize << octave) / 16).next_multiple_of(LEAST_BYTES);
    (*first..*last).step_by(step).filter(|s| !sizes.contains(s)).collect()
}

/// The caches of the first measured CPU as the system reports them.
pub(super) const REPORTED_CACHES: Fact<ReportedCaches> = Fact::named("ladder.reported_caches");
/// The hypervisor; `none` on hardware.
pub(super) const HYPERVISOR: Fact<String> = Fact::named("ladder.hypervisor");
pub(super) const LIMIT: Fact<Limit> = Fact::named("ladder.limit");
pub(super) const HUGE_REFUSED: Fact<String> = Fact::named("ladder.huge_refused");
/// Memory asked for in huge pages, and granted, bytes.
pub(super) const HUGE_BYTES: Fact<[u64; 2]> = Fact::named("ladder.huge_bytes");

/// Share of huge pages granted that counts as granted; with less there are no rows of huge pages.
pub(super) const GRANTED: f64 = 0.9;

/// Smallest ladder that can show a step, bytes.
const LEAST_MOST_BYTES: u64 = 64 << 10;
/// Reached where the system reports no cache, and at least, bytes.
const USUAL_BYTES: usize = 64 << 20;
/// Share of the available memory that a ladder may take.
const MEMORY_SHARE: u64 = 4;

machmeter_data::named! {
#[derive(Serialize, Deserialize)]
pub(super) enum Limit {
    /// Nothing: it is as large as the method wants.
    None = "none",
    Asked = "--max-bytes",
    Memory = "available memory",
    Time = "time",
} }

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) most_bytes: usize,
    pub(super) limit: Limit,
    /// Whether base pages are asked for, and huge ones.
    pub(super) small: bool,
    pub(super) huge: bool,
    pub(super) per_octave: Option<u32>,
    pub(super) surface: bool,
}

impl Request {
    /// There was time to bring in so many bytes of small pages, or of huge ones where there are no others.
    pub(super) fn bound_by_time(&mut self, bytes: usize) {
        if bytes < self.most_bytes {
            (self.most_bytes, self.limit) = (bytes, Limit::Time);
        }
    }

    /// Checks the parameters against the machine; `most_bytes` bounds what nobody asked for.
    pub(super) fn new(
        params: &Params,
        reported: &ReportedCaches,
        available_bytes: u64,
        most_bytes: usize,
    ) -> Result<Self, ProbeError> {
        let usage = |text: String| Err(ProbeError::Usage(text));
        let (small, huge) = match params.pages.as_str() {
            "small" => (true, false),
            "huge" => (false, true),
            "both" => (true, true),
            other => return usage(format!("--pages {other}: small, huge or both")),
        };
        if let Some(n) = params.ladder_points.filter(|n| !(1..=32).contains(n)) {
            return usage(format!("--ladder-points {n}: 1 to 32 working sets per octave"));
        }
        let (most_bytes, limit) = if let Some(text) = &params.max_bytes {
            (asked_bytes(text, available_bytes)?, Limit::Asked)
        } else {
            let wanted = reported.last_bytes().unwrap_or(0).saturating_mul(4).max(USUAL_BYTES) as u64;
            let room_bytes = available_bytes / MEMORY_SHARE;
            let limits =
                [(wanted, Limit::None), (room_bytes, Limit::Memory), (most_bytes as u64, Limit::Time)];
            limits.into_iter().min_by_key(|(bytes, _)| *bytes).unwrap_or(limits[0])
        };
        let most_bytes = usize::try_from(most_bytes).unwrap_or(usize::MAX) / LEAST_BYTES * LEAST_BYTES;
        if most_bytes < LEAST_MOST_BYTES as usize {
            return Err(ProbeError::Cannot(format!(
                "{available_bytes} bytes of memory are available; the ladder needs four times {LEAST_MOST_BYTES}"
            )));
        }
        let (per_octave, surface) = (params.ladder_points, params.surface);
        Ok(Self { most_bytes, limit, small, huge, per_octave, surface })
    }
}

fn asked_bytes(text: &str, available_bytes: u64) -> Result<u64, ProbeError> {
    let bytes = parse_bytes(text).map_err(|e| ProbeError::Usage(format!("--max-bytes: {e}")))?;
    if bytes < LEAST_MOST_BYTES || !bytes.is_multiple_of(LEAST_BYTES as u64) {
        return Err(ProbeError::Usage(format!(
            "--max-bytes {text}: a multiple of {LEAST_BYTES} bytes of at least {LEAST_MOST_BYTES} is needed"
        )));
    }
    if bytes > available_bytes / MEMORY_SHARE {
        return Err(ProbeError::Usage(format!(
            "--max-bytes {text}: {available_bytes} bytes of memory are available, and the ladder takes at most a quarter \
             of them"
        )));
    }
    Ok(bytes)
}

/// Memory brought in between two looks at the time, bytes.
const TOUCH_BYTES: usize = 4 * HUGE_PAGE_BYTES;

pub(super) fn ground(pages: &Pages, bytes: usize) -> Option<Ground<'_>> {
    Some(Ground { extent: pages.extent().part(0, bytes)?, pages: chase::pages_name(pages.backing()) })
}

/// Brings memory in until time is over; bytes. In random order: neighbors would suit caches and translation buffers.
pub(super) fn touch(pages: &Pages, ns: u64, seed: u64) -> usize {
    let mut random = Random::new(seed);
    let until_ns = monotonic_ns() + ns;
    let all = pages.extent();
    let mut done = 0;
    while done < all.bytes() && (done < TOUCH_BYTES || monotonic_ns() < until_ns) && !stop_requested() {
        let bytes = TOUCH_BYTES.min(all.bytes() - done);
        let mut order: Vec<usize> = (done..done + bytes).step_by(chase::PAGE_BYTES).collect();
        random.shuffle(&mut order);
        for page in order.into_iter().filter_map(|at| all.part(at, chase::PAGE_BYTES.min(all.bytes() - at))) {
            page.touch();
        }
        done += bytes;
    }
    done
}

/// Huge pages where they are wanted, with what was granted told as facts.
pub(super) fn huge(
    at: &mut PartContext<'_>,
    request: &mut Request,
    touch_ns: u64,
) -> Result<(Option<Pages>, usize), ProbeError> {
    if !request.huge || request.most_bytes < 2 * HUGE_PAGE_BYTES {
        return Ok((None, 0));
    }
    let pages = match Pages::new(request.most_bytes, Backing::Huge) {
        Ok(pages) => pages,
        Err(e) if request.small => {
            at.facts.set(&HUGE_REFUSED, e.to_string());
            return Ok((None, 0));
        }
        Err(e) => return Err(ProbeError::Cannot(e.to_string())),
    };
    let bytes = touch(&pages, touch_ns, at.host.seed);
    if !request.small {
        request.bound_by_time(bytes);
    }
    match pages.huge_bytes() {
        Ok(granted) => {
            at.facts.set(&HUGE_BYTES, [bytes as u64, granted.min(bytes as u64)]);
            if (granted as f64) < GRANTED * bytes as f64 {
                let why = format!("huge pages were requested for {bytes} bytes and granted for {granted}");
                return if request.small { Ok((None, 0)) } else { Err(ProbeError::Cannot(why)) };
            }
        }
        Err(e) => at.facts.set(&HUGE_REFUSED, e.to_string()),
    }
    Ok((Some(pages), bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_ascend_in_whole_pages_and_hold_the_forms_of_caches() {
        let all = sizes(4, 128 << 20);
        assert!(all.windows(2).all(|w| w[0] < w[1]) && all.iter().all(|s| s.is_multiple_of(LEAST_BYTES)));
        for form in [4, 32, 48, 512, 1_280, 1_024, 1_792, 24 << 10, 128 << 10] {
            assert!(all.contains(&(form << 10)), "{form}");
        }
        assert_eq!((all[0], all.last().copied()), (4_096, Some(128 << 20)));
        let first = first_look((128 << 20) + LEAST_BYTES);
        assert!(first.windows(2).all(|w| w[0] < w[1]) && first.len() < 60);
        assert_eq!(first.last(), Some(&((128 << 20) + LEAST_BYTES)));
        assert_eq!(sizes(1, 16_384), [4_096, 8_192, 16_384]);
        assert!(sizes(8, 4_095).is_empty());
        assert!(sizes(8, usize::MAX).len() < 500);
    }

    #[test]
    fn refined_sizes_are_new_and_near() {
        let all = sizes(4, 1 << 20);
        let more = refined(&all, 34_000.0);
        assert_eq!(more, [36_864, 45_056]);
        assert!(
            refined(&all, 530_000.0).iter().all(|s| (448 << 10..768 << 10).contains(s) && !all.contains(s))
        );
        assert!(refined(&[], 1e6).is_empty());
    }

    fn asked(words: &[&str], available_bytes: u64) -> Result<Request, String> {
        let params = crate::testing::params(words);
        Request::new(&params, &ReportedCaches::default(), available_bytes, 1 << 30).map_err(|e| e.to_string())
    }

    #[test]
    fn requests_are_checked_in_one_line_and_little_memory_bounds_the_ladder() {
        for (words, why) in [
            (["--max-bytes", "100001"], "multiple of 4096"),
            (["--max-bytes", "4K"], "at least 65536"),
            (["--max-bytes", "1T"], "are available"),
            (["--max-bytes", "much"], "not a size"),
            (["--pages", "large"], "small, huge or both"),
            (["--ladder-points", "0"], "1 to 32"),
        ] {
            let said = asked(&words, 8 << 30).unwrap_err();
            assert!(said.contains(why) && !said.contains('\n'), "{said}");
        }
        let r = asked(&["--max-bytes", "16M", "--pages", "small"], 8 << 30).unwrap();
        assert_eq!((r.most_bytes, r.limit, r.huge), (16 << 20, Limit::Asked, false));
        for (available_bytes, found) in
            [(8 << 30, (USUAL_BYTES, Limit::None)), (100 << 20, (25 << 20, Limit::Memory))]
        {
            let r = asked(&[], available_bytes).unwrap();
            assert_eq!((r.most_bytes, r.limit), found);
        }
        assert!(asked(&[], 100_000).is_err());
    }
}
