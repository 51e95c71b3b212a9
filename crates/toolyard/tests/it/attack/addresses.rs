//! Every way to write an address that is not public, through every door that leads to a call of ours. A trap on this machine listens
//! where they lead: nothing may ever knock there.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use axum::body::Body;
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use axum::{Json, Router};
use http::{Request, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;

use super::{Figures, is_long};
use crate::oauth_server::{authorize_url, with_key};
use crate::reserved::workflow;
use crate::support::{Database, Reply, Test};

/// Counts whoever connects to a port of this machine.
struct Trap {
    port: u16,
    knocked: Arc<AtomicUsize>,
}

impl Trap {
    async fn set() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let knocked = Arc::new(AtomicUsize::new(0));
        // The same port over IPv6, where there is one.
        for listener in [Some(listener), TcpListener::bind(("::1", port)).await.ok()].into_iter().flatten() {
            let knocked = knocked.clone();
            tokio::spawn(async move {
                while listener.accept().await.is_ok() {
                    knocked.fetch_add(1, Ordering::SeqCst);
                }
            });
        }
        Self { port, knocked }
    }
}

/// Hosts that are this machine in one way or another, or lie where only insiders are.
fn hosts(port: u16) -> Vec<String> {
    let here = [
        "127.0.0.1",
        "127.1",
        "127.0.1",
        "127.255.255.254",
        "2130706433",
        "0x7f000001",
        "0x7f.0.0.1",
        "0X7F.1",
        "0177.0.0.1",
        "017700000001",
        "0",
        "0.0.0.0",
        "127.0.0.1.",
        "%31%32%37.0.0.1",
        "１２７.０.０.１",
        "127。0。0。1",
        "①②⑦.⓪.⓪.①",
        "localhost",
        "LOCALHOST",
        "localhost.",
        "ⓛocalhost",
        "[::1]",
        "[::]",
        "[0:0:0:0:0:0:0:1]",
        "[::127.0.0.1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:7f00:1]",
        "[0:0:0:0:0:ffff:127.0.0.1]",
        "[64:ff9b::127.0.0.1]",
        "[64:ff9b:1::127.0.0.1]",
        "[2002:7f00:1::]",
        "[2002:7f00:0001::1]",
        "public.example@127.0.0.1",
        "public.example:443@localhost",
    ];
    let inside = [
        "10.0.0.1",
        "10.255.255.255",
        "172.16.0.1",
        "172.31.255.254",
        "192.168.0.1",
        "3232235521",
        "100.64.0.1",
        "169.254.169.254",
        "2852039166",
        "0xa9fea9fe",
        "0251.0376.0251.0376",
        "169.254.1.1",
        "168.63.129.16",
        "100.100.100.200",
        "192.0.0.192",
        "198.18.0.1",
        "224.0.0.1",
        "255.255.255.255",
        "[fe80::1]",
        "[fc00::1]",
        "[fd00:ec2::254]",
        "[fec0::1]",
        "[ff02::1]",
        "[::ffff:10.0.0.1]",
        "[::ffff:a9fe:a9fe]",
        "[64:ff9b::169.254.169.254]",
        "[2002:a00:1::]",
        "[2002:c0a8:1::]",
        "[2001:db8::1]",
        "[2001::1]",
        "[3fff::1]",
        "[4000::1]",
    ];
    let own = std::fs::read_to_string("/etc/hostname").unwrap_or_default().trim().to_owned();
    let names = [own].into_iter().filter(|name| !name.is_empty());
    let all = here.into_iter().chain(inside).map(str::to_owned).chain(names);
    all.map(|host| format!("{host}:{port}")).collect()
}

#[derive(Deserialize)]
struct Towards {
    to: String,
}

/// A server that the operator lets projects reach, and that sends them elsewhere.
struct Lure(String);

impl Lure {
    async fn start() -> (Self, u16) {
        let router = Router::new()
            .route(
                "/redirect",
                any(|Query(towards): Query<Towards>| async move { (StatusCode::TEMPORARY_REDIRECT, [("location", towards.to)]) }),
            )
            .route("/document", get(document))
            .route("/mcp", post(challenge))
            .route("/resource", get(resource))
            .route("/.well-known/oauth-authorization-server/as", get(metadata))
            .with_state(Arc::new(std::sync::Mutex::new(String::new())));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        (Self(format!("http://127.0.0.1:{port}")), port)
    }

    fn at(&self, path: &str, to: &str) -> String {
        let to = url::form_urlencoded::byte_serialize(to.as_bytes()).collect::<String>();
        format!("{}{path}?to={to}", self.0)
    }
}

type Last = State<Arc<std::sync::Mutex<String>>>;

/// A document whose servers are elsewhere.
async fn document(Query(towards): Query<Towards>) -> Json<Value> {
    Json(
        json!({"openapi": "3.1.0", "info": {"title": "Lure"}, "servers": [{"url": towards.to}], "paths": {"/x": {"get": {"operationId": "look"}}}}),
    )
}

/// A server that wants an account, and says elsewhere how to get one.
async fn challenge(State(last): Last, Query(towards): Query<Towards>) -> Response {
    *last.lock().unwrap() = towards.to.clone();
    let place = towards.to.strip_prefix("as:").map_or_else(|| towards.to.clone(), |_| "/resource".to_owned());
    (StatusCode::UNAUTHORIZED, [("www-authenticate", format!("Bearer resource_metadata=\"{place}\""))]).into_response()
}

async fn resource(State(last): Last) -> Json<Value> {
    let to = last.lock().unwrap().clone();
    Json(json!({"authorization_servers": [to.trim_start_matches("as:")]}))
}

async fn metadata(State(last): Last) -> Json<Value> {
    let to = last.lock().unwrap().clone();
    Json(json!({"issuer": to, "authorization_endpoint": to, "token_endpoint": to, "registration_endpoint": to}))
}

const MANIFEST: &str = r#"
key: open
name: Open
description: A service whose address is whatever its account says.
categories: [data]
base_url: "{connection.base}"
auth:
  - scheme: api_key
    fields:
      base: {label: Base, secret: false, pattern: ".+"}
      api_key: {label: Key, help: Any.}
    send: {headers: {X-Api-Key: "{connection.api_key}"}}
  - scheme: client_credentials
    token_url: "{connection.base}/token"
    scopes: [one]
    client_auth: basic
    fields:
      base: {label: Base, secret: false, pattern: ".+"}
  - scheme: oauth2
    authorize_url: "{connection.base}/auth"
    token_url: "{connection.base}/token"
    scopes: [one]
    app_help: The test keeps it.
    fields:
      base: {label: Base, secret: false, pattern: ".+"}
actions:
  - key: LOOK
    name: Look
    description: Looks at whatever is there.
    use_cases: [look at the open thing, see what is there, read what is behind it]
    request: GET /look
webhooks:
  register: {request: POST /hooks, body: {url: "{{ url }}", secret: "{{ secret }}"}, id: /id}
  unregister: {request: "DELETE /hooks/{webhook_id}"}
  signature: {algorithm: hmac-sha256, header: X-Open-Signature, encoding: hex, prefix: "sha256=", signed: "{body}"}
  event: {header: X-Open-Event}
  id: {header: X-Open-Delivery}
events:
  - key: MOVED
    name: Moved
    description: Something moved in the open service.
    use_cases: [when something moves, on every move, tell me about moves]
    webhook: {event: moved}
"#;

/// What is tried at one address; a door answers with everything that it said.
struct Doors<'a> {
    test: &'a Test,
    lure: &'a Lure,
    /// Of somebody who is signed in.
    cookie: &'a str,
    number: usize,
}

impl Doors<'_> {
    fn connection(&self, kind: &str, scheme: &str, credentials: &Value) -> Value {
        let slug = format!("{kind}-{}", self.number);
        json!({"connection": {"slug": slug, "provider_key": "native", "integration_key": "open",
            "data": {"auth_scheme": scheme, "credentials": credentials}}})
    }

    async fn import(&self, kind: &str, import: Value) -> Reply {
        self.test.post(&format!("/tools/imports/{kind}"), json!({"import": import})).await
    }

    /// Imports a document and calls what it has.
    async fn imported(&self, key: &str, import: Value) -> Reply {
        let key = format!("{key}-{}", self.number);
        let mut import = import;
        import["key"] = json!(key);
        let made = self.import("openapi", import).await;
        if made.status != 200 {
            return made;
        }
        self.test.call(&format!("tools.openapi.{key}.look.{key}-main"), json!({})).await
    }

    async fn run(&self, kind: &str, url: &str) -> Reply {
        let slug = format!("{kind}-{}", self.number);
        let body = json!({"workflow": {"slug": slug, "data": {"kind": "http", "url": url}}});
        let made = self.test.post("/simple/workflows", body).await;
        if made.status != 200 {
            return made;
        }
        self.test.post("/workflows/invoke", json!({"references": {"workflow": {"slug": slug}}})).await
    }

    async fn all(&self, base: &str) -> Vec<(&'static str, Reply)> {
        let (test, lure) = (self.test, self.lure);
        let mut said = vec![
            ("a document's address", self.import("openapi", json!({"url": base})).await),
            ("a document's address that redirects", self.import("openapi", json!({"url": lure.at("/redirect", base)})).await),
            ("the servers of a document", self.imported("servers", json!({"url": lure.at("/document", base)})).await),
            ("a server in place of a document's", {
                let url = lure.at("/document", "https://example.com");
                self.imported("server", json!({"url": url, "server_url": base})).await
            }),
            ("an MCP server", self.import("mcp", json!({"url": base})).await),
            ("an MCP server that redirects", self.import("mcp", json!({"url": lure.at("/redirect", base)})).await),
            ("an MCP server's resource metadata", self.import("mcp", json!({"url": lure.at("/mcp", base)})).await),
            ("an MCP server's authorization server", self.import("mcp", json!({"url": lure.at("/mcp", &format!("as:{base}"))})).await),
            ("a workflow's service", self.run("flow", base).await),
            ("a workflow's service that redirects", self.run("flown", &lure.at("/redirect", base)).await),
            ("a token endpoint", {
                let credentials = json!({"base": base, "client_id": "c", "client_secret": "s"});
                test.post("/tools/connections", self.connection("client", "client_credentials", &credentials)).await
            }),
            ("the document of an OAuth client", {
                let asked = Request::get(authorize_url(&format!("{base}/client.json"), &[])).header("cookie", self.cookie);
                test.send(asked.body(Body::empty()).unwrap()).await
            }),
        ];
        let keyed = self.connection("keyed", "api_key", &json!({"base": base, "api_key": "sk-open-123456"}));
        let made = test.post("/tools/connections", keyed).await;
        if made.status == 200 {
            let (id, slug) = (made.json()["connection"]["id"].clone(), format!("keyed-{}", self.number));
            said.push(("a connection's own address", test.call(&format!("tools.native.open.LOOK.{slug}"), json!({})).await));
            let data = json!({"event_key": "MOVED", "references": {"workflow": {"slug": "echo"}}});
            let body = json!({"subscription": {"connection_id": id, "data": data}});
            said.push(("a webhook that is registered", test.post("/triggers/subscriptions", body).await));
        } else {
            said.push(("a connection's own address", made));
        }
        let begun = test.post("/tools/connections", self.connection("oauth", "oauth2", &json!({"base": base}))).await;
        if begun.status == 200 {
            let redirect: url::Url = begun.json()["connection"]["status"]["redirect_url"].as_str().unwrap().parse().unwrap();
            let part = |name: &str| redirect.query_pairs().find(|(found, _)| found == name).unwrap().1.into_owned();
            let (state, back) = (part("state"), part("redirect_uri").parse::<url::Url>().unwrap());
            said.push(("a token endpoint after the callback", test.get(&format!("{}?state={state}&code=c", back.path())).await));
        } else {
            said.push(("a token endpoint after the callback", begun));
        }
        said
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_door_leads_to_an_address_that_is_not_public() {
    let trap = Trap::set().await;
    let (lure, allowed) = Lure::start().await;
    let folder = TempDir::new().unwrap();
    std::fs::write(folder.path().join("open.yaml"), MANIFEST).unwrap();
    let test = Test::with(Database::Sqlite, |config| {
        config.egress_allow = format!("127.0.0.1:{allowed}");
        config.integrations_dir = Some(folder.path().to_owned());
    })
    .await;
    workflow(&test, "echo", json!({"kind": "echo"})).await;
    let app = json!({"oauth_app": {"integration_key": "open", "client_id": "c", "client_secret": "s"}});
    test.post("/tools/oauth-apps", app).await.expect(200);
    // The lure itself can be reached, so that what is refused is refused for where it leads.
    let reached =
        test.post("/tools/imports/openapi", json!({"import": {"key": "lure", "url": lure.at("/document", "https://example.com")}}));
    reached.await.expect(200);

    let browser = with_key(&test, &test.owner).await;
    let cookie = format!("toolyard-session={}", browser.cookies["toolyard-session"]);
    let hosts = hosts(trap.port);
    let mut tried = 0;
    for (number, host) in hosts.iter().enumerate() {
        // In a short run each host is tried over one scheme.
        let schemes: &[&str] = if is_long() { &["https", "http"] } else { &[["https", "http"][number % 2]] };
        for (scheme, shift) in schemes.iter().zip([0, 1000]) {
            let base = format!("{scheme}://{host}");
            let doors = Doors { test: &test, lure: &lure, cookie: &cookie, number: number + shift };
            for (door, reply) in doors.all(&base).await {
                tried += 1;
                let at = format!("{base} through {door}: {} {}", reply.status, reply.text);
                assert!(!reply.status.is_server_error() || reply.status == 502, "{at}");
                assert!(!reply.text.contains("\"successful\":true"), "{at}");
                assert_eq!(trap.knocked.load(Ordering::SeqCst), 0, "{at}");
            }
        }
    }
    Figures::new("addresses").add("hosts", hosts.len()).add("requests through 15 doors", tried).add("that got through", 0).print();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_trap_notices_whoever_gets_through() {
    let trap = Trap::set().await;
    let test = Test::start(Database::Sqlite).await;
    let url = format!("http://127.0.0.1:{}", trap.port);
    test.post("/tools/imports/openapi", json!({"import": {"url": url}})).await.detail(424);
    assert!(trap.knocked.load(Ordering::SeqCst) > 0, "the operator allows it here");
}
