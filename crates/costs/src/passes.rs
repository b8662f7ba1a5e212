//! Kernels whose turns are passes.

use machmeter_engine::sampling::Subject;
use machmeter_sys::kernel::Ready;

/// A kernel that returns nothing of interest.
pub(crate) struct Passes<'a>(pub(crate) Ready<'a>);

impl Subject for Passes<'_> {
    fn run(&mut self, turns: u64) -> bool {
        std::hint::black_box(self.0.run(turns));
        true
    }
}
