//! Reads the links of a record with their parameters, for the formats of simulators.

use machmeter_data::Record;
pub(super) use machmeter_data::links::{Link, Range};

use super::ExportError;

/// Links of a record.
///
/// # Errors
/// [`ExportError::NoFigures`] if the record has no links.
pub(super) fn links(record: &Record, format: &'static str) -> Result<Vec<Link>, ExportError> {
    let links = machmeter_data::links::links(record);
    let needs = "parameters of links (machmeter net, machmeter mpi)";
    if links.is_empty() { Err(ExportError::NoFigures { format, needs }) } else { Ok(links) }
}

#[cfg(test)]
mod tests {
    use machmeter_data::metric::params;
    use machmeter_data::shape::{Axis, Curve, CurveRow};
    use machmeter_data::{Dataset, Metric, MetricInfo, Unit};

    use super::*;
    use crate::format::written;

    fn metric(id: &'static str, transport: &str, from_bytes: i64, value: Option<f64>) -> Metric {
        let info = MetricInfo::of(id, Unit::Nanoseconds);
        let keys = params([
            ("transport", transport.into()),
            ("direction", "there".into()),
            ("from_bytes", from_bytes.into()),
        ]);
        match value {
            Some(v) => Metric::new(&info, keys, v, "planted", 1),
            None => Metric::rejected(&info, keys, "planted", "at most 5 ns"),
        }
    }

    /// Two ranges over TCP, and one link through shared memory whose latency is an upper bound.
    fn record() -> Record {
        let mut r = Record::default();
        let ids = ["message_time", "gap", "gap_per_byte", "overhead_send", "overhead_recv", "latency"];
        let ids = ids.map(|id| format!("net.{id}").leak() as &str);
        for (from, o, g, per_byte) in [(1, 500.0, 900.0, 0.5), (4_097, 800.0, 2_500.0, 0.25)] {
            let values = [g, g, per_byte, o, o + 200.0, 3_000.0];
            r.metrics.extend(ids.iter().zip(values).map(|(id, v)| metric(id, "tcp", from, Some(v))));
        }
        r.metrics.push(metric("net.message_time", "shm", 1, Some(20.0)));
        r.metrics.push(metric("net.gap_per_byte", "shm", 1, Some(2.0)));
        r.metrics.push(metric("net.latency", "shm", 1, None));
        let mut threshold = metric("net.sync_threshold", "tcp", 1, Some(65_536.0));
        threshold.params.remove("direction");
        threshold.params.remove("from_bytes");
        r.metrics.push(threshold);
        for (id, y) in [("net.one_way", 4_000.0), ("net.time_per_message", 1_000.0)] {
            let row = CurveRow { name: "tcp there".to_owned(), x: vec![1.0, 5_000.0], y: vec![y, 2.0 * y] };
            let axis = |label| Axis::log(label, Unit::Nanoseconds);
            r.datasets.push(Dataset::new(id, id, id, Curve::shape(axis("message"), axis("time"), vec![row])));
        }
        r
    }

    fn export(name: &str, record: &Record) -> Result<String, String> {
        Ok(String::from_utf8(written(name, record, &[])?).unwrap())
    }

    #[test]
    fn options_of_loggopsim_say_what_is_rounded_and_what_is_not_known() {
        let text = export("loggopsim", &record()).unwrap();
        assert!(text.contains("\n-L 3000000 -o 600000 -g 900000 -G 250 -S 65536\n"), "{text}");
        assert!(text.contains("\n-L 3000 -o 600 -g 900 -G 0.2500 -S 65536\n"), "{text}");
        let shm = text.split("# tcp there").next().unwrap();
        assert!(shm.contains("# warning: L cannot be separated") && shm.contains("-g 20 -G 2.0000"), "{shm}");
        // 2 ns per byte is a whole number.
        assert!(!shm.contains("whole numbers"), "{shm}");
    }

    #[test]
    fn a_platform_of_simgrid_is_one_document_with_factors_of_the_long_messages() {
        let text = export("simgrid", &record()).unwrap();
        for part in [
            "<prop id=\"smpi/os\" value=\"0:5.00000e-7:0;4097:8.00000e-7:0\"/>",
            "<prop id=\"network/bandwidth-factor\" value=\"0:0.5000;4097:1.0000\"/>",
            "<prop id=\"smpi/send-is-detached-thresh\" value=\"65536\"/>",
            "bandwidth=\"4000000000Bps\" latency=\"3.00000e-6s\"",
            "Other links of the record: shm there.",
        ] {
            assert!(text.contains(part), "{part} in\n{text}");
        }
        assert_eq!(text.matches("<platform").count(), 1);
        assert_eq!(text.matches("</platform>").count(), 1);
    }

    #[test]
    fn columns_of_netgauge_are_eleven_numbers() {
        let text = export("ng-out", &record()).unwrap();
        let lines = text.lines().filter(|l| !l.starts_with('#'));
        let numbers = |l: &str| l.split(' ').map(|w| w.parse().unwrap()).collect();
        let lines: Vec<Vec<f64>> = lines.map(numbers).collect();
        assert_eq!(lines.len(), 2);
        assert!(lines.iter().all(|l| l.len() == 11));
        // 2 x 4 us, plus 15 messages of 1 us. The second size has L, o_s, o_r, g and G of its own range.
        assert_eq!(lines[0][..4], [1.0, 16.0, 8.0, 23.0]);
        assert_eq!(lines[1][5..10], [3.0, 0.8, 1.0, 2.5, 0.00025]);
    }

    #[test]
    fn records_without_links_are_refused() {
        for name in ["loggopsim", "simgrid", "ng-out"] {
            let why = export(name, &Record::default()).unwrap_err();
            assert!(why.contains("machmeter net") && why.starts_with(name), "{why}");
        }
    }
}
