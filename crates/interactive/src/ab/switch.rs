//! Putting a setting in force: a command of the user, which either does its work and ends (a sysctl, a control group), or
//! stays for as long as the setting shall last (a scheduler such as those of `sched_ext`).

use std::io::{self, PipeReader, Read};
use std::os::unix::process::CommandExt;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};

use machmeter_engine::ProbeError;
use machmeter_sys::process::{kill_group_of, pid_is_alive, processes_of_group};
use machmeter_sys::thread::{monotonic_ns, nanosleep_until, spawn_plain};

/// A command that still runs after this time is a setting that stays, ns.
const STAYS_AFTER_NS: u64 = 500_000_000;

/// From the request to end until the command is killed, ns.
const END_WITHIN_NS: u64 = 2_000_000_000;

/// Between looks at a command, ns.
const LOOK_NS: u64 = 2_000_000;

/// How long the last words of an ended command are waited for, ns: what it started may hold its output open.
const LAST_WORDS_NS: u64 = 200_000_000;

/// Of a line of output, at most so many bytes are kept.
const LINE_BYTES: usize = 400;

/// Ends the group whose id is its argument when stdin is closed: by us, or because we are gone, however we went. First it
/// asks, and kills what is left after two seconds.
const WATCH: &str = "trap '' TERM INT HUP; read -r nothing; kill -s TERM -- \"-$0\" || exit 0; n=0; \
                     while [ $n -lt 20 ]; do sleep 0.1; kill -s 0 -- \"-$0\" || exit 0; n=$((n+1)); done; \
                     kill -s KILL -- \"-$0\"";

/// The two settings of an A/B run. Dropping it ends what a setting left running.
#[derive(Debug)]
pub struct Settings {
    commands: [String; 2],
    in_force: Option<InForce>,
}

#[derive(Debug)]
struct InForce {
    setting: usize,
    running: Option<Running>,
}

impl Settings {
    /// The settings that `commands` make: A, then B.
    pub fn new(commands: [String; 2]) -> Self {
        Self { commands, in_force: None }
    }

    /// Puts `setting` (0 for A, 1 for B) in force, unless it is already. A command that stays and has died meanwhile is an
    /// error, since nobody knows since when the setting was gone.
    ///
    /// # Errors
    /// One line with the command and its last line of output when it fails.
    pub fn apply(&mut self, setting: usize) -> Result<(), ProbeError> {
        self.check()?;
        if self.in_force.as_ref().is_some_and(|f| f.setting == setting) {
            return Ok(());
        }
        self.end();
        let command = self.commands.get(setting).cloned().unwrap_or_default();
        let running = start(&command).map_err(|why| cannot(setting, &command, &why))?;
        self.in_force = Some(InForce { setting, running });
        Ok(())
    }

    /// Whether the setting in force is still so: to be asked after each segment.
    ///
    /// # Errors
    /// One line when the command that makes it stay has ended.
    pub fn check(&mut self) -> Result<(), ProbeError> {
        let Some(InForce { setting, running: Some(running) }) = &mut self.in_force else { return Ok(()) };
        let Some(status) = running.ended() else { return Ok(()) };
        let setting = *setting;
        let why = format!("ended while it was measured: {status}{}", running.last_words());
        self.end();
        Err(cannot(setting, &self.commands[setting], &why))
    }

    /// Ends a command that stays. The effect of one that had ended by itself remains: it has no undoing.
    pub fn end(&mut self) {
        self.in_force = None;
    }

    /// Whether the setting in force is a command that stays.
    pub fn stays(&self) -> bool {
        self.in_force.as_ref().is_some_and(|f| f.running.is_some())
    }
}

fn cannot(setting: usize, command: &str, why: &str) -> ProbeError {
    let name = if setting == 0 { "A" } else { "B" };
    ProbeError::Cannot(format!("setting {name}, `{command}`: {why}"))
}

/// Starts a command; `None` when it has done its work.
fn start(command: &str) -> Result<Option<Running>, String> {
    if command.trim().is_empty() {
        return Err("is empty; use `true` to change nothing".to_owned());
    }
    let begun_ns = monotonic_ns();
    let mut running = Running::spawn(command).map_err(|e| format!("cannot be started: {e}"))?;
    while monotonic_ns() < begun_ns + STAYS_AFTER_NS {
        match running.ended() {
            Some(status) if status.success() => {
                running.did_its_work = true;
                return Ok(None);
            }
            Some(status) => return Err(format!("failed ({status}){}", running.last_words())),
            None => nanosleep_until(monotonic_ns() + LOOK_NS),
        }
    }
    Ok(Some(running))
}

/// A command that was started, in a process group of its own.
#[derive(Debug)]
struct Running {
    child: Child,
    status: Option<ExitStatus>,
    did_its_work: bool,
    words: Receiver<String>,
    watch: Option<(Child, ChildStdin)>,
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
        let mut running = Self { child, status: None, did_its_work: false, words, watch: None };
        spawn_plain("mm-setting", move || {
            let _ = sender.send(last_line(output));
        })?;
        let mut watch = Command::new("sh")
            .args(["-c", WATCH, &running.child.id().to_string()])
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        running.watch = watch.stdin.take().map(|line| (watch, line));
        Ok(running)
    }

    /// The status if it has ended.
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
        let group = self.child.id() as i32;
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

    fn end_group(&mut self) {
        if !self.gone_until(monotonic_ns() + END_WITHIN_NS) {
            // As long as the group has a member, its number belongs to nobody else.
            kill_group_of(self.child.id() as i32);
            self.gone_until(monotonic_ns() + END_WITHIN_NS);
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // A command that did its work and ended may have left something behind on purpose (a service): that stays.
        let stays = !self.did_its_work;
        let Some((mut watch, line)) = self.watch.take() else {
            kill_group_of(self.child.id() as i32);
            let _ = self.child.wait();
            return;
        };
        if stays {
            // The closed line makes the watch ask the group to end.
            drop(line);
            self.end_group();
        }
        let _ = watch.kill();
        let _ = watch.wait();
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

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(a: &str, b: &str) -> Settings {
        Settings::new([a.to_owned(), b.to_owned()])
    }

    #[test]
    fn commands_that_end_are_run_once_per_change() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("log");
        let add = |what: &str| format!("printf {what} >> {}", file.display());
        let mut s = settings(&add("a"), &add("b"));
        for setting in [0, 1, 1, 0, 1] {
            s.apply(setting).unwrap();
            s.check().unwrap();
            assert!(!s.stays());
        }
        assert_eq!(std::fs::read_to_string(&file).unwrap(), "abab");
    }

    #[test]
    fn a_command_that_fails_says_its_last_line() {
        let e =
            settings("echo one; echo 'no such scheduler' >&2; echo; exit 3", "true").apply(0).unwrap_err();
        let text = e.to_string();
        assert!(text.starts_with("setting A, `echo one;") && text.contains("exit status: 3"), "{text}");
        assert!(text.ends_with(": no such scheduler") && !text.contains('\n'), "{text}");
        assert!(settings("true", " ").apply(1).unwrap_err().to_string().contains("setting B, ` `: is empty"));
        let gone = settings("true", "/no/such/program").apply(1).unwrap_err().to_string();
        assert!(gone.contains("exit status: 127"), "{gone}");
    }

    /// A command that stays, and the file with the ids of its two processes.
    fn staying(dir: &std::path::Path, before: &str) -> (String, std::path::PathBuf) {
        let file = dir.join("pids");
        let command = format!("{before} sleep 300 & echo $$ $! > {}; wait; sleep 300", file.display());
        (command, file)
    }

    fn pids(file: &std::path::Path) -> Vec<i32> {
        let text = std::fs::read_to_string(file).unwrap();
        text.split_whitespace().map(|p| p.parse().unwrap()).collect()
    }

    fn all_gone(pids: &[i32]) -> bool {
        let until_ns = monotonic_ns() + 10_000_000_000;
        while pids.iter().any(|p| pid_is_alive(*p)) {
            if monotonic_ns() > until_ns {
                return false;
            }
            nanosleep_until(monotonic_ns() + LOOK_NS);
        }
        true
    }

    #[test]
    fn a_command_that_stays_ends_with_all_its_processes_before_the_other_setting() {
        let dir = tempfile::tempdir().unwrap();
        let asked = dir.path().join("asked");
        let (command, file) =
            staying(dir.path(), &format!("trap 'echo yes > {}; exit 0' TERM;", asked.display()));
        let mut s = settings(&command, "true");
        s.apply(0).unwrap();
        assert!(s.stays());
        let of_a = pids(&file);
        assert_eq!(of_a.len(), 2);
        assert!(of_a.iter().all(|p| pid_is_alive(*p)));
        s.apply(0).unwrap();
        assert_eq!(pids(&file), of_a, "not started again");
        s.apply(1).unwrap();
        assert!(!s.stays() && all_gone(&of_a));
        assert_eq!(std::fs::read_to_string(asked).unwrap(), "yes\n", "it was asked, not killed");
    }

    #[test]
    fn a_command_that_does_not_want_to_end_is_killed() {
        let dir = tempfile::tempdir().unwrap();
        let (command, file) = staying(dir.path(), "trap '' TERM;");
        let mut s = settings(&command, "true");
        s.apply(0).unwrap();
        let of_a = pids(&file);
        let begun_ns = monotonic_ns();
        drop(s);
        assert!(monotonic_ns() - begun_ns >= END_WITHIN_NS, "it was asked first");
        assert!(all_gone(&of_a));
    }

    #[test]
    fn what_a_dying_command_leaves_in_its_group_is_ended_too() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("pids");
        let command = format!(
            "sh -c \"trap '' TERM; echo \\$\\$ > {}; sleep 300\" & sleep 0.9; exit 1",
            file.display()
        );
        let mut s = settings(&command, "true");
        s.apply(0).unwrap();
        assert!(s.stays());
        let left = pids(&file);
        nanosleep_until(monotonic_ns() + 1_000_000_000);
        assert!(s.check().is_err());
        assert!(left.len() == 1 && all_gone(&left));
    }

    #[test]
    fn a_command_that_stays_and_dies_is_noticed() {
        let mut s = settings("echo began; sleep 0.9; echo 'ran out of luck'; exit 4", "true");
        s.apply(0).unwrap();
        assert!(s.stays());
        nanosleep_until(monotonic_ns() + 1_500_000_000);
        let text = s.check().unwrap_err().to_string();
        assert!(text.contains("ended while it was measured: exit status: 4: ran out of luck"), "{text}");
        s.check().unwrap();
    }

    #[test]
    fn a_command_that_talks_without_end_is_not_held_up() {
        let mut s = settings("yes talking", "true");
        s.apply(0).unwrap();
        assert!(s.stays());
        s.check().unwrap();
        s.apply(1).unwrap();
    }
}
