//! Proving a credential and learning whose it is.

use std::time::Duration;

use catalog::auth::{AuthScheme, Fields};
use connections::{Identity, Probe, ProbeError};
use egress::{Egress, Response};
use http::StatusCode;
use kernel::Budget;
use kernel::json::{parse, plain_text};
use serde_json::{Map, Value};

use crate::run::request;
use crate::{BuildError, Failure, Operation, OperationRunner, RequestParts, Service, reply};

impl OperationRunner {
    /// Proves a credential with the service's own call for it, where it has one.
    pub async fn prove(&self, service: &Service, probe: Probe<'_>) -> Result<Identity, ProbeError> {
        let Probe { scheme, fields, .. } = probe;
        let limit = self.limits.of(probe.integration);
        let base_url = scheme.base_url().unwrap_or(&service.base_url);
        let mut identity = Identity::default();
        let mut fields = fields.clone();
        if let AuthScheme::OAuth2(oauth) = scheme
            && let Some(discover) = &oauth.discover
        {
            let operation =
                Operation::compile(&RequestParts { request: &discover.request, ..RequestParts::default() }).map_err(ProbeError::Refused)?;
            let found = ask(&self.egress, limit, &operation, base_url, scheme, &fields, None).await?;
            for (name, pointer) in &discover.keep {
                let value = found.pointer(pointer).and_then(plain_text);
                let value =
                    value.ok_or_else(|| ProbeError::Refused(format!("the account has nothing to connect to (`{name}` was not found)")))?;
                fields.set(name.clone(), value.clone());
                identity.fields.push((name.clone(), value));
            }
        }
        if let Some(account) = &service.account {
            let found = ask(&self.egress, limit, &account.operation, base_url, scheme, &fields, service.failure.as_ref()).await?;
            let at = |pointer: &Option<String>| found.pointer(pointer.as_deref()?).and_then(plain_text);
            identity.is_checked = true;
            identity.id = at(&account.id);
            identity.label = at(&account.label);
        }
        Ok(identity)
    }
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
    let mut data = parse(&response.body, &Budget::default()).unwrap_or(Value::Null);
    scheme.scrubber(fields).value(&mut data);
    match response.status {
        status @ (StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => Err(ProbeError::Refused(reply::message(&data, status))),
        status if status.is_server_error() => Err(ProbeError::Server(status.as_u16())),
        _ => match failure.and_then(|failure| reply::failed(failure, &data)) {
            Some(reason) => Err(ProbeError::Refused(reason)),
            None => Ok(data),
        },
    }
}
