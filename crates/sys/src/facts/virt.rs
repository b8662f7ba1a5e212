//! Hypervisors and containers, and the time a hypervisor kept for itself.

use machmeter_data::facts::{Fact, Facts};

use super::{absent, field, from_file, in_unit, known_or, text};
use crate::counters::stat::NS_PER_TICK;
use crate::fs_root::FsRoot;

const DMI: &str = "sys/class/dmi/id";

pub(super) fn add(facts: &mut Facts, tree: &FsRoot) {
    facts.set("virt.hypervisor", hypervisor(tree));
    facts.set("virt.product", product(tree));
    facts.set("virt.chassis", chassis(tree));
    facts.set("virt.container", container(tree));
    let steal = from_file(tree, "proc/stat", |stat| {
        let ticks: u64 =
            stat.lines().next()?.strip_prefix("cpu ")?.split_whitespace().nth(7)?.parse().ok()?;
        ticks.checked_mul(NS_PER_TICK)
    });
    facts.set("virt.steal", in_unit(steal, "ns"));
}

/// The hypervisor as files show it; `none` only if the CPU says so. CPUID adds its name on the running system.
fn hypervisor(tree: &FsRoot) -> Fact {
    if let Some(kind) = tree.text("sys/hypervisor/type") {
        return Fact::known(kind, "/sys/hypervisor/type");
    }
    let vendor = tree.text(&format!("{DMI}/sys_vendor")).unwrap_or_default();
    let product = tree.text(&format!("{DMI}/product_name")).unwrap_or_default();
    let known = [
        ("QEMU", "kvm"),
        ("KVM", "kvm"),
        ("Amazon EC2", "kvm"),
        ("Google", "kvm"),
        ("VMware", "vmware"),
        ("innotek", "virtualbox"),
        ("VirtualBox", "virtualbox"),
        ("Xen", "xen"),
        ("Microsoft Corporation", "hyperv"),
        ("Parallels", "parallels"),
    ];
    let flags =
        tree.read_start("proc/cpuinfo", 8192).ok().and_then(|c| field(&c, "flags").map(str::to_owned));
    let flagged = flags.as_deref().map(|f| f.split_whitespace().any(|flag| flag == "hypervisor"));
    if flagged == Some(false) {
        return Fact::known("none", "/proc/cpuinfo flags");
    }
    let named = known.iter().find(|(text, _)| vendor.contains(text) || product.contains(text));
    // Some of these vendors build bare machines too: on x86-64 the flag decides, elsewhere the product must say it.
    let virtual_product = product.contains("Virtual") || product.contains("KVM") || product.contains("VM");
    match named {
        Some((_, name)) if flagged == Some(true) || virtual_product => {
            Fact::known(*name, format!("/{DMI}/sys_vendor"))
        }
        _ if flagged == Some(true) => Fact::known("unnamed", "/proc/cpuinfo flags"),
        _ => absent(format!("/{DMI}"), "nothing here tells a hypervisor from bare metal"),
    }
}

/// Maker and model of the machine, by DMI or device tree.
fn product(tree: &FsRoot) -> Fact {
    let model = "sys/firmware/devicetree/base/model";
    if tree.exists(model) {
        return text(tree, model);
    }
    let maker = tree.text(&format!("{DMI}/sys_vendor")).unwrap_or_default();
    from_file(tree, &format!("{DMI}/product_name"), |name| Some(format!("{maker} {name}")))
}

/// Desktop, laptop, server, ... as the firmware says: the property of a device tree, or the type of SMBIOS 3.7, table 17.
fn chassis(tree: &FsRoot) -> Fact {
    let property = "sys/firmware/devicetree/base/chassis-type";
    if tree.exists(property) {
        return text(tree, property);
    }
    from_file(tree, &format!("{DMI}/chassis_type"), |code| {
        Some(match code.parse().ok()? {
            3_u32 | 4 | 6 | 7 | 13 | 35 | 36 => "desktop",
            8 | 9 | 10 | 14 => "laptop",
            31 | 32 => "convertible",
            17 | 23 | 25 | 28 | 29 => "server",
            33 | 34 => "embedded",
            _ => "other",
        })
    })
}

/// Namespaces of this process with the inode numbers that the kernel gives to the first of each kind (`include/linux/proc_ns.h`).
const FIRST_NAMESPACES: [(&str, u64); 3] = [("pid", 0xEFFF_FFFC), ("ipc", 0xEFFF_FFFF), ("uts", 0xEFFF_FFFE)];

/// Whether this process shares the namespaces of the host; `None` where they cannot be read. Marker files alone prove nothing: an image of a virtual machine
/// may have been made from that of a container.
fn is_on_host(tree: &FsRoot) -> Option<bool> {
    let is_first = |(name, first): &(&str, u64)| Some(tree.inode(&format!("proc/self/ns/{name}"))? == *first);
    let all: Option<Vec<bool>> = FIRST_NAMESPACES.iter().map(is_first).collect();
    Some(all?.into_iter().all(|first| first))
}

/// The container runtime; `none` in the namespaces of the host and without any sign of a runtime.
fn container(tree: &FsRoot) -> Fact {
    match is_on_host(tree) {
        Some(true) => Fact::known("none", "/proc/self/ns"),
        is_on_host => {
            let found = marked_container(tree);
            let unnamed = is_on_host == Some(false) && found.text() == Some("none");
            if unnamed { Fact::known("a container", "/proc/self/ns") } else { found }
        }
    }
}

/// The container runtime by the files that it leaves.
fn marked_container(tree: &FsRoot) -> Fact {
    for (file, name) in [(".dockerenv", "docker"), ("run/.containerenv", "podman")] {
        if tree.exists(file) {
            return Fact::known(name, format!("/{file}"));
        }
    }
    if let Some(name) = tree.text("run/systemd/container").filter(|t| !t.is_empty()) {
        return Fact::known(name, "/run/systemd/container");
    }
    let membership = tree.text("proc/1/cgroup").or_else(|| tree.text("proc/self/cgroup"));
    for name in ["docker", "kubepods", "lxc", "libpod", "containerd"] {
        if membership.as_deref().is_some_and(|m| m.contains(name)) {
            return Fact::known(name, "/proc/1/cgroup");
        }
    }
    known_or(membership.map(|_| "none"), "/proc/1/cgroup", "no marker file and no cgroup to look at")
}
