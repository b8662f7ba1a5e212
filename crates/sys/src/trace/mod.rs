//! Kernel events from a private tracefs instance: who ran, which interrupt came, in the ticks of the measuring clock.
//!
//! Nothing outside the instance is written, tracefs is not mounted where others would see it, and the instance goes away on
//! drop and on signals; after SIGKILL it stops, and goes at the next start. Sources: Documentation/trace/{ftrace,events,ring-buffer-design}.rst.

mod decode;
mod format;
mod instance;
mod log;
mod page;
mod session;
mod symbols;

pub use decode::ACCOUNTS;
pub use log::{
    Dropped, EventKind, NameId, Names, SkippedEvent, TaskState, TraceClock, TraceEvent, TraceLog,
    softirq_name,
};
pub use session::{DEFAULT_EVENTS, TraceConfig, TraceSession, WAITING_EVENTS};
pub use symbols::functions;

/// Removes the instances of processes of ours that were killed. Without rights nothing is seen, and nothing done.
pub(crate) fn sweep() {
    if let Ok(mount) = crate::pseudofs::KernelMount::of_tracefs() {
        instance::sweep_instances(&mount.path().join("instances"));
    }
}
