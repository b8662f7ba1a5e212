//! From records to events: pure functions over bytes and formats.

use super::format::{EventFormat, Field, PageFormat};
use super::log::{EventKind, Names, TaskState, TraceEvent};
use super::page::Subbuffer;

/// How the records of one event are read: its fields, looked up once.
#[derive(Debug, Clone)]
enum Plan {
    Switch { prev_comm: Field, prev_pid: Field, prev_state: Field, next_comm: Field, next_pid: Field },
    IrqEntry { irq: Field, name: Field },
    IrqExit { irq: Field },
    SoftirqEntry { vec: Field },
    SoftirqExit { vec: Field },
    VectorEntry { name: String },
    VectorExit { name: String },
    PageFault { user: bool, address: Field },
    Nmi { delta_ns: Field },
    WorkStart { function: Field },
    WorkEnd { function: Option<Field> },
    TimerEntry { function: Field },
    TimerExit,
    Other { name: String },
}

impl Plan {
    /// The plan for an event; `None` if it lacks a field that the event has on every kernel known.
    fn of(format: &EventFormat) -> Option<Self> {
        let field = |name: &str| format.field(name).cloned();
        Some(match (format.group.as_str(), format.name.as_str()) {
            ("sched", "sched_switch") => Self::Switch {
                prev_comm: field("prev_comm")?,
                prev_pid: field("prev_pid")?,
                prev_state: field("prev_state")?,
                next_comm: field("next_comm")?,
                next_pid: field("next_pid")?,
            },
            ("irq", "irq_handler_entry") => Self::IrqEntry { irq: field("irq")?, name: field("name")? },
            ("irq", "irq_handler_exit") => Self::IrqExit { irq: field("irq")? },
            ("irq", "softirq_entry") => Self::SoftirqEntry { vec: field("vec")? },
            ("irq", "softirq_exit") => Self::SoftirqExit { vec: field("vec")? },
            ("exceptions", "page_fault_user") => Self::PageFault { user: true, address: field("address")? },
            ("exceptions", "page_fault_kernel") => {
                Self::PageFault { user: false, address: field("address")? }
            }
            ("nmi", "nmi_handler") => Self::Nmi { delta_ns: field("delta_ns")? },
            ("workqueue", "workqueue_execute_start") => Self::WorkStart { function: field("function")? },
            ("workqueue", "workqueue_execute_end") => Self::WorkEnd { function: field("function") },
            ("timer", "hrtimer_expire_entry") => Self::TimerEntry { function: field("function")? },
            ("timer", "hrtimer_expire_exit") => Self::TimerExit,
            ("irq_vectors" | "ipi", name) => {
                match (name.strip_suffix("_entry"), name.strip_suffix("_exit")) {
                    (Some(name), _) => Self::VectorEntry { name: name.to_owned() },
                    (_, Some(name)) => Self::VectorExit { name: name.to_owned() },
                    _ => Self::Other { name: format.name.clone() },
                }
            }
            _ => Self::Other { name: format.name.clone() },
        })
    }

    /// The event in `record`; `None` if the record is too short for a field.
    fn read(&self, record: &[u8], names: &mut Names) -> Option<EventKind> {
        let int = |f: &Field| f.number(record).map(|n| n as i32);
        let small = |f: &Field| f.number(record).and_then(|n| u8::try_from(n).ok());
        let word = |f: &Field| f.number(record).map(|n| n as u64);
        Some(match self {
            Self::Switch { prev_comm, prev_pid, prev_state, next_comm, next_pid } => EventKind::SwitchTo {
                prev_pid: int(prev_pid)?,
                prev_comm: names.intern(prev_comm.text(record)?),
                prev_state: TaskState(word(prev_state)? as u16),
                next_pid: int(next_pid)?,
                next_comm: names.intern(next_comm.text(record)?),
            },
            Self::IrqEntry { irq, name } => {
                EventKind::IrqEntry { irq: int(irq)?, name: names.intern(name.text(record)?) }
            }
            Self::IrqExit { irq } => EventKind::IrqExit { irq: int(irq)? },
            Self::SoftirqEntry { vec } => EventKind::SoftirqEntry { vec: small(vec)? },
            Self::SoftirqExit { vec } => EventKind::SoftirqExit { vec: small(vec)? },
            Self::VectorEntry { name } => EventKind::VectorEntry { name: names.intern(name.as_bytes()) },
            Self::VectorExit { name } => EventKind::VectorExit { name: names.intern(name.as_bytes()) },
            Self::PageFault { user, address } => {
                EventKind::PageFault { user: *user, address: word(address)? }
            }
            Self::Nmi { delta_ns } => EventKind::Nmi { delta_ns: delta_ns.number(record)?.max(0) as u64 },
            Self::WorkStart { function } => EventKind::WorkStart { function: word(function)? },
            Self::WorkEnd { function: None } => EventKind::WorkEnd { function: 0 },
            Self::WorkEnd { function: Some(f) } => EventKind::WorkEnd { function: word(f)? },
            Self::TimerEntry { function } => EventKind::TimerEntry { function: word(function)? },
            Self::TimerExit => EventKind::TimerExit,
            Self::Other { name } => EventKind::Other { name: names.intern(name.as_bytes()) },
        })
    }
}

#[derive(Debug, Clone)]
pub struct Decoder {
    page: PageFormat,
    /// Indexed by event number; a few hundred entries at most.
    plans: Vec<Option<Plan>>,
    names: Names,
    malformed_records: u64,
}

impl Decoder {
    /// A decoder for records of `formats` on sub-buffers of `page`.
    pub fn new(page: PageFormat, formats: &[EventFormat]) -> Self {
        let mut plans = vec![None; formats.iter().map(|f| usize::from(f.id) + 1).max().unwrap_or(0)];
        for format in formats {
            plans[usize::from(format.id)] = Plan::of(format);
        }
        Self { page, plans, names: Names::default(), malformed_records: 0 }
    }

    /// Size of one sub-buffer, the unit in which `trace_pipe_raw` is read.
    pub fn subbuf_bytes(&self) -> usize {
        self.page.subbuf_bytes
    }

    pub fn into_names(self) -> Names {
        self.names
    }

    /// Records met so far that could not be decoded.
    pub fn malformed_records(&self) -> u64 {
        self.malformed_records
    }

    /// Appends the events of one sub-buffer of `cpu` to `events`. Unknown or damaged records
    /// are counted and left out.
    pub fn decode(&mut self, subbuffer: &[u8], cpu: u16, events: &mut Vec<TraceEvent>) {
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
        assert_eq!(decoder.malformed_records(), 3);
        assert!(events.iter().all(|e| e.cpu == 3));
        assert_eq!(events.iter().map(|e| e.ticks).collect::<Vec<_>>(), [110, 120, 130, 140]);
        let names = decoder.into_names();
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
        for subbuffer in bytes.chunks(decoder.subbuf_bytes()) {
            decoder.decode(subbuffer, 1, &mut events);
        }
        (events, decoder)
    }

    #[test]
    fn recorded_pages_decode_as_the_kernel_itself_printed_them() {
        let bytes = std::fs::read(fixture().join("cpu1.raw")).unwrap();
        let (events, decoder) = decode_fixture(&bytes);
        assert_eq!(decoder.malformed_records(), 0);
        assert!(events.is_sorted_by_key(|e| e.ticks));
        let mut counts = BTreeMap::new();
        let names = decoder.into_names();
        let mut lines = Vec::new();
        for event in &events {
            let name = event_name(&event.kind, &names);
            *counts.entry(name.clone()).or_insert(0_u64) += 1;
            lines.push(format!("{} {name}{}", event.ticks, detail(&event.kind, &names)));
        }
        assert!(counts.len() >= 5, "{counts:?}");
        let printed = std::fs::read_to_string(fixture().join("cpu1.printed")).unwrap();
        let printed: Vec<&str> = printed.lines().collect();
        assert_eq!(printed.len(), lines.len());
        for (ours, kernel) in lines.iter().zip(printed) {
            assert_eq!(ours, kernel);
        }
    }

    fn event_name(kind: &EventKind, names: &Names) -> String {
        match kind {
            EventKind::SwitchTo { .. } => "sched_switch".to_owned(),
            EventKind::IrqEntry { .. } => "irq_handler_entry".to_owned(),
            EventKind::IrqExit { .. } => "irq_handler_exit".to_owned(),
            EventKind::SoftirqEntry { .. } => "softirq_entry".to_owned(),
            EventKind::SoftirqExit { .. } => "softirq_exit".to_owned(),
            EventKind::VectorEntry { name } => format!("{}_entry", names.text(*name)),
            EventKind::VectorExit { name } => format!("{}_exit", names.text(*name)),
            EventKind::PageFault { user: true, .. } => "page_fault_user".to_owned(),
            EventKind::PageFault { user: false, .. } => "page_fault_kernel".to_owned(),
            EventKind::Nmi { .. } => "nmi_handler".to_owned(),
            EventKind::WorkStart { .. } => "workqueue_execute_start".to_owned(),
            EventKind::WorkEnd { .. } => "workqueue_execute_end".to_owned(),
            EventKind::TimerEntry { .. } => "hrtimer_expire_entry".to_owned(),
            EventKind::TimerExit => "hrtimer_expire_exit".to_owned(),
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
