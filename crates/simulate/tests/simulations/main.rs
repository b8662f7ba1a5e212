//! Simulations of planted costs: closed forms, the reference simulator, traces and their replays, expressions.

#![allow(clippy::unwrap_used, reason = "tests fail and tell their figures")]

mod expr;
#[path = "../../../machmeter/tests/cli/calculated/given.rs"]
mod given;
mod noise;
mod programs;
mod reference;
mod replay;
mod schedules;
mod table;

use machmeter_simulate::noise::Quiet;
use machmeter_simulate::{Finished, Params, Program, Time, run};

fn quiet<T: Time>(program: &mut impl Program, params: &Params) -> Finished<T> {
    run(program, params, &mut Quiet, &|| false).unwrap()
}
