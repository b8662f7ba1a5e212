//! Costs of one run, drawn from their intervals.

use std::collections::HashMap;

use machmeter_model::laws::LEVEL;
use machmeter_stats::distribution::deviations;
use machmeter_stats::random::Random;

use crate::engine::Part;
use crate::expr::Answer;
use crate::machine::OfLink;
use crate::params::{Params, Protocol, Segment};

/// Deviations of one run: none, or normal ones.
pub(super) struct Draw {
    random: Option<Random>,
    /// Factors of parameters by range of sizes: segments of one range err together.
    factors: HashMap<(usize, usize), f64>,
}

impl Draw {
    /// Of the run of a number; as measured without one.
    pub(super) fn new(run: Option<u64>) -> Self {
        Self { random: run.map(Random::new), factors: HashMap::new() }
    }

    /// Standard deviations from the value.
    pub(super) fn deviation(&mut self) -> f64 {
        self.random.as_mut().map_or(0.0, Random::normal)
    }

    pub(super) fn params(&mut self, link: &OfLink) -> Params {
        let mut all = link.errors.iter();
        link.params.map(|segment| {
            let Some(errors) = all.next() else { return };
            for part in [Part::Latency, Part::Overhead, Part::Gap, Part::GapBytes] {
                let key = (errors.range, part as usize);
                let relative = errors.relative[part as usize];
                let known = self.factors.get(&key).copied();
                let factor = known.unwrap_or_else(|| (1.0 + relative * self.deviation()).max(0.0));
                self.factors.insert(key, factor);
                scale(segment, part, factor);
            }
        })
    }
}

/// Makes one parameter a multiple of what it is.
pub(super) fn scale(segment: &mut Segment, part: Part, factor: f64) {
    let times = |x: &mut u64| *x = (*x as f64 * factor).round() as u64;
    match part {
        Part::Latency => {
            times(&mut segment.latency_ps);
            if let Protocol::Rendezvous { handshake_ps } = &mut segment.protocol {
                times(handshake_ps);
            }
        }
        Part::Overhead => {
            times(&mut segment.send.first_ps);
            times(&mut segment.receive.first_ps);
        }
        Part::Gap => times(&mut segment.gap.first_ps),
        // Bytes are moved by the link, and by the CPUs of both ends.
        Part::GapBytes => {
            times(&mut segment.gap.per_byte);
            times(&mut segment.way_per_byte);
            times(&mut segment.send.per_byte);
            times(&mut segment.receive.per_byte);
        }
        _ => {}
    }
}

/// A cost so many standard deviations off, ps.
pub(super) fn price(answer: &Answer, deviation: f64) -> u64 {
    let reach = answer
        .interval
        .map_or(0.0, |(low, high)| if deviation < 0.0 { answer.value - low } else { high - answer.value });
    ((answer.value + deviation / deviations(LEVEL) * reach).max(0.0) * 1000.0).round() as u64
}
