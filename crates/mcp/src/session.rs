//! The tools of a user session: actions of the apps that it is for, through accounts of its end user and of nobody else. What is not named
//! here is not there: no workflows, no platform ops.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use calls::permission::{RuleSet, ToolFacts, decide};
use calls::{CallError, CallReply, CallRequest, ToolResult};
use catalog::Integration;
use connections::{ConnectResult, Connection, ConnectionError, LinkOptions, NEWEST};
use definitions::Verdict;
use definitions::format::{Format, function_name};
use futures_util::future::BoxFuture;
use kernel::{CallName, CallRef};
use serde_json::{Map, Value, json};
use user_sessions::UserSessionSettings;

use crate::connect::{begin, told};
use crate::find::{CONNECT, Searchable, brief, connect_definition, is};
use crate::page::{PAGE, after, cursor_of};
use crate::project::{ProjectTool, ProjectTools};
use crate::{Call, CallOutcome, Page, RpcError, Surface, reply};

/// The tools of a session.
#[derive(Clone, Debug)]
pub struct SessionTools {
    /// With the session's scope.
    pub project: ProjectTools,
    pub settings: Arc<UserSessionSettings>,
}

/// Why a call of a session came to no result.
#[derive(Debug)]
pub enum SessionFault {
    /// The session has no such tool.
    Unknown(String),
    /// The end user has to connect an account first.
    Missing(Box<MissingAccount>),
    Call(CallError),
}

/// An account that the end user has to connect, and how.
#[derive(Clone, Debug)]
pub struct MissingAccount {
    pub integration: String,
    pub name: String,
    /// The link that the end user opens; none where no person is needed.
    pub url: Option<String>,
    pub connection: Connection,
}

impl MissingAccount {
    /// What a model is told.
    pub fn message(&self) -> String {
        match &self.url {
            Some(url) => {
                format!("{} is not connected. Ask the person to open this link and to finish there: {url}\nThen call again.", self.name)
            }
            None => format!("{} is connected now. Call again.", self.name),
        }
    }
}

impl SessionTools {
    /// What the session shows, in an order that stays: each tool of an app under the account of the user, or of each where there are several.
    async fn entries(&self) -> Result<Vec<ProjectTool>, RpcError> {
        let (domains, scope) = (&self.project.approver.domains, self.project.scope());
        let rows = domains.connections.choices(scope, None, None).await.map_err(|error| RpcError::internal(&error))?;
        let mut shown: Vec<(Arc<Integration>, Vec<&Connection>)> = Vec::new();
        for row in rows.iter().filter(|row| row.is_usable() && self.settings.has_app(&row.integration)) {
            match shown.iter_mut().find(|(known, _)| known.provider == row.provider && known.key == row.integration) {
                Some((_, accounts)) => accounts.push(row),
                None => shown.extend(
                    domains.catalog.integration(scope.project, &row.provider, &row.integration).ok().map(|found| (found, vec![row])),
                ),
            }
        }
        for name in self.named_apps() {
            if !shown.iter().any(|(known, _)| known.key == name) {
                let mut providers = domains.catalog.providers().into_iter();
                let found = providers.find_map(|provider| domains.catalog.integration(scope.project, provider.key, name).ok());
                shown.extend(found.map(|found| (found, Vec::new())));
            }
        }
        shown.sort_by(|(a, _), (b, _)| (a.provider, &a.key).cmp(&(b.provider, &b.key)));
        Ok(shown.iter().flat_map(|(integration, accounts)| self.tools_of(integration, accounts)).collect())
    }

    fn tools_of(&self, integration: &Arc<Integration>, accounts: &[&Connection]) -> Vec<ProjectTool> {
        let pinned = self.settings.accounts.get(&integration.key);
        let named = |row: &&Connection| (row.alias.clone().unwrap_or_else(|| row.slug.clone()), row.failure.clone());
        let through: Vec<(String, Option<String>)> = match (pinned, accounts) {
            (Some(pinned), _) => vec![(pinned.clone(), None)],
            (None, []) => vec![(NEWEST.to_owned(), None)],
            (None, [only]) => vec![(NEWEST.to_owned(), only.failure.clone())],
            (None, several) => several.iter().map(named).collect(),
        };
        let is_one_of_many = through.len() > 1;
        let mut tools = Vec::new();
        for (connection, failure) in through {
            let actions =
                integration.actions.iter().filter(|action| self.settings.has_tool(integration.provider, &integration.key, &action.key));
            tools.extend(actions.map(|action| ProjectTool::Action {
                integration: integration.clone(),
                action: action.clone(),
                connection: connection.clone(),
                is_one_of_many,
                failure: failure.clone(),
            }));
        }
        tools
    }

    /// The apps that the session names itself.
    fn named_apps(&self) -> Vec<&str> {
        let of_tools = self.settings.tools.iter().flatten().filter_map(|tool| tool.split('.').nth(2));
        let apps = self.settings.apps.iter().flatten().map(String::as_str);
        let mut names: Vec<&str> = apps.chain(of_tools).filter(|name| self.settings.names_app(name)).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// The tools as a model API takes them, with the name that each is called by.
    #[kernel::boxed]
    pub async fn definitions(&self, format: Format) -> Result<Vec<Value>, RpcError> {
        let entries = self.entries().await?;
        let mut defined = Vec::with_capacity(entries.len());
        for entry in &entries {
            defined.extend(self.project.define_as(entry, format).await?);
        }
        Ok(defined)
    }

    /// The call that a name means, through the account that the session has for it.
    async fn target(&self, name: &str) -> Result<CallRef, SessionFault> {
        let unknown = || SessionFault::Unknown(format!("Unknown tool: {}", name.chars().take(200).collect::<String>()));
        let given = CallName::from(name.to_owned());
        let target = match given.target() {
            Ok(target) if !definitions::format::is_hashed(name) => target.clone(),
            _ => {
                let entries = self.entries().await.map_err(|_| unknown())?;
                let mut refs = entries.iter().map(ProjectTool::call_ref);
                refs.find(|call_ref| function_name(&call_ref.to_string()) == name).ok_or_else(unknown)?
            }
        };
        let CallRef::Gateway { provider, integration, action, connection } = target else { return Err(unknown()) };
        let account = self.settings.account(&integration, &connection, NEWEST).map(str::to_owned);
        match account {
            Some(connection) if self.settings.has_tool(&provider, &integration, &action) => {
                Ok(CallRef::Gateway { provider, integration, action, connection })
            }
            _ => Err(unknown()),
        }
    }

    /// The session's own word on a call; it can only make the project's stricter.
    fn verdict(&self, target: &CallRef, arguments: &Value) -> Option<Verdict> {
        let rules = RuleSet::from_value(Some(self.settings.permissions.as_ref()?));
        let CallRef::Gateway { provider, integration, action, .. } = target else { return Some(Verdict::Deny) };
        let catalog = &self.project.approver.domains.catalog;
        let found = catalog.integration(self.project.scope().project, provider, integration).ok();
        let read_only = found.and_then(|found| found.action(action).map(|action| action.read_only));
        let name = target.to_string();
        Some(decide(&rules, &ToolFacts { name: &name, read_only, ..ToolFacts::default() }, arguments))
    }

    /// Calls a tool of the session. An account that is missing is begun to be connected, where the session lets its user do so.
    #[kernel::boxed]
    pub async fn call_tool(&self, name: &str, request: CallRequest) -> Result<CallReply, SessionFault> {
        let target = self.target(name).await?;
        let permission = self.verdict(&target, &request.arguments).max(request.permission);
        let request = CallRequest { name: target.clone().into(), permission, ..request };
        match self.project.calls().call(self.project.scope(), request).await {
            Err(error) if is_missing(&error) => match self.missing(&target).await {
                Some(missing) => Err(SessionFault::Missing(Box::new(missing))),
                None => Err(SessionFault::Call(error)),
            },
            called => called.map_err(SessionFault::Call),
        }
    }

    async fn missing(&self, target: &CallRef) -> Option<MissingAccount> {
        let CallRef::Gateway { provider, integration, connection, .. } = target else { return None };
        if !self.settings.may_connect || connection != NEWEST {
            return None;
        }
        let found = self.project.approver.domains.catalog.integration(self.project.scope().project, provider, integration).ok()?;
        let ConnectResult { connection, redirect_url, .. } = self.begin(&found, None, LinkOptions::default()).await.ok()?;
        Some(MissingAccount { integration: integration.clone(), name: found.name.clone(), url: redirect_url, connection })
    }

    async fn begin(&self, integration: &Integration, alias: Option<&str>, link: LinkOptions) -> Result<ConnectResult, ConnectionError> {
        let connections = &self.project.approver.domains.connections;
        begin(connections, self.project.scope(), integration.provider, &integration.key, alias, link).await
    }

    /// Connects an account of the end user, or says what they have to do for it. `alias` is for one more beside others; `link` says how they
    /// are led.
    #[kernel::boxed]
    pub async fn connect_app(
        &self,
        integration: &str,
        provider: Option<&str>,
        alias: Option<&str>,
        link: LinkOptions,
    ) -> Result<(String, ConnectResult), SessionFault> {
        if !self.settings.may_connect {
            return Err(SessionFault::Unknown("This session may not connect accounts.".to_owned()));
        }
        let (catalog, project) = (&self.project.approver.domains.catalog, self.project.scope().project);
        let providers = catalog.providers();
        let mut wanted = providers.iter().filter(|known| provider.is_none_or(|provider| provider == known.key));
        let found = wanted.find_map(|provider| catalog.integration(project, provider.key, integration).ok());
        let found = found.filter(|found| self.settings.has_app(&found.key));
        let found = found.ok_or_else(|| SessionFault::Unknown(format!("This session has no integration `{integration}`.")))?;
        let begun = self.begin(&found, alias, link).await.map_err(|error| SessionFault::Call(CallError::Connection(error)))?;
        Ok((found.name.clone(), begun))
    }

    async fn page(&self, cursor: Option<&str>) -> Result<Page, RpcError> {
        let entries = self.entries().await?;
        let start = after(entries.iter().map(|entry| entry.call_ref().to_string()), cursor)?;
        let rest = &entries[start..];
        let shown = &rest[..rest.len().min(PAGE)];
        let mut page = Page::default();
        for entry in shown {
            page.tools.extend(self.project.define(entry).await?);
        }
        page.next = shown.last().filter(|_| rest.len() > PAGE).map(|last| cursor_of(&last.call_ref().to_string()));
        if page.next.is_none() && self.settings.may_connect {
            page.tools.push(connect_definition());
        }
        Ok(page)
    }

    async fn run(&self, call: Call) -> Result<CallOutcome, RpcError> {
        if call.name == CONNECT {
            return self.connect_by(call.arguments).await;
        }
        if let Some(outcome) = self.project.approver.hear(&call).await? {
            return Ok(outcome);
        }
        let (request, _stop) = call.to(call.name.clone().into(), self.project.limit);
        match self.call_tool(&call.name, request).await {
            Ok(reply) => Ok(reply::of_reply(reply)),
            Err(SessionFault::Unknown(why)) => Err(RpcError::Params(why)),
            Err(SessionFault::Missing(missing)) => {
                let structured = json!({"status": "account_missing", "integration": missing.integration, "url": missing.url});
                Ok(CallOutcome::text(missing.message(), Some(structured), true))
            }
            Err(SessionFault::Call(CallError::Waiting(approval))) => Ok(self.project.approver.ask(&approval, &call)),
            Err(SessionFault::Call(error)) => reply::of_error(error),
        }
    }

    async fn connect_by(&self, arguments: Map<String, Value>) -> Result<CallOutcome, RpcError> {
        let text = |name: &str| arguments.get(name).and_then(Value::as_str);
        let Some(key) = text("integration") else { return Ok(CallOutcome::failure("`integration` must be the key of an integration.")) };
        match self.connect_app(key, text("provider"), text("slug"), LinkOptions::default()).await {
            Ok((name, begun)) => Ok(told(&name, begun)),
            Err(SessionFault::Unknown(why)) => Ok(CallOutcome::failure(why)),
            Err(SessionFault::Missing(missing)) => Ok(CallOutcome::failure(missing.message())),
            Err(SessionFault::Call(error)) => reply::of_error(error),
        }
    }

    async fn look(&self) -> Result<u64, RpcError> {
        let mut hasher = DefaultHasher::new();
        for entry in self.entries().await? {
            entry.call_ref().hash(&mut hasher);
            if let ProjectTool::Action { action, failure, .. } = &entry {
                (Arc::as_ptr(action) as usize, failure).hash(&mut hasher);
            }
        }
        Ok(hasher.finish())
    }

    /// Asks discovery as the end user, and keeps what the session has of its answer.
    #[kernel::boxed]
    pub async fn search(&self, use_cases: Vec<String>, limit: u64) -> Result<Vec<Value>, RpcError> {
        let arguments = json!({"use_cases": use_cases, "limit_alternatives": limit.saturating_sub(1)});
        let name = CallRef::Reserved { op: "find_capabilities".to_owned() }.into();
        let request = CallRequest { name, arguments, ..CallRequest::default() };
        let ToolResult { data, error, .. } = match self.project.calls().call(self.project.scope(), request).await {
            Ok(reply) => reply.result,
            Err(error) => {
                return Err(reply::of_error(error).err().unwrap_or_else(|| RpcError::Params("Discovery is not allowed here.".to_owned())));
            }
        };
        if let Some(error) = error {
            return Err(RpcError::Params(error));
        }
        let entries = self.entries().await?;
        let mut results = Vec::with_capacity(use_cases.len());
        for capability in data["capabilities"].as_array().into_iter().flatten() {
            let alternatives = capability["alternatives"].as_array().into_iter().flatten();
            let primary = Some(&capability["tool"]).filter(|tool| tool.is_object());
            let (mut tools, mut missing): (Vec<Value>, Vec<Value>) = (Vec::new(), Vec::new());
            for candidate in primary.into_iter().chain(alternatives) {
                let fitting: Vec<&ProjectTool> = entries.iter().filter(|entry| is(entry, candidate)).collect();
                for entry in &fitting {
                    tools.extend(self.project.define(entry).await?.map(|defined| brief(entry, &defined)));
                }
                let integration = candidate["integration"].as_str().filter(|key| self.settings.may_connect && self.settings.has_app(key));
                if let (true, Some(integration)) = (fitting.is_empty(), integration)
                    && !missing.iter().any(|known| known["integration"] == integration)
                {
                    missing.push(json!({"integration": integration, "provider": candidate["provider"], "for": candidate["description"]}));
                }
            }
            let mut result = json!({"use_case": capability["use_case"], "tools": tools});
            if !missing.is_empty() {
                result["connect"] = missing.into();
            }
            results.push(result);
        }
        Ok(results)
    }
}

/// Whether a call found no account that works.
fn is_missing(error: &CallError) -> bool {
    use ConnectionError as C;
    matches!(error, CallError::ConnectionNotFound(_) | CallError::Connection(C::NotValid { .. } | C::Inactive(_)))
}

impl Surface for SessionTools {
    fn instructions(&self) -> String {
        "The tools that one person may use here, through accounts of their own. Where an account is missing, a call answers with a link for the \
         person to open. A call that must be approved says so."
            .to_owned()
    }

    fn list<'a>(&'a self, cursor: Option<&'a str>) -> BoxFuture<'a, Result<Page, RpcError>> {
        Box::pin(self.page(cursor))
    }

    fn call(&self, call: Call) -> BoxFuture<'_, Result<CallOutcome, RpcError>> {
        Box::pin(self.run(call))
    }

    fn fingerprint(&self) -> BoxFuture<'_, Result<u64, RpcError>> {
        Box::pin(self.look())
    }
}

impl Searchable for SessionTools {
    fn find(&self, use_cases: Vec<String>, limit: u64) -> BoxFuture<'_, Result<Vec<Value>, RpcError>> {
        Box::pin(self.search(use_cases, limit))
    }

    fn connect(&self, arguments: Map<String, Value>) -> BoxFuture<'_, Result<CallOutcome, RpcError>> {
        Box::pin(self.connect_by(arguments))
    }
}
