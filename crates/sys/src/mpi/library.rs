//! Finding and opening the MPI library: the one named, else the launcher's, else the linker's.

use std::ffi::{CStr, CString, c_void};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::ptr::NonNull;

use super::abi::{Constants, Flavor, Functions};
use super::launcher::{self, Kind};
use super::{Error, Launched};
use crate::process::fork::fork_run;
use crate::thread::monotonic_ns;

/// Sonames: of Open MPI; of MPICH on Debian; of MPICH's common ABI; of the standard's ABI.
const SONAMES: [&str; 4] = ["libmpi.so.40", "libmpich.so.12", "libmpi.so.12", "libmpi_abi.so.1"];

/// Longest look at a library in a child, ns: opening one takes 0.1 s, from a cold disk a second.
const INSPECTION_LIMIT_NS: u64 = 10_000_000_000;

/// A library that stays open until this process ends: MPI must not be unmapped.
#[derive(Debug, Clone)]
pub(super) struct Opened {
    handle: NonNull<c_void>,
    path: PathBuf,
}

impl Opened {
    /// Opens `path`, or a soname along the linker's search. Errors: the linker's reason, [`Error::Static`].
    pub(super) fn open(path: &Path) -> Result<Self, Error> {
        if cfg!(target_feature = "crt-static") {
            return Err(Error::Static);
        }
        let unopened = |reason: String| Error::Unopened { path: path.to_owned(), reason };
        let name = CString::new(path.as_os_str().as_bytes()).map_err(|e| unopened(e.to_string()))?;
        // Open MPI's components look for the library's symbols among all.
        let flags = libc::RTLD_NOW | libc::RTLD_GLOBAL;
        // SAFETY: a terminated text; what the library's initializers do is theirs to answer for.
        let handle = unsafe { libc::dlopen(name.as_ptr(), flags) };
        let handle = NonNull::new(handle).ok_or_else(|| unopened(linker_error()))?;
        Ok(Self { handle, path: path.to_owned() })
    }

    /// Errors: [`Error::Symbol`].
    pub(super) fn symbol(&self, name: &'static CStr) -> Result<NonNull<c_void>, Error> {
        // SAFETY: an open handle and a terminated text.
        let address = unsafe { libc::dlsym(self.handle.as_ptr(), name.as_ptr()) };
        let symbol = name.to_str().unwrap_or_default();
        NonNull::new(address).ok_or_else(|| Error::Symbol { path: self.path.clone(), symbol })
    }

    /// The file that defines `name`, with links followed; the name it was opened by if the linker does not say.
    fn file(&self, name: &'static CStr) -> Result<PathBuf, Error> {
        let address = self.symbol(name)?;
        // SAFETY: all zero is a valid value: null pointers.
        let mut found: libc::Dl_info = unsafe { std::mem::zeroed() };
        // SAFETY: an address inside a loaded library, and room for the answer.
        let known = unsafe { libc::dladdr(address.as_ptr(), &raw mut found) };
        if known == 0 || found.dli_fname.is_null() {
            return Ok(self.path.clone());
        }
        // SAFETY: the linker's own terminated text, which lives as long as the library.
        let name = unsafe { CStr::from_ptr(found.dli_fname) };
        let path = PathBuf::from(std::ffi::OsStr::from_bytes(name.to_bytes()));
        Ok(path.canonicalize().unwrap_or(path))
    }
}

/// Why the last call of the linker failed.
fn linker_error() -> String {
    // SAFETY: takes nothing; what it returns is read before any other call of the linker.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return "no reason given".to_owned();
    }
    // SAFETY: a terminated text of the linker's.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// An open library with its table, ready to be called.
#[derive(Debug)]
pub(super) struct Library {
    pub(super) flavor: Flavor,
    pub(super) version: String,
    /// The file, links followed.
    pub(super) path: PathBuf,
    pub(super) constants: Constants,
    pub(super) functions: Functions,
}

impl Library {
    /// Opens the library named, else the launcher's, else the linker's.
    pub(super) fn find(lib: Option<&Path>, launched: Option<&Launched>) -> Result<Self, Error> {
        let candidates = candidates(lib, launched);
        for path in &candidates {
            match Self::open(path) {
                // A soname that the linker does not find is no error yet; a file that is there and broken is.
                Err(Error::Unopened { .. }) if lib.is_none() && !path.is_absolute() => {}
                other => return other,
            }
        }
        let tried: Vec<_> = candidates.iter().map(|c| c.display().to_string()).collect();
        Err(Error::NotFound { tried: tried.join(", ") })
    }

    fn open(path: &Path) -> Result<Self, Error> {
        let opened = Opened::open(path)?;
        let functions = Functions::of(&opened)?;
        let (version, path) = (functions.version(), opened.file(c"MPI_Get_library_version")?);
        let flavor = flavor(&path, opened.symbol(c"ompi_mpi_comm_world").is_ok(), &version)
            .ok_or_else(|| Error::UnknownAbi { path: path.clone(), version: version.clone() })?;
        Ok(Self { flavor, version, constants: Constants::of(flavor, &opened)?, functions, path })
    }
}

/// The standard's ABI is told by the file's name, which MPI 5.0 fixes; Open MPI by its objects; MPICH's relatives by what they call
/// themselves, since a library of another ABI would take our words for addresses.
fn flavor(path: &Path, has_objects: bool, version: &str) -> Option<Flavor> {
    let named = path.file_name().is_some_and(|n| n.as_bytes().starts_with(b"libmpi_abi."));
    let relative =
        || ["MPICH", "MVAPICH", "Intel", "CRAY", "ParaStation"].iter().any(|n| version.contains(n));
    match (named, has_objects) {
        (true, _) => Some(Flavor::Standard),
        (false, true) => Some(Flavor::OpenMpi),
        (false, false) => relative().then_some(Flavor::Mpich),
    }
}

/// Files and sonames to try, in order.
fn candidates(lib: Option<&Path>, launched: Option<&Launched>) -> Vec<PathBuf> {
    if let Some(lib) = lib {
        return vec![lib.to_owned()];
    }
    let names: &[&str] = match launched.map(|l| l.kind) {
        Some(Kind::OpenMpi) => &SONAMES[..1],
        Some(Kind::Hydra) => &SONAMES[1..],
        Some(Kind::Slurm) | None => &SONAMES,
    };
    let prefixes = launched.and_then(|_| launcher::parent_prefix()).into_iter().chain(launcher::prefixes());
    let beside = prefixes.flat_map(|p| ["lib", "lib64"].map(|l| p.join(l)));
    let files = beside.flat_map(|folder| names.iter().map(move |n| folder.join(n))).filter(|f| f.exists());
    files.chain(names.iter().map(PathBuf::from)).collect()
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Installed {
    pub flavor: Flavor,
    /// Name and number: `Open MPI 4.1.4`.
    pub version: String,
    /// The library's file, links followed.
    pub library: PathBuf,
    /// The `mpirun` that belongs to it.
    pub launcher: Option<PathBuf>,
}

/// The MPIs that a program started here would find, or the one named; each library once. They are opened in a child of this
/// process, since two in one process share names. Errors: why the library named cannot be used.
pub fn installed(lib: Option<&Path>) -> Result<Vec<Installed>, Error> {
    let mut all: Vec<Installed> = Vec::new();
    for path in candidates(lib, None) {
        match inspect(&path) {
            Ok(one) if all.iter().all(|other| other.library != one.library) => all.push(one),
            Err(e) if lib.is_some() || matches!(e, Error::Static) => return Err(e),
            _ => {}
        }
    }
    Ok(all)
}

impl Installed {
    /// The MPI named, else the first that has a launcher. Errors: of finding and opening; no launcher.
    pub fn find(lib: Option<&Path>) -> Result<Self, Error> {
        let all = installed(lib)?;
        let Some(first) = all.first() else {
            return Err(Error::NotFound { tried: SONAMES.join(", ") });
        };
        all.iter().find(|i| i.launcher.is_some()).cloned().ok_or_else(|| first.no_launcher())
    }

    pub(super) fn no_launcher(&self) -> Error {
        Error::NoLauncher { flavor: self.flavor.name(), library: self.library.clone() }
    }
}

/// Opens a library in a child and asks its version.
fn inspect(path: &Path) -> Result<Installed, Error> {
    if cfg!(target_feature = "crt-static") {
        return Err(Error::Static);
    }
    let (mut reader, writer) = std::io::pipe()?;
    let mut child = fork_run(&|| {
        let text = match Library::open(path) {
            Ok(l) => format!("{}\n{}\n{}", l.flavor.name(), l.version, l.path.display()),
            Err(Error::Unopened { reason, .. }) => format!("error\n{reason}\n"),
            Err(e) => format!("error\n{e}\n"),
        };
        // As much as a pipe takes at once, since nobody reads before the child's end.
        u8::from((&writer).write_all(&text.as_bytes()[..text.len().min(4_096)]).is_err())
    })?;
    drop(writer);
    let unopened = |reason: String| Error::Unopened { path: path.to_owned(), reason };
    let ended = child.wait_until(monotonic_ns() + INSPECTION_LIMIT_NS)?;
    let ended = ended.ok_or_else(|| unopened("opening it did not end within 10 s".to_owned()))?;
    drop(child);
    let mut text = String::new();
    reader.read_to_string(&mut text)?;
    let mut lines = text.lines();
    let (kind, version) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default().to_owned());
    let flavor = [Flavor::OpenMpi, Flavor::Mpich, Flavor::Standard].into_iter().find(|f| f.name() == kind);
    match (flavor, lines.next()) {
        (Some(flavor), Some(file)) => {
            let library = PathBuf::from(file);
            let launcher = launcher::of(flavor, &library);
            Ok(Installed { flavor, version, library, launcher })
        }
        (None, _) if kind == "error" => Err(unopened(version)),
        _ => Err(unopened(format!("the child that opened it {ended}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flavors_are_told_by_objects_names_and_versions() {
        let lib = |name: &str| PathBuf::from("/usr/lib").join(name);
        assert_eq!(flavor(&lib("libmpi.so.40.30.4"), true, "Open MPI 4.1.4"), Some(Flavor::OpenMpi));
        assert_eq!(flavor(&lib("libmpi.so.12"), false, "MPICH 5.0.2"), Some(Flavor::Mpich));
        assert_eq!(flavor(&lib("libmpi.so.12"), false, "Intel(R) MPI Library 2021.10"), Some(Flavor::Mpich));
        assert_eq!(flavor(&lib("libmpi_abi.so.1"), true, "Open MPI 6.0.0"), Some(Flavor::Standard));
        assert_eq!(flavor(&lib("libmpi.so"), false, "HPE MPT 2.30"), None);
    }

    #[test]
    fn a_library_that_is_none_is_told_in_one_line() {
        for (path, word) in [("/no/such/libmpi.so", "cannot open"), ("libm.so.6", "is no MPI library")] {
            let said = installed(Some(Path::new(path))).unwrap_err().to_string();
            assert!(said.contains(word) && said.contains(path) && !said.contains('\n'), "{said}");
        }
    }

    #[test]
    fn a_launcher_chooses_among_the_sonames() {
        let launched = |kind| Launched { kind, rank: 0, size: 2, local_rank: None, local_size: None };
        let last = |kind| candidates(None, Some(&launched(kind))).pop();
        assert_eq!(last(Kind::OpenMpi), Some(PathBuf::from("libmpi.so.40")));
        assert_eq!(last(Kind::Hydra), Some(PathBuf::from("libmpi_abi.so.1")));
        assert_eq!(candidates(Some(Path::new("/x")), Some(&launched(Kind::Slurm))), [PathBuf::from("/x")]);
    }
}
