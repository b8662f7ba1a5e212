//! Pages are data: comparing two pages judges every metric as comparing the records they were made from.

mod sample;

use std::path::Path;

use machmeter_compare::{Options, compare};
use machmeter_data::Record;

/// The record through a page and back, by the reader that `compare` and `report` use.
fn through_a_page(record: &Record, folder: &Path, name: &str) -> Record {
    let path = folder.join(name);
    std::fs::write(&path, machmeter_report::html::render(record)).expect("the folder takes a file");
    machmeter_store::json::read(&path).expect("the page holds its record")
}

#[test]
fn two_pages_are_judged_as_their_records() {
    let folder = tempfile::tempdir().unwrap();
    let a = sample::one_minute();
    let mut b = sample::one_minute();
    for (i, m) in b.metrics.iter_mut().enumerate() {
        // Every fifth changes much, the others hardly: verdicts of several kinds.
        let factor = if i % 5 == 0 { 3.0 } else { 1.0 + 1e-4 * i as f64 };
        m.value = m.value.map(|v| v * factor);
        m.blocks.iter_mut().for_each(|v| *v *= factor);
        m.quantiles.values_mut().for_each(|v| *v *= factor);
        if let Some(ci) = &mut m.ci {
            (ci.low, ci.high) = (ci.low * factor, ci.high * factor);
        }
    }
    let pages = [through_a_page(&a, folder.path(), "a.html"), through_a_page(&b, folder.path(), "b.html")];
    for (page, record) in pages.iter().zip([&a, &b]) {
        assert_eq!(page.metrics, record.metrics);
        assert_eq!(
            (&page.machine, &page.checks, &page.clock),
            (&record.machine, &record.checks, &record.clock)
        );
    }
    let of_records = compare(&a, &b, &Options::default());
    let of_pages = compare(&pages[0], &pages[1], &Options::default());
    let text = |c: &machmeter_compare::Comparison| serde_json::to_string(c).unwrap();
    assert_eq!(text(&of_pages), text(&of_records));
    let words = machmeter_compare::text(&of_pages, 100);
    assert_eq!(words, machmeter_compare::text(&of_records, 100));
    assert!(of_pages.rows.iter().any(|r| r.verdict.is_change()), "the planted changes are seen");
    assert!(of_pages.rows.len() > 300, "{}", of_pages.rows.len());
}
