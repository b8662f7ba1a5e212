//! Checks of the CPU frequency: governor, SMT, turbo, idle states, throttling, drift.
//!
//! A core that changes its speed changes every figure. Guests do not control the frequency; there the live measurement of the speed ([`crate::live`])
//! gives the evidence.

use machmeter_data::{Fact, FactValue, Hazard, code};
use machmeter_sys::topology::CpuSet;

use super::CheckDef;
use super::inputs::{Entries, Inputs, Seen, cpus_at, duration, named, three_digits};
use super::outcome::{Judged, Outcome};

/// Wake-ups shorter than 10 us do not change the latencies that probes measure.
const EXIT_LIMIT_NS: f64 = 10_000.0;
const DRIFT_WARN_PERCENT: f64 = 1.0;
const DRIFT_FAIL_PERCENT: f64 = 5.0;
const CPUFREQ: &str = "/sys/devices/system/cpu/cpu*/cpufreq";

/// The measured spread of the speed in words, for checks that do not see the control. Empty without a measurement.
fn steadiness(inputs: &Inputs) -> String {
    match inputs.live.and_then(|l| l.speed_spread_percent) {
        Some(spread) if spread.is_finite() => {
            format!("; measured instead: speed spread {} %", three_digits(spread))
        }
        _ => String::new(),
    }
}

/// Reads the fact of a control. Without one, the outcome is n/a in a guest, where the hypervisor decides, and unknown elsewhere.
fn control<'a>(inputs: &Inputs<'a>, path: &str, what: &str) -> Result<&'a Fact, Outcome> {
    let why = match inputs.look(path)? {
        Seen::Value(fact) => return Ok(fact),
        Seen::Nothing(why) => why,
    };
    let measured = steadiness(inputs);
    Err(match inputs.hypervisor() {
        Some("none") => Outcome::unknown(format!(
            "no control of {what} is visible, the firmware may have it: {why}{measured}"
        )),
        Some(name) => Outcome::not_applicable(format!("the hypervisor ({name}) decides on {what}{measured}")),
        None => Outcome::unknown(format!("no control of {what} is visible: {why}{measured}")),
    })
}

/// Keys of a map to CPU lists that contain a measured CPU, and the measured CPUs that no list contains.
fn on_measured<'a>(inputs: &Inputs<'a>, path: &str) -> Result<(Vec<&'a str>, CpuSet), Outcome> {
    let entries = inputs.entries(path)?;
    let (mut held, mut missing) = (Vec::new(), inputs.for_cpus.clone());
    for key in entries.keys() {
        let cpus = cpus_at(path, entries, key)?;
        if !cpus.intersection(inputs.for_cpus).is_empty() {
            held.push(key.as_str());
        }
        missing = missing.difference(&cpus);
    }
    Ok((held, missing))
}

pub(super) const GOVERNOR: CheckDef = CheckDef {
    code: code! { "E201" "frequency governor",
        what: "The governor holds the measured cores at their highest frequency.",
        why: "A governor that follows the load starts each measurement at a low frequency and raises it during the measurement.",
        how: "scaling_governor and energy_performance_preference of the measured CPUs. In a guest without cpufreq the hypervisor decides (n/a); E206 \
              measures the speed instead.",
        next: "cpupower frequency-set -g performance",
        undo: "cpupower frequency-set -g NAME with the former governor, which the text shows.",
    },
    hazards: &[Hazard::Frequency],
    needs: &["power.governor", "power.epp"],
    judge: governor,
    ..CheckDef::OF_NOTHING
};

fn governor(inputs: &Inputs) -> Judged {
    control(inputs, "power.governor", "the frequency")?;
    let epp = match inputs.look("power.epp")? {
        Seen::Nothing(_) => Vec::new(),
        Seen::Value(_) => on_measured(inputs, "power.epp")?.0,
    };
    let (governors, missing) = on_measured(inputs, "power.governor")?;
    let slow = |choice: &&&str| **choice != "performance";
    let (list, measured) = (inputs.for_cpus, inputs.measured());
    let outcome = if let Some(former) = governors.iter().find(slow) {
        Outcome::warn(format!("{} on {measured}", governors.join(" and ")))
            .next(format!("cpupower -c {list} frequency-set -g performance"))
            .undo(format!("cpupower -c {list} frequency-set -g {former}"))
    } else if !missing.is_empty() {
        Outcome::unknown(format!("no governor was read for {}", named(&missing)))
    } else if let Some(preference) = epp.iter().find(slow) {
        Outcome::warn(format!("governor performance, but energy preference {preference}"))
            .next(format!("echo performance | tee {CPUFREQ}/energy_performance_preference"))
            .undo(format!("echo {preference} | tee {CPUFREQ}/energy_performance_preference"))
    } else {
        Outcome::pass(format!("performance on {measured}"))
    };
    Ok(outcome.limit("performance on all measured CPUs"))
}

pub(super) const SMT: CheckDef = CheckDef {
    code: code! { "E202" "SMT siblings",
        what: "No measured CPU shares its core with another hardware thread.",
        why: "A busy SMT sibling takes up to half of the core's speed and part of its caches. No counter of the scheduler shows it.",
        how: "The kernel's list of hardware threads per core. A hypervisor may hide siblings from a guest, so the absence of siblings is unknown there.",
        next: "Measure one CPU per core and keep its siblings idle (--cpus one-per-core), or echo off > /sys/devices/system/cpu/smt/control.",
        undo: "echo on > /sys/devices/system/cpu/smt/control",
    },
    hazards: &[Hazard::SharedCore],
    needs: &["cpu.smt", "cpu.topology", "virt.hypervisor"],
    judge: smt,
    ..CheckDef::OF_NOTHING
};

fn smt(inputs: &Inputs) -> Judged {
    let limit = "one hardware thread per measured core";
    let cores = inputs.maps("cpu.topology")?;
    let active = match inputs.look("cpu.smt")? {
        Seen::Value(_) => inputs.flag("cpu.smt")?,
        // Old kernels have no such switch; the topology decides.
        Seen::Nothing(_) => false,
    };
    inputs.look("virt.hypervisor")?;
    let mut shared = CpuSet::default();
    for core in cores {
        let cpus = cpus_at("cpu.topology", core, "cpus")?;
        if cpus.len() > 1 && !cpus.intersection(inputs.for_cpus).is_empty() {
            shared = shared.union(&cpus);
        }
    }
    if !shared.is_empty() {
        return Ok(Outcome::warn(format!("{} share cores", named(&shared)))
            .limit(limit)
            .next("measure one CPU per core with idle siblings (--cpus one-per-core), or echo off > /sys/devices/system/cpu/smt/control")
            .undo("echo on > /sys/devices/system/cpu/smt/control"));
    }
    let elsewhere = if active { " among the measured CPUs" } else { "" };
    Ok(match inputs.hypervisor() {
        Some("none") => Outcome::pass(format!("one hardware thread per core{elsewhere}")),
        Some(name) => Outcome::unknown(format!(
            "the guest sees one thread per core, but {name} may place two on a core"
        )),
        None => Outcome::unknown("one thread per core is visible, but a hypervisor may hide siblings"),
    }
    .limit(limit))
}

pub(super) const TURBO: CheckDef = CheckDef {
    code: code! { "E203" "turbo",
        what: "Cores do not run above their base frequency.",
        why: "Turbo frequencies depend on temperature and on the number of busy cores. The same program runs at different speeds at different times.",
        how: "intel_pstate/no_turbo or cpufreq/boost.",
        next: "echo 1 > /sys/devices/system/cpu/intel_pstate/no_turbo, or echo 0 > /sys/devices/system/cpu/cpufreq/boost. Leave turbo on to measure the \
               full speed of the machine.",
        undo: "Write the other number to the same file.",
    },
    hazards: &[Hazard::Frequency],
    needs: &["power.turbo"],
    judge: turbo,
    ..CheckDef::OF_NOTHING
};

fn turbo(inputs: &Inputs) -> Judged {
    let fact = control(inputs, "power.turbo", "turbo")?;
    let (off, on) = if fact.source.ends_with("no_turbo") { ("1", "0") } else { ("0", "1") };
    Ok(if inputs.flag("power.turbo")? {
        Outcome::warn(format!(
            "on: the frequency depends on temperature and on the number of busy cores{}",
            steadiness(inputs)
        ))
        .next(format!("echo {off} > {}", fact.source))
        .undo(format!("echo {on} > {}", fact.source))
    } else {
        Outcome::pass("off")
    }
    .limit("off"))
}

pub(super) const IDLE: CheckDef = CheckDef {
    code: code! { "E204" "idle states",
        what: "An idle core wakes within 10 us.",
        why: "A core in a deep idle state needs up to some hundred us to wake, and its caches are cold. Wake-up latencies are then those of the idle state.",
        how: "The exit latency of every enabled cpuidle state of the first CPU, and the active latency limit (PM QoS).",
        next: "Hold /dev/cpu_dma_latency open with a limit while measuring (cyclictest and tuned do this), or cpupower idle-set -D 10.",
        undo: "Close /dev/cpu_dma_latency, or cpupower idle-set -E.",
    },
    hazards: &[Hazard::WakeUp],
    needs: &["power.idle_states"],
    judge: idle,
    ..CheckDef::OF_NOTHING
};

struct IdleState<'a> {
    name: &'a str,
    exit_ns: f64,
    disabled: bool,
}

impl<'a> IdleState<'a> {
    fn read(entries: &'a Entries) -> Option<Self> {
        Some(Self {
            name: entries.get("name")?.text()?,
            exit_ns: entries.get("exit_ns")?.number().filter(|ns| ns.is_finite() && *ns >= 0.0)?,
            disabled: entries.get("disabled")?.flag()?,
        })
    }
}

fn idle(inputs: &Inputs) -> Judged {
    let limit = format!("exit within {}", duration(EXIT_LIMIT_NS));
    if inputs.facts.text("kernel.boot.idle") == Some("poll") {
        inputs.look("power.idle_states")?;
        return Ok(Outcome::pass("idle=poll at boot: cores never sleep").limit(limit));
    }
    control(inputs, "power.idle_states", "idle states")?;
    let mut deepest = (0.0_f64, "none");
    for state in inputs.maps("power.idle_states")? {
        let Some(IdleState { name, exit_ns, disabled }) = IdleState::read(state) else {
            let held = FactValue::Map(state.clone()).human(None);
            return Ok(Outcome::unknown(format!("power.idle_states holds `{held}`")));
        };
        if !disabled && exit_ns > deepest.0 {
            deepest = (exit_ns, name);
        }
    }
    let (name, exit) = (deepest.1, duration(deepest.0));
    // The limit in force can only improve the outcome. If it is not readable, the idle states decide.
    let in_force = inputs.facts.number("power.dma_latency").filter(|ns| (0.0..=EXIT_LIMIT_NS).contains(ns));
    let outcome = if deepest.0 <= EXIT_LIMIT_NS {
        Outcome::pass(format!("deepest enabled state wakes in {exit}"))
    } else if let Some(limit_ns) = in_force {
        Outcome::pass(format!("{name} wakes in {exit}, but a limit of {} is active", duration(limit_ns)))
            .source("/sys/devices/system/cpu/cpu0/cpuidle, /dev/cpu_dma_latency")
    } else {
        Outcome::warn(format!("{name} wakes in {exit}"))
            .next("cpupower idle-set -D 10, or hold /dev/cpu_dma_latency open with a small value while measuring")
            .undo("cpupower idle-set -E, or close /dev/cpu_dma_latency")
    };
    Ok(outcome.limit(limit))
}

pub(super) const THROTTLE: CheckDef = CheckDef {
    code: code! { "E205" "thermal throttling",
        what: "No core is throttled because of its temperature.",
        why: "A throttled core runs at a fraction of its speed for some ms to minutes. The figures then describe the cooling.",
        how: "The throttle counters of the cores: their growth between two captures. With one capture, throttling since boot is unknown, because the \
              counter has no times.",
        next: "Improve the cooling, wait until the machine is cool, or set a lower fixed frequency (cpupower frequency-set -u FREQ).",
        undo: "cpupower frequency-set -u with the former highest frequency.",
    },
    hazards: &[Hazard::Frequency],
    needs: &["power.throttle_count"],
    judge: throttle,
    ..CheckDef::OF_NOTHING
};

fn throttle(inputs: &Inputs) -> Judged {
    control(inputs, "power.throttle_count", "heat")?;
    let total = inputs.amount("power.throttle_count")?;
    Ok(match inputs.gained("power.throttle_count")? {
        Some(gained) if gained > 0.0 => Outcome::fail(format!("{gained} times between the two captures ({total} before, since boot)"))
            .next("wait until the machine is cool, or improve cooling; else set a lower frequency: cpupower frequency-set -u FREQ")
            .undo("cpupower frequency-set -u with the former highest frequency (power.allowed_max)"),
        Some(_) => Outcome::pass(format!("none between the two captures ({total} since boot)")),
        None if total == 0.0 => Outcome::pass("none since boot"),
        None => Outcome::unknown(format!("{total} times since boot; one capture does not show when"))
            .next("run a measurement: it captures the counters before and after"),
    }
    .limit("none"))
}

pub(super) const DRIFT: CheckDef = CheckDef {
    code: code! { "E206" "measured speed",
        what: "A fixed piece of work takes the same time throughout.",
        why: "If the speed varies by x %, no difference below x % can be detected, whatever the settings are.",
        how: "A short arithmetic loop is timed repeatedly. The spread is the distance between the 10 % and 90 % quantiles of the best time per block, \
              relative to the median.",
        next: "E201, E203 and E205 show possible causes. Fix the frequency, or measure longer and compare block by block.",
    },
    hazards: &[Hazard::Frequency],
    judge: drift,
    ..CheckDef::OF_NOTHING
};

fn drift(inputs: &Inputs) -> Judged {
    let Some(spread) = inputs.live.and_then(|l| l.speed_spread_percent) else {
        return Err(Outcome::unknown("the speed was not measured").source("timed loop"));
    };
    let text = format!("speed spread {} %", three_digits(spread));
    Ok(Outcome::graded(spread, DRIFT_WARN_PERCENT, DRIFT_FAIL_PERCENT, text)
        .limit(format!("{DRIFT_WARN_PERCENT} %"))
        .source("timed loop")
        .next(match inputs.hypervisor() {
            None | Some("none") => {
                "see E201, E203, E205; on a shared core measure longer, and compare block by block"
            }
            Some(_) => "the host sets the speed: measure longer, and compare block by block",
        }))
}
