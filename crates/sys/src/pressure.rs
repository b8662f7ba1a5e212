//! Pressure stall information: the share of time in which tasks waited for a resource.
//!
//! Source: Linux Documentation/accounting/psi.rst.

use std::io;

use crate::fs_root::FsRoot;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resource {
    Cpu,
    Memory,
    Io,
}

impl Resource {
    pub const ALL: [Self; 3] = [Self::Cpu, Self::Memory, Self::Io];

    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "cpu",
            Self::Memory => "memory",
            Self::Io => "io",
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stall {
    /// Share of about the last 10 s, percent.
    pub average_10s_percent: f64,
    /// Share of about the last 60 s, percent.
    pub average_60s_percent: f64,
    /// Time since the system or the group was started, ns.
    pub total_ns: u64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pressure {
    pub some: Stall,
    /// All tasks that were not idle waited; not reported for the CPU before Linux 5.13.
    pub full: Option<Stall>,
}

impl Pressure {
    /// Reads the kernel's text; `None` if it is not understood or holds a value that is impossible.
    pub fn parse(text: &str) -> Option<Self> {
        let line = |kind: &str| text.lines().find_map(|l| l.strip_prefix(kind)).map(stall);
        let full = line("full ").map_or(Some(None), |full| full.map(Some))?;
        Some(Self { some: line("some ")??, full })
    }
}

/// `avg10=0.75 avg60=5.46 avg300=3.20 total=4031861590`; the total is in us.
fn stall(fields: &str) -> Option<Stall> {
    let value = |key: &str| fields.split_whitespace().find_map(|w| w.strip_prefix(key)?.strip_prefix('='));
    // Averages are sampled, and may pass 100 by a little.
    let percent = |key: &str| value(key)?.parse().ok().filter(|v: &f64| (0.0..=110.0).contains(v));
    Some(Stall {
        average_10s_percent: percent("avg10")?,
        average_60s_percent: percent("avg60")?,
        total_ns: value("total")?.parse::<u64>().ok()?.checked_mul(1_000)?,
    })
}

/// Pressure on `resource` over the machine. Errors: one line with the reason why there is none.
pub fn of_machine(tree: &FsRoot, resource: Resource) -> Result<Pressure, String> {
    let file = &format!("/proc/pressure/{}", resource.name());
    match tree.read(file) {
        Ok(text) => Pressure::parse(&text).ok_or_else(|| format!("{file} holds '{}'", text.trim())),
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            Err(format!("{file} is not there (kernel without CONFIG_PSI; some need psi=1 at boot)"))
        }
        Err(e) if e.raw_os_error() == Some(libc::EOPNOTSUPP) => {
            Err(format!("{file}: pressure information is switched off (boot with psi=1)"))
        }
        Err(e) => Err(format!("{file}: {e}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs_root::tests::tree_of;

    const TEXT: &str = "some avg10=0.75 avg60=5.46 avg300=3.20 total=4031861590\n\
                        full avg10=0.10 avg60=0.20 avg300=0.30 total=12\n";

    #[test]
    fn the_kernels_text_is_read() {
        let pressure = Pressure::parse(TEXT).unwrap();
        assert_eq!((pressure.some.average_10s_percent, pressure.some.average_60s_percent), (0.75, 5.46));
        assert_eq!(pressure.some.total_ns, 4_031_861_590_000);
        assert_eq!(pressure.full.unwrap().total_ns, 12_000);
        let old = Pressure::parse(TEXT.lines().next().unwrap()).unwrap();
        assert_eq!(old.full, None);
    }

    #[test]
    fn impossible_values_are_no_pressure() {
        for (from, to) in
            [("0.75", "-1"), ("0.75", "NaN"), ("0.10", "inf"), ("=12", "=-12"), ("some", "none")]
        {
            assert_eq!(Pressure::parse(&TEXT.replace(from, to)), None, "{to}");
        }
    }

    #[test]
    fn what_is_absent_has_a_reason() {
        let e = of_machine(&tree_of("").1, Resource::Memory).unwrap_err();
        assert!(e.starts_with("/proc/pressure/memory is not there"), "{e}");
    }

    #[test]
    fn this_machines_pressure_is_known_or_has_a_reason() {
        for resource in Resource::ALL {
            let read = of_machine(&FsRoot::host(), resource);
            println!("{resource:?}: {read:?}");
            assert!(
                read.is_ok_and(|p| p.full.is_none_or(|f| f.total_ns <= p.some.total_ns + 1_000_000_000))
                    || !std::path::Path::new("/proc/pressure").exists()
            );
        }
    }
}
