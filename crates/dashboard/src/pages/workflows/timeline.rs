//! When the steps of a run began and how long they took, as bars.

use jiff::Timestamp;

/// A bar within the time of a run, in hundredths of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Bar {
    pub(super) start: f64,
    pub(super) length: f64,
}

/// The bar of a step; none where a time cannot be read.
pub(super) fn bar(run_start: &str, run_ms: f64, step_start: &str, step_ms: f64) -> Option<Bar> {
    let (run_start, step_start): (Timestamp, Timestamp) = (run_start.parse().ok()?, step_start.parse().ok()?);
    let before = step_start.duration_since(run_start).as_secs_f64() * 1000.0;
    let whole = run_ms.max(before + step_ms).max(0.001);
    let start = (before / whole * 100.0).clamp(0.0, 99.0);
    // The shortest step is still to be seen.
    let length = (step_ms / whole * 100.0).clamp(1.0, 100.0 - start);
    Some(Bar { start, length })
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: &str = "2026-01-01T00:00:00Z";

    #[test]
    fn bars_are_parts_of_the_whole() {
        assert_eq!(bar(START, 2000.0, "2026-01-01T00:00:00.5Z", 1000.0), Some(Bar { start: 25.0, length: 50.0 }));
    }

    #[test]
    fn bars_stay_inside() {
        for (step_start, ms) in [("2025-12-31T23:59:00Z", 1.0), ("2026-01-01T00:01:00Z", 0.0), ("2026-01-01T00:00:01Z", 9999.0)] {
            let bar = bar(START, 1000.0, step_start, ms).unwrap();
            assert!(bar.start >= 0.0 && bar.length >= 1.0 && bar.start + bar.length <= 100.001, "{bar:?}");
        }
        assert_eq!(bar(START, 1000.0, "soon", 1.0), None);
    }
}
