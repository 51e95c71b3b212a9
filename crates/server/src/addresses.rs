//! The addresses of the API in answers and hints. Domains say what comes next; where that is asked for is known here.

use ::connections::ConnectPages;
use definitions::Callee;
use definitions::ops::Mount;
use discovery::{ApiRequest, ConnectDraft, NextStep, RequestDraft};
use kernel::ApprovalId;
use serde_json::{Value, json};
use url::Url;

/// Where runners take the calls of resolved tools.
const CALL: &str = "/tools/call";
/// What the caller has to choose: the workflow that runs.
const WORKFLOW: &str = "<workflow>";

/// How the API is asked for what a discovery suggests.
#[derive(Clone, Copy, Debug, Default)]
pub struct DiscoveryAddresses;

impl discovery::Addresses for DiscoveryAddresses {
    fn address(&self, step: NextStep) -> String {
        match step {
            NextStep::ConnectForTools => "POST /tools/connections/".to_owned(),
            NextStep::ConnectForEvents => "POST /triggers/connections/".to_owned(),
            NextStep::Reconnect(id) => format!("POST /tools/connections/{id}/refresh"),
            NextStep::Subscribe => "POST /triggers/subscriptions/".to_owned(),
            NextStep::Schedule => "POST /triggers/schedules/".to_owned(),
            NextStep::FindTools => "POST /tools/discover".to_owned(),
        }
    }

    fn request(&self, draft: RequestDraft<'_>) -> ApiRequest {
        let (step, body) = match draft {
            RequestDraft::Connect(draft) => (draft.step, connection(&draft)),
            RequestDraft::Subscribe { name, event, connection, config } => {
                let connection = connection.map_or_else(|| json!("<connection_id>"), |id| json!(id));
                let data = json!({"event_key": event, "trigger_config": config, "references": {"workflow": {"slug": WORKFLOW}}});
                (NextStep::Subscribe, json!({"subscription": {"name": name, "connection_id": connection, "data": data}}))
            }
            RequestDraft::Schedule { name, cron } => {
                let data = json!({"event_key": "SCHEDULE", "schedule": cron, "references": {"workflow": {"slug": WORKFLOW}}});
                (NextStep::Schedule, json!({"schedule": {"name": name, "data": data}}))
            }
        };
        ApiRequest { endpoint: self.address(step), body }
    }
}

fn connection(draft: &ConnectDraft<'_>) -> Value {
    let mut connection = json!({"provider_key": draft.provider, "integration_key": draft.integration, "slug": draft.slug});
    if draft.with_key {
        connection["data"] = json!({"auth_scheme": "api_key"});
    }
    json!({"connection": connection})
}

/// Where an identity provider sends people back to.
pub fn sign_in_callback(public_url: &str, provider: &str) -> String {
    let name: String = url::form_urlencoded::byte_serialize(provider.as_bytes()).collect();
    format!("{}/sign-in/with/{name}/callback", public_url.trim_end_matches('/'))
}

/// Where somebody accepts an invitation.
pub fn invitation(public_url: &str, token: &str) -> String {
    format!("{}/invitations/{token}", public_url.trim_end_matches('/'))
}

/// Where somebody signs in with a link.
pub fn sign_in_link(public_url: &str, token: &str) -> String {
    format!("{}/sign-in/link/{token}", public_url.trim_end_matches('/'))
}

/// Where clients of the Model Context Protocol find the tools of a session.
pub fn session_mcp(public_url: &str, session: &user_sessions::UserSession) -> String {
    let public_url = public_url.trim_end_matches('/');
    if session.is_routed() {
        composio_api::session_mcp(public_url, session.id)
    } else {
        format!("{public_url}/mcp/sessions/{}", session.id)
    }
}

/// Where an op is called that is a request of its own.
pub fn op(name: &str) -> String {
    format!("POST /tools/ops/{name}")
}

/// What the function name of a model leads to.
pub(crate) fn callee(callee: Callee) -> String {
    match callee {
        Callee::Ref(name) | Callee::Local(name) => name,
        Callee::Op(name) => op(&name),
    }
}

/// Where people decide about calls.
pub(crate) fn approvals(public_url: &str) -> String {
    format!("{public_url}/tools/approvals")
}

/// Where a person decides about one call.
pub fn approval(public_url: &str, project: &str, id: ApprovalId) -> String {
    format!("{}/app/{project}/approvals/{id}", public_url.trim_end_matches('/'))
}

/// Where people come to connect an account, and where it is said how.
pub fn connect_pages(public_url: &str) -> ConnectPages {
    ConnectPages {
        callback: format!("{public_url}/tools/connections/callback"),
        key_form: format!("{public_url}/connect"),
        save_app: "POST /tools/oauth-apps".to_owned(),
    }
}

/// Where the API is on the host of a callback.
pub(crate) fn mount(callback: &Url) -> Result<Mount, String> {
    let path = callback.path();
    let missing = || format!("callback `{path}` does not end in `{CALL}`, so nothing says which paths a tool may reach");
    path.strip_suffix(CALL).map(Mount::new).ok_or_else(missing)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_callback_says_where_the_api_is() {
        for (callback, expected) in [("https://h/api/tools/call", "/api"), ("https://user:pass@h/tools/call?q=1", "")] {
            assert_eq!(mount(&callback.parse().unwrap()), Ok(Mount::new(expected)));
        }
        let error = mount(&"https://h/api/call".parse().unwrap()).unwrap_err();
        assert_eq!(error, "callback `/api/call` does not end in `/tools/call`, so nothing says which paths a tool may reach");
    }
}
