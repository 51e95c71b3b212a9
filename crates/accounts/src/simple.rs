//! Accounts in one step: a user with a project and an owner's key, as foreign clients make them.

use kernel::key::{PlainKey, random_text};
use kernel::{ProjectId, Role, UserId};
use store::args;

use crate::keys::insert_key;
use crate::members::put_member;
use crate::users::insert_user;
use crate::{AccountError, Accounts, NewKey, Project, Source, User};

/// What a new account shall be.
#[derive(Clone, Debug)]
pub struct NewAccount {
    pub email: String,
    pub user_name: Option<String>,
    pub project_name: Option<String>,
    pub with_key: bool,
}

/// What was made.
#[derive(Debug)]
pub struct Account {
    pub user: User,
    pub project: Project,
    pub key: Option<PlainKey>,
}

impl Accounts {
    /// Makes all the accounts or none of them.
    #[kernel::boxed]
    pub async fn create_accounts(&self, entries: Vec<NewAccount>) -> Result<Vec<Account>, AccountError> {
        let mut tx = self.db.begin().await?;
        let mut accounts = Vec::with_capacity(entries.len());
        for entry in entries {
            let now = self.clock.now();
            let user = insert_user(&mut tx, &entry.email, entry.user_name, now).await?;
            let project = Project {
                id: ProjectId::new(),
                slug: format!("project-{}", random_text(12).to_lowercase()),
                name: entry.project_name.unwrap_or_else(|| user.email.clone()),
                user: Some(user.id),
                created_at: now,
            };
            let sql = "insert into projects (id, slug, name, user_id, created_at) values ($1, $2, $3, $4, $5)";
            tx.execute(sql, args![project.id, project.slug.as_str(), project.name.as_str(), user.id, now]).await?;
            put_member(&mut tx, project.id, user.id, Role::Owner, &Source::Account, now).await?;
            let key = if entry.with_key {
                let new = NewKey { name: "account key".to_owned(), role: Role::Owner, only: None, is_for_agents: false };
                Some(insert_key(&mut tx, project.id, Some(user.id), new, now).await?.1)
            } else {
                None
            };
            accounts.push(Account { user, project, key });
        }
        tx.commit().await?;
        Ok(accounts)
    }

    /// Removes users with their projects and everything in them: all of them or none.
    #[kernel::boxed]
    pub async fn delete_accounts(&self, users: &[UserId]) -> Result<(), AccountError> {
        let mut tx = self.db.begin().await?;
        for user in users {
            if tx.execute("delete from users where id = $1", args![*user]).await? == 0 {
                return Err(AccountError::UserNotFound);
            }
        }
        tx.commit().await?;
        self.authenticator.forget();
        Ok(())
    }
}
