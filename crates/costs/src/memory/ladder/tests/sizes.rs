//! Brackets of sizes, and a last cache that changes.

use super::*;

#[test]
fn brackets_hold_the_planted_sizes_where_rounds_visit_few_of_them() {
    let sizes = sizes();
    let (mut held, mut all) = (0, 0);
    for seed in 0..20 {
        let mut points = Machine::usual().curve(PAGE_LOCAL, &sizes, 4, seed);
        // After the first round only every fifth size is visited.
        for (_, point) in points.iter_mut().enumerate().filter(|(i, _)| i % 5 > 0) {
            point.costs_ns.retain(|c| c.0 == 0);
        }
        for (end, truth) in level_ends(&points).iter().zip([32_768.0, 1_048_576.0]) {
            let (low, high) = end.bracket_bytes;
            assert!(high / low < 2.5, "seed {seed}: {low} to {high}");
            held += usize::from((low..=high).contains(&truth));
            all += 1;
        }
    }
    assert!(all == 40 && held >= 38, "{held} of {all}");
}

#[test]
fn a_last_cache_that_changes_meanwhile_is_one_cache() {
    let machine = Machine { drift: 0.93, restless: 0.06, ..Machine::usual() };
    let sizes = sizes();
    let curve = |seed| machine.curve(PAGE_LOCAL, &sizes, 4, seed);
    let one = (0..100).filter(|seed| level_ends(&curve(*seed)).len() == 3).count();
    println!("{one} of 100 curves show three caches");
    assert!(one >= 90, "{one} of 100");
}
