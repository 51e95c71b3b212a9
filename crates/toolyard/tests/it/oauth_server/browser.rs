//! Browsers in which somebody is signed in, and what their pages hold.

use kernel::{Role, UserId};

use crate::people::{person, project_id, signed_in};
use crate::support::{Browser, Test, hidden};

/// A browser in which somebody signed in with a project key or the operator's key.
pub async fn with_key<'a>(test: &'a Test, key: &str) -> Browser<'a> {
    let mut browser = Browser::new(test);
    let entered = browser.sign_in(&[("key", key)]).await;
    assert_eq!(entered.status, 303, "{}", entered.text);
    browser
}

/// A browser in which a new person is signed in who has a role in a project.
pub async fn with_person<'a>(test: &'a Test, email: &str, project: &str, role: Role) -> (Browser<'a>, UserId) {
    let user = person(test, email, Some((project, role))).await;
    (signed_in(test, email).await, user)
}

/// Makes somebody a member of a project, or gives a member another role.
pub async fn join(test: &Test, user: UserId, project: &str, role: Role) {
    let project = project_id(test, project).await;
    test.yard.accounts.set_member(project, user, role, &accounts::Source::Invited).await.unwrap();
}

/// The value of a hidden field, as a browser reads it.
pub fn field(page: &str, name: &str) -> String {
    let escaped = [("&#38;", "&"), ("&#60;", "<"), ("&#62;", ">"), ("&#34;", "\""), ("&#39;", "'")];
    escaped.iter().fold(hidden(page, name), |value, (code, letter)| value.replace(code, letter))
}
