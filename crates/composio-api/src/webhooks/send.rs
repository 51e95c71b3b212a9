//! Sending to the webhook of a project: events of triggers, which the engine of triggers tries again, and other messages.

use std::time::Duration;

use connections::ConnectionError;
use egress::webhook;
use futures_util::future::BoxFuture;
use http::{HeaderName, HeaderValue};
use kernel::{AccountOwner, CallId, ProjectId, Scope};
use serde_json::json;
use store::StoreError;
use triggers::{ProjectWebhook, Sent, Subscription, WebhookEvent};

use super::envelope::{TriggerMessage, trigger_body};
use super::{TRIGGER_DISABLED, TRIGGER_MESSAGE, Webhook};
use crate::trigger_instances::slug_of;
use crate::{ApiError, ComposioApi, ids};

const TIMEOUT: Duration = Duration::from_secs(15);
/// As much of an answer as is read; nothing is done with it.
const MAX_ANSWER: usize = 4 << 10;
const NOWHERE: &str = "The project has no webhook. Make one at /api/v3.1/webhook_subscriptions, then retry or replay what came in before.";
const UNWANTED: &str = "The webhook does not take events of triggers.";

impl ComposioApi {
    /// Posts a message once; the status that came back, or why none did.
    pub(super) async fn post(&self, webhook: &Webhook, id: &str, attempt: i64, body: String) -> Result<Result<u16, String>, ApiError> {
        let secrets = self.signing_secrets(webhook)?;
        let secrets: Vec<&str> = secrets.iter().map(String::as_str).collect();
        let Ok(url) = webhook.url.parse() else { return Ok(Err("The address of the webhook is none.".to_owned())) };
        let request = webhook::post_by_text(url, &secrets, id, self.parts().clock.now().seconds(), body);
        let request = request
            .header(HeaderName::from_static("x-composio-webhook-version"), HeaderValue::from_static(webhook.version.name()))
            .header(HeaderName::from_static("x-composio-delivery-attempt"), HeaderValue::from(attempt))
            .timeout(TIMEOUT)
            .max_response(MAX_ANSWER);
        let sent = self.parts().egress.send(request).await;
        Ok(sent.map(|response| response.status.as_u16()).map_err(|error| error.to_string()))
    }

    async fn send_event(&self, event: WebhookEvent<'_>) -> Result<Sent, ApiError> {
        let Some(webhook) = self.webhook(event.trigger.project).await? else { return Ok(Sent::Nowhere(NOWHERE.to_owned())) };
        if !webhook.takes(TRIGGER_MESSAGE) {
            return Ok(Sent::Unwanted(UNWANTED.to_owned()));
        }
        let message = self.trigger_message(event).await?;
        let id = message.id.clone();
        let body = trigger_body(webhook.version, message).to_string();
        Ok(match self.post(&webhook, &id, event.attempt, body).await? {
            Ok(status) => Sent::Answered(status),
            Err(why) => Sent::Unreachable(why),
        })
    }

    async fn trigger_message(&self, WebhookEvent { trigger, event, delivery, .. }: WebhookEvent<'_>) -> Result<TriggerMessage, ApiError> {
        let about = self.about(trigger).await?;
        Ok(TriggerMessage {
            id: ids::MESSAGE.show(delivery),
            log_id: ids::LOG.show(CallId::from(delivery.uuid())),
            at: Some(event.received_at),
            data: event.attributes.clone(),
            ..about
        })
    }

    /// What every message says about a trigger.
    async fn about(&self, trigger: &Subscription) -> Result<TriggerMessage, ApiError> {
        let names = self.names(Scope::operator(trigger.project)).await?;
        let connection = match trigger.connection {
            Some(id) => match self.parts().connections.get(trigger.project, id).await {
                Ok(connection) => Some(connection),
                Err(ConnectionError::NotFound) => None,
                Err(error) => return Err(error.into()),
            },
            None => None,
        };
        let auth_config_id = match &connection {
            Some(connection) => ids::AUTH_CONFIG.show(self.config_of(connection).await?.id),
            None => String::new(),
        };
        Ok(TriggerMessage {
            trigger_slug: slug_of(&names, trigger),
            trigger_id: ids::TRIGGER.show(trigger.id),
            trigger_uuid: trigger.id.to_string(),
            account_id: trigger.connection.map(|id| ids::ACCOUNT.show(id)).unwrap_or_default(),
            account_uuid: trigger.connection.map(|id| id.to_string()).unwrap_or_default(),
            auth_config_id,
            user_id: self.user_of(trigger.project, AccountOwner::from(trigger.actor.end_user)).await?,
            ..TriggerMessage::default()
        })
    }

    async fn tell_disabled(&self, trigger: &Subscription, why: &str) -> Result<(), ApiError> {
        if !self.webhook(trigger.project).await?.is_some_and(|webhook| webhook.takes(TRIGGER_DISABLED)) {
            return Ok(());
        }
        let about = self.about(trigger).await?;
        let now = self.parts().clock.now();
        let data = json!({
            "trigger_id": about.trigger_id, "trigger_slug": about.trigger_slug, "user_id": about.user_id,
            "connected_account_id": about.account_id, "reason": why, "disabled_at": now.to_string(),
        });
        let metadata = json!({
            "project_id": trigger.project, "org_id": trigger.project, "trigger_id": about.trigger_id, "trigger_slug": about.trigger_slug,
            "connected_account_id": about.account_id, "auth_config_id": about.auth_config_id, "user_id": about.user_id,
        });
        self.write_down(trigger.project, trigger.actor.end_user, TRIGGER_DISABLED, &metadata, &data).await
    }
}

/// What is not the database's fault is said in the log of the delivery, and tried again.
fn unless_stored(error: ApiError) -> Result<Sent, StoreError> {
    match error {
        ApiError::Store(error) => Err(error),
        other => Ok(Sent::Unreachable(other.to_string())),
    }
}

impl ProjectWebhook for ComposioApi {
    fn send<'a>(&'a self, event: WebhookEvent<'a>) -> BoxFuture<'a, Result<Sent, StoreError>> {
        Box::pin(async move { self.send_event(event).await.or_else(unless_stored) })
    }

    fn disabled<'a>(&'a self, trigger: &'a Subscription, why: &'a str) -> BoxFuture<'a, Result<(), StoreError>> {
        Box::pin(async move {
            match self.tell_disabled(trigger, why).await {
                Err(ApiError::Store(error)) => Err(error),
                Err(error) => {
                    tracing::error!(trigger = %trigger.id, %error, "a webhook could not be told that a trigger stopped");
                    Ok(())
                }
                Ok(()) => Ok(()),
            }
        })
    }
}

/// The ids of a project where Composio has one of an organisation too.
pub(super) fn project_metadata(project: ProjectId) -> serde_json::Value {
    json!({"project_id": project, "org_id": project})
}
