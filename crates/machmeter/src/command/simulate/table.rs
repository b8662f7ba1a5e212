//! `machmeter simulate --table --on RUN`: computes the costs of MPI operations on simulated ranks, with laws in ranks and bytes.

use machmeter_data::quantity::parse_bytes;
use machmeter_simulate::table::{OPERATIONS, Point, analyze, fill, points, sizes};
use serde_json::json;

use super::inputs::{link, names_of, of_link};
use super::runs::over_threads;
use super::{Asked, Need, PLAN, record_of, warn_of};
use crate::command::keep::keep_figures;
use crate::{Exit, Failure, Globals};

/// Largest message, bytes; as in the mpi probe.
const MOST_BYTES: u64 = 64 << 20;
/// Events per second of a CPU if times carry their parts: 1.5 to 4 M were measured at 2.6 GHz.
const EVENTS_PER_SECOND: f64 = 2e6;

/// Parses `8-1M`.
pub(super) fn range(text: &str) -> Result<(u64, u64), String> {
    let ends = text.split_once('-').and_then(|(a, b)| parse_bytes(a.trim()).zip(parse_bytes(b.trim())));
    let fits = |(a, b): &(u64, u64)| a <= b && *b <= MOST_BYTES;
    ends.filter(fits).ok_or_else(|| format!("'{text}' is not a range of sizes up to 64M, such as 8-1M"))
}

pub(super) fn run(asked: &Asked, globals: &Globals) -> Result<Exit, Failure> {
    let (on, of) = link(asked)?;
    let sizes = sizes(&of.params, asked.sizes);
    let points = points(&chosen(&asked.ops)?, &asked.ranks, &sizes);
    let need = Need {
        events: points.iter().map(Point::events).fold(0, u64::saturating_add),
        largest_bytes: points.iter().map(Point::memory_bytes).max().unwrap_or(0),
        jobs: points.len(),
        events_per_second: EVENTS_PER_SECOND,
    };
    let threads = need.threads(globals)?;
    if !need.begins(threads, globals)? {
        return Ok(Exit::Fine);
    }
    // The largest jobs come first, so that no thread gets one at the end.
    let mut jobs = points.clone();
    jobs.sort_by_key(|p| std::cmp::Reverse(p.events()));
    let progress = need.progress(threads, globals);
    let costs = over_threads(&jobs, threads, &progress, |p| p.ranks, |p, stop| p.simulate(&of.params, stop))?;
    drop(progress);
    let mut done: Vec<_> = jobs.into_iter().zip(costs).filter_map(|(p, cost)| Some((p, cost?))).collect();
    done.sort_by_key(|(p, _)| (p.operation, p.ranks, p.bytes));
    let parameters = json!({ "table": { "on": on.id, "link": of.name, "ranks": asked.ranks[..], "sizes": sizes,
        "segments": format!("{:?}", of.params.segments()) } });
    let mut record = record_of(PLAN, parameters, on.machine, globals);
    let last = asked.ranks[asked.ranks.len() - 1];
    let title = format!("2 to {last} simulated ranks on {}", of_link(asked, &of.name));
    fill(&mut record, &title, &analyze(&of, &done));
    warn_of(&mut record, of.assumptions.iter().map(String::as_str));
    Ok(keep_figures(record, globals))
}

fn chosen(names: &[String]) -> Result<Vec<usize>, Failure> {
    if names.is_empty() {
        return Ok((0..OPERATIONS.len()).collect());
    }
    let place = |name: &String| {
        OPERATIONS.iter().position(|o| o.name == name.trim()).ok_or_else(|| {
            Failure::usage(format!("--ops: '{name}' is not one of {}", names_of(OPERATIONS, |o| o.name)))
                .help(
                    "only calls that consist of messages can be simulated; machmeter mpi measures the others",
                )
        })
    };
    let mut all = names.iter().map(place).collect::<Result<Vec<_>, _>>()?;
    all.sort_unstable();
    all.dedup();
    Ok(all)
}
