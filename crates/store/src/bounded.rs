//! Files that somebody else made, read up to a limit: a device or a pipe may have no end.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use crate::error::{Result, StoreError, sure};

/// All bytes of a file that `kind` of files fits into, `record` say, at most `most_mib` MiB.
///
/// # Errors
/// One line: what the system says, or that it is larger.
pub fn read(path: &Path, most_mib: u64, kind: &str) -> Result<Vec<u8>> {
    read_from(&mut File::open(path).map_err(|e| StoreError::io(path, "read", &e))?, path, most_mib, kind)
}

/// The same from any source; `name` stands for it in messages (`-` for standard input).
///
/// # Errors
/// As [`read`].
pub fn read_from(source: &mut dyn Read, name: &Path, most_mib: u64, kind: &str) -> Result<Vec<u8>> {
    let most = most_mib << 20;
    let mut bytes = Vec::new();
    source.take(most + 1).read_to_end(&mut bytes).map_err(|e| StoreError::io(name, "read", &e))?;
    let too_large = || StoreError::new(name, format!("larger than {most_mib} MiB, which no {kind} is"));
    sure(bytes.len() as u64 <= most, too_large)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_end_is_refused_in_a_line() {
        let said = |name: &str| read(Path::new(name), 1, "job").unwrap_err().to_string();
        assert_eq!(said("/dev/zero"), "/dev/zero: larger than 1 MiB, which no job is");
        assert!(said("/nowhere/x").starts_with("/nowhere/x: "), "{}", said("/nowhere/x"));
        let exact = vec![7; 1 << 20];
        assert_eq!(read_from(&mut &exact[..], Path::new("-"), 1, "job").unwrap(), exact);
        assert!(read_from(&mut &[&exact[..], &[7]].concat()[..], Path::new("-"), 1, "job").is_err());
    }
}
