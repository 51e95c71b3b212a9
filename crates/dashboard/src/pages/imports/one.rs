//! One import: what it is, what reading it again would change, and removing it.

use askama::Template;
use axum::extract::{Path as Segments, Query};
use serde::Deserialize;

use super::body::{IMPORTS, Import, Made, Mode, Refused, make};
use crate::form::Form;
use crate::frame::{Frame, Section, see_other, show, show_refused};
use crate::pages::catalog::{OAuthApp, oauth_apps};
use crate::pages::connections::{self, Connection};
use crate::path::Path;
use crate::refusal::{PageResult, Refusal};
use crate::ui::{self, Markup, json_tree};
use crate::visit::Visit;

const TOLD: [(&str, &str); 2] =
    [("imported", "Imported. Its actions are in the catalog now."), ("refreshed", "Read again. The catalog has what is there now.")];

#[derive(Debug, Deserialize)]
struct Answer {
    import: Import,
}

async fn get(visit: &Visit, id: &str) -> Result<Import, Refusal> {
    visit.get::<Answer>(Path::new(IMPORTS).at(id)).await.map(|answer| answer.import)
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct OneQuery {
    told: Option<String>,
}

#[derive(Template)]
#[template(path = "import.html")]
struct OnePage {
    frame: Frame,
    all: String,
    here: String,
    integration: String,
    /// Where a new document is given under the same key.
    again: String,
    settings: Option<Markup>,
    may_edit: bool,
    import: Import,
}

pub(super) async fn one(visit: Visit, Segments((_, id)): Segments<(String, String)>, Query(query): Query<OneQuery>) -> PageResult {
    show_one(&visit, &id, query.told.as_deref(), None).await
}

async fn show_one(visit: &Visit, id: &str, told: Option<&str>, refusal: Option<&Refusal>) -> PageResult {
    let import = get(visit, id).await?;
    let all = visit.page("imports");
    let page = OnePage {
        frame: Frame::new(visit, Section::Catalog, &import.name).told(told, &TOLD).refused(refusal),
        here: all.clone().at(id).into(),
        integration: import.integration_page(visit),
        again: all.clone().at("new").with("kind", "document").with("key", &import.integration_key).into(),
        all: all.into(),
        settings: import.settings().as_ref().map(json_tree),
        may_edit: visit.may("edit_tools"),
        import,
    };
    show_refused(refusal, &page)
}

#[derive(Template)]
#[template(path = "import_refresh.html")]
struct RefreshPage {
    frame: Frame,
    here: String,
    back: String,
    made: Made,
    can_force: bool,
}

/// Shows the difference first; a second form makes it so.
pub(super) async fn refresh(visit: Visit, Segments((_, id)): Segments<(String, String)>, form: Form) -> PageResult {
    if form.text("step") != "refresh" {
        return difference(&visit, &id, None).await;
    }
    let mode = if form.has("force") { Mode::ByForce } else { Mode::Gently };
    match make(&visit, refresh_path(&id), mode, None).await {
        Ok(_) => see_other(visit.page("imports").at(&id).with("told", "refreshed")),
        Err(refused) if refused.refusal.is_missing() => Err(refused.refusal),
        Err(refused) => difference(&visit, &id, Some(refused)).await,
    }
}

async fn difference(visit: &Visit, id: &str, refused: Option<Refused>) -> PageResult {
    let made = match make(visit, refresh_path(id), Mode::DryRun, None).await {
        Ok(made) => made,
        Err(again) if again.refusal.is_missing() => return Err(again.refusal),
        Err(again) => return show_one(visit, id, None, Some(&refused.unwrap_or(again).refusal)).await,
    };
    let refusal = refused.as_ref().map(|refused| &refused.refusal);
    let back = visit.page("imports").at(id);
    let page = RefreshPage {
        frame: Frame::new(visit, Section::Catalog, format!("Refresh {}", made.import.name)).refused(refusal),
        here: back.clone().at("refresh").into(),
        back: back.into(),
        made,
        can_force: refused.as_ref().is_some_and(|refused| refused.can_force),
    };
    show_refused(refusal, &page)
}

fn refresh_path(id: &str) -> Path {
    Path::new(IMPORTS).at(id).at("refresh")
}

#[derive(Template)]
#[template(path = "import_remove.html")]
struct RemovePage {
    frame: Frame,
    here: String,
    back: String,
    import: Import,
    connections: Vec<Connection>,
    apps: Vec<OAuthApp>,
}

impl RemovePage {
    fn is_connected(&self) -> bool {
        !self.connections.is_empty() || !self.apps.is_empty()
    }
}

pub(super) async fn ask_remove(visit: Visit, Segments((_, id)): Segments<(String, String)>) -> PageResult {
    show_remove(&visit, &id, None).await
}

async fn show_remove(visit: &Visit, id: &str, refusal: Option<&Refusal>) -> PageResult {
    let import = get(visit, id).await?;
    let (provider, key) = (&import.provider_key, &import.integration_key);
    let connected = connections::query(visit, connections::Seen::WithTools, Some((provider, key))).await?;
    let mut apps = oauth_apps(visit).await?;
    apps.retain(|app| app.is_of(provider, key));
    let back = visit.page("imports").at(id);
    let page = RemovePage {
        frame: Frame::new(visit, Section::Catalog, format!("Remove {}?", import.name)).refused(refusal),
        here: back.clone().at("remove").into(),
        back: back.into(),
        connections: connected,
        apps,
        import,
    };
    if refusal.is_some() { show_refused(refusal, &page) } else { show(&page) }
}

pub(super) async fn remove(visit: Visit, Segments((_, id)): Segments<(String, String)>, form: Form) -> PageResult {
    let force = form.has("force").then_some("true");
    match visit.delete(Path::new(IMPORTS).at(&id).with_some("force", force)).await {
        Ok(()) => see_other(visit.page("imports").with("told", "removed")),
        Err(refusal) if refusal.is_missing() => Err(refusal),
        Err(refusal) => show_remove(&visit, &id, Some(&refusal)).await,
    }
}
