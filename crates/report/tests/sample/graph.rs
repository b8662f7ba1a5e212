//! A synthetic graph of the flow probe: parallel channels, then queues to schedules that are chains; the last one leads back.

use machmeter_data::Record;
use serde_json::{Value, json};

/// Adds a graph with `channels` channels of six boxes and `schedules` schedules of eight.
pub fn add(record: &mut Record, channels: usize, schedules: usize) {
    let (mut boxes, mut edges) = (Vec::new(), Vec::new());
    let mut add = |name: String, schedule: String, share: f64| {
        boxes.push(json!({"name": name, "cells": [schedule, 100, 1_000_000, 123.4, share]}));
        boxes.len()
    };
    let mut join = |name: String, from: usize, to: usize, queue: [Value; 2]| {
        let kind = if queue[0].is_null() { "static" } else { "queue" };
        let [capacity, most] = queue;
        edges.push(json!({"name": name, "cells": [from, to, kind, capacity, most, null]}));
    };
    let of_static = || [Value::Null, Value::Null];
    let first = add("source".to_owned(), "acquisition".to_owned(), 0.004);
    let ends: Vec<usize> = (0..channels)
        .map(|channel| {
            (0..6).fold(first, |before, i| {
                let name = ["I/Q", "decimate", "equalize", "range FFT", "replica", "inverse FFT"][i];
                let own = add(name.to_owned(), "acquisition".to_owned(), 0.01 * (i + channel) as f64);
                join(format!("{name} of {channel}"), before, own, of_static());
                own
            })
        })
        .collect();
    let mut before = add("corner turn".to_owned(), "acquisition".to_owned(), 0.08);
    for end in ends {
        join("pulses".to_owned(), end, before, of_static());
    }
    for s in 0..schedules {
        let schedule = format!("schedule {s}");
        let first = add("a matched filter".to_owned(), schedule.clone(), 0.02);
        join(format!("hand over {s}"), before, first, [json!(16_384), json!(1_000 * s)]);
        before = (1..8).fold(first, |before, i| {
            let own = add(format!("stage {i}"), schedule.clone(), 0.005 * f64::from(i));
            join(format!("tokens {i}"), before, own, of_static());
            own
        });
        join("back".to_owned(), before, first, of_static());
        join("past".to_owned(), first, before, of_static());
    }
    let columns = |of: &[(&str, Option<&str>)]| -> Vec<Value> {
        of.iter().map(|(label, unit)| json!({"label": label, "unit": unit})).collect()
    };
    let of_boxes = [
        ("schedule", None),
        ("calls", Some("{count}")),
        ("firings", Some("{count}")),
        ("mean", Some("ns")),
        ("share", Some("1")),
    ];
    let of_edges = ["from", "to", "kind", "capacity", "most", "discarded"].map(|label| (label, None));
    for (id, columns, rows) in [("boxes", columns(&of_boxes), boxes), ("edges", columns(&of_edges), edges)] {
        let dataset = json!({"id": format!("flow.{id}.sample"), "title": format!("{id} of sample"), "caption": "Made up.",
                             "shape": "cost_table", "columns": columns, "rows": rows});
        record.datasets.push(serde_json::from_value(dataset).expect("a dataset"));
    }
}
