//! Tests of the terminal page of a recorded full run: short, aligned, each figure once.

mod drawn;

use std::collections::BTreeSet;

use drawn::record;
use machmeter_data::metric::Population;
use machmeter_data::quantity::human;
use machmeter_data::summary::{Fit, Mark, Usual};
use machmeter_data::{Quality, Unit};
use machmeter_report::html::render;
use machmeter_report::terminal::{TerminalStyle, page};

#[test]
fn pictures_of_the_book_are_those_of_this_version() {
    for (name, text) in drawn::files() {
        let path = format!("{}/../../docs/{name}", env!("CARGO_MANIFEST_DIR"));
        let there = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(there == text, "docs/{name} is not what is drawn now: make docs");
    }
    let drawn = include_str!("../../../docs/report.png.sha256").trim();
    let now = drawn::first_screen(&render(&record()));
    assert_eq!(drawn, now, "docs/report.png is of another version: make docs, where Chromium is");
}

fn style(width: usize, color: bool, ascii: bool) -> TerminalStyle {
    TerminalStyle { width, color, ascii }
}

#[test]
fn it_fits_a_terminal_at_every_width() {
    for (width, most) in [(60, 72), (80, 54), (100, 48), (160, 44)] {
        let text = page(&record(), &style(width, false, false));
        assert!(text.lines().count() <= most, "{width} columns: {} lines\n{text}", text.lines().count());
        for line in text.lines() {
            assert!(line.chars().count() <= width, "{width} columns: {line}");
        }
    }
}

/// Words that contain a digit or a letter.
fn all_words(text: &str) -> BTreeSet<String> {
    let words = text.split_whitespace().map(|w| w.trim_matches([',', ';', ':', '|', '.', '(', ')']));
    words.filter(|w| w.chars().any(char::is_alphanumeric)).map(str::to_owned).collect()
}

/// The words of a page without its pictures.
fn words(text: &str) -> BTreeSet<String> {
    let is_text = |line: &&str| line.chars().all(|c| c.is_ascii() || c == '±' || "✓✗".contains(c));
    let lines = text.lines().filter(is_text).filter(|l| !l.contains("ooo") && !l.contains("---"));
    lines.flat_map(all_words).collect()
}

/// No part of a figure, unit or mark is separated: at any width, a page has only words of the widest page.
#[test]
fn no_width_cuts_a_word_or_loses_a_figure() {
    let mut record = record();
    for (i, m) in record.metrics.iter_mut().enumerate() {
        match i % 3 {
            0 => m.quality = Quality::Suspect,
            1 => m.population = Some(Population::CoreShared),
            _ => {}
        }
    }
    let costs = record.datasets.iter().filter_map(|d| d.shape.decades()).flat_map(|d| &d.rows);
    let costs: BTreeSet<String> = costs
        .flat_map(|r| {
            format!("{} {}", r.name, human(r.value, Unit::Nanoseconds))
                .split(' ')
                .map(str::to_owned)
                .collect::<Vec<_>>()
        })
        .collect();
    let legends: BTreeSet<String> =
        Mark::ALL.iter().flat_map(|m| words(&format!("{} {}", m.sign(), m.legend()))).collect();
    for ascii in [false, true] {
        let widest = page(&record, &style(400, false, ascii));
        let known: BTreeSet<String> =
            all_words(&widest).into_iter().chain(costs.clone()).chain(legends.clone()).collect();
        for width in 20..=200 {
            let text = page(&record, &style(width, false, ascii));
            let cut: Vec<String> = words(&text).into_iter().filter(|w| !known.contains(w)).collect();
            assert!(cut.is_empty(), "{width} columns: {cut:?}\n{text}");
            for line in text.lines() {
                let is_word = !line.trim().contains(' ');
                assert!(line.chars().count() <= width || is_word || width < 30, "{width} columns: {line}");
            }
            let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
            for row in record.summary.rows.iter().filter(|r| !r.detail && r.section == "NOISE") {
                let Some(row) = row.text(&record.metrics) else { continue };
                let figures = row.figures.iter().all(|f| flat.contains(f));
                let marks = row.marks.iter().all(|m| flat.contains(m.name()) || flat.contains(m.sign()));
                assert!(figures && marks, "{width} columns: {row:?}\n{text}");
            }
        }
    }
}

#[test]
fn the_verdict_stands_in_the_first_lines_and_says_why() {
    let record = record();
    let text = page(&record, &style(100, false, true));
    assert!(text.is_ascii());
    let flat = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for f in &record.summary.fitness {
        let mark = match f.fit {
            Fit::Yes => "ok",
            Fit::Unknown => "?",
            Fit::Partly => "~",
            Fit::No => "no",
        };
        let line = format!("{mark} {} {}", f.purpose, f.reason);
        assert!(flat.contains(&line), "{line}\n{text}");
    }
    assert_eq!(record.summary.fitness.len(), 4);
}

#[test]
fn questions_are_answered_by_rows() {
    let text = page(&record(), &style(100, false, true));
    for (section, name) in [
        ("NOISE", "CPU time taken"),
        ("NOISE", "longest gap"),
        ("INTERACTIVE", "audio-pro p99, idle | under burn"),
        ("MEMORY", "latency, 2 MiB pages | 4 KiB"),
        ("MEMORY", "4 KiB pages, 1 CPU | 2 CPUs"),
        ("SYNC", "mutex, free | wanted"),
        ("OPS", "system call"),
        ("OPS", "start and end, thread | process"),
    ] {
        let rows = text.lines().skip_while(|l| !l.trim_start().starts_with(section));
        let figure = rows.take(3).find_map(|l| l.split(name).nth(1)).unwrap_or_default();
        assert!(figure.chars().any(|c| c.is_ascii_digit()), "{section} {name}\n{text}");
    }
    for level in ["L1 ", "L2 ", "DRAM "] {
        assert!(text.lines().any(|l| l.contains(level) && l.contains(" ns")), "{level}\n{text}");
    }
    assert!(text.contains("timer tick") && text.contains("machmeter explain "), "{text}");
}

#[test]
fn colors_change_no_column() {
    let plain = page(&record(), &style(100, false, false));
    let colored = page(&record(), &style(100, true, false));
    let line = |l: &str| drawn::parts(l).into_iter().map(|(_, text)| text).collect::<String>() + "\n";
    let without: String = colored.lines().map(line).collect();
    assert_eq!(without, plain);
}

#[test]
fn report_and_markdown_judge_as_the_page_does() {
    let record = record();
    let html = render(&record);
    let mut markdown = Vec::new();
    let format = machmeter_report::format::by_name("markdown").expect("a format");
    (format.write)(&record, &[], &mut markdown).expect("written");
    let markdown = String::from_utf8(markdown).expect("text");
    let words = markdown.split_whitespace().collect::<Vec<_>>().join(" ");
    for f in &record.summary.fitness {
        let purpose = format!("<strong>{}</strong>", f.purpose);
        assert!(html.contains(&purpose) && html.contains(&f.reason), "{f:?}");
        assert!(words.contains(&f.purpose) && words.contains(&f.reason), "{f:?}");
    }
}

#[test]
fn a_figure_stands_on_a_strip_of_what_is_usual() {
    // The planted figure is this many times the upper end of its range.
    let planted = |times: f64| {
        let mut record = record();
        let row = record.summary.rows.iter_mut().find(|r| r.name == "system call").expect("a row");
        let value = row.figures[0].find(&record.metrics).expect("a figure").value;
        let (low, high) = (value / times / 4.0, value / times);
        let (kind, source) = ("server".to_owned(), "a table".to_owned());
        row.figures[0].usual = Some(Usual { low, high, kind, n: 13, source });
        record
    };
    let line = |text: &str| text.lines().find(|l| l.contains("system call")).expect("a row").to_owned();
    for (times, strip, class) in
        [(0.5, "▒●▒", "usual"), (5.0, "", "worse"), (20.0, "", "far"), (0.01, "", "usual")]
    {
        let record = planted(times);
        let shown = line(&page(&record, &style(150, false, false)));
        assert!(shown.contains('●') && shown.contains(strip) && shown.ends_with('s'), "{times}: {shown}");
        assert!(line(&page(&record, &style(120, false, true))).contains('='));
        for width in [60, 80, 100, 120] {
            let text = page(&record, &style(width, false, false));
            assert!(text.lines().all(|l| l.chars().count() <= width), "{width} columns\n{text}");
        }
        let (html, circle) = (render(&record), format!("<circle class=\"{class}\""));
        assert!(html.contains("usual in 13 servers: ") && html.contains(&circle));
    }
    let mut impossible = planted(1.0);
    let figures = impossible.summary.rows.iter_mut().flat_map(|r| &mut r.figures);
    figures.filter_map(|f| f.usual.as_mut()).for_each(|u| u.low = 0.0);
    assert!(!line(&page(&impossible, &style(150, false, false))).contains('●'));
}

#[test]
fn earlier_runs_are_a_line_from_three_on() {
    let mut record = record();
    for (earlier, drawn) in [(&[][..], 0), (&[1.0, 2.0], 0), (&[1.0, 2.0, 3.0], 8)] {
        let figures = record.summary.rows.iter_mut().flat_map(|r| &mut r.figures);
        figures.for_each(|f| f.earlier = earlier.to_vec());
        assert_eq!(render(&record).matches("class=\"trend\"").count(), drawn, "{earlier:?}");
    }
}

#[test]
fn costs_of_a_shared_core_have_their_sign_in_the_picture() {
    let mut record = record();
    let costs = record.metrics.iter_mut().filter(|m| m.id == "ops.cost");
    costs.for_each(|m| m.population = Some(Population::CoreShared));
    let page = render(&record);
    let begin = page.find("What operations cost").expect("the picture");
    let picture = &page[begin..begin + page[begin..].find("</svg>").expect("its end")];
    assert!(picture.contains("* core shared"), "{picture}");
    assert!(picture.matches(">*</text>").count() > 5, "{picture}");
}

#[test]
fn rows_without_a_figure_have_their_reason_once() {
    let mut record = record();
    let why = "the buffer of 256 MiB fits the last cache of 300 MiB";
    for m in record.metrics.iter_mut().filter(|m| m.id.starts_with("memory.")) {
        m.reject(why);
    }
    let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    for width in [40, 80, 100] {
        let text = flat(&page(&record, &style(width, false, false)));
        let memory = &text[text.find(" MEMORY ").expect("the section stays")..text.find(" SYNC ").unwrap()];
        assert_eq!(memory.matches(why).count(), 1, "{memory}");
        assert!(memory.contains("; ") && memory.contains(": no figure: "), "{memory}");
    }
    assert!(render(&record).contains(why));
    let mut markdown = Vec::new();
    let format = machmeter_report::format::by_name("markdown").expect("a format");
    (format.write)(&record, &[], &mut markdown).expect("written");
    assert!(String::from_utf8(markdown).unwrap().contains("no figure"));
}
