//! The connection that an integration without accounts has before anybody makes a row for it.

use std::collections::BTreeMap;
use std::sync::Arc;

use catalog::{Catalog, Integration};
use kernel::{ConnectionId, ProjectId, Timestamp};
use sha2::{Digest, Sha256};
use uuid::{Builder, Variant, Version};

use crate::{AccountsOf, Connection, Connections};

/// The generation of a connection without a row; rows start at 1.
const NO_ROW: i64 = 0;

impl Connection {
    /// The slug of a connection where nobody chose another.
    pub fn usual_slug(integration: &str) -> String {
        format!("{integration}-main")
    }

    /// The connection to an integration that needs no account. It is always the same one, so that rate limits and sessions hold.
    pub fn implicit(of: AccountsOf, integration: &Integration) -> Option<Self> {
        integration.is_no_auth().then(|| Self {
            id: implicit_id(of, integration),
            project: of.project,
            owner: of.owner,
            slug: Self::usual_slug(&integration.key),
            alias: None,
            name: None,
            description: None,
            provider: integration.provider.to_owned(),
            integration: integration.key.clone(),
            tags: None,
            meta: None,
            is_active: true,
            is_valid: true,
            auth_scheme: Some("none".to_owned()),
            account: None,
            reason: None,
            failing_since: None,
            failure: None,
            last_used_at: None,
            granted: None,
            auth_config: None,
            created_at: Timestamp::from_micros(0),
            updated_at: Timestamp::from_micros(0),
            created_by: None,
            updated_by: None,
            asked: BTreeMap::new(),
            scopes: None,
            app: None,
            remote: None,
            credentials: None,
            refresh_at: None,
            expires_at: None,
            generation: NO_ROW,
            attempt_until: None,
            opened: Arc::default(),
        })
    }

    /// The implicit connection, if that is its slug.
    pub fn implicit_named(of: AccountsOf, integration: &Integration, slug: &str) -> Option<Self> {
        Self::implicit(of, integration).filter(|connection| connection.slug == slug)
    }

    /// The implicit connection of an owner that has none of its own, not even one that was revoked.
    pub fn implicit_beside(of: AccountsOf, integration: &Integration, rows: &[Self]) -> Option<Self> {
        let is_own = |row: &Self| row.provider == integration.provider && row.integration == integration.key;
        if rows.iter().any(is_own) { None } else { Self::implicit(of, integration) }
    }

    pub fn is_implicit(&self) -> bool {
        self.generation == NO_ROW
    }

    /// The id, where there is a row to find by it.
    pub fn row_id(&self) -> Option<ConnectionId> {
        (!self.is_implicit()).then_some(self.id)
    }
}

impl Connections {
    /// The implicit connections to list beside an owner's rows. A provider that hosts accounts offers too many to list them unasked.
    pub fn implicit(&self, of: AccountsOf, rows: &[Connection]) -> Vec<Connection> {
        let integrations = listed(&self.0.catalog, of.project).filter(|integration| !self.0.hosts.contains_key(integration.provider));
        integrations.filter_map(|integration| Connection::implicit_beside(of, &integration, rows)).collect()
    }
}

fn listed(catalog: &Catalog, project: ProjectId) -> impl Iterator<Item = std::sync::Arc<Integration>> {
    let sources = catalog.providers().into_iter().filter_map(|provider| catalog.source(provider.key).ok());
    sources.flat_map(move |source| source.integrations(project))
}

/// Each end user has one of their own, so that a server that remembers callers keeps them apart.
fn implicit_id(of: AccountsOf, integration: &Integration) -> ConnectionId {
    let owner = of.owner.end_user().map(|end_user| format!("/{end_user}")).unwrap_or_default();
    let digest = Sha256::digest(format!("{}/{}/{}{owner}", of.project, integration.provider, integration.key));
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    Builder::from_bytes(bytes).with_variant(Variant::RFC4122).with_version(Version::Custom).into_uuid().into()
}

#[cfg(test)]
mod tests {
    use catalog::Draft;
    use catalog::auth::{AuthScheme, Credentials};
    use kernel::EndUserId;

    use super::*;

    fn integration(key: &str, auth: Vec<AuthScheme>) -> Integration {
        Integration::new("native", Draft { key: key.to_owned(), auth, ..Draft::default() })
    }

    #[test]
    fn only_what_needs_no_account_has_one_and_it_stays_the_same() {
        let (project, open) =
            (AccountsOf::project(ProjectId::new()), integration("weather", vec![AuthScheme::None(Credentials::default())]));
        let implicit = Connection::implicit_named(project, &open, "weather-main").unwrap();
        assert!(implicit.is_usable() && implicit.is_implicit() && implicit.row_id().is_none());
        assert_eq!(Connection::implicit(project, &open).unwrap().id, implicit.id);
        assert_ne!(Connection::implicit(AccountsOf::project(ProjectId::new()), &open).unwrap().id, implicit.id);
        let end_user = AccountsOf::end_user(implicit.project, EndUserId::new());
        assert_ne!(Connection::implicit(end_user, &open).unwrap().id, implicit.id);
        assert!(Connection::implicit_named(project, &open, "weather").is_none());
        let shut = integration("mail", vec![AuthScheme::None(Credentials::default()), AuthScheme::Bearer(Credentials::default())]);
        assert!(Connection::implicit(project, &shut).is_none());
        assert!(Connection::implicit_beside(project, &open, &[implicit]).is_none(), "a row takes its place");
    }
}
