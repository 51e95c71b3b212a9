//! The pages: one to find a tool, and one to fill in its arguments and run it.

use std::time::Instant;

use askama::Template;
use axum::extract::Query;
use http::{Method, StatusCode};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::choice::{Choice, ChoiceQuery};
use super::code::{self, Sample};
use super::find::{self, Found, Recent};
use super::result::{self, Outcome};
use super::tool::{self, Tool};
use crate::form::Form;
use crate::frame::{Frame, Section, show_refused, show_with};
use crate::refusal::{PageResult, Refusal};
use crate::ui::{self, Control};
use crate::visit::Visit;

const NO_SUCH_REF: &str =
    "That is no tool that can be tried here. A ref is tools.{provider}.{integration}.{action}.{connection} or workflow.variant.{slug}.";

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct PageQuery {
    q: String,
    tab: String,
    #[serde(flatten)]
    chosen: ChoiceQuery,
}

pub(super) async fn show_page(visit: Visit, Query(query): Query<PageQuery>) -> PageResult {
    match query.chosen.choice() {
        Some(choice) => show_tool(&visit, &choice, query.tab == "raw").await,
        None => show_finder(&visit, &query).await,
    }
}

#[derive(Template)]
#[template(path = "try.html")]
struct FinderPage {
    frame: Frame,
    here: String,
    sentence: String,
    call_ref: String,
    found: Option<Found>,
    recent: Vec<Recent>,
}

async fn show_finder(visit: &Visit, query: &PageQuery) -> PageResult {
    let sentence = query.q.trim();
    let call_ref = query.chosen.call_ref();
    let (found, refusal) = if !call_ref.is_empty() {
        (None, Some(Refusal::new(StatusCode::NOT_FOUND, NO_SUCH_REF)))
    } else if sentence.is_empty() {
        (None, None)
    } else {
        match find::find(visit, sentence).await {
            Ok(found) => (Some(found), None),
            Err(refusal) => (None, Some(refusal)),
        }
    };
    let page = FinderPage {
        frame: Frame::new(visit, Section::Try, "Try a tool").refused(refusal.as_ref()),
        here: visit.page("try").into(),
        sentence: sentence.to_owned(),
        call_ref: call_ref.to_owned(),
        recent: if found.is_none() { find::recent(visit).await } else { Vec::new() },
        found,
    };
    show_refused(refusal.as_ref(), &page)
}

/// What was typed into the arguments of a tool.
#[derive(Debug)]
struct Typed {
    is_raw: bool,
    controls: Vec<Control>,
    raw: String,
    /// As far as they could be read.
    arguments: Map<String, Value>,
}

impl Typed {
    /// A form with the values that the schema proposes.
    fn fresh(schema: &Value, is_raw: bool) -> Self {
        let controls = ui::controls(schema, &Map::new());
        let arguments = ui::arguments(schema, &form_of(&controls)).unwrap_or_default();
        Self { is_raw: is_raw || controls.is_empty() && takes_more(schema), raw: pretty(&arguments), arguments, controls }
    }

    /// What came back from the page, and what is wrong with it.
    fn of_form(schema: &Value, form: &Form) -> (Self, Option<String>) {
        let is_raw = form.text("tab") == "raw";
        let read = if is_raw { ui::json_object(form.raw("arguments")) } else { ui::arguments(schema, form) };
        let mut controls = ui::controls(schema, &Map::new());
        for control in &mut controls {
            control.value = form.raw(&control.field).to_owned();
        }
        let (arguments, wrong) = match read {
            Ok(arguments) => (arguments, None),
            Err(words) => (Map::new(), Some(words)),
        };
        (Self { is_raw, controls, raw: form.raw("arguments").to_owned(), arguments }, wrong)
    }

    /// The same as one box of JSON.
    fn into_raw(self) -> Self {
        Self { is_raw: true, raw: pretty(&self.arguments), ..self }
    }

    /// The same as a form, unless a form cannot hold it.
    fn into_form(self, schema: &Value) -> (Self, Option<String>) {
        let mut controls = ui::controls(schema, &self.arguments);
        for control in &mut controls {
            if !self.arguments.contains_key(&control.name) {
                control.value.clear();
            }
        }
        if ui::arguments(schema, &form_of(&controls)).as_ref() == Ok(&self.arguments) {
            (Self { is_raw: false, controls, ..self }, None)
        } else {
            (self, Some("The form cannot hold these arguments as they are; go on with JSON.".to_owned()))
        }
    }
}

fn form_of(controls: &[Control]) -> Form {
    Form(controls.iter().map(|control| (control.field.clone(), control.value.clone())).collect())
}

fn pretty(arguments: &Map<String, Value>) -> String {
    serde_json::to_string_pretty(arguments).unwrap_or_default()
}

fn takes_more(schema: &Value) -> bool {
    schema.get("additionalProperties") != Some(&Value::Bool(false))
}

#[derive(Template)]
#[template(path = "try_tool.html")]
struct ToolPage {
    frame: Frame,
    all: String,
    run: String,
    as_form: String,
    as_raw: String,
    /// The fields that name the tool.
    chosen: Vec<(&'static str, String)>,
    tool: Tool,
    typed: Typed,
    may_run: bool,
    /// Where the rules that hold for it are explained, one is made, and a workflow that calls it is written.
    explain: String,
    rule: Option<String>,
    workflow: Option<String>,
    outcome: Option<Outcome>,
    samples: Vec<Sample>,
}

fn tool_page(visit: &Visit, choice: &Choice, tool: Tool, typed: Typed) -> ToolPage {
    let here = choice.page(visit);
    let call =
        code::WrittenCall { url: &visit.public_url, call_ref: &tool.call_ref, mcp_name: &tool.mcp_name, arguments: &typed.arguments };
    ToolPage {
        frame: Frame::new(visit, Section::Try, tool.title.clone()),
        all: visit.page("try").into(),
        run: visit.page("try").at("run").into(),
        as_form: here.clone().into(),
        as_raw: here.with("tab", "raw").into(),
        chosen: chosen_fields(choice),
        may_run: visit.may("run_tools") && tool.can_be_called(),
        explain: format!("{}#explain", visit.page("permissions").with("ref", &tool.call_ref)),
        rule: visit.may("edit_tools").then(|| visit.page("permissions").with("pattern", choice.pattern()).into()),
        workflow: visit.may("edit_workflows").then(|| visit.page("workflows").at("new").with("ref", &tool.call_ref).into()),
        outcome: None,
        samples: code::samples(&call),
        tool,
        typed,
    }
}

fn chosen_fields(choice: &Choice) -> Vec<(&'static str, String)> {
    match choice {
        Choice::Action { provider, integration, action, .. } => {
            vec![("provider", provider.clone()), ("integration", integration.clone()), ("action", action.clone())]
        }
        Choice::Workflow { call_ref, .. } => vec![("ref", call_ref.clone())],
    }
}

async fn show_tool(visit: &Visit, choice: &Choice, is_raw: bool) -> PageResult {
    let tool = tool::read(visit, choice).await?;
    let typed = Typed::fresh(&tool.schema, is_raw);
    show_with(StatusCode::OK, &tool_page(visit, choice, tool, typed))
}

/// Runs the tool, or shows what was typed in another way.
pub(super) async fn run(visit: Visit, form: Form) -> PageResult {
    let choice = ChoiceQuery::of_form(&form).choice().ok_or_else(|| Refusal::new(StatusCode::BAD_REQUEST, NO_SUCH_REF))?;
    let tool = tool::read(&visit, &choice).await?;
    let (typed, wrong) = Typed::of_form(&tool.schema, &form);
    let (typed, wrong) = match (form.text("go"), wrong) {
        (_, Some(wrong)) => (typed, Some(wrong)),
        ("raw", None) => (typed.into_raw(), None),
        ("form", None) => typed.into_form(&tool.schema),
        _ => (typed, None),
    };
    let refusal = wrong.map(|words| Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, words));
    let mut page = tool_page(&visit, &choice, tool, typed);
    if let Some(refusal) = &refusal {
        page.frame = page.frame.refused(Some(refusal));
    } else if form.text("go") == "run" {
        page.outcome = Some(call(&visit, &page.tool.call_ref, &page.typed.arguments).await);
    }
    let status = refusal.map(|refusal| refusal.status).or(page.outcome.as_ref().map(|outcome| outcome.status));
    show_with(status.unwrap_or(StatusCode::OK), &page)
}

async fn call(visit: &Visit, call_ref: &str, arguments: &Map<String, Value>) -> Outcome {
    let body = json!({"data": {"id": "dashboard", "type": "function", "function": {"name": call_ref, "arguments": arguments}}});
    let start = Instant::now();
    let answer = visit.send(Method::POST, "/tools/call", Some(body)).await;
    result::outcome(visit, &answer, start.elapsed())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn schema() -> Value {
        json!({"properties": {"query": {"type": "string"}, "count": {"type": "integer", "default": 3}}})
    }

    fn form(fields: &[(&str, &str)]) -> Form {
        Form(fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    #[test]
    fn a_fresh_form_calls_with_what_the_schema_proposes() {
        assert_eq!(Value::Object(Typed::fresh(&schema(), false).arguments), json!({"count": 3}));
        assert!(Typed::fresh(&json!({}), false).is_raw, "a schema without fields has no form");
        assert!(!Typed::fresh(&json!({"additionalProperties": false}), false).is_raw);
    }

    #[test]
    fn what_was_typed_stays_even_where_it_is_wrong() {
        let (typed, wrong) = Typed::of_form(&schema(), &form(&[("arg.query", "x"), ("arg.count", "many")]));
        let values: Vec<&str> = typed.controls.iter().map(|control| control.value.as_str()).collect();
        assert_eq!((values, wrong.is_some()), (vec!["x", "many"], true));
        let (typed, wrong) = Typed::of_form(&schema(), &form(&[("tab", "raw"), ("arguments", "[1")]));
        assert!(typed.raw == "[1" && wrong.is_some_and(|words| words.starts_with("The arguments are not JSON")));
    }

    #[test]
    fn arguments_go_from_form_to_json_and_back() {
        let (typed, _) = Typed::of_form(&schema(), &form(&[("arg.query", "x")]));
        let raw = typed.into_raw();
        assert_eq!(serde_json::from_str::<Value>(&raw.raw).unwrap(), json!({"query": "x"}));
        let (back, wrong) = raw.into_form(&schema());
        assert_eq!(back.controls.iter().map(|control| control.value.as_str()).collect::<Vec<_>>(), ["x", ""]);
        assert!(wrong.is_none() && !back.is_raw);
    }

    #[test]
    fn a_form_never_drops_an_argument() {
        for text in ["{\"other\": 1}", "{\"query\": \"\"}", "{\"count\": \"three\"}"] {
            let (typed, wrong) = Typed::of_form(&schema(), &form(&[("tab", "raw"), ("arguments", text)]));
            assert!(wrong.is_none() && typed.into_form(&schema()).1.is_some(), "{text}");
        }
    }
}
