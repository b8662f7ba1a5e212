//! Boxes of speech enhancement, as far as [`super::transform`] lacks them: functions of a frame, of which [`super::Blocks`] makes boxes.

pub mod frames;
pub mod gain;
pub mod signal;

/// Frames are of three classes, and each class has a branch of its own.
pub const CLASSES: usize = 3;
pub const PAUSE: usize = 0;
pub const VOICED: usize = 1;
pub const TRANSIENT: usize = 2;
