//! A yard in a test: its own database, its own data directory, requests without a socket.

mod browser;
mod composio;
mod fake;
mod oidc;

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use axum::body::Body;
use futures_util::stream::{BoxStream, StreamExt};
use http::{HeaderMap, Method, Request, StatusCode};
use kernel::{Clock, Permission, Role, Timestamp};
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection, Executor, PgConnection};
use tempfile::TempDir;
use toolyard::config::{Config, Settings};
use toolyard::yard::Yard;
use tower::ServiceExt;

pub use browser::{Browser, hidden, sent_to};
pub(crate) use composio::with_composio;
pub use composio::{Composed, answer_page, until};
pub use fake::Fake;
pub use oidc::Oidc;

/// Writes a test once and runs it on SQLite and on PostgreSQL.
macro_rules! on_both {
    ($(async fn $name:ident($test:ident: &Test) $body:block)*) => {$(
        mod $name {
            #[allow(unused_imports, reason = "each test takes what it needs of its module")]
            use super::*;

            async fn check($test: &Test) $body

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn sqlite() {
                check(&Test::start(Database::Sqlite).await).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn postgres() {
                check(&Test::start(Database::Postgres).await).await;
            }
        }
    )*};
}
pub(crate) use on_both;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Database {
    Sqlite,
    Postgres,
}

pub struct Test {
    pub yard: Yard,
    pub clock: Clock,
    pub owner: String,
    service: server::Service,
    /// For whom requests are made, where a route can be asked for somebody.
    pub acts_for: Mutex<Option<String>>,
    _dir: TempDir,
}

pub struct Reply {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub text: String,
}

impl Reply {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|_| panic!("not JSON: {} {}", self.status, self.text))
    }

    #[track_caller]
    pub fn expect(self, status: u16) -> Value {
        assert_eq!(self.status.as_u16(), status, "{}", self.text);
        if self.text.is_empty() { Value::Null } else { self.json() }
    }

    /// A page for people.
    #[track_caller]
    pub fn expect_page(self, status: u16) {
        assert_eq!(self.status.as_u16(), status, "{}", self.text);
        assert!(self.headers["content-type"].to_str().unwrap().starts_with("text/html"));
    }

    /// The `detail` of an error, as text.
    #[track_caller]
    pub fn detail(self, status: u16) -> String {
        let body = self.expect(status);
        body["detail"].as_str().map_or_else(|| body["detail"].to_string(), str::to_owned)
    }
}

impl Test {
    pub async fn start(database: Database) -> Self {
        Self::with(database, |_| {}).await
    }

    pub async fn with(database: Database, change: impl FnOnce(&mut Config)) -> Self {
        Self::at(database, Clock::fixed(Timestamp::from_micros(1_800_000_000_000_000)), change).await
    }

    /// On PostgreSQL, with connections that can be told from others by their name.
    pub async fn with_postgres_as(name: &str) -> Self {
        let url = format!("{}&application_name={name}", postgres_schema().await);
        Self::with(Database::Sqlite, |config| config.database_url = url).await
    }

    /// With a clock of the caller's.
    pub async fn at(database: Database, clock: Clock, change: impl FnOnce(&mut Config)) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let mut config =
            Config::settle(Settings { data_dir: Some(dir.path().to_owned()), ..Settings::default() }, Settings::default()).unwrap();
        if database == Database::Postgres {
            config.database_url = postgres_schema().await;
        }
        config.egress_allow = "127.0.0.1".to_owned();
        config.sentence_model = false;
        config.integrations_dir = Some(manifests());
        change(&mut config);
        let yard = Yard::open_at(config, clock.clone()).await.unwrap();
        let owner = yard.first_key.as_ref().unwrap().expose().to_owned();
        let service = server::Service::new(yard.app());
        Self { yard, clock, owner, service, acts_for: Mutex::default(), _dir: dir }
    }

    /// A project of its own with a key for each role.
    pub async fn key(&self, project: &str, role: Role, only: Option<Vec<Permission>>) -> String {
        let project = match self.yard.accounts.find_project(project).await {
            Ok(found) => found,
            Err(_) => self.yard.accounts.create_project(project, None).await.unwrap(),
        };
        let new = accounts::NewKey { name: "test".to_owned(), role, only, is_for_agents: false };
        self.yard.accounts.create_key(project.id, new).await.unwrap().1.expose().to_owned()
    }

    pub async fn send(&self, request: Request<Body>) -> Reply {
        let response = self.service.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let bytes = axum::body::to_bytes(body, 64 << 20).await.unwrap();
        Reply { status: parts.status, headers: parts.headers, text: String::from_utf8_lossy(&bytes).into_owned() }
    }

    /// The parts of an answer as they come.
    pub async fn open(&self, request: Request<Body>) -> BoxStream<'static, String> {
        let response = self.service.clone().oneshot(request).await.unwrap();
        assert_eq!(response.status(), 200);
        let text = |part: Result<bytes::Bytes, axum::Error>| String::from_utf8_lossy(&part.unwrap()).into_owned();
        response.into_body().into_data_stream().map(text).boxed()
    }

    pub async fn request(&self, method: Method, path: &str, authorization: Option<String>, body: Option<Value>) -> Reply {
        let mut request = Request::builder().method(method).uri(path);
        if let Some(authorization) = authorization {
            request = request.header("authorization", authorization);
        }
        let acts_for = self.acts_for.lock().unwrap().clone();
        if let Some(user) = acts_for.filter(|_| server::is_for_end_users(path.split('?').next().unwrap_or_default())) {
            request = request.header("toolyard-end-user", user);
        }
        self.send(with_body(request, body)).await
    }

    /// As the owner of the default project.
    pub async fn get(&self, path: &str) -> Reply {
        self.request(Method::GET, path, Some(format!("ApiKey {}", self.owner)), None).await
    }

    pub async fn post(&self, path: &str, body: Value) -> Reply {
        self.request(Method::POST, path, Some(format!("ApiKey {}", self.owner)), Some(body)).await
    }

    pub async fn delete(&self, path: &str) -> Reply {
        self.request(Method::DELETE, path, Some(format!("ApiKey {}", self.owner)), None).await
    }

    pub async fn post_as(&self, key: &str, path: &str, body: Value) -> Reply {
        self.request(Method::POST, path, Some(format!("ApiKey {key}")), Some(body)).await
    }

    pub async fn get_as(&self, key: &str, path: &str) -> Reply {
        self.request(Method::GET, path, Some(format!("ApiKey {key}")), None).await
    }

    /// As the operator.
    pub async fn admin(&self, method: Method, path: &str, body: Option<Value>) -> Reply {
        self.request(method, path, Some(format!("Access {}", self.yard.operator_key.expose())), body).await
    }

    /// Connects the fake service with a key.
    pub async fn connect_fake(&self, fake: &Fake, slug: &str) -> Value {
        let whose = self.acts_for.lock().unwrap().clone().unwrap_or_else(|| "fake".to_owned());
        let credentials = json!({"base": fake.url, "api_key": format!("sk-{whose}-123456")});
        self.post("/tools/connections/", fake_connection(slug, &json!({"auth_scheme": "api_key", "credentials": credentials})))
            .await
            .expect(200)["connection"]
            .take()
    }

    pub async fn call(&self, name: &str, arguments: Value) -> Reply {
        self.call_as(&self.owner, name, arguments).await
    }

    pub async fn call_as(&self, key: &str, name: &str, arguments: Value) -> Reply {
        self.post_as(key, "/tools/call", call_body(name, &arguments)).await
    }

    /// The content of a call that went through.
    #[track_caller]
    pub fn content(reply: Reply) -> Value {
        let answer = reply.expect(200);
        serde_json::from_str(answer["call"]["data"]["content"].as_str().unwrap()).unwrap()
    }
}

/// A request with a JSON body, or with none.
pub fn with_body(request: http::request::Builder, body: Option<Value>) -> Request<Body> {
    match body {
        Some(body) => request.header("content-type", "application/json").body(Body::from(body.to_string())).unwrap(),
        None => request.body(Body::empty()).unwrap(),
    }
}

pub fn call_body(name: &str, arguments: &Value) -> Value {
    json!({"data": {"id": "t1", "type": "function", "function": {"name": name, "arguments": arguments}}})
}

pub fn fake_connection(slug: &str, data: &Value) -> Value {
    json!({"connection": {"slug": slug, "provider_key": "native", "integration_key": "fake", "data": data}})
}

pub fn manifests() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/manifests")
}

/// The OpenAPI document that is served.
pub fn document() -> Value {
    serde_json::from_str(server::OPENAPI).unwrap()
}

pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// A fresh schema on the PostgreSQL that `./test` starts.
pub async fn postgres_schema() -> String {
    static NUMBER: AtomicU32 = AtomicU32::new(0);
    let server = std::env::var("TOOLYARD_TEST_POSTGRES").expect("TOOLYARD_TEST_POSTGRES names a PostgreSQL server; `./test` starts one");
    let schema = format!("t{}_{}", std::process::id(), NUMBER.fetch_add(1, Ordering::SeqCst));
    let mut connection = PgConnection::connect(&server).await.unwrap();
    connection.execute(AssertSqlSafe(format!("drop schema if exists {schema} cascade; create schema {schema}"))).await.unwrap();
    format!("{server}?options=-csearch_path%3D{schema}")
}
