//! Does every core keep its speed?

use machmeter_data::{Fact, Hazard, code};
use machmeter_sys::topology::CpuSet;

use super::CheckDef;
use super::inputs::{Inputs, Seen, duration, named, three_digits};
use super::outcome::{Judged, Outcome};

/// A core that wakes in less than this is as good as awake for the latencies of interest.
const EXIT_LIMIT_NS: f64 = 10_000.0;
const DRIFT_WARN_PERCENT: f64 = 1.0;
const DRIFT_FAIL_PERCENT: f64 = 5.0;
const CPUFREQ: &str = "/sys/devices/system/cpu/cpu*/cpufreq";

/// What was measured of the speed, for checks that cannot see its control.
fn steadiness(inputs: &Inputs) -> String {
    match inputs.live.and_then(|l| l.speed_spread_percent) {
        Some(spread) if spread.is_finite() => {
            format!("; measured instead: speed spread {} %", three_digits(spread))
        }
        _ => String::new(),
    }
}

/// The fact of a control, or the outcome where there is none: in a guest the hypervisor has it, elsewhere nobody knows who.
fn control<'a>(inputs: &Inputs<'a>, path: &str, what: &str) -> Result<&'a Fact, Outcome> {
    let why = match inputs.look(path)? {
        Seen::Value(fact) => return Ok(fact),
        Seen::Nothing(why) => why,
    };
    let measured = steadiness(inputs);
    Err(match inputs.hypervisor() {
        Some("none") => Outcome::unknown(format!(
            "no control of {what} is visible, firmware may have it: {why}{measured}"
        )),
        Some(name) => Outcome::not_applicable(format!("the hypervisor ({name}) decides on {what}{measured}")),
        None => Outcome::unknown(format!("no control of {what} is visible: {why}{measured}")),
    })
}

/// Values that hold on any of the measured CPUs: `powersave (CPU 5)` holds on CPU 5 only.
fn on_measured<'a>(values: &[&'a str], cpus: &CpuSet) -> Vec<&'a str> {
    let holds = |text: &&'a str| {
        let list = text.split_once(" (CPU ").and_then(|(_, rest)| rest.strip_suffix(')'));
        list.is_none_or(|l| l.parse::<CpuSet>().map_or(true, |set| !set.intersection(cpus).is_empty()))
    };
    values.iter().copied().filter(holds).map(|t| t.split(" (CPU ").next().unwrap_or(t)).collect()
}

pub(super) const GOVERNOR: CheckDef = CheckDef {
    code: code! { "E201" "frequency governor",
        what: "The governor holds the measured cores at their highest frequency.",
        why: "A governor that follows the load starts each measurement slow and speeds up in the middle of it.",
        how: "scaling_governor and energy_performance_preference of the measured CPUs. Without cpufreq in a guest the hypervisor \
              decides (n/a) and steadiness is measured instead (E206).",
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
        Seen::Value(_) => on_measured(&inputs.texts("power.epp")?, inputs.for_cpus),
    };
    let governors = on_measured(&inputs.texts("power.governor")?, inputs.for_cpus);
    let slow = |choice: &&&str| **choice != "performance";
    let (list, measured) = (inputs.for_cpus, inputs.measured());
    let outcome = if governors.is_empty() {
        Outcome::unknown(format!("no governor was read for {measured}"))
    } else if let Some(former) = governors.iter().find(slow) {
        Outcome::warn(format!("{} on {measured}", governors.join(" and ")))
            .next(format!("cpupower -c {list} frequency-set -g performance"))
            .undo(format!("cpupower -c {list} frequency-set -g {former}"))
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
        why: "A busy sibling takes up to half of a core's speed and part of its caches, without leaving a trace in any counter \
              of the scheduler.",
        how: "The kernel's list of hardware threads per core. A guest sees only what its hypervisor chooses to show, so there \
              the absence of siblings is unknown.",
        next: "Measure one CPU per core and keep its siblings idle (--cpus one-per-core), or echo off > \
               /sys/devices/system/cpu/smt/control.",
        undo: "echo on > /sys/devices/system/cpu/smt/control",
    },
    hazards: &[Hazard::SharedCore],
    needs: &["cpu.smt", "cpu.topology", "virt.hypervisor"],
    judge: smt,
    ..CheckDef::OF_NOTHING
};

fn smt(inputs: &Inputs) -> Judged {
    let limit = "one hardware thread per measured core";
    let cores = inputs.texts("cpu.topology")?;
    let active = match inputs.look("cpu.smt")? {
        Seen::Value(_) => inputs.flag("cpu.smt")?,
        // Old kernels have no such switch; what the topology says stands.
        Seen::Nothing(_) => false,
    };
    inputs.look("virt.hypervisor")?;
    let mut shared = CpuSet::default();
    for core in cores {
        let list = core.strip_prefix("cpus ").and_then(|c| c.split_once(':'));
        let Some(Ok(cpus)) = list.map(|(list, _)| list.parse::<CpuSet>()) else {
            return Ok(Outcome::unknown(format!("cpu.topology holds `{core}`")));
        };
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
        None => Outcome::unknown(
            "one thread per core is seen, but whether a hypervisor hides siblings is not known",
        ),
    }
    .limit(limit))
}

pub(super) const TURBO: CheckDef = CheckDef {
    code: code! { "E203" "turbo",
        what: "Cores do not run above their base frequency.",
        why: "Turbo frequencies depend on heat and on how many cores are busy: the same program gets different speeds at \
              different moments.",
        how: "intel_pstate/no_turbo or cpufreq/boost.",
        next: "echo 1 > /sys/devices/system/cpu/intel_pstate/no_turbo, or echo 0 > /sys/devices/system/cpu/cpufreq/boost; leave it \
               on if the machine's full speed is what you want to know.",
        undo: "Write the other number into the same file.",
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
            "on: the frequency depends on heat and on the number of busy cores{}",
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
        why: "A core in a deep idle state needs up to some hundred us to wake and comes back with cold caches: wake-up latencies \
              are then those of the idle state.",
        how: "Exit latency of every enabled cpuidle state of the first CPU, and the latency limit in force (PM QoS).",
        next: "Hold /dev/cpu_dma_latency open with a limit while measuring (cyclictest and tuned do), or cpupower idle-set -D 10.",
        undo: "Close /dev/cpu_dma_latency, or cpupower idle-set -E.",
    },
    hazards: &[Hazard::WakeUp],
    needs: &["power.idle_states"],
    judge: idle,
    ..CheckDef::OF_NOTHING
};

fn idle(inputs: &Inputs) -> Judged {
    let limit = format!("exit within {}", duration(EXIT_LIMIT_NS));
    if inputs.facts.text("kernel.boot.idle") == Some("poll") {
        inputs.look("power.idle_states")?;
        return Ok(Outcome::pass("idle=poll at boot: cores never sleep").limit(limit));
    }
    control(inputs, "power.idle_states", "idle states")?;
    let mut deepest = (0.0_f64, "none");
    for state in inputs.texts("power.idle_states")? {
        let parsed = state.split_once(" exit ").and_then(|(name, rest)| {
            let exit_ns =
                rest.split(' ').next()?.parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0)?;
            Some((name, exit_ns))
        });
        let Some((name, exit_ns)) = parsed else {
            return Ok(Outcome::unknown(format!("an idle state is described as `{state}`")));
        };
        if !state.ends_with("disabled") && exit_ns > deepest.0 {
            deepest = (exit_ns, name);
        }
    }
    let (name, exit) = (deepest.1, duration(deepest.0));
    // The limit in force can only help: where it is not readable the states stand as they are.
    let in_force = inputs.facts.number("power.dma_latency").filter(|ns| (0.0..=EXIT_LIMIT_NS).contains(ns));
    let outcome = if deepest.0 <= EXIT_LIMIT_NS {
        Outcome::pass(format!("deepest enabled state wakes in {exit}"))
    } else if let Some(limit_ns) = in_force {
        Outcome::pass(format!("{name} wakes in {exit}, but a limit of {} is in force", duration(limit_ns)))
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
        what: "No core is slowed down for heat.",
        why: "A throttled core runs at a fraction of its speed for some ms to minutes; the figures describe the cooling.",
        how: "Core throttle counters, growth between two captures. A machine that throttled since boot but was captured once is \
              unknown, for the counter does not say when.",
        next: "Improve cooling, wait until it is cool, or set a lower fixed frequency (cpupower frequency-set -u FREQ).",
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
            .next("wait until it is cool or improve cooling; else fix a lower frequency: cpupower frequency-set -u FREQ")
            .undo("cpupower frequency-set -u with the former highest frequency (power.allowed_max)"),
        Some(_) => Outcome::pass(format!("none between the two captures ({total} since boot)")),
        None if total == 0.0 => Outcome::pass("none since boot"),
        None => Outcome::unknown(format!("{total} times since boot; when cannot be told from one capture"))
            .next("run a measurement: it captures the counters before and after"),
    }
    .limit("none"))
}

pub(super) const DRIFT: CheckDef = CheckDef {
    code: code! { "E206" "measured speed",
        what: "A fixed piece of work takes the same time throughout.",
        why: "Whatever the settings say, this is what counts: if the speed wanders by x %, no change below x % can be told.",
        how: "A short loop of arithmetic is timed over and over; the best time of each of some time blocks, spread between the \
              10 % and 90 % quantiles against the median.",
        next: "See E201, E203 and E205 for the cause; fix the frequency, or measure longer and compare block by block.",
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
