//! The probes: what is measured, its loop, its analysis, and its simulated machine.
