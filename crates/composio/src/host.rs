//! Connecting accounts on Composio's pages. An auth config says how the accounts of a toolkit are connected; ours have names that say what is
//! in them, so that connections share one and any node finds it again.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use connections::{Begun, Host, HostError, RemoteAccount, Standing, Start};
use futures_util::future::BoxFuture;
use kernel::{ProjectId, hex};
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::Composio;
use crate::client::{ApiRequest, ComposioError};
use crate::mirror::{one, pages};

const PAGE: usize = 100;
const MOST_CONFIGS: usize = 10_000;
const FORGET_TIMEOUT: Duration = Duration::from_secs(15);

/// The ids of auth configs that were found or made, by name.
#[derive(Debug, Default)]
pub(crate) struct Configs(Mutex<HashMap<String, String>>);

impl Configs {
    fn get(&self, name: &str) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    fn set(&self, name: &str, id: Option<&str>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST_CONFIGS {
            known.clear();
        }
        match id {
            Some(id) => known.insert(name.to_owned(), id.to_owned()),
            None => known.remove(name),
        };
    }
}

/// An auth config, as far as it is read.
#[derive(Debug, Deserialize)]
struct Config {
    id: String,
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    status: Option<String>,
    #[serde(default)]
    is_composio_managed: Option<bool>,
    #[serde(default)]
    auth_scheme: Option<String>,
}

impl Config {
    /// Whether it is what its name says.
    fn serves(&self, start: &Start<'_>, name: &str) -> bool {
        self.name.as_deref() == Some(name)
            && self.status.as_deref().is_none_or(|status| status.eq_ignore_ascii_case("ENABLED"))
            && self.is_composio_managed.is_none_or(|managed| managed == (start.scheme.is_oauth && start.app.is_none()))
            && self.auth_scheme.as_deref().is_none_or(|scheme| scheme.eq_ignore_ascii_case(&start.scheme.scheme))
    }
}

/// A connected account, as far as it is read.
#[derive(Debug, Deserialize)]
struct Account {
    id: String,
    #[serde(default)]
    status: Option<String>,
    #[serde(default)]
    status_reason: Option<String>,
    #[serde(default)]
    is_disabled: Option<bool>,
    #[serde(default)]
    alias: Option<String>,
    #[serde(default)]
    user_id: Option<String>,
    #[serde(default)]
    created_at: Option<String>,
}

impl Host for Composio {
    fn begin<'a>(&'a self, start: Start<'a>) -> BoxFuture<'a, Result<Begun, HostError>> {
        Box::pin(async move {
            let name = config_name(&start);
            let (config, is_known) = self.config(&start, &name).await.map_err(refused)?;
            let linked = match self.link(&start, &config).await {
                // A config that is remembered may be gone by now.
                Err(ComposioError::Refused { .. }) if is_known => {
                    self.configs.set(&name, None);
                    let (config, _) = self.config(&start, &name).await.map_err(refused)?;
                    self.link(&start, &config).await
                }
                linked => linked,
            };
            match linked {
                Err(fault) if fault.is_uncertain() => {
                    self.forget_marked(start.project, start.mark).await;
                    Err(refused(fault))
                }
                linked => linked.map_err(refused),
            }
        })
    }

    fn standing<'a>(&'a self, account: &'a str) -> BoxFuture<'a, Result<Standing, HostError>> {
        Box::pin(async move {
            match self.client.ask(ApiRequest::get(&["connected_accounts", account])).await {
                Ok(found) => Ok(one::<Account>(found).map_err(refused)?.standing()),
                Err(fault) if fault.is_missing() => Ok(Standing::Broken("Composio does not have this account any more.".to_owned())),
                Err(fault) => Err(refused(fault)),
            }
        })
    }

    fn forget<'a>(&'a self, account: &'a str) -> BoxFuture<'a, Result<(), HostError>> {
        Box::pin(async move {
            match self.client.ask(ApiRequest::delete(&["connected_accounts", account]).within(FORGET_TIMEOUT)).await {
                Err(fault) if !fault.is_missing() => Err(refused(fault)),
                _ => Ok(()),
            }
        })
    }

    fn accounts(&self, project: ProjectId) -> BoxFuture<'_, Result<Vec<RemoteAccount>, HostError>> {
        Box::pin(async move {
            let accounts = self.accounts_of(project).await.map_err(refused)?;
            Ok(accounts.into_iter().map(Account::remote).collect())
        })
    }
}

impl Composio {
    /// The auth config to connect with, made if there is none, and whether it was only remembered.
    async fn config(&self, start: &Start<'_>, name: &str) -> Result<(String, bool), ComposioError> {
        if let Some(id) = self.configs.get(name) {
            return Ok((id, true));
        }
        let toolkit = start.integration.key.as_str();
        let listed: Vec<Config> = pages(&self.client, &["auth_configs"], &[("toolkit_slug", toolkit), ("search", name)], PAGE).await?;
        let id = if let Some(config) = listed.iter().find(|config| config.serves(start, name)) {
            config.id.clone()
        } else {
            let made = self.client.ask(ApiRequest::post(&["auth_configs"], order(start, name))).await?;
            text(&made, "/auth_config/id")?
        };
        self.configs.set(name, Some(&id));
        Ok((id, false))
    }

    async fn link(&self, start: &Start<'_>, config: &str) -> Result<Begun, ComposioError> {
        let body = json!({
            "auth_config_id": config,
            "user_id": start.project,
            "callback_url": start.callback_url,
            "alias": start.mark,
        });
        let made = self.client.ask(ApiRequest::post(&["connected_accounts", "link"], body)).await?;
        Ok(Begun { account: text(&made, "/connected_account_id")?, redirect_url: text(&made, "/redirect_url")? })
    }

    /// Removes what an attempt may have made before its answer was lost.
    async fn forget_marked(&self, project: ProjectId, mark: &str) {
        let Ok(accounts) = self.accounts_of(project).await else { return };
        for account in accounts.iter().filter(|account| account.alias.as_deref() == Some(mark)) {
            if let Err(error) = self.forget(&account.id).await {
                tracing::info!(?error, "an account whose making failed could not be removed yet");
            }
        }
    }

    async fn accounts_of(&self, project: ProjectId) -> Result<Vec<Account>, ComposioError> {
        let user = project.to_string();
        let mut accounts: Vec<Account> = pages(&self.client, &["connected_accounts"], &[("user_ids", &user)], PAGE).await?;
        // Never another's, whatever the list says.
        accounts.retain(|account| account.user_id.as_deref() == Some(user.as_str()));
        Ok(accounts)
    }
}

impl Account {
    fn standing(&self) -> Standing {
        let status = self.status.as_deref().unwrap_or_default();
        match status {
            "ACTIVE" if self.is_disabled == Some(true) => Standing::Broken("The account is switched off at Composio.".to_owned()),
            "ACTIVE" => Standing::Works,
            "INITIALIZING" | "INITIATED" => Standing::Waits,
            other => {
                let reason = self.status_reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
                let reason: String = reason.chars().filter(|c| !c.is_control()).take(300).collect();
                Standing::Broken(format!("Composio says that the account is {}{reason}", other.to_lowercase()))
            }
        }
    }

    fn remote(self) -> RemoteAccount {
        RemoteAccount { standing: self.standing(), created_at: self.created_at.as_deref().and_then(crate::time), id: self.id }
    }
}

/// A name that says what is in the config: toolkit, scheme, scopes, and whose OAuth app.
fn config_name(start: &Start<'_>) -> String {
    let own = start.app.map(|app| json!([start.project, app.client_id, app.client_secret]));
    let digest = Sha256::digest(json!([start.scheme.scheme, start.scopes, own]).to_string());
    format!("toolyard-{}-{}", start.integration.key, hex::encode(&digest[..16]))
}

/// The config as Composio takes it.
fn order(start: &Start<'_>, name: &str) -> Value {
    let mut credentials = json!({});
    if let Some(scopes) = start.scopes {
        credentials["scopes"] = json!(scopes);
    }
    let mut config = match start.app {
        None if start.scheme.is_oauth => json!({"type": "use_composio_managed_auth", "name": name}),
        None => json!({"type": "use_custom_auth", "authScheme": start.scheme.scheme, "name": name}),
        Some(app) => {
            credentials["client_id"] = json!(app.client_id);
            credentials["client_secret"] = json!(app.client_secret);
            json!({"type": "use_custom_auth", "authScheme": start.scheme.scheme, "name": name})
        }
    };
    if credentials.as_object().is_some_and(|given| !given.is_empty()) {
        config["credentials"] = credentials;
    }
    json!({"toolkit": {"slug": start.integration.key}, "auth_config": config})
}

fn text(value: &Value, place: &str) -> Result<String, ComposioError> {
    let found = value.pointer(place).and_then(Value::as_str).filter(|text| !text.is_empty());
    found.map(str::to_owned).ok_or_else(|| ComposioError::Malformed(format!("`{place}` is missing")))
}

fn refused(fault: ComposioError) -> HostError {
    match fault {
        ComposioError::Server { status, .. } => HostError::Server(status),
        ComposioError::Unreachable(error) => HostError::Unreachable(error),
        other => HostError::Refused(other.to_string()),
    }
}
