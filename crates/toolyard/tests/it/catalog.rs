//! `/tools/catalog` and `/triggers/catalog`.

use std::collections::BTreeSet;

use native::manifest::{Manifest, check};
use serde_json::json;

use crate::support::{Database, Test};

#[test]
fn every_manifest_keeps_the_rules_and_builds_every_request() {
    let manifests = native::built_in().unwrap();
    for manifest in &manifests {
        let findings: Vec<String> = check(manifest).iter().map(ToString::to_string).collect();
        assert!(findings.is_empty(), "{}: {findings:#?}", manifest.key);
    }
    let keys: BTreeSet<&str> = manifests.iter().map(|manifest| manifest.key.as_str()).collect();
    assert_eq!(keys.len(), manifests.len());
    let actions: usize = manifests.iter().map(|manifest| manifest.actions.len()).sum();
    let events: usize = manifests.iter().map(|manifest| manifest.events.len()).sum();
    assert!(manifests.len() >= 40 && actions >= 400 && events >= 100, "{} {actions} {events}", manifests.len());
}

#[test]
fn mistakes_in_a_manifest_are_found() {
    let good = std::fs::read_to_string(crate::support::manifests().join("fake.yaml")).unwrap();
    assert!(check(&Manifest::parse(&good).unwrap()).is_empty());
    for (from, to, finding) in [
        ("GET /echo/{owner}/files/{path}", "GET /echo/{owner}/files/{path}/{gone}", "path parameter `gone` is not declared"),
        ("owner: {type: string, required: true,", "owner: {type: string,", "path parameter `owner` must be required"),
        ("key: MAKE_A_THING", "key: GET_A_THING", "key is used twice"),
        ("name: Make a thing", "name: get a thing", "is used twice"),
        ("title: {type: string,", "title: {type: strin,", "not a valid JSON Schema"),
        ("title: {type: string,", "title: {type: string, requird: true,", "unknown key `requird`"),
        ("text | base64", "text | base46", "unknown filter"),
        ("about {{ text }}", "about {{ txt }}", "`txt`, which is not a parameter"),
        ("$after", "$before", "`after` is not a variable"),
        (
            ", pattern: \"http://127\\\\.0\\\\.0\\\\.1:[0-9]+\"}\n      team: {label: Team, secret: false, default: red}",
            "}\n      team: {label: Team, secret: false, default: red}",
            "needs a `pattern`",
        ),
        ("{connection.api_key}\"}, query", "{connection.apikey}\"}, query", "does not have"),
        ("make a fake thing, create", "create", "has 2 use cases"),
        ("categories: [data]", "categories: [dat]", "unknown category"),
        ("token_url: \"{connection.base}/token\"", "token_url: \"http://example.com/token\"", "is not an https address"),
        ("{header: Idempotency-Key}", "{header: Not a header}", "`Not a header` is not a header name"),
        ("{header: Idempotency-Key}", "{param: title}", "`title` is a parameter, which only an action has"),
        ("request: POST /echo/things", "request: POST /echo/things\n    idempotency: {param: titel}", "`titel` is not a parameter"),
        ("request: POST /echo/things", "request: POST /echo/things\n    idempotency: {param: title}", "must be an optional text"),
        ("request: GET /echo", "idempotency: {header: X-Key}\n    request: GET /echo", "only reads needs no key"),
        ("items: /items, id: /id}", "items: /items, id: /id, pages: {style: page, param: p}}", "need the size of a page"),
        ("items: /items, id: /id}", "items: /items, id: /id, pages: {style: cursor, param: p, next: p}}", "`p` is not a JSON Pointer"),
        (
            "items: /items, id: /id}",
            "items: /items, id: /id, since: {param: s, from: /at}, pages: {style: cursor, param: p, next: /p}}",
            "exclude each other",
        ),
        ("signed: \"{body}\"}", "signed: \"{body}\", client_secret: true}", "`client_secret` needs the scheme `oauth2`"),
    ] {
        let bad = good.replace(from, to);
        assert_ne!(bad, good, "{from}");
        let findings: Vec<String> = check(&Manifest::parse(&bad).unwrap()).iter().map(ToString::to_string).collect();
        assert!(findings.iter().any(|text| text.contains(finding)), "{finding}: {findings:#?}");
    }
    let oauth = std::fs::read_to_string(crate::support::manifests().join("oidc.yaml")).unwrap();
    for (from, to, finding) in [
        ("request: GET /api/me\n  - key", "request: GET /api/me\n    scopes: [admin]\n  - key", "scope `admin` is neither in `scopes`"),
        ("{connection.base}/token?renew", "http://example.com/token", "is not an https address"),
    ] {
        let bad = oauth.replace(from, to);
        assert_ne!(bad, oauth, "{from}");
        let findings: Vec<String> = check(&Manifest::parse(&bad).unwrap()).iter().map(ToString::to_string).collect();
        assert!(findings.iter().any(|text| text.contains(finding)), "{finding}: {findings:#?}");
    }
    assert!(Manifest::parse(&good.replace("request: GET /echo", "reqest: GET /echo")).is_err());
    assert!(Manifest::parse("key: [").is_err());
}

#[tokio::test]
async fn the_catalog_can_be_browsed() {
    let test = Test::start(Database::Sqlite).await;
    let native = "/tools/catalog/providers/native";
    let providers = test.get("/tools/catalog/providers/").await.expect(200);
    assert_eq!(providers["providers"][0]["key"], "native");
    assert_eq!(test.get(native).await.expect(200)["provider"]["name"], "Native");
    assert_eq!(test.get("/tools/catalog/providers/nope").await.detail(404), "Provider not found: nope");
    assert_eq!(test.get("/tools/catalog/providers/nope/integrations").await.detail(404), "Provider not found: nope");

    let mut seen = BTreeSet::new();
    let mut cursor = String::new();
    loop {
        let page = test.get(&format!("{native}/integrations?limit=25&sort_by=alphabetically&cursor={cursor}")).await.expect(200);
        for integration in page["integrations"].as_array().unwrap() {
            assert!(seen.insert(integration["key"].as_str().unwrap().to_owned()));
        }
        assert_eq!(page["total"], providers["providers"][0]["integrations_count"]);
        let Some(next) = page["cursor"].as_str() else { break };
        next.clone_into(&mut cursor);
    }
    assert_eq!(json!(seen.len()), providers["providers"][0]["integrations_count"]);
    test.get(&format!("{native}/integrations?limit=-1")).await.expect(422);
    test.get(&format!("{native}/integrations?cursor=x")).await.expect(422);
    let found = test.get(&format!("{native}/integrations?search=google%20calendar")).await.expect(200);
    assert_eq!(found["integrations"][0]["key"], "google-calendar");
    let mail = test.get(&format!("{native}/integrations?category=email&limit=100")).await.expect(200);
    assert!(mail["integrations"].as_array().unwrap().iter().all(|found| found["categories"].as_array().unwrap().contains(&json!("email"))));
    assert!(test.get(&format!("{native}/categories/")).await.expect(200)["count"].as_u64().unwrap() > 10);

    let github = test.get(&format!("{native}/integrations/github")).await.expect(200);
    assert_eq!(github["integration"]["auth_schemes"], json!(["oauth", "api_key"]));
    let open = test.get(&format!("{native}/integrations/hacker-news")).await.expect(200);
    assert!(open["integration"].get("auth_schemes").is_none());
    assert_eq!(test.get(&format!("{native}/integrations/nope")).await.detail(404), "Integration not found");

    let brief = test.get(&format!("{native}/integrations/github/actions/?query=issue")).await.expect(200);
    assert!(brief["actions"][0].get("schemas").is_none());
    let full = test.get(&format!("{native}/integrations/github/actions?full_details=true&limit=2")).await.expect(200);
    assert!(full["actions"][0]["schemas"]["inputs"].is_object());
    let none = test.get(&format!("{native}/integrations/github/actions?categories=email&categories=crm")).await.expect(200);
    assert_eq!(none["count"], 0);
    let action = test.get(&format!("{native}/integrations/github/actions/CREATE_AN_ISSUE")).await.expect(200);
    assert_eq!(action["action"]["schemas"]["inputs"]["required"], json!(["owner", "repo", "title"]));
    assert_eq!(action["action"]["scopes"], json!(["repo"]));
    assert_eq!(
        test.get(&format!("{native}/integrations/github/actions/create_an_issue")).await.detail(404),
        "Action not found. Did you mean `CREATE_AN_ISSUE`?"
    );

    let events = "/triggers/catalog/providers/native/integrations/github/events";
    let listed = test.get(&format!("{events}?query=pull%20request")).await.expect(200);
    assert!(listed["count"].as_u64().unwrap() >= 2);
    let event = test.get(&format!("{events}/ISSUE_OPENED")).await.expect(200);
    assert_eq!(event["event"]["trigger_config"]["required"], json!(["owner", "repo"]));
    assert_eq!(test.get(&format!("{events}/NOPE")).await.detail(404), "Event not found");
}

#[tokio::test]
async fn an_operators_manifest_replaces_a_built_in_one() {
    let dir = tempfile::tempdir().unwrap();
    let own = std::fs::read_to_string(crate::support::manifests().join("fake.yaml"))
        .unwrap()
        .replace("key: fake", "key: github")
        .replace("name: Fake", "name: My GitHub");
    std::fs::write(dir.path().join("mine.yaml"), own).unwrap();
    let path = dir.path().to_owned();
    let test = Test::with(Database::Sqlite, |config| config.integrations_dir = Some(path)).await;
    let github = test.get("/tools/catalog/providers/native/integrations/github").await.expect(200);
    assert_eq!(github["integration"]["name"], "My GitHub");
}
