//! What to do, in order of dependency, and what to watch out for.

use catalog::{Action, Found, Integration, Item};
use serde::Serialize;
use serde_json::Value;

use super::State;
use crate::port::Suggestion;

/// What to do, and what to watch out for.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Guidance {
    pub plan_steps: Vec<String>,
    pub pitfalls: Vec<String>,
    /// Actions that the plan calls already.
    #[serde(skip)]
    planned: Vec<String>,
}

impl Guidance {
    /// What a provider says itself.
    pub(super) fn suggest(&mut self, suggestion: &Suggestion) {
        for (list, texts) in [(&mut self.plan_steps, &suggestion.plan_steps), (&mut self.pitfalls, &suggestion.pitfalls)] {
            texts.iter().filter(|text| !text.trim().is_empty()).for_each(|text| once(list, text.clone()));
        }
    }

    pub(super) fn add(&mut self, found: &Found, state: &State) {
        let integration = &found.integration;
        if state.slug.is_none() {
            let how = if state.is_ready() { "it needs no account; send" } else { "send" };
            once(&mut self.plan_steps, format!("Connect {}: {how} the request in its `connections[].connect`.", integration.name));
        }
        if let (Some(failure), Some(id)) = (&state.failure, state.id) {
            once(&mut self.plan_steps, format!("{failure} POST /tools/connections/{id}/refresh starts it."));
        }
        match &found.item {
            Item::Action(action) => self.call(integration, action, ""),
            Item::Event(event) => {
                let name = format!("{}.{}", integration.key, event.key);
                once(
                    &mut self.plan_steps,
                    format!("Subscribe to {name}: send its `event_key` and a `trigger_config` to POST /triggers/subscriptions/."),
                );
            }
        }
        if let Some(limit) = integration.rate_limit {
            let per = if limit.seconds == 1 { "a second".to_owned() } else { format!("in {} seconds", limit.seconds) };
            once(&mut self.pitfalls, format!("{} allows an account {} requests {per}.", integration.name, limit.requests));
        }
    }

    /// Plans to do it again and again.
    pub(super) fn schedule(&mut self, found: &Found, cron: &str) {
        let name = format!("{}.{}", found.integration.key, found.item.key());
        let step = format!("Make a schedule for it with POST /triggers/schedules/, such as `{cron}`, for a workflow that calls {name}.");
        once(&mut self.plan_steps, step);
    }

    /// Plans a call after the calls that find the ids it needs.
    fn call(&mut self, integration: &Integration, action: &Action, purpose: &str) {
        let name = format!("{}.{}", integration.key, action.key);
        if self.planned.contains(&name) {
            return;
        }
        self.planned.push(name.clone());
        for (parameter, finder) in required_lookups(action) {
            if let Some(finder) = integration.action(finder) {
                self.call(integration, finder, &format!(" to find `{parameter}`"));
            }
        }
        self.plan_steps.push(format!("Call {name}{purpose}."));
        for pitfall in &action.pitfalls {
            once(&mut self.pitfalls, format!("{name}: {pitfall}"));
        }
        if !action.scopes.is_empty() {
            let scopes: Vec<String> = action.scopes.iter().map(|scope| format!("`{scope}`")).collect();
            once(&mut self.pitfalls, format!("{name} needs the scope {}.", scopes.join(", ")));
        }
    }
}

/// Required parameters whose values another action finds, with that action's key.
fn required_lookups(action: &Action) -> Vec<(&str, &str)> {
    let schema = action.input_schema.value();
    let is_required = |name: &str| schema["required"].as_array().is_some_and(|all| all.contains(&Value::from(name)));
    action.lookups.iter().filter(|(name, _)| is_required(name)).map(|(name, finder)| (name.as_str(), finder.as_str())).collect()
}

fn once(list: &mut Vec<String>, text: String) {
    if !list.contains(&text) {
        list.push(text);
    }
}
