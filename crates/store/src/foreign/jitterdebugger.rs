//! jitterdebugger's results.json: wake-up latency per CPU. Not stolen time (W706).

use super::codes::{self, warn};
use super::histogram::{self, Layout};
use super::{ForeignError, Imported, Input, Reader};

pub(super) const READER: Reader = Reader {
    name: "jitterdebugger-json",
    description: "jitterdebugger --output DIR: DIR/results.json, wake-up latency per CPU",
    sniff: |input| {
        input.files.len() == 1
            && input.files.iter().all(|f| {
                f.text.trim_start().starts_with('{')
                    && f.text.contains("\"cpu\"")
                    && f.text.contains("\"histogram\"")
                    && !f.text.contains("\"thread\"")
            })
    },
    read,
};

fn read(input: &Input) -> Result<Imported, ForeignError> {
    let layout = Layout {
        format: READER.name,
        threads: "cpu",
        quantity: "wakeup_latency",
        first_edge: 0.0,
        clamps: false,
        unit_ns: |d| match d.pointer("/sysinfo/resolution_in_ns") {
            None => Some(1000.0),
            Some(v) => v.as_f64(),
        },
    };
    let (mut out, _) = histogram::read(input, &layout)?;
    warn(
        &mut out,
        codes::OTHER_QUANTITY,
        "jitterdebugger measures how late a sleeping thread wakes up, not stolen time",
    );
    out.assume("bucket k holds latencies of k to k+1 units of the file's resolution");
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_resolution_scales_the_buckets() {
        let text = r#"{"version": 3, "sysinfo": {"resolution_in_ns": 1}, "cpu": {"3": {"histogram": {"2000": 7}, "max": 2000}}}"#;
        let input = Input {
            files: vec![super::super::SourceFile::new("r.json", text.as_bytes())],
            ..Input::default()
        };
        let out = read(&input).unwrap();
        let t = out.table("noise_histogram").unwrap();
        assert_eq!(t.i32s("cpu").unwrap(), [3]);
        let low = t.column("low_ns").unwrap();
        assert_eq!(low.values, machmeter_data::Values::F64(vec![2000.0]));
    }
}
