//! What is asked of the MPI library at run time: its functions, and which of three families it is of.

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::file::say;
use crate::system::{self, SymbolInfo};

/// Libraries that a program may have loaded where the global search does not see them (plug-ins, interpreters).
const NAMES: [&CStr; 8] = [
    c"libmpi.so.40",
    c"libmpi_mpifh.so.40",
    c"libmpi_usempif08.so.40",
    c"libmpi_abi.so.1",
    c"libmpi.so.12",
    c"libmpifort.so.12",
    c"libmpich.so.12",
    c"libmpichfort.so.12",
];

/// A function of the MPI library, found when it is first called.
pub(crate) struct Real(AtomicUsize);

impl Real {
    pub(crate) const fn new() -> Self {
        Self(AtomicUsize::new(0))
    }

    /// Its address. MPICH has no profiled names for `mpi_f08`, so that the plain name comes second. Both end in zero.
    #[inline(always)]
    pub(crate) fn get(&self, profiled: &'static str, plain: &'static str) -> usize {
        match self.0.load(Ordering::Relaxed) {
            0 => self.resolve(profiled, plain),
            address => address,
        }
    }

    #[cold]
    #[inline(never)]
    fn resolve(&self, profiled: &'static str, plain: &'static str) -> usize {
        let address = |name: &str| CStr::from_bytes_with_nul(name.as_bytes()).map_or(0, find);
        let found = [profiled, plain].into_iter().map(address).find(|f| *f != 0);
        let Some(found) = found else {
            say(&[b"no MPI library has ", profiled.trim_end_matches('\0').as_bytes()]);
            // The program cannot go on without the function.
            std::process::abort()
        };
        self.0.store(found, Ordering::Relaxed);
        found
    }
}

/// Address of a symbol behind this library, or in an MPI library that is loaded elsewhere; 0 if there is none.
fn find(name: &CStr) -> usize {
    // SAFETY: a name that ends in zero.
    let next = unsafe { system::dlsym(system::RTLD_NEXT, name.as_ptr()) } as usize;
    if next != 0 {
        return next;
    }
    let loaded = |library: &&CStr| {
        // SAFETY: a name that ends in zero; nothing is loaded.
        let handle = unsafe { system::dlopen(library.as_ptr(), system::RTLD_LAZY | system::RTLD_NOLOAD) };
        if handle.is_null() {
            return 0;
        }
        // SAFETY: an open handle, which stays open, and a name that ends in zero.
        unsafe { system::dlsym(handle, name.as_ptr()) as usize }
    };
    NAMES.iter().map(loaded).find(|f| *f != 0).unwrap_or(0)
}

/// Address of a variable, of which the program itself may hold the one that counts (copy relocation); 0 if there is none.
fn find_variable(name: &CStr) -> usize {
    // SAFETY: a name that ends in zero.
    match unsafe { system::dlsym(system::RTLD_DEFAULT, name.as_ptr()) } as usize {
        0 => find(name),
        address => address,
    }
}

/// Bits of a word that are a C handle: all where it is a pointer, 32 where it is an int.
pub(crate) static HANDLE_BITS: AtomicUsize = AtomicUsize::new(usize::MAX);

/// Words `MPI_IN_PLACE` can be: in C, and the address that Fortran passes.
pub(crate) static IN_PLACE: [AtomicUsize; 2] = [const { AtomicUsize::new(0) }; 2];

type Query = extern "C" fn(usize, *mut c_int) -> c_int;
type ToGroup = extern "C" fn(usize, *mut usize) -> c_int;
type FromFortran = extern "C" fn(c_int) -> usize;

/// Functions that are called to know handles; all have to be there.
macro_rules! functions {
    ($($field:ident $name:literal $kind:ty;)*) => {
        pub(crate) struct Functions {
            $(pub(crate) $field: $kind,)*
        }

        fn functions() -> Option<Functions> {
            Some(Functions {
                $($field: {
                    let address = Some(find($name)).filter(|f| *f != 0)?;
                    // SAFETY: the MPI standard gives the function of this name these arguments, words of which ints and handles use a part.
                    unsafe { std::mem::transmute::<usize, $kind>(address) }
                },)*
            })
        }
    };
}

functions! {
    comm_rank c"PMPI_Comm_rank" Query;
    comm_size c"PMPI_Comm_size" Query;
    comm_test_inter c"PMPI_Comm_test_inter" Query;
    comm_group c"PMPI_Comm_group" ToGroup;
    comm_remote_group c"PMPI_Comm_remote_group" ToGroup;
    group_size c"PMPI_Group_size" Query;
    group_translate_ranks c"PMPI_Group_translate_ranks"
        extern "C" fn(usize, c_int, *const c_int, usize, *mut c_int) -> c_int;
    group_free c"PMPI_Group_free" extern "C" fn(*mut usize) -> c_int;
    type_size c"PMPI_Type_size" Query;
    get_library_version c"PMPI_Get_library_version" extern "C" fn(*mut c_char, *mut c_int) -> c_int;
}

pub(crate) struct Library {
    pub(crate) call: Functions,
    /// C handles by [`Of`]; of libraries whose C handles are pointers.
    from_fortran: [Option<FromFortran>; 3],
    pub(crate) world: usize,
    pub(crate) no_communicator: usize,
    pub(crate) any_source: i32,
    pub(crate) proc_null: i32,
    pub(crate) version: Vec<u8>,
}

static LIBRARY: OnceLock<Option<Library>> = OnceLock::new();

/// The library, once it is initialized; `None` if it is of no family that is known.
pub(crate) fn library() -> Option<&'static Library> {
    LIBRARY.get_or_init(open).as_ref()
}

/// Kind of a handle.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Of {
    Communicator,
    Window,
    Datatype,
}

impl Library {
    /// The C handle of a Fortran handle. Where handles are ints, they are the same.
    pub(crate) fn c_handle(&self, of: Of, handle: u32) -> usize {
        let convert = self.from_fortran[of as usize];
        let handle = convert.map_or(handle as usize, |convert| convert(handle as c_int));
        handle & HANDLE_BITS.load(Ordering::Relaxed)
    }
}

fn from_fortran(name: &CStr) -> Option<FromFortran> {
    let address = find(name);
    // SAFETY: the MPI standard gives this function one int and a handle as its result; checked not to be 0.
    (address != 0).then(|| unsafe { std::mem::transmute::<usize, FromFortran>(address) })
}

fn file_of(address: usize) -> &'static [u8] {
    // SAFETY: all bytes 0 are a valid answer.
    let mut info: SymbolInfo = unsafe { std::mem::zeroed() };
    // SAFETY: any address may be asked for; the place for the answer lives through the call.
    let found = unsafe { system::dladdr(address as *const c_void, &raw mut info) };
    if found == 0 || info.file.is_null() {
        return b"";
    }
    // SAFETY: names of loaded files end in zero and live as long as these; MPI libraries are not unloaded.
    unsafe { CStr::from_ptr(info.file) }.to_bytes()
}

/// Constants of the three families: the headers of Open MPI and MPICH, and the ABI of MPI 5.0, chapter 20.
fn open() -> Option<Library> {
    let call = functions()?;
    // MPI_MAX_LIBRARY_VERSION_STRING is 256 in Open MPI, 8192 in MPICH and the ABI.
    let mut version = vec![0_u8; 8193];
    let mut length: c_int = 0;
    (call.get_library_version)(version.as_mut_ptr().cast(), &raw mut length);
    version.truncate((length.max(0) as usize).min(8192));
    let open_mpi = find_variable(c"ompi_mpi_comm_world");
    let contains = |text: &[u8], word: &[u8]| text.windows(word.len()).any(|w| w == word);
    let in_place = |c, fortran| {
        IN_PLACE[0].store(c, Ordering::Relaxed);
        IN_PLACE[1].store(fortran, Ordering::Relaxed);
    };
    let (world, no_communicator, any_source, proc_null) =
        if contains(file_of(call.comm_size as usize), b"libmpi_abi") {
            in_place(1, 0);
            (0x101, 0x100, -1, -3)
        } else if open_mpi != 0 {
            in_place(1, find_variable(c"mpi_fortran_in_place_"));
            (open_mpi, find_variable(c"ompi_mpi_comm_null"), -1, -2)
        } else if contains(&version, b"MPICH") || contains(&version, b"Intel(R) MPI") {
            HANDLE_BITS.store(u32::MAX as usize, Ordering::Relaxed);
            in_place(usize::MAX, mpich_in_place());
            (0x4400_0000, 0x0400_0000, -2, -1)
        } else {
            return None;
        };
    let from_fortran = [c"PMPI_Comm_f2c", c"PMPI_Win_f2c", c"PMPI_Type_f2c"].map(from_fortran);
    Some(Library { call, from_fortran, world, no_communicator, any_source, proc_null, version })
}

/// `mpif.h` of MPICH keeps the address in a variable, which `mpi_init_` sets.
fn mpich_in_place() -> usize {
    let variable = find_variable(c"MPIR_F_MPI_IN_PLACE") as *const usize;
    if variable.is_null() {
        return 0;
    }
    // SAFETY: a pointer variable of the library's Fortran part, set before anything is recorded.
    unsafe { *variable }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Communicators of the fake library, which are their own groups: this process is rank 2 of 4.
    pub(crate) const WORLD: usize = 1;
    /// Ranks 3 and 2.
    pub(crate) const PART: usize = 2;
    /// Its remote group is rank 0 and a process of another program.
    pub(crate) const INTER: usize = 3;
    /// Of which every question fails.
    pub(crate) const BROKEN: usize = 4;

    fn ranks(handle: usize) -> &'static [c_int] {
        [[0, 1, 2, 3].as_slice(), &[3, 2], &[0, -1], &[]][handle - 1]
    }

    fn answer(handle: usize, to: *mut c_int, value: c_int) -> c_int {
        // SAFETY: callers give the place of an answer.
        unsafe { *to = value };
        c_int::from(handle == BROKEN)
    }

    extern "C" fn rank(handle: usize, to: *mut c_int) -> c_int {
        answer(handle, to, if handle == PART { 1 } else { 2 })
    }

    extern "C" fn size(handle: usize, to: *mut c_int) -> c_int {
        answer(handle, to, ranks(handle).len() as c_int)
    }

    extern "C" fn is_inter(handle: usize, to: *mut c_int) -> c_int {
        answer(handle, to, c_int::from(handle == INTER))
    }

    extern "C" fn group(handle: usize, to: *mut usize) -> c_int {
        // SAFETY: callers give the place of an answer.
        unsafe { *to = handle };
        c_int::from(handle == BROKEN)
    }

    extern "C" fn translate(from: usize, n: c_int, own: *const c_int, _: usize, to: *mut c_int) -> c_int {
        // SAFETY: callers give `n` ranks.
        let own = unsafe { std::slice::from_raw_parts(own, n as usize) };
        // SAFETY: and room for as many.
        let to = unsafe { std::slice::from_raw_parts_mut(to, n as usize) };
        for (to, rank) in to.iter_mut().zip(own) {
            *to = ranks(from)[*rank as usize];
        }
        0
    }

    extern "C" fn free(_: *mut usize) -> c_int {
        0
    }

    extern "C" fn version(_: *mut c_char, _: *mut c_int) -> c_int {
        0
    }

    pub(crate) fn fake() -> Library {
        let call = Functions {
            comm_rank: rank,
            comm_size: size,
            comm_test_inter: is_inter,
            comm_group: group,
            comm_remote_group: group,
            group_size: size,
            group_translate_ranks: translate,
            group_free: free,
            type_size: size,
            get_library_version: version,
        };
        Library {
            call,
            from_fortran: [None; 3],
            world: WORLD,
            no_communicator: 0,
            any_source: -1,
            proc_null: -2,
            version: b"fake".to_vec(),
        }
    }

    #[test]
    fn symbols_are_found_behind_this_program_or_not_at_all() {
        assert_ne!(find(c"malloc"), 0);
        assert_eq!(find(c"PMPI_Init"), 0);
        assert!(file_of(find(c"malloc")).windows(4).any(|part| part == b"libc"));
    }
}
