//! Tests of the trace reader on a file made by hand, and on damaged variants of it.

use super::*;

/// A file of rank 1 of 3 with ticks of 0.5 ns; slots are appended in order.
struct File(Vec<u8>);

impl File {
    fn new(slots: &[[u64; 4]]) -> Self {
        let mut file = Self(vec![0; 2 * BLOCK_BYTES]);
        let boot = u64::from_le_bytes(*b"b00t\0\0\0\0");
        for (at, value) in [
            (header::MAGIC, MAGIC),
            (header::VERSION, u64::from(VERSION) | 1 << 32),
            (header::RANK, 1 | 3 << 32),
            (header::BLOCKS, 1),
            (header::SPECIAL, peer_word(-2, -1)),
            (header::INIT_TICKS, 1000),
            (header::INIT_NS, 50_000),
            (header::START_TICKS, 2000),
            (header::START_REAL_NS, 7),
            (header::BOOT, boot),
            (header::HOST, u64::from_le_bytes(*b"node\x1b[2J")),
            (header::PROGRAM, u64::from_le_bytes(*b"./a\0-x\0\0")),
        ] {
            file.put(at, value);
        }
        for (i, slot) in slots.iter().enumerate() {
            file.slot(i, *slot);
        }
        file
    }

    fn put(&mut self, word: usize, value: u64) {
        self.0[word * 8..word * 8 + 8].copy_from_slice(&value.to_le_bytes());
    }

    fn slot(&mut self, index: usize, slot: [u64; 4]) {
        slot.iter().enumerate().for_each(|(i, w)| self.put(BLOCK_BYTES / 8 + index * 4 + i, *w));
    }
}

fn number(name: Number) -> u16 {
    name as u16 + 1
}

fn usual() -> Vec<[u64; 4]> {
    vec![
        [3000, kind_word(MARK, 0), 51_000, 400],
        [ALL_RANKS, kind_word(COMMUNICATOR, 0), 3, 0],
        [0, kind_word(COMMUNICATOR, 0), 2, 1 << 48],
        [2 | 1 << 32, kind_word(MEMBERS, 0), 0, 0],
        [4000, kind_word(number(Number::Send), 600), peer_word(2, 9), size_word(64, 1)],
        [5000, kind_word(number(Number::Recv), 100), peer_word(-2, -1), size_word(8, 0)],
        [
            6000,
            kind_word(number(Number::Waitall), OPEN),
            peer_word(NO_NUMBER, NO_NUMBER),
            size_word(0, NO_COMMUNICATOR),
        ],
        [9000, kind_word(MARK, 0), 54_000, 1400],
    ]
}

#[test]
fn a_trace_is_read_as_it_was_written() {
    let file = File::new(&usual());
    let t = Trace::read(&file.0).unwrap();
    let head = (t.rank, t.size, t.end, t.boot.as_str(), t.program.as_str());
    assert_eq!(head, (1, 3, End::Unfinished, "b00t", "./a -x"));
    assert!(!t.host.contains('\x1b'), "{:?}", t.host);
    assert_eq!((t.start_ns, t.end_ns), (50_500, 54_000));
    assert_eq!(t.threads, [Thread { cpu_ns: 1000, wall_ns: 3000, calls: 3 }]);
    let pair = Communicator { members: Some(vec![2, 1]), is_inter: false };
    assert_eq!(t.communicators, [Communicator { members: None, is_inter: false }, pair]);
    let calls: Vec<Call> = t.calls().collect();
    let send = Call {
        thread: 0,
        operation: Number::Send as usize,
        start_ns: 51_500,
        duration_ns: Some(300),
        bytes: 64,
        peer: 2,
        tag: 9,
        communicator: Some(1),
    };
    assert_eq!(calls[0], send);
    assert_eq!((calls[1].peer, calls[1].tag, calls[1].communicator), (ANY, -1, Some(0)));
    let wait = calls[2];
    assert_eq!((wait.peer, wait.tag, wait.duration_ns, wait.communicator), (NONE, NONE, None, None));
}

#[test]
fn durations_of_hours_and_bytes_beyond_the_field_keep_their_neighbors() {
    let mut slots = usual();
    let day_ticks = 86_400_000_000_000_u64 * 2;
    slots[4][1] = kind_word(number(Number::Send), day_ticks);
    slots[4][3] = size_word(u64::MAX, 1);
    let file = File::new(&slots);
    let send = Trace::read(&file.0).unwrap().calls().next().unwrap();
    let expected = (Some(86_400_000_000_000), MOST_BYTES, Some(1));
    assert_eq!((send.duration_ns, send.bytes, send.communicator), expected);
}

#[test]
fn a_file_that_contradicts_itself_is_refused_in_one_line() {
    let check = |file: &File, what: &str| {
        let e = Trace::read(&file.0).expect_err("it is believed").to_string();
        assert!(e.contains(what) && !e.contains('\n'), "{e}");
    };
    for (word, value, what) in [
        (header::MAGIC, 7, "not a trace"),
        (header::VERSION, 2, "format 2"),
        (header::BLOCKS, 2, "truncated"),
        (header::BLOCKS, u64::MAX, "truncated"),
        (header::RANK, 3 | 3 << 32, "rank 3 of 3"),
        (header::END, 9, "end 9"),
        (header::START_TICKS, 500, "before it was called"),
        (header::START_TICKS, 4500, "before MPI_Init returned"),
        (header::INIT_NS, 54_000, "impossible rate"),
        (header::INIT_TICKS, u64::MAX, "impossible rate"),
    ] {
        let mut file = File::new(&usual());
        file.put(word, value);
        check(&file, what);
    }
    let send = kind_word(number(Number::Send), 1);
    for (index, words, what) in [
        (0, [4000, send, 0, 0], "does not start with a mark"),
        (7, [9000, kind_word(MARK, 5), 54_000, 1400], "thread 5"),
        (2, [0, kind_word(COMMUNICATOR, 0), 1 << 40, 1 << 48], "of 1099511627776 ranks"),
        (3, [7, kind_word(MEMBERS, 0), 0, 0], "a member outside"),
        (4, [7, kind_word(MEMBERS, 0), 0, 0], "more members"),
        (1, [7, kind_word(MEMBERS, 0), 0, 0], "without a communicator"),
        (4, [4000, send, peer_word(3, 0), 0], "rank 3 of 3"),
        (4, [4000, send, 0, size_word(0, 2)], "never created"),
        (4, [4000, kind_word(OPERATIONS.len() as u16 + 1, 0), 0, 0], "unknown operation"),
        (4, [u64::MAX, send, 0, 0], "a year after"),
    ] {
        let mut file = File::new(&usual());
        file.slot(index, words);
        check(&file, what);
    }
    let file = File::new(&usual());
    for length in (0..file.0.len()).step_by(37) {
        assert!(Trace::read(&file.0[..length]).is_err(), "{length} bytes are believed");
    }
}

#[test]
fn a_rank_that_found_no_space_at_all_has_an_empty_trace() {
    let mut file = File::new(&usual());
    file.put(header::BLOCKS, 0);
    file.put(header::END, 2);
    let t = Trace::read(&file.0).unwrap();
    assert_eq!((t.end, t.start_ns, t.end_ns, t.threads.len()), (End::NoSpace, 50_000, 50_000, 0));
    assert_eq!((t.calls().count(), t.communicators.len()), (0, 0));
}

#[test]
fn no_bytes_make_the_reader_panic() {
    let file = File::new(&usual());
    let mut state = 1_u64;
    for _ in 0..20_000 {
        let mut bytes = file.0.clone();
        for _ in 0..4 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let at = (state >> 33) as usize % (BLOCK_BYTES + 8 * 32);
            bytes[at] = (state >> 20) as u8;
        }
        if let Ok(t) = Trace::read(&bytes) {
            assert!(t.calls().all(|c| c.start_ns >= t.start_ns
                && c.operation < OPERATIONS.len()
                && c.thread < t.threads.len()));
        }
    }
}

#[test]
fn operations_are_unique_and_their_arguments_exist() {
    let mut names: Vec<&str> = OPERATIONS.iter().map(|o| o.name).collect();
    names.sort_unstable();
    assert!(names.windows(2).all(|w| w[0] != w[1]) && names.len() < usize::from(MEMBERS) - 1);
    assert_eq!(OPERATIONS[Number::Win_sync as usize].name, "Win_sync");
    macro_rules! arities {
        (counted { $($c:ident $f:ident $n:literal $k:ident $a:expr;)* } plain { $($pc:ident $pf:ident $pn:literal $pk:ident $pa:expr;)* }) => {
            [$((stringify!($c), stringify!($f), $n),)* $((stringify!($pc), stringify!($pf), $pn),)*]
        };
    }
    for (operation, (name, fortran, arity)) in OPERATIONS.iter().zip(mpi_operations!(arities)) {
        assert_eq!((operation.name, name.to_lowercase().as_str()), (name, fortran));
        let a = operation.arguments;
        let of = |bytes: Bytes| match bytes {
            Bytes::None => vec![],
            Bytes::One(t) => vec![t],
            Bytes::Count(c, t)
            | Bytes::PerRank(c, t)
            | Bytes::Counts(c, t)
            | Bytes::Own(c, t)
            | Bytes::Types(c, t) => vec![c, t],
        };
        let handle = match a.handle {
            Handle::None => ABSENT,
            Handle::NewCommunicator(p)
            | Handle::NewWindow(p)
            | Handle::FreesCommunicator(p)
            | Handle::FreesWindow(p) => p,
        };
        let places = [a.in_place.0, a.peer, a.tag, a.communicator, a.window, handle];
        let places = places.into_iter().chain(of(a.bytes)).chain(of(a.in_place.1)).filter(|p| *p != ABSENT);
        assert!(places.clone().all(|p| p < arity), "{name}: {:?}", places.collect::<Vec<_>>());
    }
}
