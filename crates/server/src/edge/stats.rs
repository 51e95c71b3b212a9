//! Which time statistics are about.

use document::IntoParams;
use kernel::Period;
use serde::Deserialize;

use super::{ApiError, Code, moment};
use crate::App;

/// Which time, and in how many parts.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct StatsQuery {
    /// ISO 8601, `today`, `yesterday`, or how long ago, such as `2h`; 24 hours before `until` by default.
    #[param(inline, required = false, value_type = crate::shapes::TimeText)]
    pub since: Option<String>,
    /// Before this time, written in the same ways; now by default.
    #[param(inline, required = false, value_type = crate::shapes::TimeText)]
    pub until: Option<String>,
    /// 24 by default, 200 at most.
    #[param(minimum = 1, maximum = 200)]
    pub buckets: Option<i64>,
}

impl StatsQuery {
    pub(crate) fn period(&self, app: &App) -> Result<Period, ApiError> {
        let (since, until) = (moment(app, "since", self.since.as_deref())?, moment(app, "until", self.until.as_deref())?);
        Period::new(since, until, self.buckets, app.clock.now()).map_err(|error| ApiError::new(Code::FilterInvalid, error.to_string()))
    }
}
