//! Tests noise across the ranks of a launcher.

use std::time::Duration;

use machmeter_data::Record;

use crate::program::{Lab, value};
use crate::{launched, mpis};

#[test]
fn noise_across_ranks_is_one_record() {
    for mpi in mpis() {
        let lab = Lab::alone();
        let ended = launched(&lab, &mpi, 2, "noise -t 1 --json -q");
        let record = ended.record();
        for rank in ["0", "1", "all"] {
            assert!(value(&record, "noise.stolen_fraction", &[("rank", rank)]).is_some(), "{rank}");
        }
        assert!(record.metrics.iter().all(|m| !m.params.contains_key("cpu")));
        for operation in ["barrier", "allreduce"] {
            let found =
                record.metric("noise.collective", &[("operation", operation), ("ranks", "2")]).unwrap();
            println!("{}, {operation}: {:?} of {} turns", mpi.version, found.value, found.n);
            assert!(found.value.is_some_and(|ns| ns > 100.0) && found.n > 0);
            let late =
                |rank| value(&record, "noise.late_fraction", &[("operation", operation), ("rank", rank)]);
            let shares = late("0").unwrap_or(0.0) + late("1").unwrap_or(0.0);
            assert!((shares - 1.0).abs() < 1e-9, "{shares}");
        }
        assert!(record.findings.iter().any(|f| f.id == "noise.slow_ranks"));
        assert!(ended.wall < Duration::from_secs(12), "{:?}", ended.wall);
        // The stored samples give the same cost again.
        let again = lab.run(&["report", "last", "--json"]).record();
        let cost = |r: &Record| value(r, "noise.collective", &[("operation", "barrier")]).unwrap();
        assert!((cost(&again) / cost(&record) - 1.0).abs() < 1e-3);
    }
}
