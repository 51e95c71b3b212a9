//! Somebody who looks at a page, and what they can ask for.

use std::sync::Arc;

use axum::extract::{FromRequestParts, MatchedPath};
use http::request::Parts;
use http::{Method, StatusCode};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::api::{Answer, Api, Request};
use crate::path::Path;
use crate::refusal::Refusal;

/// A project that the visitor can act in.
#[derive(Clone, Debug)]
pub struct Project {
    pub slug: String,
    pub name: String,
    /// The visitor's role there.
    pub role: String,
}

/// As whom somebody is signed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Via {
    Person,
    Key,
    Operator,
}

/// One request of somebody who is signed in.
#[derive(Clone, Debug)]
pub struct Visit {
    pub api: Arc<dyn Api>,
    /// The name of whoever is signed in.
    pub name: String,
    pub via: Via,
    pub projects: Vec<Project>,
    /// The project that the address names, where the visitor may see it.
    pub project: Option<Project>,
    /// What the visitor may do in that project, by name.
    pub permissions: Vec<&'static str>,
    /// How records of that project name the visitor, as `key_id`.
    pub acts_as: Option<String>,
    /// The token that every form carries.
    pub csrf: String,
    /// Where others reach this server, without a slash at the end.
    pub public_url: String,
}

impl Visit {
    /// Whether a button would work. The API decides all the same.
    pub(crate) fn may(&self, permission: &str) -> bool {
        self.permissions.contains(&permission)
    }

    pub(crate) fn is_operator(&self) -> bool {
        self.via == Via::Operator
    }

    /// The address of a page of this project.
    pub(crate) fn page(&self, section: &str) -> Path {
        let slug = self.project.as_ref().map_or("", |project| &project.slug);
        let path = Path::new("/app").at(slug);
        if section.is_empty() { path } else { path.at(section) }
    }

    pub(crate) async fn get<T: DeserializeOwned>(&self, path: impl Into<String>) -> Result<T, Refusal> {
        self.ask(Method::GET, path, None).await
    }

    pub(crate) async fn post<T: DeserializeOwned>(&self, path: impl Into<String>, body: Value) -> Result<T, Refusal> {
        self.ask(Method::POST, path, Some(body)).await
    }

    pub(crate) async fn put<T: DeserializeOwned>(&self, path: impl Into<String>, body: Value) -> Result<T, Refusal> {
        self.ask(Method::PUT, path, Some(body)).await
    }

    pub(crate) async fn patch<T: DeserializeOwned>(&self, path: impl Into<String>, body: Value) -> Result<T, Refusal> {
        self.ask(Method::PATCH, path, Some(body)).await
    }

    pub(crate) async fn delete(&self, path: impl Into<String>) -> Result<(), Refusal> {
        let answer = self.send(Method::DELETE, path, None).await;
        if answer.status.is_success() { Ok(()) } else { Err(Refusal::of(&answer)) }
    }

    /// What there is, or nothing where the visitor may not see it.
    pub(crate) async fn get_if_allowed<T: DeserializeOwned>(&self, path: impl Into<String>) -> Result<Option<T>, Refusal> {
        match self.get(path).await {
            Ok(answer) => Ok(Some(answer)),
            Err(refusal) if refusal.is_forbidden() => Ok(None),
            Err(refusal) => Err(refusal),
        }
    }

    /// The answer as it came, whatever its status.
    pub(crate) async fn send(&self, method: Method, path: impl Into<String>, body: Option<Value>) -> Answer {
        self.api.send(Request { method, path: path.into(), body, if_match: None }).await
    }

    async fn ask<T: DeserializeOwned>(&self, method: Method, path: impl Into<String>, body: Option<Value>) -> Result<T, Refusal> {
        let answer = self.send(method, path, body).await;
        if !answer.status.is_success() {
            return Err(Refusal::of(&answer));
        }
        let text = if answer.body.is_empty() { b"null" } else { &answer.body[..] };
        serde_json::from_slice(text).map_err(|error| {
            Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, format!("The answer of the API is not what this page expects: {error}"))
        })
    }
}

impl<S: Sync> FromRequestParts<S> for Visit {
    type Rejection = Refusal;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Refusal> {
        let visit = parts.extensions.get::<Self>().cloned().ok_or_else(Refusal::not_found)?;
        let is_of_project = parts.extensions.get::<MatchedPath>().is_some_and(|path| path.as_str().contains("{project}"));
        if is_of_project && visit.project.is_none() { Err(Refusal::not_found()) } else { Ok(visit) }
    }
}
