//! `/admin/simple/accounts`: how a foreign client gets a key.

use std::collections::BTreeMap;

use accounts::{Account, NewAccount};
use axum::extract::State;
use document::ToSchema;
use http::StatusCode;
use kernel::UserId;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::projects::ProjectBody;
use crate::App;
use crate::edge::{ApiError, ApiResult, Json, Operator, Payload};

/// A request to make accounts, by a name of the caller's choice.
#[derive(Debug, Deserialize, ToSchema)]
pub struct CreateAccounts {
    pub accounts: BTreeMap<String, AccountEntry>,
    /// Defaults for all entries.
    pub options: Option<AccountOptions>,
}

/// One account to make. Other keys are allowed and ignored.
#[derive(Debug, Deserialize, ToSchema)]
pub struct AccountEntry {
    pub user: NewUser,
    pub project: Option<AccountProject>,
    pub options: Option<AccountOptions>,
}

/// The user of a new account.
#[derive(Debug, Deserialize, ToSchema)]
pub struct NewUser {
    #[schema(value_type = crate::shapes::EmailText)]
    pub email: String,
    pub name: Option<String>,
    pub username: Option<String>,
}

/// The project of a new account.
#[derive(Debug, Deserialize, ToSchema)]
pub struct AccountProject {
    pub name: Option<String>,
}

/// What to make and to show.
#[derive(Clone, Copy, Debug, Default, Deserialize, ToSchema)]
pub struct AccountOptions {
    pub create_api_keys: Option<bool>,
    pub return_api_keys: Option<bool>,
}

/// The accounts that were made.
#[derive(Debug, Serialize, ToSchema)]
pub struct AccountsAnswer {
    pub accounts: BTreeMap<String, AccountBody>,
}

/// One account that was made.
#[derive(Debug, Serialize, ToSchema)]
pub struct AccountBody {
    pub user: UserBody,
    pub projects: BTreeMap<String, ProjectBody>,
    pub api_keys: BTreeMap<String, String>,
}

/// A user.
#[derive(Debug, Serialize, ToSchema)]
pub struct UserBody {
    pub id: Uuid,
    pub email: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub created_at: String,
}

/// A request to remove accounts.
#[derive(Debug, Deserialize, ToSchema)]
pub struct DeleteAccounts {
    pub accounts: BTreeMap<String, DeleteEntry>,
    /// Must be `delete`.
    #[schema(value_type = crate::shapes::ConfirmWord)]
    pub confirm: Option<String>,
}

/// One account to remove.
#[derive(Debug, Deserialize, ToSchema)]
pub struct DeleteEntry {
    pub user: UserRef,
}

/// The user to remove: by `id`, or by `email` in its place.
#[derive(Debug, Deserialize, ToSchema)]
pub struct UserRef {
    pub id: Option<Uuid>,
    #[schema(value_type = Option<crate::shapes::EmailText>)]
    pub email: Option<String>,
}

/// Create accounts: a user with a project and an owner's key each
#[document::path(post, path = "/admin/simple/accounts", operation_id = "create_simple_accounts", tag = "Admin", security(("operator" = [])),
    request_body = CreateAccounts, responses((status = 200, body = AccountsAnswer), (status = 409, description = "An e-mail address is taken")))]
pub(crate) async fn create(_: Operator, State(app): State<App>, Payload(body): Payload<CreateAccounts>) -> ApiResult<Json<AccountsAnswer>> {
    let defaults = body.options.unwrap_or_default();
    let choose = |own: Option<bool>, default: Option<bool>| own.or(default).unwrap_or(true);
    let mut names = Vec::new();
    let mut entries = Vec::new();
    for (name, entry) in body.accounts {
        let options = entry.options.unwrap_or_default();
        let with_key = choose(options.create_api_keys, defaults.create_api_keys);
        names.push((name, choose(options.return_api_keys, defaults.return_api_keys)));
        let project_name = entry.project.and_then(|project| project.name);
        entries.push(NewAccount { email: entry.user.email, user_name: entry.user.name.or(entry.user.username), project_name, with_key });
    }
    let made = app.accounts.create_accounts(entries).await?;
    let accounts = names.into_iter().zip(made).map(|((name, show), account)| (name, answer(account, show))).collect();
    Ok(Json(AccountsAnswer { accounts }))
}

fn answer(account: Account, show_key: bool) -> AccountBody {
    let user = account.user;
    let key = account.key.filter(|_| show_key);
    AccountBody {
        user: UserBody { id: user.id.uuid(), email: user.email, name: user.name, created_at: user.created_at.to_string() },
        projects: BTreeMap::from([("prj".to_owned(), account.project.into())]),
        api_keys: key.map(|key| ("key".to_owned(), key.expose().to_owned())).into_iter().collect(),
    }
}

/// Delete accounts with their projects
#[document::path(delete, path = "/admin/simple/accounts", operation_id = "delete_simple_accounts", tag = "Admin", security(("operator" = [])),
    request_body = DeleteAccounts, responses((status = 204), (status = 404, description = "No such user")))]
pub(crate) async fn delete(_: Operator, State(app): State<App>, Payload(body): Payload<DeleteAccounts>) -> ApiResult<StatusCode> {
    if body.confirm.as_deref() != Some("delete") {
        return Err(ApiError::unprocessable("Set `confirm` to `delete` to remove accounts and everything in their projects."));
    }
    let mut users: Vec<UserId> = Vec::with_capacity(body.accounts.len());
    for (name, entry) in body.accounts {
        users.push(match (entry.user.id, entry.user.email) {
            (Some(id), None) => UserId::from(id),
            (None, Some(email)) => app.accounts.user_by_email(&email).await?,
            _ => return Err(ApiError::unprocessable(format!("`accounts.{name}.user` needs either `id` or `email`."))),
        });
    }
    let projects = app.accounts.list_projects().await?;
    let theirs = projects.iter().filter(|project| project.user.is_some_and(|user| users.contains(&user))).map(|project| project.id);
    let left = app.triggers.leftovers(&theirs.collect::<Vec<_>>()).await?;
    app.accounts.delete_accounts(&users).await?;
    app.triggers.remove_leftovers(left);
    Ok(StatusCode::NO_CONTENT)
}
