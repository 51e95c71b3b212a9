//! Settings of a project, one page for each: keys, members, OAuth apps, secrets, what was learned, what is kept, how connect pages look, and who was
//! let in.

mod access;
mod branding;
mod grants;
mod keeping;
mod keys;
mod learned;
mod members;
mod oauth_apps;
mod secrets;

use askama::Template;
use axum::Router;
use axum::routing::get;

use crate::frame::{Frame, Link, Section, see_other, show_refused};
use crate::path::Path;
use crate::refusal::{PageResult, Refusal};
use crate::visit::Visit;

use access::{ROLES, permission_choices};
pub(crate) use keys::{Key, KeyForm, Keys, MadeKey};
pub(crate) use oauth_apps::{AppForm, OAuthApp, OAuthApps, TOLD as APPS_TOLD};

pub(crate) fn routes<S: Clone + Send + Sync + 'static>() -> Router<S> {
    Router::new()
        .route("/{project}/settings", get(first))
        .merge(keys::routes())
        .merge(members::routes())
        .merge(oauth_apps::routes())
        .merge(secrets::routes())
        .merge(learned::routes())
        .merge(keeping::routes())
        .merge(branding::routes())
        .merge(grants::routes())
}

/// The pages of the settings, in the order of their tabs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Tab {
    Keys,
    Members,
    OAuthApps,
    Secrets,
    Learned,
    Keeping,
    Branding,
    Grants,
}

impl Tab {
    const ALL: [(Self, &'static str, &'static str); 8] = [
        (Self::Keys, "keys", "Keys"),
        (Self::Members, "members", "Members"),
        (Self::OAuthApps, "oauth-apps", "OAuth apps"),
        (Self::Secrets, "secrets", "Secrets"),
        (Self::Learned, "learned", "Learned phrases"),
        (Self::Keeping, "keeping", "Keeping"),
        (Self::Branding, "branding", "Branding"),
        (Self::Grants, "grants", "Grants"),
    ];

    fn here(self, visit: &Visit) -> Path {
        let path = Self::ALL.iter().find(|(tab, _, _)| *tab == self).map_or("", |(_, path, _)| path);
        visit.page("settings").at(path)
    }

    fn links(self, visit: &Visit) -> Vec<Link> {
        let link =
            |(tab, _, label): (Self, &str, &str)| Link { href: tab.here(visit).into(), label: label.to_owned(), is_current: tab == self };
        Self::ALL.into_iter().map(link).collect()
    }

    fn frame(self, visit: &Visit) -> Frame {
        let label = Self::ALL.iter().find(|(tab, _, _)| *tab == self).map_or("Settings", |(_, _, label)| label);
        Frame::new(visit, Section::Settings, label)
    }
}

async fn first(visit: Visit) -> PageResult {
    see_other(Tab::Keys.here(&visit))
}

#[derive(Template)]
#[template(path = "setting_refused.html")]
struct RefusedTab {
    frame: Frame,
    tabs: Vec<Link>,
}

/// A tab whose list cannot be shown says why, between the tabs that can.
fn show_refused_tab(visit: &Visit, tab: Tab, refusal: &Refusal) -> PageResult {
    let page = RefusedTab { frame: tab.frame(visit).refused(Some(refusal)), tabs: tab.links(visit) };
    show_refused(Some(refusal), &page)
}
