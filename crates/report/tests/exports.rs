//! Tests of the card, the terminal page and the exporters on the synthetic record.

mod sample;

use std::collections::BTreeMap;

use base64::prelude::{BASE64_STANDARD, Engine as _};
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use machmeter_data::metric::Population;
use machmeter_data::{Dataset, Record, Shape, Table, Values};
use machmeter_report::terminal::{self, TerminalStyle};
use machmeter_report::{card, format};

fn written(name: &str, record: &Record, tables: &[Table]) -> Result<Vec<u8>, format::ExportError> {
    let mut out = Vec::new();
    (format::by_name(name).expect("registered").write)(record, tables, &mut out).map(|()| out)
}

fn export(name: &str) -> Vec<u8> {
    written(name, &sample::record(2, 60), &sample::tables()).expect("written")
}

fn text(name: &str) -> String {
    String::from_utf8(export(name)).expect("text")
}

fn of_width(width: usize) -> TerminalStyle {
    TerminalStyle { width, ..TerminalStyle::default() }
}

/// The text in one line.
fn words(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A record of two CPUs with tasks under `loads` loads.
fn of_tasks(tasks: usize, loads: usize) -> Record {
    let mut record = sample::record(2, 60);
    sample::interactive::add(&mut record, tasks, loads, 1);
    record
}

#[test]
fn the_card_is_small_whole_and_alone() {
    for (cpus, buckets) in [(1, 900), (2, 900), (64, 300), (256, 60)] {
        let svg = card::render(&sample::record(cpus, buckets));
        assert!(svg.len() <= 100_000, "{cpus} CPUs: {} bytes", svg.len());
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>"));
        assert_eq!(svg.matches("<svg ").count(), svg.matches("</svg>").count());
        assert!(!svg.contains("href") && !svg.contains(" style=\"") && !svg.contains("<script"));
        let parts =
            "AMD EPYC 9B14|KVM guest|1 active, 1 vulnerable|latency under 1 ms|longest gap|E104|sha256";
        for part in parts.split('|') {
            assert!(svg.contains(part), "{part}");
        }
    }
}

#[test]
fn equal_data_gives_an_equal_hash_and_other_data_another() {
    let hash = |r: &Record| card::render(r).split("sha256 ").nth(1).unwrap()[..12].to_owned();
    let mut other = sample::record(2, 60);
    assert_eq!(hash(&other), hash(&sample::record(2, 60)));
    other.metrics[0].value = Some(0.5);
    assert_ne!(hash(&other), hash(&sample::record(2, 60)));
}

#[test]
fn the_terminal_page_fits_and_names_what_weakens_it() {
    let record = sample::record(2, 60);
    for width in [60, 80, 120] {
        let page = terminal::page(&record, &of_width(width));
        assert!(page.lines().all(|l| l.chars().count() <= width), "{page}");
        for part in [" VERDICT ", " NOISE ", " gaps, p50 | p99", " SELFTEST "] {
            assert!(page.contains(part), "{part} in\n{page}");
        }
        let full = terminal::in_full(&record, &of_width(width));
        for part in [" ! W301", " ! E104", " ! doubtful: E110", " ? unknown: E202"] {
            assert!(full.contains(part), "{part} in\n{full}");
        }
        assert!(!full.contains("E101"), "a pass needs no line");
        assert!(!page.contains('\u{1b}'));
    }
    let colored = terminal::page(&record, &TerminalStyle { width: 80, color: true, ascii: true });
    assert!(colored.contains("\u{1b}[31m") && colored.contains("\u{1b}[0m"));
}

#[test]
fn notes_are_short_on_the_page_and_whole_in_full() {
    let mut record = sample::record(2, 60);
    let long = "during 72 % of 24269 samples the core was shared with somebody whom nobody invited";
    record.warnings = ["W301", "W421", "W448"]
        .map(|code| machmeter_data::record::Warning {
            code: code.to_owned(),
            text: long.to_owned(),
            next: "ask him to leave".to_owned(),
            changes: code != "W301",
        })
        .into();
    let page = terminal::page(&record, &TerminalStyle::default());
    for (code, is_told) in [("W301", false), ("W421", true), ("W448", true)] {
        let line = page.lines().find(|l| l.contains(&format!("{code}  ")));
        assert_eq!(line.is_some_and(|l| l.ends_with(" ...") && l.len() <= 80), is_told, "{page}");
    }
    assert!(!page.contains("invited"), "{page}");
    let full = terminal::in_full(&record, &TerminalStyle::default());
    for code in ["W301", "W421", "W448"] {
        assert!(words(&full).contains(&format!("{code} {long}. Next: ask him to leave")), "{full}");
    }
}

#[test]
fn every_shape_has_a_text_form_and_ascii_is_ascii() {
    let record = sample::record(2, 60);
    let style = TerminalStyle::default();
    for d in &record.datasets {
        let shown = terminal::dataset(d, &[], &style);
        assert!(shown.is_ascii(), "{shown}");
        assert!(shown.contains(&d.title) && shown.lines().count() >= 3, "{shown}");
    }
}

#[test]
fn all_views_fit_below_the_page() {
    let record = of_tasks(4, 11);
    let ladder = |d: &&Dataset| matches!(d.shape, Shape::Decades(_));
    for width in [60, 72, 100, 160] {
        let text = terminal::views(&record, &of_width(width));
        assert!(text.lines().all(|l| l.chars().count() <= width), "{width}: {text}");
        assert!(!text.contains('\u{1b}'));
        let words = words(&text);
        for told in record.datasets.iter().filter(|d| !ladder(d)).flat_map(|d| [&d.title, &d.caption]) {
            assert!(words.contains(told), "{told} at {width}: {text}");
        }
        // The page itself draws ladders.
        assert!(record.datasets.iter().filter(ladder).all(|d| !text.contains(&d.title)), "{text}");
    }
    // The common caption of several datasets of one kind appears once.
    let twice = record.datasets.windows(2).find(|w| w[0].caption == w[1].caption).expect("two of a kind");
    let text = terminal::views(&record, &of_width(4_000));
    assert_eq!(text.matches(&twice[0].caption).count(), 1, "{text}");
    let colored = terminal::views(&record, &TerminalStyle { width: 80, color: true, ascii: true });
    assert!(colored.contains("\u{1b}[1m"));
}

#[test]
fn csv_has_one_row_per_metric_in_full_digits() {
    let out = text("csv");
    let lines: Vec<&str> = out.split("\r\n").collect();
    assert_eq!(lines.len(), 1 + sample::record(2, 60).metrics.len() + 1, "heads, rows, end");
    assert!(lines[1].starts_with("noise.stolen_fraction,1,lower,0.0231,0.0224,0.024,0.95,block-bootstrap,100000,,time-share,suspect,E104,"), "{}", lines[1]);
    assert!(lines[0].ends_with(",population,cpu,kind,source"), "{}", lines[0]);
    assert!(out.contains(",0,irq,\"quote\"\"\\ü\""), "{out}");
}

#[test]
fn openmetrics_is_in_base_units_and_ends_as_it_must() {
    let accepted = "accepted by prometheus_client's OpenMetrics parser";
    assert_eq!(text("openmetrics"), include_str!("fixtures/sample.prom"), "{accepted}");
}

#[test]
fn the_mail_table_fits_into_80_columns() {
    let out = text("markdown");
    assert!(out.lines().all(|l| l.chars().count() <= 80), "{out}");
    assert!(out.contains("| noise.source_fraction{0,thread,cc1plus}"), "{out}");
    assert!(out.contains("2.31 % ! |         0.09 |"), "{out}");
}

#[test]
fn tasks_by_loads_read_well_as_text() {
    let record = of_tasks(4, 11);
    let mail = String::from_utf8(written("markdown", &record, &[]).unwrap()).unwrap();
    // Rows with longer names or figures exceed 80 columns; none is cut.
    let others = mail.lines().filter(|l| !l.starts_with("| interactive.") && !l.starts_with("| INTERACTIVE"));
    assert!(others.into_iter().all(|l| l.chars().count() <= 80) && !mail.contains(".. |"), "{mail}");
    let parts = mail.lines().filter(|l| l.starts_with("| gaming")).count();
    assert_eq!(parts, 2, "two parts of 11 loads: {mail}");
    assert!(mail.contains("|  none |") && mail.contains("| 100 % |"), "{mail}");

    let met = record.datasets.iter().find(|d| d.id == "interactive.met").unwrap();
    assert_eq!(terminal::dataset(met, &[], &of_width(100)).lines().count(), 2 + 4);
    for width in [40, 100] {
        let shown = terminal::dataset(met, &[], &of_width(width));
        assert!(shown.lines().all(|l| l.chars().count() <= width), "{shown}");
    }
}

#[test]
fn the_card_shows_tasks_by_loads() {
    let svg = card::render(&of_tasks(12, 13));
    assert!(svg.len() <= 100_000, "{}", svg.len());
    assert_eq!(svg.matches("<text class=\"cell ").count(), 11 * 13, "gaming has no cells");
    for name in ["audio-desktop", "rt-hog", "Deadlines met"] {
        assert!(svg.contains(name), "{name}");
    }
}

#[test]
fn the_interval_log_reads_back_with_the_planted_gaps() {
    let log = export("hlog");
    let mut per_cpu: BTreeMap<String, Histogram<u64>> = BTreeMap::new();
    for entry in IntervalLogIterator::new(&log) {
        let LogEntry::Interval(line) = entry.expect("readable") else { continue };
        let bytes = BASE64_STANDARD.decode(line.encoded_histogram()).unwrap();
        let part: Histogram<u64> = Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
        let name = line.tag().unwrap().as_str().to_owned();
        per_cpu.entry(name).or_insert_with(|| Histogram::new(3).unwrap()).add(&part).unwrap();
    }
    assert_eq!(per_cpu.keys().collect::<Vec<_>>(), ["CPU0", "CPU1"]);
    for h in per_cpu.values() {
        assert_eq!(h.len(), 500);
        assert_eq!(h.count_between(1_990_000, 2_010_000), 10);
        assert_eq!(h.value_at_quantile(0.5) / 10, 300, "3 us in ns, three digits");
    }
}

/// A field of a message: number, and content as bytes or as an integer.
type Field = (u64, Vec<u8>, u64);

/// Events of a trace.
fn events(trace: &[u8]) -> Vec<Vec<Field>> {
    let of = |(field, packet, _): (u64, Vec<u8>, u64)| {
        assert_eq!(field, 1, "a trace is packets only");
        fields(&packet).into_iter().find(|f| f.0 == 11).map(|event| fields(&event.1))
    };
    fields(trace).into_iter().filter_map(of).collect()
}

fn number(event: &[Field], n: u64) -> Option<u64> {
    event.iter().find(|f| f.0 == n).map(|f| f.2)
}

fn fields(mut bytes: &[u8]) -> Vec<Field> {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let b = bytes[0];
            *bytes = &bytes[1..];
            value |= u64::from(b & 0x7f) << shift;
            if b < 0x80 {
                break;
            }
        }
        value
    }
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let (length, number) = match key & 7 {
            0 => (0, varint(&mut bytes)),
            1 => (8, 0),
            2 => (varint(&mut bytes) as usize, 0),
            other => panic!("wire type {other}"),
        };
        let (data, rest) = bytes.split_at(length);
        bytes = rest;
        found.push((key >> 3, data.to_vec(), number));
    }
    found
}

#[test]
fn the_trace_has_a_slice_per_gap_named_by_its_source() {
    let mut names: BTreeMap<String, usize> = BTreeMap::new();
    let mut depth: BTreeMap<u64, i64> = BTreeMap::new();
    let mut counters = 0;
    for event in events(&export("perfetto")) {
        let track = number(&event, 11).unwrap();
        match number(&event, 9).unwrap() {
            1 => {
                let name = event.iter().find(|f| f.0 == 23).unwrap();
                *names.entry(String::from_utf8(name.1.clone()).unwrap()).or_default() += 1;
                *depth.entry(track).or_default() += 1;
            }
            2 => *depth.entry(track).or_default() -= 1,
            4 => counters += 1,
            other => panic!("event kind {other}"),
        }
    }
    assert_eq!(names, BTreeMap::from([("cc1plus".to_owned(), 20), ("timer tick".to_owned(), 980)]));
    assert_eq!(depth, BTreeMap::from([(1000, 0), (1001, 0)]));
    assert_eq!(counters, 120);
}

#[test]
fn gaps_too_short_to_be_seen_are_counted_in_a_trace() {
    let mut tables = sample::tables();
    let [start, end] = [1, 2].map(|c| match &tables[0].columns[c].values {
        Values::I64(v) => v.clone(),
        _ => panic!("ticks"),
    });
    let short: Vec<i64> = start.iter().zip(&end).map(|(s, e)| if s % 2 == 0 { s + 1 } else { *e }).collect();
    let shortened = short.iter().zip(&end).filter(|(a, b)| a != b).count();
    tables[0].columns[2].values = Values::I64(short);
    let events = events(&written("perfetto", &sample::record(2, 60), &tables).unwrap());
    let of_kind = |kind: u64| events.iter().filter(move |e| number(e, 9) == Some(kind));
    let begun = of_kind(1).count();
    let counters = of_kind(4).filter(|e| number(e, 11).is_some_and(|t| (500_000..1_000_000).contains(&t)));
    let values = counters.filter_map(|e| e.iter().find(|f| f.0 == 44));
    let counted: f64 = values.map(|f| f64::from_le_bytes(f.1[..].try_into().unwrap())).sum();
    assert!(shortened > 100 && begun + shortened == start.len(), "{begun}, {shortened}");
    assert!((counted - shortened as f64).abs() < 1e-9, "{counted}");
}

#[test]
fn every_list_of_metrics_marks_what_is_of_a_shared_core() {
    let mut record = sample::record(1, 60);
    record.metrics.retain(|m| m.value.is_some());
    record.metrics.truncate(2);
    record.metrics[1].population = Some(Population::CoreShared);
    let lines = |name: &str| String::from_utf8(written(name, &record, &[]).expect("written")).expect("text");
    for (format, mark) in [
        ("csv", ",core shared"),
        ("openmetrics", "population=\"core_shared\""),
        ("markdown", "* core shared:"),
    ] {
        assert_eq!(lines(format).lines().filter(|l| l.contains(mark)).count(), 1, "{format} {mark}");
    }
}

#[test]
fn formats_that_need_raw_samples_say_so() {
    for name in ["hlog", "perfetto"] {
        let error = written(name, &sample::record(2, 60), &[]).unwrap_err();
        assert!(error.to_string().contains("noise_gaps"), "{error}");
    }
    let mut tables = sample::tables();
    if let Values::I64(v) = &mut tables[0].columns[2].values {
        v[3] = 0;
    }
    let error = written("hlog", &sample::record(2, 60), &tables).unwrap_err();
    assert_eq!(error.to_string(), "table noise_gaps, row 3: the gap ends before it starts");
}

#[test]
fn a_shape_without_rows_is_still_shown() {
    let mut record = sample::record(2, 60);
    for d in &mut record.datasets {
        match &mut d.shape {
            Shape::Series(s) => s.rows.clear(),
            Shape::Distribution(x) => x.rows.clear(),
            Shape::Curve(c) => c.rows.clear(),
            Shape::Scatter(s) => s.groups.clear(),
            Shape::Matrix(m) => (m.rows, m.values, m.columns) = (vec![], vec![], vec![]),
            Shape::CostTable(t) => t.rows.clear(),
            Shape::Decades(d) => d.rows.clear(),
        }
        assert!(terminal::dataset(d, &[], &TerminalStyle::default()).contains(&d.title));
    }
    assert!(machmeter_report::html::render(&record).contains("</html>"));
    assert!(card::render(&record).ends_with("</svg>"));
}
