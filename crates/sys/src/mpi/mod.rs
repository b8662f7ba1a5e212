//! MPI without its headers: the library is opened at run time, and three tables of constants stand for `mpi.h` (decision 31).
//!
//! [`Session`] starts MPI in this process, [`Comm`] has the calls. Every call checks ranks, tags and lengths, then makes one
//! indirect call; none allocates. Errors come back as one line: the library is told to return them.

/// A table of C functions of a library, found by name once.
macro_rules! functions {
    ($($field:ident $name:literal ($($argument:ty),*) -> $result:ty;)*) => {
        #[derive(Debug, Clone, Copy)]
        pub(super) struct Functions {
            $($field: unsafe extern "C" fn($($argument),*) -> $result,)*
        }

        impl Functions {
            /// Errors: [`Error::Symbol`] when the library lacks one: it is older than MPI 3.0.
            pub(super) fn of(library: &Opened) -> Result<Self, Error> {
                Ok(Self {
                    $($field: {
                        let address = library.symbol($name)?.as_ptr();
                        // SAFETY: the library defines this name as the C function of the MPI standard, or of OpenSHMEM 1.4.
                        unsafe {
                            std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($argument),*) -> $result>(address)
                        }
                    },)*
                })
            }
        }
    };
}

mod abi;
mod call;
pub mod clock;
pub mod launcher;
pub mod library;
pub mod shmem;

pub use abi::Flavor;
pub use call::{Comm, Element, Number, Operation, Request, Session, Window};
pub use launcher::{Launched, launched};
pub use library::{Installed, installed};

use std::path::PathBuf;

/// Why MPI cannot be used, or what a call did not take.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "no MPI library was found ({tried}): install one (Debian: apt-get install openmpi-bin) or name it with --lib PATH"
    )]
    NotFound { tried: String },
    #[error("{} cannot be opened: {reason}", path.display())]
    Unopened { path: PathBuf, reason: String },
    #[error("{} is no MPI library: it has no {symbol}", path.display())]
    Symbol { path: PathBuf, symbol: &'static str },
    #[error("{}: the ABI of \"{version}\" is not known; Open MPI, MPICH and its relatives, and MPI 5 ABI are", path.display())]
    UnknownAbi { path: PathBuf, version: String },
    #[error("this program is linked statically and can open no MPI library: use the one that `make` builds")]
    Static,
    #[error(
        "{version} says {said} rank(s), its launcher started {started}: the launcher of another MPI started this program; use {version}'s own mpirun, or name the launcher's library with --lib PATH"
    )]
    ForeignLauncher { version: String, said: usize, started: usize },
    #[error("{flavor} has no launcher in PATH or beside {}: install it, or start machmeter with it", library.display())]
    NoLauncher { flavor: &'static str, library: PathBuf },
    #[error("{function}: {text}")]
    Call { function: &'static str, text: String },
    #[error("MPI call: {0}")]
    Argument(String),
    #[error("memory for MPI calls: {0}")]
    Memory(#[from] std::io::Error),
}
