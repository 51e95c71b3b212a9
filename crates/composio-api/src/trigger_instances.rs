//! Trigger instances: subscriptions whose events go to the project's webhook. Those that run workflows are not shown here.

use std::collections::HashMap;

use connections::{AccountFilter, AccountsOf, Connection, NewConnection};
use document::ToSchema;
use kernel::{AccountOwner, ConnectionId, EndUserId, Scope, json};
use serde::Serialize;
use serde_json::{Map, Value, json};
use triggers::{Labels, NewSubscription, RowKind, Subscription, TargetKind, TriggerError, WEBHOOK, WatchMethod, WebhookTriggers};
use uuid::Uuid;

use crate::names::{Names, Toolkit};
use crate::page::{Page, Window};
use crate::tools::Versions;
use crate::trigger_types::Watchable;
use crate::{ApiError, ComposioApi, DEFAULT_USER, Refusal, ids};

const MOST: usize = 100;
/// The largest configuration of a trigger.
const MAX_CONFIG: usize = 64 << 10;
/// As many accounts of auth configs as are looked through.
const MAX_ACCOUNTS: usize = 500;
/// As many values as one filter may name.
const MAX_NAMED: usize = 100;

/// What a trigger instance shall be.
#[derive(Clone, Debug, Default)]
pub struct NewTrigger {
    pub user: Option<String>,
    pub account: Option<String>,
    pub config: Map<String, Value>,
    pub versions: Versions,
}

/// Which trigger instances to list. An empty filter leaves out nothing.
#[derive(Clone, Debug, Default)]
pub struct TriggerFilter {
    pub ids: Vec<String>,
    pub slugs: Vec<String>,
    pub accounts: Vec<String>,
    pub auth_configs: Vec<String>,
    pub users: Vec<String>,
    pub show_disabled: bool,
}

/// The id of a trigger instance that is there now.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = composio::UpsertedTrigger)]
pub struct UpsertedTrigger {
    pub trigger_id: String,
    pub deprecated: UpsertedUuid,
}

/// The same id in an older form.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = composio::UpsertedUuid)]
pub struct UpsertedUuid {
    pub uuid: Uuid,
}

/// A trigger instance. What Composio renamed is there under both names, because its SDKs read one or the other.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = composio::TriggerInstance)]
pub struct TriggerBody {
    pub id: String,
    pub uuid: Uuid,
    pub user_id: String,
    pub trigger_name: String,
    #[serde(rename = "triggerName")]
    pub trigger_name_before: String,
    /// Empty for the plain webhook.
    pub connected_account_id: String,
    #[serde(rename = "connectedAccountId")]
    pub connected_account_id_before: String,
    pub connected_account_uuid: String,
    #[schema(value_type = Object)]
    pub trigger_config: Value,
    #[serde(rename = "triggerConfig")]
    #[schema(value_type = Object)]
    pub trigger_config_before: Value,
    pub version: String,
    /// `url`, where events have to be sent by somebody who was told by hand; `reason`, why it is disabled.
    #[schema(value_type = Object)]
    pub state: Value,
    pub updated_at: String,
    #[serde(rename = "updatedAt")]
    pub updated_at_before: String,
    #[schema(required = true)]
    pub disabled_at: Option<String>,
    #[serde(rename = "disabledAt")]
    #[schema(required = true)]
    pub disabled_at_before: Option<String>,
    /// Always null: events go to the project's webhook.
    #[schema(required = true)]
    pub egress_url: Option<String>,
    pub deprecated: TriggerCreated,
}

/// When it was made.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = composio::TriggerCreated)]
pub struct TriggerCreated {
    #[serde(rename = "createdAt")]
    pub created_at: String,
}

fn not_found(id: &str) -> Refusal {
    let shown: String = id.chars().filter(|letter| !letter.is_control()).take(60).collect();
    Refusal::not_found("TriggerInstance_NotFound", format!("There is no trigger `{shown}`."))
}

/// What a domain refuses is a bad configuration, unless it says more.
fn refused(error: TriggerError) -> ApiError {
    match error {
        TriggerError::Invalid(why) | TriggerError::BadRequest(why) => {
            // The words of the native API, whose body is another one.
            let message = why.replace("`data.trigger_config.", "`trigger_config.").replace("`data.trigger_config`", "`trigger_config`");
            Refusal::bad_request(message.replace("`data.secret`", "`trigger_config.secret`")).into()
        }
        other => other.into(),
    }
}

impl ComposioApi {
    /// Makes a trigger, or enables the one that watches the same.
    #[kernel::boxed]
    pub async fn upsert_trigger(&self, scope: Scope, slug: &str, new: NewTrigger) -> Result<UpsertedTrigger, ApiError> {
        let kind = self.watchable(scope, slug).await?;
        kind.check_version(&new.versions)?;
        let config = Value::Object(new.config);
        if json::size(&config, MAX_CONFIG) >= MAX_CONFIG {
            return Err(Refusal::bad_request(format!("`trigger_config` may have {MAX_CONFIG} bytes.")).into());
        }
        let (user, account) = (written(new.user.as_deref()), written(new.account.as_deref()));
        if user.is_none() && account.is_none() {
            return Err(Refusal::bad_request("Give `user_id` or `connected_account_id`.").into());
        }
        let (acting, connection) = match &kind {
            Watchable::Event(event) => self.watched_account(scope, &event.toolkit, user, account).await?,
            Watchable::Webhook if account.is_some() => {
                return Err(Refusal::bad_request("The plain webhook has no account; give `user_id` alone.").into());
            }
            Watchable::Webhook => (self.acting_for(scope, user.unwrap_or(DEFAULT_USER)).await?, None),
        };
        let (_, _, event_key) = kind.place();
        let new = NewSubscription {
            connection,
            labels: Labels::default(),
            target: TargetKind::Webhook,
            data: json!({"event_key": event_key, "trigger_config": config}),
            is_active: true,
            is_valid: true,
            is_test: false,
        };
        let made = self.parts().triggers.subscribe_webhook(acting, new).await.map_err(refused)?.subscription;
        Ok(UpsertedTrigger { trigger_id: ids::TRIGGER.show(made.id), deprecated: UpsertedUuid { uuid: made.id.uuid() } })
    }

    /// The account that is watched, and for whom. A toolkit without accounts gets a row that the trigger can hang on.
    async fn watched_account(
        &self,
        scope: Scope,
        toolkit: &Toolkit,
        user: Option<&str>,
        account: Option<&str>,
    ) -> Result<(Scope, Option<ConnectionId>), ApiError> {
        let chosen = self.account_for(scope, toolkit, user, account).await?;
        if let Some(connection) = chosen.connection {
            return Ok((chosen.scope, Some(connection.id)));
        }
        let (connections, integration) = (&self.parts().connections, &toolkit.integration);
        let of = AccountsOf::from(chosen.scope);
        let rows = connections.query(of, Some(integration.provider), Some(&integration.key)).await?;
        if let Some(row) = rows.iter().find(|row| row.is_usable()) {
            return Ok((chosen.scope, Some(row.id)));
        }
        let new = NewConnection {
            slug: if chosen.scope.end_user().is_some() { String::new() } else { Connection::usual_slug(&integration.key) },
            provider: integration.provider.to_owned(),
            integration: integration.key.clone(),
            ..NewConnection::default()
        };
        let made = connections.create(chosen.scope, new).await?;
        Ok((chosen.scope, Some(made.connection.id)))
    }

    /// Trigger instances, newest first.
    #[kernel::boxed]
    pub async fn triggers(
        &self,
        scope: Scope,
        filter: &TriggerFilter,
        limit: Option<&str>,
        cursor: Option<&str>,
    ) -> Result<Page<TriggerBody>, ApiError> {
        let window = Window::read(limit, cursor, MOST)?;
        for named in [&filter.ids, &filter.slugs, &filter.accounts, &filter.auth_configs, &filter.users] {
            if named.len() > MAX_NAMED {
                return Err(Refusal::bad_request(format!("A filter may name {MAX_NAMED} values.")).into());
            }
        }
        // What cannot be one of ours fits nothing.
        let Some(query) = self.trigger_query(scope, filter).await? else { return Ok(window.page(Vec::new(), 0)) };
        let (rows, total) = self.parts().triggers.webhook_triggers(scope, &query, window.offset(), window.limit()).await?;
        let names = self.names(scope).await?;
        let users = self.users_of(scope.project, rows.iter().filter_map(|row| row.actor.end_user).collect()).await?;
        let bodies = rows.iter().map(|row| self.trigger_body(row, &names, &users)).collect();
        Ok(window.page(bodies, total))
    }

    async fn trigger_query(&self, scope: Scope, filter: &TriggerFilter) -> Result<Option<WebhookTriggers>, ApiError> {
        let mut query = WebhookTriggers { only_active: !filter.show_disabled, ..WebhookTriggers::default() };
        query.ids = filter.ids.iter().filter_map(|id| ids::TRIGGER.read(id)).collect();
        query.connections = filter.accounts.iter().filter_map(|id| ids::ACCOUNT.read(id)).collect();
        let names = self.names(scope).await?;
        for slug in &filter.slugs {
            if slug.eq_ignore_ascii_case(triggers::WEBHOOK_EVENT) {
                query.events.push(Watchable::Webhook.place());
            } else if let Some(kind) = names.find_trigger_type(slug) {
                query.events.push(Watchable::Event(kind).place());
            }
        }
        for user in &filter.users {
            let owner = self.looking_for(scope, user).await?.end_user();
            if owner != Some(EndUserId::nil()) {
                query.owners.push(owner);
            }
        }
        let mut is_possible = true;
        if !filter.auth_configs.is_empty() {
            let of_configs = self.accounts_of_configs(scope, &filter.auth_configs).await?;
            if filter.accounts.is_empty() {
                query.connections = of_configs;
            } else {
                query.connections.retain(|id| of_configs.contains(id));
            }
            is_possible = !query.connections.is_empty();
        }
        let fits = |asked: &[String], read: usize| asked.is_empty() || read > 0;
        is_possible &= fits(&filter.ids, query.ids.len())
            && fits(&filter.accounts, query.connections.len())
            && fits(&filter.slugs, query.events.len())
            && fits(&filter.users, query.owners.len());
        Ok(is_possible.then_some(query))
    }

    /// The accounts that were made with some auth configs.
    async fn accounts_of_configs(&self, scope: Scope, configs: &[String]) -> Result<Vec<ConnectionId>, ApiError> {
        let mut made_with = Vec::new();
        for id in configs {
            match self.auth_config(scope, id).await {
                Ok(config) => made_with.push(config.made_with()),
                // One that is not there made nothing.
                Err(ApiError::Refused(refusal)) if refusal.status == 404 => {}
                Err(error) => return Err(error),
            }
        }
        let filter = AccountFilter { made_with: Some(made_with), ..AccountFilter::default() };
        let page = self.parts().connections.list(scope, &filter, 0, MAX_ACCOUNTS).await?;
        if page.total > MAX_ACCOUNTS {
            let why = "These auth configs have too many accounts to list their triggers; name `connected_account_ids` or `user_ids`.";
            return Err(Refusal::bad_request(why).into());
        }
        Ok(page.rows.iter().map(|row| row.id).collect())
    }

    /// Enables or disables a trigger.
    #[kernel::boxed]
    pub async fn switch_trigger(&self, scope: Scope, id: &str, enable: bool) -> Result<(), ApiError> {
        let row = self.own_trigger(scope, id).await?;
        let triggers = &self.parts().triggers;
        if !enable {
            triggers.stop_subscription(scope, row.id).await.map_err(refused)?;
            return Ok(());
        }
        if !row.is_valid {
            triggers.refresh_subscription(scope, row.id).await.map_err(refused)?;
        }
        triggers.start_subscription(scope, row.id).await.map_err(refused)?;
        Ok(())
    }

    #[kernel::boxed]
    pub async fn delete_trigger(&self, scope: Scope, id: &str) -> Result<String, ApiError> {
        let row = self.own_trigger(scope, id).await?;
        self.parts().triggers.unsubscribe(scope, row.id).await?;
        Ok(ids::TRIGGER.show(row.id))
    }

    async fn own_trigger(&self, scope: Scope, id: &str) -> Result<Subscription, ApiError> {
        let known = ids::TRIGGER.read(id).ok_or_else(|| not_found(id))?;
        self.parts().triggers.webhook_trigger(scope, known).await.map_err(|error| match error {
            TriggerError::NotFound(RowKind::Subscription) => not_found(id).into(),
            other => other.into(),
        })
    }

    fn trigger_body(&self, row: &Subscription, names: &Names, users: &HashMap<EndUserId, String>) -> TriggerBody {
        let slug = slug_of(names, row);
        let user = match AccountOwner::from(row.actor.end_user) {
            AccountOwner::Project => DEFAULT_USER.to_owned(),
            AccountOwner::EndUser(end_user) => users.get(&end_user).cloned().unwrap_or_default(),
        };
        let account = row.connection.map(|id| ids::ACCOUNT.show(id)).unwrap_or_default();
        let config = row.data.get("trigger_config").filter(|config| config.is_object()).cloned().unwrap_or_else(|| json!({}));
        let version = match names.toolkit_of(&row.provider, &row.integration) {
            Some(toolkit) => toolkit.version(),
            None => Watchable::Webhook.version(),
        };
        let mut state = Map::new();
        let method = self.parts().triggers.method(&row.provider, &row.integration, &row.event_key);
        if row.integration == WEBHOOK || matches!(method, Some(WatchMethod::ByHand(_))) {
            state.insert("url".to_owned(), json!(self.parts().triggers.address(row)));
        }
        if let Some(reason) = &row.reason {
            state.insert("reason".to_owned(), json!(reason));
        }
        let updated_at = row.life.updated_at.to_string();
        let disabled_at = (!(row.is_active && row.is_valid)).then(|| updated_at.clone());
        TriggerBody {
            id: ids::TRIGGER.show(row.id),
            uuid: row.id.uuid(),
            user_id: user,
            trigger_name: slug.clone(),
            trigger_name_before: slug,
            connected_account_id: account.clone(),
            connected_account_id_before: account,
            connected_account_uuid: row.connection.map(|id| id.uuid().to_string()).unwrap_or_default(),
            trigger_config: config.clone(),
            trigger_config_before: config,
            version,
            state: Value::Object(state),
            updated_at: updated_at.clone(),
            updated_at_before: updated_at,
            disabled_at: disabled_at.clone(),
            disabled_at_before: disabled_at,
            egress_url: None,
            deprecated: TriggerCreated { created_at: row.life.created_at.to_string() },
        }
    }
}

/// A text that says something.
fn written(text: Option<&str>) -> Option<&str> {
    text.map(str::trim).filter(|text| !text.is_empty())
}

/// The slug of what a trigger watches; of an integration that is gone, what is left of it.
pub(crate) fn slug_of(names: &Names, row: &Subscription) -> String {
    if row.integration == WEBHOOK {
        return row.event_key.clone();
    }
    let kind = names.toolkit_of(&row.provider, &row.integration).and_then(|toolkit| toolkit.trigger_type(&row.event_key));
    kind.map_or_else(|| row.event_key.to_uppercase(), |kind| kind.slug().to_owned())
}
