//! Every transport carries what it should, ends its waits, and believes nothing.

use std::os::fd::AsRawFd;

use super::*;

fn opened(t: &Transport, wait: Wait) -> [Box<dyn Link + Send>; 2] {
    t.pair().unwrap().map(|end| end.open(wait).unwrap())
}

fn message(bytes: usize, turn: usize) -> Vec<u8> {
    (0..bytes).map(|i| (i * 7 + turn) as u8).collect()
}

#[test]
fn messages_arrive_whole_and_in_order() {
    for t in TRANSPORTS {
        for wait in [Wait::Polling, Wait::Sleeping] {
            if wait == Wait::Sleeping && !t.sleeps {
                let refused = t.pair().unwrap().map(|end| end.open(wait).err());
                assert!(refused.iter().flatten().all(|e| e.kind() == io::ErrorKind::Unsupported));
                continue;
            }
            let [mut near, mut far] = opened(t, wait);
            let sizes: &[usize] = match t.name {
                "udp" | "seqpacket" => &[1, 7, 1_000, 40_000],
                _ => &[1, 7, 1_000, 65_537, 3_000_000],
            };
            std::thread::scope(|s| {
                s.spawn(move || {
                    for (turn, bytes) in sizes.iter().enumerate() {
                        let mut buffer = vec![0; *bytes];
                        far.receive(&mut buffer).unwrap();
                        assert_eq!(buffer, message(*bytes, turn), "{} {bytes}", t.name);
                        far.send(&buffer).unwrap();
                    }
                });
                for (turn, bytes) in sizes.iter().enumerate() {
                    let mut buffer = message(*bytes, turn);
                    near.send(&buffer).unwrap();
                    buffer.fill(0);
                    near.receive(&mut buffer).unwrap();
                    assert_eq!(buffer, message(*bytes, turn), "{} {bytes}", t.name);
                }
            });
        }
    }
}

#[test]
fn a_wait_ends_at_its_limit_and_when_the_other_end_is_gone() {
    for t in TRANSPORTS {
        for wait in [Wait::Polling, Wait::Sleeping] {
            if wait == Wait::Sleeping && !t.sleeps {
                continue;
            }
            let [mut near, far] = opened(t, wait);
            near.set_limit(20_000_000).unwrap();
            let begin_ns = monotonic_ns();
            let e = near.receive(&mut [0]).unwrap_err();
            let took_ns = monotonic_ns() - begin_ns;
            assert_eq!(e.kind(), io::ErrorKind::TimedOut, "{} {wait:?}: {e}", t.name);
            assert!((15_000_000..2_000_000_000).contains(&took_ns), "{} {took_ns}", t.name);
            drop(far);
            // Rings and datagrams know of no end: their limit is the end.
            let e = near.receive(&mut [0]).unwrap_err();
            assert_ne!(e.kind(), io::ErrorKind::InvalidData, "{} {e}", t.name);
        }
    }
}

#[test]
fn what_nobody_receives_is_taken_up_to_the_links_own_buffers() {
    let taken = |name: &str, bytes: usize| {
        let [mut near, _far] = opened(Transport::named(name).unwrap(), Wait::Polling);
        near.set_limit(20_000_000).unwrap();
        near.send(&vec![1; bytes]).is_ok()
    };
    // pipe(7): 16 pages; the ring's capacity.
    assert!(taken("pipe", 65_536) && !taken("pipe", 65_537));
    assert!(taken("shm", ring::CAPACITY) && !taken("shm", ring::CAPACITY + 1));
}

#[test]
fn wrong_ends_and_broken_counts_are_refused() {
    for (name, fds) in [("smoke", &[3][..]), ("tcp", &[]), ("tcp", &[0]), ("tcp", &[9_999]), ("pipe", &[3])] {
        let e = End::passed(name, fds).unwrap_err();
        assert_eq!(e.kind(), io::ErrorKind::InvalidInput, "{name}: {e}");
    }
    let file = tempfile::tempfile().unwrap();
    assert!(ring::Ring::open(&file.try_clone().unwrap().into(), true, Wait::Polling).is_err());
    assert!(file.as_raw_fd() >= 3);
    // The other process writes what it likes into the counts.
    let [near, far] = Transport::named("shm").unwrap().pair().unwrap();
    let counts = far.fds().next().unwrap().try_clone_to_owned().unwrap();
    let mut near = near.open(Wait::Polling).unwrap();
    let mut far = far.open(Wait::Polling).unwrap();
    far.send(&[1]).unwrap();
    let of_second_head = (4096 + ring::CAPACITY) as u64;
    rustix::io::pwrite(&counts, &u64::MAX.to_ne_bytes(), of_second_head).unwrap();
    let e = near.receive(&mut [0, 0]).unwrap_err();
    assert_eq!(e.kind(), io::ErrorKind::InvalidData, "{e}");
}

#[test]
fn sockets_say_how_they_are_set() {
    let [near, _far] = opened(Transport::named("tcp").unwrap(), Wait::Polling);
    let words = near.describe();
    assert!(words.starts_with("TCP_NODELAY, ") && words.contains(" B"), "{words}");
    assert!(near.segment_bytes().is_some_and(|b| b >= 536));
    let [near, _far] = opened(Transport::named("tcp-nagle").unwrap(), Wait::Polling);
    assert!(near.describe().starts_with("Nagle, "));
    let [near, _far] = opened(Transport::named("unix").unwrap(), Wait::Polling);
    assert!(near.describe().starts_with("buffers of ") && near.segment_bytes().is_none());
}
