//! Tests a thousand option sets, wrong and right: none hangs, each ends with a documented exit code, and a refusal is one line.
//!
//! The sets depend on the seed alone. `MACHMETER_FUZZ_RUNS` sets the number of sets that measure.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests fail and tell their figures")]

use std::time::Duration;

use crate::program::{Ended, Lab, sound};
use machmeter_data::quantity::parse_duration_ns;
use machmeter_stats::random::Random;

/// Sets that are only parsed, planned or rejected.
const QUICK_SETS: usize = 1000;
const MEASURED_SETS: usize = 40;
/// Tolerance beyond the requested time. The promise is 1 s; the rest is for machines that run other tests at the same time.
const LATE: Duration = Duration::from_secs(15);

/// An option with valid and invalid values, each separated by bars.
type Choice = (&'static str, &'static str, &'static str);

const OF_NOISE: &[Choice] = &[
    ("--quantum", "1|15|31|63|cache", "2||0|-1|CACHE!"),
    ("--window", "10us|37us|100us|1ms|7ms|100ms", "1ns|9.99us|1s||ms|-1ms|1e9"),
    ("--attribution", "auto|trace|switches|totals|none", "guess|"),
    ("--threshold", "1ns|30ns|1us|1ms|5m|0ns", "long||-1us|1e400s"),
    ("--gap-capacity", "16|1000|100000|1000000", "0|15|-1|1e3|100000001|99999999999999999999"),
    ("--sweep-bytes", "1024|65536|4194304", "0|1023|1073741825|x"),
];
const OF_INTERACTIVE: &[Choice] = &[
    ("--tasks", "audio|Video,X|seed|all|-gaming|audio-pro,launch", "|vidio|audio,|-all|,"),
    ("--audio-buffers", "1|8", "0|9|-1|two"),
    ("--custom-interval", "100us|5ms|10s", "1us|11s||-1ms"),
    ("--load-prio", "other:10|batch|idle", "fifo:0||nice"),
];
const GLOBAL: &[Choice] = &[
    ("--cpus", "all|0|one-per-core|no-smt|0,0", "7777||1-0|-1|0-|x|0-999999999999999999999|numa:99"),
    (
        "--prio",
        "auto|other|other:5|other:19|batch|idle|fifo:1|fifo:45|fifo:98|rr:10|deadline:5ms/10ms/10ms",
        "fifo:0|fifo:100|fifo|urgent|deadline:2ms/1ms/1ms|deadline:0/0/0|other:99|",
    ),
    ("--level", "quick|standard|thorough|soak|1|4", "0|5|slow|"),
    ("--seed", "0|1|18446744073709551615", "-1|18446744073709551616|x"),
    ("--raw", "auto|all|none", "some|"),
    ("--color", "auto|always|never", "blue"),
    ("--tag", "a=b|a=|a=b=c|weg/../x=y\u{e9}", "=b|ab|"),
    ("--name", "box|a/b|..|\u{1f600}|", ""),
];

/// Options without a value, and outputs inside the working directory.
const FLAGS: &str = "--quiet -v --ascii --strict --no-save --json --json=j.json --csv=c.csv --md=m.md";
/// Values of `-o`; some can't be written.
const OUTPUTS: &str = "r.json|r.html|no-folder/r.json|/dev/full|.";

/// A command line, and its run time if it measures.
struct Set {
    arguments: Vec<String>,
    asked: Duration,
}

/// One of the words between bars.
fn pick<'a>(random: &mut Random, words: &'a str) -> &'a str {
    let words: Vec<&str> = words.split('|').collect();
    words[random.below(words.len())]
}

fn chance(random: &mut Random, share: f64) -> bool {
    random.unit() < share
}

/// A set that measures for 50 to 200 ms, with valid values (rights may still be missing).
fn measuring(random: &mut Random) -> Set {
    let mut arguments = vec!["noise".to_owned()];
    let mut window_ms = 0.1;
    for (option, good, _) in OF_NOISE.iter().chain(GLOBAL) {
        if chance(random, 0.35) {
            let value = pick(random, good);
            if *option == "--window" {
                window_ms = parse_duration_ns(value).unwrap() as f64 / 1e6;
            }
            arguments.extend([option, value].map(str::to_owned));
        }
    }
    let mut asked_ms = 50.0 + (random.unit() * 150.0_f64).round();
    arguments.extend(["-t".to_owned(), format!("{asked_ms}ms")]);
    if chance(random, 0.15) {
        let windows = (asked_ms / window_ms).ceil().max(1.0);
        arguments.extend(["--windows".to_owned(), format!("{windows}")]);
        asked_ms = windows * window_ms;
    }
    outputs(random, &mut arguments);
    Set { arguments, asked: Duration::from_secs_f64(asked_ms / 1e3) }
}

fn outputs(random: &mut Random, arguments: &mut Vec<String>) {
    for f in FLAGS.split(' ') {
        if chance(random, 0.12) {
            arguments.push(f.to_owned());
        }
    }
    if chance(random, 0.3) {
        arguments.extend(["-o".to_owned(), pick(random, OUTPUTS).to_owned()]);
    }
}

/// A set that must not measure: planned, or invalid.
fn quick(random: &mut Random) -> Vec<String> {
    let verb = random.below(12);
    let words = match verb {
        0 => vec![],
        1 => vec!["list", pick(random, "codes|metrics|weather")],
        2 => vec!["explain", pick(random, "W301|w900||E9")],
        3 => vec!["schema", pick(random, "record|noise|x")],
        4 => vec!["report", pick(random, "last|last~9999|/dev/null|.|")],
        5 => vec!["compare", "last", pick(random, "last~1|/|x")],
        6 => vec!["export", "--to", pick(random, "csv|hlog|stone|parquet")],
        7 | 8 => vec!["interactive"],
        _ => vec!["noise"],
    };
    let mut arguments: Vec<String> = words.into_iter().map(str::to_owned).collect();
    let own = match verb {
        0..7 => &[],
        7 | 8 => OF_INTERACTIVE,
        _ => OF_NOISE,
    };
    let probe = verb == 0 || verb > 6;
    // Verbs that measure nothing reject most options.
    let often = if probe { 0.3 } else { 0.02 };
    for (option, good, bad) in own.iter().chain(GLOBAL) {
        if chance(random, often) {
            let values = if chance(random, 0.06) { bad } else { good };
            arguments.extend([option, pick(random, values)].map(str::to_owned));
        }
    }
    if chance(random, 1.5 * often) {
        let time = pick(random, "0|1ns|49ms|50ms|20|1e3|99h|9999999h|-1||ten|2562047h");
        arguments.extend(["-t", time].map(str::to_owned));
    }
    if verb > 8 && chance(random, 0.3) {
        let windows = pick(random, "0|1|100000000|100000001|-5|1.5|x");
        arguments.extend(["--windows", windows].map(str::to_owned));
    }
    outputs(random, &mut arguments);
    if chance(random, 0.1) {
        arguments.push(pick(random, "--no-such|extra|--|-|\u{0301}|--json=|-tt").to_owned());
    }
    if probe {
        arguments.insert(random.below(arguments.len() + 1).min(1), "--dry-run".to_owned());
    }
    arguments
}

/// Laws for every set; returns its exit code.
fn check(run: &Ended, lab: &Lab) -> i32 {
    let shown = &run.shown;
    let code = run.code.unwrap();
    let errors = run.errors().len();
    match code {
        0 | 1 | 3 | 5 => assert_eq!(errors, 0, "{shown}: exit {code}\n{}", run.stderr),
        2 => run.refused(""),
        // Each output that failed has one line.
        _ => assert!((1..=3).contains(&errors), "{shown}: exit {code}\n{}", run.stderr),
    }
    assert!(!lab.files().iter().any(|name| name.starts_with('.')), "{shown}: left {:?}", lab.files());
    code
}

#[test]
fn a_thousand_option_sets_are_understood_or_refused_at_once() {
    let mut random = Random::new(0x6d61_6368);
    let lab = Lab::new();
    let mut worst = (Duration::ZERO, String::new());
    let mut count = [0_usize; 6];
    for _ in 0..QUICK_SETS {
        let set = quick(&mut random);
        let run = lab.run(&set.iter().map(String::as_str).collect::<Vec<_>>());
        let code = check(&run, &lab);
        count[usize::try_from(code).unwrap().min(5)] += 1;
        assert!(run.wall < LATE, "{}: {:?}", run.shown, run.wall);
        worst = worst.max((run.wall, run.shown));
    }
    println!("exit codes 0 to 5: {count:?}; slowest {:?}: machmeter {}", worst.0, worst.1);
    // The generator must produce both kinds, or the test covers only half of its claim.
    assert!(count[0] > QUICK_SETS / 20 && count[2] > QUICK_SETS / 4, "{count:?}");
}

#[test]
fn measuring_sets_end_in_time_with_a_sound_record() {
    #[allow(clippy::disallowed_methods, reason = "how long this test takes is the caller's choice")]
    let asked = std::env::var("MACHMETER_FUZZ_RUNS").ok();
    let sets = asked.map_or(MEASURED_SETS, |n| n.parse().expect("MACHMETER_FUZZ_RUNS is a number"));
    let mut random = Random::new(0x6e6f_6973);
    let mut late: Vec<(f64, String)> = Vec::new();
    let mut measured = 0;
    for _ in 0..sets {
        let set = measuring(&mut random);
        let lab = Lab::new();
        let arguments: Vec<&str> = set.arguments.iter().map(String::as_str).collect();
        let run = lab.run(&arguments);
        let code = check(&run, &lab);
        late.push((run.wall.as_secs_f64() - set.asked.as_secs_f64(), run.shown.clone()));
        assert!(run.wall < set.asked + LATE, "machmeter {}: {:?}", run.shown, run.wall);
        if set.arguments.iter().any(|a| a == "--json") {
            sound(&run.stdout, &run.shown);
        }
        if code == 0 {
            measured += 1;
            for name in ["r.json", "j.json"].iter().filter(|n| lab.work().join(n).exists()) {
                lab.record(name);
            }
        }
    }
    late.sort_by(|a, b| b.0.total_cmp(&a.0));
    println!("{measured} of {sets} sets measured; latest, s:");
    for (s, shown) in late.iter().take(5) {
        println!("  {s:+.3}: machmeter {shown}");
    }
    assert!(measured * 3 > sets, "only {measured} of {sets} sets measured anything");
}
