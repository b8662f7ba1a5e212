//! Tests of the accounts on planted events.

use machmeter_data::metric::params;
use machmeter_sys::cgroup::Throttled;
use machmeter_sys::trace::{EventKind, NameId, Names, TaskState, TraceEvent};

use super::account::Accounts;
use super::caught::{Keeper, Who};
use super::show::{analyze, tables};
use super::wait::{Holder, Wait};
use super::watch::{Seen, Stranger};

const OWN: i32 = 10;
const SECOND: i32 = 11;
const HOG: i32 = 20;

const RUNNABLE: TaskState = TaskState(0);
const PREEMPTED: TaskState = TaskState(0x100);
const ASLEEP: TaskState = TaskState(1);

fn switch((prev_pid, prev_state): (i32, TaskState), next_pid: i32) -> EventKind {
    let name = names().intern(b"name");
    EventKind::SwitchTo { prev_pid, prev_comm: name, prev_state, next_pid, next_comm: name }
}

fn names() -> Names {
    Names::default()
}

fn any_name() -> NameId {
    names().intern(b"timer")
}

/// The accounts after these events: time, CPU, event.
fn told(events: &[(u64, u16, EventKind)]) -> Accounts {
    let mut accounts = Accounts::default();
    accounts.follow(OWN);
    for (ticks, cpu, kind) in events {
        accounts.event(&TraceEvent { ticks: *ticks, cpu: *cpu, kind: *kind }, |_| "timer".to_owned());
    }
    accounts.end();
    for t in accounts.threads.values() {
        assert!(t.waits > 0 || t.waited_ns == 0);
    }
    let waited: u64 = accounts.threads.values().map(|t| t.waited_ns).sum();
    // The holder of a CPU is unknown until something shows a thread on it.
    let first = accounts.threads.values().map(|t| t.waited_ns).min().unwrap_or(0);
    let unknown = waited - accounts.holders.values().sum::<u64>();
    assert!(unknown == 0 || unknown == 5 && first > 5, "{unknown} of {waited} without a holder");
    accounts
}

fn holder(accounts: &Accounts, holder: Holder) -> u64 {
    accounts.holders.get(&holder).copied().unwrap_or(0)
}

#[test]
fn a_wait_belongs_to_those_who_had_the_cpu() {
    let a = told(&[
        (0, 0, switch((0, RUNNABLE), OWN)),
        // A hog comes, a kernel thread after it, and the program again.
        (100, 0, switch((OWN, PREEMPTED), HOG)),
        (150, 0, switch((HOG, ASLEEP), 30)),
        (160, 0, switch((30, ASLEEP), OWN)),
        // It sleeps, is woken on a CPU that is idle, and runs to the end.
        (200, 0, switch((OWN, ASLEEP), 0)),
        (300, 0, EventKind::Woken { pid: OWN, cpu: 0 }),
        (305, 0, switch((0, RUNNABLE), OWN)),
        (400, 0, switch((OWN, TaskState(0x10)), 0)),
    ]);
    let own = &a.threads[&OWN];
    assert_eq!((own.ran_ns, own.waited_ns, own.waits), (100 + 40 + 95, 65, 2));
    let of = [Holder::Other(HOG), Holder::Other(30), Holder::Waking, Holder::HeldBack].map(|h| holder(&a, h));
    assert_eq!(of, [50, 10, 5, 0]);
    let parts = vec![(Holder::Other(HOG), 50), (Holder::Other(30), 10)];
    assert_eq!(a.longest[0], Wait { tid: OWN, cpu: 0, start_ns: 100, ns: 60, parts });
}

#[test]
fn threads_of_the_program_are_followed_and_told_from_others() {
    let a = told(&[
        (0, 0, switch((HOG, RUNNABLE), OWN)),
        (10, 0, EventKind::Forked { parent: HOG, child: 21 }),
        (10, 0, EventKind::Forked { parent: OWN, child: SECOND }),
        (10, 0, EventKind::Woken { pid: SECOND, cpu: 0 }),
        (50, 0, switch((OWN, PREEMPTED), SECOND)),
        (90, 0, switch((SECOND, PREEMPTED), OWN)),
        // The second one is moved to the other CPU, which the hog has.
        (95, 1, switch((0, RUNNABLE), HOG)),
        (100, 0, EventKind::Moved { pid: SECOND, cpu: 1 }),
        (130, 1, switch((HOG, PREEMPTED), SECOND)),
        (200, 1, switch((SECOND, ASLEEP), HOG)),
    ]);
    assert_eq!(a.threads.keys().copied().collect::<Vec<_>>(), [OWN, SECOND]);
    let [own, second] = [OWN, SECOND].map(|t| (a.threads[&t].ran_ns, a.threads[&t].waited_ns));
    assert_eq!((own, second), ((50 + 110, 40), (40 + 70, 40 + 40)));
    let of = [Holder::Own(OWN), Holder::Own(SECOND), Holder::Other(HOG)].map(|h| holder(&a, h));
    assert_eq!(of, [40 + 10, 40, 30]);
}

#[test]
fn a_stranger_with_the_id_of_a_thread_that_ended_is_not_followed() {
    let a = told(&[
        (0, 0, EventKind::Forked { parent: HOG, child: OWN }),
        (0, 0, switch((HOG, ASLEEP), OWN)),
        (50, 0, switch((OWN, TaskState(0x20)), HOG)),
        (60, 0, EventKind::Forked { parent: HOG, child: OWN }),
        (60, 0, switch((HOG, ASLEEP), OWN)),
        (90, 0, switch((OWN, PREEMPTED), HOG)),
    ]);
    let all: Vec<_> = a.all().map(|(tid, t)| (tid, t.ran_ns, t.waited_ns)).collect();
    assert_eq!(all, [(OWN, 50, 0)], "the program was started by a stranger, too, and had not ended then");
}

#[test]
fn a_quota_is_not_charged_to_those_who_ran_while_it_held_the_program_back() {
    let a = told(&[
        (0, 0, switch((0, RUNNABLE), OWN)),
        (50, 0, switch((OWN, PREEMPTED), 0)),
        (60, 0, switch((0, RUNNABLE), HOG)),
        (75, 0, switch((HOG, ASLEEP), 0)),
        (90, 0, switch((0, RUNNABLE), HOG)),
        // The hog still runs when the quota is filled again.
        (105, 0, switch((HOG, PREEMPTED), OWN)),
        (150, 0, switch((OWN, ASLEEP), 0)),
    ]);
    assert_eq!((holder(&a, Holder::HeldBack), holder(&a, Holder::Other(HOG))), (40, 15));
}

#[test]
fn a_thread_that_came_unseen_is_found_by_its_account() {
    let a = told(&[
        (0, 0, switch((0, RUNNABLE), OWN)),
        (100, 0, switch((OWN, PREEMPTED), HOG)),
        // Not traced: the hog left at 130.
        (170, 0, EventKind::Ran { pid: OWN, runtime_ns: 40 }),
        (200, 0, EventKind::Ran { pid: OWN, runtime_ns: 30 }),
        (200, 0, switch((OWN, ASLEEP), 0)),
    ]);
    let own = &a.threads[&OWN];
    assert_eq!((own.ran_ns, own.waited_ns, holder(&a, Holder::Other(HOG))), (100 + 70, 30, 30));
    // The same of the first thread on a CPU, and of a hog that came after an idle time.
    let a = told(&[
        (5, 0, EventKind::Woken { pid: OWN, cpu: 0 }),
        (50, 0, EventKind::Ran { pid: OWN, runtime_ns: 40 }),
        (60, 0, switch((OWN, PREEMPTED), 0)),
        (80, 0, EventKind::Ran { pid: HOG, runtime_ns: 8 }),
        (80, 0, switch((HOG, ASLEEP), OWN)),
        (90, 0, switch((OWN, ASLEEP), 0)),
    ]);
    let own = &a.threads[&OWN];
    assert_eq!((own.ran_ns, own.waited_ns), (50 + 10, 5 + 20));
    assert_eq!((holder(&a, Holder::HeldBack), holder(&a, Holder::Other(HOG))), (12, 8));
}

#[test]
fn handlers_and_the_hypervisor_take_run_time_and_are_no_wait() {
    let mut events = vec![(0, 0, switch((0, RUNNABLE), OWN))];
    for i in 1..=20 {
        let at = i * 4_000_000;
        events.push((at, 0, EventKind::VectorEntry { name: any_name() }));
        events.push((at + 2, 0, EventKind::SoftirqEntry { vec: 1 }));
        events.push((at + 5, 0, EventKind::SoftirqExit { vec: 1 }));
        // The host stopped the CPU for 1 ms before the tenth tick.
        let runtime_ns = if i == 10 { 3_000_000 } else { 4_000_000 };
        events.push((
            at + 6,
            0,
            EventKind::Ran { pid: OWN, runtime_ns: runtime_ns + if i == 1 { 6 } else { 0 } },
        ));
        events.push((at + 10, 0, EventKind::VectorExit { name: any_name() }));
    }
    // Another CPU brings the account up to date.
    events.push((81_000_000, 1, EventKind::Ran { pid: OWN, runtime_ns: 999_994 }));
    events.push((90_000_000, 0, switch((OWN, ASLEEP), 0)));
    let a = told(&events);
    assert_eq!((a.taken.stolen_ns(), a.taken.handlers["timer"]), (1_000_000, 20 * 10));
    assert_eq!((a.threads[&OWN].ran_ns, a.threads[&OWN].waited_ns), (90_000_000, 0));
}

/// What is shown of a wait of 40 behind the hog and 20 held back, in 100 of run time.
fn seen() -> Seen {
    let accounts = told(&[
        (0, 0, switch((0, RUNNABLE), OWN)),
        (50, 0, switch((OWN, PREEMPTED), HOG)),
        (90, 0, switch((HOG, ASLEEP), 0)),
        (110, 0, switch((0, RUNNABLE), OWN)),
        (160, 0, switch((OWN, ASLEEP), 0)),
    ]);
    let strangers = [(HOG, Stranger { name: "ho\x1b[2Jg".to_owned(), is_kernel: false })].into();
    Seen { accounts, strangers, knows_handlers: true, ..Seen::default() }
}

fn share(seen: &Seen, cause: &str) -> Option<f64> {
    let of = params([("cause", cause.into())]);
    analyze(seen, 1000).metrics.iter().find(|m| m.id == "beside.wait_fraction" && m.params == of)?.value
}

#[test]
fn causes_add_up_and_what_is_unknown_is_not_zero() {
    let mut seen = seen();
    let close = |cause, seen: &Seen, wanted: f64| (share(seen, cause).unwrap() - wanted / 160.0).abs() < 1e-9;
    assert!(
        close("all", &seen, 60.0) && close("other programs", &seen, 40.0) && close("own threads", &seen, 0.0)
    );
    assert!(close("held back by the kernel", &seen, 20.0) && share(&seen, "quota").is_none());
    assert!(
        analyze(&seen, 1000)
            .metrics
            .iter()
            .all(|m| !m.params.values().any(|p| p.to_string() == "hypervisor"))
    );
    let line = analyze(&seen, 1000).summary.lines[0].lines[0].clone();
    assert!(!line.contains('\x1b') && line.contains("waited 60.0 ns for CPU 0"), "{line}");
    seen.throttled = Some(Throttled { periods: 4, throttled_periods: 1, ns: 20 });
    assert!(close("quota", &seen, 20.0));
    // Without a trace, only the quota's own account is known.
    seen.without_trace = Some("needs root".to_owned());
    seen.accounts.holders.clear();
    assert!(close("all", &seen, 60.0) && close("quota", &seen, 20.0) && close("unknown", &seen, 40.0));
    assert_eq!((share(&seen, "other programs"), share(&seen, "own threads")), (None, None));
    let codes: Vec<String> = analyze(&seen, 1000).warnings.into_iter().map(|w| w.code).collect();
    assert_eq!(codes, ["W330", "W332"]);
}

#[test]
fn a_program_that_nobody_saw_has_no_share() {
    let analysis = analyze(&Seen { without_trace: Some("needs root".to_owned()), ..Seen::default() }, 1000);
    let values: Vec<Option<f64>> = analysis.metrics.iter().map(|m| m.value).collect();
    assert_eq!((values, analysis.warnings.len()), (vec![None], 1));
}

#[test]
fn the_first_wait_beyond_the_limit_ends_the_watch_and_the_last_200_ms_are_kept() {
    const MS: u64 = 1_000_000;
    let mut accounts = Accounts::keeping(Some(Keeper::of(2 * MS)));
    accounts.follow(OWN);
    let mut event = |ticks: u64, cpu: u16, kind: EventKind| {
        accounts.event(&TraceEvent { ticks, cpu, kind }, |_| "timer".to_owned());
        accounts.look_for_overdue();
        accounts.keeper.as_ref().unwrap().has_caught()
    };
    // A turn of the hog every 10 ms, 2 ms long: not beyond the limit.
    assert!(!event(1, 0, switch((0, RUNNABLE), OWN)));
    for i in 1..50 {
        assert!(!event(i * 10 * MS, 0, switch((OWN, PREEMPTED), HOG)));
        assert!(!event(i * 10 * MS + 2 * MS, 0, switch((HOG, ASLEEP), OWN)));
    }
    assert!(!event(500 * MS, 0, switch((OWN, PREEMPTED), HOG)));
    // The wait has not ended, but it is too long already.
    assert!(event(503 * MS, 1, switch((0, RUNNABLE), 30)));
    accounts.end();
    let (wait, turns) = accounts.keeper.as_ref().unwrap().caught().unwrap();
    assert_eq!((wait.tid, wait.start_ns, wait.ns), (OWN, 500 * MS, 3 * MS));
    assert_eq!(wait.parts, [(Holder::Other(HOG), 3 * MS)]);
    assert!(turns.iter().all(|t| t.start_ns + t.ns >= 303 * MS), "{turns:?}");
    let of_hog = turns.iter().filter(|t| t.who == Who::Thread(HOG)).count();
    assert_eq!(of_hog, 20, "one per 10 ms, and the one that was caught");
    let seen = Seen { accounts, ..Seen::default() };
    assert_eq!(tables(&seen)[0].rows(), turns_of(&seen));
    let lines = analyze(&seen, 1000).summary.lines;
    assert!(
        lines.iter().any(|l| l.section == "STOPPED" && l.lines[0].contains("waited 3.00 ms")),
        "{lines:?}"
    );
}

fn turns_of(seen: &Seen) -> usize {
    seen.accounts.keeper.as_ref().and_then(Keeper::caught).map_or(0, |c| c.1.len())
}
