//! Calls of MPI as safe functions over slices.
//!
//! A call checks ranks, tags and lengths of this rank's own memory; that ranks agree with each other is the caller's part, as in every
//! MPI program: MPI itself refuses messages longer than the memory they would go to.

mod collective;
mod point;
mod request;
mod window;

pub use request::Request;
pub use window::Window;

use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::path::Path;
use std::rc::Rc;

use super::Error;
use super::abi::{Constants, Functions};
use super::launcher::launched;
use super::library::Library;
use crate::process::die_with_parent;

/// Largest tag that every MPI takes (MPI 4.0, section 9.1.2).
const LARGEST_TAG: i32 = 32_767;

/// `MPI_THREAD_SINGLE` of all three ABIs.
const SINGLE: c_int = 0;

/// Room for a text of a rank: a host name (`HOST_NAME_MAX` of Linux). All versions of this program have to agree on it.
const TEXT_BYTES: usize = 64;

/// MPI of this process, shared by all that call it. Dropped last, it ends MPI.
#[derive(Debug)]
struct Core {
    library: Library,
    /// Whether [`Session::finish`] was called, and whether nothing was left in flight.
    finished: Cell<bool>,
    clean: Cell<bool>,
    /// What ends MPI in place of `MPI_Finalize` once `OpenSHMEM` was started: its end at exit would come too late.
    shmem_end: Cell<Option<unsafe extern "C" fn()>>,
    /// MPI is called by the thread that initialized it only.
    thread: std::marker::PhantomData<*const ()>,
}

impl Core {
    fn functions(&self) -> &Functions {
        &self.library.functions
    }

    fn constants(&self) -> &Constants {
        &self.library.constants
    }
}

impl Drop for Core {
    fn drop(&mut self) {
        if self.finished.get() && self.clean.get() {
            match self.shmem_end.get() {
                // SAFETY: OpenSHMEM and MPI are initialized, by this thread; no handle is left, for all hold this value.
                Some(end) => unsafe { end() },
                // SAFETY: as above, without OpenSHMEM; finalizing fails only for reasons that end the process anyway.
                None => drop(unsafe { self.functions().finalize() }),
            }
        } else {
            // Others would wait for this rank until somebody kills them.
            // SAFETY: the world is a live handle until MPI is finalized.
            let _ = unsafe { self.functions().abort(self.constants().world, 1) };
        }
    }
}

/// MPI in this process, started once. A session that is dropped without [`Self::finish`], by an error or a panic, aborts the
/// whole program with code 1, so that no rank waits for ever.
#[derive(Debug)]
pub struct Session {
    core: Rc<Core>,
    world: Comm,
}

impl Session {
    /// Opens the library (`lib`, else the launcher's, else the linker's) and starts MPI; the process then dies with
    /// the launcher's daemon. `will_have_threads`: this process starts some later, which call no MPI. Errors: nothing found;
    /// [`Error::ForeignLauncher`]; what MPI says.
    pub fn start(lib: Option<&Path>, will_have_threads: bool) -> Result<Self, Error> {
        let launched = launched();
        let library = Library::find(lib, launched.as_ref())?;
        if launched.is_some() {
            // Outlives nothing it could talk to; refused only where the parent is gone or hidden already.
            let parent = rustix::process::getppid().map_or(0, |p| p.as_raw_nonzero().get());
            let _ = die_with_parent(parent);
        }
        let (none, mut provided, mut already) = (std::ptr::null_mut::<c_void>(), 0, 0);
        // SAFETY: may be called at any time; room for the answer.
        unsafe { library.functions.initialized(&raw mut already) }?;
        if already != 0 {
            return Err(Error::Argument("MPI was started in this process before".to_owned()));
        }
        // As a program's own MPI_Init: Open MPI 4.1 takes locks at any other level, a fifth of its shortest calls.
        let is_alone = std::fs::read_dir("/proc/self/task").is_ok_and(|threads| threads.count() == 1);
        let level = if is_alone && !will_have_threads { SINGLE } else { library.constants.funneled };
        // SAFETY: called once, with no arguments (MPI 2.0 on), and room for the answer.
        unsafe { library.functions.init_thread(none, none, level, &raw mut provided) }?;
        let (finished, clean, shmem_end) = (Cell::new(false), Cell::new(true), Cell::new(None));
        let core = Rc::new(Core { library, finished, clean, shmem_end, thread: std::marker::PhantomData });
        let handle = core.constants().world;
        let world = Comm::of(&core, handle)?;
        let started = launched.map_or(world.size, |l| l.size);
        if world.size != started {
            // Each rank is a world of its own here: it ends by itself.
            core.finished.set(true);
            let (version, said) = (core.library.version.clone(), world.size);
            return Err(Error::ForeignLauncher { version, said, started });
        }
        Ok(Self { core, world })
    }

    pub fn world(&self) -> &Comm {
        &self.world
    }

    /// Name and number, as `Open MPI 4.1.4`.
    pub fn version(&self) -> &str {
        &self.core.library.version
    }

    pub fn library(&self) -> &Path {
        &self.core.library.path
    }

    /// This machine's name as MPI has it.
    pub fn processor_name(&self) -> Option<String> {
        self.core.functions().processor()
    }

    /// Ends MPI as soon as the last communicator, request and window is dropped; collective. Requests in flight and windows that
    /// were not freed make it an abort.
    pub fn finish(self) {
        self.core.finished.set(true);
    }

    /// `end` ends MPI with `OpenSHMEM`.
    pub(in crate::mpi) fn end_by(&self, end: unsafe extern "C" fn()) {
        self.core.shmem_end.set(Some(end));
    }
}

/// A communicator. Copies mean the same one; it lives until the end of MPI.
#[derive(Debug, Clone)]
pub struct Comm {
    core: Rc<Core>,
    handle: usize,
    rank: usize,
    size: usize,
}

impl Comm {
    fn of(core: &Rc<Core>, handle: usize) -> Result<Self, Error> {
        let (functions, (mut rank, mut size)) = (core.functions(), (0, 0));
        let returned = core.constants().errors_return;
        // SAFETY: a live communicator and the handler that returns errors.
        unsafe { functions.comm_set_errhandler(handle, returned) }?;
        // SAFETY: a live communicator and room for the answer.
        unsafe { functions.comm_rank(handle, &raw mut rank) }?;
        // SAFETY: as above.
        unsafe { functions.comm_size(handle, &raw mut size) }?;
        Ok(Self { core: Rc::clone(core), handle, rank: rank as usize, size: size as usize })
    }

    pub fn rank(&self) -> usize {
        self.rank
    }

    pub fn size(&self) -> usize {
        self.size
    }

    /// Ranks that take part together, in their order; `None` for the others. Collective.
    pub fn split(&self, takes_part: bool) -> Result<Option<Self>, Error> {
        let (mut new, color) = (0, if takes_part { 0 } else { self.core.constants().undefined });
        // SAFETY: a live communicator and room for a handle.
        unsafe { self.core.functions().comm_split(self.handle, color, 0, &raw mut new) }?;
        takes_part.then(|| Self::of(&self.core, new)).transpose()
    }

    /// A text of each rank, cut at 64 bytes. Collective; all get all.
    pub fn texts(&self, own: &str) -> Result<Vec<String>, Error> {
        let mut bytes = [0_u8; TEXT_BYTES];
        bytes.iter_mut().zip(own.bytes()).for_each(|(to, from)| *to = from);
        let mut all = vec![0; TEXT_BYTES * self.size];
        self.allgather(&bytes, &mut all)?;
        let text = |of: &[u8]| String::from_utf8_lossy(of).trim_end_matches('\0').to_owned();
        Ok(all.chunks(TEXT_BYTES).map(text).collect())
    }

    /// Whether all ranks run `program`, a name with its version; collective. Errors: what another rank runs.
    pub fn all_run(&self, program: &str) -> Result<(), String> {
        let all = self.texts(program).map_err(|e| e.to_string())?;
        let other = all.iter().position(|text| *text != all[0]);
        other.map_or(Ok(()), |rank| {
            let [other, first] = [&all[rank], &all[0]];
            Err(format!("rank {rank} is {other}, rank 0 {first}: start one version on all machines"))
        })
    }

    /// Whether all ranks give the same number of bytes, of `what`; collective.
    pub(in crate::mpi) fn even(&self, bytes: usize, what: &str) -> Result<(), Error> {
        let mut sizes = [bytes as i64, -(bytes as i64)];
        self.allreduce_in_place(&mut sizes, Operation::Min)?;
        let [least, most] = [sizes[0], -sizes[1]];
        if least == most {
            Ok(())
        } else {
            Err(Error::Argument(format!("{what} of {least} to {most} bytes")))
        }
    }

    /// `rank` as MPI takes it.
    #[inline]
    pub(in crate::mpi) fn peer(&self, rank: usize) -> Result<c_int, Error> {
        if rank < self.size { Ok(rank as c_int) } else { Err(self.no_rank(rank)) }
    }

    #[cold]
    fn no_rank(&self, rank: usize) -> Error {
        Error::Argument(format!("rank {rank} of {}", self.size))
    }
}

/// A tag as MPI takes it.
#[inline]
fn tagged(tag: i32) -> Result<c_int, Error> {
    let valid = (0..=LARGEST_TAG).contains(&tag);
    if valid { Ok(tag) } else { Err(Error::Argument(format!("tag {tag}: 0 to {LARGEST_TAG} are"))) }
}

/// A number of elements as MPI takes it.
#[inline]
fn count(len: usize) -> Result<c_int, Error> {
    c_int::try_from(len)
        .map_err(|_| Error::Argument(format!("{len} elements: at most {} go in one call", c_int::MAX)))
}

/// Whether two lengths agree.
#[inline]
fn same(len: usize, wanted: usize) -> Result<(), Error> {
    if len == wanted { Ok(()) } else { Err(Error::Argument(format!("{len} elements where {wanted} belong"))) }
}

pub trait Element: Copy + sealed::Kind {}
/// Elements that can be added up and compared.
pub trait Number: Element {}

impl<T: Copy + sealed::Kind> Element for T {}
impl Number for i64 {}
impl Number for f64 {}

mod sealed {
    use super::Constants;

    /// Which datatype an element is.
    #[allow(private_interfaces, reason = "the trait cannot be named outside")]
    pub trait Kind {
        const OF: fn(&Constants) -> usize;
    }

    #[allow(private_interfaces, reason = "as above")]
    impl Kind for u8 {
        const OF: fn(&Constants) -> usize = |c| c.byte;
    }

    #[allow(private_interfaces, reason = "as above")]
    impl Kind for i64 {
        const OF: fn(&Constants) -> usize = |c| c.int64;
    }

    #[allow(private_interfaces, reason = "as above")]
    impl Kind for f64 {
        const OF: fn(&Constants) -> usize = |c| c.double;
    }
}

/// What a reduction does with two values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    Sum,
    Min,
    Max,
}

impl Operation {
    fn handle(self, constants: &Constants) -> usize {
        match self {
            Self::Sum => constants.sum,
            Self::Min => constants.min,
            Self::Max => constants.max,
        }
    }
}
