//! Driving a run: what the conversation says comes next is done, written down, and told to it. Every write holds only while the run is this
//! node's, so a node that lost it stops at its next step.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::time::Instant;

use agents::{AgentError, AgentRef, ToolOwner, Toolset};
use definitions::config::{ConnectionNames, ToolConfig, coerce};
use kernel::{Budget, Permission, RunId, Scope, Timestamp};
use models::{Message, Tool};
use serde_json::{Value, json};
use store::{Tx, args};
use work::{LARGE, WorkError};

use crate::config::{AgentConfig, ENGINE};
use crate::conversation::{Conversation, Earlier, Step};
use crate::error::RunError;
use crate::events::{RunEvent, RunState};
use crate::journal::{self, Entry, JournalRow, Said, SessionPart, Writing};
use crate::log::EventLog;
use crate::prompt::opening;
use crate::rows::{self, AgentRun, End, Rest};
use crate::tools::Toolbox;
use crate::{AgentRuns, Parts, Used};

/// Why this node stops to work on a run.
#[derive(Debug)]
pub(crate) enum Halt {
    /// It has ended, or waits, and that is written.
    Settled,
    /// It is somebody else's by now.
    Lost,
    /// The node stops, and another goes on.
    Stopped,
    /// Our own failure; the run is tried again later.
    Broken(RunError),
}

impl<E: Into<RunError>> From<E> for Halt {
    fn from(error: E) -> Self {
        Self::Broken(error.into())
    }
}

/// A run in this node's hands.
pub(crate) struct Driver<'a> {
    pub(crate) runs: &'a AgentRuns,
    pub(crate) run: &'a AgentRun,
    pub(crate) scope: Scope,
    pub(crate) config: AgentConfig,
    pub(crate) toolbox: Toolbox,
    pub(crate) system: String,
    pub(crate) conversation: Conversation,
    pub(crate) log: EventLog,
    pub(crate) next_step: i64,
    /// When earlier tries began calls whose end nobody knows.
    pub(crate) began: HashMap<i64, Timestamp>,
    /// Whether an earlier try was cut off.
    pub(crate) is_resumed: bool,
    pub(crate) tries: i64,
    /// The run whose conversation goes on.
    continues: Option<RunId>,
    pub(crate) started: Instant,
}

impl AgentRuns {
    /// Works on a run until it ends, waits or is lost.
    pub(crate) async fn drive(&self, run: &AgentRun) -> Halt {
        let driver = match Box::pin(self.open(run)).await {
            Ok(Ok(driver)) => driver,
            Ok(Err(end)) => return Box::pin(self.end_early(run, end)).await,
            Err(halt) => return halt,
        };
        Box::pin(driver.run_on()).await
    }

    /// Ends a run that cannot go on at all.
    async fn end_early(&self, run: &AgentRun, end: End) -> Halt {
        let mut log = match journal::last_event(&self.0.parts.db, run.project, run.id).await {
            Ok(last) => EventLog::after(last),
            Err(error) => return error.into(),
        };
        match self.finish(run, Some(self.0.node), &end, &run.used, &mut log, None).await {
            Ok(true) => Halt::Settled,
            Ok(false) => Halt::Lost,
            Err(error) => Halt::Broken(error),
        }
    }

    /// Reads what a run is and what it did so far. The inner error ends it.
    async fn open<'a>(&'a self, run: &'a AgentRun) -> Result<Result<Driver<'a>, End>, Halt> {
        let started = Instant::now();
        let stored = rows::config(&self.0.parts.db, run.project, run.id).await?.ok_or(RunError::NotFound)?;
        let config = match AgentConfig::read(&stored["data"]) {
            Ok(config) => config,
            Err(error) => return Ok(Err(failed(400, error))),
        };
        let theirs = caller_tools(&stored);
        let continues = stored["continues"].as_str().and_then(|id| id.parse().ok());
        let acting = self.0.parts.accounts.acting(run.project, run.key, run.user).await?;
        let Some(scope) = acting.map(|scope| Scope { acts_for: run.end_user.into(), ..scope }) else {
            return Ok(Err(failed(403, "The key that began this run is revoked.")));
        };
        if !scope.may(Permission::RunWorkflows) && !scope.may(Permission::RunTools) {
            return Ok(Err(failed(403, "Whoever began this run may not run workflows any more.")));
        }
        let (owner, toolset) = match self.tools_of(scope, run, &config).await {
            Ok(tools) => tools,
            Err(error) => {
                return match error.into_store() {
                    Ok(away) => Err(away.into()),
                    Err(error) => Ok(Err(failed(400, error.to_string()))),
                };
            }
        };
        let mut conversation = Conversation::new(config.limits, config.model.prices, config.model.context_tokens, names(&theirs));
        let (mut system, mut began, mut next_step) = (None, HashMap::new(), 1);
        let journal = journal::read(&self.0.parts.db, &self.0.parts.sealer, run.project, run.id).await?;
        let is_resumed = !journal.is_empty();
        for row in journal {
            next_step = row.number + 1;
            match &row.entry {
                Entry::Begun { system: said, .. } => system = Some(said.clone()),
                Entry::Call { .. } if row.outcome.is_none() => began.extend(row.began_at.map(|at| (row.number, at))),
                _ => {}
            }
            conversation.apply(row);
        }
        let log = EventLog::after(journal::last_event(&self.0.parts.db, run.project, run.id).await?);
        let toolbox = Toolbox::new(owner, toolset, theirs);
        let tries = run.tries;
        let mut driver = Driver {
            runs: self,
            run,
            scope,
            config,
            toolbox,
            system: String::new(),
            conversation,
            log,
            next_step,
            began,
            is_resumed,
            tries,
            continues,
            started,
        };
        driver.system = match system {
            Some(system) => system,
            None => match driver.begin().await? {
                Ok(system) => system,
                Err(end) => return Ok(Err(end)),
            },
        };
        Ok(Ok(driver))
    }

    /// Whose tools the run has, and which they are.
    async fn tools_of(&self, scope: Scope, run: &AgentRun, config: &AgentConfig) -> Result<(ToolOwner, Toolset), AgentError> {
        let owner = match run.agent {
            Some(agent) => ToolOwner::Agent(AgentRef::Id(agent)),
            None => ToolOwner::Configs(self.configs(scope, config).await?),
        };
        let toolset = self.0.parts.agents.toolset_of(scope, &owner).await?;
        Ok((owner, toolset))
    }

    /// The tools that an agent names itself, with those of the MCP servers that it names.
    pub(crate) async fn configs(&self, scope: Scope, config: &AgentConfig) -> Result<Vec<ToolConfig>, AgentError> {
        let mut configs = config.tools.clone();
        for name in &config.servers {
            self.0.parts.catalog.ready(scope.project).await?;
            if self.0.parts.catalog.integration(scope.project, "mcp", name).is_err() {
                return Err(AgentError::Invalid(format!(
                    "the MCP server `{name}` is not imported into this project; import it under that name with `toolyard import mcp`"
                )));
            }
            let connections = self.0.parts.connections.query(scope, Some("mcp"), Some(name)).await?;
            let slug = connections.first().map_or_else(|| format!("{name}-main"), |connection| connection.slug.clone());
            let names = ConnectionNames { provider: "mcp".to_owned(), integration: name.clone(), slug };
            let whole = json!({"type": "gateway_connection", "connection": {"provider": names.provider, "integration": names.integration, "slug": names.slug}});
            configs.push(coerce(&whole).map_err(|error| AgentError::Invalid(error.to_string()))?);
        }
        Ok(configs)
    }

    /// Writes how a run ended: its row, its record among the runs of workflows, its last event and what its session keeps. Whether it was
    /// still this node's to end.
    pub(crate) async fn finish(
        &self,
        run: &AgentRun,
        node: Option<uuid::Uuid>,
        end: &End,
        used: &Used,
        log: &mut EventLog,
        session: Option<&SessionPart<'_>>,
    ) -> Result<bool, RunError> {
        let now = self.0.parts.clock.now();
        let record = self.record(run, end, used, now).await?;
        let written = self.0.parts.workflows.written_run(&record);
        let mut tx = self.0.parts.db.begin().await?;
        if let Some(node) = node {
            rows::keep_used(&mut tx, run.project, run.id, node, used, now, now.plus(self.0.parts.settings.lease)).await?;
        }
        if !rows::end(&mut tx, run.project, run.id, node, end, now).await? {
            return Ok(false);
        }
        written.insert(&mut tx).await?;
        if let Some(part) = session {
            journal::keep_session(&mut tx, &self.0.parts.sealer, part, now).await?;
        }
        log.push(RunEvent::RunEnded { state: end.state, code: end.code, message: end.message.clone(), outputs: end.outputs.clone() });
        self.write_events(&mut tx, run, log, now).await?;
        tx.commit().await?;
        log.written();
        self.tell_followers(run.id);
        self.0.ended.add(end.state);
        if run.delivery.is_some() {
            self.0.attend.notify_one();
        }
        self.trace(run, end, used, now);
        Ok(true)
    }

    pub(crate) async fn write_events(&self, tx: &mut Tx, run: &AgentRun, log: &EventLog, now: Timestamp) -> Result<(), RunError> {
        let Some((first, events)) = log.pending() else { return Ok(()) };
        journal::write_events(tx, &self.0.parts.sealer, run.project, run.id, first, events, now).await
    }
}

impl Driver<'_> {
    pub(crate) fn used(&self) -> Used {
        Used { active: self.run.used.active + self.started.elapsed(), ..self.conversation.used() }
    }

    async fn run_on(mut self) -> Halt {
        let stop = &self.runs.0.stop;
        loop {
            if stop.is_cancelled() {
                return Halt::Stopped;
            }
            let used = self.used();
            let done = match self.conversation.next(&used) {
                Step::Ask(purpose) => match stop.run_until_cancelled(Box::pin(self.ask(purpose, used))).await {
                    Some(done) => done,
                    None => return Halt::Stopped,
                },
                Step::Call => Box::pin(self.call_tools()).await,
                Step::Stub => self.stub().await,
                Step::Conclude => Box::pin(self.conclude()).await,
                Step::HandOver => Box::pin(self.hand_over()).await,
                Step::Stop { limit } => Box::pin(self.stop(&limit)).await,
            };
            if let Err(halt) = done {
                return halt;
            }
        }
    }

    /// The first words of the run: those of its session, its instructions and its inputs.
    async fn begin(&mut self) -> Result<Result<String, End>, Halt> {
        let template = match ENGINE.compile(&json!(self.config.instructions)) {
            Ok(template) => template,
            Err(error) => return Ok(Err(failed(400, error.message))),
        };
        let inputs = self.run.inputs.clone();
        let context = json!({"inputs": inputs});
        let size = template.weigh(&context, LARGE);
        let fill = move |budget: &Budget| template.render(&context, budget).map_err(|error| Unfilled(error.message));
        let filled = match self.runs.0.parts.workers.run(self.run.project, size, fill).await {
            Ok(filled) => filled,
            Err(Unfilled(why)) => return Ok(Err(failed(400, format!("`instructions`: {why}")))),
        };
        let opening = match opening(&inputs, self.continues) {
            Ok(opening) => opening,
            Err(why) => return Ok(Err(failed(400, why))),
        };
        let mut system = match filled {
            Some(Value::String(text)) => text,
            Some(other) => other.to_string(),
            None => String::new(),
        };
        for more in opening.system {
            system.push_str("\n\n");
            system.push_str(&more);
        }
        let Parts { db, sealer, clock, .. } = &self.runs.0.parts;
        let Said { messages: history, left_out } = match session_of(self.run) {
            Some(session) => journal::session(db, sealer, self.run.project, self.run.workflow, &session).await?,
            None => Said::default(),
        };
        let earlier = self.earlier(&opening.messages).await?;
        let first = Earlier::recall(opening.messages, &earlier, self.continues);
        let now = clock.now();
        let entry = Entry::Begun { system: system.clone(), history: history.clone(), left_out: left_out.clone(), first: first.clone() };
        let row = JournalRow { number: self.next_step, entry, outcome: None, began_at: Some(now), ended_at: Some(now) };
        self.next_step += 1;
        if self.log.is_new() {
            self.log.push(RunEvent::RunStarted { session_id: self.run.session.clone() });
        }
        self.conversation.begin(history, left_out, first);
        self.write(Writing { new: vec![row], ended: Vec::new() }).await?;
        Ok(Ok(system))
    }

    /// What the runs said and did whose calls the client has made since. Only those of the same workflow and the same caller are found.
    async fn earlier(&self, messages: &[Message]) -> Result<HashMap<RunId, Earlier>, Halt> {
        let (Parts { db, sealer, .. }, project) = (&self.runs.0.parts, self.run.project);
        let mut found = HashMap::new();
        for id in Earlier::named(messages).into_iter().chain(self.continues).collect::<HashSet<_>>() {
            let Some(run) = rows::by_id(db, project, id).await? else { continue };
            let is_own = (run.workflow, run.key, run.end_user) == (self.run.workflow, self.run.key, self.run.end_user);
            let Some(stored) = rows::config(db, project, id).await?.filter(|_| is_own) else { continue };
            let (journal, theirs) = (journal::read(db, sealer, project, id).await?, names(&caller_tools(&stored)));
            found.insert(id, Earlier::read(journal, theirs, self.continues == Some(id)));
        }
        Ok(found)
    }

    /// Writes steps and events, and that the run is still at work here.
    pub(crate) async fn write(&mut self, writing: Writing) -> Result<(), Halt> {
        let (inner, now) = (&self.runs.0, self.runs.0.parts.clock.now());
        let mut tx = inner.parts.db.begin().await?;
        let until = now.plus(inner.parts.settings.lease);
        if !rows::keep_used(&mut tx, self.run.project, self.run.id, inner.node, &self.used(), now, until).await? {
            return Err(Halt::Lost);
        }
        journal::write(&mut tx, &inner.parts.sealer, self.run.project, self.run.id, &writing).await?;
        self.runs.write_events(&mut tx, self.run, &self.log, now).await?;
        tx.commit().await?;
        self.log.written();
        self.runs.tell_followers(self.run.id);
        Ok(())
    }

    /// Lets go of the run until a time or a decision. Calls that wait were not made.
    pub(crate) async fn rest(&mut self, rest: Rest, waiting: &[i64]) -> Result<(), Halt> {
        let (inner, now) = (&self.runs.0, self.runs.0.parts.clock.now());
        let mut tx = inner.parts.db.begin().await?;
        let until = now.plus(inner.parts.settings.lease);
        let is_ours = rows::keep_used(&mut tx, self.run.project, self.run.id, inner.node, &self.used(), now, until).await?
            && rows::rest(&mut tx, self.run.project, self.run.id, inner.node, rest, self.tries, now).await?;
        if !is_ours {
            return Err(Halt::Lost);
        }
        for number in waiting {
            let sql = "update agent_run_steps set began_at = null where project_id = $1 and run_id = $2 and number = $3";
            tx.execute(sql, args![self.run.project, self.run.id, *number]).await?;
        }
        self.runs.write_events(&mut tx, self.run, &self.log, now).await?;
        tx.commit().await?;
        self.log.written();
        self.runs.tell_followers(self.run.id);
        if let Rest::Waiting(..) = rest {
            // Somebody may have decided while it was written that the run waits.
            inner.attend.notify_one();
        }
        Err(Halt::Settled)
    }

    /// Writes the events that wait; the steps that they tell of are written already.
    pub(crate) async fn flush(&mut self) -> Result<(), Halt> {
        flush(self.runs, self.run, &mut self.log).await?;
        Ok(())
    }

    pub(crate) async fn stub(&mut self) -> Result<(), Halt> {
        self.conversation.stub();
        let now = self.runs.0.parts.clock.now();
        let row = JournalRow { number: self.next_step, entry: Entry::Stubbed, outcome: None, began_at: Some(now), ended_at: Some(now) };
        self.next_step += 1;
        self.write(Writing { new: vec![row], ended: Vec::new() }).await
    }
}

/// The tools that whoever asks calls itself.
fn caller_tools(stored: &Value) -> Vec<Tool> {
    serde_json::from_value(stored["caller_tools"].clone()).unwrap_or_default()
}

fn names(tools: &[Tool]) -> HashSet<String> {
    tools.iter().map(|tool| tool.name.clone()).collect()
}

/// The session that a run belongs to. That of a delivery is its own, and never goes on.
pub(crate) fn session_of(run: &AgentRun) -> Option<Cow<'_, str>> {
    let session = run.session.as_deref().filter(|_| run.delivery.is_none())?;
    Some(run.end_user.map_or(Cow::Borrowed(session), |end_user| rows::in_session_of(end_user, session).into()))
}

/// Writes the events that wait.
pub(crate) async fn flush(runs: &AgentRuns, run: &AgentRun, log: &mut EventLog) -> Result<(), RunError> {
    let mut tx = runs.0.parts.db.begin().await?;
    runs.write_events(&mut tx, run, log, runs.0.parts.clock.now()).await?;
    tx.commit().await?;
    log.written();
    runs.tell_followers(run.id);
    Ok(())
}

/// Work that came to nothing, in words.
pub(crate) struct Unfilled(pub(crate) String);

impl From<WorkError> for Unfilled {
    fn from(error: WorkError) -> Self {
        Self(error.to_string())
    }
}

pub(crate) fn failed(code: i64, message: impl Into<String>) -> End {
    End { state: RunState::Failed, code, message: message.into(), outputs: None }
}
