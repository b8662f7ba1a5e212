//! Opens the report from disk in headless Chromium, if one is installed: every chart is drawn, nothing is logged as an
//! error, nothing is refused by the content policy. The browser is found through `CHROMIUM` or the search path.

mod sample;

use std::path::{Path, PathBuf};
use std::process::Command;

use machmeter_data::Shape;

fn chromium() -> Option<PathBuf> {
    #[allow(clippy::disallowed_methods, reason = "a test that looks for an optional tool")]
    let (named, path) = (std::env::var("CHROMIUM").ok(), std::env::var("PATH").unwrap_or_default());
    let names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
    let on_path = std::env::split_paths(&path).flat_map(|d| names.map(|n| d.join(n)));
    named.map(PathBuf::from).into_iter().chain(on_path).find(|p| p.is_file())
}

/// The document after the script ran, and what the browser logged.
fn open(browser: &Path, page: &Path, profile: &Path) -> (String, String) {
    let out = Command::new(browser)
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
        .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
        .args(["--enable-logging=stderr", "--v=0", "--window-size=1200,900", "--virtual-time-budget=4000"])
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg("--dump-dom")
        .arg(format!("file://{}", page.display()))
        .output()
        .expect("the browser starts");
    (String::from_utf8_lossy(&out.stdout).into_owned(), String::from_utf8_lossy(&out.stderr).into_owned())
}

#[test]
fn the_browser_draws_every_chart_without_an_error() {
    let Some(browser) = chromium() else {
        println!("skipped: chromium not found");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let record = sample::record(2, 300);
    let page = folder.path().join("report.html");
    std::fs::write(&page, machmeter_report::html::render(&record)).unwrap();
    let (dom, log) = open(&browser, &page, &folder.path().join("profile"));
    let head = &dom[..dom.find("<head>").unwrap_or(dom.len().min(400))];
    assert!(head.contains("data-ready=\"ok\""), "{head}\n{log}");
    assert!(head.contains("data-errors=\"0\""), "{head}\n{log}");
    let small_matrix =
        |d: &&machmeter_data::Dataset| matches!(&d.shape, Shape::Matrix(m) if m.columns.len() <= 16);
    // Decades are a drawing of the page itself, legible without the script.
    let of_the_page = |d: &&machmeter_data::Dataset| {
        matches!(d.shape, Shape::CostTable(_) | Shape::Decades(_)) || small_matrix(d)
    };
    let charts = record.datasets.len() - record.datasets.iter().filter(of_the_page).count();
    assert!(head.contains(&format!("data-charts=\"{charts}\"")), "{head}");
    assert!(dom.matches("<canvas").count() >= charts, "{}", dom.matches("<canvas").count());
    let console: Vec<&str> = log.lines().filter(|l| l.contains("CONSOLE")).collect();
    assert!(console.is_empty(), "{console:?}");
}

#[test]
fn a_page_of_many_cells_is_drawn_and_its_metrics_unpacked() {
    let Some(browser) = chromium() else {
        println!("skipped: chromium not found");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let mut record = sample::record(2, 60);
    record.datasets.clear();
    sample::interactive::add(&mut record, 4, 11, 20);
    let page = folder.path().join("report.html");
    // Groups that stand open are built from the packed data as soon as the page is there.
    let html = machmeter_report::html::render(&record);
    std::fs::write(&page, html.replace("<details class=\"mg\"", "<details open class=\"mg\"")).unwrap();
    let (dom, log) = open(&browser, &page, &folder.path().join("profile"));
    let head = &dom[..dom.find("<head>").unwrap_or(dom.len().min(400))];
    assert!(head.contains("data-ready=\"ok\"") && head.contains("data-errors=\"0\""), "{head}\n{log}");
    assert!(head.contains("data-charts=\"4\""), "{head}");
    let rows: usize = dom
        .split("<table class=\"rows\">")
        .skip(1)
        .map(|t| t[..t.find("</table>").unwrap()].matches("<tr>").count() - 1)
        .sum();
    assert_eq!(rows, record.metrics.len(), "{log}");
    assert!(dom.contains(">rejected: the task has no deadlines</td>"));
    let console: Vec<&str> = log.lines().filter(|l| l.contains("CONSOLE")).collect();
    assert!(console.is_empty(), "{console:?}");
}

#[test]
fn the_policy_is_in_force_in_the_browser() {
    let Some(browser) = chromium() else {
        println!("skipped: chromium not found");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("report.html");
    let html = machmeter_report::html::render(&sample::record(2, 60));
    // A foreign block and a foreign picture: the browser has to refuse both, and to say so.
    let planted = html.replace(
        "<main>",
        "<main><script>document.title='owned'</script><img src=\"https://example.invalid/x.png\">",
    );
    std::fs::write(&page, planted).unwrap();
    let (dom, log) = open(&browser, &page, &folder.path().join("profile"));
    assert!(!dom.contains("<title>owned"), "a foreign script ran");
    assert!(
        log.lines().filter(|l| l.contains("CONSOLE") && l.contains("Content Security Policy")).count() >= 2,
        "{log}"
    );
}
