//! Compresses text for embedding in a page: zlib (RFC 1950, which browsers inflate as `deflate`) in base64 (RFC 4648, section 4).

use base64::DecodeError;
use base64::prelude::{BASE64_STANDARD as STANDARD, Engine as _};
use miniz_oxide::deflate::compress_to_vec_zlib;
use miniz_oxide::inflate::{TINFLStatus, decompress_to_vec_zlib_with_limit};

/// Most bytes of inflated text: far more than any record has, and few enough that a hostile page can't exhaust memory.
pub const MOST_BYTES: usize = 128 << 20;
/// Effort of the compressor, 0 to 10. Above 9 it takes more time and gains next to nothing.
const EFFORT: u8 = 9;

/// Compresses a text. The result contains only letters, digits and `+/=`, so it is safe anywhere in a page.
pub fn write(text: &str) -> String {
    base64(&compress_to_vec_zlib(text.as_bytes(), EFFORT))
}

/// Restores a compressed text; white space around and inside it is skipped.
/// Errors: a few words with the reason: not base64, damaged, more than [`MOST_BYTES`], not UTF-8.
pub fn read(small: &str) -> Result<String, String> {
    let inflated = inflate(&from_base64(small)?)?;
    String::from_utf8(inflated).map_err(|_| "not UTF-8 once inflated".to_owned())
}

/// Inflates zlib data.
/// Errors: as [`read`].
pub fn inflate(zlib: &[u8]) -> Result<Vec<u8>, String> {
    decompress_to_vec_zlib_with_limit(zlib, MOST_BYTES).map_err(|e| match e.status {
        TINFLStatus::HasMoreOutput => format!("inflates to more than {} MiB", MOST_BYTES >> 20),
        TINFLStatus::Adler32Mismatch => "damaged: its checksum differs".to_owned(),
        _ => "damaged or truncated".to_owned(),
    })
}

/// Base64 with the standard alphabet and padding.
pub fn base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

fn from_base64(text: &str) -> Result<Vec<u8>, String> {
    let letters: Vec<u8> = text.bytes().filter(|c| !c.is_ascii_whitespace()).collect();
    STANDARD.decode(letters).map_err(|e| match e {
        DecodeError::InvalidByte(..) => "not base64".to_owned(),
        _ => "truncated: the length of base64 must be a multiple of four".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_comes_back_exactly_and_is_shorter() {
        let text: String = (0..2000).map(|i| format!("{{\"ü\":{}}},", f64::from(i) / 3.0)).collect();
        let small = write(&text);
        assert!(small.len() * 2 < text.len(), "{} of {}", small.len(), text.len());
        assert_eq!(read(&small).unwrap(), text);
        let broken_up: String =
            small.as_bytes().chunks(76).map(|c| format!("{}\n", std::str::from_utf8(c).unwrap())).collect();
        assert_eq!(read(&broken_up).unwrap(), text);
        assert_eq!(read(&write("")).unwrap(), "");
    }

    #[test]
    fn what_another_program_wrote_is_read() {
        // Python: base64.b64encode(zlib.compress(b'{"format":"machmeter"}' * 3, 9))
        let foreign = "eNqrVkrLL8pNLFGyUspNTM7ITS1JLVKqrSZBFAAeURfs";
        assert_eq!(read(foreign).unwrap(), "{\"format\":\"machmeter\"}".repeat(3));
    }

    #[test]
    fn broken_text_is_refused_with_the_reason() {
        let small = write("some text that is long enough to be cut");
        let flipped = small.replacen(&small[12..13], if &small[12..13] == "A" { "B" } else { "A" }, 1);
        for (bad, word) in [
            ("{}", "not base64"),
            (&small[..small.len() - 3], "truncated"),
            (&small[..small.len() / 8 * 4], "damaged"),
            ("AAAA", "damaged"),
            (&flipped, "damaged"),
        ] {
            let why = read(bad).unwrap_err();
            assert!(why.contains(word), "{bad}: {why}");
        }
        let latin = base64(&compress_to_vec_zlib(b"\xff\xfe", EFFORT));
        assert!(read(&latin).unwrap_err().contains("UTF-8"));
    }

    #[test]
    fn a_text_that_would_fill_memory_is_refused() {
        let zeros = vec![b' '; MOST_BYTES + 1];
        let bomb = base64(&compress_to_vec_zlib(&zeros, 1));
        assert!(bomb.len() < 4 << 20, "{}", bomb.len());
        assert!(read(&bomb).unwrap_err().contains("more than 128 MiB"));
    }
}
