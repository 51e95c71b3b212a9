//! The editor: the data of a version as JSON, with a picture of its steps.

use askama::Template;
use axum::extract::{Path as Segments, Query};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::picture::{Picture, picture};
use super::starter::{self, STARTER};
use super::{Revision, Workflow, WorkflowAnswer, pretty, tabs};
use crate::form::Form;
use crate::frame::{Frame, Link, Section, see_other, show_refused};
use crate::pages::try_tool::callable;
use crate::path::Path;
use crate::refusal::{PageResult, Refusal};
use crate::ui;
use crate::visit::Visit;

const CHECKED: &str = "It could be saved: the JSON can be read, and what it names is there.";

/// What stands in the form.
#[derive(Debug, Default)]
struct Fields {
    slug: String,
    name: String,
    description: String,
    data: String,
    message: String,
    /// The version that was read; a save over a newer one is refused.
    base: String,
}

impl Fields {
    fn typed(form: &Form) -> Self {
        let text = |name| form.text(name).to_owned();
        Self {
            slug: text("slug"),
            name: text("name"),
            description: text("description"),
            data: form.raw("data").replace("\r\n", "\n"),
            message: text("message"),
            base: form.some("over").unwrap_or_else(|| form.text("base")).to_owned(),
        }
    }

    fn data(&self) -> Result<Value, Refusal> {
        read_json(&self.data).map_err(|words| Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, words))
    }
}

/// The object that was typed, or what is wrong with it and where.
pub(super) fn read_json(text: &str) -> Result<Value, String> {
    let object: Result<Map<String, Value>, serde_json::Error> = serde_json::from_str(text);
    object.map(Value::Object).map_err(|error| {
        let words = error.to_string();
        let place = format!(" at line {} column {}", error.line(), error.column());
        format!(
            "This is not the JSON of an object. Line {}, column {}: {}.",
            error.line(),
            error.column(),
            words.strip_suffix(&place).unwrap_or(&words)
        )
    })
}

#[derive(Template)]
#[template(path = "workflow_edit.html")]
struct EditPage {
    frame: Frame,
    all: String,
    here: String,
    tabs: Vec<Link>,
    /// Absent while the workflow is being made.
    workflow: Option<Workflow>,
    /// The number of the version that the data comes from.
    from: String,
    fields: Fields,
    picture: Option<Picture>,
    /// What the last check said: that all is well, or what is not.
    checked: Option<Result<&'static str, String>>,
}

impl EditPage {
    /// The version that somebody saved meanwhile.
    fn newer(&self) -> Option<&str> {
        let newest = self.workflow.as_ref()?.revision_id.as_deref()?;
        (!self.fields.base.is_empty() && self.fields.base != newest).then_some(newest)
    }

    fn what_is_new(&self, newest: &str) -> String {
        Path::new(&self.here).at("versions").with("from", &self.fields.base).with("to", newest).into()
    }
}

/// What the last press of a button came to.
enum Outcome {
    Nothing,
    Checked(Result<(), Refusal>),
    Refused(Refusal),
}

impl Outcome {
    fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused(refusal) | Self::Checked(Err(refusal)) => Some(refusal),
            _ => None,
        }
    }

    /// What a save refused stands on top, where the page begins.
    fn frame(&self, frame: Frame) -> Frame {
        if let Self::Refused(refusal) = self { frame.refused(Some(refusal)) } else { frame }
    }

    /// What a check says stands beside the data.
    fn checked(&self) -> Option<Result<&'static str, String>> {
        match self {
            Self::Checked(Ok(())) => Some(Ok(CHECKED)),
            Self::Checked(Err(refusal)) => Some(Err(refusal.words.clone())),
            _ => None,
        }
    }
}

/// Looks at the data as a save does, and at what it embeds.
async fn check(visit: &Visit, slug: &str, fields: &Fields) -> Outcome {
    let looked = async {
        let data = fields.data()?;
        visit.post::<Value>("/workflows/check", json!({"workflow": {"slug": slug, "data": data}})).await?;
        visit.post::<Value>("/workflows/revisions/resolve", json!({"workflow_revision": {"data": data}})).await.map(|_| ())
    };
    Outcome::Checked(looked.await)
}

fn drawn(fields: &Fields) -> Option<Picture> {
    picture(&serde_json::from_str(&fields.data).unwrap_or_default())
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct NewQuery {
    /// The tool that it is to call.
    #[serde(rename = "ref")]
    call_ref: String,
}

pub(super) async fn new(visit: Visit, Query(query): Query<NewQuery>) -> PageResult {
    let fields = match callable(&visit, &query.call_ref).await? {
        Some(tool) => Fields { slug: starter::slug(&tool), data: starter::calling(&tool), name: tool.title, ..Fields::default() },
        None => Fields { data: STARTER.to_owned(), ..Fields::default() },
    };
    show_new(&visit, fields, &Outcome::Nothing)
}

fn show_new(visit: &Visit, fields: Fields, outcome: &Outcome) -> PageResult {
    let all = visit.page("workflows");
    let page = EditPage {
        frame: outcome.frame(Frame::new(visit, Section::Workflows, "New workflow")),
        here: all.clone().at("new").into(),
        all: all.into(),
        tabs: Vec::new(),
        workflow: None,
        from: String::new(),
        picture: drawn(&fields),
        checked: outcome.checked(),
        fields,
    };
    show_refused(outcome.refusal(), &page)
}

pub(super) async fn create(visit: Visit, form: Form) -> PageResult {
    let fields = Fields::typed(&form);
    if form.text("action") == "check" {
        let outcome = check(&visit, &fields.slug, &fields).await;
        return show_new(&visit, fields, &outcome);
    }
    let made = match fields.data() {
        Ok(data) => {
            let workflow = json!({"slug": fields.slug, "name": form.some("name"), "description": form.some("description"), "data": data});
            visit.post::<WorkflowAnswer>("/simple/workflows", json!({"workflow": workflow})).await
        }
        Err(refusal) => Err(refusal),
    };
    match made {
        Ok(answer) => see_other(visit.page("workflows").at(answer.workflow.id).with("told", "made")),
        Err(refusal) => show_new(&visit, fields, &Outcome::Refused(refusal)),
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct EditQuery {
    /// An older version to begin with.
    revision: Option<String>,
}

pub(super) async fn edit(visit: Visit, Segments((_, id)): Segments<(String, String)>, Query(query): Query<EditQuery>) -> PageResult {
    let workflow = Workflow::read(&visit, &id).await?;
    let from = match query.revision.filter(|revision| !revision.is_empty()) {
        Some(revision) => Some(Revision::read(&visit, &revision).await?),
        None => None,
    };
    let mut fields = Fields { base: workflow.revision_id.clone().unwrap_or_default(), data: pretty(&workflow.data), ..of_words(&workflow) };
    let version = from.as_ref().map(|revision| revision.version.clone()).or_else(|| workflow.version.clone()).unwrap_or_default();
    if let Some(revision) = from {
        fields.data = pretty(&revision.data);
        fields.message = format!("Back to version {}", revision.version);
    }
    show_edit(&visit, workflow, version, fields, &Outcome::Nothing)
}

fn of_words(workflow: &Workflow) -> Fields {
    Fields {
        name: workflow.name.clone().unwrap_or_default(),
        description: workflow.description.clone().unwrap_or_default(),
        ..Fields::default()
    }
}

fn show_edit(visit: &Visit, workflow: Workflow, from: String, fields: Fields, outcome: &Outcome) -> PageResult {
    let all = visit.page("workflows");
    let page = EditPage {
        frame: outcome.frame(Frame::new(visit, Section::Workflows, format!("Edit {}", workflow.title()))),
        here: all.clone().at(&workflow.id).into(),
        all: all.into(),
        tabs: tabs(visit, &workflow, "edit"),
        workflow: Some(workflow),
        from,
        picture: drawn(&fields),
        checked: outcome.checked(),
        fields,
    };
    show_refused(outcome.refusal(), &page)
}

pub(super) async fn save(visit: Visit, Segments((_, id)): Segments<(String, String)>, form: Form) -> PageResult {
    let workflow = Workflow::read(&visit, &id).await?;
    let fields = Fields { name: of_words(&workflow).name, description: of_words(&workflow).description, ..Fields::typed(&form) };
    let from = form.text("from").to_owned();
    if form.text("action") == "check" {
        let outcome = check(&visit, &workflow.slug, &fields).await;
        return show_edit(&visit, workflow, from, fields, &outcome);
    }
    match commit(&visit, &workflow, &fields).await {
        Ok(answer) => {
            let word = if answer["status"] == "no_change" { "same" } else { "saved" };
            see_other(visit.page("workflows").at(&id).with("told", word))
        }
        Err(refusal) => show_edit(&visit, workflow, from, fields, &Outcome::Refused(refusal)),
    }
}

async fn commit(visit: &Visit, workflow: &Workflow, fields: &Fields) -> Result<Value, Refusal> {
    let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let revision = json!({"workflow_variant_id": workflow.variant_id, "data": fields.data()?, "message": some(&fields.message), "base_revision_id": some(&fields.base)});
    visit.post("/workflows/revisions/commit", json!({"workflow_revision": revision})).await
}

/// Changes the name and the description; these have no versions.
pub(super) async fn words(visit: Visit, Segments((_, id)): Segments<(String, String)>, form: Form) -> PageResult {
    let body = json!({"workflow": {"name": form.text("name"), "description": form.text("description")}});
    match visit.put::<Value>(Path::new("/workflows").at(&id), body).await {
        Ok(_) => see_other(visit.page("workflows").at(&id).with("told", "words")),
        Err(refusal) => {
            let workflow = Workflow::read(&visit, &id).await?;
            let typed = Fields::typed(&form);
            let base = workflow.revision_id.clone().unwrap_or_default();
            let fields =
                Fields { base, data: pretty(&workflow.data), name: typed.name, description: typed.description, ..Fields::default() };
            let version = workflow.version.clone().unwrap_or_default();
            show_edit(&visit, workflow, version, fields, &Outcome::Refused(refusal))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_read_has_its_place() {
        assert_eq!(read_json("{\n  \"a\": 1,\n}").unwrap_err(), "This is not the JSON of an object. Line 3, column 1: trailing comma.");
        assert!(read_json("[1]").unwrap_err().contains("Line 1, column 0: invalid type: sequence"), "{:?}", read_json("[1]"));
        assert!(read_json("").unwrap_err().contains("EOF while parsing a value"));
    }
}
