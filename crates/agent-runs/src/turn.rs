//! One question to a model: where it goes, with which credential, and its answer as it comes.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use connections::{Acceptance, AccountsOf, Usable};
use egress::{Egress, EgressError, Opened, Request};
use http::Method;
use http::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use kernel::{ProjectId, Scrubber};
use models::{Api, Delta, ErrorKind, ModelError, Prompt, Reply, StreamReader};
use secrecy::ExposeSecret;
use secrets::{Part, SecretError, parts};
use serde_json::{Map, Value, json};
use tokio::time::{Instant, timeout, timeout_at};
use url::Url;

use crate::AgentRuns;
use crate::config::{ModelConfig, integration_of};
use crate::error::RunError;

/// How long a model may say nothing.
const SILENCE: Duration = Duration::from_mins(3);
/// As much of an answer that is an error as is read.
const MAX_ERROR: usize = 64 << 10;

/// Why there is no answer.
#[derive(Debug)]
pub(crate) enum NoAnswer {
    /// The server was not reached, or said something about the question.
    Model(ModelError),
    /// The question cannot be sent at all.
    Refused(String),
    /// The time for it is up.
    TimeUp,
    /// Our own failure.
    Broken(RunError),
}

impl<E: Into<RunError>> From<E> for NoAnswer {
    fn from(error: E) -> Self {
        Self::Broken(error.into())
    }
}

impl NoAnswer {
    fn unreachable(error: &EgressError) -> Self {
        match error {
            EgressError::Connect { .. } | EgressError::Io { .. } | EgressError::Timeout { .. } | EgressError::RateLimited { .. } => {
                Self::Model(ModelError { kind: ErrorKind::Server, message: format!("the model's server: {error}"), retry_after: None })
            }
            other => Self::Refused(format!("The model's server cannot be asked: {other}")),
        }
    }
}

/// A question and how to ask it.
pub(crate) struct Question<'a> {
    pub(crate) project: ProjectId,
    pub(crate) model: &'a ModelConfig,
    pub(crate) prompt: Prompt<'a>,
    pub(crate) limit: Duration,
}

/// Headers with what opens the model's server, and what takes that out of its words.
struct Credential {
    headers: HeaderMap,
    scrubber: Scrubber,
}

impl AgentRuns {
    /// Asks a model; `hear` is told what it says while it speaks.
    pub(crate) async fn ask(&self, question: &Question<'_>, hear: &mut (dyn AsyncHear + Send)) -> Result<Reply, NoAnswer> {
        let deadline = Instant::now() + question.limit;
        let (api, model) = (question.model.api, question.model);
        let asked = models::request(api, &question.prompt);
        let url = below(&model.url, asked.path);
        let body = Bytes::from(asked.body.to_string());
        let mut headers = HeaderMap::new();
        for (name, value) in asked.headers {
            if let Ok(value) = HeaderValue::from_str(&value) {
                headers.insert(HeaderName::from_static(name), value);
            }
        }
        let authored = self.authored(question.project, model, &url).await?;
        headers.extend(authored.headers);
        let post = Post { egress: &self.0.parts.egress, api, url, body, deadline };
        let opened = match &model.connection {
            None => post.open(headers, &authored.scrubber).await?,
            Some(slug) => self.with_connection(question.project, slug, headers, &post).await?,
        };
        read(api, opened, deadline, hear).await
    }

    /// Opens the answer with the credential of a connection, which is renewed or marked as any other that a service refuses.
    async fn with_connection(&self, project: ProjectId, slug: &str, headers: HeaderMap, post: &Post<'_>) -> Result<Opened, NoAnswer> {
        let api = post.api;
        let refused = |error: &dyn std::fmt::Display| NoAnswer::Refused(format!("The connection `{slug}` of the model: {error}"));
        let key = integration_of(api);
        self.0.parts.catalog.ready(project).await.map_err(|error| refused(&error))?;
        let integration = self.0.parts.catalog.integration(project, native(), key).map_err(|error| refused(&error))?;
        // The model's account is the project's, whoever the agent runs for.
        let found =
            self.0.parts.connections.find(AccountsOf::project(project), native(), key, slug).await.map_err(|error| refused(&error))?;
        let connection = found.ok_or_else(|| refused(&format_args!("{key} has no such connection")))?;
        let usable = self.0.parts.connections.usable(&connection, &integration).await.map_err(|error| refused(&error))?;
        let attempt = |usable: Arc<Usable>| {
            let (headers, scrubber) = (credential(api, &usable, headers.clone()), usable.scrubber().clone());
            async move { post.open(headers, &scrubber).await }
        };
        let judge = |outcome: &Result<Opened, NoAnswer>| match outcome {
            Ok(_) => Acceptance::Accepted,
            Err(NoAnswer::Model(ModelError { kind: ErrorKind::Unauthorized, message, .. })) => Acceptance::Refused(message.clone()),
            Err(_) => Acceptance::Unknown,
        };
        let outcome = self.0.parts.connections.with_credential(&connection, &integration, usable, attempt, judge).await;
        outcome.map_err(|error| refused(&error))?
    }

    /// The author's headers for this address, with the secrets that they name.
    async fn authored(&self, project: ProjectId, model: &ModelConfig, url: &Url) -> Result<Credential, NoAnswer> {
        let (mut headers, mut used) = (HeaderMap::new(), Vec::new());
        for (name, text) in &model.headers {
            let wrong = |error: &dyn std::fmt::Display| NoAnswer::Refused(format!("`model.headers.{name}`: {error}"));
            let Ok(header) = name.parse::<HeaderName>() else { continue };
            let mut filled = String::new();
            for part in parts(text.as_str().unwrap_or_default()).map_err(|error| wrong(&error))? {
                match part {
                    Part::Text(text) => filled.push_str(text),
                    Part::Secret(slug) => {
                        let secret = self.0.parts.secrets.for_host(project, slug.as_str(), url).await.map_err(|error| match error {
                            SecretError::Store(error) => error.into(),
                            other => wrong(&other),
                        })?;
                        filled.push_str(secret.expose_secret());
                        used.push(secret);
                    }
                }
            }
            let mut value = HeaderValue::from_str(&filled).map_err(|_| wrong(&"its value cannot be sent"))?;
            value.set_sensitive(true);
            headers.insert(header, value);
        }
        Ok(Credential { headers, scrubber: Scrubber::new(used.iter().map(ExposeSecret::expose_secret)) })
    }
}

/// A question on its way.
struct Post<'a> {
    egress: &'a Egress,
    api: Api,
    url: Url,
    body: Bytes,
    deadline: Instant,
}

impl Post<'_> {
    /// Sends it, and comes back when an answer begins that is none of refusal.
    async fn open(&self, headers: HeaderMap, scrubber: &Scrubber) -> Result<Opened, NoAnswer> {
        let left = self.deadline.saturating_duration_since(Instant::now());
        let mut request = Request::new(Method::POST, self.url.clone()).body(self.body.clone()).timeout(left.min(SILENCE));
        request.headers = headers;
        match self.egress.open(request).await {
            Ok(opened) if opened.status.is_success() => Ok(opened),
            Ok(opened) => Err(NoAnswer::Model(refusal(self.api, opened, scrubber, self.deadline).await)),
            Err(EgressError::Timeout { .. }) if Instant::now() >= self.deadline => Err(NoAnswer::TimeUp),
            Err(error) => Err(NoAnswer::unreachable(&error)),
        }
    }
}

/// The provider whose connections hold the credentials of models.
fn native() -> &'static str {
    "native"
}

/// Whoever hears what a model says while it speaks.
pub(crate) trait AsyncHear {
    fn hear(&mut self, deltas: Vec<Delta>) -> futures_util::future::BoxFuture<'_, Result<(), RunError>>;
}

fn below(base: &Url, path: &str) -> Url {
    let mut url = base.clone();
    url.set_path(&format!("{}{path}", base.path().trim_end_matches('/')));
    url
}

/// The headers with a connection's credential, as the API takes it.
fn credential(api: Api, usable: &Usable, mut headers: HeaderMap) -> HeaderMap {
    let field = ["api_key", "token", "access_token", "key"].into_iter().find_map(|name| usable.fields.get(name));
    let Some(secret) = field else { return headers };
    let (name, text) = match api {
        Api::Anthropic => (HeaderName::from_static("x-api-key"), secret.to_owned()),
        Api::OpenaiChat | Api::OpenaiResponses => (AUTHORIZATION, format!("Bearer {secret}")),
    };
    if let Ok(mut value) = HeaderValue::from_str(&text) {
        value.set_sensitive(true);
        headers.insert(name, value);
    }
    headers
}

/// What a server said that did not answer.
async fn refusal(api: Api, mut opened: Opened, scrubber: &Scrubber, deadline: Instant) -> ModelError {
    let mut body = Vec::new();
    while let Ok(Ok(Some(part))) = timeout_at(deadline, opened.chunk()).await {
        body.extend_from_slice(&part[..part.len().min(MAX_ERROR - body.len())]);
        if body.len() >= MAX_ERROR {
            break;
        }
    }
    let after = opened.headers.get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    match models::reply(api, opened.status.as_u16(), after, &body) {
        Err(error) => ModelError { message: scrubber.text(&error.message).into_owned(), ..error },
        Ok(_) => ModelError {
            kind: ErrorKind::Malformed,
            message: "the model's server answered in a way that means nothing".to_owned(),
            retry_after: None,
        },
    }
}

/// Reads an answer while it comes.
async fn read(api: Api, mut opened: Opened, deadline: Instant, hear: &mut (dyn AsyncHear + Send)) -> Result<Reply, NoAnswer> {
    let mut reader = StreamReader::new(api);
    loop {
        let part = timeout_at(deadline, timeout(SILENCE, opened.chunk())).await.map_err(|_| NoAnswer::TimeUp)?;
        let cut = |message: String| NoAnswer::Model(ModelError { kind: ErrorKind::CutOff, message, retry_after: None });
        let part = part.map_err(|_| cut(format!("the model said nothing for {} seconds", SILENCE.as_secs())))?;
        match part.map_err(|error| cut(format!("the model's server: {error}")))? {
            Some(bytes) => {
                let deltas = reader.push(&bytes).map_err(NoAnswer::Model)?;
                if !deltas.is_empty() {
                    hear.hear(deltas).await?;
                }
            }
            None => return reader.end().map_err(NoAnswer::Model),
        }
    }
}

/// What the API is told so that the model calls no tools.
pub(crate) fn without_tools(api: Api, extras: Option<&Map<String, Value>>) -> Map<String, Value> {
    let mut extras = extras.cloned().unwrap_or_default();
    let choice = match api {
        Api::Anthropic => json!({"type": "none"}),
        Api::OpenaiChat | Api::OpenaiResponses => json!("none"),
    };
    extras.insert("tool_choice".to_owned(), choice);
    extras
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_go_below_the_address() {
        for (base, url) in [
            ("https://api.openai.com/v1", "https://api.openai.com/v1/chat/completions"),
            ("http://127.0.0.1:8080/v1/", "http://127.0.0.1:8080/v1/chat/completions"),
            ("http://127.0.0.1:8080", "http://127.0.0.1:8080/chat/completions"),
        ] {
            assert_eq!(below(&base.parse().unwrap(), "/chat/completions").as_str(), url);
        }
    }
}
