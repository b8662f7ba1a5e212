use super::*;
use crate::ops::repeated::filled;
use machmeter_sys::call::file::c_path;
use machmeter_sys::kernel;
use machmeter_sys::pages::Pages;

const PAIRS: u64 = 4;

/// A visit as the sampler does it: warm-up, then pairs, of which the second is not finished.
fn visit(subject: &mut impl Subject, (short, long): (u64, u64)) {
    subject.prepare().unwrap();
    assert!(subject.run(short));
    for pair in 0..PAIRS {
        assert!(subject.run(short) && (pair == 1 || subject.run(long)) && subject.partners_moved());
    }
    subject.leave();
}

#[track_caller]
fn proven(subject: &mut impl Subject, least: u64) {
    let p = subject.proof().unwrap();
    assert!(p.seen == p.expected && p.expected >= least, "{p:?}");
}

#[test]
fn streams_are_witnessed_by_the_kernel_and_by_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("stream");
    let name = c_path(&path).unwrap();
    let pair = STREAM_TURNS.0 + STREAM_TURNS.1;
    let mut opens = Opens::new(name.clone());
    let mut closes = Closes::new(name.clone());
    for _ in 0..2 {
        visit(&mut opens, STREAM_TURNS);
        visit(&mut closes, STREAM_TURNS);
    }
    proven(&mut opens, 2 * (PAIRS - 1) * pair);
    proven(&mut closes, 2 * (PAIRS - 1) * pair);
    assert!(opens.open.capacity() == STREAMS && opens.open.is_empty() && closes.open.is_empty());
    for lines in [false, true] {
        let mut prints = Prints::new(name.clone(), lines);
        visit(&mut prints, (500, 1_000));
        proven(&mut prints, if lines { 25 * 5_000 } else { 5_000 });
    }

    // What the loop says and the witness does not see has no proof: another file, a file emptied, lines taken away.
    opens.prepare().unwrap();
    assert!(opens.run(2));
    std::fs::rename(&path, folder.path().join("other")).unwrap();
    std::fs::write(&path, "").unwrap();
    opens.leave();
    closes.prepare().unwrap();
    assert!(closes.run(3));
    std::fs::write(&path, "x").unwrap();
    closes.leave();
    let (opened, closed) = (opens.proof().unwrap(), closes.proof().unwrap());
    assert_eq!((opened.expected - opened.seen, closed.expected - closed.seen), (2, 2));
}

#[test]
fn streams_that_fail_are_neither_priced_nor_counted() {
    let mut opens = Opens::new(c"/nowhere/at/all".to_owned());
    assert!(!opens.run(3));
    opens.leave();
    assert!(opens.proof().is_none());
    assert!(Closes::new(c"/nowhere/at/all".to_owned()).prepare().is_err());
    if std::path::Path::new("/dev/full").exists() {
        let mut prints = Prints::new(c"/dev/full".to_owned(), false);
        prints.prepare().unwrap();
        assert!(prints.run(5) && !prints.partners_moved(), "nothing is kept");
        prints.leave();
        assert!(prints.proof().is_none());
    }
}

fn areas<'a>(pages: &'a Pages, name: &str, claimed: usize) -> Vec<Area<'a>> {
    let area = |offset: usize| {
        let extent = pages.extent().part(offset, 16 * STEP_BYTES).unwrap();
        let memory = pages.extent().part(offset, claimed * STEP_BYTES).unwrap().atomics();
        let ready = kernel::named(name).unwrap().ready(2, [extent; 3], STEP_BYTES as u64).unwrap();
        Area { ready, memory }
    };
    vec![area(0), area(32 * STEP_BYTES)]
}

#[test]
fn words_that_were_not_read_or_written_are_missed() {
    let pages = filled(1 << 16, 1).unwrap();
    let mut reads = Reads::new(areas(&pages, "read.strided8", 16));
    visit(&mut reads, (3, 6));
    proven(&mut reads, 16 * 30);
    let mut writes = Writes::new(areas(&pages, "write.strided8", 16));
    visit(&mut writes, (3, 6));
    visit(&mut writes, (3, 6));
    proven(&mut writes, 2 * 2 * 15);
    // Loops that do 16 of 24 words.
    let mut reads = Reads::new(areas(&pages, "read.strided8", 24));
    let mut writes = Writes::new(areas(&pages, "write.strided8", 24));
    visit(&mut reads, (3, 6));
    visit(&mut writes, (3, 6));
    for p in [reads.proof().unwrap(), writes.proof().unwrap()] {
        assert!(p.seen < p.expected, "{p:?}");
    }
    let mut idle = Writes::new(areas(&pages, "write.strided8", 16));
    idle.prepare().unwrap();
    idle.leave();
    assert!(idle.proof().is_none(), "nothing was written");
}
