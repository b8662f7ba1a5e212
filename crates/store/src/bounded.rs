//! Reads untrusted files up to a limit, because a device or a pipe may be endless.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::error::{Result, StoreError, sure};

/// All bytes of a file, at most `most_mib` MiB. `kind` names the expected content in the error, for example `record`.
///
/// # Errors
/// One line: the error of the system, or that the file is larger.
pub fn read(path: &Path, most_mib: u64, kind: &str) -> Result<Vec<u8>> {
    read_from(&mut File::open(path).map_err(|e| StoreError::io(path, "read", &e))?, path, most_mib, kind)
}

/// The same from any source; `name` represents it in messages (`-` for standard input).
///
/// # Errors
/// As [`read`].
pub fn read_from(source: &mut dyn Read, name: &Path, most_mib: u64, kind: &str) -> Result<Vec<u8>> {
    let most = most_mib << 20;
    let mut bytes = Vec::new();
    source.take(most + 1).read_to_end(&mut bytes).map_err(|e| StoreError::io(name, "read", &e))?;
    let too_large = || StoreError::new(name, format!("larger than {most_mib} MiB: not a valid {kind}"));
    sure(bytes.len() as u64 <= most, too_large)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_end_is_refused_in_a_line() {
        let said = |name: &str| read(Path::new(name), 1, "job").unwrap_err().to_string();
        assert_eq!(said("/dev/zero"), "/dev/zero: larger than 1 MiB: not a valid job");
        assert!(said("/nowhere/x").starts_with("/nowhere/x: "), "{}", said("/nowhere/x"));
        let exact = vec![7; 1 << 20];
        assert_eq!(read_from(&mut &exact[..], Path::new("-"), 1, "job").unwrap(), exact);
        assert!(read_from(&mut &[&exact[..], &[7]].concat()[..], Path::new("-"), 1, "job").is_err());
    }
}
