//! How long a stream remembers: a first-order autoregression plus white noise.

/// Correlation `weight * phi^lag`.
#[derive(Debug, Clone, Copy)]
pub(super) struct Memory {
    phi: f64,
    weight: f64,
}

impl Memory {
    /// From the first four correlations of a centered stream, corrected for their bias in short streams (Kendall 1954).
    pub(super) fn of(z: &[f64]) -> Self {
        let n = z.len() as f64;
        let at = |lag: usize| z.iter().zip(z.iter().skip(lag)).map(|(a, b)| a * b).sum::<f64>();
        let all = at(0);
        if all <= 0.0 || z.len() < 5 {
            return Self { phi: 0.0, weight: 0.0 };
        }
        let r = [1, 2, 3, 4].map(|lag| at(lag) / all).map(|r| r + (1.0 + 3.0 * r.max(0.0)) / n);
        if r[0] <= 0.0 {
            return Self { phi: 0.0, weight: 0.0 };
        }
        let seen = r[0] > 3.0 / n.sqrt();
        let slow = (r[1] + r[2] + r[3]) / (r[0] + r[1] + r[2]).max(r[0]);
        let phi = if seen { slow.max(r[0]) } else { r[0] }.clamp(0.0, 0.995);
        Self { phi, weight: (r[0] / phi).clamp(0.0, 1.0) }
    }

    /// This memory where what it comes from remembers for longer.
    pub(super) fn at_least_as_slow_as(self, other: &Self) -> Self {
        Self { phi: self.phi.max(other.phi), ..self }
    }

    /// Height of the spectrum at an angular frequency over that at zero.
    pub(super) fn height(&self, w: f64) -> f64 {
        let p = self.phi;
        let at = |cos: f64| 1.0 - self.weight + self.weight * (1.0 - p * p) / (1.0 - 2.0 * p * cos + p * p);
        at(w.cos()) / at(1.0)
    }

    /// Samples that one independent sample amounts to, at least 1.
    pub(super) fn samples(&self) -> f64 {
        1.0 + 2.0 * self.weight * self.phi / (1.0 - self.phi)
    }
}
