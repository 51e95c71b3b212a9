//! Proving a credential and learning whose it is.

use std::time::Duration;

use catalog::auth::{AuthScheme, Fields};
use connections::{Connector, Identity, Probe, ProbeError};
use egress::{Egress, Response};
use futures_util::future::BoxFuture;
use http::StatusCode;
use kernel::json::plain_text;
use serde_json::{Map, Value};

use super::load::Service;
use super::manifest::Failure;
use super::operation::{BuildError, Operation, Parts};
use super::run::request;
use super::{Native, reply};
use crate::TimeLimits;

impl Connector for Native {
    fn prove<'a>(&'a self, probe: Probe<'a>) -> BoxFuture<'a, Result<Identity, ProbeError>> {
        Box::pin(async move {
            match self.services.get(&probe.integration.key) {
                Some(service) => prove(&self.egress, &self.limits, service, probe).await,
                None => Ok(Identity::default()),
            }
        })
    }
}

/// Proves a credential with the service's own call for it, where it has one.
pub(crate) async fn prove(egress: &Egress, limits: &TimeLimits, service: &Service, probe: Probe<'_>) -> Result<Identity, ProbeError> {
    let Probe { scheme, fields, .. } = probe;
    let limit = limits.of(probe.integration);
    let base_url = scheme.base_url().unwrap_or(&service.base_url);
    let mut identity = Identity::default();
    let mut fields = fields.clone();
    if let AuthScheme::OAuth2(oauth) = scheme
        && let Some(discover) = &oauth.discover
    {
        let operation = Operation::compile(&Parts { request: &discover.request, ..Parts::default() }).map_err(ProbeError::Refused)?;
        let found = ask(egress, limit, &operation, base_url, scheme, &fields, None).await?;
        for (name, pointer) in &discover.keep {
            let value = found.pointer(pointer).and_then(plain_text);
            let value =
                value.ok_or_else(|| ProbeError::Refused(format!("the account has nothing to connect to (`{name}` was not found)")))?;
            fields.set(name.clone(), value.clone());
            identity.fields.push((name.clone(), value));
        }
    }
    if let Some(account) = &service.account {
        let found = ask(egress, limit, &account.operation, base_url, scheme, &fields, service.failure.as_ref()).await?;
        let at = |pointer: &Option<String>| found.pointer(pointer.as_deref()?).and_then(plain_text);
        identity.is_checked = true;
        identity.id = at(&account.id);
        identity.label = at(&account.label);
    }
    Ok(identity)
}

/// Makes a call that changes nothing. Anything but a refusal is proof.
async fn ask(
    egress: &Egress,
    limit: Duration,
    operation: &Operation,
    base_url: &str,
    scheme: &AuthScheme,
    fields: &Fields,
    failure: Option<&Failure>,
) -> Result<Value, ProbeError> {
    let built = operation
        .build(base_url, scheme.send(), &Map::new(), fields)
        .map_err(|error: BuildError| ProbeError::Refused(error.to_string()))?;
    let response: Response = egress.send(request(built, limit)).await.map_err(ProbeError::Unreachable)?;
    let data: Value = serde_json::from_slice(&response.body).unwrap_or(Value::Null);
    match response.status {
        status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => {
            Err(ProbeError::Refused(fields.scrub(&reply::message(&data, status))))
        }
        status if status.is_server_error() => Err(ProbeError::Server(status.as_u16())),
        _ => match failure.and_then(|failure| reply::failed(failure, &data)) {
            Some(reason) => Err(ProbeError::Refused(fields.scrub(&reason))),
            None => Ok(data),
        },
    }
}
