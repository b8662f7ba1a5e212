//! Making threads and processes that do nothing, and waiting for them. What each of them leaves behind (a word it wrote,
//! an exit code) is looked at, so that a call that made nothing never passes for a quick one.

use std::ffi::CString;
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::thread::futex;

use super::{checked, expect};
use crate::pages::{Backing, Pages};
use crate::process::fork::SignalsBlocked;

/// Exit code of children that do nothing: one that no accident gives.
const DONE: libc::c_int = 42;
/// Exit code of a child that could not become the program.
const NOT_EXECUTED: libc::c_int = 127;
/// Stack of bare threads and of children that share our memory, bytes.
const STACK_BYTES: usize = 64 << 10;

extern "C" fn thread_body(argument: *mut libc::c_void) -> *mut libc::c_void {
    // SAFETY: the starter passes a live atomic and joins this thread before it ends.
    let word = unsafe { &*argument.cast::<AtomicU32>() };
    word.fetch_add(1, Ordering::Relaxed);
    argument
}

/// Attributes of POSIX threads: the size of their stack.
pub struct Threads {
    attributes: libc::pthread_attr_t,
}

impl Threads {
    /// Threads with stacks of `stack_bytes` (mapped, not touched). The GNU C library keeps stacks of ended threads for new
    /// ones up to 40 MiB in all, so that larger ones are always fresh.
    pub fn with_stack(stack_bytes: usize) -> io::Result<Self> {
        // SAFETY: an opaque structure of integers that the next call initializes.
        let mut attributes: libc::pthread_attr_t = unsafe { std::mem::zeroed() };
        // SAFETY: a live structure.
        checked(unsafe { libc::pthread_attr_init(&raw mut attributes) })?;
        let mut threads = Self { attributes };
        // SAFETY: initialized just now.
        checked(unsafe { libc::pthread_attr_setstacksize(&raw mut threads.attributes, stack_bytes) })?;
        Ok(threads)
    }

    /// `pthread_create` of a thread that adds one to a word, and `pthread_join`.
    #[inline]
    pub fn create_and_join(&self) -> io::Result<()> {
        let word = AtomicU32::new(0);
        let argument = word.as_ptr().cast::<libc::c_void>();
        // SAFETY: an opaque handle that the next call fills in.
        let mut thread: libc::pthread_t = unsafe { std::mem::zeroed() };
        // SAFETY: live attributes; the body only touches `word`, which lives until the thread is joined below.
        checked(unsafe {
            libc::pthread_create(&raw mut thread, &raw const self.attributes, thread_body, argument)
        })?;
        let mut returned = null_mut();
        // SAFETY: a thread that was started and is joined once.
        checked(unsafe { libc::pthread_join(thread, &raw mut returned) })?;
        expect("work of the thread", i64::from(word.load(Ordering::Relaxed)), 1)
    }
}

impl Drop for Threads {
    fn drop(&mut self) {
        // SAFETY: initialized in `with_stack`, and destroyed once.
        unsafe { libc::pthread_attr_destroy(&raw mut self.attributes) };
    }
}

extern "C" fn bare_body(argument: *mut libc::c_void) -> libc::c_int {
    // SAFETY: a live atomic; nothing here uses thread-local storage, which is shared with the starter.
    let word = unsafe { &*argument.cast::<AtomicU32>() };
    word.fetch_add(1, Ordering::Relaxed);
    0
}

extern "C" fn child_body(_: *mut libc::c_void) -> libc::c_int {
    DONE
}

/// A stack on which tasks made by `clone(2)` run, one at a time.
#[derive(Debug)]
pub struct Bare {
    stack: Pages,
}

impl Bare {
    /// With a stack that has been touched.
    pub fn new() -> io::Result<Self> {
        let stack = Pages::new(STACK_BYTES, Backing::Small)?;
        stack.extent().atomics().iter().for_each(|w| w.store(0, Ordering::Relaxed));
        Ok(Self { stack })
    }

    fn top(&self) -> *mut libc::c_void {
        // SAFETY: one past the end of the mapping; stacks grow downward from there. Page-aligned.
        unsafe { self.stack.extent().address().add(self.stack.bytes()) }.cast()
    }

    /// A thread as the kernel knows it, without the C library's part (no thread-local storage, no stack of its own to map):
    /// `clone`, and waiting for its end on the word that the kernel clears.
    pub fn clone_and_wait(&mut self) -> io::Result<()> {
        let word = AtomicU32::new(0);
        let alive = AtomicU32::new(1);
        let flags = libc::CLONE_VM
            | libc::CLONE_FS
            | libc::CLONE_FILES
            | libc::CLONE_SIGHAND
            | libc::CLONE_THREAD
            | libc::CLONE_SYSVSEM
            | libc::CLONE_CHILD_CLEARTID;
        // Signals sent to the process would run handlers in the bare thread, on our thread-local storage.
        let blocked = SignalsBlocked::new()?;
        let none = null_mut::<libc::c_void>();
        // SAFETY: the stack is live and used by nobody else (`&mut self`); both words live until the kernel has cleared
        // `alive`, which is waited for below; the body touches one atomic only.
        let rc = unsafe {
            libc::clone(bare_body, self.top(), flags, word.as_ptr().cast(), none, none, alive.as_ptr())
        };
        let started = if rc < 0 { Err(io::Error::last_os_error()) } else { Ok(()) };
        if started.is_ok() {
            while alive.load(Ordering::Acquire) != 0 {
                // The kernel wakes by a futex that is not private.
                let _ = futex::wait(&alive, futex::Flags::empty(), 1, None);
            }
        }
        drop(blocked);
        started?;
        expect("work of the thread", i64::from(word.load(Ordering::Relaxed)), 1)
    }

    /// A process that shares our memory until it ends (what `vfork` does), `_exit` and `waitpid`.
    /// Errors: the system's error, or the exit code of a child that ended otherwise.
    pub fn vfork_and_wait(&mut self) -> io::Result<()> {
        let blocked = SignalsBlocked::new()?;
        let flags = libc::CLONE_VM | libc::CLONE_VFORK | libc::SIGCHLD;
        // SAFETY: the child has its own stack and only returns a code, while the kernel suspends this thread.
        let child = unsafe { libc::clone(child_body, self.top(), flags, null_mut()) };
        let started = if child < 0 { Err(io::Error::last_os_error()) } else { Ok(child) };
        drop(blocked);
        wait_for(started?, DONE)
    }
}

/// `fork`, `_exit` in the child, `waitpid`.
pub fn fork_and_wait() -> io::Result<()> {
    match fork()? {
        // SAFETY: ends the child at once and runs nothing of it.
        None => unsafe { libc::_exit(DONE) },
        Some(child) => wait_for(child, DONE),
    }
}

/// The child's number; `None` in the child, which makes system calls only.
#[inline]
fn fork() -> io::Result<Option<libc::pid_t>> {
    // SAFETY: both callers' children make system calls only.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        child => Ok((child != 0).then_some(child)),
    }
}

fn wait_for(child: libc::pid_t, expected: libc::c_int) -> io::Result<()> {
    let mut status = 0;
    loop {
        // SAFETY: a live status.
        let rc = unsafe { libc::waitpid(child, &raw mut status, 0) };
        if rc == child {
            return as_expected(status, expected);
        }
        let e = io::Error::last_os_error();
        if e.kind() != io::ErrorKind::Interrupted {
            return Err(e);
        }
    }
}

fn as_expected(status: libc::c_int, expected: libc::c_int) -> io::Result<()> {
    if libc::WIFEXITED(status) {
        expect("exit code of the child", i64::from(libc::WEXITSTATUS(status)), i64::from(expected))
    } else {
        Err(io::Error::other(format!("the child was ended by signal {}", libc::WTERMSIG(status))))
    }
}

/// A program that ends with exit code 0 by itself, without input; its output is thrown away.
#[derive(Debug)]
pub struct Program {
    path: CString,
    // Points into `_arguments` and the environment's copies; null at the end.
    argument_pointers: Vec<*mut libc::c_char>,
    environment_pointers: Vec<*mut libc::c_char>,
    _arguments: Vec<CString>,
    _environment: Vec<CString>,
    nothing: File,
}

impl Program {
    /// The program at `path`, with this process's environment. Errors: a zero byte in a text; no /dev/null.
    pub fn new(path: &Path, arguments: &[&str]) -> io::Result<Self> {
        use std::os::unix::ffi::OsStrExt;
        let path = super::file::c_path(path)?;
        let mut owned = vec![path.clone()];
        for a in arguments {
            owned.push(CString::new(*a)?);
        }
        let mut environment = Vec::new();
        for (name, value) in std::env::vars_os() {
            environment.push(CString::new([name.as_bytes(), b"=", value.as_bytes()].concat())?);
        }
        let pointers = |texts: &[CString]| -> Vec<*mut libc::c_char> {
            texts.iter().map(|t| t.as_ptr().cast_mut()).chain([null_mut()]).collect()
        };
        Ok(Self {
            path,
            argument_pointers: pointers(&owned),
            environment_pointers: pointers(&environment),
            _arguments: owned,
            _environment: environment,
            nothing: File::options().read(true).write(true).open("/dev/null")?,
        })
    }

    /// `posix_spawn` and `waitpid`. Errors: the system's; the exit code if it is not 0.
    pub fn spawn_and_wait(&self) -> io::Result<()> {
        wait_for(self.spawn()?, 0)
    }

    fn spawn(&self) -> io::Result<libc::pid_t> {
        let actions = FileActions::all_to(&self.nothing)?;
        let mut child = 0;
        // SAFETY: all pointers lead to live, null-terminated strings and arrays owned by `self`.
        checked(unsafe {
            libc::posix_spawn(
                &raw mut child,
                self.path.as_ptr(),
                &raw const actions.0,
                null(),
                self.argument_pointers.as_ptr(),
                self.environment_pointers.as_ptr(),
            )
        })?;
        Ok(child)
    }

    /// `fork`, `execve` in the child, `waitpid`.
    /// Errors: as [`Self::spawn_and_wait`]; a program that could not be executed has exit code 127.
    pub fn fork_exec_and_wait(&self) -> io::Result<()> {
        match fork()? {
            None => self.become_it(),
            Some(child) => wait_for(child, 0),
        }
    }

    fn become_it(&self) -> ! {
        let nothing = self.nothing.as_raw_fd();
        for fd in 0..3 {
            // SAFETY: integers only.
            unsafe { libc::dup2(nothing, fd) };
        }
        let (arguments, environment) = (self.argument_pointers.as_ptr(), self.environment_pointers.as_ptr());
        // SAFETY: live, null-terminated strings and arrays.
        unsafe { libc::execve(self.path.as_ptr(), arguments.cast(), environment.cast()) };
        // SAFETY: ends this process at once and runs nothing of it.
        unsafe { libc::_exit(NOT_EXECUTED) }
    }
}

struct FileActions(libc::posix_spawn_file_actions_t);

impl FileActions {
    /// Descriptors 0 to 2 of the child become `file`.
    fn all_to(file: &File) -> io::Result<Self> {
        // SAFETY: an opaque structure that the next call initializes.
        let mut actions: libc::posix_spawn_file_actions_t = unsafe { std::mem::zeroed() };
        // SAFETY: a live structure.
        checked(unsafe { libc::posix_spawn_file_actions_init(&raw mut actions) })?;
        let mut actions = Self(actions);
        for fd in 0..3 {
            // SAFETY: initialized above.
            checked(unsafe {
                libc::posix_spawn_file_actions_adddup2(&raw mut actions.0, file.as_raw_fd(), fd)
            })?;
        }
        Ok(actions)
    }
}

impl Drop for FileActions {
    fn drop(&mut self) {
        // SAFETY: initialized in `all_to`, and destroyed once.
        unsafe { libc::posix_spawn_file_actions_destroy(&raw mut self.0) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_and_children_do_their_work_many_times() {
        let (cached, fresh) =
            (Threads::with_stack(256 << 10).unwrap(), Threads::with_stack(64 << 20).unwrap());
        let mut bare = Bare::new().unwrap();
        for _ in 0..50 {
            cached.create_and_join().unwrap();
            fresh.create_and_join().unwrap();
            bare.clone_and_wait().unwrap();
            bare.vfork_and_wait().unwrap();
            fork_and_wait().unwrap();
        }
        assert!(Threads::with_stack(1).is_err());
    }

    #[test]
    fn programs_end_with_0_or_there_is_an_error() {
        if crate::testing::is_emulated() {
            return;
        }
        let program = |path: &str, arguments: &[&str]| Program::new(Path::new(path), arguments).unwrap();
        let good = program("/bin/sh", &["-c", "read x; test -z \"$x\" && echo unseen"]);
        good.spawn_and_wait().unwrap();
        good.fork_exec_and_wait().unwrap();
        let absent = program("/nowhere/at/all", &[]);
        assert_eq!(absent.spawn_and_wait().unwrap_err().kind(), io::ErrorKind::NotFound);
        assert!(absent.fork_exec_and_wait().unwrap_err().to_string().contains("127 instead of 0"));
        let failing = program("/bin/sh", &["-c", "exit 3"]);
        for e in [failing.spawn_and_wait(), failing.fork_exec_and_wait()] {
            assert!(e.unwrap_err().to_string().contains("3 instead of 0"));
        }
        let killed = program("/bin/sh", &["-c", "kill -9 $$"]);
        assert!(killed.spawn_and_wait().unwrap_err().to_string().contains("signal 9"));
    }
}
