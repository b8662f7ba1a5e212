//! Which working sets are visited.

/// Smallest working set, bytes.
pub(super) const LEAST_BYTES: usize = 4_096;

/// Up to here the first look takes many sizes, bytes.
const MANY_BYTES: usize = 4 << 20;

/// Working sets from [`LEAST_BYTES`] to `most_bytes`: `per_octave` in each octave, evenly spaced inside it (so that sizes of
/// caches, whole fractions of an octave, are among them), in whole base pages.
pub(super) fn sizes(per_octave: u32, most_bytes: usize) -> Vec<usize> {
    let mut out = Vec::new();
    let mut octave = LEAST_BYTES;
    while octave <= most_bytes {
        for i in 0..per_octave as usize {
            let pages = (octave / LEAST_BYTES).saturating_mul(i).div_ceil(per_octave as usize);
            let bytes = octave.saturating_add(pages.saturating_mul(LEAST_BYTES));
            if bytes <= most_bytes && out.last().is_none_or(|last| *last < bytes) {
                out.push(bytes);
            }
        }
        let Some(next) = octave.checked_mul(2) else { break };
        octave = next;
    }
    out
}

/// Working sets of the first look: four per octave up to [`MANY_BYTES`], two from there, where caches are large and building
/// chains takes most of the time.
pub(super) fn first_look(most_bytes: usize) -> Vec<usize> {
    let mut out = sizes(4, most_bytes.min(MANY_BYTES));
    out.extend(sizes(2, most_bytes).into_iter().filter(|s| *s > MANY_BYTES));
    if out.last().is_some_and(|last| *last < most_bytes) {
        out.push(most_bytes);
    }
    out
}

/// Working sets to add where a curve sampled at `sizes` rises near `bytes`: 16 per octave from two sizes below to two above.
pub(super) fn refined(sizes: &[usize], bytes: f64) -> Vec<usize> {
    let at = sizes.partition_point(|s| (*s as f64) <= bytes);
    let (Some(first), Some(last)) = (sizes.get(at.saturating_sub(2)), sizes.get(at + 1).or(sizes.last()))
    else {
        return Vec::new();
    };
    let octave = (*first).max(LEAST_BYTES).ilog2();
    let step = ((1_usize << octave) / 16).next_multiple_of(LEAST_BYTES);
    (*first..*last).step_by(step).filter(|s| !sizes.contains(s)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_ascend_in_whole_pages_and_hold_the_forms_of_caches() {
        let all = sizes(4, 128 << 20);
        assert!(all.windows(2).all(|w| w[0] < w[1]) && all.iter().all(|s| s.is_multiple_of(LEAST_BYTES)));
        for form in [4, 32, 48, 512, 1_280, 1_024, 1_792, 24 << 10, 128 << 10] {
            assert!(all.contains(&(form << 10)), "{form}");
        }
        assert_eq!((all[0], all.last().copied()), (4_096, Some(128 << 20)));
        let first = first_look((128 << 20) + LEAST_BYTES);
        assert!(first.windows(2).all(|w| w[0] < w[1]) && first.len() < 60);
        assert_eq!(first.last(), Some(&((128 << 20) + LEAST_BYTES)));
        assert_eq!(sizes(1, 16_384), [4_096, 8_192, 16_384]);
        assert!(sizes(8, 4_095).is_empty());
        assert!(sizes(8, usize::MAX).len() < 500);
    }

    #[test]
    fn refined_sizes_are_new_and_near() {
        let all = sizes(4, 1 << 20);
        let more = refined(&all, 34_000.0);
        assert_eq!(more, [36_864, 45_056]);
        assert!(
            refined(&all, 530_000.0).iter().all(|s| (448 << 10..768 << 10).contains(s) && !all.contains(s))
        );
        assert!(refined(&[], 1e6).is_empty());
    }
}
