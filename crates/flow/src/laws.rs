//! Laws that counts of events keep whatever the graph: a table that breaks one has lost or invented events.

/// What holds between two counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Holds {
    Equal,
    /// The left is at most so much away from the right; schedules that are ready when the books are opened or closed.
    About,
    AtMost,
}

/// One law: names with factors on both sides.
struct Law {
    left: &'static [(&'static str, u64)],
    right: &'static [(&'static str, u64)],
    holds: Holds,
}

const LAWS: &[Law] = &[
    // The last pass of a run finds that nothing is left to be fired.
    Law { left: &[("run-sched-pass", 1)], right: &[("apply", 1), ("run-schedule", 1)], holds: Holds::Equal },
    // Two lists of pending schedules.
    Law { left: &[("exit-pending", 1)], right: &[("next-schedule", 2)], holds: Holds::Equal },
    Law { left: &[("enter-ready", 1)], right: &[("exit-ready", 1)], holds: Holds::About },
    Law { left: &[("update-on-consume", 1)], right: &[("consume", 1)], holds: Holds::Equal },
    Law {
        left: &[("update-on-produce", 1)],
        right: &[("produce1", 1), ("segment-end", 1)],
        holds: Holds::Equal,
    },
    Law { left: &[("ready-to-read", 1)], right: &[("read-dq", 1), ("read-amount", 1)], holds: Holds::Equal },
    Law {
        left: &[("ready-to-write", 1)],
        right: &[("write-dqs", 1), ("write-amount", 1)],
        holds: Holds::Equal,
    },
    // More where several read a queue.
    Law { left: &[("produce", 1), ("write-dq", 1)], right: &[("produce1", 1)], holds: Holds::AtMost },
    Law {
        left: &[("consume", 1)],
        right: &[("read-dq", 1), ("read-amount", 1), ("discard-tokens", 1), ("end-of-segment", 1)],
        holds: Holds::AtMost,
    },
    Law {
        left: &[("read-dq-copy1", 1), ("read-dq-copy2", 1)],
        right: &[("read-dq", 1)],
        holds: Holds::AtMost,
    },
    Law {
        left: &[("write-dq-copy1", 1), ("write-dq-copy2", 1)],
        right: &[("write-dq", 1)],
        holds: Holds::AtMost,
    },
];

/// The laws that these counts break, one line each. `slack`: schedules of the graph. Counts that are not known (`None`) judge nothing.
pub fn broken(count: &dyn Fn(&str) -> Option<u64>, slack: u64) -> Vec<String> {
    let sum =
        |side: &[(&str, u64)]| side.iter().try_fold(0, |all, (name, times)| Some(all + times * count(name)?));
    let text = |side: &[(&'static str, u64)]| {
        let one = |(name, times): &(&'static str, u64)| {
            if *times == 1 { (*name).to_owned() } else { format!("{times} x {name}") }
        };
        side.iter().map(one).collect::<Vec<_>>().join(" + ")
    };
    let broken = |law: &&Law| {
        let (left, right) = (sum(law.left)?, sum(law.right)?);
        let keeps = match law.holds {
            Holds::Equal => left == right,
            Holds::About => left.abs_diff(right) <= slack,
            Holds::AtMost => left <= right,
        };
        let sign = if law.holds == Holds::AtMost { "<=" } else { "=" };
        (!keeps).then(|| format!("{} {sign} {}: {left} and {right}", text(law.left), text(law.right)))
    };
    LAWS.iter().filter_map(|law| broken(&law)).collect()
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
