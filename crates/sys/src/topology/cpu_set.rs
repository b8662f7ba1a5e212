//! An ordered set of CPU numbers and the kernel's list format for it.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use crate::Refused;

/// CPU numbers in ascending order, read and printed as the kernel's lists (`0-3,8`; empty: empty).
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CpuSet(BTreeSet<usize>);

/// CPU numbers above this are taken for typing errors; the kernel's own limit is 8192.
const LARGEST_CPU: usize = 65_535;

impl CpuSet {
    pub fn single(cpu: usize) -> Self {
        Self(BTreeSet::from([cpu]))
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn contains(&self, cpu: usize) -> bool {
        self.0.contains(&cpu)
    }

    pub fn first(&self) -> Option<usize> {
        self.0.first().copied()
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = usize> + '_ {
        self.0.iter().copied()
    }

    pub fn to_vec(&self) -> Vec<usize> {
        self.iter().collect()
    }

    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        Self(&self.0 & &other.0)
    }

    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        Self(&self.0 | &other.0)
    }

    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        Self(&self.0 - &other.0)
    }

    pub fn insert(&mut self, cpu: usize) {
        self.0.insert(cpu);
    }
}

impl FromIterator<usize> for CpuSet {
    fn from_iter<I: IntoIterator<Item = usize>>(cpus: I) -> Self {
        Self(cpus.into_iter().collect())
    }
}

impl FromStr for CpuSet {
    type Err = Refused;

    /// Reads `0-3,8`, also with the kernel's stepped ranges `0-15:2/4` (the first 2 of every 4).
    fn from_str(list: &str) -> Result<Self, Refused> {
        let list = list.trim();
        let mut cpus = BTreeSet::new();
        if list.is_empty() {
            return Ok(Self(cpus));
        }
        for part in list.split(',').map(str::trim) {
            let (range, step) = part.split_once(':').map_or((part, None), |(r, s)| (r, Some(s)));
            let (low, high) = range.split_once('-').unwrap_or((range, range));
            let (low, high) = (cpu_number(list, part, low)?, cpu_number(list, part, high)?);
            let (used, of) = match step.map(|s| s.split_once('/')) {
                None => (1, 1),
                Some(Some((used, of))) => (cpu_number(list, part, used)?, cpu_number(list, part, of)?),
                Some(None) => return Err(not_a_number(list, part)),
            };
            if used == 0 || used > of {
                return Err(not_a_number(list, part));
            }
            if low > high {
                let why =
                    format!("range `{part}` in CPU list `{list}` runs backward: put the smaller CPU first");
                return Err(Refused(why));
            }
            cpus.extend((low..=high).filter(|cpu| (cpu - low) % of < used));
        }
        Ok(Self(cpus))
    }
}

fn cpu_number(list: &str, part: &str, digits: &str) -> Result<usize, Refused> {
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(not_a_number(list, part));
    }
    match digits.parse::<usize>() {
        Ok(cpu) if cpu <= LARGEST_CPU => Ok(cpu),
        _ => Err(Refused(format!(
            "CPU {digits} in CPU list `{list}` is too large: the highest number possible is {LARGEST_CPU}"
        ))),
    }
}

fn not_a_number(list: &str, part: &str) -> Refused {
    Refused(format!("`{part}` in CPU list `{list}` is not a CPU number or range: write it like 0-3,8"))
}

impl fmt::Display for CpuSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut cpus = self.iter().peekable();
        let mut separator = "";
        while let Some(low) = cpus.next() {
            let mut high = low;
            while cpus.next_if(|cpu| cpu - high == 1).is_some() {
                high += 1;
            }
            if low == high {
                write!(f, "{separator}{low}")?;
            } else {
                write!(f, "{separator}{low}-{high}")?;
            }
            separator = ",";
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn lists_of_the_kernel_are_read_and_printed() {
        for (list, cpus) in [
            ("", vec![]),
            ("0", vec![0]),
            ("0-3,8", vec![0, 1, 2, 3, 8]),
            ("0-1\n", vec![0, 1]),
            ("0-15:2/8", vec![0, 1, 8, 9]),
            ("3,1,2,2", vec![1, 2, 3]),
        ] {
            assert_eq!(list.parse::<CpuSet>().unwrap().to_vec(), cpus, "{list:?}");
        }
        assert_eq!([0, 1, 2, 5, 7, 8].into_iter().collect::<CpuSet>().to_string(), "0-2,5,7-8");
    }

    #[test]
    fn what_is_no_list_is_refused_in_one_line_that_quotes_it() {
        for list in ["a", "1-", "-1", "1,,2", "1-2-3", "0-3:1", "0-3:0/2", "0-3:3/2", "1 2", "+1", "0x1", ","]
        {
            let message = list.parse::<CpuSet>().unwrap_err().to_string();
            assert!(message.contains(&format!("CPU list `{list}`")) && !message.contains('\n'), "{message}");
        }
        assert!("3-1".parse::<CpuSet>().unwrap_err().to_string().contains("backward"));
        for huge in ["99999999999999999999999", "0-4000000000"] {
            assert!(huge.parse::<CpuSet>().unwrap_err().to_string().contains("too large"));
        }
    }

    proptest! {
        #[test]
        fn printing_and_reading_are_inverse(cpus in proptest::collection::btree_set(0_usize..300, 0..60)) {
            let set: CpuSet = cpus.iter().copied().collect();
            prop_assert_eq!(set.to_string().parse::<CpuSet>().unwrap(), set);
        }

        #[test]
        fn any_text_is_read_or_refused(text in ".{0,30}") {
            if let Ok(set) = text.parse::<CpuSet>() {
                prop_assert!(set.iter().all(|cpu| cpu <= 65_535));
            }
        }
    }
}
