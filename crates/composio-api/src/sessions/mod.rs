//! Sessions of the tool router: what one user may use, through meta tools, by slug or over the Model Context Protocol. They are our user
//! sessions with a config of Composio's kind.
//!
//! `api.open_session(scope, id)` is a session that holds, with a scope that acts with the accounts of its user and of nobody else;
//! everything in a session starts from there.

mod account;
mod answer;
mod blocks;
mod config;
mod connect;
mod custom;
mod execute;
mod fence;
mod meta;
mod search;
mod several;
mod surface;
mod toolkits;
mod tools;

use kernel::Scope;
use serde_json::Value;
use user_sessions::{RoutedSession, UserSession, UserSessionError};

pub use answer::{ConfigVersion, DeletedSession, SessionAnswer, session_mcp};
pub use blocks::{Experimental, NewSession, PatchSession, SessionBlocks};
pub use connect::{LinkInSession, LinkedInSession};
pub use execute::{ExecuteInSession, ExecuteMeta, InputResponse, SessionResult};
pub use meta::MetaTool;
pub use search::{SearchAnswer, SearchSession};
pub use surface::SessionSurface;
pub use toolkits::{SessionToolkit, SessionToolkitFilter};

use self::answer::{McpAddress, SessionWarning, ShownConfig, ShownExperimental};
use self::config::Config;
use self::custom::CustomTools;
use crate::page::{Page, Window};
use crate::{ApiError, ComposioApi, Refusal, ids};

/// How often a change is tried that others come before.
const TRIES: usize = 5;

/// What a call is held to: what a session lets its user use.
#[derive(Clone, Debug)]
pub struct Within {
    config: Config,
    /// Acts with the accounts of the session's user and of nobody else.
    scope: Scope,
    /// The session's id as Composio would write it; empty where there is none.
    id: String,
}

/// A session that holds.
#[derive(Clone, Debug)]
pub struct OpenSession {
    routed: RoutedSession,
    within: Within,
}

impl OpenSession {
    fn new(routed: RoutedSession, config: Config, scope: Scope) -> Self {
        let id = ids::SESSION.show(routed.session.id);
        Self { routed, within: Within { config, scope, id } }
    }

    pub fn within(&self) -> &Within {
        &self.within
    }

    /// The row behind it.
    pub fn row(&self) -> &UserSession {
        &self.routed.session
    }
}

impl Within {
    /// What may be done in it.
    pub fn scope(&self) -> Scope {
        self.scope
    }
}

fn unknown(id: &str) -> Refusal {
    let id: String = id.chars().filter(|letter| !letter.is_control()).take(60).collect();
    Refusal::not_found("ToolRouterV2_SessionNotFound", format!("Session `{id}` was not found.")).fix("Make another session.")
}

fn read_config(stored: &Value) -> Result<Config, ApiError> {
    serde_json::from_value(stored.clone()).map_err(|_| store::StoreError::Column("config".to_owned()).into())
}

fn written(config: &Config) -> Result<Value, ApiError> {
    serde_json::to_value(config).map_err(|_| store::StoreError::Column("config".to_owned()).into())
}

/// What the rows say of a config that is too large is a bad request.
fn stored(error: UserSessionError) -> ApiError {
    match error {
        UserSessionError::Settings(why) => Refusal::bad_request(why).into(),
        other => other.into(),
    }
}

impl ComposioApi {
    /// Makes a session for a user.
    #[kernel::boxed]
    pub async fn create_session(&self, scope: Scope, new: NewSession) -> Result<SessionAnswer, ApiError> {
        let NewSession { user_id, blocks } = new;
        let names = self.names(scope).await?;
        let experimental = blocks.experimental.value().cloned();
        let custom = CustomTools::read(experimental.as_ref(), &names)?;
        let config = Config::default().changed(blocks, &names)?;
        let within = self.acting_for(scope, &user_id).await?;
        self.check_named(within, &config).await?;
        let routed = self.parts().user_sessions.create_routed(within, written(&config)?).await.map_err(stored)?;
        let session = OpenSession::new(routed, config, within);
        let timezone = experimental.and_then(|experimental| experimental.assistive_prompt_config?.user_timezone);
        self.session_answer(&session, custom, timezone.as_deref()).await
    }

    /// The session of that id, if it is one of this project and has not ended.
    #[kernel::boxed]
    pub async fn open_session(&self, scope: Scope, id: &str) -> Result<OpenSession, ApiError> {
        let row = ids::SESSION.read(id).ok_or_else(|| unknown(id))?;
        let routed = match self.parts().user_sessions.routed(scope.project, row).await {
            Err(UserSessionError::NotFound) => return Err(unknown(id).into()),
            found => found?,
        };
        let config = read_config(&routed.config.config)?;
        let scope = routed.session.within(scope);
        Ok(OpenSession::new(routed, config, scope))
    }

    #[kernel::boxed]
    pub async fn session(&self, session: &OpenSession) -> Result<SessionAnswer, ApiError> {
        self.session_answer(session, CustomTools::default(), None).await
    }

    /// Changes a config, as a whole or not at all.
    #[kernel::boxed]
    pub async fn patch_session(&self, scope: Scope, id: &str, patch: PatchSession) -> Result<SessionAnswer, ApiError> {
        let PatchSession { expected_config_version, blocks } = patch;
        let names = self.names(scope).await?;
        let custom = CustomTools::read(blocks.experimental.value(), &names)?;
        // What was named before may be gone since; only what this change names must be there.
        let names_rows = blocks.connected_accounts.value().is_some() || blocks.auth_configs.value().is_some();
        for _ in 0..TRIES {
            let session = self.open_session(scope, id).await?;
            let version = session.routed.config.version;
            if expected_config_version.is_some_and(|expected| expected != version) {
                return Err(changed_meanwhile(version).into());
            }
            let config = session.within.config.clone().changed(blocks.clone(), &names)?;
            if names_rows {
                self.check_named(session.within.scope, &config).await?;
            }
            match self.parts().user_sessions.reconfigure(&session.routed, written(&config)?).await {
                Ok(routed) => {
                    let session = OpenSession::new(routed, config, session.within.scope);
                    return self.session_answer(&session, custom, None).await;
                }
                Err(UserSessionError::Changed(version)) if expected_config_version.is_some() => {
                    return Err(changed_meanwhile(version).into());
                }
                // Somebody else came before; the change is made to what they left.
                Err(UserSessionError::Changed(_)) => {}
                Err(error) => return Err(stored(error)),
            }
        }
        Err(Refusal::conflict("ToolRouterV2_SessionConflict", "The session is being changed by others. Try again.").into())
    }

    /// Ends a session at once and for good.
    #[kernel::boxed]
    pub async fn delete_session(&self, scope: Scope, id: &str) -> Result<DeletedSession, ApiError> {
        let session = self.open_session(scope, id).await?;
        self.parts().user_sessions.revoke(scope.project, session.routed.session.id).await?;
        Ok(DeletedSession { session_id: session.within.id, deleted: true })
    }

    /// The configs that a session had, newest first.
    #[kernel::boxed]
    pub async fn session_history(&self, session: &OpenSession, window: Window) -> Result<Page<ConfigVersion>, ApiError> {
        let row = &session.routed.session;
        let user = self.user_of(row.project, row.owner).await?;
        let versions = self.parts().user_sessions.config_history(row.project, row.id).await?;
        let mut shown = Vec::with_capacity(versions.len());
        for one in versions {
            shown.push(ConfigVersion {
                version: one.version,
                config: ShownConfig::of(read_config(&one.config)?, user.clone()),
                created_at: one.created_at.to_string(),
                is_current: one.version == session.routed.config.version,
            });
        }
        Ok(window.cut(shown))
    }

    /// Gives names to tools of a caller's own. They are not kept: SDKs bring them along with every request.
    #[kernel::boxed]
    pub async fn attach_to_session(&self, session: &OpenSession, experimental: &Experimental) -> Result<SessionAnswer, ApiError> {
        let names = self.names(session.within.scope).await?;
        let custom = CustomTools::read(Some(experimental), &names)?;
        self.session_answer(session, custom, None).await
    }

    async fn session_answer(&self, session: &OpenSession, custom: CustomTools, timezone: Option<&str>) -> Result<SessionAnswer, ApiError> {
        let row = &session.routed.session;
        let user = self.user_of(row.project, row.owner).await?;
        let listed = self.listed_slugs(&session.within).await?;
        let preloaded = listed.len() - session.within.config.meta_tools().len();
        let CustomTools { tools: custom_tools, toolkits: custom_toolkits } = custom;
        Ok(SessionAnswer {
            session_id: session.within.id.clone(),
            mcp: McpAddress { r#type: "http", url: session_mcp(&self.parts().public_url, row.id) },
            tool_router_tools: listed,
            config_version: session.routed.config.version,
            experimental: Some(ShownExperimental {
                assistive_prompt: Some(assistive_prompt(&session.within.config, timezone)),
                custom_tools,
                custom_toolkits,
            }),
            config: ShownConfig::of(session.within.config.clone(), user),
            warnings: SessionWarning::about_tools(preloaded),
        })
    }
}

fn changed_meanwhile(version: i64) -> Refusal {
    let message = format!("The session's config was changed meanwhile; version {version} is in force.");
    Refusal::conflict("ToolRouterV2_SessionConfigVersionConflict", message).fix("Read the session and try again.")
}

/// What a model should know about a session.
fn assistive_prompt(config: &Config, timezone: Option<&str>) -> String {
    let mut words = Vec::new();
    if config.searches() {
        words.push("Search for tools before you say that something cannot be done; give one sentence for each thing to do.");
    }
    if config.calls_several() {
        words.push("Call what you found with COMPOSIO_MULTI_EXECUTE_TOOL, and only with arguments that its schema has.");
    }
    if config.connects() {
        words.push("Where an account is missing, ask for a link with COMPOSIO_MANAGE_CONNECTIONS and show it to the user as it is.");
    }
    words.push("A call that waits for a person says so: tell the user, and do not repeat it until they are done.");
    let timezone = timezone.filter(|zone| zone.len() <= 64 && !zone.contains(char::is_control));
    let zone = timezone.map(|zone| format!(" Times without a zone are in {zone}.")).unwrap_or_default();
    words.join(" ") + &zone
}
