//! Static schedules: how often each box fires in an iteration, and in which order (Lee and Messerschmitt, "Synchronous Data Flow", 1987).

/// A static edge between boxes of one schedule, by their numbers within it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Arc {
    pub(crate) from: usize,
    pub(crate) gives: u64,
    pub(crate) to: usize,
    pub(crate) takes: u64,
    pub(crate) initial: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Order {
    /// Of each box.
    pub(crate) repetitions: Vec<u64>,
    /// Boxes with the number of the first firing and how many firings come in a row.
    pub(crate) firings: Vec<(usize, u64, u64)>,
    /// Whether boxes depend on each other in a cycle, so that no box can do all iterations before the next one begins.
    pub(crate) is_cyclic: bool,
}

/// Why there is no order: arcs, by their numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NoOrder {
    /// Along these arcs, in the order of a cycle, rates contradict each other.
    Inconsistent(Vec<usize>),
    /// Around these arcs boxes wait for each other.
    Deadlock(Vec<usize>),
    /// More firings than this program counts.
    TooMany,
}

/// Firings of a box in an iteration at most.
const MOST_FIRINGS: u64 = 1 << 24;

pub(crate) fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

pub(crate) fn order(boxes: usize, arcs: &[Arc]) -> Result<Order, NoOrder> {
    let repetitions = repetitions(boxes, arcs)?;
    let acyclic = topological(boxes, arcs);
    let is_cyclic = acyclic.is_none();
    let firings = match acyclic {
        Some(order) => order.into_iter().map(|b| (b, 0, repetitions[b])).collect(),
        None => simulated(&repetitions, arcs)?,
    };
    Ok(Order { repetitions, firings, is_cyclic })
}

/// The least firings of each box that leave every edge as it was.
fn repetitions(boxes: usize, arcs: &[Arc]) -> Result<Vec<u64>, NoOrder> {
    // Firings relative to the first box that was reached, as a fraction; and the arc by which it was reached.
    let mut rates: Vec<Option<(u64, u64)>> = vec![None; boxes];
    let mut reached_by: Vec<Option<usize>> = vec![None; boxes];
    let mut out = vec![0; boxes];
    for first in 0..boxes {
        if rates[first].is_some() {
            continue;
        }
        rates[first] = Some((1, 1));
        let mut members = vec![first];
        let mut at = 0;
        while at < members.len() {
            let b = members[at];
            at += 1;
            let Some((n, d)) = rates[b] else { continue };
            for (i, a) in arcs.iter().enumerate() {
                let (other, times, over) = match (a.from == b, a.to == b) {
                    (true, _) => (a.to, a.gives, a.takes),
                    (_, true) => (a.from, a.takes, a.gives),
                    _ => continue,
                };
                let (n, d) = n.checked_mul(times).zip(d.checked_mul(over)).ok_or(NoOrder::TooMany)?;
                let both = gcd(n, d);
                let rate = (n / both, d / both);
                match rates[other] {
                    None => {
                        (rates[other], reached_by[other]) = (Some(rate), Some(i));
                        members.push(other);
                    }
                    Some(known) if known != rate => {
                        return Err(NoOrder::Inconsistent(cycle(arcs, &reached_by, i)));
                    }
                    Some(_) => {}
                }
            }
        }
        let denominators = members
            .iter()
            .filter_map(|b| rates[*b])
            .try_fold(1_u64, |all, (_, d)| (all / gcd(all, d)).checked_mul(d).filter(|n| *n <= MOST_FIRINGS));
        let all = denominators.ok_or(NoOrder::TooMany)?;
        for b in &members {
            let (n, d) = rates[*b].unwrap_or((1, 1));
            out[*b] = n.checked_mul(all / d).filter(|n| *n <= MOST_FIRINGS).ok_or(NoOrder::TooMany)?;
        }
        let common = members.iter().fold(0, |all, b| gcd(all, out[*b]));
        for b in members {
            out[b] /= common.max(1);
        }
    }
    Ok(out)
}

/// The arcs of the cycle that an arc closes in the tree of those by which boxes were reached.
fn cycle(arcs: &[Arc], reached_by: &[Option<usize>], closing: usize) -> Vec<usize> {
    let path = |mut b: usize| {
        let mut path = Vec::new();
        while let Some(i) = reached_by[b] {
            path.push(i);
            b = if arcs[i].to == b { arcs[i].from } else { arcs[i].to };
        }
        path
    };
    let (mut one, mut other) = (path(arcs[closing].from), path(arcs[closing].to));
    while one.last().is_some() && one.last() == other.last() {
        one.pop();
        other.pop();
    }
    other.reverse();
    std::iter::once(closing).chain(one).chain(other).collect()
}

/// An order in which each box comes after all that it takes from, if there is one; else none. Tokens at the beginning do not count.
fn topological(boxes: usize, arcs: &[Arc]) -> Option<Vec<usize>> {
    let mut waits_for = vec![0; boxes];
    for a in arcs {
        waits_for[a.to] += 1;
    }
    let mut order: Vec<usize> = (0..boxes).filter(|b| waits_for[*b] == 0).collect();
    let mut at = 0;
    while at < order.len() {
        let done = order[at];
        for a in arcs.iter().filter(|a| a.from == done) {
            waits_for[a.to] -= 1;
            if waits_for[a.to] == 0 {
                order.push(a.to);
            }
        }
        at += 1;
    }
    (order.len() == boxes).then_some(order)
}

/// Fires whatever can fire until all have fired as often as they should: if that fails, there is no order at all.
fn simulated(repetitions: &[u64], arcs: &[Arc]) -> Result<Vec<(usize, u64, u64)>, NoOrder> {
    let mut tokens: Vec<u64> = arcs.iter().map(|a| a.initial).collect();
    let mut done = vec![0; repetitions.len()];
    let mut firings: Vec<(usize, u64, u64)> = Vec::new();
    loop {
        let mut fired = false;
        for b in 0..repetitions.len() {
            while done[b] < repetitions[b]
                && arcs.iter().zip(&tokens).all(|(a, t)| a.to != b || *t >= a.takes)
            {
                for (a, t) in arcs.iter().zip(&mut tokens) {
                    *t -= if a.to == b { a.takes } else { 0 };
                    *t += if a.from == b { a.gives } else { 0 };
                }
                // What a box gives itself is there only after the firing.
                let feeds_itself = arcs.iter().any(|a| a.from == b && a.to == b);
                match firings.last_mut() {
                    Some(last) if last.0 == b && !feeds_itself => last.2 += 1,
                    _ => firings.push((b, done[b], 1)),
                }
                done[b] += 1;
                fired = true;
            }
        }
        if done == repetitions {
            return Ok(firings);
        }
        if !fired {
            return Err(NoOrder::Deadlock(waiting(&done, repetitions, arcs, &tokens)));
        }
    }
}

/// A cycle of arcs whose takers wait for tokens.
fn waiting(done: &[u64], repetitions: &[u64], arcs: &[Arc], tokens: &[u64]) -> Vec<usize> {
    let wanted = |b: usize| {
        let lacks = |i: &usize| arcs[*i].to == b && tokens[*i] < arcs[*i].takes;
        (0..arcs.len()).find(lacks)
    };
    let mut path: Vec<usize> = Vec::new();
    let mut b = (0..done.len()).find(|b| done[*b] < repetitions[*b]).unwrap_or(0);
    while let Some(i) = wanted(b) {
        if let Some(at) = path.iter().position(|p| *p == i) {
            path.drain(..at);
            break;
        }
        path.push(i);
        b = arcs[i].from;
    }
    path.reverse();
    path
}
