//! Connecting an account: choose an integration, choose a way, give what it asks for.

use askama::Template;
use axum::extract::Query;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::body::{CONNECTIONS, ConnectionAnswer, Seen, free_slug, query, words_of};
use super::connect_page;
use super::one::show_made;
use crate::form::Form;
use crate::frame::{Frame, Section, see_other, show, show_refused};
use crate::pages::catalog::{
    AppForm, Auth, AuthField, Integration, Provider, Wanted, integration, integration_page, integrations, providers,
};
use crate::path::Path;
use crate::refusal::{PageResult, Refusal};
use crate::ui;
use crate::visit::Visit;

/// How many integrations the first page shows.
const SHOWN: u32 = 30;
const FIRST: &str = "native";
/// Fields of a credential begin with this, so that they cannot be taken for the form's own.
const PREFIX: &str = "field.";

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct NewQuery {
    provider: Option<String>,
    integration: Option<String>,
    scheme: Option<String>,
    q: Option<String>,
    cursor: Option<String>,
}

fn given(text: Option<&String>) -> Option<&str> {
    text.map(|text| text.trim()).filter(|text| !text.is_empty())
}

pub(super) async fn begin(visit: Visit, Query(asked): Query<NewQuery>) -> PageResult {
    let provider = given(asked.provider.as_ref()).unwrap_or(FIRST);
    let Some(key) = given(asked.integration.as_ref()) else { return choose_integration(&visit, provider, &asked).await };
    let found = integration(&visit, provider, key).await?;
    match (given(asked.scheme.as_ref()).and_then(|name| found.scheme(name)), &found.auth[..]) {
        (Some(auth), _) => show_form(&visit, provider, &found, auth, None, None).await,
        (None, [_, _, ..]) => choose_scheme(&visit, provider, found),
        (None, all) => show_form(&visit, provider, &found, &all.first().cloned().unwrap_or_else(no_account), None, None).await,
    }
}

/// Where the catalog names no way, the server chooses.
fn no_account() -> Auth {
    Auth { scheme: "none".to_owned(), fields: Vec::new(), scopes: Vec::new() }
}

#[derive(Template)]
#[template(path = "connection_choose.html")]
struct ChoosePage {
    frame: Frame,
    all: String,
    here: String,
    providers: Vec<Provider>,
    provider: String,
    q: String,
    choices: Vec<(Integration, String)>,
    next: Option<String>,
}

async fn choose_integration(visit: &Visit, provider: &str, asked: &NewQuery) -> PageResult {
    let wanted = Wanted { provider, search: asked.q.as_deref(), category: None, cursor: asked.cursor.as_deref(), limit: SHOWN };
    let found = integrations(visit, wanted).await?;
    let here = visit.page("connections").at("new");
    let narrowed = here.clone().with("provider", provider).with_some("q", asked.q.as_deref());
    let page = ChoosePage {
        frame: Frame::new(visit, Section::Connections, "Connect an account"),
        all: visit.page("connections").into(),
        here: here.into(),
        providers: providers(visit).await?,
        provider: provider.to_owned(),
        q: asked.q.clone().unwrap_or_default(),
        next: found.cursor.map(|cursor| narrowed.with("cursor", cursor).into()),
        choices: found.integrations.into_iter().map(|one| choice(visit, provider, one)).collect(),
    };
    show(&page)
}

fn choice(visit: &Visit, provider: &str, integration: Integration) -> (Integration, String) {
    let page = connect_page(visit, provider, &integration.key);
    (integration, page.into())
}

#[derive(Template)]
#[template(path = "connection_scheme.html")]
struct SchemePage {
    frame: Frame,
    back: String,
    name: String,
    ways: Vec<(Auth, String)>,
}

fn choose_scheme(visit: &Visit, provider: &str, found: Integration) -> PageResult {
    let here = connect_page(visit, provider, &found.key);
    let page = SchemePage {
        frame: Frame::new(visit, Section::Connections, format!("Connect {}", found.name)),
        back: visit.page("connections").at("new").with("provider", provider).into(),
        name: found.name,
        ways: found.auth.iter().map(|auth| (auth.clone(), here.clone().with("scheme", &auth.scheme).into())).collect(),
    };
    show(&page)
}

/// A field of the credential, with what was typed unless it is secret.
#[derive(Debug)]
struct Input {
    id: String,
    field: AuthField,
    value: String,
}

#[derive(Template)]
#[template(path = "connection_new.html")]
struct NewPage {
    frame: Frame,
    here: String,
    back: String,
    integration_page: String,
    provider: String,
    key: String,
    title: String,
    auth: Auth,
    inputs: Vec<Input>,
    slug: String,
    name: String,
    scopes: String,
    /// Where the API says that an OAuth app is missing, the redirect URL that it names.
    redirect_url: Option<String>,
    app_form: AppForm,
}

impl NewPage {
    /// Whether somebody else can be sent a link to type the credential.
    fn has_link(&self) -> bool {
        !self.auth.is_oauth() && !self.inputs.is_empty()
    }
}

async fn show_form(
    visit: &Visit,
    provider: &str,
    found: &Integration,
    auth: &Auth,
    refusal: Option<&Refusal>,
    typed: Option<&Form>,
) -> PageResult {
    let taken = query(visit, Seen::WithTools, Some((provider, &found.key))).await.unwrap_or_default();
    let text = |field: &str| typed.map(|form| form.raw(field).to_owned()).unwrap_or_default();
    let inputs = auth.fields.iter().map(|field| {
        let id = format!("{PREFIX}{}", field.name);
        let value = if field.secret { String::new() } else { text(&id) };
        Input { id, field: field.clone(), value }
    });
    let of = integration_page(visit, provider, &found.key);
    let back = if found.auth.len() > 1 {
        connect_page(visit, provider, &found.key)
    } else {
        visit.page("connections").at("new").with("provider", provider)
    };
    let page = NewPage {
        frame: Frame::new(visit, Section::Connections, format!("Connect {}", found.name)).refused(refusal),
        here: visit.page("connections").at("new").into(),
        back: back.into(),
        app_form: AppForm::new(&of, None, None),
        integration_page: of.into(),
        provider: provider.to_owned(),
        key: found.key.clone(),
        title: found.name.clone(),
        inputs: inputs.collect(),
        auth: auth.clone(),
        slug: typed.and_then(|form| form.some("slug")).map_or_else(|| free_slug(&found.key, &taken), str::to_owned),
        name: text("name"),
        scopes: text("scopes"),
        redirect_url: refusal.and_then(|refusal| callback_in(&refusal.words)).map(str::to_owned),
    };
    show_refused(refusal, &page)
}

pub(super) async fn connect(visit: Visit, form: Form) -> PageResult {
    let provider = form.some("provider").unwrap_or(FIRST);
    let Some(key) = form.some("integration") else { return see_other(visit.page("connections").at("new").with("provider", provider)) };
    let found = integration(&visit, provider, key).await?;
    let auth = found.scheme(form.text("scheme")).cloned().unwrap_or_else(no_account);
    let body = json!({"connection": {
        "slug": form.text("slug"), "provider_key": provider, "integration_key": key, "name": form.some("name"), "data": data(&auth, &form)
    }});
    match visit.post::<ConnectionAnswer>(Path::new(CONNECTIONS), body).await {
        Ok(answer) if answer.connection.message().is_some() => show_made(&visit, &answer.connection, "unchecked"),
        Ok(answer) => show_made(&visit, &answer.connection, "connected"),
        Err(refusal) => show_form(&visit, provider, &found, &auth, Some(&refusal), Some(&form)).await,
    }
}

/// How to connect, from the form. Without a credential, the API makes a link where one is typed.
fn data(auth: &Auth, form: &Form) -> Value {
    let mut data = Map::new();
    if !auth.is_none() {
        data.insert("auth_scheme".to_owned(), json!(auth.scheme));
    }
    let fields = auth.fields.iter().filter(|_| !form.has("link"));
    let typed = fields.filter_map(|field| Some((field.name.clone(), Value::from(form.some(&format!("{PREFIX}{}", field.name))?))));
    let credentials: Map<String, Value> = typed.collect();
    if !credentials.is_empty() {
        data.insert("credentials".to_owned(), credentials.into());
    }
    let scopes = words_of(form.text("scopes"));
    if auth.is_oauth() && !scopes.is_empty() {
        data.insert("scopes".to_owned(), json!(scopes));
    }
    data.into()
}

/// The address of our own that the API's words tell people to register at the service.
fn callback_in(words: &str) -> Option<&str> {
    words.split_whitespace().find(|word| word.starts_with("http") && word.contains("/tools/connections/callback/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(fields: &[(&str, &str)]) -> Form {
        Form(fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    fn auth(value: Value) -> Auth {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_credential_is_taken_from_the_fields_of_its_scheme() {
        let basic = auth(json!({"scheme": "basic", "fields": [
            {"name": "user", "secret": false, "required": true}, {"name": "site", "secret": false, "required": false}]}));
        let typed = [("field.user", " ada "), ("field.site", ""), ("field.other", "x"), ("scopes", "a")];
        assert_eq!(data(&basic, &form(&typed)), json!({"auth_scheme": "basic", "credentials": {"user": "ada"}}));
        let linked = form(&[("field.user", "ada"), ("link", "")]);
        assert_eq!(data(&basic, &linked), json!({"auth_scheme": "basic"}));
    }

    #[test]
    fn scopes_are_for_oauth_and_nothing_is_said_where_nothing_is_needed() {
        let oauth = auth(json!({"scheme": "oauth2"}));
        assert_eq!(data(&oauth, &form(&[("scopes", "a b")])), json!({"auth_scheme": "oauth2", "scopes": ["a", "b"]}));
        assert_eq!(data(&no_account(), &form(&[("scopes", "a")])), json!({}));
    }

    #[test]
    fn the_redirect_url_is_found_in_the_words() {
        let words = "Use the redirect URL http://localhost/tools/connections/callback/1a (for all: http://localhost/tools/connections/callback/2b).";
        assert_eq!(callback_in(words), Some("http://localhost/tools/connections/callback/1a"));
        assert_eq!(callback_in("see https://example.com"), None);
    }
}
