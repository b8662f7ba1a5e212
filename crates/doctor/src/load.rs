//! Checks of the load by other programs: pressure, run queue, CPU consumers, threads of higher priority.
//!
//! A measuring thread competes with all threads on its CPUs. These checks use the kernel's pressure information and the live sample of
//! [`crate::live`].

use machmeter_data::summary::of_cpus;
use machmeter_data::{Hazard, code};

use super::CheckDef;
use super::inputs::{Inputs, Seen, amount_in, three_digits};
use super::live::{Consumer, Live, RealTimeTask};
use super::outcome::{Judged, Outcome};

const PRESSURE_WARN_PERCENT: f64 = 2.0;
const PRESSURE_FAIL_PERCENT: f64 = 20.0;
/// Load average per CPU; used if the kernel has no pressure information.
const AVERAGE_WARN: f64 = 0.1;
const AVERAGE_FAIL: f64 = 0.5;
/// Percent of one CPU.
const CONSUMER_WARN_PERCENT: f64 = 5.0;
const CONSUMER_FAIL_PERCENT: f64 = 50.0;
const RT_USED_PERCENT: f64 = 1.0;
/// Other threads take the CPU, or run on the SMT sibling.
const OTHERS: &[Hazard] = &[Hazard::Preemption, Hazard::SharedCore];

fn live<'a>(inputs: &Inputs<'a>) -> Result<&'a Live, Outcome> {
    inputs.live.ok_or_else(|| Outcome::unknown("running processes were not sampled").source("/proc/*/stat"))
}

/// The three busiest other processes in a few words; empty if none is visible.
fn busiest(inputs: &Inputs) -> String {
    let top = inputs.live.and_then(|l| l.consumers.as_ref().ok());
    let short = |c: &Consumer| format!("{} {} %", c.comm, three_digits(c.cpu_percent));
    let names: Vec<String> = top.into_iter().flatten().take(3).map(short).collect();
    if names.is_empty() { String::new() } else { format!(": {}", names.join(", ")) }
}

/// Advice about other programs. If they leave some of the CPUs idle, measure those; else wait, or end the programs.
fn avoid(inputs: &Inputs) -> String {
    match inputs.live.map(|l| l.idle.intersection(inputs.for_cpus)) {
        Some(idle) if !idle.is_empty() && idle != *inputs.for_cpus => {
            format!("measure what they leave idle: machmeter -c {idle}")
        }
        _ => "wait until the programs named by E106 end, or end them".to_owned(),
    }
}

/// Number of other threads below which idle cores remain to measure on: one per four CPUs. From one per CPU on, a thread must wait.
fn few(cpus: f64) -> f64 {
    (cpus / 4.0).max(0.5)
}

pub(super) const PRESSURE: CheckDef = CheckDef {
    code: code! { "E104" "load",
        what: "Hardly any thread waits for a CPU.",
        why: "A waiting thread shows that other programs use the measured CPUs. The tails of the figures then include those programs.",
        how: "The share of the last 10 s in which a runnable thread had no CPU (pressure stall information). Without it, the 1-minute load average per \
              CPU. If no thread waits during the check itself, the result is a warning, not a failure.",
        next: "Measure a CPU that other programs leave idle (machmeter -c LIST), or wait until the programs named by E106 end.",
    },
    hazards: OTHERS,
    of_machine: false,
    needs: &["load.psi_cpu_10s"],
    judge: pressure,
};

fn pressure(inputs: &Inputs) -> Judged {
    if let Seen::Nothing(why) = inputs.look("load.psi_cpu_10s")? {
        let average = inputs.amount("load.average_1min")?;
        let cpus = inputs.amount("cpu.count")?.max(1.0);
        let brief = format!("load average {} over 1 min on {cpus} CPUs", three_digits(average));
        let observed = format!("{brief} (no pressure information: {why}){}", busiest(inputs));
        return Ok(Outcome::graded(average / cpus, AVERAGE_WARN, AVERAGE_FAIL, observed)
            .brief(brief)
            .limit(format!("{AVERAGE_WARN} per CPU"))
            .source("/proc/loadavg")
            .next(avoid(inputs)));
    }
    let percent = inputs.amount("load.psi_cpu_10s")?;
    let waited = format!("programs waited for a CPU {} % of the last 10 s", three_digits(percent));
    let now = inputs.live.and_then(|l| Some((l.runnable?, l.window_ns)));
    let outcome = match now {
        // The last 10 s can include an earlier run of this program.
        Some((n, window_ns))
            if percent > PRESSURE_FAIL_PERCENT && (0.0..few(inputs.amount("cpu.count")?)).contains(&n) =>
        {
            let looked = super::inputs::duration(window_ns as f64);
            let brief = format!("{waited}, but hardly at all in the {looked} of the check");
            Outcome::warn(format!("{brief}{}", busiest(inputs))).brief(brief)
        }
        _ => {
            let observed = format!("{waited}{}", busiest(inputs));
            Outcome::graded(percent, PRESSURE_WARN_PERCENT, PRESSURE_FAIL_PERCENT, observed).brief(waited)
        }
    };
    Ok(outcome.limit(format!("{PRESSURE_WARN_PERCENT} %")).next(avoid(inputs)))
}

pub(super) const RUN_QUEUE: CheckDef = CheckDef {
    code: code! { "E105" "run queue",
        what: "Few other threads are running or ready to run.",
        why: "Every running thread takes a CPU, shares caches and memory with the measured one, and lowers the clock of all cores.",
        how: "Running threads in /proc/loadavg without those of machmeter: the mean of several reads during the check, or the value of each capture.",
        next: "E106 names the threads. Wait, stop them, or confine them (taskset, cpuset) to CPUs that are not measured.",
        undo: "Give the threads their former CPUs back (taskset -p).",
    },
    hazards: OTHERS,
    needs: &["load.running", "cpu.count"],
    judge: run_queue,
    ..CheckDef::OF_NOTHING
};

fn run_queue(inputs: &Inputs) -> Judged {
    let cpus = inputs.amount("cpu.count")?.max(1.0);
    let mut others = (inputs.amount("load.running")? - 1.0).max(0.0);
    let mut how = "1 snapshot".to_owned();
    if let Some(later) = inputs.later {
        others = others.max((amount_in(later, "load.running")? - 1.0).max(0.0));
        how = String::from("the larger of 2 snapshots");
    }
    if let Some(live) = inputs.live {
        match live.runnable {
            Some(n) if n.is_finite() && n >= 0.0 => {
                others = n;
                how = format!("mean over {}", super::inputs::duration(live.window_ns as f64));
            }
            Some(n) => {
                return Err(Outcome::unknown(format!("an impossible number of runnable threads: {n}"))
                    .source("/proc/loadavg"));
            }
            None => {}
        }
    }
    let observed = format!("{} other threads running or ready on {cpus} CPUs ({how})", three_digits(others));
    let limit = few(cpus);
    Ok(Outcome::graded(others, limit, cpus.max(1.0) - 0.01, observed)
        .limit(format!("{limit} on {cpus} CPUs"))
        .next(avoid(inputs)))
}

pub(super) const CONSUMERS: CheckDef = CheckDef {
    code: code! { "E106" "top consumers",
        what: "No other process uses a noticeable part of a CPU.",
        why: "Other processes delay the measured threads. Their names show which program to stop or to move.",
        how: "CPU time of every process in /proc/*/stat, read twice at most 200 ms apart. CPU time that no visible process explains counts as hidden.",
        next: "Measure a CPU that they leave idle (-c LIST), wait until they end, or move them to other CPUs (taskset -cp LIST PID).",
        undo: "taskset -cp with the former list.",
    },
    hazards: OTHERS,
    judge: consumers,
    ..CheckDef::OF_NOTHING
};

fn consumers(inputs: &Inputs) -> Judged {
    let live = live(inputs)?;
    let finish = |o: Outcome| {
        Ok(o.source("/proc/*/stat, /proc/stat").limit(format!("{CONSUMER_WARN_PERCENT} % of one CPU")))
    };
    let top = match &live.consumers {
        Ok(top) => top,
        Err(why) => return finish(Outcome::unknown(why.clone())),
    };
    let names: Vec<String> = top.iter().take(5).map(Consumer::to_string).collect();
    let largest = top.iter().map(|c| c.cpu_percent).fold(0.0, f64::max);
    if largest > CONSUMER_WARN_PERCENT {
        let share = (live.others_percent.max(largest) / live.cpus.max(1) as f64).min(100.0);
        let taken = format!("other programs took {} % of {}", three_digits(share), of_cpus(live.cpus.max(1)));
        let observed = format!("{taken}: {}", names.join(", "));
        let outcome = Outcome::graded(largest, CONSUMER_WARN_PERCENT, CONSUMER_FAIL_PERCENT, observed);
        return finish(outcome.brief(taken).next(avoid(inputs)));
    }
    match live.hidden_percent {
        Some(hidden) if !hidden.is_finite() || hidden < 0.0 => {
            finish(Outcome::unknown(format!("an impossible share of hidden time: {hidden}")))
        }
        // `/proc` counts in units of 10 ms. Over 200 ms, one unit on each of several CPUs is no evidence.
        Some(hidden) if hidden > 4.0 * CONSUMER_WARN_PERCENT => finish(
            Outcome::graded(
                hidden,
                CONSUMER_WARN_PERCENT,
                4.0 * CONSUMER_FAIL_PERCENT,
                format!(
                    "no visible process explains {} % of one CPU (hidden, or already ended)",
                    three_digits(hidden)
                ),
            )
            .next("run outside the container or as root (hidepid hides processes of other users)"),
        ),
        Some(_) => finish(Outcome::pass(
            names.first().map_or_else(|| "no other process ran".to_owned(), |n| format!("largest: {n}")),
        )),
        None => finish(Outcome::unknown(
            "no visible process runs, but the CPUs' own counters could not be read to confirm it",
        )),
    }
}

pub(super) const REAL_TIME: CheckDef = CheckDef {
    code: code! { "E107" "higher-priority threads",
        what: "No real-time thread with a higher priority than the measuring thread runs on the measured CPUs.",
        why: "Such a thread takes the CPU at any moment. The measuring thread cannot prevent it.",
        how: "Policy, priority, allowed CPUs and CPU time of every thread in /proc/*/task/*/stat, read twice. Kernel threads that exist everywhere \
              (migration, watchdog) count only if they used CPU time. If the threads are not visible, the result is unknown.",
        next: "Move the threads off the measured CPUs (taskset -cp LIST TID), lower their priority (chrt -p -f PRIO TID), or measure at a higher \
               priority (--prio fifo:N).",
        undo: "chrt and taskset with the former values, which the text shows.",
    },
    hazards: &[Hazard::Preemption],
    judge: real_time,
    ..CheckDef::OF_NOTHING
};

fn real_time(inputs: &Inputs) -> Judged {
    let live = live(inputs)?;
    let finish = |o: Outcome| {
        Ok(o.source("/proc/*/task/*/stat")
            .limit(format!("no user thread, no kernel thread above {RT_USED_PERCENT} % of a CPU")))
    };
    let threads = match &live.rt_above {
        Ok(threads) => threads,
        Err(why) => return finish(Outcome::unknown(why.clone())),
    };
    let here: Vec<&RealTimeTask> =
        threads.iter().filter(|t| !t.cpus.intersection(inputs.for_cpus).is_empty()).collect();
    let used = |t: &&&RealTimeTask| t.cpu_percent > RT_USED_PERCENT;
    let list = |threads: &[&&RealTimeTask]| {
        threads.iter().take(5).map(ToString::to_string).collect::<Vec<_>>().join(", ")
    };
    let busy: Vec<_> = here.iter().filter(used).collect();
    let users: Vec<_> = here.iter().filter(|t| !t.kernel).collect();
    let Some(first) = busy.first().or(users.first()) else {
        return finish(Outcome::pass(format!(
            "no user thread; {} kernel threads below {RT_USED_PERCENT} % of a CPU",
            here.len()
        )));
    };
    let RealTimeTask { tid, cpus, priority, .. } = first;
    let measured = inputs.measured();
    let next = format!("taskset -cp LIST {tid} with a list without {measured}, or chrt -o -p 0 {tid}");
    let undo = format!("taskset -cp {cpus} {tid}; chrt -f -p {priority} {tid}");
    let outcome = if busy.is_empty() { Outcome::warn(list(&users)) } else { Outcome::fail(list(&busy)) };
    finish(outcome.next(next).undo(undo))
}
