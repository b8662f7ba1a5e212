//! Which register holds which value: graph coloring (Chaitin 1982, with Briggs' optimistic selection).

use super::translate::Value;

/// Registers of the machine.
pub(super) const REGISTERS: usize = 12;

/// Where a value lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
    Register(usize),
    Memory(usize),
}

/// Places for the values, so that no two that are needed at the same time share one. Values that are not needed get some
/// place, too.
pub(super) fn assign(values: &[Value], needed: &[bool], result: usize) -> Vec<Place> {
    let last_use = last_uses(values, needed, result);
    let graph = Graph::of(needed, &last_use);
    let mut places = vec![Place::Register(0); values.len()];
    let mut colored = vec![false; values.len()];
    let mut slots = 0;
    for node in graph.order(needed).into_iter().rev() {
        let mut taken = [false; REGISTERS];
        graph.neighbors(node).filter(|n| colored[*n]).for_each(|n| {
            if let Place::Register(r) = places[n] {
                taken[r] = true;
            }
        });
        let free = taken.iter().position(|t| !t);
        places[node] = free.map_or(Place::Memory(slots), Place::Register);
        slots += usize::from(free.is_none());
        colored[node] = true;
    }
    places
}

/// For each value the number of the last one made of it.
fn last_uses(values: &[Value], needed: &[bool], result: usize) -> Vec<usize> {
    let mut last: Vec<usize> = (0..values.len()).collect();
    for (i, value) in values.iter().enumerate().filter(|(i, _)| needed[*i]) {
        value.operands().into_iter().for_each(|o| last[o] = i);
    }
    last[result] = values.len();
    last
}

/// Values that are needed at the same time are neighbors.
struct Graph {
    words: usize,
    bits: Vec<u64>,
}

impl Graph {
    fn of(needed: &[bool], last_use: &[usize]) -> Self {
        let n = needed.len();
        let words = n.div_ceil(64);
        let mut graph = Self { words, bits: vec![0; n * words] };
        let mut live: Vec<usize> = Vec::new();
        for i in (0..n).filter(|i| needed[*i]) {
            // An operand that is used here for the last time may give its register to the value made of it.
            live.retain(|v| last_use[*v] > i);
            for other in &live {
                graph.join(i, *other);
            }
            live.push(i);
        }
        graph
    }

    fn join(&mut self, a: usize, b: usize) {
        for (a, b) in [(a, b), (b, a)] {
            self.bits[a * self.words + b / 64] |= 1 << (b % 64);
        }
    }

    fn neighbors(&self, node: usize) -> impl Iterator<Item = usize> {
        let row = &self.bits[node * self.words..(node + 1) * self.words];
        row.iter()
            .enumerate()
            .flat_map(|(w, bits)| (0..64).filter(move |b| bits >> b & 1 == 1).map(move |b| w * 64 + b))
    }

    /// The order in which nodes are taken off: first any with fewer neighbors than there are registers, else the one with
    /// the most, which is then the likeliest to go to memory.
    fn order(&self, needed: &[bool]) -> Vec<usize> {
        let mut left: Vec<usize> = (0..needed.len()).filter(|i| needed[*i]).collect();
        let mut degree: Vec<usize> = (0..needed.len()).map(|i| self.neighbors(i).count()).collect();
        let mut order = Vec::with_capacity(left.len());
        while !left.is_empty() {
            let easy = left.iter().position(|i| degree[*i] < REGISTERS);
            let hard = || (0..left.len()).max_by_key(|k| degree[left[*k]]).unwrap_or(0);
            let node = left.swap_remove(easy.unwrap_or_else(hard));
            self.neighbors(node).for_each(|n| degree[n] = degree[n].saturating_sub(1));
            order.push(node);
        }
        order
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::translate::Operation;

    /// A sum of `n` parameters that are all read first.
    fn sum_of(n: usize) -> Vec<Value> {
        let mut values: Vec<Value> = (0..n).map(Value::Parameter).collect();
        for i in 1..n {
            let left = if i == 1 { 0 } else { values.len() - 1 };
            values.push(Value::Computed(Operation::Add, left, i));
        }
        values
    }

    fn in_memory(n: usize) -> usize {
        let values = sum_of(n);
        let places = assign(&values, &vec![true; values.len()], values.len() - 1);
        for i in 0..n {
            assert!((0..i).all(|j| places[i] != places[j]), "{i} shares a place");
        }
        places.iter().filter(|p| matches!(p, Place::Memory(_))).count()
    }

    #[test]
    fn as_many_values_as_registers_need_no_memory_and_the_rest_goes_there() {
        assert_eq!(in_memory(REGISTERS), 0);
        assert_eq!(in_memory(REGISTERS + 5), 5);
    }
}
