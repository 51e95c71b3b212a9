//! Trigger types: the events of integrations, and the plain webhook, which is nobody's.

use std::sync::Arc;

use document::ToSchema;
use kernel::Scope;
use serde::Serialize;
use serde_json::{Value, json};
use triggers::{WEBHOOK, WEBHOOK_EVENT, WatchMethod};

use crate::names::{Toolkit, TriggerType};
use crate::page::{Page, Window};
use crate::tools::Versions;
use crate::{ApiError, ComposioApi};

/// More are never on one page.
const MOST: usize = 50;
/// The version of the plain webhook, which no integration has.
const WEBHOOK_VERSION: &str = "20260101_00";
const BY_HAND: &str = "Events come when the service is told where to send them. The address is `state.url` of the trigger instance.";

/// A trigger type as Composio lists it.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = composio::TriggerType)]
pub struct TriggerTypeBody {
    pub slug: String,
    pub name: String,
    pub description: String,
    /// What a person has to do at the service; empty where nothing is left to do.
    pub instructions: String,
    /// `webhook` or `poll`.
    #[serde(rename = "type")]
    #[schema(value_type = String)]
    pub kind: &'static str,
    pub toolkit: TriggerToolkit,
    /// The JSON Schema of `trigger_config`.
    #[schema(value_type = Object)]
    pub config: Value,
    /// The JSON Schema of an event's data.
    #[schema(value_type = Object)]
    pub payload: Value,
    pub version: String,
    /// Whether the service has to be told by hand where to send events.
    pub requires_webhook_endpoint_setup: bool,
}

/// The toolkit of a trigger type.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = composio::TriggerToolkit)]
pub struct TriggerToolkit {
    pub slug: String,
    pub name: String,
    pub logo: String,
}

/// What a trigger watches.
#[derive(Clone, Debug)]
pub(crate) enum Watchable {
    Event(TriggerType),
    /// Requests of anybody to an address of ours.
    Webhook,
}

impl Watchable {
    /// Provider, integration and event, as rows name them.
    pub(crate) fn place(&self) -> (String, String, String) {
        match self {
            Self::Event(kind) => {
                let integration = &kind.toolkit.integration;
                (integration.provider.to_owned(), integration.key.clone(), kind.event().key.clone())
            }
            Self::Webhook => ("native".to_owned(), WEBHOOK.to_owned(), WEBHOOK_EVENT.to_owned()),
        }
    }

    pub(crate) fn version(&self) -> String {
        match self {
            Self::Event(kind) => kind.toolkit.version(),
            Self::Webhook => WEBHOOK_VERSION.to_owned(),
        }
    }

    /// Refuses a version that is not the one that runs.
    pub(crate) fn check_version(&self, wanted: &Versions) -> Result<(), ApiError> {
        match self {
            Self::Event(kind) => Ok(wanted.check(&kind.toolkit)?),
            Self::Webhook => Ok(()),
        }
    }
}

impl ComposioApi {
    /// The slugs of all trigger types.
    #[kernel::boxed]
    pub async fn trigger_slugs(&self, scope: Scope) -> Result<Vec<String>, ApiError> {
        let names = self.names(scope).await?;
        let own = names.toolkits().iter().flat_map(Toolkit::trigger_types).map(|kind| kind.slug().to_owned());
        Ok(own.chain([WEBHOOK_EVENT.to_owned()]).collect())
    }

    /// The trigger types of some toolkits, or of all.
    #[kernel::boxed]
    pub async fn trigger_types(
        &self,
        scope: Scope,
        toolkits: &[String],
        versions: &Versions,
        limit: Option<&str>,
        cursor: Option<&str>,
    ) -> Result<Page<TriggerTypeBody>, ApiError> {
        let window = Window::read(limit, cursor, MOST)?;
        let mut listed: Vec<Watchable> = Vec::new();
        let add = |toolkit: &Arc<Toolkit>, listed: &mut Vec<Watchable>| listed.extend(toolkit.trigger_types().map(Watchable::Event));
        for slug in toolkits {
            if slug.eq_ignore_ascii_case(WEBHOOK) {
                listed.push(Watchable::Webhook);
            } else {
                let toolkit = self.toolkit(scope, slug).await?;
                versions.check(&toolkit)?;
                add(&toolkit, &mut listed);
            }
        }
        if toolkits.is_empty() {
            self.names(scope).await?.toolkits().iter().for_each(|toolkit| add(toolkit, &mut listed));
            listed.push(Watchable::Webhook);
        }
        Ok(window.cut(listed).map(|kind| self.trigger_type_body(&kind)))
    }

    /// One trigger type.
    #[kernel::boxed]
    pub async fn trigger_type(&self, scope: Scope, slug: &str, versions: &Versions) -> Result<TriggerTypeBody, ApiError> {
        let kind = self.watchable(scope, slug).await?;
        kind.check_version(versions)?;
        Ok(self.trigger_type_body(&kind))
    }

    /// What a slug means, in any case.
    pub(crate) async fn watchable(&self, scope: Scope, slug: &str) -> Result<Watchable, ApiError> {
        if slug.eq_ignore_ascii_case(WEBHOOK_EVENT) {
            return Ok(Watchable::Webhook);
        }
        Ok(Watchable::Event(self.event(scope, slug).await?))
    }

    fn trigger_type_body(&self, kind: &Watchable) -> TriggerTypeBody {
        let Watchable::Event(kind) = kind else { return webhook_type() };
        let (toolkit, event) = (&kind.toolkit, kind.event());
        let integration = &toolkit.integration;
        let method = self.parts().triggers.method(integration.provider, &integration.key, &event.key);
        let instructions = match &method {
            Some(WatchMethod::ByHand(help)) => [Some(BY_HAND), help.as_deref()].into_iter().flatten().collect::<Vec<_>>().join(" "),
            _ => String::new(),
        };
        let object = |schema: Value| if schema.is_object() { schema } else { json!({}) };
        TriggerTypeBody {
            slug: kind.slug().to_owned(),
            name: event.name.clone(),
            description: event.description.clone(),
            instructions,
            kind: if matches!(method, Some(WatchMethod::Poll(_))) { "poll" } else { "webhook" },
            toolkit: TriggerToolkit {
                slug: toolkit.slug.clone(),
                name: integration.name.clone(),
                logo: integration.logo.clone().unwrap_or_default(),
            },
            config: object(event.config_schema.value()),
            payload: object(event.payload_schema.as_ref().map_or(Value::Null, kernel::json::Document::value)),
            version: toolkit.version(),
            requires_webhook_endpoint_setup: matches!(method, Some(WatchMethod::ByHand(_))),
        }
    }
}

fn webhook_type() -> TriggerTypeBody {
    TriggerTypeBody {
        slug: WEBHOOK_EVENT.to_owned(),
        name: "Webhook received".to_owned(),
        description: "Somebody sends a request with JSON to the address of this trigger. It needs no account.".to_owned(),
        instructions: BY_HAND.to_owned(),
        kind: "webhook",
        toolkit: TriggerToolkit { slug: WEBHOOK.to_owned(), name: "Webhook".to_owned(), logo: String::new() },
        config: json!({
            "type": "object",
            "properties": {
                "secret": {"type": "string", "description": "What senders prove themselves with; anybody may send where there is none."},
                "scheme": {"type": "string", "enum": triggers::ingress::SCHEMES, "description": "How they do."},
                "id_header": {"type": "string", "description": "The header with the id that an event has in common with its retries."},
                "id_path": {"type": "string", "description": "The same as a JSONPath of the body."},
                "id_digest": {"type": "boolean", "description": "Whether equal bodies are one event."}
            },
            "additionalProperties": false
        }),
        payload: json!({"type": "object"}),
        version: WEBHOOK_VERSION.to_owned(),
        requires_webhook_endpoint_setup: true,
    }
}
