//! Converts facts of records from earlier versions to the present form.
//!
//! Earlier versions wrote the parts of some facts as text: `cpus 0,8: package 0 die 0 core 0` for a core in `cpu.topology`, and `performance`, or
//! `performance (CPU 0-3)`, for a governor. [`renew`] turns such texts into maps. No other code handles the old form. A text in neither form is unchanged.

use super::{FactValue, Facts};

/// Facts whose old form was one text for all CPUs, or a list of texts with their CPUs.
const BY_CPU: [&str; 3] = ["power.freq_driver", "power.governor", "power.epp"];

/// Replaces the old form of facts by the present one.
pub(crate) fn renew(facts: &mut Facts) {
    let online = facts.text("cpu.online").map(str::to_owned);
    let mut replace = |path: &str, read: &dyn Fn(&FactValue) -> Option<FactValue>| {
        let Some(value) = facts.0.get_mut(path).and_then(|fact| fact.value.as_mut()) else { return };
        if let Some(renewed) = read(value) {
            *value = renewed;
        }
    };
    replace("cpu.topology", &|value| {
        let cores = value.items()?.iter().map(|line| core(line.text()?));
        Some(FactValue::List(cores.collect::<Option<_>>()?))
    });
    for path in BY_CPU {
        replace(path, &|value| match value {
            FactValue::Text(one) => Some(FactValue::map([(one.clone(), online.as_deref()?.into())])),
            FactValue::List(items) => {
                let each = items.iter().map(|item| with_cpus(item.text()?));
                Some(FactValue::Map(each.collect::<Option<_>>()?))
            }
            _ => None,
        });
    }
}

/// A core as a line: `cpus 5,13: package 1 die 0 core 1 node 1 cache 2`.
fn core(line: &str) -> Option<FactValue> {
    let (cpus, ids) = line.strip_prefix("cpus ")?.split_once(':')?;
    let words: Vec<&str> = ids.split_whitespace().collect();
    let id = |w: &[&str]| Some((w[0].to_owned(), FactValue::Int(w[1].parse().ok()?)));
    let ids = words.chunks_exact(2).filter_map(id);
    Some(FactValue::map(ids.chain([("cpus".to_owned(), cpus.into())])))
}

/// A text with its CPUs: `performance (CPU 4-7)`.
fn with_cpus(text: &str) -> Option<(String, FactValue)> {
    let (name, cpus) = text.strip_suffix(')')?.rsplit_once(" (CPU ")?;
    Some((name.to_owned(), cpus.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Fact;

    fn renewed(path: &str, value: impl Into<FactValue>) -> FactValue {
        let mut facts = Facts::default();
        facts.set("cpu.online", Fact::known("0-7", "/sys"));
        facts.set(path, Fact::known(value, "/sys"));
        renew(&mut facts);
        facts.0.remove(path).unwrap().value.unwrap()
    }

    #[test]
    fn lines_of_cores_become_maps() {
        let lines = vec!["cpus 0,8: package 0 die 0 core 3 cache 2", "cpus 1-2:"];
        let core = FactValue::map([("cpus", "0,8".into())].into_iter().chain(
            [("package", 0_i64), ("die", 0), ("core", 3), ("cache", 2)].map(|(k, id)| (k, id.into())),
        ));
        let expected = FactValue::List(vec![core, FactValue::map([("cpus", "1-2".into())])]);
        assert_eq!(renewed("cpu.topology", lines), expected);
        assert_eq!(renewed("cpu.topology", expected.clone()), expected, "today's form stays");
        let odd = FactValue::from(vec!["cpus 0: core 0", "cores"]);
        assert_eq!(renewed("cpu.topology", odd.clone()), odd);
    }

    #[test]
    fn governors_get_their_cpus() {
        let map = |entries: &[(&str, &str)]| FactValue::map(entries.iter().map(|(k, v)| (*k, (*v).into())));
        assert_eq!(renewed("power.governor", "powersave"), map(&[("powersave", "0-7")]));
        let two = vec!["performance (CPU 4-7)", "powersave (CPU 0-3)"];
        assert_eq!(renewed("power.epp", two), map(&[("performance", "4-7"), ("powersave", "0-3")]));
        assert_eq!(renewed("power.epp", vec!["odd"]), FactValue::from(vec!["odd"]));
        assert_eq!(renewed("power.idle_driver", "acpi"), "acpi".into(), "a text of another fact");
    }
}
