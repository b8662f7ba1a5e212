//! The benchmark graphs.

pub mod e_comm;
pub mod noise_removal;
pub mod primitives;
pub mod rt_stap_easy;
