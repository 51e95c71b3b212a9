//! Signatures and keys between bytes and text.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

const BASE64: GeneralPurpose =
    GeneralPurpose::new(&alphabet::STANDARD, GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent));

/// The bytes that a text of standard Base64 stands for, with or without its padding.
pub fn from_base64(text: &str) -> Option<Vec<u8>> {
    BASE64.decode(text).ok()
}

/// The bytes that a text of hex stands for.
pub fn from_hex(text: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    pairs.iter().map(|&[high, low]| Some((digit(high)? << 4) | digit(low)?)).collect()
}

/// Bytes as lower-case hex.
pub fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_is_read_in_either_case_and_never_guessed() {
        assert_eq!(from_hex("00fF"), Some(vec![0, 255]));
        assert_eq!(from_hex(""), Some(vec![]));
        for odd in ["0", "0g", "é", "+1", " 0", "0x00"] {
            assert_eq!(from_hex(odd), None, "{odd}");
        }
        assert_eq!(to_hex(&[0, 255]), "00ff");
    }

    #[test]
    fn base64_may_lack_its_padding() {
        assert_eq!(from_base64("aHVzaA=="), Some(b"hush".to_vec()));
        assert_eq!(from_base64("aHVzaA"), Some(b"hush".to_vec()));
        assert_eq!(from_base64("not base64"), None);
    }
}
