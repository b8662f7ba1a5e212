//! Addresses of functions of the kernel, which some events carry.

use crate::fs_root::FsRoot;

/// Addresses of the kernel's own functions with names that begin so. Empty without the right to see addresses (`kernel.kptr_restrict`).
pub fn functions(prefix: &str) -> Vec<u64> {
    FsRoot::host().text("proc/kallsyms").map_or(Vec::new(), |text| parse(&text, prefix))
}

/// Lines `ffffffff8141e4b0 t hrtimer_wakeup`, with `[module]` behind functions of modules. Hidden addresses are zero.
fn parse(text: &str, prefix: &str) -> Vec<u64> {
    let address = |line: &str| {
        let mut words = line.split_ascii_whitespace();
        let (address, _, name) = (words.next()?, words.next()?, words.next()?);
        name.starts_with(prefix).then(|| u64::from_str_radix(address, 16).ok().filter(|a| *a != 0)).flatten()
    };
    text.lines().filter_map(address).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_by_the_begin_of_their_names() {
        let text = "ffffffff8141e4b0 t hrtimer_wakeup\nffffffff814332e0 t tick_nohz_handler\n\
                    0000000000000000 t tick_hidden\nffffffffc0000010 t tick_of_module\t[m]\nbad line\n";
        assert_eq!(parse(text, "tick_"), [0xffff_ffff_8143_32e0, 0xffff_ffff_c000_0010]);
        assert!(parse("", "tick_").is_empty());
    }
}
