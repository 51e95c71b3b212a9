//! `/tools/imports`: a project's own APIs, from their documents to their calls.

use std::time::{Duration, Instant};

use http::Method;
use kernel::Role;
use serde_json::{Value, json};
use toolyard::yard::Yard;

use crate::support::{Database, Fake, Test, on_both, repository};

const PETS: &str = "/tools/catalog/providers/openapi/integrations/pets";

/// A small API at the fake service.
pub(crate) fn pets(fake: &Fake) -> Value {
    let id = json!({"in": "path", "name": "petId", "required": true, "schema": {"type": "integer"}});
    let pet =
        json!({"type": "object", "required": ["name"], "properties": {"name": {"type": "string", "description": "What it is called"}}});
    json!({
        "openapi": "3.1.0",
        "info": {"title": "Pets", "version": "1", "description": "Pets and their owners."},
        "servers": [{"url": format!("{}/echo", fake.url)}],
        "security": [{"key": []}],
        "components": {"securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Pet-Key"}}},
        "paths": {
            "/pets": {
                "get": {"operationId": "listPets", "summary": "List all pets", "parameters": [
                    {"in": "query", "name": "tags", "schema": {"type": "array", "items": {"type": "string"}}, "explode": false}
                ]},
                "post": {"operationId": "createPet", "summary": "Create a pet", "requestBody": {"required": true, "content": {"application/json": {"schema": pet}}}}
            },
            "/pets/{petId}": {"parameters": [id], "get": {"operationId": "readPet"}, "delete": {"operationId": "deletePet"}},
            "/pets/{petId}/photo": {"parameters": [id], "put": {"requestBody": {"content": {"image/png": {}}}}}
        }
    })
}

pub(crate) fn order(document: &Value) -> Value {
    json!({"import": {"document": document}})
}

impl Test {
    async fn import_pets(&self, fake: &Fake) -> Value {
        self.post("/tools/imports/openapi", order(&pets(fake))).await.expect(200)
    }

    async fn connect_pets(&self, slug: &str) -> Value {
        let data = json!({"auth_scheme": "api_key", "credentials": {"api_key": "sk-pets-123456"}});
        let connection = json!({"slug": slug, "provider_key": "openapi", "integration_key": "pets", "data": data});
        self.post("/tools/connections", json!({"connection": connection})).await.expect(200)["connection"].take()
    }
}

on_both! {
    async fn an_imported_api_is_used_like_any_other(test: &Test) {
        let fake = Fake::start().await;
        let made = test.import_pets(&fake).await;
        assert_eq!(made["import"]["integration_key"], "pets");
        assert_eq!(made["import"]["origins"], json!([fake.url]));
        assert_eq!(made["difference"]["added"], json!(["create_pet", "delete_pet", "list_pets", "read_pet"]));
        assert_eq!(made["skipped"], json!([{"what": "PUT /pets/{petId}/photo", "why": "a body of type `image/png` cannot be written"}]));

        let provider = test.get("/tools/catalog/providers/openapi").await.expect(200);
        assert_eq!(provider["provider"]["integrations_count"], 1);
        let integration = test.get(PETS).await.expect(200)["integration"].take();
        assert_eq!((&integration["name"], &integration["auth_schemes"]), (&json!("Pets"), &json!(["api_key"])));
        assert_eq!(test.get(&format!("{PETS}/actions?query=delete")).await.expect(200)["total"], 1);
        let action = test.get(&format!("{PETS}/actions/create_pet")).await.expect(200)["action"].take();
        assert_eq!(action["schemas"]["inputs"]["required"], json!(["name"]));
        assert_eq!(test.get(&format!("{PETS}/actions/delete_pet")).await.expect(200)["action"]["destructive"], true);

        let connection = test.connect_pets("main").await;
        assert_eq!(connection["flags"]["is_valid"], true);
        let created = test.call("tools.openapi.pets.create_pet.main", json!({"name": "Rex"})).await;
        let created = Test::content(created);
        assert_eq!(created["data"]["body"], json!({"name": "Rex"}));
        assert_eq!(created["data"]["headers"]["x-pet-key"], "…", "the key is sent, and taken out of what the service repeats");
        let listed = Test::content(test.call("tools__openapi__pets__list_pets__main", json!({"tags": ["a", "b"]})).await);
        assert_eq!((&listed["data"]["path"], &listed["data"]["query"]), (&json!("/echo/pets"), &json!("tags=a%2Cb")));
        let read = Test::content(test.call("tools.openapi.pets.read_pet.main", json!({"petId": 7})).await);
        assert_eq!(read["data"]["path"], "/echo/pets/7");
        assert!(test.call("tools.openapi.pets.read_pet.main", json!({"petId": "x"})).await.detail(400).contains("petId"));
        assert_eq!(test.call("tools.openapi.pets.nope.main", json!({})).await.detail(404), "Action not found: openapi/pets/nope");
        assert_eq!(test.get("/tools/calls?limit=100").await.expect(200)["count"], 5);

        let config = json!({"type": "gateway", "provider": "openapi", "integration": "pets", "action": "create_pet", "connection": "main"});
        for path in ["/tools/resolve", "/tools/specs?format=anthropic"] {
            let resolved = test.post(path, json!({"tools": [config]})).await;
            assert!(resolved.text.contains("create_pet"), "{path}: {}", resolved.text);
            resolved.expect(200);
        }
        let found = test.post("/tools/discover", json!({"use_cases": ["create a pet"], "provider": "openapi"})).await.expect(200);
        assert_eq!(found["capabilities"][0]["integration"], "pets", "{found}");
        assert_eq!(found["ready"], true);
    }

    async fn a_dry_run_says_all_and_writes_nothing(test: &Test) {
        let fake = Fake::start().await;
        let plan = test.post("/tools/imports/openapi?dry_run=true", order(&pets(&fake))).await.expect(200);
        assert_eq!((&plan["dry_run"], &plan["is_new"], plan["import"].get("id")), (&json!(true), &json!(true), None));
        assert_eq!(plan["difference"]["added"].as_array().unwrap().len(), 4);
        assert_eq!(plan["skipped"].as_array().unwrap().len(), 1);
        assert_eq!(test.get("/tools/imports").await.expect(200)["count"], 0);
        test.get(PETS).await.expect(404);
    }

    async fn importing_again_shows_the_difference(test: &Test) {
        let fake = Fake::start().await;
        let first = test.import_pets(&fake).await;
        let mut document = pets(&fake);
        assert_eq!(test.post("/tools/imports/openapi", order(&document)).await.expect(409)["detail"]["conflict"], json!({"integration_key": "pets"}));
        let again = |document: &Value| json!({"import": {"key": "pets", "document": document}});
        let same = test.post("/tools/imports/openapi", again(&document)).await.expect(200);
        assert_eq!((&same["import"]["version"], &same["difference"]["unchanged_count"]), (&json!(1), &json!(4)));

        document["paths"]["/pets"].as_object_mut().unwrap().remove("post");
        document["paths"]["/pets"]["get"]["summary"] = json!("List some pets");
        document["paths"]["/owners"] = json!({"get": {"operationId": "listOwners"}});
        let difference = json!({"added": ["list_owners"], "removed": ["create_pet"], "changed": ["list_pets"], "unchanged_count": 2});
        let plan = test.post("/tools/imports/openapi?dry_run=true", again(&document)).await.expect(200);
        assert_eq!(plan["difference"], difference);
        test.get(&format!("{PETS}/actions/create_pet")).await.expect(200);
        let second = test.post("/tools/imports/openapi", again(&document)).await.expect(200);
        assert_eq!(second["difference"], difference);
        assert_eq!((&second["import"]["id"], &second["import"]["version"]), (&first["import"]["id"], &json!(2)));
        test.get(&format!("{PETS}/actions/create_pet")).await.expect(404);
        test.get(&format!("{PETS}/actions/list_owners")).await.expect(200);
        assert_eq!(test.get("/tools/imports").await.expect(200)["imports"], json!([second["import"]]));
    }

    async fn an_address_is_fetched_with_what_it_refers_to(test: &Test) {
        let fake = Fake::start().await;
        let mut document = pets(&fake);
        document["servers"] = json!([{"url": "/echo"}]);
        document["paths"]["/pets"]["post"]["requestBody"]["content"]["application/json"]["schema"] = json!({"$ref": "parts/pet.yaml#/Pet"});
        fake.put_file("api/parts/pet.yaml", "Pet:\n  type: object\n  required: [nick]\n  properties:\n    nick: {$ref: '#/Name'}\nName: {type: string}\n");
        let url = fake.put_file("api/openapi.json", &document.to_string());
        let by_url = json!({"import": {"url": url}});
        let made = test.post("/tools/imports/openapi", by_url.clone()).await.expect(200);
        assert_eq!(made["warnings"], json!([]));
        assert_eq!(made["import"]["source"], json!({"url": url, "settings": {}}));
        let action = test.get(&format!("{PETS}/actions/create_pet")).await.expect(200);
        assert_eq!(action["action"]["schemas"]["inputs"]["properties"], json!({"nick": {"type": "string"}}));

        document["paths"]["/pets"].as_object_mut().unwrap().remove("get");
        fake.put_file("api/openapi.json", &document.to_string());
        let refresh = format!("/tools/imports/{}/refresh", made["import"]["id"].as_str().unwrap());
        let refreshed = test.post(&refresh, json!({})).await.expect(200);
        assert_eq!((&refreshed["difference"]["removed"], &refreshed["import"]["version"]), (&json!(["list_pets"]), &json!(2)));
        assert_eq!(test.post("/tools/imports/openapi", by_url).await.expect(200)["import"]["version"], 2, "the same address is the same import");
        let other = fake.put_file("other.json", &document.to_string());
        test.post("/tools/imports/openapi", json!({"import": {"url": other}})).await.expect(409);
        fake.put_file("api/openapi.json", "not: [a document");
        assert!(test.post(&refresh, json!({})).await.detail(422).contains("not YAML"));
        test.get(PETS).await.expect(200);

        let inline = test.post("/tools/imports/openapi", json!({"import": {"key": "inline", "document": pets(&fake).to_string()}})).await.expect(200);
        let refresh = format!("/tools/imports/{}/refresh", inline["import"]["id"].as_str().unwrap());
        assert!(test.post(&refresh, json!({})).await.detail(409).contains("cannot be fetched again"));
    }

    async fn credentials_stay_with_the_hosts_they_were_given_for(test: &Test) {
        let (fake, thief) = (Fake::start().await, Fake::start().await);
        test.import_pets(&fake).await;
        let connection = test.connect_pets("main").await;
        let elsewhere = json!({"import": {"key": "pets", "document": pets(&thief)}});
        let refused = test.post("/tools/imports/openapi", elsewhere.clone()).await.expect(409);
        assert_eq!(refused["detail"]["conflict"], json!({"in_use": ["connection `main`"]}));
        let plan = test.post("/tools/imports/openapi?dry_run=true&force=true", elsewhere.clone()).await.expect(200);
        assert!(plan["warnings"][0].as_str().unwrap().contains("connection `main`"), "{plan}");
        test.call("tools.openapi.pets.list_pets.main", json!({})).await.expect(200);
        assert_eq!((fake.seen().len(), thief.seen().len()), (1, 0));

        let made = test.post("/tools/imports/openapi?force=true", elsewhere).await.expect(200);
        assert_eq!(made["disconnected"], json!([connection["id"]]));
        assert!(test.call("tools.openapi.pets.list_pets.main", json!({})).await.detail(400).contains("refresh the connection"));
        assert_eq!(thief.seen().len(), 0, "no credential left for another host");
        assert_eq!(test.get(&format!("/tools/connections/{}", connection["id"].as_str().unwrap())).await.expect(200)["connection"]["flags"]["is_valid"], false);
    }

    async fn what_is_connected_is_not_removed_by_accident(test: &Test) {
        let fake = Fake::start().await;
        let made = test.import_pets(&fake).await;
        let connection = test.connect_pets("main").await;
        let path = format!("/tools/imports/{}", made["import"]["id"].as_str().unwrap());
        let refused = test.delete(&path).await.expect(409);
        assert_eq!(refused["detail"]["conflict"], json!({"in_use": ["connection `main`"]}));
        test.get(&path).await.expect(200);
        test.delete(&format!("{path}?force=true")).await.expect(204);
        test.delete(&path).await.expect(404);
        test.get(PETS).await.expect(404);
        test.get(&format!("/tools/connections/{}", connection["id"].as_str().unwrap())).await.expect(404);
        test.import_pets(&fake).await;
        assert_eq!(test.post("/tools/connections/query", json!({})).await.expect(200)["count"], 0, "a new import has none of the old connections");
    }

    async fn tokens_come_from_the_documents_own_endpoint(test: &Test) {
        let fake = Fake::start().await;
        let mut document = pets(&fake);
        let flow = |name: &str| json!({name: {"authorizationUrl": format!("{}/authorize", fake.url), "tokenUrl": format!("{}/token", fake.url), "scopes": {"pets": ""}}});
        document["components"]["securitySchemes"] = json!({
            "machine": {"type": "oauth2", "flows": flow("clientCredentials")},
            "person": {"type": "oauth2", "flows": flow("authorizationCode")}
        });
        document["security"] = json!([{"machine": ["pets"]}, {"person": ["pets"]}]);
        test.post("/tools/imports/openapi", order(&document)).await.expect(200);
        let connect = |slug: &str, data: Value| json!({"connection": {"slug": slug, "provider_key": "openapi", "integration_key": "pets", "data": data}});
        let machine = json!({"auth_scheme": "client_credentials", "credentials": {"client_id": "c", "client_secret": "s-12345678"}});
        test.post("/tools/connections", connect("machine", machine)).await.expect(200);
        let called = Test::content(test.call("tools.openapi.pets.list_pets.machine", json!({})).await);
        assert_eq!(called["data"]["headers"]["authorization"], "Bearer …");
        assert_eq!(fake.seen().last().unwrap()["headers"]["authorization"], "Bearer token-1-abcdef");

        let person = connect("person", json!({"auth_scheme": "oauth"}));
        assert!(test.post("/tools/connections", person.clone()).await.detail(422).contains("needs an OAuth app of yours"));
        let app = json!({"oauth_app": {"provider_key": "openapi", "integration_key": "pets", "client_id": "c", "client_secret": "s-12345678"}});
        test.admin(Method::POST, "/admin/oauth-apps", Some(app.clone())).await.expect(404);
        test.post("/tools/oauth-apps", app).await.expect(200);
        let started = test.post("/tools/connections", person).await.expect(200);
        assert!(started["connection"]["data"]["redirect_url"].as_str().unwrap().starts_with(&format!("{}/authorize?", fake.url)), "{started}");
    }

    async fn projects_see_their_own_imports_only(test: &Test) {
        let fake = Fake::start().await;
        let made = test.import_pets(&fake).await;
        let stranger = test.key("elsewhere", Role::Owner, None).await;
        let path = format!("/tools/imports/{}", made["import"]["id"].as_str().unwrap());
        test.get_as(&stranger, &path).await.expect(404);
        test.get_as(&stranger, PETS).await.expect(404);
        assert_eq!(test.get_as(&stranger, "/tools/imports").await.expect(200)["count"], 0);
        test.post_as(&stranger, &format!("{path}/refresh"), json!({})).await.expect(404);
        let own = test.post_as(&stranger, "/tools/imports/openapi", order(&pets(&fake))).await.expect(200);
        assert_ne!(own["import"]["id"], made["import"]["id"]);
        let project = test.yard.accounts.find_project("elsewhere").await.unwrap();
        test.yard.accounts.delete_project(project.id).await.unwrap();
        let left = test.yard.db.all("select id from imports", store::args![]).await.unwrap().len();
        assert_eq!(left, 1, "a project takes its imports with it");
    }

    async fn other_nodes_notice(test: &Test) {
        let fake = Fake::start().await;
        let other = Yard::open_at(test.yard.config.clone(), test.clock.clone()).await.unwrap();
        let project = test.yard.accounts.find_project("default").await.unwrap().id;
        let keys = || other.catalog.integrations(project, "openapi", &catalog::PageQuery::default()).unwrap().items.iter().map(|found| found.key.clone()).collect::<Vec<_>>();
        let source = || other.catalog.source("openapi").unwrap().clone();
        other.catalog.ready(project).await.unwrap();
        assert_eq!((keys(), source().edition(project)), (Vec::new(), 0));
        let made = test.import_pets(&fake).await;
        assert!(keys().is_empty());
        other.imports.catch_up().await.unwrap();
        assert_eq!(keys(), ["pets"]);
        let edition = source().edition(project);
        other.imports.catch_up().await.unwrap();
        assert_eq!(source().edition(project), edition, "nothing changed");
        test.delete(&format!("/tools/imports/{}", made["import"]["id"].as_str().unwrap())).await.expect(204);
        other.imports.catch_up().await.unwrap();
        assert!(keys().is_empty());
        assert_ne!(source().edition(project), edition);
        other.close().await;
    }

    async fn nothing_that_is_sent_breaks_anything(test: &Test) {
        let fake = Fake::start().await;
        let with = |change: &dyn Fn(&mut Value)| {
            let mut document = pets(&fake);
            change(&mut document);
            order(&document)
        };
        let text = |text: String| json!({"import": {"document": text}});
        let url = |url: &str| json!({"import": {"url": url}});
        let bomb = (0..9).fold("a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned(), |yaml, level| {
            yaml + &format!("a{}: &a{} [{}]\n", level + 1, level + 1, vec![format!("*a{level}"); 9].join(", "))
        });
        let broken = fake.put_file("latin", "\u{0}");
        for (body, status, words) in [
            (json!({}), 422, "import"),
            (json!({"import": {}}), 422, "either `url` or `document`"),
            (json!({"import": {"url": "https://example.com", "document": {}}}), 422, "either `url` or `document`"),
            (json!({"import": {"document": 7}}), 422, "`document` is an object"),
            (json!({"import": {"document": {}, "colour": 1}}), 422, "colour"),
            (json!({"import": {"document": {}}}), 422, "not an OpenAPI document"),
            (json!({"import": {"document": {"swagger": "2.0"}}}), 422, "Swagger 2.0"),
            (json!({"import": {"document": {"openapi": "4.0"}}}), 422, "use 3.0 or 3.1"),
            (json!({"import": {"document": {"openapi": "3.1.0"}}}), 422, "server"),
            (json!({"import": {"key": "No Key", "document": pets(&fake)}}), 422, "cannot be a key"),
            (json!({"import": {"document": pets(&fake), "server_url": "https://169.254.169.254/latest"}}), 422, "blocked"),
            (json!({"import": {"document": pets(&fake), "server_url": "https://{connection.api_key}.evil.com"}}), 422, "server_url"),
            (json!({"import": {"document": pets(&fake), "security_schemes": {"x": {"type": "oauth2", "flows": {"authorizationCode": 7}}}}}), 200, ""),
            (text("[".repeat(100_000)), 422, "not YAML"),
            (text("{\"openapi\":".repeat(1000)), 422, "not JSON"),
            (text("a: ".to_owned() + &"{a: ".repeat(90) + &"}".repeat(90)), 422, "not an OpenAPI document"),
            (text(bomb), 422, "not YAML"),
            (text("openapi: 3.1.0\n--- \nopenapi: 3.1.0".to_owned()), 422, "not YAML"),
            (with(&|document| document["servers"] = json!([{"url": "https://10.0.0.1"}])), 422, "blocked"),
            (with(&|document| document["info"]["title"] = json!("a\u{0}b\u{7}{{ 7 }}")), 200, ""),
            (with(&|document| document["info"] = json!([])), 200, ""),
            (with(&|document| document["paths"] = json!({"/x": {"$ref": "file:///etc/passwd"}})), 422, "is not an `https` address"),
            (with(&|document| document["paths"]["/pets"]["get"]["parameters"] = json!({"$ref": "#"})), 409, "imported from something else"),
            (url("https://10.0.0.1/openapi.json"), 424, "blocked"),
            (url("file:///etc/passwd"), 422, "`https` address"),
            (url("not an address"), 422, "not a web address"),
            (url("http://user:pass@127.0.0.1/x"), 422, "without a user name"),
            (url(&format!("{}/status/404", fake.url)), 424, "answered 404"),
            (url(&format!("{}/status/503", fake.url)), 502, "status 503"),
            (url(&format!("{}/status/298", fake.url)), 422, "not an OpenAPI document"),
            (url("http://127.0.0.1:1/x"), 424, "could not be reached"),
            (url(&broken), 422, ""),
        ] {
            let reply = test.post("/tools/imports/openapi", body.clone()).await;
            let shown: String = body.to_string().chars().take(200).collect();
            assert_eq!(reply.status.as_u16(), status, "{shown}: {}", reply.text);
            assert!(reply.text.contains(words), "{shown}: {}", reply.text);
        }
        test.post(&format!("/tools/imports/{}/refresh", uuid::Uuid::now_v7()), json!({})).await.expect(404);
        let viewer = test.key("default", Role::Viewer, None).await;
        test.post_as(&viewer, "/tools/imports/openapi", order(&pets(&fake))).await.expect(403);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn github_is_imported_found_and_called() {
    let fake = Fake::start().await;
    let test = Test::start(Database::Sqlite).await;
    let path = repository().join("tests/npm/node_modules/@octokit/openapi/generated/api.github.com.json");
    let url = fake.put_file("github.json", &std::fs::read_to_string(path).unwrap());
    let schemes = json!({"token": {"type": "http", "scheme": "bearer"}});
    let started = Instant::now();
    let import =
        json!({"key": "github", "name": "GitHub", "url": url, "server_url": format!("{}/echo", fake.url), "security_schemes": schemes});
    let made = test.post("/tools/imports/openapi", json!({"import": import})).await.expect(200);
    let took = started.elapsed();
    assert!(made["import"]["actions_count"].as_u64().unwrap() > 1100);
    // Five seconds are for a build as users have it, on cores that are not shared with other tests.
    let limit = Duration::from_secs(if cfg!(debug_assertions) { 40 } else { 5 });
    assert!(took < limit, "{took:?}");
    let github = "/tools/catalog/providers/openapi/integrations/github";
    let found = test.get(&format!("{github}/actions?query=create+an+issue&limit=1000")).await.expect(200);
    assert!(found["actions"].as_array().unwrap().iter().any(|action| action["key"] == "issues_create"), "{found}");
    let discovered = test.post("/tools/discover", json!({"use_cases": ["create an issue"], "provider": "openapi"})).await.expect(200);
    assert_eq!(discovered["capabilities"][0]["integration"], "github", "{discovered}");
    let data = json!({"credentials": {"token": "ghp-12345678"}});
    test.post(
        "/tools/connections",
        json!({"connection": {"slug": "main", "provider_key": "openapi", "integration_key": "github", "data": data}}),
    )
    .await
    .expect(200);
    let called = Test::content(
        test.call("tools.openapi.github.issues_create.main", json!({"owner": "a", "repo": "b", "title": "It broke", "labels": ["bug"]}))
            .await,
    );
    assert_eq!(called["data"]["path"], "/echo/repos/a/b/issues");
    assert_eq!(called["data"]["body"], json!({"title": "It broke", "labels": ["bug"]}));
    assert_eq!(called["data"]["headers"]["authorization"], "Bearer …");
    assert_eq!(fake.seen().last().unwrap()["headers"]["authorization"], "Bearer ghp-12345678");
}
