//! Wake-ups: members that wake each other, or that one member wakes by a broadcast.

mod events;
mod trip;

pub use events::Way;
pub(super) use trip::settle;
pub use trip::{broadcast, trip};
