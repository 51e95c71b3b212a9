//! Bytes as hex digits.

/// Bytes as lower-case hex.
pub fn encode(bytes: &[u8]) -> String {
    bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]).filter_map(|digit| char::from_digit(u32::from(digit), 16)).collect()
}

/// The bytes that a text of hex stands for, in either case.
pub fn decode(text: &str) -> Option<Vec<u8>> {
    let (pairs, rest) = text.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    pairs.iter().map(|&[high, low]| Some((digit(high)? << 4) | digit(low)?)).collect()
}

fn digit(byte: u8) -> Option<u8> {
    char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hex_is_read_in_either_case_and_never_guessed() {
        assert_eq!(decode("00fF"), Some(vec![0, 255]));
        assert_eq!(decode(""), Some(vec![]));
        for odd in ["0", "0g", "é", "+1", " 0", "0x00"] {
            assert_eq!(decode(odd), None, "{odd}");
        }
        assert_eq!(encode(&[0, 1, 0xa0, 255]), "0001a0ff");
    }
}
