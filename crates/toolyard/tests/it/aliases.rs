//! `/applications`, `/evaluators` and `/simple/…`: workflows under other names, and everything in one request.

use http::Method;
use serde_json::{Value, json};

use crate::support::{Database, Reply, Test, on_both};

async fn put(test: &Test, path: &str, body: Value) -> Reply {
    test.request(Method::PUT, path, Some(format!("ApiKey {}", test.owner)), Some(body)).await
}

const FAMILIES: [(&str, &str); 4] =
    [("workflow", "workflows"), ("application", "applications"), ("evaluator", "evaluators"), ("environment", "environments")];

on_both! {
    async fn simple_rows_are_made_read_changed_and_archived(test: &Test) {
        for (one, many) in FAMILIES {
            let root = format!("/simple/{many}");
            let (first, second) = if one == "environment" {
                (json!({"references": {"a": {}}}), json!({"references": {"b": {}}}))
            } else {
                (json!({"schemas": {"outputs": {"type": "object", "properties": {"score": {"type": "number"}}}}}), json!({"uri": "agenta:builtin:chat:v0"}))
            };
            let body = json!({one: {"slug": format!("{one}-s"), "name": "S", "tags": {"k": one}, "data": first}});
            let made = test.post(&root, body.clone()).await.expect(200)[one].take();
            assert_eq!((&made["data"], &made["version"]), (&first, &json!("1")));
            test.post(&root, body).await.expect(409);
            let at = format!("{root}/{}", made["id"].as_str().unwrap());
            assert_eq!(test.get(&at).await.expect(200)[one], made);

            let words = put(test, &at, json!({one: {"id": made["id"], "name": "T", "description": "d"}})).await.expect(200)[one].take();
            assert_eq!((&words["name"], &words["description"], &words["data"]), (&json!("T"), &json!("d"), &first), "an edit without data keeps it");
            assert_eq!(words["revision_id"], made["revision_id"]);
            let changed = put(test, &at, json!({one: {"id": made["id"], "data": second}})).await.expect(200)[one].take();
            assert_eq!((&changed["data"], &changed["version"], &changed["name"]), (&second, &json!("2"), &json!("T")));
            if one != "environment" {
                assert_eq!((&changed["flags"]["is_chat"], &changed["flags"]["is_application"]), (&json!(true), &json!(one == "application")));
            }
            put(test, &at, json!({one: {"id": uuid::Uuid::now_v7(), "name": "x"}})).await.expect(400);
            put(test, &at, json!({one: {"name": "Lost?", "data": {"nope": 1}}})).await.expect(422);
            assert_eq!(test.get(&at).await.expect(200)[one]["name"], "T", "what is refused changes nothing");

            let archived = test.post(&format!("{at}/archive"), json!({})).await.expect(200)[one].take();
            assert!(archived["deleted_at"].is_string());
            put(test, &at, json!({one: {"name": "x"}})).await.expect(404);
            let query = |body: Value| test.post(format!("{root}/query").leak(), body);
            let listed = |answer: Value| {
                assert_eq!(answer["count"], answer[many].as_array().unwrap().len());
                answer[many].as_array().unwrap().clone()
            };
            let by_ref = json!({format!("{one}_refs"): [{"slug": format!("{one}-s"), "version": 1}]});
            assert_eq!(listed(query(by_ref.clone()).await.expect(200)).len(), 0);
            let mut with_archived = by_ref.clone();
            with_archived["include_archived"] = json!(true);
            assert_eq!(listed(query(with_archived).await.expect(200))[0]["data"], second, "rows are complete, archived ones too");
            let back = test.post(&format!("{at}/unarchive"), json!({})).await.expect(200)[one].take();
            assert_eq!(back.get("deleted_at"), None);
            for filter in [json!({one: {"slug": format!("{one}-s")}}), json!({one: {"tags": {"k": one}}}), by_ref, json!({one: {"slug": format!("{one}-s"), "name": "t"}})] {
                let found = listed(query(filter.clone()).await.expect(200));
                assert_eq!((found.len(), &found[0]), (1, &back), "{filter}");
            }
            if one != "environment" {
                let flags = back["flags"].clone();
                assert_eq!(listed(query(json!({one: {"flags": flags}})).await.expect(200)).len(), 1, "by the flags of a row");
                assert_eq!(listed(query(json!({one: {"flags": {"is_chat": false}}})).await.expect(200)).len(), 0);
            }
            assert!(!listed(query(json!({})).await.expect(200)).is_empty());
            test.get(&format!("{root}/{}", uuid::Uuid::now_v7())).await.expect(404);
        }
    }

    async fn simple_rows_are_paged_to_the_end(test: &Test) {
        for number in 0..5 {
            test.post("/simple/evaluators/", json!({"evaluator": {"slug": format!("e{number}"), "data": {"parameters": {"n": number}}}})).await.expect(200);
        }
        let bare = test.post("/evaluators/", json!({"evaluator": {"slug": "bare"}})).await.expect(200)["evaluator"].take();
        let (mut seen, mut next) = (Vec::new(), Value::Null);
        loop {
            let page = test.post("/simple/evaluators/query", json!({"windowing": {"limit": 2, "next": next}})).await.expect(200);
            seen.extend(page["evaluators"].as_array().unwrap().iter().map(|row| (row["slug"].clone(), row["data"]["parameters"]["n"].clone())));
            next = page["windowing"]["next"].clone();
            if next.is_null() {
                break;
            }
        }
        let expected: Vec<_> = std::iter::once((json!("bare"), Value::Null)).chain((0..5).rev().map(|number| (json!(format!("e{number}")), json!(number)))).collect();
        assert_eq!(seen, expected);
        let path = format!("/simple/evaluators/{}", bare["id"].as_str().unwrap());
        let filled = put(test, &path, json!({"evaluator": {"data": {"parameters": {}}}})).await.expect(200)["evaluator"].take();
        assert_eq!(filled["version"], "0", "what has no variant is given one: {filled:#}");
    }

    async fn an_alias_writes_its_role_and_lists_only_it(test: &Test) {
        let application = test.post("/applications/", json!({"application": {"slug": "app", "flags": {"is_application": false}}})).await.expect(200)["application"].take();
        assert_eq!(application["flags"], json!({"is_application": true, "is_evaluator": false, "is_snippet": false}));
        let evaluator = test.post("/simple/evaluators/", json!({"evaluator": {"slug": "eval", "data": {"parameters": {}}}})).await.expect(200)["evaluator"].take();
        let plain = test.post("/simple/workflows/", json!({"workflow": {"slug": "plain", "data": {"parameters": {"p": 1}}}})).await.expect(200)["workflow"].take();
        let variant = test.post("/applications/variants/", json!({"application_variant": {"application_id": application["id"], "slug": "app-v", "tags": {"t": 1}}})).await.expect(200)["application_variant"].take();
        assert_eq!((&variant["application_slug"], &variant["flags"]["is_application"]), (&json!("app"), &json!(true)));
        let commit = |data: Value| test.post("/applications/revisions/commit", json!({"application_revision": {"application_id": application["id"], "application_variant_id": variant["id"], "data": data}}));
        for version in ["0", "1"] {
            let revision = commit(json!({"parameters": {}})).await.expect(200);
            assert_eq!((&revision["status"], &revision["application_revision"]["version"]), (&json!("committed"), &json!(version)), "an alias never says no_change");
            let by_slug = test.post("/applications/revisions/query", json!({"application_revision": {"slug": revision["application_revision"]["slug"]}})).await.expect(200);
            assert_eq!(by_slug["count"], 1);
        }
        let detail = commit(json!({"sneaky": 1})).await.detail(422);
        assert!(detail.contains("sneaky"), "{detail}");
        let log = test.post("/applications/revisions/log", json!({"application_revisions": {"application_id": application["id"], "application_variant_id": variant["id"]}})).await.expect(200);
        assert_eq!(log["count"], 2);

        for (path, rows, expected) in [
            ("/applications/query", "applications", 1),
            ("/applications/variants/query", "application_variants", 1),
            ("/applications/revisions/query", "application_revisions", 2),
            ("/simple/applications/query", "applications", 1),
            ("/evaluators/query", "evaluators", 1),
            ("/evaluators/variants/query", "evaluator_variants", 1),
            ("/evaluators/revisions/query", "evaluator_revisions", 2),
            ("/workflows/query", "workflows", 3),
        ] {
            let found = test.post(path, json!({})).await.expect(200);
            assert_eq!((&found["count"], found[rows].as_array().unwrap().len()), (&json!(expected), expected), "{path}");
        }
        let tagged = json!({"application_refs": [{"slug": "app"}], "application_variant": {"tags": {"t": 1}}});
        assert_eq!(test.post("/applications/variants/query", tagged).await.expect(200)["count"], 1);
        // Reading does not look at roles.
        for (root, one) in [("/applications", "application"), ("/evaluators", "evaluator")] {
            let found = test.post(&format!("{root}/revisions/resolve"), json!({format!("{one}_ref"): {"slug": "plain"}})).await.expect(200);
            assert_eq!(found[format!("{one}_revision")]["data"]["parameters"]["p"], 1);
            assert_eq!(found["retrieval_info"]["references"][one]["slug"], "plain");
            let read = test.get(&format!("{root}/{}", plain["id"].as_str().unwrap())).await.expect(200);
            assert_eq!(read[one]["slug"], "plain");
        }
        let edited = put(test, &format!("/evaluators/{}", plain["id"].as_str().unwrap()), json!({"evaluator": {"name": "N"}})).await.expect(200);
        assert_eq!(edited["evaluator"]["flags"]["is_evaluator"], true, "editing through a name gives the role");
        assert_eq!(test.get(&format!("/workflows/{}", evaluator["id"].as_str().unwrap())).await.expect(200)["workflow"]["flags"]["is_evaluator"], true);

        let deploy = json!({"application_ref": {"slug": "app"}, "application_variant_ref": {"slug": "app-v"}, "application_revision_ref": {"version": 0}, "environment_ref": {"slug": "production"}});
        let deployed = test.post("/applications/revisions/deploy", deploy).await.expect(200);
        assert_eq!((&deployed["count"], &deployed["application_revision"]["version"]), (&json!(1), &json!("0")));
        let run = test.post("/workflows/revisions/retrieve", json!({"environment_ref": {"slug": "production"}, "workflow_ref": {"slug": "app"}})).await.expect(200);
        assert_eq!((&run["workflow_revision"]["id"], run["retrieval_info"]["references"]["workflow"].is_object()), (&deployed["application_revision"]["id"], true));
    }

    async fn a_guard_is_seen_and_filtered_by(test: &Test) {
        let made = test.post("/simple/environments/", json!({"environment": {"slug": "vault"}})).await.expect(200)["environment"].take();
        let at = format!("/simple/environments/{}", made["id"].as_str().unwrap());
        assert_eq!(test.post(&format!("{at}/guard"), json!({})).await.expect(200)["environment"]["flags"]["is_guarded"], true);
        put(test, &at, json!({"environment": {"data": {"references": {}}}})).await.expect(409);
        for path in ["/environments/query", "/simple/environments/query"] {
            let found = test.post(path, json!({"environment": {"flags": {"is_guarded": true}}})).await.expect(200);
            assert_eq!(found["environments"].as_array().unwrap().iter().map(|row| row["slug"].as_str().unwrap()).collect::<Vec<_>>(), ["vault"], "{path}");
        }
        test.post(&format!("{at}/unguard"), json!({})).await.expect(200);
    }
}
