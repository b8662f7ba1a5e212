//! What a compiled program takes from `mpi.h`: three tables of constants, and the functions by name.
//!
//! Handles are machine words: addresses in Open MPI, 32-bit integers in MPICH and its relatives, small numbers in the standard's own ABI.
//! The calling conventions of x86-64 and `AArch64` pass all three alike. Sources: `mpi.h` of Open MPI 4.1 and 5.0, `mpi.h` of MPICH
//! 4.0 and 5.0, MPI 5.0 chapter 20.

use std::ffi::{CStr, c_char, c_int, c_void};

use super::Error;
use super::library::Opened;

/// Which table fits a library.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flavor {
    OpenMpi,
    /// MPICH and what keeps its ABI: Intel MPI, MVAPICH, Cray MPICH.
    Mpich,
    /// The ABI of MPI 5.0.
    Standard,
}

impl Flavor {
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenMpi => "Open MPI",
            Self::Mpich => "MPICH",
            Self::Standard => "MPI 5 ABI",
        }
    }
}

/// `MPI_MAX_LIBRARY_VERSION_STRING` of MPICH and of the standard's ABI, the largest of all texts.
pub(super) const TEXT_BYTES: usize = 8_192;

/// Handles and numbers of `mpi.h` that calls need, in a row each: of Open MPI, where handles are addresses of objects, of MPICH and of the
/// standard's ABI.
macro_rules! constants {
    (handles { $($handle:ident $object:literal $of_mpich:literal $of_standard:literal;)* }
     numbers { $($number:ident: $kind:ty = $open:expr, $mpich:expr, $standard:expr;)* }) => {
        #[derive(Debug, Clone, Copy)]
        pub(super) struct Constants {
            $(pub(super) $handle: usize,)*
            $(pub(super) $number: $kind,)*
        }

        impl Constants {
            /// Errors: [`Error::Symbol`] when an Open MPI lacks one of its objects.
            pub(super) fn of(flavor: Flavor, library: &Opened) -> Result<Self, Error> {
                let address = |name| library.symbol(name).map(|p| p.as_ptr().addr());
                Ok(match flavor {
                    Flavor::OpenMpi => Self { $($handle: address($object)?,)* $($number: $open,)* },
                    Flavor::Mpich => Self { $($handle: $of_mpich,)* $($number: $mpich,)* },
                    Flavor::Standard => Self { $($handle: $of_standard,)* $($number: $standard,)* },
                })
            }
        }
    };
}

constants! {
    handles {
        world         c"ompi_mpi_comm_world"    0x4400_0000 0x101;
        byte          c"ompi_mpi_byte"          0x4c00_010d 0x247;
        int64         c"ompi_mpi_int64_t"       0x4c00_083a 0x258;
        double        c"ompi_mpi_double"        0x4c00_080b 0x214;
        sum           c"ompi_mpi_op_sum"        0x5800_0003 0x21;
        min           c"ompi_mpi_op_min"        0x5800_0002 0x22;
        max           c"ompi_mpi_op_max"        0x5800_0001 0x23;
        info_null     c"ompi_mpi_info_null"     0x1c00_0000 0x130;
        errors_return c"ompi_mpi_errors_return" 0x5400_0001 0x143;
    }
    numbers {
        in_place: usize = 1, usize::MAX, 1;
        status_ignore: usize = 0, 1, 0;
        undefined: c_int = -32_766, -32_766, -32_766;
        funneled: c_int = 1, 1, 1_024;
    }
}

type Data = *const c_void;
type Memory = *mut c_void;
type Handle = usize;

/// The functions, and a method for each: one indirect call and a look at its code.
macro_rules! calls {
    ($($field:ident $name:literal ($($argument:ident: $kind:ty),*);)*) => {
        functions! { $($field $name ($($kind),*) -> c_int;)* }

        impl Functions {
            $(
                /// # Safety
                /// Handles are live ones of this library; memory is valid for what the MPI standard says of this function.
                #[inline]
                #[allow(clippy::too_many_arguments, reason = "as many as the MPI standard has")]
                #[allow(dead_code, reason = "texts are read through the table: their failure has no text")]
                pub(super) unsafe fn $field(&self, $($argument: $kind),*) -> Result<(), Error> {
                    // SAFETY: as the caller promises.
                    let code = unsafe { (self.$field)($($argument),*) };
                    if code == 0 { Ok(()) } else { Err(self.failed($name, code)) }
                }
            )*
        }
    };
}

calls! {
    library_version c"MPI_Get_library_version" (text: *mut c_char, length: *mut c_int);
    processor_name c"MPI_Get_processor_name" (text: *mut c_char, length: *mut c_int);
    error_string c"MPI_Error_string" (code: c_int, text: *mut c_char, length: *mut c_int);
    initialized c"MPI_Initialized" (flag: *mut c_int);
    init_thread c"MPI_Init_thread" (argc: Memory, argv: Memory, required: c_int, provided: *mut c_int);
    finalize c"MPI_Finalize" ();
    abort c"MPI_Abort" (comm: Handle, code: c_int);
    comm_rank c"MPI_Comm_rank" (comm: Handle, rank: *mut c_int);
    comm_size c"MPI_Comm_size" (comm: Handle, size: *mut c_int);
    comm_set_errhandler c"MPI_Comm_set_errhandler" (comm: Handle, handler: Handle);
    comm_split c"MPI_Comm_split" (comm: Handle, color: c_int, key: c_int, new: *mut Handle);
    send c"MPI_Send" (data: Data, count: c_int, kind: Handle, to: c_int, tag: c_int, comm: Handle);
    ssend c"MPI_Ssend" (data: Data, count: c_int, kind: Handle, to: c_int, tag: c_int, comm: Handle);
    rsend c"MPI_Rsend" (data: Data, count: c_int, kind: Handle, to: c_int, tag: c_int, comm: Handle);
    recv c"MPI_Recv" (into: Memory, count: c_int, kind: Handle, from: c_int, tag: c_int, comm: Handle, status: Memory);
    sendrecv c"MPI_Sendrecv" (data: Data, count: c_int, kind: Handle, to: c_int, tag: c_int,
        into: Memory, into_count: c_int, into_kind: Handle, from: c_int, from_tag: c_int, comm: Handle, status: Memory);
    iprobe c"MPI_Iprobe" (from: c_int, tag: c_int, comm: Handle, flag: *mut c_int, status: Memory);
    isend c"MPI_Isend" (data: Data, count: c_int, kind: Handle, to: c_int, tag: c_int, comm: Handle, request: *mut Handle);
    irecv c"MPI_Irecv" (into: Memory, count: c_int, kind: Handle, from: c_int, tag: c_int, comm: Handle,
        request: *mut Handle);
    wait c"MPI_Wait" (request: *mut Handle, status: Memory);
    barrier c"MPI_Barrier" (comm: Handle);
    bcast c"MPI_Bcast" (data: Memory, count: c_int, kind: Handle, root: c_int, comm: Handle);
    gather c"MPI_Gather" (data: Data, count: c_int, kind: Handle, into: Memory, into_count: c_int, into_kind: Handle,
        root: c_int, comm: Handle);
    allgather c"MPI_Allgather" (data: Data, count: c_int, kind: Handle, into: Memory, into_count: c_int,
        into_kind: Handle, comm: Handle);
    scatter c"MPI_Scatter" (data: Data, count: c_int, kind: Handle, into: Memory, into_count: c_int, into_kind: Handle,
        root: c_int, comm: Handle);
    alltoall c"MPI_Alltoall" (data: Data, count: c_int, kind: Handle, into: Memory, into_count: c_int,
        into_kind: Handle, comm: Handle);
    reduce c"MPI_Reduce" (data: Data, into: Memory, count: c_int, kind: Handle, op: Handle, root: c_int, comm: Handle);
    allreduce c"MPI_Allreduce" (data: Data, into: Memory, count: c_int, kind: Handle, op: Handle, comm: Handle);
    reduce_scatter_block c"MPI_Reduce_scatter_block" (data: Data, into: Memory, count: c_int, kind: Handle, op: Handle,
        comm: Handle);
    scan c"MPI_Scan" (data: Data, into: Memory, count: c_int, kind: Handle, op: Handle, comm: Handle);
    ibcast c"MPI_Ibcast" (data: Memory, count: c_int, kind: Handle, root: c_int, comm: Handle, request: *mut Handle);
    iallreduce c"MPI_Iallreduce" (data: Data, into: Memory, count: c_int, kind: Handle, op: Handle, comm: Handle,
        request: *mut Handle);
    ialltoall c"MPI_Ialltoall" (data: Data, count: c_int, kind: Handle, into: Memory, into_count: c_int,
        into_kind: Handle, comm: Handle, request: *mut Handle);
    win_allocate c"MPI_Win_allocate" (bytes: isize, unit: c_int, info: Handle, comm: Handle, base: Memory,
        window: *mut Handle);
    win_set_errhandler c"MPI_Win_set_errhandler" (window: Handle, handler: Handle);
    win_lock_all c"MPI_Win_lock_all" (assertion: c_int, window: Handle);
    win_unlock_all c"MPI_Win_unlock_all" (window: Handle);
    win_sync c"MPI_Win_sync" (window: Handle);
    win_flush c"MPI_Win_flush" (rank: c_int, window: Handle);
    win_free c"MPI_Win_free" (window: *mut Handle);
    put c"MPI_Put" (data: Data, count: c_int, kind: Handle, to: c_int, at: isize, there_count: c_int,
        there_kind: Handle, window: Handle);
    get c"MPI_Get" (into: Memory, count: c_int, kind: Handle, from: c_int, at: isize, there_count: c_int,
        there_kind: Handle, window: Handle);
    fetch_and_op c"MPI_Fetch_and_op" (value: Data, result: Memory, kind: Handle, to: c_int, at: isize, op: Handle,
        window: Handle);
}

impl Functions {
    /// The library's text on `code`, one line, with the function's name.
    #[cold]
    fn failed(&self, name: &'static CStr, code: c_int) -> Error {
        let text = read_text(|text, length| {
            // SAFETY: room for the longest text of any MPI; the function takes every code.
            unsafe { (self.error_string)(code, text, length) }
        });
        // MPICH writes a stack of lines, the cause last.
        let cause = text.as_deref().and_then(|t| t.lines().rfind(|l| !l.trim().is_empty()));
        let text = cause.map_or_else(|| format!("error {code}"), |l| l.trim().to_owned());
        Error::Call { function: name.to_str().unwrap_or("MPI"), text }
    }

    /// Name and number, as `Open MPI 4.1.4`.
    pub(super) fn version(&self) -> String {
        let all = read_text(|text, length| {
            // SAFETY: room for the longest text of any MPI; the function may be called at any time.
            unsafe { (self.library_version)(text, length) }
        });
        short_version(all.as_deref().unwrap_or_default())
    }

    /// The name of this machine as MPI has it.
    pub(super) fn processor(&self) -> Option<String> {
        read_text(|text, length| {
            // SAFETY: room for the longest text of any MPI; MPI is initialized.
            unsafe { (self.processor_name)(text, length) }
        })
    }
}

/// What a function wrote as text; `None` when it failed.
fn read_text(write: impl FnOnce(*mut c_char, *mut c_int) -> c_int) -> Option<String> {
    let (mut text, mut length) = (vec![0_u8; TEXT_BYTES + 1], 0);
    let code = write(text.as_mut_ptr().cast(), &raw mut length);
    let said = CStr::from_bytes_until_nul(&text).ok()?.to_string_lossy();
    (code == 0).then(|| said.into_owned())
}

/// Name and number of a version text: `Open MPI 4.1.4` from `Open MPI v4.1.4, package: ...`, `MPICH 4.0.2` from `MPICH Version:\t4.0.2`.
fn short_version(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    let line = line.split(',').next().unwrap_or_default();
    let words = line.split_ascii_whitespace().map(|w| w.trim_end_matches(':')).filter(|w| *w != "Version");
    let number = |w: &str| {
        w.strip_prefix('v').filter(|n| n.starts_with(|c: char| c.is_ascii_digit())).map(str::to_owned)
    };
    words.map(|w| number(w).unwrap_or_else(|| w.to_owned())).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_name_and_number() {
        assert_eq!(short_version("Open MPI v4.1.4, package: Debian OpenMPI, ident: 4.1.4"), "Open MPI 4.1.4");
        assert_eq!(short_version("MPICH Version:\t4.0.2\nMPICH Release date:\tThu Apr  7"), "MPICH 4.0.2");
        assert_eq!(short_version("MPICH Version:      5.0.2\nMPICH Release date:"), "MPICH 5.0.2");
        assert_eq!(
            short_version("Intel(R) MPI Library 2021.10 for Linux* OS\n"),
            "Intel(R) MPI Library 2021.10 for Linux* OS"
        );
        assert_eq!(short_version(""), "");
    }
}
