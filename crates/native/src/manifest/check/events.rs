//! The rules for events.

use catalog::auth::AuthScheme;
use operations::{Param, RequestLine, input_schema, output_schema};
use serde_json::{Map, Value};

use super::super::{Challenge, Echo, EventSpec, Manifest, Pages, Poll, SignatureSecret, Source, Webhooks};
use super::{Findings, Seen, build, common, dry_run, require_pointer, require_schema, scopes};
use crate::load::{defaults, hook_operation, poll_operation};
use crate::poll::PollReader;
use crate::webhook;

/// What registrations may name besides the configuration of an event.
const OURS: [&str; 4] = ["url", "secret", "event", "webhook_id"];

pub(super) fn webhooks(manifest: &Manifest, out: &mut Findings) {
    let Some(webhooks) = &manifest.webhooks else {
        let lone = manifest.events.iter().find(|event| event.webhook.is_some());
        out.require(lone.is_none(), || "events name a webhook, but there is no `webhooks` section".to_owned());
        return;
    };
    out.require(webhooks.register.is_some() || webhooks.setup_help.is_some(), || "needs `register` or `setup_help`".to_owned());
    out.require(webhooks.register.is_none() || webhooks.unregister.is_some(), || "`register` needs `unregister`".to_owned());
    for source in [&webhooks.event, &webhooks.id].into_iter().flatten() {
        if let Source::Pointer(pointer) = source {
            require_pointer(pointer, out);
        }
    }
    registrations(manifest, webhooks, out);
    if let Some(signature) = &webhooks.signature {
        webhook::check(signature, webhooks.id.as_ref()).err().into_iter().for_each(|message| out.push(format!("signature: {message}")));
        if let SignatureSecret::FromReply(pointer) = &signature.secret {
            require_pointer(pointer, out);
            out.require(webhooks.register.is_some(), || "the secret comes from a reply, but there is no `register`".to_owned());
        }
    }
    if webhooks.signature.as_ref().is_some_and(|signature| signature.client_secret) {
        let has_oauth = manifest.auth.iter().any(|scheme| matches!(scheme, AuthScheme::OAuth2(_)));
        out.require(has_oauth && webhooks.register.is_some(), || "`client_secret` needs the scheme `oauth2` and `register`".to_owned());
    }
    if let Some(challenge) = &webhooks.challenge {
        check_challenge(challenge, webhooks, out);
    }
}

/// Builds the requests that make and remove a webhook, for every event that is sent.
fn registrations(manifest: &Manifest, webhooks: &Webhooks, out: &mut Findings) {
    let sent: Vec<&EventSpec> = manifest.events.iter().filter(|event| event.webhook.is_some()).collect();
    for (what, registration) in [("register", &webhooks.register), ("unregister", &webhooks.unregister)] {
        let Some(registration) = registration else { continue };
        registration.id.iter().for_each(|pointer| require_pointer(pointer, out));
        let operation = match hook_operation(manifest, registration) {
            Ok(operation) => operation,
            Err(message) => {
                out.push(format!("{what}: {message}"));
                continue;
            }
        };
        for name in operation.template_variables().into_iter().flatten().filter(|name| !OURS.contains(&name.as_str())) {
            let declared = sent.iter().any(|event| event.config.contains_key(&name));
            out.require(declared, || format!("{what} names `{name}`, which no event has in its `config`"));
        }
        for event in &sent {
            build(manifest, &operation, &samples(event), &format!("{what} for `{}`", event.key), out);
        }
    }
}

/// A full configuration and the least one, each with what we bring.
fn samples(event: &EventSpec) -> [Map<String, Value>; 2] {
    let line = RequestLine { method: http::Method::GET, target: "/".to_owned() };
    let params = Param::read_all(&event.config, &line, &[]).unwrap_or_default();
    let kind = event.webhook.as_ref().and_then(|webhook| webhook.event.clone());
    [true, false].map(|all| {
        let given = params.iter().filter(|param| all || param.required).map(|param| (param.name.clone(), param.sample()));
        let mut arguments = defaults(event);
        arguments.extend(given);
        arguments.extend(OURS.iter().map(|name| ((*name).to_owned(), Value::from("sample"))));
        arguments.extend(kind.clone().map(|kind| ("event".to_owned(), kind.into())));
        arguments
    })
}

fn check_challenge(challenge: &Challenge, webhooks: &Webhooks, out: &mut Findings) {
    challenge.matching.keys().for_each(|pointer| require_pointer(pointer, out));
    if let Echo::Pointer(pointer) = &challenge.reply {
        require_pointer(pointer, out);
    }
    out.require(!challenge.secret || webhooks.signature.is_some(), || "the challenge brings a secret, but nothing is signed".to_owned());
}

fn check_pages(event: &EventSpec, poll: &Poll, pages: &Pages, out: &mut Findings) {
    out.require(!event.config.contains_key(pages.param()), || format!("config `{}` is what `pages` sends", pages.param()));
    out.require(poll.since.is_none(), || "`pages` and `since` exclude each other".to_owned());
    match pages {
        Pages::Cursor { next, .. } => require_pointer(next, out),
        Pages::Page { .. } | Pages::Offset { .. } => {
            out.require(PollReader::new(poll).knows_size(), || "`pages` by number need the size of a page in the request".to_owned());
        }
    }
}

pub(super) fn event(manifest: &Manifest, event: &EventSpec, seen: &mut Seen, out: &mut Findings) {
    common(&event.key, &event.name, &event.description, &event.use_cases, seen, out);
    out.require(event.webhook.is_some() != event.poll.is_some(), || "needs either `webhook` or `poll`".to_owned());
    if let Some(webhook) = &event.webhook {
        webhook.matching.keys().for_each(|pointer| require_pointer(pointer, out));
        for name in OURS {
            out.require(!event.config.contains_key(name), || format!("config `{name}` has a name that registrations need for themselves"));
        }
    }
    scopes(manifest, &event.scopes, out);
    if let Some(payload) = &event.payload {
        require_schema(&output_schema(payload), "payload", out);
    }
    if let Some(poll) = &event.poll {
        let from = poll.since.iter().map(|since| &since.from);
        poll.id.as_slice().iter().chain([&poll.items]).chain(from).for_each(|pointer| require_pointer(pointer, out));
        out.require(!poll.id.as_slice().is_empty(), || "`id` names nothing".to_owned());
        if let Some(pages) = &poll.pages {
            check_pages(event, poll, pages, out);
        }
        if let Some(since) = &poll.since {
            out.require(!event.config.contains_key(&since.param), || format!("config `{}` is what `since` sends", since.param));
        }
        dry_run(manifest, poll_operation(manifest, event, poll), &event.config, "poll", out);
        out.require(poll.seconds >= 30, || "polls more often than every 30 seconds".to_owned());
    } else {
        let line = RequestLine { method: http::Method::GET, target: "/".to_owned() };
        match Param::read_all(&event.config, &line, &[]) {
            Ok(params) => require_schema(&input_schema(&params), "config", out),
            Err(message) => out.push(message),
        }
    }
    for lookup in event.config.values().filter_map(|param| param.get("lookup").and_then(Value::as_str)) {
        out.require(manifest.actions.iter().any(|action| action.key == lookup), || {
            format!("lookup `{lookup}` is not an action of this file")
        });
    }
}
