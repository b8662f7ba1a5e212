//! Tests of figures on the real machine: their order, the self-tests, and the time of ordinary use. These tests run alone.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests fail and print their figures")]

mod compare;
mod costs;
mod flow;
mod net;
mod ordinary_use;
#[path = "../program/mod.rs"]
mod program;
mod selftest;
