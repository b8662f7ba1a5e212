//! Replaces a file in one step, so that a crash or a full disk never leaves a part of it.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::iter;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::fs::{Access, AtFlags};

use crate::error::{Result, StoreError};

static SEQUENCE: AtomicU64 = AtomicU64::new(0);

/// Most links that are followed in a row, as in the kernel.
const MAX_LINKS: usize = 40;

/// Writes `path` through `fill`, so that a reader finds the old file or the whole new one, never a part.
///
/// The bytes go to a file beside `path`, are forced to disk, and are renamed over it. A symbolic link is followed if only this user can have made it
/// (`beyond`); else the link itself is replaced. A replaced file keeps its owner and rights. A device or pipe (`/dev/stdout`) is written directly, because a
/// file must not replace it.
/// Errors: the error of the system; the file beside `path` is then removed, and `path` itself is unchanged.
pub fn replace<T>(path: &Path, fill: impl FnOnce(&mut BufWriter<File>) -> io::Result<T>) -> Result<T> {
    let mut target = path.to_owned();
    for next in iter::successors(beyond(path), |p| beyond(p)).take(MAX_LINKS) {
        target = next;
    }
    let direct = match fs::symlink_metadata(&target) {
        Ok(m) if m.is_dir() => return Err(StoreError::new(path, "cannot write: it is a folder")),
        // Links to unnamed pipes (`/proc/self/fd/1`) do not lead to a path.
        Ok(m) if m.is_symlink() => fs::metadata(&target).is_ok_and(|m| m.file_type().is_fifo()),
        Ok(m) => !m.is_file(),
        Err(_) => false,
    };
    let refused = |e: io::Error| StoreError::io(path, "write", &e);
    if direct {
        let file = OpenOptions::new().write(true).open(&target).map_err(refused)?;
        return filled(file, fill).map(|(value, _)| value).map_err(refused);
    }
    let temporary = name_beside(&target);
    let write = || {
        let file = File::create_new(&temporary)?;
        inherit(&file, &target)?;
        let (value, file) = filled(file, fill)?;
        file.sync_all()?;
        fs::rename(&temporary, &target)?;
        Ok(value)
    };
    let written = write();
    if written.is_err() {
        // The file may not exist; only the first error is reported.
        let _ = fs::remove_file(&temporary);
    } else if let Ok(folder) = File::open(folder_of(&target)) {
        // Makes the rename durable. Some file systems refuse to sync a folder; the content of the file is safe by then.
        let _ = folder.sync_all();
    }
    written.map_err(refused)
}

/// Replaces `path` by `content`.
/// Errors: as [`replace`].
pub fn write(path: &Path, content: &(impl AsRef<[u8]> + ?Sized)) -> Result<()> {
    replace(path, |out| out.write_all(content.as_ref()))
}

/// Checks whether [`replace`] could write `path` now; creates nothing.
///
/// Errors: `path` names a folder or nothing, or its folder does not exist or is not writable for this user.
pub fn could_replace(path: &Path) -> Result<()> {
    let refused = |e: io::Error| StoreError::io(path, "write", &e);
    let may = |path: &Path, access| {
        rustix::fs::accessat(rustix::fs::CWD, path, access, AtFlags::EACCESS).map_err(|e| refused(e.into()))
    };
    match fs::metadata(path) {
        Ok(m) if m.is_dir() => Err(StoreError::new(path, "cannot write: it is a folder")),
        Ok(m) if !m.is_file() => may(path, Access::WRITE_OK),
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(refused(e)),
        _ if path.file_name().is_none() => Err(StoreError::new(path, "cannot write: it names no file")),
        _ => may(folder_of(path), Access::WRITE_OK | Access::EXEC_OK),
    }
}

/// The target of the link at `path`, if the link may be followed. It may if no other user can have planted it, or if it is an open file of this process.
/// Link, folder and file must belong to the effective user, and the folder must not be writable for all users.
fn beyond(path: &Path) -> Option<PathBuf> {
    let link = fs::symlink_metadata(path).ok().filter(fs::Metadata::is_symlink)?;
    let folder = fs::metadata(folder_of(path)).ok().filter(|f| f.mode() & 0o002 == 0)?;
    let user = rustix::process::geteuid().as_raw();
    let next = folder_of(path).join(fs::read_link(path).ok()?);
    let to = fs::symlink_metadata(&next).ok()?;
    let open_file = [path, &next].iter().any(|p| p.starts_with("/proc/self/fd"));
    let own = link.uid() == user && folder.uid() == user && (!to.is_file() || to.uid() == user);
    (open_file || own).then_some(next)
}

/// Gives a file the owner and rights of the one it replaces, unless another user can have planted that one.
fn inherit(file: &File, target: &Path) -> io::Result<()> {
    let Some(old) = fs::symlink_metadata(target).ok().filter(fs::Metadata::is_file) else { return Ok(()) };
    let is_shared = fs::metadata(folder_of(target)).is_ok_and(|f| f.mode() & 0o002 != 0);
    if is_shared && old.uid() != rustix::process::geteuid().as_raw() {
        return Ok(());
    }
    // Only root may give files away.
    let _ = fchown(file, Some(old.uid()), Some(old.gid()));
    file.set_permissions(fs::Permissions::from_mode(old.mode() & 0o777))
}

/// The file with the data that `fill` wrote, and the result of `fill`.
fn filled<T>(file: File, fill: impl FnOnce(&mut BufWriter<File>) -> io::Result<T>) -> io::Result<(T, File)> {
    let mut out = BufWriter::with_capacity(1 << 17, file);
    let value = fill(&mut out)?;
    Ok((value, out.into_inner()?))
}

/// A name in the folder of `target` that no other process or thread uses; `*` patterns do not match it.
fn name_beside(target: &Path) -> PathBuf {
    let n = SEQUENCE.fetch_add(1, Ordering::Relaxed);
    let name = target.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
    target.with_file_name(format!(".{name}.{}-{n}.tmp", process::id()))
}

/// The folder of a path; `.` for a bare name.
pub fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_write_leaves_the_old_file_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("r.json");
        replace(&path, |w| w.write_all(b"old")).unwrap();
        let full = replace(&path, |w| {
            w.write_all(&vec![b'x'; 300_000])?;
            Err::<(), _>(io::Error::from(io::ErrorKind::StorageFull))
        });
        let text = full.unwrap_err().to_string();
        assert!(text.contains("no space left") && text.lines().count() == 1, "{text}");
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_link_is_followed_and_a_device_is_not_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let (real, link) = (dir.path().join("real"), dir.path().join("link"));
        fs::write(&real, "old").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        replace(&link, |w| w.write_all(b"new")).unwrap();
        assert_eq!(fs::read(&real).unwrap(), b"new");
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());

        let null = dir.path().join("null");
        std::os::unix::fs::symlink("/dev/null", &null).unwrap();
        replace(&null, |w| w.write_all(b"gone")).unwrap();
        assert!(!fs::metadata(&null).unwrap().is_file());
        // The real `/dev/full` behaves like a full disk.
        std::os::unix::fs::symlink("/dev/full", dir.path().join("full")).unwrap();
        let e = replace(&dir.path().join("full"), |w| w.write_all(b"x")).unwrap_err();
        assert!(e.to_string().contains("no space left"), "{e}");
    }

    #[test]
    fn a_planted_link_is_replaced_and_what_it_leads_to_is_as_it_was() {
        use std::os::unix::fs::{PermissionsExt, chown, lchown, symlink};
        const NOBODY: u32 = 65_534;
        let dir = tempfile::tempdir().unwrap();
        let (secret, shared) = (dir.path().join("secret"), dir.path().join("shared"));
        fs::write(&secret, "old").unwrap();
        fs::create_dir(&shared).unwrap();
        let in_turn = |link: &Path| {
            symlink(&secret, link).unwrap();
            replace(link, |w| w.write_all(b"new")).unwrap();
            assert_eq!(fs::read(&secret).unwrap(), b"old", "{}", link.display());
            assert_eq!(fs::read(link).unwrap(), b"new");
            assert!(fs::symlink_metadata(link).unwrap().is_file());
        };
        // In a folder that is writable for all users, a link of the folder's owner is treated like any other.
        fs::set_permissions(&shared, fs::Permissions::from_mode(0o1777)).unwrap();
        in_turn(&shared.join("r.json"));
        // The user's own link is followed up to a link that may be planted.
        symlink(&secret, shared.join("latest")).unwrap();
        symlink(shared.join("latest"), dir.path().join("latest")).unwrap();
        replace(&dir.path().join("latest"), |w| w.write_all(b"new")).unwrap();
        assert!(fs::symlink_metadata(dir.path().join("latest")).unwrap().is_symlink());
        assert!(fs::symlink_metadata(shared.join("latest")).unwrap().is_file());
        assert_eq!(fs::read(&secret).unwrap(), b"old");

        if !rustix::process::geteuid().is_root() {
            println!("skipped: links of another user need root");
            return;
        }
        for (link_of, folder_of, mode) in [(NOBODY, 0, 0o1777), (NOBODY, 0, 0o755), (0, NOBODY, 0o755)] {
            let folder = tempfile::tempdir().unwrap();
            fs::set_permissions(folder.path(), fs::Permissions::from_mode(mode)).unwrap();
            let link = folder.path().join("r.json");
            symlink(&secret, &link).unwrap();
            lchown(&link, Some(link_of), None).unwrap();
            chown(folder.path(), Some(folder_of), None).unwrap();
            replace(&link, |w| w.write_all(b"new")).unwrap();
            assert_eq!(fs::read(&secret).unwrap(), b"old", "{link_of} {folder_of} {mode:o}");
            assert!(fs::symlink_metadata(&link).unwrap().is_file());
        }
        // A file of another user behind the user's own link, and a device behind a planted link.
        chown(&secret, Some(NOBODY), None).unwrap();
        in_turn(&dir.path().join("r.json"));
        let device = shared.join("device");
        symlink("/dev/null", &device).unwrap();
        replace(&device, |w| w.write_all(b"new")).unwrap();
        assert_eq!(fs::read(&device).unwrap(), b"new");
    }

    #[test]
    fn a_replaced_file_keeps_owner_and_rights_unless_it_may_be_planted() {
        use std::os::unix::fs::chown;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("r.json");
        let rights = |owner, folder_mode| {
            fs::write(&path, "old").unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o4600)).unwrap();
            fs::set_permissions(dir.path(), fs::Permissions::from_mode(folder_mode)).unwrap();
            chown(&path, owner, None).unwrap();
            replace(&path, |w| w.write_all(b"new")).unwrap();
            let now = fs::metadata(&path).unwrap();
            fs::remove_file(&path).unwrap();
            (now.uid(), now.mode() & 0o7777 == 0o600)
        };
        let own = rustix::process::geteuid().as_raw();
        assert_eq!([rights(None, 0o755), rights(None, 0o1777)], [(own, true); 2]);
        if own == 0 {
            assert_eq!([rights(Some(7), 0o755), rights(Some(7), 0o1777)], [(7, true), (0, false)]);
        }
    }

    #[test]
    fn what_cannot_be_written_is_known_before_and_nothing_is_made() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "old").unwrap();
        for (path, said) in [
            (dir.path().join("none/r.wav"), "the folder does not exist"),
            (dir.path().to_owned(), "it is a folder"),
            (file.join("r.wav"), "Not a directory"),
            (PathBuf::from("/"), "it is a folder"),
            (PathBuf::from(""), "it names no file"),
        ] {
            let e = could_replace(&path).unwrap_err().to_string();
            assert!(e.contains(said), "{e}");
        }
        could_replace(&file).unwrap();
        could_replace(&dir.path().join("new")).unwrap();
        could_replace(Path::new("/dev/full")).unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_missing_folder_is_named() {
        let e = replace(Path::new("/nonexistent-folder/r.json"), |w| w.write_all(b"x")).unwrap_err();
        assert_eq!(e.to_string(), "/nonexistent-folder/r.json: cannot write: the folder does not exist");
    }
}
