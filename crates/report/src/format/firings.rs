//! Single firings of boxes, as the flow probe keeps them: rows of a box each, and pairs of a firing each.

use machmeter_data::Table;
use serde::Deserialize;

/// Operation of rows that hold firings.
const FIRING: &str = "firing of a box";

/// A box with its firings.
pub(super) struct BoxFirings {
    /// Graph and schedule.
    pub(super) track: String,
    pub(super) name: String,
    /// Begin and length, ns.
    pub(super) firings: Vec<(f64, f64)>,
}

#[derive(Deserialize)]
struct Rest {
    params: Params,
}

#[derive(Deserialize)]
struct Params {
    graph: String,
    schedule: String,
    #[serde(rename = "box")]
    name: String,
}

/// Boxes of a record's raw tables; none where it has no such rows. Rows that cannot be read are left out.
pub(super) fn firings(tables: &[Table]) -> Vec<BoxFirings> {
    let table = |name: &str| tables.iter().find(|t| t.name == name);
    let read = || {
        let (rows, pairs) = (table("flow_rows")?, table("flow_pairs")?);
        let tick_hz = rows.notes.iter().find(|(k, _)| k == "tick_hz")?.1.parse::<f64>().ok()?;
        let ns_per_tick = 1e9 / tick_hz;
        let (operations, rests) = (rows.texts("operation")?, rows.texts("rest")?);
        let mut boxes: Vec<Option<BoxFirings>> = operations
            .iter()
            .zip(rests)
            .map(|(operation, rest)| {
                let p = serde_json::from_str::<Rest>(rest).ok().filter(|_| operation == FIRING)?.params;
                let track = format!("{}: {}", p.graph, p.schedule);
                Some(BoxFirings { track, name: p.name, firings: Vec::new() })
            })
            .collect();
        let (of, at, ticks) = (pairs.i32s("row")?, pairs.f64s("at_ns")?, pairs.i64s("long_ticks")?);
        for ((row, at_ns), ticks) in of.iter().zip(at).zip(ticks) {
            let owner = usize::try_from(*row).ok().and_then(|i| boxes.get_mut(i)?.as_mut());
            let length_ns = *ticks as f64 * ns_per_tick;
            if let Some(b) = owner.filter(|_| at_ns.is_finite() && length_ns.is_finite() && *ticks >= 0) {
                b.firings.push((*at_ns, length_ns));
            }
        }
        Some(boxes.into_iter().flatten().collect())
    };
    read().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use machmeter_data::{Column, Record, Table, Unit, Values};

    use super::*;

    fn table(name: &str, columns: Vec<(&str, Values)>) -> Table {
        let column =
            |(name, values): (&str, Values)| Column { name: name.to_owned(), unit: Unit::One, values };
        let mut t = Table::new(name, columns.into_iter().map(column).collect()).unwrap();
        t.notes.push(("tick_hz".to_owned(), "2e9".to_owned()));
        t
    }

    fn tables() -> Vec<Table> {
        let rest = |name: &str| {
            format!(r#"{{"params":{{"graph":"g","schedule":"s","box":"{name}"}},"extras":{{}}}}"#)
        };
        let rows = table(
            "flow_rows",
            vec![
                (
                    "operation",
                    Values::Text(vec![
                        FIRING.to_owned(),
                        "run".to_owned(),
                        FIRING.to_owned(),
                        FIRING.to_owned(),
                    ]),
                ),
                ("rest", Values::Text(vec![rest("fft"), rest("no"), "not JSON".to_owned(), rest("sink")])),
            ],
        );
        // Of the box that cannot be read, of no box, and backwards: left out.
        let pairs = table(
            "flow_pairs",
            vec![
                ("row", Values::I32(vec![0, 3, 0, 1, 2, -1, 99, 0])),
                ("at_ns", Values::F64(vec![100.0, 130.0, 200.0, 0.0, 0.0, 0.0, 0.0, 300.0])),
                ("long_ticks", Values::I64(vec![40, 20, 60, 9, 9, 9, 9, -5])),
            ],
        );
        vec![rows, pairs]
    }

    #[test]
    fn firings_are_read_and_what_is_no_firing_is_left_out() {
        let found = firings(&tables());
        let [fft, sink] = &found[..] else { panic!("{} boxes", found.len()) };
        assert_eq!((fft.name.as_str(), &fft.firings[..]), ("fft", &[(100.0, 20.0), (200.0, 30.0)][..]));
        assert_eq!((sink.track.as_str(), &sink.firings[..]), ("g: s", &[(130.0, 10.0)][..]));
        assert!(firings(&tables()[..1]).is_empty() && firings(&[]).is_empty());
    }

    #[test]
    fn a_trace_has_a_slice_per_firing() {
        let write = crate::format::by_name("perfetto").unwrap().write;
        let mut out = Vec::new();
        write(&Record::default(), &tables(), &mut out).unwrap();
        let times = |what: &str| out.windows(what.len()).filter(|w| *w == what.as_bytes()).count();
        assert_eq!((times("fft"), times("sink"), times("g: s")), (2, 1, 1));
    }
}
