//! Where a group of ours can be made: the hierarchies of versions 1 and 2, and this process's own place in them.
//!
//! Sources: `cgroups(7)`, `cgroup_namespaces(7)`, Linux Documentation/admin-guide/cgroup-v2.rst ("No Internal Process
//! Constraint", "Delegation").

use super::Controller;
use crate::fs_root::FsRoot;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Version {
    /// A hierarchy per controller.
    One,
    Two,
}

/// The directory under which a group for some controllers is to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Parent {
    pub(super) version: Version,
    /// Relative to the tree's root, without a leading slash.
    pub(super) directory: String,
    /// The group this process is in, relative as well: where members of ours go back to.
    pub(super) own: String,
    pub(super) controllers: Vec<Controller>,
    /// Controllers that must first be switched on in `cgroup.subtree_control` (root of version 2 only).
    pub(super) enable: Vec<Controller>,
}

pub(super) type Refusal = (Controller, String);

/// The parents for all of `controllers`, one a hierarchy. Errors: the first that cannot be had, and why.
pub(super) fn parents(tree: &FsRoot, controllers: &[Controller]) -> Result<Vec<Parent>, Refusal> {
    let mut parents: Vec<Parent> = Vec::new();
    let mut unified = Vec::new();
    for controller in controllers.iter().copied() {
        let place = place(tree, controller).map_err(|cause| (controller, cause))?;
        if place.version == Version::Two {
            unified.push(controller);
            continue;
        }
        match parents.iter_mut().find(|p| p.directory == place.directory) {
            Some(parent) => parent.controllers.push(controller),
            None => parents.push(Parent {
                version: Version::One,
                own: place.directory.clone(),
                directory: place.directory,
                controllers: vec![controller],
                enable: Vec::new(),
            }),
        }
    }
    if let Some(first) = unified.first() {
        let place = place(tree, *first).map_err(|cause| (*first, cause))?;
        parents.push(unified_parent(tree, &place, &unified)?);
    }
    for parent in &parents {
        writable(tree, &parent.directory).map_err(|cause| (parent.controllers[0], cause))?;
    }
    Ok(parents)
}

/// A group, and the top of what can be seen of its hierarchy; both relative to the tree's root.
pub(crate) struct Place {
    version: Version,
    pub(crate) directory: String,
    pub(crate) mount: String,
}

/// This process's own group for `controller`.
pub(crate) fn place(tree: &FsRoot, controller: Controller) -> Result<Place, String> {
    let membership = tree.read("proc/self/cgroup").map_err(|e| format!("/proc/self/cgroup: {e}"))?;
    let mounts = tree.read("proc/self/mountinfo").map_err(|e| format!("/proc/self/mountinfo: {e}"))?;
    let name = controller.name();
    let (one, two) = (group_of(&membership, name), group_of(&membership, ""));
    let (version, path, kind) = match (one, two) {
        (Some(path), _) => (Version::One, path, "cgroup"),
        (None, Some(path)) => (Version::Two, path, "cgroup2"),
        (None, None) => return Err(format!("this kernel has no control groups with the {name} controller")),
    };
    if path.split('/').any(|part| part == "..") {
        return Err("this process's own group lies outside of its control group namespace".to_owned());
    }
    let option = (version == Version::One).then_some(name);
    let (mount, root) = mount_of(&mounts, kind, option).ok_or_else(|| {
        format!("the hierarchy of the {name} controller is mounted nowhere this process can see")
    })?;
    // In a container the path may be one of the host's; what is mounted then is the container's own group.
    let below = path.strip_prefix(root.trim_end_matches('/')).unwrap_or("").trim_matches('/');
    let mount = mount.trim_matches('/').to_owned();
    let directory = if below.is_empty() { mount.clone() } else { format!("{mount}/{below}") };
    if tree.exists(&directory) {
        Ok(Place { version, directory, mount })
    } else {
        Err(format!(
            "/{directory}, where this process's own group should be, is not there (another control group namespace)"
        ))
    }
}

/// The groups of a process (`self` or its id) for `controller`, version 1 before 2, from its own up to what is mounted below
/// `/sys/fs/cgroup`. In a container the path may be the host's; the mount then is the container's group.
pub(crate) fn groups_above(tree: &FsRoot, process: &str, controller: &str) -> Vec<String> {
    const MOUNT: &str = "sys/fs/cgroup";
    let membership = tree.text(&format!("proc/{process}/cgroup")).unwrap_or_default();
    let named = |name: &str| format!("{MOUNT}/{name}");
    let together = ["cpu,cpuacct", "cpuacct,cpu"].into_iter().filter(|_| controller == "cpu");
    let one = std::iter::once(controller).chain(together).map(named).find(|m| tree.exists(m));
    let unified = Some(named("unified")).filter(|m| tree.exists(&format!("{m}/cgroup.procs")));
    let mut groups = Vec::new();
    for (mount, name) in [(one, controller), (Some(unified.unwrap_or_else(|| MOUNT.to_owned())), "")] {
        let Some((mount, path)) = mount.zip(group_of(&membership, name)) else { continue };
        let path = path.trim_matches('/');
        let above = std::iter::successors(Some(path), |path| Some(path.rsplit_once('/')?.0));
        let inside = above.filter(|path| !path.is_empty() && !path.split('/').any(|part| part == ".."));
        groups.extend(inside.map(|path| format!("{mount}/{path}")).chain([mount.clone()]));
    }
    groups
}

/// The path after the controllers in `/proc/PID/cgroup`: line `4:cpu,cpuacct:/path`, or `0::/path` for version 2 (name "").
pub(crate) fn group_of<'a>(membership: &'a str, name: &str) -> Option<&'a str> {
    membership.lines().find_map(|line| {
        let mut parts = line.splitn(3, ':');
        let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
        controllers.split(',').any(|c| c == name).then_some(path)
    })
}

/// Mount point and root of the first mount of file system `kind` with `option` in its super-block.
pub(crate) fn mount_of<'a>(
    mountinfo: &'a str,
    kind: &str,
    option: Option<&str>,
) -> Option<(&'a str, &'a str)> {
    mountinfo.lines().find_map(|line| {
        let (before, after) = line.split_once(" - ")?;
        let mut after = after.split(' ');
        let fits = after.next()? == kind
            && option.is_none_or(|o| after.next_back().is_some_and(|s| s.split(',').any(|x| x == o)));
        let mut before = before.split(' ').skip(3);
        let (root, at) = (before.next()?, before.next()?);
        fits.then_some((at, root))
    })
}

const DELEGATE: &str =
    "start it in a group of its own: systemd-run --scope -p Delegate=yes (with --user when not root)";

/// Below which group of version 2 a child gets all of `controllers`: the own one if it is the root, since others
/// with processes hand none on; else the one above, unless that would escape a limit of the own.
fn unified_parent(tree: &FsRoot, own: &Place, controllers: &[Controller]) -> Result<Parent, Refusal> {
    let words = |directory: &str, file: &str| -> Vec<String> {
        let text = tree.text(&format!("{directory}/{file}")).unwrap_or_default();
        text.split_whitespace().map(str::to_owned).collect()
    };
    let first_missing = |list: &[String]| {
        controllers.iter().copied().find(|c| !list.iter().any(|word| word.as_str() == c.name()))
    };
    let parent = |directory: &str, enable: Vec<Controller>| Parent {
        version: Version::Two,
        directory: directory.to_owned(),
        own: own.directory.clone(),
        controllers: controllers.to_vec(),
        enable,
    };
    let here = words(&own.directory, "cgroup.controllers");
    if let Some(missing) = first_missing(&here) {
        let name = missing.name();
        let cause = format!(
            "group /{} was not given the {name} controller (its cgroup.controllers: '{}'); it may be switched off at boot, \
             or the group above must pass it on: {DELEGATE}",
            own.directory,
            here.join(" ")
        );
        return Err((missing, cause));
    }
    let handed_on = words(&own.directory, "cgroup.subtree_control");
    let Some(missing) = first_missing(&handed_on) else { return Ok(parent(&own.directory, Vec::new())) };
    // Every group but the root of the hierarchy has a type.
    if !tree.exists(&format!("{}/cgroup.type", own.directory)) {
        let enable =
            controllers.iter().copied().filter(|c| !handed_on.iter().any(|w| w.as_str() == c.name()));
        return Ok(parent(&own.directory, enable.collect()));
    }
    let above = own.directory.rsplit_once('/').map(|(above, _)| above);
    let above = above.filter(|a| a.len() >= own.mount.len());
    let sibling = above.filter(|a| first_missing(&words(a, "cgroup.subtree_control")).is_none());
    let limits = [("memory.max", "max"), ("memory.high", "max"), ("cpu.max", "max"), ("cpu.weight", "100")];
    let limited = limits
        .into_iter()
        .chain([("cpuset.cpus", "")])
        .any(|(file, none)| words(&own.directory, file).first().is_some_and(|word| word != none));
    match (sibling, limited) {
        (Some(above), false) if writable(tree, above).is_ok() => Ok(parent(above, Vec::new())),
        _ => {
            let processes = words(&own.directory, "cgroup.procs").len();
            let cause = format!(
                "group /{} holds {processes} processes, and in version 2 a group with processes cannot pass the {} \
                 controller on; {DELEGATE}",
                own.directory,
                missing.name()
            );
            Err((missing, cause))
        }
    }
}

/// Whether a group can be made in `directory`, which is asked without making one.
fn writable(tree: &FsRoot, directory: &str) -> Result<(), String> {
    let access = rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK;
    let path = tree.root().join(directory);
    // The effective user counts, as it does when the group is made.
    rustix::fs::accessat(rustix::fs::CWD, &path, access, rustix::fs::AtFlags::EACCESS)
        .map_err(|errno| refusal(directory, &errno.into()))
}

pub(super) fn refusal(directory: &str, error: &std::io::Error) -> String {
    match error.raw_os_error() {
        Some(libc::EROFS) => format!(
            "/{directory} is mounted read-only (container); run outside of it or with its control groups writable"
        ),
        Some(libc::EACCES | libc::EPERM) => {
            format!("no permission to make a group in /{directory}; run as root, or {DELEGATE}")
        }
        Some(libc::EAGAIN) => {
            format!("/{directory} may have no more groups (cgroup.max.descendants or depth)")
        }
        _ => format!("/{directory}: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fs_root::tests::tree_of;

    const V1_MOUNTS: &str = "32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\\n\
                             35 31 0:32 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\\n\
                             41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
    const V2_MOUNTS: &str =
        "26 24 0:23 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw,nsdelegate,memory_recursiveprot\n";
    use Controller::{Cpu, Cpuset, Memory, Pids};

    fn with<T>(recording: &str, ask: impl FnOnce(&FsRoot) -> T) -> T {
        ask(&tree_of(recording).1)
    }

    #[test]
    fn version_one_groups_lie_in_a_hierarchy_per_controller() {
        let recording = format!(
            "proc/self/cgroup\t4:memory:/a/b\\n1:cpu,cpuacct:/\\n0::/\nproc/self/mountinfo\t{V1_MOUNTS}\
             sys/fs/cgroup/memory/a/b/cgroup.procs\t1\nsys/fs/cgroup/cpu,cpuacct/cgroup.procs\t1\n\
             sys/fs/cgroup/unified/cgroup.controllers\t\n"
        );
        with(&recording, |tree| {
            let found = parents(tree, &[Cpu, Memory]).unwrap();
            let directories: Vec<_> = found.iter().map(|p| (p.version, p.directory.as_str())).collect();
            let one = Version::One;
            assert_eq!(directories, [(one, "sys/fs/cgroup/cpu,cpuacct"), (one, "sys/fs/cgroup/memory/a/b")]);
            let (controller, cause) = parents(tree, &[Cpu, Pids]).unwrap_err();
            assert_eq!(controller, Pids);
            assert!(cause.contains("was not given the pids controller"), "{cause}");
        });
    }

    #[test]
    fn a_containers_mount_is_its_own_group() {
        let recording = "proc/self/cgroup\t4:memory:/docker/0123\\n3:cpuset:/docker/0123/x\n\
             proc/self/mountinfo\t1 2 0:3 /docker/0123 /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\\n\
             1 2 0:3 /docker/0123 /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n\
             sys/fs/cgroup/memory/cgroup.procs\t1\nsys/fs/cgroup/cpuset/x/cgroup.procs\t1\n";
        with(recording, |tree| {
            let found = parents(tree, &[Memory, Cpuset]).unwrap();
            assert_eq!(found[0].directory, "sys/fs/cgroup/memory");
            assert_eq!(found[1].directory, "sys/fs/cgroup/cpuset/x");
        });
        let outside = recording.replace("/docker/0123\\n3", "/../other\\n3");
        with(&outside, |tree| {
            assert!(
                parents(tree, &[Memory]).unwrap_err().1.contains("outside of its control group namespace")
            );
        });
    }

    #[test]
    fn the_root_of_version_two_hands_controllers_on() {
        let recording = format!(
            "proc/self/cgroup\t0::/\nproc/self/mountinfo\t{V2_MOUNTS}\
             sys/fs/cgroup/cgroup.controllers\tcpuset cpu io memory pids\n\
             sys/fs/cgroup/cgroup.subtree_control\tmemory pids\n"
        );
        with(&recording, |tree| {
            let found = parents(tree, &[Cpu, Memory]).unwrap();
            assert_eq!((found[0].directory.as_str(), &found[0].enable), ("sys/fs/cgroup", &vec![Cpu]));
            assert!(parents(tree, &[Memory]).unwrap()[0].enable.is_empty());
        });
    }

    fn scope(own_limit: &str) -> String {
        let slice = "sys/fs/cgroup/user.slice/app.slice";
        format!(
            "proc/self/cgroup\t0::/user.slice/app.slice/term.scope\nproc/self/mountinfo\t{V2_MOUNTS}\
             {slice}/cgroup.subtree_control\tmemory pids\n\
             {slice}/term.scope/cgroup.type\tdomain\n\
             {slice}/term.scope/cgroup.controllers\tcpu memory pids\n\
             {slice}/term.scope/cgroup.subtree_control\t\n\
             {slice}/term.scope/cgroup.procs\t10\\n11\\n12\n\
             {slice}/term.scope/memory.max\t{own_limit}\n"
        )
    }

    #[test]
    fn beside_a_scope_with_processes_but_never_past_its_limits() {
        with(&scope("max"), |tree| {
            let found = parents(tree, &[Memory, Pids]).unwrap();
            assert_eq!(found[0].directory, "sys/fs/cgroup/user.slice/app.slice");
            assert_eq!(found[0].own, "sys/fs/cgroup/user.slice/app.slice/term.scope");
            // The slice does not pass the cpu controller on, and switching it on would change the share of others.
            let (controller, cause) = parents(tree, &[Cpu]).unwrap_err();
            assert_eq!(controller, Cpu);
            assert!(cause.contains("holds 3 processes") && cause.contains("Delegate=yes"), "{cause}");
        });
        with(&scope("1073741824"), |tree| {
            let (_, cause) = parents(tree, &[Memory]).unwrap_err();
            assert!(cause.contains("cannot pass the memory controller on"), "{cause}");
        });
    }

    #[test]
    fn nothing_known_is_a_cause_of_its_own() {
        with("proc/stat\tx\n", |tree| {
            assert!(parents(tree, &[Cpu]).unwrap_err().1.starts_with("/proc/self/cgroup: "));
        });
        with("proc/self/cgroup\t2:cpuset:/\nproc/self/mountinfo\t\n", |tree| {
            assert!(
                parents(tree, &[Cpu]).unwrap_err().1.contains("no control groups with the cpu controller")
            );
            assert!(parents(tree, &[Cpuset]).unwrap_err().1.contains("mounted nowhere"));
        });
    }
}
