//! Every documented operation, read from the document itself, so that a later route is covered too.

use std::collections::BTreeSet;

use http::Method;
use kernel::Permission;
use serde_json::Value;

/// Who may call an operation, as the document says it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Needs {
    Nothing,
    Operator,
    /// Somebody who is signed in.
    Session,
    /// All of these.
    Permissions(Vec<Permission>),
}

#[derive(Clone, Debug)]
pub struct Operation {
    pub id: String,
    pub method: Method,
    pub path: String,
    pub needs: Needs,
    /// The names in the path, in order.
    pub parameters: Vec<String>,
    pub takes_body: bool,
}

impl Operation {
    pub fn permissions(&self) -> &[Permission] {
        match &self.needs {
            Needs::Permissions(all) => all,
            _ => &[],
        }
    }
}

fn needs(operation: &Value) -> Needs {
    let Some(first) = operation["security"].get(0).and_then(Value::as_object) else { return Needs::Nothing };
    let (name, scopes) = first.iter().next().unwrap();
    match name.as_str() {
        "operator" => Needs::Operator,
        "session" => Needs::Session,
        "key" => Needs::Permissions(scopes.as_array().unwrap().iter().map(|scope| scope.as_str().unwrap().parse().unwrap()).collect()),
        other => panic!("unknown security scheme `{other}`"),
    }
}

pub fn all() -> Vec<Operation> {
    let document = serde_json::to_value(server::openapi()).unwrap();
    let mut found = Vec::new();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            found.push(Operation {
                id: operation["operationId"].as_str().unwrap().to_owned(),
                method: method.to_uppercase().parse().unwrap(),
                path: path.clone(),
                needs: needs(operation),
                parameters: path.split(['{', '}']).skip(1).step_by(2).map(str::to_owned).collect(),
                takes_body: !operation["requestBody"].is_null(),
            });
        }
    }
    found
}

#[test]
fn only_what_must_be_public_is_public() {
    let public = all().into_iter().filter(|operation| operation.needs == Needs::Nothing).map(|operation| operation.path);
    let expected = [
        "/",
        "/health",
        "/ready",
        "/metrics",
        "/openapi.json",
        "/docs",
        "/tools/connections/callback",
        "/tools/connections/callback/{app}",
        "/triggers/native/{integration_key}/{token}",
        "/triggers/composio/events",
        "/connect/{ticket}",
        "/sign-in",
        "/sign-out",
        "/sign-in/with/{provider}",
        "/sign-in/with/{provider}/callback",
        "/sign-in/link/{link}",
        "/invitations/{invitation}",
        "/account",
        "/device",
        "/oauth/register",
        "/oauth/authorize",
        "/oauth/token",
        "/oauth/revoke",
        "/oauth/introspect",
        "/oauth/device",
        "/.well-known/oauth-authorization-server",
        "/.well-known/openid-configuration",
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource/mcp",
        "/.well-known/oauth-protected-resource/mcp/agents/{agent_id}",
    ];
    assert_eq!(public.collect::<BTreeSet<_>>(), expected.into_iter().map(str::to_owned).collect());
}
