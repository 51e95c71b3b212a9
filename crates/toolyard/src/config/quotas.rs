//! How much a project may keep, and for how long.

use std::time::Duration;

use store::Quota;

use super::{DAY, Settings};

/// A shorter time would take away what idempotent answers and approvals still need.
const SHORTEST_DAYS: u64 = 2;

/// What projects may keep.
#[derive(Clone, Copy, Debug)]
pub struct Quotas {
    pub runs: workflows::RunLimits,
    pub calls: calls::Limits,
    pub schedules: Quota,
    pub imports: Quota,
    pub connections: Quota,
    pub grants: grants::Limits,
}

impl Quotas {
    /// How long something may be named by what is kept.
    pub fn longest_record(&self) -> Duration {
        self.calls.call_retention.max(self.calls.approval_retention).max(self.runs.retention)
    }
}

/// The quotas that the settings name.
pub(super) fn read(settings: &Settings) -> Quotas {
    let bounded = |quota: Quota, rows: Option<i64>, bytes: Option<i64>| Quota {
        rows: rows.unwrap_or(quota.rows).max(1),
        bytes: bytes.unwrap_or(quota.bytes).max(1),
        ..quota
    };
    let kept = |days: Option<u64>, default: Duration| {
        days.map_or(default, |days| Duration::from_secs(days.max(SHORTEST_DAYS).saturating_mul(DAY)))
    };
    let (runs, calls, grants) = (workflows::RunLimits::default(), calls::Limits::default(), grants::Limits::default());
    Quotas {
        runs: workflows::RunLimits {
            quota: bounded(runs.quota, settings.runs_per_project, settings.run_bytes_per_project),
            retention: kept(settings.run_retention, runs.retention),
        },
        calls: calls::Limits {
            approvals: bounded(calls.approvals, settings.approvals_per_project, settings.approval_bytes_per_project),
            approval_retention: kept(settings.approval_retention, calls.approval_retention),
            call_retention: kept(settings.call_retention, calls.call_retention),
        },
        schedules: bounded(triggers::Settings::default().schedules, settings.schedules_per_project, settings.schedule_bytes_per_project),
        imports: bounded(imports::QUOTA, settings.imports_per_project, settings.import_bytes_per_project),
        connections: bounded(connections::QUOTA, settings.connections_per_project, settings.connection_bytes_per_project),
        grants: grants::Limits {
            of_granter: settings.grants_per_person.unwrap_or(grants.of_granter).max(1),
            of_project: settings.grants_per_project.unwrap_or(grants.of_project).max(1),
            // Half of them may wait for a person.
            clients: settings.registered_clients.unwrap_or(grants.clients).max(2),
        },
    }
}
