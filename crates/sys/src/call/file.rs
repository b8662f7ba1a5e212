//! Calls on files, and a private directory in which they can be made; it is removed however the program ends, SIGKILL
//! excepted, and what that leaves is removed by the next.

use std::ffi::{CStr, CString};
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::process::{Resource, getrlimit};

use super::{expect, number, zero};
use crate::abandoned::{self, CALLS};
use crate::guard::Guard;

/// A directory of our own, entered by nobody else.
#[derive(Debug)]
pub struct PrivateDirectory {
    path: PathBuf,
    _removal: Guard,
    _lock: File,
}

impl PrivateDirectory {
    /// Makes one in `parent`, and removes those that killed runs of this user left there.
    /// Errors: the system's error: not there, not writable, read-only, out of space or inodes.
    pub fn create(parent: &Path) -> io::Result<Self> {
        abandoned::sweep(parent, CALLS);
        let path = abandoned::choose(parent, CALLS);
        let removed = path.clone();
        let removal = Guard::new("files to time calls on", move || drop(fs::remove_dir_all(removed)));
        let lock = abandoned::create(&path)?;
        Ok(Self { path, _removal: removal, _lock: lock })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

/// A new file in `directory` of `bytes` that are not all the same, in the page cache.
/// Errors: the system's error, a full disk for one; a limit on file sizes that is smaller (`ulimit -f`).
pub fn new_file(directory: &Path, name: &str, bytes: u64) -> io::Result<File> {
    // Beyond the limit the kernel would end the program by SIGXFSZ (setrlimit(2)).
    if let Some(limit) = getrlimit(Resource::Fsize).current.filter(|limit| *limit < bytes) {
        let said = format!("a file of {bytes} bytes is over the limit of {limit} bytes a file (ulimit -f)");
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, said));
    }
    let path = directory.join(name);
    let file = File::options().read(true).write(true).create_new(true).mode(0o600).open(path)?;
    // In small writes, so that the page cache keeps small pages: one fault maps all of a large one (large folios).
    let mut contents = [0_u8; 4_096];
    for begin in (0..bytes).step_by(contents.len()) {
        for (i, byte) in (begin..).zip(&mut contents) {
            *byte = (i.wrapping_mul(0x9e37_79b9) >> 13) as u8;
        }
        let part = contents.len().min((bytes - begin) as usize);
        file.write_all_at(&contents[..part], begin)?;
    }
    Ok(file)
}

pub fn c_path(path: &Path) -> io::Result<CString> {
    Ok(CString::new(path.as_os_str().as_bytes())?)
}

/// `stat`; fails if the file has another size than `bytes`.
#[inline]
pub fn stat(path: &CStr, bytes: u64) -> io::Result<()> {
    // SAFETY: integers, for which all zeros are valid.
    let mut file: libc::stat = unsafe { std::mem::zeroed() };
    // SAFETY: a path that ends with NUL, and a live, writable structure.
    zero(unsafe { libc::stat(path.as_ptr(), &raw mut file) })?;
    expect("size of the file", file.st_size, bytes as i64)
}

/// `open` for reading, and `close`.
#[inline]
pub fn open_and_close(path: &CStr) -> io::Result<()> {
    // SAFETY: a path that ends with NUL.
    let fd = unsafe { libc::open(path.as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC) };
    number(fd.into())?;
    // SAFETY: just opened, and known to nothing else.
    zero(unsafe { libc::close(fd) })
}

/// `open` of a file that must not exist, `close`, `unlink`.
#[inline]
pub fn create_and_unlink(path: &CStr) -> io::Result<()> {
    let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL | libc::O_CLOEXEC;
    // SAFETY: a path that ends with NUL, and the mode that a new file needs.
    let fd = unsafe { libc::open(path.as_ptr(), flags, libc::c_uint::from(libc::S_IRUSR | libc::S_IWUSR)) };
    number(fd.into())?;
    // SAFETY: just opened, and known to nothing else.
    zero(unsafe { libc::close(fd) })?;
    // SAFETY: as the path above.
    zero(unsafe { libc::unlink(path.as_ptr()) })
}

/// `lseek` to `offset_bytes` from the start.
#[inline]
pub fn seek(file: &File, offset_bytes: u64) -> io::Result<()> {
    // SAFETY: takes no memory.
    let reached = unsafe { libc::lseek(file.as_raw_fd(), offset_bytes as libc::off_t, libc::SEEK_SET) };
    number(reached)?;
    expect("offset", reached, offset_bytes as i64)
}

/// `pread` of all of `into`.
#[inline]
pub fn read_at(file: &File, into: &mut [u8], offset_bytes: u64) -> io::Result<()> {
    let offset = offset_bytes as libc::off_t;
    // SAFETY: the buffer is live and writable for its length.
    let n = unsafe { libc::pread(file.as_raw_fd(), into.as_mut_ptr().cast(), into.len(), offset) };
    expect("bytes read", number(n as libc::c_long)? as i64, into.len() as i64)
}

/// `pwrite` of all of `bytes`.
#[inline]
pub fn write_at(file: &File, bytes: &[u8], offset_bytes: u64) -> io::Result<()> {
    let offset = offset_bytes as libc::off_t;
    // SAFETY: the bytes are live for their length.
    let n = unsafe { libc::pwrite(file.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), offset) };
    expect("bytes written", number(n as libc::c_long)? as i64, bytes.len() as i64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn files_live_in_a_private_place_that_goes() {
        let parent = tempfile::tempdir().unwrap();
        // Process ids end far below this number.
        let left = parent.path().join(format!("{CALLS}999999999-00"));
        let other = parent.path().join("other");
        fs::create_dir(&left).unwrap();
        fs::create_dir(&other).unwrap();
        let place = PrivateDirectory::create(parent.path()).unwrap();
        assert!(!left.exists() && other.exists());
        assert_eq!(fs::metadata(place.path()).unwrap().permissions().mode() & 0o777, 0o700);
        assert!(!abandoned::is_unlocked(place.path()), "from another process namespace it looks abandoned");
        let file = new_file(place.path(), "data", 10_000).unwrap();
        let path = c_path(&place.path().join("data")).unwrap();
        stat(&path, 10_000).unwrap();
        assert!(stat(&path, 1).unwrap_err().to_string().contains("10000 instead of 1"));
        open_and_close(&path).unwrap();
        assert_eq!(create_and_unlink(&path).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        create_and_unlink(&c_path(&place.path().join("new")).unwrap()).unwrap();
        seek(&file, 5_000).unwrap();
        write_at(&file, b"abc", 9_000).unwrap();
        let mut read = [0_u8; 3];
        read_at(&file, &mut read, 9_000).unwrap();
        assert_eq!(&read, b"abc");
        assert!(read_at(&file, &mut read, 9_999).unwrap_err().to_string().contains("1 instead of 3"));
        drop(place);
        assert_eq!(fs::read_dir(parent.path()).unwrap().count(), 1);
    }

    #[test]
    fn places_that_take_no_files_say_why() {
        let absent = PrivateDirectory::create(Path::new("/nowhere/at/all")).unwrap_err();
        assert_eq!(absent.kind(), io::ErrorKind::NotFound);
        assert!(PrivateDirectory::create(Path::new("/proc")).is_err());
    }
}
