//! Judges the machines of `fixtures/facts/`.
//!
//! `expected.txt` there holds the state of every check in every situation. It was reviewed by hand, so every pass in it is a correct one. `checks.txt`
//! holds the states that each check can reach and the facts that it reads.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::sync::LazyLock;

use machmeter_data::facts::{Fact, FactState, FactValue, Facts};
use machmeter_data::summary::{Fit, Fitness, Purpose};
use machmeter_data::{Check, CheckState};
use proptest::prelude::*;

use super::situations::{SITUATIONS, Situation, directory};
use super::*;

fn letter(state: CheckState) -> char {
    match state {
        CheckState::Pass => 'P',
        CheckState::Warn => 'W',
        CheckState::Fail => 'F',
        CheckState::Unknown => '?',
        CheckState::NotApplicable => '-',
    }
}

/// The lines of a fixture file without comments.
fn lines(file: &str) -> Vec<String> {
    let text = std::fs::read_to_string(directory().join(file)).unwrap();
    text.lines().filter(|l| !l.starts_with('#') && !l.is_empty()).map(str::to_owned).collect()
}

/// The entry of `checks.txt` for a check: the states it can reach, and the facts that it reads in addition to those it needs.
struct Declared {
    states: BTreeSet<char>,
    details: Vec<String>,
}

static DECLARED: LazyLock<Vec<Declared>> = LazyLock::new(|| {
    let lines = lines("checks.txt");
    assert_eq!(lines.len(), CHECKS.len());
    let declared = |(line, def): (&String, &CheckDef)| {
        let mut words = line.split(' ');
        assert_eq!(words.next(), Some(def.code.id));
        let states = words.next().unwrap().chars().collect();
        Declared { states, details: words.map(str::to_owned).collect() }
    };
    lines.iter().zip(CHECKS).map(declared).collect()
});

/// Laws that hold for every outcome on every machine.
fn check_laws(name: &str, checks: &[Check]) {
    assert_eq!(checks.len(), CHECKS.len());
    for ((check, def), declared) in checks.iter().zip(CHECKS).zip(&*DECLARED) {
        let at = format!("{name}: {check:?}");
        assert!(declared.states.contains(&letter(check.state)), "a state it does not declare: {at}");
        assert!(!check.observed.trim().is_empty() && !check.source.is_empty(), "{at}");
        assert!(!check.observed.contains("NaN") || check.state == CheckState::Unknown, "{at}");
        let bad = matches!(check.state, CheckState::Warn | CheckState::Fail);
        assert!(!bad || check.next.is_some(), "bad, but nothing to do: {at}");
        assert!(!bad || check.limit.is_some(), "bad, but against which limit: {at}");
        assert!(check.undo.is_none() || check.next.is_some(), "{at}");
        assert!(check.state != CheckState::Pass || check.next.is_none(), "{at}");
        assert!(check.undo.is_none() || def.code.undo.is_some(), "explain has no undo: {at}");
        assert!(
            !check.next.as_ref().is_some_and(|n| n.contains("kill")),
            "others' programs are theirs: {at}"
        );
    }
}

#[test]
fn every_situation_is_judged_as_expected() {
    let mut table = String::new();
    let mut words = String::new();
    for situation in Situation::all() {
        let checks = situation.run();
        check_laws(&situation.name, &checks);
        let states: Vec<String> =
            checks.chunks(6).map(|c| c.iter().map(|c| letter(c.state)).collect()).collect();
        let _ = writeln!(table, "{:<44} {}", situation.name, states.join(" "));
        let _ = writeln!(words, "\n{}: {:?}", situation.name, verdict(&checks));
        for c in &checks {
            let (next, undo) = (c.next.as_deref().unwrap_or("-"), c.undo.as_deref().unwrap_or("-"));
            let _ = writeln!(
                words,
                "  {} {} {}: {} [{}] NEXT {next} UNDO {undo}",
                letter(c.state),
                c.id,
                c.name,
                c.observed,
                c.source
            );
        }
    }
    println!("{words}");
    let found: Vec<&str> = table.lines().collect();
    assert_eq!(found, lines("expected.txt"), "found:\n{table}");
}

#[test]
fn every_check_reaches_all_its_states() {
    let mut reached: BTreeMap<String, BTreeSet<char>> = BTreeMap::new();
    for situation in Situation::all() {
        for check in situation.run() {
            reached.entry(check.id).or_default().insert(letter(check.state));
        }
    }
    for (def, Declared { states, .. }) in CHECKS.iter().zip(&*DECLARED) {
        assert_eq!(reached[def.code.id], *states, "{}", def.code.id);
        assert!(states.contains(&'?') && states.contains(&'P') && states.len() >= 3, "{}", def.code.id);
    }
}

#[test]
fn every_code_is_unique_sorted_and_fully_explained() {
    let ids: Vec<&str> = codes().map(|c| c.id).collect();
    assert!(ids.windows(2).all(|w| w[0] < w[1]), "{ids:?}");
    for def in CHECKS {
        let c = &def.code;
        assert!(c.id.len() == 4 && c.id.starts_with('E') && c.id[1..].parse::<u32>().is_ok(), "{}", c.id);
        assert!(!c.name.is_empty() && c.name.len() < 40, "{}", c.id);
        for text in [c.what, c.why, c.how] {
            assert!(text.len() > 20 && text.ends_with('.') && !text.contains("  "), "{}: {text}", c.id);
        }
        assert!(c.next.len() > 15 && !c.next.contains("  "), "{}", c.id);
        let changes = ["echo ", "sysctl ", "cpupower ", "swapoff"].iter().any(|w| c.next.contains(w));
        assert!(!changes || c.undo.is_some(), "{}: a setting is changed, but how is it put back?", c.id);
        assert!(def.of_machine || !def.hazards.is_empty(), "{}: no figure is weaker for it", c.id);
        assert!(find(c.id).is_some_and(|d| d.code.id == c.id));
        assert!(find(&c.id.to_lowercase()).is_some());
    }
    assert!(find("E000").is_none());
    for code in crate::verdict::codes() {
        assert!(find(code).is_some_and(|def| def.code.id == code), "{code} counts for a purpose");
    }
}

/// The first check that passes in `after` but not in `before`.
fn new_pass(before: &[Check], after: &[Check]) -> Option<(Check, Check)> {
    let is_new = |(was, is): &(&Check, &Check)| is.state == CheckState::Pass && was.state != is.state;
    before.iter().zip(after).find(is_new).map(|(was, is)| (was.clone(), is.clone()))
}

fn listed(path: &str, list: &[String]) -> bool {
    list.iter().any(|p| *p == path || p.strip_suffix('*').is_some_and(|stem| path.starts_with(stem)))
}

/// Removes `path` (or makes its read denied) in the first, the second, or both captures.
fn without(situation: &Situation, path: &str, refused: bool, first: bool, second: bool) -> Situation {
    let take = |facts: &Facts| {
        let mut facts = facts.clone();
        if refused {
            if let Some(fact) = facts.0.get_mut(path) {
                *fact = Fact::missing(FactState::Denied, fact.source.clone(), "refused in this test");
            }
        } else {
            facts.0.remove(path);
        }
        facts
    };
    Situation {
        name: format!("{} without {path}", situation.name),
        facts: if first { take(&situation.facts) } else { situation.facts.clone() },
        later: situation.later.as_ref().map(|l| if second { take(l) } else { l.clone() }),
        ..situation.clone()
    }
}

#[test]
fn a_lost_fact_never_makes_a_pass_and_every_check_says_what_it_reads() {
    for situation in Situation::all() {
        let before = situation.run();
        for path in situation.facts.0.keys() {
            for (refused, first, second) in [
                (false, true, true),
                (true, true, true),
                (false, true, false),
                (false, false, true),
                (true, false, true),
            ] {
                let poorer = without(&situation, path, refused, first, second);
                let after = poorer.run();
                check_laws(&poorer.name, &after);
                assert_eq!(new_pass(&before, &after), None, "{}", poorer.name);
                for (((was, is), def), declared) in before.iter().zip(&after).zip(CHECKS).zip(&*DECLARED) {
                    let at = || format!("{} of {}: {was:?} -> {is:?}", poorer.name, def.code.id);
                    let (needed, detail) =
                        (def.needs.contains(&path.as_str()), listed(path, &declared.details));
                    let refusal_is_the_answer = def.code.id == "E504" && refused;
                    if was != is {
                        assert!(needed || detail, "it reads {path} without saying so: {}", at());
                    }
                    if needed && first && !refusal_is_the_answer {
                        assert!(
                            matches!(is.state, CheckState::Unknown | CheckState::NotApplicable),
                            "{}",
                            at()
                        );
                    }
                }
            }
        }
    }
}

/// One fact at a time, all of them. The random search below finds some of these cases only once in many runs.
#[test]
fn a_text_that_nobody_writes_never_makes_a_pass() {
    for situation in Situation::all() {
        let before = situation.run();
        for path in situation.facts.0.keys().filter(|p| *p != "kernel.cmdline") {
            let mut odd = situation.clone();
            odd.facts.set(path.clone(), Fact::known(FactValue::Text("#!".to_owned()), "nonsense"));
            assert_eq!(new_pass(&before, &odd.run()), None, "{} with nonsense in {path}", situation.name);
        }
    }
}

#[test]
fn a_machine_without_facts_passes_nothing_but_its_clock_and_its_live_measurement() {
    let (facts, cpus) = (Facts::default(), "0-1".parse().unwrap());
    let inputs = Inputs { facts: &facts, later: None, clock: None, live: None, for_cpus: &cpus };
    let checks = run(&inputs);
    check_laws("nothing", &checks);
    assert!(checks.iter().all(|c| c.state == CheckState::Unknown), "{checks:?}");
    assert!(verdict(&checks).iter().all(|f| f.fit == Fit::Unknown), "{:?}", verdict(&checks));
}

/// A map with every key that a check reads; no real system has any of its values.
fn odd_map() -> FactValue {
    let keys = ["0", "cpus", "global", "irq", "name", "performance", "refuses"];
    let odd = keys.map(|key| (key, "x-".into())).into_iter();
    FactValue::map(odd.chain([("disabled", FactValue::Int(1)), ("exit_ns", FactValue::Float(f64::NAN))]))
}

/// One fact at a time, as for texts.
#[test]
fn a_map_that_no_version_writes_never_makes_a_pass() {
    for situation in Situation::all() {
        let before = situation.run();
        for path in situation.facts.0.keys() {
            for value in [odd_map(), FactValue::List(vec![odd_map()])] {
                let mut odd = situation.clone();
                odd.facts.set(path.clone(), Fact::known(value, "nonsense"));
                let after = odd.run();
                check_laws(&odd.name, &after);
                assert_eq!(new_pass(&before, &after), None, "{} with nonsense in {path}", situation.name);
            }
        }
    }
}

proptest! {
    #[test]
    fn losing_any_set_of_facts_and_any_nonsense_in_them_never_makes_a_pass(
        which in 0..SITUATIONS.len(),
        lost in proptest::collection::vec(0_usize..80, 0..12),
        nonsense in proptest::collection::vec((0_usize..80, 0_usize..8), 0..6),
    ) {
        let mut situation = Situation::all().swap_remove(which);
        let before = situation.run();
        let paths: Vec<String> = situation.facts.0.keys().cloned().collect();
        for (at, kind) in nonsense {
            // Any text is a possible kernel command line.
            let kind = if paths[at % paths.len()] == "kernel.cmdline" { 0 } else { kind };
            let value = match kind {
                0 => FactValue::Float(f64::NAN),
                1 => FactValue::Int(-7),
                2 => FactValue::Text("#!".to_owned()),
                3 => FactValue::List(vec![FactValue::Float(f64::INFINITY)]),
                4 => FactValue::List(vec![FactValue::Text("CPU x: y exit z".to_owned())]),
                5 => odd_map(),
                6 => FactValue::List(vec![odd_map()]),
                _ => FactValue::Float(f64::NEG_INFINITY),
            };
            situation.facts.set(paths[at % paths.len()].clone(), Fact::known(value, "nonsense"));
        }
        for at in lost {
            situation.facts.0.remove(&paths[at % paths.len()]);
        }
        prop_assert_eq!(new_pass(&before, &situation.run()), None);
    }
}

#[test]
fn a_trace_instance_of_a_run_is_not_to_be_switched_off_by_hand() {
    let mut situation = Situation::all().swap_remove(0);
    for (place, advice) in [("machmeter-7", "after a crash"), ("osnoise", "echo 0 >")] {
        let active = FactValue::map([(place, vec!["events"].into())]);
        situation.facts.set("kernel.tracers", Fact::known(active, "tracefs"));
        let check = find("E307").unwrap().check(&situation.inputs());
        assert_eq!(check.state, CheckState::Warn);
        assert!(check.next.as_ref().unwrap().contains(advice), "{check:?}");
    }
}

#[test]
fn the_verdict_follows_the_checks() {
    let of = |name: &str| {
        let all = Situation::all();
        verdict(&all.iter().find(|s| s.name.starts_with(name)).unwrap().run())
    };
    let fit = |all: &[Fitness], p: Purpose| all.iter().find(|f| f.purpose == p.name()).unwrap().fit;
    assert!(of("rt-tuned+").iter().all(|f| f.fit == Fit::Yes), "{:?}", of("rt-tuned+"));
    let vm = of("vm-kvm+");
    assert_eq!(fit(&vm, Purpose::Throughput), Fit::No, "{vm:?}");
    assert!(vm[2].reason.starts_with("other programs took 90 % of both CPUs (E104)"), "{vm:?}");
    // The row of the check also has the reason for the lack of pressure information; the verdict does not.
    let old = of("old-no-psi");
    assert_eq!(old[0].reason, "load average 4 over 1 min on 16 CPUs (E104)");
    let denied = of("denied-nobody");
    assert!([Purpose::Latency, Purpose::RealTime].iter().all(|p| fit(&denied, *p) != Fit::Yes), "{denied:?}");
}

#[test]
fn this_machine_is_judged() {
    let facts = machmeter_sys::facts::capture();
    let live = live::sample(std::time::Duration::from_millis(200));
    let later = machmeter_sys::facts::capture();
    let cpus = facts.text("cpu.online").unwrap_or("0").parse().unwrap();
    let inputs =
        Inputs { facts: &facts, later: Some(&later), clock: None, live: Some(&live), for_cpus: &cpus };
    let checks = run(&inputs);
    check_laws("this machine", &checks);
    for c in &checks {
        println!("{} {} {}: {}", letter(c.state), c.id, c.name, c.observed);
    }
    println!("{:?}\n{live:?}", verdict(&checks));
}

/// Prints the facts of which `fixtures/facts/vm-kvm.json` and its second capture were made; see the README there.
#[test]
#[ignore = "records the machine it runs on as a new fixture: by hand, `cargo test -p machmeter-doctor -- --ignored`"]
fn record_this_machine() {
    let first = machmeter_sys::facts::capture();
    std::thread::sleep(std::time::Duration::from_secs(5));
    let second = machmeter_sys::facts::capture();
    for facts in [first, second] {
        println!("RECORD {}", serde_json::to_string(&facts).unwrap());
    }
}
