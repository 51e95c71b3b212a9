//! Every documented operation as every kind of caller, on real rows and with valid bodies.

use std::collections::BTreeMap;

use grants::Surface;
use http::{Method, StatusCode};
use kernel::{Permission, Role};
use serde_json::{Value, json};

use super::composio::{NOT_SERVED, is_composios};
use super::operations::{self, Needs, Operation};
use super::rows::{Request, World};
use super::{Figures, is_long};
use crate::oauth_server::granted;
use crate::people::{person, signed_in};
use crate::support::{Browser, Database, Reply, sent_to, with_body};

/// What an identity is answered with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    /// 401: nobody knows it.
    Unknown,
    /// 403: it may not.
    Forbidden,
    /// Whatever the owner gets.
    Allowed,
    /// 404 for every row, and lists without rows.
    Stranger,
    /// The same for every agent but its own.
    Bound,
    /// 404: the project that it names is unknown to it.
    Outside,
}

/// What a caller shows.
#[derive(Clone)]
enum Shown {
    Authorization(Option<String>),
    /// The cookie of a session, and what a page of ours sends with it.
    Session(Vec<(&'static str, String)>),
}

/// Somebody who calls.
struct Identity {
    name: String,
    shown: Shown,
    judge: Box<dyn Fn(&Operation) -> Verdict>,
}

fn unknown(name: &str, authorization: Option<String>) -> Identity {
    Identity { name: name.to_owned(), shown: Shown::Authorization(authorization), judge: Box::new(|_| Verdict::Unknown) }
}

fn holder(name: String, key: &str, granted: Vec<Permission>) -> Identity {
    let judge = move |operation: &Operation| match &operation.needs {
        Needs::Operator | Needs::Session => Verdict::Unknown,
        Needs::Permissions(_) if may(operation, &granted) => Verdict::Allowed,
        _ => Verdict::Forbidden,
    };
    Identity { name, shown: Shown::Authorization(Some(format!("ApiKey {key}"))), judge: Box::new(judge) }
}

/// Whether these permissions are enough. Who gives a role or a key, or takes a role, has all that it has; others hand out nothing.
fn may(operation: &Operation, granted: &[Permission]) -> bool {
    let needed = operation.permissions();
    let viewer = Role::Viewer.permissions();
    let takes = ["revoke_invitation", "revoke_grant", "revoke_project_key", "set_retention", "set_user_limits"];
    let gives = needed.contains(&Permission::EditMembers) && !takes.contains(&operation.id.as_str());
    needed.iter().all(|permission| granted.contains(permission))
        && (!gives || Permission::ALL.into_iter().all(|permission| !viewer.has(permission) || granted.contains(&permission)))
}

/// Somebody who is signed in, with a role in a project, and acts in a project.
async fn session(world: &World, email: &str, member: (&str, Role), acts_in: &str) -> Vec<(&'static str, String)> {
    person(&world.test, email, Some(member)).await;
    headers(signed_in(&world.test, email).await, acts_in).await
}

/// What a page of ours sends with a session.
async fn headers(mut browser: Browser<'_>, acts_in: &str) -> Vec<(&'static str, String)> {
    let token = browser.me().await.expect(200)["csrf_token"].as_str().unwrap().to_owned();
    vec![
        ("cookie", format!("toolyard-session={}", browser.cookies["toolyard-session"])),
        ("sec-fetch-site", "same-origin".to_owned()),
        ("x-toolyard-csrf", token),
        ("x-toolyard-project", acts_in.to_owned()),
    ]
}

/// Whether an operation of somebody's own is tried on a row of somebody else.
fn names_others(operation: &Operation) -> bool {
    ["end_session", "revoke_own_grant"].contains(&operation.id.as_str())
}

/// Clients that somebody let in: with everything, with one permission, for one surface, in another project, and once they were revoked.
async fn clients(world: &World) -> Vec<Identity> {
    let test = &world.test;
    let token = async |project: &str, permissions: &[Permission], surface| {
        let (grant, tokens) = granted(test, project, permissions, surface).await;
        // A first use is noted, and the list would show it.
        test.yard.grants.authenticate(tokens.access.expose()).await.unwrap();
        (grant, format!("Bearer {}", tokens.access.expose()))
    };
    let mut all = vec![];
    let (_, whole) = token("default", &Permission::ALL, Surface::Api).await;
    let Identity { name, judge: of_owner, .. } = holder("a client of an owner".to_owned(), "", Role::Owner.permissions().iter().collect());
    // A key would outlive the grant.
    let judge = move |operation: &Operation| {
        if ["create_project_key", "create_user_session"].contains(&operation.id.as_str()) {
            Verdict::Forbidden
        } else {
            of_owner(operation)
        }
    };
    all.push(Identity { name, shown: Shown::Authorization(Some(whole)), judge: Box::new(judge) });
    for permission in [Permission::ViewTools, Permission::ViewAgents, Permission::ViewMembers] {
        let (_, narrow) = token("default", &[permission], Surface::Api).await;
        let name = format!("a client that was granted only {permission}");
        all.push(Identity { shown: Shown::Authorization(Some(narrow)), ..holder(name, "", vec![permission]) });
    }
    let (_, surface) = token("default", &Permission::ALL, Surface::Mcp).await;
    let judge = |operation: &Operation| if operation.path == "/mcp" { Verdict::Allowed } else { Verdict::Unknown };
    all.push(Identity { name: "a client for /mcp alone".to_owned(), shown: Shown::Authorization(Some(surface)), judge: Box::new(judge) });
    let (grant, revoked) = token("default", &Permission::ALL, Surface::Api).await;
    test.delete(&format!("/grants/{grant}")).await.expect(200);
    all.push(unknown("a client that was revoked", Some(revoked)));
    let (_, stranger) = token("foreign", &Permission::ALL, Surface::Api).await;
    let judge = |operation: &Operation| match operation.needs {
        Needs::Operator | Needs::Session => Verdict::Unknown,
        _ => Verdict::Stranger,
    };
    all.push(Identity {
        name: "a client of another project's owner".to_owned(),
        shown: Shown::Authorization(Some(stranger)),
        judge: Box::new(judge),
    });
    all
}

/// People who are signed in: members of each role, of another project, from a page of another site, the operator, and once they signed out.
async fn people(world: &World) -> Vec<Identity> {
    // The protocol for programs takes no cookies.
    let takes_none = |operation: &Operation| operation.path.starts_with("/mcp") || operation.path.starts_with("/tool_router");
    let mut all = Vec::new();
    for role in Role::ALL {
        let shown = Shown::Session(session(world, &format!("{role}@example.com"), ("default", role), "default").await);
        let granted: Vec<Permission> = role.permissions().iter().collect();
        let judge = move |operation: &Operation| match &operation.needs {
            _ if takes_none(operation) => Verdict::Unknown,
            Needs::Operator => Verdict::Forbidden,
            // The session or grant that was made is somebody else's.
            Needs::Session if names_others(operation) => Verdict::Stranger,
            Needs::Session => Verdict::Allowed,
            _ if may(operation, &granted) => Verdict::Allowed,
            _ => Verdict::Forbidden,
        };
        all.push(Identity { name: format!("a signed-in {role}"), shown, judge: Box::new(judge) });
    }
    let abroad = session(world, "abroad@example.com", ("abroad", Role::Owner), "abroad").await;
    let judge = move |operation: &Operation| match &operation.needs {
        _ if takes_none(operation) => Verdict::Unknown,
        Needs::Operator => Verdict::Forbidden,
        Needs::Session if !names_others(operation) => Verdict::Allowed,
        _ => Verdict::Stranger,
    };
    all.push(Identity { name: "a signed-in owner of another project".to_owned(), shown: Shown::Session(abroad), judge: Box::new(judge) });
    let outside = session(world, "outside@example.com", ("abroad", Role::Owner), "default").await;
    let judge = move |operation: &Operation| match &operation.needs {
        _ if takes_none(operation) => Verdict::Unknown,
        Needs::Operator => Verdict::Forbidden,
        Needs::Session if !names_others(operation) => Verdict::Allowed,
        _ => Verdict::Outside,
    };
    all.push(Identity {
        name: "one who names a project that is not theirs".to_owned(),
        shown: Shown::Session(outside),
        judge: Box::new(judge),
    });
    let mut foreign = session(world, "foreign@example.com", ("default", Role::Owner), "default").await;
    foreign[1].1 = "cross-site".to_owned();
    let judge = move |operation: &Operation| if takes_none(operation) { Verdict::Unknown } else { Verdict::Forbidden };
    all.push(Identity {
        name: "a page of another site in an owner's browser".to_owned(),
        shown: Shown::Session(foreign),
        judge: Box::new(judge),
    });
    let mut browser = Browser::new(&world.test);
    sent_to(&browser.sign_in(&[("key", world.test.yard.operator_key.expose())]).await);
    let operator = headers(browser, "default").await;
    let judge = move |operation: &Operation| match &operation.needs {
        _ if takes_none(operation) => Verdict::Unknown,
        Needs::Session if names_others(operation) => Verdict::Stranger,
        _ => Verdict::Allowed,
    };
    all.push(Identity { name: "the operator, signed in".to_owned(), shown: Shown::Session(operator), judge: Box::new(judge) });
    let ended = session(world, "ended@example.com", ("default", Role::Owner), "default").await;
    let user = world.test.yard.accounts.user_by_email("ended@example.com").await.unwrap();
    world.test.yard.people.end_all(user).await.unwrap();
    all.push(Identity { name: "an owner who signed out".to_owned(), shown: Shown::Session(ended), judge: Box::new(|_| Verdict::Unknown) });
    all
}

async fn identities(world: &World) -> Vec<Identity> {
    let test = &world.test;
    let key = async |role, only| test.key("default", role, only).await;
    let mut all = vec![
        unknown("no key", None),
        unknown("a bad key", Some("ApiKey wrong".to_owned())),
        unknown("a bad operator key", Some("Access wrong".to_owned())),
        unknown("the owner's key in another scheme", Some(format!("Basic {}", test.owner))),
    ];
    let revoked = json!({"key": {"project_id": own_project(world).await, "role": "owner"}});
    let revoked = test.admin(Method::POST, "/admin/keys", Some(revoked)).await.expect(200);
    let id = revoked["key"]["id"].as_str().unwrap();
    test.admin(Method::POST, &format!("/admin/keys/{id}/revoke"), None).await.expect(200);
    all.push(unknown("a revoked key", Some(format!("ApiKey {}", revoked["secret"].as_str().unwrap()))));
    let gone = test.key("gone", Role::Owner, None).await;
    let project = test.yard.accounts.find_project("gone").await.unwrap();
    test.yard.accounts.delete_project(project.id).await.unwrap();
    all.push(unknown("a key of a deleted project", Some(format!("ApiKey {gone}"))));
    let operator = format!("Access {}", test.yard.operator_key.expose());
    let judge = |operation: &Operation| if operation.needs == Needs::Operator { Verdict::Allowed } else { Verdict::Unknown };
    all.push(Identity { name: "the operator".to_owned(), shown: Shown::Authorization(Some(operator)), judge: Box::new(judge) });
    for role in Role::ALL {
        let granted = Permission::ALL.into_iter().filter(|permission| role.permissions().has(*permission)).collect();
        all.push(holder(format!("a {role}"), &key(role, None).await, granted));
    }
    for permission in Permission::ALL {
        let narrowed = key(Role::Owner, Some(vec![permission])).await;
        all.push(holder(format!("an owner with only {permission}"), &narrowed, vec![permission]));
    }
    let stranger = test.key("elsewhere", Role::Owner, None).await;
    let judge = |operation: &Operation| match operation.needs {
        Needs::Operator | Needs::Session => Verdict::Unknown,
        _ => Verdict::Stranger,
    };
    all.push(Identity {
        name: "another project's owner".to_owned(),
        shown: Shown::Authorization(Some(format!("ApiKey {stranger}"))),
        judge: Box::new(judge),
    });
    all.extend(user_sessions(world).await);
    all.push(agent_bound(world).await);
    all.extend(people(world).await);
    all.extend(clients(world).await);
    all
}

/// Tokens of end users' sessions. None of the rows is theirs, so they open nothing at all.
async fn user_sessions(world: &World) -> Vec<Identity> {
    let test = &world.test;
    let token = async |key: &str, end_user: &str, seconds: u64| {
        let new = json!({"session": {"end_user": end_user, "lifetime_seconds": seconds, "may_approve": true}});
        let made = test.post_as(key, "/sessions", new).await.expect(200)["session"].take();
        (made["id"].as_str().unwrap().to_owned(), Some(format!("Bearer {}", made["token"].as_str().unwrap())))
    };
    let elsewhere = test.key("sessions-elsewhere", Role::Owner, None).await;
    let (revoked, over) = token(&test.owner, "somebody", 3600).await;
    test.delete(&format!("/sessions/{revoked}")).await.expect(200);
    let (expired, late) = token(&test.owner, "somebody", 1).await;
    let expired: uuid::Uuid = expired.parse().unwrap();
    let sql = "update user_sessions set expires_at = created_at where id = $1";
    assert_eq!(test.yard.db.execute(sql, store::args![expired]).await.unwrap(), 1);
    vec![
        unknown("a session of an end user", token(&test.owner, "somebody", 3600).await.1),
        unknown("a session of another end user", token(&test.owner, "somebody else", 3600).await.1),
        unknown("a session of another project's end user", token(&elsewhere, "somebody", 3600).await.1),
        unknown("a session that was revoked", over),
        unknown("a session that expired", late),
    ]
}

async fn own_project(world: &World) -> String {
    world.test.yard.accounts.find_project("default").await.unwrap().id.uuid().to_string()
}

/// A key that acts for one agent, which none of the rows is.
async fn agent_bound(world: &World) -> Identity {
    let agent = world.test.post("/agents", json!({"name": "bound", "agent_type": "custom"})).await.expect(200);
    let body = json!({"key": {"project_id": own_project(world).await, "role": "owner", "agents": [agent["public_id"]]}});
    let made = world.test.admin(Method::POST, "/admin/keys", Some(body)).await.expect(200);
    let judge = |operation: &Operation| match operation.permissions().first() {
        None if matches!(operation.needs, Needs::Operator | Needs::Session) => Verdict::Unknown,
        Some(Permission::ViewAgents | Permission::RunAgents) => Verdict::Bound,
        None | Some(_) => Verdict::Forbidden,
    };
    let shown = Shown::Authorization(Some(format!("ApiKey {}", made["secret"].as_str().unwrap())));
    Identity { name: "a key for one agent".to_owned(), shown, judge: Box::new(judge) }
}

async fn send(world: &World, request: &Request, shown: Shown) -> Reply {
    let headers = match shown {
        Shown::Authorization(value) => value.into_iter().map(|value| ("authorization", value)).collect(),
        Shown::Session(headers) => headers,
    };
    let mut sent = http::Request::builder().method(request.method.clone()).uri(&request.path);
    for (name, value) in headers {
        sent = sent.header(name, value);
    }
    world.test.send(with_body(sent, request.body.clone())).await
}

/// What the owner gets, where it is not a success: streams need a client that takes events.
pub fn owners_status(operation: &Operation, status: StatusCode) -> bool {
    match operation.id.as_str() {
        "mcp_changes" | "mcp_agent_changes" | "mcp_session_changes" | "mcp_tool_router_changes" => status == 406,
        id if NOT_SERVED.contains(&id) => status == 501,
        // What the fake serves there is no MCP server.
        "import_mcp" => status == 424 || status == 422,
        _ => status.is_success(),
    }
}

/// What every project has something of: the catalog, the default environments, what a project says of itself.
fn shows_more(path: &str) -> bool {
    path.contains("/catalog/")
        || ["/v3.1/toolkits", "/v3.1/tools", "/v3.1/triggers_types", "/v3.1/webhook_subscriptions/event_types"]
            .iter()
            .any(|listed| path.starts_with(listed))
        || path.starts_with("/environments/")
        || path.starts_with("/simple/environments/")
        || path.starts_with("/mcp")
        || [
            "/access/permissions/check",
            "/tools/schema",
            "/tools/ops",
            "/tools/permissions",
            "/tools/calls/keeping",
            "/tools/oauth-apps/redirect/{provider_key}/{integration_key}",
            "/project/branding",
            "/project/retention",
            "/project/connect-links",
            "/project/user-limits",
            "/tools/marketplace",
            "/tools/stats",
            "/tools/{app_name}/actions",
            "/tools/{app_name}/triggers",
            "/agents/types",
            "/workflows/signing-secret",
            "/people/members",
            "/keys",
            "/grants",
        ]
        .contains(&path)
}

/// Whether an answer holds no rows: a list says so itself, anything else by its count.
fn is_empty(body: &Value) -> bool {
    let counted = ["count", "total", "total_agents", "events", "calls", "runs", "total_items"].iter().any(|count| body[*count] == 0);
    // Days are there whether something happened or not.
    let idle = |day: &Value| day["assigned"] == 0 && day["active"] == 0;
    let idle = body["days"].as_array().is_some_and(|days| days.iter().all(idle));
    // Notices have no count, and neither have the models of OpenAI's API.
    let untold = ["notices", "data"].iter().any(|list| body[*list].as_array().is_some_and(Vec::is_empty));
    body.as_array().map_or(counted || idle || untold, Vec::is_empty)
}

/// Whether an operation is a list of rows, or makes, changes or names one.
fn only_lists(operation: &Operation) -> bool {
    operation.permissions().iter().all(|permission| permission.name().starts_with("view_"))
}

/// What a key for one agent is told about the others.
fn check_bound(operation: &Operation, request: &Request, reply: &Reply, ids: &[String]) {
    let at = format!("{} {}: {} {}", request.method, request.path, reply.status, reply.text);
    assert!(ids.iter().all(|id| !reply.text.contains(id) || request.says(id)), "{at}");
    if operation.parameters.contains(&"agent_id".to_owned()) {
        assert_eq!(reply.status, 404, "{at}");
    }
}

/// What another project's owner is told about rows that are not theirs.
fn check_stranger(operation: &Operation, request: &Request, reply: &Reply, secret: &str, ids: &[String]) {
    let at = format!("{} {}: {} {}", request.method, request.path, reply.status, reply.text);
    for id in ids {
        assert!(!reply.text.contains(id) || request.says(id), "{at}\nshows {id}");
    }
    assert_ne!(reply.text, secret, "{at}");
    if operation.id == "call_tool" {
        assert_eq!((reply.status.as_u16(), &reply.json()["detail"]), (404, &json!("Connection not found: native/fake/main")), "{at}");
    }
    if operation.parameters.iter().any(|name| name.ends_with("_id") || name == "id") {
        assert_eq!(reply.status, 404, "{at}");
    } else if !request.rows.is_empty() && request.rows.keys().any(|name| name.ends_with("_id")) {
        // A body that names somebody else's row: it is unknown, and where it is a filter it fits nothing.
        let nothing = reply.status == 200 && is_empty(&reply.json());
        // A fork of what is not there is a bad request in the reference, and so is an account in Composio's API.
        let is_bad = (operation.id.starts_with("fork_") || is_composios(operation)) && reply.status == 400;
        assert!(nothing || is_bad || matches!(reply.status.as_u16(), 404 | 422), "{at}");
    } else if reply.status == 200 && only_lists(operation) && !shows_more(&operation.path) && operation.id != "preview_trigger_schedule" {
        let found = reply.json();
        let capabilities = found["capabilities"].as_array().into_iter().flatten();
        let discovered = operation.id.starts_with("discover_") && { capabilities }.all(|one| one["tool"]["connection"].is_null());
        let resolved = operation.id.starts_with("resolve_tool") || operation.id == "explain_tool_permission";
        assert!(is_empty(&found) || discovered || resolved, "{at}");
    }
}

async fn walk(database: Database) {
    let world = Box::pin(World::make(database)).await;
    let operations = operations::all();
    let secret = world.test.get("/workflows/signing-secret").await.text;
    let owner = Some(format!("ApiKey {}", world.test.owner));
    let operator = Some(format!("Access {}", world.test.yard.operator_key.expose()));

    // The rows that everybody is held against. Nobody but their owner changes them, so they are made once.
    let mut requests = Vec::new();
    for operation in operations.iter().filter(|operation| operation.needs != Needs::Nothing) {
        let request = world.request(operation).await;
        assert_ne!(request.body, Some(json!({})), "{}: a body that says nothing proves nothing", operation.id);
        requests.push((operation.clone(), request));
    }
    let ids: Vec<String> = requests.iter().flat_map(|(_, request)| request.rows.values().cloned()).filter(|id| id.len() == 36).collect();
    let seen = async || {
        let mut seen = BTreeMap::new();
        for (operation, request) in &requests {
            // What is not served shows nothing but the number of its request.
            let is_shown = !operation.path.starts_with("/mcp") && !NOT_SERVED.contains(&operation.id.as_str());
            if operation.method == Method::GET && is_shown {
                let authorization = if operation.needs == Needs::Operator { operator.clone() } else { owner.clone() };
                seen.insert(request.path.clone(), send(&world, request, Shown::Authorization(authorization)).await.text);
            }
        }
        seen
    };

    let callers = identities(&world).await;
    // A first use of a key is noted, and the list would show it.
    for caller in &callers {
        let request = Request { method: Method::GET, path: "/keys".to_owned(), body: None, rows: BTreeMap::new() };
        send(&world, &request, caller.shown.clone()).await;
    }
    // What was made above may still be on its way to somebody, which its row shows.
    let mut before = seen().await;
    for _ in 0..20 {
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
        let earlier = std::mem::replace(&mut before, seen().await);
        if earlier == before {
            break;
        }
    }
    let (mut tried, mut refused, mut allowed) = (0, 0, 0);
    // Whoever only looks comes first, so that a stranger's own rows are not there yet.
    let (looks, changes): (Vec<_>, Vec<_>) = requests.iter().partition(|(operation, _)| only_lists(operation));
    for caller in &callers {
        for (operation, request) in looks.iter().chain(&changes) {
            let verdict = (caller.judge)(operation);
            if verdict == Verdict::Allowed {
                continue;
            }
            let reply = send(&world, request, caller.shown.clone()).await;
            let at = format!("{}: {} {}: {} {}", caller.name, request.method, request.path, reply.status, reply.text);
            tried += 1;
            match verdict {
                Verdict::Unknown => assert_eq!(reply.status, 401, "{at}"),
                Verdict::Forbidden => assert_eq!(reply.status, 403, "{at}"),
                Verdict::Outside => assert_eq!(reply.status, 404, "{at}"),
                Verdict::Bound => check_bound(operation, request, &reply, &ids),
                Verdict::Stranger | Verdict::Allowed => check_stranger(operation, request, &reply, &secret, &ids),
            }
            refused += 1;
        }
    }
    let after = seen().await;
    for (path, text) in &before {
        // What strangers make is theirs; the operator sees it.
        if !path.starts_with("/admin/") {
            assert_eq!(text, &after[path], "{path} was changed by somebody who may not");
        }
    }

    // What is open to everybody shows nothing of a project.
    let public: Vec<&Operation> = operations.iter().filter(|operation| operation.needs == Needs::Nothing).collect();
    for operation in &public {
        let request = world.request(operation).await;
        let reply = send(&world, &request, Shown::Authorization(None)).await;
        let at = format!("{} {}: {} {}", request.method, request.path, reply.status, reply.text);
        tried += 1;
        assert!(!reply.status.is_server_error(), "{at}");
        assert!(ids.iter().all(|id| !reply.text.contains(id)), "{at}");
    }

    // The same requests on rows of their own succeed for those who may, so what was refused above was refused for who asked.
    let mut wrong = Vec::new();
    for caller in &callers {
        let is_narrow = caller.name.starts_with("an owner with only");
        if is_narrow && !is_long() {
            continue;
        }
        for (operation, _) in &requests {
            if (caller.judge)(operation) != Verdict::Allowed {
                continue;
            }
            let request = world.request(operation).await;
            let reply = send(&world, &request, caller.shown.clone()).await;
            let at = format!("{}: {} {}: {} {}", caller.name, request.method, request.path, reply.status, reply.text);
            tried += 1;
            allowed += 1;
            if !owners_status(operation, reply.status) {
                wrong.push(at);
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    Figures::new("matrix")
        .add("operations", requests.len() + public.len())
        .add("identities", callers.len())
        .add("requests", tried)
        .add("refused as they must be", refused)
        .add("allowed as they may be", allowed)
        .add("leaks", 0)
        .print();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everybody_gets_what_is_theirs_on_sqlite() {
    Box::pin(walk(Database::Sqlite)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everybody_gets_what_is_theirs_on_postgres() {
    Box::pin(walk(Database::Postgres)).await;
}
