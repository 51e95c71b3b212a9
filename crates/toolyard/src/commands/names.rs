//! From what a person writes to the row that is meant: an id, the end of one as tables show it, a slug or a name.

use anyhow::bail;
use kernel::suggest::did_you_mean;
use serde_json::{Value, json};
use uuid::Uuid;

use super::client::Client;
use super::integrations::{encode, list, text};

/// The provider whose integrations need no prefix.
const NATIVE: &str = "native";
/// The providers of what a project imported.
const IMPORTED: [&str; 2] = ["openapi", "mcp"];
/// The end of an id is not shorter than this.
const SHORTEST: usize = 4;

/// An integration and who provides it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Integration {
    pub(super) provider: String,
    pub(super) key: String,
}

impl Integration {
    fn new(provider: &str, key: &str) -> Self {
        Self { provider: provider.to_owned(), key: key.to_owned() }
    }

    /// As it stands: without a provider it is a built-in one.
    pub(super) fn written(name: &str) -> Self {
        name.split_once('/').map_or_else(|| Self::new(NATIVE, name), |(provider, key)| Self::new(provider, key))
    }

    /// Which integration a row belongs to.
    pub(super) fn of(row: &Value) -> Self {
        Self::new(row["provider_key"].as_str().unwrap_or(NATIVE), &text(row, "integration_key"))
    }

    /// Where the catalog has it, for tools or for triggers.
    pub(super) fn path(&self, catalog: &str) -> String {
        format!("/{catalog}/catalog/providers/{}/integrations/{}", encode(&self.provider), encode(&self.key))
    }
}

/// As commands take it.
impl std::fmt::Display for Integration {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.provider == NATIVE { f.write_str(&self.key) } else { write!(f, "{}/{}", self.provider, self.key) }
    }
}

/// The integration that `openapi/orders` or just `orders` means: the built-in one of this key, else the imported one, else another provider's.
pub(super) async fn integration(client: &Client, name: &str) -> anyhow::Result<Integration> {
    let written = Integration::written(name);
    if name.contains('/') {
        return Ok(written);
    }
    // A key that may not look into the catalog can still call what is built in.
    if client.find(&written.path("tools")).await.is_ok_and(|found| found.is_some()) {
        return Ok(written);
    }
    let Ok(providers) = client.get("/tools/catalog/providers").await else { return Ok(written) };
    let others: Vec<String> =
        list(&providers, "providers").iter().map(|provider| text(provider, "key")).filter(|key| key != NATIVE).collect();
    let (imported, hosted): (Vec<String>, Vec<String>) = others.into_iter().partition(|key| IMPORTED.contains(&key.as_str()));
    for providers in [imported, hosted] {
        let mut found = Vec::new();
        for provider in providers {
            let one = Integration::new(&provider, name);
            if client.find(&one.path("tools")).await?.is_some() {
                found.push(one);
            }
        }
        match &found[..] {
            [] => {}
            [one] => return Ok(one.clone()),
            several => {
                let names: Vec<String> = several.iter().map(|one| format!("`{one}`")).collect();
                bail!("`{name}` can be {}; say which", names.join(" or "));
            }
        }
    }
    let known = known(client).await?;
    let near = did_you_mean(name, known.iter().map(String::as_str));
    bail!("there is no integration `{name}`.{near} `toolyard integrations` lists them")
}

/// How the built-in and the imported integrations can be named.
async fn known(client: &Client) -> anyhow::Result<Vec<String>> {
    let mut names = Vec::new();
    for provider in providers() {
        let rows = integrations(client, provider, "").await?;
        names.extend(rows.iter().map(|row| text(row, "key")));
    }
    Ok(names)
}

/// The providers whose integrations a project sees at a glance: those that are built in and those that it imported.
pub(super) fn providers() -> impl Iterator<Item = &'static str> {
    std::iter::once(NATIVE).chain(IMPORTED)
}

/// All integrations of a provider.
pub(super) async fn integrations(client: &Client, provider: &str, filter: &str) -> anyhow::Result<Vec<Value>> {
    let path = format!("/tools/catalog/providers/{}/integrations?limit=1000&sort_by=alphabetically{filter}", encode(provider));
    Ok(list(&client.get(&path).await?, "integrations").to_vec())
}

/// Whether a person means this id: written out, or its end.
pub(super) fn is_id(id: &str, written: &str) -> bool {
    let is_end = || written.len() >= SHORTEST && id.ends_with(&written.to_ascii_lowercase());
    id.eq_ignore_ascii_case(written) || is_end()
}

/// What rows of a kind are called, and which command lists them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kind {
    pub(super) one: &'static str,
    pub(super) command: &'static str,
}

impl Kind {
    /// The one row that is meant by a name or an id; names come first.
    pub(super) fn pick<'a>(self, rows: &'a [Value], written: &str, names: impl Fn(&Value) -> Vec<String>) -> anyhow::Result<&'a Value> {
        let named: Vec<&Value> = rows.iter().filter(|row| row["id"] == written || names(row).iter().any(|name| name == written)).collect();
        let found = if named.is_empty() { rows.iter().filter(|row| is_id(&text(row, "id"), written)).collect() } else { named };
        match found[..] {
            [one] => Ok(one),
            [] => {
                let known: Vec<String> = rows.iter().flat_map(&names).filter(|name| !name.is_empty()).collect();
                let near = did_you_mean(written, known.iter().map(String::as_str));
                bail!("there is no {} `{written}`;{near} `{}` lists them", self.one, self.command)
            }
            ref several => {
                let ids: Vec<String> = several.iter().map(|row| format!("{} ({})", text(row, "id"), names(row).join(", "))).collect();
                bail!("{} {}s are called `{written}`; say which by its id: {}", several.len(), self.one, ids.join("; "))
            }
        }
    }

    /// The id that is meant, where rows have no names. Only an end of an id needs the rows.
    pub(super) fn id(self, rows: &[Value], written: &str) -> anyhow::Result<String> {
        Ok(text(self.pick(rows, written, |_| Vec::new())?, "id"))
    }
}

pub(super) const CONNECTION: Kind = Kind { one: "connection", command: "toolyard connections" };
pub(super) const OAUTH_APP: Kind = Kind { one: "OAuth app", command: "toolyard oauth-app list" };
pub(super) const IMPORT: Kind = Kind { one: "import", command: "toolyard import list" };
pub(super) const CALL: Kind = Kind { one: "call", command: "toolyard calls" };
pub(super) const APPROVAL: Kind = Kind { one: "approval", command: "toolyard approval" };
pub(super) const NOTICE: Kind = Kind { one: "notice", command: "toolyard approval notices" };
pub(super) const RUN: Kind = Kind { one: "run", command: "toolyard workflow runs" };
pub(super) const DELIVERY: Kind = Kind { one: "delivery", command: "toolyard trigger deliveries" };
pub(super) const TRIGGER: Kind = Kind { one: "trigger", command: "toolyard trigger" };
pub(super) const PROJECT: Kind = Kind { one: "project", command: "toolyard project list" };
pub(super) const GRANT: Kind = Kind { one: "grant", command: "toolyard grants" };
pub(super) const KEY: Kind = Kind { one: "key", command: "toolyard key list" };
pub(super) const PERSON: Kind = Kind { one: "person", command: "toolyard person list" };
pub(super) const SESSION: Kind = Kind { one: "session", command: "toolyard sessions" };
pub(super) const WORKFLOW: Kind = Kind { one: "workflow", command: "toolyard workflow" };
pub(super) const ENVIRONMENT: Kind = Kind { one: "environment", command: "toolyard environment" };
pub(super) const AGENT: Kind = Kind { one: "agent", command: "toolyard agent" };

/// Whether this is an id as it stands.
pub(super) fn is_whole(written: &str) -> bool {
    Uuid::parse_str(written).is_ok()
}

/// The connection that is meant: by slug, by `INTEGRATION/SLUG` or by id.
pub(super) fn connection<'a>(rows: &'a [Value], written: &str) -> anyhow::Result<&'a Value> {
    CONNECTION.pick(rows, written, |row| vec![text(row, "slug"), format!("{}/{}", Integration::of(row), text(row, "slug"))])
}

/// A workflow or environment as routes take it: by its id, or by its slug.
pub(super) fn reference(written: &str) -> Value {
    if is_whole(written) { json!({"id": written}) } else { json!({"slug": written}) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_found_by_name_and_by_the_end_of_their_id() {
        let rows = [
            json!({"id": "0199a6f2-6c1e-7d11-9d4e-0f6b8f6f7a10", "slug": "main", "provider_key": "openapi", "integration_key": "orders"}),
            json!({"id": "0199a6f2-6c1e-7d11-9d4e-0f6b8f6f7a11", "slug": "main", "provider_key": "native", "integration_key": "github"}),
        ];
        let found = |written: &str| connection(&rows, written).map(|row| text(row, "id").split_off(34));
        assert_eq!(found("openapi/orders/main").unwrap(), "10");
        assert_eq!(found("github/main").unwrap(), "11");
        assert_eq!(found("8f6f7A11").unwrap(), "11");
        assert!(found("main").unwrap_err().to_string().starts_with("2 connections are called `main`; say which by its id: 0199a6f2-"));
        assert!(found("0").is_err(), "a digit is no end of an id");
        let error = found("mian").unwrap_err().to_string();
        assert!(error.contains("there is no connection `mian`") && error.contains("`toolyard connections` lists them"), "{error}");
    }
}
