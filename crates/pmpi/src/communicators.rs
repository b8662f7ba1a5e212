//! Communicators and windows by their C handles, with the ranks of the program behind their ranks.

use std::ffi::c_int;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::format::{NO_COMMUNICATOR, size_word};

use crate::library::{Library, Of};

/// What is known of a communicator or window.
pub(crate) struct Known {
    /// Its index above its 48th bit, as calls have it.
    pub(crate) index_word: u64,
    /// Ranks of the program by rank; of the remote group of an intercommunicator.
    pub(crate) ranks: &'static [i32],
    /// Rank of this process, -1 where it is none of those ranks.
    pub(crate) rank: i32,
    /// Whether the ranks are all of the program in order.
    pub(crate) is_world: bool,
    pub(crate) is_inter: bool,
}

impl Known {
    pub(crate) fn size(&self) -> i32 {
        self.ranks.len() as i32
    }
}

/// Of which nothing is known: no rank can be translated.
pub(crate) static UNKNOWN: Known = Known {
    index_word: size_word(0, NO_COMMUNICATOR),
    ranks: &[],
    rank: -1,
    is_world: false,
    is_inter: false,
};

struct Table {
    /// C handles, and whether of a window.
    known: Vec<(usize, Of, &'static Known)>,
    next: u16,
}

static TABLE: Mutex<Table> = Mutex::new(Table::new());

impl Table {
    const fn new() -> Self {
        Self { known: Vec::new(), next: 0 }
    }

    fn find(&self, handle: usize, of: Of) -> Option<&'static Known> {
        self.known.iter().rev().find(|k| k.0 == handle && k.1 == of).map(|k| k.2)
    }

    fn forget(&mut self, handle: usize, of: Of) {
        self.known.retain(|k| k.0 != handle || k.1 != of);
    }

    /// Adds a communicator and numbers it. The last number stands for all beyond it, of which nothing is known.
    fn add(&mut self, handle: usize, mut known: Known) -> &'static Known {
        known.index_word = size_word(0, self.next);
        self.next = self.next.saturating_add(1);
        let known: &'static Known = Box::leak(Box::new(known));
        self.known.push((handle, Of::Communicator, known));
        known
    }
}

fn table() -> MutexGuard<'static, Table> {
    TABLE.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn find(handle: usize, of: Of) -> Option<&'static Known> {
    table().find(handle, of)
}

/// Forgets a handle that was freed: the library may give it away again.
pub(crate) fn forget(handle: usize, of: Of) {
    table().forget(handle, of);
}

/// Adds a window over what is known of a communicator.
pub(crate) fn add_window(handle: usize, over: &'static Known) {
    table().known.push((handle, Of::Window, over));
}

/// Adds a communicator with the group that the library gives; `None` if the library reports an error.
pub(crate) fn add(library: &Library, handle: usize) -> Option<&'static Known> {
    let known = ask(library, handle)?;
    Some(table().add(handle, known))
}

/// What the library says of a communicator, which has no index yet.
fn ask(library: &Library, handle: usize) -> Option<Known> {
    let call = &library.call;
    let mut is_inter: c_int = 0;
    let mut rank: c_int = -1;
    let asked = (call.comm_test_inter)(handle, &raw mut is_inter);
    if asked != 0 || (call.comm_rank)(handle, &raw mut rank) != 0 {
        return None;
    }
    let is_inter = is_inter != 0;
    let group_of = if is_inter { call.comm_remote_group } else { call.comm_group };
    let ranks = world_ranks(library, handle, group_of)?;
    let mut world_size: c_int = 0;
    (call.comm_size)(library.world, &raw mut world_size);
    let is_world = !is_inter && ranks.len() == world_size as usize && (0..).zip(&ranks).all(|(i, r)| i == *r);
    let rank = if is_inter { -1 } else { rank };
    Some(Known { index_word: UNKNOWN.index_word, ranks: ranks.leak(), rank, is_world, is_inter })
}

/// Ranks of the program of the group that `group_of` gives; negative for processes of other programs.
fn world_ranks(
    library: &Library,
    handle: usize,
    group_of: extern "C" fn(usize, *mut usize) -> c_int,
) -> Option<Vec<i32>> {
    let call = &library.call;
    // An int handle fills half of the word.
    let (mut group, mut world): (usize, usize) = (0, 0);
    let mut size: c_int = 0;
    let is_known =
        group_of(handle, &raw mut group) == 0 && (call.comm_group)(library.world, &raw mut world) == 0;
    let mut found = None;
    if is_known && (call.group_size)(group, &raw mut size) == 0 {
        let own: Vec<c_int> = (0..size).collect();
        let mut ranks = vec![-1; own.len()];
        let asked = (call.group_translate_ranks)(group, size, own.as_ptr(), world, ranks.as_mut_ptr());
        found = (asked == 0).then_some(ranks);
    }
    for mut handle in [group, world].into_iter().filter(|_| is_known) {
        (call.group_free)(&raw mut handle);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::library::tests::{BROKEN, INTER, PART, WORLD, fake};

    #[test]
    fn groups_are_ranks_of_the_program() {
        let library = fake();
        let known = |handle| ask(&library, handle).unwrap();
        let world = known(WORLD);
        assert_eq!((world.ranks, world.rank, world.size()), ([0, 1, 2, 3].as_slice(), 2, 4));
        assert!(world.is_world && !world.is_inter);
        let part = known(PART);
        assert_eq!((part.ranks, part.rank, part.is_world), ([3, 2].as_slice(), 1, false));
        let inter = known(INTER);
        assert_eq!((inter.ranks, inter.rank, inter.is_inter), ([0, -1].as_slice(), -1, true));
        assert!(ask(&library, BROKEN).is_none());
    }

    #[test]
    fn a_handle_is_found_until_it_is_freed_and_means_the_latest() {
        let mut table = Table::new();
        let made = |table: &mut Table, handle| table.add(handle, ask(&fake(), PART).unwrap()).index_word;
        let first = made(&mut table, 7);
        let second = made(&mut table, 7);
        assert_eq!((first, second), (size_word(0, 0), size_word(0, 1)));
        let index = |table: &Table, of| table.find(7, of).map(|k| k.index_word);
        assert_eq!(index(&table, Of::Communicator), Some(second));
        let over = table.find(7, Of::Communicator).unwrap();
        table.known.push((7, Of::Window, over));
        table.forget(7, Of::Communicator);
        assert_eq!((index(&table, Of::Communicator), index(&table, Of::Window)), (None, Some(second)));
        assert_eq!(made(&mut table, 7), size_word(0, 2), "numbers are not given away again");
    }

    #[test]
    fn beyond_the_last_number_a_communicator_is_unknown() {
        let mut table = Table { next: NO_COMMUNICATOR - 1, ..Table::new() };
        let mut word = || table.add(1, ask(&fake(), PART).unwrap()).index_word;
        assert_eq!(word(), size_word(0, NO_COMMUNICATOR - 1));
        assert_eq!([word(), word()], [UNKNOWN.index_word; 2]);
    }
}
