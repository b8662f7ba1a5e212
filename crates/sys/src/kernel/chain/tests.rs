use super::*;
use crate::pages::{Backing, Pages};

const ORDERS: &[Order] = &[
    Order::Global,
    Order::PageLocal { page_bytes: 4_096 },
    Order::PageLocal { page_bytes: 65_536 },
    Order::OnePerPage { page_bytes: 4_096 },
    Order::Sequential,
    Order::Second { block_bytes: 512, offset_bytes: 8 },
    Order::Second { block_bytes: 512, offset_bytes: 504 },
    Order::Conflict { step_bytes: 4_096 },
];

fn spec(working_set_bytes: usize, stride_bytes: usize, order: Order) -> ChainSpec {
    ChainSpec { working_set_bytes, stride_bytes, order, seed: 11 }
}

#[test]
fn chains_of_every_order_and_size_are_one_cycle() {
    let pages = Pages::new(1 << 20, Backing::Unasked).unwrap();
    for &order in ORDERS {
        for stride_bytes in [8, 64, 128, 1_024, 4_096] {
            for working_set_bytes in [64, 512, 4_096, 4_160, 5_000, 12_288, 20_480, 333_333, 1 << 20] {
                for ways in [1, 2, 3, 24] {
                    let spec = spec(working_set_bytes, stride_bytes, order);
                    let name = format!("{spec:?} in {ways}");
                    pages.extent().fill(3);
                    match Chain::parallel(pages.extent(), &spec, ways) {
                        Ok(mut chains) => {
                            assert!(chains.are_cycles(), "{name}");
                            chains.chase(3);
                            assert!(chains.are_cycles(), "{name}, elsewhere");
                        }
                        Err(e) => {
                            let said = e.to_string();
                            assert!(
                                said.contains("holds no node") || said.contains("chains through"),
                                "{name}: {said}"
                            );
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn the_working_set_is_what_was_asked_for() {
    let pages = Pages::new(1 << 20, Backing::Unasked).unwrap();
    let nodes =
        |bytes, stride, order| Chain::build(pages.extent(), &spec(bytes, stride, order)).unwrap().nodes();
    assert_eq!(nodes(65_536, 64, Order::Global), 1_024);
    assert_eq!(nodes(65_536, 64, Order::PageLocal { page_bytes: 4_096 }), 1_024);
    assert_eq!(nodes(65_536, 64, Order::OnePerPage { page_bytes: 4_096 }), 16);
    assert_eq!(nodes(65_536, 256, Order::Sequential), 256);
    assert_eq!(nodes(65_536, 64, Order::Second { block_bytes: 512, offset_bytes: 64 }), 256);
    assert_eq!(nodes(65_536, 64, Order::Conflict { step_bytes: 4_096 }), 16);
    assert_eq!(nodes(127, 64, Order::Global), 1);
    // A chain of one node holds its own address; nothing else of the extent changes.
    let pages = Pages::new(1 << 20, Backing::Unasked).unwrap();
    Chain::build(pages.extent(), &spec(64, 64, Order::Global)).unwrap();
    let written = pages.extent().atomics().iter().filter(|w| w.load(Ordering::Relaxed) != 0).count();
    assert_eq!(written, 1);
}

/// The words visited, in order, by following the pointers.
fn walk(chain: &Chain) -> Vec<usize> {
    let mut at = chain.at[0];
    let visit = |_| {
        let word = chain.nodes.word_at(at).unwrap();
        at = chain.nodes.words()[word].load(Ordering::Relaxed);
        word
    };
    (0..chain.nodes()).map(visit).collect()
}

#[test]
fn orders_visit_as_they_say() {
    let pages = Pages::new(1 << 20, Backing::Unasked).unwrap();
    let visited =
        |bytes, stride, order| walk(&Chain::build(pages.extent(), &spec(bytes, stride, order)).unwrap());

    let up = visited(1 << 18, 64, Order::Sequential);
    assert!(up.iter().enumerate().all(|(i, word)| word / 8 == i), "line by line");
    let places = (0..8).filter(|place| up.iter().any(|word| word % 8 == *place)).count();
    assert_eq!(places, 8, "every place in a line is used");

    let local = visited(1 << 18, 64, Order::PageLocal { page_bytes: 4_096 });
    for page in local.chunks(64) {
        assert!(page.iter().all(|word| word / 512 == page[0] / 512), "a page at a time");
        assert!(page.windows(2).any(|w| w[1] < w[0]), "not upwards");
    }
    assert!(local.chunks(64).zip(local.chunks(64).skip(1)).any(|(a, b)| b[0] / 512 != a[0] / 512 + 1));

    let pages_only = visited(1 << 20, 64, Order::OnePerPage { page_bytes: 4_096 });
    for line in 0..64 {
        let used = pages_only.iter().filter(|word| *word % 512 / 8 == line).count();
        assert_eq!(used, 4, "256 pages over 64 lines");
    }

    let second = visited(1 << 18, 64, Order::Second { block_bytes: 512, offset_bytes: 72 });
    let firsts = usize::from(!second[0].is_multiple_of(64));
    for pair in second[firsts..second.len() - firsts].chunks_exact(2) {
        assert_eq!((pair[0] % 64, pair[1]), (0, pair[0] + 9));
    }

    let conflict = visited(1 << 18, 64, Order::Conflict { step_bytes: 4_096 });
    assert!(conflict.iter().all(|word| word.is_multiple_of(512)));

    // A random cycle: successors at every distance, hardly any neighbor.
    let global = visited(1 << 20, 64, Order::Global);
    let next_line = global.windows(2).filter(|w| w[1] / 8 == w[0] / 8 + 1).count();
    assert!(next_line < 12, "{next_line} of 16384 go on to the next line, 1 expected");
    let far = global.windows(2).filter(|w| w[0].abs_diff(w[1]) > 1 << 16).count();
    assert!((3_700..4_500).contains(&far), "{far} of 16384 further than half, a quarter expected");
}

#[test]
fn orders_differ_by_seed_and_repeat_with_it() {
    let pages = Pages::new(1 << 16, Backing::Unasked).unwrap();
    for &order in ORDERS.iter().filter(|o| **o != Order::Sequential) {
        let visited = |seed| {
            let spec = ChainSpec { seed, ..spec(1 << 16, 64, order) };
            walk(&Chain::build(pages.extent(), &spec).unwrap())
        };
        assert_eq!(visited(1), visited(1));
        assert_ne!(visited(1), visited(2), "{order:?}");
    }
}

#[test]
fn a_chase_goes_sixteen_nodes_a_turn_and_on_from_there() {
    let pages = Pages::new(1 << 16, Backing::Unasked).unwrap();
    for &ways in WAYS {
        let spec = spec(1 << 16, 64, Order::Global);
        let mut chains = Chain::parallel(pages.extent(), &spec, ways).unwrap();
        assert_eq!((chains.ways, chains.nodes()), (ways, 1_024));
        let mut at = chains.at;
        chains.chase(0);
        assert_eq!(chains.at, at);
        for turns in [1, 5] {
            for chain in &mut at[..ways] {
                for _ in 0..turns * LOADS_PER_TURN {
                    let word = chains.nodes.word_at(*chain).unwrap();
                    *chain = chains.nodes.words()[word].load(Ordering::Relaxed);
                }
            }
            chains.chase(turns);
            assert_eq!(chains.at, at, "{ways} chains, {turns} turns");
        }
    }
}

#[test]
fn a_written_chain_goes_the_same_way_and_stays_one() {
    let pages = Pages::new(1 << 16, Backing::Unasked).unwrap();
    for &order in ORDERS {
        for bytes in [512, 12_288, 1 << 16] {
            let spec = spec(bytes, 64, order);
            let Ok(mut plain) = Chain::build(pages.extent(), &spec) else { continue };
            plain.chase(5);
            let at = plain.at[0];
            let mut written = Chain::build_written(pages.extent(), &spec).unwrap();
            let before: Vec<u64> = written.nodes.words().iter().map(|w| w.load(Ordering::Relaxed)).collect();
            written.chase(5);
            assert_eq!(written.at[0], at, "{spec:?}");
            assert!(written.are_cycles(), "{spec:?}");
            let after = written.nodes.words().iter().map(|w| w.load(Ordering::Relaxed));
            assert!(after.eq(before), "{spec:?}: it writes back what was there");
        }
    }
}

#[test]
fn what_cannot_be_built_is_refused_in_one_line() {
    let pages = Pages::new(1 << 16, Backing::Unasked).unwrap();
    let refused = |extent, spec: ChainSpec, ways, said: &str| {
        let e = Chain::parallel(extent, &spec, ways).unwrap_err().to_string();
        assert!(e.contains(said) && !e.contains('\n'), "{e}");
    };
    let all = pages.extent();
    refused(all, spec(1 << 17, 64, Order::Global), 1, "a working set of 131072 bytes in an extent of 65536");
    refused(all, spec(0, 64, Order::Global), 1, "holds no node");
    refused(all, spec(4_096, 0, Order::Global), 1, "a stride of 0 bytes");
    refused(all, spec(4_096, 63, Order::Sequential), 1, "a stride of 63 bytes");
    refused(all, spec(4_096, 64, Order::PageLocal { page_bytes: 0 }), 1, "a page of 0 bytes");
    refused(all, spec(4_096, 64, Order::PageLocal { page_bytes: 4_000 }), 1, "a page of 4000 bytes");
    refused(all, spec(4_096, 0, Order::OnePerPage { page_bytes: 4_096 }), 1, "a stride of 0 bytes");
    let second = |offset_bytes| spec(4_096, 64, Order::Second { block_bytes: 512, offset_bytes });
    refused(all, second(512), 1, "leaves the block");
    refused(all, second(0), 1, "an offset of 0 bytes");
    refused(all, spec(4_096, 64, Order::Conflict { step_bytes: 12 }), 1, "a step of 12 bytes");
    refused(all.part(8, 8_192).unwrap(), spec(4_096, 64, Order::Global), 1, "not aligned to 64");
    let off = all.part(64, 8_192).unwrap();
    refused(off, spec(4_096, 64, Order::OnePerPage { page_bytes: 4_096 }), 1, "not aligned to 4096");
    refused(all, spec(64, 64, Order::Global), 2, "2 chains through 1 nodes");
    refused(all, spec(4_096, 64, Order::PageLocal { page_bytes: 4_096 }), 2, "2 chains through 1 pages");
    refused(all, spec(4_096, 64, Order::Global), 7, "7 chains; there are kernels for [1, 2, 3");
}
