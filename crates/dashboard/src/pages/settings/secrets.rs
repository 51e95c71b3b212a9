//! Named secrets. Values go in and never come out.

use askama::Template;
use axum::Router;
use axum::extract::{Path as Segments, Query};
use axum::routing::{get, post};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Tab, show_refused_tab};
use crate::form::Form;
use crate::frame::{Frame, Link, see_other, show_refused};
use crate::path::Path;
use crate::refusal::{PageResult, Refusal};
use crate::ui::{self, Markup, copyable};
use crate::visit::Visit;

const TOLD: [(&str, &str); 3] =
    [("kept", "The secret is kept."), ("changed", "The secret is changed."), ("deleted", "The secret is deleted.")];

pub(super) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new()
        .route("/{project}/settings/secrets", get(list).post(keep))
        .route("/{project}/settings/secrets/{secret}", get(one).post(change))
        .route("/{project}/settings/secrets/{secret}/delete", post(delete))
}

#[derive(Clone, Debug, Deserialize)]
struct Secret {
    slug: String,
    header: Header,
    hosts: Vec<String>,
    lifecycle: Lifecycle,
}

impl Secret {
    /// How a header of a workflow names it.
    fn reference(&self) -> Markup {
        copyable(&format!("{{{{secrets.{}}}}}", self.slug))
    }
}

#[derive(Clone, Debug, Deserialize)]
struct Header {
    name: Option<String>,
    description: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
struct Lifecycle {
    created_at: String,
    updated_at: String,
}

/// What was typed about a secret, but for its value. `setting_secret_fields.html` shows it.
#[derive(Clone, Debug, Default)]
struct SecretForm {
    name: String,
    description: String,
    hosts: String,
}

impl SecretForm {
    fn typed(form: &Form) -> Self {
        let text = |name: &str| form.text(name).to_owned();
        Self { name: text("name"), description: text("description"), hosts: text("hosts") }
    }

    fn of(secret: &Secret) -> Self {
        let description = secret.header.description.clone().unwrap_or_default();
        Self { name: secret.slug.clone(), description, hosts: secret.hosts.join("\n") }
    }
}

fn hosts(form: &Form) -> Vec<&str> {
    form.text("hosts").split([',', ' ', '\n', '\r', '\t']).filter(|host| !host.is_empty()).collect()
}

/// The value as it was typed; browsers send every line with two ends.
fn value(form: &Form) -> Value {
    let content = form.raw("value").replace("\r\n", "\n");
    json!({"kind": "custom_secret", "data": {"secret": {"format": "text", "content": content}}})
}

fn new_body(form: &Form) -> Value {
    json!({"slug": form.text("name"), "header": {"description": form.some("description")}, "secret": value(form), "hosts": hosts(form)})
}

/// What is left out stays as it is: the value where none was typed, and the name that others gave it.
fn change_body(form: &Form, name: Option<&str>) -> Value {
    let mut header = Map::new();
    header.insert("description".to_owned(), json!(form.text("description")));
    if let Some(name) = name {
        header.insert("name".to_owned(), json!(name));
    }
    let mut body = json!({"header": header, "hosts": hosts(form)});
    if !form.raw("value").is_empty() {
        body["secret"] = value(form);
    }
    body
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct PageQuery {
    told: Option<String>,
    cursor: Option<String>,
}

#[derive(Template)]
#[template(path = "setting_secrets.html")]
struct ListPage {
    frame: Frame,
    tabs: Vec<Link>,
    here: String,
    secrets: Vec<(String, Secret)>,
    may_edit: bool,
    form: SecretForm,
}

async fn list(visit: Visit, Query(query): Query<PageQuery>) -> PageResult {
    show_list(&visit, query.told.as_deref(), None, SecretForm::default()).await
}

async fn show_list(visit: &Visit, told: Option<&str>, refusal: Option<&Refusal>, form: SecretForm) -> PageResult {
    let secrets: Vec<Secret> = match visit.get("/secrets").await {
        Ok(secrets) => secrets,
        Err(unseen) => return show_refused_tab(visit, Tab::Secrets, refusal.unwrap_or(&unseen)),
    };
    let here = Tab::Secrets.here(visit);
    let page = ListPage {
        frame: Tab::Secrets.frame(visit).told(told, &TOLD).refused(refusal),
        tabs: Tab::Secrets.links(visit),
        secrets: secrets.into_iter().map(|secret| (here.clone().at(&secret.slug).into(), secret)).collect(),
        here: here.into(),
        may_edit: visit.may("edit_secrets"),
        form,
    };
    show_refused(refusal, &page)
}

async fn keep(visit: Visit, form: Form) -> PageResult {
    match visit.post::<Value>("/secrets", new_body(&form)).await {
        Ok(_) => see_other(Tab::Secrets.here(&visit).with("told", "kept")),
        Err(refusal) => show_list(&visit, None, Some(&refusal), SecretForm::typed(&form)).await,
    }
}

#[derive(Debug, Deserialize)]
struct Reads {
    reads: Vec<Read>,
    cursor: Option<String>,
}

#[derive(Debug, Deserialize)]
struct Read {
    key_id: String,
    key_name: Option<String>,
    purpose: String,
    #[serde(rename = "read_at")]
    at: String,
}

impl Read {
    fn who(&self) -> &str {
        self.key_name.as_deref().unwrap_or(&self.key_id)
    }
}

#[derive(Template)]
#[template(path = "setting_secret.html")]
struct OnePage {
    frame: Frame,
    tabs: Vec<Link>,
    all: String,
    here: String,
    secret: Secret,
    reads: Vec<Read>,
    next: Option<String>,
    may_edit: bool,
    form: SecretForm,
}

async fn one(visit: Visit, Segments((_, name)): Segments<(String, String)>, Query(query): Query<PageQuery>) -> PageResult {
    show_one(&visit, &name, &query, None, None).await
}

/// Found in the list, because asking for one secret would bring its value, and note a read, where the visitor may read values.
async fn find(visit: &Visit, name: &str) -> Result<Secret, Refusal> {
    let secrets: Vec<Secret> = visit.get("/secrets").await?;
    secrets.into_iter().find(|secret| secret.slug == name).ok_or_else(Refusal::not_found)
}

async fn show_one(visit: &Visit, name: &str, query: &PageQuery, refusal: Option<&Refusal>, form: Option<SecretForm>) -> PageResult {
    let secret = match find(visit, name).await {
        Ok(secret) => secret,
        Err(unseen) => return show_refused_tab(visit, Tab::Secrets, &unseen),
    };
    let asked = Path::new("/secrets").at(name).at("reads").with_some("cursor", query.cursor.as_deref());
    let reads: Reads = visit.get(asked).await.unwrap_or(Reads { reads: Vec::new(), cursor: None });
    let all = Tab::Secrets.here(visit);
    let here = all.clone().at(name);
    let page = OnePage {
        frame: Frame { title: secret.slug.clone(), ..Tab::Secrets.frame(visit) }.told(query.told.as_deref(), &TOLD).refused(refusal),
        tabs: Tab::Secrets.links(visit),
        all: all.into(),
        next: reads.cursor.map(|cursor| here.clone().with("cursor", cursor).into()),
        here: here.into(),
        reads: reads.reads,
        may_edit: visit.may("edit_secrets"),
        form: form.unwrap_or_else(|| SecretForm::of(&secret)),
        secret,
    };
    show_refused(refusal, &page)
}

async fn change(visit: Visit, Segments((_, name)): Segments<(String, String)>, form: Form) -> PageResult {
    let changed = match find(&visit, &name).await {
        Ok(secret) => visit.put::<Value>(Path::new("/secrets").at(&name), change_body(&form, secret.header.name.as_deref())).await,
        Err(refusal) => Err(refusal),
    };
    match changed {
        Ok(_) => see_other(Tab::Secrets.here(&visit).at(&name).with("told", "changed")),
        Err(refusal) => show_one(&visit, &name, &PageQuery::default(), Some(&refusal), Some(SecretForm::typed(&form))).await,
    }
}

async fn delete(visit: Visit, Segments((_, name)): Segments<(String, String)>) -> PageResult {
    match visit.delete(Path::new("/secrets").at(&name)).await {
        Ok(()) => see_other(Tab::Secrets.here(&visit).with("told", "deleted")),
        Err(refusal) => show_one(&visit, &name, &PageQuery::default(), Some(&refusal), None).await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(fields: &[(&str, &str)]) -> Form {
        Form(fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    #[test]
    fn a_value_is_kept_as_it_was_typed() {
        let body = new_body(&form(&[("name", " crm "), ("value", " a\r\nb "), ("hosts", "a.example, b.example:8443\r\n")]));
        assert_eq!(body["secret"]["data"]["secret"]["content"], json!(" a\nb "));
        assert_eq!((&body["slug"], &body["hosts"]), (&json!("crm"), &json!(["a.example", "b.example:8443"])));
    }

    #[test]
    fn no_value_leaves_the_value_there_is() {
        let body = change_body(&form(&[("value", ""), ("description", "d")]), Some("n"));
        assert_eq!(body, json!({"header": {"description": "d", "name": "n"}, "hosts": []}));
        assert!(change_body(&form(&[("value", "v")]), None).get("secret").is_some());
    }
}
