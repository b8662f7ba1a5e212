//! Files that a graph runs over, and the file of what it makes of them.

use std::fs::{self, File};
use std::io::{BufReader, Cursor, ErrorKind, Read};
use std::path::Path;
use std::rc::Rc;

use hound::{SampleFormat, WavReader, WavSpec, WavWriter};
use machmeter_engine::ProbeError;
use machmeter_engine::cost::Fact;
use machmeter_engine::part::PartContext;
use machmeter_engine::probe::Output;
use machmeter_flow::graphs::e_comm::{self, Complex32, Kept};
use machmeter_flow::graphs::noise_removal;
use machmeter_flow::{Graph, Program, Sampling};
use serde::{Deserialize, Serialize};

use crate::Params;
use crate::graphs::PART;
use crate::kernels::Kernel;

/// Bytes of a file at most: more are not read.
const MOST_BYTES: u64 = 1 << 30;
/// Samples of a channel at most: 17 minutes at 16 kHz, of which a run takes seconds.
const MOST_SAMPLES: u64 = 1 << 24;
/// Magnitude of a sample at most: its fourth power, and sums of squares of a frame, are finite.
const MOST_MAGNITUDE: f32 = 1e9;
const C32_BYTES: usize = 8;

/// Graphs that run over files.
const SOUND: &str = "noise_removal";
const RADIO: &str = "e_comm";

/// What graphs run over: their own signals, or those of a file.
#[derive(Default)]
pub(crate) struct Over {
    pub(crate) sound: noise_removal::Parameters,
    pub(crate) radio: e_comm::Parameters,
    given: Option<Given>,
}

/// A file that a graph ran over, and what a receiver found in it.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Given {
    graph: String,
    file: String,
    /// Of a channel.
    samples: u64,
    rate_hz: Option<u32>,
    channels: u16,
    received: Option<Received>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Received {
    frames: u64,
    slips: u64,
    bits: u64,
    bit_errors: u64,
    /// Cycles a symbol.
    frequency: f32,
}

pub(crate) const GIVEN: Fact<Given> = Fact::named("graphs.given");

impl Over {
    /// Reads the file that was asked for.
    /// Errors: options that do not go together, or what is wrong with the file and where; one line.
    pub(crate) fn of(params: &Params) -> Result<Self, ProbeError> {
        let (input, out) = (params.input.as_deref(), params.out.as_deref());
        let Some(option) = input.map(|_| "--in").or(out.map(|_| "--out")) else { return Ok(Self::default()) };
        let wrong = |why: String| ProbeError::Usage(format!("{option}: {why}"));
        let [graph] = params.graph.as_slice() else {
            return Err(wrong(format!("it needs exactly one graph: give --graph {SOUND} or {RADIO}")));
        };
        if ![SOUND, RADIO].contains(&graph.as_str()) {
            return Err(wrong(format!(
                "{graph} processes no file; {SOUND} processes a WAV file, {RADIO} a c32 file"
            )));
        }
        if !params.parts.is_empty() && !params.parts.iter().any(|p| p == PART) {
            return Err(wrong(format!("graphs are not selected; add {PART} to --parts")));
        }
        let Some(path) = input else { return Ok(Self::default()) };
        let same = out.and_then(|out| Some(fs::canonicalize(out).ok()? == fs::canonicalize(path).ok()?));
        if same == Some(true) {
            return Err(ProbeError::Usage(format!(
                "--out {}: it is the file of --in; name another file",
                path.display()
            )));
        }
        let read = if graph == SOUND { read_sound(path) } else { read_radio(path) };
        read.map_err(|why| ProbeError::Usage(format!("--in {}: {why}", path.display())))
    }
}

/// A file to read, and its bytes.
fn open(path: &Path) -> Result<(File, u64), String> {
    let told = |e: std::io::Error| match e.kind() {
        ErrorKind::NotFound => "no such file; check its name and directory".to_owned(),
        ErrorKind::PermissionDenied => "permission denied; make it readable".to_owned(),
        _ => format!("cannot read: {e}"),
    };
    let about = fs::metadata(path).map_err(told)?;
    match about.len() {
        _ if about.is_dir() => Err("it is a directory; name a file in it".to_owned()),
        // What can be read once only cannot be checked before the run.
        _ if !about.is_file() => Err("it is a pipe or a device; copy its samples to a file".to_owned()),
        0 => Err("it is empty; give a file with samples".to_owned()),
        n if n > MOST_BYTES => Err(format!("it has {n} bytes, more than {MOST_BYTES}; shorten it")),
        n => Ok((File::open(path).map_err(told)?, n)),
    }
}

/// A number of samples that can be run over.
fn bounded(samples: u64) -> Result<u64, String> {
    match samples {
        0 => Err("it contains no samples; give a file with samples".to_owned()),
        n if n > MOST_SAMPLES => Err(format!("it has {n} samples, more than {MOST_SAMPLES}; shorten it")),
        n => Ok(n),
    }
}

/// A value that graphs can work with; `which` names the sample, by its number from 0.
fn sound_value(x: f32, which: impl Fn() -> String) -> Result<f32, String> {
    let is = |what: &str| Err(format!("{} is {what} (the first is 0); repair or cut it out", which()));
    match x {
        x if x.is_nan() => is("NaN"),
        x if x.is_infinite() => is("infinite"),
        x if x.abs() > MOST_MAGNITUDE => Err(format!(
            "{} is {x:e}, beyond {MOST_MAGNITUDE:e} (the first is 0); scale all, to 1 for instance",
            which()
        )),
        x => Ok(x),
    }
}

const FORMATS: &str = "PCM of 8, 16, 24 or 32 bits, or float of 32";

fn unreadable(e: &hound::Error) -> String {
    match e {
        hound::Error::IoError(_) => "it is not a WAV file, or truncated; write it again as WAV".to_owned(),
        hound::Error::FormatError(why) => {
            format!("it is not a WAV file that can be read ({why}); write it as WAV with {FORMATS}")
        }
        _ => format!("its WAV format is not supported; write it with {FORMATS}"),
    }
}

/// The mean of all channels of a WAV file; integers are scaled to -1..1.
fn read_sound(path: &Path) -> Result<Over, String> {
    let (file, bytes) = open(path)?;
    let wav = WavReader::new(BufReader::new(file.take(MOST_BYTES))).map_err(|e| unreadable(&e))?;
    let spec = wav.spec();
    let (told, channels) = (u64::from(wav.len()), usize::from(spec.channels));
    if told * u64::from(spec.bits_per_sample) > 8 * bytes {
        let n = told / u64::from(spec.channels);
        return Err(format!(
            "its header announces {n} samples, but {bytes} bytes hold fewer; the file is truncated: write it again"
        ));
    }
    let n = bounded(u64::from(wav.duration()))?;
    let own = noise_removal::Parameters::default();
    if n < own.frame as u64 {
        return Err(format!(
            "it has {n} samples, fewer than the {} of a frame; give a longer file",
            own.frame
        ));
    }
    if spec.sample_rate == 0 {
        return Err("its sampling rate is 0; write it again with its rate".to_owned());
    }
    let mut samples = match spec.sample_format {
        SampleFormat::Float => mean(wav.into_samples::<f32>(), channels),
        SampleFormat::Int => {
            let scale = 0.5_f32.powi(i32::from(spec.bits_per_sample) - 1);
            mean(wav.into_samples::<i32>().map(|x| x.map(|x| x as f32 * scale)), channels)
        }
    }?;
    // The last samples leave the graph when a frame has passed them.
    samples.resize(samples.len() + own.frame - own.hop, 0.0);
    let given = Given::of(SOUND, path, n, Some(spec.sample_rate), spec.channels);
    let rate_hz = f64::from(spec.sample_rate);
    let sound = noise_removal::Parameters { rate_hz, samples: Some(samples), ..own };
    Ok(Over { sound, given: Some(given), ..Over::default() })
}

fn mean(samples: impl Iterator<Item = hound::Result<f32>>, channels: usize) -> Result<Vec<f32>, String> {
    let (mut means, mut sum) = (Vec::new(), 0.0_f64);
    for (i, x) in samples.enumerate() {
        let (n, channel) = (i / channels, i % channels);
        let of = || if channels == 1 { String::new() } else { format!(" of channel {}", channel + 1) };
        sum += f64::from(sound_value(x.map_err(|e| unreadable(&e))?, || format!("sample {n}{}", of()))?);
        if channel + 1 == channels {
            means.push((sum / channels as f64) as f32);
            sum = 0.0;
        }
    }
    Ok(means)
}

/// Pairs of little-endian 32-bit floats, real part first.
fn read_radio(path: &Path) -> Result<Over, String> {
    let (file, bytes) = open(path)?;
    if !bytes.is_multiple_of(C32_BYTES as u64) {
        return Err(format!(
            "{bytes} bytes are not a multiple of a c32 sample of {C32_BYTES} bytes; the file is truncated, or not c32"
        ));
    }
    let n = bounded(bytes / C32_BYTES as u64)?;
    let mut read = Vec::new();
    file.take(bytes).read_to_end(&mut read).map_err(|e| format!("cannot read: {e}"))?;
    let half = |i: usize, x: &[u8; 4]| {
        let part = if i.is_multiple_of(2) { "real" } else { "imaginary" };
        sound_value(f32::from_le_bytes(*x), || format!("the {part} part of sample {}", i / 2))
    };
    let halves = read.as_chunks::<4>().0.iter().enumerate().map(|(i, x)| half(i, x));
    let halves: Vec<f32> = halves.collect::<Result<_, String>>()?;
    let samples: Rc<[Complex32]> =
        halves.as_chunks::<2>().0.iter().map(|[re, im]| Complex32::new(*re, *im)).collect();
    let over = e_comm::Parameters::default().over(samples);
    let radio = over.map_err(|least| {
        format!("it has {n} samples, fewer than the {least} to lock the loops and receive a frame; give a longer file")
    })?;
    Ok(Over { radio, given: Some(Given::of(RADIO, path, n, None, 1)), ..Over::default() })
}

impl Given {
    fn of(graph: &str, path: &Path, samples: u64, rate_hz: Option<u32>, channels: u16) -> Self {
        let (graph, file) = (graph.to_owned(), path.display().to_string());
        Self { graph, file, samples, rate_hz, channels, received: None }
    }

    /// What it was, and what was found in it: one line.
    pub(crate) fn text(&self) -> String {
        let mut text = format!("{} ran over {}: {} samples", self.graph, self.file, self.samples);
        if let Some(hz) = self.rate_hz {
            text.push_str(&format!(" at {hz} Hz"));
        }
        if self.channels > 1 {
            text.push_str(&format!(", the mean of {} channels", self.channels));
        }
        if let Some(r) = &self.received {
            text.push_str(&format!(
                "; {} frames received, {} of them out of step with the own sequence, {} of {} bits wrong, carrier off by {:.5} cycles a symbol",
                r.frames, r.slips, r.bit_errors, r.bits, r.frequency
            ));
        }
        text
    }
}

/// Runs the graph over the file once without any clock: what it gives is for the file asked for, and for a note.
pub(crate) fn run_once(at: &mut PartContext<'_>, params: &Params, over: &Over) {
    let path = params.out.as_ref();
    if path.is_none() && over.given.is_none() {
        return;
    }
    let is_sound = params.graph.iter().any(|g| g == SOUND);
    let (content, received) = if is_sound {
        let n = over.given.as_ref().map(|given| given.samples as usize);
        (cleaned(&over.sound, n, at.host.seed), None)
    } else {
        heard(&over.radio, at.host.seed).map_or_else(|e| (Err(e), None), |(c, r)| (Ok(c), Some(r)))
    };
    at.outputs.extend(path.map(|path| Output { path: path.clone(), content }));
    if let Some(given) = &over.given {
        at.facts.set(&GIVEN, Given { received, ..given.clone() });
    }
}

fn run(g: Graph, seed: u64) -> Result<(), String> {
    let mut program = Program::new(g, Kernel::FAST.choice(1)).map_err(|e| e.to_string())?;
    program.run(Sampling::Never, u64::MAX, seed);
    Ok(())
}

/// The enhanced samples, or so many of them, as a WAV file of one channel.
fn cleaned(p: &noise_removal::Parameters, most: Option<usize>, seed: u64) -> Result<Vec<u8>, String> {
    let (g, report) = noise_removal::graph(Graph::new(SOUND).fused(true), p);
    run(g, seed)?;
    let mut samples = std::mem::take(&mut report.borrow_mut().enhanced);
    samples.truncate(most.unwrap_or(usize::MAX));
    to_wav(&samples, p.rate_hz as u32).map_err(|e| e.to_string())
}

fn to_wav(samples: &[f32], rate_hz: u32) -> hound::Result<Vec<u8>> {
    let mut bytes = Cursor::new(Vec::new());
    let (bits_per_sample, sample_format) = (32, SampleFormat::Float);
    let spec = WavSpec { channels: 1, sample_rate: rate_hz, bits_per_sample, sample_format };
    let mut wav = WavWriter::new(&mut bytes, spec)?;
    samples.iter().try_for_each(|x| wav.write_sample(*x))?;
    wav.finalize()?;
    Ok(bytes.into_inner())
}

/// What the receiver heard as a c32 file, and what it found.
fn heard(p: &e_comm::Parameters, seed: u64) -> Result<(Vec<u8>, Received), String> {
    let kept = Kept::default();
    let p = e_comm::Parameters { heard: Some(Rc::clone(&kept)), ..p.clone() };
    let (g, report) = e_comm::graph(Graph::new(RADIO).fused(true), &p);
    run(g, seed)?;
    let r = report.take();
    let found = Received {
        frames: r.frames_received,
        slips: r.slips,
        bits: r.bits,
        bit_errors: r.bit_errors,
        frequency: r.coarse_frequency + r.residual_frequency,
    };
    Ok((to_c32(&kept.take()), found))
}

fn to_c32(samples: &[Complex32]) -> Vec<u8> {
    samples.iter().flat_map(|x| [x.re, x.im]).flat_map(f32::to_le_bytes).collect()
}

#[cfg(test)]
#[path = "files_tests.rs"]
mod tests;
