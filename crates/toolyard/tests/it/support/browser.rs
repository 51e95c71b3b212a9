//! A browser without scripts: cookies, forms and redirects of our own pages.

use std::collections::BTreeMap;
use std::net::IpAddr;

use axum::body::Body;
use http::header::{COOKIE, LOCATION, SET_COOKIE};
use http::{Method, Request};
use serde_json::Value;

use super::{Reply, Test, with_body};

pub struct Browser<'a> {
    pub test: &'a Test,
    pub cookies: BTreeMap<String, String>,
    pub address: Option<IpAddr>,
    /// What the browser says of where a request comes from.
    pub site: &'static str,
}

impl<'a> Browser<'a> {
    pub fn new(test: &'a Test) -> Self {
        Self { test, cookies: BTreeMap::new(), address: None, site: "same-origin" }
    }

    async fn send(&mut self, mut request: Request<Body>) -> Reply {
        let cookies: Vec<String> = self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        if !cookies.is_empty() {
            request.headers_mut().insert(COOKIE, cookies.join("; ").parse().unwrap());
        }
        request.headers_mut().insert("sec-fetch-site", self.site.parse().unwrap());
        if let Some(address) = self.address {
            request.extensions_mut().insert(server::Peer(address));
        }
        let reply = self.test.send(request).await;
        for cookie in reply.headers.get_all(SET_COOKIE) {
            let text = cookie.to_str().unwrap();
            assert!(text.contains("; Path=/;") && text.contains("; HttpOnly; SameSite=Lax"), "{text}");
            let (name, value) = text.split(';').next().unwrap().split_once('=').unwrap();
            if value.is_empty() {
                self.cookies.remove(name)
            } else {
                self.cookies.insert(name.to_owned(), value.to_owned())
            };
        }
        reply
    }

    pub async fn get(&mut self, path: &str) -> Reply {
        self.send(Request::get(path).body(Body::empty()).unwrap()).await
    }

    /// Sends a form as it is, with the token of nothing.
    pub async fn post(&mut self, path: &str, fields: &[(&str, &str)]) -> Reply {
        let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        let request = Request::post(path).header("content-type", "application/x-www-form-urlencoded");
        self.send(request.body(Body::from(body)).unwrap()).await
    }

    /// Opens a page, fills its form in and sends it.
    pub async fn submit(&mut self, path: &str, fields: &[(&str, &str)]) -> Reply {
        let page = self.get(path).await;
        assert_eq!(page.status, 200, "{path}: {}", page.text);
        self.answer(path, &page, fields).await
    }

    /// Fills in the form of a page that is open.
    pub async fn answer(&mut self, path: &str, page: &Reply, fields: &[(&str, &str)]) -> Reply {
        let token = hidden(&page.text, "csrf");
        let fields: Vec<(&str, &str)> = fields.iter().copied().chain([("csrf", token.as_str())]).collect();
        self.post(path, &fields).await
    }

    pub async fn sign_in(&mut self, fields: &[(&str, &str)]) -> Reply {
        self.submit("/sign-in", fields).await
    }

    pub async fn me(&mut self) -> Reply {
        self.get("/people/me").await
    }

    /// A request of a script of ours, with its token.
    pub async fn api(&mut self, method: Method, path: &str, project: Option<&str>, body: Option<Value>) -> Reply {
        let token = self.me().await.json()["csrf_token"].as_str().unwrap_or_default().to_owned();
        let mut request = Request::builder().method(method).uri(path).header("x-toolyard-csrf", token);
        if let Some(project) = project {
            request = request.header("x-toolyard-project", project);
        }
        self.send(with_body(request, body)).await
    }
}

/// Where an answer sends the browser.
#[track_caller]
pub fn sent_to(reply: &Reply) -> String {
    assert_eq!(reply.status, 303, "{}", reply.text);
    reply.headers[LOCATION].to_str().unwrap().to_owned()
}

/// The value of a hidden field.
pub fn hidden(page: &str, name: &str) -> String {
    let start = format!("name=\"{name}\" value=\"");
    page.split(&start).nth(1).and_then(|rest| rest.split('"').next()).unwrap_or_default().to_owned()
}
