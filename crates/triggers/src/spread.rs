//! Chance that repeats itself: the same words always give the same number, on every machine and in every version.

use sha2::{Digest, Sha256};

/// A number in `0..below` that `parts` decide; zero if `below` is zero.
pub(crate) fn spread(parts: [&[u8]; 2], below: u64) -> u64 {
    let digest = parts.iter().fold(Sha256::new(), Digest::chain_update).finalize();
    let number = digest.iter().take(8).fold(0_u64, |number, byte| number << 8 | u64::from(*byte));
    number.checked_rem(below).unwrap_or(0)
}
