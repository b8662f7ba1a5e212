//! Launchers: what one says in the environment of the ranks it starts, and the command line that starts ranks on this machine.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::Error;
use super::abi::Flavor;
use super::library::Installed;
use crate::thread::effective_user;

/// Whose variables the environment holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Open MPI's `mpirun`.
    OpenMpi,
    /// Hydra of MPICH, Intel MPI and MVAPICH; `srun --mpi=pmi2`.
    Hydra,
    /// `srun` without the variables of PMI.
    Slurm,
}

/// A place among ranks, as the launcher says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Launched {
    pub kind: Kind,
    pub rank: usize,
    pub size: usize,
    /// Number among the ranks of this machine, and how many they are.
    pub local_rank: Option<usize>,
    pub local_size: Option<usize>,
}

/// Variables of rank, size, local rank and local size; those of a launcher inside a batch job before the job's own. A batch script
/// has Slurm's variables too; only a step of `srun` has the last.
const VARIABLES: [(Kind, [&str; 4], Option<&str>); 3] = [
    (
        Kind::OpenMpi,
        [
            "OMPI_COMM_WORLD_RANK",
            "OMPI_COMM_WORLD_SIZE",
            "OMPI_COMM_WORLD_LOCAL_RANK",
            "OMPI_COMM_WORLD_LOCAL_SIZE",
        ],
        None,
    ),
    (Kind::Hydra, ["PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"], None),
    (Kind::Slurm, ["SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID", ""], Some("SLURM_STEP_ID")),
];

/// CPUs for the ranks of this machine in order of their local ranks; set by [`command`], heeded by [`bind`].
const CPUS: &str = "MACHMETER_MPI_CPUS";

/// The launcher that started this process; `None`: it was started alone.
pub fn launched() -> Option<Launched> {
    launched_from(|name| std::env::var_os(name).and_then(|v| v.into_string().ok()))
}

fn launched_from(variable: impl Fn(&str) -> Option<String>) -> Option<Launched> {
    let number = |name: &str| variable(name).and_then(|v| v.trim().parse::<usize>().ok());
    VARIABLES.iter().find_map(|(kind, [rank, size, local_rank, local_size], also)| {
        also.is_none_or(|name| variable(name).is_some()).then_some(())?;
        let (rank, size) = (number(rank)?, number(size)?);
        (rank < size).then(|| Launched {
            kind: *kind,
            rank,
            size,
            local_rank: number(local_rank),
            local_size: number(local_size),
        })
    })
}

/// Binds the calling thread to the CPU that [`Start::cpus`] has for this rank; `None` where none was asked for.
/// Errors: one line: the list is short, or the system refused.
pub fn bind(launched: &Launched) -> Result<Option<usize>, String> {
    let Some(list) = std::env::var_os(CPUS).and_then(|v| v.into_string().ok()) else { return Ok(None) };
    let at = launched.local_rank.unwrap_or(launched.rank);
    let cpu = list.split(',').nth(at).and_then(|c| c.parse().ok());
    let cpu = cpu.ok_or_else(|| format!("{CPUS}={list} has no CPU for rank {at} of this machine"))?;
    crate::affinity::pin(cpu).map_err(|e| e.to_string())?;
    Ok(Some(cpu))
}

/// How ranks are started on this machine.
#[derive(Debug, Clone, Copy)]
pub struct Start<'a> {
    pub ranks: usize,
    /// Rank i runs on `cpus[i]` ([`bind`]); empty: as the launcher binds.
    pub cpus: &'a [usize],
    /// More ranks than CPUs: Open MPI then yields while it waits, MPICH does not.
    pub oversubscribe: bool,
}

/// The launcher's command up to the program's name. Errors: no launcher; no ranks; too few CPUs.
pub fn command(mpi: &Installed, start: &Start<'_>) -> Result<Command, Error> {
    let Start { ranks, cpus, oversubscribe } = *start;
    if ranks == 0 || (!cpus.is_empty() && cpus.len() < ranks) {
        return Err(Error::Argument(format!("{ranks} rank(s) on {} CPU(s)", cpus.len())));
    }
    let mut command = Command::new(mpi.launcher.as_deref().ok_or_else(|| mpi.no_launcher())?);
    command.args(["-n", &ranks.to_string()]);
    if mpi.flavor == Flavor::OpenMpi {
        // It counts cores; with as many slots as ranks two hardware threads of a core are no oversubscription.
        let slots = if oversubscribe { 1 } else { ranks };
        command.args(["--host", &format!("localhost:{slots}")]);
        if oversubscribe {
            command.args(["--map-by", "slot:OVERSUBSCRIBE"]);
        }
        if oversubscribe || !cpus.is_empty() {
            command.args(["--bind-to", "none"]);
        }
        if effective_user() == 0 {
            command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        }
    } else if cpus.is_empty() && !oversubscribe {
        // A rank of MPICH spins: two on one CPU wait milliseconds for each other.
        command.args(["-bind-to", "core"]);
    }
    if !cpus.is_empty() {
        let list: Vec<_> = cpus.iter().map(ToString::to_string).collect();
        command.env(CPUS, list.join(","));
    }
    Ok(command)
}

/// Names of launchers: those of Debian's alternatives, those of the packages, and the common ones, which may be another MPI's; and words
/// of which their `--version` has one.
fn names_and_words(flavor: Flavor) -> (&'static [&'static str], &'static [&'static str]) {
    match flavor {
        Flavor::OpenMpi => (&["mpirun.openmpi", "mpirun", "mpiexec"], &["Open MPI", "OpenRTE"]),
        Flavor::Mpich | Flavor::Standard => {
            (&["mpiexec.mpich", "mpiexec.hydra", "mpiexec", "mpirun"], &["HYDRA", "Hydra", "Intel(R) MPI"])
        }
    }
}

/// The launcher that belongs to a library: beside it, else in PATH.
pub(super) fn of(flavor: Flavor, library: &Path) -> Option<PathBuf> {
    let beside = library.ancestors().skip(1).take(3).map(|folder| folder.join("bin"));
    let folders = beside.chain(path_folders());
    let mut all = folders.flat_map(|f| names_and_words(flavor).0.iter().map(move |n| f.join(n)));
    let mut asked = BTreeMap::new();
    all.find(|path| {
        let Ok(file) = path.canonicalize() else { return false };
        *asked.entry(file).or_insert_with(|| version_of(path).is_some_and(|text| belongs(flavor, &text)))
    })
}

fn version_of(launcher: &Path) -> Option<String> {
    let said = Command::new(launcher).arg("--version").stdin(Stdio::null()).output().ok()?;
    Some(String::from_utf8_lossy(&said.stdout).into_owned())
}

fn belongs(flavor: Flavor, version: &str) -> bool {
    names_and_words(flavor).1.iter().any(|word| version.contains(word))
}

fn path_folders() -> Vec<PathBuf> {
    std::env::var_os("PATH").map(|p| std::env::split_paths(&p).collect()).unwrap_or_default()
}

/// Prefixes of the launchers in PATH.
pub(super) fn prefixes() -> impl Iterator<Item = PathBuf> {
    let has_launcher = |f: &PathBuf| ["mpirun", "mpiexec"].iter().any(|n| f.join(n).exists());
    path_folders().into_iter().filter(has_launcher).filter_map(|f| prefix(&f))
}

/// The prefix of the process that started this one: the launcher's daemon, where a launcher started it.
pub(super) fn parent_prefix() -> Option<PathBuf> {
    let parent = rustix::process::getppid()?;
    let program = std::fs::read_link(format!("/proc/{}/exe", parent.as_raw_nonzero())).ok()?;
    prefix(program.parent()?)
}

fn prefix(bin: &Path) -> Option<PathBuf> {
    (bin.file_name() == Some(OsStr::new("bin"))).then(|| bin.parent().map(Path::to_owned))?
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(text: &str) -> Option<Launched> {
        let all: BTreeMap<&str, &str> =
            text.split_ascii_whitespace().filter_map(|l| l.split_once('=')).collect();
        launched_from(|name| all.get(name).map(|v| (*v).to_owned()))
    }

    #[test]
    fn the_innermost_launcher_says_rank_and_size() {
        let said = |text: &str| from(text).map(|l| (l.kind, l.rank, l.size, l.local_rank, l.local_size));
        let slurm = "SLURM_PROCID=3 SLURM_NTASKS=64 SLURM_LOCALID=1";
        assert_eq!(said(""), None);
        assert_eq!(said(slurm), None, "a batch script is no step");
        let step = format!("{slurm} SLURM_STEP_ID=0");
        assert_eq!(said(&step), Some((Kind::Slurm, 3, 64, Some(1), None)));
        let hydra = format!("{step} PMI_RANK=1 PMI_SIZE=4 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=2");
        assert_eq!(said(&hydra), Some((Kind::Hydra, 1, 4, Some(1), Some(2))));
        let open = format!("{hydra} OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2");
        assert_eq!(said(&open), Some((Kind::OpenMpi, 0, 2, None, None)));
        assert_eq!(said("PMI_RANK=4 PMI_SIZE=4"), None);
        assert_eq!(said("PMI_RANK=x PMI_SIZE=4"), None);
    }

    fn line(flavor: Flavor, start: &Start<'_>) -> String {
        let launcher = Some(PathBuf::from("/opt/bin/mpirun"));
        let mpi = Installed { flavor, version: String::new(), library: PathBuf::new(), launcher };
        let command = command(&mpi, start).unwrap();
        let words = command.get_args().map(|a| a.to_string_lossy().into_owned());
        let set = command.get_envs().filter_map(|(n, v)| Some(format!("{}={}", n.display(), v?.display())));
        let set = set.filter(|s| !s.contains("RUN_AS_ROOT"));
        set.chain(words).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn command_lines_are_those_of_the_launcher() {
        let plain = Start { ranks: 2, cpus: &[], oversubscribe: false };
        assert_eq!(line(Flavor::OpenMpi, &plain), "-n 2 --host localhost:2");
        assert_eq!(line(Flavor::Mpich, &plain), "-n 2 -bind-to core");
        let bound = Start { cpus: &[0, 3], ..plain };
        let said = "MACHMETER_MPI_CPUS=0,3 -n 2";
        assert_eq!(line(Flavor::Standard, &bound), said);
        assert_eq!(line(Flavor::OpenMpi, &bound), format!("{said} --host localhost:2 --bind-to none"));
        let many = Start { ranks: 8, oversubscribe: true, ..plain };
        let said = "-n 8 --host localhost:1 --map-by slot:OVERSUBSCRIBE --bind-to none";
        assert_eq!(line(Flavor::OpenMpi, &many), said);
        let mpi = Installed {
            flavor: Flavor::Mpich,
            version: String::new(),
            library: "/usr/lib/libmpich.so.12".into(),
            launcher: None,
        };
        assert!(matches!(command(&mpi, &plain), Err(Error::NoLauncher { .. })));
        let short = Start { cpus: &[1], ..plain };
        assert!(command(&mpi, &short).unwrap_err().to_string().contains("2 rank(s) on 1 CPU(s)"));
    }

    #[test]
    fn a_launcher_is_known_by_what_it_says() {
        assert!(belongs(Flavor::OpenMpi, "mpirun.openmpi (OpenRTE) 4.1.4"));
        assert!(belongs(Flavor::OpenMpi, "mpirun (Open MPI) 5.0.11"));
        assert!(belongs(Flavor::Standard, "HYDRA build details:\n Version: 5.0.2"));
        assert!(!belongs(Flavor::Mpich, "mpirun (Open MPI) 5.0.11"));
        assert!(of(Flavor::OpenMpi, Path::new("/no/such/lib/libmpi.so")).is_none_or(|p| p.exists()));
    }
}
