//! What `bench/simulate` counts: `instructions PATTERN RANKS` runs a pattern once, `instructions FILE.goal OUT` converts a schedule to
//! the binary form. Prints what a figure is divided by: events, or bytes of the text.

use machmeter_simulate::goal::{read_text, write_binary};
use machmeter_simulate::noise::Quiet;
use machmeter_simulate::patterns::{Shape, Stepped, find};
use machmeter_simulate::{Dialect, Line, Params, run};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let (what, other) = (arguments.next().unwrap_or_default(), arguments.next().unwrap_or_default());
    let mut out = std::io::stdout();
    if let Some(info) = find(&what) {
        let ranks = other.parse()?;
        let pattern = (info.make)(Shape::of(ranks, 1));
        let line = |first_ps, per_byte| Line { first_ps, per_byte };
        // The reference's defaults.
        let (cpu, gap) = (line(1_500_000, 0), line(1_000_000, 6_144_000));
        let params = Params::simple(cpu, gap, 2_500_000, 65_535, Dialect::Machmeter);
        let mut program = Stepped::new(pattern.as_ref(), ranks, 1, 0);
        let done = run::<u64, _, _>(&mut program, &params, &mut Quiet, &|| false)?;
        return Ok(std::io::Write::write_fmt(&mut out, format_args!("{} {}\n", done.events, done.last().1))?);
    }
    let text = std::fs::read(&what)?;
    let mut file = std::io::BufWriter::new(std::fs::File::create(&other)?);
    write_binary(&read_text(&text)?, &mut file)?;
    Ok(std::io::Write::write_fmt(&mut out, format_args!("{}\n", text.len()))?)
}
