//! Accounts in one step: a user with a project and an owner's key, as foreign clients make them.

use kernel::key::{PlainKey, random_text};
use kernel::{ProjectId, Role, Timestamp, UserId};
use store::{StoreError, args};

use crate::keys::insert_key;
use crate::{AccountError, Accounts, NewKey, Project};

/// One user.
#[derive(Clone, Debug)]
pub struct User {
    pub id: UserId,
    pub email: String,
    pub name: Option<String>,
    pub created_at: Timestamp,
}

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
    pub async fn create_accounts(&self, entries: Vec<NewAccount>) -> Result<Vec<Account>, AccountError> {
        let mut tx = self.db.begin().await?;
        let mut accounts = Vec::with_capacity(entries.len());
        for entry in entries {
            let now = self.clock.now();
            let email = normal_email(&entry.email)?;
            let user = User { id: UserId::new(), email, name: entry.user_name, created_at: now };
            let sql = "insert into users (id, email, name, created_at) values ($1, $2, $3, $4)";
            match tx.execute(sql, args![user.id, user.email.as_str(), user.name.as_deref(), now]).await {
                Err(StoreError::Conflict) => return Err(AccountError::EmailTaken(user.email)),
                other => other?,
            };
            let project = Project {
                id: ProjectId::new(),
                slug: format!("project-{}", random_text(12).to_lowercase()),
                name: entry.project_name.unwrap_or_else(|| user.email.clone()),
                user: Some(user.id),
                created_at: now,
            };
            let sql = "insert into projects (id, slug, name, user_id, created_at) values ($1, $2, $3, $4, $5)";
            tx.execute(sql, args![project.id, project.slug.as_str(), project.name.as_str(), user.id, now]).await?;
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

    /// The user with an e-mail address.
    pub async fn user_by_email(&self, email: &str) -> Result<UserId, AccountError> {
        let row = self.db.optional("select id from users where email = $1", args![normal_email(email)?]).await?;
        row.map_or(Err(AccountError::UserNotFound), |row| Ok(row.get("id")?))
    }

    /// Removes users with their projects and everything in them: all of them or none.
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

fn normal_email(text: &str) -> Result<String, AccountError> {
    let email = text.trim().to_lowercase();
    let plausible = email.split_once('@').is_some_and(|(user, host)| !user.is_empty() && !host.is_empty() && !host.contains('@'));
    let clean = email.len() <= 254 && !email.contains(|c: char| c.is_whitespace() || c.is_control());
    if plausible && clean { Ok(email) } else { Err(AccountError::Invalid(text.chars().take(254).collect(), "e-mail address")) }
}
