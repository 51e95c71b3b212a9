//! `oidc-provider` from npm: a real authorization server that we did not write, driven as a browser would.

use std::collections::BTreeMap;
use std::process::Stdio;
use std::time::Duration;

use egress::{Allow, Config, Egress, Request, Response};
use http::header::{CONTENT_TYPE, COOKIE, LOCATION, SET_COOKIE};
use http::{HeaderValue, Method};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use url::Url;

use super::repository;

pub struct Oidc {
    pub issuer: String,
    egress: Egress,
    _child: Child,
    _stdin: ChildStdin,
}

impl Oidc {
    /// Starts the server; it ends with this value.
    pub async fn start(redirect_uri: &str, access_ttl: u32) -> Self {
        let folder = repository().join("tests/npm");
        assert!(folder.join("node_modules/oidc-provider").is_dir(), "oidc-provider is missing; `./test` installs it");
        let mut child = Command::new("node")
            .arg(folder.join("oidc.mjs"))
            .env("OIDC_REDIRECT_URIS", redirect_uri)
            .env("OIDC_ACCESS_TTL", access_ttl.to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("node runs");
        let mut line = String::new();
        let ready = BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).await;
        ready.expect("the provider says where it is");
        let said: Value = serde_json::from_str(&line).expect("one line of JSON");
        let allow: Allow = "127.0.0.1".parse().unwrap();
        let egress = Egress::new(Config { allow, ..Config::default() }).unwrap();
        Self { issuer: said["issuer"].as_str().unwrap().to_owned(), egress, _stdin: child.stdin.take().unwrap(), _child: child }
    }

    pub async fn control(&self, path: &str) -> Value {
        let request = Request::new(Method::POST, format!("{}/__test/{path}", self.issuer).parse().unwrap());
        serde_json::from_slice(&self.egress.send(request).await.unwrap().body).unwrap_or(Value::Null)
    }

    pub async fn counters(&self) -> Value {
        let request = Request::new(Method::GET, format!("{}/__test/counters", self.issuer).parse().unwrap());
        serde_json::from_slice(&self.egress.send(request).await.unwrap().body).unwrap()
    }

    /// Signs in and decides, with nothing but requests, redirects and cookies; the address that the browser is sent back to.
    pub async fn browse(&self, authorize_url: &str, login: &str, approve: bool) -> Url {
        let mut jar = Jar::default();
        let mut url: Url = authorize_url.parse().unwrap();
        let mut form: Option<String> = None;
        for _ in 0..20 {
            let response = self.fetch(&mut jar, &url, form.take()).await;
            if let Some(location) = response.headers.get(LOCATION) {
                url = url.join(location.to_str().unwrap()).unwrap();
                if !url.as_str().starts_with(&self.issuer) {
                    return url;
                }
                continue;
            }
            assert_eq!(response.status, 200, "{url}: {}", String::from_utf8_lossy(&response.body));
            let page = String::from_utf8_lossy(&response.body).into_owned();
            let decision = if approve { "decision=approve" } else { "decision=deny" };
            form = Some(if page.contains("name=\"login\"") { format!("login={login}") } else { decision.to_owned() });
        }
        panic!("the provider never sent the browser back");
    }

    async fn fetch(&self, jar: &mut Jar, url: &Url, form: Option<String>) -> Response {
        let method = if form.is_some() { Method::POST } else { Method::GET };
        let mut request = Request::new(method, url.clone()).timeout(Duration::from_mins(1));
        if let Ok(cookies) = HeaderValue::from_str(&jar.header(url.path())) {
            request = request.header(COOKIE, cookies);
        }
        if let Some(form) = form {
            request = request.header(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded")).body(form);
        }
        let response = self.egress.send(request).await.unwrap();
        for cookie in response.headers.get_all(SET_COOKIE) {
            jar.keep(cookie.to_str().unwrap());
        }
        response
    }
}

/// Cookies by path and name.
#[derive(Default)]
struct Jar(BTreeMap<(String, String), String>);

impl Jar {
    fn keep(&mut self, cookie: &str) {
        let mut parts = cookie.split(';').map(str::trim);
        let (name, value) = parts.next().and_then(|pair| pair.split_once('=')).unwrap();
        let path = parts.find_map(|part| part.strip_prefix("path=")).unwrap_or("/");
        self.0.insert((path.to_owned(), name.to_owned()), value.to_owned());
    }

    fn header(&self, path: &str) -> String {
        let fitting = self.0.iter().filter(|((scope, _), value)| path.starts_with(scope.as_str()) && !value.is_empty());
        fitting.map(|((_, name), value)| format!("{name}={value}")).collect::<Vec<_>>().join("; ")
    }
}
