//! Planted savings of huge pages.

use super::*;

/// Huge pages that take this share off the latency of small ones at each working set.
pub(super) fn save(rows: &mut Rows, share: f64) {
    let is_chase = |r: &Row, pages: &str| {
        r.text("pages") == pages && [GLOBAL, ONE_PER_PAGE].contains(&r.text("order").as_str())
    };
    rows.rows.retain(|r| !is_chase(r, HUGE));
    let small = rows.rows.iter().filter(|r| is_chase(r, SMALL)).cloned();
    let huge: Vec<Row> = small
        .map(|r| {
            let mut huge = r.with("pages", HUGE);
            huge.pairs.iter_mut().for_each(|p| slow_down(p, 1.0 - share));
            huge
        })
        .collect();
    rows.rows.extend(huge);
}

#[test]
fn what_huge_pages_save_is_a_curve_and_little_is_said_of_memory_only() {
    for (share, verdict) in
        [(0.0, "not effective"), (0.05, "not effective"), (0.26, "effective"), (0.6, "effective")]
    {
        let mut r = rows(&Machine::usual());
        save(&mut r, share);
        let a = analysis(&r);
        let of = [("level", "DRAM"), ("order", "global")];
        let memory = value(&a, "memory.huge_pages_saving", &of).expect("a saving");
        assert!((memory - share).abs() < 0.02, "{share}: {memory}");
        let curve = a
            .metrics
            .iter()
            .filter(|m| m.id == "memory.huge_pages_saving" && !m.params.contains_key("level"));
        let curve: Vec<f64> = curve.filter_map(|m| m.value).collect();
        assert!(curve.len() > 2 && curve.iter().all(|v| (v - share).abs() < 0.02), "{share}: {curve:?}");
        let told = a.warnings.iter().find(|w| w.code == "W402");
        assert_eq!(told.is_some(), verdict == "not effective", "{share}: {:?}", a.warnings);
        assert!(told.is_none_or(|w| w.text.contains("holds 72 small pages")), "{told:?}");
        let finding = a.findings.iter().find(|f| f.id == "memory.huge_pages").expect("a finding");
        assert_eq!(finding.verdict, verdict, "{share}: {finding:?}");
    }
    // Little beyond the first buffer only says nothing of memory.
    let mut r = rows(&Machine::usual());
    for row in r.rows.iter_mut().filter(|r| r.text("order") == ONE_PER_PAGE && r.text("pages") == HUGE) {
        row.pairs.iter_mut().for_each(|p| slow_down(p, 3.0));
    }
    assert!(analysis(&r).warnings.is_empty());
}
