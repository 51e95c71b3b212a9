//! Clients that register themselves (RFC 7591): what is asked for is checked as a function of values, and kept within bounds.

use std::time::Duration;

use kernel::Timestamp;
use kernel::key::{KeyHash, PlainKey, random_text};
use serde::Deserialize;
use serde_json::Value;
use store::{args, row};

use crate::{Client, GrantError, Grants, Refusal, redirect};

const MAX_URIS: usize = 10;
const MAX_NAME: usize = 100;
const MAX_TEXT: usize = 2000;
/// How many clients one address may register within `WITHIN`.
const MOST_OF_ADDRESS: i64 = 20;
const WITHIN: Duration = Duration::from_hours(1);

const RESPONSES: [&str; 1] = ["code"];
const GRANTS: [&str; 3] = ["authorization_code", "refresh_token", "urn:ietf:params:oauth:grant-type:device_code"];
const METHODS: [&str; 3] = ["none", "client_secret_basic", "client_secret_post"];

/// What a client says of itself. What else it says is not used here.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct NewClient {
    #[serde(default)]
    pub redirect_uris: Vec<String>,
    pub client_name: Option<String>,
    pub client_uri: Option<String>,
    pub token_endpoint_auth_method: Option<String>,
    pub grant_types: Option<Vec<String>>,
    pub response_types: Option<Vec<String>>,
    pub scope: Option<String>,
}

/// A client that was registered, with the secret that is shown once.
#[derive(Debug)]
pub struct Registered {
    pub client: Client,
    pub secret: Option<PlainKey>,
    pub method: &'static str,
    pub grant_types: Vec<&'static str>,
    pub scope: Option<String>,
    pub created_at: Timestamp,
}

/// What a description comes to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Checked {
    pub(crate) name: String,
    pub(crate) uri: Option<String>,
    pub(crate) redirect_uris: Vec<String>,
    pub(crate) method: &'static str,
    pub(crate) grant_types: Vec<&'static str>,
}

fn wrong(why: impl Into<String>) -> GrantError {
    GrantError::refused(Refusal::InvalidClientMetadata, why)
}

/// The values that we know, or the first that we do not.
fn known<const N: usize>(field: &str, given: Option<&[String]>, known: [&'static str; N]) -> Result<Vec<&'static str>, GrantError> {
    let find = |value: &String| {
        let shown: String = value.chars().take(MAX_NAME).collect();
        let unknown = || wrong(format!("`{field}`: `{shown}` is not offered here; there are {}.", known.join(", ")));
        known.into_iter().find(|known| known == value).ok_or_else(unknown)
    };
    given.unwrap_or_default().iter().take(2 * N).map(find).collect()
}

/// Checks what a client says of itself.
pub(crate) fn check(new: &NewClient, default_method: &'static str) -> Result<Checked, GrantError> {
    let grant_types = match new.grant_types.as_deref() {
        None => vec!["authorization_code", "refresh_token"],
        given => known("grant_types", given, GRANTS)?,
    };
    known("response_types", new.response_types.as_deref(), RESPONSES)?;
    crate::read_scope(new.scope.as_deref())?;
    let method = match &new.token_endpoint_auth_method {
        None => default_method,
        Some(method) => {
            known("token_endpoint_auth_method", Some(std::slice::from_ref(method)), METHODS)?.first().copied().unwrap_or(default_method)
        }
    };
    if new.redirect_uris.is_empty() && grant_types.contains(&"authorization_code") {
        return Err(GrantError::refused(Refusal::InvalidRedirectUri, "`redirect_uris` is empty; name at least one address."));
    }
    if new.redirect_uris.len() > MAX_URIS {
        return Err(GrantError::refused(Refusal::InvalidRedirectUri, format!("`redirect_uris` has more than {MAX_URIS} addresses.")));
    }
    for uri in &new.redirect_uris {
        if let Some(problem) = redirect::problem(uri) {
            let shown: String = uri.chars().take(MAX_NAME).collect();
            return Err(GrantError::refused(Refusal::InvalidRedirectUri, format!("`{shown}` cannot be returned to: {problem}.")));
        }
    }
    let uri = new.client_uri.as_deref().filter(|uri| !uri.is_empty());
    if uri.is_some_and(|uri| uri.len() > MAX_TEXT || !uri.starts_with("https://") || redirect::problem(uri).is_some()) {
        return Err(wrong("`client_uri` must be an `https` address."));
    }
    Ok(Checked { name: name(new), uri: uri.map(str::to_owned), redirect_uris: new.redirect_uris.clone(), method, grant_types })
}

/// The name that people are shown: in one line, without characters that turn or hide others.
fn name(new: &NewClient) -> String {
    let is_plain = |letter: &char| {
        !letter.is_control()
            && !matches!(*letter, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{061c}')
    };
    let given: String = new.client_name.as_deref().unwrap_or_default().chars().filter(is_plain).take(MAX_NAME).collect();
    let given = given.split_whitespace().collect::<Vec<_>>().join(" ");
    if given.is_empty() { "A client without a name".to_owned() } else { given }
}

impl Grants {
    /// Registers a client, from somewhere that may register only so many.
    #[kernel::boxed]
    pub async fn register(&self, new: &NewClient, address: &str) -> Result<Registered, GrantError> {
        // RFC 7591: who says nothing keeps a secret.
        let checked = check(new, "client_secret_basic")?;
        let now = self.0.clock.now();
        let sql = "select (select count(*) from oauth_clients where address = $1 and created_at > $2) as of_address, \
                   (select count(*) from oauth_clients where used_at is null) as waiting, (select count(*) from oauth_clients) as known";
        let address = KeyHash::of(address).hex();
        let counted = self.0.db.optional(sql, args![address.as_str(), now.minus(WITHIN)]).await?;
        let count = |name: &str| counted.as_ref().map_or(Ok(0), |row| row.get::<i64>(name));
        if count("of_address")? >= MOST_OF_ADDRESS {
            return Err(GrantError::refused(Refusal::TooManyClients, "Too many clients were registered from here. Try again in an hour."));
        }
        let limits = self.0.limits;
        if count("waiting")? >= limits.waiting_clients() || count("known")? >= limits.clients {
            let why = format!(
                "This server knows {} clients at most (the setting `registered_clients`), half of which may wait for a person. Those that \
                 nobody lets in are forgotten after a day: try again then, or ask the operator to raise the setting.",
                limits.clients
            );
            return Err(GrantError::refused(Refusal::TooManyClients, why));
        }
        let secret = (checked.method != "none").then(|| PlainKey::generate("tycs"));
        let client = Client {
            id: format!("tyc_{}", random_text(24)),
            name: checked.name,
            uri: checked.uri,
            redirect_uris: checked.redirect_uris,
            secret: secret.as_ref().map(PlainKey::hash),
        };
        let uris: Value = client.redirect_uris.iter().map(String::as_str).collect();
        let row = row! {
            id: client.id.as_str(),
            name: client.name.as_str(),
            uri: client.uri.as_deref(),
            redirect_uris: &uris,
            secret_hash: client.secret.map(|hash| hash.as_bytes().to_vec()),
            address: address.as_str(),
            created_at: now,
        };
        self.0.db.insert("oauth_clients", row).await?;
        Ok(Registered {
            client,
            secret,
            method: checked.method,
            grant_types: checked.grant_types,
            scope: new.scope.clone(),
            created_at: now,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(change: impl FnOnce(&mut NewClient)) -> NewClient {
        let mut new = NewClient { redirect_uris: vec!["https://client.example/cb".to_owned()], ..NewClient::default() };
        change(&mut new);
        new
    }

    fn refusal(new: &NewClient) -> Refusal {
        match check(new, "none") {
            Err(GrantError::Refused(refusal, _)) => refusal,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_a_client_says_is_checked() {
        let checked = check(&client(|_| {}), "client_secret_basic").unwrap();
        assert_eq!((checked.name.as_str(), checked.method), ("A client without a name", "client_secret_basic"));
        let texts = |values: &[&str]| Some(values.iter().map(|value| (*value).to_owned()).collect());
        for wrong in [
            client(|new| new.grant_types = texts(&["implicit"])),
            client(|new| new.grant_types = texts(&["password"])),
            client(|new| new.response_types = texts(&["token"])),
            client(|new| new.token_endpoint_auth_method = Some("private_key_jwt".to_owned())),
            client(|new| new.client_uri = Some("javascript:alert(1)".to_owned())),
            client(|new| new.client_uri = Some("http://client.example".to_owned())),
        ] {
            assert_eq!(refusal(&wrong), Refusal::InvalidClientMetadata, "{wrong:?}");
        }
        assert_eq!(refusal(&client(|new| new.scope = Some("everything".to_owned()))), Refusal::InvalidScope);
        for uris in [vec![], vec!["http://client.example/cb".to_owned()], vec!["https://client.example/cb".to_owned(); 11]] {
            assert_eq!(refusal(&client(|new| new.redirect_uris = uris)), Refusal::InvalidRedirectUri);
        }
        let device = client(|new| {
            new.redirect_uris.clear();
            new.grant_types = texts(&["urn:ietf:params:oauth:grant-type:device_code"]);
        });
        assert!(check(&device, "none").is_ok(), "a device is sent back nowhere");
    }

    #[test]
    fn a_name_is_one_plain_line() {
        for (given, shown) in [
            ("Claude", "Claude"),
            ("  two\n lines\t", "two lines"),
            ("\u{202e}edualC", "edualC"),
            ("a\u{200b}b", "ab"),
            ("", "A client without a name"),
            (" \u{feff} ", "A client without a name"),
        ] {
            assert_eq!(name(&client(|new| new.client_name = Some(given.to_owned()))), shown, "{given:?}");
        }
        assert_eq!(name(&client(|new| new.client_name = Some("x".repeat(5000)))).len(), MAX_NAME);
    }
}
