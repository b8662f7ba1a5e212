//! Ends of links before they are opened: descriptors that may be passed to another process.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair, sockopt};
use rustix::pipe::PipeFlags;

use super::descriptor::Descriptors;
use super::{Link, Transport, Wait, ring};
use crate::process::keep_passed;

/// An end that is not yet open.
#[derive(Debug)]
pub struct End {
    transport: &'static str,
    /// One, or two where it reads from one and writes to the other.
    fds: Vec<OwnedFd>,
    is_first: bool,
}

impl End {
    /// The second end of a link, from descriptors that the starter passed to this process.
    /// Errors: [`io::ErrorKind::InvalidInput`] for an unknown transport, a wrong number of descriptors or one that is not open.
    pub fn passed(transport: &str, fds: &[RawFd]) -> io::Result<Self> {
        let wrong = |why: String| io::Error::new(io::ErrorKind::InvalidInput, why);
        let known =
            Transport::named(transport).ok_or_else(|| wrong(format!("no transport '{transport}'")))?;
        let wanted = if known.name == "pipe" { 2 } else { 1 };
        if fds.len() != wanted || (wanted == 2 && fds[0] == fds[1]) {
            return Err(wrong(format!("{} descriptors for {transport}, which takes {wanted}", fds.len())));
        }
        for fd in fds {
            if !keep_passed(*fd) {
                return Err(wrong(format!("descriptor {fd} is not open")));
            }
        }
        // SAFETY: open, as just seen, and passed to this process to own.
        let owned = |fd: &RawFd| unsafe { OwnedFd::from_raw_fd(*fd) };
        Ok(Self { transport: known.name, fds: fds.iter().map(owned).collect(), is_first: false })
    }

    /// An end of a connection of two machines.
    pub fn of_stream(transport: &Transport, stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(transport.name != "tcp-nagle")?;
        Ok(Self { transport: transport.name, fds: vec![stream.into()], is_first: false })
    }

    pub fn of_datagrams(transport: &Transport, socket: UdpSocket) -> Self {
        Self { transport: transport.name, fds: vec![socket.into()], is_first: false }
    }

    /// Chooses the congestion control of a TCP connection; other ends have none.
    /// Errors: the system's error, [`io::ErrorKind::NotFound`] for a name it does not know.
    pub fn set_congestion_control(&self, name: &str) -> io::Result<()> {
        let mut tcp = self.fds.iter().filter(|_| self.transport.starts_with("tcp"));
        tcp.try_for_each(|fd| Ok(sockopt::set_tcp_congestion(fd, name)?))
    }

    /// To be passed to another process.
    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.fds.iter().map(AsFd::as_fd)
    }

    /// Errors: [`io::ErrorKind::Unsupported`] where it cannot wait so, [`io::ErrorKind::InvalidInput`] where the descriptor is another thing;
    /// else the system's error.
    pub fn open(self, wait: Wait) -> io::Result<Box<dyn Link + Send>> {
        let mut fds = self.fds.into_iter();
        let from = fds.next().ok_or(io::ErrorKind::InvalidInput)?;
        Ok(match self.transport {
            "shm" => Box::new(ring::Ring::open(&from, self.is_first, wait)?),
            name => {
                let of_messages = [matches!(name, "udp" | "seqpacket"), name == "udp"];
                Box::new(Descriptors::new(from, fds.next(), wait, of_messages)?)
            }
        })
    }
}

fn ends(transport: &'static str, first: Vec<OwnedFd>, second: Vec<OwnedFd>) -> [End; 2] {
    [End { transport, fds: first, is_first: true }, End { transport, fds: second, is_first: false }]
}

pub(super) fn ring(name: &'static str) -> io::Result<[End; 2]> {
    let memory = ring::create()?;
    let same = memory.try_clone()?;
    Ok(ends(name, vec![memory], vec![same]))
}

pub(super) fn unix(name: &'static str) -> io::Result<[End; 2]> {
    let (a, b) = std::os::unix::net::UnixStream::pair()?;
    Ok(ends(name, vec![a.into()], vec![b.into()]))
}

pub(super) fn seqpacket(name: &'static str) -> io::Result<[End; 2]> {
    let (a, b) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)?;
    Ok(ends(name, vec![a], vec![b]))
}

pub(super) fn pipe(name: &'static str) -> io::Result<[End; 2]> {
    let (from_second, to_first) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    let (from_first, to_second) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    Ok(ends(name, vec![from_second, to_second], vec![from_first, to_first]))
}

const LOOPBACK: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

pub(super) fn tcp(name: &'static str) -> io::Result<[End; 2]> {
    let listener = TcpListener::bind(LOOPBACK)?;
    let near = TcpStream::connect(listener.local_addr()?)?;
    loop {
        let (far, from) = listener.accept()?;
        // Others of this machine can connect, too.
        if from == near.local_addr()? {
            for socket in [&near, &far] {
                socket.set_nodelay(name == "tcp")?;
            }
            return Ok(ends(name, vec![near.into()], vec![far.into()]));
        }
    }
}

pub(super) fn udp(name: &'static str) -> io::Result<[End; 2]> {
    let (a, b) = (UdpSocket::bind(LOOPBACK)?, UdpSocket::bind(LOOPBACK)?);
    a.connect(b.local_addr()?)?;
    b.connect(a.local_addr()?)?;
    Ok(ends(name, vec![a.into()], vec![b.into()]))
}
