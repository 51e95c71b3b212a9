//! The names of those who changed something. Histories hold ids only.

use std::collections::HashMap;

use serde::Deserialize;

use crate::visit::Visit;

/// Names by the id of a key or of a person, as far as the visitor may see them.
#[derive(Debug, Default)]
pub(crate) struct Actors(HashMap<String, String>);

#[derive(Debug, Deserialize)]
struct Keys {
    keys: Vec<Key>,
}

#[derive(Debug, Deserialize)]
struct Key {
    id: String,
    name: String,
}

#[derive(Debug, Deserialize)]
struct Members {
    members: Vec<Member>,
}

#[derive(Debug, Deserialize)]
struct Member {
    user_id: String,
    email: String,
    name: Option<String>,
}

impl Actors {
    pub(crate) async fn read(visit: &Visit) -> Self {
        let keys = visit.get::<Keys>("/keys").await.map(|answer| answer.keys).unwrap_or_default();
        let members = visit.get::<Members>("/people/members?limit=500").await.map(|answer| answer.members).unwrap_or_default();
        let keys = keys.into_iter().map(|key| (key.id, format!("key {}", key.name)));
        let members = members.into_iter().map(|member| (member.user_id, member.name.unwrap_or(member.email)));
        Self(keys.chain(members).collect())
    }

    /// The name, where it is known.
    pub(crate) fn name(&self, id: &str) -> Option<&str> {
        self.0.get(id).map(String::as_str)
    }
}
