//! Tests that the program is one file. A copy of it alone in a folder runs the smallest example of every verb. An unprivileged user starts it in an empty
//! directory, and its environment has only a search path.
//!
//! `MACHMETER_STATIC_PROGRAM` names a static build (`make static` sets it), which is tested in the same way. Its verb `mpi` must report why it can't open an
//! MPI library.

use std::collections::BTreeSet;
use std::fs;
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use machmeter_data::record::{Run, Tool};
use machmeter_data::{Metric, MetricInfo, Record, Unit};

use crate::program::{Ended, Lab, NOBODY, Running, is_root, soon, words};

/// Examples: the arguments, exit codes of a successful run, and words of its output. Later ones read files of earlier ones.
const EXAMPLES: &[(&str, &[i32], &str)] = &[
    // Too short for the first figures of all probes, so it may be partial.
    ("-l quick -t 500ms -o page.html", &[0, 5], "NOISE"),
    ("noise -t 100ms -o noise.json", &[0], "NOISE"),
    ("interactive -t 2 --tasks audio --loads none", &[0], "INTERACTIVE"),
    ("memory -t 100ms", &[0], "CPUs"),
    ("sync -t 100ms", &[0], "CPUs"),
    ("ops -t 100ms", &[0], "CPUs"),
    ("net -t 100ms", &[0], "CPUs"),
    ("flow -t 100ms --parts prices", &[0], "CPUs"),
    // Without an installed MPI it can't measure.
    ("mpi -t 100ms", &[0, 4], "MPI"),
    // Alternating settings take at least four rounds.
    ("ab -t 6 --set nice=0 --set nice=0 -- noise -t 50ms", &[0, 1, 3], "nice=0"),
    ("compare noise.json noise.json", &[0, 3], "a run stands on both sides"),
    ("compat ftq -n 10 -o counts", &[0], "ftq: 10 windows"),
    ("completions bash", &[0], "_machmeter()"),
    ("doctor", &[0, 1, 3], "E104"),
    ("explain E104", &[0], "What should hold"),
    ("export --to csv noise.json", &[0], "noise.stolen_fraction"),
    ("list", &[0], "noise.stolen_fraction"),
    ("man", &[0], ".TH machmeter"),
    ("man pages", &[0], ""),
    ("predict --expr 2*3.25 --on link.json", &[0], "6.50"),
    // There is no history: neither HOME nor a state directory is set.
    ("reference add link.json", &[2, 4], "link.json"),
    ("report noise.json", &[0], "NOISE"),
    ("schema", &[0], "\"$schema\""),
    ("selftest noise --dry-run", &[0], "plan: "),
    ("serve --listen PORT --token-file token -t 10", &[0], ""),
    ("simulate --pattern bcast --ranks 2 --on link.json", &[0], "704 ns"),
    ("trace --recorder recorder.so", &[0], ""),
    // `tests/mpi/recorder.rs` traces MPI programs.
    ("trace -- true", &[4], "no process called MPI_Init"),
];

/// The program alone in a folder, and an empty folder in which it runs.
struct Alone {
    lab: Lab,
    program: PathBuf,
}

impl Alone {
    fn new(program: &Path) -> Self {
        let lab = Lab::new();
        let folder = lab.work().with_file_name("folder");
        fs::create_dir(&folder).unwrap();
        let copy = folder.join("machmeter");
        fs::copy(program, &copy).unwrap();
        for (path, mode) in [(lab.work().parent().unwrap(), 0o755), (&lab.work(), 0o777), (&folder, 0o755)] {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }
        let alone = Self { lab, program: copy };
        alone.save_link();
        alone
    }

    fn command(&self, line: &str) -> Command {
        let mut command = Command::new(&self.program);
        self.lab.set_up(command.args(words(line)));
        command.env_clear().envs(std::env::vars_os().filter(|(name, _)| name == "PATH"));
        if is_root() {
            command.uid(NOBODY).gid(NOBODY);
        }
        command
    }

    fn run(&self, line: &str) -> Ended {
        Running::of(self.command(line)).end()
    }

    /// A record of a link, for verbs that calculate.
    fn save_link(&self) {
        let tool = Tool { name: "machmeter".to_owned(), version: "1".to_owned(), ..Tool::default() };
        let mut record = Record::new("0123456789abcdef".to_owned(), tool, Run::default());
        let ids = ["latency", "overhead_send", "overhead_recv", "gap", "message_time", "gap_per_byte"];
        for (id, value) in ids.into_iter().zip([500.0, 100.0, 100.0, 200.0, 200.0, 0.5]) {
            let unit = if id == "gap_per_byte" { Unit::NanosecondsPerByte } else { Unit::Nanoseconds };
            let keys =
                [("transport", "shm".into()), ("direction", "there".into()), ("from_bytes", 1i64.into())];
            let keys = keys.map(|(k, v)| (k.to_owned(), v));
            let metric = Metric::new(&MetricInfo::of("", unit), keys.into(), value, "planted", 9);
            record.metrics.push(Metric { id: format!("net.{id}"), ..metric });
        }
        let path = self.lab.work().join("link.json");
        machmeter_store::history::save_as(&mut record, &[], &path).unwrap();
        fs::set_permissions(path, fs::Permissions::from_mode(0o644)).unwrap();
    }

    /// `serve`, and `net` at the other end.
    fn serve(&self, line: &str) -> Ended {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
        let token = self.lab.work().join("token");
        fs::write(&token, "0123456789abcdef").unwrap();
        fs::set_permissions(&token, fs::Permissions::from_mode(0o600)).unwrap();
        if is_root() {
            std::os::unix::fs::chown(&token, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        let serving = Running::of(self.command(&line.replace("PORT", &port)));
        assert!(soon(|| TcpStream::connect(&port).is_ok()), "it does not listen");
        self.run(&format!("net --peer {port} --token-file token -t 100ms --sizes 1-64")).expect(0);
        serving.end()
    }
}

/// Runs all examples; `mpi` gives the expected exit codes and words of that verb.
fn run_all(program: &Path, mpi: (&[i32], &str)) {
    let alone = Alone::new(program);
    let (mut took_ms, mut wrong) = (Vec::new(), Vec::new());
    for (line, codes, shows) in EXAMPLES {
        let (codes, shows) = if line.starts_with("mpi ") { mpi } else { (*codes, *shows) };
        let ended = if line.starts_with("serve") { alone.serve(line) } else { alone.run(line) };
        let printed = [ended.stdout.as_str(), &ended.stderr].concat();
        if !ended.code.is_some_and(|code| codes.contains(&code)) || !printed.contains(shows) {
            wrong.push(format!("{line}: ended with {:?}, to show {shows}:\n{printed}", ended.code));
        }
        took_ms.push((ended.wall.as_millis(), *line));
    }
    took_ms.sort_unstable();
    println!("{took_ms:?}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let pages = fs::read_dir(alone.lab.work().join("pages")).unwrap().count();
    assert!(pages > machmeter::PROBES.len(), "{pages} manual pages");
    let beside = fs::read_dir(alone.program.parent().unwrap()).unwrap().count();
    assert_eq!(beside, 1, "nothing but the program in its folder");
}

#[test]
fn a_copy_of_the_program_alone_runs_every_verb() {
    let command = machmeter::command_line(&machmeter::Registries::default());
    let verbs: BTreeSet<&str> = command.get_subcommands().map(clap::Command::get_name).collect();
    let first = |line: &'static str| words(line)[0];
    let shown: BTreeSet<&str> =
        EXAMPLES.iter().map(|e| first(e.0)).filter(|word| !word.starts_with('-')).collect();
    assert_eq!(shown, verbs, "each verb has an example here");
    let mpi = EXAMPLES.iter().find(|e| e.0.starts_with("mpi ")).unwrap();
    run_all(Path::new(env!("CARGO_BIN_EXE_machmeter")), (mpi.1, mpi.2));
}

#[test]
fn a_static_build_runs_every_verb_but_mpi() {
    let Some(program) = std::env::var_os("MACHMETER_STATIC_PROGRAM") else {
        return println!("skipped: MACHMETER_STATIC_PROGRAM names no static build");
    };
    run_all(Path::new(&program), (&[4], "static"));
}

#[test]
fn pages_and_completions_have_the_options_that_act() {
    let lab = Lab::new();
    lab.line("man pages").expect(0);
    let page = |verb: &str| fs::read_to_string(lab.work().join(format!("pages/machmeter-{verb}.1"))).unwrap();
    assert!(page("noise").contains(r"\-\-cpus") && !page("explain").contains(r"\-\-cpus"));
    assert!(lab.line("man").expect(0).stdout.contains("machmeter\\-noise(1)"));
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let script = lab.line(&format!("completions {shell}")).expect(0).stdout.clone();
        assert!(script.contains("predict-from"), "{shell}");
    }
    lab.line("completions").refused("SHELL");
    lab.line("completions csh").refused("csh");
    fs::write(lab.work().join("file"), "").unwrap();
    lab.line("man file").refused("file");
}
