//! Tests of raw tables: round trips, size, and damaged files.

use std::fs;
use std::path::Path;

use machmeter_data::Unit;
use machmeter_stats::random::Random;
use proptest::prelude::*;

use super::*;

/// Windows of 100 us at 2.6 GHz like those of the noise loop. Starts are late by a few clock steps of 26 ticks, and counts are near 10,555. A timer tick
/// comes every 4 ms, long gaps are rare.
fn windows(rows: i64) -> (Vec<i64>, Vec<i32>) {
    let mut random = Random::new(7);
    let (mut starts, mut counts) = (Vec::new(), Vec::new());
    for i in 0..rows {
        starts.push(1_000_000_000 + i * 260_000 + 26 * random.below(4) as i64);
        let quiet = 10_555 - random.below(4) as i32;
        let disturbed = i % 40 == 0 || random.below(200) == 0;
        counts.push(if disturbed { quiet - random.below(4000) as i32 } else { quiet });
    }
    (starts, counts)
}

fn noise_table(rows: i64) -> Table {
    let (starts, counts) = windows(rows);
    let columns = vec![
        Column::new("cpu", Unit::Count, vec![1; starts.len()]),
        Column::new("start_ticks", Unit::Ticks, starts),
        Column::new("count", Unit::Count, counts),
    ];
    let mut t = Table::new("noise_windows", columns).unwrap();
    t.notes = vec![("tick_hz".to_owned(), "2600000000".to_owned()), ("t0_ticks".to_owned(), "1".to_owned())];
    t
}

#[test]
fn a_million_samples_take_at_most_three_bytes_each_and_come_back_unchanged() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("run.noise_windows.parquet");
    let table = noise_table(1_200_000);
    let raw = write_table(&table, &path).unwrap();
    let bytes = fs::metadata(&path).unwrap().len();
    let each = bytes as f64 / table.rows() as f64;
    println!("{bytes} bytes, {each:.3} per row");
    assert!(each <= 3.0, "{each} bytes per row");
    assert_eq!((raw.file.as_str(), raw.rows), ("run.noise_windows.parquet", 1_200_000));
    assert_eq!(read_verified(&raw, &dir.path().join("run.json")).unwrap(), table);
}

#[test]
fn all_kinds_of_columns_with_notes_and_units_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.parquet");
    let columns = vec![
        Column::new("a", Unit::Ticks, vec![i64::MIN, 0, i64::MAX]),
        Column::new("b", Unit::Count, vec![i32::MAX, i32::MIN, -1]),
        Column::new("c", Unit::Nanoseconds, vec![0.1, -0.0, 1e300]),
        Column::new("d", Unit::One, ["kworker/1:0", "", "µs"].map(str::to_owned).to_vec()),
    ];
    let mut t = Table::new("mixed", columns).unwrap();
    t.notes = vec![("tick_hz".to_owned(), "unknown".to_owned()), ("empty".to_owned(), String::new())];
    write_table(&t, &path).unwrap();
    assert_eq!(read_table(&path).unwrap(), t);

    let empty = Table::new("none", vec![Column::new("a", Unit::Ticks, Vec::<i64>::new())]).unwrap();
    write_table(&empty, &path).unwrap();
    assert_eq!(read_table(&path).unwrap(), empty);
}

#[test]
fn wrong_tables_and_files_get_one_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("t.parquet");
    let twice = [0_i64; 2].map(|value| Column::new("a", Unit::Ticks, vec![value]));
    let e = write_table(&Table::new("t", twice.into()).unwrap(), &path).unwrap_err().to_string();
    assert!(e.contains("two columns are called a"), "{e}");
    assert!(!path.exists());

    fs::write(&path, "not parquet at all, but long enough").unwrap();
    let e = read_table(&path).unwrap_err().to_string();
    assert!(e.contains("not a readable Parquet table") && e.lines().count() == 1, "{e}");
    assert!(read_table(&dir.path().join("none")).unwrap_err().to_string().ends_with("no such file"));
}

#[test]
fn claims_of_a_file_are_not_believed() {
    for name in ["page-of-a-gigabyte", "list-of-billions"] {
        let path = format!("{}/../../fuzz/corpus/parquet/{name}.parquet", env!("CARGO_MANIFEST_DIR"));
        let e = read_table(Path::new(&path)).unwrap_err().to_string();
        assert!(e.ends_with("its sizes exceed the file"), "{name}: {e}");
    }
}

#[test]
fn a_changed_file_is_noticed() {
    let dir = tempfile::tempdir().unwrap();
    let raw = write_table(&noise_table(10), &dir.path().join("a.parquet")).unwrap();
    write_table(&noise_table(11), &dir.path().join("a.parquet")).unwrap();
    let e = read_verified(&raw, &dir.path().join("r.json")).unwrap_err().to_string();
    assert!(e.contains("SHA-256 differs"), "{e}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn any_integers_come_back(v in proptest::collection::vec(any::<i64>(), 0..300), w in any::<i32>()) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("p.parquet");
        let n = v.len();
        let t = Table::new("p", vec![
            Column::new("v", Unit::Ticks, v),
            Column::new("w", Unit::Count, vec![w; n]),
        ]).unwrap();
        write_table(&t, &path).unwrap();
        prop_assert_eq!(read_table(&path).unwrap(), t);
    }

    #[test]
    fn damaged_files_never_end_the_program(at in any::<usize>(), byte in any::<u8>(), cut in any::<usize>()) {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("p.parquet");
        write_table(&noise_table(50), &path).unwrap();
        let mut bytes = fs::read(&path).unwrap();
        let n = bytes.len();
        bytes[at % n] = byte;
        bytes.truncate(n - (cut % (2 * n)).saturating_sub(n));
        fs::write(&path, &bytes).unwrap();
        if let Err(e) = read_table(&path) {
            prop_assert_eq!(e.to_string().lines().count(), 1);
        }
    }
}
