//! The list of recorded MPI operations. The recorder generates its functions from it, and readers take the names.

/// Class of an operation for the analysis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Starts or does one message between two ranks.
    Message,
    /// Waits for messages or tests for their completion.
    Completion,
    /// All ranks of a communicator call it in one order, and it blocks.
    Collective,
    /// A nonblocking collective: started here, completed later.
    CollectiveStart,
    /// A collective that creates or frees communicators or windows.
    Communicator,
    /// Accesses the memory of another rank, or synchronizes such accesses.
    OneSided,
}

/// The arguments that give the bytes an operation moves for its rank; numbers are positions of C arguments, from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bytes {
    /// None, or not given by the arguments.
    None,
    /// Count and datatype.
    Count(u8, u8),
    /// Count for each rank of the communicator, and datatype.
    PerRank(u8, u8),
    /// Array of counts per rank, and datatype.
    Counts(u8, u8),
    /// Entry of the calling rank in such an array, and datatype.
    Own(u8, u8),
    /// Arrays of counts and of datatypes.
    Types(u8, u8),
    /// One element of the datatype.
    One(u8),
}

/// A handle that an operation creates or frees when it returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handle {
    /// None.
    None,
    /// Position of the new communicator.
    NewCommunicator(u8),
    /// Position of the new window, over the communicator of the call.
    NewWindow(u8),
    /// Position of the freed communicator.
    FreesCommunicator(u8),
    /// Position of the freed window.
    FreesWindow(u8),
}

/// No such argument.
pub const ABSENT: u8 = u8::MAX;

/// Positions of the recorded arguments of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arguments {
    /// Bytes that the rank moves.
    pub bytes: Bytes,
    /// Position of the buffer that may be `MPI_IN_PLACE`, and the bytes in that case.
    pub in_place: (u8, Bytes),
    /// Rank in the communicator: destination, source, root or target.
    pub peer: u8,
    /// Tag.
    pub tag: u8,
    /// Communicator.
    pub communicator: u8,
    /// Window, instead of a communicator.
    pub window: u8,
    /// Handle that is created or freed.
    pub handle: Handle,
}

/// Only the name is recorded.
pub const PLAIN: Arguments = Arguments {
    bytes: Bytes::None,
    in_place: (ABSENT, Bytes::None),
    peer: ABSENT,
    tag: ABSENT,
    communicator: ABSENT,
    window: ABSENT,
    handle: Handle::None,
};

/// A message: count, datatype, peer, tag, communicator.
pub const fn message(count: u8, datatype: u8, peer: u8, tag: u8, communicator: u8) -> Arguments {
    Arguments { bytes: Bytes::Count(count, datatype), peer, tag, communicator, ..PLAIN }
}

/// A collective over a communicator; in place if `buffer` is `MPI_IN_PLACE`.
pub const fn collective(bytes: Bytes, buffer: u8, in_place: Bytes, communicator: u8) -> Arguments {
    Arguments { bytes, in_place: (buffer, in_place), communicator, ..PLAIN }
}

/// A collective with a root.
pub const fn rooted(arguments: Arguments, root: u8) -> Arguments {
    Arguments { peer: root, ..arguments }
}

/// An access to the memory of `target` through a window.
pub const fn access(bytes: Bytes, target: u8, window: u8) -> Arguments {
    Arguments { bytes, peer: target, window, ..PLAIN }
}

/// An operation on a handle, over the communicator at a position.
pub const fn handle(communicator: u8, handle: Handle) -> Arguments {
    Arguments { communicator, handle, ..PLAIN }
}

/// One recorded operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operation {
    /// `Allreduce`, without `MPI_`.
    pub name: &'static str,
    /// Its class.
    pub kind: Kind,
    /// Its recorded arguments.
    pub arguments: Arguments,
}

/// Calls `$use!` with all operations: name in C, name in Fortran, number of C arguments, kind, arguments. Operations with a variant `_c` for large counts
/// come first. The position is the number in traces: new operations go to the end, with a new version of the format.
macro_rules! mpi_operations {
    ($use:ident) => { $use! {
        counted {
            Send send 6 Message message(1, 2, 3, 4, 5);
            Bsend bsend 6 Message message(1, 2, 3, 4, 5);
            Ssend ssend 6 Message message(1, 2, 3, 4, 5);
            Rsend rsend 6 Message message(1, 2, 3, 4, 5);
            Isend isend 7 Message message(1, 2, 3, 4, 5);
            Ibsend ibsend 7 Message message(1, 2, 3, 4, 5);
            Issend issend 7 Message message(1, 2, 3, 4, 5);
            Irsend irsend 7 Message message(1, 2, 3, 4, 5);
            Recv recv 7 Message message(1, 2, 3, 4, 5);
            Irecv irecv 7 Message message(1, 2, 3, 4, 5);
            Sendrecv sendrecv 12 Message message(1, 2, 3, 4, 10);
            Sendrecv_replace sendrecv_replace 9 Message message(1, 2, 3, 4, 7);
            Isendrecv isendrecv 12 Message message(1, 2, 3, 4, 10);
            Isendrecv_replace isendrecv_replace 9 Message message(1, 2, 3, 4, 7);
            Mrecv mrecv 5 Message Arguments { bytes: Bytes::Count(1, 2), ..PLAIN };
            Imrecv imrecv 5 Message Arguments { bytes: Bytes::Count(1, 2), ..PLAIN };
            Send_init send_init 7 Message message(1, 2, 3, 4, 5);
            Bsend_init bsend_init 7 Message message(1, 2, 3, 4, 5);
            Ssend_init ssend_init 7 Message message(1, 2, 3, 4, 5);
            Rsend_init rsend_init 7 Message message(1, 2, 3, 4, 5);
            Recv_init recv_init 7 Message message(1, 2, 3, 4, 5);
            Bcast bcast 5 Collective rooted(collective(Bytes::Count(1, 2), ABSENT, Bytes::None, 4), 3);
            Gather gather 8 Collective rooted(collective(Bytes::Count(1, 2), 0, Bytes::Count(4, 5), 7), 6);
            Gatherv gatherv 9 Collective rooted(collective(Bytes::Count(1, 2), 0, Bytes::Own(4, 6), 8), 7);
            Scatter scatter 8 Collective rooted(collective(Bytes::Count(4, 5), 3, Bytes::Count(1, 2), 7), 6);
            Scatterv scatterv 9 Collective rooted(collective(Bytes::Count(5, 6), 4, Bytes::Own(1, 3), 8), 7);
            Allgather allgather 7 Collective collective(Bytes::Count(1, 2), 0, Bytes::Count(4, 5), 6);
            Allgatherv allgatherv 8 Collective collective(Bytes::Count(1, 2), 0, Bytes::Own(4, 6), 7);
            Alltoall alltoall 7 Collective collective(Bytes::PerRank(1, 2), 0, Bytes::PerRank(4, 5), 6);
            Alltoallv alltoallv 9 Collective collective(Bytes::Counts(1, 3), 0, Bytes::Counts(5, 7), 8);
            Alltoallw alltoallw 9 Collective collective(Bytes::Types(1, 3), 0, Bytes::Types(5, 7), 8);
            Reduce reduce 7 Collective rooted(collective(Bytes::Count(2, 3), ABSENT, Bytes::None, 6), 5);
            Allreduce allreduce 6 Collective collective(Bytes::Count(2, 3), ABSENT, Bytes::None, 5);
            Reduce_scatter reduce_scatter 6 Collective collective(Bytes::Counts(2, 3), ABSENT, Bytes::None, 5);
            Reduce_scatter_block reduce_scatter_block 6 Collective collective(Bytes::PerRank(2, 3), ABSENT, Bytes::None, 5);
            Scan scan 6 Collective collective(Bytes::Count(2, 3), ABSENT, Bytes::None, 5);
            Exscan exscan 6 Collective collective(Bytes::Count(2, 3), ABSENT, Bytes::None, 5);
            Neighbor_allgather neighbor_allgather 7 Collective collective(Bytes::Count(1, 2), ABSENT, Bytes::None, 6);
            Neighbor_allgatherv neighbor_allgatherv 8 Collective collective(Bytes::Count(1, 2), ABSENT, Bytes::None, 7);
            Neighbor_alltoall neighbor_alltoall 7 Collective collective(Bytes::Count(1, 2), ABSENT, Bytes::None, 6);
            Neighbor_alltoallv neighbor_alltoallv 9 Collective collective(Bytes::None, ABSENT, Bytes::None, 8);
            Neighbor_alltoallw neighbor_alltoallw 9 Collective collective(Bytes::None, ABSENT, Bytes::None, 8);
            Ibcast ibcast 6 CollectiveStart rooted(collective(Bytes::Count(1, 2), ABSENT, Bytes::None, 4), 3);
            Igather igather 9 CollectiveStart rooted(collective(Bytes::Count(1, 2), 0, Bytes::Count(4, 5), 7), 6);
            Igatherv igatherv 10 CollectiveStart rooted(collective(Bytes::Count(1, 2), 0, Bytes::Own(4, 6), 8), 7);
            Iscatter iscatter 9 CollectiveStart rooted(collective(Bytes::Count(4, 5), 3, Bytes::Count(1, 2), 7), 6);
            Iscatterv iscatterv 10 CollectiveStart rooted(collective(Bytes::Count(5, 6), 4, Bytes::Own(1, 3), 8), 7);
            Iallgather iallgather 8 CollectiveStart collective(Bytes::Count(1, 2), 0, Bytes::Count(4, 5), 6);
            Iallgatherv iallgatherv 9 CollectiveStart collective(Bytes::Count(1, 2), 0, Bytes::Own(4, 6), 7);
            Ialltoall ialltoall 8 CollectiveStart collective(Bytes::PerRank(1, 2), 0, Bytes::PerRank(4, 5), 6);
            Ialltoallv ialltoallv 10 CollectiveStart collective(Bytes::Counts(1, 3), 0, Bytes::Counts(5, 7), 8);
            Ialltoallw ialltoallw 10 CollectiveStart collective(Bytes::Types(1, 3), 0, Bytes::Types(5, 7), 8);
            Ireduce ireduce 8 CollectiveStart rooted(collective(Bytes::Count(2, 3), ABSENT, Bytes::None, 6), 5);
            Iallreduce iallreduce 7 CollectiveStart collective(Bytes::Count(2, 3), ABSENT, Bytes::None, 5);
            Ireduce_scatter ireduce_scatter 7 CollectiveStart collective(Bytes::Counts(2, 3), ABSENT, Bytes::None, 5);
            Ireduce_scatter_block ireduce_scatter_block 7 CollectiveStart collective(Bytes::PerRank(2, 3), ABSENT, Bytes::None, 5);
            Iscan iscan 7 CollectiveStart collective(Bytes::Count(2, 3), ABSENT, Bytes::None, 5);
            Iexscan iexscan 7 CollectiveStart collective(Bytes::Count(2, 3), ABSENT, Bytes::None, 5);
            Ineighbor_allgather ineighbor_allgather 8 CollectiveStart collective(Bytes::Count(1, 2), ABSENT, Bytes::None, 6);
            Ineighbor_allgatherv ineighbor_allgatherv 9 CollectiveStart collective(Bytes::Count(1, 2), ABSENT, Bytes::None, 7);
            Ineighbor_alltoall ineighbor_alltoall 8 CollectiveStart collective(Bytes::Count(1, 2), ABSENT, Bytes::None, 6);
            Ineighbor_alltoallv ineighbor_alltoallv 10 CollectiveStart collective(Bytes::None, ABSENT, Bytes::None, 8);
            Ineighbor_alltoallw ineighbor_alltoallw 10 CollectiveStart collective(Bytes::None, ABSENT, Bytes::None, 8);
            Bcast_init bcast_init 7 CollectiveStart rooted(collective(Bytes::Count(1, 2), ABSENT, Bytes::None, 4), 3);
            Allreduce_init allreduce_init 8 CollectiveStart collective(Bytes::Count(2, 3), ABSENT, Bytes::None, 5);
            Reduce_init reduce_init 9 CollectiveStart rooted(collective(Bytes::Count(2, 3), ABSENT, Bytes::None, 6), 5);
            Allgather_init allgather_init 9 CollectiveStart collective(Bytes::Count(1, 2), 0, Bytes::Count(4, 5), 6);
            Alltoall_init alltoall_init 9 CollectiveStart collective(Bytes::PerRank(1, 2), 0, Bytes::PerRank(4, 5), 6);
            Put put 8 OneSided access(Bytes::Count(1, 2), 3, 7);
            Get get 8 OneSided access(Bytes::Count(1, 2), 3, 7);
            Accumulate accumulate 9 OneSided access(Bytes::Count(1, 2), 3, 8);
            Get_accumulate get_accumulate 12 OneSided access(Bytes::Count(4, 5), 6, 11);
            Rput rput 9 OneSided access(Bytes::Count(1, 2), 3, 7);
            Rget rget 9 OneSided access(Bytes::Count(1, 2), 3, 7);
            Raccumulate raccumulate 10 OneSided access(Bytes::Count(1, 2), 3, 8);
            Rget_accumulate rget_accumulate 13 OneSided access(Bytes::Count(4, 5), 6, 11);
            Win_create win_create 6 Communicator handle(4, Handle::NewWindow(5));
            Win_allocate win_allocate 6 Communicator handle(3, Handle::NewWindow(5));
            Win_allocate_shared win_allocate_shared 6 Communicator handle(3, Handle::NewWindow(5));
        }
        plain {
            Start start 1 Message PLAIN;
            Startall startall 2 Message PLAIN;
            Psend_init psend_init 9 Message Arguments { peer: 4, tag: 5, communicator: 6, ..PLAIN };
            Precv_init precv_init 9 Message Arguments { peer: 4, tag: 5, communicator: 6, ..PLAIN };
            Pready pready 2 Message PLAIN;
            Pready_range pready_range 3 Message PLAIN;
            Pready_list pready_list 3 Message PLAIN;
            Parrived parrived 3 Completion PLAIN;
            Probe probe 4 Completion Arguments { peer: 0, tag: 1, communicator: 2, ..PLAIN };
            Iprobe iprobe 5 Completion Arguments { peer: 0, tag: 1, communicator: 2, ..PLAIN };
            Mprobe mprobe 5 Completion Arguments { peer: 0, tag: 1, communicator: 2, ..PLAIN };
            Improbe improbe 6 Completion Arguments { peer: 0, tag: 1, communicator: 2, ..PLAIN };
            Wait wait 2 Completion PLAIN;
            Waitany waitany 4 Completion PLAIN;
            Waitall waitall 3 Completion PLAIN;
            Waitsome waitsome 5 Completion PLAIN;
            Test test 3 Completion PLAIN;
            Testany testany 5 Completion PLAIN;
            Testall testall 4 Completion PLAIN;
            Testsome testsome 5 Completion PLAIN;
            Request_get_status request_get_status 3 Completion PLAIN;
            Buffer_detach buffer_detach 2 Completion PLAIN;
            Barrier barrier 1 Collective collective(Bytes::None, ABSENT, Bytes::None, 0);
            Ibarrier ibarrier 2 CollectiveStart collective(Bytes::None, ABSENT, Bytes::None, 0);
            Barrier_init barrier_init 3 CollectiveStart collective(Bytes::None, ABSENT, Bytes::None, 0);
            Comm_dup comm_dup 2 Communicator handle(0, Handle::NewCommunicator(1));
            Comm_dup_with_info comm_dup_with_info 3 Communicator handle(0, Handle::NewCommunicator(2));
            Comm_idup comm_idup 3 Communicator handle(0, Handle::None);
            Comm_create comm_create 3 Communicator handle(0, Handle::NewCommunicator(2));
            Comm_create_group comm_create_group 4 Communicator Arguments { tag: 2, handle: Handle::NewCommunicator(3), ..PLAIN };
            Comm_split comm_split 4 Communicator handle(0, Handle::NewCommunicator(3));
            Comm_split_type comm_split_type 5 Communicator handle(0, Handle::NewCommunicator(4));
            Cart_create cart_create 6 Communicator handle(0, Handle::NewCommunicator(5));
            Cart_sub cart_sub 3 Communicator handle(0, Handle::NewCommunicator(2));
            Graph_create graph_create 6 Communicator handle(0, Handle::NewCommunicator(5));
            Dist_graph_create dist_graph_create 9 Communicator handle(0, Handle::NewCommunicator(8));
            Dist_graph_create_adjacent dist_graph_create_adjacent 10 Communicator handle(0, Handle::NewCommunicator(9));
            Intercomm_create intercomm_create 6 Communicator handle(0, Handle::NewCommunicator(5));
            Intercomm_merge intercomm_merge 3 Communicator handle(0, Handle::NewCommunicator(2));
            Comm_free comm_free 1 Communicator handle(ABSENT, Handle::FreesCommunicator(0));
            Comm_disconnect comm_disconnect 1 Communicator handle(ABSENT, Handle::FreesCommunicator(0));
            Fetch_and_op fetch_and_op 7 OneSided access(Bytes::One(2), 3, 6);
            Compare_and_swap compare_and_swap 7 OneSided access(Bytes::One(3), 4, 6);
            Win_create_dynamic win_create_dynamic 3 Communicator handle(1, Handle::NewWindow(2));
            Win_free win_free 1 Communicator handle(ABSENT, Handle::FreesWindow(0));
            Win_fence win_fence 2 OneSided access(Bytes::None, ABSENT, 1);
            Win_start win_start 3 OneSided access(Bytes::None, ABSENT, 2);
            Win_complete win_complete 1 OneSided access(Bytes::None, ABSENT, 0);
            Win_post win_post 3 OneSided access(Bytes::None, ABSENT, 2);
            Win_wait win_wait 1 OneSided access(Bytes::None, ABSENT, 0);
            Win_test win_test 2 OneSided access(Bytes::None, ABSENT, 0);
            Win_lock win_lock 4 OneSided access(Bytes::None, 1, 3);
            Win_unlock win_unlock 2 OneSided access(Bytes::None, 0, 1);
            Win_lock_all win_lock_all 2 OneSided access(Bytes::None, ABSENT, 1);
            Win_unlock_all win_unlock_all 1 OneSided access(Bytes::None, ABSENT, 0);
            Win_flush win_flush 2 OneSided access(Bytes::None, 0, 1);
            Win_flush_all win_flush_all 1 OneSided access(Bytes::None, ABSENT, 0);
            Win_flush_local win_flush_local 2 OneSided access(Bytes::None, 0, 1);
            Win_flush_local_all win_flush_local_all 1 OneSided access(Bytes::None, ABSENT, 0);
            Win_sync win_sync 1 OneSided access(Bytes::None, ABSENT, 0);
        }
    } };
}

macro_rules! table {
    (counted { $($c:ident $f:ident $n:literal $k:ident $a:expr;)* } plain { $($pc:ident $pf:ident $pn:literal $pk:ident $pa:expr;)* }) => {
        /// All operations; the index is the number in traces.
        pub const OPERATIONS: &[Operation] = &[
            $(Operation { name: stringify!($c), kind: Kind::$k, arguments: $a },)*
            $(Operation { name: stringify!($pc), kind: Kind::$pk, arguments: $pa },)*
        ];

        /// Numbers of operations in traces.
        #[allow(non_camel_case_types, missing_docs, reason = "names of the MPI standard")]
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u16)]
        pub enum Number { $($c,)* $($pc,)* }
    };
}
mpi_operations!(table);
