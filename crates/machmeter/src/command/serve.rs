//! `machmeter serve`: answers as the far end of links for `machmeter net --peer` on another machine.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::{ArgMatches, Args, FromArgMatches};
use machmeter_net::{PORT, Served, Server, Token};
use machmeter_sys::thread::monotonic_ns;
use machmeter_sys::{affinity, guard};

use crate::{Exit, Failure, Globals, Registries, Result, output, session};

/// Time of service by default, ns.
const DEFAULT_NS: u64 = 3_600_000_000_000;

/// Answer a `machmeter net --peer` on another machine
#[derive(Args)]
#[command(
    long_about = "Waits for one `machmeter net --peer` and answers its messages on one CPU (-c, else the last allowed one), which stays busy \
                  during the session. Listens on this machine only, unless --listen names an address. A client must know the token. The token \
                  never crosses the network, but messages are not encrypted: a machine between the two can disturb a session. Executes and \
                  writes nothing for a client. Ends after the session, or after an hour (-t)."
)]
pub(super) struct Asked {
    /// Address to listen on, with or without a port
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1", value_parser = address)]
    listen: SocketAddr,
    /// File with the token; without it a new token is printed
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Number of sessions, one after the other
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    sessions: u32,
}

/// `10.0.0.2`, `10.0.0.2:7117`, `[fe80::1]:7117`.
fn address(text: &str) -> Result<SocketAddr, String> {
    let bare = |ip: IpAddr| SocketAddr::new(ip, PORT);
    let wrong =
        || format!("'{text}' is not an address of this machine, such as 127.0.0.1 or 127.0.0.1:{PORT}");
    text.parse().or_else(|_| text.parse().map(bare)).map_err(|_| wrong())
}

pub(super) fn run(_: &Registries, globals: &Globals, matches: &ArgMatches) -> Result<Exit> {
    let asked = Asked::from_arg_matches(matches).map_err(Failure::usage)?;
    let (_, _, cpus) = session::cpus(&globals.cpus)?;
    let (token, made) = match &asked.token_file {
        Some(file) => (Token::read(file).map_err(Failure::usage)?, None),
        None => Token::fresh().map(|(token, text)| (token, Some(text))).map_err(Failure::cannot)?,
    };
    guard::signals::install().map_err(Failure::cannot)?;
    let server = Server::bind(asked.listen, token, env!("CARGO_PKG_VERSION"))
        .map_err(|e| Failure::cannot(format!("--listen {}: {e}", asked.listen)))?;
    let listen = server.address().map_err(Failure::cannot)?;
    let cpu = cpus.to_vec().last().copied().unwrap_or(0);
    affinity::pin(cpu).map_err(|e| Failure::cannot(format!("CPU {cpu}: {e}")))?;
    output::print(&told(listen, cpu, made.as_deref())).map_err(Failure::cannot)?;
    let until_ns = monotonic_ns().saturating_add(globals.time.unwrap_or(DEFAULT_NS));
    let stop = || guard::stop_requested().is_some() || monotonic_ns() > until_ns;
    let mut left = asked.sessions;
    while left > 0 {
        match server.next(&stop).map_err(Failure::cannot)? {
            None => break,
            Some(Served::Session(from, why)) => {
                left -= 1;
                let early = why.map_or_else(String::new, |why| format!(" until {why}"));
                globals.say(&format!("{from}: served{early}"));
            }
            Some(Served::Refused(from, why)) => globals.say(&format!("{from}: not served: {why}")),
        }
    }
    match guard::stop_requested() {
        Some(signal) => Ok(signal.into()),
        None if left == 0 => Ok(Exit::Fine),
        None => Err(Failure::cannot("no client connected in time")
            .help("-t serves longer; --listen accepts other machines")),
    }
}

/// The address and CPU of the service, and the command for the other machine.
fn told(listen: SocketAddr, cpu: usize, made: Option<&str>) -> String {
    let mut text = format!("listening on {listen}, answering on CPU {cpu}\n");
    let file = if made.is_some() { "token" } else { "FILE" };
    if let Some(token) = made {
        text.push_str(&format!("on the other machine: (umask 077; echo {token} > token)\n"));
    }
    text.push_str(&format!("on the other machine: machmeter net --peer {listen} --token-file {file}\n"));
    text
}
