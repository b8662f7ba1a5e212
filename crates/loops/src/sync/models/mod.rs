//! Operations of programming models: user threads on one worker, and two members on a symmetric heap.

mod operations;
#[cfg(feature = "user-threads")]
pub mod user_threads;

pub use operations::Operation;
