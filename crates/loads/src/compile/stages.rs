//! The processes of a build: one for a unit, below it one for each stage with pipes between them; one for a link.
//!
//! A process says on its stdout, in one line, why it failed; nothing if it did not.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::Path;

use machmeter_engine::worker::Worker;
use machmeter_sys::process::{Child, Spawn};

use super::text;

/// The role of all of them; the first argument tells which.
pub(crate) const BUILDER: Worker = Worker { name: "load-compile", run: be_a_step };

/// No stage takes nearly as long on the slowest machine; who waits longer waits for ever.
const STAGE_WITHIN_NS: u64 = 60_000_000_000;

/// A worker of this role for one step, in `directory`, with the numbers `numbers`.
pub(super) fn step<'fd>(step: &str, directory: &Path, numbers: &[usize]) -> Spawn<'fd> {
    let spawn = Spawn::worker(BUILDER.name).die_with_parent().piped().arg(step).arg(directory);
    numbers.iter().fold(spawn, |spawn, n| spawn.arg(n.to_string()))
}

/// Object file of the `turn`th unit that is built.
fn object_name(turn: usize) -> String {
    format!("o{turn:09}")
}

/// List of the files that the `turn`th unit that is built read.
fn dependencies_name(turn: usize) -> String {
    format!("d{turn:09}")
}

/// Exit code of a stage whose reader is gone: not the cause of a failure.
const NOBODY_READS: u8 = 3;

/// What links write.
const IMAGE_NAME: &str = "image";

fn be_a_step(arguments: &[OsString]) -> u8 {
    match run(arguments) {
        Ok(()) => 0,
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => NOBODY_READS,
        Err(e) => {
            // Nobody may listen any more.
            let _ = writeln!(io::stdout(), "{}", e.to_string().replace('\n', " "));
            1
        }
    }
}

fn run(arguments: &[OsString]) -> io::Result<()> {
    let wrong = || io::Error::new(io::ErrorKind::InvalidInput, "wrong arguments of a build");
    let (step, rest) = arguments.split_first().ok_or_else(wrong)?;
    let (directory, rest) = rest.split_first().ok_or_else(wrong)?;
    let directory = Path::new(directory);
    let numbers: Option<Vec<usize>> = rest.iter().map(|a| a.to_str()?.parse().ok()).collect();
    match (step.to_str(), &numbers.ok_or_else(wrong)?[..]) {
        (Some("unit"), [unit, turn]) => build(directory, *unit, *turn),
        (Some("gather"), [unit, turn, to]) => gather_stage(directory, *unit, *turn, *to),
        (Some("transform"), [from, to]) => transform_stage(*from, *to),
        (Some("seal"), [turn, from]) => seal_stage(directory, *turn, *from),
        (Some("link"), turns) => link_step(directory, turns),
        _ => Err(wrong()),
    }
}

fn number_of(fd: BorrowedFd<'_>) -> usize {
    // A descriptor that is open is not negative.
    usize::try_from(fd.as_raw_fd()).unwrap_or_default()
}

/// The descriptor that was passed under this number. Opened anew, which works for pipes as for files (proc(5)).
fn passed(number: usize, to_write: bool) -> io::Result<File> {
    File::options().read(!to_write).write(to_write).open(format!("/proc/self/fd/{number}"))
}

/// gather | transform | seal
fn build(directory: &Path, unit: usize, turn: usize) -> io::Result<()> {
    let (text_out, text_in) = io::pipe()?;
    let (code_out, code_in) = io::pipe()?;
    let to = number_of(text_in.as_fd());
    let first = step("gather", directory, &[unit, turn, to]).pass_fd(text_in.as_fd()).start()?;
    drop(text_in);
    let ends = [number_of(text_out.as_fd()), number_of(code_in.as_fd())];
    let second =
        step("transform", directory, &ends).pass_fd(text_out.as_fd()).pass_fd(code_in.as_fd()).start()?;
    drop((text_out, code_in));
    let from = number_of(code_out.as_fd());
    let third = step("seal", directory, &[turn, from]).pass_fd(code_out.as_fd()).start()?;
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

/// Waits for a process of this role to end.
fn end_of(mut child: Child) -> io::Result<()> {
    let said = child.read_line(STAGE_WITHIN_NS).map_err(io::Error::other)?;
    let status = child.wait(STAGE_WITHIN_NS);
    match (said, status) {
        (Some(why), _) => Err(io::Error::other(why)),
        (None, Some(status)) if status.success() => Ok(()),
        (None, Some(status)) if status.code() == Some(NOBODY_READS.into()) => {
            Err(io::ErrorKind::BrokenPipe.into())
        }
        (None, Some(status)) => Err(io::Error::other(format!("a stage ended with {status}"))),
        (None, None) => Err(io::Error::other("a stage does not end")),
    }
}

fn gather_stage(directory: &Path, unit: usize, turn: usize, to: usize) -> io::Result<()> {
    let mut to = BufWriter::with_capacity(1 << 16, passed(to, true)?);
    let files = text::gather(directory, &text::unit_name(unit), &mut to)?;
    to.flush()?;
    put(directory, &dependencies_name(turn), files.join("\n").as_bytes())
}

fn transform_stage(from: usize, to: usize) -> io::Result<()> {
    let mut text = String::new();
    passed(from, false)?.read_to_string(&mut text)?;
    passed(to, true)?.write_all(text::transform(text).as_bytes())
}

fn seal_stage(directory: &Path, turn: usize, from: usize) -> io::Result<()> {
    let mut bytes = Vec::new();
    passed(from, false)?.read_to_end(&mut bytes)?;
    put(directory, &object_name(turn), &text::seal(bytes))
}

/// Reads the objects of `turns` and writes the image; then the objects go. Looks at all files they were made of, as a
/// build tool does to see what has changed.
fn link_step(directory: &Path, turns: &[usize]) -> io::Result<()> {
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
