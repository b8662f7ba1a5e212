//! Files as users have them: formats, and what is wrong with them.

use std::path::PathBuf;

use tempfile::{TempDir, tempdir};

use super::*;

fn file(folder: &TempDir, bytes: &[u8]) -> PathBuf {
    let path = folder.path().join("x");
    fs::write(&path, bytes).unwrap();
    path
}

fn asked(graph: &[&str], input: Option<PathBuf>, out: Option<PathBuf>) -> Params {
    let graph = graph.iter().map(|g| (*g).to_owned()).collect();
    Params { graph, input, out, ..Params::default() }
}

fn refusal(params: &Params) -> String {
    let text = Over::of(params).err().unwrap().to_string();
    assert_eq!(text.lines().count(), 1, "{text}");
    text
}

fn tone(n: usize) -> Vec<f32> {
    (0..n).map(|i| 0.7 * (i as f32 * 0.05).sin()).collect()
}

/// A WAV file whose channel c has the samples times c + 1, divided by the number of channels.
fn wav(samples: &[f32], channels: u16, bits_per_sample: u16, sample_format: SampleFormat) -> Vec<u8> {
    let mut bytes = Cursor::new(Vec::new());
    let spec = WavSpec { channels, sample_rate: 44_100, bits_per_sample, sample_format };
    let mut wav = WavWriter::new(&mut bytes, spec).unwrap();
    let full = (2.0_f64.powi(i32::from(bits_per_sample) - 1)) - 1.0;
    for x in samples {
        for c in 1..=channels {
            let x = x * f32::from(c) / f32::from(channels);
            match sample_format {
                SampleFormat::Float => wav.write_sample(x).unwrap(),
                SampleFormat::Int => wav.write_sample((f64::from(x) * full).round() as i32).unwrap(),
            }
        }
    }
    wav.finalize().unwrap();
    bytes.into_inner()
}

#[test]
fn all_formats_and_channels_give_the_same_samples() {
    let folder = tempdir().unwrap();
    let truth = tone(600);
    for (bits, format, step) in [
        (8, SampleFormat::Int, 1.0 / 64.0),
        (16, SampleFormat::Int, 1e-4),
        (24, SampleFormat::Int, 1e-6),
        (32, SampleFormat::Int, 1e-6),
        (32, SampleFormat::Float, 1e-7),
    ] {
        for channels in [1, 2, 3] {
            let over = read_sound(&file(&folder, &wav(&truth, channels, bits, format))).unwrap();
            // The mean of 1/n, 2/n ... 1.
            let part = (f32::from(channels) + 1.0) / (2.0 * f32::from(channels));
            let samples = over.sound.samples.as_ref().unwrap();
            assert_eq!((samples.len(), over.sound.rate_hz), (600 + 256, 44_100.0));
            assert!(samples[600..].iter().all(|x| *x == 0.0));
            let off = samples.iter().zip(&truth).map(|(x, y)| (x - part * y).abs()).fold(0.0, f32::max);
            assert!(off < step, "{bits} bits, {channels} channels: off by {off}");
            let said = over.given.unwrap().text();
            assert_eq!(said.contains(&format!("the mean of {channels} channels")), channels > 1, "{said}");
            assert!(said.contains("600 samples at 44100 Hz"), "{said}");
        }
    }
}

#[test]
fn what_is_written_is_read_again() {
    let folder = tempdir().unwrap();
    let truth = tone(1000);
    let over = read_sound(&file(&folder, &to_wav(&truth, 8_000).unwrap())).unwrap();
    assert_eq!(over.sound.samples.as_ref().unwrap()[..1000], truth);
    let clean = cleaned(&over.sound, Some(1000), 1).unwrap();
    let again = read_sound(&file(&folder, &clean)).unwrap();
    assert_eq!((again.given.unwrap().samples, again.sound.rate_hz), (1000, 8_000.0));
    // A tone is no noise: each sample stands where it stood.
    let clean = again.sound.samples.unwrap();
    let product = |x: &[f32], y: &[f32]| x.iter().zip(y).map(|(x, y)| x * y).sum::<f32>();
    for part in [200..600, 600..1000] {
        let (x, y) = (&truth[part.clone()], &clean[part]);
        assert!(product(x, y) > 0.9 * (product(x, x) * product(y, y)).sqrt() && product(y, y) > 0.0);
    }

    let (bytes, truth) = heard(&e_comm::Parameters::default(), 1).unwrap();
    let over = read_radio(&file(&folder, &bytes)).unwrap();
    let (again, found) = heard(&over.radio, 1).unwrap();
    assert!(again == bytes && found.bits > 0);
    assert_eq!(format!("{found:?}"), format!("{truth:?}"));
}

#[test]
fn silence_and_the_loudest_samples_stay_finite() {
    let folder = tempdir().unwrap();
    for level in [0.0, MOST_MAGNITUDE] {
        let square: Vec<f32> = (0..2048).map(|i| if i / 8 % 2 == 0 { level } else { -level }).collect();
        let over = read_sound(&file(&folder, &to_wav(&square, 8_000).unwrap())).unwrap();
        // What is not finite would be refused here.
        read_sound(&file(&folder, &cleaned(&over.sound, None, 1).unwrap())).unwrap();
        let n = over.radio.least_samples() as usize;
        let square: Vec<Complex32> = (0..n).map(|i| Complex32::new(square[i % 2048], 0.0)).collect();
        let over = read_radio(&file(&folder, &to_c32(&square))).unwrap();
        let (_, found) = heard(&over.radio, 1).unwrap();
        assert!(found.frames == 0 && found.frequency.is_finite(), "{found:?}");
    }
}

#[test]
fn bad_values_are_refused_with_their_number() {
    let folder = tempdir().unwrap();
    for (bad, said) in [
        (f32::NAN, "NaN"),
        (f32::INFINITY, "infinite"),
        (f32::NEG_INFINITY, "infinite"),
        (-2e9, "-2e9, beyond 1e9"),
    ] {
        let mut samples = tone(2000);
        samples[1234] = bad;
        let path = file(&folder, &to_wav(&samples, 8_000).unwrap());
        let text = refusal(&asked(&[SOUND], Some(path.clone()), None));
        assert!(text.contains(&format!("{}: sample 1234 is {said}", path.display())), "{text}");
        let path = file(&folder, &wav(&samples, 2, 32, SampleFormat::Float));
        let text = refusal(&asked(&[SOUND], Some(path), None));
        assert!(text.contains("sample 1234 of channel 1 is") || said.starts_with('-'), "{text}");

        let mut samples = vec![Complex32::ONE; 100_000];
        samples[77_777].im = bad;
        let text = refusal(&asked(&[RADIO], Some(file(&folder, &to_c32(&samples))), None));
        assert!(text.contains(&format!("the imaginary part of sample 77777 is {said}")), "{text}");
    }
}

#[test]
fn files_that_are_no_samples_are_refused() {
    let folder = tempdir().unwrap();
    let good = wav(&tone(600), 1, 16, SampleFormat::Int);
    let mut alaw = good.clone();
    alaw[20] = 6;
    let mut streamed = good.clone();
    streamed[40..44].fill(0xff);
    streamed[40] = 0xfe;
    let mut without_rate = good.clone();
    without_rate[24..32].fill(0);
    let bits_64 = {
        let mut of = wav(&tone(600), 1, 32, SampleFormat::Float);
        let at = of.windows(4).position(|w| w == b"fmt ").unwrap() + 8;
        of[at + 8..at + 16].copy_from_slice(&[64, 31, 0, 0, 0, 250, 0, 0]);
        of[at + 12..at + 16].copy_from_slice(&(64_000_u32).to_le_bytes());
        (of[at + 4], of[at + 5]) = (64, 31);
        (of[at + 12], of[at + 14]) = (8, 64);
        of
    };
    for (bytes, said) in [
        (&b""[..], "it is empty"),
        (b"not a sound at all, but some text", "it is not a WAV file"),
        (&good[..10], "it is not a WAV file"),
        (&good[..43], "it is not a WAV file"),
        (&good[..900], "its header announces 600 samples, but 900 bytes hold fewer"),
        (&streamed, "the file is truncated"),
        (&alaw, "its WAV format is not supported"),
        (&bits_64, "it is not a WAV file that can be read"),
        (&without_rate, "its sampling rate is 0"),
        (&wav(&[], 1, 16, SampleFormat::Int), "no samples"),
        (&wav(&tone(511), 1, 16, SampleFormat::Int), "it has 511 samples, fewer than the 512 of a frame"),
    ] {
        let text = refusal(&asked(&[SOUND], Some(file(&folder, bytes)), None));
        assert!(text.starts_with("--in ") && text.contains(said), "{text}");
    }
    for (bytes, said) in [
        (vec![], "it is empty"),
        (vec![0; 801], "801 bytes are not a multiple of a c32 sample"),
        (vec![0; 800], "it has 100 samples, fewer than the"),
    ] {
        let text = refusal(&asked(&[RADIO], Some(file(&folder, &bytes)), None));
        assert!(text.contains(said), "{text}");
    }
    // A file of holes is as long as it says, and takes no room.
    let path = file(&folder, b"");
    for (bytes, said) in
        [(MOST_BYTES + 8, "1073741824; shorten it"), (8 * MOST_SAMPLES + 8, "16777216; shorten it")]
    {
        File::options().write(true).open(&path).unwrap().set_len(bytes).unwrap();
        let text = refusal(&asked(&[RADIO], Some(path.clone()), None));
        assert!(text.contains(said), "{text}");
    }
    for (path, said) in [
        (folder.path().to_owned(), "it is a directory"),
        (folder.path().join("none"), "no such file"),
        (PathBuf::from("/dev/zero"), "it is a pipe or a device"),
    ] {
        for graph in [SOUND, RADIO] {
            let text = refusal(&asked(&[graph], Some(path.clone()), None));
            assert!(text.contains(said), "{text}");
        }
    }
}

#[test]
fn damaged_headers_are_read_or_refused_in_a_line() {
    let folder = tempdir().unwrap();
    let good = wav(&tone(600), 2, 24, SampleFormat::Int);
    let mut refused = 0;
    for at in 0..68 {
        for value in [0, 1, 0x7f, 0xff] {
            let mut bytes = good.clone();
            bytes[at] = value;
            refused += u32::from(read_sound(&file(&folder, &bytes)).is_err());
        }
    }
    assert!((80..270).contains(&refused), "{refused}");
}

#[test]
fn options_that_do_not_go_together_are_refused() {
    let folder = tempdir().unwrap();
    let path = file(&folder, &wav(&tone(600), 1, 16, SampleFormat::Int));
    for graphs in [&[][..], &[SOUND, RADIO]] {
        for (input, out) in [(Some(path.clone()), None), (None, Some(path.clone()))] {
            let text = refusal(&asked(graphs, input, out));
            assert!(text.contains("exactly one graph"), "{text}");
        }
    }
    assert!(
        refusal(&asked(&["rt_stap_easy"], Some(path.clone()), None))
            .contains("rt_stap_easy processes no file")
    );
    let same = folder.path().join("../").join(folder.path().file_name().unwrap()).join("x");
    assert!(refusal(&asked(&[SOUND], Some(path.clone()), Some(same))).contains("it is the file of --in"));
    let parts = vec!["prices".to_owned()];
    let params = Params { parts, ..asked(&[SOUND], Some(path.clone()), None) };
    assert!(refusal(&params).contains("graphs are not selected; add "));
    let params = asked(&[SOUND], Some(path), Some(folder.path().join("y")));
    assert!(Over::of(&params).unwrap().given.is_some());
}

#[test]
fn a_path_that_is_not_utf_8_is_read_and_recorded() {
    use std::os::unix::ffi::OsStringExt;
    let folder = tempdir().unwrap();
    let path = folder.path().join(std::ffi::OsString::from_vec(b"a\xff.wav".to_vec()));
    fs::write(&path, wav(&tone(600), 1, 16, SampleFormat::Int)).unwrap();
    let over = Over::of(&asked(&[SOUND], Some(path.clone()), None)).unwrap();
    assert!(over.given.unwrap().file.ends_with("a\u{fffd}.wav"));
}
