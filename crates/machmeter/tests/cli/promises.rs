//! Tests that the program accepts every command in a document.
//!
//! README.md, CONTRIBUTING.md, the book, the job files and the help texts show command lines: in fenced blocks, in tables, in inline code, as advice.
//! A verb with `--dry-run` is run with it. A verb that only reads runs as shown, on records made here. For the rest, the test checks the argument parser
//! and the part after `--`. A refused command (exit code 2) fails with its place, unless the page shows that code.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests fail and print what they checked")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::Mutex;

use clap::Command;

use crate::calls::{Calls, Way};
use crate::shown::{self, Form, Line, files, in_page, pages, root, shown};

fn tree() -> Command {
    machmeter::command_line(&machmeter::Registries::default())
}

/// Command lines of all documents.
fn documented(tree: &Command) -> Result<Vec<Line>, String> {
    let mut found = Vec::new();
    for page in pages().into_iter().chain([root().join("CONTRIBUTING.md")]) {
        found.extend(in_page(&shown(&page), &fs::read_to_string(&page).unwrap(), tree)?);
    }
    // Comments of job files explain how to run them; they are prose.
    for job in files("jobs", "toml") {
        for (i, line) in fs::read_to_string(&job).unwrap().lines().enumerate() {
            let Some((_, comment)) = line.split_once('#') else { continue };
            let place = format!("{}:{}", shown(&job), i + 1);
            let of_job = comment.split_once("machmeter ").map(|(_, rest)| format!("machmeter {rest}"));
            let calls = of_job.iter().flat_map(|call| shown::calls(call).unwrap());
            found.extend(calls.map(|words| Line {
                place: place.clone(),
                form: Form::Session,
                words,
                code: 0,
            }));
        }
    }
    Ok(found)
}

/// Command lines recommended in help texts.
fn in_help(verb: &Command, tree: &Command) -> Vec<Line> {
    let texts = [verb.get_long_about(), verb.get_about(), verb.get_after_long_help(), verb.get_after_help()];
    let of_options = verb.get_arguments().flat_map(|a| [a.get_long_help(), a.get_help()]);
    let place = format!("machmeter {} --help", verb.get_name());
    let all = texts.into_iter().chain(of_options).flatten().map(|text| text.to_string().replace('\n', " "));
    let advice = all.flat_map(|text| shown::advice(&text, tree));
    let line = |words| Line { place: place.clone(), form: Form::Advice, words, code: 0 };
    advice.map(line).chain(verb.get_subcommands().flat_map(|sub| in_help(sub, tree))).collect()
}

/// The refusals among these lines, and the number of checks by method. It uses two threads.
fn refusals(calls: &Calls, lines: &[Line]) -> (Vec<String>, BTreeMap<Way, usize>) {
    let (next, refused, ways) =
        (Mutex::new(lines.iter()), Mutex::new(Vec::new()), Mutex::new(BTreeMap::new()));
    let work = || {
        while let Some(line) = { next.lock().unwrap().next() } {
            match calls.check(line) {
                Ok(way) => *ways.lock().unwrap().entry(way).or_insert(0) += 1,
                Err(why) => {
                    refused.lock().unwrap().push(format!("{}: {}: {why}", line.place, line.words.join(" ")));
                }
            }
        }
    };
    std::thread::scope(|scope| (0..2).for_each(|_| drop(scope.spawn(work))));
    (refused.into_inner().unwrap(), ways.into_inner().unwrap())
}

#[test]
fn every_command_of_documents_and_help_is_accepted() {
    let tree = tree();
    let mut lines = documented(&tree).unwrap();
    lines.extend(in_help(&tree, &tree));
    let count = |form| lines.iter().filter(|l| l.form == form).count();
    let forms = [Form::Session, Form::Inline, Form::Advice].map(count);
    println!("{} command lines: {forms:?} in blocks, in inline code, as advice", lines.len());
    let calls = Calls::new();
    let (refused, ways) = refusals(&calls, &lines);
    println!("checked: {ways:?}");
    assert!(refused.is_empty(), "refused:\n{}", refused.join("\n"));
    calls.kept_nothing().unwrap();
    assert!(forms[0] >= 100 && forms[1] >= 100 && forms[2] >= 10, "only {forms:?} command lines are found");
}

#[test]
fn a_wrong_command_is_noticed_wherever_it_stands() {
    let tree = tree();
    let page = "Say `machmeter nois` or\n`sudo machmeter noise -c\n0 --windos 1ms`.\n\n| a | b |\n| --- | --- |\n\
                | x | `machmeter list nothing` |\n\n```console\n$ FOO=1 mpirun -n 2 machmeter noise \\\n  --quantum 64 | head\n\
                $ machmeter explain E999\n$ echo $?\n2\nfix: machmeter doctor -x, or machmeter explain E105\n```\n";
    let lines = in_page("page.md", page, &tree).unwrap();
    let (refused, ways) = refusals(&Calls::without_files(), &lines);
    let places: BTreeSet<&str> = refused.iter().map(|r| &r[..r.find(": ").unwrap()]).collect();
    let expected = ["page.md:1", "page.md:2", "page.md:7", "page.md:10", "page.md:15"];
    assert_eq!(places, expected.into(), "{refused:?}");
    assert_eq!(ways.values().sum::<usize>(), 2, "the shown refusal, and explain E105");
    let unknown = in_page("page.md", "```text\n$ other machmeter noise\n```\n", &tree).unwrap_err();
    assert!(unknown.contains("page.md:2") && unknown.contains("other"), "{unknown}");
}

#[test]
fn what_readme_installs_is_a_program_of_this_name() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let install = readme.lines().find_map(|l| l.trim().strip_prefix("cargo install ")).unwrap();
    let words: Vec<&str> = install.split_whitespace().take_while(|w| *w != "#").collect();
    let path = words.iter().position(|w| *w == "--path").map(|i| root().join(words[i + 1])).unwrap();
    assert_eq!(path.canonicalize().unwrap(), fs::canonicalize(env!("CARGO_MANIFEST_DIR")).unwrap());
    let manifest: toml::Table =
        toml::from_str(&fs::read_to_string(path.join("Cargo.toml")).unwrap()).unwrap();
    let programs = manifest["bin"].as_array().unwrap();
    assert!(programs.iter().any(|b| b["name"].as_str() == Some("machmeter")), "{programs:?}");
    let workspace: toml::Table =
        toml::from_str(&fs::read_to_string(root().join("Cargo.toml")).unwrap()).unwrap();
    let rust = workspace["workspace"]["package"]["rust-version"].as_str().unwrap();
    assert!(readme.contains(&format!("Rust {rust} or later")), "README names another Rust than {rust}");
}
