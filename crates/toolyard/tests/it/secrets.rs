//! `/secrets`: written by people, shown to keys that may read, sent in headers to the hosts they were given for.

use http::Method;
use kernel::{Permission, Role};
use serde_json::{Value, json};

use crate::reserved::workflow;
use crate::support::{Database, Fake, Reply, Test, on_both};

const VALUE: &str = "s3cr3t-value-of-the-crm";

fn given(slug: &str, value: &str, hosts: &Value) -> Value {
    json!({"slug": slug, "header": {"description": "for the CRM"}, "hosts": hosts,
        "secret": {"kind": "custom_secret", "data": {"secret": {"format": "text", "content": value}}}})
}

async fn put(test: &Test, path: &str, body: Value) -> Reply {
    test.request(Method::PUT, path, Some(format!("ApiKey {}", test.owner)), Some(body)).await
}

async fn reader(test: &Test) -> String {
    test.key("default", Role::Viewer, Some(vec![Permission::ViewTools, Permission::ViewSecrets, Permission::ReadSecrets])).await
}

/// The host of the fake service.
fn host(fake: &Fake) -> Value {
    json!([fake.url.trim_start_matches("http://")])
}

on_both! {
    async fn a_value_goes_in_and_comes_out_for_readers_only(test: &Test) {
        let made = test.post("/secrets/", given("crm_key", VALUE, &json!(["CRM.example.com"]))).await.expect(200);
        assert_eq!((&made["slug"], &made["kind"], &made["write_only"], &made["hosts"]), (&json!("crm_key"), &json!("custom_secret"), &json!(true), &json!(["crm.example.com"])));
        assert_eq!(made["data"]["secret"], json!({"format": "text", "content": {}}), "older clients need the member");
        assert_eq!((&made["value_status"]["configured"], &made["header"]["description"]), (&json!(true), &json!("for the CRM")));
        let reader = reader(test).await;
        for path in ["/secrets".to_owned(), "/secrets/crm_key".to_owned(), format!("/secrets/{}", made["id"].as_str().unwrap())] {
            let owner = test.get(&path).await;
            assert!(owner.status == 200 && owner.text.contains("crm_key") && !owner.text.contains(VALUE), "{}", owner.text);
        }
        assert!(!test.get_as(&reader, "/secrets").await.text.contains(VALUE), "a list shows no values");
        assert_eq!(test.get("/secrets/crm_key/reads").await.expect(200)["count"], 0);
        let shown = test.get_as(&reader, "/secrets/crm_key").await.expect(200);
        assert_eq!(shown["data"], json!({"secret": {"format": "text", "content": VALUE}}));
        let reads = test.get("/secrets/crm_key/reads").await.expect(200);
        assert_eq!((&reads["count"], &reads["reads"][0]["purpose"], &reads["reads"][0]["key_name"]), (&json!(1), &json!("value"), &json!("test")));

        let replaced = json!({"secret": {"kind": "custom_secret", "data": {"secret": {"format": "text", "content": "another"}}}});
        let changed = put(test, "/secrets/crm_key", replaced).await.expect(200);
        assert_eq!((&changed["header"]["description"], &changed["hosts"]), (&json!("for the CRM"), &json!(["crm.example.com"])), "what is left out stays");
        assert_eq!(test.get_as(&reader, "/secrets/crm_key").await.expect(200)["data"]["secret"]["content"], "another");
        put(test, "/secrets/crm_key", json!({"hosts": []})).await.expect(200);
        assert_eq!(test.get_as(&reader, "/secrets/crm_key").await.expect(200)["data"]["secret"]["content"], "another");

        let row = test.yard.db.optional("select value from secrets", store::args![]).await.unwrap().unwrap();
        assert!(!row.get::<Vec<u8>>("value").unwrap().windows(7).any(|bytes| bytes == b"another"), "it is sealed");
        test.delete("/secrets/crm_key").await.expect(204);
        test.delete("/secrets/crm_key").await.expect(404);
        test.get_as(&reader, "/secrets/crm_key").await.expect(404);
    }

    async fn no_role_reads_values(test: &Test) {
        test.post("/secrets", given("a", VALUE, &json!([]))).await.expect(200);
        for role in Role::ALL {
            let key = test.key("default", role, None).await;
            let reply = test.get_as(&key, "/secrets/a").await;
            assert!(reply.status == 200 && !reply.text.contains(VALUE), "{role}: {}", reply.text);
        }
        let viewer = test.key("default", Role::Viewer, None).await;
        assert!(test.post_as(&viewer, "/secrets", given("b", "x", &json!([]))).await.detail(403).contains("edit_secrets"));
        let blind = test.key("default", Role::Owner, Some(vec![Permission::ReadSecrets])).await;
        assert!(test.get_as(&blind, "/secrets/a").await.detail(403).contains("view_secrets"));
    }

    async fn what_cannot_be_kept_says_why(test: &Test) {
        test.post("/secrets", given("crm_key", VALUE, &json!([]))).await.expect(200);
        let json_value = json!({"slug": "j", "secret": {"kind": "custom_secret", "data": {"secret": {"format": "json", "content": "{}"}}}});
        let provider = json!({"slug": "p", "secret": {"kind": "provider_key", "data": {"secret": {"format": "text", "content": "x"}}}});
        let mut open = given("o", "x", &json!([]));
        open["write_only"] = json!(false);
        for (body, status, words) in [
            (given("crm_key", "x", &json!([])), 409, "already exists"),
            (given("a.b", "x", &json!([])), 422, "'slug' must not contain dots"),
            (given("", "x", &json!([])), 422, "'slug' must be URL-safe"),
            (given("a", "", &json!([])), 422, "the value is empty"),
            (given("a", &"x".repeat(40_000), &json!([])), 422, "more than 32768 bytes"),
            (given("a", "x", &json!(["https://x"])), 422, "is not a host"),
            (json_value, 422, "format `text`"),
            (provider, 422, "kind `custom_secret`"),
            (open, 422, "write-only"),
            (json!({"slug": "x"}), 422, "secret"),
        ] {
            let said = test.post("/secrets", body.clone()).await.expect(status);
            assert!(said["detail"].to_string().contains(words), "{body}: {said}");
        }
        assert!(test.get("/secrets/crm_kye").await.detail(404).contains("Did you mean `crm_key`?"));
        let named = json!({"header": {"name": "My CRM key"}, "secret": given("", "x", &json!([]))["secret"]});
        assert_eq!(test.post("/secrets", named).await.expect(200)["slug"], "My-CRM-key");
        let other = test.key("elsewhere", Role::Owner, None).await;
        test.get_as(&other, "/secrets/crm_key").await.expect(404);
        assert_eq!(test.get_as(&other, "/secrets").await.expect(200), json!([]));
    }

    async fn code_tools_get_values_for_readers_only(test: &Test) {
        test.post("/secrets", given("crm_key", VALUE, &json!([]))).await.expect(200);
        let tool = |secrets: Value| json!({"tools": [{"type": "code", "name": "sum", "script": "1", "secrets": secrets}]});
        assert!(test.post("/tools/specs", tool(json!(["crm_key"]))).await.detail(403).contains("`read_secrets`"));
        test.post("/tools/specs", tool(json!([]))).await.expect(200);
        let reader = reader(test).await;
        let specs = test.post_as(&reader, "/tools/specs", tool(json!(["crm_key"]))).await.expect(200);
        assert_eq!(specs["customTools"][0]["env"], json!({"crm_key": VALUE}));
        assert_eq!(test.get("/secrets/crm_key/reads").await.expect(200)["reads"][0]["purpose"], "code_tool");
        let missing = test.post_as(&reader, "/tools/specs", tool(json!(["crm_ky"]))).await.expect(422);
        assert_eq!(missing["code"], "tool_secrets_missing");
        assert!(missing["detail"].as_str().unwrap().contains("Tool `sum`: Secret not found: crm_ky. Did you mean `crm_key`?"), "{missing}");
    }

    async fn headers_of_workflows_carry_secrets_to_their_hosts_only(test: &Test) {
        let fake = Fake::start().await;
        test.post("/secrets", given("crm_key", VALUE, &host(&fake))).await.expect(200);
        let data = |header: &str| json!({"kind": "http", "url": format!("{}/echo/crm", fake.url), "headers": {"X-Key": header}});
        workflow(test, "crm", data("Bearer {{ secrets.crm_key }}")).await;
        let run = test.post("/workflows/invoke", json!({"references": {"workflow": {"slug": "crm"}}})).await;
        assert_eq!(run.status, 200, "{}", run.text);
        let seen = fake.seen_at("/echo/crm");
        assert_eq!(seen[0]["headers"]["x-key"], format!("Bearer {VALUE}"));
        assert!(!run.text.contains(VALUE), "the service repeats what it was sent: {}", run.text);
        let id = run.json()["meta"]["run_id"].as_str().unwrap().to_owned();
        assert!(!test.get(&format!("/workflows/runs/{id}")).await.text.contains(VALUE));
        assert!(!seen[0]["body"].to_string().contains(VALUE), "the body holds the reference, not the value");

        for (header, words) in [
            ("{{secrets.crm_kye}}", "Secret not found: crm_kye. Did you mean `crm_key`?"),
            ("{{secrets}}", "names no secret"),
            ("{{secrets.a", "is not closed"),
        ] {
            let body = json!({"workflow": {"slug": "wrong", "data": data(header)}});
            let detail = test.post("/simple/workflows", body).await.detail(422);
            assert!(detail.contains("`data.headers.X-Key`") && detail.contains(words), "{detail}");
        }
        let elsewhere = json!({"kind": "http", "url": "https://evil.example/", "headers": {"X-Key": "{{secrets.crm_key}}"}});
        let detail = test.post("/simple/workflows", json!({"workflow": {"slug": "evil", "data": elsewhere}})).await.detail(422);
        assert!(detail.contains("`crm_key` may not be sent to `evil.example`"), "{detail}");

        // What was true when it was saved may not be when it runs.
        put(test, "/secrets/crm_key", json!({"hosts": ["crm.example.com"]})).await.expect(200);
        let run = test.post("/workflows/invoke", json!({"references": {"workflow": {"slug": "crm"}}})).await;
        assert!(run.status == 400 && run.text.contains("may not be sent to"), "{}", run.text);
        test.delete("/secrets/crm_key").await.expect(204);
        let run = test.post("/workflows/invoke", json!({"references": {"workflow": {"slug": "crm"}}})).await;
        assert!(run.status == 400 && run.text.contains("Secret not found: crm_key"), "{}", run.text);
        assert_eq!(fake.seen_at("/echo/crm").len(), seen.len());
    }

    async fn a_new_sealing_key_opens_what_was_sealed_before(test: &Test) {
        test.post("/secrets", given("crm_key", VALUE, &json!([]))).await.expect(200);
        let ring = kernel::seal::KeyRing::parse(&std::fs::read_to_string(test.yard.config.data_dir.join("sealing.key")).unwrap()).unwrap();
        let sealer = kernel::seal::Sealer::new(ring.with_new_key());
        assert_eq!(secrets::reseal(&test.yard.db, &sealer).await.unwrap(), 1);
        assert_eq!(secrets::reseal(&test.yard.db, &sealer).await.unwrap(), 0);
    }
}
