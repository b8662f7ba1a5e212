//! What was asked for, and how much of it the time allows.

use machmeter_engine::ProbeError;

use super::super::Params;
use super::super::bandwidth::sizes::parse_bytes;
use super::claims::Claims;
use super::plan::LEAST_BYTES;

/// Share of huge pages granted that counts as granted; with less there are no rows of huge pages.
pub(super) const GRANTED: f64 = 0.9;

/// Smallest ladder that can show a step, bytes.
const LEAST_MOST_BYTES: u64 = 64 << 10;
/// Reached where the system claims no cache, and at least, bytes.
const USUAL_BYTES: usize = 64 << 20;
/// Share of the available memory that a ladder may take.
const MEMORY_SHARE: u64 = 4;

/// Page sizes asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PageSizes {
    /// The machine's base pages.
    pub(super) small: bool,
    /// Huge pages.
    pub(super) huge: bool,
}

/// What limits the largest working set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Limit {
    /// Nothing: it is as large as the method wants.
    None,
    /// `--max-bytes`.
    Asked,
    /// Available memory.
    Memory,
    /// The time to bring memory in.
    Time,
}

impl Limit {
    /// As in facts and texts.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Asked => "--max-bytes",
            Self::Memory => "available memory",
            Self::Time => "time",
        }
    }
}

/// A checked request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Request {
    /// Largest working set, bytes.
    pub(super) most_bytes: usize,
    /// What keeps it from being larger.
    pub(super) limit: Limit,
    /// Page sizes.
    pub(super) pages: PageSizes,
    /// Points per octave asked for.
    pub(super) per_octave: Option<u32>,
    /// Whether the surface over strides is wanted.
    pub(super) surface: bool,
}

impl Request {
    /// Checks the parameters against the machine.
    ///
    /// # Errors
    /// One line that names the flag.
    pub(super) fn new(params: &Params, claims: &Claims, available_bytes: u64) -> Result<Self, ProbeError> {
        let usage = |text: String| Err(ProbeError::Usage(text));
        let pages = match params.pages.as_str() {
            "small" => PageSizes { small: true, huge: false },
            "huge" => PageSizes { small: false, huge: true },
            "both" => PageSizes { small: true, huge: true },
            other => return usage(format!("--pages {other}: small, huge or both")),
        };
        if let Some(n) = params.ladder_points.filter(|n| !(1..=32).contains(n)) {
            return usage(format!("--ladder-points {n}: 1 to 32 working sets per octave"));
        }
        let (most_bytes, limit) = if let Some(text) = &params.max_bytes {
            (asked_bytes(text, available_bytes)?, Limit::Asked)
        } else {
            let wanted = claims.last_bytes().unwrap_or(0).saturating_mul(4).max(USUAL_BYTES) as u64;
            let room_bytes = available_bytes / MEMORY_SHARE;
            if wanted <= room_bytes { (wanted, Limit::None) } else { (room_bytes, Limit::Memory) }
        };
        let most_bytes = usize::try_from(most_bytes).unwrap_or(usize::MAX) / LEAST_BYTES * LEAST_BYTES;
        if most_bytes < LEAST_MOST_BYTES as usize {
            return Err(ProbeError::Cannot(format!(
                "{available_bytes} bytes of memory are available; the ladder needs four times {LEAST_MOST_BYTES}"
            )));
        }
        Ok(Self { most_bytes, limit, pages, per_octave: params.ladder_points, surface: params.surface })
    }
}

/// The largest working set asked for, bytes.
fn asked_bytes(text: &str, available_bytes: u64) -> Result<u64, ProbeError> {
    let bytes = parse_bytes(text).map_err(|e| ProbeError::Usage(format!("--max-bytes: {e}")))?;
    if bytes < LEAST_MOST_BYTES || !bytes.is_multiple_of(LEAST_BYTES as u64) {
        return Err(ProbeError::Usage(format!(
            "--max-bytes {text}: a multiple of {LEAST_BYTES} bytes of at least {LEAST_MOST_BYTES} is needed"
        )));
    }
    if bytes > available_bytes / MEMORY_SHARE {
        return Err(ProbeError::Usage(format!(
            "--max-bytes {text}: {available_bytes} bytes of memory are available, and the ladder takes at most a quarter \
             of them"
        )));
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(json: &serde_json::Value) -> Result<Request, String> {
        let mut all = serde_json::json!({
            "parts": [], "kernels": [], "threads": null, "buffer": null, "data": "random",
            "max_bytes": null, "pages": "both", "surface": false, "ladder_points": null,
        });
        for (k, v) in json.as_object().unwrap() {
            all[k] = v.clone();
        }
        let params: Params = serde_json::from_value(all).unwrap();
        Request::new(&params, &Claims::default(), 8 << 30).map_err(|e| e.to_string())
    }

    #[test]
    fn requests_are_checked_in_one_line() {
        for (json, words) in [
            (serde_json::json!({"max_bytes": "100001"}), "multiple of 4096"),
            (serde_json::json!({"max_bytes": "4K"}), "at least 65536"),
            (serde_json::json!({"max_bytes": "1T"}), "are available"),
            (serde_json::json!({"max_bytes": "much"}), "not a size"),
            (serde_json::json!({"pages": "large"}), "small, huge or both"),
            (serde_json::json!({"ladder_points": 0}), "1 to 32"),
        ] {
            let said = asked(&json).unwrap_err();
            assert!(said.contains(words) && !said.contains('\n'), "{said}");
        }
        let r = asked(&serde_json::json!({"max_bytes": "16M", "pages": "small"})).unwrap();
        assert_eq!((r.most_bytes, r.limit, r.pages.huge), (16 << 20, Limit::Asked, false));
        let r = asked(&serde_json::json!({})).unwrap();
        assert_eq!((r.most_bytes, r.limit), (USUAL_BYTES, Limit::None));
    }

    #[test]
    fn little_memory_bounds_the_ladder() {
        let params: Params = serde_json::from_value(serde_json::json!({
            "parts": [], "kernels": [], "threads": null, "buffer": null, "data": "random",
            "max_bytes": null, "pages": "both", "surface": false, "ladder_points": null,
        }))
        .unwrap();
        let r = Request::new(&params, &Claims::default(), 100 << 20).unwrap();
        assert_eq!((r.most_bytes, r.limit), (25 << 20, Limit::Memory));
        assert!(Request::new(&params, &Claims::default(), 100_000).is_err());
    }
}
