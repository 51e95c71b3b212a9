//! A vector as it is kept: a byte for each coordinate. Only its direction matters, so its length is not.

/// The most coordinates that a vector may have.
const WIDEST: usize = 4096;

/// A direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Vector(Box<[u8]>);

impl Vector {
    /// None for what is no direction: no coordinates or too many, none that is not zero, or one that is not a number.
    #[expect(clippy::cast_possible_truncation, reason = "the value is scaled to -127..=127 and rounded")]
    pub(crate) fn new(values: &[f32]) -> Option<Self> {
        let largest = values.iter().fold(0.0_f32, |most, x| most.max(x.abs()));
        if values.len() > WIDEST || largest < f32::MIN_POSITIVE || values.iter().any(|x| !x.is_finite()) {
            return None;
        }
        Some(Self(values.iter().map(|x| ((x / largest * 127.0).round() as i8).cast_unsigned()).collect()))
    }

    /// What was kept before; none where that is no vector.
    pub(crate) fn read(bytes: Vec<u8>) -> Option<Self> {
        let is_direction = bytes.len() <= WIDEST && bytes.iter().any(|byte| *byte != 0);
        is_direction.then(|| Self(bytes.into()))
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub(crate) fn width(&self) -> usize {
        self.0.len()
    }

    /// The same with length one.
    pub(crate) fn unit(&self) -> Vec<f32> {
        let values = || self.0.iter().map(|byte| f32::from(byte.cast_signed()));
        let length = values().map(|x| x * x).sum::<f32>().sqrt();
        values().map(|x| x / length).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_direction_is_kept() {
        let unit = Vector::new(&[3.0, 0.0, -4.0]).map(|vector| vector.unit()).expect("a vector");
        for (got, expected) in unit.iter().zip([0.6, 0.0, -0.8]) {
            assert!((got - expected).abs() < 0.01, "{unit:?}");
        }
        let kept = Vector::new(&[3e-30, 4e-30]).expect("small is a direction too");
        assert_eq!(Vector::read(kept.bytes().to_vec()), Some(kept));
    }

    #[test]
    fn what_is_no_direction_is_refused() {
        for values in [vec![], vec![0.0, 0.0], vec![f32::NAN, 1.0], vec![f32::INFINITY, 1.0], vec![1.0; WIDEST + 1]] {
            assert_eq!(Vector::new(&values), None);
        }
        for bytes in [vec![], vec![0; 8], vec![1; WIDEST + 1]] {
            assert_eq!(Vector::read(bytes), None);
        }
    }
}
