//! How accounts are connected: security schemes and requirements as the auth schemes of the catalog.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};
use url::Url;

use crate::document::{At, Bundle};
use crate::name::Arguments;
use crate::server::{Allowed, endpoint};
use crate::text::brief;

const MAX_SCOPES: usize = 20;
const MAX_WAYS: usize = 200;

/// What a document says about credentials, turned into auth schemes.
#[derive(Debug, Default)]
pub(crate) struct Security {
    pub(crate) auth: Vec<Value>,
    /// Where tokens are fetched.
    pub(crate) endpoints: BTreeSet<String>,
    pub(crate) warnings: Vec<String>,
}

/// What schemes are read with.
pub(crate) struct SecurityReader<'a> {
    pub(crate) bundle: &'a Bundle,
    /// Schemes in place of the document's.
    pub(crate) own: Option<At<'a>>,
    /// OpenID Connect discovery documents by their address.
    pub(crate) discovered: &'a BTreeMap<String, Value>,
    pub(crate) allowed: Allowed<'a>,
}

/// Where one part of a credential goes.
struct Part {
    kind: Kind,
    fields: Map<String, Value>,
    headers: Map<String, Value>,
    query: Map<String, Value>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Bearer,
    Basic,
    ApiKey,
}

impl<'a> SecurityReader<'a> {
    pub(crate) fn schemes(&self) -> At<'a> {
        self.own.unwrap_or_else(|| self.bundle.root().field("components").field("securitySchemes"))
    }

    /// Where keys stand in a request, so that no argument asks for them again: place and name, in lower case.
    pub(crate) fn places(&self) -> Vec<(String, String)> {
        let schemes = self.schemes();
        let found = schemes.value.as_object().into_iter().flat_map(Map::values).take(MAX_WAYS);
        let found = found.filter_map(|scheme| self.bundle.resolve(schemes.inner(scheme)).ok());
        let keys = found.filter(|scheme| scheme.value["type"] == "apiKey");
        keys.filter_map(|key| Some((key.value["in"].as_str()?.to_owned(), key.value["name"].as_str()?.to_lowercase()))).collect()
    }

    /// The ways to connect, in the document's order. An integration has one of each kind.
    pub(crate) fn read(&self, requirements: &[&Value]) -> Security {
        let mut security = Security::default();
        let mut optional = requirements.is_empty();
        for names in self.ways(requirements, &mut optional) {
            let made = match &names[..] {
                [one] => self.one(one, requirements, &mut security),
                several => self.together(several),
            };
            match made {
                Ok(Some(scheme)) => add(scheme, &names, &mut security),
                Ok(None) => {}
                Err(why) => security.warnings.push(format!("security `{}` is left out: {why}", names.join("` with `"))),
            }
        }
        if security.auth.is_empty() || optional {
            security.auth.push(json!({"scheme": "none"}));
        }
        security
    }

    /// Sets of schemes that are asked for together, each once.
    fn ways(&self, requirements: &[&Value], optional: &mut bool) -> Vec<Vec<String>> {
        let schemes = self.schemes().value.as_object();
        let mut ways: Vec<Vec<String>> = Vec::new();
        if self.own.is_none() {
            for requirement in requirements.iter().filter_map(|list| list.as_array()).flatten().filter_map(Value::as_object) {
                let names: Vec<String> = requirement.keys().cloned().collect();
                *optional |= names.is_empty();
                if !names.is_empty() && !ways.contains(&names) && ways.len() < MAX_WAYS {
                    ways.push(names);
                }
            }
        }
        if ways.is_empty() {
            ways.extend(schemes.into_iter().flat_map(Map::keys).take(MAX_WAYS).map(|name| vec![name.clone()]));
        }
        ways
    }

    fn scheme(&self, name: &str) -> Result<At<'a>, String> {
        let schemes = self.schemes();
        let found = schemes.value.get(name).ok_or("it is not described")?;
        self.bundle.resolve(schemes.inner(found))
    }

    fn one(&self, name: &str, requirements: &[&Value], security: &mut Security) -> Result<Option<Value>, String> {
        let scheme = self.scheme(name)?.value;
        match scheme["type"].as_str() {
            Some("oauth2") => self.oauth2(name, &scheme["flows"], requirements, security),
            Some("openIdConnect") => {
                let url = scheme["openIdConnectUrl"].as_str().unwrap_or_default();
                let found = self.discovered.get(url).ok_or("its discovery document could not be read")?;
                let flow = json!({"authorizationUrl": found["authorization_endpoint"], "tokenUrl": found["token_endpoint"]});
                self.oauth2(name, &json!({"authorizationCode": flow}), requirements, security)
            }
            _ => {
                let part = part(name, scheme, &mut Arguments::default(), true)?;
                let mut made = json!({"fields": part.fields});
                made["scheme"] = match part.kind {
                    Kind::Bearer => "bearer".into(),
                    Kind::Basic => "basic".into(),
                    Kind::ApiKey => {
                        made["send"] = json!({"headers": part.headers, "query": part.query});
                        "api_key".into()
                    }
                };
                Ok(Some(made))
            }
        }
    }

    /// Several keys that are sent with every request.
    fn together(&self, names: &[String]) -> Result<Option<Value>, String> {
        let mut taken = Arguments::default();
        let (mut fields, mut headers, mut query) = (Map::new(), Map::new(), Map::new());
        for name in names {
            let part = part(name, self.scheme(name)?.value, &mut taken, false)?;
            if part.kind == Kind::Basic {
                return Err("a user name and password cannot be combined with other keys".to_owned());
            }
            fields.extend(part.fields);
            headers.extend(part.headers);
            query.extend(part.query);
        }
        Ok(Some(json!({"scheme": "api_key", "fields": fields, "send": {"headers": headers, "query": query}})))
    }

    fn oauth2(&self, name: &str, flows: &Value, requirements: &[&Value], security: &mut Security) -> Result<Option<Value>, String> {
        let document = self.bundle.url();
        let address = |text: &Value, what: &str| {
            let text = text.as_str().filter(|text| !text.is_empty()).ok_or_else(|| format!("it has no {what}"))?;
            endpoint(text, document, self.allowed)
        };
        let origin = |url: &Url| url.origin().ascii_serialization();
        let mut made = None;
        if let Some(flow) = flows.get("authorizationCode") {
            let token = address(&flow["tokenUrl"], "`tokenUrl`")?;
            let mut scheme = json!({
                "scheme": "oauth2",
                "is_imported": true,
                "authorize_url": address(&flow["authorizationUrl"], "`authorizationUrl`")?.as_str(),
                "token_url": token.as_str(),
                "scopes": scopes(name, flow, requirements),
            });
            security.endpoints.insert(origin(&token));
            if flow.get("refreshUrl").is_some_and(|url| !url.is_null()) {
                let refresh = address(&flow["refreshUrl"], "`refreshUrl`")?;
                security.endpoints.insert(origin(&refresh));
                scheme["refresh_url"] = refresh.as_str().into();
            }
            made = Some(scheme);
        }
        if let Some(flow) = flows.get("clientCredentials") {
            let token = address(&flow["tokenUrl"], "`tokenUrl`")?;
            security.endpoints.insert(origin(&token));
            let scheme = json!({"scheme": "client_credentials", "token_url": token.as_str(), "scopes": scopes(name, flow, requirements)});
            match made {
                None => made = Some(scheme),
                Some(_) => add(scheme, &[name.to_owned()], security),
            }
        }
        made.map(Some).ok_or_else(|| "only the flows `authorizationCode` and `clientCredentials` can be used".to_owned())
    }
}

/// The scopes that the whole document asks for, else those of its operations, if they are few.
fn scopes(name: &str, flow: &Value, requirements: &[&Value]) -> Vec<String> {
    let asked = |list: &Value| -> Vec<String> {
        let lists = list.as_array().into_iter().flatten().filter_map(|way| way.get(name)?.as_array());
        lists.flatten().filter_map(|scope| scope.as_str().map(str::to_owned)).collect()
    };
    let known = flow["scopes"].as_object();
    let mut scopes: Vec<String> = Vec::new();
    for scope in requirements.iter().flat_map(|list| asked(list)) {
        if !scopes.contains(&scope) && known.is_none_or(|known| known.is_empty() || known.contains_key(&scope)) {
            scopes.push(scope);
        }
        if scopes.len() > MAX_SCOPES {
            return requirements.first().map(|list| asked(list)).unwrap_or_default().into_iter().take(MAX_SCOPES).collect();
        }
    }
    scopes
}

/// A key, a token or a password. The fields of a scheme that stands alone have their usual names.
fn part(name: &str, scheme: &Value, taken: &mut Arguments, alone: bool) -> Result<Part, String> {
    let help = scheme["description"].as_str().map(|text| brief(text, 200)).filter(|text| !text.is_empty());
    let field = |label: &str| json!({"label": brief(label, 60), "help": help});
    let named = |usual: &str, taken: &mut Arguments| if alone { usual.to_owned() } else { taken.take(name, "field") };
    let mut part = Part { kind: Kind::ApiKey, fields: Map::new(), headers: Map::new(), query: Map::new() };
    let kind = scheme["type"].as_str().unwrap_or_default();
    let http = scheme["scheme"].as_str().unwrap_or_default().to_ascii_lowercase();
    match (kind, http.as_str()) {
        ("http", "bearer") => {
            let name = named("token", taken);
            part.headers.insert("Authorization".to_owned(), format!("Bearer {{connection.{name}}}").into());
            part.fields.insert(name, field("Token"));
            part.kind = Kind::Bearer;
        }
        ("http", "basic") => part.kind = Kind::Basic,
        ("apiKey", _) => {
            let wire = scheme["name"].as_str().filter(|wire| !wire.is_empty() && wire.len() <= 100).ok_or("it has no `name`")?;
            let name = named("api_key", taken);
            let value = format!("{{connection.{name}}}");
            match scheme["in"].as_str() {
                Some("header") if is_header(wire) => part.headers.insert(wire.to_owned(), value.into()),
                Some("query") => part.query.insert(wire.to_owned(), value.into()),
                Some("cookie") if is_token(wire) => part.headers.insert("Cookie".to_owned(), format!("{wire}={value}").into()),
                _ => return Err("it says neither header, query nor cookie, or has a name that none of them takes".to_owned()),
            };
            part.fields.insert(name, field(wire));
        }
        ("http", other) => return Err(format!("the scheme `{}` cannot be used", brief(other, 40))),
        (other, _) => return Err(format!("the type `{}` cannot be used here", brief(other, 40))),
    }
    Ok(part)
}

/// The name of a header that a document may set.
pub(crate) fn is_header(name: &str) -> bool {
    const OURS: [&str; 9] =
        ["host", "content-length", "content-type", "connection", "transfer-encoding", "upgrade", "te", "trailer", "cookie"];
    is_token(name) && !OURS.contains(&name.to_ascii_lowercase().as_str())
}

/// What HTTP calls a token.
pub(crate) fn is_token(text: &str) -> bool {
    !text.is_empty() && text.len() <= 100 && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

fn add(scheme: Value, names: &[String], security: &mut Security) {
    if security.auth.iter().any(|known| known["scheme"] == scheme["scheme"]) {
        let kind = scheme["scheme"].as_str().unwrap_or_default();
        let names = names.join("` with `");
        security.warnings.push(format!(
            "security `{names}` is left out: another one is `{kind}` too; give `security_schemes` with the one that you use"
        ));
    } else {
        security.auth.push(scheme);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(document: Value) -> Security {
        let bundle = Bundle::new("https://example.com/openapi.json".parse().ok(), document);
        let root = bundle.root().value;
        let requirements: Vec<&Value> = [&root["security"], &root["operation"]].into_iter().filter(|list| !list.is_null()).collect();
        let discovered = BTreeMap::from([(
            "https://id.example.com/.well-known/openid-configuration".to_owned(),
            json!({"authorization_endpoint": "https://id.example.com/authorize", "token_endpoint": "https://id.example.com/token"}),
        )]);
        SecurityReader { bundle: &bundle, own: None, discovered: &discovered, allowed: &|_| Ok(()) }.read(&requirements)
    }

    fn schemes(schemes: Value, security: Value) -> Security {
        read(json!({"components": {"securitySchemes": schemes}, "security": security}))
    }

    #[test]
    fn keys_go_where_the_document_says() {
        let header = schemes(json!({"k": {"type": "apiKey", "in": "header", "name": "X-Key"}}), json!([{"k": []}]));
        assert_eq!(header.auth[0]["send"]["headers"], json!({"X-Key": "{connection.api_key}"}));
        let cookie = schemes(json!({"k": {"type": "apiKey", "in": "cookie", "name": "sid"}}), json!([{"k": []}]));
        assert_eq!(cookie.auth[0]["send"]["headers"], json!({"Cookie": "sid={connection.api_key}"}));
        let query = schemes(json!({"k": {"type": "apiKey", "in": "query", "name": "key"}}), json!([{"k": []}]));
        assert_eq!(query.auth[0]["send"]["query"], json!({"key": "{connection.api_key}"}));
        let two = json!({"a": {"type": "apiKey", "in": "header", "name": "X-A"}, "b": {"type": "http", "scheme": "Bearer"}});
        let both = schemes(two, json!([{"a": [], "b": []}]));
        assert_eq!(both.auth.len(), 1);
        assert_eq!(both.auth[0]["send"]["headers"], json!({"X-A": "{connection.a}", "Authorization": "Bearer {connection.b}"}));
    }

    #[test]
    fn every_kind_becomes_a_way_to_connect() {
        let all = json!({
            "bearer": {"type": "http", "scheme": "bearer"},
            "basic": {"type": "http", "scheme": "basic"},
            "code": {"type": "oauth2", "flows": {
                "authorizationCode": {"authorizationUrl": "/authorize", "tokenUrl": "/token", "scopes": {"read": "", "write": ""}},
                "clientCredentials": {"tokenUrl": "https://login.example.com/token"}
            }},
            "old": {"type": "oauth2", "flows": {"implicit": {}}},
            "digest": {"type": "http", "scheme": "digest"},
            "tls": {"type": "mutualTLS"}
        });
        let made = schemes(all, json!(null));
        let names: Vec<&str> = made.auth.iter().map(|scheme| scheme["scheme"].as_str().unwrap()).collect();
        assert_eq!(names, ["bearer", "basic", "client_credentials", "oauth2", "none"]);
        assert_eq!(made.auth[3]["token_url"], "https://example.com/token");
        assert_eq!(made.endpoints, BTreeSet::from(["https://example.com".to_owned(), "https://login.example.com".to_owned()]));
        assert_eq!(made.warnings.len(), 3, "{:?}", made.warnings);
    }

    #[test]
    fn scopes_are_those_that_are_asked_for() {
        let flow = json!({"authorizationUrl": "https://x.example/a", "tokenUrl": "https://x.example/t", "scopes": {"read": "", "write": "", "admin": ""}});
        let made = schemes(json!({"o": {"type": "oauth2", "flows": {"authorizationCode": flow}}}), json!([{"o": ["read", "write"]}]));
        assert_eq!(made.auth[0]["scopes"], json!(["read", "write"]));
        assert_eq!(made.auth[0]["is_imported"], true);
        assert_eq!(made.auth.len(), 1);
    }

    #[test]
    fn openid_connect_is_discovered() {
        let scheme = json!({"type": "openIdConnect", "openIdConnectUrl": "https://id.example.com/.well-known/openid-configuration"});
        assert_eq!(schemes(json!({"o": scheme}), json!([{"o": []}])).auth[0]["token_url"], "https://id.example.com/token");
        let unknown = json!({"type": "openIdConnect", "openIdConnectUrl": "https://other.example.com"});
        let made = schemes(json!({"o": unknown}), json!([{"o": []}]));
        assert_eq!((made.auth, made.warnings.len()), (vec![json!({"scheme": "none"})], 1));
    }

    #[test]
    fn what_is_optional_can_be_left_out() {
        let bearer = json!({"b": {"type": "http", "scheme": "bearer"}});
        assert_eq!(schemes(bearer.clone(), json!([{"b": []}, {}])).auth.len(), 2);
        assert_eq!(schemes(bearer, json!([{"b": []}])).auth.len(), 1);
        assert_eq!(schemes(json!({}), json!([])).auth, [json!({"scheme": "none"})]);
    }

    #[test]
    fn no_scheme_can_say_more_than_it_should() {
        for (name, place) in [("X-Key\r\nX-Evil", "header"), ("Host", "header"), ("a=b; c", "cookie"), ("", "query"), ("k", "body")] {
            let made = schemes(json!({"k": {"type": "apiKey", "in": place, "name": name}}), json!([{"k": []}]));
            assert_eq!(made.auth, [json!({"scheme": "none"})], "{name} {place}");
        }
        let named = schemes(json!({"k": {"type": "apiKey", "in": "header", "name": "{connection.x}"}}), json!([{"k": []}]));
        assert_eq!(named.auth, [json!({"scheme": "none"})]);
    }
}
