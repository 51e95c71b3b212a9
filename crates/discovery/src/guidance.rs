//! What to do, in order of dependency, and what to watch out for.

use catalog::{Action, Event, Found, Integration, Item};
use document::ToSchema;
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::answer::{ApiRequest, ConnectionState};
use crate::lookups::required_lookups;
use crate::next_step::{Addresses, NextStep, RequestDraft};
use crate::port::Suggestion;

/// What to do, in order of dependency, and what to watch out for.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Guidance {
    pub plan_steps: Vec<String>,
    pub pitfalls: Vec<String>,
    /// The requests of the plan that make subscriptions and schedules; what is in angle brackets is for the caller to fill in.
    pub requests: Vec<ApiRequest>,
}

/// Guidance in the making.
#[derive(Debug)]
pub(crate) struct Plan<'a> {
    addresses: &'a dyn Addresses,
    guidance: Guidance,
    /// Actions that it calls already.
    planned: Vec<String>,
}

impl<'a> Plan<'a> {
    pub(crate) fn new(addresses: &'a dyn Addresses) -> Self {
        Self { addresses, guidance: Guidance::default(), planned: Vec::new() }
    }

    pub(crate) fn finish(self) -> Guidance {
        self.guidance
    }

    /// What a provider says itself.
    pub(crate) fn suggest(&mut self, suggestion: &Suggestion) {
        for (list, texts) in [(&mut self.guidance.plan_steps, &suggestion.plan_steps), (&mut self.guidance.pitfalls, &suggestion.pitfalls)]
        {
            texts.iter().filter(|text| !text.trim().is_empty()).for_each(|text| once(list, text.clone()));
        }
    }

    pub(crate) fn add(&mut self, found: &Found, state: &ConnectionState) {
        let integration = &found.integration;
        if state.slug.is_none() {
            let how = if state.is_ready() { "it needs no account; send" } else { "send" };
            once(&mut self.guidance.plan_steps, format!("Connect {}: {how} the request in its `connections[].connect`.", integration.name));
        }
        if let (Some(failure), Some(id)) = (&state.failure, state.id) {
            let reconnect = self.addresses.address(NextStep::Reconnect(id));
            once(&mut self.guidance.plan_steps, format!("{failure} {reconnect} starts it."));
        }
        match &found.item {
            Item::Action(action) => self.call(integration, action, ""),
            Item::Event(event) => {
                let name = format!("{}.{}", integration.key, event.key);
                let subscribe = self.addresses.address(NextStep::Subscribe);
                let step = format!("Subscribe to {name}: send the request in `guidance.requests` to {subscribe}, filled in.");
                once(&mut self.guidance.plan_steps, step);
                self.request(subscription(event, state));
            }
        }
        if let Some(limit) = integration.rate_limit {
            let per = if limit.seconds == 1 { "a second".to_owned() } else { format!("in {} seconds", limit.seconds) };
            once(&mut self.guidance.pitfalls, format!("{} allows an account {} requests {per}.", integration.name, limit.requests));
        }
    }

    /// Plans to do it again and again.
    pub(crate) fn schedule(&mut self, found: &Found, cron: &str) {
        let name = format!("{}.{}", found.integration.key, found.item.key());
        let schedule = self.addresses.address(NextStep::Schedule);
        let step = format!("Make a schedule for it with {schedule}, such as `{cron}`, for a workflow that calls {name}.");
        once(&mut self.guidance.plan_steps, step);
        self.request(RequestDraft::Schedule { name: name_of(found.item.key()), cron });
    }

    fn request(&mut self, draft: RequestDraft<'_>) {
        let request = self.addresses.request(draft);
        if !self.guidance.requests.contains(&request) {
            self.guidance.requests.push(request);
        }
    }

    /// Plans a call after the calls that find the ids it needs.
    fn call(&mut self, integration: &Integration, action: &Action, purpose: &str) {
        let name = format!("{}.{}", integration.key, action.key);
        if self.planned.contains(&name) {
            return;
        }
        self.planned.push(name.clone());
        for (parameter, finder) in required_lookups(integration, action) {
            self.call(integration, finder, &format!(" to find `{parameter}`"));
        }
        self.guidance.plan_steps.push(format!("Call {name}{purpose}."));
        for pitfall in &action.pitfalls {
            once(&mut self.guidance.pitfalls, format!("{name}: {pitfall}"));
        }
        if !action.scopes.is_empty() {
            let scopes: Vec<String> = action.scopes.iter().map(|scope| format!("`{scope}`")).collect();
            once(&mut self.guidance.pitfalls, format!("{name} needs the scope {}.", scopes.join(", ")));
        }
    }
}

/// The request that subscribes to an event.
fn subscription<'a>(event: &'a Event, state: &ConnectionState) -> RequestDraft<'a> {
    let schema = event.config_schema.value();
    let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
    let filled = |name: &str| {
        let property = &schema["properties"][name];
        [&property["default"], &property["example"]]
            .into_iter()
            .find(|value| !value.is_null())
            .cloned()
            .unwrap_or_else(|| json!(format!("<{name}>")))
    };
    let config: Map<String, Value> = required.map(|name| (name.to_owned(), filled(name))).collect();
    RequestDraft::Subscribe { name: name_of(&event.key), event: &event.key, connection: state.id, config }
}

/// What a subscription or a schedule is called, after what it is for.
fn name_of(key: &str) -> String {
    key.to_lowercase().replace('_', "-")
}

fn once(list: &mut Vec<String>, text: String) {
    if !list.contains(&text) {
        list.push(text);
    }
}
