//! One house for all providers: the same routes behave the same, whoever runs the tool.

use std::sync::Arc;

use axum::body::Body;
use http::{Method, Request};
use kernel::Role;
use serde_json::{Value, json};

use crate::support::{Composed, Database, Fake, Reply, call_body, until};

/// What differs from provider to provider.
struct Sample {
    provider: &'static str,
    integration: &'static str,
    action: &'static str,
    /// Fits the action's schema.
    arguments: Value,
    /// Does not.
    wrong: Value,
    use_case: &'static str,
    /// An event with a configuration that fits it.
    event: Option<(&'static str, Value)>,
}

impl Sample {
    fn call_ref(&self, connection: &str) -> String {
        format!("tools.{}.{}.{}.{connection}", self.provider, self.integration, self.action)
    }

    fn catalog(&self, kind: &str) -> String {
        format!("/{kind}/catalog/providers/{}/integrations", self.provider)
    }

    fn body(&self, slug: &str, data: &Value) -> Value {
        json!({"connection": {"slug": slug, "provider_key": self.provider, "integration_key": self.integration, "data": data}})
    }
}

/// A yard with a sample of one provider, and how to connect an account in it.
struct House {
    test: Composed,
    sample: Sample,
    data: Value,
    fake: Fake,
}

impl House {
    async fn connect(&self, slug: &str) -> Value {
        let Self { test, sample, .. } = self;
        if sample.provider == "composio" {
            return test.connect(sample.integration, slug).await;
        }
        test.post("/tools/connections/", sample.body(slug, &self.data)).await.expect(200)["connection"].take()
    }

    async fn call_keyed(&self, idempotency_key: &str, name: &str, arguments: &Value) -> Reply {
        let request = Request::post("/tools/call")
            .header("authorization", format!("ApiKey {}", self.test.owner))
            .header("idempotency-key", idempotency_key)
            .header("content-type", "application/json");
        self.test.send(request.body(Body::from(call_body(name, arguments).to_string())).unwrap()).await
    }
}

async fn house(database: Database, provider: &str) -> House {
    let composio = Arc::new(composio_fake::Fake::start().await);
    let test = Composed::quiet(database, composio, |config| config.mcp_commands = "node".to_owned()).await;
    test.yard.start_composio();
    let fake = Fake::start().await;
    let (sample, data) = match provider {
        "native" => (
            Sample {
                provider: "native",
                integration: "fake",
                action: "MAKE_A_THING",
                arguments: json!({"title": "x"}),
                wrong: json!({"title": 7}),
                use_case: "make a fake thing",
                event: Some(("THING_CHANGED", json!({"box": "b"}))),
            },
            json!({"auth_scheme": "api_key", "credentials": {"base": fake.url, "api_key": "sk-fake-123456"}}),
        ),
        "openapi" => {
            let document = crate::imports::pets(&fake);
            test.post("/tools/imports/openapi", json!({"import": {"document": document}})).await.expect(200);
            let sample = Sample {
                provider: "openapi",
                integration: "pets",
                action: "create_pet",
                arguments: json!({"name": "Rex"}),
                wrong: json!({"name": 7}),
                use_case: "create a pet",
                event: None,
            };
            (sample, json!({"auth_scheme": "api_key", "credentials": {"api_key": "sk-pets-123456"}}))
        }
        "mcp" => {
            let mut import = crate::mcp_servers::node("server-everything", &["stdio"]);
            import["key"] = json!("every");
            test.post("/tools/imports/mcp", json!({"import": import})).await.expect(200);
            let sample = Sample {
                provider: "mcp",
                integration: "every",
                action: "echo",
                arguments: json!({"message": "x"}),
                wrong: json!({"message": 7}),
                use_case: "echo a message back",
                event: None,
            };
            (sample, json!({}))
        }
        _ => (
            Sample {
                provider: "composio",
                integration: "github",
                action: "CREATE_AN_ISSUE",
                arguments: json!({"owner": "o", "repo": "r", "title": "t"}),
                wrong: json!({"owner": 7, "repo": "r", "title": "t"}),
                use_case: "create a github issue",
                event: Some(("GITHUB_COMMIT_EVENT", json!({"owner": "o", "repo": "r"}))),
            },
            json!({}),
        ),
    };
    House { test, sample, data, fake }
}

async fn the_catalog_is_browsed(house: &House) {
    let House { test, sample, .. } = house;
    let providers = test.get("/tools/catalog/providers").await.expect(200);
    assert!(providers["providers"].as_array().unwrap().iter().any(|provider| provider["key"] == sample.provider));
    let list = sample.catalog("tools");
    let listed = test.get(&format!("{list}?limit=1000")).await.expect(200);
    assert!(listed["integrations"].as_array().unwrap().iter().any(|integration| integration["key"] == sample.integration));
    assert_eq!(test.get(&format!("{list}/nope")).await.detail(404), "Integration not found");
    assert_eq!(test.get(&format!("{list}/nope/actions")).await.detail(404), "Integration not found");
    let one = format!("{list}/{}", sample.integration);
    assert_eq!(test.get(&one).await.expect(200)["integration"]["key"], sample.integration);
    let page = test.get(&format!("{one}/actions?limit=1")).await.expect(200);
    assert_eq!(page["count"], 1);
    let cursor = page["cursor"].as_str().unwrap();
    let next = test.get(&format!("{one}/actions?limit=1&cursor={cursor}")).await.expect(200);
    assert_ne!(next["actions"][0]["key"], page["actions"][0]["key"]);
    test.get(&format!("{one}/actions?limit=-1")).await.expect(422);
    test.get(&format!("{one}/actions?cursor=%2A")).await.expect(422);
    let action = test.get(&format!("{one}/actions/{}", sample.action)).await.expect(200)["action"].take();
    assert_eq!(action["schemas"]["inputs"]["type"], "object", "{action:#}");
    assert_eq!(test.get(&format!("{one}/actions/NOPE")).await.detail(404), "Action not found");
    let events = test.get(&format!("{}/{}/events", sample.catalog("triggers"), sample.integration)).await.expect(200);
    assert_eq!(events["count"].as_u64().unwrap() > 0, sample.event.is_some());
    let unknown = test.get(&format!("{}/{}/events/NOPE", sample.catalog("triggers"), sample.integration)).await.detail(404);
    assert_eq!(unknown, "Event not found");
}

async fn a_connection_has_the_same_life(house: &House) {
    let House { test, sample, .. } = house;
    let made = house.connect("main").await;
    assert_eq!(made["flags"], json!({"is_active": true, "is_valid": true}));
    let taken = test.post("/tools/connections/", sample.body("main", &house.data)).await.expect(409);
    let conflict = json!({"provider_key": sample.provider, "integration_key": sample.integration, "slug": "main"});
    assert_eq!(taken["detail"]["conflict"], conflict);
    test.post("/tools/connections/", sample.body("a__b", &house.data)).await.expect(422);
    test.post("/tools/connections/", sample.body("other", &json!({"auth_scheme": "magic"}))).await.expect(422);
    let one = format!("/tools/connections/{}", made["id"].as_str().unwrap());
    for root in ["tools", "triggers"] {
        let query = format!("/{root}/connections/query?provider_key={}&integration_key={}", sample.provider, sample.integration);
        let listed = test.post(&query, json!({})).await.expect(200);
        assert_eq!((&listed["count"], &listed["connections"][0]["id"]), (&json!(1), &made["id"]));
    }
    assert!(test.get(&format!("{one}/usage")).await.expect(200)["usage"].is_object());
    let stranger = test.key("stranger", Role::Owner, None).await;
    test.get_as(&stranger, &one).await.expect(404);
    test.call_as(&stranger, &sample.call_ref("main"), sample.arguments.clone()).await.expect(404);

    let fresh = test.post(&format!("{one}/refresh"), json!({})).await.expect(200);
    assert_eq!(fresh["connection"]["flags"]["is_valid"], true);
    for _ in 0..2 {
        let revoked = test.post(&format!("{one}/revoke"), json!({})).await.expect(200);
        assert_eq!(revoked["connection"]["flags"], json!({"is_active": true, "is_valid": false}));
    }
    test.call(&sample.call_ref("main"), sample.arguments.clone()).await.expect(400);
    test.delete(&one).await.expect(204);
    test.delete(&one).await.expect(404);
    test.get(&one).await.expect(404);
    test.call(&sample.call_ref("main"), sample.arguments.clone()).await.expect(404);
}

async fn a_tool_is_called(house: &House) {
    let House { test, sample, .. } = house;
    house.connect("main").await;
    let name = sample.call_ref("main");
    let answer = test.call(&name, sample.arguments.clone()).await.expect(200);
    assert_eq!(answer["call"]["status"]["code"], "STATUS_CODE_OK", "{answer:#}");
    let content: Value = serde_json::from_str(answer["call"]["data"]["content"].as_str().unwrap()).unwrap();
    assert_eq!((&content["successful"], &content["error"]), (&json!(true), &Value::Null));
    let underscored = name.replace('.', "__");
    test.call(&underscored, json!(sample.arguments.to_string())).await.expect(200);
    assert!(test.call(&name, sample.wrong.clone()).await.detail(400).starts_with("Invalid arguments"));
    test.call(&name, json!([1])).await.expect(400);
    let nope = format!("{}/{}", sample.provider, sample.integration);
    assert_eq!(test.call(&sample.call_ref("nope"), json!({})).await.detail(404), format!("Connection not found: {nope}/nope"));
    let unknown = name.replace(sample.action, "NOPE");
    assert_eq!(test.call(&unknown, json!({})).await.detail(404), format!("Action not found: {nope}/NOPE"));
    let viewer = test.key("default", Role::Viewer, None).await;
    test.call_as(&viewer, &name, sample.arguments.clone()).await.expect(403);

    let first = house.call_keyed("k1", &name, &sample.arguments).await.expect(200);
    assert_eq!(first, house.call_keyed("k1", &name, &sample.arguments).await.expect(200));
    let recorded = test.get(&format!("/tools/calls?limit=100&tool={name}")).await.expect(200);
    assert!(recorded["count"].as_u64().unwrap() >= 4, "{recorded:#}");

    let rule = json!({"permissions": {"default": "allow", "rules": [{"pattern": name, "permission": "deny"}]}});
    test.request(Method::PUT, "/tools/permissions", Some(format!("ApiKey {}", test.owner)), Some(rule)).await.expect(200);
    test.call(&name, sample.arguments.clone()).await.expect(403);
}

async fn a_tool_is_resolved_found_assigned_and_served(house: &House) {
    let House { test, sample, .. } = house;
    let config = json!({"type": "gateway", "provider": sample.provider, "integration": sample.integration, "action": sample.action, "connection": "main"});
    test.post("/tools/resolve", json!({"tools": [config]})).await.expect(404);
    let before = test.post("/tools/discover", json!({"use_cases": [sample.use_case], "provider": sample.provider})).await.expect(200);
    assert_eq!(before["capabilities"][0]["tool"]["action"], sample.action, "{before:#}");
    house.connect("main").await;
    let resolved = test.post("/tools/resolve", json!({"tools": [config]})).await.expect(200);
    assert_eq!((&resolved["count"], &resolved["custom"][0]["call_ref"]), (&json!(1), &json!(sample.call_ref("main"))));
    for format in ["openai", "anthropic", "gemini", "mcp"] {
        test.post(&format!("/tools/specs?format={format}"), json!({"tools": [config]})).await.expect(200);
    }
    let found = test.post("/tools/discover", json!({"use_cases": [sample.use_case], "provider": sample.provider})).await.expect(200);
    assert_eq!((&found["ready"], &found["capabilities"][0]["tool"]["connection"]), (&json!(true), &json!("main")), "{found:#}");

    let app = format!("{}.{}", sample.provider, sample.integration);
    let agent = test.post("/agents", json!({"name": "helper", "agent_type": "x", "tool_ids": [app]})).await.expect(200);
    let agent = agent["id"].to_string();
    let toolset = test.post(&format!("/agents/{agent}/toolset"), json!({})).await.expect(200);
    assert!(toolset.to_string().contains(&sample.call_ref("main")), "{toolset:#}");
    test.post(&format!("/agents/{agent}/call"), call_body(&sample.call_ref("main"), &sample.arguments)).await.expect(200);
}

async fn an_event_is_subscribed_to_or_clearly_not(house: &House) {
    let House { test, sample, fake, .. } = house;
    let connection = house.connect("main").await;
    let subscribe = async |event: &str, config: &Value| {
        let data = json!({"event_key": event, "trigger_config": config});
        test.post("/triggers/subscriptions/", json!({"subscription": {"connection_id": connection["id"], "data": data}})).await
    };
    assert!(subscribe("NOPE", &json!({})).await.status == 422);
    let Some((event, config)) = &sample.event else { return };
    assert!(subscribe(event, &json!({"owner": 1, "box": 1})).await.detail(422).contains("trigger_config"));
    let made = subscribe(event, config).await.expect(200)["subscription"].take();
    assert_eq!((&made["provider_key"], &made["flags"]["is_active"]), (&json!(sample.provider), &json!(true)));
    assert!(made["trigger_id"].is_string());
    assert_eq!(subscribe(event, config).await.expect(409)["detail"]["conflict"]["subscription_id"], made["id"]);
    let one = format!("/triggers/subscriptions/{}", made["id"].as_str().unwrap());
    assert_eq!(test.post(&format!("{one}/stop"), json!({})).await.expect(200)["subscription"]["flags"]["is_active"], false);
    assert_eq!(test.post(&format!("{one}/start"), json!({})).await.expect(200)["subscription"]["flags"]["is_active"], true);
    let flags = async |step: &str| test.post(&format!("{one}/{step}"), json!({})).await.expect(200)["subscription"]["flags"].take();
    for (step, is_active, is_valid) in [("revoke", false, false), ("refresh", false, true), ("start", true, true)] {
        let now = flags(step).await;
        assert_eq!((&now["is_active"], &now["is_valid"]), (&json!(is_active), &json!(is_valid)), "{step}");
    }
    let id = connection["id"].as_str().unwrap();
    test.post(&format!("/tools/connections/{id}/revoke"), json!({})).await.expect(200);
    let paused = test.get(&one).await.expect(200)["subscription"].take();
    assert_eq!(paused["flags"]["is_active"], false, "a revoked connection pauses its subscriptions");
    test.delete(&one).await.expect(204);
    test.delete(&one).await.expect(404);
    until("nothing is left at the provider", async || match sample.provider {
        "composio" => test.composio.triggers().is_empty(),
        _ => !fake.seen_at("/hooks").is_empty(),
    })
    .await;
}

macro_rules! for_every_provider {
    ($($check:ident)*) => {$(
        mod $check {
            use super::*;

            async fn run(database: Database) {
                for provider in ["native", "openapi", "mcp", "composio"] {
                    let house = house(database, provider).await;
                    super::$check(&house).await;
                    house.test.yard.close().await;
                }
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn sqlite() {
                run(Database::Sqlite).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn postgres() {
                run(Database::Postgres).await;
            }
        }
    )*};
}

for_every_provider! {
    the_catalog_is_browsed
    a_connection_has_the_same_life
    a_tool_is_called
    a_tool_is_resolved_found_assigned_and_served
    an_event_is_subscribed_to_or_clearly_not
}
