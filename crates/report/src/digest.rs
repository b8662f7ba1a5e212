//! Computes SHA-256 digests in the two notations that pages use: base64 for content policies, hexadecimal for display.

use machmeter_data::deflated::base64;
use sha2::{Digest as _, Sha256};

/// `sha256-...`, the source of an inline block in a content policy.
pub(crate) fn policy_source(block: &str) -> String {
    format!("sha256-{}", base64(&Sha256::digest(block.as_bytes())))
}

/// The first 12 hexadecimal digits of the digest of `text`.
pub(crate) fn short(text: &str) -> String {
    Sha256::digest(text.as_bytes()).iter().take(6).map(|b| format!("{b:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_agrees_with_fips_180() {
        assert_eq!(short("abc"), "ba7816bf8f01");
        assert_eq!(policy_source(""), "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
    }
}
