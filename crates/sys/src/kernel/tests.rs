use std::collections::BTreeSet;
use std::sync::atomic::Ordering;

use super::decode::FIXTURES;
use super::*;
use crate::pages::{Backing, Pages, mix};

/// Bytes of an operand, and of the memory before, between and behind the operands that must stay as it is.
const OPERAND_BYTES: usize = 48 << 10;
const GUARD_BYTES: usize = 192;

struct Field {
    pages: Pages,
}

impl Field {
    fn new() -> Self {
        let pages = Pages::new(3 * OPERAND_BYTES + 4 * GUARD_BYTES, Backing::Unasked).unwrap();
        // Doubles in [1, 2), so that arithmetic takes no slow path.
        for (word, index) in pages.extent().atomics().iter().zip(0..) {
            word.store((mix(5, index) >> 12) | 1.0_f64.to_bits(), Ordering::Relaxed);
        }
        Self { pages }
    }

    fn start(at: usize) -> usize {
        GUARD_BYTES + at * (OPERAND_BYTES + GUARD_BYTES)
    }

    fn operands(&self) -> [Extent<'_>; 3] {
        [0, 1, 2].map(|at| self.pages.extent().part(Self::start(at), OPERAND_BYTES).unwrap())
    }

    fn words(&self) -> Vec<u64> {
        self.pages.extent().atomics().iter().map(|w| w.load(Ordering::Relaxed)).collect()
    }
}

/// What a kernel is to do with the memory in one pass, computed plainly. Returns what the pass adds to the sum.
fn pass(kernel: &Kernel, turns: u64, step_words: usize, words: &mut [u64]) -> u64 {
    let family = kernel.name.split('.').next().unwrap();
    let [a, b, c] = [0, 1, 2].map(|at| Field::start(at) / 8);
    let bytes = match kernel.walk {
        Walk::Forward(bytes) => bytes.map(|b| turns as usize * b as usize / 8),
        _ => [0; 3],
    };
    let sum = |words: &[u64]| words.iter().fold(0, |sum: u64, w| sum.wrapping_add(*w));
    let double = |word: u64| f64::from_bits(word);
    let pattern = kernel.width_bits as usize / 64;
    let mut each = |of: &dyn Fn(usize, &[u64]) -> u64| {
        for i in 0..bytes[0] {
            words[a + i] = of(i, words);
        }
        0
    };
    match (family, kernel.name) {
        ("read", "read.strided8") => {
            (0..turns as usize * 8).fold(0, |sum, i| sum.wrapping_add(words[a + i * step_words]))
        }
        ("write", "write.strided8") => {
            (0..turns as usize * 8).for_each(|i| words[a + i * step_words] = words[a]);
            0
        }
        ("read", _) => sum(&words[a..a + bytes[0]]),
        ("write", "write.rep_stosb") => each(&|_, w| (w[a] & 0xff) * 0x0101_0101_0101_0101),
        ("write", "write.zva") => each(&|_, _| 0),
        ("write" | "write_nt", _) => each(&|i, w| w[a + i % pattern]),
        ("copy" | "copy_nt", _) => each(&|i, w| w[b + i]),
        ("scale", _) => each(&|i, w| (3.0 * double(w[b + i])).to_bits()),
        ("add", _) => each(&|i, w| (double(w[b + i]) + double(w[c + i])).to_bits()),
        ("triad", _) => each(&|i, w| (double(w[b + i]) + 3.0 * double(w[c + i])).to_bits()),
        ("update", _) => each(&|i, w| (-double(w[a + i])).to_bits()),
        ("daxpy", _) => each(&|i, w| (double(w[a + i]) + 3.0 * double(w[b + i])).to_bits()),
        ("mix_1r1w" | "mix_2r1w" | "mix_3r1w", _) => {
            each(&|i, w| w[a + i % pattern]);
            sum(&words[b..b + bytes[1]])
        }
        (other, _) => panic!("a family {other} that is not tested"),
    }
}

#[test]
fn every_kernel_computes_what_it_says_and_touches_nothing_else() {
    let mut ran = 0;
    for kernel in all().filter(|k| (k.available)() && k.walk != Walk::Chase && k.walk != Walk::Register) {
        for (turns, passes, step_words) in [(1, 1, 1), (3, 1, 8), (2, 4, 9), (5, 3, 16), (8, 2, 33)] {
            let field = Field::new();
            let mut expected = field.words();
            let ready = kernel.ready(turns, field.operands(), step_words as u64 * 8).unwrap();
            assert_eq!((ready.kernel().name, ready.turns()), (kernel.name, turns));
            let sum = (0..passes)
                .fold(0, |sum: u64, _| sum.wrapping_add(pass(kernel, turns, step_words, &mut expected)));
            assert_eq!(ready.run(0), 0);
            let returned = ready.run(passes);
            let name = format!("{}, {turns} turns, {passes} passes", kernel.name);
            if kernel.declared.loads > 0 && kernel.declared.stores == 0 || kernel.name.starts_with("mix") {
                assert_eq!(returned, sum, "{name}");
            }
            for (at, (found, want)) in field.words().iter().zip(&expected).enumerate() {
                // A fused multiply-add rounds once where the plain computation rounds twice.
                let close = kernel.declared.flops > 0
                    && (f64::from_bits(*found) - f64::from_bits(*want)).abs()
                        <= 4.0 * f64::EPSILON * f64::from_bits(*want).abs();
                assert!(found == want || close, "{name}: word {at} is {found:x}, not {want:x}");
            }
            ran += 1;
        }
    }
    assert!(ran > 100, "{ran}");
}

#[test]
fn register_kernels_add_what_they_say() {
    let field = Field::new();
    for kernel in all().filter(|k| (k.available)() && k.walk == Walk::Register) {
        let before = field.words();
        let returned = kernel.ready(7, field.operands(), 0).unwrap().run(5);
        assert_eq!(field.words(), before, "{}", kernel.name);
        let (family, count) = kernel.name.split_once('.').unwrap_or((kernel.name, "0"));
        if ["adds", "mix"].contains(&family) {
            assert_eq!(returned, 35 * count.parse::<u64>().unwrap(), "{}", kernel.name);
        }
    }
}

#[test]
fn a_fused_kernel_stays_on_normal_numbers() {
    let field = Field::new();
    for kernel in all().filter(|k| (k.available)() && k.name.starts_with("fma.")) {
        let value = f64::from_bits(kernel.ready(1_000_000, field.operands(), 0).unwrap().run(1));
        assert!(value.is_normal() && value > 0.9, "{}: {value}", kernel.name);
    }
}

#[test]
fn names_are_unique_and_found() {
    let names: BTreeSet<&str> = all().map(|k| k.name).collect();
    for name in &names {
        assert_eq!(named(name).unwrap().name, *name);
    }
    assert_eq!(names.len(), all().count());
    assert!(named("read.mmx").is_none());
    for family in
        ["read", "write", "write_nt", "copy", "copy_nt", "scale", "add", "triad", "update", "daxpy", "fma"]
    {
        let there = |k: &&Kernel| k.name.starts_with(&format!("{family}.")) && (k.available)();
        assert!(all().any(|k| there(&k)), "{family} for this processor");
    }
}

#[test]
fn bytes_are_counted_with_and_without_allocation() {
    let bytes = |name: &str| {
        let kernel = named(name).unwrap();
        (kernel.bytes_per_turn(), kernel.bytes_with_allocate())
    };
    assert_eq!(bytes("read.scalar"), (64, 64));
    assert_eq!(bytes("write.scalar"), (64, 128));
    assert_eq!(bytes("write_nt.scalar"), (64, 64));
    assert_eq!(bytes("copy.scalar"), (128, 192));
    assert_eq!(bytes("copy_nt.scalar"), (128, 128));
    assert_eq!(bytes("triad.scalar"), (192, 256));
    assert_eq!(bytes("update.scalar"), (128, 128), "the line is loaded anyway");
    assert_eq!(bytes("daxpy.scalar"), (120, 120));
    assert_eq!(bytes("write.strided8"), (64, 64 + 8 * 64));
    assert_eq!(bytes("read.strided8"), (64, 64));
    assert_eq!(bytes("chase.2"), (256, 256));
    assert_eq!(bytes("chase_store.1"), (256, 256), "the line is loaded anyway");
    assert_eq!(bytes("empty"), (0, 0));
    let (requested, moved) = all()
        .find(|k| k.name.starts_with("mix_3r1w"))
        .map(|k| (k.bytes_per_turn(), k.bytes_with_allocate()))
        .unwrap();
    assert_eq!(moved * 4, requested * 5, "three read, one written, which is read too");
}

#[test]
fn what_does_not_fit_is_refused_in_one_line() {
    let field = Field::new();
    let operands = field.operands();
    let refused = |kernel: &'static Kernel, turns, operands, step, said: &str| {
        let e = kernel.ready(turns, operands, step).unwrap_err().to_string();
        assert!(e.contains(said) && e.contains(kernel.name) && !e.contains('\n'), "{e}");
    };
    let copy = named("copy.scalar").unwrap();
    refused(copy, 0, operands, 0, "0 turns");
    refused(copy, 1_000, operands, 0, "1000 turns need 64000 bytes, operand 0 has 49152");
    refused(copy, u64::MAX, operands, 0, "operand 0 has 49152");
    let [a, b, c] = operands;
    refused(copy, 10, [a, b.part(0, 512).unwrap(), c], 0, "operand 1 has 512");
    refused(copy, 1, [a, b.part(4, 512).unwrap(), c], 0, "operand 1 is not aligned to 8");
    let strided = named("read.strided8").unwrap();
    for step in [0, 7, 12] {
        refused(strided, 1, operands, step, "is not a multiple of 8");
    }
    refused(strided, 7, operands, 1_024, "7 turns need 57344 bytes");
    refused(strided, 7, operands, u64::MAX - 7, "7 turns need");
    refused(named("chase.1").unwrap(), 1, operands, 0, "run by the chain");
    refused(&FIXTURES[0], 1, operands, 8, "does not have");
    assert!(
        copy.ready(8, [a, b, a.part(0, 1).unwrap()], 0).is_ok(),
        "an operand that is not moved needs no size"
    );
}
