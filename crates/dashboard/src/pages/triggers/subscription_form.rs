//! Making and changing a subscription.

use askama::Template;
use axum::extract::{Path as Segments, Query};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::binding::{Binding, Source};
use super::choose::Event;
use super::model::{Subscription, SubscriptionAnswer};
use super::subscription_draft::Draft;
use super::subscription_made::show_made;
use super::watched::Watched;
use super::{SUBSCRIPTIONS, subscription_page};
use crate::form::Form;
use crate::frame::{Frame, Section, see_other, show_refused};
use crate::pages::connections::{self, Connection, Seen};
use crate::path::Path;
use crate::refusal::{PageResult, Refusal};
use crate::ui::{self, Control, controls};
use crate::visit::Visit;

/// A connection in a list to choose from.
fn label(connection: &Connection) -> String {
    let (title, slug) = (connection.title(), &connection.slug);
    let name = if title == slug { slug.clone() } else { format!("{title} ({slug})") };
    if connection.is_valid() { name } else { format!("{name}, not connected") }
}

#[derive(Template)]
#[template(path = "subscription_form.html")]
struct FormPage {
    frame: Frame,
    heading: String,
    here: String,
    back: String,
    /// Where a new one can be tried before it is made.
    test: Option<String>,
    connect: String,
    watched: Watched,
    connections: Vec<Connection>,
    connection: String,
    controls: Vec<Control>,
    /// What few webhooks need.
    more: Vec<Control>,
    /// The configuration as JSON, where there is no schema.
    config: Option<String>,
    binding: Binding,
    is_ordered: bool,
    is_paused: bool,
    is_new: bool,
}

impl FormPage {
    fn event(&self) -> Option<&Event> {
        match &self.watched {
            Watched::Event(event) => Some(event),
            _ => None,
        }
    }

    fn takes_secret(&self) -> bool {
        self.watched.is_webhook() || !self.is_new
    }

    fn says_more(&self) -> bool {
        self.more.iter().any(|control| !control.value.is_empty())
    }
}

/// What a form shows at first.
struct Start<'a> {
    watched: Watched,
    old: Option<&'a Subscription>,
    connection: Option<String>,
    /// The workflow that a new one is to run.
    workflow: Option<String>,
}

impl<'a> Start<'a> {
    fn new(watched: Watched) -> Self {
        Self { watched, old: None, connection: None, workflow: None }
    }

    fn saved(watched: Watched, old: &'a Subscription) -> Self {
        Self { old: Some(old), ..Self::new(watched) }
    }

    async fn binding(&self, visit: &Visit) -> Binding {
        match (self.old, &self.workflow) {
            (Some(old), _) => Binding::saved(&old.labels, &old.data),
            (None, Some(workflow)) => Binding::to(visit, workflow, Source::Event).await,
            (None, None) => Binding::default(),
        }
    }
}

async fn form_page(visit: &Visit, start: Start<'_>, typed: Option<(&Form, &Refusal)>) -> PageResult {
    let mut binding = start.binding(visit).await;
    let Start { watched, old, connection, .. } = start;
    let schema = watched.schema();
    let given = old.map(Subscription::config).unwrap_or_default();
    let mut fields = controls(&schema, &given);
    let mut config = matches!(watched, Watched::Unknown(_)).then(|| serde_json::to_string_pretty(&given).unwrap_or_default());
    let mut chosen = connection.or_else(|| old.and_then(|old| old.connection_id.clone())).unwrap_or_default();
    if let Some((form, _)) = typed {
        for control in &mut fields {
            control.value = form.raw(&control.field).to_owned();
        }
        binding = Binding::typed(form);
        config = config.map(|_| form.raw("config").to_owned());
        chosen = form.text("connection").to_owned();
    }
    let more = if watched.is_webhook() { fields.split_off(1.min(fields.len())) } else { Vec::new() };
    binding.find_workflows(visit).await;
    let connections = find_connections(visit, &watched, old).await?;
    if chosen.is_empty() && connections.len() == 1 {
        chosen.clone_from(&connections[0].id);
    }
    let triggers = visit.page("triggers");
    let new = triggers.clone().at("new");
    let heading = match (&watched, old) {
        (_, Some(old)) => format!("Edit {}", old.title()),
        (Watched::Webhook, None) => "New webhook".to_owned(),
        (Watched::Event(event), None) => format!("New trigger: {}", event.name),
        (Watched::Unknown(key), None) => format!("New trigger: {key}"),
    };
    let refusal = typed.map(|(_, refusal)| refusal);
    let page = FormPage {
        frame: Frame::new(visit, Section::Triggers, heading.clone()).refused(refusal),
        heading,
        here: match (&watched, old) {
            (_, Some(old)) => subscription_page(visit, &old.id).at("edit").into(),
            (Watched::Webhook, None) => new.clone().at("webhook").into(),
            _ => new.clone().into(),
        },
        back: match (&watched, old) {
            (_, Some(old)) => subscription_page(visit, &old.id).into(),
            (Watched::Event(event), None) => new.with("provider", &event.provider).with("integration", &event.integration).into(),
            _ => new.into(),
        },
        test: old.is_none().then(|| triggers.at("test").into()),
        connect: connect_page(visit, &watched),
        connections,
        connection: chosen,
        controls: fields,
        more,
        config,
        binding,
        is_ordered: typed.map_or_else(|| old.is_some_and(Subscription::is_ordered), |(form, _)| form.has("ordered")),
        is_paused: typed.is_some_and(|(form, _)| form.has("paused")),
        is_new: old.is_none(),
        watched,
    };
    show_refused(refusal, &page)
}

fn connect_page(visit: &Visit, watched: &Watched) -> String {
    let connections = visit.page("connections");
    match watched {
        Watched::Event(event) => connections.at("new").with("provider", &event.provider).with("integration", &event.integration).into(),
        _ => connections.into(),
    }
}

async fn find_connections(visit: &Visit, watched: &Watched, old: Option<&Subscription>) -> Result<Vec<Connection>, Refusal> {
    let (provider, integration) = match (watched, old) {
        (Watched::Event(event), _) => (event.provider.as_str(), event.integration.as_str()),
        (Watched::Unknown(_), Some(old)) => (old.provider_key.as_str(), old.integration_key.as_str()),
        (Watched::Webhook, _) | (Watched::Unknown(_), None) => return Ok(Vec::new()),
    };
    connections::query(visit, Seen::WithTriggers, Some((provider, integration))).await
}

pub(super) async fn new(visit: &Visit, event: Event, connection: Option<String>, workflow: Option<String>) -> PageResult {
    form_page(visit, Start { connection, workflow, ..Start::new(Watched::Event(Box::new(event))) }, None).await
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct WorkflowQuery {
    /// What it is to run.
    pub(super) workflow: Option<String>,
}

pub(super) async fn new_webhook(visit: Visit, Query(query): Query<WorkflowQuery>) -> PageResult {
    form_page(&visit, Start { workflow: query.workflow, ..Start::new(Watched::Webhook) }, None).await
}

pub(super) async fn create(visit: Visit, form: Form) -> PageResult {
    if form.text("event").is_empty() {
        return Err(Refusal::new(StatusCode::BAD_REQUEST, "Choose an event first."));
    }
    let watched = Watched::typed(&visit, &form).await?;
    make(&visit, watched, &form).await
}

pub(super) async fn create_webhook(visit: Visit, form: Form) -> PageResult {
    make(&visit, Watched::Webhook, &form).await
}

async fn make(visit: &Visit, watched: Watched, form: &Form) -> PageResult {
    let draft = Draft::typed(&watched, form);
    let made = match draft.body(&watched, None) {
        Ok(body) => visit.post::<SubscriptionAnswer>(SUBSCRIPTIONS, json!({"subscription": body})).await,
        Err(refusal) => Err(refusal),
    };
    match made {
        Ok(made) if watched.is_webhook() || made.secret.is_some() || made.setup.is_some() => show_made(visit, made, draft.secret),
        Ok(made) => see_other(subscription_page(visit, &made.subscription.id).with("told", "made")),
        Err(refusal) => show_again(visit, watched, form, &refusal).await,
    }
}

/// The form as it was typed, with what is wrong.
pub(super) async fn show_again(visit: &Visit, watched: Watched, form: &Form, refusal: &Refusal) -> PageResult {
    form_page(visit, Start::new(watched), Some((form, refusal))).await
}

async fn saved(visit: &Visit, id: &str) -> Result<Subscription, Refusal> {
    Ok(visit.get::<SubscriptionAnswer>(Path::new(SUBSCRIPTIONS).at(id)).await?.subscription)
}

pub(super) async fn edit(visit: Visit, Segments((_, id)): Segments<(String, String)>) -> PageResult {
    let old = saved(&visit, &id).await?;
    let watched = Watched::of(&visit, &old).await;
    form_page(&visit, Start::saved(watched, &old), None).await
}

pub(super) async fn save(visit: Visit, Segments((_, id)): Segments<(String, String)>, form: Form) -> PageResult {
    let old = saved(&visit, &id).await?;
    let watched = Watched::of(&visit, &old).await;
    let kept = match Draft::typed(&watched, &form).body(&watched, Some(&old)) {
        Ok(body) => visit.put::<Value>(Path::new(SUBSCRIPTIONS).at(&id), json!({"subscription": body})).await,
        Err(refusal) => Err(refusal),
    };
    match kept {
        Ok(_) => see_other(subscription_page(&visit, &id).with("told", "saved")),
        Err(refusal) => form_page(&visit, Start::saved(watched, &old), Some((&form, &refusal))).await,
    }
}
