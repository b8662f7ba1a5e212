//! Settings of a comparison.

use machmeter_data::Record;

/// CPU time of machmeter itself, on whichever CPU; it says nothing about the machine. It is compared only if a pattern selects it.
const OF_THE_METER: &str = "noise.own_fraction";

/// Settings of [`compare`](crate::compare).
#[derive(Debug, Clone)]
pub struct Options<'a> {
    /// Smallest change that matters: 0.02 for 2 % of a cost, or a tenth of that in points of a share.
    pub at_least: f64,
    /// Bound on the expected share of false changes, over all families of the comparison: 0.01 for 1 %.
    pub error: f64,
    /// Pattern for the key (`id{name=value,...}`) or id of metrics; `*` and `?` as in a shell. Matching metrics form one family.
    pub metric_glob: Option<String>,
    /// Earlier runs. Those before the first side and in its state measure the spread between runs.
    pub history: &'a [Record],
}

impl Options<'_> {
    /// True if the row with this key and id is selected.
    pub fn wants(&self, key: &str, id: &str) -> bool {
        let matches = |glob: &String| glob_matches(glob, key) || glob_matches(glob, id);
        self.metric_glob.as_ref().map_or(id != OF_THE_METER, matches)
    }
}

impl Default for Options<'_> {
    fn default() -> Self {
        Self { at_least: 0.02, error: 0.01, metric_glob: None, history: &[] }
    }
}

/// True if `text` matches `pattern`: `*` matches any run of characters, `?` one character.
pub fn glob_matches(pattern: &str, text: &str) -> bool {
    let text: Vec<char> = text.chars().collect();
    // Element i: the pattern so far matches the first i characters of the text.
    let mut so_far = vec![false; text.len() + 1];
    so_far[0] = true;
    for p in pattern.chars() {
        let before = so_far.clone();
        so_far[0] &= p == '*';
        for (i, c) in text.iter().enumerate() {
            so_far[i + 1] =
                if p == '*' { before[i + 1] || so_far[i] } else { before[i] && (p == '?' || p == *c) };
        }
    }
    so_far[text.len()]
}

#[cfg(test)]
mod tests {
    use super::glob_matches;

    #[test]
    fn globs_match_as_in_a_shell() {
        for (p, t) in [
            ("*", ""),
            ("noise.*", "noise.turn"),
            ("*cpu=1*", "a{cpu=1,q=2}"),
            ("a?c", "abc"),
            ("*a*b", "xaxbxab"),
        ] {
            assert!(glob_matches(p, t), "{p} {t}");
        }
        for (p, t) in
            [("", "a"), ("noise.*", "net.turn"), ("a?c", "ac"), ("*a*b", "xaxbxabc"), ("turn", "noise.turn")]
        {
            assert!(!glob_matches(p, t), "{p} {t}");
        }
    }
}
