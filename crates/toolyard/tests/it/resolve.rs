//! `POST /tools/resolve` and `GET /tools/schema`.

use definitions::format::{Format, ToolView, definition, validate};
use serde_json::{Value, json};

use crate::support::{Database, Fake, Test, on_both};

fn gateway(action: &str, connection: &str) -> Value {
    json!({"type": "gateway", "provider": "native", "integration": "fake", "action": action, "connection": connection})
}

on_both! {
    async fn configs_become_tools_in_their_order(test: &Test) {
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        let named = json!({"type": "gateway", "provider": "native", "integration": "fake", "action": "MAKE_A_THING", "connection": "main", "name": "make", "needs_approval": true});
        let slug = json!({"function": {"name": "tools__native__fake__QUERY_THINGS__main"}});
        let resolved = test.post("/tools/resolve", json!({"tools": [gateway("GET_A_THING", "main"), "read", named, slug]})).await.expect(200);
        assert_eq!((&resolved["count"], &resolved["builtins"]), (&json!(4), &json!(["read"])));
        let custom = resolved["custom"].as_array().unwrap();
        let names: Vec<&str> = custom.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
        assert_eq!(names, ["fake__GET_A_THING", "make", "fake__QUERY_THINGS"]);
        assert_eq!(custom[1]["call_ref"], "tools.native.fake.MAKE_A_THING.main");
        assert_eq!((&custom[0]["read_only"], &custom[1]["read_only"]), (&json!(true), &json!(false)));
        assert_eq!(custom[1]["input_schema"]["required"], json!(["title"]));
        assert_eq!(test.post("/tools/resolve", json!({})).await.expect(200), json!({"count": 0, "builtins": [], "custom": []}));
    }

    async fn what_cannot_be_resolved_says_why(test: &Test) {
        let fake = Fake::start().await;
        let id = test.connect_fake(&fake, "main").await["id"].as_str().unwrap().to_owned();
        test.connect_fake(&fake, "gone").await;
        test.post("/tools/connections", crate::support::fake_connection("waiting", &json!({"auth_scheme": "api_key"}))).await.expect(200);
        for (tool, status, words) in [
            (gateway("GET_A_THING", "_x"), 400, "Invalid tool slug: native.fake.GET_A_THING._x — Invalid slug segment: '_x'"),
            (gateway("GET A", "main"), 400, "Invalid slug segment: 'GET A'"),
            (gateway("GET_A_THING", "nope"), 404, "Connection not found: native/fake/nope"),
            (gateway("GET_A_THING", "waiting"), 400, "Connection credentials not established: waiting - Please refresh the connection."),
            (gateway("NOPE", "main"), 404, "Action not found: native/fake/NOPE"),
            (json!({"type": "gateway", "integration": "fake", "action": "X", "connection": "main"}), 503, "composio is not configured"),
            (json!({"type": "client", "name": "x"}), 422, "`client` tool cannot be resolved"),
            (json!({"type": "gateway", "provider": "native", "integration": "fake", "action": "X", "connection": "main", "extra": 1}), 422, "`extra` is not a field"),
            (json!(null), 422, "cannot be null"),
            (json!(7), 422, "must be a string or mapping"),
        ] {
            let detail = test.post("/tools/resolve", json!({"tools": [gateway("GET_A_THING", "main"), tool]})).await;
            assert!(detail.json()["detail"].is_string(), "clients read the detail as text");
            let detail = detail.detail(status);
            assert!(detail.contains(words), "{detail}");
        }
        let twice = json!({"tools": [gateway("GET_A_THING", "main"), gateway("GET_A_THING", "main")]});
        assert!(test.post("/tools/resolve", twice).await.detail(422).contains("configured twice"));
        test.post(&format!("/tools/connections/{id}/revoke"), json!({})).await.expect(200);
        test.post("/tools/resolve", json!({"tools": [gateway("GET_A_THING", "main")]})).await.expect(400);
    }

    async fn definitions_lead_back_to_the_tool(test: &Test) {
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        let long = "a-connection-with-a-name-that-is-much-too-long-for-any-model-api";
        test.connect_fake(&fake, long).await;
        let tools = json!({"tools": [gateway("MAKE_A_THING", "main"), gateway("SLOWLY", long)]});
        for format in Format::ALL {
            let answer = test.post(&format!("/tools/resolve?format={format}"), tools.clone()).await.expect(200);
            for definition in answer["definitions"].as_array().unwrap() {
                assert_eq!(validate(format, definition), Ok(()), "{definition}");
                let name = definition["name"].as_str().or_else(|| definition["function"]["name"].as_str()).unwrap();
                let call_ref = answer["names"][name].as_str().unwrap();
                let arguments = if call_ref.contains("SLOWLY") { json!({"ms": 0}) } else { json!({"title": "x"}) };
                test.call(call_ref, arguments).await.expect(200);
            }
        }
        let short = test.post("/tools/resolve?format=openai", json!({"tools": [gateway("MAKE_A_THING", "main")]})).await.expect(200);
        let name = short["definitions"][0]["function"]["name"].as_str().unwrap().to_owned();
        test.call(&name, json!({"title": "called by the model's own name"})).await.expect(200);
        test.post("/tools/resolve?format=pigeon", tools).await.expect(422);
    }
}

#[tokio::test]
async fn the_schema_of_configs_is_served() {
    let test = Test::start(Database::Sqlite).await;
    let schema = test.get("/tools/schema").await.expect(200);
    let compiled = kernel::schema::Schema::compile(&schema).unwrap();
    assert!(compiled.check(&json!({"tools": [gateway("X", "main")]})).is_ok());
    assert!(compiled.check(&json!({"tools": [{"type": "gateway"}]})).is_err());
}

/// Every action that ships can be given to every model API.
#[test]
fn every_action_fits_every_model_api() {
    use catalog::Source;
    let egress = egress::Egress::new(egress::Config::default()).unwrap();
    let native = native::Native::new(native::each_built_in(), egress).unwrap();
    for integration in native.integrations(kernel::ProjectId::new()) {
        for action in &integration.actions {
            let call_ref = format!("tools.native.{}.{}.{}-main", integration.key, action.key, integration.key);
            let (input, output) = (action.input_schema.value(), action.output_schema.as_ref().map(kernel::json::Document::value));
            let view = ToolView {
                name: &call_ref,
                description: &action.description,
                input_schema: &input,
                output_schema: output.as_ref(),
                read_only: Some(action.read_only),
                destructive: Some(action.destructive),
            };
            for format in Format::ALL {
                let made = definition(format, &view);
                assert_eq!(validate(format, &made), Ok(()), "{format} {call_ref} {made}");
            }
        }
    }
}
