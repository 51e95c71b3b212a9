//! Steps: an ordered list of tool calls whose arguments are templates over the inputs and the results before them.

mod names;
mod record;
mod targets;

use std::sync::{Arc, LazyLock};

use futures_util::future::BoxFuture;
use kernel::json::{MAX_DEPTH, depth_exceeds};
use kernel::template::{Engine, Template};
use kernel::{ApprovalId, Budget, CallRef, Clock, Origin, Scope, hex};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use work::{LARGE, WorkError, Workers};

pub(crate) use self::record::StepLog;
pub use self::record::{MAX_RUN, StepRecord, StepState};
use crate::WorkflowError;

static ENGINE: LazyLock<Engine> = LazyLock::new(Engine::strict);
const MAX_STEPS: usize = 50;
const MAX_NAME: usize = 64;
/// As long as an Idempotency-Key may be.
const MAX_KEY: usize = 255;

/// The code of a run that ended at a call whose outcome nobody knows; no trigger repeats it.
pub(crate) const OUTCOME_UNKNOWN: i64 = 409;

/// One call of a step.
#[derive(Clone, Debug)]
pub struct StepCall {
    pub scope: Scope,
    pub target: CallRef,
    pub arguments: Map<String, Value>,
    /// How many workflows called each other to get here.
    pub depth: u32,
    /// Whether this is part of a test run.
    pub in_test: bool,
    /// An earlier try of the same run has certainly ended.
    pub resumes: bool,
    /// A call that may have taken effect is not made again: the run ends as one whose outcome is unknown.
    pub stops_when_uncertain: bool,
    /// The same for every try of the same run.
    pub idempotency_key: Option<String>,
    /// What led to it: the run, the step, and what led to those.
    pub origin: Origin,
}

/// Makes the calls of steps.
pub trait StepCaller: Send + Sync + std::fmt::Debug {
    /// Calls a tool by its ref.
    fn call(&self, call: StepCall) -> BoxFuture<'_, Result<Value, StepError>>;

    /// Refuses a ref that leads to no tool of the project, in words for the author. What cannot be known now is left to the run.
    fn check<'a>(&'a self, scope: Scope, target: &'a CallRef) -> BoxFuture<'a, Result<(), WorkflowError>>;
}

/// A step that came to no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StepError {
    /// What the tool or the way to it said, with the status that it means for the run.
    #[error("{message}")]
    Failed { code: i64, message: String },
    /// Somebody has to allow it first. The run ends here and is made again then.
    #[error("{message}")]
    Waiting { approval: ApprovalId, message: String },
    /// Nobody can tell whether it took effect, and it must not be made twice.
    #[error("{0}")]
    Unknown(String),
}

impl StepError {
    pub fn failed(code: i64, message: impl Into<String>) -> Self {
        Self::Failed { code, message: message.into() }
    }

    /// A step whose templates come to nothing that can be called: the same run would fail again.
    fn wrong(error: &dyn std::fmt::Display) -> Self {
        Self::failed(400, error.to_string())
    }

    /// A failure to fill in the run's result, with the status that it has.
    fn in_result(self) -> Self {
        match self {
            Self::Failed { code, message } => Self::failed(code, format!("result: {message}")),
            other => other,
        }
    }

    fn of(self, step: &str) -> Self {
        match self {
            Self::Failed { code, message } => Self::failed(code, format!("step `{step}`: {message}")),
            Self::Waiting { approval, message } => Self::Waiting { approval, message: format!("step `{step}`: {message}") },
            Self::Unknown(message) => Self::Unknown(format!("step `{step}`: {message}")),
        }
    }
}

impl From<WorkError> for StepError {
    fn from(error: WorkError) -> Self {
        Self::failed(if error == WorkError::Busy { 429 } else { 400 }, error.to_string())
    }
}

/// What steps run under.
#[derive(Debug)]
pub(crate) struct Frame<'a> {
    pub(crate) caller: &'a dyn StepCaller,
    pub(crate) workers: &'a Workers,
    pub(crate) scope: Scope,
    pub(crate) inputs: &'a Value,
    pub(crate) depth: u32,
    pub(crate) in_test: bool,
    pub(crate) resumes: bool,
    pub(crate) idempotency_key: Option<&'a str>,
    pub(crate) log: &'a StepLog,
    pub(crate) clock: &'a Clock,
    pub(crate) origin: &'a Origin,
}

impl Frame<'_> {
    async fn render(&self, template: &Arc<Template>, context: &Arc<Value>) -> Result<Option<Value>, StepError> {
        let size = template.weigh(context, LARGE);
        let fill = |(template, context): &(Arc<Template>, Arc<Value>), budget: &Budget| {
            template.render(context, budget).map_err(|error| StepError::wrong(&error))
        };
        self.workers.over(self.scope.project, size, &(template.clone(), context.clone()), fill).await
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StepSpec {
    name: String,
    call: String,
    #[serde(default)]
    arguments: Value,
    /// The step is left out unless this is true.
    #[serde(default)]
    when: Option<String>,
    #[serde(default)]
    on_error: OnError,
    #[serde(default)]
    on_uncertain: Option<OnUncertain>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum OnError {
    #[default]
    Stop,
    Continue,
}

/// What becomes of a call that an earlier try of the run may have made already.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "snake_case")]
enum OnUncertain {
    #[default]
    Repeat,
    Stop,
}

/// Compiled steps.
#[derive(Debug)]
pub(crate) struct Steps {
    steps: Vec<Step>,
    result: Option<Arc<Template>>,
}

#[derive(Debug)]
struct Step {
    name: String,
    call: CallRef,
    arguments: Arc<Template>,
    when: Option<Arc<Template>>,
    on_error: OnError,
    on_uncertain: OnUncertain,
}

impl Steps {
    /// Reads and compiles; the error is for the author.
    pub(crate) fn parse(data: &Value) -> Result<Self, String> {
        let specs = data.get("steps").cloned().unwrap_or_else(|| json!([]));
        let specs: Vec<StepSpec> = serde_json::from_value(specs).map_err(|error| format!("`data.steps`: {error}"))?;
        if specs.is_empty() || specs.len() > MAX_STEPS {
            return Err(format!("`data.steps` must hold 1 to {MAX_STEPS} steps"));
        }
        let on_uncertain = data.get("on_uncertain").filter(|word| !word.is_null()).map(OnUncertain::deserialize).transpose();
        let on_uncertain = on_uncertain.map_err(|error| format!("`data.on_uncertain`: {error}"))?.unwrap_or_default();
        let mut steps: Vec<Step> = Vec::with_capacity(specs.len());
        for (index, spec) in specs.into_iter().enumerate() {
            let at = |error: &dyn std::fmt::Display| format!("`data.steps.{index}`: {error}");
            let word =
                (1..=MAX_NAME).contains(&spec.name.len()) && spec.name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
            if !word || steps.iter().any(|known| known.name == spec.name) {
                return Err(at(&format!("name `{}` must be a word of its own, of at most {MAX_NAME} letters", spec.name)));
            }
            let call = spec.call.parse::<CallRef>().map_err(|error| at(&error))?;
            let arguments = if spec.arguments.is_null() { json!({}) } else { spec.arguments };
            let when = spec.when.map(|when| ENGINE.compile(&json!(wrapped(&when)))).transpose().map_err(|error| at(&error))?;
            let arguments = ENGINE.compile(&arguments).map_err(|error| at(&error))?;
            steps.push(Step {
                name: spec.name,
                call,
                arguments: Arc::new(arguments),
                when: when.map(Arc::new),
                on_error: spec.on_error,
                on_uncertain: spec.on_uncertain.unwrap_or(on_uncertain),
            });
        }
        let result =
            data.get("result").map(|result| ENGINE.compile(result)).transpose().map_err(|error| format!("`data.result`: {error}"))?;
        Ok(Self { steps, result: result.map(Arc::new) })
    }

    /// What the steps call, in their order.
    pub(crate) fn calls(&self) -> impl Iterator<Item = &CallRef> {
        self.steps.iter().map(|step| &step.call)
    }

    /// Runs the steps in order. The error names the step that ended it.
    pub(crate) async fn run(&self, frame: &Frame<'_>) -> Result<Value, StepError> {
        let mut context = Arc::new(json!({"inputs": frame.inputs, "steps": {}}));
        let mut last = Value::Null;
        for step in &self.steps {
            frame.log.begin(&step.name, step.call.to_string(), frame.clock.now());
            let outcome = step.run(frame, &context).await;
            frame.log.end(&outcome);
            Arc::make_mut(&mut context)["steps"][&step.name] = match outcome.map_err(|error| error.of(&step.name))? {
                StepOutcome::Skipped => json!({"ok": false, "skipped": true}),
                StepOutcome::Failed { message, .. } => json!({"ok": false, "skipped": false, "error": message}),
                StepOutcome::Done(result) => {
                    last.clone_from(&result);
                    json!({"ok": true, "skipped": false, "result": result})
                }
            };
        }
        match &self.result {
            Some(template) => {
                let result = frame.render(template, &context).await.map_err(StepError::in_result)?;
                Ok(result.unwrap_or(Value::Null))
            }
            None => Ok(last),
        }
    }
}

/// What a step came to, when the run goes on.
enum StepOutcome {
    Skipped,
    Done(Value),
    Failed { code: i64, message: String },
}

impl Step {
    async fn run(&self, frame: &Frame<'_>, context: &Arc<Value>) -> Result<StepOutcome, StepError> {
        if let Some(when) = &self.when
            && !is_true(frame.render(when, context).await?.as_ref())
        {
            return Ok(StepOutcome::Skipped);
        }
        let arguments = frame.render(&self.arguments, context).await?.unwrap_or_else(|| json!({}));
        if depth_exceeds(&arguments, MAX_DEPTH) {
            return Err(StepError::wrong(&format_args!("the arguments are nested more than {MAX_DEPTH} deep")));
        }
        frame.log.arguments(&arguments);
        let Value::Object(arguments) = arguments else { return Err(StepError::wrong(&"the arguments are not an object")) };
        let call = StepCall {
            scope: frame.scope,
            target: self.call.clone(),
            arguments,
            depth: frame.depth,
            in_test: frame.in_test,
            resumes: frame.resumes,
            stops_when_uncertain: self.on_uncertain == OnUncertain::Stop,
            idempotency_key: frame.idempotency_key.map(|key| derived_key(key, &self.name)),
            origin: Origin { step: Some(self.name.clone()), ..frame.origin.clone() },
        };
        match frame.caller.call(call).await {
            Ok(result) => Ok(StepOutcome::Done(result)),
            Err(StepError::Failed { code, message }) if self.on_error == OnError::Continue => Ok(StepOutcome::Failed { code, message }),
            Err(error) => Err(error),
        }
    }
}

/// The key of a step's call: the run's own and the step's name, or a digest of them where that would be too long.
fn derived_key(run: &str, step: &str) -> String {
    let key = format!("{run}:{step}");
    if key.len() <= MAX_KEY {
        return key;
    }
    format!("sha256:{}", hex::encode(&Sha256::digest(key)))
}

/// A condition may be written with or without braces.
fn wrapped(when: &str) -> String {
    if when.contains("{{") { when.to_owned() } else { format!("{{{{ {when} }}}}") }
}

fn is_true(value: Option<&Value>) -> bool {
    match value {
        None | Some(Value::Null | Value::Bool(false)) => false,
        Some(Value::String(text)) => !text.is_empty() && text != "false",
        Some(Value::Number(number)) => number.as_f64() != Some(0.0),
        Some(Value::Array(items)) => !items.is_empty(),
        Some(Value::Object(fields)) => !fields.is_empty(),
        Some(Value::Bool(true)) => true,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use kernel::{KeyId, PermissionSet, ProjectId};

    use super::*;

    /// Answers with the arguments, fails for refs that end in `bad`, and remembers what was called.
    #[derive(Debug, Default)]
    struct Echo(Mutex<Vec<(String, Option<String>)>>);

    impl StepCaller for Echo {
        fn call(&self, call: StepCall) -> BoxFuture<'_, Result<Value, StepError>> {
            let name = call.target.to_string();
            self.0.lock().unwrap().push((name.clone(), call.idempotency_key));
            let result = if name.ends_with("bad") { Err(StepError::failed(404, "it broke")) } else { Ok(Value::Object(call.arguments)) };
            Box::pin(async { result })
        }

        fn check<'a>(&'a self, _: Scope, _: &'a CallRef) -> BoxFuture<'a, Result<(), WorkflowError>> {
            Box::pin(async { Ok(()) })
        }
    }

    async fn run(data: Value, inputs: Value) -> (Result<Value, StepError>, Vec<(String, Option<String>)>) {
        let caller = Echo::default();
        let scope = Scope {
            project: ProjectId::new(),
            key: KeyId::new(),
            user: None,
            permissions: PermissionSet::default(),
            is_for_agents: false,
            acts_for: kernel::AccountOwner::Project,
        };
        let frame = Frame {
            caller: &caller,
            workers: &Workers::default(),
            scope,
            inputs: &inputs,
            depth: 1,
            in_test: false,
            resumes: false,
            idempotency_key: Some("d1"),
            log: &StepLog::default(),
            clock: &Clock::system(),
            origin: &Origin::default(),
        };
        let result = Steps::parse(&data).unwrap().run(&frame).await;
        (result, caller.0.into_inner().unwrap())
    }

    #[tokio::test]
    async fn steps_see_the_inputs_and_each_other() {
        let data = json!({
            "steps": [
                {"name": "find", "call": "workflow.variant.find", "arguments": {"q": "{{ inputs.title }}", "n": "{{ inputs.n }}"}},
                {"name": "never", "call": "workflow.variant.bad", "when": "inputs.n > 100"},
                {"name": "try", "call": "workflow.variant.bad", "on_error": "continue"},
                {"name": "say", "call": "workflow.variant.say", "when": "{{ not steps.try.ok }}", "arguments": {"text": "got {{ steps.find.result.n }}"}},
            ],
            "result": {"text": "{{ steps.say.result.text }}", "skipped": "{{ steps.never.skipped }}", "why": "{{ steps.try.error }}"},
        });
        let (result, called) = run(data, json!({"title": "t", "n": 7})).await;
        assert_eq!(result.unwrap(), json!({"text": "got 7", "skipped": true, "why": "it broke"}));
        let keys: Vec<&str> = called.iter().filter_map(|(_, key)| key.as_deref()).collect();
        assert_eq!(keys, ["d1:find", "d1:try", "d1:say"]);
    }

    #[tokio::test]
    async fn a_failing_step_ends_the_run_and_is_named() {
        let data = json!({"steps": [{"name": "a", "call": "workflow.variant.bad"}, {"name": "b", "call": "workflow.variant.b"}]});
        let (result, called) = run(data, json!({})).await;
        assert_eq!((result.unwrap_err(), called.len()), (StepError::failed(404, "step `a`: it broke"), 1));
    }

    #[tokio::test]
    async fn what_is_missing_ends_the_run_before_anything_is_called() {
        for (step, words) in [
            (json!({"arguments": {"customer": "{{ inputs.custmer }}"}}), "step `a`: /customer: `inputs.custmer` is missing"),
            (json!({"when": "inputs.custmer"}), "step `a`: /: `inputs.custmer` is missing"),
            (json!({"when": "inputs.customer and not inputs.gone"}), "`inputs.gone` is missing"),
        ] {
            let mut whole = json!({"name": "a", "call": "workflow.variant.find"});
            whole.as_object_mut().unwrap().extend(step.as_object().unwrap().clone());
            let (result, called) = run(json!({"steps": [whole]}), json!({"customer": "c"})).await;
            let error = result.unwrap_err().to_string();
            assert!(error.contains(words) && called.is_empty(), "{step}: {error}");
        }
        let step = json!({"name": "a", "call": "workflow.variant.find", "when": "inputs.custmer is defined"});
        let (result, called) = run(json!({"steps": [step], "result": "{{ steps.a.result }}"}), json!({})).await;
        assert!(result.unwrap_err().to_string().contains("result: /: `steps.a.result` is missing") && called.is_empty());
        let step = json!({"name": "a", "call": "workflow.variant.find", "arguments": {"q": "{{ inputs.q | default(omit) }}", "n": 1}});
        assert_eq!(run(json!({"steps": [step]}), json!({})).await.0.unwrap(), json!({"n": 1}));
    }

    #[test]
    fn the_keys_of_steps_are_never_too_long() {
        let long = "k".repeat(MAX_KEY);
        assert_eq!(derived_key("run", "step"), "run:step");
        assert!(derived_key(&long, "a").len() <= MAX_KEY);
        assert_ne!(derived_key(&long, "a"), derived_key(&long, "b"));
    }

    #[test]
    fn broken_steps_are_told_apart() {
        for (steps, part) in [
            (json!("x"), "`data.steps`"),
            (json!([{"name": "a"}]), "call"),
            (json!([{"name": "a".repeat(65), "call": "workflow.variant.x"}]), "at most 64 letters"),
            (json!([{"name": "a b", "call": "workflow.variant.x"}]), "must be a word of its own"),
            (json!([{"name": "a", "call": "workflow.variant.x"}, {"name": "a", "call": "workflow.variant.x"}]), "`data.steps.1`"),
            (json!([{"name": "a", "call": "nope"}]), "Invalid tool slug"),
            (json!([{"name": "a", "call": "workflow.variant.x", "arguments": {"q": "{{ 1 + }}"}}]), "/q"),
            (json!([{"name": "a", "call": "workflow.variant.x", "when": "1 +"}]), "`data.steps.0`"),
            (json!([{"name": "a", "call": "workflow.variant.x", "retry": 1}]), "retry"),
        ] {
            let error = Steps::parse(&json!({"steps": steps})).unwrap_err();
            assert!(error.contains(part), "{steps}: {error}");
        }
    }
}
