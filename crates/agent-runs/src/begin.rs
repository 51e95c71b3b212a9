//! Beginning a run and waiting for its end, as workflows ask for it.

use std::time::Duration;

use agents::{AgentError, Reason, ToolOwner};
use connections::{AccountsOf, NEWEST, ONLY};
use futures_util::future::BoxFuture;
use kernel::json::sorted;
use kernel::{AgentId, Scope, WeakShared};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::time::{Instant, timeout_at};
use workflows::{AgentOrder, AgentRefusal, AgentReply, AgentRunner, WorkflowError};

use crate::config::{AgentConfig, integration_of};
use crate::error::RunError;
use crate::rows::{self, AgentRun, NewRun};
use crate::{AgentRuns, Inner, RunState};

/// How often the row of a run is looked at although nobody told of it.
const LOOK: Duration = Duration::from_secs(2);
/// The most tools that a caller may bring along.
const CALLER_TOOLS: usize = 128;

/// Knows the runs without keeping them alive: they hold the workflows that hold this.
#[derive(Debug)]
pub(crate) struct Beginner(WeakShared<Inner>);

impl Beginner {
    pub(crate) fn new(runs: &AgentRuns) -> Self {
        Self(runs.0.downgrade())
    }
}

impl AgentRunner for Beginner {
    fn check<'a>(&'a self, scope: Scope, data: &'a Value) -> BoxFuture<'a, Result<(), WorkflowError>> {
        Box::pin(async move {
            let Some(runs) = self.0.upgrade().map(AgentRuns) else { return Ok(()) };
            runs.check_data(scope, data).await
        })
    }

    fn run(&self, order: AgentOrder) -> BoxFuture<'_, Result<AgentReply, AgentRefusal>> {
        Box::pin(async move {
            let stopping = || AgentRefusal { code: 503, message: "the server is stopping".to_owned() };
            let runs = self.0.upgrade().map(AgentRuns).ok_or_else(stopping)?;
            let (scope, limit, depth) = (order.scope, order.limit, order.request.depth);
            // A delivery is told how its run ended; it need not wait.
            let limit = if order.request.origin.delivery.is_some() && depth == 0 { Duration::ZERO } else { limit };
            let work = async {
                let id = runs.begin(order).await?;
                runs.wait(scope, id, limit, depth).await
            };
            work.await.map_err(|error| refusal(&error))
        })
    }
}

/// Why a run did not begin, as its caller is told.
fn refusal(error: &RunError) -> AgentRefusal {
    let code = match error {
        RunError::Invalid(_) => 400,
        RunError::KeyReused => 422,
        RunError::TooMany(_) => 429,
        error => {
            tracing::error!(%error, "a run of an agent could not be begun or read");
            return AgentRefusal { code: 503, message: "The run cannot be begun or read now; try again in a moment.".to_owned() };
        }
    };
    AgentRefusal { code, message: error.to_string() }
}

impl AgentRuns {
    /// Refuses data that names what is not there.
    async fn check_data(&self, scope: Scope, data: &Value) -> Result<(), WorkflowError> {
        let invalid = |error: String| WorkflowError::Invalid(error);
        let config = AgentConfig::read(data).map_err(invalid)?;
        if let Some(slug) = &config.model.connection {
            self.check_connection(scope, integration_of(config.model.api), slug).await?;
        }
        self.0.parts.egress.check_url(&config.model.url).map_err(|error| invalid(format!("`data.model.url`: {error}")))?;
        self.check_secrets(scope, &config).await?;
        match self.agent_named(scope, &config).await {
            Ok(_) => {}
            Err(RunError::Store(error)) => return Err(error.into()),
            Err(error) => return Err(invalid(format!("`data.agent`: {error}"))),
        }
        let unusable = |error: AgentError| match error.into_store() {
            Ok(away) => away.into(),
            Err(error) => invalid(format!("`data.tools`: {error}")),
        };
        let configs = self.configs(scope, &config).await.map_err(unusable)?;
        let toolset = self.0.parts.agents.toolset_of(scope, &ToolOwner::Configs(configs)).await.map_err(unusable)?;
        match toolset.left_out.iter().find(|out| leads_nowhere(&out.reason)) {
            Some(out) => Err(invalid(format!("`data.tools`: `{}`: {}", out.tool, out.reason))),
            None => Ok(()),
        }
    }

    async fn check_connection(&self, scope: Scope, integration: &str, slug: &str) -> Result<(), WorkflowError> {
        let read = self.0.parts.connections.query(AccountsOf::project(scope.project), Some("native"), Some(integration)).await;
        let others = read.map_err(|error| match error.into_store() {
            Ok(away) => away.into(),
            Err(error) => WorkflowError::Invalid(format!("`data.model.connection`: {error}")),
        })?;
        if others.iter().any(|other| other.slug == slug) {
            return Ok(());
        }
        let near = kernel::suggest::did_you_mean(slug, others.iter().map(|other| other.slug.as_str()));
        let hint = match others.as_slice() {
            [] => format!("connect {integration} first"),
            others => format!("there are: {}", others.iter().map(|other| other.slug.as_str()).collect::<Vec<_>>().join(", ")),
        };
        Err(WorkflowError::Invalid(format!("`data.model.connection`: {integration} has no connection `{slug}`; {hint}.{near}")))
    }

    async fn check_secrets(&self, scope: Scope, config: &AgentConfig) -> Result<(), WorkflowError> {
        for (name, text) in &config.model.headers {
            let wrong = |error: &dyn std::fmt::Display| WorkflowError::Invalid(format!("`data.model.headers.{name}`: {error}"));
            for part in secrets::parts(text.as_str().unwrap_or_default()).map_err(|error| wrong(&error))? {
                let secrets::Part::Secret(slug) = part else { continue };
                let found = self.0.parts.secrets.find(scope.project, slug.as_str()).await;
                found.and_then(|secret| secret.may_go_to(&config.model.url)).map_err(|error| match error {
                    secrets::SecretError::Store(error) => error.into(),
                    other => wrong(&other),
                })?;
            }
        }
        Ok(())
    }

    /// The agent whose tools a run has, if it names one.
    async fn agent_named(&self, scope: Scope, config: &AgentConfig) -> Result<Option<AgentId>, RunError> {
        let Some(name) = &config.agent else { return Ok(None) };
        let found = self.0.parts.agents.named(scope.project, std::slice::from_ref(name)).await.map_err(|error| match error {
            AgentError::Store(error) => RunError::Store(error),
            other => RunError::Invalid(other.to_string()),
        })?;
        Ok(found.first().copied())
    }

    /// Begins a run, or finds the one with the same idempotency key.
    async fn begin(&self, order: AgentOrder) -> Result<kernel::RunId, RunError> {
        let AgentOrder { scope, run: id, workflow, revision, data, request, .. } = order;
        let config = AgentConfig::read(&data).map_err(RunError::Invalid)?;
        let agent = self.agent_named(scope, &config).await?;
        if request.caller_tools.len() > CALLER_TOOLS {
            return Err(RunError::Invalid(format!("A caller may bring {CALLER_TOOLS} tools.")));
        }
        if let Some(earlier) = request.continues {
            let run = rows::by_id(&self.0.parts.db, scope.project, earlier).await?;
            let is_own = |run: &AgentRun| (run.workflow, run.key, run.end_user) == (workflow, scope.key, scope.end_user());
            if !run.as_ref().is_some_and(is_own) {
                return Err(RunError::Invalid(
                    "What shall go on is no run of this agent that this key began, or it is not kept any more.".to_owned(),
                ));
            }
        }
        let inputs = if request.inputs.is_null() { json!({}) } else { request.inputs };
        let stored = json!({"data": data, "caller_tools": request.caller_tools, "continues": request.continues});
        let mut print = json!([workflow, inputs, request.caller_tools, request.session_id]);
        if let (Some(list), Some(continues)) = (print.as_array_mut(), request.continues) {
            list.push(json!(continues));
        }
        let fingerprint = Sha256::digest(sorted(&print).to_string()).to_vec();
        let name = request.idempotency_key;
        if let Some(name) = &name
            && let Some((known, print)) = rows::by_key(&self.0.parts.db, scope.project, scope.key, name).await?
        {
            return if print == fingerprint { Ok(known) } else { Err(RunError::KeyReused) };
        }
        let most = self.0.parts.settings.open_runs;
        if rows::open_runs(&self.0.parts.db, scope.project, most).await? >= most {
            return Err(RunError::TooMany(most));
        }
        let now = self.0.parts.clock.now();
        let slot = if self.0.parts.settings.paused { None } else { self.occupy(scope.project, id) };
        let new = NewRun {
            id,
            project: scope.project,
            workflow,
            revision,
            key: scope.key,
            user: scope.user,
            end_user: scope.end_user(),
            config: stored.to_string(),
            inputs: inputs.to_string(),
            session: request.session_id,
            idempotency_key: name.clone(),
            fingerprint,
            delivery: request.origin.delivery,
            agent,
            depth: request.depth,
            is_test: request.is_test,
            now,
            lease: slot.is_some().then(|| (self.0.node, now.plus(self.0.parts.settings.lease))),
        };
        if !rows::insert(&self.0.parts.db, &new).await? {
            let name = name.ok_or_else(|| RunError::Broken("the id of a run was given twice".to_owned()))?;
            let known = rows::by_key(&self.0.parts.db, scope.project, scope.key, &name).await?;
            return known.map(|(known, _)| known).ok_or(RunError::NotFound);
        }
        match slot {
            Some(slot) => {
                let run = rows::by_id(&self.0.parts.db, scope.project, id).await?.ok_or(RunError::NotFound)?;
                self.spawn(run, slot);
            }
            None => self.tell_others(),
        }
        Ok(id)
    }

    /// Waits until a run has ended or waits for a person, for as long as its caller does.
    async fn wait(&self, scope: Scope, id: kernel::RunId, limit: Duration, depth: u32) -> Result<AgentReply, RunError> {
        let deadline = Instant::now() + limit;
        let mut heard = self.0.followers.follow(id);
        loop {
            let run = rows::by_id(&self.0.parts.db, scope.project, id).await?.ok_or(RunError::NotFound)?;
            if run.state.is_over() {
                return Ok(ended(&run));
            }
            if let Some(reply) = self.asks_somebody(scope, &run).await? {
                return Ok(reply);
            }
            if Instant::now() >= deadline {
                return Ok(goes_on(&run, depth));
            }
            let _ = timeout_at(deadline.min(Instant::now() + LOOK), heard.changed()).await;
        }
    }

    /// The answer for a run that waits for a person who has not decided.
    async fn asks_somebody(&self, scope: Scope, run: &AgentRun) -> Result<Option<AgentReply>, RunError> {
        let (RunState::Waiting, Some(approval)) = (run.state, run.approval) else { return Ok(None) };
        let is_open = self.0.parts.calls.approval(scope, approval).await.is_ok_and(|found| found.status == calls::ApprovalStatus::Pending);
        if !is_open {
            return Ok(None);
        }
        let url = self.0.parts.calls.page_of(scope.project, approval).await?;
        let message = format!("The run waits for a person, who decides at {url}");
        let outputs = json!({"run_id": run.id, "state": run.state.name(), "approval": {"id": approval, "url": url}});
        Ok(Some(AgentReply { run: run.id, code: 202, message, outputs: Some(outputs), waits_for: Some(approval) }))
    }
}

/// Whether a tool cannot be used whatever the rules say today.
fn leads_nowhere(reason: &Reason) -> bool {
    // Whose account it will be is known when the agent runs.
    if matches!(reason, Reason::NoSuchConnection { connection, .. } if [NEWEST, ONLY].contains(&connection.as_str())) {
        return false;
    }
    matches!(
        reason,
        Reason::UnknownApp(_)
            | Reason::NotConnected(_)
            | Reason::NoSuchConnection { .. }
            | Reason::NotInCatalog(_)
            | Reason::UnknownAction { .. }
            | Reason::NotATool(_)
            | Reason::UnknownWorkflow(_)
            | Reason::UnknownOp(_)
            | Reason::RunsElsewhere(_)
    )
}

fn ended(run: &AgentRun) -> AgentReply {
    let message = run.message.clone().unwrap_or_default();
    AgentReply { run: run.id, code: run.code.unwrap_or(500), message, outputs: run.outputs.clone(), waits_for: None }
}

/// The answer for a run whose caller has waited long enough. A step or another agent cannot go on without it, and finds it again by its key.
fn goes_on(run: &AgentRun, depth: u32) -> AgentReply {
    let outputs = json!({"run_id": run.id, "state": run.state.name()});
    let (code, message) =
        if depth == 0 { (202, "The run goes on.") } else { (504, "The run of the agent goes on; it did not end in time.") };
    AgentReply { run: run.id, code, message: message.to_owned(), outputs: Some(outputs), waits_for: None }
}
