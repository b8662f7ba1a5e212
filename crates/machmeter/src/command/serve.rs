//! `machmeter serve`: the far end of links for `machmeter net --peer` on another machine.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::{Arg, ArgMatches, Command, value_parser};
use machmeter_net::{PORT, Served, Server, Token};
use machmeter_sys::thread::monotonic_ns;
use machmeter_sys::{affinity, guard};

use super::CommandEntry;
use crate::Registries;
use crate::exit::Exit;
use crate::failure::Failure;
use crate::globals::Globals;
use crate::{output, session};

pub(crate) const ENTRY: CommandEntry =
    CommandEntry { name: "serve", define, takes: &["cpus", "time", "quiet"], run };

/// Serves so long when no time is given, ns.
const DEFAULT_NS: u64 = 3_600_000_000_000;

fn define() -> Command {
    Command::new(ENTRY.name)
        .about("Be the far end of links for `machmeter net --peer` elsewhere")
        .long_about(
            "Waits for one `machmeter net --peer` and answers its messages on one CPU (-c, else the last that may be used), which it \
             keeps busy meanwhile. Listens on this machine alone unless --listen names an address. Who asks must know the token; it \
             never crosses the network, but messages do as they are, so that somebody between the machines can disturb a session. \
             Nothing is executed for a client and nothing is written. Ends after the session, or after an hour (-t).",
        )
        .arg(
            Arg::new("listen")
                .long("listen")
                .value_name("ADDRESS")
                .default_value("127.0.0.1")
                .value_parser(address)
                .help("Address to listen on, with a port or without"),
        )
        .arg(
            Arg::new("token-file")
                .long("token-file")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .help("Token to ask for; a new one is printed when not given"),
        )
        .arg(
            Arg::new("sessions")
                .long("sessions")
                .value_name("N")
                .default_value("1")
                .value_parser(value_parser!(u32).range(1..))
                .help("Sessions to serve, one after the other"),
        )
}

/// `10.0.0.2`, `10.0.0.2:7117`, `[fe80::1]:7117`.
fn address(text: &str) -> Result<SocketAddr, String> {
    let bare = |ip: IpAddr| SocketAddr::new(ip, PORT);
    text.parse().or_else(|_| text.parse().map(bare)).map_err(|_| {
        format!(
            "'{text}' is no address of this machine: {}, {}:{PORT}",
            Ipv4Addr::LOCALHOST,
            Ipv4Addr::LOCALHOST
        )
    })
}

fn run(_registries: &Registries, globals: &Globals, matches: &ArgMatches) -> Result<Exit, Failure> {
    let (_, _, cpus) = session::cpus(&globals.cpus)?;
    let (token, made) = match matches.get_one::<PathBuf>("token-file") {
        Some(file) => (Token::read(file).map_err(Failure::usage)?, None),
        None => Token::fresh().map(|(token, text)| (token, Some(text))).map_err(Failure::cannot)?,
    };
    let listen = matches.get_one::<SocketAddr>("listen").copied();
    let listen = listen.unwrap_or_else(|| SocketAddr::new(Ipv4Addr::LOCALHOST.into(), PORT));
    guard::signals::install().map_err(Failure::cannot)?;
    let server = Server::bind(listen, token, env!("CARGO_PKG_VERSION"))
        .map_err(|e| Failure::cannot(format!("--listen {listen}: {e}")))?;
    let listen = server.address().map_err(Failure::cannot)?;
    let cpu = cpus.to_vec().last().copied().unwrap_or(0);
    affinity::pin(cpu).map_err(|e| Failure::cannot(format!("CPU {cpu}: {e}")))?;
    output::print(&told(listen, cpu, made.as_deref())).map_err(Failure::cannot)?;
    let until_ns = monotonic_ns().saturating_add(globals.time.unwrap_or(DEFAULT_NS));
    let stop = || guard::stop_requested().is_some() || monotonic_ns() > until_ns;
    let mut left = matches.get_one::<u32>("sessions").copied().unwrap_or(1);
    while left > 0 {
        match server.next(&stop).map_err(Failure::cannot)? {
            None => break,
            Some(Served::Session(from, why)) => {
                left -= 1;
                let early = why.map_or_else(String::new, |why| format!(" until {why}"));
                tell(globals, &format!("{from}: served{early}"));
            }
            Some(Served::Refused(from, why)) => tell(globals, &format!("{from}: not served: {why}")),
        }
    }
    match guard::stop_requested() {
        Some(signal) => Ok(signal.into()),
        None if left == 0 => Ok(Exit::Fine),
        None => {
            Err(Failure::cannot("nobody came in time").help("-t serves longer, --listen for other machines"))
        }
    }
}

fn tell(globals: &Globals, text: &str) {
    if !globals.quiet {
        output::say(text);
    }
}

/// Where it listens, and what to type on the other machine.
fn told(listen: SocketAddr, cpu: usize, made: Option<&str>) -> String {
    let mut text = format!("listening on {listen}, answering on CPU {cpu}\n");
    let file = if made.is_some() { "token" } else { "FILE" };
    if let Some(token) = made {
        text.push_str(&format!("on the other machine: (umask 077; echo {token} > token)\n"));
    }
    text.push_str(&format!("on the other machine: machmeter net --peer {listen} --token-file {file}\n"));
    text
}
