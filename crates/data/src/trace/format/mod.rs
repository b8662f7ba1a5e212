//! The format of a trace and its operations: the part that the recorder and the reader share.
//!
//! The recorder (`machmeter-pmpi`) includes this folder as a module and is compiled by one call of the compiler. Files here therefore use only `core`.

#[macro_use]
mod operations;

pub use operations::{
    ABSENT, Arguments, Bytes, Handle, Kind, Number, OPERATIONS, Operation, PLAIN, access, collective, handle,
    message, rooted,
};

/// First word of a file.
pub const MAGIC: u64 = u64::from_le_bytes(*b"mm-mpi\r\n");
/// Version of the format and of the list of operations.
pub const VERSION: u32 = 1;
/// Size of the header and of a block, bytes: one page, so that a block costs one page fault.
pub const BLOCK_BYTES: usize = 4096;
/// Slots per block.
pub const SLOTS: usize = BLOCK_BYTES / 32;
/// Name of the record's table of calls.
pub const EVENTS: &str = "mpi_events";
/// Name of the table of communicators, except those of all ranks in order.
pub const COMMUNICATORS: &str = "mpi_communicators";
/// Name of the table of ranks, with the start and end of each.
pub const SPANS: &str = "mpi_ranks";
/// Ending of the names of trace files.
pub const EXTENSION: &str = "mpitrace";
/// Environment variable with the directory of the files; without it nothing is recorded.
pub const DIRECTORY_VARIABLE: &str = "MACHMETER_TRACE_DIR";
/// Environment variable with the most bytes that a rank records.
pub const LIMIT_VARIABLE: &str = "MACHMETER_TRACE_LIMIT";
/// Duration of a call that has not returned, ticks: the largest value of the 48-bit field (26 hours at 3 GHz).
pub const OPEN: u64 = (1 << 48) - 1;
/// Most bytes of a call, a field of 48 bits.
pub const MOST_BYTES: u64 = (1 << 48) - 1;
/// Number of a mark (a slot that is not a call).
pub const MARK: u16 = u16::MAX;
/// Number of a communicator.
pub const COMMUNICATOR: u16 = u16::MAX - 1;
/// Number of a slot with members of the preceding communicator.
pub const MEMBERS: u16 = u16::MAX - 2;
/// Ranks in a slot of members.
pub const MEMBERS_PER_SLOT: usize = 6;
/// Index for a call without a communicator, or with an unknown one.
pub const NO_COMMUNICATOR: u16 = u16::MAX;
/// Flag of a communicator: all ranks of the program in order, so no members follow.
pub const ALL_RANKS: u64 = 1;
/// Flag of a communicator: an intercommunicator; its members are those of the remote group.
pub const INTER: u64 = 2;
/// Value of a peer or tag that a call does not have.
pub const NO_NUMBER: i32 = i32::MIN;

/// Indices of words in the header.
pub mod header {
    /// [`super::MAGIC`].
    pub const MAGIC: usize = 0;
    /// [`super::VERSION`] in the lower half; in the upper half the unit of ticks: ns of the monotonic clock (0) or the processor's counter (1).
    pub const VERSION: usize = 1;
    /// Rank in the lower half, number of ranks in the upper half.
    pub const RANK: usize = 2;
    /// End of the recording: 0 not yet, 1 by `MPI_Finalize`, 2 out of space, 3 at the limit.
    pub const END: usize = 3;
    /// Number of blocks in use.
    pub const BLOCKS: usize = 4;
    /// `MPI_ANY_SOURCE` in the lower half, `MPI_PROC_NULL` in the upper half.
    pub const SPECIAL: usize = 5;
    /// Ticks before `MPI_Init`.
    pub const INIT_TICKS: usize = 6;
    /// Monotonic clock at the same time, ns.
    pub const INIT_NS: usize = 7;
    /// Ticks after `MPI_Init` returned.
    pub const START_TICKS: usize = 8;
    /// Wall clock at the same time, ns since 1970.
    pub const START_REAL_NS: usize = 9;
    /// Boot id of the machine: 36 characters, padded with zeros to 40 bytes.
    pub const BOOT: usize = 10;
    /// Host name of the machine, 64 bytes.
    pub const HOST: usize = 15;
    /// Version text of the MPI library, 256 bytes.
    pub const LIBRARY: usize = 23;
    /// Command line of the process with zeros between words, 256 bytes.
    pub const PROGRAM: usize = 55;
    /// Number of words in use.
    pub const WORDS: usize = 87;
}

/// Second word of a slot.
#[inline]
pub const fn kind_word(number: u16, low: u64) -> u64 {
    (number as u64) << 48 | low
}

/// Third word of a call.
#[inline]
pub const fn peer_word(peer: i32, tag: i32) -> u64 {
    peer as u32 as u64 | (tag as u32 as u64) << 32
}

/// Fourth word of a call.
#[inline]
pub const fn size_word(bytes: u64, communicator: u16) -> u64 {
    let bytes = if bytes > MOST_BYTES { MOST_BYTES } else { bytes };
    bytes | (communicator as u64) << 48
}
