//! Signatures and keys in Base64.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

const BASE64: GeneralPurpose =
    GeneralPurpose::new(&alphabet::STANDARD, GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent));

/// The bytes that a text of standard Base64 stands for, with or without its padding.
pub fn from_base64(text: &str) -> Option<Vec<u8>> {
    BASE64.decode(text).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_may_lack_its_padding() {
        assert_eq!(from_base64("aHVzaA=="), Some(b"hush".to_vec()));
        assert_eq!(from_base64("aHVzaA"), Some(b"hush".to_vec()));
        assert_eq!(from_base64("not base64"), None);
    }
}
