//! The process that has a setting's command below it and ends that when it is told to, or when the program is gone.

use std::ffi::OsString;
use std::io::{self, PipeReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};

use machmeter_sys::guard::signals;
use machmeter_sys::process::{kill_group_of, pid_is_alive, processes_of_group, terminate_group_of};
use machmeter_sys::thread::{monotonic_ns, nanosleep_until, spawn_plain};
use serde::{Deserialize, Serialize};

use crate::role;
use crate::worker::Worker;

/// The role of the guard, for the registry of roles.
pub const GUARD: Worker = Worker { name: "setting", run };

/// A command that still runs after this time is a setting that stays, ns.
pub(super) const STAYS_AFTER_NS: u64 = 500_000_000;

/// From the request to end until the command is killed, and from there until it is given up, ns.
pub(super) const END_WITHIN_NS: u64 = 2_000_000_000;

/// Between looks at a command, ns.
const LOOK_NS: u64 = 2_000_000;

/// How long the last words of an ended command are waited for, ns: what it started may hold its output open.
const LAST_WORDS_NS: u64 = 200_000_000;

/// Of a line of output, at most so many bytes are kept.
const LINE_BYTES: usize = 400;

/// What is asked of the guard. The end of requests ends a command that stays.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Request {
    Start(String),
    Check,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Reply {
    Done,
    Stays(i32),
    Failed(String),
}

fn run(_: &[OsString]) -> u8 {
    // The program decides when a setting ends, not a signal that reaches all of its processes.
    if signals::install().is_err() {
        return 1;
    }
    let mut running: Option<Running> = None;
    role::answer(|request| match request {
        Request::Start(command) => match start(&command) {
            Ok(started) => {
                let started = running.insert(started);
                if started.did_its_work { Reply::Done } else { Reply::Stays(started.group()) }
            }
            Err(why) => Reply::Failed(why),
        },
        Request::Check => running.as_mut().map_or(Reply::Done, |running| match running.ended() {
            None => Reply::Stays(running.group()),
            Some(status) => {
                Reply::Failed(format!("ended while it was measured: {status}{}", running.last_words()))
            }
        }),
    })
}

fn start(command: &str) -> Result<Running, String> {
    let begun_ns = monotonic_ns();
    let mut running = Running::spawn(command).map_err(|e| format!("cannot be started: {e}"))?;
    while monotonic_ns() < begun_ns + STAYS_AFTER_NS {
        match running.ended() {
            Some(status) if status.success() => {
                running.did_its_work = true;
                return Ok(running);
            }
            Some(status) => return Err(format!("failed ({status}){}", running.last_words())),
            None => nanosleep_until(monotonic_ns() + LOOK_NS),
        }
    }
    Ok(running)
}

/// A command that was started, in a process group of its own.
#[derive(Debug)]
struct Running {
    child: Child,
    status: Option<ExitStatus>,
    did_its_work: bool,
    words: Receiver<String>,
}

impl Running {
    fn spawn(command: &str) -> io::Result<Self> {
        let (output, to_it) = io::pipe()?;
        let child = Command::new("sh")
            .args(["-c", command])
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(to_it.try_clone()?)
            .stderr(to_it)
            .spawn()?;
        let (sender, words) = channel();
        // From here on dropping it ends the command.
        let running = Self { child, status: None, did_its_work: false, words };
        spawn_plain("mm-setting", move || {
            let _ = sender.send(last_line(output));
        })?;
        Ok(running)
    }

    fn group(&self) -> i32 {
        self.child.id() as i32
    }

    fn ended(&mut self) -> Option<ExitStatus> {
        if self.status.is_none() {
            self.status = self.child.try_wait().ok().flatten();
        }
        self.status
    }

    /// `: last line of output`, or nothing.
    fn last_words(&self) -> String {
        let within = std::time::Duration::from_nanos(LAST_WORDS_NS);
        match self.words.recv_timeout(within) {
            Ok(line) if !line.is_empty() => format!(": {line}"),
            _ => String::new(),
        }
    }

    /// Waits until nothing of the group is left, at most until `deadline_ns`.
    fn gone_until(&mut self, deadline_ns: u64) -> bool {
        let group = self.group();
        loop {
            let leader_ended = self.ended().is_some();
            if leader_ended && !processes_of_group(group).into_iter().any(pid_is_alive) {
                return true;
            }
            if monotonic_ns() >= deadline_ns {
                return false;
            }
            nanosleep_until(monotonic_ns() + LOOK_NS);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.did_its_work {
            // What it may have left behind on purpose (a service) stays, and can write as long as it lives.
            let _ = self.words.recv();
            return;
        }
        if self.gone_until(0) {
            return;
        }
        // As long as the group has a member, its number belongs to nobody else.
        terminate_group_of(self.group());
        if !self.gone_until(monotonic_ns() + END_WITHIN_NS) {
            kill_group_of(self.group());
            self.gone_until(monotonic_ns() + END_WITHIN_NS);
        }
    }
}

/// Reads all that comes and keeps the last line that is not empty: a command must never wait for a full pipe.
fn last_line(mut from: PipeReader) -> String {
    let (mut last, mut current) = (Vec::new(), Vec::new());
    let mut chunk = [0_u8; 4096];
    loop {
        let n = match from.read(&mut chunk) {
            Ok(0) => break,
            Ok(n) => n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(_) => break,
        };
        for byte in &chunk[..n] {
            if *byte != b'\n' {
                if current.len() < LINE_BYTES {
                    current.push(*byte);
                }
            } else if !current.trim_ascii().is_empty() {
                last = std::mem::take(&mut current);
            } else {
                current.clear();
            }
        }
    }
    let text = if current.trim_ascii().is_empty() { &last } else { &current };
    String::from_utf8_lossy(text).trim().chars().filter(|c| !c.is_control()).collect()
}
