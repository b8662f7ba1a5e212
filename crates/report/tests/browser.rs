//! Opens the report from disk in headless Chromium, if it is installed. Every chart must be drawn, the browser must log no error, and the content policy
//! must refuse nothing. `CHROMIUM` or the search path gives the browser.
#![allow(clippy::unwrap_used, reason = "tests fail on surprises")]

mod sample;

use std::path::PathBuf;
use std::process::Command;

use machmeter_data::{Record, Shape};
use machmeter_report::html::render;

/// A browser, and a folder for its pages and profiles.
struct Browser {
    program: PathBuf,
    folder: tempfile::TempDir,
}

impl Browser {
    /// Finds the browser; `None`, with a printed line, if there is none.
    #[allow(clippy::print_stdout, reason = "says that a test did nothing")]
    fn new() -> Option<Self> {
        #[allow(clippy::disallowed_methods, reason = "a test that looks for an optional tool")]
        let (named, path) = (std::env::var("CHROMIUM").ok(), std::env::var("PATH").unwrap_or_default());
        let names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
        let on_path = std::env::split_paths(&path).flat_map(|d| names.map(|n| d.join(n)));
        let Some(program) = named.map(PathBuf::from).into_iter().chain(on_path).find(|p| p.is_file()) else {
            println!("skipped: chromium not found");
            return None;
        };
        Some(Self { program, folder: tempfile::tempdir().unwrap() })
    }

    /// The document after the script ran, and the browser's log.
    ///
    /// On a loaded machine the browser sometimes exits without opening the page. In that case, and only then, it is started once more.
    fn open(&self, html: &str, fragment: &str) -> (String, String) {
        let page = self.folder.path().join("report.html");
        std::fs::write(&page, html).unwrap();
        let url = format!("file://{}{fragment}", page.display());
        let first = self.run(&url, "profile");
        if first.0.contains("<html") { first } else { self.run(&url, "profile-2") }
    }

    fn run(&self, url: &str, profile: &str) -> (String, String) {
        let out = Command::new(&self.program)
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
            .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
            // Many containers have 64 MB of shared memory, too little for a browser.
            .arg("--disable-dev-shm-usage")
            .args([
                "--enable-logging=stderr",
                "--v=0",
                "--window-size=1200,900",
                "--virtual-time-budget=8000",
            ])
            .arg(format!("--user-data-dir={}", self.folder.path().join(profile).display()))
            .args(["--dump-dom", url])
            .output()
            .expect("the browser starts");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (text(&out.stdout), text(&out.stderr))
    }
}

/// The start tag of the document; the script writes its state there.
fn head(dom: &str) -> &str {
    &dom[..dom.find("<head>").unwrap_or(dom.len().min(400))]
}

fn assert_drawn((dom, log): &(String, String), charts: usize) {
    let head = head(dom);
    for said in ["data-ready=\"ok\"", "data-errors=\"0\"", &format!("data-charts=\"{charts}\"")] {
        assert!(head.contains(said), "{said}: {head}\n{log}");
    }
    let console: Vec<&str> = log.lines().filter(|l| l.contains("CONSOLE")).collect();
    assert!(console.is_empty(), "{console:?}");
}

#[test]
fn the_browser_draws_every_chart_without_an_error() {
    let Some(browser) = Browser::new() else { return };
    let mut record = sample::one_minute();
    record.datasets.extend(sample::record(2, 300).datasets);
    let opened = browser.open(&render(&record), "");
    // Tables, small matrices and ladders have only the form without the script.
    let as_written = |d: &&machmeter_data::Dataset| match &d.shape {
        Shape::Matrix(m) => m.columns.len() <= 16,
        Shape::CostTable(_) | Shape::Decades(_) => true,
        _ => false,
    };
    let charts = record.datasets.len() - record.datasets.iter().filter(as_written).count();
    assert!(charts >= 18, "{charts}");
    assert_drawn(&opened, charts);
    let dom = &opened.0;
    assert!(dom.matches("<canvas").count() >= charts, "{}", dom.matches("<canvas").count());
    // Every text for readers without the script is hidden.
    let said = ["class=\"need quiet\"", "class=\"need quiet\" hidden"].map(|text| dom.matches(text).count());
    assert_eq!(said[0], said[1]);
    let kinds = record.metrics.iter().map(|m| &m.id).collect::<std::collections::BTreeSet<_>>().len();
    assert_eq!(dom.matches("class=\"mg\"").count(), kinds);
}

#[test]
fn lists_that_the_script_lays_out_hold_every_figure_of_the_record() {
    let Some(browser) = Browser::new() else { return };
    let mut record = sample::record(2, 60);
    record.datasets.truncate(5);
    sample::interactive::add(&mut record, 4, 11, 20);
    // Folded parts are built when they unfold; here they are open from the start.
    let html = render(&record)
        .replace("<details id=", "<details open id=")
        .replace("<details class=\"data\"", "<details open class=\"data\"");
    // Every id contains a dot, so the search finds all.
    let opened = browser.open(&html, "#find=.");
    assert_drawn(&opened, 4 + 5);
    let dom = &opened.0;
    let tables = |class: &str| -> Vec<&str> {
        let open = format!("<table class=\"{class}\">");
        dom.split(open.as_str()).skip(1).map(|t| &t[..t.find("</table>").unwrap()]).collect()
    };
    let rows: usize = tables("rows").iter().map(|t| t.matches("<tr>").count() - 1).sum();
    assert_eq!(rows, record.metrics.len(), "{}", opened.1);
    assert!(dom.contains(">rejected: the task has no deadlines</td>"));
    assert_eq!(tables("grid").len(), 20, "tasks by loads");
    let cells: usize = tables("grid").iter().map(|t| t.matches("<td>").count()).sum();
    assert_eq!(cells, 880);
    for tag in ["11 rejected", "4 suspect"] {
        assert!(dom.contains(&format!("<span class=\"tag\">{tag}</span>")), "{tag}");
    }
    // Facts, one line each, and the changed ones once more.
    let facts: usize = tables("facts").iter().map(|t| t.matches("<tr").count() - 1).sum();
    assert_eq!(facts, record.machine.before.0.len() + 2);
    assert!(dom.contains("absent: the hypervisor shows no cpufreq") && dom.contains("<td>11.0 GiB</td>"));
    assert!(dom.contains("state st-pass") && dom.contains(">tsc, 10 ns step, no backward step in 10^7</td>"));
    // The table under every picture.
    let under = dom.split("class=\"data\"").skip(1).map(|d| &d[..d.find("</details>").unwrap()]);
    assert_eq!(under.filter(|d| d.contains("<td")).count(), 9);
}

#[test]
fn a_page_that_can_not_be_inflated_says_so_and_keeps_what_it_has() {
    let Some(browser) = Browser::new() else { return };
    let html = render(&sample::record(2, 60));
    let open_tag = "id=\"machmeter-record\">";
    let at = html.find(open_tag).unwrap() + open_tag.len();
    let damaged = format!("{}{}", &html[..at + 40], &html[at + 80..]);
    // Simulates a browser from before 2023. The content policy would block the simulation, so it is removed.
    let (before, policy) = html.split_once("<meta http-equiv").unwrap();
    let after = policy.split_once('>').unwrap().1;
    let old = format!("{before}<script>delete window.DecompressionStream</script>{after}");
    for (html, ready, errors) in [(damaged, "failed", "1"), (old, "ok", "0")] {
        let (dom, log) = browser.open(&html, "");
        let said = format!("data-errors=\"{errors}\" data-ready=\"{ready}\"");
        assert!(head(&dom).contains(&said), "{}\n{log}", head(&dom));
        assert_eq!(dom.matches("class=\"need quiet\" hidden").count(), 0);
        for part in ["class=\"need quiet\"", "<svg xmlns", "cc1plus"] {
            assert!(dom.contains(part), "{part}");
        }
    }
}

#[test]
fn the_policy_is_in_force_in_the_browser() {
    let Some(browser) = Browser::new() else { return };
    let html = render(&sample::record(2, 60));
    // The browser must refuse and log a foreign script and a foreign picture.
    let planted = "<main><script>document.title='owned'</script><img src=\"https://example.invalid/x.png\">";
    let (dom, log) = browser.open(&html.replace("<main>", planted), "");
    assert!(!dom.contains("<title>owned"), "a foreign script ran");
    let refused = |l: &&str| l.contains("CONSOLE") && l.contains("Content Security Policy");
    assert!(log.lines().filter(refused).count() >= 2, "{log}");
}

/// Texts that leave their drawing, and pairs of texts that overlap.
const LOOK: &str = "<script>
const out = [], pairs = [];
for (const svg of document.querySelectorAll('svg.card, .pictures svg.chart, svg.layers')) {
  const own = svg.getBoundingClientRect();
  const texts = [...svg.querySelectorAll('text')].map((t) => [t.textContent, t.getBoundingClientRect()]);
  texts.forEach(([text, a], i) => {
    if (a.left < own.left - 1 || a.right > own.right + 1 || a.top < own.top - 1 || a.bottom > own.bottom + 1) out.push(text);
    for (const [other, b] of texts.slice(i + 1)) {
      const x = Math.min(a.right, b.right) - Math.max(a.left, b.left), y = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
      if (x > 1 && y > 3) pairs.push(text + ' / ' + other);
    }
  });
}
document.documentElement.dataset.out = out.join('; ') + '.';
document.documentElement.dataset.pairs = pairs.join('; ') + '.';
document.documentElement.dataset.texts = document.querySelectorAll('svg text').length;
</script>";

#[test]
fn no_text_leaves_its_drawing_and_no_two_overlap() {
    let Some(browser) = Browser::new() else { return };
    let glance = Record::from_json(include_bytes!("fixtures/glance.json")).expect("a record");
    let mut graph = sample::record(2, 60);
    graph.datasets.clear();
    sample::graph::add(&mut graph, 4, 3);
    for (i, record) in [sample::record(2, 60), sample::one_minute(), glance, graph].iter().enumerate() {
        let card = machmeter_report::card::render(record);
        // Without its policy, so that the test's script can run.
        let html = render(record);
        let (begin, rest) = html.split_once("<meta http-equiv").unwrap();
        let report = format!("{begin}{}", rest.split_once('>').unwrap().1.replace("</body>", LOOK));
        for (name, page) in [("card", format!("<html><head></head><body>{card}{LOOK}")), ("report", report)] {
            let (dom, log) = browser.open(&page, "");
            let head = head(&dom);
            let is_fine = head.contains("data-out=\".\"") && head.contains("data-pairs=\".\"");
            assert!(is_fine, "{i} {name}: {head}");
            assert!(head.contains("data-texts") && !head.contains("data-texts=\"0\""), "{head} {log}");
        }
    }
}

/// The first page of a printed report is the glance; the chapters take at most three more pages.
#[test]
fn a_printed_report_has_four_pages() {
    let Some(browser) = Browser::new() else { return };
    let record = Record::from_json(include_bytes!("fixtures/glance.json")).expect("a record");
    let [page, pdf] = ["print.html", "print.pdf"].map(|name| browser.folder.path().join(name));
    std::fs::write(&page, render(&record)).unwrap();
    let out = Command::new(&browser.program)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--virtual-time-budget=8000",
        ])
        .arg("--no-pdf-header-footer")
        .arg(format!("--user-data-dir={}", browser.folder.path().join("printer").display()))
        .arg(format!("--print-to-pdf={}", pdf.display()))
        .arg(format!("file://{}", page.display()))
        .output()
        .unwrap();
    let bytes =
        std::fs::read(&pdf).unwrap_or_else(|e| panic!("{e}: {}", String::from_utf8_lossy(&out.stderr)));
    let text = String::from_utf8_lossy(&bytes);
    let pages = text.matches("/Type /Page\n").count() + text.matches("/Type /Page ").count();
    assert!((2..=4).contains(&pages), "{pages} pages");
}
