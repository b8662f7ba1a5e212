//! Tests of `simulate`: patterns, schedules, noise, shares, and wrong input.

use std::fs;
use std::path::Path;

use machmeter_data::record::Run;
use machmeter_data::{Column, Record, Table, Unit, Values};

use super::planted::{plant_link, record, save};
use crate::program::Lab;

/// A record of the planted link with the gaps of two CPUs.
fn lab() -> Lab {
    let lab = Lab::new();
    let mut record = record("0123456789abcdef");
    let keys = [("transport", "shm".into()), ("direction", "there".into()), ("from_bytes", 1i64.into())];
    plant_link(&mut record, "net", &keys, 0.0);
    let column = |name: &str, values: Values| Column::new(name, Unit::Ticks, values);
    let start: Vec<i64> = (0..400).map(|i| i / 2 * 50_000 + i % 2 * 7000).collect();
    let end: Vec<i64> = start.iter().enumerate().map(|(i, s)| s + 500 + (i as i64 * 37) % 900).collect();
    let columns = vec![
        column("cpu", (0..400).map(|i| i % 2).collect::<Vec<i32>>().into()),
        column("start_ticks", start.into()),
        column("end_ticks", end.into()),
    ];
    let notes = [("tick_hz", "1000000000"), ("t0_ticks", "0"), ("wall_ticks", "10000000")];
    let notes = notes.map(|(k, v)| (k.to_owned(), v.to_owned()));
    let mut table = Table::new("noise_gaps", columns).unwrap();
    table.notes.extend(notes);
    save(&lab, record, &[table], "on.json");
    lab
}

fn without_identity(path: &Path) -> Record {
    let mut record: Record = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
    (record.id, record.run) = (String::new(), Run::default());
    record
}

const NOISY: &str =
    "simulate --pattern barrier --ranks 2-64 --on on.json --noise on.json --rounds 5 --work 20us --runs 7 -q";

#[test]
fn a_pattern_takes_its_closed_form_and_noise_takes_more() {
    let lab = lab();
    lab.line("simulate --pattern bcast --bytes 1 --ranks 2-1K --on on.json -q -o quiet.json").expect(0);
    let quiet = lab.record("quiet.json");
    for k in 1..=10 {
        let ranks = (1u32 << k).to_string();
        let time = quiet.metric("simulate.time", &[("ranks", &ranks), ("noise", "none")]).unwrap();
        assert_eq!(time.value, Some(f64::from(k) * 700.0), "{ranks} ranks");
    }
    lab.line(&format!("{NOISY} -o noisy.json")).expect(0);
    let noisy = lab.record("noisy.json");
    let slowdown =
        |ranks: &str| noisy.metric("simulate.slowdown", &[("ranks", ranks)]).unwrap().value.unwrap();
    assert!(slowdown("2") > 1.0 && slowdown("64") > slowdown("2"), "{} {}", slowdown("2"), slowdown("64"));
    let shown = lab.line("report noisy.json").expect(0).stdout.clone();
    assert!(shown.contains("SIMULATE") && shown.contains("with noise"), "{shown}");
    lab.line("compare noisy.json noisy.json").expect(0);
    lab.line("simulate --pattern list").expect(0);
}

#[test]
fn threads_and_shares_give_the_same_bits() {
    let lab = lab();
    lab.line(&format!("{NOISY} -o all.json")).expect(0);
    lab.line(&format!("{NOISY} --cpus 0 -o one.json")).expect(0);
    for part in 1..=3 {
        lab.line(&format!("{NOISY} --part {part}/3 -o part{part}.json")).expect(0);
    }
    lab.line("simulate --merge part3.json part1.json part2.json -o merged.json").expect(0);
    let record = |name: &str| without_identity(&lab.work().join(name));
    assert!(record("all.json") == record("one.json"), "1 and 2 threads");
    assert!(record("all.json") == record("merged.json"), "three shares");
    assert!(record("all.json") != record("part1.json"));
    lab.line("simulate --merge part1.json part2.json").refused("is in no share");
    lab.line("simulate --merge part1.json part2.json part3.json part3.json").refused("is in two shares");
    lab.line("simulate --merge part1.json on.json")
        .refused("--merge on.json: the record is not a simulation");
    lab.line(&format!("{} --part 1/3 -o other.json", NOISY.replace("5 --work", "6 --work"))).expect(0);
    lab.line("simulate --merge part1.json other.json").refused("the share belongs to another plan");
}

#[test]
fn schedules_run_and_deadlocks_are_answers() {
    let lab = lab();
    let write = |name: &str, text: &str| fs::write(lab.work().join(name), text).unwrap();
    write(
        "job.goal",
        "num_ranks 2\nrank 0 {\ncalc 1000\nsend 1b to 1 tag 3\n}\nrank 1 {\nrecv 1b from 0 tag 3\n}\n",
    );
    lab.line("simulate job.goal --on on.json -q -o job.json").expect(0);
    let time = lab.record("job.json").metric("simulate.time", &[("pattern", "job")]).unwrap().value;
    assert_eq!(time, Some(700.0_f64.max(1100.0)), "the send goes first, the calculation after it");
    write("dead.goal", "num_ranks 2\nrank 0 {\nrecv 1b from 1 tag 3\n}\nrank 1 {\nrecv 1b from 0\n}\n");
    let dead = lab.line("simulate dead.goal --on on.json -q");
    let answer = dead.expect(1).errors().join(" ");
    assert!(
        answer.contains("rank 0 waits for rank 1, tag 3") && answer.contains("2 operations never end"),
        "{answer}"
    );
    for (text, about) in [
        ("num_ranks 2\nrank 0 {\njump\n}", "bad.goal: line 3, column 1: expected `send`"),
        ("num_ranks 1\nrank 0 {\n", "expected `}` of rank 0"),
        ("num_ranks 1\nrank 0 {\na: calc 1\na: calc 2\n}", "label `a` is defined twice"),
        ("num_ranks 1\nrank 0 {\na: calc 1\nb: calc 2\na requires b\nb requires a\n}", "requires itself"),
        ("\u{7f}\u{10}\0\0\0\0\0\0", "bad.goal: byte 8: the file ends too early"),
    ] {
        write("bad.goal", text);
        lab.line("simulate bad.goal --on on.json").refused(about);
    }
}

#[test]
fn what_cannot_be_is_refused() {
    let lab = lab();
    lab.line("simulate --pattern bcast --ranks 2 --on on.json -q -o bare.json").expect(0);
    for (line, about) in [
        ("simulate", "nothing to simulate"),
        ("simulate --pattern nothing --on on.json", "no pattern 'nothing'"),
        ("simulate --pattern bcast", "no costs for the simulation"),
        (
            "simulate --pattern bcast --on bare.json",
            "no parameters of links: measure them with machmeter net",
        ),
        ("simulate --pattern bcast --on on.json --link tcp", "no link 'tcp' in the record: shm there"),
        (
            "simulate --pattern bcast --on on.json --noise bare.json",
            "--noise bare.json: the run has no list of gaps",
        ),
        ("simulate --pattern bcast --on on.json --noise period=1ms", "duration= is missing"),
        ("simulate --pattern bcast --on on.json --noise period=1ms,duration=2ms", "leave no time for work"),
        ("simulate --pattern bcast --on on.json --noise rate=0,duration=1us", "'0' is not a rate"),
        ("simulate --pattern bcast --on on.json --part 4/3", "'4/3' is not a share K/N"),
        ("simulate --pattern bcast --on on.json --ranks 1", "'1' is not a number of ranks"),
        ("simulate --pattern bcast --on on.json --ranks 8-4", "'8-4' is not a number of ranks"),
        ("simulate --pattern alltoall --on on.json --ranks 1M", "a run needs up to"),
        ("simulate --pattern ring --on on.json --ranks 1M --rounds 100000", "more than 2^31 operations"),
        ("simulate nothere.goal --on on.json", "nothere.goal"),
    ] {
        lab.line(line).refused(about);
    }
}

#[test]
fn the_table_of_operations_has_laws_in_ranks_and_says_that_it_is_simulated() {
    let lab = lab();
    lab.line("simulate --table --on on.json --ranks 2-64 --sizes 8-64K -q -o table.json").expect(0);
    let record = lab.record("table.json");
    for k in 1..=6 {
        let keys = [("operation", "bcast"), ("ranks", &*(1u32 << k).to_string())];
        let time = record.metric("simulate.isolated", &keys).unwrap().value;
        assert_eq!(time, Some(f64::from(k) * 703.5), "8 B to 2^{k} ranks");
    }
    let barrier = [("operation", "barrier"), ("term", "log(p)")];
    let per_doubling = record.metric("simulate.coefficient", &barrier).unwrap().value.unwrap();
    assert!((per_doubling - 700.0).abs() < 1e-3, "{per_doubling} ns");
    let shown = lab.line("report table.json").expect(0).stdout.clone();
    assert!(
        shown.contains("SIMULATED") && shown.contains("2 to 64 simulated ranks on the link 'shm there'"),
        "{shown}"
    );
    let barrier = shown.lines().find(|l| l.trim_start().starts_with("barrier ")).unwrap();
    assert!(barrier.contains(" 0.7*log(p) "), "{shown}");
    assert!(shown.lines().all(|l| l.chars().count() <= 100), "{shown}");
    lab.line("simulate --table --on on.json --ops barrier,bcast --ranks 2-8 -q").expect(0);
    lab.line("simulate --table --on on.json --ops put").refused("'put' is not one of send, recv");
    lab.line("simulate --table --on on.json --sizes 8-1G").refused("'8-1G' is not a range of sizes");
    lab.line("simulate --table").refused("--on");
}
