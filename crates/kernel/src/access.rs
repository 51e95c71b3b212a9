//! Who may do what: roles, permissions and the scope of a request.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{KeyId, ProjectId, UserId, suggest};

/// One thing that a key may be allowed to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Permission {
    ViewTools,
    RunTools,
    EditTools,
    ViewTriggers,
    RunTriggers,
    EditTriggers,
    ViewWorkflows,
    RunWorkflows,
    EditWorkflows,
    ViewAgents,
    RunAgents,
    EditAgents,
}

impl Permission {
    pub const ALL: [Self; 12] = [
        Self::ViewTools,
        Self::RunTools,
        Self::EditTools,
        Self::ViewTriggers,
        Self::RunTriggers,
        Self::EditTriggers,
        Self::ViewWorkflows,
        Self::RunWorkflows,
        Self::EditWorkflows,
        Self::ViewAgents,
        Self::RunAgents,
        Self::EditAgents,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::ViewTools => "view_tools",
            Self::RunTools => "run_tools",
            Self::EditTools => "edit_tools",
            Self::ViewTriggers => "view_triggers",
            Self::RunTriggers => "run_triggers",
            Self::EditTriggers => "edit_triggers",
            Self::ViewWorkflows => "view_workflows",
            Self::RunWorkflows => "run_workflows",
            Self::EditWorkflows => "edit_workflows",
            Self::ViewAgents => "view_agents",
            Self::RunAgents => "run_agents",
            Self::EditAgents => "edit_agents",
        }
    }

    /// The least role that has it.
    pub fn least_role(self) -> Role {
        match self.name().split('_').next() {
            Some("view") => Role::Viewer,
            Some("run") => Role::Annotator,
            _ => Role::Editor,
        }
    }
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Permission {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        let found = Self::ALL.into_iter().find(|permission| permission.name() == text);
        found.ok_or_else(|| UnknownName::new("a permission", text, &Self::ALL.map(Self::name)))
    }
}

/// What a key is, from least to most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    Viewer,
    Annotator,
    Editor,
    Owner,
}

impl Role {
    pub const ALL: [Self; 4] = [Self::Viewer, Self::Annotator, Self::Editor, Self::Owner];

    pub fn name(self) -> &'static str {
        match self {
            Self::Viewer => "viewer",
            Self::Annotator => "annotator",
            Self::Editor => "editor",
            Self::Owner => "owner",
        }
    }

    pub fn permissions(self) -> PermissionSet {
        Permission::ALL.into_iter().filter(|permission| permission.least_role() <= self).collect()
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Role {
    type Err = UnknownName;

    fn from_str(text: &str) -> Result<Self, UnknownName> {
        let found = Self::ALL.into_iter().find(|role| role.name() == text);
        found.ok_or_else(|| UnknownName::new("a role", text, &Self::ALL.map(Self::name)))
    }
}

/// A name that no role or permission has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is not {kind}; there are {known}.{nearest}")]
pub struct UnknownName {
    kind: &'static str,
    name: String,
    known: String,
    nearest: String,
}

impl UnknownName {
    fn new(kind: &'static str, name: &str, known: &[&str]) -> Self {
        Self { kind, name: name.to_owned(), known: known.join(", "), nearest: suggest::did_you_mean(name, known.iter().copied()) }
    }
}

/// A set of permissions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PermissionSet(u16);

impl PermissionSet {
    pub fn has(self, permission: Permission) -> bool {
        self.0 & (1 << permission as u16) != 0
    }

    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub fn iter(self) -> impl Iterator<Item = Permission> {
        Permission::ALL.into_iter().filter(move |permission| self.has(*permission))
    }
}

impl FromIterator<Permission> for PermissionSet {
    fn from_iter<I: IntoIterator<Item = Permission>>(permissions: I) -> Self {
        Self(permissions.into_iter().fold(0, |set, permission| set | 1 << permission as u16))
    }
}

/// Whose request this is: the project it may touch and what it may do there.
#[derive(Clone, Copy, Debug)]
pub struct Scope {
    pub project: ProjectId,
    pub key: KeyId,
    pub user: Option<UserId>,
    pub permissions: PermissionSet,
    /// The key acts for certain agents and for nothing else; `agents` knows for which.
    pub is_for_agents: bool,
}

impl Scope {
    pub fn may(&self, permission: Permission) -> bool {
        self.permissions.has(permission)
    }

    /// Who is named as the author of a row: the user, or the key when it belongs to nobody.
    pub fn author(&self) -> uuid::Uuid {
        self.user.map_or(self.key.uuid(), UserId::uuid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_role_adds_to_the_one_below() {
        let names =
            |role: Role| role.permissions().iter().map(Permission::name).filter(|name| name.ends_with("_tools")).collect::<Vec<_>>();
        assert_eq!(names(Role::Viewer), ["view_tools"]);
        assert_eq!(names(Role::Annotator), ["view_tools", "run_tools"]);
        assert_eq!(names(Role::Editor), ["view_tools", "run_tools", "edit_tools"]);
        assert_eq!(Role::Owner.permissions().iter().count(), Permission::ALL.len());
    }

    #[test]
    fn names_read_back() {
        for permission in Permission::ALL {
            assert_eq!(permission.name().parse(), Ok(permission));
        }
        let error = "edit_tool".parse::<Permission>().unwrap_err().to_string();
        assert!(error.ends_with("edit_agents. Did you mean `edit_tools`?"), "{error}");
    }
}
