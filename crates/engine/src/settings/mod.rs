//! Putting a setting in force: a command that does its work (a sysctl), or stays as long as it lasts (a scheduler).

mod guard;

use machmeter_sys::process::{Spawn, kill_group_of};

use crate::ProbeError;
use crate::role::Role;
pub use guard::GUARD;
use guard::{END_WITHIN_NS, Reply, Request, STAYS_AFTER_NS};

/// What a guard may take to answer on a busy machine, ns.
const REPLY_WITHIN_NS: u64 = 5_000_000_000;

/// What a guard with nothing to guard may take to end, ns.
const GONE_WITHIN_NS: u64 = 200_000_000;

type Guard = Role<Request, Reply>;

/// Two settings of one machine, A and B. Dropping it ends what a setting left running.
#[derive(Debug)]
pub struct Settings {
    commands: [String; 2],
    in_force: Option<InForce>,
    /// Guards of commands that did their work and left something behind that may still write.
    left_behind: Vec<Guard>,
}

#[derive(Debug)]
struct InForce {
    setting: usize,
    /// What keeps a setting that stays, and the group of its command.
    guard: Option<(Guard, i32)>,
}

impl Settings {
    pub fn new(commands: [String; 2]) -> Self {
        Self { commands, in_force: None, left_behind: Vec::new() }
    }

    /// Puts `setting` (0: A, 1: B) in force, unless it is. An error if a command that stays has died, with its last line.
    pub fn apply(&mut self, setting: usize) -> Result<(), ProbeError> {
        self.check()?;
        if self.in_force.as_ref().is_some_and(|f| f.setting == setting) {
            return Ok(());
        }
        self.end();
        let command = self.commands.get(setting).cloned().unwrap_or_default();
        let guard = self.start(&command).map_err(|why| cannot(setting, &command, &why))?;
        self.in_force = Some(InForce { setting, guard });
        Ok(())
    }

    /// Starts a command; `None` when it has done its work.
    fn start(&mut self, command: &str) -> Result<Option<(Guard, i32)>, String> {
        if command.trim().is_empty() {
            return Err("is empty; use `true` to change nothing".to_owned());
        }
        let spawn = Spawn::worker(GUARD.name).new_group();
        let mut guard = Role::start(spawn).map_err(|e| format!("cannot be started: {e}"))?;
        match guard.ask(&Request::Start(command.to_owned()), STAYS_AFTER_NS + REPLY_WITHIN_NS) {
            Ok(Reply::Stays(group)) => Ok(Some((guard, group))),
            Ok(Reply::Done) => {
                guard.close();
                if guard.peer_mut().wait(GONE_WITHIN_NS).is_none() {
                    self.left_behind.push(guard);
                }
                Ok(None)
            }
            Ok(Reply::Failed(why)) => Err(why),
            Err(e) => Err(format!("the process that guards it {e}")),
        }
    }

    /// Whether the setting in force is still so: to be asked after each segment.
    pub fn check(&mut self) -> Result<(), ProbeError> {
        let Some(InForce { setting, guard: Some((guard, _)) }) = &mut self.in_force else { return Ok(()) };
        let why = match guard.ask(&Request::Check, REPLY_WITHIN_NS) {
            Ok(Reply::Stays(_)) => return Ok(()),
            Ok(Reply::Failed(why)) => why,
            Ok(Reply::Done) => "is not running".to_owned(),
            Err(e) => format!("the process that guards it {e}"),
        };
        let setting = *setting;
        self.end();
        Err(cannot(setting, &self.commands[setting], &why))
    }

    /// Ends a command that stays. The effect of one that had ended by itself remains: it has no undoing.
    pub fn end(&mut self) {
        let Some(InForce { guard: Some((mut guard, group)), .. }) = self.in_force.take() else { return };
        guard.close();
        let ended = guard.peer_mut().wait(2 * END_WITHIN_NS + REPLY_WITHIN_NS);
        if ended.is_none_or(|status| !status.success()) {
            // It cannot have done what it is there for.
            kill_group_of(group);
        }
    }

    pub fn stays(&self) -> bool {
        self.in_force.as_ref().is_some_and(|f| f.guard.is_some())
    }
}

impl Drop for Settings {
    fn drop(&mut self) {
        self.end();
    }
}

fn cannot(setting: usize, command: &str, why: &str) -> ProbeError {
    let name = if setting == 0 { "A" } else { "B" };
    ProbeError::Cannot(format!("setting {name}, `{command}`: {why}"))
}
