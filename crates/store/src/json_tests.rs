//! Tests of record documents: round trips, non-finite numbers, control characters, other versions, damaged input.

use machmeter_data::Metric;
use machmeter_data::metric::{Interval, MetricInfo, Params};
use machmeter_data::quantity::Unit;
use proptest::prelude::*;

use super::*;
use crate::history::tests::sample_record;

fn metric(value: f64) -> Metric {
    let info = MetricInfo::of("noise.turn", Unit::Nanoseconds);
    let ci = Interval::new(0.95, value, value * 1.1, "rank");
    Metric::new(&info, Params::new(), value, "median", 3).with_ci(ci)
}

fn error(text: &str) -> String {
    let e = from_bytes(text.as_bytes(), Path::new("x.json")).unwrap_err().to_string();
    assert_eq!(e.lines().count(), 1, "{e}");
    e
}

#[test]
fn what_was_written_is_read_back_to_the_last_bit() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("r.json");
    let mut record = sample_record();
    record.metrics = (1..2000).map(|i| metric(f64::from(i).sqrt() * 1e-3)).collect();
    write(&record, &path).unwrap();
    assert_eq!(read(&path).unwrap(), record);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), to_string(&record).unwrap());
}

#[test]
fn a_number_that_is_not_finite_is_missing_with_the_reason() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("r.json");
    let mut record = sample_record();
    record.metrics.push(metric(1.0));
    record.metrics[0].value = Some(f64::NAN);
    record.machine.before.set("x", machmeter_data::Fact::known(f64::INFINITY, "test"));
    write(&record, &path).unwrap();
    let read = read(&path).unwrap();
    let why = "the stored value is not a finite number";
    assert_eq!((read.metrics[0].value, read.metrics[0].why.as_deref()), (None, Some(why)));
    assert!(read.machine.before.0["x"].value.is_none());
}

#[test]
fn a_page_with_a_deflated_record_yields_it_and_says_what_is_broken() {
    let page = |body: &str| {
        format!(
            "<!doctype html>\n<script>let a = 1 < 2;</script><script type=\"application/zlib\" id=\"machmeter-record\">{body}</script>\n"
        )
    };
    let json = to_string(&sample_record()).unwrap();
    let small = deflated::write(&json);
    assert!(small.len() < json.len());
    let read = |body: &str| from_bytes(page(body).as_bytes(), Path::new("a.html"));
    assert_eq!(read(&small).unwrap(), sample_record());
    assert_eq!(read(&format!("\n  {small}\n")).unwrap(), sample_record());
    for (body, says) in [
        (small[..small.len() / 8 * 4].to_owned(), "inside the page: damaged"),
        ("hello!".to_owned(), "inside the page: not base64"),
        (String::new(), "inside the page: damaged"),
        (deflated::write("{\n\"format\": }"), "inside the page, line 2, column 11: broken JSON"),
        (
            deflated::write(&json.replace("\"version\": \"1.0\"", "\"version\": \"2.0\"")),
            "newer than this program",
        ),
        (deflated::write(&" ".repeat(deflated::MOST_BYTES + 1)), "more than 128 MiB"),
    ] {
        let e = error(&page(&body));
        assert!(e.contains(says), "{says}: {e}");
    }
    assert!(error("<html></html>").contains("without a machmeter record"));
}

#[test]
fn foreign_and_broken_documents_get_one_clear_line() {
    assert!(error("").contains("empty"));
    assert!(error("   \n").contains("empty"));
    assert!(error("{\"a\": 1,\n  oops}").contains("line 2, column 3"));
    assert!(error("{\"file_version\": 1}").contains("not a machmeter record"));
    assert!(error("[1, 2]").contains("not a machmeter record"));
    assert!(error("12 13\n14 15\n").contains("line 1"));
    assert!(error("{\"format\": \"other\"}").contains("\"other\""));
    let newer = to_string(&sample_record()).unwrap().replace("\"version\": \"1.0\"", "\"version\": \"2.0\"");
    assert!(error(&newer).contains("newer than this program reads"));
    let lacking = to_string(&sample_record()).unwrap().replace("\"stopped_by\"", "\"stopped\"");
    assert!(error(&lacking).contains("missing field `stopped_by`"), "{}", error(&lacking));
    assert!(read(Path::new("/nonexistent/r.json")).unwrap_err().to_string().ends_with("no such file"));
    let latin = from_bytes(b"{\n\xff", Path::new("x")).unwrap_err().to_string();
    assert!(latin.contains("line 2: not UTF-8"), "{latin}");
}

#[test]
fn texts_steer_no_terminal() {
    let mut record = sample_record();
    record.stopped_by = "a\u{1b}]0;x\u{7}\u{9b}31m\u{202e}b\tc\r\u{7f}\nd\\u001b".to_owned();
    let text = to_string(&record).unwrap();
    let cleaned = "a ]0;x  31m b c  \nd\\u001b";
    // Plain and escaped.
    for json in [text.replace('\u{9b}', "\\u009B").replace('\u{202e}', "\\u202e"), text] {
        assert_eq!(from_bytes(json.as_bytes(), Path::new("x")).unwrap().stopped_by, cleaned);
    }
}

#[test]
fn later_minor_versions_and_unknown_keys_are_read() {
    let text = to_string(&sample_record()).unwrap();
    let later = text
        .replacen("\"version\": \"1.0\"", "\"version\": \"1.7\", \"new\": {\"a\": [1]}", 1)
        .replacen("\"tool\": {", "\"tool\": { \"simd\": true,", 1);
    let record = from_bytes(later.as_bytes(), Path::new("x")).unwrap();
    assert_eq!(record.version, "1.7");
    assert_eq!(record.tool, sample_record().tool);
}

#[test]
fn a_megabyte_is_read_within_a_small_multiple_of_scanning_it_as_plain_json() {
    let mut record = sample_record();
    record.metrics = (0..4000).map(|i| metric(f64::from(i) + 0.123_456_789)).collect();
    let text = to_string(&record).unwrap();
    assert!(text.len() > 1_000_000, "{}", text.len());
    let time = |f: &dyn Fn()| {
        (0..5)
            .map(|_| {
                let start = chrono::Utc::now();
                f();
                (chrono::Utc::now() - start).as_seconds_f64()
            })
            .fold(f64::INFINITY, f64::min)
    };
    let ours = time(&|| drop(from_bytes(text.as_bytes(), Path::new("x")).unwrap()));
    let plain = time(&|| drop(serde_json::from_str::<serde_json::Value>(&text).unwrap()));
    println!("{} bytes: record {:.1} ms, plain JSON {:.1} ms", text.len(), ours * 1e3, plain * 1e3);
    assert!(ours < plain * 10.0, "{ours} s against {plain} s");
}

proptest! {
    #[test]
    fn damaged_documents_never_panic(at in 0_usize..4000, byte in any::<u8>(), cut in 0_usize..4000) {
        let json = to_string(&sample_record()).unwrap();
        let page = format!("<script id=\"machmeter-record\">{}</script>", deflated::write(&json));
        for mut bytes in [json.into_bytes(), page.into_bytes()] {
            let n = bytes.len();
            bytes[at % n] = byte;
            bytes.truncate(n - cut % n);
            if let Err(e) = from_bytes(&bytes, Path::new("x")) {
                prop_assert_eq!(e.to_string().lines().count(), 1);
            }
        }
    }
}
