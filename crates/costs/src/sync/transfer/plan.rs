//! Which pairs of CPUs are visited: one of each class of neighborhood first, then the rest, so that few visits tell most.

use machmeter_stats::random::Random;
use machmeter_sys::topology::Topology;

/// How near two CPUs are, as the system says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Class {
    Core,
    /// Cores that share the last cache.
    Cache,
    Package,
    Machine,
}

impl Class {
    pub(super) const ALL: [Self; 4] = [Self::Core, Self::Cache, Self::Package, Self::Machine];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Core => "same core",
            Self::Cache => "same cache",
            Self::Package => "same package",
            Self::Machine => "other package",
        }
    }

    pub(super) fn of(topology: &Topology, a: usize, b: usize) -> Self {
        if topology.cpu(a).is_some_and(|cpu| cpu.siblings.contains(b)) {
            return Self::Core;
        }
        let last = topology.caches.iter().filter(|c| c.cpus.contains(a)).max_by_key(|c| c.level);
        // A last cache of level 1 or 2 is a core's own: that two share it says the same as siblings, if anything.
        if last.is_some_and(|c| c.level > 1 && c.cpus.contains(b)) {
            return Self::Cache;
        }
        let package = |cpu: usize| topology.cpu(cpu).and_then(|c| c.package);
        if package(a) == package(b) { Self::Package } else { Self::Machine }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Couple {
    pub(super) low: usize,
    pub(super) high: usize,
    pub(super) class: Class,
}

/// All couples of `cpus`, in the order in which they should be visited: by turns one of each class, within a class at random.
pub(super) fn couples(topology: &Topology, cpus: &[usize], seed: u64) -> Vec<Couple> {
    let mut classes: Vec<Vec<Couple>> = vec![Vec::new(); Class::ALL.len()];
    for (i, low) in cpus.iter().enumerate() {
        for high in &cpus[i + 1..] {
            let class = Class::of(topology, *low, *high);
            classes[class as usize].push(Couple { low: *low, high: *high, class });
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
