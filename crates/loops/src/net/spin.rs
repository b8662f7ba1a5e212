//! Work whose length does not depend on where its code lies.

use std::hint::black_box;

/// Turns of an empty loop. Never inlined: copies are aligned differently (interbench 0.31 runs one twice as fast).
#[inline(never)]
pub fn spin(turns: u64) {
    let mut i = 0_u64;
    while i < turns {
        i = black_box(i + 1);
    }
}
