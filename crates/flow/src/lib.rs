//! A dataflow runtime kernel that characterizes itself.
//!
//! Boxes with fixed rates form static schedules, fired in an order found beforehand; queues connect schedules, and a dynamic
//! scheduler fires those that can run, in the way of the published kernel (Barnes, Gedae) or in a faster one: [`Choice`].
//!
//! ```text
//! Graph ── build ──> Program ── run ──> Run (counts, and with timers a table)
//! ```

pub mod boxes;
mod build;
mod check;
mod fused;
mod graph;
pub mod graphs;
mod kernel;
pub mod laws;
mod names;
pub mod profile;
mod program;
#[cfg(test)]
mod properties;
mod queue;
mod rates;
mod ready;
mod schedule;
mod scheduler;
mod segment;
pub mod table;
#[cfg(test)]
mod tests;
pub mod timer;
pub mod topology;
mod views;
pub mod virtual_time;

pub use fused::{Blocks, ByValue, Fused, TokenByToken};
pub use graph::{Edge, FlowError, Graph};
pub use kernel::{Call, Many, Port, Token, Watch};
pub use names::{Group, Name};
pub use program::{Choice, Ended, Program, Queues, Ready};
pub use scheduler::Sampling;
pub use segment::{Exclusive, Lent};
pub use views::{In, Out, ReadPort, Reader, WritePort, Writer};

/// What an apply says at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Outcome {
    Done,
    /// It is called again at once.
    NotDone,
    /// It is called again when queues have changed: nothing was consumed or produced through static ports.
    Wait,
    /// It is called again later.
    Retry,
    /// A source is over. What it gave this time is not used.
    Over,
}

/// A box: what a graph is made of.
pub trait Primitive: 'static {
    /// [`In`], [`Out`], [`ReadPort`], [`WritePort`], vectors of one kind, tuples of up to six.
    type Ports: Port;

    /// Does the firings that the slices have room for.
    fn apply(&mut self, ports: <Self::Ports as Port>::View<'_>) -> Outcome;

    /// A segment begins.
    fn reset(&mut self) {}

    /// A segment has ended, or the source is over. Slices are empty.
    fn eos(&mut self, _ports: <Self::Ports as Port>::View<'_>) {}

    /// After the end of a segment.
    fn destroy(&mut self) {}
}
