//! The manifests against the API documents that the providers publish themselves: every method and path exists and is not deprecated,
//! every name we send is known there, and whatever is required there is always sent.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use catalog::auth::{AuthScheme, Fields, Send};
use native::manifest::Manifest;
use operations::{Built, Operation, Param, ParamLocation, RequestLine, RequestParts};
use serde_json::{Map, Value};

/// A manifest and the documents that describe its API. `npm:` stands for `tests/npm/node_modules`, `google:` for the discovery documents
/// of the Python package `google-api-python-client`.
const PAIRS: &[(&str, &[&str])] = &[
    ("figma", &["npm:@figma/rest-api-spec/openapi/openapi.yaml"]),
    ("github", &["npm:@octokit/openapi/generated/api.github.com.json"]),
    ("gmail", &["google:gmail.v1.json"]),
    ("google-calendar", &["google:calendar.v3.json"]),
    ("google-contacts", &["google:people.v1.json"]),
    ("google-docs", &["google:docs.v1.json", "google:drive.v3.json"]),
    ("google-drive", &["google:drive.v3.json"]),
    ("google-sheets", &["google:sheets.v4.json", "google:drive.v3.json"]),
    ("google-tasks", &["google:tasks.v1.json"]),
    ("netlify", &["npm:@netlify/open-api/dist/swagger.json"]),
    ("youtube", &["google:youtube.v3.json"]),
];

/// Findings that stay: manifest, finding, and why the document is not the last word.
const ALLOWED: &[(&str, &str, &str)] =
    &[("google-tasks", "account: GET /v1/userinfo is not in the document", "it is OpenID Connect's, which has no discovery document")];

#[test]
fn manifests_agree_with_public_documents() {
    let mut findings = BTreeSet::new();
    for (key, paths) in PAIRS {
        let manifest = read(&root().join(format!("integrations/{key}.yaml")));
        let manifest = Manifest::parse(&manifest).unwrap_or_else(|error| panic!("{key}: {error}"));
        let document = paths.iter().flat_map(|path| operations(path)).collect::<Vec<_>>();
        findings.extend(compare(&manifest, &document).into_iter().map(|finding| (*key, finding)));
    }
    for (key, finding, reason) in ALLOWED {
        assert!(findings.remove(&(*key, (*finding).to_owned())), "{key}: {finding}: no longer found, so need not be allowed ({reason})");
    }
    let findings: Vec<String> = findings.into_iter().map(|(key, finding)| format!("{key}: {finding}")).collect();
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}

#[test]
fn mistakes_are_found() {
    let action = |key: &str, rest: &str| format!("  - {{key: {key}, name: Any, description: Any, use_cases: [], {rest}}}\n");
    let yaml = "key: any\nname: Any\ndescription: Any\nbase_url: https://example.com/v1\nauth: [{scheme: none}]\nactions:\n".to_owned()
        + &action("RIGHT", "request: 'POST /things/{id}', params: {id: {required: true}, name: {required: true}, dry: {in: query}}")
        + &action("NO_PATH", "request: GET /thing")
        + &action("NO_METHOD", "request: 'PATCH /things/{id}', params: {id: {required: true}}")
        + &action("OLD", "request: GET /old")
        + &action("NAMES", "request: 'POST /things/{id}', params: {id: {required: true}, name: {}, title: {}, wet: {in: query}}");
    let document = serde_json::json!({"openapi": "3.0.0", "servers": [{"url": "https://example.com/v1"}], "paths": {
        "/old": {"get": {"deprecated": true}},
        "/things/{thing}": {"post": {
            "parameters": [{"in": "query", "name": "dry"}],
            "requestBody": {"content": {"application/json": {"schema": {"properties": {"name": {}}, "required": ["name"]}}}},
        }},
    }});
    let manifest = Manifest::parse(&yaml).unwrap_or_else(|error| panic!("{error}"));
    let expected = [
        "NO_PATH: GET /v1/thing is not in the document",
        "NO_METHOD: PATCH /v1/things/{} is not in the document",
        "OLD: GET /v1/old is deprecated",
        "NAMES: query `wet` is not in the document",
        "NAMES: body `title` is not in the document",
        "NAMES: body `name` is required in the document",
    ];
    assert_eq!(compare(&manifest, &openapi(&document)), expected);
}

/// One operation of a document.
struct Known {
    method: String,
    path: String,
    deprecated: bool,
    query: Names,
    header: Names,
    body: Names,
}

#[derive(Clone, Default)]
struct Names {
    known: BTreeSet<String>,
    required: BTreeSet<String>,
}

impl Names {
    fn add(&mut self, name: &str, required: bool) {
        self.known.insert(plain(name));
        if required {
            self.required.insert(plain(name));
        }
    }
}

/// `a[b]` and `a[]` are the parameter `a`.
fn plain(name: &str) -> String {
    name.split('[').next().unwrap_or(name).to_owned()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}; `./test` installs the public documents", path.display()))
}

fn operations(path: &str) -> Vec<Known> {
    let file = match path.split_once(':') {
        Some(("npm", path)) => root().join("tests/npm/node_modules").join(path),
        Some(("google", name)) => {
            let lib = root().join("target/test-venv/lib");
            let mut versions = fs::read_dir(&lib).into_iter().flatten().flatten().map(|entry| entry.path());
            let python = versions.find(|path| path.join("site-packages").is_dir()).unwrap_or_else(|| lib.join("python3"));
            python.join("site-packages/googleapiclient/discovery_cache/documents").join(name)
        }
        _ => panic!("{path}: neither `npm:` nor `google:`"),
    };
    let text = read(&file);
    let document: Value = if file.extension().is_some_and(|extension| extension == "yaml") {
        serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}"))
    } else {
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{path}: {error}"))
    };
    if document.get("discoveryVersion").is_some() { discovery(&document) } else { openapi(&document) }
}

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

fn flag(value: &Value, key: &str) -> bool {
    value.get(key).and_then(Value::as_bool).unwrap_or_default()
}

fn list<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    value.get(key).and_then(Value::as_array).into_iter().flatten()
}

fn entries<'a>(value: &'a Value, key: &str) -> impl Iterator<Item = (&'a String, &'a Value)> + use<'a> {
    value.get(key).and_then(Value::as_object).into_iter().flatten()
}

/// The path of an address or of a path, with every `{name}` as `{}` and without query and closing slash.
fn shape(address: &str) -> String {
    let path = address.split_once("://").map_or(address, |(_, rest)| rest.find('/').map_or("", |start| &rest[start..]));
    let mut shape = String::new();
    for (index, part) in path.split(['{', '}']).enumerate() {
        shape.push_str(if index % 2 == 0 { part } else { "{}" });
    }
    shape.split('?').next().unwrap_or_default().trim_end_matches('/').to_owned()
}

/// Reads OpenAPI 3 and its forerunner Swagger 2.
fn openapi(document: &Value) -> Vec<Known> {
    let base = document.pointer("/servers/0/url").and_then(Value::as_str).unwrap_or_else(|| text(document, "basePath"));
    let mut operations = Vec::new();
    for (path, item) in entries(document, "paths") {
        let methods = ["get", "head", "post", "put", "patch", "delete"].into_iter();
        for (method, operation) in methods.filter_map(|method| Some((method, item.get(method)?))) {
            let mut known = Known {
                method: method.to_uppercase(),
                path: shape(base) + &shape(path),
                deprecated: flag(operation, "deprecated"),
                query: Names::default(),
                header: Names::default(),
                body: alternatives(
                    document,
                    entries(resolve(document, &operation["requestBody"]), "content").map(|(_, content)| &content["schema"]),
                ),
            };
            for parameter in list(item, "parameters").chain(list(operation, "parameters")).map(|parameter| resolve(document, parameter)) {
                let (name, required) = (text(parameter, "name"), flag(parameter, "required"));
                match text(parameter, "in") {
                    "query" => known.query.add(name, required),
                    "header" => known.header.add(&name.to_lowercase(), required),
                    "formData" => known.body.add(name, required),
                    "body" => known.body = fields(document, &parameter["schema"]),
                    _ => {}
                }
            }
            operations.push(known);
        }
    }
    operations
}

fn resolve<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    match text(value, "$ref").strip_prefix('#') {
        Some(pointer) => document.pointer(pointer).map_or(value, |target| resolve(document, target)),
        None => value,
    }
}

/// The fields of an object; of its items, for a list.
fn fields(document: &Value, schema: &Value) -> Names {
    let schema = resolve(document, schema);
    if let Some(items) = schema.get("items") {
        return fields(document, items);
    }
    let mut names = ["oneOf", "anyOf"]
        .map(|key| alternatives(document, list(schema, key)))
        .into_iter()
        .chain(list(schema, "allOf").map(|part| fields(document, part)))
        .fold(Names::default(), |mut all, names| {
            all.known.extend(names.known);
            all.required.extend(names.required);
            all
        });
    for (name, _) in entries(schema, "properties") {
        names.add(name, false);
    }
    for name in list(schema, "required").filter_map(Value::as_str) {
        names.add(name, !flag(resolve(document, &schema["properties"][name]), "readOnly"));
    }
    names
}

/// What any of the schemas knows and all of them require.
fn alternatives<'a>(document: &Value, schemas: impl Iterator<Item = &'a Value>) -> Names {
    let all = schemas.map(|schema| fields(document, schema));
    all.reduce(|a, b| Names { known: &a.known | &b.known, required: &a.required & &b.required }).unwrap_or_default()
}

/// Reads a Google discovery document.
fn discovery(document: &Value) -> Vec<Known> {
    let mut operations = Vec::new();
    let mut resources = vec![document];
    while let Some(resource) = resources.pop() {
        resources.extend(entries(resource, "resources").map(|(_, inner)| inner));
        for (_, method) in entries(resource, "methods") {
            let mut query = Names::default();
            for (name, parameter) in entries(document, "parameters").chain(entries(method, "parameters")) {
                if text(parameter, "location") == "query" {
                    query.add(name, flag(parameter, "required"));
                }
            }
            let mut body = Names::default();
            for (name, _) in entries(&document["schemas"][text(&method["request"], "$ref")], "properties") {
                body.add(name, false);
            }
            let base = format!("/{}", text(document, "servicePath"));
            let own = ["flatPath", "path"]
                .map(|key| text(method, key))
                .into_iter()
                .filter(|path| !path.is_empty())
                .map(|path| format!("{base}{path}"));
            let uploads = entries(&method["mediaUpload"], "protocols").map(|(_, protocol)| text(protocol, "path").to_owned());
            operations.extend(own.chain(uploads).map(|path| Known {
                method: text(method, "httpMethod").to_owned(),
                path: shape(&path),
                deprecated: flag(method, "deprecated"),
                query: query.clone(),
                header: Names::default(),
                body: body.clone(),
            }));
        }
    }
    operations
}

/// How many segments of a known path are the same in ours, if ours is one of its kind: `/users/me` is one of `/users/{}`.
fn likeness(known: &str, ours: &str) -> Option<usize> {
    if known.split('/').count() != ours.split('/').count() {
        return None;
    }
    known.split('/').zip(ours.split('/')).try_fold(0, |count, (known, ours)| match known.split_once("{}") {
        _ if known == ours => Some(count + 1),
        Some((start, end)) => (ours.len() > start.len() + end.len() && ours.starts_with(start) && ours.ends_with(end)).then_some(count),
        None => None,
    })
}

fn compare(manifest: &Manifest, document: &[Known]) -> Vec<String> {
    let mut findings = Vec::new();
    let mut find = |place: &str, request: &str| {
        let line = RequestLine::parse(request).unwrap_or_else(|| panic!("{place}: `{request}` is no request"));
        let path = if line.target.starts_with('/') { shape(&manifest.base_url) + &shape(&line.target) } else { shape(&line.target) };
        let same = document.iter().filter(|known| known.method == line.method.as_str());
        let alike: Vec<_> = same.filter_map(|known| Some((likeness(&known.path, &path)?, known))).collect();
        let most = alike.iter().map(|(likeness, _)| *likeness).max();
        let found: Vec<&Known> = alike.into_iter().filter(|(likeness, _)| Some(*likeness) == most).map(|(_, known)| known).collect();
        if found.is_empty() {
            findings.push(format!("{place}: {} {path} is not in the document", line.method));
        } else if found.iter().all(|known| known.deprecated) {
            findings.push(format!("{place}: {} {path} is deprecated", line.method));
        }
        found
    };
    let none = Map::new();
    let mut requests = Vec::new();
    for action in &manifest.actions {
        let parts = RequestParts {
            query: action.query.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
            headers: action.headers.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect(),
            encoding: action.encoding,
            body: action.body.as_ref(),
            ..parts(&action.request, &action.params)
        };
        requests.push((action.key.as_str(), find(&action.key, &action.request), parts));
    }
    for event in &manifest.events {
        let Some(poll) = &event.poll else { continue };
        let query = poll.query.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
        requests.push((
            &event.key,
            find(&event.key, &poll.request),
            RequestParts { query, body: poll.body.as_ref(), ..parts(&poll.request, &event.config) },
        ));
    }
    if let Some(account) = &manifest.account {
        requests.push((
            "account",
            find("account", &account.request),
            RequestParts { body: account.body.as_ref(), ..parts(&account.request, &none) },
        ));
    }
    for registration in manifest.webhooks.iter().flat_map(|webhooks| [&webhooks.register, &webhooks.unregister]).flatten() {
        find("webhooks", &registration.request);
    }
    for (place, known, parts) in requests {
        // `/{resourceName}` stands for several operations of the People API; the one that fits best is meant.
        let fewest = known.into_iter().map(|known| names(manifest, known, &parts)).min_by_key(Vec::len);
        findings.extend(fewest.into_iter().flatten().map(|finding| format!("{place}: {finding}")));
    }
    findings
}

fn parts<'a>(request: &'a str, params: &'a Map<String, Value>) -> RequestParts<'a> {
    RequestParts { request, params: Some(params), ..RequestParts::default() }
}

/// Compares the names of a request made with all parameters, and of one made with the required ones only.
fn names(manifest: &Manifest, known: &Known, parts: &RequestParts<'_>) -> Vec<String> {
    let operation = Operation::compile(parts).unwrap_or_else(|error| panic!("{}: {error}", parts.request));
    let build = |wanted: fn(&Param) -> bool| {
        let arguments = operation.params().iter().filter(|param| wanted(param)).map(|param| (param.name.clone(), param.sample())).collect();
        let fields: Fields = manifest.auth.iter().flat_map(AuthScheme::field_names).map(|name| (name, "sample".to_owned())).collect();
        let built = operation.build(&manifest.base_url, &Send::default(), &arguments, &fields);
        sent(&built.unwrap_or_else(|error| panic!("{}: {error}", parts.request)))
    };
    let (all, least) = (build(|_| true), build(|param| param.required || param.place == ParamLocation::Path));
    let mut findings = Vec::new();
    for (kind, known) in [("query", &known.query), ("header", &known.header), ("body", &known.body)] {
        findings.extend(all[kind].difference(&known.known).map(|name| format!("{kind} `{name}` is not in the document")));
        let given = |name: &String| {
            least[kind].contains(name) || manifest.headers.keys().any(|header| kind == "header" && header.eq_ignore_ascii_case(name))
        };
        findings
            .extend(known.required.iter().filter(|name| !given(name)).map(|name| format!("{kind} `{name}` is required in the document")));
    }
    findings
}

/// The names that a request sends; the content type goes without saying.
fn sent(built: &Built) -> BTreeMap<&'static str, BTreeSet<String>> {
    let query = built.url.query_pairs().map(|(name, _)| plain(&name)).collect();
    let header = built.headers.keys().map(ToString::to_string).filter(|name| name != "content-type").collect();
    let body = match serde_json::from_slice(&built.body) {
        Ok(Value::Array(items)) => items.first().and_then(Value::as_object).into_iter().flatten().map(|(name, _)| name.clone()).collect(),
        Ok(Value::Object(fields)) => fields.into_iter().map(|(name, _)| name).collect(),
        _ => url::form_urlencoded::parse(&built.body).map(|(name, _)| plain(&name)).collect(),
    };
    BTreeMap::from([("query", query), ("header", header), ("body", body)])
}
