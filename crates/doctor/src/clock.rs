//! Can the clock be trusted?

use machmeter_data::{Hazard, code};

use super::CheckDef;
use super::inputs::{ClockInput, Inputs, three_digits};
use super::outcome::{Judged, Outcome};

/// A rate that is off by this much moves each figure by a part in 10 000: less than any probe can see.
const RATE_WARN_PPM: f64 = 100.0;
const RATE_FAIL_PPM: f64 = 1000.0;
const STEP_WARN_NS: f64 = 100.0;
const STEP_FAIL_NS: f64 = 1000.0;
const CROSS_WARN_NS: f64 = 1000.0;
const CROSS_FAIL_NS: f64 = 10_000.0;
/// Kernel clocks that are read in user space, from a register of the CPU.
const FAST_KERNEL_CLOCKS: [&str; 4] = ["tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page"];

fn qualified<'a>(inputs: &Inputs<'a>) -> Result<&'a ClockInput, Outcome> {
    inputs.clock.ok_or_else(|| {
        Outcome::unknown("the clock was not examined in this run").source("examination of the clock")
    })
}

pub(super) const SOURCE: CheckDef = CheckDef {
    code: code! { "E101" "clock source",
        what: "The counter that times everything is the processor's own, runs at a known rate, and agrees with the kernel.",
        why: "A slow or wrong clock makes every figure slow or wrong: a system call per read costs more than many of the \
              operations to be timed, and an error of the rate is an error of each duration.",
        how: "The counter is compared with CLOCK_MONOTONIC_RAW over some tens of ms and with the rate the kernel publishes; \
              its invariance is read from CPUID or the device tree; the kernel's own clock source is read from sysfs.",
        next: "Boot without tsc=unstable, clocksource= or notsc; in a guest ask for a stable TSC (KVM: invtsc). To try another \
               kernel clock: echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource.",
        undo: "Write the former name into current_clocksource.",
    },
    hazards: &[Hazard::Clock],
    needs: &["kernel.clocksource"],
    judge: source,
    ..CheckDef::OF_NOTHING
};

fn source(inputs: &Inputs) -> Judged {
    const READ_FROM: &str = "counter against CLOCK_MONOTONIC_RAW, /sys/devices/system/clocksource";
    const LIMIT: &str = "the processor's counter, rate known to 100 ppm, a kernel clock read in user space";
    let clock = qualified(inputs)?;
    let kernel = inputs.text("kernel.clocksource")?;
    let finish = |o: Outcome| Ok(o.limit(LIMIT).source(READ_FROM));
    let ppm = [
        ("rate error", clock.rate_error_ppm),
        ("deviation from the kernel's rate", clock.kernel_deviation_ppm),
    ];
    for (name, ppm) in ppm.iter().filter_map(|(name, ppm)| Some((name, (*ppm)?))) {
        if !ppm.is_finite() {
            return finish(Outcome::unknown(format!("the {name} of {} is no number: {ppm}", clock.source)));
        }
        if ppm.abs() > RATE_WARN_PPM {
            let text = format!("{}: {name} {} ppm", clock.source, three_digits(ppm));
            let outcome = Outcome::graded(ppm.abs(), RATE_WARN_PPM, RATE_FAIL_PPM, text);
            return finish(outcome.next("measure again on an idle machine; if it stays, boot with clocksource= of a reference clock and compare"));
        }
    }
    if let Some(reason) = &clock.fallback_reason {
        return finish(
            Outcome::warn(format!("{}, not the processor's counter: {reason}", clock.source))
                .next("remove tsc=, notsc or clocksource= from the boot command line, or ask the hypervisor for an invariant counter"),
        );
    }
    if !FAST_KERNEL_CLOCKS.contains(&kernel) {
        return finish(
            Outcome::warn(format!("{}, but the kernel itself keeps time by {kernel}: each clock_gettime of a program is a slow read", clock.source))
                .next("echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource (arm: arch_sys_counter)")
                .undo(format!("echo {kernel} > /sys/devices/system/clocksource/clocksource0/current_clocksource")),
        );
    }
    let Some(error_ppm) = clock.rate_error_ppm else {
        return finish(Outcome::unknown(format!("{}: its rate was not measured", clock.source)));
    };
    finish(Outcome::pass(format!(
        "{}, rate known to {} ppm, kernel clock {kernel}",
        clock.source,
        three_digits(error_ppm.abs())
    )))
}

pub(super) const STEP: CheckDef = CheckDef {
    code: code! { "E102" "clock step and read cost",
        what: "The counter advances in small steps and a read of it is cheap.",
        why: "No duration can be told more exactly than one step, and each timed region contains one read.",
        how: "Many back-to-back reads on each CPU: the smallest advance is the step, the mean advance the cost of a read.",
        next: "Time batches of operations instead of single ones; use the processor's counter instead of a system call (see E101).",
    },
    hazards: &[Hazard::Clock],
    judge: step,
    ..CheckDef::OF_NOTHING
};

fn step(inputs: &Inputs) -> Judged {
    const READ_FROM: &str = "back-to-back reads of the counter";
    let clock = qualified(inputs)?;
    let (Some(step_ns), Some(read_ns)) = (clock.step_ns, clock.read_ns) else {
        return Err(Outcome::unknown(format!("step or read cost of {} could not be measured", clock.source))
            .source(READ_FROM));
    };
    if !(step_ns.is_finite() && step_ns > 0.0 && read_ns.is_finite() && read_ns > 0.0) {
        return Err(Outcome::unknown(format!("impossible figures: step {step_ns} ns, read {read_ns} ns"))
            .source(READ_FROM));
    }
    let observed = format!("step {} ns, read {} ns", three_digits(step_ns), three_digits(read_ns));
    Ok(Outcome::graded(step_ns.max(read_ns), STEP_WARN_NS, STEP_FAIL_NS, observed)
        .limit(format!("{STEP_WARN_NS} ns each"))
        .source(READ_FROM)
        .next(
            "time batches of operations, or see E101 for the reason why the processor's counter is not used",
        ))
}

pub(super) const CROSS_CPU: CheckDef = CheckDef {
    code: code! { "E103" "clock across CPUs",
        what: "The counters of the measured CPUs agree and none runs backward.",
        why: "A duration that begins on one CPU and ends on another (a message, a wake-up) is wrong by their difference; a \
              backward step makes durations negative.",
        how: "Stamps are exchanged between the first CPU and each other one; half the shortest round trip bounds the offset.",
        next: "Measure one CPU at a time and trust only durations within a CPU; on hardware update the firmware (TSC_ADJUST).",
    },
    hazards: &[Hazard::ClockOffset],
    judge: cross_cpu,
    ..CheckDef::OF_NOTHING
};

fn cross_cpu(inputs: &Inputs) -> Judged {
    const READ_FROM: &str = "stamps exchanged between CPUs";
    let clock = qualified(inputs)?;
    let finish = |o: Outcome| Ok(o.source(READ_FROM).limit("no backward step, at most 1 us apart"));
    if clock.backward_steps > 0 {
        return finish(
            Outcome::fail(format!("{} reads of {} showed an earlier time than the read before", clock.backward_steps, clock.source))
                .next("do not use this counter: update firmware or hypervisor, or boot with clocksource=hpet and measure again"),
        );
    }
    if inputs.for_cpus.len() == 1 {
        return finish(Outcome::not_applicable("one CPU is measured: there is none to compare with"));
    }
    let Some(bound_ns) =
        clock.cross_cpu_bound_ns.filter(|_| clock.compared_cpus > 0 || clock.fallback_reason.is_some())
    else {
        return finish(
            Outcome::unknown("the CPUs could not be compared in the time allowed")
                .next("run again on a less busy machine, or measure one CPU at a time (--cpus)"),
        );
    };
    let observed = format!("no backward step, CPUs at most {} ns apart", three_digits(bound_ns));
    finish(
        Outcome::graded(bound_ns, CROSS_WARN_NS, CROSS_FAIL_NS, observed)
            .next("trust only durations that begin and end on one CPU; run again on a less busy machine to narrow the bound"),
    )
}
