//! Keys of the project: made, shown once, revoked.

use askama::Template;
use axum::Router;
use axum::extract::{Path as Segments, Query};
use axum::routing::{get, post};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Value, json};

use super::access::PermissionChoice;
use super::{ROLES, Tab, permission_choices, show_refused_tab};
use crate::form::Form;
use crate::frame::{Frame, Link, see_other, show, show_refused};
use crate::path::Path;
use crate::refusal::{PageResult, Refusal};
use crate::ui::{self, Markup, Tone, badge, copyable};
use crate::visit::Visit;

const TOLD: [(&str, &str); 1] = [("revoked", "Revoked. Whoever uses the key is refused from now on.")];
/// The role that the form begins with: the least that can call.
const FIRST_ROLE: &str = "annotator";

pub(super) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new().route("/{project}/settings/keys", get(list).post(make)).route("/{project}/settings/keys/{key}/revoke", post(revoke))
}

#[derive(Debug, Default, Deserialize)]
pub(crate) struct Keys {
    pub(crate) keys: Vec<Key>,
    cursor: Option<String>,
}

#[derive(Debug, Deserialize)]
pub(crate) struct Key {
    pub(crate) id: String,
    pub(crate) name: String,
    pub(crate) hint: Option<String>,
    #[serde(default)]
    pub(crate) permissions: Vec<String>,
    pub(crate) agents: Option<Vec<String>>,
    pub(crate) created_at: String,
    pub(crate) last_used_at: Option<String>,
    pub(crate) revoked_at: Option<String>,
    secret: Option<String>,
}

impl Key {
    pub(crate) fn state(&self) -> Markup {
        if self.revoked_at.is_some() { badge(Tone::Bad, "revoked") } else { badge(Tone::Good, "in force") }
    }

    pub(crate) fn is_revoked(&self) -> bool {
        self.revoked_at.is_some()
    }
}

/// The answer that has the key itself. It is shown and kept nowhere.
#[derive(Debug, Deserialize)]
pub(crate) struct MadeKey {
    key: Key,
    secret: Option<String>,
}

impl MadeKey {
    pub(crate) fn name(&self) -> &str {
        &self.key.name
    }

    pub(crate) fn secret(&self) -> Markup {
        copyable(self.key.secret.as_deref().or(self.secret.as_deref()).unwrap_or_default())
    }
}

/// An agent that a key can be bound to.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct AgentChoice {
    pub(crate) public_id: String,
    pub(crate) name: String,
    #[serde(skip)]
    pub(crate) is_ticked: bool,
}

impl AgentChoice {
    /// The project's agents, or none where the visitor may not see them.
    async fn all(visit: &Visit, form: Option<&Form>) -> Vec<Self> {
        let mut agents: Vec<Self> = visit.get("/agents?limit=1000").await.unwrap_or_default();
        for agent in &mut agents {
            agent.is_ticked = form.is_some_and(|form| form.all("agent").any(|ticked| ticked == agent.public_id));
        }
        agents
    }
}

/// What was typed about a new key. `setting_key_form.html` shows it.
#[derive(Clone, Debug)]
pub(crate) struct KeyForm {
    pub(crate) action: String,
    pub(crate) name: String,
    /// Empty where permissions are ticked instead.
    pub(crate) role: String,
    pub(crate) permissions: Vec<PermissionChoice>,
    pub(crate) agents: Vec<AgentChoice>,
    /// Agents by name, where they cannot be listed.
    pub(crate) agent_names: Option<String>,
}

impl KeyForm {
    pub(crate) fn new(action: impl Into<String>, can_give: impl Fn(&str) -> bool, form: Option<&Form>) -> Self {
        Self {
            action: action.into(),
            name: form.map_or("", |form| form.text("name")).to_owned(),
            role: form.map_or(FIRST_ROLE, |form| form.text("role")).to_owned(),
            permissions: permission_choices(can_give, form),
            agents: Vec::new(),
            agent_names: None,
        }
    }

    pub(crate) fn roles(&self) -> Vec<(&'static str, &'static str, bool)> {
        ROLES.map(|(role, words)| (role, words, role == self.role)).into()
    }

    pub(crate) fn is_narrowed(&self) -> bool {
        self.role.is_empty()
    }

    pub(crate) fn is_bound(&self) -> bool {
        self.agents.iter().any(|agent| agent.is_ticked)
    }

    /// What the API takes. A role and ticked boxes together could be read in two ways, so they are refused.
    pub(crate) fn body(form: &Form) -> Result<Value, Refusal> {
        let ticked: Vec<&str> = form.all("permission").collect();
        let names = form.text("agents").split(',').map(str::trim).filter(|name| !name.is_empty());
        let agents: Vec<&str> = form.all("agent").chain(names).collect();
        let mut body = json!({"name": form.text("name")});
        match (form.some("role"), ticked.is_empty()) {
            (Some(role), true) => body["role"] = json!(role),
            // Permissions narrow a role, so the widest is named with them: else the API would leave some out.
            (None, false) => (body["role"], body["permissions"]) = (json!("owner"), json!(ticked)),
            (Some(_), false) => return Err(unclear("Choose a role, or tick permissions, not both.")),
            (None, true) => return Err(unclear("Tick at least one permission, or choose a role.")),
        }
        if !agents.is_empty() {
            body["agents"] = json!(agents);
        }
        Ok(body)
    }
}

fn unclear(words: &str) -> Refusal {
    Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, words)
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ListQuery {
    told: Option<String>,
    cursor: Option<String>,
}

#[derive(Template)]
#[template(path = "setting_keys.html")]
struct ListPage {
    frame: Frame,
    tabs: Vec<Link>,
    /// Where a key is revoked: this, its id, and `revoke`.
    keys_at: String,
    keys: Vec<Key>,
    next: Option<String>,
    made: Option<MadeKey>,
    may_edit: bool,
    form: KeyForm,
}

async fn list(visit: Visit, Query(query): Query<ListQuery>) -> PageResult {
    match keys_of(&visit, query.cursor.as_deref()).await {
        Ok(keys) => show(&list_page(&visit, keys, query.told.as_deref(), None).await),
        Err(refusal) => show_refused_tab(&visit, Tab::Keys, &refusal),
    }
}

async fn keys_of(visit: &Visit, cursor: Option<&str>) -> Result<Keys, Refusal> {
    visit.get(Path::new("/keys").with_some("cursor", cursor)).await
}

async fn list_page(visit: &Visit, keys: Keys, told: Option<&str>, form: Option<&Form>) -> ListPage {
    let here = Tab::Keys.here(visit);
    let may_edit = visit.may("edit_members");
    let mut key_form = KeyForm::new(here.clone(), |permission| visit.may(permission), form);
    if may_edit {
        key_form.agents = AgentChoice::all(visit, form).await;
    }
    ListPage {
        frame: Tab::Keys.frame(visit).told(told, &TOLD),
        tabs: Tab::Keys.links(visit),
        next: keys.cursor.map(|cursor| here.clone().with("cursor", cursor).into()),
        keys_at: here.into(),
        keys: keys.keys,
        made: None,
        may_edit,
        form: key_form,
    }
}

async fn make(visit: Visit, form: Form) -> PageResult {
    let made = match KeyForm::body(&form) {
        Ok(key) => visit.post::<MadeKey>("/keys", json!({"key": key})).await,
        Err(refusal) => Err(refusal),
    };
    match made {
        // The key is in this answer alone, so that no address and no history holds it; it is shown also where the list is not.
        Ok(made) => {
            let keys = keys_of(&visit, None).await.unwrap_or_default();
            show(&ListPage { made: Some(made), ..list_page(&visit, keys, None, None).await })
        }
        Err(refusal) => show_refused_list(&visit, &refusal, Some(&form)).await,
    }
}

async fn revoke(visit: Visit, Segments((_, id)): Segments<(String, String)>) -> PageResult {
    match visit.delete(Path::new("/keys").at(id)).await {
        Ok(()) => see_other(Tab::Keys.here(&visit).with("told", "revoked")),
        Err(refusal) => show_refused_list(&visit, &refusal, None).await,
    }
}

async fn show_refused_list(visit: &Visit, refusal: &Refusal, form: Option<&Form>) -> PageResult {
    let Ok(keys) = keys_of(visit, None).await else { return show_refused_tab(visit, Tab::Keys, refusal) };
    let mut page = list_page(visit, keys, None, form).await;
    page.frame = page.frame.refused(Some(refusal));
    show_refused(Some(refusal), &page)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(fields: &[(&str, &str)]) -> Form {
        Form(fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    #[test]
    fn a_key_has_a_role_or_permissions() {
        let body = KeyForm::body(&form(&[("name", "ci "), ("role", "viewer"), ("agents", " a, b ,")])).unwrap();
        assert_eq!(body, json!({"name": "ci", "role": "viewer", "agents": ["a", "b"]}));
        let body =
            KeyForm::body(&form(&[("role", ""), ("permission", "view_tools"), ("permission", "run_tools"), ("agent", "7")])).unwrap();
        assert_eq!(body, json!({"name": "", "role": "owner", "permissions": ["view_tools", "run_tools"], "agents": ["7"]}));
    }

    #[test]
    fn a_key_that_could_be_read_in_two_ways_is_refused() {
        for fields in [&[("role", "viewer"), ("permission", "run_tools")][..], &[("name", "x")]] {
            assert_eq!(KeyForm::body(&form(fields)).unwrap_err().status, StatusCode::UNPROCESSABLE_ENTITY);
        }
    }

    #[test]
    fn the_secret_is_found_in_both_places() {
        for answer in [
            json!({"key": {"id": "1", "name": "a", "created_at": "", "secret": "tyk_1"}}),
            json!({"key": {"id": "1", "name": "a", "created_at": ""}, "secret": "tyk_1"}),
        ] {
            let made: MadeKey = serde_json::from_value(answer).unwrap();
            assert!(made.secret().to_string().contains("tyk_1"));
        }
    }
}
