//! Runs the built program like a user, with separate working and state directories and a time limit.

#![allow(dead_code, unused_imports, reason = "each test program uses its part")]
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]
#![allow(clippy::disallowed_methods, reason = "the wall time of whole runs, as a user's watch shows it")]

mod host;
mod records;

use std::fs;
use std::io::{self, BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Mutex, MutexGuard, Once, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use machmeter_data::Record;
use machmeter_sys::cgroup::Group;
use rustix::process::{Pid, Signal};

pub(crate) use host::{
    allowed, can_mount, catches, cpu_time, descendants, has_one_cpu, is_root, kept_runs, names_in,
    prompt_policy, some_cpu, soon,
};
pub(crate) use records::{is_loaded, of, price, record_in, sound, value, warned, why};

/// A program meant to run for a few seconds hangs if it takes this long.
const HANGS_AFTER: Duration = Duration::from_mins(1);
/// Exit codes in the help; 129 is for SIGHUP, 152 for SIGXCPU.
const DOCUMENTED: [i32; 12] = [0, 1, 2, 3, 4, 5, 126, 127, 129, 130, 143, 152];
pub(crate) const NOBODY: u32 = 65_534;

/// Directories for runs; removed with their content.
pub(crate) struct Lab {
    dir: tempfile::TempDir,
    turn: Option<MutexGuard<'static, ()>>,
}

impl Lab {
    pub(crate) fn new() -> Self {
        // Background tests ignore SIGINT, and tests under nohup SIGHUP. Child processes would inherit that without a handler here.
        static ONCE: Once = Once::new();
        ONCE.call_once(|| {
            for (signal, code) in [(Signal::INT, 130), (Signal::HUP, 129)] {
                let always = Arc::new(AtomicBool::new(true));
                signal_hook::flag::register_conditional_shutdown(signal.as_raw(), code, always).unwrap();
            }
        });
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir(dir.path().join("work")).unwrap();
        Self { dir, turn: None }
    }

    /// A lab that runs alone: two runs would take CPU time from each other during a measurement.
    pub(crate) fn alone() -> Self {
        static TURN: Mutex<()> = Mutex::new(());
        Self { turn: Some(TURN.lock().unwrap_or_else(PoisonError::into_inner)), ..Self::new() }
    }

    /// Working directory of the program, empty at first.
    pub(crate) fn work(&self) -> PathBuf {
        self.dir.path().join("work")
    }

    /// The state directory; the program creates it.
    pub(crate) fn state(&self) -> PathBuf {
        self.dir.path().join("state")
    }

    /// Names of the files in the working directory, hidden ones included, sorted.
    pub(crate) fn files(&self) -> Vec<String> {
        names_in(&self.work())
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_machmeter"));
        self.set_up(command.args(arguments));
        command
    }

    pub(crate) fn set_up(&self, command: &mut Command) {
        command
            .current_dir(self.work())
            .env("MACHMETER_STATE", self.state())
            .env_remove("NO_COLOR")
            .env_remove("TERM")
            .env("LC_ALL", "C.UTF-8")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
    }

    /// The same as an unprivileged user, who may enter and write to the directories, with a copy of the program that this user can reach. Requires root.
    pub(crate) fn as_nobody(&self, arguments: &[&str]) -> Command {
        for dir in [self.dir.path().to_owned(), self.work()] {
            fs::set_permissions(dir, fs::Permissions::from_mode(0o777)).unwrap();
        }
        let copy = self.dir.path().join("machmeter");
        if !copy.exists() {
            fs::copy(env!("CARGO_BIN_EXE_machmeter"), &copy).unwrap();
        }
        let mut command = Command::new(copy);
        self.set_up(command.args(arguments));
        command.uid(NOBODY).gid(NOBODY);
        command
    }

    /// Runs `command` from a shell (a program with its arguments up to the line), after the shell ran `before`.
    pub(crate) fn after(&self, shell: &[&str], before: &str, command: &Command) -> Command {
        let words = std::iter::once(command.get_program()).chain(command.get_args());
        let line: Vec<&str> = words.filter_map(|word| word.to_str()).collect();
        let mut shelled = Command::new(shell[0]);
        self.set_up(shelled.args(&shell[1..]).arg(format!("{before} && exec {}", line.join(" "))));
        shelled
    }

    /// The program in a control group.
    pub(crate) fn within(&self, group: &Group, line: &str) -> Running {
        let join = group.directories().map(|d| format!("echo $$ > {}/cgroup.procs", d.display()));
        let join = join.collect::<Vec<_>>().join(" && ");
        Running::of(self.after(&["/bin/sh", "-c"], &join, &self.command(&words(line))))
    }

    /// An executable file of this text in the working directory; its path.
    pub(crate) fn script(&self, name: &str, text: &str) -> String {
        let path = self.work().join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path.to_str().unwrap().to_owned()
    }

    pub(crate) fn start(&self, line: &str) -> Running {
        Running::of(self.command(&words(line)))
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ended {
        Running::of(self.command(arguments)).end()
    }

    /// As [`Self::run`], with the words of `line`.
    pub(crate) fn line(&self, line: &str) -> Ended {
        self.start(line).end()
    }

    pub(crate) fn nobody(&self, line: &str) -> Ended {
        Running::of(self.as_nobody(&words(line))).end()
    }

    pub(crate) fn record(&self, name: &str) -> Record {
        record_in(&self.work().join(name))
    }
}

pub(crate) fn words(line: &str) -> Vec<&str> {
    line.split_whitespace().collect()
}

pub(crate) struct Running {
    child: Child,
    shown: String,
    begun: Instant,
    stdout: Option<JoinHandle<String>>,
    stderr: Option<Receiver<String>>,
    heard: Vec<String>,
}

#[derive(Debug)]
pub(crate) struct Ended {
    /// Exit code; `None` if a signal killed it.
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) wall: Duration,
    pub(crate) shown: String,
}

impl Running {
    pub(crate) fn of(mut command: Command) -> Self {
        let shown = command.get_args().map(|a| a.to_string_lossy()).collect::<Vec<_>>().join(" ");
        let begun = Instant::now();
        let mut child = command.spawn().unwrap();
        let stdout = child.stdout.take().map(|out| thread::spawn(move || io::read_to_string(out).unwrap()));
        let stderr = child.stderr.take().map(|err| {
            let (tell, lines) = mpsc::channel();
            thread::spawn(move || {
                let mut lines = BufReader::new(err).lines().map_while(Result::ok);
                let _ = lines.try_for_each(|line| tell.send(line));
            });
            lines
        });
        Self { child, shown, begun, stdout, stderr, heard: Vec::new() }
    }

    pub(crate) fn shown(&self) -> &str {
        &self.shown
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// Waits until a line of stderr contains `text`; returns the time since the start, or `None` if the program ended without it.
    pub(crate) fn hear(&mut self, text: &str) -> Option<Duration> {
        let lines = self.stderr.as_ref()?;
        while let Ok(line) = lines.recv_timeout(HANGS_AFTER) {
            let found = line.contains(text);
            self.heard.push(line);
            if found {
                return Some(self.begun.elapsed());
            }
        }
        None
    }

    pub(crate) fn send(&self, signal: Signal) {
        rustix::process::kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Waits for the end, and checks laws of every run: a documented exit code, no process left in its group, no panic.
    pub(crate) fn end(mut self) -> Ended {
        let status = loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                break status;
            }
            if self.begun.elapsed() > HANGS_AFTER {
                self.child.kill().unwrap();
                self.child.wait().unwrap();
                let heard = self.heard.join("\n");
                panic!("machmeter {}: still running after {HANGS_AFTER:?}\n{heard}", self.shown);
            }
            thread::sleep(Duration::from_millis(2));
        };
        let wall = self.begun.elapsed();
        let stdout = self.stdout.take().map_or_else(String::new, |t| t.join().unwrap());
        if let Some(lines) = self.stderr.take() {
            self.heard.extend(lines.iter());
        }
        let stderr = self.heard.join("\n");
        let group = Pid::from_child(&self.child);
        let nobody_left = rustix::process::test_kill_process_group(group).is_err();
        assert!(nobody_left, "machmeter {}: left a process behind", self.shown);
        assert!(!stderr.contains("panicked"), "machmeter {}: {stderr}", self.shown);
        let is_documented = status.code().is_some_and(|code| DOCUMENTED.contains(&code));
        assert!(is_documented, "machmeter {}: {status}\n{stderr}", self.shown);
        Ended { code: status.code(), stdout, stderr, wall, shown: self.shown }
    }
}

impl Ended {
    #[track_caller]
    pub(crate) fn expect(&self, code: i32) -> &Self {
        assert_eq!(self.code, Some(code), "machmeter {}\n{}\n{}", self.shown, self.stderr, self.stdout);
        self
    }

    /// The record of a run that should be complete; it may be partial if other programs took the time.
    #[track_caller]
    pub(crate) fn ended_or_starved(&self) -> Record {
        if self.code != Some(5) {
            return self.expect(0).record();
        }
        let record = self.record();
        assert!(is_loaded(&record), "machmeter {}: {}", self.shown, self.stderr);
        record
    }

    /// Lines of stderr that begin with `error:`.
    pub(crate) fn errors(&self) -> Vec<&str> {
        self.stderr.lines().filter(|l| l.starts_with("error:")).collect()
    }

    /// Checks the exit code, and for exactly one error line that contains `about`.
    #[track_caller]
    pub(crate) fn failed(&self, code: i32, about: &str) {
        let errors = self.expect(code).errors();
        assert!(errors.len() == 1 && errors[0].contains(about), "machmeter {}: {errors:?}", self.shown);
    }

    /// Checks for a refusal: exactly one error line that contains `about`, plus advice.
    #[track_caller]
    pub(crate) fn refused(&self, about: &str) {
        self.failed(2, about);
        let is_told = |l: &str| l.starts_with("error: ") || l.starts_with("help: ");
        assert!(self.stderr.lines().all(is_told), "machmeter {}: {}", self.shown, self.stderr);
    }

    #[track_caller]
    pub(crate) fn record(&self) -> Record {
        sound(&self.stdout, &format!("stdout of machmeter {}", self.shown))
    }
}
