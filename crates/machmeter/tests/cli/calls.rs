//! Checks that the program accepts a command line shown in a document, without measuring.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Stdio;
use std::sync::Mutex;

use clap::Command;
use clap::error::ErrorKind;
use machmeter_data::{Column, Record, Table, Unit, Values};
use machmeter_store::history::{self, History};

use crate::calculated::given::{self, plant};
use crate::calculated::planted::plant_link;
use crate::program::{Lab, Running, kept_runs};
use crate::shown::{Form, Line, root};

/// Method of the check of a command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Way {
    /// Run as shown, on records made here.
    Run,
    /// Run with `--dry-run` (`make -n`, `compat NAME ... -h`).
    DryRun,
    /// Parsed only, because it would measure, wait or start another program.
    Parsed,
    /// The name of an existing script, chore or package of this repository.
    Named,
    /// Not for users; [`EXCUSED`] has the reason.
    Excused,
}

/// Verbs that no user calls, and the reason why a document mentions them.
const EXCUSED: [(&str, &str); 1] =
    [("__worker", "the program calls itself so; no option of the command line leads there")];

/// Values of placeholders, and of names whose file or CPU depends on the machine.
const PLACEHOLDERS: [(&str, &str); 21] = [
    ("A", "any.json"),
    ("B", "any.json"),
    ("RUN", "any.json"),
    ("RUN2", "any.json"),
    ("RECORD", "any.json"),
    ("PAGE.html", "page.html"),
    ("a.html", "page.html"),
    ("b.html", "page.html"),
    ("page.html", "page.html"),
    ("PREFIX", "fixtures/foreign/ftq-2009/quiet"),
    ("KERNEL.log", "fixtures/foreign/interbench/plain.log"),
    ("6.1.0.log", "fixtures/foreign/interbench/plain.log"),
    ("PROBE", "noise"),
    ("VERB", "noise"),
    ("FORMAT", "csv"),
    ("METRIC", "noise.stolen_fraction"),
    ("CODE", "W448"),
    ("P", "2"),
    ("PATTERN", "allreduce"),
    ("part*.json", "part0.json"),
    ("isolated", "0"),
];

/// Inline code with a verb or an option without its arguments, and the missing arguments.
const COMPLETED: [(&str, &str); 14] = [
    ("ab", "true true -- noise"),
    ("compare", "any.json any.json"),
    ("compat", "ftq"),
    ("compat interbench", ""),
    ("explain", "W448"),
    ("export", "--to csv any.json"),
    ("net --peer", "127.0.0.1 --token-file token"),
    ("predict", "any.json --on any.json"),
    ("predict --expr", "2*3 --on any.json"),
    ("report", "any.json"),
    ("selftest", "noise"),
    ("simulate", "--pattern allreduce --on any.json"),
    ("simulate --table", "--on any.json"),
    ("trace", "-- true"),
];

/// Files in the command lines of documents. All hold the same record: a run of all probes, a link, traced calls.
const RECORDS: [&str; 15] = [
    "net.json",
    "vm.json",
    "table.json",
    "job.json",
    "there.json",
    "machine.json",
    "cluster.json",
    "page.json",
    "node16.json",
    "node17.json",
    "node01.json",
    "node02.json",
    "node03.json",
    "node04.json",
    "node05.json",
];

/// Number of stored runs, an hour apart; a document compares this many.
const KEPT: usize = 12;
/// Alternating values of their tags: of `state`, `side` and `kernel`; of `cloud`.
const TAGS: [(&str, &str); 2] = [("before", "a"), ("after", "b")];

/// A lab with all files that the command lines of documents read.
pub(crate) struct Calls {
    lab: Lab,
    tree: Command,
    /// Outcomes by words, because many pages show the same command.
    known: Mutex<BTreeMap<Vec<String>, Result<Way, String>>>,
}

impl Calls {
    /// A lab with all files that the documents name.
    pub(crate) fn new() -> Self {
        let calls = Self::without_files();
        for folder in ["fixtures", "jobs"] {
            symlink(root().join(folder), calls.lab.work().join(folder)).unwrap();
        }
        records(&calls.lab);
        calls
    }

    pub(crate) fn without_files() -> Self {
        let tree = machmeter::command_line(&machmeter::Registries::default());
        Self { lab: Lab::new(), tree, known: Mutex::default() }
    }

    /// Errors: runs were stored, although nothing here measures or calculates.
    pub(crate) fn kept_nothing(&self) -> Result<(), String> {
        let kept = kept_runs(&self.lab.state());
        if kept.len() == KEPT { Ok(()) } else { Err(format!("a dry run was kept: {kept:?}")) }
    }

    /// The way in which the program accepts this command line.
    /// Errors: its refusal.
    pub(crate) fn check(&self, line: &Line) -> Result<Way, String> {
        let key = [line.words.as_slice(), &[line.code.to_string()]].concat();
        if let Some(known) = self.known.lock().unwrap().get(&key) {
            return known.clone();
        }
        let way = match line.words[0].as_str() {
            "machmeter" => self.own(line),
            "make" => made(&line.words[1..]),
            "cargo" => cargo(&line.words[1..]),
            other => self.by_name(other.trim_start_matches("./"), &line.words[1..]),
        };
        self.known.lock().unwrap().insert(key, way.clone());
        way
    }

    fn own(&self, line: &Line) -> Result<Way, String> {
        let mut words: Vec<String> = line.words[1..].to_vec();
        if words.first().is_some_and(|w| EXCUSED.iter().any(|(verb, _)| w == verb)) {
            return Ok(Way::Excused);
        }
        if line.form != Form::Session {
            let named = words.join(" ");
            let more = COMPLETED.iter().find(|(begin, _)| *begin == named).map_or("", |(_, more)| more);
            words.extend(more.split_whitespace().map(str::to_owned));
        }
        let words = filled(&words)?;
        let outcome = self.accepted(&words);
        match (line.code, outcome) {
            (2, Err(_)) => Ok(Way::Run),
            (2, Ok(_)) => Err("is accepted, though the page shows its refusal".to_owned()),
            (_, outcome) => outcome,
        }
    }

    pub(crate) fn accepted(&self, words: &[String]) -> Result<Way, String> {
        let verb = words.iter().find_map(|w| self.tree.find_subcommand(w));
        let name = verb.map_or("", Command::get_name);
        let is_help = words.iter().any(|w| ["-h", "--help", "--version"].contains(&w.as_str()));
        let has_plan = verb.unwrap_or(&self.tree).get_arguments().any(|a| a.get_id() == "dry_run");
        let is_planned = words.iter().any(|w| w == "--dry-run");
        // Words behind `--` belong to another program.
        let own = words.iter().position(|w| w == "--").filter(|_| has_plan).unwrap_or(words.len());
        let with = |more: &str| [&words[..own], &[more.to_owned()], &words[own..]].concat();
        match name {
            _ if is_help => self.run(words, Way::Run),
            _ if is_planned => self.run(words, Way::DryRun),
            "compat" => self.run(&with("-h"), Way::DryRun),
            _ if has_plan => self.run(&with("--dry-run"), Way::DryRun),
            "serve" | "trace" => self.parsed(words),
            "ab" => {
                self.parsed(words)?;
                let probe = words.iter().position(|w| w == "--").map_or(words.len(), |i| i + 1);
                self.accepted(&words[probe..])
            }
            _ => self.run(words, Way::Run),
        }
    }

    pub(crate) fn parsed(&self, words: &[String]) -> Result<Way, String> {
        let whole = ["machmeter".to_owned()].into_iter().chain(words.iter().cloned());
        match self.tree.clone().try_get_matches_from(whole) {
            Err(e) if e.kind() != ErrorKind::DisplayHelp => Err(e.to_string()),
            _ => Ok(Way::Parsed),
        }
    }

    fn run(&self, words: &[String], way: Way) -> Result<Way, String> {
        let mut command = self.lab.command(&words.iter().map(String::as_str).collect::<Vec<_>>());
        // Some exports are not text.
        command.stdout(Stdio::null());
        let ended = Running::of(command).end();
        if ended.code == Some(2) { Err(ended.stderr) } else { Ok(way) }
    }

    /// A script of this repository, or the program under the name of another benchmark.
    fn by_name(&self, name: &str, words: &[String]) -> Result<Way, String> {
        if root().join(name).is_file() {
            return Ok(Way::Named);
        }
        let compat = ["compat".to_owned(), name.to_owned()];
        self.accepted(&[compat.as_slice(), words].concat())
    }
}

/// Words with values for their placeholders.
/// Errors: a placeholder without a value.
fn filled(words: &[String]) -> Result<Vec<String>, String> {
    let mut out = Vec::new();
    for (i, word) in words.iter().enumerate() {
        let before = i.checked_sub(1).map(|i| words[i].as_str());
        let plain = word.strip_suffix("...").unwrap_or(word);
        let plain = plain.replace("$SLURM_ARRAY_TASK_ID", "7").replace("$SLURM_NODEID", "0");
        let is_placeholder =
            plain.len() < 12 && !plain.is_empty() && plain.chars().all(|c| c.is_ascii_uppercase());
        out.push(match (before, plain.as_str()) {
            (_, "") => continue,
            (Some("list"), "WHAT") => "metrics".to_owned(),
            (Some("schema"), "WHAT") => "record".to_owned(),
            (Some("compat"), "NAME") => "ftq".to_owned(),
            (Some("man"), "DIR") => "man".to_owned(),
            (Some("completions"), "SHELL") => "bash".to_owned(),
            (Some("--pattern"), "NAME") => "allreduce".to_owned(),
            (Some("--load"), "NAME") => "burn".to_owned(),
            (Some("--"), "CMD") => "true".to_owned(),
            (Some("report"), "FILE") => "any.json".to_owned(),
            (Some("--job"), "FILE") => "jobs/noise.toml".to_owned(),
            (_, name) => match PLACEHOLDERS.iter().find(|(placeholder, _)| *placeholder == name) {
                Some((_, value)) => (*value).to_owned(),
                None if is_placeholder => return Err(format!("no value is known for {name}")),
                None => plain,
            },
        });
    }
    Ok(out)
}

fn made(words: &[String]) -> Result<Way, String> {
    let mut make = std::process::Command::new("make");
    let out = make.arg("-n").args(words).current_dir(root()).output().map_err(|e| e.to_string())?;
    if out.status.success() {
        Ok(Way::DryRun)
    } else {
        Err(String::from_utf8_lossy(&out.stderr).into_owned())
    }
}

/// `cargo xtask CHORE` names a chore, `-p NAME` and `--path PATH` a package of this workspace.
fn cargo(words: &[String]) -> Result<Way, String> {
    let after = |option: &str| words.iter().position(|w| w == option).and_then(|i| words.get(i + 1));
    let chores = fs::read_to_string(root().join("xtask/src/main.rs")).unwrap();
    let is_chore = after("xtask").is_none_or(|chore| chores.contains(&format!("\"{chore}\"")));
    let lock = fs::read_to_string(root().join("Cargo.lock")).unwrap();
    let is_package = after("-p").is_none_or(|name| lock.contains(&format!("name = \"{name}\"\n")));
    let is_path = after("--path").is_none_or(|path| root().join(path).join("Cargo.toml").is_file());
    if is_chore && is_package && is_path {
        Ok(Way::Named)
    } else {
        Err("names what is not in this workspace".to_owned())
    }
}

/// Writes the files of the lab, and stores runs with the tags of the documents.
fn records(lab: &Lab) {
    let place = |name: &str| lab.work().join(name);
    // The samples of a dataflow run are too many to plant. On a loaded machine the run may end early.
    let flow = "flow --graph e_comm -t 100ms -q --no-save --raw all --out capture.c32 -o flow.json";
    assert!(matches!(lab.line(flow).code, Some(0 | 5)), "{flow}");
    let flow = lab.record("flow.json");
    let page = root().join("crates/report/tests/fixtures/glance.json");
    let mut record: Record = serde_json::from_slice(&fs::read(page).unwrap()).unwrap();
    record.machine.fingerprint = Some("0123456789abcdef".repeat(4));
    let calls = [(0, "Send", 10_000, 100, 1, 1, 7), (1, "Recv", 0, 12_000, 1, 0, 7)];
    let mut tables = history::raw_tables(&flow, &place("flow.json")).unwrap();
    tables.extend(given::tables(&calls, &[20_000; 2]).into_iter().chain([gaps()]));
    record.datasets.extend(flow.datasets);
    for direction in ["there", "back"] {
        let direction = ("direction", direction.into());
        let keys = [("transport", "tcp".into()), direction, ("from_bytes", 1i64.into())];
        plant_link(&mut record, "net", &keys, 0.0);
    }
    plant_link(&mut record, "mpi", &[("receive", "posted".into()), ("from_bytes", 1i64.into())], 0.0);
    let keys = [("operation", "allreduce".into()), ("ranks", 2i64.into()), ("size_bytes", 8i64.into())];
    plant(&mut record, "mpi.cost", Unit::Nanoseconds, &keys, 900.0, 0.0);
    history::save_as(&mut record, &tables, &place("any.json")).unwrap();
    for copy in RECORDS {
        fs::copy(place("any.json"), place(copy)).unwrap();
    }
    lab.line("report any.json -o page.html").expect(0);
    lab.line("export any.json --to goal -o job.goal").expect(0);
    let share = "simulate --pattern barrier --ranks 2-4 --on any.json --noise any.json --runs 2 --part 1/1";
    lab.line(&format!("{share} -q --no-save -o part0.json")).expect(0);
    fs::write(place("noisy.wav"), wav(&vec![0.5; 5000])).unwrap();
    fs::write(place("token"), "0123456789abcdef".repeat(4)).unwrap();
    fs::set_permissions(place("token"), fs::Permissions::from_mode(0o600)).unwrap();
    let kept = History::open(&lab.state()).unwrap();
    for (i, (side, cloud)) in TAGS.into_iter().cycle().take(KEPT).enumerate() {
        record.id = format!("{i:016x}");
        record.run.started = format!("2026-11-24T{i:02}:06:15.604Z");
        let tags = [("state", side), ("side", side), ("kernel", side), ("cloud", cloud)];
        record.run.tags = tags.map(|(key, value)| (key.to_owned(), value.to_owned())).into();
        kept.save(&mut record, &tables).unwrap();
    }
}

/// A WAV file of one channel of floats, 16 kHz.
fn wav(samples: &[f32]) -> Vec<u8> {
    let bytes = 4 * samples.len() as u32;
    let header =
        [b"RIFF".as_slice(), &(36 + bytes).to_le_bytes(), b"WAVEfmt ", &16_u32.to_le_bytes(), &[3, 0, 1, 0]];
    let rates = [16_000_u32, 64_000, 4 | 32 << 16].map(u32::to_le_bytes).concat();
    let data = samples.iter().copied().flat_map(f32::to_le_bytes).collect();
    [header.concat(), rates, b"data".to_vec(), bytes.to_le_bytes().to_vec(), data].concat()
}

/// A gap of 1 us every 100 us on two CPUs.
fn gaps() -> Table {
    let start: Vec<i64> = (0..400).map(|i| i / 2 * 100_000 + i % 2 * 7000).collect();
    let end = start.iter().map(|s| s + 1000).collect::<Vec<i64>>();
    let cpu = (0..400).map(|i| i % 2).collect::<Vec<i32>>();
    let column = |name: &str, values: Values| Column::new(name, Unit::Ticks, values);
    let columns =
        vec![column("cpu", cpu.into()), column("start_ticks", start.into()), column("end_ticks", end.into())];
    let mut table = Table::new("noise_gaps", columns).unwrap();
    let notes = [("tick_hz", "1000000000"), ("t0_ticks", "0"), ("wall_ticks", "20000000")];
    table.notes.extend(notes.map(|(k, v)| (k.to_owned(), v.to_owned())));
    table
}
