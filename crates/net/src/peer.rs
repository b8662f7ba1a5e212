//! A far end on another machine. Both sides show that they have the same token, which never crosses, on each connection.
//!
//! ```text
//! machmeter net --peer                           machmeter serve
//! greeting   <--------------------------------   version, challenge
//! request    -------------------------------->   challenge, proof, links
//! answer     <--------------------------------   proof, ports of datagrams
//! links      ===============================>   a proof each, then messages only
//! ```

use std::fs;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::Duration;

use hmac::{Hmac, KeyInit, Mac};
use machmeter_engine::ProbeError;
use machmeter_engine::role::{MessageReader, MessageWriter, Role, count, printable};
use machmeter_sys::call::random_by_call;
use machmeter_sys::link::{End, Transport, Wait};
use machmeter_sys::thread::monotonic_ns;
use serde::{Deserialize, Serialize};
use sha2::Sha256;

use crate::near::{Near, OpenLink};
use crate::orders::{Answer, Order};

/// Version of the messages of both sides; changes with each of them.
pub(crate) const PROTOCOL: u32 = 1;
/// The port where none is named.
pub const PORT: u16 = 7117;
/// Longest line of either side before a session, and of requests at any time, bytes.
pub(crate) const LINE_BYTES: usize = 4 << 10;
/// Longest answer of a session, bytes: 10,000 timed receive calls take some 200 kB.
const ANSWER_BYTES: usize = 1 << 20;
/// What each step of a greeting may take.
pub(crate) const STEP: Duration = Duration::from_secs(2);
/// Shortest token, characters, and longest file of one, bytes.
const TOKEN_CHARS: usize = 16;
const TOKEN_FILE_BYTES: u64 = 4 << 10;

pub(crate) const CHALLENGE: usize = 32;
pub(crate) type Proof = [u8; 32];

/// What both sides know.
pub struct Token(Vec<u8>);

impl Token {
    /// A new one of 128 random bits, and its text.
    pub fn fresh() -> io::Result<(Self, String)> {
        let mut random = [0; 16];
        random_by_call(&mut random)?;
        let text: String = random.iter().map(|b| format!("{b:02x}")).collect();
        Ok((Self(text.clone().into_bytes()), text))
    }

    /// From a file that nobody else can read.
    pub fn read(path: &Path) -> Result<Self, String> {
        let name = path.display();
        let wrong = |e: io::Error| format!("token file {name}: {e}");
        let file = fs::File::open(path).map_err(wrong)?;
        let mode = file.metadata().map_err(wrong)?.permissions().mode();
        if mode & 0o077 != 0 {
            return Err(format!("token file {name} is readable by other users: chmod 600 {name}"));
        }
        let mut text = String::new();
        file.take(TOKEN_FILE_BYTES).read_to_string(&mut text).map_err(wrong)?;
        let text = text.trim();
        if text.len() < TOKEN_CHARS {
            return Err(format!("token file {name}: a token has {TOKEN_CHARS} characters or more"));
        }
        Ok(Self(text.as_bytes().to_vec()))
    }

    /// RFC 2104 with SHA-256 over what only the two sides of this session know of each other.
    fn mac(&self, of: &str, session: &Session) -> Option<Hmac<Sha256>> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).ok()?;
        mac.update(of.as_bytes());
        mac.update(&session.server);
        mac.update(&session.client);
        Some(mac)
    }

    pub(crate) fn proof(&self, of: &str, session: &Session) -> Proof {
        self.mac(of, session).map_or([0; 32], |mac| mac.finalize().into_bytes().into())
    }

    /// In constant time.
    pub(crate) fn verifies(&self, of: &str, session: &Session, proof: &Proof) -> bool {
        self.mac(of, session).is_some_and(|mac| mac.verify_slice(proof).is_ok())
    }
}

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Session {
    pub(crate) server: [u8; CHALLENGE],
    pub(crate) client: [u8; CHALLENGE],
}

/// What the proof of a connection or of an answer to it is of.
pub(crate) fn of_link(number: usize, side: &str) -> String {
    format!("link {number} of {side}")
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Greeting {
    pub(crate) machmeter_net: u32,
    pub(crate) version: String,
    pub(crate) challenge: [u8; CHALLENGE],
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Request {
    pub(crate) machmeter_net: u32,
    pub(crate) challenge: [u8; CHALLENGE],
    pub(crate) proof: Proof,
    /// Transports by name, and whether their ends poll.
    pub(crate) links: Vec<(String, bool)>,
    pub(crate) congestion: Option<String>,
}

/// What a stranger may send to either side, up to the first that is none of it.
pub fn frames(bytes: &[u8]) -> usize {
    count::<Greeting>(bytes, LINE_BYTES)
        + count::<Request>(bytes, LINE_BYTES)
        + count::<Admission>(bytes, LINE_BYTES)
        + count::<Order>(bytes, LINE_BYTES)
        + count::<Answer>(bytes, ANSWER_BYTES)
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Admission {
    /// With the ports of links that lose messages, in order.
    Granted {
        proof: Proof,
        ports: Vec<u16>,
    },
    Refused(String),
}

/// A far end at `address` with links of these kinds.
/// Errors: who is not there, what it refuses.
pub(crate) fn connect(
    address: &str,
    token: &Token,
    kinds: &[(&'static Transport, Wait)],
    congestion: Option<&str>,
) -> Result<Near, ProbeError> {
    let cannot = |why: String| ProbeError::Cannot(format!("--peer {address}: {why}"));
    let failed = |e: io::Error| cannot(e.to_string());
    let (stream, at) = reach(address).map_err(cannot)?;
    let (replies, requests) = (stream.try_clone().map_err(failed)?, stream);
    let mut greetings: MessageReader<Greeting, _> = MessageReader::new(&replies, LINE_BYTES);
    let within = || Some(monotonic_ns() + STEP.as_nanos() as u64);
    let greeting = greetings
        .next(within())
        .map_err(|e| cannot(format!("the program there is not `machmeter serve`: it {e}")))?;
    if greeting.machmeter_net != PROTOCOL {
        return Err(cannot(format!(
            "version {} there uses protocol {}, not {PROTOCOL}: use the same version of machmeter",
            printable(&greeting.version),
            greeting.machmeter_net
        )));
    }
    let mut session = Session { server: greeting.challenge, ..Session::default() };
    random_by_call(&mut session.client).map_err(failed)?;
    let links = kinds.iter().map(|(t, wait)| (t.name.to_owned(), *wait == Wait::Polling)).collect();
    let (challenge, proof) = (session.client, token.proof("client", &session));
    let congestion_asked = congestion.map(str::to_owned);
    let request = Request { machmeter_net: PROTOCOL, challenge, proof, links, congestion: congestion_asked };
    MessageWriter::new(&requests).send(&request).map_err(failed)?;
    let mut admissions: MessageReader<Admission, _> = MessageReader::new(&replies, LINE_BYTES);
    let mut ports = match admissions.next(within()) {
        Ok(Admission::Granted { proof, ports }) if token.verifies("server", &session, &proof) => {
            ports.into_iter()
        }
        Ok(Admission::Granted { .. }) => {
            return Err(cannot("it does not have the token: this may be the wrong machine".to_owned()));
        }
        Ok(Admission::Refused(why)) => {
            return Err(cannot(format!("it refuses: {}", printable(&why))));
        }
        Err(e) => return Err(cannot(format!("it {e}"))),
    };
    let mut open = Vec::new();
    for (i, (transport, wait)) in kinds.iter().enumerate() {
        let proof = token.proof(&of_link(i, "client"), &session);
        let failed = |e: io::Error| cannot(format!("{}: {e}", transport.name));
        let end = if transport.loses {
            let there = SocketAddr::new(at.ip(), ports.next().unwrap_or(0));
            let of_server = |answer: &Proof| token.verifies(&of_link(i, "server"), &session, answer);
            End::of_datagrams(transport, knock(there, &proof, of_server).map_err(failed)?)
        } else {
            let mut stream = TcpStream::connect_timeout(&at, STEP).map_err(failed)?;
            stream.write_all(&proof).map_err(failed)?;
            End::of_stream(transport, stream).map_err(failed)?
        };
        if let Some(name) = congestion {
            end.set_congestion_control(name).map_err(failed)?;
        }
        open.push(OpenLink::new(transport, *wait, end.open(*wait).map_err(failed)?));
    }
    let role: Role<Order, Answer, (), _, _> = Role::over(requests, replies, ANSWER_BYTES, ());
    Ok(Near::over(Box::new(role), open))
}

/// The first of the addresses of a name that answers.
fn reach(address: &str) -> Result<(TcpStream, SocketAddr), String> {
    let resolved = address.to_socket_addrs().or_else(|_| (address, PORT).to_socket_addrs());
    let resolved = resolved.map_err(|e| format!("is not HOST:PORT: {e}"))?;
    let mut why = "the name has no address".to_owned();
    for at in resolved {
        match TcpStream::connect_timeout(&at, STEP) {
            Ok(stream) => {
                let ready = stream.set_nodelay(true).and_then(|()| stream.set_write_timeout(Some(STEP)));
                return ready.map(|()| (stream, at)).map_err(|e| e.to_string());
            }
            Err(e) => why = format!("{e}; start `machmeter serve` there"),
        }
    }
    Err(why)
}

/// A socket whose other end has shown the token; datagrams may get lost, so the proof is sent until an answer comes.
fn knock(there: SocketAddr, proof: &Proof, is_answer: impl Fn(&Proof) -> bool) -> io::Result<UdpSocket> {
    let any: SocketAddr = if there.is_ipv4() { ([0; 4], 0).into() } else { ([0_u16; 8], 0).into() };
    let socket = UdpSocket::bind(any)?;
    socket.connect(there)?;
    socket.set_read_timeout(Some(STEP / 30))?;
    for _ in 0..30 {
        socket.send(proof)?;
        let mut answer = Proof::default();
        match socket.recv(&mut answer) {
            Ok(n) if n == answer.len() && is_answer(&answer) => {
                socket.set_read_timeout(None)?;
                return Ok(socket);
            }
            Err(e) if e.kind() != io::ErrorKind::WouldBlock => return Err(e),
            _ => {}
        }
    }
    Err(io::Error::new(io::ErrorKind::TimedOut, "datagrams do not arrive: a firewall may block UDP"))
}
