//! Accounts of a session's user: connecting them by links, and waiting for people who open those.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use connections::Connection;
use document::ToSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::Within;
use super::execute::{completed, texts};
use super::search::SessionAccount;
use crate::connected_accounts::{LinkBody, NewConnect};
use crate::execute::ExecutedTool;
use crate::names::Toolkit;
use crate::{ApiError, ComposioApi, Refusal};

const MAX_TOOLKITS: usize = 20;
/// How long somebody waits for a person, and how often it is looked.
const WAIT: Duration = Duration::from_secs(30);
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// A request for a link to connect an account of a session's user.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[schema(as = composio::LinkInSession)]
pub struct LinkInSession {
    pub toolkit: String,
    /// Where the browser goes in the end; the session may say so for all.
    pub callback_url: Option<String>,
    pub alias: Option<String>,
    #[schema(value_type = Option<Object>)]
    pub experimental: Option<Value>,
}

/// A link to connect an account.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = composio::LinkedInSession)]
pub struct LinkedInSession {
    pub link_token: String,
    pub redirect_url: String,
    pub connected_account_id: String,
}

/// How far a toolkit is connected.
#[derive(Debug, Serialize)]
struct ConnectedToolkit {
    toolkit: String,
    /// `active`, `initiated` or `failed`.
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    redirect_url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    connected_account_id: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    accounts: Vec<SessionAccount>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_message: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    instruction: Option<String>,
}

impl ConnectedToolkit {
    fn new(toolkit: &str, status: &'static str) -> Self {
        let toolkit = toolkit.to_owned();
        Self {
            toolkit,
            status,
            redirect_url: None,
            connected_account_id: None,
            accounts: Vec::new(),
            error_message: None,
            instruction: None,
        }
    }
}

impl ComposioApi {
    /// A link that the session's user opens to connect an account.
    #[kernel::boxed]
    pub async fn link_in_session(&self, session: &Within, request: LinkInSession) -> Result<LinkedInSession, ApiError> {
        if request.experimental.as_ref().is_some_and(|asked| asked["account_type"] == "SHARED" || !asked["acl_config_for_shared"].is_null())
        {
            return Err(Refusal::bad_request("SHARED accounts are not served here; an account is one user's.").into());
        }
        let toolkit = self.toolkit_in_session(session, &request.toolkit).await?;
        let linked = self.link_toolkit(session, &toolkit, request.callback_url.as_deref(), request.alias.as_deref()).await?;
        let LinkBody { link_token, redirect_url, connected_account_id, .. } = linked;
        Ok(LinkedInSession { link_token, redirect_url, connected_account_id })
    }

    async fn toolkit_in_session(&self, session: &Within, slug: &str) -> Result<Arc<Toolkit>, ApiError> {
        let toolkit = self.toolkit(session.scope, slug).await?;
        if session.config.has_toolkit(&toolkit.slug) {
            return Ok(toolkit);
        }
        let message = format!("Toolkit `{}` is outside of what this session may use.", toolkit.slug);
        Err(Refusal::forbidden("ToolRouterV2_ToolkitNotAllowed", message).into())
    }

    async fn link_toolkit(
        &self,
        session: &Within,
        toolkit: &Arc<Toolkit>,
        callback: Option<&str>,
        alias: Option<&str>,
    ) -> Result<LinkBody, ApiError> {
        let slug = &toolkit.slug;
        if toolkit.integration.is_no_auth() {
            return Err(Refusal::bad_request(format!("Toolkit `{slug}` needs no account.")).into());
        }
        let most = session.config.most_accounts();
        if session.config.has_several() && self.accounts_in(session, toolkit).await?.iter().filter(|row| row.is_usable()).count() >= most {
            let message = format!("The user has {most} accounts of toolkit `{slug}`, as many as this session allows.");
            return Err(Refusal::bad_request(message).into());
        }
        let config = match session.config.auth_configs.get(slug) {
            Some(id) => self.auth_config(session.scope, id).await?,
            None => self.usual_auth_config(session.scope, toolkit).await?,
        };
        let user = self.user_of(session.scope.project, session.scope.acts_for).await?;
        let callback = callback.or(session.config.connecting.callback_url.as_deref());
        self.link(session.scope, &config, NewConnect { user: &user, alias, callback, values: Map::new() }).await
    }

    /// Says of each toolkit that an account is there, or has a link to connect one.
    pub(super) async fn manage_connections(&self, session: &Within, arguments: &Map<String, Value>) -> Result<ExecutedTool, ApiError> {
        let slugs = texts(arguments, "toolkits", MAX_TOOLKITS)?;
        let again = arguments.get("reinitiate_all").and_then(Value::as_bool).unwrap_or(false);
        let mut results: BTreeMap<String, ConnectedToolkit> = BTreeMap::new();
        for slug in slugs {
            let one = match self.connect_toolkit(session, &slug, again).await {
                Err(ApiError::Refused(refusal)) => {
                    ConnectedToolkit { error_message: Some(refusal.message), ..ConnectedToolkit::new(&slug.to_lowercase(), "failed") }
                }
                done => done?,
            };
            results.insert(one.toolkit.clone(), one);
        }
        let count = |status: &str| results.values().filter(|one| one.status == status).count();
        let (active, initiated, failed) = (count("active"), count("initiated"), count("failed"));
        let message = match (initiated, failed) {
            (0, 0) => "Every account is there.".to_owned(),
            (0, _) => format!("{failed} of {} could not be connected.", results.len()),
            _ => "Show the user each `redirect_url` as it is, and go on when they are done.".to_owned(),
        };
        let summary = json!({
            "total_toolkits": results.len(),
            "active_connections": active,
            "initiated_connections": initiated,
            "failed_connections": failed,
        });
        Ok(completed(json!({"message": message, "results": results, "summary": summary})))
    }

    async fn connect_toolkit(&self, session: &Within, slug: &str, again: bool) -> Result<ConnectedToolkit, ApiError> {
        let toolkit = self.toolkit_in_session(session, slug).await?;
        if toolkit.integration.is_no_auth() {
            let instruction = Some("It needs no account.".to_owned());
            return Ok(ConnectedToolkit { instruction, ..ConnectedToolkit::new(&toolkit.slug, "active") });
        }
        let rows = self.accounts_in(session, &toolkit).await?;
        if !again && rows.iter().any(Connection::is_usable) {
            let accounts = self.shown_accounts(&rows);
            return Ok(ConnectedToolkit { accounts, ..ConnectedToolkit::new(&toolkit.slug, "active") });
        }
        let linked = self.link_toolkit(session, &toolkit, None, None).await?;
        Ok(ConnectedToolkit {
            redirect_url: Some(linked.redirect_url),
            connected_account_id: Some(linked.connected_account_id),
            instruction: Some("The user has to open the link and to finish there.".to_owned()),
            ..ConnectedToolkit::new(&toolkit.slug, "initiated")
        })
    }

    /// Waits until the user has connected one of some toolkits, or all of them, but not for ever.
    pub(super) async fn wait_for_connections(&self, session: &Within, arguments: &Map<String, Value>) -> Result<ExecutedTool, ApiError> {
        let slugs = texts(arguments, "toolkits", MAX_TOOLKITS)?;
        let needs_all = match arguments.get("mode").and_then(Value::as_str) {
            None | Some("all") => true,
            Some("any") => false,
            Some(_) => return Err(Refusal::bad_request("`mode` must be `any` or `all`.").into()),
        };
        let mut toolkits = Vec::with_capacity(slugs.len());
        for slug in &slugs {
            toolkits.push(self.toolkit_in_session(session, slug).await?);
        }
        let until = tokio::time::Instant::now() + WAIT;
        loop {
            let mut connected = Vec::with_capacity(toolkits.len());
            for toolkit in &toolkits {
                connected.push(self.toolkit_status(session, toolkit).await?.has_active_connection);
            }
            let is_done = if needs_all { connected.iter().all(|is_it| *is_it) } else { connected.contains(&true) };
            if is_done || tokio::time::Instant::now() + LOOK_EVERY >= until {
                let word = |is_it: &bool| if *is_it { "active" } else { "initiated" };
                let results: BTreeMap<&str, Value> = toolkits
                    .iter()
                    .zip(&connected)
                    .map(|(toolkit, is_it)| (toolkit.slug.as_str(), json!({"toolkit": toolkit.slug, "status": word(is_it)})))
                    .collect();
                let message = if is_done { "Connected." } else { "Not yet connected; wait again, or ask the user." };
                return Ok(completed(json!({"message": message, "timed_out": !is_done, "results": results})));
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
    }
}
