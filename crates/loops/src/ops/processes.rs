//! The starts and switches that are priced, each with what proves that it happened.

use std::io;
use std::path::PathBuf;

use crate::subject::{Kind, Proof, Subject};
use machmeter_sys::call::map::Inherited;
use machmeter_sys::call::task::{self, Bare, Program, Threads};
use machmeter_sys::process::{WORKER_ARGUMENT, program};
use machmeter_sys::task_headroom::TaskHeadroom;

use super::repeated::{Planned, made, one_line, plan};

/// Stack of ordinary threads here, bytes: kept by the C library and used again.
const KEPT_STACK_BYTES: usize = 256 << 10;
/// A stack larger than all that the GNU C library keeps (40 MiB): mapped and unmapped each time.
const FRESH_STACK_BYTES: usize = 64 << 20;
/// MiB that children inherit in both batches. Not n and 2 n, so that the row is of the difference.
const HEIRS_MIB: (u64, u64) = (4, 16);
const WORKED: &str = "threads that did their work";
const EXITED: &str = "children that exited with their code";

/// POSIX threads made and joined, on a stack that was in use before or on one that is mapped and unmapped each time.
pub fn threads<'a>(is_fresh: bool) -> Planned<'a> {
    let (stack, bytes) = if is_fresh { ("fresh", FRESH_STACK_BYTES) } else { ("kept", KEPT_STACK_BYTES) };
    let once = |threads: &mut Threads| limited(threads.create_and_join());
    made("thread_create_join", Threads::with_stack(bytes), WORKED, once).with("stack", stack)
}

/// Programs and processes that do nothing, and bare threads. No POSIX thread: a process that ever had one forks costlier.
pub fn starts<'a>(exec_target: Option<&str>, idle_worker: &str) -> Vec<Planned<'a>> {
    let bare = |operation, what, once: fn(&mut Bare) -> io::Result<()>| {
        let run = move |b: &mut Bare, turns| (0..turns).try_for_each(|_| limited(once(b))).map(|()| turns);
        Planned::new(operation, Kind::Latency, Holding { make: Bare::new, run, held: None, what, done: 0 })
    };
    let make = || Inherited::touched((HEIRS_MIB.1 as usize) << 20);
    // A batch is one fork, a turn a MiB of the memory that the child inherits.
    let run = |memory: &mut Inherited, mib| {
        memory.leave_to_children((mib as usize) << 20)?;
        limited(task::fork_and_wait()).map(|()| 1)
    };
    let heir = Holding { make, run, held: None, what: EXITED, done: 0 };
    let mut rows = programs(exec_target, idle_worker);
    rows.extend([
        bare("clone_thread", WORKED, Bare::clone_and_wait),
        plan("fork_exit_wait", EXITED, || limited(task::fork_and_wait())).first(),
        Planned::new("fork_per_mib", Kind::Latency, heir).turns(HEIRS_MIB).of_differences().first(),
        bare("vfork_exit_wait", EXITED, Bare::vfork_and_wait),
    ]);
    rows
}

/// An operation on memory that is there during visits only, so that no other row inherits it.
struct Holding<T, R> {
    make: fn() -> io::Result<T>,
    /// So many turns; how often the thing was done.
    run: R,
    held: Option<T>,
    what: &'static str,
    done: u64,
}

impl<T, R: FnMut(&mut T, u64) -> io::Result<u64>> Subject for Holding<T, R> {
    fn prepare(&mut self) -> Result<(), String> {
        let held = self.held.insert((self.make)().map_err(|e| one_line(&e))?);
        // Once, so that what the system refuses is told with its cause.
        (self.run)(held, 1).map(drop).map_err(|e| one_line(&e))
    }

    fn run(&mut self, turns: u64) -> bool {
        let done = self.held.as_mut().and_then(|held| (self.run)(held, turns).ok());
        self.done += done.unwrap_or(0);
        done.is_some()
    }

    fn leave(&mut self) {
        self.held = None;
    }

    fn proof(&mut self) -> Option<Proof> {
        Proof::of(self.what, self.done, self.done)
    }
}

/// Starts of programs: the one asked for, or `true` and this one in its role that does nothing.
fn programs<'a>(exec_target: Option<&str>, idle_worker: &str) -> Vec<Planned<'a>> {
    let targets: Vec<(&str, PathBuf, Vec<&str>)> = if let Some(path) = exec_target {
        vec![("given", path.into(), Vec::new())]
    } else {
        let found = ["/bin/true", "/usr/bin/true"].map(PathBuf::from).into_iter().find(|p| p.is_file());
        let own = ("machmeter", program(), vec![WORKER_ARGUMENT, idle_worker]);
        found.map(|p| ("true", p, Vec::new())).into_iter().chain([own]).collect()
    };
    let mut rows = Vec::new();
    for (i, (name, path, arguments)) in targets.into_iter().enumerate() {
        for operation in ["spawn", "fork_exec"] {
            let named = {
                let path = path.clone();
                move |e: io::Error| io::Error::new(e.kind(), format!("{}: {e}", path.display()))
            };
            let program = Program::new(&path, &arguments).map_err(&named);
            let once = move |program: &mut Program| {
                let done = if operation == "spawn" {
                    program.spawn_and_wait()
                } else {
                    // Where there is no program, posix_spawn says why.
                    program.fork_exec_and_wait().or_else(|e| program.spawn_and_wait().and(Err(e)))
                };
                limited(done).map_err(&named)
            };
            let what = "children that exited with 0";
            let row = made(operation, program, what, once).with("program", name);
            rows.push(if i == 0 && operation == "spawn" { row.first() } else { row });
        }
    }
    rows
}

/// Adds what limits the number of tasks to the system's "try again".
fn limited<T>(done: io::Result<T>) -> io::Result<T> {
    done.map_err(|e| match e.kind() {
        io::ErrorKind::WouldBlock => {
            let room = TaskHeadroom::now().map_or_else(String::new, |r| format!("; {}", r.limit));
            io::Error::new(e.kind(), format!("no more threads or processes: {e}{room}"))
        }
        _ => e,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No test starts it.
    const IDLE: &str = "idle";

    fn program_of(planned: &Planned<'_>) -> String {
        planned.params.get("program").map_or_else(String::new, ToString::to_string)
    }

    #[test]
    fn programs_that_cannot_be_priced_are_refused_with_the_cause() {
        for (target, why) in [
            ("/nowhere/at/all", "No such file"),
            ("/bin/false", "1 instead of 0"),
            ("/etc/passwd", "Permission"),
        ] {
            for row in &mut programs(Some(target), IDLE) {
                let said = row.subject.prepare().unwrap_err();
                assert!(said.contains(why) && said.starts_with(target), "{said}");
            }
        }
        // Reads from nothing, so that it ends at once.
        for target in ["/bin/true", "/bin/cat"] {
            assert!(programs(Some(target), IDLE).iter_mut().all(|p| p.subject.prepare().is_ok()));
        }
        let named: Vec<String> = programs(None, IDLE).iter().map(program_of).collect();
        assert_eq!(named, ["true", "true", "machmeter", "machmeter"]);
    }

    #[test]
    fn what_is_held_is_held_during_visits_only_and_what_fails_is_not_counted() {
        for planned in starts(None, IDLE).iter_mut().filter(|p| program_of(p).is_empty()) {
            let turns = planned.turns.1.max(3);
            let (operation, subject) = (&planned.operation, &mut planned.subject);
            let held = operation != "fork_exit_wait";
            assert_eq!(subject.run(1), !held, "{operation}");
            subject.prepare().unwrap();
            assert!(subject.run(turns));
            if operation == "fork_per_mib" {
                assert!(!subject.run(turns + 1), "more than there is");
            }
            subject.leave();
            assert_eq!(subject.run(1), !held, "{operation}");
            assert!(subject.proof().is_some_and(|p| p.seen > 0 && p.seen == p.expected));
        }
    }

    #[test]
    fn the_limit_is_named_where_the_system_says_try_again() {
        let e = limited::<()>(Err(io::Error::from_raw_os_error(libc::EAGAIN))).unwrap_err();
        assert!(e.to_string().contains("no more threads or processes"));
        let e = limited::<()>(Err(io::Error::from_raw_os_error(libc::ENOENT))).unwrap_err();
        assert!(!e.to_string().contains("no more"));
    }
}
