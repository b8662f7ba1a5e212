//! Sessions of machines that know the token, of those that do not, and of those that say anything else.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};

use machmeter_engine::role::{MessageReader, MessageWriter};
use machmeter_sys::link::{Transport, Wait};
use machmeter_sys::thread::monotonic_ns;

use crate::measure::ONE;
use crate::near::Near;
use crate::orders::Turns;
use crate::peer::{Admission, Greeting, PROTOCOL, Request, Session, Token, connect};
use crate::serve::{Served, Server};

const ANY: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

fn token(text: &str) -> Token {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("token");
    fs::write(&path, format!("{text}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    Token::read(&path).unwrap()
}

fn right() -> Token {
    token("the right token of the two")
}

/// What the server says of each connection that `clients` make.
fn served(clients: impl FnOnce(SocketAddr)) -> Vec<Served> {
    let over = AtomicBool::new(false);
    let server = Server::bind(ANY, right(), "1.0").unwrap();
    let address = server.address().unwrap();
    std::thread::scope(|s| {
        let serving = s.spawn(|| {
            let stop = || over.load(Ordering::Relaxed);
            let next = || server.next(&stop).unwrap();
            std::iter::from_fn(next).collect()
        });
        // A failed assertion ends the server, too.
        let done = catch_unwind(AssertUnwindSafe(|| clients(address)));
        over.store(true, Ordering::Relaxed);
        let seen = serving.join().unwrap();
        done.map_or_else(|panic| resume_unwind(panic), |()| seen)
    })
}

fn near(address: SocketAddr, token: &Token, transports: &[&str]) -> Result<Near, String> {
    let kinds: Vec<_> =
        transports.iter().map(|name| (Transport::named(name).unwrap(), Wait::Sleeping)).collect();
    connect(&address.to_string(), token, &kinds, Some("reno")).map_err(|e| e.to_string())
}

#[test]
fn who_knows_the_token_is_served_over_links_of_all_kinds() {
    let seen = served(|address| {
        let mut near = near(address, &right(), &["tcp", "udp", "tcp-nagle"]).unwrap();
        assert!(near.links[0].link.describe().contains("reno"));
        for link in 0..3 {
            near.begin(Turns { link, there: 2, bytes: 100, ..ONE }).unwrap();
            assert!((0..5).any(|_| near.turn(0)));
            near.end().unwrap();
        }
        // Trains the other way: the near end waits for them and times its calls.
        near.begin(Turns { back: 5, ..ONE }).unwrap();
        assert!(near.waited_turn(1_000_000).is_some_and(|ns| ns > 10.0));
        near.end().unwrap();
        let why = near.begin(Turns { there: 5_000, ..ONE }).unwrap_err();
        assert!(why.contains("refuses: 5000 and 1 messages a turn"), "{why}");
    });
    assert!(matches!(seen[..], [Served::Session(_, None)]), "{seen:?}");
}

#[test]
fn a_reader_that_stops_ends_its_link_in_time() {
    let seen = served(|address| {
        let mut near = near(address, &right(), &["tcp"]).unwrap();
        // More than both buffers hold, and nobody receives it.
        near.begin(Turns { back: 64, bytes: 1 << 20, ..ONE }).unwrap();
        assert!(near.send_there(0));
        let begin_ns = monotonic_ns();
        let why = near.end().unwrap_err();
        assert!(why.starts_with("the far end: ") && monotonic_ns() - begin_ns < 10_000_000_000, "{why}");
        let again = near.begin(ONE).unwrap_err();
        assert_eq!(again, why);
    });
    assert!(matches!(seen[..], [Served::Session(_, None)]), "{seen:?}");
}

#[test]
fn strangers_are_turned_away_in_bounded_time_and_the_next_is_served() {
    let say = |address, bytes: &[u8]| {
        let mut stream = TcpStream::connect(address).unwrap();
        let _ = stream.write_all(bytes).and_then(|()| stream.read_to_end(&mut Vec::new()));
    };
    let request = |address, links: &[(String, bool)]| {
        let stream = TcpStream::connect(address).unwrap();
        let greeting: Greeting = MessageReader::new(&stream, 4_096).next(None).unwrap();
        let session = Session { server: greeting.challenge, client: [7; 32] };
        let proof = right().proof("client", &session);
        let request = Request {
            machmeter_net: PROTOCOL,
            challenge: session.client,
            proof,
            links: links.to_vec(),
            congestion: None,
        };
        MessageWriter::new(&stream).send(&request).unwrap();
        let admission = MessageReader::<Admission, _>::new(&stream, 4_096).next(None).unwrap();
        // Until the server is tired of waiting for the links.
        let _ = (&stream).read_to_end(&mut Vec::new());
        admission
    };
    let seen = served(|address| {
        let why = near(address, &token("another token altogether"), &["tcp"]).err().unwrap();
        assert!(why.ends_with("it refuses: the tokens differ"), "{why}");
        say(address, b"GET / HTTP/1.1\r\n\r\n");
        say(address, &vec![b'x'; 100_000]);
        say(address, b"");
        drop(TcpStream::connect(address).unwrap());
        assert!(matches!(request(address, &[("shm".to_owned(), true)]), Admission::Refused(_)));
        assert!(matches!(request(address, &[]), Admission::Refused(_)));
        assert!(matches!(request(address, &[("tcp".to_owned(), false)]), Admission::Granted { .. }));
        near(address, &right(), &["tcp"]).unwrap();
    });
    let why: Vec<_> = seen.iter().map(|s| if let Served::Refused(_, why) = s { why } else { "" }).collect();
    let wanted = [
        "the tokens differ",
        "it sent an unreadable message",
        "it sent a line of more than 4096 bytes",
        "it did not answer in time",
        "it closed its output",
        "the requested links do not exist",
        "the requested links do not exist",
        "it did not open its links",
        "",
    ];
    assert_eq!(why.len(), wanted.len(), "{why:?}");
    assert!(why.iter().zip(wanted).all(|(why, w)| why.starts_with(w)), "{why:?}");
}

fn line(message: &impl serde::Serialize) -> Vec<u8> {
    let mut bytes = Vec::new();
    MessageWriter::new(&mut bytes).send(message).unwrap();
    bytes
}

#[test]
fn a_near_end_believes_no_stranger_either() {
    let with_answers = |answers: Vec<Vec<u8>>| {
        let listener = TcpListener::bind(ANY).unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::scope(|s| {
            s.spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                for answer in answers {
                    let _ = stream.write_all(&answer).and_then(|()| stream.read(&mut [0; 4_096]));
                }
            });
            near(address, &right(), &["tcp"]).err().unwrap()
        })
    };
    let greeting = |machmeter_net| {
        line(&Greeting { machmeter_net, version: "9\u{1b}[2J".to_owned(), challenge: [1; 32] })
    };
    let granted = line(&Admission::Granted { proof: [0; 32], ports: Vec::new() });
    let refused = line(&Admission::Refused("no\u{7}".to_owned()));
    for (answers, said) in [
        (vec![b"220 mail\n".to_vec()], "is not `machmeter serve`"),
        (vec![vec![b'y'; 9_000]], "a line of more than 4096 bytes"),
        (vec![greeting(PROTOCOL + 1)], "version 9[2J there uses protocol"),
        (vec![greeting(PROTOCOL), granted], "it does not have the token"),
        (vec![greeting(PROTOCOL), refused], "it refuses: no"),
        (vec![greeting(PROTOCOL)], "it closed its output"),
    ] {
        let why = with_answers(answers);
        assert!(why.contains(said) && !why.contains(char::is_control), "{said}: {why}");
    }
    let free = TcpListener::bind(ANY).unwrap().local_addr().unwrap();
    let why = near(free, &right(), &["tcp"]).err().unwrap();
    assert!(why.contains("start `machmeter serve` there"), "{why}");
}

#[test]
fn a_token_is_long_and_of_its_owner_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("token");
    let why = |mode: u32, text: &str| {
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        Token::read(&path).err().unwrap()
    };
    assert!(why(0o640, "0123456789abcdef").contains("is readable by other users: chmod 600"));
    assert!(why(0o600, " short \n").contains("16 characters or more"));
    let (a, b) = (Token::fresh().unwrap().1, Token::fresh().unwrap().1);
    assert!(a.len() == 32 && a != b);
}
