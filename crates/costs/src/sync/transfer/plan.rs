//! Which pairs of CPUs are visited: one of each class of neighborhood first, then the rest, so that few visits tell most.

use machmeter_engine::disturbance::Distance;
use machmeter_stats::random::Random;
use machmeter_sys::topology::Topology;

#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Couple {
    pub(super) low: usize,
    pub(super) high: usize,
    pub(super) distance: Distance,
}

/// All couples of `cpus`, in the order in which they should be visited: by turns one of each class, within a class at random.
pub(super) fn couples(topology: &Topology, cpus: &[usize], seed: u64) -> Vec<Couple> {
    let mut classes: Vec<Vec<Couple>> = vec![Vec::new(); Distance::SHOWN.len()];
    for (i, low) in cpus.iter().enumerate() {
        for high in &cpus[i + 1..] {
            let distance = Distance::shown(topology, *low, *high);
            let class = Distance::SHOWN.iter().position(|d| *d == distance).unwrap_or(0);
            classes[class].push(Couple { low: *low, high: *high, distance });
        }
    }
    let mut random = Random::new(seed);
    for class in &mut classes {
        random.shuffle(class);
    }
    let longest = classes.iter().map(Vec::len).max().unwrap_or(0);
    (0..longest)
        .flat_map(|i| classes.iter().filter_map(move |c| c.get(i).copied()).collect::<Vec<_>>())
        .collect()
}
