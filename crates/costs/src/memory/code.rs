//! What the kernels of this very program do, read back before they are timed: a fact of each run and a finding of its
//! record. Two records with equal fingerprints have run the same loops.

use std::collections::BTreeMap;

use machmeter_data::record::Finding;
use machmeter_sys::kernel;
use machmeter_sys::kernel::decode::{check, fingerprint_of_all};

/// Names of the facts.
const SOUND: &str = "code.sound";
const ALL: &str = "code.kernels";
const WRONG: &str = "code.wrong";
const FINGERPRINT: &str = "code.fingerprint";

/// Reads all kernels (about 2 ms) and tells.
pub(super) fn tell(facts: &mut BTreeMap<String, String>) {
    let (mut all, mut sound, mut wrong) = (0, 0, String::new());
    for k in kernel::all() {
        all += 1;
        match check(k) {
            Ok(()) => sound += 1,
            Err(why) if wrong.is_empty() => wrong = why,
            Err(_) => {}
        }
    }
    let print = fingerprint_of_all(kernel::all());
    for (name, value) in
        [(ALL, all.to_string()), (SOUND, sound.to_string()), (WRONG, wrong), (FINGERPRINT, print)]
    {
        facts.insert(name.to_owned(), value);
    }
}

/// The finding; `None` for rows of a time or place where nothing was told.
pub(super) fn finding(facts: &BTreeMap<String, String>) -> Option<Finding> {
    let (all, sound) = (facts.get(ALL)?, facts.get(SOUND)?);
    let print = facts.get(FINGERPRINT)?;
    let (verdict, text) = if all == sound {
        ("holds", format!("The machine code of all {all} kernels does what they declare."))
    } else {
        let first = facts.get(WRONG).map_or("", String::as_str);
        ("fails", format!("{sound} of {all} kernels do what they declare; first of the others: {first}."))
    };
    Some(Finding {
        id: "memory.kernels".to_owned(),
        verdict: verdict.to_owned(),
        text,
        evidence: vec![format!("fingerprint of their code: {print}")],
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_runs_what_it_declares_and_says_so() {
        let mut facts = BTreeMap::new();
        assert_eq!(finding(&facts), None);
        tell(&mut facts);
        let sound = finding(&facts).unwrap();
        assert_eq!(sound.verdict, "holds", "{sound:?}");
        assert!(sound.evidence[0].ends_with(facts[FINGERPRINT].as_str()) && facts[FINGERPRINT].len() == 16);
        facts.insert(SOUND.to_owned(), "1".to_owned());
        facts.insert(WRONG.to_owned(), "read: declares 8 loads, its code has 7".to_owned());
        let broken = finding(&facts).unwrap();
        assert!(broken.verdict == "fails" && broken.text.contains("its code has 7"), "{broken:?}");
    }
}
