//! Makes an agent, changes its words and its state, and deletes it.

use askama::Template;
use axum::extract::Path as Segments;
use http::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::list::STATES;
use super::{Agent, change, tabs};
use crate::form::Form;
use crate::frame::{Frame, Link, Section, see_other, show_refused};
use crate::path::Path;
use crate::refusal::{PageResult, Refusal};
use crate::visit::Visit;

#[derive(Debug, Default, Deserialize)]
struct Types {
    data: Vec<String>,
}

/// What stands in the form.
#[derive(Debug, Default)]
struct Fields {
    name: String,
    agent_type: String,
    job_title: String,
    description: String,
    status: String,
    tool_mode: String,
    tags: String,
    version: String,
}

impl Fields {
    fn of(agent: &Agent) -> Self {
        Self {
            name: agent.name.clone(),
            agent_type: agent.kind.clone(),
            job_title: agent.job_title.clone().unwrap_or_default(),
            description: agent.description.clone().unwrap_or_default(),
            status: agent.status.clone(),
            tool_mode: agent.tool_mode.clone(),
            tags: agent.tags.join(", "),
            version: agent.version.to_string(),
        }
    }

    fn typed(form: &Form) -> Self {
        let text = |name| form.text(name).to_owned();
        Self {
            name: text("name"),
            agent_type: text("agent_type"),
            job_title: text("job_title"),
            description: text("description"),
            status: text("status"),
            tool_mode: text("tool_mode"),
            tags: text("tags"),
            version: text("version"),
        }
    }

    fn body(&self) -> Value {
        let some = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let tags: Vec<&str> = self.tags.split(',').map(str::trim).filter(|tag| !tag.is_empty()).collect();
        json!({"name": self.name, "agent_type": self.agent_type, "job_title": self.job_title, "description": self.description,
            "status": some(&self.status), "tool_mode": some(&self.tool_mode), "tags": tags})
    }
}

#[derive(Template)]
#[template(path = "agent_edit.html")]
struct EditPage {
    frame: Frame,
    all: String,
    here: String,
    tabs: Vec<Link>,
    /// Absent while the agent is being made.
    agent: Option<Agent>,
    fields: Fields,
    types: Vec<String>,
    states: [&'static str; 3],
}

pub(super) async fn new(visit: Visit) -> PageResult {
    let fields = Fields { agent_type: "assistant".to_owned(), status: "active".to_owned(), ..Fields::default() };
    show_new(&visit, fields, None).await
}

async fn show_new(visit: &Visit, fields: Fields, refusal: Option<&Refusal>) -> PageResult {
    let all = visit.page("agents");
    let frame = Frame::new(visit, Section::Agents, "New agent").refused(refusal);
    let here = all.clone().at("new").into();
    show_refused(
        refusal,
        &EditPage { frame, here, all: all.into(), tabs: Vec::new(), agent: None, fields, types: types(visit).await, states: STATES },
    )
}

async fn types(visit: &Visit) -> Vec<String> {
    visit.get::<Types>("/agents/types").await.map(|types| types.data).unwrap_or_default()
}

pub(super) async fn create(visit: Visit, form: Form) -> PageResult {
    let fields = Fields::typed(&form);
    match visit.post::<Agent>("/agents", fields.body()).await {
        Ok(agent) => see_other(visit.page("agents").at(agent.id).with("told", "made")),
        Err(refusal) => show_new(&visit, fields, Some(&refusal)).await,
    }
}

pub(super) async fn edit(visit: Visit, Segments((_, id)): Segments<(String, String)>) -> PageResult {
    show_edit(&visit, &id, None, None).await
}

async fn show_edit(visit: &Visit, id: &str, typed: Option<Fields>, refusal: Option<&Refusal>) -> PageResult {
    let agent = Agent::read(visit, id).await?;
    let all = visit.page("agents");
    let frame = Frame::new(visit, Section::Agents, format!("Edit {}", agent.name)).refused(refusal);
    let page = EditPage {
        frame,
        here: all.clone().at(id).into(),
        all: all.into(),
        tabs: tabs(visit, id, "edit"),
        fields: typed.unwrap_or_else(|| Fields::of(&agent)),
        agent: Some(agent),
        types: types(visit).await,
        states: STATES,
    };
    show_refused(refusal, &page)
}

pub(super) async fn save(visit: Visit, Segments((_, id)): Segments<(String, String)>, form: Form) -> PageResult {
    let fields = Fields::typed(&form);
    match change(&visit, Method::PUT, Path::new("/agents").at(&id), fields.body(), &fields.version).await {
        Ok(_) => see_other(visit.page("agents").at(&id).with("told", "saved")),
        Err(refusal) if refusal.is_missing() => Err(refusal),
        Err(refusal) => show_edit(&visit, &id, Some(fields), Some(&refusal)).await,
    }
}

pub(super) async fn delete(visit: Visit, Segments((_, id)): Segments<(String, String)>) -> PageResult {
    match visit.delete(Path::new("/agents").at(&id)).await {
        Ok(()) => see_other(visit.page("agents").with("told", "deleted")),
        Err(refusal) if refusal.is_missing() => Err(refusal),
        Err(refusal) => show_edit(&visit, &id, None, Some(&refusal)).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_are_a_list_and_empty_choices_are_left_to_the_api() {
        let form = Form(vec![("name".to_owned(), " a ".to_owned()), ("tags".to_owned(), "x, ,y z,".to_owned())]);
        let body = Fields::typed(&form).body();
        assert_eq!((&body["name"], &body["tags"], &body["status"]), (&json!("a"), &json!(["x", "y z"]), &Value::Null));
    }
}
