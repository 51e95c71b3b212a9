//! Codes of an authenticator app (RFC 6238): six digits, every 30 seconds, each good for once.

use hmac::{Hmac, KeyInit, Mac};
use kernel::Timestamp;
use sha1::Sha1;
use subtle::ConstantTimeEq;

const STEP: i64 = 30;
const DIGITS: u32 = 1_000_000;
const ALPHABET: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/// The interval that a moment lies in.
fn step(at: Timestamp) -> i64 {
    at.seconds().div_euclid(STEP)
}

/// The code of an interval.
fn code(secret: &[u8], step: i64) -> String {
    let mut mac = Hmac::<Sha1>::new_from_slice(secret).expect("HMAC takes a key of any length");
    mac.update(&step.to_be_bytes());
    let digest = mac.finalize().into_bytes();
    let offset = usize::from(digest[19] & 15);
    let bytes = [digest[offset] & 0x7f, digest[offset + 1], digest[offset + 2], digest[offset + 3]];
    format!("{:06}", u32::from_be_bytes(bytes) % DIGITS)
}

/// The interval whose code this is: the current one, or the one before or after, because clocks differ.
pub(crate) fn fits(secret: &[u8], given: &str, at: Timestamp) -> Option<i64> {
    let now = step(at);
    let right = |step: &i64| bool::from(code(secret, *step).as_bytes().ct_eq(given.as_bytes()));
    [now, now - 1, now + 1].into_iter().find(right)
}

/// A secret as people type it into an app.
pub(crate) fn base32(bytes: &[u8]) -> String {
    let bit = |index: usize| bytes.get(index / 8).map_or(0, |byte| usize::from(byte >> (7 - index % 8) & 1));
    let letter = |start: usize| ALPHABET[(start..start + 5).fold(0, |value, index| value << 1 | bit(index))] as char;
    (0..bytes.len() * 8).step_by(5).map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_those_of_the_rfc() {
        let secret = b"12345678901234567890";
        for (seconds, expected) in [(59, "287082"), (1_111_111_109, "081804"), (1_234_567_890, "005924"), (20_000_000_000, "353130")] {
            let at = Timestamp::from_micros(seconds * 1_000_000);
            assert_eq!(fits(secret, expected, at), Some(seconds / 30), "{seconds}");
        }
        let at = Timestamp::from_micros(59_000_000);
        assert_eq!(fits(secret, "287082", Timestamp::from_micros(89_000_000)), Some(1), "one interval later");
        assert_eq!(fits(secret, "287082", Timestamp::from_micros(120_000_000)), None);
        for wrong in ["", "28708", "2870820", "287083", " 87082"] {
            assert_eq!(fits(secret, wrong, at), None, "{wrong}");
        }
    }

    #[test]
    fn base32_is_that_of_rfc_4648() {
        assert_eq!(base32(b"foobar"), "MZXW6YTBOI");
        assert_eq!(base32(b"12345678901234567890"), "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ");
    }
}
