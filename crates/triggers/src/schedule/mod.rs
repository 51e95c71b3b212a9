//! Schedules: cron expressions in a time zone, within a window, and what becomes of the slots that were missed.

mod cron;
mod due;
mod field;
mod misfire;
mod plan;
mod window;
mod zone;

pub use cron::{CronError, CronExpr};
pub use due::{Due, GRACE, MAX_MISSED, due};
pub use misfire::{Limit, Misfire, MisfireError};
pub use plan::{Timing, event_id, iso, jitter_offset};
pub use window::{EmptyWindow, Window};
pub use zone::{Zone, ZoneError};
