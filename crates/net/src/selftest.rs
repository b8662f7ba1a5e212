//! Self-test: a link with planted parameters between two CPUs, and sizes that make a send wait, known or searched again.

use std::os::unix::net::UnixStream;
use std::sync::Arc;

use machmeter_data::Metric;
use machmeter_engine::cost::Rows;
use machmeter_engine::deadline::stop_requested;
use machmeter_engine::experiment::Enough;
use machmeter_engine::host::Silent;
use machmeter_engine::role::Role;
use machmeter_engine::sampling::{HostTiming, Sampler};
use machmeter_engine::selftest::machine::{Machine, Steal};
use machmeter_engine::selftest::{self, Options, SelfCheck, State, percent};
use machmeter_stats::quantile::median_of;
use machmeter_sys::link::{Transport, Wait};
use machmeter_sys::sched::Policy;
use machmeter_sys::thread::{self, monotonic_ns};

use crate::analyze::analyze;
use crate::cells::{Ends, ThresholdCell};
use crate::far::attend_over;
use crate::info::{GAP, GAP_PER_BYTE, LATENCY, OVERHEAD_RECV, OVERHEAD_SEND};
use crate::near::{Near, OpenLink};
use crate::orders::{Answer, Order};
use crate::plan::{Sizes, Way};
use crate::planted::{Achieved, Parameters, PlantedLink};
use crate::set::{Cost, Links};

const PLANTED: Parameters =
    Parameters { send_ns: 900, recv_ns: 700, gap_ns: 1_600, per_byte_ns: 0.2, latency_ns: 4_000 };
/// Largest message of the planted link, bytes.
const LAST: u64 = 16 << 10;
/// Runs, quick and full, and the time of one, ns.
const RUNS: [usize; 2] = [3, 5];
const RUN_NS: u64 = 1_500_000_000;
/// Gaps may be off by this share; overheads and latency by a tenth or so many ns.
const GAPS_OFF: f64 = 0.03;
const TIMES_OFF: f64 = 0.1;
const TIMES_OFF_NS: f64 = 100.0;

pub(crate) fn planted(machine: &Machine, options: &Options) -> Vec<SelfCheck> {
    let what = "a link that spins for each of its parameters, between two CPUs";
    let cpus: Vec<usize> = machine.allowed.iter().collect();
    let refuse = |why: &str| vec![SelfCheck::not_shown("planted", what, "each within its bound", why)];
    let [near_cpu, far_cpu, ..] = cpus[..] else { return refuse("needs two CPUs, has 1") };
    let steal = Steal::watch();
    let achieved = Arc::new(Achieved::default());
    let mut found: Vec<Vec<Metric>> = Vec::new();
    for _ in 0..RUNS[usize::from(!options.quick)] {
        if stop_requested() {
            return refuse("a signal asked to stop");
        }
        match run(machine, [near_cpu, far_cpu], &achieved) {
            Ok(metrics) => found.push(metrics),
            Err(why) => return refuse(&why),
        }
    }
    let stolen = steal.told(&machine.allowed);
    let [send_ns, recv_ns, flight_ns] = achieved.means_ns();
    let check = |id: &str, name: &str, truth: f64, unit: &str, bound: f64, bar: &str| {
        let of_run = |run: &Vec<Metric>| {
            // Times are those of one byte, the time per further byte is that of the longest messages, as on the page.
            let mut of = run.iter().filter(|m| m.id == id).filter_map(|m| m.value);
            if id == GAP_PER_BYTE.id { of.next_back() } else { of.next() }
        };
        let values: Vec<f64> = found.iter().filter_map(of_run).collect();
        let shown = median_of(&values).ok_or_else(|| "no figure in any run".to_owned()).map(|value| {
            let met = (value - truth).abs() <= bound;
            let said = format!("{value:.4} {unit}, {} off", percent((value / truth - 1.0).abs()));
            (format!("{truth:.4} {unit} achieved"), said, State::of(met))
        });
        selftest::check(&format!("planted.{name}"), what, bar, shown).excused(stolen.as_deref())
    };
    let times = |truth: f64| (TIMES_OFF * truth).max(TIMES_OFF_NS);
    let (g_ns, g_per_byte) = (PLANTED.gap_ns as f64, PLANTED.per_byte_ns);
    vec![
        check(GAP.id, "gap", g_ns, "ns", GAPS_OFF * g_ns, "within 3 %"),
        check(GAP_PER_BYTE.id, "per_byte", g_per_byte, "ns/B", GAPS_OFF * g_per_byte, "within 3 %"),
        check(OVERHEAD_SEND.id, "sent", send_ns, "ns", times(send_ns), "within 10 % or 100 ns"),
        check(OVERHEAD_RECV.id, "received", recv_ns, "ns", times(recv_ns), "within 10 % or 100 ns"),
        check(LATENCY.id, "latency", flight_ns, "ns", times(flight_ns), "within 10 % or 100 ns"),
    ]
}

/// What the probe says of the planted link.
fn run(machine: &Machine, cpus: [usize; 2], achieved: &Arc<Achieved>) -> Result<Vec<Metric>, String> {
    let shm = Transport::named("shm").ok_or("no transport shm")?;
    let failed = |e: std::io::Error| e.to_string();
    let [near, far] = shm.pair().map_err(failed)?;
    let planted = |stamps| PlantedLink::new(stamps, PLANTED, Arc::clone(achieved));
    let near_link = planted(near.open(Wait::Polling).map_err(failed)?);
    let far_link = planted(far.open(Wait::Polling).map_err(failed)?);
    let (ours, theirs) = UnixStream::pair().map_err(failed)?;
    let our_replies = ours.try_clone().map_err(failed)?;
    let (source, rate, seed) = (machine.clock.source(), machine.rate, machine.seed);
    let ordinary = Policy::ordinary();
    let measure = move || {
        let role: Role<Order, Answer, (), _, _> = Role::over(our_replies, ours, 1 << 20, ());
        let link = OpenLink::new(shm, Wait::Polling, Box::new(near_link));
        let ends = Ends::new(Near::over(Box::new(role), vec![link]), None, rate);
        let mut links = Links::new(&ends, &Silent);
        let way = Way { transport: "shm", wait: "polling", direction: "there" };
        let fixed_ns = (PLANTED.send_ns + PLANTED.latency_ns + PLANTED.recv_ns) as f64;
        let at = |bytes: u64| (bytes, 2.0 * (fixed_ns + PLANTED.per_byte_ns * bytes as f64));
        let cost = Cost::of(&[at(1), at(LAST)]);
        links.add_link(0, way, Sizes::of((1, LAST), None), cost.ok_or("no cost")?);
        let mut sampler = Sampler::new(HostTiming::new(source), rate, seed);
        Ok(links.rows_until(&mut sampler, monotonic_ns() + RUN_NS, Enough::ENDLESS, seed))
    };
    let answer = move || attend_over(theirs, vec![Box::new(far_link)]);
    let rows: Result<Vec<_>, String> = std::thread::scope(|scope| {
        let far = thread::spawn_placed_scoped(scope, "mm-far", Some(cpus[1]), ordinary, answer);
        let far = far.map_err(|e| e.to_string())?;
        let near = thread::spawn_placed_scoped(scope, "mm-near", Some(cpus[0]), ordinary, measure);
        let rows = near.map_err(|e| e.to_string()).and_then(thread::ScopedPlacedThread::join);
        let _ = far.join();
        rows
    });
    let step_ticks = machine.clock.step_ticks();
    let rows = Rows { tick_hz: rate.hz(), step_ticks, rows: rows?, ..Rows::default() };
    Ok(analyze(&crate::Params::default(), &rows, seed).metrics)
}

/// Sizes that are known: 16 pages of a pipe (pipe(7)), the ring's capacity. Others are searched three times.
const SIZES: [(&str, Option<u64>); 4] =
    [("pipe", Some(65_536)), ("shm", Some(1 << 20)), ("unix", None), ("tcp", None)];

pub(crate) fn thresholds(_machine: &Machine, _options: &Options) -> Vec<SelfCheck> {
    let what = "sends that nobody receives, over fresh links";
    let check = |(name, known): (&str, Option<u64>)| {
        let bar = known.map_or("three searches find the same byte", |_| "to the byte");
        let search = |_| -> Result<u64, String> {
            let transport = Transport::named(name).ok_or_else(|| format!("no transport {name}"))?;
            ThresholdCell::new(transport, false).search().map(|found| found.0)
        };
        let found: Result<Vec<u64>, String> = (0..known.map_or(3, |_| 1)).map(search).collect();
        let shown = found.map(|found| {
            let truth = known.map_or("one size".to_owned(), |bytes| format!("{bytes} B"));
            let said = known.map_or(format!("{found:?} B"), |_| format!("{} B", found[0]));
            (truth, said, State::of(found.iter().all(|b| *b == known.unwrap_or(found[0]))))
        });
        selftest::check(&format!("threshold.{name}"), what, bar, shown)
    };
    SIZES.map(check).to_vec()
}
