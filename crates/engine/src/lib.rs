//! Traits and services that every probe shares: clock, budget, placement, checks, registration.
