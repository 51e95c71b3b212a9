//! Commands that talk to a running server, as any client would.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use egress::{Allow, Egress, EgressError, Opened, Request};
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use serde_json::Value;
use url::Url;

use super::{login, print};
use crate::config::Config;
use crate::files;

const USUAL: Duration = Duration::from_secs(90);

/// Where the server is and how to get in.
#[derive(Debug, Args)]
#[command(next_help_heading = "Where the server is")]
pub(super) struct Remote {
    /// Address of the server [default: the listening address]
    #[arg(long, env = "TOOLYARD_URL", value_name = "URL")]
    url: Option<String>,
    /// Project key [default: who signed in with `toolyard login`, else owner.key of the data directory]
    #[arg(long, env = "TOOLYARD_KEY", value_name = "KEY", hide_env_values = true)]
    key: Option<String>,
}

/// The flags of a command that shows something.
#[derive(Debug, Args)]
pub(super) struct ShowArgs {
    /// Print the answer as JSON
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    pub(super) remote: Remote,
}

/// A client of one server.
#[derive(Clone, Debug)]
pub(super) struct Client {
    base: Url,
    credential: Credential,
    egress: Egress,
    /// What somebody who waits for more than a second is told.
    doing: String,
}

/// How a client gets in.
#[derive(Clone, Debug)]
enum Credential {
    Header(HeaderValue),
    /// As whoever signed in to this server.
    Login(String),
    Nobody,
}

impl Client {
    pub(super) fn new(config: &Config, remote: &Remote) -> anyhow::Result<Self> {
        let mut client = Self::nobody(config, remote.url.as_deref())?;
        client.credential = match &remote.key {
            Some(key) => Credential::Header(authorization("ApiKey", key)?),
            None if login::is_signed_in(&client.server())? => Credential::Login(client.server()),
            None => Credential::Header(authorization("ApiKey", &kept_key(&config.data_dir, "owner.key")?)?),
        };
        Ok(client)
    }

    /// A client that shows nothing of who it is.
    pub(super) fn nobody(config: &Config, url: Option<&str>) -> anyhow::Result<Self> {
        let base = base(url.unwrap_or(&config.listen.to_string()))?;
        // The one address that the user named; it may well be private.
        let allow: Allow = base.host_str().context("the address names no host")?.trim_matches(['[', ']']).parse()?;
        let egress = Egress::new(egress::Config { allow, ..egress::Config::default() })?;
        let doing = format!("waiting for {}", base.origin().ascii_serialization());
        Ok(Self { base, credential: Credential::Nobody, egress, doing })
    }

    /// The address of the server, as logins are kept by.
    pub(super) fn server(&self) -> String {
        self.base.to_string()
    }

    /// Posts a form as nobody in particular; any status is an answer.
    pub(super) async fn form(&self, path: &str, fields: &[(&str, &str)]) -> anyhow::Result<(StatusCode, Value)> {
        let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        let kind = HeaderValue::from_static("application/x-www-form-urlencoded");
        let request = Request::new(Method::POST, self.base.join(path.trim_start_matches('/'))?).timeout(USUAL);
        self.answer(request.header(CONTENT_TYPE, kind).body(body)).await
    }

    /// What the client gets in with, at this moment.
    async fn authorization(&self) -> anyhow::Result<Option<HeaderValue>> {
        Ok(match &self.credential {
            Credential::Header(value) => Some(value.clone()),
            Credential::Login(server) => Some(Box::pin(login::token(self, server)).await?),
            Credential::Nobody => None,
        })
    }

    /// The same, with better words for what its requests are for.
    pub(super) fn doing(&self, what: impl Into<String>) -> Self {
        Self { doing: what.into(), ..self.clone() }
    }

    /// The same server, as its operator.
    pub(super) fn operator(config: &Config, remote: &Remote) -> anyhow::Result<Self> {
        let key = match &config.admin_key {
            Some(key) => key.clone(),
            None => kept_key(&config.data_dir, "operator.key")?,
        };
        Ok(Self { credential: Credential::Header(authorization("Access", &key)?), ..Self::nobody(config, remote.url.as_deref())? })
    }

    pub(super) async fn get(&self, path: &str) -> anyhow::Result<Value> {
        self.send(Method::GET, path, None).await
    }

    /// The same where it may well not be there.
    pub(super) async fn find(&self, path: &str) -> anyhow::Result<Option<Value>> {
        match self.exchange(Method::GET, path, None, USUAL).await? {
            (StatusCode::NOT_FOUND, _) => Ok(None),
            (status, reply) => good(status, reply).map(Some),
        }
    }

    /// Asks for something that takes its time.
    pub(super) async fn post_within(&self, path: &str, body: &Value, limit: Duration) -> anyhow::Result<Value> {
        let (status, reply) = self.exchange(Method::POST, path, Some(body), limit).await?;
        good(status, reply)
    }

    pub(super) async fn post(&self, path: &str, body: &Value) -> anyhow::Result<Value> {
        self.send(Method::POST, path, Some(body)).await
    }

    pub(super) async fn put(&self, path: &str, body: &Value) -> anyhow::Result<Value> {
        self.send(Method::PUT, path, Some(body)).await
    }

    pub(super) async fn delete(&self, path: &str) -> anyhow::Result<Value> {
        self.send(Method::DELETE, path, None).await
    }

    async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> anyhow::Result<Value> {
        let (status, reply) = self.exchange(method, path, body, USUAL).await?;
        good(status, reply)
    }

    /// Begins a request whose answer is read as it comes.
    pub(super) async fn open(&self, method: Method, path: &str, headers: HeaderMap, body: Option<String>) -> anyhow::Result<Opened> {
        let mut request = Request::new(method, self.base.join(path.trim_start_matches('/'))?).timeout(USUAL);
        request.headers = headers;
        request.headers.extend(self.authorization().await?.map(|value| (AUTHORIZATION, value)));
        if let Some(body) = body {
            request = request.header(CONTENT_TYPE, HeaderValue::from_static("application/json")).body(body);
        }
        self.egress.open(request).await.with_context(|| self.unreachable())
    }

    fn unreachable(&self) -> String {
        format!("cannot reach {}; is `toolyard serve` running?", self.base.origin().ascii_serialization())
    }

    async fn exchange(&self, method: Method, path: &str, body: Option<&Value>, limit: Duration) -> anyhow::Result<(StatusCode, Value)> {
        let url = self.base.join(path.trim_start_matches('/'))?;
        let mut request = Request::new(method, url).timeout(limit);
        request.headers.extend(self.authorization().await?.map(|value| (AUTHORIZATION, value)));
        if let Some(body) = body {
            request = request.header(CONTENT_TYPE, HeaderValue::from_static("application/json")).body(body.to_string());
        }
        self.answer(request).await
    }

    async fn answer(&self, request: Request) -> anyhow::Result<(StatusCode, Value)> {
        let response = print::during(&self.doing, Box::pin(self.egress.send(request))).await.with_context(|| self.unreachable())?;
        Ok((response.status, serde_json::from_slice(&response.body).unwrap_or(Value::Null)))
    }
}

/// The address of a server; without a scheme it is `http`.
fn base(url: &str) -> anyhow::Result<Url> {
    let whole = if url.contains("://") { url.to_owned() } else { format!("http://{url}") };
    let base: Url = format!("{}/", whole.trim_end_matches('/')).parse().with_context(|| format!("`{url}` is not a web address"))?;
    if !matches!(base.scheme(), "http" | "https") {
        bail!("`{url}` is not a web address; it begins with http:// or https://");
    }
    Ok(base)
}

/// Follows something until it ends or Ctrl-C is pressed.
pub(super) async fn until_interrupted(work: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    tokio::select! {
        ended = work => ended,
        _ = tokio::signal::ctrl_c() => Ok(()),
    }
}

/// What a look found. A server that is away for a moment is no reason to stop looking.
pub(super) fn unless_away(found: anyhow::Result<Vec<Value>>) -> anyhow::Result<Vec<Value>> {
    match found {
        Err(error) if error.downcast_ref::<EgressError>().is_some() => {
            eprintln!("{error:#}; trying again");
            Ok(Vec::new())
        }
        other => other,
    }
}

/// The words of a failure, where the body of an answer has some.
pub(super) fn words(reply: &Value, status: StatusCode) -> String {
    detail(reply).unwrap_or_else(|| format!("the server answered {status}"))
}

/// The reply, or what it says about the failure.
fn good(status: StatusCode, reply: Value) -> anyhow::Result<Value> {
    if !status.is_success() {
        bail!("{}", words(&reply, status));
    }
    Ok(reply)
}

pub(super) fn authorization(scheme: &str, key: &str) -> anyhow::Result<HeaderValue> {
    let mut value = HeaderValue::from_str(&format!("{scheme} {key}")).context("the key holds characters that no key has")?;
    value.set_sensitive(true);
    Ok(value)
}

fn kept_key(data_dir: &Path, name: &str) -> anyhow::Result<String> {
    let path = data_dir.join(name);
    files::read(&path)?
        .with_context(|| format!("there is no key in `{}`; run `toolyard login`, or give one with --key or TOOLYARD_KEY", path.display()))
}

/// The words of an error body; a run that failed has them in its status.
fn detail(reply: &Value) -> Option<String> {
    let Some(detail) = reply.get("detail") else { return reply.pointer("/status/message")?.as_str().map(str::to_owned) };
    if let Some(text) = detail.as_str() {
        return Some(text.to_owned());
    }
    if let Some(first) = detail.get(0) {
        let place: Vec<String> = first["loc"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|part| part.as_str().map_or_else(|| part.to_string(), str::to_owned))
            .collect();
        return Some(format!("{}: {}", place.join("."), first["msg"].as_str().unwrap_or_default()));
    }
    let message = detail["message"].as_str()?;
    let rejected: Vec<&str> = detail["rejected"].as_array().into_iter().flatten().filter_map(|one| one["message"].as_str()).collect();
    if !rejected.is_empty() {
        return Some(format!("{message} {}", rejected.join(" ")));
    }
    let conflict = detail["conflict"].as_object().into_iter().flatten();
    let names: Vec<String> = conflict.filter_map(|(name, value)| Some(format!("{name} {}", value.as_str()?))).collect();
    let message = if names.is_empty() { message.to_owned() } else { format!("{message} ({})", names.join(", ")) };
    Some(detail["hint"].as_str().map_or_else(|| message.clone(), |hint| format!("{message}. {hint}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_may_be_named_without_a_scheme() {
        for (written, meant) in [
            ("localhost:8665", "http://localhost:8665/"),
            ("127.0.0.1:8665", "http://127.0.0.1:8665/"),
            ("[::1]:8665", "http://[::1]:8665/"),
            ("toolyard.internal", "http://toolyard.internal/"),
            ("https://example.com/yard/", "https://example.com/yard/"),
        ] {
            assert_eq!(base(written).unwrap().as_str(), meant);
        }
        for wrong in ["ftp://x", "", "http://"] {
            assert!(base(wrong).unwrap_err().to_string().contains("is not a web address"), "{wrong}");
        }
    }
}
