//! Runs the self-test of the noise probe without the rest of the program: `selftest_noise [--quick] [--unprivileged]`.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "an example talks to its user")]

use machmeter_engine::host::Silent;
use machmeter_probes::noise::selftest::{Options, SelfCheck, run, run_unprivileged};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |a: &str| arguments.iter().any(|x| x == a);
    let mut child = vec!["--unprivileged".into()];
    child.extend(has("--quick").then(|| "--quick".into()));
    let options = Options { quick: has("--quick"), cpu: None, seed: 1, unprivileged_arguments: Some(child) };
    if has("--unprivileged") {
        let checks = run_unprivileged(&options, &Silent).unwrap_or_default();
        println!("{}", serde_json::to_string(&checks).unwrap_or_default());
        return;
    }
    match run(&options, &Silent) {
        Ok(checks) => checks.iter().for_each(print),
        Err(e) => eprintln!("error: {e}"),
    }
}

fn print(c: &SelfCheck) {
    println!(
        "{:9}  {}: {}\n           truth: {}\n           found: {}\n           bar: {}",
        c.state.name(),
        c.id,
        c.what,
        c.truth,
        c.found,
        c.bar
    );
}
