//! Who may do what: roles, permissions and the scope of a request.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{AccountOwner, EndUserId, KeyId, ProjectId, UserId, suggest};

/// One thing that a key or a person may be allowed to do.
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
    ViewSecrets,
    EditSecrets,
    ReadSecrets,
    ViewMembers,
    EditMembers,
}

impl Permission {
    pub const ALL: [Self; 17] = [
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
        Self::ViewSecrets,
        Self::EditSecrets,
        Self::ReadSecrets,
        Self::ViewMembers,
        Self::EditMembers,
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
            Self::ViewSecrets => "view_secrets",
            Self::EditSecrets => "edit_secrets",
            Self::ReadSecrets => "read_secrets",
            Self::ViewMembers => "view_members",
            Self::EditMembers => "edit_members",
        }
    }

    /// The least role that has it. No role has what shows the values of secrets: a key has that only where it was named for the key.
    pub fn least_role(self) -> Option<Role> {
        match (self, self.name().split('_').next()) {
            // Whoever decides who belongs to a project owns it.
            (Self::EditMembers, _) => Some(Role::Owner),
            (_, Some("view")) => Some(Role::Viewer),
            (_, Some("run")) => Some(Role::Annotator),
            (_, Some("edit")) => Some(Role::Editor),
            _ => None,
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

/// What a key or a member is, from least to most.
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
        let has = |permission: &Permission| permission.least_role().is_some_and(|least| least <= self);
        Permission::ALL.into_iter().filter(has).collect()
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
pub struct PermissionSet(u32);

impl PermissionSet {
    /// What both have.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self(self.0 & other.0)
    }

    pub fn has(self, permission: Permission) -> bool {
        self.0 & (1 << permission as u32) != 0
    }

    /// What a key of a role has whose permissions were named: those of the role, and those that no role has.
    #[must_use]
    pub fn named_for(self, role: Role) -> Self {
        let role = role.permissions();
        self.iter().filter(|permission| role.has(*permission) || permission.least_role().is_none()).collect()
    }

    /// Whether it has all that another has.
    pub fn covers(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    pub fn iter(self) -> impl Iterator<Item = Permission> {
        Permission::ALL.into_iter().filter(move |permission| self.has(*permission))
    }
}

impl FromIterator<Permission> for PermissionSet {
    fn from_iter<I: IntoIterator<Item = Permission>>(permissions: I) -> Self {
        Self(permissions.into_iter().fold(0, |set, permission| set | 1 << permission as u32))
    }
}

/// Whose request this is: the project it may touch and what it may do there.
#[derive(Clone, Copy, Debug)]
pub struct Scope {
    pub project: ProjectId,
    /// What it acts through: a key, or a person's membership, which is named like one. `nil` is the operator.
    pub key: KeyId,
    pub user: Option<UserId>,
    pub permissions: PermissionSet,
    /// The key acts for certain agents and for nothing else; `agents` knows for which.
    pub is_for_agents: bool,
    /// Whose accounts it acts with.
    pub acts_for: AccountOwner,
}

impl Scope {
    /// The operator in a project: whoever can make an owner's key may as well act as one.
    pub fn operator(project: ProjectId) -> Self {
        Self {
            project,
            key: KeyId::nil(),
            user: None,
            permissions: Role::Owner.permissions(),
            is_for_agents: false,
            acts_for: AccountOwner::Project,
        }
    }

    pub fn may(&self, permission: Permission) -> bool {
        self.permissions.has(permission)
    }

    /// The same, with the accounts of one end user and of nobody else.
    #[must_use]
    pub fn for_end_user(self, end_user: EndUserId) -> Self {
        Self { acts_for: AccountOwner::EndUser(end_user), ..self }
    }

    /// Whether it may see what belongs to somebody: a project sees all of its rows, an end user their own.
    pub fn sees(&self, owner: AccountOwner) -> bool {
        self.acts_for == AccountOwner::Project || self.acts_for == owner
    }

    /// The end user that it acts for; nothing where it acts for the project itself.
    pub fn end_user(&self) -> Option<EndUserId> {
        self.acts_for.end_user()
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
        let missing: Vec<_> = Permission::ALL.into_iter().filter(|permission| !Role::Owner.permissions().has(*permission)).collect();
        assert_eq!(missing, [Permission::ReadSecrets]);
    }

    #[test]
    fn what_no_role_has_is_named_for_a_key() {
        let named: PermissionSet = [Permission::EditTools, Permission::ViewSecrets, Permission::ReadSecrets].into_iter().collect();
        let viewer: Vec<_> = named.named_for(Role::Viewer).iter().collect();
        assert_eq!(viewer, [Permission::ViewSecrets, Permission::ReadSecrets]);
    }

    #[test]
    fn names_read_back() {
        for permission in Permission::ALL {
            assert_eq!(permission.name().parse(), Ok(permission));
        }
        let error = "edit_tool".parse::<Permission>().unwrap_err().to_string();
        assert!(error.ends_with("edit_members. Did you mean `edit_tools`?"), "{error}");
    }
}
