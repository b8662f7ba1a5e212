//! Steps of a script that a rank plays, and its phases.

/// An operation of all ranks of a communicator. Rank 0 is its root; sizes are bytes of a rank (of a pair of ranks in `Alltoall`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Collective {
    Barrier,
    Bcast,
    Scatter,
    Gather,
    Allgather,
    Alltoall,
    Reduce,
    Allreduce,
    ReduceScatter,
    Scan,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shmem {
    /// Up to its quiet.
    Put,
    Get,
    Add,
    Quiet,
    /// A free lock, set or tested, and cleared.
    Lock,
    TestLock,
    Barrier,
    /// Writes the next number to the partner, and waits for the partner's.
    Signal,
    Await,
}

/// A call or pause of one rank. The root and rank 1 are partners.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Send,
    Ssend,
    Rsend,
    Recv,
    Sendrecv,
    Isend,
    Irecv,
    Wait,
    /// An empty message to the partner, and from it.
    Ask,
    Hear,
    All(Collective),
    /// The same without blocking; `Wait` completes it.
    Start(Collective),
    /// Keeps the CPU busy; this time is not counted.
    Compute,
    /// One-sided, each with its flush.
    Put,
    Get,
    FetchAndOp,
    /// `OpenSHMEM`: to and from the partner's memory, a lock at rank 0, and words that partners wait for.
    Shmem(Shmem),
    /// Away from MPI, asleep; and in MPI, but for another message.
    Sleep,
    Poll,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    Begin,
    Each(&'static [Step]),
    Once(Step),
    Close(Step),
    End,
}
