//! A yard whose Composio is the stand-in, listening so that events can reach it.

use std::ops::Deref;
use std::sync::Arc;
use std::time::{Duration, Instant};

use composio_fake::Fake;
use kernel::Clock;
use serde_json::{Value, json};
use toolyard::config::Config;
use toolyard::yard;

use super::{Database, Test};

/// Writes a test once and runs it on both databases, with Composio.
macro_rules! with_composio {
    ($(async fn $name:ident($test:ident: &Composed) $body:block)*) => {$(
        mod $name {
            #[allow(unused_imports, reason = "each test takes what it needs of its module")]
            use super::*;

            async fn check($test: &Composed) $body

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn sqlite() {
                check(&Composed::start(Database::Sqlite).await).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn postgres() {
                check(&Composed::start(Database::Postgres).await).await;
            }
        }
    )*};
}
pub(crate) use with_composio;

pub struct Composed {
    pub test: Test,
    pub composio: Arc<Fake>,
}

impl Deref for Composed {
    type Target = Test;

    fn deref(&self) -> &Test {
        &self.test
    }
}

impl Composed {
    pub async fn start(database: Database) -> Self {
        let composed = Self::quiet(database, Arc::new(Fake::start().await), |_| {}).await;
        composed.yard.start_composio();
        composed
    }

    /// Without anything going on in the background.
    pub async fn quiet(database: Database, composio: Arc<Fake>, change: impl FnOnce(&mut Config)) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let clock = Clock::fixed(Clock::system().now());
        let test = Test::at(database, clock, |config| {
            config.public_url = format!("http://{address}");
            config.composio_api_key = Some(composio.key().to_owned());
            config.composio_api_url = composio.url().parse().unwrap();
            change(config);
        })
        .await;
        tokio::spawn(yard::serve(listener, test.yard.app(), test.yard.config.connections.clone(), std::future::pending()));
        Self { test, composio }
    }

    /// Asks for a connection: the answer, with the page in it.
    pub async fn ask_for(&self, integration: &str, slug: &str, data: Value) -> super::Reply {
        let connection = json!({"slug": slug, "provider_key": "composio", "integration_key": integration, "data": data});
        self.post("/tools/connections/", json!({"connection": connection})).await
    }

    /// Connects an account as a person does: over Composio's page and back.
    pub async fn connect(&self, integration: &str, slug: &str) -> Value {
        let made = self.ask_for(integration, slug, json!({})).await.expect(200)["connection"].take();
        self.walk_through(made["data"]["redirect_url"].as_str().unwrap()).await.expect_page(200);
        self.get(&format!("/tools/connections/{}", made["id"].as_str().unwrap())).await.expect(200)["connection"].take()
    }

    /// Allows it on Composio's page and comes back.
    pub async fn walk_through(&self, page: &str) -> super::Reply {
        self.come_back(&answer_page(page, "answer=allow").await).await
    }

    /// Opens the address that Composio sends the person back to.
    pub async fn come_back(&self, address: &str) -> super::Reply {
        let path = address.strip_prefix(&self.yard.config.public_url).unwrap_or_else(|| panic!("sent to {address}"));
        self.request(http::Method::GET, path, None, None).await
    }

    /// What Composio was asked for, as `METHOD path`.
    pub fn asked(&self) -> Vec<String> {
        self.composio.requests().iter().map(|request| format!("{} {}", request.method, request.path)).collect()
    }
}

/// Hands in Composio's page and gives back where it leads.
pub async fn answer_page(page: &str, form: &str) -> String {
    let egress = egress::Egress::new(egress::Config { allow: "127.0.0.1".parse().unwrap(), ..egress::Config::default() }).unwrap();
    let kind = http::HeaderValue::from_static("application/x-www-form-urlencoded");
    let request =
        egress::Request::new(http::Method::POST, page.parse().unwrap()).header(http::header::CONTENT_TYPE, kind).body(form.to_owned());
    let response = egress.send(request).await.unwrap();
    response.headers["location"].to_str().unwrap().to_owned()
}

/// Waits until it is so.
pub async fn until(what: &str, is_so: impl AsyncFn() -> bool) {
    let started = Instant::now();
    while !is_so().await {
        assert!(started.elapsed() < Duration::from_secs(30), "{what}");
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
}
