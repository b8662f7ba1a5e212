//! Tests of stored runs: their list, their texts under a code, and their figures without the samples.

#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "tests fail loudly and say what they skip")]

use std::fs;

use crate::program::Lab;

#[test]
fn stored_runs_are_listed_explained_and_exported_without_their_samples() {
    let lab = Lab::new();
    for tag in ["place=first", "place=second"] {
        lab.run(&["noise", "-t", "100ms", "-q", "--tag", tag, "-o", "run.json"]);
    }
    let record = lab.record("run.json");
    // A check on the kind of machine (here: a container, a guest, or rights) is reported, and flags no figure.
    let of_machine: Vec<&str> =
        record.checks.iter().filter(|c| c.of_machine).map(|c| c.id.as_str()).collect();
    assert!(of_machine.contains(&"E111") && of_machine.contains(&"E504"), "{of_machine:?}");
    for m in &record.metrics {
        assert!(!m.flags.iter().any(|f| of_machine.contains(&f.as_str())), "{m:?}");
    }
    let listed = lab.run(&["list", "runs"]).expect(0).stdout.clone();
    let rows: Vec<&str> = listed.lines().collect();
    assert_eq!(rows.len(), 2, "{listed}");
    assert!(rows[0].starts_with("last ") && rows[0].contains("place=second"), "{listed}");
    assert!(
        rows[1].starts_with("last~1") && rows[1].contains(" noise") && rows[1].contains(" kB"),
        "{listed}"
    );
    // Every run judges E101.
    let explained = lab.run(&["explain", "e101", "W301"]).expect(0).stdout.clone();
    let place = |text: &str| explained.find(text).unwrap_or_else(|| panic!("{text}: {explained}"));
    assert!(place("E101") < place("Last run") && place("Last run") < place("What should hold"));
    assert!(place("What should hold") < place("W301") && place("W301") < place("What it means"));
    for file in lab.files().iter().filter(|name| name.ends_with(".parquet")) {
        fs::remove_file(lab.work().join(file)).unwrap();
    }
    for format in ["csv", "markdown", "openmetrics"] {
        let text = lab.run(&["export", "--to", format, "run.json"]).expect(0).stdout.clone();
        assert!(text.contains("stolen_fraction"), "{format}: {text}");
    }
    lab.run(&["export", "--to", "hlog", "run.json"]).refused("noise_");
}

#[test]
fn names_mean_what_they_say() {
    let lab = Lab::new();
    lab.line("noise -t 100ms -q --raw all -o run.json").expect(0);
    let text = fs::read_to_string(lab.work().join("run.json")).unwrap();
    // A pipe, as from a shell's <(...).
    let pipe = lab.work().join("pipe");
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    for (line, told) in [("report pipe", "CPU time taken"), ("export --to csv pipe", "noise.stolen_fraction")]
    {
        std::thread::scope(|scope| {
            scope.spawn(|| fs::write(&pipe, &text).unwrap());
            assert!(lab.line(line).expect(0).stdout.contains(told), "{line}");
        });
    }
    fs::copy(lab.work().join("run.json"), lab.work().join("other.json")).unwrap();
    lab.line("report run.json other.json").refused("give one record");
    lab.line("predict run.json --on run.json").refused("no trace");
    // A dot is part of a name, unless it begins a known extension.
    for (stem, first) in [("run-1.5", "run-1.5.noise_"), ("cut.parquet", "cut.noise_")] {
        lab.run(&["export", "--to", "parquet", "-o", stem, "run.json"]).expect(0);
        assert!(lab.files().iter().any(|f| f.starts_with(first)), "{:?}", lab.files());
    }
    lab.line("export --to parquet -o nowhere/ run.json").failed(4, "no such directory");
    let patterns = lab.line("simulate --pattern list --json").expect(0).stdout.clone();
    let patterns: serde_json::Value = serde_json::from_str(&patterns).unwrap();
    assert!(patterns.as_array().is_some_and(|all| all.iter().any(|p| p["name"] == "ring")), "{patterns}");
}

#[test]
fn what_is_usual_grows_from_five_records() {
    let lab = Lab::new();
    lab.line("noise -t 100ms -q --no-save --raw none -o run.json").expect(0);
    let mut record = serde_json::to_value(lab.record("run.json")).unwrap();
    // A figure that nothing weakens on any machine, for several machines in turn.
    let place = |list: &serde_json::Value, field: &str, is: &serde_json::Value| {
        list.as_array().unwrap().iter().position(|item| item[field] == *is).unwrap()
    };
    let row = place(&record["summary"]["rows"], "section", &"NOISE".into());
    let id = &record["summary"]["rows"][row]["figures"][0]["id"];
    let metric = place(&record["metrics"], "id", id);
    record["metrics"][metric]["quality"] = "ok".into();
    record["metrics"][metric]["value"] = 0.01.into();
    let hypervisor = serde_json::json!({"value": "kvm", "state": "known", "source": "cpuid"});
    record["machine"]["before"]["virt.hypervisor"] = hypervisor;
    let shown = |lab: &Lab| lab.run(&["report", "machine1.json", "--json"]).expect(0).stdout.clone();
    for machine in 1..=5_u8 {
        assert!(machine == 1 || !shown(&lab).contains("\"usual\""), "{machine}");
        record["machine"]["fingerprint"] = format!("{machine:064x}").into();
        let name = format!("machine{machine}.json");
        fs::write(lab.work().join(&name), record.to_string()).unwrap();
        let told = lab.run(&["reference", "add", &name]).expect(0).stdout.clone();
        assert!(told.starts_with("1 records added\n"), "{told}");
        assert!(told.contains(&format!("guest: {machine} machines")), "{told}");
    }
    let told: serde_json::Value = serde_json::from_str(&shown(&lab)).unwrap();
    let usual = &told["summary"]["rows"][row]["figures"][0]["usual"];
    let range = ["low", "high", "n"].map(|field| usual[field].as_f64());
    assert_eq!(range, [0.01, 0.01, 5.0].map(Some), "{usual}");
    lab.run(&["reference", "add", "nothing.json"]).refused("nothing.json");
}

#[test]
fn consumers_read_what_is_exported() {
    let lab = Lab::new();
    lab.run(&["-t", "2s", "-q", "--no-save", "--raw", "all", "-o", "run.json"]);
    for (format, file) in
        [("csv", "run.csv"), ("openmetrics", "run.prom"), ("hlog", "run.hlog"), ("perfetto", "run.perfetto")]
    {
        lab.run(&["export", "--to", format, "run.json", "-o", file]).expect(0);
    }
    let schema = lab.run(&["schema", "record"]).expect(0).stdout.clone();
    fs::write(lab.work().join("record.schema.json"), schema).unwrap();
    let one = lab.line("export --to csv --metric noise.stolen_* run.json").expect(0).stdout.clone();
    let mut chosen = one.lines().skip(1).peekable();
    assert!(chosen.peek().is_some() && chosen.all(|l| l.starts_with("noise.stolen_")), "{one}");
    lab.line("export --to csv --metric nothing* run.json").refused("no metric of this run matches");
    lab.line("export --to hlog --metric noise.* run.json").refused("samples");
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/check-exports");
    let python = std::env::var_os("PYTHON").unwrap_or_else(|| "python3".into());
    let Ok(ended) = std::process::Command::new(python).arg(script).arg(lab.work()).output() else {
        return println!("skipped: python3 is not installed");
    };
    let told = String::from_utf8_lossy(&ended.stdout);
    println!("{told}");
    assert!(ended.status.success(), "{told}{}", String::from_utf8_lossy(&ended.stderr));
}
