//! Self-test: a link of known rate between two network namespaces, by `serve` and `--peer`; a user namespace gives the rights.

use std::fs;
use std::process::Command;

use machmeter_data::Record;
use machmeter_engine::selftest::machine::Machine;
use machmeter_engine::selftest::{self, Options, SelfCheck, State, percent};
use machmeter_sys::process::program;

/// Rates, Mbit/s, with sizes longer than the bucket of the limit, so that trains pay for all bytes, and seconds that they need.
const LINKS: [(u32, &str, u32); 2] = [(1_000, "8K-32K", 5), (100, "8K-20K", 8)];
/// Bytes of an Ethernet frame with 1448 B of TCP's, whose headers the rate limit counts.
const FRAME_BYTES: f64 = 1514.0 / 1448.0;
const OFF: f64 = 0.03;

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
            (format!("{truth:.4} ns/B"), found, State::of(off <= OFF))
        });
        selftest::check(&format!("limited.{rate}"), what, "within 3 %", shown)
    };
    LINKS[..if options.quick { 1 } else { 2 }].iter().map(check).collect()
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
    let record: Result<Record, _> = serde_json::from_slice(&output.stdout);
    let Ok(record) = record else {
        let said = String::from_utf8_lossy(&output.stderr);
        let why = said.lines().next().unwrap_or("no namespaces, ip or tc here");
        return Err(why.to_owned());
    };
    let of = record.metrics.iter().filter(|m| m.id == crate::info::GAP_PER_BYTE.id);
    of.filter_map(|m| m.value).next_back().ok_or_else(|| {
        let why = record.metrics.iter().find_map(|m| m.why.clone());
        why.unwrap_or_else(|| "no figure".to_owned())
    })
}
