//! Leaving an upstream alone that keeps failing, so that callers hear so at once and it can recover. Each circuit is an upstream of its own.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Failures in a row before a circuit opens.
const TRIPS: u32 = 5;
const FIRST_REST: Duration = Duration::from_secs(5);
const LONGEST_REST: Duration = Duration::from_mins(1);
/// Lanes that are remembered; those that work are forgotten first.
const MAX_CIRCUITS: usize = 2_000;

#[derive(Debug, Default)]
pub(crate) struct Breaker(Mutex<HashMap<String, Circuit>>);

#[derive(Debug, Default)]
struct Circuit {
    failures: u32,
    /// How often it opened in a row.
    openings: u32,
    /// Nobody passes before this; then one at a time.
    until: Option<Instant>,
    is_tried: bool,
}

/// The right to ask, to be given back with how it went. Dropped, it says nothing.
#[derive(Debug)]
pub(crate) struct Pass<'a> {
    breaker: &'a Breaker,
    circuit: &'a str,
    /// Whether it is the one that tries whether the upstream is back.
    is_trial: bool,
}

impl Breaker {
    /// Lets a request through, or says how long the circuit stays open.
    pub(crate) fn enter<'a>(&'a self, circuit: &'a str, now: Instant) -> Result<Pass<'a>, Duration> {
        let mut circuits = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(state) = circuits.get_mut(circuit)
            && let Some(until) = state.until
        {
            if now < until {
                return Err(until - now);
            }
            if state.is_tried {
                return Err(FIRST_REST);
            }
            state.is_tried = true;
            return Ok(Pass { breaker: self, circuit, is_trial: true });
        }
        Ok(Pass { breaker: self, circuit, is_trial: false })
    }

    fn settle(&self, Pass { circuit, is_trial, .. }: &Pass<'_>, works: bool, now: Instant) {
        let (circuit, is_trial) = (*circuit, *is_trial);
        let mut circuits = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if works {
            circuits.remove(circuit);
            return;
        }
        if circuits.len() >= MAX_CIRCUITS && !circuits.contains_key(circuit) {
            circuits.retain(|_, state| state.until.is_some());
        }
        let state = circuits.entry(circuit.to_owned()).or_default();
        // What was under way when the circuit opened says nothing new.
        if state.until.is_some() && !is_trial {
            return;
        }
        state.failures += 1;
        if is_trial || state.failures >= TRIPS {
            let rest = FIRST_REST * 2_u32.saturating_pow(state.openings.min(8));
            state.until = Some(now + rest.min(LONGEST_REST));
            state.openings += 1;
            state.is_tried = false;
        }
    }
}

impl Pass<'_> {
    pub(crate) fn worked(self, now: Instant) {
        self.breaker.settle(&self, true, now);
    }

    pub(crate) fn failed(self, now: Instant) {
        self.breaker.settle(&self, false, now);
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        if !self.is_trial {
            return;
        }
        let mut circuits = self.breaker.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(state) = circuits.get_mut(self.circuit) {
            state.is_tried = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fail(breaker: &Breaker, circuit: &str, now: Instant, times: u32) {
        for _ in 0..times {
            breaker.enter(circuit, now).unwrap().failed(now);
        }
    }

    #[test]
    fn opens_after_failures_in_a_row_and_closes_after_one_that_works() {
        let (breaker, start) = (Breaker::default(), Instant::now());
        fail(&breaker, "a", start, TRIPS - 1);
        breaker.enter("a", start).unwrap().worked(start);
        fail(&breaker, "a", start, TRIPS);
        assert_eq!(breaker.enter("a", start).unwrap_err(), FIRST_REST);
        assert!(breaker.enter("b", start).is_ok(), "another circuit is another upstream");

        let later = start + FIRST_REST;
        let first = breaker.enter("a", later).unwrap();
        assert!(breaker.enter("a", later).is_err(), "one at a time tries whether it is back");
        first.failed(later);
        assert_eq!(breaker.enter("a", later).unwrap_err(), FIRST_REST * 2);

        let back = later + FIRST_REST * 2;
        breaker.enter("a", back).unwrap().worked(back);
        fail(&breaker, "a", back, TRIPS - 1);
        assert!(breaker.enter("a", back).is_ok());
    }

    #[test]
    fn a_burst_that_fails_together_opens_once() {
        let (breaker, start) = (Breaker::default(), Instant::now());
        let burst: Vec<Pass<'_>> = (0..30).map(|_| breaker.enter("a", start).unwrap()).collect();
        for pass in burst {
            pass.failed(start);
        }
        assert_eq!(breaker.enter("a", start).unwrap_err(), FIRST_REST);
    }

    #[test]
    fn one_who_goes_away_leaves_the_turn_to_the_next() {
        let (breaker, start) = (Breaker::default(), Instant::now());
        fail(&breaker, "a", start, TRIPS);
        let later = start + FIRST_REST;
        drop(breaker.enter("a", later).unwrap());
        assert!(breaker.enter("a", later).is_ok());
    }
}
