//! The real machine of a stream: kernel timers, thread CPU clocks, threads that wake each other, started processes.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

use machmeter_sys::thread;

use super::run::{Machine, Spent};
use super::{Demand, Stream};
use crate::cpu_work::{Spinner, spin};

/// A job's number, and what it has spent so far: it is handed on when a stage has ended.
type Token = (u64, Spent);

/// Threads after the first one, each woken by the one before.
struct Chain {
    first: Option<SyncSender<Token>>,
    last: Receiver<Token>,
    threads: Vec<JoinHandle<()>>,
}

/// Belongs to the thread that made it: stages inherit its policy and CPUs, and its CPU time counts.
pub struct RealMachine {
    spinner: Spinner,
    stop: Arc<AtomicBool>,
    chain: Option<Chain>,
    program: PathBuf,
    arguments: Vec<OsString>,
    jobs_done: Option<Arc<dyn Fn(u64) + Send + Sync>>,
}

impl RealMachine {
    /// Calibrates on the calling thread and starts stages. `stop` ends work within a period; `launch`: program, arguments.
    pub fn new(stream: &Stream, stop: Arc<AtomicBool>, launch: (PathBuf, Vec<OsString>)) -> io::Result<Self> {
        let spinner = Spinner::calibrate();
        let chain = match stream.stages.as_slice() {
            [] => None,
            stages => Some(Chain::start(stages, spinner, &stop).map_err(|e| {
                io::Error::new(e.kind(), format!("a thread of the chain could not be started: {e}"))
            })?),
        };
        Ok(Self { spinner, stop, chain, program: launch.0, arguments: launch.1, jobs_done: None })
    }

    /// Calls `tell` with the CPU time of every executed job, ns: how a load counts its work.
    #[must_use]
    pub fn telling(mut self, tell: Arc<dyn Fn(u64) + Send + Sync>) -> Self {
        self.jobs_done = Some(tell);
        self
    }

    pub fn spinner(&self) -> Spinner {
        self.spinner
    }

    fn launch(&self) -> u64 {
        let before_ns = thread::children_cpu_ns();
        let child = Command::new(&self.program)
            .args(&self.arguments)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        // A launch that fails costs no CPU time, by which the analysis knows it.
        match child.and_then(|mut c| c.wait()) {
            Ok(status) if status.success() => thread::children_cpu_ns() - before_ns,
            _ => 0,
        }
    }
}

impl Machine for RealMachine {
    fn now_ns(&mut self) -> u64 {
        thread::monotonic_ns()
    }

    fn sleep_until(&mut self, at_ns: u64) {
        thread::nanosleep_until(at_ns);
    }

    fn execute(&mut self, demand: Demand, _stages: &[Demand], job: u64) -> Spent {
        let before_ns = thread::thread_cpu_ns();
        let stop = Arc::clone(&self.stop);
        let cpu_ns = match demand {
            Demand::Launch => self.launch() + (thread::thread_cpu_ns() - before_ns),
            other => work(&mut self.spinner, before_ns, other, &stop),
        };
        let ended_ns = thread::monotonic_ns();
        let mut spent = Spent { cpu_ns, wake_ns: 0, ended_ns };
        if let Some(chain) = &self.chain {
            let sent = chain.first.as_ref().is_some_and(|f| f.send((job, spent)).is_ok());
            if let (true, Ok((_, all))) = (sent, chain.last.recv()) {
                spent = all;
            }
        }
        if let Some(tell) = &self.jobs_done {
            tell(spent.cpu_ns);
        }
        spent
    }

    fn stopped(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// CPU time of `demand`, which may be of any plain kind but a launch.
fn work(spinner: &mut Spinner, before_ns: u64, demand: Demand, stop: &AtomicBool) -> u64 {
    match demand {
        Demand::Cpu { ns } => spinner.burn(before_ns, ns, &|| stop.load(Ordering::Relaxed)),
        Demand::Turns { turns } => {
            // In stretches, so that a stop is heard.
            let mut left = turns;
            while left > 0 && !stop.load(Ordering::Relaxed) {
                let stretch = left.min(1 << 20);
                spin(stretch);
                left -= stretch;
            }
            thread::thread_cpu_ns() - before_ns
        }
        Demand::Ramp { .. } | Demand::RampTurns { .. } | Demand::Launch => {
            thread::thread_cpu_ns() - before_ns
        }
    }
}

impl Chain {
    fn start(stages: &[Demand], spinner: Spinner, stop: &Arc<AtomicBool>) -> io::Result<Self> {
        let (first, mut from) = sync_channel::<Token>(1);
        let mut threads = Vec::new();
        for (i, &demand) in stages.iter().enumerate() {
            let (to, next) = sync_channel::<Token>(1);
            let input = std::mem::replace(&mut from, next);
            let stop = Arc::clone(stop);
            let body = move || stage(&input, &to, demand, spinner, &stop);
            threads.push(thread::spawn_plain(&format!("mm-stage-{}", i + 1), body)?);
        }
        Ok(Self { first: Some(first), last: from, threads })
    }
}

fn stage(
    input: &Receiver<Token>,
    output: &SyncSender<Token>,
    demand: Demand,
    mut spinner: Spinner,
    stop: &AtomicBool,
) {
    while let Ok((job, before)) = input.recv() {
        let begun_ns = thread::monotonic_ns();
        let before_ns = thread::thread_cpu_ns();
        let cpu_ns = work(&mut spinner, before_ns, demand.of_job(job), stop);
        let spent = Spent {
            cpu_ns: before.cpu_ns + cpu_ns,
            wake_ns: before.wake_ns + begun_ns.saturating_sub(before.ended_ns),
            ended_ns: thread::monotonic_ns(),
        };
        if output.send((job, spent)).is_err() {
            return;
        }
    }
}

impl Drop for Chain {
    fn drop(&mut self) {
        // Closing the first channel ends the stages one after the other.
        self.first = None;
        for t in self.threads.drain(..) {
            let _ = t.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Deadline, Overload, Release, Stop, run};
    use super::*;

    fn stream(stages: Vec<Demand>) -> Stream {
        Stream {
            release: Release::Periodic { period_ns: 10_000_000 },
            demand: Demand::Cpu { ns: 500_000 },
            deadline: Deadline::Next,
            overload: Overload::Drop,
            stages,
        }
    }

    fn nothing() -> (PathBuf, Vec<OsString>) {
        (PathBuf::from("/bin/true"), Vec::new())
    }

    #[test]
    fn a_chain_adds_up_its_stages() {
        let stream = stream(vec![Demand::Cpu { ns: 300_000 }, Demand::Cpu { ns: 200_000 }]);
        let mut machine = RealMachine::new(&stream, Arc::default(), nothing()).unwrap();
        let mut jobs = Vec::with_capacity(stream.jobs_in(1_000_000_000));
        let t0_ns = thread::monotonic_ns() + 1_000_000;
        assert_eq!(run(&mut machine, &stream, t0_ns, 1_000_000_000, 1, &mut jobs), Stop::Time);
        assert_eq!(jobs.len(), 100, "scheduled = recorded + dropped");
        let ran: Vec<_> = jobs.iter().filter(|j| j.ran()).collect();
        for j in &ran {
            assert!(j.cpu_ns >= 980_000, "{j:?}");
            assert!(j.wake_ns > 0 && j.response_ns >= j.wake_ns, "{j:?}");
        }
        // A hypervisor that takes the CPU away within a job is charged to the thread's clock: it only adds.
        let least = ran.iter().min_by_key(|j| j.cpu_ns).expect("some job ran");
        assert!(least.cpu_ns < 1_200_000, "{least:?}");
        assert!(least.preempt_ns() > -20_000, "{least:?}");
    }

    #[test]
    fn a_launch_costs_the_childs_time() {
        let stream = Stream {
            demand: Demand::Launch,
            release: Release::Closed { think_ns: 1_000_000 },
            deadline: Deadline::None,
            ..stream(Vec::new())
        };
        let mut machine = RealMachine::new(&stream, Arc::default(), nothing()).unwrap();
        let spent = machine.execute(Demand::Launch, &[], 0);
        assert!(spent.cpu_ns > 50_000, "{spent:?}");
    }

    #[test]
    fn a_stop_is_heard() {
        let stop = Arc::new(AtomicBool::new(true));
        let stream = stream(Vec::new());
        let mut machine = RealMachine::new(&stream, stop, nothing()).unwrap();
        let mut jobs = Vec::with_capacity(8);
        let t0_ns = thread::monotonic_ns();
        assert_eq!(run(&mut machine, &stream, t0_ns, 60_000_000_000, 1, &mut jobs), Stop::Asked);
    }
}
