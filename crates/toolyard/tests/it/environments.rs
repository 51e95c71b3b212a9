//! `/environments`: what is deployed where.

use serde_json::{Value, json};

use crate::support::{Database, Reply, Test, on_both};

async fn workflow(test: &Test, slug: &str) -> Value {
    let data = json!({"kind": "echo", "parameters": {"number": 1}});
    test.post("/simple/workflows/", json!({"workflow": {"slug": slug, "data": data}})).await.expect(200)["workflow"].take()
}

async fn deploy(test: &Test, slug: &str, environment: &str, version: Option<&str>) -> Reply {
    let mut body = json!({"workflow_ref": {"slug": slug}, "environment_ref": {"slug": environment}});
    if let Some(version) = version {
        body["workflow_revision_ref"] = json!({"version": version});
    }
    test.post("/workflows/revisions/deploy", body).await
}

async fn deployed(test: &Test, slug: &str, environment: &str) -> Reply {
    test.post("/workflows/revisions/retrieve", json!({"workflow_ref": {"slug": slug}, "environment_ref": {"slug": environment}})).await
}

on_both! {
    async fn every_project_begins_with_three(test: &Test) {
        let found = test.post("/environments/query", json!({})).await.expect(200);
        let slugs: Vec<&str> = found["environments"].as_array().unwrap().iter().map(|row| row["slug"].as_str().unwrap()).collect();
        assert_eq!(slugs, ["production", "staging", "development"]);
        assert!(found["environments"].as_array().unwrap().iter().all(|row| row["flags"] == json!({"is_guarded": false})));
        assert_eq!(test.post("/environments/variants/query", json!({})).await.expect(200)["count"], 3);
        let staging = test.post("/environments/revisions/retrieve", json!({"environment_ref": {"slug": "staging"}})).await.expect(200);
        assert_eq!(staging["environment_revision"]["version"], "0");
        assert_eq!(staging["retrieval_info"]["references"]["environment"]["slug"], "staging");
        let made = test.post("/simple/environments/", json!({"environment": {"slug": "canary"}})).await.expect(200)["environment"].take();
        assert_eq!((&made["slug"], &made["version"], &made["flags"]), (&json!("canary"), &json!("0"), &json!({"is_guarded": false})));
        test.post("/environments/", json!({"environment": {"slug": "staging"}})).await.expect(409);
        test.post("/environments/", json!({"environment": {"slug": "a.b"}})).await.expect(422);
        let by_ref = test.post("/environments/query", json!({"environment_refs": [{"slug": "canary"}]})).await.expect(200);
        assert_eq!(by_ref["environments"][0]["id"], made["id"]);
    }

    async fn what_is_deployed_is_found_by_slug_and_by_key(test: &Test) {
        workflow(test, "app").await;
        let first = deploy(test, "app", "staging", None).await.expect(200);
        assert_eq!((&first["status"], &first["workflow_revision"]["version"]), (&json!("committed"), &json!("1")));
        let group = &first["environment_revision"]["data"]["references"]["app.revision"];
        assert_eq!((&group["workflow"]["slug"], &group["workflow_revision"]["version"]), (&json!("app"), &json!("1")));
        assert_eq!(deploy(test, "app", "staging", Some("1")).await.expect(200)["status"], "no_change");

        let found = deployed(test, "app", "staging").await.expect(200);
        assert_eq!((&found["workflow_revision"]["version"], &found["retrieval_info"]["selector"]["key"]), (&json!("1"), &json!("app.revision")));
        let by_key = json!({"environment_ref": {"slug": "staging"}, "key": "app.revision"});
        assert_eq!(test.post("/workflows/revisions/retrieve", by_key).await.expect(200), found);
        let detail = deployed(test, "app", "production").await.detail(404);
        assert_eq!(detail, "'app' is not deployed to 'production'.");
        deployed(test, "app", "nowhere").await.expect(404);
        test.post("/workflows/revisions/retrieve", json!({"environment_ref": {"slug": "staging"}})).await.expect(400);
        test.post("/workflows/revisions/retrieve", json!({"environment_ref": {"slug": "nowhere"}})).await.expect(400);
        deploy(test, "nobody", "staging", None).await.expect(404);
        deploy(test, "app", "nowhere", None).await.expect(404);
        deploy(test, "app", "staging", Some("7")).await.expect(404);
        test.post("/workflows/revisions/deploy", json!({"workflow_ref": {"slug": "app"}})).await.expect(400);

        assert_eq!(deploy(test, "app", "staging", Some("0")).await.expect(200)["environment_revision"]["version"], "2");
        assert_eq!(deployed(test, "app", "staging").await.expect(200)["workflow_revision"]["version"], "0");
        let named = json!({"workflow_ref": {"slug": "app"}, "environment_ref": {"slug": "production"}, "key": "main", "message": "ship it"});
        assert_eq!(test.post("/workflows/revisions/deploy", named).await.expect(200)["environment_revision"]["message"], "ship it");
        let by_name = json!({"environment_ref": {"slug": "production"}, "key": "main"});
        assert_eq!(test.post("/workflows/revisions/retrieve", by_name).await.expect(200)["workflow_revision"]["version"], "1");
    }

    async fn what_was_removed_stays_removed(test: &Test) {
        workflow(test, "a").await;
        workflow(test, "b").await;
        let line = deploy(test, "a", "staging", None).await.expect(200)["environment_revision"]["environment_variant_id"].take();
        let commit = |delta: Value| test.post("/environments/revisions/commit", json!({"environment_revision": {"environment_variant_id": line, "delta": delta}}));
        let removed = commit(json!({"remove": ["a.revision"]})).await.expect(200);
        assert_eq!(removed["environment_revision"]["data"], json!({"references": {}}));
        deployed(test, "a", "staging").await.expect(404);
        commit(json!({"remove": ["a.revision"]})).await.expect(422);
        deploy(test, "b", "staging", None).await.expect(200);
        deployed(test, "a", "staging").await.expect(404);
        deployed(test, "b", "staging").await.expect(200);
        commit(json!({"set": {"c": {"workflow": "b"}}})).await.expect(422);
        commit(json!({"set": {"c": {"note": {}}}})).await.expect(422);
        commit(json!({"set": {"c": {"application": {"slug": "b"}}}})).await.expect(200);
        let found = json!({"environment_ref": {"slug": "staging"}, "key": "c"});
        assert_eq!(test.post("/workflows/revisions/retrieve", found).await.expect(200)["workflow_revision"]["slug"], "b-1", "an older name of workflows leads there too");
        let log = test.post("/environments/revisions/log", json!({"environment_revision": {"environment_variant_id": line}})).await.expect(200);
        let versions: Vec<&str> = log["environment_revisions"].as_array().unwrap().iter().map(|row| row["version"].as_str().unwrap()).collect();
        assert_eq!(versions, ["4", "3", "2", "1", "0"]);
    }

    async fn a_guarded_environment_stays_as_it_is(test: &Test) {
        workflow(test, "app").await;
        let found = test.post("/environments/query", json!({"environment": {"slug": "production"}})).await.expect(200);
        let id = found["environments"][0]["id"].as_str().unwrap();
        let guarded = test.post(&format!("/simple/environments/{id}/guard"), json!({})).await.expect(200);
        assert_eq!(guarded["environment"]["flags"]["is_guarded"], true);
        let refused = deploy(test, "app", "production", None).await.expect(409);
        assert_eq!(refused["detail"]["conflict"], json!({"code": "environment_guarded", "slug": "production"}));
        deployed(test, "app", "production").await.expect(404);
        let parts = test.post("/environments/revisions/query", json!({"environment_refs": [{"slug": "production"}]})).await.expect(200);
        let revision = &parts["environment_revisions"][0];
        for path in [
            format!("/environments/{id}"),
            format!("/environments/variants/{}", revision["environment_variant_id"].as_str().unwrap()),
            format!("/environments/revisions/{}", revision["id"].as_str().unwrap()),
        ] {
            test.post(&format!("{path}/archive"), json!({})).await.expect(409);
            test.post(&format!("{path}/unarchive"), json!({})).await.expect(409);
        }
        test.post(&format!("/simple/environments/{id}/unguard"), json!({})).await.expect(200);
        deploy(test, "app", "production", None).await.expect(200);
        test.post(&format!("/environments/{id}/archive"), json!({})).await.expect(200);
        deploy(test, "app", "production", None).await.expect(404);
    }

    async fn what_stands_beside_an_environment_must_be_deployed_there(test: &Test) {
        let made = workflow(test, "app").await;
        let other = workflow(test, "other").await;
        deploy(test, "app", "staging", None).await.expect(200);
        let retrieve = |workflow: Value| {
            let mut body = json!({"environment_ref": {"slug": "staging"}});
            body.as_object_mut().unwrap().extend(workflow.as_object().unwrap().clone());
            test.post("/workflows/revisions/retrieve", body)
        };
        for fine in [
            json!({"workflow_ref": {"id": made["id"]}}),
            json!({"workflow_ref": {"slug": "app", "id": made["id"], "version": "1"}}),
            json!({"workflow_variant_ref": {"slug": "app"}, "key": "app.revision"}),
            json!({"workflow_ref": {"slug": "app"}, "workflow_revision_ref": {"id": made["revision_id"], "version": "1"}}),
            json!({"key": "app.revision", "workflow_ref": {"slug": "app"}}),
        ] {
            assert_eq!(retrieve(fine.clone()).await.expect(200)["workflow_revision"]["id"], made["revision_id"], "{fine}");
        }
        for wrong in [
            json!({"workflow_variant_ref": {"slug": "app"}}),
            json!({"workflow_ref": {"slug": "app"}, "workflow_revision_ref": {"version": "0"}}),
            json!({"workflow_ref": {"slug": "app", "version": "0"}}),
            json!({"workflow_ref": {"slug": "app"}, "workflow_revision_ref": {"id": other["revision_id"]}}),
            json!({"workflow_ref": {"slug": "app"}, "workflow_variant_ref": {"slug": "other"}}),
            json!({"workflow_ref": {"slug": "app", "id": other["id"]}}),
            json!({"key": "app.revision", "workflow_ref": {"slug": "other"}}),
        ] {
            retrieve(wrong.clone()).await.expect(400);
        }
        retrieve(json!({"workflow_ref": {"id": other["id"]}})).await.expect(404);
    }

    async fn a_pin_and_a_deployment_each_run_their_own(test: &Test) {
        let made = workflow(test, "app").await;
        let schema = |kind: &str| json!({"kind": "echo", "schemas": {"inputs": {"type": "object", "properties": {"x": {"type": kind}}}}});
        let commit = |data: Value| test.post("/workflows/revisions/commit", json!({"workflow_revision": {"workflow_variant_id": made["variant_id"], "data": data}}));
        commit(schema("string")).await.expect(200);
        commit(schema("integer")).await.expect(200);
        deploy(test, "app", "staging", Some("3")).await.expect(200);
        commit(json!({"kind": "echo"})).await.expect(200);
        let run = |references: Value, x: Value| test.post("/workflows/invoke", json!({"references": references, "data": {"inputs": {"x": x}}}));
        let pinned = json!({"workflow": {"slug": "app"}, "workflow_revision": {"version": "2"}});
        let staged = json!({"workflow": {"slug": "app"}, "environment": {"slug": "staging"}});
        for (references, good, bad, version) in [(pinned, json!("a"), json!(1), "2"), (staged, json!(1), json!("a"), "3")] {
            let fine = run(references.clone(), good).await.expect(200);
            assert_eq!(fine["references"]["workflow_revision"]["version"], version);
            assert_eq!(run(references, bad).await.expect(400)["references"]["workflow_revision"]["version"], version);
        }
        assert_eq!(run(json!({"workflow": {"slug": "app"}}), json!([])).await.expect(200)["references"]["workflow_revision"]["version"], "4");
        assert_eq!(run(json!({"workflow": {"slug": "app", "version": "2"}}), json!("a")).await.expect(200)["references"]["workflow_revision"]["version"], "2");
        run(json!({"workflow": {"slug": "app", "version": "9"}}), json!("a")).await.expect(404);
        run(json!({"workflow": {"slug": "app"}, "environment": {"slug": "production"}}), json!("a")).await.expect(404);
    }
}
