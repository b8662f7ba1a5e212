//! Tests on handmade traces with a known truth.

use std::fs;

use machmeter_data::trace::{
    ALL_RANKS, BLOCK_BYTES, COMMUNICATOR, MAGIC, MARK, MEMBERS, Number, OPEN, SLOTS, VERSION, header,
    kind_word, peer_word, size_word,
};
use machmeter_data::{Record, Shape};

use super::*;

/// A trace with ticks of 1 ns.
struct Writer {
    rank: u64,
    slots: Vec<[u64; 4]>,
    boot: [u8; 8],
    end: u64,
}

impl Writer {
    fn new(rank: u64) -> Self {
        Self { rank, slots: vec![[ALL_RANKS, kind_word(COMMUNICATOR, 0), 2, 0]], boot: *b"one boot", end: 1 }
    }

    fn call(&mut self, number: Number, at_ns: u64, took_ns: u64, peer: i32, bytes: u64) {
        let kind = kind_word(number as u16 + 1, took_ns);
        self.slots.push([1_000_000 + at_ns, kind, peer_word(peer, 5), size_word(bytes, 0)]);
    }

    fn save(&self, dir: &Path, size: u64) {
        let mark = |at_ns: u64| [1_000_000 + at_ns, kind_word(MARK, 0), 1_000_000 + at_ns, at_ns / 2];
        let blocks: Vec<&[[u64; 4]]> = self.slots.chunks(SLOTS - 2).collect();
        let mut words = vec![0_u64; BLOCK_BYTES / 8];
        let boot = u64::from_le_bytes(self.boot);
        for (at, value) in [
            (header::MAGIC, MAGIC),
            (header::VERSION, u64::from(VERSION)),
            (header::RANK, self.rank | size << 32),
            (header::END, self.end),
            (header::BLOCKS, blocks.len() as u64),
            (header::SPECIAL, peer_word(-1, -2)),
            (header::INIT_TICKS, 500_000),
            (header::INIT_NS, 500_000),
            (header::START_TICKS, 1_000_000),
            (header::START_REAL_NS, 1_700_000_000_000_000_000),
            (header::BOOT, boot),
        ] {
            words[at] = value;
        }
        for (i, block) in blocks.iter().enumerate() {
            let mut all = vec![mark(if i == 0 { 0 } else { block[0][0] - 1_000_000 })];
            all.extend_from_slice(block);
            if i + 1 == blocks.len() {
                all.push(mark(10_000_000));
            }
            all.resize(SLOTS, [0; 4]);
            words.extend(all.as_flattened());
        }
        let bytes: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
        fs::write(dir.join(format!("rank-{}.{EXTENSION}", self.rank)), bytes).unwrap();
    }
}

fn value(found: &Collected, id: &str, wanted: &[(&str, &str)]) -> Option<f64> {
    let record = Record { metrics: found.metrics.clone(), ..Record::default() };
    record.metric(id, wanted)?.value
}

/// 100 barriers. Rank 1 enters every tenth one 20 us late; rank 0 enters the rest 0.1 us late.
fn late() -> [Writer; 2] {
    let mut ranks = [Writer::new(0), Writer::new(1)];
    let mut at_ns = 0;
    for n in 0..100 {
        let late_ns = if n % 10 == 0 { 20_000 } else { 0 };
        ranks[0].call(Number::Barrier, at_ns, late_ns + 1_000, i32::MIN, 0);
        let early_ns = if late_ns == 0 && n > 0 { 100 } else { 0 };
        ranks[1].call(Number::Barrier, at_ns + late_ns - early_ns, 1_000, i32::MIN, 0);
        at_ns += late_ns + 10_000;
    }
    ranks
}

#[test]
fn a_late_rank_is_named_with_its_share() {
    let dir = tempfile::tempdir().unwrap();
    let mut ranks = late();
    ranks[0].call(Number::Send, 5_000_000, 2_000_000, 1, 64);
    for r in &ranks {
        r.save(dir.path(), 2);
    }
    let found = collect(dir.path(), 1000).unwrap().unwrap();
    let of = |id: &str| value(&found, id, &[("operation", "barrier")]).unwrap();
    // Ten times 20 us of rank 0 and 90 times 0.1 us of rank 1, in 400 us.
    assert!((of("mpi.waiting") - (200_000.0 + 9_000.0) / 400_000.0).abs() < 1e-9, "{}", of("mpi.waiting"));
    assert_eq!(of("mpi.calls"), 200.0);
    assert_eq!(value(&found, "mpi.last", &[("operation", "barrier"), ("rank", "0")]), Some(0.9));
    let share = value(&found, "mpi.share", &[("operation", "all")]).unwrap();
    assert!((share - 2_400_000.0 / 20_000_000.0).abs() < 1e-9, "{share}");
    let blocks = &found.metrics.iter().find(|m| m.id == "mpi.share").unwrap().blocks;
    // The send covers spans 10 to 13 of 20, half of the two threads' time.
    assert!(blocks.len() == 20 && (blocks[11] - 0.5).abs() < 1e-6 && blocks[15] == 0.0, "{blocks:?}");
    assert_eq!(value(&found, "mpi.on_cpu", &[]), Some(0.5));
    assert!(found.complete && found.warnings.is_empty(), "{:?}", found.warnings);
    let sent = found.datasets.iter().find(|d| d.id == "mpi.sent").unwrap();
    let Shape::Matrix(sent) = &sent.shape else { panic!("{sent:?}") };
    assert_eq!(sent.values, [[None, Some(64.0)], [None, None]]);
    let events = &found.tables[0];
    assert_eq!((events.name.as_str(), events.rows()), (EVENTS, 201));
    assert_eq!(events.i64s("start_ns").unwrap()[1], 30_000);
    assert_eq!(collect(dir.path(), 200).unwrap().unwrap().tables.len(), 2, "more calls than were asked for");
}

#[test]
fn what_is_missing_is_said() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(collect(dir.path(), 1).unwrap(), None);
    let mut one = Writer::new(1);
    one.end = 0;
    one.call(Number::Recv, 2_000, OPEN, -1, 8);
    one.save(dir.path(), 3);
    let found = collect(dir.path(), 10).unwrap().unwrap();
    let codes: Vec<&str> = found.warnings.iter().map(|w| w.code.as_str()).collect();
    assert_eq!(codes, ["W720", "W722", "W723"]);
    let open = "rank 1 did not return from MPI_Recv, entered at 2.00 us, any rank, tag 5";
    assert!(found.warnings[2].text.contains(open), "{:?}", found.warnings[2]);
    assert!(!found.complete);
    let mut zero = Writer::new(0);
    zero.end = 2;
    zero.boot = *b"another ";
    zero.save(dir.path(), 3);
    let found = collect(dir.path(), 10).unwrap().unwrap();
    let codes: Vec<&str> = found.warnings.iter().map(|w| w.code.as_str()).collect();
    assert_eq!(codes, ["W720", "W721", "W722", "W723", "W724"]);
    assert!(found.warnings.iter().all(|w| CODES.iter().any(|c| c.id == w.code)));
    zero.save(dir.path(), 4);
    let e = collect(dir.path(), 10).unwrap_err().to_string();
    assert!(e.contains("of 4 and 3 ranks"), "{e}");
    fs::rename(dir.path().join("rank-0.mpitrace"), dir.path().join("again.mpitrace")).unwrap();
    zero.save(dir.path(), 4);
    let e = collect(dir.path(), 10).unwrap_err().to_string();
    assert!(e.contains("two traces of rank 0"), "{e}");
}

#[test]
fn communicators_are_told_apart_by_their_members_and_their_order() {
    let dir = tempfile::tempdir().unwrap();
    for rank in 0..2 {
        let mut r = Writer::new(rank);
        // Rank 0 has a communicator of its own between two common ones, and numbers differ between ranks.
        let pair =
            |index: u64| [[0, kind_word(COMMUNICATOR, 0), 2, index << 48], [1, kind_word(MEMBERS, 0), 0, 0]];
        r.slots.extend(pair(1));
        let second = if rank == 0 {
            r.slots.extend([[0, kind_word(COMMUNICATOR, 0), 1, 2 << 48], [0, kind_word(MEMBERS, 0), 0, 0]]);
            3
        } else {
            2
        };
        r.slots.extend(pair(second));
        for index in [1, second] {
            let slot = [
                1_002_000 + rank,
                kind_word(Number::Allreduce as u16 + 1, 500),
                peer_word(-9, -9),
                size_word(8, index as u16),
            ];
            r.slots.push(slot);
        }
        let wrong = if rank == 0 { Number::Bcast } else { Number::Reduce };
        r.call(wrong, 4_000, 10, 0, 1);
        r.save(dir.path(), 2);
    }
    let found = collect(dir.path(), 100).unwrap().unwrap();
    let matched = found.metrics.iter().find(|m| m.id == "mpi.waiting").unwrap();
    assert_eq!(matched.n, 2, "each on its own communicator");
    assert_eq!(found.warnings[0].code, "W725");
    let communicators = found.tables[0].i32s("communicator").unwrap();
    assert_eq!(&communicators[..3], [1, 3, 0], "{communicators:?}");
    assert_eq!(found.tables[1].i32s("rank").unwrap(), [1, 0, 0, 1, 0]);
}
