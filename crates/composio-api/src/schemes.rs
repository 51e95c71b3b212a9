//! The ways to connect an account, in Composio's words.

use catalog::Integration;
use catalog::auth::{AuthScheme, Field, Hosted};
use document::ToSchema;
use serde::Serialize;

/// What Composio calls a way to connect.
pub fn word(scheme: &AuthScheme) -> &'static str {
    match scheme {
        AuthScheme::OAuth2(_) | AuthScheme::Hosted(Hosted { is_oauth: true, .. }) => "OAUTH2",
        AuthScheme::ClientCredentials(_) => "S2S_OAUTH2",
        AuthScheme::Bearer(_) => "BEARER_TOKEN",
        AuthScheme::Basic(_) => "BASIC",
        AuthScheme::ApiKey(_) | AuthScheme::Hosted(_) => "API_KEY",
        AuthScheme::None(_) => "NO_AUTH",
    }
}

/// The same for the name of a scheme, as rows keep it.
pub fn word_of_name(name: &str) -> &'static str {
    match name {
        "oauth2" => "OAUTH2",
        "client_credentials" => "S2S_OAUTH2",
        "bearer" => "BEARER_TOKEN",
        "basic" => "BASIC",
        "none" => "NO_AUTH",
        _ => "API_KEY",
    }
}

/// The words for an integration's ways, each once, the preferred first.
pub fn words(integration: &Integration) -> Vec<&'static str> {
    let mut words = Vec::new();
    for word in integration.schemes().map(word) {
        if !words.contains(&word) {
            words.push(word);
        }
    }
    words
}

/// The way that a word means.
pub fn find<'a>(integration: &'a Integration, wanted: &str) -> Option<&'a AuthScheme> {
    integration.schemes().find(|scheme| word(scheme).eq_ignore_ascii_case(wanted))
}

/// A field that somebody fills in to connect.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = composio::AuthField)]
pub struct AuthField {
    pub name: String,
    #[serde(rename = "displayName")]
    pub display_name: String,
    #[serde(rename = "type")]
    pub kind: &'static str,
    pub description: String,
    pub required: bool,
    pub user_visible: bool,
    pub is_secret: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<String>,
}

impl AuthField {
    pub fn of(name: String, field: Field) -> Self {
        Self {
            display_name: field.label.unwrap_or_else(|| name.clone()),
            name,
            kind: "string",
            description: field.help.unwrap_or_default(),
            required: !field.optional && field.default.is_none(),
            user_visible: true,
            is_secret: field.secret,
            default: field.default,
        }
    }

    fn text(name: &str, display_name: &str, is_secret: bool) -> Self {
        Self {
            name: name.to_owned(),
            display_name: display_name.to_owned(),
            kind: "string",
            description: String::new(),
            required: true,
            user_visible: true,
            is_secret,
            default: None,
        }
    }
}

/// Fields that must and that may be filled in.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
#[schema(as = composio::AuthFields)]
pub struct AuthFields {
    pub required: Vec<AuthField>,
    pub optional: Vec<AuthField>,
}

impl AuthFields {
    /// What an auth config of this scheme needs: an OAuth app, or nothing.
    pub fn of_auth_config(scheme: &AuthScheme) -> Self {
        let required = match scheme {
            AuthScheme::OAuth2(_) => {
                vec![AuthField::text("client_id", "Client ID", false), AuthField::text("client_secret", "Client secret", true)]
            }
            _ => Vec::new(),
        };
        Self { required, optional: Vec::new() }
    }

    /// What a person fills in to connect an account.
    pub fn of_account(scheme: &AuthScheme) -> Self {
        let fields = scheme.fields().into_iter().map(|(name, field)| AuthField::of(name, field));
        let (required, optional) = fields.partition(|field| field.required);
        Self { required, optional }
    }
}
