//! From records to events: pure functions over bytes and formats.

use super::format::{EventFormat, Field, PageFormat};
use super::log::{EventKind, NameId, Names, TaskState, TraceEvent};
use super::page::Subbuffer;

/// A record, with the fields of its event in the order in which its layout names them.
struct Cells<'a> {
    fields: &'a [Field],
    record: &'a [u8],
    names: &'a mut Names,
}

impl Cells<'_> {
    fn number(&self, field: usize) -> Option<i64> {
        self.fields[field].number(self.record)
    }

    fn int(&self, field: usize) -> Option<i32> {
        self.number(field).map(|n| n as i32)
    }

    fn small(&self, field: usize) -> Option<u8> {
        u8::try_from(self.number(field)?).ok()
    }

    fn cpu(&self, field: usize) -> Option<u16> {
        u16::try_from(self.number(field)?).ok()
    }

    fn name(&mut self, field: usize) -> Option<NameId> {
        Some(self.names.intern(self.fields[field].text(self.record)?))
    }
}

/// `None` if the record is too short for a field.
type Read = fn(&mut Cells<'_>) -> Option<EventKind>;

/// Event of [`EventKind::Ran`]. The default events do not include it: it comes with every switch.
pub const ACCOUNTS: &str = "sched/sched_stat_runtime";

/// Events whose fields are read: their name, fields that they have on every kernel known, and how a record is read.
const LAYOUTS: &[(&str, &[&str], Read)] = &[
    ("sched/sched_switch", &["prev_pid", "prev_comm", "prev_state", "next_pid", "next_comm"], |c| {
        Some(EventKind::SwitchTo {
            prev_pid: c.int(0)?,
            prev_comm: c.name(1)?,
            prev_state: TaskState(c.number(2)? as u16),
            next_pid: c.int(3)?,
            next_comm: c.name(4)?,
        })
    }),
    ("sched/sched_wakeup", &["pid", "target_cpu"], |c| {
        Some(EventKind::Woken { pid: c.int(0)?, cpu: c.cpu(1)? })
    }),
    ("sched/sched_wakeup_new", &["pid", "target_cpu"], |c| {
        Some(EventKind::Woken { pid: c.int(0)?, cpu: c.cpu(1)? })
    }),
    ("sched/sched_migrate_task", &["pid", "dest_cpu"], |c| {
        Some(EventKind::Moved { pid: c.int(0)?, cpu: c.cpu(1)? })
    }),
    ("sched/sched_process_fork", &["parent_pid", "child_pid"], |c| {
        Some(EventKind::Forked { parent: c.int(0)?, child: c.int(1)? })
    }),
    ("irq/irq_handler_entry", &["irq", "name"], |c| {
        Some(EventKind::IrqEntry { irq: c.int(0)?, name: c.name(1)? })
    }),
    ("irq/irq_handler_exit", &["irq"], |c| Some(EventKind::IrqExit { irq: c.int(0)? })),
    ("irq/softirq_entry", &["vec"], |c| Some(EventKind::SoftirqEntry { vec: c.small(0)? })),
    ("irq/softirq_exit", &["vec"], |c| Some(EventKind::SoftirqExit { vec: c.small(0)? })),
    ("exceptions/page_fault_user", &["address"], |c| {
        Some(EventKind::PageFault { user: true, address: c.number(0)? as u64 })
    }),
    ("exceptions/page_fault_kernel", &["address"], |c| {
        Some(EventKind::PageFault { user: false, address: c.number(0)? as u64 })
    }),
    ("timer/hrtimer_expire_entry", &["function"], |c| {
        Some(EventKind::TimerExpired { function: c.number(0)? as u64 })
    }),
    (ACCOUNTS, &["pid", "runtime"], |c| {
        Some(EventKind::Ran { pid: c.int(0)?, runtime_ns: c.number(1)?.max(0) as u64 })
    }),
    ("nmi/nmi_handler", &["delta_ns"], |c| Some(EventKind::Nmi { delta_ns: c.number(0)?.max(0) as u64 })),
];

/// How the records of one event are read: its fields, looked up once, or only its name.
#[derive(Debug, Clone)]
enum Plan {
    Fields(Read, Vec<Field>),
    Name(fn(NameId) -> EventKind, String),
}

impl Plan {
    /// The plan for an event; `None` if it lacks a field of its layout.
    fn of(format: &EventFormat) -> Option<Self> {
        let event = format!("{}/{}", format.group, format.name);
        if let Some((_, fields, read)) = LAYOUTS.iter().find(|(name, ..)| *name == event) {
            let fields = fields.iter().map(|name| format.field(name).cloned()).collect::<Option<_>>()?;
            return Some(Self::Fields(*read, fields));
        }
        let vector =
            Some(format.name.as_str()).filter(|_| ["irq_vectors", "ipi"].contains(&&format.group[..]));
        let entry = vector.and_then(|name| name.strip_suffix("_entry"));
        let exit = vector.and_then(|name| name.strip_suffix("_exit"));
        Some(match (entry, exit) {
            (Some(name), _) => Self::Name(|name| EventKind::VectorEntry { name }, name.to_owned()),
            (_, Some(name)) => Self::Name(|name| EventKind::VectorExit { name }, name.to_owned()),
            _ => Self::Name(|name| EventKind::Other { name }, format.name.clone()),
        })
    }

    fn read(&self, record: &[u8], names: &mut Names) -> Option<EventKind> {
        match self {
            Self::Fields(read, fields) => read(&mut Cells { fields, record, names }),
            Self::Name(kind, name) => Some(kind(names.intern(name.as_bytes()))),
        }
    }
}

#[derive(Debug, Clone)]
pub(super) struct Decoder {
    pub(super) page: PageFormat,
    /// Indexed by event number; a few hundred entries at most.
    plans: Vec<Option<Plan>>,
    pub(super) names: Names,
    /// Records met so far that could not be decoded.
    pub(super) malformed_records: u64,
}

impl Decoder {
    /// A decoder for records of `formats` on sub-buffers of `page`.
    pub(super) fn new(page: PageFormat, formats: &[EventFormat]) -> Self {
        let mut plans = vec![None; formats.iter().map(|f| usize::from(f.id) + 1).max().unwrap_or(0)];
        for format in formats {
            plans[usize::from(format.id)] = Plan::of(format);
        }
        Self { page, plans, names: Names::default(), malformed_records: 0 }
    }

    /// Appends the events of a sub-buffer of `cpu`; unknown or damaged records are counted and left out.
    pub(super) fn decode(&mut self, subbuffer: &[u8], cpu: u16, events: &mut Vec<TraceEvent>) {
        let Some(mut records) = Subbuffer::open(subbuffer, &self.page) else {
            self.malformed_records += 1;
            return;
        };
        for record in records.by_ref() {
            let id = record.bytes.first_chunk().map(|b| usize::from(u16::from_ne_bytes(*b)));
            let plan = id.and_then(|id| self.plans.get(id)?.as_ref());
            match plan.and_then(|p| p.read(record.bytes, &mut self.names)) {
                Some(kind) => events.push(TraceEvent { ticks: record.ticks, cpu, kind }),
                None => self.malformed_records += 1,
            }
        }
        self.malformed_records += u64::from(records.is_damaged());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::page::tests::{HEADER, encode};
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::path::PathBuf;

    const COMMON: &str = "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n";

    fn format(group: &str, name: &str, id: u16, fields: &str) -> EventFormat {
        EventFormat::parse(group, &format!("name: {name}\nID: {id}\nformat:\n{COMMON}{fields}")).unwrap()
    }

    fn decoder() -> Decoder {
        let irq = "\tfield:int irq;\toffset:8;\tsize:4;\tsigned:1;\n\
                   \tfield:__data_loc char[] name;\toffset:12;\tsize:4;\tsigned:0;\n";
        let vec = "\tfield:unsigned int vec;\toffset:8;\tsize:4;\tsigned:0;\n";
        let formats = [
            format("irq", "irq_handler_entry", 5, irq),
            format("irq", "softirq_entry", 6, vec),
            format("irq_vectors", "local_timer_entry", 7, ""),
            format("kvm", "kvm_exit", 9, ""),
        ];
        Decoder::new(PageFormat::parse(HEADER).unwrap(), &formats)
    }

    fn record(id: u16, words: &[u32], tail: &[u8]) -> Vec<u8> {
        let mut bytes = id.to_ne_bytes().to_vec();
        bytes.resize(8, 0);
        bytes.extend(words.iter().flat_map(|w| w.to_ne_bytes()));
        bytes.extend(tail);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    #[test]
    fn known_records_become_events_and_unknown_ones_are_counted() {
        let page = encode(
            100,
            &[
                (110, record(5, &[24, 5 << 16 | 16], b"eth0\0")),
                (120, record(6, &[9], &[])),
                (130, record(7, &[236], &[])),
                (140, record(9, &[], &[])),
                (150, record(8, &[], &[])),
                (160, record(6, &[], &[])),
                (170, record(6, &[300], &[])),
            ],
        );
        let (mut decoder, mut events) = (decoder(), Vec::new());
        decoder.decode(&page, 3, &mut events);
        assert_eq!(decoder.malformed_records, 3);
        assert!(events.iter().all(|e| e.cpu == 3));
        assert_eq!(events.iter().map(|e| e.ticks).collect::<Vec<_>>(), [110, 120, 130, 140]);
        let names = decoder.names;
        let EventKind::IrqEntry { irq: 24, name } = events[0].kind else { panic!("{events:?}") };
        assert_eq!(names.text(name), "eth0");
        assert_eq!(events[1].kind, EventKind::SoftirqEntry { vec: 9 });
        let EventKind::VectorEntry { name } = events[2].kind else { panic!("{events:?}") };
        assert_eq!(names.text(name), "local_timer");
        let EventKind::Other { name } = events[3].kind else { panic!("{events:?}") };
        assert_eq!(names.text(name), "kvm_exit");
    }

    proptest! {
        #[test]
        fn random_bytes_never_panic(page in prop::collection::vec(any::<u8>(), 0..2_000)) {
            let mut events = Vec::new();
            decoder().decode(&page, 0, &mut events);
            prop_assert!(events.len() <= page.len() / 4);
        }
    }

    fn fixture() -> PathBuf {
        PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/trace")
    }

    /// Formats of the fixture: one file, each event headed by `== group`.
    fn fixture_formats() -> (PageFormat, Vec<EventFormat>) {
        let text = std::fs::read_to_string(fixture().join("formats.txt")).unwrap();
        let formats = text.split("== ").skip(1).map(|part| {
            let (group, text) = part.split_once('\n').unwrap();
            EventFormat::parse(group, text).unwrap()
        });
        let header = std::fs::read_to_string(fixture().join("header_page")).unwrap();
        (PageFormat::parse(&header).unwrap(), formats.collect())
    }

    fn decode_fixture(bytes: &[u8]) -> (Vec<TraceEvent>, Decoder) {
        let (page, formats) = fixture_formats();
        let mut decoder = Decoder::new(page, &formats);
        let mut events = Vec::new();
        for subbuffer in bytes.chunks(decoder.page.subbuf_bytes) {
            decoder.decode(subbuffer, 1, &mut events);
        }
        (events, decoder)
    }

    #[test]
    fn recorded_pages_decode_as_the_kernel_itself_printed_them() {
        let bytes = std::fs::read(fixture().join("cpu1.raw")).unwrap();
        let (events, decoder) = decode_fixture(&bytes);
        assert_eq!(decoder.malformed_records, 0);
        assert!(events.is_sorted_by_key(|e| e.ticks));
        let mut counts = BTreeMap::new();
        let names = decoder.names;
        let mut lines = Vec::new();
        for event in &events {
            let name = event_name(&event.kind, &names);
            *counts.entry(name.clone()).or_insert(0_u64) += 1;
            lines.push(format!("{} {name}{}", event.ticks, detail(&event.kind, &names)));
        }
        assert!(counts.len() >= 5, "{counts:?}");
        let printed = std::fs::read_to_string(fixture().join("cpu1.printed")).unwrap();
        let printed: Vec<&str> = printed.lines().collect();
        assert_eq!(lines, printed);
    }

    fn event_name(kind: &EventKind, names: &Names) -> String {
        match kind {
            EventKind::SwitchTo { .. } => "sched_switch".to_owned(),
            EventKind::Woken { .. } => "sched_wakeup".to_owned(),
            EventKind::Moved { .. } => "sched_migrate_task".to_owned(),
            EventKind::Forked { .. } => "sched_process_fork".to_owned(),
            EventKind::IrqEntry { .. } => "irq_handler_entry".to_owned(),
            EventKind::IrqExit { .. } => "irq_handler_exit".to_owned(),
            EventKind::SoftirqEntry { .. } => "softirq_entry".to_owned(),
            EventKind::SoftirqExit { .. } => "softirq_exit".to_owned(),
            EventKind::VectorEntry { name } => format!("{}_entry", names.text(*name)),
            EventKind::VectorExit { name } => format!("{}_exit", names.text(*name)),
            EventKind::PageFault { user: true, .. } => "page_fault_user".to_owned(),
            EventKind::PageFault { user: false, .. } => "page_fault_kernel".to_owned(),
            EventKind::TimerExpired { .. } => "hrtimer_expire_entry".to_owned(),
            EventKind::Ran { .. } => "sched_stat_runtime".to_owned(),
            EventKind::Nmi { .. } => "nmi_handler".to_owned(),
            EventKind::Other { name } => names.text(*name).to_owned(),
        }
    }

    /// The parts of an event that the kernel's own text shows too; a state is the letter of its lowest bit.
    fn detail(kind: &EventKind, names: &Names) -> String {
        match kind {
            EventKind::SwitchTo { prev_pid, prev_comm, prev_state, next_pid, next_comm } => format!(
                " {}:{prev_pid} {} {}:{next_pid}",
                names.text(*prev_comm),
                "SDTtXZPI".chars().nth(prev_state.0.trailing_zeros() as usize).unwrap_or('R'),
                names.text(*next_comm)
            ),
            EventKind::IrqEntry { irq, name } => format!(" {irq} {}", names.text(*name)),
            EventKind::IrqExit { irq } => format!(" {irq}"),
            EventKind::SoftirqEntry { vec } | EventKind::SoftirqExit { vec } => {
                format!(" {}", crate::trace::softirq_name(*vec))
            }
            _ => String::new(),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn damaged_recordings_never_panic(changes in prop::collection::vec((any::<usize>(), any::<u8>()), 1..20)) {
            let mut bytes = std::fs::read(fixture().join("cpu1.raw")).unwrap();
            for (at, value) in changes {
                let at = at % bytes.len();
                bytes[at] = value;
            }
            let _ = decode_fixture(&bytes);
        }
    }
}
