//! Proving a credential and learning whose it is.

use catalog::auth::{AuthScheme, Fields};
use connections::{Connector, Identity, Probe, ProbeError};
use egress::Response;
use futures_util::future::BoxFuture;
use http::StatusCode;
use kernel::json::plain_text;
use serde_json::{Map, Value};

use super::manifest::Failure;
use super::operation::{BuildError, Operation, Parts};
use super::run::request;
use super::{Native, reply};

impl Connector for Native {
    fn prove<'a>(&'a self, probe: Probe<'a>) -> BoxFuture<'a, Result<Identity, ProbeError>> {
        Box::pin(self.prove_credential(probe))
    }
}

impl Native {
    async fn prove_credential(&self, probe: Probe<'_>) -> Result<Identity, ProbeError> {
        let Probe { integration, scheme, fields } = probe;
        let Some(service) = self.services.get(&integration.key) else { return Ok(Identity::default()) };
        let base_url = scheme.base_url().unwrap_or(&service.base_url);
        let mut identity = Identity::default();
        let mut fields = fields.clone();
        if let AuthScheme::OAuth2(oauth) = scheme
            && let Some(discover) = &oauth.discover
        {
            let operation = Operation::compile(&Parts { request: &discover.request, ..Parts::default() }).map_err(ProbeError::Refused)?;
            let found = self.ask(&operation, base_url, scheme, &fields, None).await?;
            for (name, pointer) in &discover.keep {
                let value = found.pointer(pointer).and_then(plain_text);
                let value =
                    value.ok_or_else(|| ProbeError::Refused(format!("the account has nothing to connect to (`{name}` was not found)")))?;
                fields.set(name.clone(), value.clone());
                identity.fields.push((name.clone(), value));
            }
        }
        if let Some(account) = &service.account {
            let found = self.ask(&account.operation, base_url, scheme, &fields, service.failure.as_ref()).await?;
            let at = |pointer: &Option<String>| found.pointer(pointer.as_deref()?).and_then(plain_text);
            identity.id = at(&account.id);
            identity.label = at(&account.label);
        }
        Ok(identity)
    }

    /// Makes a call that changes nothing. Anything but a refusal is proof.
    async fn ask(
        &self,
        operation: &Operation,
        base_url: &str,
        scheme: &AuthScheme,
        fields: &Fields,
        failure: Option<&Failure>,
    ) -> Result<Value, ProbeError> {
        let built = operation
            .build(base_url, scheme.send(), &Map::new(), fields)
            .map_err(|error: BuildError| ProbeError::Refused(error.to_string()))?;
        let response: Response = self.egress.send(request(built)).await.map_err(ProbeError::Unreachable)?;
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
}
