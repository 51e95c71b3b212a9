//! Scopes are our permissions, in the form that OAuth gives them: names with spaces between.

use kernel::{Permission, PermissionSet};

use crate::{GrantError, Refusal};

/// What clients ask for to be given refresh tokens, which everybody is given here.
const OFFLINE: &str = "offline_access";
const MAX_SCOPE: usize = 1024;

/// The permissions that a client asks for; nothing where it leaves that to us.
pub fn read_scope(text: Option<&str>) -> Result<Option<PermissionSet>, GrantError> {
    let text = text.unwrap_or_default();
    let wrong = |why: String| GrantError::refused(Refusal::InvalidScope, why);
    if text.len() > MAX_SCOPE {
        return Err(wrong(format!("`scope` is longer than {MAX_SCOPE} characters.")));
    }
    let names: Vec<&str> = text.split_ascii_whitespace().filter(|name| *name != OFFLINE).collect();
    if names.is_empty() {
        return Ok(None);
    }
    let read = |name: &&str| name.parse::<Permission>().map_err(|error| wrong(error.to_string()));
    names.iter().map(read).collect::<Result<PermissionSet, _>>().map(Some)
}

/// The names of permissions, as OAuth writes them.
pub fn write_scope(permissions: PermissionSet) -> String {
    permissions.iter().map(Permission::name).collect::<Vec<_>>().join(" ")
}

/// What was written; a name from a later version means nothing.
pub(crate) fn stored_scope(text: &str) -> PermissionSet {
    text.split(' ').filter_map(|name| name.parse::<Permission>().ok()).collect()
}

/// The scope that a refresh asks for, which is never more than the grant has.
pub(crate) fn narrowed(asked: Option<PermissionSet>, granted: PermissionSet) -> Result<PermissionSet, GrantError> {
    match asked {
        None => Ok(granted),
        Some(asked) if asked.and(granted) == asked => Ok(asked),
        Some(_) => Err(GrantError::refused(Refusal::InvalidScope, format!("The grant has no more than `{}`.", write_scope(granted)))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(names: &str) -> PermissionSet {
        stored_scope(names)
    }

    #[test]
    fn scopes_are_permissions() {
        for (text, meant) in [
            (None, None),
            (Some(""), None),
            (Some("offline_access"), None),
            (Some("run_tools"), Some("run_tools")),
            (Some(" run_tools  offline_access view_tools "), Some("view_tools run_tools")),
        ] {
            assert_eq!(read_scope(text).unwrap().map(write_scope).as_deref(), meant, "{text:?}");
        }
        for (text, word) in [("run_tool", "Did you mean `run_tools`"), ("openid", "is not a permission"), (&*"x".repeat(2000), "longer")] {
            let GrantError::Refused(Refusal::InvalidScope, why) = read_scope(Some(text)).unwrap_err() else { panic!("{text}") };
            assert!(why.contains(word), "{why}");
        }
    }

    #[test]
    fn a_refresh_narrows_and_never_widens() {
        let granted = set("view_tools run_tools");
        assert_eq!(narrowed(None, granted).unwrap(), granted);
        assert_eq!(narrowed(Some(set("run_tools")), granted).unwrap(), set("run_tools"));
        for wider in ["edit_tools", "run_tools edit_tools"] {
            assert!(matches!(narrowed(Some(set(wider)), granted), Err(GrantError::Refused(Refusal::InvalidScope, _))), "{wider}");
        }
    }
}
