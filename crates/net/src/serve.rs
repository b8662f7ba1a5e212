//! The far end for another machine: one client at a time, of whom nothing is believed and for whom nothing is executed.

use std::io::{self, Read};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};

use machmeter_engine::role::{MessageReader, MessageWriter, RoleError};
use machmeter_sys::call::random_by_call;
use machmeter_sys::link::{End, Link, TRANSPORTS, Transport, Wait};
use machmeter_sys::thread::{monotonic_ns, nanosleep_until};

use crate::far::attend;
use crate::orders::{Answer, Order};
use crate::peer::{Admission, Greeting, LINE_BYTES, PROTOCOL, Proof, Request, STEP, Session, Token, of_link};

/// From one look for connections, orders and signals to the next, ns.
const LOOK_EVERY_NS: u64 = 20_000_000;
/// A client that orders nothing for so long is gone, ns.
const SILENT_NS: u64 = 60_000_000_000;
const STEP_NS: u64 = STEP.as_nanos() as u64;

pub struct Server {
    listener: TcpListener,
    token: Token,
    version: &'static str,
}

/// How a client was served.
#[derive(Debug)]
pub enum Served {
    /// One that knows the token had its session; what ended it before its time, in one line.
    Session(SocketAddr, Option<String>),
    /// One was turned away, or left before its links were there; why, in one line.
    Refused(SocketAddr, String),
}

pub type Stop<'a> = &'a dyn Fn() -> bool;

impl Server {
    pub fn bind(address: SocketAddr, token: Token, version: &'static str) -> io::Result<Self> {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(Self { listener, token, version })
    }

    pub fn address(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// The next connection; `None` where it was stopped before one came.
    pub fn next(&self, stop: Stop<'_>) -> io::Result<Option<Served>> {
        let Some((stream, from)) = self.accept(stop)? else { return Ok(None) };
        Ok(Some(match self.session(&stream, stop) {
            Ok(why) => Served::Session(from, why),
            Err(why) => Served::Refused(from, why),
        }))
    }

    fn accept(&self, stop: Stop<'_>) -> io::Result<Option<(TcpStream, SocketAddr)>> {
        while !stop() {
            match self.listener.accept() {
                Ok((stream, from)) => {
                    stream.set_nonblocking(false)?;
                    stream.set_read_timeout(Some(STEP))?;
                    stream.set_write_timeout(Some(STEP))?;
                    stream.set_nodelay(true)?;
                    return Ok(Some((stream, from)));
                }
                Err(e)
                    if matches!(e.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::ConnectionAborted) =>
                {
                    nanosleep_until(monotonic_ns() + LOOK_EVERY_NS);
                }
                Err(e) => return Err(e),
            }
        }
        Ok(None)
    }

    fn session(&self, stream: &TcpStream, stop: Stop<'_>) -> Result<Option<String>, String> {
        let failed = |e: io::Error| e.to_string();
        let mut session = Session::default();
        random_by_call(&mut session.server).map_err(failed)?;
        let version = self.version.to_owned();
        let greeting = Greeting { machmeter_net: PROTOCOL, version, challenge: session.server };
        MessageWriter::new(stream).send(&greeting).map_err(failed)?;
        let mut requests: MessageReader<Request, _> = MessageReader::new(stream, LINE_BYTES);
        let request = requests.next(Some(monotonic_ns() + STEP_NS)).map_err(|e| format!("it {e}"))?;
        let mut admissions = MessageWriter::new(stream);
        session.client = request.challenge;
        let kinds = match self.admit(&request, &session) {
            Ok(kinds) => kinds,
            Err(why) => {
                admissions.send(&Admission::Refused(why.clone())).map_err(failed)?;
                return Err(why);
            }
        };
        let here = stream.local_addr().map_err(failed)?.ip();
        let sockets = kinds.iter().filter(|k| k.0.loses).map(|_| UdpSocket::bind((here, 0)));
        let sockets: Vec<UdpSocket> = sockets.collect::<Result<_, _>>().map_err(failed)?;
        let ports = sockets.iter().map(|s| s.local_addr().map(|a| a.port())).collect::<Result<_, _>>();
        let proof = self.token.proof("server", &session);
        let granted = Admission::Granted { proof, ports: ports.map_err(failed)? };
        admissions.send(&granted).map_err(failed)?;
        let mut sockets = sockets.into_iter();
        let mut links: Vec<Box<dyn Link>> = Vec::new();
        for (i, (transport, wait)) in kinds.iter().enumerate() {
            let socket = if transport.loses { sockets.next() } else { None };
            let end = match socket {
                Some(socket) => End::of_datagrams(transport, self.hear(socket, i, &session)?),
                None => End::of_stream(transport, self.stream_of(i, &session, stop)?).map_err(failed)?,
            };
            if let Some(name) = &request.congestion {
                end.set_congestion_control(name).map_err(failed)?;
            }
            links.push(end.open(*wait).map_err(failed)?);
        }
        let mut orders: MessageReader<Order, _> = MessageReader::new(stream, LINE_BYTES);
        let next = || {
            let until_ns = monotonic_ns() + SILENT_NS;
            loop {
                match orders.next(Some(monotonic_ns() + LOOK_EVERY_NS)) {
                    Err(RoleError::Late) if stop() => return Err(RoleError::Ended(None)),
                    Err(RoleError::Late) if monotonic_ns() < until_ns => {}
                    other => return other,
                }
            }
        };
        let mut answers: MessageWriter<Answer, _> = MessageWriter::new(stream);
        Ok(match attend(next, &mut answers, &mut links) {
            RoleError::Ended(_) => None,
            e => Some(format!("it {e}")),
        })
    }

    /// The kinds of the links that a client asks for, if it may have them.
    fn admit(&self, request: &Request, session: &Session) -> Result<Vec<(&'static Transport, Wait)>, String> {
        if request.machmeter_net != PROTOCOL {
            return Err(format!(
                "version {} here uses protocol {PROTOCOL}, not {}: use the same version of machmeter",
                self.version, request.machmeter_net
            ));
        }
        if !self.token.verifies("client", session, &request.proof) {
            return Err("the tokens differ".to_owned());
        }
        let kind = |(name, polls): &(String, bool)| {
            let transport = Transport::named(name).filter(|t| t.crosses_machines)?;
            Some((transport, if *polls { Wait::Polling } else { Wait::Sleeping }))
        };
        let kinds: Option<Vec<_>> = request.links.iter().map(kind).collect();
        kinds
            .filter(|k| (1..=2 * TRANSPORTS.len()).contains(&k.len()))
            .ok_or_else(|| "the requested links do not exist between machines".to_owned())
    }

    /// The connection that shows itself as this link of the session; strangers are passed over.
    fn stream_of(&self, number: usize, session: &Session, stop: Stop<'_>) -> Result<TcpStream, String> {
        let until_ns = monotonic_ns() + 2 * STEP_NS;
        let over = || stop() || monotonic_ns() > until_ns;
        while let Some((mut stream, _)) = self.accept(&over).map_err(|e| e.to_string())? {
            let mut proof = Proof::default();
            let is_it = stream.read_exact(&mut proof).is_ok()
                && self.token.verifies(&of_link(number, "client"), session, &proof);
            if is_it {
                return Ok(stream);
            }
        }
        Err("it did not open its links".to_owned())
    }

    /// The same of datagrams.
    fn hear(&self, socket: UdpSocket, number: usize, session: &Session) -> Result<UdpSocket, String> {
        let failed = |e: io::Error| e.to_string();
        socket.set_read_timeout(Some(STEP)).map_err(failed)?;
        let until_ns = monotonic_ns() + 2 * STEP_NS;
        while monotonic_ns() < until_ns {
            let mut proof = Proof::default();
            let Ok((n, from)) = socket.recv_from(&mut proof) else { continue };
            if n == proof.len() && self.token.verifies(&of_link(number, "client"), session, &proof) {
                socket.connect(from).map_err(failed)?;
                socket.send(&self.token.proof(&of_link(number, "server"), session)).map_err(failed)?;
                return Ok(socket);
            }
        }
        Err("its datagrams do not arrive".to_owned())
    }
}
