//! What a comparison is asked to do.

use machmeter_data::Record;

/// Settings of [`compare`](crate::compare).
#[derive(Debug, Clone)]
pub struct Options<'a> {
    /// Smallest relative change worth a verdict, 0.02 for 2 %. A smaller change is [`Verdict::Same`](crate::Verdict::Same)
    /// however certain it is.
    pub min_effect: f64,
    /// Bound on the probability of one or more false verdicts in the whole comparison (Holm), 0.01 for 1 %.
    pub family_error: f64,
    /// Only metrics whose key (`id{name=value,...}`) or id matches this pattern; `*` and `?` as in a shell.
    pub metric_glob: Option<String>,
    /// Earlier runs of the same machine in the same state. From [`MIN_HISTORY`](crate::MIN_HISTORY) runs on, the spread
    /// between them replaces the default run-to-run allowance. `a` and `b` themselves are recognized by id and left out.
    pub history: &'a [&'a Record],
    /// Run-to-run standard deviation (relative) that the caller knows and that replaces the default allowance; 0 for runs
    /// that were interleaved block by block, where drift hits both alike. `None`: the default.
    pub run_to_run: Option<f64>,
}

impl Default for Options<'_> {
    fn default() -> Self {
        Self { min_effect: 0.02, family_error: 0.01, metric_glob: None, history: &[], run_to_run: None }
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
