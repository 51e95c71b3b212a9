//! A client for the stand-in, and somebody who receives its webhooks.

use std::sync::{Arc, Mutex};

use axum::Router;
use axum::extract::State;
use axum::routing::post;
use composio_fake::Fake;
use http::{HeaderMap, Method, StatusCode};
use reqwest::Client;
use serde_json::{Value, json};

pub(crate) struct World {
    pub(crate) fake: Fake,
    pub(crate) client: Client,
}

impl World {
    pub(crate) async fn new() -> Self {
        let fake = Fake::start().await;
        let client = Client::builder().no_proxy().redirect(reqwest::redirect::Policy::none()).build().unwrap();
        Self { fake, client }
    }

    pub(crate) async fn try_send(&self, method: Method, path: &str, body: Option<Value>) -> reqwest::Result<(u16, HeaderMap, String)> {
        let mut request = self.client.request(method, format!("{}{path}", self.fake.url())).header("x-api-key", self.fake.key());
        if let Some(body) = body {
            request = request.header("content-type", "application/json").body(body.to_string());
        }
        let answer = request.send().await?;
        Ok((answer.status().as_u16(), answer.headers().clone(), answer.text().await?))
    }

    pub(crate) async fn send(&self, method: Method, path: &str, body: Option<Value>) -> (u16, Value) {
        let (status, _, text) = self.try_send(method, path, body).await.unwrap();
        (status, serde_json::from_str(&text).unwrap_or_else(|_| panic!("{path}: {text}")))
    }

    /// What a GET that works gives.
    pub(crate) async fn get(&self, path: &str) -> Value {
        let (status, body) = self.send(Method::GET, path, None).await;
        assert_eq!(status, 200, "{path}: {body}");
        body
    }

    pub(crate) async fn post(&self, path: &str, body: Value) -> (u16, Value) {
        self.send(Method::POST, path, Some(body)).await
    }

    pub(crate) async fn patch(&self, path: &str, body: Value) -> (u16, Value) {
        self.send(Method::PATCH, path, Some(body)).await
    }

    pub(crate) async fn delete(&self, path: &str) -> (u16, Value) {
        self.send(Method::DELETE, path, None).await
    }

    /// An auth config with what Composio manages, or else with the scheme that is given.
    pub(crate) async fn auth_config(&self, toolkit: &str, scheme: Option<&str>) -> String {
        let wish = match scheme {
            None => json!({"type": "use_composio_managed_auth"}),
            Some(scheme) => json!({"type": "use_custom_auth", "authScheme": scheme}),
        };
        let (status, made) = self.post("/auth_configs", json!({"toolkit": {"slug": toolkit}, "auth_config": wish})).await;
        assert_eq!(status, 201, "{made}");
        made["auth_config"]["id"].as_str().unwrap().to_owned()
    }

    pub(crate) async fn link(&self, auth_config: &str, user: &str) -> Value {
        let callback = "https://app.example/back?state=s";
        let order = json!({"auth_config_id": auth_config, "user_id": user, "callback_url": callback});
        let (status, link) = self.post("/connected_accounts/link", order).await;
        assert_eq!(status, 201, "{link}");
        link
    }

    /// An active account of a toolkit with managed auth.
    pub(crate) async fn account(&self, toolkit: &str, user: &str) -> String {
        let config = self.auth_config(toolkit, None).await;
        let link = self.link(&config, user).await;
        let id = link["connected_account_id"].as_str().unwrap().to_owned();
        assert!(self.fake.finish(&id));
        id
    }

    pub(crate) async fn run(&self, tool: &str, body: Value) -> (u16, Value) {
        self.post(&format!("/tools/execute/{tool}"), body).await
    }
}

type Seen = Arc<Mutex<Vec<(HeaderMap, String)>>>;

pub(crate) struct Receiver {
    pub(crate) url: String,
    seen: Seen,
}

impl Receiver {
    pub(crate) async fn start() -> Self {
        let seen = Seen::default();
        let app = Router::new().route("/events", post(receive)).with_state(Arc::clone(&seen));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/events", listener.local_addr().unwrap());
        tokio::spawn(async { axum::serve(listener, app).await });
        Self { url, seen }
    }

    pub(crate) fn take(&self) -> Vec<(HeaderMap, String)> {
        std::mem::take(&mut *self.seen.lock().unwrap())
    }
}

async fn receive(State(seen): State<Seen>, headers: HeaderMap, body: String) -> StatusCode {
    seen.lock().unwrap().push((headers, body));
    StatusCode::ACCEPTED
}

/// The values of one field over all items.
pub(crate) fn pluck<'a>(page: &'a Value, field: &str) -> Vec<&'a str> {
    page["items"].as_array().unwrap().iter().map(|item| item[field].as_str().unwrap()).collect()
}
