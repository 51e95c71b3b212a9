//! The dense side: sentence vectors in eight bits, searched exactly.

/// Turns sentences into vectors of one fixed space. Vectors of different embedders never meet.
pub trait Embedder: Send + Sync {
    /// Names the space; kept with stored vectors so that those of another model are not reused.
    fn space(&self) -> String;

    /// One unit vector per text, in order.
    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>, EmbedError>;
}

/// The sentence model could not embed a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EmbedError(pub String);

impl std::fmt::Display for EmbedError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "sentence model: {}", self.0)
    }
}

impl std::error::Error for EmbedError {}

/// Rows of signed bytes, each with its own scale.
#[derive(Debug, Clone, Default)]
pub struct Vectors {
    width: usize,
    rows: Vec<i8>,
    scales: Vec<f32>,
}

impl Vectors {
    /// Quantises unit vectors; all must have the same width.
    pub fn new(vectors: &[Vec<f32>]) -> Self {
        let width = vectors.first().map_or(0, Vec::len);
        let mut all = Self { width, rows: Vec::with_capacity(width * vectors.len()), scales: Vec::with_capacity(vectors.len()) };
        for vector in vectors {
            let (bytes, scale) = quantise(vector, width);
            all.rows.extend(bytes);
            all.scales.push(scale);
        }
        all
    }

    pub fn len(&self) -> usize {
        self.scales.len()
    }

    pub fn is_empty(&self) -> bool {
        self.scales.is_empty()
    }

    /// Bytes held in memory.
    pub fn size(&self) -> usize {
        self.rows.len() + self.scales.len() * size_of::<f32>()
    }

    /// The cosine of every row with the query, in row order.
    pub fn cosines(&self, query: &[f32]) -> Vec<f32> {
        if self.width == 0 || query.len() != self.width {
            return vec![0.0; self.len()];
        }
        let (bytes, scale) = quantise(query, self.width);
        let wide: Vec<i16> = bytes.into_iter().map(i16::from).collect();
        self.rows.chunks_exact(self.width).zip(&self.scales).map(|(row, row_scale)| dot(row, &wide) * scale * row_scale).collect()
    }

    /// A compact form to keep: width and count as little-endian `u32`, then scales, then bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(8 + self.size());
        for number in [self.width, self.len()] {
            out.extend(u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes());
        }
        out.extend(self.scales.iter().flat_map(|s| s.to_le_bytes()));
        out.extend(self.rows.iter().map(|b| b.cast_unsigned()));
        out
    }

    /// Reads what `to_bytes` wrote; nothing when the bytes are not of that form.
    pub fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let (head, rest) = bytes.split_at_checked(8)?;
        let number = |at: usize| head[at..at + 4].try_into().ok().map(|b| u32::from_le_bytes(b) as usize);
        let (width, count) = (number(0)?, number(4)?);
        let (scales, rows) = rest.split_at_checked(count.checked_mul(4)?)?;
        if rows.len() != count.checked_mul(width)? {
            return None;
        }
        let scales = scales.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
        Some(Self { width, rows: rows.iter().map(|b| b.cast_signed()).collect(), scales })
    }
}

#[expect(clippy::cast_possible_truncation, reason = "the value is scaled to -127..=127 and rounded")]
fn quantise(vector: &[f32], width: usize) -> (Vec<i8>, f32) {
    let largest = vector.iter().fold(0.0_f32, |max, x| max.max(x.abs()));
    let scale = if largest > 0.0 { largest / 127.0 } else { 1.0 };
    let mut bytes: Vec<i8> = vector.iter().map(|x| (x / scale).round() as i8).collect();
    bytes.resize(width, 0);
    (bytes, scale)
}

/// Written so that the compiler turns it into wide multiply-adds without any unsafe code.
/// A product of two bytes fits sixteen bits, since quantised values stay within ±127.
#[expect(clippy::cast_precision_loss, reason = "at most 384 * 127 * 127, well inside the precision of the ranking")]
fn dot(row: &[i8], query: &[i16]) -> f32 {
    const LANES: usize = 8;
    let (rows, row_rest) = row.as_chunks::<LANES>();
    let (queries, query_rest) = query.as_chunks::<LANES>();
    let mut sums = [0_i32; LANES];
    for (row, query) in rows.iter().zip(queries) {
        for lane in 0..LANES {
            sums[lane] += i32::from(i16::from(row[lane]) * query[lane]);
        }
    }
    let rest: i32 = row_rest.iter().zip(query_rest).map(|(&a, &b)| i32::from(a) * i32::from(b)).sum();
    (sums.iter().sum::<i32>() + rest) as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unit(values: &[f32]) -> Vec<f32> {
        let norm = values.iter().map(|v| v * v).sum::<f32>().sqrt();
        values.iter().map(|v| v / norm).collect()
    }

    #[test]
    fn eight_bits_keep_the_cosine() {
        let rows: Vec<Vec<f32>> =
            (0..20).map(|i| unit(&(0..64).map(|j| f32::from(i * 7_u16 + j * 13_u16).sin()).collect::<Vec<_>>())).collect();
        let vectors = Vectors::new(&rows);
        for (got, row) in vectors.cosines(&rows[3]).iter().zip(&rows) {
            let exact: f32 = row.iter().zip(&rows[3]).map(|(a, b)| a * b).sum();
            assert!((got - exact).abs() < 0.01, "{got} {exact}");
        }
    }

    #[test]
    fn bytes_round_trip_and_damage_is_refused() {
        let vectors = Vectors::new(&[unit(&[1.0, 2.0, 3.0]), unit(&[-1.0, 0.5, 0.0])]);
        let bytes = vectors.to_bytes();
        let back = Vectors::from_bytes(&bytes).expect("own bytes");
        assert_eq!(back.rows, vectors.rows);
        assert!(Vectors::from_bytes(&bytes[..bytes.len() - 1]).is_none());
        assert!(Vectors::from_bytes(&[1, 2, 3]).is_none());
    }
}
