//! The answers against Composio's own OpenAPI document, of which `COMPOSIO_OPENAPI` names a copy.

use http::Method;
use serde_json::{Value, json};

use crate::support::World;

/// The schemas of the document, as JSON Schema.
struct Document(Value);

impl Document {
    fn read() -> Self {
        let path = std::env::var_os("COMPOSIO_OPENAPI").expect("COMPOSIO_OPENAPI names no file");
        let mut document = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        translate(&mut document);
        Self(document)
    }

    fn check(&self, method: &str, path: &str, status: u16, body: &Value) {
        let operation = &self.0["paths"][format!("/api/v3{path}")][method];
        assert!(operation.is_object(), "{method} {path} is not in the document");
        let mut schema = operation["responses"][status.to_string()]["content"]["application/json"]["schema"].clone();
        assert!(schema.is_object(), "{method} {path} has no answer {status} in the document");
        schema["components"] = self.0["components"].clone();
        let validator = jsonschema::options().should_validate_formats(false).build(&schema).unwrap();
        let errors: Vec<String> = validator.iter_errors(body).map(|error| format!("{} at {}", error, error.instance_path())).collect();
        assert!(errors.is_empty(), "{method} {path} {status}: {errors:#?}\n{body:#}");
    }
}

/// OpenAPI 3.0 says `nullable`, and whether `minimum` is exclusive, in words that JSON Schema does not have.
fn translate(schema: &mut Value) {
    match schema {
        Value::Array(items) => items.iter_mut().for_each(translate),
        Value::Object(fields) => {
            fields.values_mut().for_each(translate);
            if fields.get("nullable") == Some(&json!(true)) {
                fields.remove("nullable");
                if let Some(kind) = fields.get("type").filter(|kind| kind.is_string()).cloned() {
                    fields.insert("type".to_owned(), json!([kind, "null"]));
                }
                if let Some(Value::Array(values)) = fields.get_mut("enum") {
                    values.push(Value::Null);
                }
            }
            if let Some(exclusive) = fields.get("exclusiveMinimum").and_then(Value::as_bool) {
                fields.remove("exclusiveMinimum");
                if let Some(minimum) = fields.remove("minimum") {
                    fields.insert(if exclusive { "exclusiveMinimum" } else { "minimum" }.to_owned(), minimum);
                }
            }
        }
        _ => {}
    }
}

#[tokio::test]
#[ignore = "needs a copy of Composio's document, which COMPOSIO_OPENAPI names"]
async fn the_answers_are_those_of_the_document() {
    let document = Document::read();
    let world = World::new().await;
    let check = async |method: Method, path: &str, template: &str, body: Option<Value>| {
        let (status, answer) = world.send(method.clone(), path, body).await;
        document.check(&method.as_str().to_lowercase(), template, status, &answer);
        answer
    };
    let get = async |path: &str, template: &str| check(Method::GET, path, template, None).await;
    let post = async |path: &str, template: &str, body: Value| check(Method::POST, path, template, Some(body)).await;

    get("/toolkits?limit=3", "/toolkits").await;
    get("/toolkits?search=x", "/toolkits").await;
    get("/toolkits/categories", "/toolkits/categories").await;
    for slug in ["github", "acme_crm", "hackernews", "nope"] {
        get(&format!("/toolkits/{slug}"), "/toolkits/{slug}").await;
    }
    post("/toolkits/multi", "/toolkits/multi", json!({"toolkits": ["github"]})).await;
    get("/tools?limit=1000", "/tools").await;
    get("/tools/enum", "/tools/enum").await;
    get("/tools/GITHUB_CREATE_AN_ISSUE", "/tools/{tool_slug}").await;
    get("/tools/NOPE", "/tools/{tool_slug}").await;

    let config = post("/auth_configs", "/auth_configs", json!({"toolkit": {"slug": "github"}})).await;
    post("/auth_configs", "/auth_configs", json!({"toolkit": {"slug": "orbit_desk"}})).await;
    let config = config["auth_config"]["id"].as_str().unwrap();
    get("/auth_configs", "/auth_configs").await;
    get(&format!("/auth_configs/{config}"), "/auth_configs/{nanoid}").await;

    let order = json!({"auth_config_id": config, "user_id": "u"});
    let link = post("/connected_accounts/link", "/connected_accounts/link", order).await;
    let github = link["connected_account_id"].as_str().unwrap();
    let one = format!("/connected_accounts/{github}");
    get(&one, "/connected_accounts/{nanoid}").await;
    let execute = "/tools/execute/{tool_slug}";
    let run = json!({"connected_account_id": github, "arguments": {"owner": "o", "repo": "r", "title": "t"}});
    post("/tools/execute/GITHUB_CREATE_AN_ISSUE", execute, run.clone()).await;
    world.fake.finish(github);
    get(&one, "/connected_accounts/{nanoid}").await;
    post("/tools/execute/GITHUB_CREATE_AN_ISSUE", execute, run).await;
    post("/tools/execute/GITHUB_CREATE_AN_ISSUE", execute, json!({"user_id": "u", "arguments": {}})).await;
    post("/tools/execute/GITHUB_ISSUES_CREATE", execute, json!({"user_id": "u"})).await;
    post("/tools/execute/NOPE", execute, json!({"user_id": "u"})).await;

    get("/triggers_types?limit=50", "/triggers_types").await;
    get("/triggers_types/GITHUB_COMMIT_EVENT", "/triggers_types/{slug}").await;
    get("/triggers_types/list/enum", "/triggers_types/list/enum").await;
    let upsert = "/trigger_instances/GITHUB_COMMIT_EVENT/upsert";
    let order = json!({"connected_account_id": github, "trigger_config": {"owner": "o", "repo": "r"}});
    let trigger = post(upsert, "/trigger_instances/{slug}/upsert", order).await;
    post(upsert, "/trigger_instances/{slug}/upsert", json!({"connected_account_id": github})).await;
    let manage = format!("/trigger_instances/manage/{}", trigger["trigger_id"].as_str().unwrap());
    get("/trigger_instances/active", "/trigger_instances/active").await;
    check(Method::PATCH, &manage, "/trigger_instances/manage/{triggerId}", Some(json!({"status": "disable"}))).await;
    get("/trigger_instances/active?show_disabled=true", "/trigger_instances/active").await;
    check(Method::DELETE, &manage, "/trigger_instances/manage/{triggerId}", None).await;

    post(&format!("{one}/refresh"), "/connected_accounts/{nanoid}/refresh", json!({})).await;
    world.fake.fail(github);
    get(&one, "/connected_accounts/{nanoid}").await;
    post(&format!("{one}/refresh"), "/connected_accounts/{nanoid}/refresh", json!({})).await;
    world.fake.finish(github);
    check(Method::PATCH, &format!("{one}/status"), "/connected_accounts/{nanoId}/status", Some(json!({"enabled": false}))).await;
    get("/connected_accounts", "/connected_accounts").await;

    let order = json!({"toolkit": {"slug": "acme_crm"}, "auth_config": {"type": "use_custom_auth", "authScheme": "API_KEY"}});
    let crm = post("/auth_configs", "/auth_configs", order).await;
    let values = json!({"subdomain": "s", "generic_api_key": "k"});
    let order =
        json!({"auth_config": crm["auth_config"], "connection": {"user_id": "u", "state": {"authScheme": "API_KEY", "val": values}}});
    post("/connected_accounts", "/connected_accounts", order).await;
    get("/connected_accounts", "/connected_accounts").await;
    check(Method::DELETE, &one, "/connected_accounts/{nanoid}", None).await;
    check(Method::DELETE, &one, "/connected_accounts/{nanoid}", None).await;
    check(Method::PATCH, &format!("/auth_configs/{config}/DISABLED"), "/auth_configs/{nanoid}/{status}", None).await;
    check(Method::DELETE, &format!("/auth_configs/{config}"), "/auth_configs/{nanoid}", None).await;
    post("/tool_router/session", "/tool_router/session", json!({"user_id": "u"})).await;
}
