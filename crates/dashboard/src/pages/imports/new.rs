//! A new import: say what, see the plan, confirm it. The same form goes along from step to step, so that nothing is kept in between.

use askama::Template;
use axum::extract::Query;
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::body::{IMPORTS, Made, Mode, Refused, make};
use crate::form::Form;
use crate::frame::{Frame, Section, see_other, show, show_refused};
use crate::path::Path;
use crate::refusal::{PageResult, Refusal};
use crate::visit::Visit;

/// What can be imported, by its word in addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Url,
    Document,
    Mcp,
}

impl Kind {
    const ALL: [(Self, &'static str); 3] =
        [(Self::Url, "OpenAPI by address"), (Self::Document, "OpenAPI document"), (Self::Mcp, "MCP server")];

    fn key(self) -> &'static str {
        match self {
            Self::Url => "url",
            Self::Document => "document",
            Self::Mcp => "mcp",
        }
    }

    fn read(key: &str) -> Self {
        Self::ALL.into_iter().map(|(kind, _)| kind).find(|kind| kind.key() == key).unwrap_or(Self::Url)
    }

    fn importer(self) -> Path {
        Path::new(IMPORTS).at(if self == Self::Mcp { "mcp" } else { "openapi" })
    }
}

/// The fields of the form, as they were typed.
const FIELDS: [&str; 8] = ["url", "document", "headers", "key", "name", "server_url", "auth", "auth_name"];

#[derive(Clone, Debug, Default)]
struct Typed(Form);

impl Typed {
    fn get(&self, name: &str) -> &str {
        self.0.raw(name)
    }

    /// What goes along, hidden, from one step to the next.
    fn all(&self) -> Vec<(&'static str, &str)> {
        FIELDS.into_iter().map(|name| (name, self.get(name))).filter(|(_, value)| !value.is_empty()).collect()
    }
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct NewQuery {
    kind: Option<String>,
    key: Option<String>,
}

#[derive(Template)]
#[template(path = "import_new.html")]
struct NewPage {
    frame: Frame,
    all: String,
    here: String,
    /// Words, address, and whether it is the one that is shown.
    kinds: Vec<(&'static str, String, bool)>,
    kind: Kind,
    typed: Typed,
    auths: Vec<(&'static str, &'static str, bool)>,
}

impl NewPage {
    fn is_document(&self) -> bool {
        self.kind == Kind::Document
    }

    fn is_mcp(&self) -> bool {
        self.kind == Kind::Mcp
    }
}

/// How to connect, where the document does not say it or says it wrongly.
const AUTHS: [(&str, &str); 7] = [
    ("", "As the document says"),
    ("bearer", "A token (bearer)"),
    ("basic", "User name and password"),
    ("header", "A key in a header"),
    ("query", "A key in the query"),
    ("cookie", "A key in a cookie"),
    ("none", "Nothing"),
];

pub(super) async fn begin(visit: Visit, Query(query): Query<NewQuery>) -> PageResult {
    let key = query.key.map(|key| ("key".to_owned(), key));
    let typed = Typed(Form(key.into_iter().collect()));
    show_form(&visit, Kind::read(query.kind.as_deref().unwrap_or_default()), typed, None)
}

fn show_form(visit: &Visit, kind: Kind, typed: Typed, refusal: Option<&Refusal>) -> PageResult {
    let here = visit.page("imports").at("new");
    let kinds = Kind::ALL.map(|(one, words)| {
        let href = here.clone().with("kind", one.key()).with_some("key", Some(typed.get("key")));
        (words, href.into(), one == kind)
    });
    let page = NewPage {
        frame: Frame::new(visit, Section::Catalog, "New import").refused(refusal),
        all: visit.page("imports").into(),
        here: here.into(),
        kinds: kinds.into(),
        kind,
        auths: AUTHS.map(|(value, words)| (value, words, value == typed.get("auth"))).into(),
        typed,
    };
    show_refused(refusal, &page)
}

#[derive(Template)]
#[template(path = "import_plan.html")]
struct PlanPage {
    frame: Frame,
    all: String,
    here: String,
    kind: Kind,
    typed: Typed,
    made: Made,
    can_force: bool,
}

pub(super) async fn import(visit: Visit, form: Form) -> PageResult {
    let kind = Kind::read(form.text("kind"));
    let step = form.text("step").to_owned();
    let force = form.has("force");
    let typed = Typed(form);
    if step == "edit" {
        return show_form(&visit, kind, typed, None);
    }
    let body = match order(kind, &typed) {
        Ok(order) => json!({"import": order}),
        Err(words) => return show_form(&visit, kind, typed, Some(&Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, words))),
    };
    if step != "import" {
        return plan(&visit, kind, typed, body, None).await;
    }
    let mode = if force { Mode::ByForce } else { Mode::Gently };
    match make(&visit, kind.importer(), mode, Some(body.clone())).await {
        Ok(made) => see_other(made.import.page(&visit).unwrap_or_else(|| visit.page("imports")).with("told", "imported")),
        Err(refused) => plan(&visit, kind, typed, body, Some(refused)).await,
    }
}

/// What would be made; where even that is refused, the form again.
async fn plan(visit: &Visit, kind: Kind, typed: Typed, body: Value, refused: Option<Refused>) -> PageResult {
    match make(visit, kind.importer(), Mode::DryRun, Some(body)).await {
        Ok(made) => {
            let refusal = refused.as_ref().map(|refused| &refused.refusal);
            let page = PlanPage {
                frame: Frame::new(visit, Section::Catalog, format!("Import {}", made.import.name)).refused(refusal),
                all: visit.page("imports").into(),
                here: visit.page("imports").at("new").into(),
                kind,
                typed,
                made,
                can_force: refused.as_ref().is_some_and(|refused| refused.can_force),
            };
            if refusal.is_some() { show_refused(refusal, &page) } else { show(&page) }
        }
        Err(again) => show_form(visit, kind, typed, Some(&refused.unwrap_or(again).refusal)),
    }
}

/// What the API is asked for.
fn order(kind: Kind, typed: &Typed) -> Result<Map<String, Value>, String> {
    let mut order = Map::new();
    let mut names = vec!["key", "name"];
    match kind {
        Kind::Url => names.extend(["url", "server_url"]),
        Kind::Document => names.extend(["document", "server_url"]),
        Kind::Mcp => names.push("url"),
    }
    for name in names {
        if let Some(text) = typed.0.some(name) {
            order.insert(name.to_owned(), text.into());
        }
    }
    if kind == Kind::Mcp {
        let headers = headers(typed.get("headers"))?;
        order.extend((!headers.is_empty()).then(|| ("headers".to_owned(), headers.into())));
    } else {
        let schemes = security_schemes(typed.0.text("auth"), typed.0.text("auth_name"))?;
        order.extend(schemes.map(|schemes| ("security_schemes".to_owned(), schemes)));
    }
    Ok(order)
}

/// Headers as people write them, one in each line.
fn headers(text: &str) -> Result<Map<String, Value>, String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines
        .map(|line| {
            let (name, value) = line.split_once(':').ok_or("Write each header as `Name: value`, one in each line.")?;
            Ok((name.trim().to_owned(), value.trim().into()))
        })
        .collect()
}

/// One security scheme in OpenAPI's own words.
fn security_schemes(auth: &str, name: &str) -> Result<Option<Value>, String> {
    let scheme = match auth {
        "bearer" | "basic" => json!({"type": "http", "scheme": auth}),
        "header" | "query" | "cookie" if name.is_empty() => return Err(format!("Say the name of the {auth} that holds the key.")),
        "header" | "query" | "cookie" => json!({"type": "apiKey", "in": auth, "name": name}),
        "none" => return Ok(Some(json!({}))),
        _ => return Ok(None),
    };
    Ok(Some(json!({"auth": scheme})))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn typed(fields: &[(&str, &str)]) -> Typed {
        Typed(Form(fields.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()))
    }

    #[test]
    fn each_kind_asks_for_its_own_fields() {
        let fields =
            [("url", "https://a.example"), ("document", "{}"), ("headers", "X-Team: blue: 1\r\n\r\nB:c"), ("key", "a"), ("name", "")];
        let asked = [Kind::Url, Kind::Document, Kind::Mcp].map(|kind| Value::Object(order(kind, &typed(&fields)).unwrap()));
        assert_eq!(asked[0], json!({"key": "a", "url": "https://a.example"}));
        assert_eq!(asked[1], json!({"key": "a", "document": "{}"}));
        assert_eq!(asked[2], json!({"key": "a", "url": "https://a.example", "headers": {"X-Team": "blue: 1", "B": "c"}}));
    }

    #[test]
    fn what_cannot_be_a_header_is_said() {
        assert!(order(Kind::Mcp, &typed(&[("headers", "blue")])).is_err());
    }

    #[test]
    fn security_schemes_are_in_the_words_of_openapi() {
        assert_eq!(security_schemes("bearer", ""), Ok(Some(json!({"auth": {"type": "http", "scheme": "bearer"}}))));
        assert_eq!(security_schemes("header", "X-Key"), Ok(Some(json!({"auth": {"type": "apiKey", "in": "header", "name": "X-Key"}}))));
        assert_eq!(security_schemes("none", ""), Ok(Some(json!({}))));
        assert_eq!(security_schemes("", ""), Ok(None));
        assert!(security_schemes("query", "").is_err());
    }

    #[test]
    fn what_was_typed_goes_along() {
        assert_eq!(typed(&[("url", "a"), ("csrf", "x"), ("name", "")]).all(), [("url", "a")]);
    }
}
