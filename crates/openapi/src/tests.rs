//! Documents in, requests and schemas out.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use catalog::auth::{Fields, Send};
use imports::Plan;
use kernel::schema::Schema;
use operations::{ActionSpec, Built, input_schema};
use serde::Deserialize;
use serde_json::{Value, json};
use url::Url;

use crate::convert::{Conversion, Settings};
use crate::document::Bundle;

fn public(url: &Url) -> Result<(), String> {
    let host = url.host_str().unwrap_or_default();
    if host.starts_with("10.") || host == "localhost" { Err(format!("`{host}` is blocked")) } else { Ok(()) }
}

fn convert_with(document: Value, settings: Settings) -> Result<Plan, String> {
    let bundle = Bundle::new("https://docs.example.com/openapi.json".parse().ok(), document);
    let deadline = Instant::now() + Duration::from_secs(30);
    Conversion { bundle: &bundle, settings: &settings, discovered: &BTreeMap::new(), allowed: &public, deadline }.run()
}

fn convert(document: Value) -> Plan {
    convert_with(document, Settings::default()).unwrap()
}

/// A document of one operation, with parts that it refers to.
fn one(method: &str, path: &str, operation: Value, components: Value) -> Value {
    json!({
        "openapi": "3.0.3",
        "info": {"title": "Pets", "version": "1"},
        "servers": [{"url": "https://api.example.com/v1"}],
        "paths": {path: {method: operation}},
        "components": components
    })
}

fn action(plan: &Plan, key: &str) -> Value {
    let actions = plan.definition["actions"].as_array().unwrap();
    actions.iter().find(|action| action["key"] == key).unwrap_or_else(|| panic!("{key}: {:?}", plan.skipped)).clone()
}

/// The only action of a document.
fn only(document: Value) -> Value {
    let plan = convert(document);
    assert_eq!(plan.skipped, []);
    plan.definition["actions"][0].clone()
}

fn why_skipped(document: Value) -> String {
    convert_with(document, Settings::default()).unwrap_err()
}

fn input(action: &Value) -> Value {
    let spec = ActionSpec::deserialize(action).unwrap();
    input_schema(spec.operation(&BTreeMap::new()).unwrap().params())
}

/// The request that a call makes, its arguments checked first.
fn build(action: &Value, arguments: Value) -> Built {
    let spec = ActionSpec::deserialize(action).unwrap();
    let operation = spec.operation(&BTreeMap::new()).unwrap();
    let schema = Schema::compile(&input_schema(operation.params())).unwrap();
    assert_eq!(schema.check(&arguments), Ok(()), "{arguments}");
    operation.build("https://api.example.com/v1", Send::nothing(), arguments.as_object().unwrap(), &Fields::default()).unwrap()
}

fn url(action: &Value, arguments: Value) -> String {
    build(action, arguments).url.to_string()
}

fn body(action: &Value, arguments: Value) -> String {
    String::from_utf8(build(action, arguments).body.to_vec()).unwrap()
}

fn query(style: Value) -> Value {
    let mut parameter = json!({"in": "query", "name": "f"});
    parameter.as_object_mut().unwrap().extend(style.as_object().unwrap().clone());
    only(one("get", "/x", json!({"operationId": "getX", "parameters": [parameter]}), json!({})))
}

#[test]
fn an_operation_becomes_an_action() {
    let operation = json!({
        "operationId": "pets/create", "summary": "Create a pet", "description": "Makes a new pet.", "deprecated": true,
        "parameters": [{"in": "path", "name": "owner-id", "required": true, "schema": {"type": "string"}, "description": "Whose pet"}],
        "requestBody": {"required": true, "content": {"application/json": {"schema": {"type": "object", "required": ["name", "id"], "properties": {
            "id": {"type": "integer", "readOnly": true}, "name": {"type": "string", "example": "Rex"}, "tag": {"type": "string", "nullable": true, "default": "dog"}
        }}}}},
        "responses": {"201": {"content": {"application/json": {"schema": {"type": "object", "properties": {"id": {"type": "integer"}, "pin": {"writeOnly": true}}}}}}}
    });
    let action = only(one("post", "/owners/{owner-id}/pets", operation, json!({})));
    assert_eq!(action["key"], "pets_create");
    assert_eq!(action["name"], "Create a pet");
    assert_eq!(action["description"], "Create a pet. Makes a new pet.");
    assert_eq!(action["output_schema"], json!({"type": "object", "properties": {"id": {"type": "integer"}}}));
    assert_eq!(action["pitfalls"].as_array().unwrap().len(), 1);
    assert_eq!(
        input(&action),
        json!({
            "type": "object",
            "properties": {
                "owner_id": {"type": "string", "description": "Whose pet"},
                "name": {"type": "string", "examples": ["Rex"]},
                "tag": {"type": ["string", "null"], "default": "dog"}
            },
            "required": ["owner_id", "name"],
            "additionalProperties": false
        })
    );
    let built = build(&action, json!({"owner_id": "a/b", "name": "Rex"}));
    assert_eq!(built.url.as_str(), "https://api.example.com/v1/owners/a%2Fb/pets");
    assert_eq!(&built.body[..], br#"{"name":"Rex"}"#, "a default is the service's own and is not sent");
    assert_eq!(built.headers["accept"], "application/json");
    assert_eq!(body(&action, json!({"owner_id": "a", "name": "x", "tag": null})), r#"{"name":"x","tag":null}"#);
}

#[test]
fn every_style_of_parameter_is_written_as_the_document_says() {
    let list = json!({"type": "array", "items": {"type": "string"}});
    let map = json!({"type": "object", "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}});
    for (style, value, expected) in [
        (json!({"schema": list}), json!(["x", "y"]), "f=x&f=y"),
        (json!({"schema": list, "explode": false}), json!(["x", "y"]), "f=x%2Cy"),
        (json!({"schema": list, "style": "spaceDelimited"}), json!(["x", "y"]), "f=x+y"),
        (json!({"schema": list, "style": "pipeDelimited"}), json!(["x", "y"]), "f=x%7Cy"),
        (json!({"schema": map}), json!({"a": 1, "b": "z"}), "a=1&b=z"),
        (json!({"schema": map, "explode": false}), json!({"a": 1, "b": "z"}), "f=a%2C1%2Cb%2Cz"),
        (json!({"schema": map, "style": "deepObject"}), json!({"a": 1, "b": "z"}), "f%5Ba%5D=1&f%5Bb%5D=z"),
        (json!({"content": {"application/json": {"schema": map}}}), json!({"a": 1}), "f=%7B%22a%22%3A1%7D"),
        (json!({"schema": {"type": "boolean"}}), json!(true), "f=true"),
    ] {
        let action = query(style.clone());
        assert_eq!(url(&action, json!({"f": value})), format!("https://api.example.com/v1/x?{expected}"), "{style}");
        assert_eq!(url(&action, json!({})), "https://api.example.com/v1/x");
    }
}

#[test]
fn headers_cookies_and_paths_take_lists() {
    let list = json!({"type": "array", "items": {"type": "integer"}});
    let parameters = json!([
        {"in": "path", "name": "ids", "required": true, "schema": list},
        {"in": "path", "name": "rest", "required": true, "schema": {"type": "string"}, "x-multi-segment": true},
        {"in": "header", "name": "X-Ids", "schema": list},
        {"in": "header", "name": "Authorization", "schema": {"type": "string"}},
        {"in": "cookie", "name": "sid", "schema": {"type": "string"}},
        {"in": "cookie", "name": "theme", "schema": {"type": "string"}}
    ]);
    let action = only(one("get", "/x/{ids}/{rest}", json!({"parameters": parameters}), json!({})));
    let built = build(&action, json!({"ids": [1, 2], "rest": "a b/c", "X_Ids": [3, 4], "sid": "s", "theme": "dark"}));
    assert_eq!(built.url.as_str(), "https://api.example.com/v1/x/1,2/a%20b/c");
    assert_eq!(built.headers["x-ids"], "3,4");
    assert_eq!(built.headers["cookie"], "sid=s; theme=dark");
    assert!(input(&action)["properties"].get("Authorization").is_none());
}

#[test]
fn names_that_collide_are_told_apart() {
    let operation = json!({
        "parameters": [{"in": "query", "name": "id", "schema": {"type": "string"}}],
        "requestBody": {"required": true, "content": {"application/json": {"schema": {"properties": {"id": {"type": "string"}, "@type": {"type": "string"}}}}}}
    });
    let action = only(one("put", "/x/{id}", operation, json!({})));
    let built = build(&action, json!({"id": "p", "query_id": "q", "body_id": "b", "type": "t"}));
    assert_eq!(built.url.as_str(), "https://api.example.com/v1/x/p?id=q");
    assert_eq!(&built.body[..], br#"{"id":"b","@type":"t"}"#);
}

#[test]
fn parameters_of_the_path_count_unless_the_operation_has_its_own() {
    let mut document =
        one("get", "/x/{id}", json!({"parameters": [{"in": "query", "name": "q", "schema": {"type": "integer"}}]}), json!({}));
    document["paths"]["/x/{id}"]["parameters"] = json!([
        {"in": "path", "name": "id", "required": true, "schema": {"type": "integer"}},
        {"in": "query", "name": "q", "schema": {"type": "string"}}
    ]);
    let properties = input(&only(document))["properties"].clone();
    assert_eq!((&properties["id"]["type"], &properties["q"]["type"]), (&json!("integer"), &json!("integer")));
}

#[test]
fn bodies_are_written_in_their_own_way() {
    let with = |content: Value| one("post", "/x", json!({"requestBody": {"required": true, "content": content}}), json!({}));
    let list = only(with(json!({"application/json": {"schema": {"type": "array", "items": {"type": "integer"}}}})));
    assert_eq!(body(&list, json!({"body": [1, 2]})), "[1,2]");
    let map = only(with(json!({"application/json": {"schema": {"type": "object", "additionalProperties": {"type": "string"}}}})));
    assert_eq!(body(&map, json!({"body": {"a": "b"}})), r#"{"a":"b"}"#);
    let union =
        only(with(json!({"application/json": {"schema": {"oneOf": [{"type": "object", "properties": {"a": {}}}, {"type": "string"}]}}})));
    assert_eq!(body(&union, json!({"body": "s"})), r#""s""#);
    let form = only(with(json!({"application/x-www-form-urlencoded": {
        "schema": {"type": "object", "properties": {"a": {"type": "array", "items": {}}, "b": {"type": "object"}, "c": {"type": "array", "items": {}}}},
        "encoding": {"c": {"explode": false}}
    }})));
    assert_eq!(body(&form, json!({"a": [1, 2], "b": {"x": "y"}, "c": [3, 4]})), "a=1&a=2&b%5Bx%5D=y&c=3%2C4");
    let patch =
        only(with(json!({"application/merge-patch+json": {"schema": {"type": "object", "properties": {"a": {"type": "integer"}}}}})));
    assert_eq!(build(&patch, json!({"a": 1})).headers["content-type"], "application/merge-patch+json");
    let text = only(with(json!({"text/markdown": {"schema": {"type": "string"}}})));
    let built = build(&text, json!({"body": "# Hi"}));
    assert_eq!((&built.body[..], built.headers["content-type"].to_str().unwrap()), (&b"# Hi"[..], "text/markdown"));
    for upload in ["multipart/form-data", "application/octet-stream", "application/xml"] {
        assert!(why_skipped(with(json!({upload: {"schema": {"type": "object"}}}))).contains("cannot be written"), "{upload}");
    }
}

#[test]
fn an_optional_body_is_left_out() {
    let content = json!({"application/json": {"schema": {"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}}}}});
    let optional = only(one("post", "/x", json!({"requestBody": {"content": content}}), json!({})));
    assert_eq!(body(&optional, json!({})), "");
    assert_eq!(body(&optional, json!({"a": 1})), r#"{"a":1}"#);
}

#[test]
fn schemas_of_both_versions_are_one_json_schema() {
    let schema = |schema: Value| input(&query(json!({"schema": schema})))["properties"]["f"].clone();
    for (given, made) in [
        (json!({"type": "string", "nullable": true, "enum": ["a"]}), json!({"type": ["string", "null"], "enum": ["a", null]})),
        (json!({"type": ["string", "null"]}), json!({"type": ["string", "null"]})),
        (json!({"type": "integer", "minimum": 1, "exclusiveMinimum": true}), json!({"type": "integer", "exclusiveMinimum": 1})),
        (json!({"type": "integer", "exclusiveMinimum": 1}), json!({"type": "integer", "exclusiveMinimum": 1})),
        (json!({"type": "array"}), json!({"type": "array", "items": {}})),
        (
            json!({"type": "array", "items": [{"type": "string"}]}),
            json!({"type": "array", "items": {}, "prefixItems": [{"type": "string"}]}),
        ),
        (json!({"oneOf": [{"type": "string"}, {"type": "integer"}]}), json!({"anyOf": [{"type": "string"}, {"type": "integer"}]})),
        (json!({"allOf": [{"type": "string"}, {"maxLength": 3}]}), json!({"type": "string", "maxLength": 3})),
        (json!({"nullable": true, "allOf": [{"type": "string"}]}), json!({"type": ["string", "null"]})),
        (json!({"type": "text", "minLength": -1, "pattern": "(", "multipleOf": 0, "enum": [], "x-y": 1, "xml": {}}), json!({})),
        (json!({"type": "string", "format": "date", "maxLength": 3.0}), json!({"type": "string", "format": "date", "maxLength": 3})),
    ] {
        assert_eq!(schema(given.clone()), made, "{given}");
    }
}

#[test]
fn parts_of_an_object_are_put_together() {
    let components = json!({"schemas": {
        "Base": {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}}, "additionalProperties": false},
        "Pet": {"allOf": [{"$ref": "#/components/schemas/Base"}, {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}],
            "discriminator": {"propertyName": "kind"}}
    }});
    let content = json!({"application/json": {"schema": {"$ref": "#/components/schemas/Pet"}}});
    let action = only(one("post", "/x", json!({"requestBody": {"required": true, "content": content}}), components));
    assert_eq!(input(&action)["required"], json!(["id", "name"]));
    assert_eq!(body(&action, json!({"id": 1, "name": "Rex"})), r#"{"id":1,"name":"Rex"}"#);
}

#[test]
fn circles_and_giants_end_in_open_schemas() {
    let components = json!({"schemas": {
        "Node": {"type": "object", "properties": {"label": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#/components/schemas/Node"}}}},
        "Loop": {"$ref": "#/components/schemas/Loop"}
    }});
    let content = json!({"application/json": {"schema": {"$ref": "#/components/schemas/Node"}}});
    let action = only(one("post", "/x", json!({"requestBody": {"required": true, "content": content}}), components.clone()));
    let deep = json!({"label": "a", "children": [{"label": "b", "children": [{"label": "c", "children": [{"any": 1}]}]}]});
    assert_eq!(serde_json::from_str::<Value>(&body(&action, deep.clone())).unwrap(), deep);
    let looped = json!({"application/json": {"schema": {"$ref": "#/components/schemas/Loop"}}});
    only(one("post", "/x", json!({"requestBody": {"content": looped}}), components));
    let mut chain: serde_json::Map<String, Value> = (0..5000)
        .map(|index| (format!("A{index}"), json!({"allOf": [{"$ref": format!("#/components/schemas/A{}", index + 1)}]})))
        .collect();
    chain.insert("A5000".to_owned(), json!({"type": "object", "properties": {"end": {}}}));
    let content = json!({"application/json": {"schema": {"$ref": "#/components/schemas/A0"}}});
    only(one("post", "/x", json!({"requestBody": {"required": true, "content": content}}), json!({"schemas": chain})));
    // Each level names the next twenty times: written out it would be larger than anything.
    let level = |next: usize| {
        let properties: serde_json::Map<String, Value> =
            (0..20).map(|index| (format!("p{index}"), json!({"$ref": format!("#/components/schemas/L{next}")}))).collect();
        json!({"type": "object", "properties": properties})
    };
    let mut schemas: serde_json::Map<String, Value> = (0..30).map(|index| (format!("L{index}"), level(index + 1))).collect();
    schemas.insert("L30".to_owned(), json!({"type": "string"}));
    let content = json!({"application/json": {"schema": {"$ref": "#/components/schemas/L0"}}});
    let action = only(one("post", "/x", json!({"requestBody": {"required": true, "content": content}}), json!({"schemas": schemas})));
    let size = action.to_string().len();
    assert!((500..60_000).contains(&size), "{size}");
    assert_eq!(body(&action, json!({"p0": {"p1": {"p2": 1}}})), r#"{"p0":{"p1":{"p2":1}}}"#);
}

#[test]
fn operations_may_have_servers_of_their_own() {
    let mut document = one("get", "/x", json!({"servers": [{"url": "https://uploads.example.com/api/"}]}), json!({}));
    let plan = convert(document.clone());
    assert_eq!(url(&plan.definition["actions"][0], json!({})), "https://uploads.example.com/api/x");
    assert_eq!(plan.origins.iter().collect::<Vec<_>>(), ["https://api.example.com", "https://uploads.example.com"]);
    let own = Settings { server_url: Some("https://mine.example.com/v3".to_owned()), ..Settings::default() };
    let plan = convert_with(document.clone(), own).unwrap();
    assert_eq!(plan.origins.iter().collect::<Vec<_>>(), ["https://mine.example.com"], "an address of one's own holds for all");
    document["paths"]["/x"]["get"]["servers"] = json!([{"url": "https://10.0.0.1"}]);
    assert!(why_skipped(document).contains("blocked"));
}

#[test]
fn own_security_schemes_take_the_documents_place() {
    let document = one("get", "/x", json!({}), json!({"securitySchemes": {"k": {"type": "apiKey", "in": "query", "name": "k"}}}));
    let schemes = json!({"token": {"type": "http", "scheme": "bearer"}});
    let plan = convert_with(document, Settings { security_schemes: Some(schemes), ..Settings::default() }).unwrap();
    assert_eq!(plan.definition["auth"][0]["scheme"], "bearer");
}

#[test]
fn a_key_is_no_argument() {
    let parameters = json!([{"in": "header", "name": "x-key", "required": true, "schema": {}}, {"in": "query", "name": "q", "schema": {}}]);
    let schemes = json!({"securitySchemes": {"k": {"type": "apiKey", "in": "header", "name": "X-Key"}}});
    let action = only(one("get", "/x", json!({"parameters": parameters}), schemes));
    assert_eq!(input(&action)["properties"].as_object().unwrap().keys().collect::<Vec<_>>(), ["q"]);
}

#[test]
fn nothing_of_a_document_is_evaluated() {
    let evil = "{{ 7 * 7 }} {connection.token} {% raw %}";
    let operation = json!({
        "operationId": evil, "summary": evil, "description": evil,
        "parameters": [
            {"in": "path", "name": "connection.token", "required": true, "schema": {"type": "string"}},
            {"in": "query", "name": "{connection.token}", "schema": {"type": "string", "default": evil}},
            {"in": "header", "name": "X-{connection.token}", "schema": {"type": "string"}}
        ],
        "requestBody": {"required": true, "content": {"application/json": {"schema": {"type": "object", "properties": {evil: {"type": "string"}}}}}},
        "responses": {"200": {"content": {"application/json; x={connection.token}": {"schema": {}}}}}
    });
    let mut document = one("post", "/x/{connection.token}", operation, json!({}));
    document["info"]["title"] = evil.into();
    let action = only(document);
    let properties = input(&action)["properties"].as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert!(properties.iter().all(|name| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')), "{properties:?}");
    assert!(action["headers"].get("Accept").is_none());
    let arguments =
        json!({"connection_token": "{connection.token}", "query_connection_token": "q", "_7_7_connection_token_raw": "{{ 1 }}"});
    let arguments =
        properties.iter().map(|name| (name.clone(), arguments.get(name).cloned().unwrap_or_else(|| json!("{{ 1 }}")))).collect();
    let built = build(&action, Value::Object(arguments));
    assert!(
        built.url.path().ends_with("/%7Bconnection%2Etoken%7D") || built.url.path().ends_with("/%7Bconnection.token%7D"),
        "{}",
        built.url
    );
    assert!(String::from_utf8_lossy(&built.body).contains("{{ 1 }}"));
}

#[test]
fn hostile_documents_are_refused_with_a_reason() {
    let with = |change: &dyn Fn(&mut Value)| {
        let mut document = one("get", "/x", json!({}), json!({}));
        change(&mut document);
        document
    };
    for (document, words) in [
        (with(&|document| document["paths"] = json!([1])), "no `paths`"),
        (with(&|document| document["paths"] = json!({})), "nothing in the document can be called"),
        (with(&|document| document["paths"] = json!({"/x": {"get": 1}})), "it is not described"),
        (with(&|document| document["paths"] = json!({"x": {"get": {}}})), "does not begin with `/`"),
        (with(&|document| document["paths"] = json!({"/x/{a": {"get": {}}})), "braces"),
        (with(&|document| document["paths"] = json!({"/x/{a{b}}": {"get": {}}})), "braces"),
        (with(&|document| document["paths"] = json!({"/x": {"$ref": "file:///etc/passwd"}})), "is not an `https` address"),
        (with(&|document| document["paths"] = json!({"/x": {"get": {"parameters": [{"name": 1}]}}})), "no `name` or `in`"),
        (with(&|document| document["paths"] = json!({"/x": {"get": {"parameters": [{"$ref": "#/nope"}]}}})), "leads nowhere"),
        (with(&|document| document["paths"] = json!({"/x": {"trace": {}}})), "the method is not one"),
        (with(&|document| document["servers"] = json!([{"url": "http://localhost:5432"}])), "`localhost` is blocked"),
        (with(&|document| document["servers"] = json!([{"url": "javascript:alert(1)"}])), "cannot be called"),
    ] {
        let why = why_skipped(document.clone());
        assert!(why.contains(words), "{document}: {why}");
    }
}

#[test]
fn the_same_document_makes_the_same_definition() {
    let document =
        one("get", "/x/{b}/{a}", json!({"operationId": "readX"}), json!({"securitySchemes": {"b": {"type": "http", "scheme": "bearer"}}}));
    let (first, second) = (convert(document.clone()), convert(document));
    assert_eq!(first.definition, second.definition);
    assert_eq!(action(&first, "read_x")["request"], "GET /x/{b}/{a}");
}
