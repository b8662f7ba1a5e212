//! Self-test: a link with planted parameters between two CPUs; sizes that make a send wait, known or searched again; and a link of
//! known rate between two network namespaces, by `serve` and `--peer`: a user namespace gives the rights.

use std::fs;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::sync::Arc;

use machmeter_data::{Metric, Record};
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
use machmeter_sys::process::program;
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

/// Rates, Mbit/s, with sizes longer than the bucket of the limit, so that trains pay for all bytes, and seconds that they need.
const LIMITS: [(u32, &str, u32); 2] = [(1_000, "8K-32K", 5), (100, "8K-20K", 8)];
/// Bytes of an Ethernet frame with 1448 B of TCP's, whose headers the rate limit counts.
const FRAME_BYTES: f64 = 1514.0 / 1448.0;
const LIMITED_OFF: f64 = 0.03;

/// A pair of virtual Ethernet devices behind buckets of four frames; the token goes through a directory of these namespaces.
const SCRIPT: &str = r#"
mount -t tmpfs none /run
ip netns add far
ip link add near type veth peer name far netns far
ip addr add 10.213.0.1/30 dev near
ip link set near up
ip -n far addr add 10.213.0.2/30 dev far
ip -n far link set far up
tc qdisc add dev near root tbf rate "$1"mbit burst 6056 latency 1s
tc -n far qdisc add dev far root tbf rate "$1"mbit burst 6056 latency 1s
(umask 077; head -c 16 /dev/urandom | od -An -tx1 | tr -d ' \n' > /run/token)
ip netns exec far "$2" serve --listen 10.213.0.2 --token-file /run/token -c "$6" -t "$4"0 -q > /run/served &
until test -s /run/served; do sleep 0.05; done
"$2" net --peer 10.213.0.2 --token-file /run/token --transports tcp --congestion reno --sizes "$3" -t "$4" -c "$5" --json --no-save -q
"#;

pub(crate) fn limited(machine: &Machine, options: &Options) -> Vec<SelfCheck> {
    let what = "a veth link between two namespaces, limited by tbf, through serve and --peer";
    let cpus: Vec<usize> = machine.allowed.iter().collect();
    let check = |&(rate, sizes, seconds): &(u32, &str, u32)| {
        let per_byte = match cpus[..] {
            [near, far, ..] => measured(rate, sizes, seconds, [near, far]),
            _ => Err("needs two CPUs, has 1".to_owned()),
        };
        let shown = per_byte.map(|per_byte| {
            let truth = 8_000.0 / f64::from(rate) * FRAME_BYTES;
            let off = (per_byte / truth - 1.0).abs();
            let found = format!("{per_byte:.4} ns/B, {} off", percent(off));
            (format!("{truth:.4} ns/B"), found, State::of(off <= LIMITED_OFF))
        });
        selftest::check(&format!("limited.{rate}"), what, "within 3 %", shown)
    };
    LIMITS[..if options.quick { 1 } else { 2 }].iter().map(check).collect()
}

/// Time per byte as the page has it, ns.
fn measured(rate: u32, sizes: &str, seconds: u32, [near, far]: [usize; 2]) -> Result<f64, String> {
    let program = fs::read_link(program()).map_err(|e| e.to_string())?;
    // A program that hangs is ended, and with it the process namespace and everybody in it.
    let mut command = Command::new("timeout");
    command.args(["-k", "2"]).arg((3 * seconds + 5).to_string());
    command.args(["unshare", "--user", "--map-root-user", "--net", "--mount", "--pid", "--fork"]);
    command.args(["--kill-child", "sh", "-ec", SCRIPT, "sh"]).arg(rate.to_string()).arg(program);
    command.arg(sizes).args([seconds, near as u32, far as u32].map(|n| n.to_string()));
    let output = command.output().map_err(|e| format!("timeout, unshare: {e}"))?;
    let Ok(record) = Record::from_json(&output.stdout) else {
        let said = String::from_utf8_lossy(&output.stderr);
        let why = said.lines().next().unwrap_or("no namespaces, ip or tc here");
        return Err(why.to_owned());
    };
    let of = record.metrics.iter().filter(|m| m.id == GAP_PER_BYTE.id);
    of.filter_map(|m| m.value).next_back().ok_or_else(|| {
        let why = record.metrics.iter().find_map(|m| m.why.clone());
        why.unwrap_or_else(|| "no figure".to_owned())
    })
}
