//! Connecting an account from inside a conversation: the model starts it, a person finishes it at a link.

use calls::CallError;
use connections::{ConnectResult, Connection, ConnectionError, Connections, LinkOptions, NewConnection};
use kernel::{Permission, Scope};
use serde_json::{Map, Value, json};

use crate::{CallOutcome, Domains, RpcError, reply};

pub(crate) async fn connect(domains: &Domains, scope: Scope, arguments: Map<String, Value>) -> Result<CallOutcome, RpcError> {
    let text = |name: &str| arguments.get(name).and_then(Value::as_str);
    let Some(key) = text("integration") else { return Ok(CallOutcome::failure("`integration` must be the key of an integration.")) };
    if !scope.may(Permission::EditTools) {
        return Ok(CallOutcome::failure("This key may not connect accounts. Ask an editor of the project to connect it."));
    }
    let providers = domains.catalog.providers();
    let mut named = providers.iter().filter(|provider| text("provider").is_none_or(|wanted| wanted == provider.key));
    let found = named.find_map(|provider| domains.catalog.integration(scope.project, provider.key, key).ok());
    let Some(integration) = found else {
        return Ok(CallOutcome::failure(format!("There is no integration `{key}`. `find_tools` names some.")));
    };
    match begin(&domains.connections, scope, integration.provider, &integration.key, text("slug"), LinkOptions::default()).await {
        Ok(begun) => Ok(told(&integration.name, begun)),
        Err(error) => reply::of_error(CallError::Connection(error)),
    }
}

/// The connection that is there, made to work if it does not, or else a new one.
pub(crate) async fn begin(
    connections: &Connections,
    scope: Scope,
    provider: &str,
    key: &str,
    slug: Option<&str>,
    link: LinkOptions,
) -> Result<ConnectResult, ConnectionError> {
    let rows = connections.choices(scope, Some(provider), Some(key)).await?;
    let named = |row: &&Connection| slug.is_none_or(|slug| row.slug == slug || row.alias.as_deref() == Some(slug));
    let known = rows.iter().filter(named).find(|row| row.is_usable()).or_else(|| rows.iter().find(named));
    match known {
        Some(row) if row.is_usable() && !row.is_failing() => Ok(ConnectResult { connection: row.clone(), redirect_url: None, note: None }),
        Some(row) => connections.refresh_by(scope, row.id, false, link).await,
        None => {
            // A slug is the project's to give; what an end user calls an account is theirs alone.
            let (slug, alias) = match scope.end_user() {
                None => (slug.map_or_else(|| Connection::usual_slug(key), str::to_owned), None),
                Some(_) => (String::new(), slug.map(str::to_owned)),
            };
            let (provider, integration) = (provider.to_owned(), key.to_owned());
            let new = NewConnection { slug, alias, provider, integration, link, ..NewConnection::default() };
            connections.create(scope, new).await
        }
    }
}

pub(crate) fn told(name: &str, begun: ConnectResult) -> CallOutcome {
    let ConnectResult { connection, redirect_url, note } = begun;
    let mut structured = json!({"integration": connection.integration, "slug": connection.slug});
    if let Some(alias) = &connection.alias {
        structured["alias"] = json!(alias);
    }
    let text = if let Some(url) = redirect_url {
        structured["status"] = "waiting".into();
        structured["url"] = json!(url);
        format!("Ask the person to open this link and to finish there: {url}\nThen find the tools again.")
    } else {
        structured["status"] = "ready".into();
        let note = note.map(|note| format!(" {note}")).unwrap_or_default();
        format!("{name} is connected as `{}`.{note}", connection.slug)
    };
    CallOutcome::text(text, Some(structured), false)
}
