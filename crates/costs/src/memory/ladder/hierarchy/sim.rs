//! Simulated hierarchies: latency curves that follow from planted sizes, ways, page colors, translation buffers and noise.

use machmeter_stats::random::Random;

use super::Point;

const PAGE_BYTES: f64 = 4_096.0;

/// A planted cache.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Cache {
    /// Capacity, bytes.
    pub(in super::super) bytes: f64,
    /// Ways.
    pub(in super::super) ways: f64,
    /// Cost of a load from it, ns.
    pub(in super::super) ns: f64,
}

/// A planted buffer of translations.
#[derive(Debug, Clone, Copy)]
pub(in super::super) struct Translations {
    /// Pages.
    pub(in super::super) entries: f64,
    /// What a miss adds, ns.
    pub(in super::super) miss_ns: f64,
}

/// Order in which the lines are visited.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in super::super) enum Order {
    Global,
    PageLocal,
    OnePerPage,
}

/// A planted machine.
#[derive(Debug, Clone)]
pub(in super::super) struct Machine {
    pub(in super::super) caches: Vec<Cache>,
    pub(in super::super) memory_ns: f64,
    pub(in super::super) line_bytes: f64,
    pub(in super::super) translations: Vec<Translations>,
    /// Largest share of the last cache that neighbours take away in a round.
    pub(in super::super) drift: f64,
    /// How often that changes within a round: the probability at each working set.
    pub(in super::super) restless: f64,
    /// What a sample has too much, relative: the scale of a half-normal law, since no batch is quicker than its loads.
    pub(in super::super) noise: f64,
    /// Share of samples in which something else ran.
    pub(in super::super) outliers: f64,
}

impl Machine {
    /// 32 KiB, 1 MiB, 32 MiB; 72 and 3,072 pages.
    pub(in super::super) fn usual() -> Self {
        let cache = |bytes, ways, ns| Cache { bytes, ways, ns };
        Self {
            caches: vec![
                cache(32_768.0, 8.0, 1.08),
                cache(1_048_576.0, 8.0, 3.8),
                cache(33_554_432.0, 16.0, 13.5),
            ],
            memory_ns: 110.0,
            line_bytes: 64.0,
            translations: vec![
                Translations { entries: 72.0, miss_ns: 1.9 },
                Translations { entries: 3_072.0, miss_ns: 20.0 },
            ],
            drift: 0.0,
            restless: 0.0,
            noise: 0.01,
            outliers: 0.05,
        }
    }

    /// Costs over `sizes` (bytes) of `rounds` rounds with three samples each.
    pub(in super::super) fn curve(
        &self,
        order: Order,
        sizes: &[f64],
        rounds: usize,
        seed: u64,
    ) -> Vec<Point> {
        let mut random = Random::new(seed);
        let mut points: Vec<Point> = sizes.iter().map(|s| Point { size: *s, costs_ns: Vec::new() }).collect();
        for round in 0..rounds {
            let mut last_share = 1.0 - self.drift * random.unit();
            for p in &mut points {
                if random.unit() < self.restless {
                    last_share = 1.0 - self.drift * random.unit();
                }
                let truth = self.cost_ns(order, p.size, last_share, &mut random);
                for _ in 0..3 {
                    let disturbed =
                        if random.unit() < self.outliers { 2.0 + 40.0 * random.unit() } else { 1.0 };
                    p.costs_ns.push((round, truth * (1.0 + self.noise * random.normal().abs()) * disturbed));
                }
            }
        }
        points
    }

    /// What a load costs in a working set of `bytes`.
    fn cost_ns(&self, order: Order, bytes: f64, last_share: f64, random: &mut Random) -> f64 {
        let pages = (bytes / PAGE_BYTES).max(1.0);
        let lines = if order == Order::OnePerPage { pages } else { bytes / self.line_bytes };
        // Prefetch and open rows help what stays inside a page.
        let helped = if order == Order::PageLocal { 0.35 } else { 1.0 };
        let mut ns = self.caches[0].ns;
        let mut reaching = 1.0_f64;
        for (i, cache) in self.caches.iter().enumerate() {
            let share = if i + 1 == self.caches.len() { last_share } else { 1.0 };
            let beyond = self.caches.get(i + 1).map_or(self.memory_ns, |c| c.ns);
            reaching = reaching.min(misses(cache, share, lines * self.line_bytes, random));
            ns += reaching * (beyond - cache.ns) * helped;
        }
        for t in &self.translations {
            let missing = match order {
                Order::Global => (1.0 - t.entries / pages).max(0.0),
                Order::PageLocal => (1.0 - t.entries / pages).max(0.0) * self.line_bytes / PAGE_BYTES,
                Order::OnePerPage => f64::from(u8::from(pages > t.entries)),
            };
            ns += missing * t.miss_ns;
        }
        ns
    }
}

/// Share of the loads that miss `cache` when `bytes` of lines are visited in a cycle. Pages fall on random colors, as physical
/// memory does, where a way is larger than a page; a color with more pages than ways keeps fewer of them than fit.
fn misses(cache: &Cache, share: f64, bytes: f64, random: &mut Random) -> f64 {
    let ways = (cache.ways * share).max(1.0);
    let colors = (cache.bytes / cache.ways / PAGE_BYTES).round().max(1.0) as usize;
    let lost = |pages: f64| if pages <= ways { 0.0 } else { 1.0 - (ways / pages).powi(8) };
    if colors == 1 {
        return lost(bytes / cache.bytes * cache.ways);
    }
    let pages = (bytes / PAGE_BYTES).round() as usize;
    if pages > 16 * cache.ways as usize * colors {
        return 1.0;
    }
    let mut of_color = vec![0.0_f64; colors];
    for _ in 0..pages {
        of_color[random.below(colors)] += 1.0;
    }
    of_color.iter().map(|n| n * lost(*n)).sum::<f64>() / (pages as f64).max(1.0)
}
