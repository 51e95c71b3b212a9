//! Running a revision: what it is, under which limits, and the record of it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use kernel::json::{MAX_DEPTH as MAX_NESTING, depth_exceeds, size};
use kernel::schema::{self, Schema, SchemaError, Violation};
use kernel::{ApprovalId, Budget, Origin, ProjectId, RunId, Scope};
use serde_json::{Map, Value};
use work::{LARGE, WorkError};

use crate::data::{self, RevisionKind};
use crate::http::Post;
use crate::runs::{CANCELLED, Run};
use crate::steps::{Frame, OUTCOME_UNKNOWN, StepCaller, StepError, StepLog, Steps};
use crate::{AgentOrder, AgentRefusal, AgentReply, Family, References, Retrieved, Workflows};

/// How deep workflows may call workflows.
pub const MAX_DEPTH: u32 = 8;
/// How long a run may take, if nobody allows more.
pub const RUN_LIMIT: Duration = Duration::from_mins(1);
/// The code of a run that begins only if it is an agent's, and is not.
const NOT_AN_AGENT: i64 = 406;

/// What to run and with what.
#[derive(Clone, Debug, Default)]
pub struct InvokeRequest {
    pub references: References,
    /// The key of a deployment, if it is not the workflow's own.
    pub key: Option<String>,
    /// An object, or nothing.
    pub inputs: Value,
    pub session_id: Option<String>,
    /// How many workflows called each other to get here.
    pub depth: u32,
    /// The same for every try of the same run.
    pub idempotency_key: Option<String>,
    /// Runs this instead of the data of the revision.
    pub data: Option<Value>,
    /// An earlier try of the same run has certainly ended: a call that it left open is made again.
    pub resumes: bool,
    /// Says to the service that this run is a try.
    pub is_test: bool,
    /// How long it may take; a minute if nothing is said.
    pub limit: Option<Duration>,
    /// What led to it; the calls of its steps say so.
    pub origin: Origin,
    /// Tools that whoever asks an agent calls itself: `{name, description, parameters}` each.
    pub caller_tools: Vec<Value>,
    /// The run of the same agent whose conversation goes on.
    pub continues: Option<RunId>,
    /// Runs nothing but agents, because only they can be followed while they run.
    pub agents_only: bool,
}

/// How a run ended.
#[derive(Clone, Debug)]
pub struct InvokeReply {
    pub run: RunId,
    pub code: i64,
    pub message: String,
    pub outputs: Option<Value>,
    pub references: Value,
    /// The approval that the step waits for at which it stopped.
    pub waits_for: Option<ApprovalId>,
}

impl InvokeReply {
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.code)
    }
}

/// What a run came to, before it is recorded.
#[derive(Debug)]
pub(crate) struct RunEnd {
    pub(crate) code: i64,
    pub(crate) message: String,
    pub(crate) outputs: Option<Value>,
    pub(crate) waits_for: Option<ApprovalId>,
}

impl RunEnd {
    fn ok(outputs: Value) -> Self {
        Self { code: 200, message: "Success".to_owned(), outputs: Some(outputs), waits_for: None }
    }

    pub(crate) fn failed(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), outputs: None, waits_for: None }
    }
}

/// Records a run also when its caller goes away in the middle.
struct Recorder {
    workflows: Workflows,
    run: Option<Run>,
    log: StepLog,
    started: Instant,
    /// Whether the run says already how it ended.
    is_over: bool,
}

impl Recorder {
    /// Writes the run as it ended; what cannot be written is logged, since the run has happened all the same. A caller that goes away
    /// while it is being written leaves it to the drop.
    async fn finish(mut self, ending: &RunEnd) {
        if let Some(run) = &mut self.run {
            run.code = ending.code;
            run.message = Some(ending.message.clone());
            run.outputs.clone_from(&ending.outputs);
            run.waits_for = ending.waits_for;
            run.duration = self.started.elapsed();
            run.steps = self.log.records();
            self.is_over = true;
            write(&self.workflows, run).await;
        }
        self.run = None;
    }
}

async fn write(workflows: &Workflows, run: &Run) {
    if let Err(error) = workflows.record(run).await {
        tracing::error!(run = %run.id, %error, "a run could not be recorded");
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        let (Some(mut run), Ok(runtime)) = (self.run.take(), tokio::runtime::Handle::try_current()) else { return };
        if !self.is_over {
            run.duration = self.started.elapsed();
            run.steps = self.log.records();
        }
        let workflows = self.workflows.clone();
        runtime.spawn(async move { write(&workflows, &run).await });
    }
}

/// Counts a run as long as it is under way.
struct UnderWay<'a>(&'a Workflows);

impl<'a> UnderWay<'a> {
    fn begin(workflows: &'a Workflows) -> Self {
        workflows.0.running.fetch_add(1, Ordering::Relaxed);
        Self(workflows)
    }
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.0.0.running.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Runs workflows without asking anybody. There is one, and it cannot be copied: whoever holds it asks the project's rules.
#[derive(Debug)]
pub struct Executor(Workflows);

impl Executor {
    pub(crate) fn over(workflows: Workflows) -> Self {
        Self(workflows)
    }

    pub fn workflows(&self) -> &Workflows {
        &self.0
    }

    /// Names who makes the calls of steps; tools come after workflows in the house, so they are named later.
    pub fn set_caller(&self, caller: Arc<dyn StepCaller>) {
        let _ = self.0.0.caller.set(caller);
    }

    /// Runs a revision that was retrieved, whatever the references lead to by now. A run that fails is a reply. Dropping the future cancels
    /// the run.
    #[kernel::boxed]
    pub async fn run(&self, scope: Scope, found: &Retrieved, request: InvokeRequest) -> InvokeReply {
        Box::pin(self.0.run_found(scope, found, request)).await
    }
}

impl Workflows {
    /// How many runs are under way on this node. A run has a row only once it has ended, so nobody knows of those of other nodes.
    pub fn running(&self) -> u64 {
        self.0.running.load(Ordering::Relaxed)
    }

    async fn run_found(&self, scope: Scope, found: &Retrieved, request: InvokeRequest) -> InvokeReply {
        let _under_way = UnderWay::begin(self);
        let run = Run {
            id: RunId::new(),
            project: scope.project,
            workflow: found.artifact.id,
            revision: found.revision.id,
            key: scope.key,
            end_user: scope.end_user(),
            code: CANCELLED,
            message: Some("The caller went away.".to_owned()),
            inputs: request.inputs.clone(),
            outputs: None,
            duration: Duration::ZERO,
            created_at: self.0.clock.now(),
            waits_for: None,
            steps: Vec::new(),
        };
        let id = run.id;
        let log = StepLog::default();
        let mut recorder = Recorder { workflows: self.clone(), run: Some(run), log: log.clone(), started: Instant::now(), is_over: false };
        let ending = match self.prepare(scope, found, &request).await {
            Ok(data) if data::kind(&data) == Some(RevisionKind::Agent) => {
                // An agent's run outlives its caller, so whoever runs it records it.
                let run = recorder.run.take();
                match self.run_agent(scope, found, data, request, id).await {
                    Ok(reply) => return reply,
                    Err(AgentRefusal { code, message }) => {
                        recorder.run = run;
                        RunEnd::failed(code, message)
                    }
                }
            }
            Ok(_) if request.agents_only => RunEnd::failed(
                NOT_AN_AGENT,
                format!(
                    "'{}' is no agent; only runs of agents are streamed, others are answered as application/json.",
                    found.artifact.slug
                ),
            ),
            Ok(data) => self.run_revision(scope, found, &data, &request, id, &log).await,
            Err(refused) => refused,
        };
        recorder.finish(&ending).await;
        let RunEnd { code, message, outputs, waits_for } = ending;
        InvokeReply { run: id, code, message, outputs, references: Value::Object(found.references(Family::Workflow)), waits_for }
    }

    /// The data that runs, with what is embedded in it, if the inputs fit it.
    async fn prepare(&self, scope: Scope, found: &Retrieved, request: &InvokeRequest) -> Result<Value, RunEnd> {
        let Some(stored) = request.data.as_ref().or(found.revision.data.as_ref()) else {
            let (version, slug) = (found.revision.version, &found.artifact.slug);
            return Err(RunEnd::failed(400, format!("Revision {version} of '{slug}' has no data, so there is nothing to run.")));
        };
        if request.depth >= MAX_DEPTH {
            return Err(RunEnd::failed(400, format!("Workflows call each other more than {MAX_DEPTH} deep.")));
        }
        let data = self.with_embeds(scope, stored.clone()).await.map_err(|error| RunEnd::failed(400, error.to_string()))?;
        if let Some(schema) = data::input_schema(&data) {
            self.check_inputs(scope.project, schema, &request.inputs).await?;
        }
        Ok(data)
    }

    async fn run_agent(
        &self,
        scope: Scope,
        found: &Retrieved,
        data: Value,
        request: InvokeRequest,
        run: RunId,
    ) -> Result<InvokeReply, AgentRefusal> {
        let references = Value::Object(found.references(Family::Workflow));
        let limit = request.limit.unwrap_or(RUN_LIMIT);
        let order = AgentOrder { scope, run, workflow: found.artifact.id, revision: found.revision.id, data, request, limit };
        let nobody = || AgentRefusal { code: 501, message: "Nobody runs agents here.".to_owned() };
        let AgentReply { run, code, message, outputs, waits_for } = self.0.agents.get().ok_or_else(nobody)?.run(order).await?;
        Ok(InvokeReply { run, code, message, outputs, references, waits_for })
    }

    async fn run_revision(
        &self,
        scope: Scope,
        found: &Retrieved,
        data: &Value,
        request: &InvokeRequest,
        run: RunId,
        log: &StepLog,
    ) -> RunEnd {
        let most = request.limit.unwrap_or(RUN_LIMIT);
        let limit = data::time_limit(data).map_or(most, |limit| limit.min(most));
        let post = |below| Post { project: scope.project, run, found, data, request, below, limit };
        let work = async {
            match data::kind(data) {
                Some(RevisionKind::Echo) => RunEnd::ok(request.inputs.clone()),
                Some(RevisionKind::Steps) => self.run_steps(scope, data, request, log, run).await,
                Some(RevisionKind::Http) => self.run_http(post("")).await,
                Some(RevisionKind::Service) => self.run_http(post("/invoke")).await,
                Some(RevisionKind::Agent) | None => RunEnd::failed(400, "Workflow revision has no runnable service URL."),
            }
        };
        let late = |_| RunEnd::failed(504, format!("The run took longer than {} ms.", limit.as_millis()));
        let ending = tokio::time::timeout(limit, work).await.unwrap_or_else(late);
        if ending.outputs.as_ref().is_some_and(|outputs| depth_exceeds(outputs, MAX_NESTING)) {
            return RunEnd::failed(424, format!("The outputs are nested more than {MAX_NESTING} deep."));
        }
        ending
    }

    async fn run_steps(&self, scope: Scope, data: &Value, request: &InvokeRequest, log: &StepLog, run: RunId) -> RunEnd {
        let Some(caller) = self.0.caller.get() else { return RunEnd::failed(501, "Nobody makes the calls of steps here.") };
        let read = |data: &Value, _: &Budget| Steps::parse(data).map_err(|error| NotBegun(400, error));
        let size = size(data, LARGE);
        let steps = match self.0.workers.over(scope.project, size, data, read).await {
            Ok(steps) => steps,
            Err(refused) => return refused.into(),
        };
        let frame = Frame {
            caller: caller.as_ref(),
            workers: &self.0.workers,
            scope,
            inputs: &request.inputs,
            depth: request.depth + 1,
            in_test: request.is_test,
            resumes: request.resumes,
            idempotency_key: request.idempotency_key.as_deref(),
            log,
            clock: &self.0.clock,
            origin: &Origin { run: Some(run), ..request.origin.clone() },
        };
        match steps.run(&frame).await {
            Ok(outputs) => RunEnd::ok(outputs),
            Err(StepError::Failed { code, message }) => RunEnd::failed(code, message),
            Err(StepError::Unknown(message)) => RunEnd::failed(OUTCOME_UNKNOWN, message),
            Err(StepError::Waiting { approval, message }) => RunEnd { waits_for: Some(approval), ..RunEnd::failed(424, message) },
        }
    }
}

impl Workflows {
    async fn check_inputs(&self, project: ProjectId, schema: &Value, inputs: &Value) -> Result<(), NotBegun> {
        let wrong = |error: SchemaError| NotBegun(400, error.to_string());
        let workers = &self.0.workers;
        let compiled = workers.over(project, schema::weigh(schema, LARGE), schema, move |schema, _| Schema::compile(schema).map_err(wrong));
        let schema = compiled.await?;
        let empty = Value::Object(Map::new());
        let inputs = if inputs.is_null() { &empty } else { inputs };
        let size = schema.weigh(inputs, LARGE);
        let check = move |inputs: &Value, _: &Budget| {
            schema.check(inputs).map_err(|said| NotBegun(400, format!("Invalid inputs: {}", Violation::join(&said))))
        };
        workers.over(project, size, inputs, check).await
    }
}

/// Why a run does not begin, and its code.
pub(crate) struct NotBegun(i64, String);

impl From<WorkError> for NotBegun {
    fn from(error: WorkError) -> Self {
        Self(if error == WorkError::Busy { 429 } else { 400 }, error.to_string())
    }
}

impl From<NotBegun> for RunEnd {
    fn from(NotBegun(code, message): NotBegun) -> Self {
        Self::failed(code, message)
    }
}
