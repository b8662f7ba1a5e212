//! Tests of the HTML report: structure, size, content policy, embedded data, and rejection of impossible values.

mod sample;

use machmeter_data::deflated;
use machmeter_data::shape::Cell;
use machmeter_data::{Quality, Record, Shape};
use machmeter_report::html::render;
use proptest::prelude::*;

/// Reads the record in a page as `report` and `compare` do.
fn back(page: &str) -> Result<Record, machmeter_store::StoreError> {
    machmeter_store::json::from_bytes(page.as_bytes(), "page".as_ref())
}

/// The hash of an inline block in a content policy, computed independently of the code under test.
fn policy_hash(block: &str) -> String {
    use sha2::Digest as _;
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let digest = sha2::Sha256::digest(block.as_bytes());
    let bit = |i: usize| digest.get(i / 8).map_or(0, |byte| byte >> (7 - i % 8) & 1);
    let six = |group: usize| (0..6).fold(0_u8, |acc, k| acc << 1 | bit(group * 6 + k));
    let code: String = (0..43).map(|group| char::from(ALPHABET[usize::from(six(group))])).collect();
    format!("'sha256-{code}='")
}

fn between<'a>(text: &'a str, open: &str, close: &str) -> &'a str {
    let start = text.find(open).unwrap_or_else(|| panic!("no {open}")) + open.len();
    &text[start..start + text[start..].find(close).expect("closed")]
}

#[test]
fn the_policy_names_exactly_the_blocks_that_are_there() {
    let page = render(&sample::record(2, 300));
    let policy = between(&page, "Content-Security-Policy\" content=\"", "\"");
    assert!(policy.starts_with("default-src 'none'; "), "{policy}");
    for kind in ["style", "script"] {
        let hash = policy_hash(between(&page, &format!("<{kind}>"), &format!("</{kind}>")));
        assert!(policy.contains(&format!("{kind}-src {hash};")), "{policy}");
    }
    assert_eq!(page.matches("<style>").count(), 1);
    assert_eq!(page.matches("<script").count(), 2, "data and viewer");
    assert!(!page.contains(" style=\"") && !page.contains(" onclick="), "blocked by the policy");
}

#[test]
fn nothing_is_loaded_from_elsewhere() {
    let page = render(&sample::record(2, 300));
    for reference in ["src=\"http", "href=\"http", "url(", "@import", "//cdn"] {
        assert!(!page.contains(reference), "{reference}");
    }
}

#[test]
fn the_page_gives_the_record_back() {
    let mut record = sample::one_minute();
    record.machine.after.set("after.only", machmeter_data::Fact::known(7_i64, "test"));
    record.machine.after.0.remove("cpu.model");
    let back: Record = back(&render(&record)).unwrap();
    // `compare` on two pages uses the records that come back.
    assert_eq!(back.metrics, record.metrics);
    assert_eq!((&back.machine, &back.checks, &back.clock), (&record.machine, &record.checks, &record.clock));
    assert_eq!(back.datasets.len(), record.datasets.len());
    let series = |r: &Record| {
        let of = |s: &Shape| if let Shape::Series(s) = s { Some(s.clone()) } else { None };
        r.datasets.iter().find_map(|d| of(&d.shape)).expect("a series")
    };
    let (a, b) = (series(&back), series(&record));
    let worst =
        a.rows[0].mean.iter().zip(&b.rows[0].mean).map(|(x, y)| ((x - y) / y).abs()).fold(0.0, f64::max);
    assert!(worst <= 5.1e-6, "drawn values keep six digits: {worst}");
}

#[test]
fn sizes_stay_within_their_bounds() {
    // The size limits are 400 kB for two CPUs and 2 MB for 256. These bounds are only slightly above the sizes of today, so that the test shows growth. A
    // recorded one-minute page (more sources, findings and warnings) had 337 kB when this one had 308 (290 with five digits).
    let one_minute = sample::one_minute();
    for (name, record, bound) in [
        ("one minute", one_minute, 306_000),
        ("noise", sample::record(2, 900), 211_000),
        ("44 cells, 880 metrics", cells(4, 11, 20), 275_000),
        ("156 cells, 3,120 metrics", cells(12, 13, 20), 560_000),
        ("256 CPUs", sample::record(256, 300), 480_000),
    ] {
        let size = render(&record).len();
        println!("{name}: {size} bytes");
        assert!(size <= bound, "{name}: {size}");
    }
}

/// A record that has only tasks under loads.
fn cells(tasks: usize, loads: usize, kinds: usize) -> Record {
    let mut record = sample::record(2, 60);
    record.metrics.clear();
    record.datasets.clear();
    sample::interactive::add(&mut record, tasks, loads, kinds);
    record
}

#[test]
fn a_page_of_many_metrics_gives_every_one_back_exactly() {
    let record = cells(4, 11, 20);
    assert_eq!(record.metrics.len(), 880);
    let page = render(&record);
    // The block inflates to the record's JSON, which is far longer than the block.
    let block = between(&page, "id=\"machmeter-record\">", "</script>");
    let json = deflated::read(block).unwrap();
    let direct: Record = serde_json::from_str(&json).unwrap();
    assert_eq!(direct.metrics, record.metrics);
    assert!(block.len() * 3 < json.len(), "{} of {}", block.len(), json.len());
}

#[test]
fn tasks_by_loads_are_a_table_with_values_and_colors() {
    let page = render(&cells(4, 11, 2));
    let figure = between(&page, "class=\"fig grid-table\"", "</figure>");
    for name in ["none", "memload", "audio", "gaming"] {
        assert!(figure.contains(&format!(">{name}")), "{name}");
    }
    assert_eq!(figure.matches("<td").count(), 44);
    assert_eq!(figure.matches("<td class=\"none\">-").count(), 11, "gaming has no deadlines");
    assert!(figure.contains("<td class=\"u0\" title=\"100 %\">100 %"), "{figure}");
    assert_eq!(figure.matches("class=\"key u").count(), 9, "the scale is explained");
    // One value is below 100 %, and its text shows it.
    assert!(figure.contains("99.9"), "{figure}");
}

#[test]
fn figures_of_one_kind_stand_side_by_side_under_one_caption() {
    let page = render(&cells(4, 11, 2));
    assert_eq!(page.matches("<div class=\"multi\">").count(), 2, "tables and percentile curves");
    let figures = between(&page, "id=\"c-interactive\"", "</section>");
    assert_eq!(figures.matches("How late jobs began").count(), 1);
    let tables = between(&page, "<div class=\"multi\">", "</div></figure></div>");
    for task in ["audio", "video", "x", "gaming"] {
        assert!(tables.contains(&format!(">{task}</h4>")), "{task}");
    }
    assert!(tables.contains("<td>+/- "), "figures as text stand right");
}

#[test]
fn what_only_the_script_lays_out_is_counted_and_there_is_another_way_to_it() {
    let record = cells(4, 11, 20);
    let page = render(&record);
    let section = between(&page, "<section id=\"metrics\"", "</section>");
    assert!(section.contains("880 figures of 20 kinds"), "{section}");
    assert!(section.contains("<p class=\"need quiet\">") && section.contains("--csv"), "{section}");
    assert!(!section.contains("<table"), "rows would be most of the page");
    let machine = between(&page, "<section id=\"machine\"", "</section>");
    assert!(machine.contains("need quiet") && machine.contains("2 of 16 facts changed"), "{machine}");
    assert_eq!(machine.matches("<tr class=\"changed\">").count(), 2, "{machine}");
}

#[test]
fn names_from_the_system_can_not_become_markup() {
    let page = render(&sample::record(2, 60));
    assert!(!page.contains("<b>bold</b>"));
    assert!(page.contains("vm &lt;/script&gt;&lt;b&gt;bold&lt;/b&gt;"));
}

#[test]
fn every_shape_has_its_picture_or_table_without_scripts() {
    let record = sample::one_minute();
    let page = render(&record);
    let glance = between(&page, "<section id=\"glance\"", "</section>");
    let at_glance = |i: usize| glance.contains(&format!("<a href=\"#fig-{i}\">"));
    let mut drawn = std::collections::BTreeMap::<&str, usize>::new();
    for (i, d) in record.datasets.iter().enumerate() {
        let figure = between(&page, &format!("<figure id=\"fig-{i}\""), "</figure>");
        assert!(figure.contains(&d.caption) || page.matches(&d.caption).count() == 1, "{}", d.id);
        let is_table = matches!(d.shape, Shape::CostTable(_))
            || ["sync.core_to_core", "interactive.met"].contains(&d.id.as_str());
        assert_eq!(figure.contains("<table"), is_table, "{}", d.id);
        if is_table {
            continue;
        }
        let picture = figure.contains("<svg") && figure.contains("<title>");
        assert!(picture != figure.contains("need quiet"), "{}: drawn, or said to need the script", d.id);
        *drawn.entry(d.id.split('.').next().unwrap()).or_default() += usize::from(picture || at_glance(i));
        assert!(picture || !matches!(d.shape, Shape::Decades(_)), "has no other form");
    }
    let expected = [("interactive", 1), ("memory", 1), ("noise", 1), ("ops", 1), ("sync", 1)];
    assert_eq!(drawn.into_iter().collect::<Vec<_>>(), expected);
}

#[test]
fn unknown_is_never_shown_as_a_pass() {
    let page = render(&sample::record(2, 60));
    let row = between(&page, "st-unknown\">", "</tr>");
    assert!(row.contains("#i-unknown") && row.contains("unknown</td>") && row.contains("E202"), "{row}");
    assert_eq!(page.matches("state st-pass").count(), 0);
    assert!(page.contains("1 fail · 1 warning · 1 unknown · 1 pass · 1 n/a"));
    let quiet = between(&page, "<details id=\"quiet-checks\">", "</details>");
    assert!(quiet.contains("E101") && !quiet.contains("E202"), "{quiet}");
}

#[test]
fn an_unfinished_run_says_so() {
    let mut record = sample::record(2, 60);
    record.complete = false;
    record.stopped_by = "signal:INT".to_owned();
    assert!(render(&record).contains("signal:INT"));
    assert!(!render(&sample::record(2, 60)).contains("Incomplete:</strong>"));
}

#[test]
fn a_bare_record_is_shown_without_data() {
    let Record { format, version, id, tool, run, complete, .. } = sample::record(2, 60);
    let page = render(&Record { format, version, id, tool, run, complete, ..Record::default() });
    assert!(page.contains("its disturbances are unknown"));
    assert!(back(&page).is_ok());
}

/// Writes `value` into every part of the record.
fn plant(record: &mut Record, value: f64, at: usize) {
    let m = &mut record.metrics[at % 4];
    m.value = Some(value);
    m.max = Some(value);
    m.quantiles.insert("0.5".to_owned(), value);
    m.blocks.push(value);
    if let Some(ci) = &mut m.ci {
        ci.high = value;
    }
    let fact = machmeter_data::Fact::known(value, "test");
    record.machine.after.set("planted", fact);
    if let Some(c) = &mut record.clock {
        c.cross_cpu_ticks = Some(value);
    }
    for d in &mut record.datasets {
        match &mut d.shape {
            Shape::Series(s) => {
                let n = s.rows[0].mean.len();
                s.rows[0].mean[at % n] = value;
                s.rows[1].marks[0].y = Some(value);
            }
            Shape::Distribution(x) => x.rows[0].quantiles[at % 80].1 = value,
            Shape::Curve(c) => c.rows[0].y[at % 400] = value,
            Shape::Scatter(s) => s.groups[0].points[at % 40].0 = value,
            Shape::Matrix(m) => m.values[0][at % 2] = Some(value),
            Shape::CostTable(t) => t.rows[0].cells[2] = Cell::Number(value),
            Shape::Decades(d) => d.rows[0].value = value,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn no_impossible_value_gets_into_page_card_or_data(
        value in prop::sample::select(vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -1.0, 1e300]),
        at in 0_usize..10_000,
    ) {
        let mut record = sample::record(2, 40);
        plant(&mut record, value, at);
        let page = render(&record);
        let back = back(&page).expect("still a record");
        if !value.is_finite() {
            let m = &back.metrics[at % 4];
            prop_assert_eq!(m.quality, Quality::Rejected);
            prop_assert!(m.why.is_some());
            prop_assert!(page.contains("left out"));
            prop_assert!(m.value.is_none());
        }
        let block = between(&page, "id=\"machmeter-record\">", "</script>");
        let shown = page.replace(between(&page, "<script>", "</script>"), "").replace(block, "");
        let card = machmeter_report::card::render(&record);
        for word in ["NaN", "inf ", "inf<", "\"inf", "Infinity"] {
            prop_assert!(!shown.contains(word), "{} in the page", word);
            prop_assert!(!card.contains(word), "{} in the card", word);
        }
    }
}
