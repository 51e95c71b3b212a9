//! Rules: who belongs to which project, by what a provider says of them.

use kernel::Role;
use serde::Deserialize;

use super::claims::Person;

/// Gives a role in a project to whoever it fits: by group, by the domain of a verified address, by a verified address, or everybody.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    pub group: Option<String>,
    pub domain: Option<String>,
    pub email: Option<String>,
    #[serde(default)]
    pub everyone: bool,
    /// By slug or id.
    pub project: String,
    pub role: Role,
}

impl Rule {
    /// What is wrong with it, if something is.
    pub(super) fn problem(&self) -> Option<String> {
        let named = [self.group.is_some(), self.domain.is_some(), self.email.is_some(), self.everyone];
        (named.into_iter().filter(|named| *named).count() != 1)
            .then(|| format!("a rule for the project `{}` must have one of `group`, `domain`, `email` or `everyone = true`", self.project))
    }

    fn fits(&self, person: &Person) -> bool {
        // An address that nobody verified is only what somebody typed.
        let verified = person.email.as_deref().filter(|_| person.is_email_verified);
        let same = |one: &str, other: &str| one.eq_ignore_ascii_case(other);
        let by_group = self.group.as_ref().is_some_and(|group| person.groups.contains(group));
        let by_email = self.email.as_deref().is_some_and(|email| verified.is_some_and(|given| same(given, email)));
        let domain = verified.and_then(|email| email.rsplit_once('@')).map(|(_, domain)| domain);
        let by_domain = self.domain.as_deref().is_some_and(|wanted| domain.is_some_and(|given| same(given, wanted)));
        by_group || by_email || by_domain || self.everyone
    }
}

/// What rules give somebody: the highest role for each project, in the order of the rules.
pub(super) fn given<'a>(rules: &'a [Rule], person: &Person) -> Vec<(&'a str, Role)> {
    let mut found: Vec<(&str, Role)> = Vec::new();
    for rule in rules.iter().filter(|rule| rule.fits(person)) {
        match found.iter_mut().find(|(project, _)| *project == rule.project) {
            Some((_, role)) => *role = rule.role.max(*role),
            None => found.push((&rule.project, rule.role)),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn person(email: &str, is_email_verified: bool, groups: &[&str]) -> Person {
        Person {
            subject: "s".to_owned(),
            email: Some(email.to_owned()),
            is_email_verified,
            name: None,
            groups: groups.iter().map(|group| (*group).to_owned()).collect(),
        }
    }

    #[test]
    fn the_highest_role_of_the_rules_that_fit_counts() {
        let rules: Vec<Rule> = serde_json::from_value(serde_json::json!([
            {"group": "eng", "project": "a", "role": "editor"},
            {"domain": "example.com", "project": "a", "role": "viewer"},
            {"email": "boss@example.com", "project": "a", "role": "owner"},
            {"everyone": true, "project": "b", "role": "viewer"},
        ]))
        .unwrap();
        assert_eq!(given(&rules, &person("x@example.com", true, &["eng"])), [("a", Role::Editor), ("b", Role::Viewer)]);
        assert_eq!(given(&rules, &person("Boss@Example.com", true, &[])), [("a", Role::Owner), ("b", Role::Viewer)]);
        assert_eq!(given(&rules, &person("boss@example.com", false, &[])), [("b", Role::Viewer)], "nobody verified the address");
        assert_eq!(given(&rules, &person("x@example.com.evil.example", true, &["engine"])), [("b", Role::Viewer)]);
        assert_eq!(given(&rules, &person("x@sub.example.com", true, &[])), [("b", Role::Viewer)], "a domain is that domain alone");
    }
}
