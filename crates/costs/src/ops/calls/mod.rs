//! What a system call costs on one CPU with warm caches, each row with a witness that it worked.
//! Page faults must equal touches as the kernel counts them: one fault may serve sixteen pages (lmbench divides).

#[cfg(test)]
mod tests;

use std::path::PathBuf;

use machmeter_data::code::Code;
use machmeter_engine::cost::{Row, Rows};
use machmeter_engine::experiment::CellList;
use machmeter_engine::sampling::Pace;
use machmeter_engine::{Analysis, ProbeError};
use machmeter_sys::call::file::PrivateDirectory;
use machmeter_sys::call::signal::Handler;
use machmeter_sys::file_system::{self, TMPFS};

use super::Params;
use super::cost::{NO_FIGURE, NO_FILES};
use super::prices::{self, Files};
use super::table;
use machmeter_engine::part::{Part, PartContext};
use machmeter_loops::ops::calls as catalog;
use machmeter_loops::ops::calls::PAIRS_PER_VISIT;
use machmeter_loops::ops::repeated::{Planned, one_line};

const PART_NAME: &str = "calls";

machmeter_data::code! { HUGE_DENIED = "W443" "huge pages not granted",
    what: "The system gave no huge pages, or too few of those requested.",
    why: "A page fault that returns a small page does not show the cost of a huge one.",
    how: "The second small page of each huge page is touched, too. A fault there shows that the first page was small.",
    next: "Allow transparent huge pages (/sys/kernel/mm/transparent_hugepage/enabled: madvise) and free memory.",
}

machmeter_data::code! { FAULT_GROUPS = "W444" "faults served in groups",
    what: "The number of page faults differs from the number of first touches: the kernel served several pages with one fault, or the reverse.",
    why: "Time divided by touches would be the cost of an event that happened less often.",
    how: "The kernel's count of the thread's faults (getrusage) against the touches.",
    next: "Check fault_around_bytes in debugfs and large folios of the file system.",
}

pub(super) const PART: Part<Params> = Part { codes: &CODES, ..Part::of(PART_NAME, 35, measure, analyze) };

pub(super) fn with_all<T>(files: &Files, visit: usize, work: impl FnOnce(Vec<Planned<'_>>) -> T) -> T {
    let make = |path: &Result<PathBuf, String>| path.clone().and_then(|path| catalog::Place::make(&path));
    let places = catalog::Places { own: make(&files.own), in_memory: files.in_memory.as_ref().map(make) };
    let handler = Handler::install();
    work(catalog::all(&places, &handler, visit))
}

fn measure(at: &mut PartContext<'_>, params: &Params) -> Result<(), ProbeError> {
    at.host.begin()?;
    let parent = params.files_in();
    // Removed at the end, whatever becomes of the process.
    let own = PrivateDirectory::create(&parent)
        .map_err(|e| format!("no files in {}: {}", parent.display(), one_line(&e)));
    let lies_in_memory = file_system::kind_of(&parent).as_deref() == Some(TMPFS);
    let memory = file_system::directory_in_memory().filter(|_| !lies_in_memory);
    let in_memory = memory.and_then(|parent| PrivateDirectory::create(&parent).ok());
    let path = |directory: &PrivateDirectory| directory.path().to_owned();
    let files = Files {
        own: own.as_ref().map(path).map_err(Clone::clone),
        in_memory: in_memory.as_ref().map(|d| Ok(path(d))),
    };
    let pace = Pace::of(Pace::BATCH_NS, PAIRS_PER_VISIT);
    let cells = prices::cells(PART_NAME, at, params, files, pace)?;
    at.run(cells.into_iter().collect::<CellList<'_>>());
    Ok(())
}

/// Codes of rows without a figure, in the order of the page.
const CODES: [Code; 4] = [NO_FILES, HUGE_DENIED, FAULT_GROUPS, NO_FIGURE];

fn code_of(row: &Row) -> Code {
    let unproven = row.proof.as_ref().is_some_and(|p| p.seen < p.expected);
    match row.operation.as_str() {
        "page_fault_huge" if unproven || row.refused.is_some() => HUGE_DENIED,
        "page_fault_4k" | "page_fault_file" if unproven => FAULT_GROUPS,
        "page_fault_file" if row.refused.is_some() => NO_FILES,
        o if catalog::is_on_files(o) && row.refused.is_some() => NO_FILES,
        _ => NO_FIGURE,
    }
}

fn analyze(_params: &Params, rows: &Rows, _seed: u64) -> Analysis {
    let caption = "Cost of one call on one CPU with warm caches, through the C library; page faults are per fault, as counted by the kernel.";
    table::analysis(rows, PART_NAME, ["System calls", caption], &CODES, code_of)
}
