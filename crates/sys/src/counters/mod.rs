//! The kernel's counters under `/proc`, as snapshots and differences; the parsers are pure functions of the text.

pub mod schedstat;
