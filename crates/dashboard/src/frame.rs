//! What stands around every page: where one is, who one is, and what the last form came to.

use askama::Template;
use axum::response::{Html, IntoResponse, Response};
use http::{HeaderValue, StatusCode, header};

use crate::assets;
use crate::refusal::{PageResult, Refusal};
use crate::visit::Visit;

/// Nothing inline, nothing from elsewhere, and forms go nowhere but here.
const POLICY: &str = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; \
    base-uri 'none'; frame-ancestors 'none'";

/// The parts of the dashboard, in the order of the menu.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Section {
    Home,
    Approvals,
    Connections,
    EndUsers,
    Calls,
    Try,
    Triggers,
    Deliveries,
    Catalog,
    Agents,
    Workflows,
    Permissions,
    Settings,
    Operator,
    None,
}

impl Section {
    const MENU: [(Self, &'static str, &'static str); 13] = [
        (Self::Home, "", "Home"),
        (Self::Approvals, "approvals", "Approvals"),
        (Self::Connections, "connections", "Connections"),
        (Self::EndUsers, "users", "End users"),
        (Self::Calls, "calls", "Calls"),
        (Self::Try, "try", "Try a tool"),
        (Self::Triggers, "triggers", "Triggers"),
        (Self::Deliveries, "deliveries", "Deliveries"),
        (Self::Catalog, "catalog", "Catalog"),
        (Self::Agents, "agents", "Agents"),
        (Self::Workflows, "workflows", "Workflows"),
        (Self::Permissions, "permissions", "Permissions"),
        (Self::Settings, "settings", "Settings"),
    ];
}

/// An entry of a menu.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    pub(crate) href: String,
    pub(crate) label: String,
    pub(crate) is_current: bool,
}

/// What `layout.html` needs. Every page's template has one as `frame`.
#[derive(Clone, Debug)]
pub(crate) struct Frame {
    pub(crate) title: String,
    /// How many things wait for a person; stands in the title.
    pub(crate) waiting: Option<usize>,
    pub(crate) name: String,
    pub(crate) is_operator: bool,
    pub(crate) project_name: Option<String>,
    pub(crate) project_href: String,
    pub(crate) projects: Vec<Link>,
    pub(crate) menu: Vec<Link>,
    pub(crate) csrf: String,
    /// Good news of the last form.
    pub(crate) told: Option<String>,
    /// Why the last form came to nothing.
    pub(crate) error: Option<String>,
    pub(crate) style: &'static str,
    pub(crate) script: &'static str,
}

impl Frame {
    pub(crate) fn new(visit: &Visit, section: Section, title: impl Into<String>) -> Self {
        let menu = Section::MENU.into_iter().map(|(entry, path, label)| Link {
            href: visit.page(path).into(),
            label: label.to_owned(),
            is_current: entry == section,
        });
        let projects = visit.projects.iter().map(|project| Link {
            href: format!("/app/{}", project.slug),
            label: project.name.clone(),
            is_current: visit.project.as_ref().is_some_and(|current| current.slug == project.slug),
        });
        Self {
            title: title.into(),
            waiting: None,
            name: visit.name.clone(),
            is_operator: visit.is_operator(),
            project_name: visit.project.as_ref().map(|project| project.name.clone()),
            project_href: visit.page("").into(),
            projects: projects.collect(),
            menu: if visit.project.is_some() { menu.collect() } else { Vec::new() },
            csrf: visit.csrf.clone(),
            told: None,
            error: None,
            style: assets::style_path(),
            script: assets::script_path(),
        }
    }

    /// Says what the last form came to. The address holds a word of ours, never the text itself, so that no link can make a page say something.
    #[must_use]
    pub(crate) fn told(mut self, word: Option<&str>, words: &[(&str, &str)]) -> Self {
        self.told = words.iter().find(|(key, _)| Some(*key) == word).map(|(_, words)| (*words).to_owned());
        self
    }

    #[must_use]
    pub(crate) fn refused(mut self, refusal: Option<&Refusal>) -> Self {
        self.error = refusal.map(|refusal| refusal.words.clone());
        self
    }

    #[must_use]
    pub(crate) fn waiting(mut self, count: usize) -> Self {
        self.waiting = Some(count).filter(|count| *count > 0);
        self
    }
}

/// A page as a response.
pub(crate) fn show(page: &impl Template) -> PageResult {
    show_with(StatusCode::OK, page)
}

/// A page that says no, with the status of the refusal.
pub(crate) fn show_refused(refusal: Option<&Refusal>, page: &impl Template) -> PageResult {
    show_with(refusal.map_or(StatusCode::OK, |refusal| refusal.status), page)
}

pub(crate) fn show_with(status: StatusCode, page: &impl Template) -> PageResult {
    let html =
        page.render().map_err(|error| Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, format!("The page cannot be shown: {error}")))?;
    let mut response = (status, Html(html)).into_response();
    protect(&mut response);
    Ok(response)
}

fn protect(response: &mut Response) {
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
}

/// Where a browser goes after a form.
pub(crate) fn see_other(path: impl Into<String>) -> PageResult {
    let location = HeaderValue::try_from(path.into()).map_err(|_| Refusal::new(StatusCode::BAD_REQUEST, "There is no such address."))?;
    Ok((StatusCode::SEE_OTHER, [(header::LOCATION, location)]).into_response())
}

/// The page of a refusal.
#[derive(Template)]
#[template(path = "refused.html")]
pub(crate) struct RefusedPage<'a> {
    pub(crate) frame: Frame,
    pub(crate) words: &'a str,
}
