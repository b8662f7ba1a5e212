//! `OpenSHMEM` as Open MPI has it: its functions take plain types, so that it needs no table.

use std::ffi::{CString, c_int, c_void};
use std::path::PathBuf;
use std::ptr::NonNull;

use super::library::Opened;
use super::{Comm, Error, Session};
use crate::fs_root::FsRoot;

const SONAME: &str = "liboshmem.so.40";
/// `SHMEM_CMP_EQ` of Open MPI's `shmem.h`.
const CMP_EQ: c_int = 0;

functions! {
    init c"shmem_init" () -> ();
    finalize c"shmem_finalize" () -> ();
    malloc c"shmem_malloc" (usize) -> *mut c_void;
    putmem c"shmem_putmem" (*mut c_void, *const c_void, usize, c_int) -> ();
    getmem c"shmem_getmem" (*mut c_void, *const c_void, usize, c_int) -> ();
    fetch_add c"shmem_long_atomic_fetch_add" (*mut i64, i64, c_int) -> i64;
    quiet c"shmem_quiet" () -> ();
    barrier_all c"shmem_barrier_all" () -> ();
    set_lock c"shmem_set_lock" (*mut i64) -> ();
    clear_lock c"shmem_clear_lock" (*mut i64) -> ();
    test_lock c"shmem_test_lock" (*mut i64) -> c_int;
    wait_until c"shmem_long_wait_until" (*mut i64, c_int, i64) -> ();
}

unsafe extern "C" {
    /// End of the program's own data, from the linker. Open MPI shares all writable memory below the first `_end` that the loader
    /// finds. Were it a library's, heaps and stacks would be among it, and ranks crash that have different numbers of them.
    static _end: u8;
}

/// `OpenSHMEM` beside MPI, with one symmetric memory, zero at first. Both end with the session.
#[derive(Debug)]
pub struct Shmem {
    functions: Functions,
    heap: NonNull<u8>,
    bytes: usize,
    /// Keeps MPI from ending.
    world: Comm,
}

impl Shmem {
    /// Starts `OpenSHMEM` with `bytes` of symmetric memory on every rank; collective, once in a process. Errors:
    /// not installed; too little symmetric memory (`SHMEM_SYMMETRIC_SIZE`); uneven sizes.
    pub fn start(session: &Session, bytes: usize) -> Result<Self, Error> {
        let file = session.library().with_file_name(SONAME);
        let file = if file.exists() { file } else { PathBuf::from(SONAME) };
        let library = Opened::open(&file)?;
        if !exports_end() {
            let why = "this program does not export _end, which OpenSHMEM needs";
            return Err(Error::Argument(why.to_owned()));
        }
        let functions = Functions::of(&library)?;
        let world = session.world().clone();
        world.even(bytes, "a symmetric memory")?;
        // SAFETY: MPI is initialized, by this thread.
        unsafe { (functions.init)() };
        session.end_by(functions.finalize);
        keep_component_mapped();
        // SAFETY: OpenSHMEM is initialized; all ranks ask for the same.
        let heap = NonNull::new(unsafe { (functions.malloc)(bytes) }.cast::<u8>()).ok_or_else(|| {
            Error::Argument(format!("no {bytes} bytes of symmetric memory: set SHMEM_SYMMETRIC_SIZE"))
        })?;
        // SAFETY: as many bytes as were asked for; others get at them only after the barrier.
        unsafe { heap.write_bytes(0, bytes) };
        let shmem = Self { functions, heap, bytes, world };
        shmem.barrier_all();
        Ok(shmem)
    }

    /// Writes `data` to `at` in the memory of rank `to`; returns when `data` may be changed.
    #[inline]
    pub fn put(&self, at: usize, data: &[u8], to: usize) -> Result<(), Error> {
        let (there, to) = (self.span(at, data.len())?, self.world.peer(to)?);
        // SAFETY: `span` lies in the symmetric memory, as large on every rank; `data` is read before it returns.
        unsafe { (self.functions.putmem)(there.as_ptr().cast(), data.as_ptr().cast(), data.len(), to) };
        Ok(())
    }

    /// Reads what is at `at` in the memory of rank `from`.
    #[inline]
    pub fn get(&self, into: &mut [u8], at: usize, from: usize) -> Result<(), Error> {
        let (there, from) = (self.span(at, into.len())?, self.world.peer(from)?);
        // SAFETY: `span` lies in the symmetric memory, as large on every rank; `into` is written before it returns.
        unsafe { (self.functions.getmem)(into.as_mut_ptr().cast(), there.as_ptr().cast(), into.len(), from) };
        Ok(())
    }

    /// Adds to the number at `at` of rank `to` and returns what was there.
    #[inline]
    pub fn fetch_add(&self, at: usize, value: i64, to: usize) -> Result<i64, Error> {
        let (word, to) = (self.word(at)?, self.world.peer(to)?);
        // SAFETY: an aligned number in the symmetric memory.
        Ok(unsafe { (self.functions.fetch_add)(word, value, to) })
    }

    /// Waits until all puts are visible where they went.
    #[inline]
    pub fn quiet(&self) {
        // SAFETY: OpenSHMEM is initialized.
        unsafe { (self.functions.quiet)() };
    }

    #[inline]
    pub fn barrier_all(&self) {
        // SAFETY: OpenSHMEM is initialized.
        unsafe { (self.functions.barrier_all)() };
    }

    /// Takes the lock at `at` (zero when free, the same on every rank), and waits for it.
    #[inline]
    pub fn set_lock(&self, at: usize) -> Result<(), Error> {
        let word = self.word(at)?;
        // SAFETY: an aligned number in the symmetric memory.
        unsafe { (self.functions.set_lock)(word) };
        Ok(())
    }

    /// Gives back a lock that this rank has.
    #[inline]
    pub fn clear_lock(&self, at: usize) -> Result<(), Error> {
        let word = self.word(at)?;
        // SAFETY: as in `set_lock`.
        unsafe { (self.functions.clear_lock)(word) };
        Ok(())
    }

    /// Takes the lock if it is free; says whether it did.
    #[inline]
    pub fn test_lock(&self, at: usize) -> Result<bool, Error> {
        let word = self.word(at)?;
        // SAFETY: as in `set_lock`.
        Ok(unsafe { (self.functions.test_lock)(word) } == 0)
    }

    /// Waits until the number at `at` of this rank is `value`.
    #[inline]
    pub fn wait_until(&self, at: usize, value: i64) -> Result<(), Error> {
        let word = self.word(at)?;
        // SAFETY: as in `set_lock`.
        unsafe { (self.functions.wait_until)(word, CMP_EQ, value) };
        Ok(())
    }

    /// The number at `at` of this rank.
    pub fn local_word(&self, at: usize) -> Result<i64, Error> {
        let word = self.word(at)?;
        // SAFETY: an aligned number in the symmetric memory, which others may write at any time.
        Ok(unsafe { word.read_volatile() })
    }

    #[inline]
    fn span(&self, at: usize, bytes: usize) -> Result<NonNull<u8>, Error> {
        if at.checked_add(bytes).is_some_and(|end| end <= self.bytes) {
            // SAFETY: `at` lies in the memory.
            return Ok(unsafe { self.heap.add(at) });
        }
        Err(Error::Argument(format!("{bytes} bytes at {at} of a symmetric memory of {}", self.bytes)))
    }

    #[inline]
    fn word(&self, at: usize) -> Result<*mut i64, Error> {
        let word = self.span(at, size_of::<i64>())?.cast::<i64>().as_ptr();
        let unaligned = || Error::Argument(format!("a number at {at}: multiples of 8 are"));
        if word.is_aligned() { Ok(word) } else { Err(unaligned()) }
    }
}

/// Whether the loader finds the program's own `_end` first.
fn exports_end() -> bool {
    // SAFETY: a terminated text.
    let found = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"_end".as_ptr()) };
    found.addr() == (&raw const _end).addr()
}

/// Open MPI 4.1 unmaps a component at its end that it calls afterwards (signal 11); held once more it stays.
fn keep_component_mapped() {
    let maps = FsRoot::host().read("proc/self/maps").unwrap_or_default();
    let is_component = |l: &&str| l.rsplit('/').next().is_some_and(|n| n.starts_with("mca_spml_"));
    let path = maps.lines().find(is_component).and_then(|l| l.find('/').map(|at| &l[at..]));
    let Some(path) = path.and_then(|p| CString::new(p).ok()) else { return };
    let flags = libc::RTLD_LAZY | libc::RTLD_NOLOAD | libc::RTLD_NODELETE;
    // SAFETY: a terminated text; what is mapped already is found again, and nothing else.
    unsafe { libc::dlopen(path.as_ptr(), flags) };
}
