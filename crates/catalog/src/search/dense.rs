//! The dense side: sentence vectors in eight bits, searched exactly.

use std::time::Duration;

/// A sentence model. All its vectors are of one space, and of length one.
pub trait Embedder: Send + Sync + std::fmt::Debug {
    /// The vectors of sentences that somebody waits for, in order: those that are there in time.
    fn ask(&self, sentences: &[&str], within: Duration) -> Vec<Option<Vec<f32>>>;

    /// Embeds sentences in the background, however long it takes, and hands their vectors over, in order.
    fn prepare(&self, sentences: Vec<String>, done: Box<dyn FnOnce(Vectors) + Send>);
}

/// A vector in a byte per coordinate.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub scale: f32,
    pub bytes: Box<[i8]>,
}

impl Row {
    #[expect(clippy::cast_possible_truncation, reason = "the value is scaled to -127..=127 and rounded")]
    pub fn new(vector: &[f32]) -> Self {
        let largest = vector.iter().fold(0.0_f32, |max, x| max.max(x.abs()));
        let scale = if largest > 0.0 { largest / 127.0 } else { 1.0 };
        Self { scale, bytes: vector.iter().map(|x| (x / scale).round() as i8).collect() }
    }
}

/// Rows of one width, searched exactly.
#[derive(Clone, Debug, Default)]
pub struct Vectors {
    width: usize,
    rows: Vec<i8>,
    scales: Vec<f32>,
}

impl Vectors {
    pub fn new(vectors: &[Vec<f32>]) -> Self {
        let mut all = Self::default();
        for vector in vectors {
            all.push(&Row::new(vector));
        }
        all
    }

    /// Adds a row; the first one decides the width.
    pub fn push(&mut self, row: &Row) {
        if self.scales.is_empty() {
            self.width = row.bytes.len();
        }
        self.rows.extend(row.bytes.iter().copied().chain(std::iter::repeat(0)).take(self.width));
        self.scales.push(row.scale);
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
        let query = Row::new(query);
        let wide: Vec<i16> = query.bytes.iter().copied().map(i16::from).collect();
        self.rows.chunks_exact(self.width).zip(&self.scales).map(|(row, scale)| dot(row, &wide) * query.scale * scale).collect()
    }
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
}
