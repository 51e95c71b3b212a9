//! The dense side: sentence vectors in eight bits.

use std::hint::black_box;

/// A sentence model that takes microseconds. All its vectors are of one space, and of length one.
pub trait Embedder: Send + Sync + std::fmt::Debug {
    /// The vector of a sentence; none where it says nothing. Its first coordinates alone say roughly the same.
    fn embed(&self, sentence: &str) -> Option<Vec<f32>>;

    /// How telling a word is whatever the documents are, about 1: people say "provide" of anything.
    fn weight(&self, _word: &str) -> f32 {
        1.0
    }
}

/// A larger sentence model that is elsewhere and takes its time: what it said before is there at once, the rest is made in the background.
pub trait RemoteEmbedder: Send + Sync + std::fmt::Debug {
    /// The vector of a use case, if it is there; if not, it will be the next time.
    fn embedded(&self, use_case: &str) -> Option<Vec<f32>>;

    /// Hears that a list was indexed whose vectors are to be made.
    fn indexed(&self);

    fn counts(&self) -> RemoteCounts;
}

/// What a remote model was asked for since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemoteCounts {
    /// Requests that were answered, and that failed.
    pub answered: u64,
    pub failed: u64,
    /// Use cases that nobody took because too many waited.
    pub dropped: u64,
}

/// How many of the first coordinates a rough look takes. The best are compared in full afterwards, so a few do.
const FIRST: usize = 24;
/// Fewer rows than this are looked at in full.
const FEW: usize = 512;

/// A vector in a byte per coordinate, and what makes its length one again.
#[derive(Clone, Debug, PartialEq)]
struct Row {
    scale: f32,
    bytes: Box<[i8]>,
}

impl Row {
    #[expect(clippy::cast_possible_truncation, reason = "the value is scaled to -127..=127 and rounded")]
    fn new(vector: &[f32]) -> Self {
        let largest = vector.iter().fold(0.0_f32, |max, x| max.max(x.abs()));
        let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
        let step = if largest > 0.0 { largest / 127.0 } else { 1.0 };
        let scale = if length > 0.0 { step / length } else { 0.0 };
        Self { scale, bytes: vector.iter().map(|x| (x / step).round() as i8).collect() }
    }
}

/// A vector to hold against rows, made ready once.
#[derive(Debug)]
pub(super) struct Probe {
    wide: Vec<i16>,
    scale: f32,
    /// What makes the length of the first coordinates one.
    first_scale: f32,
}

impl Probe {
    pub(super) fn new(vector: &[f32]) -> Self {
        let (row, first) = (Row::new(vector), &vector[..vector.len().min(FIRST)]);
        Self { wide: row.bytes.iter().copied().map(i16::from).collect(), scale: row.scale, first_scale: first_scale(&row, vector, first) }
    }
}

fn first_scale(row: &Row, whole: &[f32], first: &[f32]) -> f32 {
    let length = |values: &[f32]| values.iter().map(|x| x * x).sum::<f32>().sqrt();
    let start = length(first);
    if start > 0.0 { row.scale * length(whole) / start } else { 0.0 }
}

/// Rows of one width.
#[derive(Clone, Debug, Default)]
pub struct Vectors {
    width: usize,
    /// The first coordinates of each row, side by side, so that a rough look reads nothing else, and as wide as they are multiplied.
    first: Vec<i16>,
    rest: Vec<i8>,
    /// What makes the length of a row one, and that of its first coordinates.
    scales: Vec<(f32, f32)>,
}

impl Vectors {
    /// Adds a row; the first one that there is decides the width. What has no vector is near to nothing.
    pub fn push(&mut self, vector: Option<&[f32]>) {
        let vector = vector.unwrap_or_default();
        if self.width == 0 && !vector.is_empty() {
            self.width = vector.len();
            self.first.resize(self.len() * self.width.min(FIRST), 0);
            self.rest.resize(self.len() * self.width.saturating_sub(FIRST), 0);
        }
        let whole: Vec<f32> = vector.iter().copied().chain(std::iter::repeat(0.0)).take(self.width).collect();
        let (row, first) = (Row::new(&whole), &whole[..self.width.min(FIRST)]);
        self.first.extend(row.bytes[..first.len()].iter().copied().map(i16::from));
        self.rest.extend(&row.bytes[first.len()..]);
        self.scales.push((row.scale, first_scale(&row, &whole, first)));
    }

    pub fn len(&self) -> usize {
        self.scales.len()
    }

    pub fn is_empty(&self) -> bool {
        self.scales.is_empty()
    }

    /// Bytes held in memory.
    pub fn size(&self) -> usize {
        self.first.len() * size_of::<i16>() + self.rest.len() + self.scales.len() * size_of::<(f32, f32)>()
    }

    /// The cosine of every row with the nearest of the probes, in row order: of the first coordinates alone where there are many rows.
    pub(super) fn nearest(&self, probes: &[Probe]) -> Vec<f32> {
        let fitting: Vec<&Probe> = probes.iter().filter(|probe| probe.wide.len() == self.width && self.width > 0).collect();
        if fitting.is_empty() {
            return vec![0.0; self.len()];
        }
        let first: Vec<(&[i16; FIRST], f32)> =
            fitting.iter().filter_map(|probe| Some((probe.wide.first_chunk()?, probe.first_scale))).collect();
        if self.len() < FEW || first.is_empty() {
            let nearest = |row| fitting.iter().map(|probe| self.cosine(row, probe)).fold(f32::MIN, f32::max);
            return (0..self.len()).map(nearest).collect();
        }
        let rows = || self.first.as_chunks::<FIRST>().0.iter().zip(&self.scales);
        let mut nearest: Vec<f32> = Vec::new();
        for (probe, probe_scale) in first {
            let cosine = |(row, (_, scale)): (&[i16; FIRST], &(f32, f32))| rough_dot(row, probe) * (probe_scale * scale);
            if nearest.is_empty() {
                nearest = rows().map(cosine).collect();
                continue;
            }
            for (nearest, row) in nearest.iter_mut().zip(rows()) {
                *nearest = larger(*nearest, cosine(row));
            }
        }
        nearest
    }

    /// Whether a row has a vector that can be held against the probe.
    pub(super) fn has(&self, row: usize, probe: &Probe) -> bool {
        probe.wide.len() == self.width && self.scales[row].0 > 0.0
    }

    /// The cosine of one row with the probe.
    pub(super) fn cosine(&self, row: usize, probe: &Probe) -> f32 {
        if probe.wide.len() != self.width {
            return 0.0;
        }
        let (first, rest) = probe.wide.split_at(self.width.min(FIRST));
        let dot = dot(&self.first[row * first.len()..(row + 1) * first.len()], first)
            + dot(&self.rest[row * rest.len()..(row + 1) * rest.len()], rest);
        dot * probe.scale * self.scales[row].0
    }
}

/// The larger of two numbers. The one of the language takes several times as long, to say what becomes of what is none.
#[inline]
pub(super) fn larger(a: f32, b: f32) -> f32 {
    if a > b { a } else { b }
}

/// The largest of some numbers, eight at a time; 0 at least.
pub(super) fn largest(numbers: &[f32]) -> f32 {
    const TOGETHER: usize = 8;
    let (many, few) = numbers.as_chunks::<TOGETHER>();
    let mut most = [0.0_f32; TOGETHER];
    for numbers in many {
        for (most, number) in most.iter_mut().zip(numbers) {
            *most = larger(*number, *most);
        }
    }
    most.iter().chain(few).copied().fold(0.0, larger)
}

/// How many coordinates are multiplied at once.
const LANES: usize = 16;

/// Written so that the compiler turns it into wide multiply-adds without any unsafe code.
#[inline]
#[expect(clippy::cast_precision_loss, reason = "at most a few hundred times 127 * 127, well inside the precision of the ranking")]
fn dot<T: Copy + Into<i16>>(row: &[T], query: &[i16]) -> f32 {
    let ((rows, row_end), (queries, query_end)) = (row.as_chunks::<LANES>(), query.as_chunks::<LANES>());
    let product = |a: T, b: i16| i32::from(a.into()) * i32::from(b);
    let mut sums = [0_i32; LANES];
    for (row, query) in rows.iter().zip(queries) {
        for ((sum, &a), &b) in sums.iter_mut().zip(row).zip(query) {
            *sum += product(a, b);
        }
    }
    let end: i32 = row_end.iter().zip(query_end).map(|(&a, &b)| product(a, b)).sum();
    (sums.iter().sum::<i32>() + end) as f32
}

/// The same of a width that the compiler knows, which is several times as fast.
#[inline]
#[expect(clippy::cast_precision_loss, reason = "at most a few dozen times 127 * 127")]
fn rough_dot(row: &[i16; FIRST], query: &[i16; FIRST]) -> f32 {
    // Left to itself, the compiler takes several rows at a time, whose coordinates do not stand side by side.
    black_box(row).iter().zip(query).map(|(&a, &b)| i32::from(a) * i32::from(b)).sum::<i32>() as f32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(count: usize, width: u16) -> Vec<Vec<f32>> {
        let unit = |values: Vec<f32>| {
            let norm = values.iter().map(|v| v * v).sum::<f32>().sqrt();
            values.iter().map(|v| v / norm).collect()
        };
        let value = |i: usize, j: u16| (f32::from(u16::try_from(i % 1000).unwrap()) * 0.7 + f32::from(j) * 1.3).sin();
        (0..count).map(|i| unit((0..width).map(|j| value(i, j)).collect())).collect()
    }

    #[test]
    fn eight_bits_keep_the_cosine() {
        for (count, width) in [(20, 100), (20, 32), (20, 2), (FEW + 10, 2), (FEW + 10, 100)] {
            let rows = rows(count, width);
            let mut vectors = Vectors::default();
            vectors.push(None);
            for row in &rows {
                vectors.push(Some(row));
            }
            let rough = vectors.nearest(&[Probe::new(&rows[3])]);
            assert!(rough[0].abs() < f32::EPSILON, "what has no vector is near to nothing");
            for (at, row) in rows.iter().enumerate() {
                let exact: f32 = row.iter().zip(&rows[3]).map(|(a, b)| a * b).sum();
                let got = vectors.cosine(at + 1, &Probe::new(&rows[3]));
                assert!((got - exact).abs() < 0.02, "{got} {exact}");
                if count < FEW {
                    assert!((rough[at + 1] - exact).abs() < 0.02, "{exact}");
                }
            }
            assert!((rough[4] - 1.0).abs() < 0.02, "a row is nearest to itself");
            let of_two = vectors.nearest(&[Probe::new(&rows[3]), Probe::new(&rows[5])]);
            assert!((of_two[4] - 1.0).abs() < 0.02 && (of_two[6] - 1.0).abs() < 0.02, "the nearest probe counts");
        }
    }
}
