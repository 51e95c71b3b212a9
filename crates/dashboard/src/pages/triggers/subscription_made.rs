//! What a person has to carry to the sender of a new subscription's events.

use askama::Template;
use serde_json::{Map, Value, json};

use super::model::{Subscription, SubscriptionAnswer, text};
use super::subscription_page;
use crate::frame::{Frame, Section, show};
use crate::refusal::PageResult;
use crate::ui;
use crate::visit::Visit;

#[derive(Template)]
#[template(path = "subscription_made.html")]
struct MadePage {
    frame: Frame,
    subscription: Subscription,
    href: String,
    setup: Option<String>,
    secret: Option<String>,
    example: Option<String>,
}

/// The secret is in this answer and nowhere else.
pub(super) fn show_made(visit: &Visit, made: SubscriptionAnswer, typed: String) -> PageResult {
    let secret = made.secret.or_else(|| Some(typed).filter(|secret| !secret.is_empty()));
    let subscription = made.subscription;
    let page = MadePage {
        frame: Frame::new(visit, Section::Triggers, "The trigger is made"),
        href: subscription_page(visit, &subscription.id).into(),
        example: subscription.is_webhook().then(|| example(&subscription, secret.as_deref())).flatten(),
        setup: made.setup,
        secret,
        subscription,
    };
    show(&page)
}

/// How a shell sends an event to a plain webhook; none for schemes that a shell cannot sign with in a line or two.
fn example(subscription: &Subscription, secret: Option<&str>) -> Option<String> {
    let config = subscription.config();
    let scheme = match (text(&config, "scheme"), secret) {
        ("", Some(secret)) if secret.starts_with("whsec_") => "standard_webhooks",
        ("", Some(_)) => "token",
        (scheme, _) => scheme,
    };
    let url = &subscription.url;
    let body = body(subscription.data.get("inputs_fields"));
    match scheme {
        "" => Some(format!("curl -H 'Content-Type: application/json' -d '{body}' {url}")),
        "token" => Some(format!("curl -H 'Content-Type: application/json' -H \"X-Webhook-Token: $SECRET\" -d '{body}' {url}")),
        "hmac_sha256" => Some(format!(
            "BODY='{body}'\ncurl -H 'Content-Type: application/json' -d \"$BODY\" \\\n  -H \"X-Hub-Signature-256: sha256=$(printf %s \"$BODY\" | openssl dgst -sha256 -hmac \"$SECRET\" -r | cut -d' ' -f1)\" {url}"
        )),
        _ => None,
    }
}

/// A body with a value for everything that the mapping takes from the top of an event.
fn body(mapping: Option<&Value>) -> String {
    let mut names = Vec::new();
    collect(mapping.unwrap_or(&Value::Null), &mut names);
    let values: Map<String, Value> = names.into_iter().map(|name| (name, "world".into())).collect();
    if values.is_empty() { json!({"hello": "world"}) } else { values.into() }.to_string()
}

fn collect(mapping: &Value, names: &mut Vec<String>) {
    match mapping {
        Value::String(text) => {
            let name = text.strip_prefix("$.event.attributes.").or_else(|| text.strip_prefix("/event/attributes/"));
            let is_word = |name: &&str| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
            names.extend(name.filter(is_word).map(str::to_owned));
        }
        Value::Array(all) => all.iter().for_each(|value| collect(value, names)),
        Value::Object(all) => all.values().for_each(|value| collect(value, names)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn old() -> Subscription {
        let row = json!({"id": "1", "provider_key": "native", "integration_key": "webhook", "flags": {"is_active": false, "is_valid": true},
            "url": "https://a.test/x", "name": "in", "meta": {"a": 1}, "created_at": "", "updated_at": "",
            "data": {"event_key": "WEBHOOK_RECEIVED", "ordered": true, "own": 5, "trigger_config": {"scheme": "token", "other": 1}}});
        serde_json::from_value(row).unwrap()
    }

    #[test]
    fn examples_fit_the_scheme() {
        assert!(example(&old(), Some("s")).unwrap().contains("X-Webhook-Token"));
        let mut plain = old();
        plain.data.shift_remove("trigger_config");
        assert!(!example(&plain, None).unwrap().contains("SECRET"));
        assert_eq!(example(&plain, Some("whsec_abc")), None);
        assert!(example(&plain, None).unwrap().contains("'{\"hello\":\"world\"}'"));
        plain.data.insert(
            "inputs_fields".to_owned(),
            json!({"title": "$.event.attributes.title", "deep": ["/event/attributes/id", "$.event.attributes.it's"]}),
        );
        assert!(example(&plain, None).unwrap().contains("'{\"title\":\"world\",\"id\":\"world\"}'"));
    }
}
