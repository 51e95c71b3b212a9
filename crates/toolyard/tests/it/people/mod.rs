//! People sign in, and nobody else does.

mod invitations;
mod passwords;
mod providers;
mod sessions;
mod shell;
mod walks;

use kernel::{ProjectId, Role, UserId};
use secrecy::SecretString;

use crate::support::{Browser, Test, sent_to};

pub const PASSWORD: &str = "correct horse battery";

/// Somebody with a password, and a role in a project where one is named.
pub async fn person(test: &Test, email: &str, member: Option<(&str, Role)>) -> UserId {
    let user = test.yard.accounts.create_user(email, None).await.unwrap().id;
    test.yard.people.set_password(user, &SecretString::from(PASSWORD)).await.unwrap();
    if let Some((project, role)) = member {
        let project = project_id(test, project).await;
        test.yard.accounts.set_member(project, user, role, &accounts::Source::Invited).await.unwrap();
    }
    user
}

pub async fn project_id(test: &Test, slug: &str) -> ProjectId {
    match test.yard.accounts.find_project(slug).await {
        Ok(project) => project.id,
        Err(_) => test.yard.accounts.create_project(slug, None).await.unwrap().id,
    }
}

/// A browser in which somebody is signed in by password.
pub async fn signed_in<'a>(test: &'a Test, email: &str) -> Browser<'a> {
    let mut browser = Browser::new(test);
    let reply = browser.sign_in(&[("email", email), ("password", PASSWORD)]).await;
    assert_eq!(sent_to(&reply), "/app");
    browser
}
