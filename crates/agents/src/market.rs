//! The apps there are, and those of the project.

use std::sync::Arc;

use calls::permission::ToolFacts;
use catalog::{Action, Integration};
use connections::Connection;
use definitions::Verdict;
use kernel::{Scope, Timestamp};

use crate::{AgentError, Agents, AppName, AppPolicy, AppStatus, Apps};

/// An app as a project sees it.
#[derive(Clone, Debug)]
pub struct ProjectApp {
    pub app: AppName,
    /// What the catalog says, by the provider that the project uses or the first that offers it.
    pub integration: Option<Arc<Integration>>,
    pub providers: Vec<&'static str>,
    pub status: AppStatus,
    /// The connection that decides the status.
    pub connection: Option<Connection>,
    pub since: Option<Timestamp>,
    /// Other apps of the project with the same stable id; only their names tell them apart.
    pub collides_with: Vec<AppName>,
}

/// Which apps to list.
#[derive(Clone, Debug, Default)]
pub struct AppFilter {
    pub category: Option<String>,
    pub search: Option<String>,
}

impl AppFilter {
    fn fits(&self, integration: &Integration) -> bool {
        let fold = |text: &str| text.to_lowercase().replace(['_', '-'], " ");
        let category = self.category.as_deref().is_none_or(|wanted| integration.categories.iter().any(|has| fold(has) == fold(wanted)));
        let search = self.search.as_deref().map(fold).unwrap_or_default();
        let hay = fold(&format!("{}\n{}\n{}", integration.key, integration.name, integration.description));
        category && search.split_whitespace().all(|word| hay.contains(word))
    }
}

impl Agents {
    /// The apps that may be assigned, the one that changed last first.
    #[kernel::boxed]
    pub async fn connected(&self, scope: Scope) -> Result<Vec<ProjectApp>, AgentError> {
        let apps = self.apps(scope).await?;
        let mut found: Vec<ProjectApp> = apps.own().into_iter().map(|app| project_app(&apps, app)).collect();
        found.sort_by(|left, right| right.since.cmp(&left.since).then_with(|| left.app.cmp(&right.app)));
        Ok(found)
    }

    /// Everything that the catalog offers, the app with the most actions first.
    #[kernel::boxed]
    pub async fn marketplace(&self, scope: Scope, filter: &AppFilter) -> Result<Vec<ProjectApp>, AgentError> {
        let apps = self.apps(scope).await?;
        let fitting = apps.offered().iter().filter(|(_, integrations)| integrations.iter().any(|integration| filter.fits(integration)));
        let mut found: Vec<ProjectApp> = fitting.map(|(app, _)| project_app(&apps, app)).collect();
        let actions = |app: &ProjectApp| app.integration.as_ref().map_or(0, |integration| integration.actions.len());
        found.sort_by(|left, right| actions(right).cmp(&actions(left)).then_with(|| left.app.cmp(&right.app)));
        Ok(found)
    }

    /// One app.
    #[kernel::boxed]
    pub async fn app(&self, scope: Scope, name: &str) -> Result<ProjectApp, AgentError> {
        let apps = self.apps(scope).await?;
        let app = AppName::of(name);
        if apps.status(&app) == AppStatus::Unknown {
            return Err(AgentError::UnknownApp(app));
        }
        Ok(project_app(&apps, &app))
    }

    /// The actions of an app, and whether the project could call each of them now.
    #[kernel::boxed]
    pub async fn actions(&self, scope: Scope, name: &str) -> Result<Vec<(Arc<Action>, bool)>, AgentError> {
        let apps = self.apps(scope).await?;
        let app = AppName::of(name);
        let route = apps.route(&app, &AppPolicy::default()).ok();
        let integration = route.as_ref().map(|route| route.integration.clone()).or_else(|| apps.integrations(&app).first().cloned());
        let integration = integration.ok_or(AgentError::UnknownApp(app))?;
        let policy = self.0.calls.project_policy(scope.project).await?.on_call();
        let enabled = |action: &Action| {
            route.as_ref().is_some_and(|route| {
                let name = format!("tools.{}.{}.{}.{}", integration.provider, integration.key, action.key, route.connection);
                let facts = ToolFacts { name: &name, read_only: Some(action.read_only), ..ToolFacts::default() };
                policy.verdict_on(&facts) != Verdict::Deny
            })
        };
        Ok(integration.actions.iter().map(|action| (action.clone(), enabled(action))).collect())
    }
}

fn project_app(apps: &Apps, app: &AppName) -> ProjectApp {
    let rows = apps.rows(app);
    let connection = rows.iter().find(|row| row.is_usable()).or_else(|| rows.iter().find(|row| row.reason.is_none())).or(rows.first());
    let offered = apps.integrations(app);
    let used = connection.and_then(|row| offered.iter().find(|integration| integration.provider == row.provider));
    let others = apps.own();
    let same_id = |other: &&&AppName| **other != app && other.stable_id() == app.stable_id();
    ProjectApp {
        app: app.clone(),
        integration: used.or(offered.first()).cloned(),
        providers: offered.iter().map(|integration| integration.provider).collect(),
        status: apps.status(app),
        connection: connection.cloned(),
        since: connection.map(|row| row.updated_at).or_else(|| apps.added_at(app)),
        collides_with: if others.contains(app) {
            others.iter().filter(same_id).map(|other| (*other).clone()).collect()
        } else {
            Vec::new()
        },
    }
}
