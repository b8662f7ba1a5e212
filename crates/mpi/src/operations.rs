//! The operations: each is a script for the root and one for the others, and which stamps make its cost.
//!
//! ```text
//! before Begin   made ready, not timed
//! Begin          in a window: waits for the agreed moment; takes the first stamp
//! Each(steps)    as often as there are turns; in a window once
//! Close(step)    back to back only: waits until the others are through, timed, the same for any number of turns
//! End            takes the last stamp
//! ```
//!
//! A pair of ranks costs what the root's stamps say. A collective operation costs the last End less the last Begin of all ranks.

use machmeter_model::loggps::TRAIN;

pub(crate) use machmeter_loops::mpi::script::{Collective, Phase, Shmem, Step};

/// Which sizes an operation has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sized {
    Bytes,
    /// Of whole numbers of 8 bytes.
    Words,
    Only(u64),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Operation {
    pub(crate) name: &'static str,
    pub(crate) root: &'static [Phase],
    pub(crate) others: &'static [Phase],
    pub(crate) sized: Sized,
    pub(crate) is_collective: bool,
    /// Has a request for each turn.
    pub(crate) posts: bool,
    /// `Compute` takes as long as a turn of this one.
    pub(crate) beside: Option<&'static str>,
    /// In words: what it costs is the time of what.
    pub(crate) what: &'static str,
}

/// Requests posted at once, and their bytes together, at most.
pub(crate) const MOST_POSTED: u64 = 96;
pub(crate) const MOST_POSTED_BYTES: u64 = 48 << 20;

impl Operation {
    /// Turns of a batch at most.
    pub(crate) fn most_turns(&self, bytes: u64) -> u64 {
        if self.posts { (MOST_POSTED_BYTES / bytes.max(1)).clamp(3, MOST_POSTED) } else { 1 << 32 }
    }

    pub(crate) fn fits(&self, bytes: u64) -> bool {
        match self.sized {
            Sized::Bytes => true,
            Sized::Words => bytes > 0 && bytes.is_multiple_of(8),
            Sized::Only(only) => bytes == only,
        }
    }

    pub(crate) fn script(&self, rank: usize) -> &'static [Phase] {
        match rank {
            0 => self.root,
            1 => self.others,
            _ if self.is_collective => self.others,
            _ => &[],
        }
    }

    pub(crate) fn is_shmem(&self) -> bool {
        self.uses(|s| matches!(s, Step::Shmem(_)))
    }

    pub(crate) fn uses(&self, wanted: impl Fn(Step) -> bool) -> bool {
        let phases = self.root.iter().chain(self.others);
        phases.into_iter().any(|p| match p {
            Phase::Each(steps) => steps.iter().any(|s| wanted(*s)),
            Phase::Once(s) | Phase::Close(s) => wanted(*s),
            Phase::Begin | Phase::End => false,
        })
    }
}

use Collective as C;
use Phase::{Begin, Close, Each, End, Once};
use Step::{
    All, Ask, Compute, FetchAndOp, Get, Hear, Irecv, Isend, Poll, Put, Recv, Rsend, Send, Sendrecv, Sleep,
    Ssend, Start, Wait,
};

type Script = &'static [Phase];

const fn pair(name: &'static str, root: Script, others: Script, what: &'static str) -> Operation {
    let (sized, is_collective, posts, beside) = (Sized::Bytes, false, false, None);
    Operation { name, root, others, sized, is_collective, posts, beside, what }
}

const fn posting(name: &'static str, root: Script, others: Script, what: &'static str) -> Operation {
    Operation { posts: true, ..pair(name, root, others, what) }
}

const fn all(name: &'static str, script: Script, sized: Sized) -> Operation {
    Operation { is_collective: true, sized, ..pair(name, script, script, "until the last rank is through") }
}

const fn beside(name: &'static str, blocking: &'static str, script: Script, sized: Sized) -> Operation {
    let what = "what is left of it beside work as long as the blocking one";
    Operation { beside: Some(blocking), what, ..all(name, script, sized) }
}

const fn overlap(name: &'static str, root: Script, others: Script, what: &'static str) -> Operation {
    Operation { beside: Some("pingpong"), ..pair(name, root, others, what) }
}

const fn only(bytes: u64, operation: Operation) -> Operation {
    Operation { sized: Sized::Only(bytes), ..operation }
}

/// The whole of a collective operation in one line.
macro_rules! each {
    ($($step:expr),+) => { &[Begin, Each(&[$($step),+]), Close(All(C::Barrier)), End] };
}

/// All operations, in the order of the table: those of the seed (Howell 1996), then others. One line each.
#[rustfmt::skip]
pub(crate) const OPERATIONS: &[Operation] = &[
    pair("send", &[Begin, Each(&[Send]), Close(Hear), End], &[Each(&[Recv]), Close(Ask)], "a send to a waiting receive"),
    pair("ssend", &[Begin, Each(&[Ssend]), Close(Hear), End], &[Each(&[Recv]), Close(Ask)], "a synchronous send to a waiting receive"),
    posting("rsend", &[Once(Hear), Begin, Each(&[Rsend]), End], &[Each(&[Irecv]), Once(Ask), Each(&[Wait])], "a ready send to posted receives"),
    pair("recv", &[Begin, Each(&[Recv]), End], &[Begin, Each(&[Send])], "a receive and the wait for its message"),
    posting("recvmin", &[Once(Hear), Begin, Each(&[Recv]), End], &[Each(&[Isend]), Once(Ask), Each(&[Wait])], "a receive of a message sent before"),
    posting("irecv1", &[Begin, Each(&[Irecv]), End, Once(Ask), Each(&[Wait])], &[Once(Hear), Each(&[Send])], "posting a receive"),
    posting("irecv2", &[Each(&[Irecv]), Once(Ask), Once(Hear), Begin, Each(&[Wait]), End], &[Once(Hear), Each(&[Send]), Once(Ask)], "completing a posted receive of a message sent before"),
    overlap("irecvoverlap", &[Begin, Each(&[Irecv, Ask, Compute, Wait]), End], &[Each(&[Hear, Send])], "posting a receive, asking for the message, and what is left of it beside work"),
    pair("sendrecv", &[Begin, Each(&[Sendrecv]), End], &[Begin, Each(&[Sendrecv])], "a message each way at once"),
    pair("pingpong", &[Begin, Each(&[Send, Recv]), End], &[Each(&[Recv, Send])], "a message there and one back"),
    all("alltoall", each!(All(C::Alltoall)), Sized::Bytes),
    all("gather", each!(All(C::Gather)), Sized::Bytes),
    all("allgather", each!(All(C::Allgather)), Sized::Bytes),
    all("reduce", each!(All(C::Reduce)), Sized::Words),
    all("allreduce", each!(All(C::Allreduce)), Sized::Words),
    all("bcast", each!(All(C::Bcast)), Sized::Bytes),
    all("barrier", each!(All(C::Barrier)), Sized::Only(0)),
    all("scatter", each!(All(C::Scatter)), Sized::Bytes),
    all("reduce_scatter", each!(All(C::ReduceScatter)), Sized::Words),
    all("scan", each!(All(C::Scan)), Sized::Words),
    beside("ibcast", "bcast", each!(Start(C::Bcast), Compute, Wait), Sized::Bytes),
    beside("iallreduce", "allreduce", each!(Start(C::Allreduce), Compute, Wait), Sized::Words),
    beside("ialltoall", "alltoall", each!(Start(C::Alltoall), Compute, Wait), Sized::Bytes),
    pair("put", &[Begin, Each(&[Put]), End], &[], "a put and its flush"),
    pair("get", &[Begin, Each(&[Get]), End], &[], "a get and its flush"),
    only(8, pair("fetch_and_op", &[Begin, Each(&[FetchAndOp]), End], &[], "a fetch-and-add and its flush")),
    pair("shmem_put", &[Begin, Each(&[Step::Shmem(Shmem::Put)]), End], &[], "a put and its quiet"),
    pair("shmem_get", &[Begin, Each(&[Step::Shmem(Shmem::Get)]), End], &[], "a get"),
    only(8, pair("shmem_fadd", &[Begin, Each(&[Step::Shmem(Shmem::Add)]), End], &[], "a fetch-and-add")),
    only(0, pair("shmem_quiet", &[Begin, Each(&[Step::Shmem(Shmem::Quiet)]), End], &[], "a quiet with nothing on its way")),
    only(8, pair("shmem_lock", &[Begin, Each(&[Step::Shmem(Shmem::Lock)]), End], &[], "a free lock, set and cleared")),
    only(8, pair("shmem_test_lock", &[Begin, Each(&[Step::Shmem(Shmem::TestLock)]), End], &[], "a free lock, tested and cleared")),
    only(8, pair("shmem_wait_until", &[Begin, Each(&[Step::Shmem(Shmem::Signal), Step::Shmem(Shmem::Await)]), End], &[Each(&[Step::Shmem(Shmem::Await), Step::Shmem(Shmem::Signal)])], "a word put there, and the wait for one back")),
    all("shmem_barrier", &[Begin, Each(&[Step::Shmem(Shmem::Barrier)]), End], Sized::Only(0)),
    pair("train", &[Begin, Each(&THERE), End], &[Each(&RECEIVED)], "16 messages there and one back"),
    overlap("train_with_work", &[Begin, Each(&WORKED), End], &[Each(&RECEIVED)], "16 messages with work between them and one back, without the work"),
];

const MESSAGES: usize = TRAIN as usize;
const THERE: [Step; MESSAGES + 1] = train(Send, None, Recv);
const RECEIVED: [Step; MESSAGES + 1] = train(Recv, None, Send);
const WORKED: [Step; 2 * MESSAGES] = train(Send, Some(Compute), Recv);

/// As many of one step as a train has messages, with another between them, and a last one.
const fn train<const N: usize>(each: Step, between: Option<Step>, last: Step) -> [Step; N] {
    let mut steps = [each; N];
    let mut at = 1;
    while at < N - 1 {
        if let (Some(step), 1) = (between, at % 2) {
            steps[at] = step;
        }
        at += 1;
    }
    steps[N - 1] = last;
    steps
}

/// What `LogGPS` needs beside these: trains of messages and one back, without and with work between them.
pub(crate) const TRAINS: [&str; 2] = ["train", "train_with_work"];
pub(crate) const LOGGPS: [&str; 6] = ["pingpong", TRAINS[0], TRAINS[1], "irecv1", "irecv2", "recvmin"];

/// What the search for thresholds plays: a send while the receiver sleeps, and while it polls for another message.
pub(crate) const SLEEPING: Operation =
    pair("inline", SENT, &[Begin, Each(&[Sleep, Recv])], "a send to a sleeping receiver");
pub(crate) const POLLING: Operation =
    pair("eager", SENT, &[Begin, Each(&[Poll, Recv])], "a send to a polling receiver");
const SENT: Script = &[Begin, Each(&[Send]), End];

/// What pairs of ranks play: a message there, whose arrival is stamped, and one back; and a row of messages that is answered.
pub(crate) const THERE_AND_BACK: Operation = pair(
    "there_and_back",
    &[Begin, Once(Send), Once(Recv), End],
    &[Once(Recv), End, Once(Send)],
    "a message there and one back",
);
pub(crate) const STREAM: Operation =
    pair("stream", &[Begin, Each(&STREAMED), End], &[Each(&ANSWERED)], "16 messages, and an answer");
const STREAMED: [Step; MESSAGES + 1] = train(Send, None, Hear);
const ANSWERED: [Step; MESSAGES + 1] = train(Recv, None, Ask);

/// What the self-test plays: a rank comes to an allreduce later than was agreed, and says when.
pub(crate) const HELD_UP: Operation = Operation {
    root: &[Begin, Once(All(C::Allreduce)), End],
    others: &[Begin, Once(Poll), Begin, Once(All(C::Allreduce)), End],
    is_collective: true,
    ..pair("held_up", &[], &[], "an allreduce to which a rank comes late")
};

/// What windows and their stamps take by themselves.
pub(crate) const NOTHING: Operation = all("nothing", &[Begin, End], Sized::Only(0));

/// Those that are no rows of the table.
const OTHERS: [&Operation; 6] = [&SLEEPING, &POLLING, &THERE_AND_BACK, &STREAM, &HELD_UP, &NOTHING];

pub(crate) fn numbered(number: usize) -> Option<&'static Operation> {
    OPERATIONS.iter().chain(OTHERS).nth(number)
}

pub(crate) fn number_of(name: &str) -> Option<usize> {
    OPERATIONS.iter().chain(OTHERS).position(|o| o.name == name)
}

pub(crate) fn named(name: &str) -> Option<&'static Operation> {
    number_of(name).and_then(numbered)
}
