//! The public OpenAPI documents of real services, imported as a project would.

use std::time::{Duration, Instant};

use catalog::{Action, Integration};
use definitions::format::{Format, ToolView, definition, validate};
use egress::Egress;
use imports::{Import, Importer, Order, Origin, Plan, Source, Stored};
use kernel::schema::Schema;
use kernel::{ImportId, ProjectId, Timestamp};
use openapi::{KEY, OpenApi};
use serde_json::{Map, Value};

fn fixture(path: &str) -> String {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/npm/node_modules").join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}; `npm ci` in tests/npm brings it", path.display()))
}

async fn import(text: String) -> (Plan, Integration) {
    let openapi = OpenApi::new(Egress::new(egress::Config::default()).unwrap());
    let project = ProjectId::new();
    let order =
        Order { project, key: None, name: None, from: Origin::Text(text), settings: Map::new(), secret: None, account: None, again: None };
    let plan = openapi.plan(&order, &work::Workers::default()).await.unwrap_or_else(|error| panic!("{error}"));
    let import = Import {
        id: ImportId::new(),
        project,
        provider: KEY.to_owned(),
        key: "imported".to_owned(),
        name: plan.name.clone(),
        source: Source { url: None, settings: Map::new() },
        origins: plan.origins.clone(),
        actions_count: 0,
        version: 1,
        created_at: Timestamp::from_micros(0),
        updated_at: Timestamp::from_micros(0),
        created_by: None,
        updated_by: None,
    };
    let stored = Stored { import, definition: Value::Object(plan.definition.clone()).to_string(), secret: None };
    let integration = openapi.load(&stored).unwrap_or_else(|error| panic!("{error}"));
    (plan, integration)
}

/// Every API takes the action as a tool, and arguments can be checked.
fn check(action: &Action) {
    let (input, output) = (action.input_schema.value(), action.output_schema.as_ref().map(kernel::json::Document::value));
    for schema in [Some(&input), output.as_ref()].into_iter().flatten() {
        Schema::compile(schema).unwrap_or_else(|error| panic!("{}: {error}", action.key));
    }
    let name = format!("tools.openapi.imported.{}.main", action.key);
    for format in Format::ALL {
        let tool = ToolView {
            name: &name,
            description: &action.description,
            input_schema: &input,
            output_schema: output.as_ref(),
            read_only: Some(action.read_only),
            destructive: Some(action.destructive),
        };
        let problems = validate(format, &definition(format, &tool)).err().unwrap_or_default();
        assert!(problems.is_empty(), "{} for {format}: {problems:?}", action.key);
    }
}

#[tokio::test]
async fn github_is_imported_whole_and_soon() {
    let text = fixture("@octokit/openapi/generated/api.github.com.json");
    let started = Instant::now();
    let (plan, integration) = import(text).await;
    let took = started.elapsed();
    let skipped: Vec<(&str, &str)> = plan.skipped.iter().map(|skipped| (skipped.what.as_str(), skipped.why.as_str())).collect();
    assert_eq!(
        skipped,
        [("POST /repos/{owner}/{repo}/releases/{release_id}/assets", "a body of type `application/octet-stream` cannot be written")]
    );
    assert!(integration.actions.len() > 1100, "{}", integration.actions.len());
    for key in ["issues_create", "repos_get", "pulls_merge", "actions_list_workflow_runs", "repos_create_or_update_file_contents"] {
        assert!(integration.action(key).is_some(), "{key}");
    }
    let size = Value::Object(plan.definition).to_string().len();
    println!("{} actions in {took:?}, {size} bytes", integration.actions.len());
    // Five seconds are for a build as users have it, on cores that are not shared with other tests.
    let limit = Duration::from_secs(if cfg!(debug_assertions) { 30 } else { 5 });
    assert!(took < limit, "{took:?}");
    integration.actions.iter().for_each(|action| check(action));
    let create = integration.action("issues_create").unwrap();
    assert_eq!((create.name.as_str(), create.read_only, create.destructive), ("Create an issue", false, false));
    assert_eq!(create.input_schema.value()["required"], serde_json::json!(["owner", "repo", "title"]));
    assert!(integration.action("repos_delete").unwrap().destructive);
    assert!(integration.action("repos_get").unwrap().read_only);
}

#[tokio::test]
async fn figma_is_imported_from_yaml() {
    let (plan, integration) = import(fixture("@figma/rest-api-spec/openapi/openapi.yaml")).await;
    assert!(plan.skipped.is_empty(), "{:?}", plan.skipped);
    assert!(integration.actions.len() > 40, "{}", integration.actions.len());
    assert_eq!(integration.wire_schemes(), ["api_key", "oauth"], "{:?}", plan.warnings);
    integration.actions.iter().for_each(|action| check(action));
}
