//! The far end: a role of this program on another CPU that takes part in patterns.

use std::ffi::OsString;
use std::io::{self, ErrorKind, Write};
use std::os::unix::net::UnixStream;

use machmeter_engine::Worker;
use machmeter_engine::cpu_work::spin;
use machmeter_engine::role::{self, MessageReader, MessageWriter, RoleError};
use machmeter_loops::net::take_turns;
use machmeter_sys::affinity;
use machmeter_sys::buffer::Buffer;
use machmeter_sys::link::{End, Link, Wait};
use machmeter_sys::thread;

use crate::orders::{Answer, Ended, Order, Turns};
use crate::peer::LINE_BYTES;

pub(crate) const WORKER: Worker = Worker { name: "net-far", run };

/// Arguments: a CPU (`-` for any), then a link each: `tcp:polling:5`, a pipe's with two descriptors.
fn run(arguments: &[OsString]) -> u8 {
    let words: Option<Vec<&str>> = arguments.iter().map(|a| a.to_str()).collect();
    let Some((cpu, links)) = words.as_deref().and_then(|w| w.split_first()) else { return 2 };
    if let Ok(cpu) = cpu.parse()
        && affinity::pin(cpu).is_err()
    {
        return 1;
    }
    let Ok(mut links) = links.iter().map(|l| opened(l)).collect::<Result<Vec<_>, String>>() else { return 1 };
    let Ok((mut requests, mut replies)) = role::starter() else { return 1 };
    let end = attend(|| requests.next(None), &mut replies, &mut links);
    u8::from(!matches!(end, RoleError::Ended(_)))
}

fn opened(words: &str) -> Result<Box<dyn Link>, String> {
    let mut parts = words.split(':');
    let (Some(transport), Some(wait), Some(fds)) = (parts.next(), parts.next(), parts.next()) else {
        return Err(format!("'{words}' is not a link"));
    };
    let fds: Result<Vec<i32>, _> = fds.split(',').map(str::parse).collect();
    let wait = if wait == "sleeping" { Wait::Sleeping } else { Wait::Polling };
    let end = End::passed(transport, &fds.map_err(|e| e.to_string())?);
    Ok(end.and_then(|e| e.open(wait)).map_err(|e| e.to_string())?)
}

/// The same over a stream beside the links: the far end of tests, and of the self-test.
pub(crate) fn attend_over(stream: UnixStream, mut links: Vec<Box<dyn Link>>) -> io::Result<RoleError> {
    let mut requests: MessageReader<Order, _> = MessageReader::new(stream.try_clone()?, LINE_BYTES);
    Ok(attend(|| requests.next(None), &mut MessageWriter::new(stream), &mut links))
}

/// Answers orders until there are no more. Returns what ended them.
pub(crate) fn attend<W: Write>(
    mut next: impl FnMut() -> Result<Order, RoleError>,
    replies: &mut MessageWriter<Answer, W>,
    links: &mut [Box<dyn Link>],
) -> RoleError {
    let mut buffer = Buffer::empty(1);
    loop {
        let turns = match next() {
            Ok(Order::Turns(turns)) => turns,
            Err(e) => return e,
        };
        let link = links.get_mut(turns.link);
        let objection = turns.objection().or_else(|| link.is_none().then(|| "no such link".to_owned()));
        let no_memory =
            || Some(format!("messages of {} B: {}", turns.bytes, buffer.resize(turns.bytes as usize).err()?));
        let objection = objection.or_else(no_memory);
        let done = match (link, objection) {
            (Some(link), None) => {
                buffer.move_on();
                if let Err(e) = replies.send(&Answer::Ready) {
                    return e.into();
                }
                Answer::Ended(take_part(&mut **link, &turns, &mut buffer))
            }
            (_, objection) => Answer::Cannot(objection.unwrap_or_default()),
        };
        if let Err(e) = replies.send(&done) {
            return e.into();
        }
    }
}

/// Takes part in turns until the message that ends them, or until nothing came for the limit of the link.
pub(crate) fn take_part(link: &mut dyn Link, turns: &Turns, message: &mut [u8]) -> Ended {
    let before = thread::Usage::of_current_thread();
    let mut seen = Ended::default();
    if let Err(e) = take_turns(link, turns, message, spin, &mut seen) {
        let gone = matches!(e.kind(), ErrorKind::UnexpectedEof | ErrorKind::BrokenPipe);
        seen.why = Some(if gone { "the link was closed".to_owned() } else { e.to_string() });
    }
    let after = thread::Usage::of_current_thread();
    seen.preempted = after.involuntary_switches.saturating_sub(before.involuntary_switches);
    seen
}
