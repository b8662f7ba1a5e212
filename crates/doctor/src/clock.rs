//! Checks of the clock (hazard class `Clock`): its source, its step, and its agreement between CPUs.
//!
//! They judge the result of the clock's qualification (see `sys::clock`), which this crate receives as [`ClockInput`]. Without a qualification
//! every check here is unknown.

use machmeter_data::{Hazard, code};

use super::CheckDef;
use super::inputs::{ClockInput, Inputs, three_digits};
use super::outcome::{Judged, Outcome};

/// At a rate error of 100 ppm, each figure is off by 1 part in 10 000: less than any probe resolves.
const RATE_WARN_PPM: f64 = 100.0;
const RATE_FAIL_PPM: f64 = 1000.0;
const STEP_WARN_NS: f64 = 100.0;
const STEP_FAIL_NS: f64 = 1000.0;
const CROSS_WARN_NS: f64 = 1000.0;
const CROSS_FAIL_NS: f64 = 10_000.0;
/// Kernel clocks that a program reads in user space, from a register of the CPU.
const FAST_KERNEL_CLOCKS: [&str; 4] = ["tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page"];

fn qualified<'a>(inputs: &Inputs<'a>) -> Result<&'a ClockInput, Outcome> {
    inputs.clock.ok_or_else(|| {
        Outcome::unknown("the clock was not examined in this run").source("examination of the clock")
    })
}

pub(super) const SOURCE: CheckDef = CheckDef {
    code: code! { "E101" "clock source",
        what: "The clock is the processor's own counter, has a known rate, and agrees with the kernel.",
        why: "An error of the clock's rate is an error of every duration. A clock that needs a system call per read costs more than many of the operations it times.",
        how: "The counter is compared with CLOCK_MONOTONIC_RAW over some tens of ms, and with the rate that the kernel publishes. CPUID or the device \
              tree states whether it is invariant; sysfs names the kernel's clock source.",
        next: "Boot without tsc=unstable, clocksource= or notsc. In a guest, request a stable TSC (KVM: invtsc). To try another kernel clock: echo tsc \
               > /sys/devices/system/clocksource/clocksource0/current_clocksource.",
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
            return finish(Outcome::unknown(format!(
                "the {name} of {} is not a number: {ppm}",
                clock.source
            )));
        }
        if ppm.abs() > RATE_WARN_PPM {
            let text = format!("{}: {name} {} ppm", clock.source, three_digits(ppm));
            let outcome = Outcome::graded(ppm.abs(), RATE_WARN_PPM, RATE_FAIL_PPM, text);
            return finish(outcome.next("measure again on an idle machine; if the deviation persists, boot with clocksource= of a reference clock and compare"));
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
            Outcome::warn(format!("{}, but the kernel uses the clock {kernel}: each clock_gettime of a program is a slow read", clock.source))
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
        what: "The counter advances in small steps, and reading it is cheap.",
        why: "One step limits the resolution of every duration, and each timed region contains one read.",
        how: "Many back-to-back reads on each CPU. The smallest advance is the step, the mean advance is the cost of a read.",
        next: "Time batches of operations instead of single ones. Use the processor's counter instead of a system call (see E101).",
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
        what: "The counters of the measured CPUs agree, and none runs backward.",
        why: "A duration that begins on one CPU and ends on another (a message, a wake-up) is wrong by their difference. A backward step makes durations negative.",
        how: "The first CPU exchanges time stamps with each other CPU. Half of the shortest round trip bounds the offset.",
        next: "Measure one CPU at a time, and use only durations within a CPU. On hardware, update the firmware (TSC_ADJUST).",
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
            Outcome::fail(format!("{} reads of {} returned an earlier time than the previous read", clock.backward_steps, clock.source))
                .next("do not use this counter: update firmware or hypervisor, or boot with clocksource=hpet and measure again"),
        );
    }
    if inputs.for_cpus.len() == 1 {
        return finish(Outcome::not_applicable("only one CPU is measured, so there is nothing to compare"));
    }
    let Some(bound_ns) =
        clock.cross_cpu_bound_ns.filter(|_| clock.compared_cpus > 0 || clock.fallback_reason.is_some())
    else {
        return finish(
            Outcome::unknown("the time was too short to compare the CPUs")
                .next("run again on a less busy machine, or measure one CPU at a time (--cpus)"),
        );
    };
    let observed = format!("no backward step, CPUs at most {} ns apart", three_digits(bound_ns));
    finish(
        Outcome::graded(bound_ns, CROSS_WARN_NS, CROSS_FAIL_NS, observed)
            .next("use only durations that begin and end on one CPU; run again on a less busy machine to narrow the bound"),
    )
}
