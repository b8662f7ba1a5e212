//! What a lock is to its measurement: the same generic loops run over every kind, compiled for each.

use machmeter_engine::team::Member;

/// A lock. Waiting ends at the member's deadline where the lock spins; locks that sleep are left by their holders always,
/// so that they end too.
pub(in crate::sync) trait Lock: Sync {
    /// Holding it; ends when dropped.
    type Held<'a>
    where
        Self: 'a;

    /// Takes it. `None` when the deadline came first; a lock that queues is of no more use then.
    fn acquire<'a>(&'a self, member: &'a Member<'_>) -> Option<Self::Held<'a>>;

    /// Whether several may hold it at once.
    fn is_shared(&self) -> bool {
        false
    }
}
