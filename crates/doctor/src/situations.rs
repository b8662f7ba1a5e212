//! Test situations of the doctor: recorded and composed machines with planted clocks and live measurements.

use std::path::PathBuf;

use machmeter_data::Check;
use machmeter_data::facts::Facts;
use machmeter_sys::topology::CpuSet;

use super::*;

/// Machine, clock, live measurement, measured CPUs. A `+` after the machine adds its second capture.
pub(super) const SITUATIONS: &[(&str, &str, &str, &str)] = &[
    ("rt-tuned+", "good", "quiet", "2-7"),
    ("rt-tuned", "good", "kernel-rt", "0-1"),
    ("rt-half-tuned", "fallback", "user-rt", "4-7"),
    ("rt-half-tuned", "offset", "busy-rt", "0-7"),
    ("vm-kvm+", "good", "busy", "0-1"),
    ("vm-kvm", "none", "none", "0"),
    ("laptop-powersave+", "good", "wandering", "0-7"),
    ("laptop-powersave", "coarse", "none", "0-3"),
    ("xeon-server+", "skewed", "quiet", "0-63"),
    ("xeon-server", "good", "quiet", "3"),
    ("slurm-node", "good", "quiet", "8-15"),
    ("slurm-node", "good", "quiet", "0-3"),
    ("container-quota", "good", "hidden", "0-7"),
    ("container-quota", "good", "unseen", "5"),
    ("podman-rootless", "good", "no-stat", "0-7"),
    ("denied-nobody", "good", "unseen", "0-1"),
    ("sandbox-empty-sys", "fallback", "namespaced", "0"),
    ("wsl2", "good", "namespaced", "0-11"),
    ("arm-phone", "unmeasured", "unseen", "4-7"),
    ("arm-board-rt", "good", "quiet", "0-3"),
    ("aws-t3+", "good", "unsteady", "0-1"),
    ("aws-t3", "unbounded", "quiet", "0-1"),
    ("aws-c7i+", "good", "quiet", "0-3"),
    ("vmware-balloon+", "deviating", "quiet", "1"),
    ("vmware-balloon", "wild", "wild", "0-1"),
    ("old-no-psi", "good", "none", "8"),
    ("desktop-unstable-tsc+", "backward", "busy", "0-15"),
    ("bare-no-cpufreq", "slow", "quiet", "0-3"),
    ("embedded-x86+", "good", "quiet", "0"),
    ("embedded-x86", "good", "quiet", "0"),
];

pub(super) fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/facts")
}

fn machine(name: &str) -> Facts {
    let file = directory().join(format!("{name}.json"));
    let text = std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("{name}: {e}"));
    serde_json::from_str(&text).unwrap_or_else(|e| panic!("{name}: {e}"))
}

fn clock(name: &str) -> Option<ClockInput> {
    let good = ClockInput {
        source: "rdtsc".to_owned(),
        rate_error_ppm: Some(2.5),
        kernel_deviation_ppm: Some(0.1),
        step_ns: Some(0.385),
        read_ns: Some(8.0),
        cross_cpu_bound_ns: Some(40.0),
        compared_cpus: 3,
        backward_steps: 0,
        fallback_reason: None,
    };
    let slow = ClockInput {
        source: "monotonic_raw".to_owned(),
        rate_error_ppm: None,
        kernel_deviation_ppm: None,
        read_ns: Some(900.0),
        step_ns: Some(1.0),
        cross_cpu_bound_ns: Some(0.0),
        compared_cpus: 0,
        fallback_reason: Some("the counter is not invariant".to_owned()),
        ..good.clone()
    };
    Some(match name {
        "none" => return None,
        "good" => good,
        "fallback" => ClockInput { read_ns: Some(40.0), ..slow },
        "slow" => ClockInput { read_ns: Some(1500.0), ..slow },
        "coarse" => ClockInput { step_ns: Some(280.0), ..good },
        "offset" => ClockInput { cross_cpu_bound_ns: Some(2500.0), ..good },
        "skewed" => ClockInput { cross_cpu_bound_ns: Some(50_000.0), rate_error_ppm: Some(250.0), ..good },
        "deviating" => ClockInput { kernel_deviation_ppm: Some(-4000.0), ..good },
        "unmeasured" => ClockInput { step_ns: None, rate_error_ppm: None, ..good },
        "unbounded" => ClockInput { cross_cpu_bound_ns: None, ..good },
        "backward" => ClockInput { backward_steps: 3, ..good },
        "wild" => ClockInput {
            rate_error_ppm: Some(f64::NAN),
            step_ns: Some(-1.0),
            cross_cpu_bound_ns: Some(f64::INFINITY),
            ..good
        },
        other => panic!("no clock {other}"),
    })
}

fn rt(comm: &str, cpu_percent: f64, kernel: bool) -> RealTimeTask {
    let (comm, policy) = (comm.to_owned(), "fifo".to_owned());
    RealTimeTask { tid: 20, comm, policy, priority: 99, cpus: "0-7".parse().unwrap(), cpu_percent, kernel }
}

fn live(name: &str) -> Option<Live> {
    let hidden = || Err("threads of others are hidden from here (container or hidepid)".to_owned());
    let quiet = Live {
        window_ns: 150_000_000,
        speed_spread_percent: Some(0.4),
        idle: "1".parse().unwrap(),
        consumers: Ok(vec![Consumer { pid: 7, comm: "sshd".to_owned(), cpu_percent: 0.3 }]),
        cpus: 2,
        others_percent: 0.3,
        hidden_percent: Some(0.0),
        rt_above: Ok(Vec::new()),
        runnable: Some(0.1),
    };
    let cargo = |cpu_percent| Ok(vec![Consumer { pid: 20_112, comm: "cargo".to_owned(), cpu_percent }]);
    Some(match name {
        "none" => return None,
        "quiet" => quiet,
        "kernel-rt" => Live { rt_above: Ok(vec![rt("migration/0", 0.0, true)]), ..quiet },
        "user-rt" => Live { rt_above: Ok(vec![rt("pipewire", 0.0, false)]), consumers: cargo(8.0), ..quiet },
        "busy-rt" => Live { rt_above: Ok(vec![rt("irq/24-eth0", 12.0, true)]), runnable: Some(3.0), ..quiet },
        "busy" => Live { consumers: cargo(91.0), others_percent: 180.0, runnable: Some(16.0), ..quiet },
        "wandering" => Live { speed_spread_percent: Some(3.0), ..quiet },
        "unsteady" => Live { speed_spread_percent: Some(31.0), ..quiet },
        "namespaced" => Live { rt_above: hidden(), ..quiet },
        "hidden" => Live { hidden_percent: Some(180.0), rt_above: hidden(), ..quiet },
        "no-stat" => Live { hidden_percent: None, rt_above: hidden(), ..quiet },
        "unseen" => Live {
            consumers: Err("only 3 of 900 processes could be looked at in the time allowed".to_owned()),
            rt_above: Err("only 3 of 900 processes could be looked at in the time allowed".to_owned()),
            speed_spread_percent: None,
            runnable: None,
            ..quiet
        },
        "wild" => Live {
            speed_spread_percent: Some(f64::NAN),
            runnable: Some(-1.0),
            hidden_percent: Some(f64::NEG_INFINITY),
            ..quiet
        },
        other => panic!("no live {other}"),
    })
}

#[derive(Clone)]
pub(super) struct Situation {
    pub(super) name: String,
    pub(super) facts: Facts,
    pub(super) later: Option<Facts>,
    pub(super) clock: Option<ClockInput>,
    pub(super) live: Option<Live>,
    pub(super) cpus: CpuSet,
}

impl Situation {
    pub(super) fn all() -> Vec<Self> {
        let build = |(name, clock_name, live_name, cpus): &(&str, &str, &str, &str)| {
            let machine_name = name.trim_end_matches('+');
            Self {
                name: format!("{name} {clock_name} {live_name} {cpus}"),
                facts: machine(machine_name),
                later: name.ends_with('+').then(|| machine(&format!("{machine_name}.later"))),
                clock: clock(clock_name),
                live: live(live_name),
                cpus: cpus.parse().unwrap(),
            }
        };
        SITUATIONS.iter().map(build).collect()
    }

    pub(super) fn inputs(&self) -> Inputs<'_> {
        Inputs {
            facts: &self.facts,
            later: self.later.as_ref(),
            clock: self.clock.as_ref(),
            live: self.live.as_ref(),
            for_cpus: &self.cpus,
        }
    }

    pub(super) fn run(&self) -> Vec<Check> {
        run(&self.inputs())
    }
}
