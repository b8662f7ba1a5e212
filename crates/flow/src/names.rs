//! The 43 timers of the kernel, by the names of its call tree (Barnes, Gedae, "Runtime Kernel Performance Characterization").

macro_rules! names {
    ($($variant:ident $text:literal $group:ident)*) => {
        /// What the kernel does, as far as it is timed.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Name { $($variant),* }

        impl Name {
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];
            pub const TEXTS: &'static [&'static str] = &[$($text),*];

            pub fn group(self) -> Group {
                match self { $(Self::$variant => Group::$group),* }
            }
        }
    };
}

/// Groups of the published table 2, and what it leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Group {
    Apply,
    RunSchedPass,
    Copies,
    ScheduleState,
    QueueManagement,
    Rest,
}

impl Group {
    pub const ALL: [Self; 6] = [
        Self::Apply,
        Self::RunSchedPass,
        Self::Copies,
        Self::ScheduleState,
        Self::QueueManagement,
        Self::Rest,
    ];

    pub fn text(self) -> &'static str {
        ["apply", "run-sched-pass", "copies", "schedule state", "queue management", "the rest"][self as usize]
    }
}

names! {
    Apply "apply" Apply
    RunSchedPass "run-sched-pass" RunSchedPass
    RunSchedule "run-schedule" Rest
    NextSchedule "next-schedule" ScheduleState
    ExitPending "exit-pending" Rest
    EnterReady "enter-ready" ScheduleState
    ExitReady "exit-ready" ScheduleState
    SetGranularity "set-granularity" Rest
    EnterRunning "enter-running" ScheduleState
    ExitRunning "exit-running" ScheduleState
    EnterPendingPeriodic "enter-pending-periodic" Rest
    EnterPendingRetry "enter-pending-retry" Rest
    Produce "produce" Rest
    Produce1 "produce1" Rest
    UpdateOnProduce "update-on-produce" QueueManagement
    ProduceCopy "produce-copy" Copies
    WriteDqs "write-dqs" Rest
    ReadyToWrite "ready-to-write" Rest
    WriteDq "write-dq" Rest
    WriteDqCopy1 "write-dq-copy1" Copies
    WriteDqCopy2 "write-dq-copy2" Copies
    Consume "consume" Rest
    UpdateOnConsume "update-on-consume" QueueManagement
    ReadDq "read-dq" Rest
    ReadyToRead "ready-to-read" Rest
    ReadDqCopy1 "read-dq-copy1" Copies
    ReadDqCopy2 "read-dq-copy2" Copies
    WriteAmount "write-amount" Rest
    WriteAmount1 "write-amount1" Rest
    WriteAmountCopy "write-amount-copy" Copies
    ReadAmount "read-amount" Rest
    ReadAmountCopy "read-amount-copy" Copies
    ResetSegment "reset-segment" Rest
    ResetMethod "reset-method" Rest
    EndOfSegment "end-of-segment" Rest
    EosMethod "eos-method" Rest
    DestroyMethod "destroy-method" Rest
    ForwardEos "forward-eos" Rest
    DiscardTokens "discard-tokens" Rest
    NextSegment "next-segment" Rest
    EnterDraining "enter-draining" Rest
    SegmentBegin "segment-begin" Rest
    SegmentEnd "segment-end" Rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_43_names_and_each_is_at_its_number() {
        assert_eq!(Name::ALL.len(), 43);
        assert_eq!(Name::TEXTS.len(), 43);
        assert!(Name::ALL.iter().enumerate().all(|(i, n)| *n as usize == i));
    }
}
