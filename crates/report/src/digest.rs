//! SHA-256 in the two spellings that pages need: base64 for content policies, hexadecimal for people.

use sha2::{Digest as _, Sha256};

/// `sha256-...` as a content policy names an inline block.
pub(crate) fn policy_source(block: &str) -> String {
    format!("sha256-{}", base64(&Sha256::digest(block.as_bytes())))
}

/// The first 12 hexadecimal digits of the digest of `text`.
pub(crate) fn short(text: &str) -> String {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    let digest = Sha256::digest(text.as_bytes());
    digest.iter().take(6).flat_map(|b| [b >> 4, b & 15]).map(|d| char::from(HEX[usize::from(d)])).collect()
}

/// Base64 with the standard alphabet and padding (RFC 4648, section 4).
pub(crate) fn base64(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let bits = (0..3).fold(0_u32, |acc, i| acc << 8 | u32::from(group.get(i).copied().unwrap_or(0)));
        for i in 0..4 {
            if i <= group.len() {
                out.push(char::from(ALPHABET[(bits >> (18 - 6 * i) & 63) as usize]));
            } else {
                out.push('=');
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_agrees_with_the_vectors_of_rfc_4648() {
        let vectors = [
            ("", ""),
            ("f", "Zg=="),
            ("fo", "Zm8="),
            ("foo", "Zm9v"),
            ("foob", "Zm9vYg=="),
            ("fooba", "Zm9vYmE="),
            ("foobar", "Zm9vYmFy"),
        ];
        for (plain, coded) in vectors {
            assert_eq!(base64(plain.as_bytes()), coded);
        }
    }

    #[test]
    fn the_digest_agrees_with_fips_180() {
        assert_eq!(short("abc"), "ba7816bf8f01");
        assert_eq!(policy_source(""), "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
    }
}
