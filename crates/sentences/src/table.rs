//! The table: which word pieces there are, and the vector of each.
//!
//! The file is a magic word, the number of pieces and of coordinates; the pieces, each after its length; a half-precision scale for each;
//! and the coordinates in a byte each. It stays where it is in the binary: only an index of the pieces is made.

const MAGIC: &[u8] = b"TYSENT01";
const FREE: u16 = u16::MAX;

/// The pieces and their vectors, in the file's own bytes.
#[derive(Debug, Default)]
pub(crate) struct Table {
    width: usize,
    pieces: Vec<&'static str>,
    scales: Vec<f32>,
    rows: &'static [u8],
    /// An open hash table of the pieces, a power of two long.
    slots: Vec<u16>,
}

impl Table {
    /// None for a file of another form.
    pub(crate) fn read(file: &'static [u8]) -> Option<Self> {
        let rest = file.strip_prefix(MAGIC)?;
        let (count, rest) = number(rest)?;
        let (width, mut rest) = number(rest)?;
        let mut pieces = Vec::with_capacity(count);
        for _ in 0..count {
            let (&length, after) = rest.split_first()?;
            let (piece, after) = after.split_at_checked(usize::from(length))?;
            pieces.push(std::str::from_utf8(piece).ok()?);
            rest = after;
        }
        let (scales, rows) = rest.split_at_checked(2 * count)?;
        let scales = scales.as_chunks::<2>().0.iter().map(|half| from_half(u16::from_le_bytes(*half))).collect();
        if rows.len() != count * width || count >= usize::from(FREE) {
            return None;
        }
        let mut slots = vec![FREE; (2 * count).next_power_of_two()];
        for (piece, token) in pieces.iter().zip(0_u16..) {
            let mut at = hash(piece) & (slots.len() - 1);
            while slots[at] != FREE {
                at = (at + 1) & (slots.len() - 1);
            }
            slots[at] = token;
        }
        Some(Self { width, pieces, scales, rows, slots })
    }

    /// How many coordinates a vector has.
    pub(crate) fn width(&self) -> usize {
        self.width
    }

    pub(crate) fn find(&self, piece: &str) -> Option<u16> {
        let mut at = hash(piece) & self.slots.len().checked_sub(1)?;
        while self.slots[at] != FREE {
            if self.pieces[usize::from(self.slots[at])] == piece {
                return Some(self.slots[at]);
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
        None
    }

    /// Adds the vector of a token.
    pub(crate) fn add(&self, token: u16, sum: &mut [f32]) {
        let (at, scale) = (usize::from(token), self.scales[usize::from(token)]);
        let row = &self.rows[at * self.width..(at + 1) * self.width];
        for (sum, byte) in sum.iter_mut().zip(row) {
            *sum += scale * f32::from(byte.cast_signed());
        }
    }
}

fn number(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let (number, rest) = bytes.split_first_chunk::<4>()?;
    Some((usize::try_from(u32::from_le_bytes(*number)).ok()?, rest))
}

/// A positive half-precision float.
fn from_half(half: u16) -> f32 {
    let (exponent, fraction) = (i32::from(half >> 10 & 31), f32::from(half & 1023) / 1024.0);
    if exponent == 0 { fraction * 2.0_f32.powi(-14) } else { (1.0 + fraction) * 2.0_f32.powi(exponent - 15) }
}

/// FNV-1a.
#[expect(clippy::cast_possible_truncation, reason = "the low bits choose a slot")]
fn hash(text: &str) -> usize {
    text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_in_the_binary_can_be_read() {
        let table = Table::read(crate::FILE).expect("a table");
        assert!(crate::FILE.len() <= 8 << 20, "{} bytes", crate::FILE.len());
        assert!(table.pieces.iter().zip(0_u16..).all(|(piece, token)| table.find(piece) == Some(token)));
        assert_eq!(table.find("no such piece"), None);
        assert!(table.scales.iter().all(|scale| scale.is_finite() && *scale > 0.0));
    }

    #[test]
    fn another_file_is_no_table() {
        let cut = &crate::FILE[..crate::FILE.len() - 1];
        for file in [&b""[..], b"TYSENT01", b"TYSENT01\x01\0\0\0\x01\0\0\0\x05ab", cut] {
            assert!(Table::read(file).is_none());
        }
    }

    #[test]
    fn halves_are_read() {
        for (half, expected) in [(0x3c00, 1.0), (0x3555, 0.333_251_95), (0x0001, 5.960_464_5e-8), (0x7bff, 65504.0)] {
            assert!((from_half(half) - expected).abs() <= f32::EPSILON * expected, "{half:x}");
        }
    }
}
