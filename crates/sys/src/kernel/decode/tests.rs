use super::body::{Flow, Store, function};
use super::*;
use crate::kernel::all;
use crate::kernel::declared::Stream;

#[test]
fn every_kernel_does_what_it_declares() {
    let wrong: Vec<String> = all().filter_map(|k| check(k).err()).collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(all().count() > 40, "kernels of instruction sets this processor lacks are read too");
}

#[test]
fn every_fixture_is_caught_with_the_reason() {
    let reasons = [
        ("seed_unrolled", "declares 8 loads, its code has 7"),
        ("folded_loads", "declares 16 loads, its code has 1"),
        ("folded_sum", "declares 16 operations, its code has 1"),
        ("spill", "declares 0 accesses to the stack, its code has 2"),
        ("branches", "declares 1 branches, its code has 2"),
        ("call", "declares 0 calls, its code has 1"),
        ("overlap", "each are not in need of the one before"),
        ("gap", "leaves bytes out"),
        ("overrun", "move on by [64] bytes, in its code they move by [128]"),
    ];
    assert_eq!(reasons.map(|(name, _)| name).to_vec(), FIXTURES.iter().map(|f| f.name).collect::<Vec<_>>());
    for (fixture, (_, reason)) in FIXTURES.iter().zip(reasons) {
        let said = check(fixture).unwrap_err();
        assert!(said.starts_with(fixture.name) && said.contains(reason) && !said.contains('\n'), "{said}");
        assert!(!(fixture.available)());
    }
}

type Change = fn(&mut Declared);

/// The check must see each field: every kernel with one field changed fails.
#[test]
fn a_changed_declaration_is_caught() {
    let changes: [(&str, Change); 10] = [
        ("loads", |d| d.loads += 1),
        ("stores", |d| d.stores += 1),
        ("streaming stores", |d| d.streaming_stores += 1),
        ("bytes loaded", |d| d.load_bytes += 8),
        ("bytes stored", |d| d.store_bytes += 8),
        ("branches", |d| d.branches += 1),
        ("floating-point operations", |d| d.flops += 1),
        ("operations", |d| d.operations += 1),
        ("Dependent", |d| d.chain = Chain::Dependent),
        ("Independent", |d| d.chain = Chain::Independent),
    ];
    for kernel in all() {
        for (what, change) in changes {
            let mut changed = *kernel;
            change(&mut changed.declared);
            if changed.declared == kernel.declared {
                continue;
            }
            let said = check(&changed).unwrap_err();
            assert!(said.contains(what), "{said}");
        }
    }
}

/// Words as the LLVM assembler writes them.
#[test]
fn instructions_of_aarch64_are_read_on_any_machine() {
    let step = |word| aarch64::step(word, 64).unwrap();
    let one = |word| {
        let accesses = step(word).accesses;
        assert_eq!(accesses.len(), 1);
        let a = accesses[0];
        assert_eq!(a.store.is_none(), a.load);
        (a.base.trailing_zeros(), a.displacement, a.bytes, a.load, a.store == Some(Store::Streaming))
    };
    assert_eq!(one(0xad41_4570), (11, 32, 32, true, false), "ldp q16, q17, [x11, #32]");
    assert_eq!(one(0xac02_4550), (10, 64, 32, false, true), "stnp q16, q17, [x10, #64]");
    assert_eq!(one(0xf940_0000), (0, 0, 8, true, false), "ldr x0, [x0]");
    assert_eq!(one(0xf900_0d4d), (10, 24, 8, false, false), "str x13, [x10, #24]");
    assert_eq!(one(0xfd40_1590), (12, 40, 8, true, false), "ldr d16, [x12, #40]");
    assert_eq!(one(0x3d80_0d43), (10, 48, 16, false, false), "str q3, [x10, #48]");
    assert_eq!(one(0xd50b_742a), (10, 0, 64, false, false), "dc zva, x10");
    assert!(step(0xf866_6950).accesses[0].indexed, "ldr x16, [x10, x6]");
    assert_eq!(step(0xf840_8443).advance, Some((1 << 2, 8)), "ldr x3, [x2], #8");
    assert!(step(0xa9bb_53f3).accesses[0].stack, "stp x19, x20, [sp, #-80]!");
    assert!(step(0xf900_03e0).accesses[0].stack, "str x0, [sp]");
    assert_eq!(step(0x9102_014a).advance, Some((1 << 10, 128)), "add x10, x10, #128");
    assert_eq!(step(0xf100_0529).advance, Some((1 << 9, -1)), "subs x9, x9, #1");
    let moved = step(0x8b05_0d4a);
    assert_eq!((moved.reads, moved.writes), (1 << 10 | 1 << 5, 1 << 10), "add x10, x10, x5, lsl #3");
    let flops =
        [0x1f5e_7c20, 0x4e7f_cfc4, 0x6e7f_dc84, 0x1e70_2842, 0x4ef0_8400].map(|word| step(word).flops);
    assert_eq!(flops, [2, 4, 2, 1, 0], "fmadd, fmla, fmul of pairs, fadd, add of pairs");
    let flow = [0x9400_0002, 0xb400_0040, 0x54ff_ff81, 0x1400_0003, 0xd65f_03c0].map(|word| step(word).flow);
    let branches = [72, 48, 76].map(Flow::Branch);
    assert_eq!(
        flow,
        [Flow::Call, branches[0], branches[1], branches[2], Flow::Return],
        "bl, cbz, b.ne, b, ret"
    );
    for word in [0xc8df_fc43, 0xd3fc_ec63, 0] {
        assert!(
            aarch64::step(word, 4).unwrap_err().contains("at byte 4 that is not known"),
            "ldar, lsl, udf"
        );
    }
}

#[test]
fn a_loop_of_aarch64_is_counted() {
    // mov x9, x1; mov x10, x2; mov x11, x3; 3: ldp q16, q17, [x11]; stnp q16, q17, [x10]; add x10, x10, #32;
    // add x11, x11, #32; subs x9, x9, #1; b.ne 3b; ret
    let words = [
        0xaa01_03e9_u32,
        0xaa02_03ea,
        0xaa03_03eb,
        0xad40_4570,
        0xac00_4550,
        0x9100_814a,
        0x9100_816b,
        0xf100_0529,
        0x54ff_ff61,
        0xd65f_03c0,
    ];
    let steps = function(4_096, |at| aarch64::step(words[at / 4], at as i64)).unwrap();
    assert_eq!(steps.len(), words.len());
    let decoded = body::decode(&steps).unwrap();
    assert_eq!(decoded.found, Declared { streaming_stores: 1, ..Stream::Copy.declared(1, 32) });
    assert_eq!((decoded.advances, decoded.gapless), (vec![32, 32], true));
    assert!(
        function(8, |at| aarch64::step(words[at / 4], at as i64)).unwrap_err().contains("no end within 8")
    );
    assert_eq!(body::decode(&steps[..3]).unwrap_err(), "no loop");
}

/// A store between two loads leaves no result that the next load could need; it belongs to the chain if it needs what was loaded.
#[test]
fn stores_are_part_of_a_chain_that_leads_past_them() {
    let dependent = |middle: [u32; 4]| {
        // middle; subs x0, x0, #1; b.ne middle; ret
        let words = [&middle[..], &[0xf100_0400, 0x54ff_ff61, 0xd65f_03c0]].concat();
        let steps = function(4_096, |at| aarch64::step(words[at / 4], at as i64)).unwrap();
        let found = body::decode(&steps).unwrap().found;
        assert_eq!(found.loads + found.stores, 4);
        found.chain == Chain::Dependent
    };
    // ldr x4, [x3]; str x4, [x3]; ldr x3, [x4]; str x3, [x4]
    assert!(dependent([0xf940_0064, 0xf900_0064, 0xf940_0083, 0xf900_0083]));
    // The first store is str x5, [x6].
    assert!(!dependent([0xf940_0064, 0xf900_00c5, 0xf940_0083, 0xf900_0083]));
    // The second load is ldr x3, [x5].
    assert!(!dependent([0xf940_0064, 0xf900_0064, 0xf940_00a3, 0xf900_0083]));
    // Stores alone.
    assert!(!dependent([0xf900_0064, 0xf900_0083, 0xf900_0064, 0xf900_0083]));
}
