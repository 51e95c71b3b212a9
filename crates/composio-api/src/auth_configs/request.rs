//! What auth configs are asked for.

use document::ToSchema;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::ToolAccess;
use crate::Refusal;
use crate::names::Names;

const MANAGED: &str = "use_composio_managed_auth";
const CUSTOM: &str = "use_custom_auth";
/// As many tools as a config may name, and the longest value of a field.
const MAX_TOOLS: usize = 1000;
const MAX_VALUE: usize = 16 << 10;
const MAX_SCOPES: usize = 200;

/// A request for an auth config.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[schema(as = composio::CreateAuthConfig)]
pub struct CreateAuthConfig {
    pub toolkit: AuthConfigToolkitSlug,
    /// Left out, it is a managed one.
    pub auth_config: Option<AuthConfigChoice>,
}

impl CreateAuthConfig {
    /// One that uses what is there.
    pub(crate) fn managed(toolkit: &str) -> Self {
        Self { toolkit: AuthConfigToolkitSlug { slug: toolkit.to_owned() }, auth_config: None }
    }
}

/// A toolkit by its slug.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[schema(as = composio::AuthConfigToolkitSlug)]
pub struct AuthConfigToolkitSlug {
    pub slug: String,
}

/// What an auth config shall be.
#[derive(Clone, Default, Deserialize, ToSchema)]
#[schema(as = composio::AuthConfigChoice)]
pub struct AuthConfigChoice {
    /// `use_composio_managed_auth`: with the OAuth app that the project or the deployment has, or else with a credential that is typed.
    /// `use_custom_auth`: by `authScheme`, with credentials of your own.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    /// Such as `OAUTH2` or `API_KEY`.
    #[serde(rename = "authScheme", alias = "auth_scheme")]
    pub auth_scheme: Option<String>,
    /// `client_id` and `client_secret` of an OAuth app, `scopes`, and fields of the scheme that all accounts share.
    #[serde(default)]
    #[schema(value_type = Object)]
    pub credentials: Map<String, Value>,
    /// Fields of the scheme that all accounts share.
    #[schema(value_type = Option<Object>)]
    pub shared_credentials: Option<Map<String, Value>>,
    pub name: Option<String>,
    pub tool_access_config: Option<ToolAccessChoice>,
    /// The older name of `tool_access_config.tools_for_connected_account_creation`.
    pub restrict_to_following_tools: Option<Vec<String>>,
    /// Whether sessions connect accounts with it.
    pub is_enabled_for_tool_router: Option<bool>,
    /// Not served.
    #[schema(value_type = Option<Object>)]
    pub proxy_config: Option<Value>,
}

impl std::fmt::Debug for AuthConfigChoice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AuthConfigChoice").field("kind", &self.kind).field("auth_scheme", &self.auth_scheme).finish_non_exhaustive()
    }
}

/// Which tools an auth config is for.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[schema(as = composio::ToolAccessChoice)]
pub struct ToolAccessChoice {
    /// Accounts are asked for the scopes that these need.
    pub tools_for_connected_account_creation: Option<Vec<String>>,
    /// Its accounts run no others.
    pub tools_available_for_execution: Option<Vec<String>>,
}

impl AuthConfigChoice {
    pub(super) fn is_managed(&self) -> bool {
        self.kind.as_deref().unwrap_or(MANAGED) == MANAGED
    }

    pub(super) fn check(&self) -> Result<(), Refusal> {
        if !matches!(self.kind.as_deref(), None | Some(MANAGED | CUSTOM)) {
            return Err(Refusal::bad_request(format!("`auth_config.type` must be `{MANAGED}` or `{CUSTOM}`.")));
        }
        no_proxy(self.proxy_config.as_ref())
    }

    pub(super) fn access(&self, names: &Names) -> Result<ToolAccess, Refusal> {
        let choice = self.tool_access_config.clone().unwrap_or_default();
        let creation = choice.tools_for_connected_account_creation.or_else(|| self.restrict_to_following_tools.clone());
        Ok(ToolAccess {
            creation: creation.map(|tools| known(names, tools)).transpose()?,
            execution: choice.tools_available_for_execution.map(|tools| known(names, tools)).transpose()?,
            tool_router: self.is_enabled_for_tool_router,
        })
    }
}

/// A change of an auth config. What is left out stays.
#[derive(Clone, Default, Deserialize, ToSchema)]
#[schema(as = composio::ChangeAuthConfig)]
pub struct ChangeAuthConfig {
    /// `custom` or `default`, as the auth config is.
    #[serde(rename = "type")]
    pub kind: Option<String>,
    #[serde(default)]
    #[schema(value_type = Object)]
    pub credentials: Map<String, Value>,
    /// Of a default one, with commas or spaces, or a list.
    #[schema(value_type = Option<Object>)]
    pub scopes: Option<Value>,
    #[schema(value_type = Option<Object>)]
    pub shared_credentials: Option<Map<String, Value>>,
    pub name: Option<String>,
    pub tool_access_config: Option<ToolAccessChoice>,
    pub restrict_to_following_tools: Option<Vec<String>>,
    pub is_enabled_for_tool_router: Option<bool>,
    #[schema(value_type = Option<Object>)]
    pub proxy_config: Option<Value>,
}

impl std::fmt::Debug for ChangeAuthConfig {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ChangeAuthConfig").field("kind", &self.kind).finish_non_exhaustive()
    }
}

impl ChangeAuthConfig {
    pub(super) fn check(&self, is_managed: bool) -> Result<(), Refusal> {
        let own = if is_managed { "default" } else { "custom" };
        if self.kind.as_deref().is_some_and(|kind| kind != own) {
            return Err(Refusal::bad_request(format!("This auth config is a `{own}` one; `type` must say so.")));
        }
        no_proxy(self.proxy_config.as_ref())
    }

    pub(super) fn scopes(&self) -> Result<Option<Vec<String>>, Refusal> {
        self.scopes.as_ref().map_or(Ok(None), read_scopes)
    }

    /// The access as it shall be, if it changes.
    pub(super) fn access(&self, names: &Names, old: &ToolAccess) -> Result<Option<ToolAccess>, Refusal> {
        let choice = self.tool_access_config.clone().unwrap_or_default();
        let creation = choice.tools_for_connected_account_creation.or_else(|| self.restrict_to_following_tools.clone());
        let mut access = old.clone();
        if let Some(tools) = creation {
            access.creation = Some(known(names, tools)?).filter(|tools| !tools.is_empty());
        }
        if let Some(tools) = choice.tools_available_for_execution {
            access.execution = Some(known(names, tools)?).filter(|tools| !tools.is_empty());
        }
        access.tool_router = self.is_enabled_for_tool_router.or(access.tool_router);
        Ok((access != *old).then_some(access))
    }
}

/// Which auth configs to list.
#[derive(Clone, Debug, Default)]
pub struct AuthConfigFilter {
    /// With commas.
    pub toolkit_slug: Option<String>,
    pub is_managed: Option<bool>,
    pub show_disabled: bool,
    /// A part of the name or the id.
    pub search: Option<String>,
}

fn no_proxy(proxy: Option<&Value>) -> Result<(), Refusal> {
    match proxy {
        None | Some(Value::Null) => Ok(()),
        Some(_) => Err(Refusal::not_served("Calls through a proxy of yours are not served here; leave `proxy_config` out.")),
    }
}

/// The slugs of tools that exist, each once.
fn known(names: &Names, tools: Vec<String>) -> Result<Vec<String>, Refusal> {
    if tools.len() > MAX_TOOLS {
        return Err(Refusal::bad_request(format!("An auth config may name {MAX_TOOLS} tools.")));
    }
    let mut known: Vec<String> = Vec::new();
    for slug in tools {
        let found = names.tool(&slug).map_err(|refusal| Refusal::bad_request(refusal.message))?.slug().to_owned();
        if !known.contains(&found) {
            known.push(found);
        }
    }
    Ok(known)
}

/// A value of a credential as text; null is none.
pub(crate) fn scalar(name: &str, value: &Value) -> Result<Option<String>, Refusal> {
    let shown = || name.chars().filter(|letter| !letter.is_control()).take(40).collect::<String>();
    let text = match value {
        Value::Null => return Ok(None),
        Value::String(text) => text.trim().to_owned(),
        Value::Number(number) => number.to_string(),
        Value::Bool(flag) => flag.to_string(),
        _ => return Err(Refusal::bad_request(format!("`{}` must be a text.", shown()))),
    };
    if text.len() > MAX_VALUE || text.contains(char::is_control) {
        return Err(Refusal::bad_request(format!("`{}` is too long or holds control characters.", shown())));
    }
    Ok(Some(text).filter(|text| !text.is_empty()))
}

/// OAuth scopes as callers write them: a list, or a text with commas or spaces. An empty one clears.
pub(super) fn read_scopes(value: &Value) -> Result<Option<Vec<String>>, Refusal> {
    let wrong = || Refusal::bad_request("`scopes` must be a list of texts, or one text with commas or spaces.");
    let scopes: Vec<String> = match value {
        Value::Null => return Ok(None),
        Value::String(text) => text.split([',', ' ']).filter(|scope| !scope.is_empty()).map(str::to_owned).collect(),
        Value::Array(list) => {
            let texts = list.iter().map(|scope| scope.as_str().map(|scope| scope.trim().to_owned()));
            texts.collect::<Option<Vec<_>>>().ok_or_else(wrong)?.into_iter().filter(|scope| !scope.is_empty()).collect()
        }
        _ => return Err(wrong()),
    };
    if scopes.len() > MAX_SCOPES || scopes.iter().any(|scope| scope.len() > 500 || scope.contains(char::is_control)) {
        return Err(Refusal::bad_request(format!("There may be {MAX_SCOPES} scopes, without control characters.")));
    }
    Ok(Some(scopes))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn scopes_are_read_as_they_are_written() {
        let read = |value: Value| read_scopes(&value).unwrap();
        assert_eq!(read(json!("a, b c")), Some(vec!["a".to_owned(), "b".to_owned(), "c".to_owned()]));
        assert_eq!(read(json!(["a", " b "])), Some(vec!["a".to_owned(), "b".to_owned()]));
        assert_eq!((read(json!(null)), read(json!(""))), (None, Some(Vec::new())));
        for wrong in [json!(1), json!([1]), json!({}), json!(["a\nb"]), json!(vec!["x"; MAX_SCOPES + 1])] {
            assert_eq!(read_scopes(&wrong).unwrap_err().status, 400, "{wrong}");
        }
    }

    #[test]
    fn a_value_is_a_text_whatever_it_was() {
        assert_eq!(scalar("x", &json!(7)).unwrap().as_deref(), Some("7"));
        assert_eq!(scalar("x", &json!(true)).unwrap().as_deref(), Some("true"));
        assert_eq!(scalar("x", &json!(" a ")).unwrap().as_deref(), Some("a"));
        assert_eq!(scalar("x", &json!(null)).unwrap(), None);
        assert!(scalar("x", &json!([])).is_err() && scalar("x", &json!("a\u{7}b")).is_err());
    }
}
