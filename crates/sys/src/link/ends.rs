//! Ends of links before they are opened: descriptors that may be passed to another process.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

use rustix::pipe::PipeFlags;

use super::descriptor::Descriptors;
use super::{Link, Transport, Wait, ring};

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
    ///
    /// # Errors
    /// [`io::ErrorKind::InvalidInput`] for an unknown transport, a wrong number of descriptors or one that is not open.
    pub fn passed(transport: &str, fds: &[RawFd]) -> io::Result<Self> {
        let wrong = |why: String| io::Error::new(io::ErrorKind::InvalidInput, why);
        let known =
            Transport::named(transport).ok_or_else(|| wrong(format!("no transport '{transport}'")))?;
        let wanted = if known.name == "pipe" { 2 } else { 1 };
        if fds.len() != wanted || (wanted == 2 && fds[0] == fds[1]) {
            return Err(wrong(format!("{} descriptors for {transport}, which takes {wanted}", fds.len())));
        }
        for fd in fds {
            // SAFETY: integer arguments; nothing of ours is touched, and a closed descriptor is an error.
            if *fd < 3 || unsafe { libc::fcntl(*fd, libc::F_SETFD, libc::FD_CLOEXEC) } != 0 {
                return Err(wrong(format!("descriptor {fd} is not open")));
            }
        }
        // SAFETY: open, as just seen, and passed to this process to own.
        let owned = |fd: &RawFd| unsafe { OwnedFd::from_raw_fd(*fd) };
        Ok(Self { transport: known.name, fds: fds.iter().map(owned).collect(), is_first: false })
    }

    /// An end of a connection of two machines.
    ///
    /// # Errors
    /// The system's error.
    pub fn of_stream(transport: &Transport, stream: TcpStream) -> io::Result<Self> {
        stream.set_nodelay(transport.name != "tcp-nagle")?;
        Ok(Self { transport: transport.name, fds: vec![stream.into()], is_first: false })
    }

    /// An end of a connected UDP socket.
    pub fn of_datagrams(transport: &Transport, socket: UdpSocket) -> Self {
        Self { transport: transport.name, fds: vec![socket.into()], is_first: false }
    }

    /// Chooses the congestion control of a TCP connection; other ends have none.
    ///
    /// # Errors
    /// The system's error, [`io::ErrorKind::NotFound`] for a name it does not know.
    pub fn set_congestion_control(&self, name: &str) -> io::Result<()> {
        if !self.transport.starts_with("tcp") {
            return Ok(());
        }
        for fd in &self.fds {
            // SAFETY: a live descriptor, and as many bytes as the length says.
            let done = unsafe {
                libc::setsockopt(
                    fd.as_raw_fd(),
                    libc::IPPROTO_TCP,
                    libc::TCP_CONGESTION,
                    name.as_ptr().cast(),
                    name.len() as libc::socklen_t,
                )
            };
            if done != 0 {
                return Err(io::Error::last_os_error());
            }
        }
        Ok(())
    }

    /// To be passed to another process.
    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.fds.iter().map(AsFd::as_fd)
    }

    /// Opens it.
    ///
    /// # Errors
    /// [`io::ErrorKind::Unsupported`] where it cannot wait so, [`io::ErrorKind::InvalidInput`] where the descriptor is another thing;
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

pub(super) fn ring() -> io::Result<[End; 2]> {
    let memory = ring::create()?;
    let same = memory.try_clone()?;
    Ok(ends("shm", vec![memory], vec![same]))
}

pub(super) fn unix() -> io::Result<[End; 2]> {
    let (a, b) = std::os::unix::net::UnixStream::pair()?;
    Ok(ends("unix", vec![a.into()], vec![b.into()]))
}

pub(super) fn seqpacket() -> io::Result<[End; 2]> {
    let mut fds = [0_i32; 2];
    let kind = libc::SOCK_SEQPACKET | libc::SOCK_CLOEXEC;
    // SAFETY: room for the two descriptors that the call writes.
    if unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, fds.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: two new descriptors that nobody else has.
    let [a, b] = fds.map(|fd| unsafe { OwnedFd::from_raw_fd(fd) });
    Ok(ends("seqpacket", vec![a], vec![b]))
}

pub(super) fn pipe() -> io::Result<[End; 2]> {
    let (from_second, to_first) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    let (from_first, to_second) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
    Ok(ends("pipe", vec![from_second, to_second], vec![from_first, to_first]))
}

const LOOPBACK: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

pub(super) fn tcp() -> io::Result<[End; 2]> {
    tcp_over_loopback("tcp")
}

pub(super) fn tcp_nagle() -> io::Result<[End; 2]> {
    tcp_over_loopback("tcp-nagle")
}

fn tcp_over_loopback(name: &'static str) -> io::Result<[End; 2]> {
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

pub(super) fn udp() -> io::Result<[End; 2]> {
    let (a, b) = (UdpSocket::bind(LOOPBACK)?, UdpSocket::bind(LOOPBACK)?);
    a.connect(b.local_addr()?)?;
    b.connect(a.local_addr()?)?;
    Ok(ends("udp", vec![a.into()], vec![b.into()]))
}
