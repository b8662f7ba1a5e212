//! What a rank does: every function of the binding, with what it must give.

use std::path::PathBuf;

use machmeter_sys::clock::{OrderedCounter, TickSource};
use machmeter_sys::mpi::shmem::Shmem;
use machmeter_sys::mpi::{Comm, Error, Operation, Request, Session, clock, launched, launcher};

/// Variables of what a rank does, and of the library it takes.
pub(super) const MODE: &str = "MACHMETER_TEST_RANK";
pub(super) const LIBRARY: &str = "MACHMETER_TEST_LIBRARY";

/// Waits until `done`, calling it again and again; the test that started this has the time limit.
fn until(mut done: impl FnMut() -> bool) {
    while !done() {
        std::hint::spin_loop();
    }
}

/// Does nothing unless a test started it as a rank ([`MODE`]): `calls`, `shmem`, or a way to end badly: `error`, `killed`.
#[test]
fn rank() {
    let Some(mode) = std::env::var_os(MODE).and_then(|m| m.into_string().ok()) else { return };
    if let Some(place) = launched() {
        launcher::bind(&place).unwrap();
    }
    let library = std::env::var_os(LIBRARY).map(PathBuf::from);
    let session = Session::start(library.as_deref(), false).unwrap_or_else(|e| panic!("{e}"));
    let world = session.world().clone();
    match mode.as_str() {
        "calls" => {
            assert_eq!(launched().map(|l| (l.rank, l.size)), Some((world.rank(), world.size())));
            assert!(!session.version().is_empty() && session.processor_name().is_some());
            messages(&world);
            collectives(&world);
            requests(&world);
            split(&world);
            window(&world);
            clocks(&world);
            wrong(&world);
        }
        "shmem" => shmem(&session),
        // The session is dropped by this rank's error while the others wait.
        "error" if world.rank() == 0 => return,
        "killed" if world.rank() == 0 => {
            machmeter_sys::process::kill_process(std::process::id() as i32).unwrap();
        }
        _ => world.recv(&mut [0_u8], 0, 1).unwrap(),
    }
    if world.rank() == 0 {
        println!("done: {} ranks of {}", world.size(), session.version());
    }
    drop(world);
    session.finish();
}

fn messages(world: &Comm) {
    let (me, other) = (world.rank(), 1 - world.rank().min(1));
    let mut into = [0.0_f64; 3];
    if me == 0 {
        until(|| world.iprobe(1, 3).unwrap());
        world.recv(&mut into, 1, 3).unwrap();
        assert_eq!(into, [1.5, -2.0, 1e300]);
        world.recv(&mut into, 1, 7).unwrap();
        assert_eq!(into, [4.0, 5.0, 1e300]);
        world.send(&[1_u8], 1, 8).unwrap();
    } else if me == 1 {
        assert!(!world.iprobe(0, 9).unwrap());
        world.send(&[1.5, -2.0, 1e300], 0, 3).unwrap();
        world.ssend(&[4.0, 5.0], 0, 7).unwrap();
        world.recv(&mut [0_u8], 0, 8).unwrap();
    }
    if me < 2 {
        let mut into = [0_i64; 2];
        world.sendrecv(&[me as i64, i64::MIN], other, &mut into, other, 0).unwrap();
        assert_eq!(into, [other as i64, i64::MIN]);
    }
    world.barrier().unwrap();
}

fn collectives(world: &Comm) {
    let (me, p) = (world.rank() as i64, world.size() as i64);
    let n = world.size();
    let root = n - 1;
    let at_root = |len| if world.rank() == root { vec![0_i64; len] } else { Vec::new() };
    let mut data = if world.rank() == root { [3.25, 7.5] } else { [0.0; 2] };
    world.bcast(&mut data, root).unwrap();
    assert_eq!(data, [3.25, 7.5]);

    let mut into = at_root(2 * n);
    world.gather(&[me, -me], &mut into, root).unwrap();
    let all: Vec<i64> = (0..p).flat_map(|r| [r, -r]).collect();
    assert!(world.rank() != root || into == all);
    let mut into = vec![0; 2 * n];
    world.allgather(&[me, -me], &mut into).unwrap();
    assert_eq!(into, all);

    let parts: Vec<i64> = if world.rank() == root { all.clone() } else { Vec::new() };
    let mut part = [0; 2];
    world.scatter(&parts, &mut part, root).unwrap();
    assert_eq!(part, [me, -me]);
    let mut into = vec![0_u8; n];
    world.alltoall(&vec![me as u8; n], &mut into).unwrap();
    assert_eq!(into, (0..n as u8).collect::<Vec<_>>());

    let sum: i64 = (0..p).sum();
    let mut into = at_root(2);
    world.reduce(&[me, 1], &mut into, Operation::Sum, root).unwrap();
    assert!(world.rank() != root || into == [sum, p]);
    let mut into = [0.0; 2];
    world.allreduce(&[me as f64, -(me as f64)], &mut into, Operation::Max).unwrap();
    assert_eq!(into, [(p - 1) as f64, 0.0]);
    let mut data = [me - 5];
    world.allreduce_in_place(&mut data, Operation::Min).unwrap();
    assert_eq!(data, [-5]);
    let mut into = [0];
    world.reduce_scatter_block(&vec![me + 1; n], &mut into, Operation::Sum).unwrap();
    assert_eq!(into, [sum + p]);
    world.scan(&[me + 1], &mut into, Operation::Sum).unwrap();
    assert_eq!(into, [(1..=me + 1).sum::<i64>()]);
}

fn requests(world: &Comm) {
    const BYTES: usize = 100_000;
    let (me, n) = (world.rank(), world.size());
    let (next, before) = ((me + 1) % n, (me + n - 1) % n);
    let mut request = Request::new(world, BYTES, BYTES).unwrap();
    let mut back = Request::new(world, BYTES, BYTES).unwrap();
    request.outgoing().unwrap().fill(me as u8);
    back.irecv(BYTES, before, 4).unwrap();
    assert!(back.incoming().is_err() && back.irecv(1, before, 4).is_err());
    request.isend(BYTES, next, 4).unwrap();
    back.wait().unwrap();
    request.wait().unwrap();
    assert!(back.incoming().unwrap()[..BYTES].iter().all(|b| *b == before as u8));
    // Posted before the ready send, as the barrier between makes sure.
    back.irecv(8, before, 5).unwrap();
    world.barrier().unwrap();
    world.rsend(&[9_i64], next, 5).unwrap();
    back.wait().unwrap();
    assert_eq!(back.incoming().unwrap()[..8], 9_i64.to_ne_bytes());

    request.incoming().unwrap()[..4].fill(if me == 0 { 77 } else { 0 });
    request.ibcast(4, 0).unwrap();
    request.wait().unwrap();
    assert_eq!(request.incoming().unwrap()[..4], [77; 4]);
    request.outgoing().unwrap()[..8].copy_from_slice(&2.5_f64.to_ne_bytes());
    request.iallreduce(1, Operation::Sum).unwrap();
    request.wait().unwrap();
    assert_eq!(request.incoming().unwrap()[..8], (2.5 * n as f64).to_ne_bytes());
    request.outgoing().unwrap()[..n].fill(me as u8);
    request.ialltoall(1).unwrap();
    request.wait().unwrap();
    assert_eq!(request.incoming().unwrap()[..n], (0..n as u8).collect::<Vec<_>>());
}

fn split(world: &Comm) {
    let all = world.split(true).unwrap().unwrap();
    assert_eq!((all.rank(), all.size()), (world.rank(), world.size()));
    let mut most = [world.rank() as i64];
    all.allreduce_in_place(&mut most, Operation::Max).unwrap();
    assert_eq!(most[0] as usize, world.size() - 1);
    let first = world.split(world.rank() == 0).unwrap();
    assert_eq!(first.map(|f| f.size()), (world.rank() == 0).then_some(1));
}

fn window(world: &Comm) {
    let (me, n) = (world.rank(), world.size());
    let next = (me + 1) % n;
    let mut window = world.window(64).unwrap();
    assert_eq!(window.local_word(56).unwrap(), 0);
    window.origin().unwrap()[..8].copy_from_slice(&(me as i64 + 1).to_ne_bytes());
    window.put(8, next, 16).unwrap();
    assert!(window.origin().is_err() && window.fetched().is_err());
    window.flush().unwrap();
    world.barrier().unwrap();
    assert_eq!(window.local_word(16).unwrap(), ((me + n - 1) % n) as i64 + 1);
    window.get(8, next, 16).unwrap();
    window.flush().unwrap();
    assert_eq!(window.origin().unwrap()[..8], (me as i64 + 1).to_ne_bytes());
    for _ in 0..10 {
        window.fetch_and_op(2, 0, 0).unwrap();
        window.flush().unwrap();
        assert_eq!(window.fetched().unwrap() % 2, 0);
    }
    world.barrier().unwrap();
    window.fetch_and_op(5, next, 8).unwrap();
    window.flush().unwrap();
    assert_eq!(window.fetched().unwrap(), 0);
    world.barrier().unwrap();
    let expected = if me == 0 { 20 * n as i64 } else { 0 };
    assert_eq!((window.local_word(0).unwrap(), window.local_word(8).unwrap()), (expected, 5));
    for refused in
        [window.put(65, 0, 0), window.put(1, n, 0), window.get(8, 0, 57), window.fetch_and_op(1, 0, 4)]
    {
        assert!(matches!(refused, Err(Error::Argument(_))));
    }
    window.free().unwrap();
    let uneven = world.window(64 + me).unwrap_err().to_string();
    assert!(uneven.contains("64 to"), "{uneven}");
}

/// Ranks of one machine: the clock is one, and looks at it are narrow.
fn clocks(world: &Comm) {
    let clocks = clock::align::<OrderedCounter>(world, clock::APART_NS).unwrap();
    assert_eq!(clocks.len(), world.size());
    assert!(clocks.iter().all(|c| c.is_shared() && c.is_consistent()), "{clocks:?}");
    let now = OrderedCounter::now();
    assert_eq!(clocks[world.rank()].here(now).0, now);
    if world.rank() == 0 {
        let within: Vec<f64> = clocks.iter().map(clock::RankClock::within_ticks).collect();
        println!("looks within {within:?} ticks");
    }
}

/// What is refused before MPI sees it, and what MPI refuses: one line each, and the ranks go on.
fn wrong(world: &Comm) {
    let n = world.size();
    let mut three = [0_u8; 3];
    for refused in [
        world.send(&[1_u8], n, 0),
        world.send(&[1_u8], 0, -1),
        world.recv(&mut three, 0, 32_768),
        world.allgather(&[1_u8; 3], &mut three),
        world.alltoall(&three.clone(), &mut [0_u8; 4]),
        world.bcast(&mut three, n),
    ] {
        let said = refused.unwrap_err().to_string();
        assert!(said.starts_with("MPI call: ") && !said.contains('\n'), "{said}");
    }
    if world.rank() == 1 {
        world.send(&[1_u8; 5], 0, 6).unwrap();
    } else if world.rank() == 0 {
        let said = world.recv(&mut three, 1, 6).unwrap_err().to_string();
        assert!(
            said.starts_with("MPI_Recv: ") && !said.contains('\n') && said.to_lowercase().contains("trunc"),
            "{said}"
        );
    }
    world.barrier().unwrap();
}

fn shmem(session: &Session) {
    let shmem = Shmem::start(session, 4_096).unwrap();
    let (me, n) = (session.world().rank(), session.world().size());
    let next = (me + 1) % n;
    shmem.put(64, &[me as u8 + 1; 100], next).unwrap();
    shmem.quiet();
    shmem.barrier_all();
    let mut into = [0_u8; 100];
    shmem.get(&mut into, 64, me).unwrap();
    assert_eq!(into, [((me + n - 1) % n) as u8 + 1; 100]);
    for _ in 0..50 {
        shmem.set_lock(0).unwrap();
        let mut word = [0; 8];
        shmem.get(&mut word, 8, 0).unwrap();
        shmem.put(8, &(i64::from_ne_bytes(word) + 1).to_ne_bytes(), 0).unwrap();
        shmem.quiet();
        shmem.clear_lock(0).unwrap();
        shmem.fetch_add(16, 2, 0).unwrap();
    }
    shmem.barrier_all();
    if me == 0 {
        assert_eq!(
            (shmem.local_word(8).unwrap(), shmem.local_word(16).unwrap()),
            (50 * n as i64, 100 * n as i64)
        );
        assert!(shmem.test_lock(0).unwrap());
        shmem.clear_lock(0).unwrap();
        shmem.put(24, &7_i64.to_ne_bytes(), next).unwrap();
    } else if me == 1 {
        shmem.wait_until(24, 7).unwrap();
    }
    assert!(
        shmem.put(4_090, &[0; 8], 0).is_err()
            && shmem.fetch_add(4, 1, 0).is_err()
            && shmem.put(0, &[0], n).is_err()
    );
    shmem.barrier_all();
}
