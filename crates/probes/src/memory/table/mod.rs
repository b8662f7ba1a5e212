//! To be written.

use machmeter_engine::cost::{Row, Rows};
use machmeter_engine::{Analysis, ProbeError};

use super::Params;
use crate::part::{At, Part};

/// The part.
pub(super) const PART: Part<Params> = Part { name: "table", weight: 25, measure, analyze };

fn measure(_at: &mut At<'_, '_>, _params: &Params) -> Result<Vec<Row>, ProbeError> {
    Ok(Vec::new())
}

fn analyze(_params: &Params, _rows: &Rows, _seed: u64) -> Analysis {
    Analysis::default()
}
