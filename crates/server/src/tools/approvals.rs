//! `/tools/approvals` and `/tools/permissions`: calls that wait for a person, and what the project says about calls.

use std::collections::HashMap;

use accounts::Holder;
use axum::extract::State;
use calls::permission::{MatchedArgument, MatchedRule};
use calls::{Approval, ApprovalFilter};
use definitions::Verdict;
use document::{IntoParams, ToSchema};
use kernel::{ApprovalId, EndUserId, Id, KeyId, ProjectId, UserId};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::App;
use crate::edge::auth::{EditTools, ViewTools};
use crate::edge::{ApiResult, Json, PathOf, Payload, QueryOf, Scoped, end_user};

/// A call that waits, or waited, for a person's word.
#[derive(Debug, Serialize, ToSchema)]
pub struct ApprovalBody {
    pub id: Uuid,
    /// `pending`, `approved`, `denied`, `used` or `expired`.
    pub status: &'static str,
    pub call_ref: String,
    /// Exactly what the call was made with.
    #[schema(value_type = Object)]
    pub arguments: Value,
    /// Whose call it is; no other key can use the approval.
    pub key_id: Uuid,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_id: Option<Uuid>,
    /// The name of that person, or the email.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_name: Option<String>,
    /// The agent that made the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<Uuid>,
    /// The end user whom the call is for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_user_id: Option<Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_user: Option<String>,
    /// The rule that asked; none where the default did, or the caller itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<ApprovalRule>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided_by_id: Option<Uuid>,
    /// The name of that person or key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided_by_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decided_at: Option<String>,
    pub created_at: String,
    pub expires_at: String,
}

/// The rule that made a call ask.
#[derive(Debug, Serialize, ToSchema)]
pub struct ApprovalRule {
    pub pattern: String,
    /// `ask`.
    pub permission: &'static str,
}

/// The names behind the ids of a project's approvals.
pub(crate) struct Names(HashMap<KeyId, Holder>, HashMap<EndUserId, String>);

impl Names {
    pub(crate) async fn of(app: &App, project: ProjectId) -> ApiResult<Self> {
        Ok(Self(app.accounts.holders(project).await?, HashMap::new()))
    }

    /// The same with the names of the end users that these approvals are for.
    async fn behind(app: &App, project: ProjectId, approvals: &[Approval]) -> ApiResult<Self> {
        let end_users = app.end_users.names(project, approvals.iter().filter_map(|approval| approval.end_user).collect()).await?;
        Ok(Self(app.accounts.holders(project).await?, end_users))
    }

    /// What a user or a key that is named as the author of something is called.
    fn author(&self, author: Uuid) -> Option<String> {
        if author.is_nil() {
            return Some("operator".to_owned());
        }
        let by_key = self.0.get(&KeyId::from(author));
        let person = || self.0.values().find(|holder| holder.user == Some(UserId::from(author)));
        by_key.and_then(|holder| holder.person.clone().or_else(|| holder.key.clone())).or_else(|| person()?.person.clone())
    }

    pub(crate) fn approval(&self, approval: Approval) -> ApprovalBody {
        let holder = self.0.get(&approval.key);
        ApprovalBody {
            id: approval.id.uuid(),
            status: approval.status.name(),
            call_ref: approval.call_ref,
            arguments: approval.arguments,
            key_id: approval.key.uuid(),
            key_name: holder.and_then(|holder| holder.key.clone()),
            user_id: approval.user.map(UserId::uuid),
            user_name: holder.and_then(|holder| holder.person.clone()),
            agent_id: approval.agent.map(Id::uuid),
            end_user_id: approval.end_user.map(Id::uuid),
            end_user: approval.end_user.and_then(|end_user| self.1.get(&end_user).cloned()),
            rule: approval.rule.map(|pattern| ApprovalRule { pattern, permission: Verdict::Ask.name() }),
            note: approval.note,
            decided_by_id: approval.decided_by,
            decided_by_name: approval.decided_by.and_then(|author| self.author(author)),
            decided_at: approval.decided_at.map(|at| at.to_string()),
            created_at: approval.created_at.to_string(),
            expires_at: approval.expires_at.to_string(),
        }
    }

    pub(crate) fn answer(&self, approval: Approval) -> ApprovalAnswer {
        ApprovalAnswer { count: 1, approval: self.approval(approval) }
    }
}

/// One approval in an answer.
#[derive(Debug, Serialize, ToSchema)]
pub struct ApprovalAnswer {
    pub count: usize,
    pub approval: ApprovalBody,
}

/// A page of approvals, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub struct ApprovalsAnswer {
    pub count: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Uuid>,
    pub approvals: Vec<ApprovalBody>,
}

/// Which approvals to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub struct ListApprovals {
    #[param(inline, required = false, value_type = crate::shapes::ApprovalWord)]
    pub status: Option<String>,
    /// Those that wait for one end user.
    #[param(inline, required = false, value_type = crate::shapes::EndUserText)]
    pub end_user: Option<String>,
    /// 50 by default, 500 at most.
    pub limit: Option<i64>,
    pub cursor: Option<Uuid>,
}

/// A person's word.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Decision {
    pub decision: ApprovalDecision,
    /// Why; a denied caller reads it.
    pub note: Option<String>,
}

/// Yes or no.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub enum ApprovalDecision {
    Approve,
    Deny,
}

/// List approvals, newest first
#[document::path(get, path = "/tools/approvals", operation_id = "list_tool_approvals", tag = "Tools", security(("key" = ["view_tools"])),
    params(ListApprovals), responses((status = 200, body = ApprovalsAnswer)))]
pub(crate) async fn list(
    Scoped(scope, _): Scoped<ViewTools>,
    State(app): State<App>,
    QueryOf(list): QueryOf<ListApprovals>,
) -> ApiResult<Json<ApprovalsAnswer>> {
    let end_user = end_user::wanted(&app, scope, list.end_user.as_deref()).await?;
    let filter = ApprovalFilter { status: list.status, end_user, limit: list.limit, cursor: list.cursor.map(ApprovalId::from) };
    let page = app.calls.approvals(scope, &filter).await?;
    let names = Names::behind(&app, scope.project, &page.approvals).await?;
    let approvals: Vec<ApprovalBody> = page.approvals.into_iter().map(|approval| names.approval(approval)).collect();
    Ok(Json(ApprovalsAnswer { count: approvals.len(), cursor: page.cursor.map(ApprovalId::uuid), approvals }))
}

/// Read an approval
#[document::path(get, path = "/tools/approvals/{approval_id}", operation_id = "fetch_tool_approval", tag = "Tools", security(("key" = ["view_tools"])),
    params(("approval_id" = Uuid, Path)), responses((status = 200, body = ApprovalAnswer), (status = 404, description = "No such approval")))]
pub(crate) async fn fetch(
    Scoped(scope, _): Scoped<ViewTools>,
    State(app): State<App>,
    PathOf(id): PathOf<Uuid>,
) -> ApiResult<Json<ApprovalAnswer>> {
    let approval = app.calls.approval(scope, ApprovalId::from(id)).await?;
    Ok(Json(Names::behind(&app, scope.project, std::slice::from_ref(&approval)).await?.answer(approval)))
}

/// Approve or deny a call that waits
///
/// An approved call goes through once, made again by the same key with the same arguments before the approval expires.
#[document::path(post, path = "/tools/approvals/{approval_id}", operation_id = "decide_tool_approval", tag = "Tools", security(("key" = ["edit_tools"])),
    params(("approval_id" = Uuid, Path)), request_body = Decision,
    responses((status = 200, body = ApprovalAnswer), (status = 404, description = "No such approval"), (status = 409, description = "Decided, used or expired already")))]
pub(crate) async fn decide(
    Scoped(scope, _): Scoped<EditTools>,
    State(app): State<App>,
    PathOf(id): PathOf<Uuid>,
    Payload(body): Payload<Decision>,
) -> ApiResult<Json<ApprovalAnswer>> {
    let approved = body.decision == ApprovalDecision::Approve;
    let approval = app.calls.decide(scope, ApprovalId::from(id), approved, body.note.as_deref()).await?;
    Ok(Json(Names::behind(&app, scope.project, std::slice::from_ref(&approval)).await?.answer(approval)))
}

/// What the project says about calls.
#[derive(Debug, Serialize, ToSchema)]
pub struct PolicyAnswer {
    /// `default` (allow, ask, deny or allow_reads; left out, calls run) and `rules` of `pattern` and `permission`.
    #[schema(value_type = Object)]
    pub permissions: Value,
}

/// A request to replace the policy.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SetPolicy {
    #[schema(value_type = Object, example = json!({"rules": [{"pattern": "tools.native.github.CREATE_*", "permission": "ask"}]}))]
    pub permissions: Value,
}

/// Read the project's permissions
#[document::path(get, path = "/tools/permissions", operation_id = "fetch_tool_permissions", tag = "Tools", security(("key" = ["view_tools"])),
    responses((status = 200, body = PolicyAnswer)))]
pub(crate) async fn policy(Scoped(scope, _): Scoped<ViewTools>, State(app): State<App>) -> ApiResult<Json<PolicyAnswer>> {
    let policy = app.calls.policy(scope.project).await?;
    Ok(Json(PolicyAnswer { permissions: policy.as_ref().clone() }))
}

/// Replace the project's permissions
#[document::path(put, path = "/tools/permissions", operation_id = "set_tool_permissions", tag = "Tools", security(("key" = ["edit_tools"])),
    request_body = SetPolicy, responses((status = 200, body = PolicyAnswer), (status = 422, description = "Not a policy")))]
pub(crate) async fn set_policy(
    Scoped(scope, _): Scoped<EditTools>,
    State(app): State<App>,
    Payload(body): Payload<SetPolicy>,
) -> ApiResult<Json<PolicyAnswer>> {
    let policy = app.calls.set_policy(scope, body.permissions).await?;
    Ok(Json(PolicyAnswer { permissions: policy.as_ref().clone() }))
}

/// A call to be explained.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ExplainCall {
    /// A ref, as in a call.
    #[schema(example = "tools.native.github.CREATE_AN_ISSUE.main")]
    pub name: String,
    /// What it would be called with.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub arguments: Map<String, Value>,
}

/// What would happen to a call, and why.
#[derive(Debug, Serialize, ToSchema)]
pub struct ExplanationAnswer {
    /// The name of the tool, as rules see it.
    pub tool: String,
    /// Other names of it that rules may use.
    pub also: Vec<String>,
    /// Whether the tool is known only to read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub read_only: Option<bool>,
    /// `allow`, `ask` or `deny`.
    pub permission: &'static str,
    /// `rule` or `default`.
    pub decided_by: &'static str,
    /// The rules that fit, the one that decides first.
    pub rules: Vec<MatchedRuleBody>,
    /// The same in words.
    pub why: String,
}

/// A rule that fits a call.
#[derive(Debug, Serialize, ToSchema)]
pub struct MatchedRuleBody {
    /// Its place in the project's permissions.
    pub index: usize,
    pub pattern: String,
    pub permission: &'static str,
    /// The argument that made it fit, where the rule asks for one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub argument: Option<MatchedArgumentBody>,
}

/// An argument that made a rule fit.
#[derive(Debug, Serialize, ToSchema)]
pub struct MatchedArgumentBody {
    /// Where it is, as `owner` or `labels.0`.
    pub name: String,
    pub value: String,
}

/// Explain what the project's permissions say to a call
///
/// Nothing is called, and nobody is asked.
#[document::path(post, path = "/tools/permissions/explain", operation_id = "explain_tool_permission", tag = "Tools", security(("key" = ["view_tools"])),
    request_body = ExplainCall, responses((status = 200, body = ExplanationAnswer), (status = 400, description = "Not a ref"), (status = 404, description = "No such tool")))]
pub(crate) async fn explain(
    Scoped(scope, _): Scoped<ViewTools>,
    State(app): State<App>,
    Payload(body): Payload<ExplainCall>,
) -> ApiResult<Json<ExplanationAnswer>> {
    let found = app.calls.explain(scope, &body.name, body.arguments).await?;
    let argument = |argument: MatchedArgument| MatchedArgumentBody { name: argument.name, value: argument.value };
    let rule = |rule: MatchedRule| MatchedRuleBody {
        index: rule.index,
        pattern: rule.pattern,
        permission: rule.permission.name(),
        argument: rule.argument.map(argument),
    };
    let rules: Vec<MatchedRuleBody> = found.rules.into_iter().map(rule).collect();
    Ok(Json(ExplanationAnswer {
        tool: found.tool,
        also: found.also,
        read_only: found.read_only,
        permission: found.permission.name(),
        decided_by: if rules.is_empty() { "default" } else { "rule" },
        rules,
        why: found.why,
    }))
}
