//! Running a tool in a session: one of its own, or one that the session is steered with. What is outside of the session is refused before
//! anything of it is looked at.

use std::collections::BTreeMap;
use std::time::Duration;

use calls::{Approval, ApprovalStatus, CallError, CallRequest};
use definitions::Verdict;
use document::ToSchema;
use kernel::{ApprovalId, CallRef, Permission, Scope};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::time::timeout;

use super::Within;
use super::blocks::{Experimental, TagFilter};
use super::config::Config;
use super::meta::MetaTool;
use super::search::{FoundSchema, SearchSession};
use crate::execute::{ExecutedTool, failed};
use crate::names::Tool;
use crate::{ApiError, ComposioApi, Refusal};

/// The name of the question whether a call may be made.
const APPROVAL: &str = "approval";
const MAX_SCHEMAS: usize = 50;
/// As much of the arguments as a person is shown.
const MAX_SHOWN: usize = 2000;

/// A request to run a tool in a session.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[schema(as = composio::ExecuteInSession)]
pub struct ExecuteInSession {
    /// A tool of the session, or a meta tool.
    pub tool_slug: String,
    #[schema(value_type = Option<Object>)]
    pub arguments: Option<Map<String, Value>>,
    /// The id or alias of the account, where it shall not be the first that works.
    pub account: Option<String>,
    /// Has no effect: there is no workbench.
    pub enable_auto_workbench_offload: Option<bool>,
    /// A person's answers to what an earlier try asked.
    pub input_responses: Option<BTreeMap<String, InputResponse>>,
    /// The `request_state` of that try.
    pub request_state: Option<String>,
    pub experimental: Option<Experimental>,
}

/// A request to run a meta tool in a session.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[schema(as = composio::ExecuteMeta)]
pub struct ExecuteMeta {
    pub slug: String,
    #[schema(value_type = Option<Object>)]
    pub arguments: Option<Map<String, Value>>,
    pub input_responses: Option<BTreeMap<String, InputResponse>>,
    pub request_state: Option<String>,
    pub experimental: Option<Experimental>,
}

/// A person's answer to one question.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[schema(as = composio::InputResponse)]
pub struct InputResponse {
    /// `accept`, `decline` or `cancel`.
    pub action: String,
    /// With `accept`: `{"decision": "approve"}` or `{"decision": "deny"}`.
    #[schema(value_type = Option<Object>)]
    pub content: Option<Map<String, Value>>,
}

/// What a tool came to, or what a person has to answer first.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(untagged)]
#[schema(as = composio::SessionResult)]
pub enum SessionResult {
    Done(SessionDone),
    NeedsInput(SessionQuestion),
}

/// What a tool came to.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = composio::SessionDone)]
pub struct SessionDone {
    /// `completed` or `failed`.
    pub result_type: &'static str,
    #[schema(value_type = Object)]
    pub data: Map<String, Value>,
    #[schema(required)]
    pub error: Option<String>,
    /// Empty where the call was not recorded under an id.
    pub log_id: String,
}

/// What a person has to answer before the call is made.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = composio::SessionQuestion)]
pub struct SessionQuestion {
    /// `input_required`
    pub result_type: &'static str,
    pub input_requests: BTreeMap<String, InputRequest>,
    /// To be sent back as it is.
    pub request_state: String,
}

/// One question.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = composio::InputRequest)]
pub struct InputRequest {
    /// `elicitation`
    pub r#type: &'static str,
    /// `form`
    pub mode: &'static str,
    pub message: String,
    #[schema(value_type = Object)]
    pub requested_schema: Value,
}

/// What running a tool came to.
pub(super) enum Ran {
    Done(ExecutedTool),
    /// A person has to allow it first.
    Waits(Box<Approval>),
}

impl Ran {
    /// The same for whoever cannot be asked.
    pub(super) fn told(self) -> ExecutedTool {
        match self {
            Self::Done(done) => done,
            Self::Waits(approval) => {
                let why = format!("This call waits for a person's approval, `{}`. Try it again once it is approved.", approval.id);
                ExecutedTool::failed(why)
            }
        }
    }
}

impl From<ExecutedTool> for SessionResult {
    fn from(done: ExecutedTool) -> Self {
        let ExecutedTool { data, successful, error, log_id } = done;
        let result_type = if successful { "completed" } else { "failed" };
        Self::Done(SessionDone { result_type, data, error, log_id: log_id.unwrap_or_default() })
    }
}

/// A result that is there as data.
pub(super) fn completed(data: impl Serialize) -> ExecutedTool {
    let data = match serde_json::to_value(data) {
        Ok(Value::Object(data)) => data,
        Ok(other) => Map::from_iter([("result".to_owned(), other)]),
        Err(_) => Map::new(),
    };
    ExecutedTool { data, successful: true, error: None, log_id: None }
}

impl ComposioApi {
    /// Runs a tool in a session.
    #[kernel::boxed]
    pub async fn execute_in_session(
        &self,
        session: &Within,
        request: ExecuteInSession,
        limit: Duration,
    ) -> Result<SessionResult, ApiError> {
        let ExecuteInSession { tool_slug, arguments, account, input_responses, request_state, experimental, .. } = request;
        if let Some(refused) = self.hear(session, input_responses, request_state.as_deref()).await? {
            return Ok(refused.into());
        }
        let ran = self.run_in_session(session, &tool_slug, arguments.unwrap_or_default(), account.as_deref(), experimental, limit).await?;
        match ran {
            Ran::Waits(approval) if session.asks() => Ok(SessionResult::NeedsInput(question(&approval))),
            ran => Ok(ran.told().into()),
        }
    }

    /// Runs a meta tool in a session, and nothing else.
    #[kernel::boxed]
    pub async fn execute_meta(&self, session: &Within, request: ExecuteMeta, limit: Duration) -> Result<SessionResult, ApiError> {
        let ExecuteMeta { slug, arguments, input_responses, request_state, experimental } = request;
        if !MetaTool::is_one(&slug) {
            return Err(Refusal::bad_request(MetaTool::why_not(&slug)).into());
        }
        let request =
            ExecuteInSession { tool_slug: slug, arguments, input_responses, request_state, experimental, ..ExecuteInSession::default() };
        self.execute_in_session(session, request, limit).await
    }

    /// Runs a meta tool for a user without a session: with everything that the project has, and the user's accounts.
    #[kernel::boxed]
    pub async fn execute_meta_for(
        &self,
        scope: Scope,
        user: &str,
        slug: &str,
        arguments: Map<String, Value>,
        limit: Duration,
    ) -> Result<ExecutedTool, ApiError> {
        let within = Within { config: Config::default(), scope: self.acting_for(scope, user).await?, id: String::new() };
        Ok(self.run_in_session(&within, slug, arguments, None, None, limit).await?.told())
    }

    pub(super) async fn run_in_session(
        &self,
        session: &Within,
        slug: &str,
        arguments: Map<String, Value>,
        account: Option<&str>,
        experimental: Option<Experimental>,
        limit: Duration,
    ) -> Result<Ran, ApiError> {
        if MetaTool::is_one(slug) {
            let Some(meta) = MetaTool::find(slug) else { return Ok(Ran::Done(ExecutedTool::failed(MetaTool::why_not(slug)))) };
            return self.run_meta(session, meta, arguments, experimental, limit).await.map(Ran::Done);
        }
        let tool = self.tool_in_session(session, slug).await?;
        self.run_tool(session, &tool, arguments, account, limit).await
    }

    /// The tool of that slug, if the session has it.
    pub(super) async fn tool_in_session(&self, session: &Within, slug: &str) -> Result<Tool, ApiError> {
        let tool = self.tool(session.scope, slug).await?;
        if session.config.has_tool(&tool) {
            return Ok(tool);
        }
        let message = format!("Tool `{}` is outside of what this session may use.", tool.slug());
        Err(Refusal::forbidden("ToolRouterV2_ToolNotAllowed", message).into())
    }

    async fn run_tool(
        &self,
        session: &Within,
        tool: &Tool,
        arguments: Map<String, Value>,
        account: Option<&str>,
        limit: Duration,
    ) -> Result<Ran, ApiError> {
        let account = self.account_in(session, &tool.toolkit, account).await?;
        if let Some(connection) = &account.connection
            && let Some(why) = self.not_for(connection, tool.slug()).await?
        {
            return Ok(Ran::Done(ExecutedTool::failed(why)));
        }
        let integration = &tool.toolkit.integration;
        let name = CallRef::Gateway {
            provider: integration.provider.to_owned(),
            integration: integration.key.clone(),
            action: tool.action().key.clone(),
            connection: account.name().to_owned(),
        };
        let request = CallRequest {
            name: name.into(),
            arguments: Value::Object(arguments),
            limit: Some(limit),
            // The session's word can only be stricter than the project's.
            permission: session.config.asks_before(tool).then_some(Verdict::Ask),
            ..CallRequest::default()
        };
        match timeout(limit, self.parts().calls.call(account.scope, request)).await {
            Ok(Ok(reply)) => Ok(Ran::Done(ExecutedTool::of(reply))),
            Ok(Err(CallError::Waiting(approval))) => Ok(Ran::Waits(approval)),
            Ok(Err(error)) => failed(error).map(Ran::Done),
            Err(_) => Ok(Ran::Done(ExecutedTool::failed(format!("The tool took longer than {} seconds.", limit.as_secs())))),
        }
    }

    async fn run_meta(
        &self,
        session: &Within,
        meta: MetaTool,
        arguments: Map<String, Value>,
        experimental: Option<Experimental>,
        limit: Duration,
    ) -> Result<ExecutedTool, ApiError> {
        if !session.config.has_meta(meta) {
            let message = format!("`{}` is switched off in this session.", meta.slug());
            return Err(Refusal::forbidden("ToolRouterV2_ToolNotAllowed", message).into());
        }
        let done = match meta {
            MetaTool::Search => match serde_json::from_value::<SearchSession>(Value::Object(arguments)) {
                Ok(search) => {
                    let experimental = search.experimental.or(experimental);
                    self.search_in_session(session, SearchSession { experimental, ..search }).await.map(completed)
                }
                Err(error) => return Ok(wrong_arguments(&error)),
            },
            MetaTool::Schemas => self.schemas_in_session(session, &arguments).await,
            MetaTool::MultiExecute => self.execute_several(session, &arguments, limit).await,
            MetaTool::Connect => self.manage_connections(session, &arguments).await,
            MetaTool::Wait => self.wait_for_connections(session, &arguments).await,
        };
        // Whoever calls these is a model, which reads a result and not a status.
        match done {
            Err(ApiError::Refused(refusal)) => Ok(ExecutedTool::failed(refusal.message)),
            done => done,
        }
    }

    async fn schemas_in_session(&self, session: &Within, arguments: &Map<String, Value>) -> Result<ExecutedTool, ApiError> {
        let slugs = texts(arguments, "tool_slugs", MAX_SCHEMAS)?;
        let (mut schemas, mut unknown) = (BTreeMap::new(), Vec::new());
        for slug in slugs {
            match self.tool_in_session(session, &slug).await {
                Ok(tool) => {
                    schemas.insert(tool.slug().to_owned(), FoundSchema::of(&tool));
                }
                // What is outside of the session is not there.
                Err(ApiError::Refused(refusal)) if matches!(refusal.status, 403 | 404) => unknown.push(slug),
                Err(error) => return Err(error),
            }
        }
        Ok(completed(json!({"success": unknown.is_empty(), "tool_schemas": schemas, "not_found": unknown})))
    }

    /// Takes a person's word on a call that waits. What is over with that is told.
    async fn hear(
        &self,
        session: &Within,
        responses: Option<BTreeMap<String, InputResponse>>,
        state: Option<&str>,
    ) -> Result<Option<ExecutedTool>, ApiError> {
        let Some(response) = responses.as_ref().and_then(|responses| responses.get(APPROVAL)) else { return Ok(None) };
        let unknown = || Refusal::bad_request("`request_state` is not what this question came with, or the question is too old.");
        let id: ApprovalId = state.and_then(|state| state.parse().ok()).ok_or_else(unknown)?;
        let (calls, scope) = (&self.parts().calls, session.scope);
        let approval = match calls.approval(scope, id).await {
            Err(CallError::ApprovalNotFound) => return Err(unknown().into()),
            found => found?,
        };
        if approval.key != scope.key || kernel::AccountOwner::from(approval.end_user) != scope.acts_for {
            return Err(unknown().into());
        }
        let decision = response.content.as_ref().and_then(|content| content.get("decision")).and_then(Value::as_str);
        let approves = match (response.action.as_str(), decision) {
            ("accept", Some("approve" | "always_approve")) => true,
            ("accept", Some("deny")) | ("decline", _) => false,
            ("cancel", _) => return Ok(Some(Ran::Waits(Box::new(approval)).told())),
            _ => return Err(Refusal::bad_request("`input_responses.approval` must accept with a `decision`, decline or cancel.").into()),
        };
        if !scope.may(Permission::EditTools) {
            let message = "This key may not approve calls. Somebody of the project decides.";
            return Err(Refusal::forbidden("ToolRouterV2_ApprovalNotAllowed", message).into());
        }
        let decided = match calls.decide(scope, id, approves, None).await {
            // Somebody else was faster; what they said counts.
            Err(CallError::Decided(_)) => calls.approval(scope, id).await?,
            decided => decided?,
        };
        let is_denied = decided.status == ApprovalStatus::Denied;
        Ok(is_denied.then(|| ExecutedTool::failed("A person denied this call.")))
    }
}

impl Within {
    /// Whether the session itself wants people to be asked, so that its caller knows how.
    fn asks(&self) -> bool {
        let config = &self.config;
        let by_tags = |tags: Option<&TagFilter>| tags.is_some_and(|tags| !tags.require_approval.is_empty());
        config.toolkits.as_ref().is_some_and(|toolkits| !toolkits.require_approval.is_empty())
            || by_tags(config.tags.as_ref())
            || config.tools.values().any(|tools| !tools.require_approval.is_empty() || by_tags(tools.tags.as_ref()))
    }
}

/// Arguments that do not fit, in words for the model.
fn wrong_arguments(error: &serde_json::Error) -> ExecutedTool {
    ExecutedTool::failed(format!("The arguments do not fit: {error}."))
}

/// A list of texts among the arguments.
pub(super) fn texts(arguments: &Map<String, Value>, name: &str, most: usize) -> Result<Vec<String>, Refusal> {
    let list = arguments.get(name).and_then(Value::as_array).filter(|list| (1..=most).contains(&list.len()));
    let texts = list.and_then(|list| list.iter().map(|text| text.as_str().map(str::to_owned)).collect::<Option<Vec<_>>>());
    texts.ok_or_else(|| Refusal::bad_request(format!("`{name}` must be a list of 1 to {most} texts.")))
}

fn question(approval: &Approval) -> SessionQuestion {
    let arguments: String = approval.arguments.to_string().chars().take(MAX_SHOWN).collect();
    let requested_schema = json!({
        "type": "object",
        "properties": {"decision": {"type": "string", "title": "Decision", "enum": ["approve", "deny"]}},
        "required": ["decision"],
    });
    let message = format!("Allow this call?\n\n{}\n{arguments}", approval.call_ref);
    let request = InputRequest { r#type: "elicitation", mode: "form", message, requested_schema };
    SessionQuestion {
        result_type: "input_required",
        input_requests: BTreeMap::from([(APPROVAL.to_owned(), request)]),
        request_state: approval.id.to_string(),
    }
}
