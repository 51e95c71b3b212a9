//! Runs a workflow with what is typed into a form made from its inputs.

use askama::Template;
use axum::extract::{Path as Segments, Query};
use http::{Method, StatusCode};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::edit::read_json;
use super::runs::inputs_of;
use super::{Environment, Revision, RevisionAnswer, Workflow, pretty, tabs};
use crate::api::Answer;
use crate::form::Form;
use crate::frame::{Frame, Link, Section, see_other, show_refused};
use crate::refusal::{PageResult, Refusal};
use crate::ui::{self, Control, arguments, controls};
use crate::visit::Visit;

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct FormQuery {
    environment: Option<String>,
    /// `json`: one box for all inputs.
    r#as: Option<String>,
    /// A run whose inputs are to be used again.
    run_id: Option<String>,
}

#[derive(Template)]
#[template(path = "workflow_run.html")]
struct RunPage {
    frame: Frame,
    all: String,
    here: String,
    tabs: Vec<Link>,
    workflow: Workflow,
    /// Where it is deployed, with the version there.
    places: Vec<(String, String)>,
    environment: String,
    version: String,
    controls: Vec<Control>,
    /// Whether the inputs have a form of their own.
    has_form: bool,
    is_json: bool,
    inputs: String,
    /// The run that came to nothing.
    run: Option<String>,
}

/// What is to be run and how its inputs are typed.
struct Wanted {
    environment: String,
    is_json: bool,
    /// What the inputs were before.
    given: Map<String, Value>,
}

pub(super) async fn form(visit: Visit, Segments((_, id)): Segments<(String, String)>, Query(query): Query<FormQuery>) -> PageResult {
    let given = match query.run_id.filter(|run| !run.is_empty()) {
        Some(run) => inputs_of(&visit, &run).await,
        None => Map::new(),
    };
    let wanted = Wanted { environment: query.environment.unwrap_or_default(), is_json: query.r#as.as_deref() == Some("json"), given };
    let workflow = Workflow::read(&visit, &id).await?;
    match revision(&visit, &workflow, &wanted.environment).await {
        Ok((version, data)) => show_form(&visit, workflow, wanted, version, &data, None, None).await,
        Err(refusal) => show_form(&visit, workflow, wanted, String::new(), &Value::Null, None, Some((refusal, None))).await,
    }
}

/// The version that would run, and its data.
async fn revision(visit: &Visit, workflow: &Workflow, environment: &str) -> Result<(String, Value), Refusal> {
    if environment.is_empty() {
        return Ok((workflow.version.clone().unwrap_or_default(), workflow.data.clone()));
    }
    let asked = json!({"workflow_ref": {"id": workflow.id}, "environment_ref": {"slug": environment}});
    let answer: RevisionAnswer = visit.post("/workflows/revisions/retrieve", asked).await?;
    let revision: Revision = answer.workflow_revision.ok_or_else(Refusal::not_found)?;
    Ok((revision.version, revision.data))
}

/// The form; after a refusal with what was typed, and the run that there was.
async fn show_form(
    visit: &Visit,
    workflow: Workflow,
    wanted: Wanted,
    version: String,
    data: &Value,
    typed: Option<&Form>,
    refused: Option<(Refusal, Option<String>)>,
) -> PageResult {
    let (refusal, run) = refused.map_or((None, None), |(refusal, run)| (Some(refusal), run));
    let schema = &data["schemas"]["inputs"];
    let controls = filled(controls(schema, &wanted.given), typed);
    let places = Environment::all(visit).await?.into_iter().filter_map(|environment| {
        let deployed = environment.deployments_of(&workflow.id).into_iter().next()?;
        Some((environment.slug, deployed.version))
    });
    let all = visit.page("workflows");
    let page = RunPage {
        frame: Frame::new(visit, Section::Workflows, format!("Run {}", workflow.title())).refused(refusal.as_ref()),
        here: all.clone().at(&workflow.id).into(),
        all: all.into(),
        tabs: tabs(visit, &workflow, "run"),
        places: places.collect(),
        environment: wanted.environment,
        version,
        has_form: !controls.is_empty(),
        is_json: wanted.is_json || controls.is_empty(),
        controls,
        inputs: typed.map_or_else(|| pretty(&Value::Object(wanted.given)), |form| form.raw("inputs").to_owned()),
        run,
        workflow,
    };
    show_refused(refusal.as_ref(), &page)
}

/// Controls with what was typed into them, whether or not it can be read.
fn filled(mut controls: Vec<Control>, typed: Option<&Form>) -> Vec<Control> {
    if let Some(form) = typed {
        for control in controls.iter_mut().filter(|control| form.has(&control.field)) {
            form.raw(&control.field).clone_into(&mut control.value);
        }
    }
    controls
}

pub(super) async fn run(visit: Visit, Segments((_, id)): Segments<(String, String)>, form: Form) -> PageResult {
    let wanted = Wanted { environment: form.text("environment").to_owned(), is_json: form.text("as") == "json", given: Map::new() };
    let workflow = Workflow::read(&visit, &id).await?;
    let (version, data) = revision(&visit, &workflow, &wanted.environment).await?;
    let inputs = match inputs(&data["schemas"]["inputs"], &form, wanted.is_json) {
        Ok(inputs) => inputs,
        Err(words) => {
            let refusal = Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, words);
            return show_form(&visit, workflow, wanted, version, &data, Some(&form), Some((refusal, None))).await;
        }
    };
    let mut references = json!({"workflow": {"id": workflow.id}});
    if !wanted.environment.is_empty() {
        references["environment"] = json!({"slug": wanted.environment});
    }
    let answer = visit.send(Method::POST, "/workflows/invoke", Some(json!({"references": references, "data": {"inputs": inputs}}))).await;
    match outcome(&answer) {
        Outcome::Run(run) => see_other(visit.page("workflows").at("runs").at(run)),
        Outcome::Approval(approval) => see_other(visit.page("approvals").at(approval)),
        Outcome::Refused(refusal, run) => show_form(&visit, workflow, wanted, version, &data, Some(&form), Some((refusal, run))).await,
    }
}

fn inputs(schema: &Value, form: &Form, is_json: bool) -> Result<Value, String> {
    if !is_json {
        return arguments(schema, form).map(Value::Object);
    }
    let text = form.raw("inputs").replace("\r\n", "\n");
    if text.trim().is_empty() { Ok(json!({})) } else { read_json(&text) }
}

/// What a run came to: a page of its own, or the form again.
#[derive(Debug)]
enum Outcome {
    Run(String),
    Approval(String),
    /// With the run, if there was one.
    Refused(Refusal, Option<String>),
}

fn outcome(answer: &Answer) -> Outcome {
    let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let text = |value: &Value| value.as_str().map(str::to_owned);
    if let Some(approval) = text(&body["approval"]["id"]) {
        return Outcome::Approval(approval);
    }
    match text(&body["meta"]["run_id"]) {
        // Inputs that do not fit are mended in the form.
        Some(run) if answer.status == StatusCode::BAD_REQUEST => {
            let words = text(&body["status"]["message"]).unwrap_or_else(|| "The run failed.".to_owned());
            Outcome::Refused(Refusal::new(answer.status, words), Some(run))
        }
        Some(run) => Outcome::Run(run),
        None => Outcome::Refused(Refusal::of(answer), None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(status: u16, body: &Value) -> Outcome {
        outcome(&Answer { status: StatusCode::from_u16(status).unwrap(), body: body.to_string().into() })
    }

    #[test]
    fn a_run_that_was_made_has_its_page_even_if_it_failed() {
        assert!(matches!(answered(200, &json!({"meta": {"run_id": "r"}})), Outcome::Run(run) if run == "r"));
        assert!(matches!(answered(424, &json!({"meta": {"run_id": "r"}, "status": {"message": "no"}})), Outcome::Run(_)));
        assert!(matches!(answered(202, &json!({"approval": {"id": "a"}})), Outcome::Approval(id) if id == "a"));
    }

    #[test]
    fn inputs_that_do_not_fit_lead_back_to_the_form() {
        let refused = answered(400, &json!({"meta": {"run_id": "r"}, "status": {"message": "Invalid inputs"}}));
        assert!(matches!(refused, Outcome::Refused(refusal, Some(run)) if refusal.words == "Invalid inputs" && run == "r"));
        assert!(matches!(answered(404, &json!({"detail": "gone"})), Outcome::Refused(refusal, None) if refusal.words == "gone"));
    }

    #[test]
    fn inputs_come_from_the_form_or_the_box() {
        let schema = json!({"properties": {"n": {"type": "integer"}}});
        let form = Form(vec![("arg.n".to_owned(), "3".to_owned()), ("inputs".to_owned(), "{\"m\": 4}".to_owned())]);
        assert_eq!(inputs(&schema, &form, false), Ok(json!({"n": 3})));
        assert_eq!(inputs(&schema, &form, true), Ok(json!({"m": 4})));
        assert_eq!(inputs(&schema, &Form::default(), true), Ok(json!({})));
    }
}
