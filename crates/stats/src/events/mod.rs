//! Periodicity of event times (detours, wake-ups): point processes instead of sampled series.
//!
//! Event times have no Nyquist limit at any window rate, and each source can be tested alone. The building block
//! is the Rayleigh power `z(f) = |sum exp(2 pi i f t)|^2 / n`: mean 1 for events without rhythm, `n` for a perfect
//! comb, at every multiple of its fundamental alike. [`comb_search`] turns those lines back into combs.
//!
//! Sources: Mardia & Jupp, *Directional Statistics* (2000), for the Rayleigh power; Buccheri et al., "Search for pulsed gamma-ray emission" (A&A 1983), for sums over harmonics; de
//! Jager, Raubenheimer & Swanepoel (A&A 1989); Zhuang, Ogata & Vere-Jones (JASA 2002) for thinning events by
//! weight instead of deleting them.

mod comb;
mod fold;
mod rayleigh;
mod scan;

pub use comb::{Comb, FALSE_ALARM, comb_search};

use crate::error::{StatsError, check, out_of_range};

/// Events in order, with time zero at the first.
#[allow(clippy::struct_field_names, reason = "the shared ending is the unit")]
struct Log {
    /// Ascending times in seconds from the first event.
    times_s: Vec<f64>,
    /// Time of the first event on the caller's clock.
    origin_s: f64,
    /// Time from the first to the last event.
    span_s: f64,
}

impl Log {
    fn new(times_s: &[f64]) -> Result<Self, StatsError> {
        check("event times", times_s, 5)?;
        let mut sorted = times_s.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let (origin_s, last_s) = (sorted[0], sorted[sorted.len() - 1]);
        let span_s = last_s - origin_s;
        if !(span_s > 0.0 && span_s.is_finite()) {
            let shown = if span_s.is_finite() { span_s } else { f64::MAX };
            return Err(out_of_range("span of the events in seconds", shown, "positive and finite"));
        }
        for t in &mut sorted {
            *t -= origin_s;
        }
        Ok(Self { times_s: sorted, origin_s, span_s })
    }
}

fn check_band(fmin_hz: f64, fmax_hz: f64) -> Result<(), StatsError> {
    if !(fmin_hz > 0.0 && fmin_hz.is_finite()) {
        return Err(out_of_range("fmin_hz", fmin_hz, "positive and finite"));
    }
    if !(fmax_hz > fmin_hz && fmax_hz.is_finite()) {
        return Err(out_of_range("fmax_hz", fmax_hz, "finite and above fmin_hz"));
    }
    Ok(())
}
