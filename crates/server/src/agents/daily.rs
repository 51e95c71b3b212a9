//! `GET /agents/assignments`

use ::agents::{DailyFilter, Day, Tally};
use axum::extract::State;
use document::{IntoParams, ToSchema};
use kernel::Timestamp;
use serde::{Deserialize, Serialize};

use super::agent_ref;
use crate::App;
use crate::edge::auth::ViewAgents;
use crate::edge::{ApiResult, Json, QueryOf, Scoped, moment};

const USUAL: std::time::Duration = std::time::Duration::from_hours(29 * 24);

/// Which days, and whose assignments.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct ListDays {
    /// The first day: an ISO 8601 time or date, `yesterday`, or how long ago, such as `7d`; thirty days by default, 366 at most.
    #[param(inline, required = false, value_type = crate::shapes::TimeText)]
    pub since: Option<String>,
    /// The last day; today by default.
    #[param(inline, required = false, value_type = crate::shapes::TimeText)]
    pub until: Option<String>,
    /// Only of this app.
    pub app_name: Option<String>,
    /// Only of this agent, by number or id.
    #[param(inline, required = false, value_type = crate::shapes::AgentIdText)]
    pub agent_id: Option<String>,
}

/// What happened on a day, and how many assignments there were at its end.
#[derive(Debug, Serialize, ToSchema)]
pub struct DayBody {
    #[schema(example = "2026-11-16")]
    pub day: String,
    pub assigned: usize,
    pub unassigned: usize,
    pub active: usize,
    pub by_app: Vec<AppDay>,
    pub by_agent: Vec<AgentDay>,
}

/// A day of one app.
#[derive(Debug, Serialize, ToSchema)]
pub struct AppDay {
    pub app_name: String,
    pub assigned: usize,
    pub unassigned: usize,
    /// How many agents had it.
    pub active: usize,
}

/// A day of one agent.
#[derive(Debug, Serialize, ToSchema)]
pub struct AgentDay {
    pub agent_id: i64,
    pub assigned: usize,
    pub unassigned: usize,
    /// How many apps it had.
    pub active: usize,
}

/// Assignments by day.
#[derive(Debug, Serialize, ToSchema)]
pub struct DaysAnswer {
    pub count: usize,
    pub days: Vec<DayBody>,
}

impl From<Day> for DayBody {
    fn from(day: Day) -> Self {
        let Tally { assigned, unassigned, active } = day.total;
        let by_app = day.by_app.into_iter().map(|(app, Tally { assigned, unassigned, active })| AppDay {
            app_name: app.to_string(),
            assigned,
            unassigned,
            active,
        });
        let by_agent = day.by_agent.into_iter().map(|(agent_id, Tally { assigned, unassigned, active })| AgentDay {
            agent_id,
            assigned,
            unassigned,
            active,
        });
        Self { day: day.day, assigned, unassigned, active, by_app: by_app.collect(), by_agent: by_agent.collect() }
    }
}

/// Read assignments over time, by day, app and agent
///
/// Every day is there, the oldest first. Days are UTC's.
#[document::path(get, path = "/agents/assignments", operation_id = "list_assignment_days", tag = "Agents", security(("key" = ["view_agents"])),
    params(ListDays), responses((status = 200, body = DaysAnswer), (status = 404, description = "No such app or agent"), (status = 422, description = "Not a time, or too many days")))]
pub(crate) async fn days(
    Scoped(scope, _): Scoped<ViewAgents>,
    State(app): State<App>,
    QueryOf(list): QueryOf<ListDays>,
) -> ApiResult<Json<DaysAnswer>> {
    let now = app.clock.now();
    let until = moment(&app, "until", list.until.as_deref())?.unwrap_or(now);
    let since: Timestamp = moment(&app, "since", list.since.as_deref())?.unwrap_or_else(|| until.minus(USUAL));
    let agent = list.agent_id.as_deref().map(agent_ref).transpose()?;
    let days = app.agents.daily(scope, &DailyFilter { since, until, app: list.app_name, agent }).await?;
    Ok(Json(DaysAnswer { count: days.len(), days: days.into_iter().map(Into::into).collect() }))
}
