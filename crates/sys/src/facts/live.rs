//! Facts that only the running system can tell, by system calls and CPUID.

use std::ffi::CStr;
use std::io;

use machmeter_data::facts::{Fact, FactState, Facts};

use super::{absent, kernel};
use crate::fs_root::FsRoot;
use crate::pseudofs::KernelMount;

pub(super) fn add(facts: &mut Facts) {
    add_hz(facts);
    add_hypervisor(facts);
    add_tracefs(facts);
    facts.set("libc", libc_version());
    let page_size = Fact::known(rustix::param::page_size(), "getauxval(AT_PAGESZ)").with_unit("By");
    facts.set("memory.page_size", page_size);
    // Debugfs may be there without being mounted; reading it tells two things that matter to real-time runs.
    if facts.get("kernel.fair_server_runtime").is_some_and(|f| f.value.is_none())
        && let Ok(mount) = KernelMount::of_debugfs()
    {
        let debug = FsRoot::at(mount.path());
        kernel::add_fair_server(facts, &debug);
        if let Some(model) = kernel::preempt_chosen(&debug) {
            facts.set("kernel.preempt", model);
        }
    }
}

/// Tracefs need not be mounted where others see it: what counts is whether it can be opened.
fn add_tracefs(facts: &mut Facts) {
    if facts.get("limits.tracefs").is_some_and(|f| f.value.is_some()) {
        return;
    }
    let source = "fsopen(tracefs)";
    let fact = match KernelMount::of_tracefs() {
        Ok(_) => Fact::known("mountable", source),
        Err(e) if e.kind() == io::ErrorKind::PermissionDenied => {
            Fact::missing(FactState::Denied, source, e.to_string())
        }
        Err(e) => absent(source, e.to_string()),
    };
    facts.set("limits.tracefs", fact);
}

/// The kernel's coarse clock advances once per tick, and `clock_getres` states by how much: exact, and open to
/// everyone, unlike the kernel's configuration.
fn add_hz(facts: &mut Facts) {
    let source = "clock_getres(CLOCK_MONOTONIC_COARSE)";
    if let Some(hz) = kernel_hz() {
        facts.set("kernel.hz", Fact::known(i64::from(hz), source).with_unit("Hz"));
    }
}

/// Rate of the scheduler's tick, Hz.
pub fn kernel_hz() -> Option<u32> {
    let resolution = rustix::time::clock_getres(rustix::time::ClockId::MonotonicCoarse);
    let ns = u32::try_from(resolution.tv_nsec).ok().filter(|ns| *ns > 0 && resolution.tv_sec == 0)?;
    Some((1e9 / f64::from(ns)).round() as u32)
}

#[cfg(target_arch = "x86_64")]
fn add_hypervisor(facts: &mut Facts) {
    let Some(signature) = crate::clock::hypervisor_signature() else {
        return;
    };
    let name = match signature.as_str() {
        s if s.starts_with("KVM") => "kvm",
        "MicrosoftHv" => "hyperv",
        "VMwareVMware" => "vmware",
        "XenVMMXenVMM" => "xen",
        "VBoxVBoxVBox" => "virtualbox",
        "prlhyperv" | "lrpepyhvr" => "parallels",
        "TCGTCGTCGTCG" => "qemu",
        "bhyvebhyve" => "bhyve",
        "ACRNACRNACRN" => "acrn",
        other => other,
    };
    facts.set("virt.hypervisor", Fact::known(name, "CPUID 0x40000000"));
}

#[cfg(not(target_arch = "x86_64"))]
fn add_hypervisor(_: &mut Facts) {}

#[cfg(target_env = "gnu")]
fn libc_version() -> Fact {
    // SAFETY: takes no arguments and has no preconditions.
    let text = unsafe { libc::gnu_get_libc_version() };
    // SAFETY: never null; a constant string of the library, ended by a zero byte.
    let version = unsafe { CStr::from_ptr(text) };
    match version.to_str() {
        Ok(version) => Fact::known(format!("glibc {version}"), "gnu_get_libc_version()"),
        Err(_) => Fact::missing(FactState::Unreadable, "gnu_get_libc_version()", "not text"),
    }
}

#[cfg(not(target_env = "gnu"))]
fn libc_version() -> Fact {
    Fact::missing(FactState::Unsupported, "libc", "this C library does not tell its version")
}
