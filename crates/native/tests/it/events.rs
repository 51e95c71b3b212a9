//! Registering webhooks and polling, against a made-up service on a real socket.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use axum::Router;
use axum::body::to_bytes;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use catalog::Source;
use catalog::auth::Fields;
use connections::Usable;
use http::StatusCode;
use kernel::{ConnectionId, ProjectId};
use native::Native;
use native::manifest::Manifest;
use serde_json::{Map, Value, json};
use triggers::{EventSource, Polled, Registered, Watch, WatchError, WatchMethod};

const MANIFEST: &str = r#"
key: things
name: Things
description: A service that is made up for tests.
base_url: "{connection.base}"
headers: {X-Version: "2"}
auth:
  - {scheme: bearer, fields: {base: {label: Address, secret: false}}}
  - scheme: oauth2
    authorize_url: https://things.test/authorize
    token_url: https://things.test/token
    scopes: [read]
    optional_scopes: [hooks]
    fields: {base: {label: Address, secret: false}}
failure: {when: /ok, equals: false, message: /error}
webhooks:
  register:
    request: POST /boxes/{box}/hooks
    query: {team: "{team}"}
    body: {url: "{{ url }}", secret: "{{ secret }}", kinds: ["{{ event }}"], label: "{{ label }}"}
    id: /hook/id
  unregister: {request: "DELETE /boxes/{box}/hooks/{webhook_id}"}
  signature: {algorithm: hmac-sha256, header: X-Signature, client_secret: true, secret: {from_reply: /hook/secret}}
  event: {pointer: /kind}
events:
  - key: ADDED
    name: Added
    description: Something is put into a box.
    use_cases: []
    config: {box: {type: string, required: true}, team: {type: string}, label: {type: string, default: ours}}
    webhook: {event: added}
    scopes: [hooks]
  - key: LISTED
    name: Listed
    description: Something is in a list.
    use_cases: []
    config: {box: {type: string, required: true}, color: {type: string, default: red}}
    poll: {request: "GET /boxes/{box}/things", query: {size: 3}, items: /things, id: /id, since: {param: after, from: /at}, seconds: 90}
  - key: PAGED
    name: Paged
    description: Something is in a list of pages.
    use_cases: []
    poll: {request: GET /paged, query: {size: 2}, items: /things, id: /id, pages: {style: cursor, param: from, next: /next}}
"#;

/// A service that answers what it is told to, and remembers what it was asked.
#[derive(Clone, Default)]
struct Service {
    answers: Arc<Mutex<HashMap<String, (u16, Value)>>>,
    seen: Arc<Mutex<Vec<Value>>>,
}

impl Service {
    fn on(&self, request: &str, status: u16, body: Value) {
        self.answers.lock().unwrap().insert(request.to_owned(), (status, body));
    }

    fn seen(&self) -> Vec<Value> {
        std::mem::take(&mut self.seen.lock().unwrap())
    }
}

async fn serve(State(service): State<Service>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let line = format!("{} {}", parts.method, parts.uri);
    let header = |name: &str| parts.headers.get(name).map(|value| value.to_str().unwrap().to_owned());
    let body = to_bytes(body, 1 << 20).await.unwrap();
    service.seen.lock().unwrap().push(json!({
        "line": line,
        "auth": header("authorization"),
        "version": header("x-version"),
        "body": serde_json::from_slice::<Value>(&body).unwrap_or_default(),
    }));
    let (status, body) = service.answers.lock().unwrap().get(&line).cloned().unwrap_or((404, json!({"message": "nobody knows"})));
    (StatusCode::from_u16(status).unwrap(), body.to_string()).into_response()
}

struct Test {
    native: Native,
    service: Service,
    usable: Usable,
    connection: ConnectionId,
    client_secret: Option<&'static str>,
}

impl Test {
    async fn start() -> Self {
        let service = Service::default();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let base = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().fallback(serve).with_state(service.clone());
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        let egress = egress::Egress::new(egress::Config { allow: "127.0.0.1".parse().unwrap(), ..egress::Config::default() }).unwrap();
        let native = Native::new([Ok(Manifest::parse(MANIFEST).unwrap())], egress).unwrap();
        let fields: Fields = [("base", base), ("token", "token-of-ours".to_owned())].into_iter().collect();
        let scheme = native.integration(ProjectId::new(), "things").unwrap().auth[0].clone();
        Self { native, service, usable: Usable::unstored(fields, Some(scheme)), connection: ConnectionId::new(), client_secret: None }
    }

    /// As if the account had signed in through an app.
    fn signed_in(mut self, client_secret: Option<&'static str>) -> Self {
        let scheme = self.native.integration(ProjectId::new(), "things").unwrap().auth[1].clone();
        self.usable.fields.set("access_token", "token-of-ours");
        self.usable = Usable::unstored(self.usable.fields, Some(scheme));
        Self { client_secret, ..self }
    }

    async fn with<T>(&self, event: &str, config: Value, act: impl AsyncFnOnce(Watch<'_>) -> T) -> T {
        let integration = self.native.integration(ProjectId::new(), "things").unwrap();
        let config: Map<String, Value> = serde_json::from_value(config).unwrap();
        let watch = Watch {
            integration: &integration,
            event: integration.event(event).unwrap(),
            config: &config,
            project: ProjectId::new(),
            connection: self.connection,
            usable: &self.usable,
            url: "https://toolyard.test/hooks/1",
            secret: "secret-of-ours",
            client_secret: self.client_secret,
        };
        act(watch).await
    }

    async fn register(&self, config: Value) -> Result<Registered, WatchError> {
        self.with("ADDED", config, async |watch| self.native.register(watch).await).await
    }

    async fn unregister(&self, remote: &str) -> Result<(), WatchError> {
        self.with("ADDED", json!({"box": "a/b"}), async |watch| self.native.unregister(watch, remote).await).await
    }

    async fn poll(&self, cursor: Option<&Value>) -> Result<Polled, WatchError> {
        self.with("LISTED", json!({"box": "b"}), async |watch| self.native.poll(watch, cursor).await).await
    }

    fn lines(&self) -> Vec<String> {
        self.service.seen().iter().map(|request| request["line"].as_str().unwrap().to_owned()).collect()
    }
}

#[tokio::test]
async fn a_webhook_is_made_and_removed() {
    let test = Test::start().await;
    assert_eq!(test.native.method("things", "ADDED"), Some(WatchMethod::Register));
    assert_eq!(test.native.method("things", "GONE"), None);
    test.service.on("POST /boxes/a%2Fb/hooks?team=t", 201, json!({"hook": {"id": 7, "secret": "theirs"}}));
    let registered = test.register(json!({"box": "a/b", "team": "t"})).await.unwrap();
    assert_eq!(registered, Registered { remote: Some("7".to_owned()), secret: Some("theirs".to_owned()) });
    let body = json!({"url": "https://toolyard.test/hooks/1", "secret": "secret-of-ours", "kinds": ["added"], "label": "ours"});
    let line = "POST /boxes/a%2Fb/hooks?team=t";
    assert_eq!(test.service.seen(), [json!({"line": line, "auth": "Bearer token-of-ours", "version": "2", "body": body})]);

    test.service.on("DELETE /boxes/a%2Fb/hooks/7", 204, json!(null));
    test.unregister("7").await.unwrap();
    test.unregister("https://things.test/boxes/b/hooks/7").await.unwrap();
    assert_eq!(test.lines(), ["DELETE /boxes/a%2Fb/hooks/7", "DELETE /boxes/a%2Fb/hooks/7"]);
    test.unregister("never-was").await.unwrap();
    test.service.on("DELETE /boxes/a%2Fb/hooks/gone", 410, json!({}));
    test.unregister("gone").await.unwrap();
    test.service.on("DELETE /boxes/a%2Fb/hooks/kept", 409, json!({"message": "locked"}));
    assert!(matches!(test.unregister("kept").await, Err(WatchError::Upstream(text)) if text == "409: locked"));
}

#[tokio::test]
async fn a_webhook_that_cannot_be_believed_is_removed_again() {
    let test = Test::start().await;
    test.service.on("POST /boxes/b/hooks", 201, json!({"hook": {"id": 7}}));
    let refused = test.register(json!({"box": "b"})).await;
    assert!(matches!(refused, Err(WatchError::Upstream(text)) if text.contains("/hook/secret")));
    assert_eq!(test.lines(), ["POST /boxes/b/hooks", "DELETE /boxes/b/hooks/7"]);
}

#[tokio::test]
async fn the_client_secret_of_an_oauth_app_may_sign() {
    let test = Test::start().await.signed_in(Some("secret-of-the-app"));
    test.service.on("POST /boxes/b/hooks", 201, json!({"hook": {"id": 7}}));
    let registered = test.register(json!({"box": "b"})).await.unwrap();
    assert_eq!(registered, Registered { remote: Some("7".to_owned()), secret: Some("secret-of-the-app".to_owned()) });
    assert!(!format!("{:?}", test.service.seen()).contains("secret-of-the-app"));

    let test = Test::start().await.signed_in(None);
    test.service.on("POST /boxes/b/hooks", 201, json!({"hook": {"id": 7, "secret": "theirs"}}));
    assert!(matches!(test.register(json!({"box": "b"})).await, Err(WatchError::Upstream(text)) if text.contains("OAuth app")));
    assert_eq!(test.lines(), ["POST /boxes/b/hooks", "DELETE /boxes/b/hooks/7"]);
}

#[tokio::test]
async fn a_refusal_names_the_scope_that_was_not_asked_for() {
    let test = Test::start().await.signed_in(Some("s"));
    test.service.on("POST /boxes/b/hooks", 403, json!({"message": "no"}));
    let refused = test.register(json!({"box": "b"})).await;
    assert!(matches!(refused, Err(WatchError::Forbidden(text)) if text.contains("needs the scope `hooks`")));
}

#[tokio::test]
async fn polling_reads_every_page() {
    let test = Test::start().await;
    let page = |ids: &[&str], next: Value| json!({"things": ids.iter().map(|id| json!({"id": id})).collect::<Vec<_>>(), "next": next});
    let poll = async |cursor: Option<&Value>| test.with("PAGED", json!({}), async |watch| test.native.poll(watch, cursor).await).await;
    test.service.on("GET /paged?size=2", 200, page(&["a", "b"], json!("p2")));
    test.service.on("GET /paged?size=2&from=p2", 200, page(&["c"], json!(null)));
    let first = poll(None).await.unwrap();
    assert_eq!(first.items, []);
    test.service.on("GET /paged?size=2&from=p2", 200, page(&["c", "d"], json!("https://things.test/paged?from=p3&size=2")));
    test.service.on("GET /paged?size=2&from=p3", 200, page(&["e"], json!("")));
    let second = poll(Some(&first.cursor)).await.unwrap();
    let ids: Vec<&str> = second.items.iter().map(|item| item.id.as_str()).collect();
    assert_eq!(ids.len(), 2, "{ids:?}");
    assert!(["d", "e"].iter().all(|id| ids.contains(id)), "{ids:?}");

    test.service.on("GET /paged?size=2&from=p3", 200, page(&["f"], json!("p2")));
    assert!(matches!(poll(Some(&second.cursor)).await, Err(WatchError::Upstream(text)) if text.contains("more than 20 pages")));
}

#[tokio::test]
async fn refusals_are_told_apart_and_hide_secrets() {
    let test = Test::start().await;
    let echo = json!({"message": "no: token-of-ours, secret-of-ours"});
    for (status, body, expected) in [
        (401, echo.clone(), "Unauthorized(\"no: …, …\")"),
        (403, echo.clone(), "Forbidden(\"403: no: …, …\")"),
        (422, echo.clone(), "Upstream(\"422: no: …, …\")"),
        (429, echo.clone(), "Upstream(\"answered 429: no: …, …\")"),
        (501, echo, "Server { status: 501, message: \"no: …, …\" }"),
        (200, json!({"ok": false, "error": "full"}), "Upstream(\"full\")"),
        (200, json!({"ok": true}), "Upstream(\"the answer has no webhook at `/hook/id`\")"),
    ] {
        test.service.on("POST /boxes/b/hooks", status, body);
        let error = test.register(json!({"box": "b"})).await.unwrap_err();
        assert_eq!(format!("{error:?}"), expected, "{status}");
    }
    test.service.seen();
    assert!(matches!(test.register(json!({})).await, Err(WatchError::Config(text)) if text == "`box` is required"));
    assert_eq!(test.lines(), [""; 0]);
}

#[tokio::test]
async fn polling_finds_each_thing_once() {
    let thing = |id: &str, at: u32| json!({"id": id, "at": at});
    let test = Test::start().await;
    assert_eq!(test.native.method("things", "LISTED"), Some(WatchMethod::Poll(std::time::Duration::from_secs(90))));
    let at = |after: &str| format!("GET /boxes/b/things?size=3&color=red{after}");

    test.service.on(&at(""), 200, json!({"things": [thing("a", 1), thing("b", 2)]}));
    test.service.on(&at("&after=2"), 200, json!({"things": [thing("b", 2), thing("c", 3)]}));
    test.service.on(&at("&after=3"), 200, json!({"things": [thing("c", 3)]}));
    let first = test.poll(None).await.unwrap();
    assert_eq!(first.items, []);
    assert_eq!(test.lines(), [at(""), at("&after=2"), at("&after=3")], "what follows the first page is history, too");

    test.service.on(&at("&after=3"), 200, json!({"things": [thing("e", 4), thing("c", 3), thing("d", 3)]}));
    let second = test.poll(Some(&first.cursor)).await.unwrap();
    let found: Vec<(&str, &Value)> = second.items.iter().map(|item| (item.id.as_str(), &item.payload)).collect();
    assert_eq!(found, [("d", &thing("d", 3)), ("e", &thing("e", 4))]);
    test.service.on(&at("&after=4"), 200, json!({"things": [thing("e", 4)]}));
    assert_eq!(test.poll(Some(&second.cursor)).await.unwrap().items, []);
    let again = test.poll(Some(&first.cursor)).await.unwrap();
    assert_eq!(again, second, "a cursor that was not kept asks the same again");

    test.service.on(&at("&after=4"), 200, json!({"things": "none"}));
    assert!(matches!(test.poll(Some(&second.cursor)).await, Err(WatchError::Upstream(_))));
    test.service.on(&at("&after=4"), 403, json!({"message": "expired"}));
    assert!(matches!(test.poll(Some(&second.cursor)).await, Err(WatchError::Forbidden(_))));
}
