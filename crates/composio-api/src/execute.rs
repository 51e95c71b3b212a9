//! Running a tool for a user.

use std::time::Duration;

use calls::{CallError, CallReply, CallRequest};
use connections::ConnectionError;
use document::ToSchema;
use kernel::{CallRef, Scope};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::time::timeout;

use crate::choice::ChosenAccount;
use crate::names::Tool;
use crate::sessions::MetaTool;
use crate::{ApiError, ComposioApi, DEFAULT_USER, Refusal, ids, schema, versions};

/// A request to run a tool.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[schema(as = composio::ExecuteTool)]
pub struct ExecuteTool {
    /// For whom; nobody is `default`, which is the project with its own accounts.
    pub user_id: Option<String>,
    /// The older name of `user_id`.
    pub entity_id: Option<String>,
    /// The account, where it shall not be the user's newest.
    pub connected_account_id: Option<String>,
    #[schema(value_type = Option<Object>)]
    pub arguments: Option<Map<String, Value>>,
    pub version: Option<String>,
    /// Not served: it needs a model.
    #[schema(ignore)]
    pub text: Option<String>,
    /// Not served: connect an account.
    #[schema(ignore)]
    pub custom_auth_params: Option<Value>,
    /// Not served: connect an account.
    #[schema(ignore)]
    pub custom_connection_data: Option<Value>,
    /// Every call is on record.
    pub allow_tracing: Option<bool>,
}

impl ExecuteTool {
    fn user(&self) -> Option<&str> {
        self.user_id.as_deref().or(self.entity_id.as_deref())
    }

    fn check(&self) -> Result<(), Refusal> {
        if self.text.is_some() {
            return Err(Refusal::not_served("`text` needs a model to read it, which is not here. Send `arguments`."));
        }
        if self.custom_auth_params.is_some() || self.custom_connection_data.is_some() {
            let message = "A credential is not taken with a call. Connect an account, and name it or its user.";
            return Err(Refusal::not_served(message));
        }
        Ok(())
    }
}

/// What a tool came to. Whatever went wrong once tool and account were found is here, where a model reads it.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = composio::ToolResult)]
pub struct ExecutedTool {
    #[schema(value_type = Object)]
    pub data: Map<String, Value>,
    pub successful: bool,
    #[schema(required = true)]
    pub error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub log_id: Option<String>,
}

impl ExecutedTool {
    /// A failure in words, for the model.
    pub fn failed(why: impl Into<String>) -> Self {
        Self { data: Map::new(), successful: false, error: Some(why.into()), log_id: None }
    }

    pub(crate) fn of(reply: CallReply) -> Self {
        let CallReply { id, result, .. } = reply;
        let error = result.error.map(|error| if error.trim().is_empty() { "The tool failed without a word.".to_owned() } else { error });
        Self { data: schema::of_data(result.data), successful: error.is_none(), error, log_id: Some(ids::LOG.show(id)) }
    }
}

impl ComposioApi {
    /// Runs a tool for a user, within so much time.
    #[kernel::boxed]
    pub async fn execute(&self, scope: Scope, slug: &str, request: ExecuteTool, limit: Duration) -> Result<ExecutedTool, ApiError> {
        request.check()?;
        if MetaTool::is_one(slug) {
            let user = request.user().unwrap_or(DEFAULT_USER).to_owned();
            return self.execute_meta_for(scope, &user, slug, request.arguments.unwrap_or_default(), limit).await;
        }
        let tool = self.tool(scope, slug).await?;
        versions::check(&tool.toolkit.integration, &tool.toolkit.slug, request.version.as_deref())?;
        let account = self.account_for(scope, &tool.toolkit, request.user(), request.connected_account_id.as_deref()).await?;
        self.run(&tool, &account, request.arguments.unwrap_or_default(), limit).await
    }

    /// Runs a tool through an account that was chosen. Only our own failures are errors.
    #[kernel::boxed]
    pub async fn run(
        &self,
        tool: &Tool,
        account: &ChosenAccount,
        arguments: Map<String, Value>,
        limit: Duration,
    ) -> Result<ExecutedTool, ApiError> {
        if let Some(connection) = &account.connection
            && let Some(why) = self.not_for(connection, tool.slug()).await?
        {
            return Ok(ExecutedTool::failed(why));
        }
        let integration = &tool.toolkit.integration;
        let name = CallRef::Gateway {
            provider: integration.provider.to_owned(),
            integration: integration.key.clone(),
            action: tool.action().key.clone(),
            connection: account.name().to_owned(),
        };
        let request = CallRequest { name: name.into(), arguments: Value::Object(arguments), limit: Some(limit), ..CallRequest::default() };
        match timeout(limit, self.parts().calls.call(account.scope, request)).await {
            Ok(Ok(reply)) => Ok(ExecutedTool::of(reply)),
            Ok(Err(error)) => failed(error),
            Err(_) => Ok(ExecutedTool::failed(format!("The tool took longer than {} seconds.", limit.as_secs()))),
        }
    }
}

/// What went wrong with a call, in words for the model; our own failures and a project that is too busy stay errors, which can be retried.
pub(crate) fn failed(error: CallError) -> Result<ExecutedTool, ApiError> {
    match error {
        CallError::Store(_)
        | CallError::NotRecorded(_)
        | CallError::Sealed(_)
        | CallError::Interrupted(_)
        | CallError::Work(_)
        | CallError::Connection(ConnectionError::Store(_) | ConnectionError::Sealed(_) | ConnectionError::Interrupted(_)) => {
            Err(error.into())
        }
        CallError::Waiting(approval) => {
            let why = format!("This call waits for a person's approval, `{}`. Try it again once it is approved.", approval.id);
            Ok(ExecutedTool::failed(why))
        }
        other => Ok(ExecutedTool::failed(other.to_string())),
    }
}
