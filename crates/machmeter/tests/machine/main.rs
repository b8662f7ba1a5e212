//! Figures of the real machine: their order, the self-tests, and the time that ordinary use takes. These tests run alone.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests fail and print their figures")]

mod compare;
mod costs;
mod flow;
mod net;
mod ordinary_use;
#[path = "../program/mod.rs"]
mod program;
mod selftest;
