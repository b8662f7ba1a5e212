//! Killing any process of a tree at any time leaves nothing behind.

pub(crate) const TESTS: &[(&str, fn())] = &[];
