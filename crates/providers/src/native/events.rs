//! Events: telling a provider to send them, judging what comes in, and asking for what is new.

use catalog::auth::AuthScheme;
use egress::{Response, Retry};
use futures_util::future::BoxFuture;
use http::StatusCode;
use kernel::json::plain_text;
use serde_json::{Map, Value};
use tools::{RunError, ToolResult};
use triggers::{EventSource, Incoming, Judged, Polled, Refusal, Registered, Watch, WatchError, Way};

use super::load::{Hook, Hooks, PollCall, Service, Watched};
use super::manifest::{Signature, SignatureSecret};
use super::operation::Operation;
use super::run::{Ask, Unanswered, ask_for, needs};
use super::{Native, reply, webhook};

/// As many pages as a poll reads; a list that goes on after them is an error, never silence.
const MAX_PAGES: u64 = 20;

/// How often a first poll asks again for what its answer left out.
const MAX_ROUNDS: usize = 20;

impl EventSource for Native {
    fn way(&self, integration: &str, event: &str) -> Option<Way> {
        let service = self.services.get(integration)?;
        match (service.events.get(event)?, &service.hooks) {
            (Watched::Polled(poll), _) => Some(Way::Poll(poll.every)),
            (Watched::Sent { .. }, Some(Hooks { register: Some(_), .. })) => Some(Way::Register),
            (Watched::Sent { .. }, hooks) => Some(Way::ByHand(hooks.as_ref().and_then(|hooks| hooks.spec.setup_help.clone()))),
        }
    }

    fn has_own_secret(&self, integration: &str) -> bool {
        let hooks = self.services.get(integration).and_then(|service| service.hooks.as_ref());
        let signature = hooks.and_then(|hooks| hooks.spec.signature.as_ref());
        signature.is_some_and(|signature| matches!(signature.secret, SignatureSecret::Theirs))
    }

    fn judge(&self, integration: &str, incoming: &Incoming<'_>, secret: Option<&str>, now: i64) -> Result<Judged, Refusal> {
        let unknown = || Refusal::Scheme(format!("`{integration}` sends no events"));
        let service = self.services.get(integration).ok_or_else(unknown)?;
        let hooks = service.hooks.as_ref().ok_or_else(unknown)?;
        let sent = service.events.iter().filter_map(|(key, watched)| match watched {
            Watched::Sent { webhook, .. } => Some((key.as_str(), webhook)),
            Watched::Polled(_) => None,
        });
        webhook::judge(&hooks.spec, sent, incoming, secret, now)
    }

    fn register<'a>(&'a self, watch: Watch<'a>) -> BoxFuture<'a, Result<Registered, WatchError>> {
        Box::pin(self.make_webhook(watch))
    }

    fn unregister<'a>(&'a self, watch: Watch<'a>, remote: &'a str) -> BoxFuture<'a, Result<(), WatchError>> {
        Box::pin(self.remove_webhook(watch, remote))
    }

    fn poll<'a>(&'a self, watch: Watch<'a>, cursor: Option<&'a Value>) -> BoxFuture<'a, Result<Polled, WatchError>> {
        Box::pin(self.look(watch, cursor))
    }
}

impl Native {
    async fn make_webhook(&self, watch: Watch<'_>) -> Result<Registered, WatchError> {
        let service = self.service(watch)?;
        let hooks = service.hooks.as_ref().ok_or_else(|| cannot(watch, "is not sent"))?;
        let hook = hooks.register.as_ref().ok_or_else(|| cannot(watch, "is set up by hand"))?;
        let reply = self.answer(service, &hook.operation, hook.graphql, watch, &arguments(service, watch)?).await;
        let reply = reply.map_err(|error| lacking(service, watch, error))?;
        let at = |pointer: &str| reply.pointer(pointer).and_then(plain_text);
        let remote = match &hook.id {
            Some(pointer) => at(pointer).ok_or_else(|| WatchError::Upstream(refusal(hook, &reply, pointer)))?,
            // The provider knows it by its address.
            None => watch.url.to_owned(),
        };
        let secret = match &hooks.spec.signature {
            Some(signature) if signature.client_secret && is_oauth(watch) => watch
                .client_secret
                .map(str::to_owned)
                .ok_or_else(|| "the OAuth app of the connection is gone, and its secret with it".to_owned()),
            Some(Signature { secret: SignatureSecret::FromReply(pointer), .. }) => {
                at(pointer).ok_or_else(|| format!("the answer has no secret at `{pointer}`"))
            }
            _ => return Ok(Registered { remote: Some(remote), secret: None }),
        };
        match secret {
            Ok(secret) => Ok(Registered { remote: Some(remote), secret: Some(secret) }),
            Err(message) => {
                // What it sends could never be believed.
                let _ = self.remove_webhook(watch, &remote).await;
                Err(WatchError::Upstream(message))
            }
        }
    }

    async fn remove_webhook(&self, watch: Watch<'_>, remote: &str) -> Result<(), WatchError> {
        let service = self.service(watch)?;
        let Some(hook) = service.hooks.as_ref().and_then(|hooks| hooks.unregister.as_ref()) else { return Ok(()) };
        let mut arguments = arguments(service, watch)?;
        arguments.insert("webhook_id".to_owned(), last_segment(remote).into());
        let response = self.response(service, &hook.operation, watch, &arguments).await?;
        if matches!(response.status, StatusCode::NOT_FOUND | StatusCode::GONE) {
            return Ok(());
        }
        judge_reply(service, &response, hook.graphql).map(|_| ()).map_err(|error| scrub(error, watch))
    }

    async fn look(&self, watch: Watch<'_>, cursor: Option<&Value>) -> Result<Polled, WatchError> {
        let service = self.service(watch)?;
        let Some(Watched::Polled(poll)) = service.events.get(&watch.event.key) else { return Err(cannot(watch, "is not polled")) };
        let mut polled = self.look_once(service, poll, watch, cursor).await?;
        if cursor.is_none() && poll.reading.goes_on() {
            // The first page need not be the newest: what follows it is history as well.
            for _ in 0..MAX_ROUNDS {
                let next = self.look_once(service, poll, watch, Some(&polled.cursor)).await?;
                polled.cursor = next.cursor;
                if next.items.is_empty() {
                    break;
                }
            }
        }
        Ok(polled)
    }

    async fn look_once(&self, service: &Service, poll: &PollCall, watch: Watch<'_>, cursor: Option<&Value>) -> Result<Polled, WatchError> {
        let mut arguments = watch.config.clone();
        arguments.extend(poll.reading.since(cursor));
        let wrong = |message: String| scrub(WatchError::Upstream(message), watch);
        let mut listed = Vec::new();
        for number in 1..=MAX_PAGES {
            let reply = self.answer(service, &poll.operation, poll.graphql, watch, &arguments).await?;
            let next = poll.reading.next_page(&reply, number, listed.len());
            listed.extend_from_slice(poll.reading.list(&reply).map_err(wrong)?);
            match next {
                Some(next) => arguments.extend([next]),
                None => return poll.reading.read(&listed, cursor).map_err(wrong),
            }
        }
        Err(wrong(format!("the list has more than {MAX_PAGES} pages; watch a smaller one")))
    }

    fn service(&self, watch: Watch<'_>) -> Result<&Service, WatchError> {
        self.services.get(&watch.integration.key).ok_or_else(|| cannot(watch, "is not here any more"))
    }

    async fn answer(
        &self,
        service: &Service,
        operation: &Operation,
        graphql: bool,
        watch: Watch<'_>,
        arguments: &Map<String, Value>,
    ) -> Result<Value, WatchError> {
        let response = self.response(service, operation, watch, arguments).await?;
        judge_reply(service, &response, graphql).map_err(|error| scrub(error, watch))
    }

    async fn response(
        &self,
        service: &Service,
        operation: &Operation,
        watch: Watch<'_>,
        arguments: &Map<String, Value>,
    ) -> Result<Response, WatchError> {
        let ask = Ask {
            integration: watch.integration,
            connection: watch.connection,
            usable: watch.usable,
            arguments,
            header: None,
            retry: Retry::Safe,
            limit: self.limits.of(watch.integration),
        };
        ask_for(&self.egress, service, operation, ask).await.map_err(|error| match error {
            Unanswered::Build(error) => WatchError::Config(error.to_string()),
            Unanswered::Unreachable(error) => WatchError::Unreachable(error),
        })
    }
}

fn is_oauth(watch: Watch<'_>) -> bool {
    matches!(watch.usable.scheme.as_deref(), Some(AuthScheme::OAuth2(_)))
}

/// A refusal to make a webhook, with the scopes that an OAuth connection needs for it and does not have unless it asked for them.
fn lacking(service: &Service, watch: Watch<'_>, error: WatchError) -> WatchError {
    let (Some(AuthScheme::OAuth2(oauth)), Some(Watched::Sent { scopes, .. })) =
        (watch.usable.scheme.as_deref(), service.events.get(&watch.event.key))
    else {
        return error;
    };
    let optional: Vec<&str> = scopes.iter().filter(|scope| !oauth.scopes.contains(scope)).map(String::as_str).collect();
    let explain = |text: String| match optional.as_slice() {
        [] => text,
        optional => format!("{text} ({})", needs(optional)),
    };
    match error {
        WatchError::Unauthorized(text) => WatchError::Unauthorized(explain(text)),
        WatchError::Forbidden(text) => WatchError::Forbidden(explain(text)),
        WatchError::Upstream(text) => WatchError::Upstream(explain(text)),
        other => other,
    }
}

fn cannot(watch: Watch<'_>, why: &str) -> WatchError {
    WatchError::Config(format!("`{}` {why}", watch.event.key))
}

/// What a registration may name: the configuration, and what we bring.
fn arguments(service: &Service, watch: Watch<'_>) -> Result<Map<String, Value>, WatchError> {
    let Some(Watched::Sent { webhook, defaults, .. }) = service.events.get(&watch.event.key) else {
        return Err(cannot(watch, "is not sent"));
    };
    let mut arguments = defaults.clone();
    arguments.extend(watch.config.clone());
    arguments.extend([("url".to_owned(), watch.url.into()), ("secret".to_owned(), watch.secret.into())]);
    match &webhook.event {
        Some(event) => arguments.insert("event".to_owned(), event.as_str().into()),
        None => arguments.remove("event"),
    };
    Ok(arguments)
}

/// Some services name a webhook by its address there; requests want the last part of it.
fn last_segment(remote: &str) -> &str {
    let is_address = remote.starts_with("https://") || remote.starts_with("http://");
    if is_address { remote.trim_end_matches('/').rsplit('/').next().unwrap_or(remote) } else { remote }
}

/// Why a good answer made no webhook, in the service's own words where it has some.
fn refusal(hook: &Hook, reply: &Value, pointer: &str) -> String {
    let said = hook.graphql.then(|| user_error(reply)).flatten();
    said.unwrap_or_else(|| format!("the answer has no webhook at `{pointer}`"))
}

/// The message of a GraphQL mutation that was understood and refused.
fn user_error(reply: &Value) -> Option<String> {
    let results = reply.get("data").and_then(Value::as_object)?.values();
    results.filter_map(|result| result.pointer("/userErrors/0/message")).find_map(plain_text)
}

fn judge_reply(service: &Service, response: &Response, graphql: bool) -> Result<Value, WatchError> {
    if response.truncated {
        return Err(WatchError::Upstream(format!("the answer is longer than {} bytes", response.body.len())));
    }
    let result = reply::read(response, service.failure.as_ref(), graphql.then_some(""));
    match result {
        Ok(ToolResult { error: Some(error), .. }) if response.status == StatusCode::FORBIDDEN => Err(WatchError::Forbidden(error)),
        Ok(ToolResult { error: Some(error), .. }) => Err(WatchError::Upstream(error)),
        Ok(ToolResult { data, .. }) => Ok(data),
        Err(RunError::Unauthorized(text)) => Err(WatchError::Unauthorized(text)),
        Err(RunError::Server { status, message }) => Err(WatchError::Server { status, message }),
        Err(RunError::Unreachable(error)) => Err(WatchError::Unreachable(error)),
        Err(RunError::Upstream(text) | RunError::Lost(text) | RunError::Arguments(text) | RunError::Connection(text)) => {
            Err(WatchError::Upstream(text))
        }
    }
}

/// The error without the credential or our secret, which a service may repeat.
fn scrub(error: WatchError, watch: Watch<'_>) -> WatchError {
    let mut fields = watch.usable.fields.clone();
    fields.set("webhook secret", watch.secret);
    match error {
        WatchError::Config(text) => WatchError::Config(fields.scrub(&text)),
        WatchError::Unauthorized(text) => WatchError::Unauthorized(fields.scrub(&text)),
        WatchError::Forbidden(text) => WatchError::Forbidden(fields.scrub(&text)),
        WatchError::Upstream(text) => WatchError::Upstream(fields.scrub(&text)),
        WatchError::Server { status, message } => WatchError::Server { status, message: fields.scrub(&message) },
        WatchError::Unreachable(error) => WatchError::Unreachable(error),
    }
}
