//! Proving a credential: a server that lists its tools takes it.

use connections::{Connector, Identity, Probe, ProbeError, Usable};
use futures_util::future::BoxFuture;
use imports::Changed;
use kernel::Scrubber;

use crate::Mcp;
use crate::fault::ServerError;
use crate::target::{Server, authorization};

impl Connector for Mcp {
    fn prove<'a>(&'a self, probe: Probe<'a>) -> BoxFuture<'a, Result<Identity, ProbeError>> {
        Box::pin(async move {
            let Some(server) = probe.integration.service::<Server>() else { return Ok(Identity::default()) };
            let target = server.target.as_ref().map_err(|why| ProbeError::Refused(why.clone()))?;
            self.list(server.project, target, authorization(probe.fields))
                .await
                .map_err(|fault| refused(fault, &server.secrets.and(&probe.fields.scrubber())))?;
            if probe.integration.actions.is_empty() {
                // The first who may see the tools shows them to the catalog.
                let scheme = probe.integration.auth.iter().find(|scheme| scheme.name() == probe.scheme.name()).cloned();
                let account = Some(Usable::unstored(probe.fields.clone(), scheme));
                let _ = self.changes.send(Changed { project: server.project, import: server.import, account });
            }
            Ok(Identity { is_checked: true, ..Identity::default() })
        })
    }
}

fn refused(fault: ServerError, secrets: &Scrubber) -> ProbeError {
    match fault {
        ServerError::Unreachable(error) => ProbeError::Unreachable(error),
        ServerError::Status(status) if status.is_server_error() => ProbeError::Server(status.as_u16()),
        ServerError::Unauthorized { .. } => ProbeError::Refused("the server does not take this credential".to_owned()),
        other => ProbeError::Refused(secrets.cut_text(&other.to_string())),
    }
}
