//! Laws that counts of events keep whatever the graph: a table that breaks one has lost or invented events.

/// Sums of counts. `~`: they may differ by the schedules that are ready when the books are opened or closed.
const LAWS: &[&str] = &[
    // The last pass of a run finds that nothing is left to be fired.
    "run-sched-pass = apply + run-schedule",
    // Two lists of pending schedules.
    "exit-pending = 2 x next-schedule",
    "enter-ready ~ exit-ready",
    "update-on-consume = consume",
    "update-on-produce = produce1 + segment-end",
    "ready-to-read = read-dq + read-amount",
    "ready-to-write = write-dqs + write-amount",
    // More where several read a queue.
    "produce + write-dq <= produce1",
    "consume <= read-dq + read-amount + discard-tokens + end-of-segment",
    "read-dq-copy1 + read-dq-copy2 <= read-dq",
    "write-dq-copy1 + write-dq-copy2 <= write-dq",
];

/// The laws that these counts break, one line each. `slack`: schedules of the graph. Counts that are not known (`None`) judge nothing.
pub fn broken(count: &dyn Fn(&str) -> Option<u64>, slack: u64) -> Vec<String> {
    let of = |term: &str| match term.strip_prefix("2 x ") {
        Some(name) => Some(2 * count(name)?),
        None => count(term),
    };
    let sum = |side: &str| side.split(" + ").map(of).sum::<Option<u64>>();
    let broken = |law: &&str| {
        let split = |sign| law.split_once(sign).map(|(left, right)| (sign, left, right));
        let (sign, left, right) = [" = ", " ~ ", " <= "].into_iter().find_map(split)?;
        let (left, right) = (sum(left)?, sum(right)?);
        let keeps = match sign {
            " = " => left == right,
            " ~ " => left.abs_diff(right) <= slack,
            _ => left <= right,
        };
        (!keeps).then(|| format!("{}: {left} and {right}", law.replace('~', "=")))
    };
    LAWS.iter().filter_map(broken).collect()
}

#[cfg(test)]
mod tests {
    use super::broken;

    #[test]
    fn a_lost_event_is_named() {
        let counts = |lost: u64| {
            move |name: &str| match name {
                "run-sched-pass" => Some(14),
                "apply" => Some(10 - lost),
                "run-schedule" => Some(4),
                _ => None,
            }
        };
        assert!(broken(&counts(0), 0).is_empty());
        assert_eq!(broken(&counts(1), 0), ["run-sched-pass = apply + run-schedule: 14 and 13"]);
    }
}
