//! Runs that somebody else makes: a post to the author's URL, signed so that the service can tell ours from others'.

use std::time::Duration;

use egress::{EgressError, Request};
use hmac::{Hmac, KeyInit, Mac};
use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap};
use http::{HeaderName, HeaderValue, Method};
use kernel::json::{Unread, parse};
use kernel::{Budget, ProjectId, RunId, hex};
use serde_json::{Value, json};
use sha2::Sha256;
use work::WorkError;

use crate::invoke::{NotBegun, RunEnd};
use crate::{Family, InvokeRequest, Retrieved, Workflows};

const VERSION: &str = "2025.07.14";
/// How long the token of a post is good for, in seconds.
const TOKEN_LIFE: i64 = 900;
const NO_URL: &str = "Workflow revision has no runnable service URL.";

/// One post: what runs, for whom, and where below the URL it goes.
#[derive(Debug)]
pub(crate) struct Post<'a> {
    pub(crate) project: ProjectId,
    pub(crate) run: RunId,
    pub(crate) found: &'a Retrieved,
    pub(crate) data: &'a Value,
    pub(crate) request: &'a InvokeRequest,
    pub(crate) below: &'static str,
    pub(crate) limit: Duration,
}

impl Workflows {
    pub(crate) async fn run_http(&self, post: Post<'_>) -> RunEnd {
        let url = post
            .data
            .get("url")
            .and_then(Value::as_str)
            .and_then(|url| format!("{}{}", url.trim_end_matches('/'), post.below).parse::<url::Url>().ok());
        let Some(url) = url else { return RunEnd::failed(400, NO_URL) };
        let authored = match self.authored_headers(post.project, post.data, &url).await {
            Ok(authored) => authored,
            Err(end) => return end,
        };
        let body = json!({
            "version": VERSION,
            "references": post.found.references(Family::Workflow),
            "session_id": post.request.session_id,
            "data": {"inputs": post.request.inputs, "parameters": post.data.get("parameters"), "revision": {"data": post.data}},
            "meta": {"run_id": post.run, "run_kind": post.request.is_test.then_some("test")},
        })
        .to_string();
        let headers = self.headers(&post, &body, authored.headers.clone());
        let mut request = Request::new(Method::POST, url).timeout(post.limit).body(body);
        request.headers = headers;
        match self.0.egress.send(request).await {
            Err(EgressError::Timeout { .. }) => RunEnd::failed(504, "The workflow's service did not answer in time."),
            Err(error) => {
                tracing::warn!(run = %post.run, %error, "the service of a workflow could not be reached");
                RunEnd::failed(424, format!("The workflow's service could not be reached: {}.", unreachable_words(&error)))
            }
            Ok(response) if response.truncated => RunEnd::failed(424, "The workflow's service answered with more than can be read."),
            Ok(response) => {
                let (status, body, size) = (response.status.as_u16(), response.body.clone(), response.body.len());
                let read = move |budget: &Budget| Ok::<_, WorkError>(read_reply(status, &body, budget));
                authored.scrub(self.0.workers.run(post.project, size, read).await.unwrap_or_else(|error| NotBegun::from(error).into()))
            }
        }
    }

    fn headers(&self, post: &Post<'_>, body: &str, mut headers: HeaderMap) -> HeaderMap {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        let now = self.0.clock.now().seconds();
        let ours = [
            ("x-toolyard-run-id", Some(post.run.to_string())),
            ("x-toolyard-token", Some(self.run_token(post.project, post.run, now))),
            ("x-toolyard-signature", Some(signature(&self.signing_secret(post.project), now, body))),
            ("idempotency-key", post.request.idempotency_key.clone()),
            ("x-agenta-run-kind", post.request.is_test.then(|| "test".to_owned())),
        ];
        for (name, value) in ours {
            if let Some(Ok(mut value)) = value.as_deref().map(HeaderValue::from_str) {
                value.set_sensitive(true);
                headers.insert(HeaderName::from_static(name), value);
            }
        }
        headers
    }

    /// A token that says which run this is. It opens nothing: the URL is the author's choice, and a key of the project is not for it.
    fn run_token(&self, project: ProjectId, run: RunId, now: i64) -> String {
        self.0.signer.sign(json!({"project_id": project, "run_id": run, "exp": now + TOKEN_LIFE}).to_string().as_bytes())
    }

    /// The secret with which a project's posts are signed; services that receive them know it.
    pub fn signing_secret(&self, project: ProjectId) -> String {
        let signed = self.0.signer.sign(format!("workflow-posts:{project}").as_bytes());
        format!("whs_{}", signed.rsplit('.').next().unwrap_or_default())
    }
}

/// `t=<seconds>,v1=<hex of HMAC-SHA256 over "t.body">`
fn signature(secret: &str, now: i64, body: &str) -> String {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).expect("HMAC takes a key of any length");
    mac.update(format!("{now}.{body}").as_bytes());
    format!("t={now},v1={}", hex::encode(&mac.finalize().into_bytes()))
}

/// Why no answer came, without the host: whoever may run a workflow or read its runs need not know where its service is.
fn unreachable_words(error: &EgressError) -> &'static str {
    match error {
        EgressError::Blocked { .. } => "its address is blocked; use a public host, or ask the operator to allow it",
        EgressError::PlainHttp { .. } => "its address must begin with `https`, unless the operator allows plain `http` for it",
        EgressError::BadUrl { .. } | EgressError::BadAllow { .. } => "its address cannot be called",
        EgressError::Dns { .. } => "its host was not found, or has no public address",
        EgressError::Connect { .. } => "it takes no connections; nothing was sent, so try again later",
        EgressError::Tls { .. } => "there is no secure connection to it; check its certificate",
        EgressError::Io { .. } => {
            "the connection broke before the whole answer arrived; check whether the run took effect before repeating it"
        }
        EgressError::Timeout { .. } => "it did not answer in time",
        EgressError::TooManyRedirects { .. } => "it redirects too often; use the final address",
        EgressError::Downgrade { .. } => "it redirects from `https` to plain `http`",
        EgressError::RateLimited { .. } => "too many calls at once; nothing was sent, so try again later",
        EgressError::Setup { .. } => "the HTTP client did not start",
    }
}

/// A service answers with the documented envelope, or with anything: then that is the output.
fn read_reply(status: u16, body: &[u8], budget: &Budget) -> RunEnd {
    let mut reply = match parse(body, budget) {
        Ok(reply) => reply,
        Err(Unread::Json(_)) => json!(String::from_utf8_lossy(body)),
        Err(Unread::Exceeded(why)) => {
            return RunEnd::failed(424, format!("The answer of the workflow's service cannot be read: {why}"));
        }
    };
    let said = reply.pointer("/status/code").and_then(Value::as_i64).unwrap_or(i64::from(status));
    let message = reply.pointer("/status/message").and_then(Value::as_str).map(str::to_owned);
    let is_success = |code: i64| (200..300).contains(&code);
    if !is_success(said) || !is_success(i64::from(status)) {
        let code = if is_success(said) { i64::from(status) } else { said };
        // What the service said about our credentials or our pace is not about the caller's.
        let code = if matches!(code, 401 | 403 | 429) || !(400..600).contains(&code) { 424 } else { code };
        return RunEnd::failed(code, message.unwrap_or_else(|| format!("The workflow's service answered {status}.")));
    }
    let outputs = if let Some(outputs) = reply.pointer_mut("/data/outputs") {
        outputs.take()
    } else if reply.get("status").is_some() && reply.get("data").is_some() {
        Value::Null
    } else {
        reply
    };
    RunEnd { code: said, message: message.unwrap_or_else(|| "Success".to_owned()), outputs: Some(outputs), waits_for: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_are_read_as_they_come() {
        for (status, body, code, outputs) in [
            (200, json!({"status": {"code": 200}, "data": {"outputs": {"a": 1}}}), 200, Some(json!({"a": 1}))),
            (200, json!({"status": {"code": 201}, "data": {}}), 201, Some(Value::Null)),
            (200, json!({"anything": 1}), 200, Some(json!({"anything": 1}))),
            (200, json!({"status": {"code": 500, "message": "no"}}), 500, None),
            (200, json!({"status": {"code": 7}}), 424, None),
            (302, json!({}), 424, None),
            (403, json!({}), 424, None),
            (422, json!({"status": {"code": 200}}), 422, None),
        ] {
            let ending = read_reply(status, body.to_string().as_bytes(), &Budget::default());
            assert_eq!((ending.code, ending.outputs), (code, outputs), "{status} {body}");
        }
        assert_eq!(read_reply(200, b"plain", &Budget::default()).outputs, Some(json!("plain")));
    }

    #[test]
    fn the_signature_is_over_time_and_body() {
        let expected = "t=1700000000,v1=7b0ef0a2f1a5";
        assert_eq!(signature("whs_x", 1_700_000_000, "{}").len(), expected.len() - 12 + 64);
        assert_ne!(signature("whs_x", 1, "{}"), signature("whs_x", 2, "{}"));
        assert_ne!(signature("whs_x", 1, "{}"), signature("whs_y", 1, "{}"));
    }
}
