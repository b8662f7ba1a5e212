//! Runs one measurement from start to record.
//!
//! A session captures facts before, qualifies the clock, runs the probes, captures facts after, and evaluates the checks. A failed check flags the
//! metrics that it weakens.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use machmeter_data::facts::{FactValue, Facts};
use machmeter_data::record::{Machine, Record, Run, Tool, Warning};
use machmeter_data::summary::{self, RowInfo, Summary};
use machmeter_data::{CheckState, Hazard, Table};
use machmeter_doctor::{Live, live};
use machmeter_engine::host::clock_record;
use machmeter_engine::placement::parse_priority;
use machmeter_engine::probe::{Analysis, Outcome};
use machmeter_engine::{Deadline, Host, Info, Loads, ProbeError, Progress};
use machmeter_store::{History, date};
use machmeter_sys::clock::{Qualification, qualify};
use machmeter_sys::topology::{Allowed, CpuSet, Topology, select};
use machmeter_sys::{facts, guard, process};
use sha2::{Digest, Sha256};

use crate::{Failure, Globals, Registries, Result};

/// Verb of the one-page characterization in records.
pub(crate) const CHARACTERIZE: &str = "characterize";

pub(crate) struct Session<'a> {
    globals: &'a Globals,
    topology: Topology,
    allowed: CpuSet,
    pub(crate) cpus: CpuSet,
    clock: Qualification,
    before: Facts,
    started: String,
    pub(crate) budget: Deadline,
    /// History of earlier runs, or the reason why there is none.
    pub(crate) history: Result<History, String>,
    fingerprint: String,
    live: Option<Live>,
    loads: &'static dyn Loads,
    left_out: Vec<Warning>,
}

impl<'a> Session<'a> {
    /// Captures the machine and qualifies the clock; about 60 ms on a small machine, nothing in a dry run. The time limit starts here.
    ///
    /// # Errors
    /// The requested CPUs are not available, or the topology is unknown.
    pub(crate) fn begin(registries: &Registries, globals: &'a Globals, total_ns: u64) -> Result<Self> {
        let budget = Deadline::start(total_ns);
        crate::view::writable(globals)?;
        guard::signals::install()
            .map_err(|e| Failure::cannot(format!("cannot install signal handlers: {e}")))?;
        let started = date::now_rfc3339();
        let (topology, allowed, cpus) = cpus(&globals.cpus)?;
        let before = facts::capture();
        // A dry run measures nothing, not even the clock, and creates no files.
        let (clock, history) = if globals.dry_run {
            (Qualification::default(), Err("not opened".to_owned()))
        } else {
            (qualify(&cpus.to_vec()).map_err(Failure::cannot)?, crate::state::history())
        };
        let fingerprint = fingerprint(&before);
        Ok(Self {
            globals,
            topology,
            allowed,
            cpus,
            clock,
            before,
            started,
            budget,
            history,
            fingerprint,
            live: None,
            loads: registries.loads,
            left_out: Vec::new(),
        })
    }

    /// Samples the other programs on the machine for a fifth of a second, for the checks.
    pub(crate) fn look_around(&mut self) {
        self.live = Some(live::sample(std::time::Duration::from_millis(200)));
    }

    /// Records that a part was not measured, and the reason; the record is then incomplete.
    pub(crate) fn leave_out(&mut self, part: &str, why: &str) {
        let text = format!("{part} was not measured: {why}");
        self.left_out.push(warning("W903", text, "remove the cause, or give more time (-t)"));
    }

    /// Runs a probe, or several in one pool, within `budget_ns` of wall time; `None` for a dry run without errors.
    ///
    /// # Errors
    /// The error of the probe.
    pub(crate) fn run<T>(
        &self,
        budget_ns: u64,
        progress: &dyn Progress,
        probe: impl FnOnce(&Host<'_>) -> Result<T, ProbeError>,
    ) -> Result<Option<T>> {
        let best_ever =
            |key: &str| self.history.as_ref().ok()?.best_values().lowest(&self.fingerprint, key).ok()?;
        let host = Host {
            cpus: self.cpus.clone(),
            allowed: self.allowed.clone(),
            topology: self.topology.clone(),
            clock: self.clock.clone(),
            rate: self.clock.tick_rate(),
            level: self.globals.level,
            priority: parse_priority(&self.globals.prio).map_err(Failure::usage)?,
            seed: self.globals.seed,
            dry_run: self.globals.dry_run,
            budget: Deadline::start(budget_ns),
            fills_time: self.globals.time.is_some(),
            best_ever: &best_ever,
            open_record: &|name| crate::command::open_stored(name),
            loads: self.loads,
            progress,
        };
        match probe(&host) {
            Err(ProbeError::DryRun) => Ok(None),
            done => Ok(Some(done?)),
        }
    }

    /// Makes the record of the run from the outcomes of its probes.
    pub(crate) fn end(mut self, verb: &str, outcomes: Vec<(&'static Info, Outcome)>) -> (Record, Vec<Table>) {
        if process::lost_any() {
            let text = "a signal that machmeter did not send ended a process of this run".to_owned();
            let next = "run again; dmesg shows whether memory ran out";
            self.left_out.push(warning("W904", text, next));
        }
        let after = facts::capture();
        let mut record = empty_record();
        record.clock = Some(clock_record(&self.clock));
        record.complete = self.left_out.is_empty() && outcomes.iter().all(|o| o.1.complete);
        record.stopped_by = stopped_by("time");
        if guard::signals::stop_flag().load(Ordering::Relaxed) {
            record.complete = false;
        }
        record.run.started.clone_from(&self.started);
        record.run.cpus = self.cpus.to_string();
        verb.clone_into(&mut record.run.verb);
        self.globals.level.name().clone_into(&mut record.run.level);
        record.run.seed = self.globals.seed;
        record.run.tags = self.globals.tag.iter().cloned().collect();
        let mut tables = Vec::new();
        let infos: Vec<RowInfo> = outcomes.iter().flat_map(|(info, _)| info.rows).copied().collect();
        let weakened_by: BTreeMap<_, _> =
            outcomes.iter().flat_map(|o| o.0.metrics()).map(|m| (m.id, m.weakened_by)).collect();
        for (info, outcome) in outcomes {
            let Outcome { analysis, tables: own, parameters, policy, side_effects, .. } = outcome;
            self.remember(&analysis.remember, &mut record);
            add(&mut record, analysis);
            record.run.parameters.insert(info.name.to_owned(), parameters);
            record.run.policy = policy;
            record.run.side_effects.extend(side_effects);
            tables.extend(own);
        }
        record.summary.rows = summary::rows(&infos, &record.metrics);
        record.checks =
            crate::command::doctor::all(&self.before, &after, &self.clock, &self.cpus, self.live.as_ref());
        flag_by_checks(&mut record, &weakened_by);
        spoil_by_checks(&mut record);
        record.warnings.extend(self.left_out.iter().cloned());
        if let Some(name) = &self.globals.name {
            record.run.tags.insert("name".to_owned(), name.clone());
        }
        record.machine = Machine {
            changed: self.before.changed(&after),
            before: self.before,
            after,
            fingerprint: Some(self.fingerprint),
        };
        record.run.wall_ns = self.budget.spent_ns();
        (record, tables)
    }

    fn remember(&self, values: &[(String, f64)], record: &mut Record) {
        let Ok(history) = &self.history else { return };
        if self.globals.no_save {
            return;
        }
        for (key, value) in values {
            if let Err(e) = history.best_values().keep_lowest(&self.fingerprint, key, *value) {
                let next = "make the state directory writable, or give --no-save";
                record.warn(warning("W901", e.to_string(), next));
            }
        }
    }
}

/// Topology, the CPUs that this process may use, and the selected ones.
pub(crate) fn cpus(spec: &str) -> Result<(Topology, CpuSet, CpuSet)> {
    let topology = Topology::host().map_err(Failure::cannot)?;
    let allowed = Allowed::host(&topology).map_err(Failure::cannot)?;
    let cpus = select(spec, &allowed, &topology).map_err(Failure::usage)?;
    let all = allowed.nameable();
    Ok((topology, all, cpus))
}

/// Flags the metrics that share a hazard with a failed check. A warning applies to the whole run, and so does a check on the kind of machine: both are
/// reported once and flag no metric.
pub(crate) fn flag_by_checks(record: &mut Record, weakened_by: &BTreeMap<&str, &[Hazard]>) {
    for check in record.checks.iter().filter(|c| c.state == CheckState::Fail && !c.of_machine) {
        for m in &mut record.metrics {
            let hazards = weakened_by.get(m.id.as_str()).copied().unwrap_or_default();
            if hazards.iter().any(|h| check.hazards.contains(h)) {
                m.flag(&check.id);
            }
        }
    }
}

/// Applies failed checks of a purpose's own resource to the verdicts of this run.
fn spoil_by_checks(record: &mut Record) {
    let judged: Vec<String> = record.summary.fitness.iter().map(|f| f.purpose.clone()).collect();
    let spoiled = machmeter_doctor::spoiled(&record.checks).into_iter();
    let fitness = spoiled.filter(|f| judged.contains(&f.purpose)).collect();
    record.summary.add(Summary { fitness, ..Summary::default() });
}

/// SHA-256 over the facts that define the kind of machine.
fn fingerprint(facts: &Facts) -> String {
    let mut hash = Sha256::new();
    for key in facts::fingerprint_keys() {
        let value: Option<&FactValue> = facts.get(key).and_then(|f| f.value.as_ref());
        hash.update(format!("{key}={}\n", serde_json::to_string(&value).unwrap_or_default()));
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn add(record: &mut Record, analysis: Analysis) {
    record.metrics.extend(analysis.metrics);
    record.datasets.extend(analysis.datasets);
    record.findings.extend(analysis.findings);
    analysis.warnings.into_iter().for_each(|w| record.warn(w));
    record.summary.add(analysis.summary);
}

/// Reason for the end of a run: `signal:INT`, else `itself`.
pub(crate) fn stopped_by(itself: &str) -> String {
    let by = |s: guard::Signal| format!("signal:{}", s.to_string().trim_start_matches("SIG"));
    guard::signals::stop_requested().map_or_else(|| itself.to_owned(), by)
}

/// A warning of the program itself.
pub(crate) fn warning(code: &str, text: String, next: &str) -> Warning {
    Warning { code: code.to_owned(), text, next: next.to_owned(), ..Warning::default() }
}

/// A record with the tool, the command and the time, but without any measurement.
pub(crate) fn empty_record() -> Record {
    let tool = Tool {
        name: "machmeter".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        commit: crate::cli::commit().map(str::to_owned),
        target: format!("{}-{}", std::env::consts::ARCH, std::env::consts::OS),
        rustc: None,
    };
    let run = Run {
        started: date::now_rfc3339(),
        command: std::env::args_os().map(|a| a.to_string_lossy().into_owned()).collect(),
        euid: machmeter_sys::thread::effective_user(),
        ..Run::default()
    };
    Record::new(date::new_run_id(), tool, run)
}
