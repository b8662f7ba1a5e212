//! Tests of the history: names, tags, pruning, and the search for a run.

use machmeter_data::record::{Run, Tool};
use machmeter_data::{Column, Unit};

use super::*;

/// A record without measurements.
pub(crate) fn sample_record() -> Record {
    let tool = Tool { name: "machmeter".to_owned(), version: "0.1.0".to_owned(), ..Tool::default() };
    let run = Run {
        started: "2026-11-21T19:42:00Z".to_owned(),
        verb: "noise".to_owned(),
        level: "quick".to_owned(),
        ..Run::default()
    };
    let id = "00000000-0000-4000-8000-000000000000".to_owned();
    Record { complete: true, stopped_by: "time".to_owned(), ..Record::new(id, tool, run) }
}

fn table(rows: i64) -> Table {
    let rows: Vec<i64> = (0..rows).collect();
    Table::new("noise_gaps", vec![Column::new("start_ticks", Unit::Ticks, rows)]).unwrap()
}

fn run(seed: u64) -> Record {
    let mut r = sample_record();
    r.run.seed = seed;
    r
}

#[test]
fn runs_are_found_by_age_tag_name_and_path() {
    let dir = tempfile::tempdir().unwrap();
    let history = History::open(&dir.path().join("state/machmeter")).unwrap();
    let none = history.resolve("last").unwrap_err().to_string();
    assert!(none.contains("no run saved in "), "{none}");
    let mut saved = Vec::new();
    for seed in 0..3 {
        let mut record = run(seed);
        if seed == 1 {
            record.run.tags.insert("before upgrade/1".to_owned(), String::new());
            record.run.tags.insert("kernel".to_owned(), "6.17".to_owned());
        }
        saved.push(history.save(&mut record, &[table(5)]).unwrap());
    }
    let seed_of = |name: &str| json::read(&history.resolve(name).unwrap()).unwrap().run.seed;
    assert_eq!([seed_of("last"), seed_of("last~0"), seed_of("last~1"), seed_of("last~2")], [2, 2, 1, 0]);
    for tag in ["before upgrade/1", "kernel=6.17", "6.17"] {
        assert_eq!(seed_of(tag), 1, "{tag}");
    }
    assert_eq!(seed_of(&saved[0].name), 0);
    assert_eq!(seed_of(saved[2].record.to_str().unwrap()), 2);
    for (name, says) in [
        ("last~3", "last~2 is the oldest"),
        ("last~x", "no such file"),
        ("nothing", "no such file"),
        ("2", "3 runs"),
    ] {
        let e = history.resolve(name).unwrap_err().to_string();
        assert!(e.contains(says) && e.lines().count() == 1, "{name}: {e}");
    }
}

#[test]
fn raw_samples_travel_with_the_record() {
    let dir = tempfile::tempdir().unwrap();
    let history = History::open(dir.path()).unwrap();
    let mut record = run(1);
    let saved = history.save(&mut record, &[table(7)]).unwrap();
    let read = json::read(&saved.record).unwrap();
    assert_eq!(read.raw.len(), 1);
    assert_eq!(raw_tables(&read, &saved.record).unwrap(), [table(7)]);
    fs::remove_file(&saved.raw[0]).unwrap();
    assert!(raw_tables(&read, &saved.record).unwrap_err().to_string().contains("no such file"));
}

#[test]
fn a_failed_save_leaves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let history = History::open(dir.path()).unwrap();
    let mut record = run(1);
    let mut twice = table(7);
    twice.columns.push(twice.columns[0].clone());
    assert!(history.save(&mut record, &[table(7), twice]).is_err());
    assert!(record.raw.is_empty());
    assert_eq!(fs::read_dir(dir.path().join("runs")).unwrap().count(), 0);
}

#[test]
fn a_place_that_cannot_be_written_gives_a_reason() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    assert_eq!(History::open(&file).unwrap_err().to_string().lines().count(), 1);
    // `/proc` refuses new folders to every user, root included.
    let e = History::open(Path::new("/proc/self/state")).unwrap_err().to_string();
    assert!(e.contains("cannot create"), "{e}");
}

#[test]
fn pruning_keeps_the_newest_and_their_samples() {
    let dir = tempfile::tempdir().unwrap();
    let history = History::open(dir.path()).unwrap();
    for seed in 0..5 {
        let mut record = run(seed);
        record.run.tags.insert(format!("t{seed}"), String::new());
        history.save(&mut record, &[table(3)]).unwrap();
    }
    assert_eq!(history.prune(2, u64::MAX).unwrap().len(), 3);
    assert_eq!(history.list().unwrap().len(), 2);
    assert_eq!(fs::read_dir(dir.path().join("runs")).unwrap().count(), 4);
    assert!(history.resolve("t1").is_err());
    assert!(history.resolve("t4").is_ok());
}

#[test]
fn savers_at_the_same_time_lose_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let history = History::open(dir.path()).unwrap();
    std::thread::scope(|s| {
        for _ in 0..4 {
            s.spawn(|| {
                for seed in 0..5 {
                    let mut record = run(seed);
                    record.id = date::new_run_id();
                    history.save(&mut record, &[table(2)]).unwrap();
                }
            });
        }
    });
    let names = history.list().unwrap();
    assert_eq!(names.len(), 20);
    for n in names {
        json::read(&history.resolve(&n).unwrap()).unwrap();
    }
}

/// Writes a file of a run with this stamp.
fn planted(history: &History, stamp: &str, ending: &str, bytes: usize) {
    fs::write(history.runs().join(format!("{stamp}-aaaaaaaa.{ending}")), vec![b' '; bytes]).unwrap();
}

#[test]
fn pruning_touches_nothing_that_is_no_run_and_keeps_within_its_bytes() {
    let dir = tempfile::tempdir().unwrap();
    let history = History::open(dir.path()).unwrap();
    let others = ["0.json", "package.json", "20200101T000000Z-000001.json", "notes.txt", "x.t.parquet"];
    for name in others {
        fs::write(history.runs().join(name), "{}").unwrap();
    }
    fs::create_dir(history.runs().join("19990101T000000Z-000000-aaaaaaaa.json")).unwrap();
    for second in 0..6 {
        planted(&history, &format!("20200101T00000{second}Z-000000"), "json", 10);
        planted(&history, &format!("20200101T00000{second}Z-000000"), "t.parquet", 90);
    }
    assert_eq!((history.prune(5, 1000).unwrap().len(), history.prune(5, 250).unwrap().len()), (1, 3));
    assert_eq!((history.prune(5, 1).unwrap().len(), history.list().unwrap().len()), (1, 1));
    let last = format!("{}.json", history.list().unwrap()[0]);
    assert_eq!(history.resolve("last").unwrap(), history.runs().join(last));
    assert!(others.iter().all(|name| history.runs().join(name).exists()));
    assert_eq!(fs::read_dir(history.runs()).unwrap().count(), others.len() + 3);
}

#[test]
fn after_a_clock_that_was_ahead_the_newest_run_is_last_and_kept() {
    let dir = tempfile::tempdir().unwrap();
    let history = History::open(dir.path()).unwrap();
    for day in 1..=3 {
        planted(&history, &format!("2999010{day}T000000Z-000000"), "json", 10);
    }
    for seed in 1..=3 {
        let saved = history.save(&mut run(seed), &[table(1)]).unwrap();
        history.prune(3, u64::MAX).unwrap();
        assert_eq!(history.resolve("last").unwrap(), saved.record);
    }
    assert!(history.list().unwrap().iter().all(|name| name.starts_with("29990103T000000Z-00000")));
}
