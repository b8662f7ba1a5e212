//! Function names for addresses, from `/proc/kallsyms`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, BufRead, BufReader};

/// Names of the functions that begin at `addresses`. Empty when the file can't be read or hides addresses.
pub(super) fn names_of(addresses: &BTreeSet<u64>) -> BTreeMap<u64, String> {
    if addresses.is_empty() {
        return BTreeMap::new();
    }
    File::open("/proc/kallsyms").and_then(|f| read(BufReader::new(f), addresses)).unwrap_or_default()
}

fn read(mut kallsyms: impl BufRead, addresses: &BTreeSet<u64>) -> io::Result<BTreeMap<u64, String>> {
    let mut names = BTreeMap::new();
    let mut line = String::new();
    while names.len() < addresses.len() {
        line.clear();
        if kallsyms.read_line(&mut line)? == 0 {
            break;
        }
        let mut words = line.split_ascii_whitespace();
        let (Some(address), Some(_kind), Some(name)) = (words.next(), words.next(), words.next()) else {
            continue;
        };
        let Ok(address) = u64::from_str_radix(address, 16) else { continue };
        if address != 0 && addresses.contains(&address) {
            names.entry(address).or_insert_with(|| name.to_owned());
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_and_hidden_addresses_are_not_names() {
        let text = "0000000000000000 A hidden\nffffffff81000000 T _stext\nffffffff81000000 T alias\n\
                    ffffffffc0000010 t wb_workfn\t[mod]\n";
        let want = BTreeSet::from([0, 0xffff_ffff_8100_0000, 0xffff_ffff_c000_0010, 5]);
        let names = read(text.as_bytes(), &want).unwrap();
        assert_eq!(names.values().map(String::as_str).collect::<Vec<_>>(), ["_stext", "wb_workfn"]);
    }
}
