//! The headers that an author gave to the service of a workflow, and the secrets that they name as `{{secrets.NAME}}`.

use http::{HeaderMap, HeaderName, HeaderValue};
use kernel::{ProjectId, Scope, Scrubber};
use secrecy::ExposeSecret;
use secrets::{Part, SecretError, parts};
use serde_json::Value;
use url::Url;

use crate::invoke::RunEnd;
use crate::{WorkflowError, Workflows};

/// Headers as they are sent, and what takes the secrets in them out of an answer.
#[derive(Debug, Default)]
pub(crate) struct AuthoredHeaders {
    pub(crate) headers: HeaderMap,
    pub(crate) scrubber: Scrubber,
}

impl Workflows {
    /// Refuses headers that name a secret which is not there, or which may not go to where the workflow posts.
    pub(crate) async fn check_secrets(&self, scope: Scope, data: &Value) -> Result<(), WorkflowError> {
        let url: Option<Url> = data.get("url").and_then(Value::as_str).and_then(|url| url.parse().ok());
        for (name, text) in texts(data) {
            let wrong = |error: &dyn std::fmt::Display| WorkflowError::Invalid(format!("`data.headers.{name}`: {error}"));
            for part in parts(text).map_err(|error| wrong(&error))? {
                let Part::Secret(slug) = part else { continue };
                let found = self.0.secrets.find(scope.project, slug.as_str()).await;
                let allowed = found.and_then(|secret| url.as_ref().map_or(Ok(()), |url| secret.may_go_to(url)));
                allowed.map_err(|error| match error {
                    SecretError::Store(error) => error.into(),
                    other => wrong(&other),
                })?;
            }
        }
        Ok(())
    }

    /// The headers for a post to this address.
    pub(crate) async fn authored_headers(&self, project: ProjectId, data: &Value, url: &Url) -> Result<AuthoredHeaders, RunEnd> {
        let (mut headers, mut used) = (HeaderMap::new(), Vec::new());
        for (name, text) in texts(data) {
            let Ok(header) = name.parse::<HeaderName>() else { continue };
            let (mut filled, mut is_secret) = (String::new(), false);
            for part in parts(text).map_err(|error| RunEnd::failed(400, format!("`data.headers.{name}`: {error}")))? {
                match part {
                    Part::Text(text) => filled.push_str(text),
                    Part::Secret(slug) => {
                        let value = self.0.secrets.for_host(project, slug.as_str(), url).await.map_err(|error| refused(name, error))?;
                        filled.push_str(value.expose_secret());
                        used.push(value);
                        is_secret = true;
                    }
                }
            }
            match HeaderValue::from_str(&filled) {
                Ok(mut value) => {
                    value.set_sensitive(is_secret);
                    headers.insert(header, value);
                }
                Err(_) if is_secret => {
                    return Err(RunEnd::failed(400, format!("`data.headers.{name}`: the value of its secret cannot be sent in a header.")));
                }
                Err(_) => {}
            }
        }
        Ok(AuthoredHeaders { headers, scrubber: Scrubber::new(used.iter().map(ExposeSecret::expose_secret)) })
    }
}

impl AuthoredHeaders {
    /// The end of a run without the secrets that the service repeats.
    pub(crate) fn scrub(&self, mut end: RunEnd) -> RunEnd {
        end.message = self.scrubber.text(&end.message).into_owned();
        if let Some(outputs) = &mut end.outputs {
            self.scrubber.value(outputs);
        }
        end
    }
}

fn texts(data: &Value) -> impl Iterator<Item = (&str, &str)> {
    let headers = data.get("headers").and_then(Value::as_object);
    headers.into_iter().flatten().filter_map(|(name, value)| Some((name.as_str(), value.as_str()?)))
}

fn refused(name: &str, error: SecretError) -> RunEnd {
    match error {
        SecretError::Store(_) | SecretError::Sealed(_) => {
            tracing::error!(%error, "a secret of a workflow cannot be read");
            RunEnd::failed(503, "The secrets of the workflow cannot be read now; try again in a moment.")
        }
        other => RunEnd::failed(400, format!("`data.headers.{name}`: {other}")),
    }
}
