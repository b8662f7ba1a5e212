//! Writes the schedules and gaps of the fixtures, and for each of them the hash of its ends here and the options of the reference simulator:
//! `schedules DIR COUNT`.

#[path = "../tests/simulations/schedules.rs"]
mod schedules;

use std::fs::File;
use std::io::{BufWriter, Write as _};

use machmeter_simulate::goal::{Schedule, write_binary, write_text};
use machmeter_simulate::noise::Quiet;
use machmeter_simulate::{Dialect, run};

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments.next().unwrap_or_else(|| ".".to_owned());
    let count: u64 = arguments.next().and_then(|n| n.parse().ok()).unwrap_or(120);
    let gaps: Vec<String> =
        schedules::gaps_ns().iter().map(|(start, length)| format!("{start}\t{length}")).collect();
    std::fs::write(format!("{directory}/noise"), gaps.join("\n"))?;
    let mut options = File::create(format!("{directory}/options"))?;
    for seed in 1..=count {
        let goal = schedules::schedule(seed);
        let mut text = BufWriter::new(File::create(format!("{directory}/{seed}.goal"))?);
        write_text(&goal, &mut text)?;
        text.flush()?;
        let mut binary = BufWriter::new(File::create(format!("{directory}/{seed}.own"))?);
        write_binary(&goal, &mut binary)?;
        binary.flush()?;
        let c = schedules::Costs::of_seed(seed);
        let schedules::Costs { l, o, g, per_byte, cpu_per_byte, eager_bytes } = c;
        let params = c.params(Dialect::LogGopSim);
        let ends = run::<u64, _, _>(&mut Schedule::new(&goal), &params, &mut Quiet, &|| false)
            .map(|f| schedules::hash(&f.ends));
        let ends = ends.map_or_else(|e| e.to_string(), |hash| format!("{hash:016x}"));
        writeln!(
            options,
            "{seed},{ends},-L {l} -o {o} -g {g} -G {per_byte} -O {cpu_per_byte} -S {eager_bytes}"
        )?;
    }
    Ok(())
}
