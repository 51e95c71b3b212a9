//! Roles and permissions in words. What they open is for the API to say.

use crate::form::Form;

pub(crate) const ROLES: [(&str, &str); 4] = [
    ("viewer", "sees everything but values of secrets"),
    ("annotator", "also runs tools, workflows and agents"),
    ("editor", "also changes them, and decides approvals"),
    ("owner", "also decides who belongs to the project"),
];

const PERMISSIONS: [(&str, &str); 17] = [
    ("view_tools", "see the catalog, connections, approvals and calls"),
    ("run_tools", "call tools"),
    ("edit_tools", "connect accounts, decide approvals, change permissions"),
    ("view_triggers", "see triggers, events and deliveries"),
    ("run_triggers", "say how a dispatched run ended"),
    ("edit_triggers", "make and change triggers, retry and replay deliveries"),
    ("view_workflows", "see workflows and their runs"),
    ("run_workflows", "run workflows"),
    ("edit_workflows", "change and deploy workflows"),
    ("view_agents", "see agents and their tools"),
    ("run_agents", "call as an agent"),
    ("edit_agents", "make and change agents"),
    ("view_secrets", "see names of secrets, and who read them"),
    ("edit_secrets", "keep, replace and delete secrets"),
    ("read_secrets", "read values of secrets; no role has this"),
    ("view_members", "see people, keys and grants"),
    ("edit_members", "invite and remove people, make and revoke keys"),
];

/// A permission as a box to tick.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PermissionChoice {
    pub(crate) name: &'static str,
    pub(crate) words: &'static str,
    pub(crate) is_ticked: bool,
}

/// The boxes for those permissions that can be given, ticked as they were in the form.
pub(crate) fn permission_choices(can_give: impl Fn(&str) -> bool, form: Option<&Form>) -> Vec<PermissionChoice> {
    let is_ticked = |name: &str| form.is_some_and(|form| form.all("permission").any(|ticked| ticked == name));
    let choices = PERMISSIONS.into_iter().filter(|(name, _)| can_give(name));
    choices.map(|(name, words)| PermissionChoice { name, words, is_ticked: is_ticked(name) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_stay_ticked_and_only_what_can_be_given_is_offered() {
        let form = Form(vec![("permission".to_owned(), "run_tools".to_owned()), ("permission".to_owned(), "edit_members".to_owned())]);
        let choices = permission_choices(|name| name.ends_with("_tools"), Some(&form));
        let choices: Vec<_> = choices.iter().map(|choice| (choice.name, choice.is_ticked)).collect();
        assert_eq!(choices, [("view_tools", false), ("run_tools", true), ("edit_tools", false)]);
    }
}
