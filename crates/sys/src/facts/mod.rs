//! Facts about the machine that a reader of a result needs: every one a value with unit and source, or the reason why
//! there is none.
//!
//! One file per area; each reads through a [`FsRoot`], so that recorded machines can be captured too. What only a system
//! call can tell (the module `live`) is added on the running system. Everything under `private.` names the machine and is
//! removed from a result that is made anonymous.

pub(crate) mod activity;
mod cgroup;
mod cpu;
mod kernel;
mod limits;
mod live;
mod load;
pub(crate) mod memory;
mod power;
mod virt;

use std::io;

use machmeter_data::facts::{Fact, FactState, FactValue, Facts};

use crate::fs_root::FsRoot;

pub use live::kernel_hz;

/// The facts of the running system; about 2 ms on a small machine.
pub fn capture() -> Facts {
    let tree = FsRoot::host();
    let mut facts = capture_tree(&tree);
    live::add(&mut facts);
    activity::add_live(&mut facts);
    facts
}

fn capture_tree(tree: &FsRoot) -> Facts {
    let mut facts = Facts::default();
    cpu::add(&mut facts, tree);
    power::add(&mut facts, tree);
    memory::add(&mut facts, tree);
    kernel::add(&mut facts, tree);
    virt::add(&mut facts, tree);
    cgroup::add(&mut facts, tree);
    limits::add(&mut facts, tree);
    load::add(&mut facts, tree);
    activity::add(&mut facts, tree);
    facts.set("private.hostname", text(tree, "proc/sys/kernel/hostname"));
    facts
}

/// The facts that say which machine this is, and that neither a reboot nor another kernel changes. A fingerprint is
/// made over these, so that results of one machine can be found again without its name.
pub fn fingerprint_keys() -> &'static [&'static str] {
    &[
        "cpu.vendor",
        "cpu.model",
        "cpu.family",
        "cpu.model_number",
        "cpu.stepping",
        "cpu.present",
        "cpu.packages",
        "cpu.caches",
        "memory.total",
        "memory.nodes",
        "virt.hypervisor",
        "virt.product",
    ]
}

fn absent(source: impl Into<String>, why: impl Into<String>) -> Fact {
    Fact::missing(FactState::Absent, source, why)
}

fn unread(error: &io::Error, source: &str) -> Fact {
    match error.kind() {
        io::ErrorKind::NotFound => absent(source, "no such file on this system"),
        io::ErrorKind::PermissionDenied => {
            Fact::missing(FactState::Denied, source, "the system does not let this user read it")
        }
        _ => Fact::missing(FactState::Unreadable, source, error.to_string()),
    }
}

/// The fact of a value, or that there is none, for this reason.
fn known_or<V: Into<FactValue>>(value: Option<V>, source: &str, why: impl Into<String>) -> Fact {
    value.map_or_else(|| absent(source, why), |value| Fact::known(value, source))
}

/// The fact of a list; an empty one says that there is none, for this reason.
fn list_or<V: Into<FactValue>>(list: Vec<V>, source: &str, why: &str) -> Fact {
    known_or(Some(list).filter(|l| !l.is_empty()), source, why)
}

/// The fact that a file makes through `parse`; a file that makes no sense is `unreadable`.
fn from_file<V: Into<FactValue>>(tree: &FsRoot, file: &str, parse: impl FnOnce(&str) -> Option<V>) -> Fact {
    let source = format!("/{file}");
    match tree.read(file) {
        Err(e) => unread(&e, &source),
        Ok(text) => parse(&text).map_or_else(
            || {
                let start: String = text.lines().next().unwrap_or_default().chars().take(60).collect();
                Fact::missing(FactState::Unreadable, &source, format!("not understood: `{start}`"))
            },
            |value| Fact::known(value, &source),
        ),
    }
}

/// The whole text of a file; empty text is a value too.
fn text(tree: &FsRoot, file: &str) -> Fact {
    from_file(tree, file, |t| Some(t.to_owned()))
}

fn int(tree: &FsRoot, file: &str, unit: &str) -> Fact {
    in_unit(from_file(tree, file, |t| t.parse::<i64>().ok()), unit)
}

/// A file of 0 or 1.
fn flag(tree: &FsRoot, file: &str) -> Fact {
    from_file(tree, file, |t| match t {
        "0" | "N" => Some(false),
        "1" | "Y" => Some(true),
        _ => None,
    })
}

/// The choice in brackets of a file like `always [madvise] never`.
fn chosen(tree: &FsRoot, file: &str) -> Fact {
    from_file(tree, file, |t| Some(t.split_once('[')?.1.split_once(']')?.0.to_owned()))
}

/// Units belong to values only.
fn in_unit(fact: Fact, unit: &str) -> Fact {
    if fact.value.is_some() { fact.with_unit(unit) } else { fact }
}

/// The value of the first line `key<spaces>:<spaces>value`.
pub(crate) fn field<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then_some(value.trim())
    })
}

#[cfg(test)]
mod tests;
