//! The starts and switches that are priced, each with what proves that it happened.

use std::io;
use std::path::Path;

use machmeter_engine::worker;
use machmeter_sys::call::task::{self, Bare, Program, Threads};
use machmeter_sys::process::{WORKER_ARGUMENT, program};
use machmeter_sys::task_room::TaskRoom;

use super::PART_NAME;
use crate::ops::Params;
use crate::ops::repeated::{Planned, Repeated, one_line};

/// Stack of ordinary threads here, bytes: kept by the C library and used again.
const KEPT_STACK_BYTES: usize = 256 << 10;
/// A stack larger than all that the GNU C library keeps (40 MiB): mapped and unmapped each time.
const FRESH_STACK_BYTES: usize = 64 << 20;
/// The longest that a program may take to end, ns.
const LONGEST_NS: u64 = 300_000_000;
/// Starts that a row needs at least: pairs of one and two, six of them, a calibration and a warm-up.
const FEWEST_STARTS: u64 = 30;

fn plan<'a>(operation: &str, what: &'static str, once: impl FnMut() -> io::Result<()> + 'a) -> Planned<'a> {
    Planned::new(PART_NAME, operation, Repeated::returning(what, once))
}

/// A row whose subject has to be made first; refused with the reason where it cannot be.
fn made<'a, T>(operation: &str, made: Result<T, String>, with: impl FnOnce(T) -> Planned<'a>) -> Planned<'a> {
    match made {
        Ok(made) => with(made),
        Err(why) => Planned::refused(PART_NAME, operation, &why),
    }
}

/// Threads and processes that do nothing.
pub(super) fn starts<'a>() -> Vec<Planned<'a>> {
    let threads = |stack_bytes| Threads::with_stack(stack_bytes).map_err(|e| one_line(&e));
    let bare = || Bare::new().map_err(|e| one_line(&e));
    let worked = "threads that did their work";
    let exited = "children that exited with their code";
    vec![
        made("thread_create_join", threads(KEPT_STACK_BYTES), |t| {
            plan("thread_create_join", worked, move || limited(t.create_and_join()))
                .with("stack", "kept")
                .first()
        }),
        made("thread_create_join", threads(FRESH_STACK_BYTES), |t| {
            plan("thread_create_join", worked, move || limited(t.create_and_join())).with("stack", "fresh")
        }),
        made("clone_thread", bare(), |mut b| {
            plan("clone_thread", worked, move || limited(b.clone_and_wait()))
        }),
        plan("fork_exit_wait", exited, || limited(task::fork_and_wait())).first(),
        made("vfork_exit_wait", bare(), |mut b| {
            plan("vfork_exit_wait", exited, move || limited(b.vfork_and_wait()))
        }),
    ]
}

/// Starts of programs: the one asked for, or this one in its role that does nothing, and `true` where there is one. A program
/// is tried once; if that does not work, or takes too long for `left_ns`, its rows are refused.
pub(super) fn programs<'a>(params: &Params, left_ns: u64) -> Vec<Planned<'a>> {
    let own = program();
    let targets: Vec<(&str, &Path, Vec<&str>)> = if let Some(path) = &params.exec_target {
        vec![("given", Path::new(path), Vec::new())]
    } else {
        let found = ["/bin/true", "/usr/bin/true"].map(Path::new).into_iter().find(|p| p.is_file());
        let role = vec![WORKER_ARGUMENT, worker::NOTHING.name];
        let own_role = ("machmeter", own.as_path(), role);
        [own_role].into_iter().chain(found.map(|p| ("true", p, Vec::new()))).collect()
    };
    let mut rows = Vec::new();
    for (i, (name, path, arguments)) in targets.into_iter().enumerate() {
        for operation in ["spawn", "fork_exec"] {
            let tried = Program::new(path, &arguments)
                .map_err(|e| one_line(&e))
                .and_then(|program| usable(&program, left_ns).map(|()| program))
                .map_err(|why| format!("{}: {why}", path.display()));
            let row = made(operation, tried, |program| {
                plan(operation, "children that exited with 0", move || {
                    limited(if operation == "spawn" {
                        program.spawn_and_wait()
                    } else {
                        program.fork_exec_and_wait()
                    })
                })
            });
            let row = row.with("program", name);
            rows.push(if i == 0 && operation == "spawn" { row.first() } else { row });
        }
    }
    rows
}

fn usable(program: &Program, left_ns: u64) -> Result<(), String> {
    let limit_ns = LONGEST_NS.min(left_ns / 4);
    let took_ns = limited(program.try_once(limit_ns)).map_err(|e| one_line(&e))?;
    if took_ns.saturating_mul(FEWEST_STARTS) > left_ns {
        let (took, left) = (took_ns as f64 / 1e6, left_ns as f64 / 1e6);
        return Err(format!("one start takes {took:.1} ms, too long for the {left:.0} ms there are"));
    }
    Ok(())
}

/// Adds what limits the number of tasks to the system's "try again".
fn limited<T>(done: io::Result<T>) -> io::Result<T> {
    done.map_err(|e| match e.kind() {
        io::ErrorKind::WouldBlock => {
            let room = TaskRoom::now().map_or_else(String::new, |r| format!("; {}", r.limit));
            io::Error::new(e.kind(), format!("no more threads or processes: {e}{room}"))
        }
        _ => e,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLENTY_NS: u64 = 60_000_000_000;

    fn params(target: &str) -> Params {
        serde_json::from_str(&format!("{{\"exec_target\": \"{target}\"}}")).unwrap()
    }

    #[test]
    fn programs_that_cannot_be_priced_are_refused_with_the_cause() {
        let refused = |target: &str, left_ns: u64| -> Vec<String> {
            let rows = programs(&params(target), left_ns);
            assert_eq!(rows.len(), 2);
            rows.into_iter().filter_map(|p| p.bench.row.refused).collect()
        };
        for (target, why) in [
            ("/nowhere/at/all", "No such file"),
            ("/bin/false", "1 instead of 0"),
            ("/etc/passwd", "Permission"),
        ] {
            let said = refused(target, PLENTY_NS);
            assert!(
                said.len() == 2 && said.iter().all(|w| w.contains(why) && w.contains(target)),
                "{said:?}"
            );
        }
        assert!(refused("/bin/true", PLENTY_NS).is_empty());
        assert!(!refused("/bin/true", 1_000).is_empty(), "no time at all");
        // Reads from nothing, so that it ends at once.
        assert!(refused("/bin/cat", PLENTY_NS).is_empty());
    }

    #[test]
    fn the_limit_is_named_where_the_system_says_try_again() {
        let e = limited::<()>(Err(io::Error::from_raw_os_error(libc::EAGAIN))).unwrap_err();
        assert!(e.to_string().contains("no more threads or processes"));
        let e = limited::<()>(Err(io::Error::from_raw_os_error(libc::ENOENT))).unwrap_err();
        assert!(!e.to_string().contains("no more"));
    }
}
