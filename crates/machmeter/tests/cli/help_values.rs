//! Tests that every value in a help text is accepted.
//!
//! Help texts name values in lists ("Parts: ladder, bandwidth; all by default"), as ranges ("50ms to 168h"), as defaults and as clap's possible values.
//! This test extracts them from the command tree and gives each one to its option, with `--dry-run` if the verb has that. [`PROSE`] lists words that are
//! no values; an entry that no help text uses any more is an error, too.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests fail and print what they checked")]

use std::collections::BTreeSet;
use std::sync::Mutex;

use clap::{Arg, Command};

use crate::calls::Calls;

/// Words that begin an item of a list in a help text without being a value: option (or verb, for its arguments), words.
const PROSE: [(&str, &str); 16] = [
    ("ab", "its"),
    ("compat", "its"),
    ("interactive --loads", "names"),
    ("interactive --overload", "instead"),
    ("interactive --tasks", "names"),
    ("memory --buffer", "at four"),
    ("memory --kernels", "families single"),
    ("memory --max-bytes", "at four"),
    ("net --peer", "where"),
    ("noise --prio", "of"),
    ("predict --algorithm", "machmeter"),
    ("report", "foreign"),
    ("schema", "a"),
    ("simulate", "binary text"),
    ("simulate --pattern", "machmeter"),
    ("simulate --ranks", "2^10 2^20"),
];

/// Names that represent values of a form: option, name, value.
const FORMS: [(&str, &str, &str); 4] = [
    ("export", "last~N", "last~1"),
    ("report", "last~N", "last~1"),
    ("predict --vary", "g", "g=2x"),
    ("predict --vary", "o", "o=2x"),
];

/// Names of numeric values, and of values that may be any text or file. Prose in their help names no value.
const NUMBERS: [&str; 13] =
    ["N", "K", "X", "P", "HZ", "MIB", "DUR", "PERCENT", "PER_MS", "SHARE", "A-B", "FROM-TO", "N or FROM-TO"];
const TEXTS: [&str; 12] =
    ["FILE", "DIR", "PATH", "RECORD", "RUN", "EXPR", "TEXT", "METRIC", "GLOB", "K=V", "TAG", "ADDRESS"];

/// Refusals that depend on the machine.
const OF_MACHINE: [&str; 2] = ["this machine has CPU", "no CPU is isolated"];

/// Arguments that follow an option (or verb) and its value. The entry of the verb applies to all its options without an entry.
const BEHIND: [(&str, &str); 20] = [
    ("ab --", "true true -- noise"),
    ("ab --set", "--set nice=0 -- noise"),
    ("compare --", "any.json any.json"),
    ("export", "--to csv"),
    ("export --", "--to csv any.json"),
    ("export --to", "any.json"),
    ("flow --", "--graph e_comm"),
    ("flow --graph", ""),
    ("interactive --custom-cpu", "--custom-interval 20ms"),
    ("interactive --custom-interval", "--custom-cpu 25"),
    ("interactive --loads", "--custom-cpu 25 --custom-interval 20ms"),
    ("interactive --tasks", "--custom-cpu 25 --custom-interval 20ms"),
    ("predict --", "any.json --on any.json"),
    ("predict --expr", "--on any.json"),
    ("predict --on", "any.json"),
    ("predict --over", "--expr P --on any.json"),
    ("selftest --", "noise"),
    ("simulate --", "--pattern allreduce --on any.json"),
    ("simulate --pattern", "--on any.json"),
    ("trace --", "-- true"),
];

/// An option of a verb with a value in its help.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Named {
    /// `VERB --OPTION`, or `VERB` for its arguments.
    option: String,
    value: String,
    /// True if the argument parser checks the value: a number, or one of a fixed set.
    by_parser: bool,
}

/// Values in the text of an option: first words of list items, ends of ranges.
fn in_text(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let text = text.replace('\n', " ").replace('`', "");
    for clause in text.split("; ").flat_map(|c| c.split(". ")) {
        let labeled = clause.split_once(": ");
        let list = labeled.map_or(clause, |(_, list)| list).trim_end_matches('.');
        let items: Vec<&str> =
            list.split(", ").flat_map(|i| i.split(" or ")).flat_map(|i| i.split(" and ")).collect();
        for item in items.iter().filter(|_| labeled.is_some() || items.len() > 1) {
            let item =
                ["or ", "and ", "also ", "as "].iter().fold(*item, |i, word| i.trim_start_matches(word));
            let quoted = item.strip_prefix('\'').and_then(|i| i.split_once('\''));
            found.extend(quoted.map(|q| q.0).or_else(|| item.split(' ').next()).map(str::to_owned));
            // "classic is audio, video": the value of the item, and the first of its list.
            if let Some((_, value)) = item.split_once(" is ").filter(|(_, value)| !value.contains(' ')) {
                found.insert(value.to_owned());
            }
        }
        let words: Vec<&str> = list.split_whitespace().map(|w| w.trim_matches(['(', ',', ')'])).collect();
        for range in words.windows(3).filter(|w| w[1] == "to" && begins_as_number(w[0])) {
            found.extend([range[0], range[2]].map(str::to_owned));
        }
        // A unit behind a number is part of the value. A number of other things is not a value.
        let is_number = |w: &str| w.chars().all(|c| c.is_ascii_digit());
        let is_word = |w: &str| w.starts_with(char::is_alphabetic) && !["to", "or", "and"].contains(&w);
        for pair in words.windows(2).filter(|w| is_number(w[0]) && is_word(w[1])) {
            found.remove(pair[0]);
            if pair[1].ends_with("iB") {
                found.insert(pair.concat());
            }
        }
    }
    let is_value =
        |w: &String| w.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit()) || w.contains('=');
    found.into_iter().map(|w| w.trim_end_matches([':', ')']).to_owned()).filter(is_value).collect()
}

fn begins_as_number(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_digit())
}

fn of_option(verb: &str, arg: &Arg) -> Vec<Named> {
    if !arg.get_action().takes_values() {
        return Vec::new();
    }
    let text = arg.get_long_help().or_else(|| arg.get_help()).map(ToString::to_string).unwrap_or_default();
    let of_kind =
        |kinds: &[&str]| arg.get_value_names().is_some_and(|n| n.iter().any(|n| kinds.contains(&n.as_str())));
    let mut values = in_text(&text);
    values.retain(|v| begins_as_number(v) || !of_kind(&NUMBERS));
    values.retain(|v| v.starts_with("last") || v.contains('=') || !of_kind(&TEXTS));
    values.extend(arg.get_possible_values().iter().map(|v| v.get_name().to_owned()));
    values.extend(arg.get_default_values().iter().map(|v| v.to_string_lossy().into_owned()));
    let by_parser = of_kind(&NUMBERS) || !arg.get_possible_values().is_empty();
    let option = arg.get_long().map_or_else(|| verb.to_owned(), |long| format!("{verb} --{long}"));
    values.into_iter().map(|value| Named { option: option.clone(), value, by_parser }).collect()
}

/// All values in help texts; those of options that many verbs share, once.
fn all(tree: &Command) -> BTreeSet<Named> {
    let shared: Vec<&str> = tree.get_arguments().map(|a| a.get_id().as_str()).collect();
    let of_verb = |verb: &Command| -> Vec<Named> {
        let own = verb.get_arguments().filter(|a| !shared.contains(&a.get_id().as_str()));
        own.flat_map(|a| of_option(verb.get_name(), a)).collect()
    };
    let mut found: BTreeSet<Named> = tree.get_subcommands().flat_map(of_verb).collect();
    found.extend(tree.get_arguments().flat_map(|a| of_option("noise", a)));
    found
}

/// The command line that gives the value to its option.
fn words(named: &Named) -> Vec<String> {
    let form = FORMS.iter().find(|(option, name, _)| *option == named.option && *name == named.value);
    let value = form.map_or(named.value.as_str(), |(_, _, value)| value);
    let (verb, option) = named.option.split_once(' ').unwrap_or((&named.option, ""));
    let behind = |key: &str| BEHIND.iter().find(|(k, _)| *k == key).map(|(_, words)| *words);
    let words =
        behind(&named.option).or_else(|| behind(&format!("{verb} --")).filter(|_| !option.is_empty()));
    let given = if option.is_empty() { value.to_owned() } else { format!("{option}={value}") };
    let more = words.unwrap_or_default().split_whitespace().map(str::to_owned);
    [verb.to_owned(), given].into_iter().chain(more).collect()
}

#[test]
fn every_value_that_help_names_is_accepted() {
    let tree = machmeter::command_line(&machmeter::Registries::default());
    let calls = Calls::new();
    let all = all(&tree);
    let prose: BTreeSet<(&str, &str)> =
        PROSE.iter().flat_map(|(option, words)| words.split(' ').map(move |word| (*option, word))).collect();
    let used: BTreeSet<(&str, &str)> = all.iter().map(|n| (n.option.as_str(), n.value.as_str())).collect();
    let dead: Vec<_> = prose.difference(&used).collect();
    assert!(dead.is_empty(), "no list in a help text begins an item with {dead:?}");
    let is_prose = |n: &Named| prose.contains(&(n.option.as_str(), n.value.as_str()));
    let tried: Vec<&Named> = all.iter().filter(|n| !is_prose(n)).collect();
    let (next, refused) = (Mutex::new(tried.iter()), Mutex::new(Vec::new()));
    let work = || {
        while let Some(named) = { next.lock().unwrap().next() } {
            let line = words(named);
            let judged = if named.by_parser { calls.parsed(&line) } else { calls.accepted(&line) };
            if let Err(why) = judged
                && !OF_MACHINE.iter().any(|of_machine| why.contains(of_machine))
            {
                refused.lock().unwrap().push(format!("{}: {why}", line.join(" ")));
            }
        }
    };
    std::thread::scope(|scope| (0..2).for_each(|_| drop(scope.spawn(work))));
    println!("{} values of help texts tried", tried.len());
    let refused = refused.into_inner().unwrap();
    assert!(refused.is_empty(), "help names what is refused:\n{}", refused.join("\n"));
    assert!(tried.len() >= 150, "only {} values are found", tried.len());
}

#[test]
fn values_are_found_in_lists_ranges_and_explanations() {
    let found = |text| in_text(text).into_iter().collect::<Vec<_>>();
    assert_eq!(found("Parts: ladder, table; all by default"), ["ladder", "table"]);
    assert_eq!(found("Contents: random or zeros; of the memory"), ["random", "zeros"]);
    assert_eq!(found("Slice (EEVDF, 100us to 100ms)."), ["100ms", "100us"]);
    let sets = found("Loads: names; usual is all that are safe, seed interbench's, classic is audio");
    assert_eq!(sets, ["audio", "classic", "names", "seed", "usual"]);
    assert_eq!(found("Where loads make files"), [] as [&str; 0]);
}
