//! Events: telling a provider to send them, judging what comes in, and asking for what is new.

use calls::{RunError, ToolResult};
use catalog::auth::AuthScheme;
use egress::{Response, Retry};
use futures_util::future::BoxFuture;
use http::StatusCode;
use kernel::json::plain_text;
use kernel::{ProjectId, Scrubber};
use operations::{ActionRequest, Operation, Unanswered, needs, read_reply};
use serde_json::{Map, Value};
use triggers::{EventSource, Incoming, Judged, Polled, Refusal, Registered, Watch, WatchError, WatchMethod};

use crate::load::{EventTransport, Hook, Hooks, NativeService, PollCall};
use crate::manifest::{Signature, SignatureSecret};
use crate::{Native, webhook};

/// As many pages as a poll reads; a list that goes on after them is an error, never silence.
const MAX_PAGES: u64 = 20;

/// How often a first poll asks again for what its answer left out.
const MAX_ROUNDS: usize = 20;

impl EventSource for Native {
    fn method(&self, integration: &str, event: &str) -> Option<WatchMethod> {
        let service = self.services.get(integration)?;
        match (service.events.get(event)?, &service.hooks) {
            (EventTransport::Polled(poll), _) => Some(WatchMethod::Poll(poll.every)),
            (EventTransport::Sent { .. }, Some(Hooks { register: Some(_), .. })) => Some(WatchMethod::Register),
            (EventTransport::Sent { .. }, hooks) => {
                Some(WatchMethod::ByHand(hooks.as_ref().and_then(|hooks| hooks.spec.setup_help.clone())))
            }
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
            EventTransport::Sent { webhook, .. } => Some((key.as_str(), webhook)),
            EventTransport::Polled(_) => None,
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
        let response = self.response(service, &hook.operation, watch, &arguments(service, watch)?).await?;
        // The answer may hold a secret that is read here; only what is said of a failure goes further.
        let reply = self
            .judge_reply(service, &response, hook.graphql, watch.project, &Scrubber::default())
            .await
            .map_err(|error| lacking(service, watch, scrub(error, &secrets(watch))))?;
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
        self.judge_reply(service, &response, hook.graphql, watch.project, &secrets(watch)).await.map(|_| ())
    }

    async fn look(&self, watch: Watch<'_>, cursor: Option<&Value>) -> Result<Polled, WatchError> {
        let service = self.service(watch)?;
        let Some(EventTransport::Polled(poll)) = service.events.get(&watch.event.key) else { return Err(cannot(watch, "is not polled")) };
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

    async fn look_once(
        &self,
        service: &NativeService,
        poll: &PollCall,
        watch: Watch<'_>,
        cursor: Option<&Value>,
    ) -> Result<Polled, WatchError> {
        let mut arguments = watch.config.clone();
        arguments.extend(poll.reading.since(cursor));
        let secrets = secrets(watch);
        let wrong = |message: String| scrub(WatchError::Upstream(message), &secrets);
        let mut listed = Vec::new();
        for number in 1..=MAX_PAGES {
            let response = self.response(service, &poll.operation, watch, &arguments).await?;
            let reply = self.judge_reply(service, &response, poll.graphql, watch.project, &secrets).await?;
            let next = poll.reading.next_page(&reply, number, listed.len());
            listed.extend_from_slice(poll.reading.list(&reply).map_err(wrong)?);
            match next {
                Some(next) => arguments.extend([next]),
                None => return poll.reading.read(&listed, cursor).map_err(wrong),
            }
        }
        Err(wrong(format!("the list has more than {MAX_PAGES} pages; watch a smaller one")))
    }

    fn service(&self, watch: Watch<'_>) -> Result<&NativeService, WatchError> {
        self.services.get(&watch.integration.key).ok_or_else(|| cannot(watch, "is not here any more"))
    }

    async fn response(
        &self,
        service: &NativeService,
        operation: &Operation,
        watch: Watch<'_>,
        arguments: &Map<String, Value>,
    ) -> Result<Response, WatchError> {
        let ask = ActionRequest {
            integration: watch.integration,
            connection: watch.connection,
            usable: watch.usable,
            arguments,
            header: None,
            retry: Retry::Safe,
        };
        self.runner.send(&service.service, operation, ask).await.map_err(|error| match error {
            Unanswered::Build(error) => WatchError::Config(error.to_string()),
            Unanswered::Unreachable(error) => WatchError::Unreachable(error),
        })
    }

    async fn judge_reply(
        &self,
        service: &NativeService,
        response: &Response,
        graphql: bool,
        project: ProjectId,
        secrets: &Scrubber,
    ) -> Result<Value, WatchError> {
        if response.truncated {
            return Err(WatchError::Upstream(format!("the answer is longer than {} bytes", response.body.len())));
        }
        let data = self.runner.data(project, response, secrets).await.map_err(WatchError::Upstream)?;
        judge_reply(service, response, data, graphql)
    }
}

fn is_oauth(watch: Watch<'_>) -> bool {
    matches!(watch.usable.scheme.as_deref(), Some(AuthScheme::OAuth2(_)))
}

/// A refusal to make a webhook, with the scopes that an OAuth connection needs for it and does not have unless it asked for them.
fn lacking(service: &NativeService, watch: Watch<'_>, error: WatchError) -> WatchError {
    let (Some(AuthScheme::OAuth2(oauth)), Some(EventTransport::Sent { scopes, .. })) =
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
fn arguments(service: &NativeService, watch: Watch<'_>) -> Result<Map<String, Value>, WatchError> {
    let Some(EventTransport::Sent { webhook, defaults, .. }) = service.events.get(&watch.event.key) else {
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

fn judge_reply(service: &NativeService, response: &Response, data: Value, graphql: bool) -> Result<Value, WatchError> {
    let result = read_reply(response, data, service.service.failure(), graphql.then_some(""));
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

/// The credential and our secret, which a service may repeat.
fn secrets(watch: Watch<'_>) -> Scrubber {
    watch.usable.scrubber().and(&Scrubber::new([watch.secret]))
}

fn scrub(error: WatchError, secrets: &Scrubber) -> WatchError {
    match error {
        WatchError::Config(text) => WatchError::Config(secrets.cut_text(&text)),
        WatchError::Unauthorized(text) => WatchError::Unauthorized(secrets.cut_text(&text)),
        WatchError::Forbidden(text) => WatchError::Forbidden(secrets.cut_text(&text)),
        WatchError::Upstream(text) => WatchError::Upstream(secrets.cut_text(&text)),
        WatchError::Server { status, message } => WatchError::Server { status, message: secrets.cut_text(&message) },
        WatchError::Unreachable(error) => WatchError::Unreachable(error),
    }
}
