//! The processes of a build, for a unit, its stages, a link. Each replies once to one step; none starts a thread.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};

use machmeter_engine::role::{self, Role};
use machmeter_engine::worker::Worker;
use machmeter_sys::process::Spawn;
use machmeter_sys::thread::monotonic_ns;
use serde::{Deserialize, Serialize};

use super::text;

pub(crate) const BUILDER: Worker = Worker { name: "load-compile", run: be_a_step };

/// No stage takes nearly as long on the slowest machine; who waits longer waits for ever.
const STAGE_WITHIN_NS: u64 = 60_000_000_000;

/// What a process is asked for. Descriptors are passed under their numbers.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(super) enum Step {
    Unit { directory: PathBuf, unit: usize, turn: usize },
    Gather { directory: PathBuf, unit: usize, turn: usize, to: i32 },
    Transform { from: i32, to: i32 },
    Seal { directory: PathBuf, turn: usize, from: i32 },
    Link { directory: PathBuf, turns: Vec<usize> },
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) enum End {
    Done,
    /// The reader of its output is gone: not the cause of a failure.
    NobodyReads,
    Failed(String),
}

/// Starts the process of a step, which gets no other request. `passed` stay open in it.
pub(super) fn start(step: &Step, passed: &[BorrowedFd<'_>]) -> io::Result<Role<Step, End>> {
    let spawn = Spawn::worker(BUILDER.name).die_with_parent();
    let mut role = Role::start(passed.iter().fold(spawn, |spawn, fd| spawn.pass_fd(*fd)))?;
    role.send(step).map_err(|e| io::Error::other(format!("a process of the build {e}")))?;
    // It ends after its reply, and with it what it has inherited.
    role.close();
    Ok(role)
}

/// Object file of the `turn`th unit that is built.
fn object_name(turn: usize) -> String {
    format!("o{turn:09}")
}

/// List of the files that the `turn`th unit that is built read.
fn dependencies_name(turn: usize) -> String {
    format!("d{turn:09}")
}

const IMAGE_NAME: &str = "image";

fn be_a_step(_: &[OsString]) -> u8 {
    role::answer(|step| match run(step) {
        Ok(()) => End::Done,
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => End::NobodyReads,
        Err(e) => End::Failed(e.to_string().replace('\n', " ")),
    })
}

fn run(step: Step) -> io::Result<()> {
    match step {
        Step::Unit { directory, unit, turn } => build(directory, unit, turn),
        Step::Gather { directory, unit, turn, to } => {
            let mut to = BufWriter::with_capacity(1 << 16, passed(to, true)?);
            let mut files = Vec::new();
            text::gather(&directory, &text::unit_name(unit), &mut files, &mut to)?;
            to.flush()?;
            put(&directory, &dependencies_name(turn), files.join("\n").as_bytes())
        }
        Step::Transform { from, to } => {
            let mut text = String::new();
            passed(from, false)?.read_to_string(&mut text)?;
            passed(to, true)?.write_all(text::transform(text).as_bytes())
        }
        Step::Seal { directory, turn, from } => {
            let mut bytes = Vec::new();
            passed(from, false)?.read_to_end(&mut bytes)?;
            put(&directory, &object_name(turn), &text::seal(bytes))
        }
        Step::Link { directory, turns } => link(&directory, &turns),
    }
}

/// The descriptor that was passed under this number. Opened anew, which works for pipes as for files (proc(5)).
fn passed(number: i32, to_write: bool) -> io::Result<File> {
    File::options().read(!to_write).write(to_write).open(format!("/proc/self/fd/{number}"))
}

fn build(directory: PathBuf, unit: usize, turn: usize) -> io::Result<()> {
    let (text_out, text_in) = io::pipe()?;
    let (code_out, code_in) = io::pipe()?;
    let step = Step::Gather { directory: directory.clone(), unit, turn, to: text_in.as_raw_fd() };
    let first = start(&step, &[text_in.as_fd()])?;
    drop(text_in);
    let step = Step::Transform { from: text_out.as_raw_fd(), to: code_in.as_raw_fd() };
    let second = start(&step, &[text_out.as_fd(), code_in.as_fd()])?;
    drop((text_out, code_in));
    let third = start(&Step::Seal { directory, turn, from: code_out.as_raw_fd() }, &[code_out.as_fd()])?;
    drop(code_out);
    // The last one first: it ends last, and so nobody is asked in vain.
    let ended = [third, second, first].map(end_of);
    let mut failures: Vec<io::Error> = ended.into_iter().filter_map(Result::err).collect();
    // A stage that fails makes those before it write to nobody, and those behind it read half a text.
    failures.sort_by_key(|e| e.kind() == io::ErrorKind::BrokenPipe);
    failures.into_iter().next().map_or(Ok(()), Err)
}

/// Removes what the `turn`th unit that is built may have left: nobody shall take for an object what was made of half a text.
pub(super) fn discard(directory: &Path, turn: usize) {
    // What it did not come to is not there.
    let _ = fs::remove_file(directory.join(object_name(turn)));
    let _ = fs::remove_file(directory.join(dependencies_name(turn)));
}

fn end_of(mut stage: Role<Step, End>) -> io::Result<()> {
    let end = stage.receive(monotonic_ns() + STAGE_WITHIN_NS);
    if end.is_ok() && stage.peer_mut().wait(STAGE_WITHIN_NS).is_none() {
        return Err(io::Error::other("a stage does not end"));
    }
    match end {
        Ok(End::Done) => Ok(()),
        Ok(End::NobodyReads) => Err(io::ErrorKind::BrokenPipe.into()),
        Ok(End::Failed(why)) => Err(io::Error::other(why)),
        Err(e) => Err(io::Error::other(format!("a stage {e}"))),
    }
}

/// Links the objects of `turns`; then they go. Looks at all files they were made of, as a build tool does.
fn link(directory: &Path, turns: &[usize]) -> io::Result<()> {
    let mut image = Vec::new();
    for turn in turns {
        let dependencies = read(directory, &dependencies_name(*turn))?;
        for file in String::from_utf8_lossy(&dependencies).lines() {
            fs::metadata(directory.join(file)).map_err(|e| named(directory, file, &e))?;
        }
        let name = object_name(*turn);
        let bytes = read(directory, &name)?;
        let damaged = |why: &str| named(directory, &name, &io::Error::other(why));
        image.extend(text::open(&bytes).map_err(damaged)?);
    }
    put(directory, IMAGE_NAME, &text::seal(image))?;
    for turn in turns {
        fs::remove_file(directory.join(object_name(*turn)))?;
        fs::remove_file(directory.join(dependencies_name(*turn)))?;
    }
    Ok(())
}

fn named(directory: &Path, name: &str, e: &io::Error) -> io::Error {
    io::Error::new(e.kind(), format!("{}: {e}", directory.join(name).display()))
}

fn read(directory: &Path, name: &str) -> io::Result<Vec<u8>> {
    fs::read(directory.join(name)).map_err(|e| named(directory, name, &e))
}

/// Writes a file under another name first, so that no half of it is ever seen.
fn put(directory: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    // Two links may be at work at once.
    let half = directory.join(format!("{name}.{}", std::process::id()));
    let put = fs::write(&half, bytes).and_then(|()| fs::rename(&half, directory.join(name)));
    put.map_err(|e| {
        let _ = fs::remove_file(&half);
        named(directory, name, &e)
    })
}
