//! Settings of a comparison.

use machmeter_data::Record;

/// CPU time of machmeter itself, on whichever CPU: no change of the machine. It is compared only if a pattern asks for it.
const OF_THE_METER: &str = "noise.own_fraction";

/// Settings of [`compare`](crate::compare).
#[derive(Debug, Clone)]
pub struct Options<'a> {
    /// Smallest change that matters: 0.02 for 2 % of a cost, or a tenth of that in points of a share.
    pub at_least: f64,
    /// Bound on the expected share of false changes, over all families of the comparison: 0.01 for 1 %.
    pub error: f64,
    /// Only metrics whose key (`id{name=value,...}`) or id matches this pattern; `*` and `?` as in a shell. They are one family.
    pub metric_glob: Option<String>,
    /// Earlier runs. Those of the same state as the first side, before it, tell what runs differ by.
    pub history: &'a [Record],
}

impl Options<'_> {
    /// Whether the row of this key and id is asked for.
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

/// True if `text` matches `pattern`, where `*` stands for any run of characters and `?` for one.
pub fn glob_matches(pattern: &str, text: &str) -> bool {
    let text: Vec<char> = text.chars().collect();
    // Whether the pattern so far matches the first 0, 1, 2, ... characters of the text.
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
