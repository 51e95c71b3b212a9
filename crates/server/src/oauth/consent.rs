//! The page on which a person lets a client in: who asks, for what, where, and what the person makes of it. It works without scripts.

use ::agents::AgentError;
use ::grants::{Approval, Granter, Refusal, Surface};
use askama::Template;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use kernel::{Permission, PermissionSet, ProjectId, Scope};
use people::{SignedIn, Via};

use super::form::Fields;
use super::{OauthError, OauthResult};
use crate::App;
use crate::agents::agent_ref;
use crate::edge::Code;
use crate::edge::page::html;
use crate::edge::session::csrf_token;

/// The operator belongs to no project, so what they let in could not end with a membership or a key.
const OPERATOR: &str = "You are signed in with the operator's key. Sign in as a person or with a project key to let a client in.";

/// What a client asks of a person.
#[derive(Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) client_name: &'a str,
    /// The host that speaks for the client; nothing where a client named itself.
    pub(crate) vouched_by: Option<String>,
    pub(crate) surface: &'a Surface,
    pub(crate) permissions: PermissionSet,
    pub(crate) way: Way<'a>,
}

/// How the client hears of the answer.
#[derive(Debug)]
pub(crate) enum Way<'a> {
    /// The person is sent back there; the form holds the request.
    Back { redirect_uri: &'a str, request: &'a str },
    /// A device asks by itself; the form holds the code that it shows.
    Device { user_code: &'a str },
}

/// A project that the client can be let into.
#[derive(Debug)]
pub(crate) struct Place {
    project: ProjectId,
    slug: String,
    name: String,
    scope: Scope,
    agent: Option<String>,
}

/// What a client gets that does not say what it wants: what the surface needs, and of the API what changes nothing for good.
pub(crate) fn usual(surface: &Surface) -> PermissionSet {
    match surface {
        Surface::Mcp => [Permission::RunTools].into_iter().collect(),
        Surface::Agent(_) => [Permission::RunAgents, Permission::RunTools].into_iter().collect(),
        Surface::Api => {
            let is_usual = |permission: &Permission| ["view_", "run_"].iter().any(|kind| permission.name().starts_with(kind));
            Permission::ALL.into_iter().filter(is_usual).collect()
        }
    }
}

/// Who lets a client in, if they can.
fn granter(signed_in: &SignedIn) -> OauthResult<Granter> {
    match (signed_in.via, signed_in.person) {
        (Via::Person, Some(user)) => Ok(Granter::User(user)),
        (Via::Key(key), _) => Ok(Granter::Key(key)),
        _ => Err(OauthError::new(Refusal::AccessDenied, OPERATOR)),
    }
}

/// The projects that somebody who is signed in can let a client into; for an agent's surface, those that have the agent.
pub(crate) async fn places(app: &App, signed_in: &SignedIn, surface: &Surface) -> OauthResult<Vec<Place>> {
    granter(signed_in)?;
    let mut places = Vec::new();
    for membership in app.people.projects(signed_in).await.map_err(crate::edge::ApiError::from)? {
        let scope = app.people.scope(signed_in, membership.project).await.map_err(crate::edge::ApiError::from)?;
        let Some(scope) = scope else { continue };
        let agent = match surface {
            Surface::Agent(id) => match app.agents.read(scope, agent_ref(id)?).await {
                Ok(agent) => Some(agent.name),
                Err(AgentError::NotFound) => continue,
                Err(error) => return Err(crate::edge::ApiError::from(error).into()),
            },
            _ => None,
        };
        places.push(Place { project: membership.project, slug: membership.project_slug, name: membership.project_name, scope, agent });
    }
    match (places.is_empty(), surface) {
        (false, _) => Ok(places),
        (true, Surface::Agent(_)) => Err(OauthError::new(Refusal::InvalidTarget, "There is no such agent in your projects.")),
        (true, _) => Err(OauthError::new(Refusal::AccessDenied, "You belong to no project yet. Ask an owner to invite you.")),
    }
}

/// The place that the form names, or the first.
pub(crate) fn chosen<'a>(places: &'a [Place], form: &Fields) -> Option<&'a Place> {
    match form.get("project") {
        Some(named) => places.iter().find(|place| place.project.to_string() == named),
        None => places.first(),
    }
}

/// What the person allows: of what is asked, what they ticked and have themselves at this moment.
pub(crate) fn approval(asked: &Asked<'_>, place: &Place, signed_in: &SignedIn, form: &Fields) -> OauthResult<Option<Approval>> {
    let ticked = Permission::ALL.into_iter().filter(|permission| form.get(&format!("allow_{permission}")).is_some());
    let permissions = allowed(asked.permissions, place.scope.permissions, ticked.collect());
    let approval = Approval { project: place.project, granter: granter(signed_in)?, surface: asked.surface.clone(), permissions };
    Ok((permissions != PermissionSet::default()).then_some(approval))
}

fn allowed(asked: PermissionSet, held: PermissionSet, ticked: PermissionSet) -> PermissionSet {
    asked.and(held).and(ticked)
}

#[derive(Template)]
#[template(path = "consent.html")]
struct ConsentPage<'a> {
    client: &'a str,
    vouched_by: Option<&'a str>,
    person: &'a str,
    surface: String,
    returns_to: Option<(String, &'a str)>,
    action: &'static str,
    request: Option<&'a str>,
    user_code: Option<&'a str>,
    projects: Vec<Choice>,
    project: &'a str,
    permissions: Vec<Choice>,
    missing: Vec<&'static str>,
    error: Option<&'a str>,
    csrf: String,
    nonce: String,
}

/// Something that can be ticked or picked.
struct Choice {
    value: String,
    words: String,
    is_chosen: bool,
}

/// What a permission allows, in words.
fn words(permission: Permission) -> &'static str {
    match permission {
        Permission::ViewTools => "See tools, connections and the record of calls",
        Permission::RunTools => "Call tools with the connected accounts",
        Permission::EditTools => "Connect and remove accounts, import tools, change which calls are allowed",
        Permission::ViewTriggers => "See triggers and what they delivered",
        Permission::RunTriggers => "Start and repeat what triggers do",
        Permission::EditTriggers => "Make, change and remove triggers",
        Permission::ViewWorkflows => "See workflows and their runs",
        Permission::RunWorkflows => "Run workflows",
        Permission::EditWorkflows => "Make, change and deploy workflows",
        Permission::ViewAgents => "See agents and their tools",
        Permission::RunAgents => "Act as agents",
        Permission::EditAgents => "Make, change and remove agents",
        Permission::ViewSecrets => "See the names of secrets",
        Permission::EditSecrets => "Keep, change and delete secrets",
        Permission::ReadSecrets => "Read the values of secrets",
        Permission::ViewMembers => "See who belongs to the project",
        Permission::EditMembers => "Invite and remove members, revoke grants",
    }
}

fn surface_words(surface: &Surface, place: &Place) -> String {
    match (surface, &place.agent) {
        (Surface::Agent(_), Some(agent)) => format!("the tools of the agent {agent} (MCP)"),
        (Surface::Mcp, _) => "the tools of the project (MCP)".to_owned(),
        _ => "the whole API of the project".to_owned(),
    }
}

/// The page, for the project that is chosen.
pub(crate) fn page(app: &App, signed_in: &SignedIn, asked: &Asked<'_>, places: &[Place], place: &Place, error: Option<&str>) -> Response {
    let has = place.scope.permissions;
    let permissions = asked.permissions.and(has).iter();
    let permissions =
        permissions.map(|permission| Choice { value: permission.name().to_owned(), words: words(permission).to_owned(), is_chosen: true });
    let projects = places.iter().map(|one| Choice {
        value: one.project.to_string(),
        words: format!("{} ({})", one.name, one.slug),
        is_chosen: one.project == place.project,
    });
    let (permissions, projects): (Vec<Choice>, Vec<Choice>) = (permissions.collect(), projects.collect());
    let (action, also, returns_to, request, user_code) = match asked.way {
        Way::Back { redirect_uri, request } => {
            ("/oauth/authorize", form_action(redirect_uri), Some((origin(redirect_uri), redirect_uri)), Some(request), None)
        }
        Way::Device { user_code } => ("/device", "form-action 'self'".to_owned(), None, None, Some(user_code)),
    };
    let status = if error.is_some() { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::OK };
    html(status, &also, |nonce| ConsentPage {
        client: asked.client_name,
        vouched_by: asked.vouched_by.as_deref(),
        person: &signed_in.name,
        surface: surface_words(asked.surface, place),
        returns_to,
        action,
        request,
        user_code,
        projects,
        project: &place.name,
        permissions,
        missing: asked.permissions.iter().filter(|permission| !has.has(*permission)).map(words).collect(),
        error,
        csrf: csrf_token(app, signed_in),
        nonce,
    })
}

/// Where the form may lead. Browsers hold this against every redirect that follows, so it has the client's address and, since that may lead
/// on to another page of the client, `https` as well.
fn form_action(redirect_uri: &str) -> String {
    let is_web = redirect_uri.starts_with("https:") || redirect_uri.starts_with("http:");
    let source = if is_web { origin(redirect_uri) } else { format!("{}:", redirect_uri.split(':').next().unwrap_or_default()) };
    format!("form-action 'self' {source} https:")
}

/// Scheme, host and port of an address, as it is written.
fn origin(uri: &str) -> String {
    let Some((scheme, rest)) = uri.split_once("://") else { return uri.to_owned() };
    format!("{scheme}://{}", rest.split(['/', '?']).next().unwrap_or_default())
}

#[derive(Template)]
#[template(path = "told.html")]
struct ToldPage<'a> {
    title: &'a str,
    text: &'a str,
    nonce: String,
}

/// A page that says how it ended, or why it cannot go on.
pub(crate) fn told(status: StatusCode, title: &str, text: &str) -> Response {
    html(status, "form-action 'none'", |nonce| ToldPage { title, text, nonce })
}

/// A refusal as a page, where the client must not be told because nobody knows where it is.
pub(crate) fn refused(error: OauthError) -> Response {
    match error {
        OauthError::Refused(_, text) => told(StatusCode::BAD_REQUEST, "Nobody was let in", &text),
        OauthError::Other(error) if matches!(error.code(), Code::ProjectFull) => {
            told(error.status(), "Nobody was let in", &error.message())
        }
        OauthError::Other(error) => error.into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_gives_more_than_they_have_or_than_is_asked() {
        let set = |names: &[Permission]| names.iter().copied().collect::<PermissionSet>();
        use Permission::{EditTools, RunTools, ViewTools};
        for (asked, held, ticked, expected) in [
            (&[RunTools, ViewTools][..], &[RunTools, ViewTools][..], &[RunTools][..], &[RunTools][..]),
            (&[RunTools, EditTools], &[ViewTools], &[RunTools, EditTools], &[]),
            (&[ViewTools], &[ViewTools, RunTools, EditTools], &[ViewTools, EditTools], &[ViewTools]),
            (&[RunTools], &[RunTools], &[], &[]),
        ] {
            assert_eq!(allowed(set(asked), set(held), set(ticked)), set(expected));
        }
    }

    #[test]
    fn a_form_leads_to_the_client_and_nowhere_strange() {
        for (uri, policy) in [
            ("https://client.example:8443/cb?x=1", "form-action 'self' https://client.example:8443 https:"),
            ("http://127.0.0.1:61234/cb", "form-action 'self' http://127.0.0.1:61234 https:"),
            ("cursor://a.b/cb", "form-action 'self' cursor: https:"),
        ] {
            assert_eq!(form_action(uri), policy);
        }
    }
}
