//! What one piece of work may use: steps, bytes and time. Loops of ours ask on their way; what a library does in one go is counted before
//! it is done.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// How many steps may pass between two looks at the clock.
const BETWEEN_LOOKS: u64 = 4096;

/// How much work may be, before it is begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub steps: u64,
    /// Of memory, about.
    pub bytes: usize,
    pub time: Duration,
}

impl Limits {
    /// For what one request, event or answer may cause.
    pub const USUAL: Self = Self { steps: 5_000_000, bytes: 64 << 20, time: Duration::from_secs(10) };
    /// For whole documents of somebody else's, such as an API to import.
    pub const DOCUMENT: Self = Self { steps: 50_000_000, bytes: 384 << 20, time: Duration::from_mins(1) };
}

/// What was used up before the work was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Exceeded {
    #[error("it is too much work: it takes more than {0} steps. Use fewer or simpler expressions, or a smaller value.")]
    Steps(u64),
    #[error("it has too many values: it would take more than {} MiB of memory. Use a smaller value.", .0 >> 20)]
    Bytes(usize),
    #[error("it is too much work: it took longer than {} ms. Use fewer or simpler expressions, or a smaller value.", .0.as_millis())]
    Time(Duration),
    #[error("nobody waits for it any more.")]
    Abandoned,
}

/// What a piece of work may still use.
#[derive(Debug)]
pub struct Budget {
    limits: Limits,
    steps: Cell<u64>,
    bytes: Cell<usize>,
    until: Instant,
    until_look: Cell<u64>,
    abandoned: Arc<AtomicBool>,
}

impl Budget {
    /// A budget whose time begins now.
    pub fn new(limits: Limits) -> Self {
        Self::watching(limits, Arc::default())
    }

    /// The same for work that ends once `abandoned` is set.
    pub fn watching(limits: Limits, abandoned: Arc<AtomicBool>) -> Self {
        Self {
            limits,
            steps: Cell::new(limits.steps),
            bytes: Cell::new(limits.bytes),
            until: Instant::now() + limits.time,
            until_look: Cell::new(BETWEEN_LOOKS),
            abandoned,
        }
    }

    /// Takes steps, and now and then looks whether time is left and somebody still waits.
    pub fn step(&self, steps: u64) -> Result<(), Exceeded> {
        let left = self.steps.get().checked_sub(steps).ok_or(Exceeded::Steps(self.limits.steps))?;
        self.steps.set(left);
        match self.until_look.get().checked_sub(steps) {
            Some(left) => self.until_look.set(left),
            None => self.look()?,
        }
        Ok(())
    }

    /// Takes bytes of memory.
    pub fn hold(&self, bytes: usize) -> Result<(), Exceeded> {
        let left = self.bytes.get().checked_sub(bytes).ok_or(Exceeded::Bytes(self.limits.bytes))?;
        self.bytes.set(left);
        Ok(())
    }

    /// Whether time is left and somebody still waits: before something that cannot be stopped on its way.
    pub fn look(&self) -> Result<(), Exceeded> {
        self.until_look.set(BETWEEN_LOOKS);
        if self.abandoned.load(Ordering::Relaxed) {
            return Err(Exceeded::Abandoned);
        }
        if Instant::now() >= self.until { Err(Exceeded::Time(self.limits.time)) } else { Ok(()) }
    }
}

impl Default for Budget {
    fn default() -> Self {
        Self::new(Limits::USUAL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: Limits = Limits { steps: 10_000, bytes: 100, time: Duration::from_mins(1) };

    #[test]
    fn what_is_used_up_ends_the_work() {
        let budget = Budget::new(SMALL);
        assert_eq!((budget.step(10_000), budget.step(1)), (Ok(()), Err(Exceeded::Steps(10_000))));
        assert_eq!((budget.hold(60), budget.hold(60), budget.hold(40)), (Ok(()), Err(Exceeded::Bytes(100)), Ok(())));
    }

    #[test]
    fn time_and_a_caller_that_left_are_noticed_between_steps() {
        let late = Budget::new(Limits { time: Duration::ZERO, ..SMALL });
        let ended = (0..10_000).find_map(|_| late.step(1).err());
        assert_eq!(ended, Some(Exceeded::Time(Duration::ZERO)));
        let left = Arc::new(AtomicBool::new(false));
        let budget = Budget::watching(SMALL, left.clone());
        assert_eq!(budget.look(), Ok(()));
        left.store(true, Ordering::Relaxed);
        assert_eq!((0..10_000).find_map(|_| budget.step(1).err()), Some(Exceeded::Abandoned));
    }
}
