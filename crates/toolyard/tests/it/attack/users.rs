//! Every documented operation for its own user, for another user, for another project and in a session that is over: nothing of another user
//! is seen, changed or used, whatever ids are known.

use std::collections::BTreeSet;

use http::Method;
use kernel::Role;
use serde_json::{Value, json};

use super::Figures;
use super::composio::{NOT_SERVED, is_composios};
use super::matrix::owners_status;
use super::operations::{self, Needs, Operation};
use super::rows::{Request, World};
use crate::support::{Database, Reply, with_body};

const OWN: &str = "anna";
const OTHER: &str = "bert";
/// What the accounts of the first are known by at their service.
const OWN_KEY: &str = "sk-anna-123456";

/// Rows that are one user's: whoever acts for another finds none of them.
const OF_A_USER: [&str; 8] =
    ["connection_id", "approval_id", "call_id", "run_id", "subscription_id", "schedule_id", "account_id", "trigger_id"];

/// Whose request it is, beside its key.
#[derive(Clone, Copy)]
enum Acting<'a> {
    Header(&'a str),
    Nobody,
}

async fn send(world: &World, request: &Request, authorization: &str, acting: Acting<'_>) -> Reply {
    let mut sent = http::Request::builder().method(request.method.clone()).uri(&request.path).header("authorization", authorization);
    if let Acting::Header(user) = acting {
        sent = sent.header("toolyard-end-user", user);
    }
    world.test.send(with_body(sent, request.body.clone())).await
}

fn at(who: &str, request: &Request, reply: &Reply) -> String {
    format!("{who}: {} {}: {} {}\n{:?}", request.method, request.path, reply.status, reply.text, request.body)
}

/// How often the first user's credential went out.
fn used(world: &World) -> usize {
    world.fake.seen().iter().filter(|seen| seen["headers"]["x-api-key"] == OWN_KEY).count()
}

/// What an answer shows that its request did not say.
fn shown<'a>(ids: &'a BTreeSet<String>, request: &Request, reply: &Reply) -> Vec<&'a String> {
    ids.iter().filter(|id| reply.text.contains(id.as_str()) && !request.says(id)).collect()
}

/// The same request for the other user, where it names one.
fn for_the_other(request: &Request) -> Option<Request> {
    let names = |text: &str| text.contains(OWN);
    let body = request.body.as_ref().map(Value::to_string).filter(|body| names(body));
    let body = body.map(|body| serde_json::from_str(&body.replace(OWN, OTHER)).unwrap());
    (names(&request.path) || body.is_some()).then(|| Request {
        path: request.path.replace(OWN, OTHER),
        body: body.or_else(|| request.body.clone()),
        ..request.clone()
    })
}

struct Walk {
    world: World,
    owner: String,
    stranger: String,
    tried: usize,
    refused: usize,
}

impl Walk {
    /// Whoever is not the user of a request's rows sees and uses nothing of theirs.
    fn check_other(&mut self, who: &str, operation: &Operation, request: &Request, reply: &Reply, ids: &BTreeSet<String>) {
        let at = at(who, request, reply);
        self.tried += 1;
        assert!(!reply.status.is_server_error() || NOT_SERVED.contains(&operation.id.as_str()), "{at}");
        assert!(shown(ids, request, reply).is_empty(), "{at}\nshows {:?}", shown(ids, request, reply));
        // In another project the same name is somebody else's.
        assert!(who != "another user" || !reply.text.contains(OWN) || request.says(OWN), "{at}");
        if operation.parameters.iter().any(|name| OF_A_USER.contains(&name.as_str()) || name == "router_session_id") {
            assert_eq!(reply.status, 404, "{at}");
            self.refused += 1;
        } else if request.rows.keys().any(|name| OF_A_USER.contains(&name.as_str())) {
            // A body that names a row of the user.
            assert!(matches!(reply.status.as_u16(), 400 | 404 | 422), "{at}");
            self.refused += 1;
        }
    }

    /// Routes that can be asked for a user by a header.
    async fn by_header(&mut self, operations: &[Operation]) {
        self.world.make_for(Some(OWN)).await;
        let mut requests = Vec::new();
        for operation in operations {
            requests.push((operation.clone(), self.world.request(operation).await));
        }
        *self.world.test.acts_for.lock().unwrap() = None;
        let ids: BTreeSet<String> = requests
            .iter()
            .flat_map(|(_, request)| request.rows.iter().filter(|(name, _)| OF_A_USER.contains(&name.as_str())))
            .map(|(_, id)| id.clone())
            .collect();
        assert!(ids.len() > 20, "{ids:?}");
        let (before, used_before) = (self.seen(&requests).await, used(&self.world));
        for (operation, request) in &requests {
            let reply = send(&self.world, request, &self.owner.clone(), Acting::Header(OTHER)).await;
            self.check_other("another user", operation, request, &reply, &ids);
            let reply = send(&self.world, request, &self.stranger.clone(), Acting::Header(OWN)).await;
            self.check_other("the same name in another project", operation, request, &reply, &ids);
        }
        assert_eq!(used(&self.world), used_before, "nobody used the account");
        assert_eq!(before, self.seen(&requests).await, "nobody changed anything");
        // The same on rows of their own succeeds, so what was refused was refused for who asked.
        self.world.make_for(Some(OWN)).await;
        for operation in operations {
            let request = self.world.request(operation).await;
            let reply = send(&self.world, &request, &self.owner.clone(), Acting::Header(OWN)).await;
            assert!(owners_status(operation, reply.status), "{}", at("their own", &request, &reply));
            self.tried += 1;
        }
        assert!(used(&self.world) > used_before, "the user's calls go through the user's account");
        self.world.make_for(None).await;
    }

    /// What the user themselves sees.
    async fn seen(&self, requests: &[(Operation, Request)]) -> Vec<String> {
        let mut seen = Vec::new();
        for (operation, request) in requests {
            // Statistics and lists of calls grow with every call.
            let is_read = operation.method == Method::GET && !operation.path.starts_with("/mcp") && !operation.path.contains("/calls");
            if is_read && operation.id != "follow_workflow_run" {
                seen.push(send(&self.world, request, &self.owner, Acting::Header(OWN)).await.text);
            }
        }
        seen
    }

    /// A header that would change nothing is refused, so that nobody takes the project's rows for a user's.
    async fn elsewhere(&mut self, operations: &[Operation]) {
        for operation in operations {
            let request = self.world.request(operation).await;
            let reply = send(&self.world, &request, &self.owner.clone(), Acting::Header(OWN)).await;
            let at = at("a header that does not belong there", &request, &reply);
            if is_composios(operation) {
                assert_eq!(reply.status, 422, "{at}");
            } else {
                assert_eq!((reply.status.as_u16(), &reply.json()["code"]), (422, &json!("value_invalid")), "{at}");
            }
            self.tried += 1;
            self.refused += 1;
        }
    }

    /// Sessions that have a token: each token opens its own, until it is over.
    async fn by_token(&mut self, operations: &[Operation]) {
        let other = self.world.test.post("/sessions", json!({"session": {"end_user": OTHER, "may_approve": true}})).await.expect(200);
        let other = format!("Bearer {}", other["session"]["token"].as_str().unwrap());
        let elsewhere = json!({"session": {"end_user": OWN, "may_approve": true}});
        let stranger = self.stranger.strip_prefix("ApiKey ").unwrap().to_owned();
        let elsewhere = self.world.test.post_as(&stranger, "/sessions", elsewhere).await.expect(200);
        let elsewhere = format!("Bearer {}", elsewhere["session"]["token"].as_str().unwrap());
        for operation in operations {
            let request = self.world.request(operation).await;
            let session = &request.rows["session_id"];
            let own = format!("Bearer {}", self.world.token(session));
            // It is for the project to end.
            if operation.id == "revoke_user_session" {
                let reply = send(&self.world, &request, &own, Acting::Nobody).await;
                assert_eq!(reply.status, 401, "{}", at("their own", &request, &reply));
                continue;
            }
            for (who, token, status) in [
                ("another user's token", other.clone(), 401),
                ("a token of another project", elsewhere.clone(), 401),
                ("another project's key", self.stranger.clone(), 404),
            ] {
                let reply = send(&self.world, &request, &token, Acting::Nobody).await;
                assert_eq!(reply.status, status, "{}", at(who, &request, &reply));
                self.tried += 1;
                self.refused += 1;
            }
            let reply = send(&self.world, &request, &own, Acting::Nobody).await;
            assert!(owners_status(operation, reply.status), "{}", at("their own", &request, &reply));
            self.end(session, false).await;
            for (who, authorization) in [("a session that is over", &own), ("a key in a session that is over", &self.owner.clone())] {
                let reply = send(&self.world, &request, authorization, Acting::Nobody).await;
                assert_eq!(reply.status, 401, "{}", at(who, &request, &reply));
                self.tried += 1;
                self.refused += 1;
            }
        }
    }

    /// Lets the time of a session be over.
    async fn end(&self, session: &str, is_routed: bool) {
        let id = if is_routed { composio_api::ids::SESSION.read(session).unwrap().uuid() } else { session.parse().unwrap() };
        let sql = "update user_sessions set expires_at = $2 where id = $1";
        let over = self.world.test.clock.now().minus(std::time::Duration::from_secs(1));
        assert_eq!(self.world.test.yard.db.execute(sql, store::args![id, over]).await.unwrap(), 1);
    }

    /// Composio's API, where a key names the user in each request.
    async fn by_name(&mut self, operations: &[Operation]) {
        self.world.make_for(Some(OWN)).await;
        *self.world.test.acts_for.lock().unwrap() = None;
        let mut requests = Vec::new();
        for operation in operations {
            requests.push((operation.clone(), self.world.request(operation).await));
        }
        let is_id = |id: &&String| id.contains('_') && id.len() > 20;
        let ids: BTreeSet<String> = requests.iter().flat_map(|(_, request)| request.rows.values()).filter(is_id).cloned().collect();
        assert!(ids.len() > 10, "{ids:?}");
        let before = used(&self.world);
        let mut named = 0;
        for (operation, request) in &requests {
            if let Some(other) = for_the_other(request) {
                named += 1;
                let reply = send(&self.world, &other, &self.owner.clone(), Acting::Nobody).await;
                self.check_other("another user", operation, &other, &reply, &ids);
            }
            let reply = send(&self.world, request, &self.stranger.clone(), Acting::Nobody).await;
            self.check_other("another project", operation, request, &reply, &ids);
        }
        assert!(named >= 3, "{named} requests name a user");
        assert_eq!(used(&self.world), before, "nobody used the account");
        for operation in operations {
            let request = self.world.request(operation).await;
            let reply = send(&self.world, &request, &self.owner.clone(), Acting::Nobody).await;
            assert!(owners_status(operation, reply.status), "{}", at("their own", &request, &reply));
            self.tried += 1;
            let Some(session) = request.rows.get("router_session_id") else { continue };
            if operation.id != "composio_delete_session" {
                self.end(session, true).await;
            }
            let reply = send(&self.world, &request, &self.owner.clone(), Acting::Nobody).await;
            assert_eq!(reply.status, 404, "{}", at("a session that is over", &request, &reply));
            self.tried += 1;
            self.refused += 1;
        }
        assert!(used(&self.world) > before, "the user's calls go through the user's account");
        self.world.make_for(None).await;
    }
}

async fn walk(database: Database) {
    let world = Box::pin(World::make(database)).await;
    let owner = format!("ApiKey {}", world.test.owner);
    let stranger = format!("ApiKey {}", world.test.key("users-elsewhere", Role::Owner, None).await);
    let mut walk = Walk { world, owner, stranger, tried: 0, refused: 0 };
    let all: Vec<Operation> = operations::all().into_iter().filter(|operation| matches!(operation.needs, Needs::Permissions(_))).collect();
    let (composios, own): (Vec<_>, Vec<_>) = all.into_iter().partition(is_composios);
    let (sessions, own): (Vec<_>, Vec<_>) = own.into_iter().partition(|operation| operation.parameters.contains(&"session_id".to_owned()));
    let (for_users, elsewhere): (Vec<_>, Vec<_>) = own.into_iter().partition(|operation| server::is_for_end_users(&operation.path));
    // Agents are the project's; a client of theirs may say for whom it asks.
    let for_users: Vec<Operation> = for_users.into_iter().filter(|operation| !operation.path.starts_with("/mcp/agents")).collect();
    let counts = [for_users.len(), elsewhere.len(), sessions.len(), composios.len()];
    Box::pin(walk.by_header(&for_users)).await;
    Box::pin(walk.elsewhere(&elsewhere)).await;
    Box::pin(walk.elsewhere(&composios)).await;
    Box::pin(walk.by_token(&sessions)).await;
    Box::pin(walk.by_name(&composios)).await;
    Figures::new("users")
        .add("operations for a user", counts[0])
        .add("of the project alone", counts[1])
        .add("in sessions", counts[2])
        .add("of Composio's API", counts[3])
        .add("requests", walk.tried)
        .add("refused as they must be", walk.refused)
        .add("leaks", 0)
        .print();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_of_another_user_is_seen_or_used_on_sqlite() {
    Box::pin(walk(Database::Sqlite)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_of_another_user_is_seen_or_used_on_postgres() {
    Box::pin(walk(Database::Postgres)).await;
}
