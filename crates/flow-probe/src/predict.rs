//! Virtual time on a stored run: costs of boxes and of the kernel by load, and what another granularity or kernel would take.

use machmeter_engine::ProbeError;
use machmeter_engine::cost::Rows;
use machmeter_engine::host::Host;
use machmeter_flow::profile::Load;
use machmeter_flow::virtual_time::{Cost, Costs, Forecast, Tape, forecast};
use machmeter_flow::{Choice, Graph, Name};
use machmeter_stats::quantile::median_of;
use serde::{Deserialize, Serialize};

use crate::graphs::{TIMED, Timed};
use crate::kernels::Kernel;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(crate) struct Predicted {
    pub(crate) wall_ns: f64,
    pub(crate) kernel_ns: f64,
    /// Granularities that the costs are of.
    pub(crate) from: Vec<u32>,
    /// Of each queue: most tokens in it.
    pub(crate) most: Vec<u64>,
}

pub(crate) struct Past {
    name: String,
    timed: Vec<Timed>,
}

impl Past {
    pub(crate) fn open(host: &Host<'_>, name: &str) -> Result<Self, ProbeError> {
        let usage = |why: String| ProbeError::Usage(format!("--predict-from {name}: {why}"));
        let stored =
            (host.open_record)(name).map_err(|why| ProbeError::Usage(format!("--predict-from: {why}")))?;
        let rows = Rows::from_tables("flow", &stored.tables).map_err(|e| usage(e.to_string()))?;
        let mut timed = rows.facts.get(&TIMED).unwrap_or_default();
        timed.retain(|t| !t.total_ns.is_empty() && !t.profile.boxes.is_empty());
        if timed.is_empty() {
            return Err(usage(
                "it has no runs of graphs: measure some with `machmeter flow --graph NAME`".to_owned(),
            ));
        }
        Ok(Self { name: name.to_owned(), timed })
    }

    pub(crate) fn of(&self, graph: &str, kernel: Kernel) -> Result<Vec<&Timed>, ProbeError> {
        let own: Vec<&Timed> =
            self.timed.iter().filter(|t| t.graph == graph && t.kernel == kernel.name()).collect();
        if own.is_empty() {
            let mut known: Vec<String> =
                self.timed.iter().map(|t| format!("{} by {}", t.graph, t.kernel)).collect();
            known.dedup();
            return Err(ProbeError::Usage(format!(
                "--predict-from {}: it has no run of {graph} by {}, but of {}",
                self.name,
                kernel.name(),
                known.join(", ")
            )));
        }
        Ok(own)
    }
}

fn costs(past: &[&Timed]) -> Costs {
    let boxes = past.first().map_or(0, |t| t.profile.boxes.len());
    let of_box = |i: usize| -> Vec<Load> {
        past.iter().filter_map(|t| t.profile.boxes.get(i)).flat_map(|b| b.loads.iter().copied()).collect()
    };
    let of_name = |i: usize| -> Vec<Load> {
        let mean = |t: &&Timed| {
            let calls = t.called.last()?[i];
            let means: Vec<f64> =
                t.total_ns.iter().zip(&t.called).map(|(ns, n)| ns[i] / n[i].max(1) as f64).collect();
            let mean_ns = median_of(&means)?.max(0.0);
            (calls > 0).then_some(Load { load: u64::from(t.granularity), calls, mean_ns })
        };
        past.iter().filter_map(mean).collect()
    };
    // A call of the kernel costs about the same at each granularity: one alone is level, not proportional.
    let level = |loads: &[Load]| match loads {
        [one] => Cost::level(one.mean_ns),
        many => Cost::through(many),
    };
    Costs {
        boxes: (0..boxes).map(|i| Cost::through(&of_box(i))).collect(),
        names: (0..Name::ALL.len()).map(|i| level(&of_name(i))).collect(),
    }
}

/// What a run would take by the costs of these.
pub(crate) fn predict(
    past: &[&Timed],
    build: &dyn Fn() -> Graph,
    choice: Choice,
) -> Result<Predicted, String> {
    let told = |e: machmeter_flow::FlowError| e.to_string();
    let tape = Tape::of(build()).map_err(told)?;
    let found: Forecast = forecast(build(), choice, &costs(past), &tape).map_err(told)?;
    Ok(Predicted {
        wall_ns: found.wall_ns(),
        kernel_ns: found.kernel_ns,
        from: past.iter().map(|t| t.granularity).collect(),
        most: found.queues.iter().map(|q| q.1).collect(),
    })
}
