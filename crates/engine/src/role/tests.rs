//! Roles over streams in memory: what comes, when, is planted.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io::{self, Write};
use std::rc::Rc;

use machmeter_sys::process::ReadUntil;
use serde::{Deserialize, Serialize};

use super::{Peer, Role, RoleError};

const MAX_BYTES: usize = 40;

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Request {
    Add { a: u64, b: u64 },
}

#[derive(Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Reply {
    Sum(u64),
}

/// Pieces of bytes, each from a time on, ns; the end comes after the last one.
struct Planned(VecDeque<(u64, &'static [u8])>);

impl ReadUntil for Planned {
    fn read_until(&mut self, buffer: &mut [u8], until_ns: Option<u64>) -> io::Result<usize> {
        let Some((at_ns, bytes)) = self.0.front() else { return Ok(0) };
        if until_ns.is_some_and(|until| until < *at_ns) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        buffer[..bytes.len()].copy_from_slice(bytes);
        let n = bytes.len();
        self.0.pop_front();
        Ok(n)
    }
}

/// What was written; broken when so told.
#[derive(Clone, Default)]
struct Written(Rc<RefCell<Vec<u8>>>, bool);

impl Write for Written {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.1 {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[derive(Default)]
struct Process {
    killed: bool,
}

impl Peer for Process {
    fn ending(&mut self) -> Option<String> {
        Some("exit status: 3".to_owned())
    }

    fn kill(&mut self) {
        self.killed = true;
    }
}

type TestRole = Role<Request, Reply, Process, Written, Planned>;

fn role(pieces: &[(u64, &'static [u8])]) -> TestRole {
    let from = Planned(pieces.iter().copied().collect());
    Role::over(Written::default(), from, MAX_BYTES, Process::default())
}

fn said(role: &mut TestRole, until_ns: u64) -> String {
    role.receive(until_ns).unwrap_err().to_string()
}

#[test]
fn a_request_is_one_line_and_a_reply_comes_whole_however_its_bytes_came() {
    let written = Written::default();
    let from = Planned([(0, &b"{\"su"[..]), (0, b"m\":5}\n{\"sum\":6}\n")].into());
    let mut role: TestRole = Role::over(written.clone(), from, MAX_BYTES, Process::default());
    assert_eq!(role.ask(&Request::Add { a: 2, b: 3 }, 1).unwrap(), Reply::Sum(5));
    assert_eq!(role.receive(0).unwrap(), Reply::Sum(6));
    assert_eq!(*written.0.borrow(), b"{\"add\":{\"a\":2,\"b\":3}}\n");
}

#[test]
fn a_late_reply_may_be_waited_for_again_and_nothing_of_it_is_lost() {
    let mut role = role(&[(0, b"{\"sum\""), (500, b":7}\n")]);
    assert!(matches!(role.receive(499), Err(RoleError::Late)));
    assert_eq!(role.receive(500).unwrap(), Reply::Sum(7));
}

#[test]
fn the_end_says_how_the_process_ended_and_half_a_message_is_none() {
    for pieces in [&[][..], &[(0, &b"{\"sum\":1}"[..])]] {
        let mut role = role(pieces);
        assert_eq!(said(&mut role, 0), "ended: exit status: 3");
        assert!(matches!(role.receive(0), Err(RoleError::Ended(_))), "the end stays the end");
    }
    let mut socket: Role<Request, Reply, (), _, _> =
        Role::over(Written::default(), Planned(VecDeque::new()), MAX_BYTES, ());
    assert_eq!(socket.receive(0).unwrap_err().to_string(), "closed its output");
}

#[test]
fn a_line_that_is_no_message_is_one_clear_line_and_ends_belief() {
    let long = &[b'x'; MAX_BYTES + 1];
    for (bytes, why) in [
        (&b"garbage\n"[..], "sent an unreadable message: expected value"),
        (b"{\"sum\":-1}\n", "sent an unreadable message: invalid value"),
        (b"{\"\\u001b[2J\\n\":1}\n", "sent an unreadable message: unknown variant"),
        (b"{\"sum\":\xff}\n", "sent an unreadable message: expected value"),
        (b"{\"\xff\":1}\n", "sent an unreadable message: invalid unicode"),
        (long, "sent a line of more than 40 bytes"),
    ] {
        let mut role = role(&[(0, bytes), (0, b"\n{\"sum\":1}\n")]);
        let said = said(&mut role, 0);
        assert!(said.starts_with(why) && !said.contains(char::is_control), "{said:?}");
        assert!(matches!(role.receive(0), Err(RoleError::Ended(_))), "{why}: what follows is not believed");
    }
}

#[test]
fn after_a_kill_nothing_is_sent_or_believed() {
    let mut role = role(&[(0, b"{\"sum\":1}\n{\"sum\":2}\n")]);
    assert_eq!(role.receive(0).unwrap(), Reply::Sum(1));
    role.kill();
    assert!(role.peer().killed);
    assert!(matches!(role.receive(u64::MAX), Err(RoleError::Ended(_))));
    assert!(matches!(role.send(&Request::Add { a: 1, b: 1 }), Err(RoleError::Ended(_))));
}

#[test]
fn one_that_does_not_listen_any_more_has_ended() {
    let written = Written(Rc::default(), true);
    let mut role: TestRole = Role::over(written, Planned(VecDeque::new()), MAX_BYTES, Process::default());
    let e = role.send(&Request::Add { a: 1, b: 1 }).unwrap_err();
    assert_eq!(e.to_string(), "ended: exit status: 3");
}
