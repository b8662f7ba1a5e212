//! Instructions of aarch64: those that the kernels use, by the encodings of the Arm Architecture Reference Manual (DDI 0487,
//! chapter C4). Anything else is an error, so that nothing is overlooked.

use super::body::{Access, Flow, Registers, Step, Store};

const INSTRUCTION_BYTES: u8 = 4;

/// The stack pointer's number where an address is meant.
const STACK_POINTER: u32 = 31;

#[cfg(target_arch = "aarch64")]
pub(super) fn read(code: crate::kernel::Code) -> Result<Vec<Step>, String> {
    let start = code as *const u32;
    super::body::function(super::LONGEST_BYTES, |at| {
        // SAFETY: the offsets asked for lie in the function, one instruction after the other up to its return.
        let here = unsafe { start.byte_add(at) };
        // SAFETY: code is mapped, readable and aligned to instructions; nobody writes to it.
        step(unsafe { here.read() }, at as i64)
    })
}

/// What is the same of most instructions, to be changed by what differs.
fn plain(at: i64) -> Step {
    Step { at, length: INSTRUCTION_BYTES, ..Step::default() }
}

/// `count` bits of a word from bit `low` on.
const fn bits(word: u32, low: u32, count: u32) -> u32 {
    (word >> low) & ((1 << count) - 1)
}

/// A field as a number with a sign.
const fn signed(word: u32, low: u32, count: u32) -> i64 {
    let field = bits(word, low, count) as i64;
    if bits(word, low + count - 1, 1) == 1 { field - (1 << count) } else { field }
}

/// A general register; the zero register holds nothing.
fn general(number: u32) -> Registers {
    if number == 31 { 0 } else { 1 << number }
}

fn vector(number: u32) -> Registers {
    1 << (32 + number)
}

pub(super) fn step(word: u32, at: i64) -> Result<Step, String> {
    branch(word, at)
        .or_else(|| single(word, at))
        .or_else(|| pair(word, at))
        .or_else(|| integer(word, at))
        .or_else(|| floating(word, at))
        .ok_or_else(|| format!("an instruction {word:08x} at byte {at} that is not known"))
}

fn branch(word: u32, at: i64) -> Option<Step> {
    let flow = match word {
        0xd65f_03c0 => Flow::Return,
        // b.cond; cbz and cbnz; b; bl.
        w if w & 0xff00_0010 == 0x5400_0000 => Flow::Branch(at + 4 * signed(w, 5, 19)),
        w if w & 0x7e00_0000 == 0x3400_0000 => Flow::Branch(at + 4 * signed(w, 5, 19)),
        w if w & 0xfc00_0000 == 0x1400_0000 => Flow::Branch(at + 4 * signed(w, 0, 26)),
        w if w & 0xfc00_0000 == 0x9400_0000 => Flow::Call,
        _ => return None,
    };
    Some(Step { flow, ..plain(at) })
}

/// Loads and stores of one register of 64 or 128 bits, and `dc zva`.
fn single(word: u32, at: i64) -> Option<Step> {
    let (base, target) = (bits(word, 5, 5), bits(word, 0, 5));
    if word & 0xffff_ffe0 == 0xd50b_7420 {
        let access = access(target, 0, 64, false);
        return Some(Step { accesses: vec![access], reads: general(target), ..plain(at) });
    }
    if word & 0x3a00_0000 != 0x3800_0000 {
        return None;
    }
    let (is_vector, size, operation) = (bits(word, 26, 1) == 1, bits(word, 30, 2), bits(word, 22, 2));
    let (bytes, load) = match (is_vector, size, operation) {
        (_, 3, 0) => (8, false),
        (_, 3, 1) => (8, true),
        (true, 0, 2) => (16, false),
        (true, 0, 3) => (16, true),
        _ => return None,
    };
    let mut access = access(base, 0, bytes, load);
    let (mut index, mut advance) = (0, None);
    if bits(word, 24, 1) == 1 {
        access.displacement = i64::from(bits(word, 10, 12)) * i64::from(bytes);
    } else if bits(word, 21, 1) == 1 && bits(word, 10, 2) == 2 {
        access.indexed = true;
        index = general(bits(word, 16, 5));
    } else if bits(word, 21, 1) == 0 && bits(word, 10, 2) == 1 {
        // Post-indexed: the address moves on after the access.
        advance = Some(signed(word, 12, 9));
    } else {
        return None;
    }
    let moved = if is_vector { vector(target) } else { general(target) };
    Some(moving(access, index, moved, advance, at))
}

/// A load to `moved`, or a store of it, after which (or before) the address moves on by `advance`.
fn moving(access: Access, index: Registers, moved: Registers, advance: Option<i64>, at: i64) -> Step {
    let base = access.base;
    let (loaded, stored) = if access.load { (moved, 0) } else { (0, moved) };
    Step {
        accesses: vec![access],
        reads: base | index | stored,
        writes: loaded | if advance.is_some() { base } else { 0 },
        advance: advance.map(|bytes| (base, bytes)),
        ..plain(at)
    }
}

fn pair(word: u32, at: i64) -> Option<Step> {
    if word & 0x3a00_0000 != 0x2800_0000 {
        return None;
    }
    let is_vector = bits(word, 26, 1) == 1;
    let each = match (is_vector, bits(word, 30, 2)) {
        (false, 2) | (true, 1) => 8,
        (true, 2) => 16,
        _ => return None,
    };
    let load = bits(word, 22, 1) == 1;
    let mut access = access(bits(word, 5, 5), signed(word, 15, 7) * i64::from(each), 2 * each, load);
    // 0: no allocation in caches; 1: after the access, 2: never, 3: before it, the address moves on.
    let form = bits(word, 23, 3);
    let mut advance = None;
    match form {
        0 => access.store = (!load).then_some(Store::Streaming),
        1 => {
            advance = Some(access.displacement);
            access.displacement = 0;
        }
        2 => {}
        3 => advance = Some(access.displacement),
        _ => return None,
    }
    let register = if is_vector { vector } else { general };
    let moved = register(bits(word, 0, 5)) | register(bits(word, 10, 5));
    Some(moving(access, 0, moved, advance, at))
}

fn access(base: u32, displacement: i64, bytes: u32, load: bool) -> Access {
    Access {
        base: if base == STACK_POINTER { 1 << STACK_POINTER } else { general(base) },
        indexed: false,
        displacement,
        bytes,
        load,
        store: (!load).then_some(Store::Ordinary),
        stack: base == STACK_POINTER,
    }
}

fn integer(word: u32, at: i64) -> Option<Step> {
    let (to, from, other) =
        (general(bits(word, 0, 5)), general(bits(word, 5, 5)), general(bits(word, 16, 5)));
    let step = plain(at);
    match word {
        // nop, which alignment is made of.
        0xd503_201f => Some(step),
        // add, sub and subs of a constant, which may be shifted by 12.
        w if w & 0x9f80_0000 == 0x9100_0000 => {
            let constant = i64::from(bits(w, 10, 12)) << (12 * bits(w, 22, 1));
            let constant = if bits(w, 30, 1) == 1 { -constant } else { constant };
            let advance = (to == from).then_some((to, constant));
            Some(Step { reads: from, writes: to, advance, ..step })
        }
        // add and sub of registers; orr, which mov is.
        w if w & 0xbf20_0000 == 0x8b00_0000 || w & 0xffe0_fc00 == 0xaa00_0000 => {
            Some(Step { reads: from | other, writes: to, ..step })
        }
        // movz.
        w if w & 0xff80_0000 == 0xd280_0000 => {
            let value = u64::from(bits(w, 5, 16)) << (16 * bits(w, 21, 2));
            Some(Step { writes: to, constant: Some((to, value)), ..step })
        }
        // mul, as a multiplication that adds the zero register.
        w if w & 0xffe0_fc00 == 0x9b00_7c00 => Some(Step { reads: from | other, writes: to, ..step }),
        _ => None,
    }
}

fn floating(word: u32, at: i64) -> Option<Step> {
    let (to, from, other) = (vector(bits(word, 0, 5)), vector(bits(word, 5, 5)), vector(bits(word, 16, 5)));
    let step = plain(at);
    let binary = |flops| Some(Step { reads: from | other, writes: to, flops, ..plain(at) });
    match word & 0xffe0_fc00 {
        // fmul and fadd of doubles and of pairs of doubles; fmla; add of pairs of words.
        0x1e60_0800 | 0x1e60_2800 => return binary(1),
        0x6e60_dc00 | 0x4e60_d400 => return binary(2),
        0x4e60_cc00 => return Some(Step { reads: to | from | other, writes: to, flops: 4, ..step }),
        0x4ee0_8400 => return binary(0),
        _ => {}
    }
    match word {
        // fmadd of doubles.
        w if w & 0xffe0_8000 == 0x1f40_0000 => {
            let reads = from | other | vector(bits(w, 10, 5));
            Some(Step { reads, writes: to, flops: 2, ..step })
        }
        // fmov of a constant: to a double, to a pair; movi of zeros to a pair.
        w if w & 0xffe0_1fe0 == 0x1e60_1000
            || w & 0xfff8_fc00 == 0x6f00_f400
            || w & 0xfff8_fc00 == 0x6f00_e400 =>
        {
            Some(Step { writes: to, ..step })
        }
        // fmov between a general register and a double, each way.
        w if w & 0xffff_fc00 == 0x9e67_0000 => {
            Some(Step { reads: general(bits(w, 5, 5)), writes: to, ..step })
        }
        w if w & 0xffff_fc00 == 0x9e66_0000 => {
            Some(Step { reads: from, writes: general(bits(w, 0, 5)), ..step })
        }
        // addp of a pair of words.
        w if w & 0xffff_fc00 == 0x5ef1_b800 => Some(Step { reads: from, writes: to, ..step }),
        _ => None,
    }
}
