//! `/workflows`: histories and embeds.

use futures_util::future::join_all;
use http::Method;
use kernel::Role;
use serde_json::{Value, json};

use crate::support::{Database, Fake, Reply, Test, on_both, repository};

async fn put(test: &Test, path: &str, body: Value) -> Reply {
    test.request(Method::PUT, path, Some(format!("ApiKey {}", test.owner)), Some(body)).await
}

async fn commit(test: &Test, variant: &Value, fields: Value) -> Reply {
    let mut revision = json!({"workflow_variant_id": variant});
    revision.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    test.post("/workflows/revisions/commit", json!({"workflow_revision": revision})).await
}

/// A workflow with data; the simple answer.
async fn simple(test: &Test, slug: &str, data: Value) -> Value {
    test.post("/simple/workflows/", json!({"workflow": {"slug": slug, "data": data}})).await.expect(200)["workflow"].take()
}

fn versions(answer: &Value) -> Vec<&str> {
    answer["workflow_revisions"].as_array().unwrap().iter().map(|revision| revision["version"].as_str().unwrap()).collect()
}

fn slugs<'a>(answer: &'a Value, rows: &str) -> Vec<&'a str> {
    answer[rows].as_array().unwrap().iter().map(|row| row["slug"].as_str().unwrap()).collect()
}

/// An embed of a part of a workflow's data.
fn embed(slug: &str, path: &str) -> Value {
    json!({"@ag.embed": {"@ag.references": {"workflow": {"slug": slug}}, "@ag.selector": {"path": path}}})
}

async fn resolve(test: &Test, data: Value) -> Reply {
    test.post("/workflows/revisions/resolve", json!({"workflow_revision": {"data": data}})).await
}

on_both! {
    async fn a_history_is_made_read_forked_and_archived(test: &Test) {
        let body = json!({"workflow": {"slug": "greeter", "name": "Greeter", "flags": {"is_chat": true, "is_snippet": true}, "tags": ["a"], "meta": {"team": "red"}, "folder_id": null}});
        let made = test.post("/workflows/", body).await.expect(200);
        let workflow = made["workflow"].clone();
        assert_eq!((&made["count"], &workflow["flags"], &workflow["meta"]), (&json!(1), &json!({"is_application": false, "is_evaluator": false, "is_snippet": true}), &json!({"team": "red"})));
        assert!(workflow.get("description").is_none() && workflow.get("deleted_at").is_none() && workflow["created_by_id"].is_string(), "{workflow}");
        let id = workflow["id"].as_str().unwrap();
        assert_eq!(test.get(&format!("/api/workflows/{id}")).await.expect(200), made);
        let variant = test.post("/preview/workflows/variants/", json!({"workflow_variant": {"workflow_id": id, "slug": "greeter-main"}})).await.expect(200);
        assert_eq!(variant["workflow_variant"]["workflow_id"], id);
        let line = variant["workflow_variant"]["id"].clone();
        assert_eq!(test.get(&format!("/workflows/variants/{}", line.as_str().unwrap())).await.expect(200), variant);

        let first = commit(test, &line, json!({})).await.expect(200);
        assert_eq!((&first["status"], &first["workflow_revision"]["version"]), (&json!("committed"), &json!("0")));
        assert!(first["workflow_revision"].get("data").is_none());
        let second = commit(test, &line, json!({"data": {"kind": "echo"}, "message": "it speaks"})).await.expect(200)["workflow_revision"].take();
        assert_eq!((&second["version"], &second["slug"], &second["message"]), (&json!("1"), &json!("greeter-main-1"), &json!("it speaks")));
        assert_eq!((&second["workflow_id"], &second["workflow_variant_id"], &second["data"]), (&workflow["id"], &line, &json!({"kind": "echo"})));
        let path = format!("/workflows/revisions/{}", second["id"].as_str().unwrap());
        assert_eq!(test.get(&path).await.expect(200)["workflow_revision"], second);

        commit(test, &line, json!({"data": {"kind": "echo", "timeout_ms": 5}})).await.expect(200);
        let log = |body: Value| test.post("/workflows/revisions/log", body);
        assert_eq!(versions(&log(json!({"workflow_revision": {"workflow_variant_id": line}})).await.expect(200)), ["2", "1", "0"]);
        assert_eq!(versions(&log(json!({"workflow_revisions": {"workflow_id": id, "depth": 2}})).await.expect(200)), ["2", "1"]);
        assert_eq!(versions(&log(json!({"workflow_revision": {"workflow_revision_id": second["id"]}})).await.expect(200)), ["1", "0"]);
        log(json!({"workflow_revision": {}})).await.expect(400);

        let retrieve = |body: Value| test.post("/workflows/revisions/retrieve", body);
        let newest = retrieve(json!({"workflow_ref": {"slug": "greeter"}})).await.expect(200);
        assert_eq!(newest["workflow_revision"]["version"], "2");
        assert_eq!(newest["retrieval_info"]["references"]["workflow_variant"], json!({"id": line, "slug": "greeter-main"}));
        for pinned in [
            json!({"workflow_ref": {"slug": "greeter"}, "workflow_revision_ref": {"version": "1"}}),
            json!({"workflow_ref": {"id": id}, "workflow_revision_ref": {"version": 1}}),
            json!({"workflow_variant_ref": {"slug": "greeter-main"}, "workflow_revision_ref": {"version": "v1"}}),
            json!({"workflow_revision_ref": {"id": second["id"]}}),
            json!({"workflow_revision_ref": {"slug": "greeter-main-1"}, "workflow_ref": {"slug": "greeter"}}),
            json!({"application_ref": {"slug": "greeter", "version": "1"}}),
        ] {
            assert_eq!(retrieve(pinned.clone()).await.expect(200)["workflow_revision"], second, "{pinned}");
        }
        for (body, status) in [
            (json!({}), 400),
            (json!({"workflow_revision_ref": {"version": "1"}}), 400),
            (json!({"workflow_ref": {"slug": "greeter"}, "application_ref": {"slug": "greeter"}}), 400),
            (json!({"workflow_revision_ref": {"id": second["id"], "version": "2"}}), 400),
            (json!({"workflow_ref": "greeter"}), 422),
            (json!({"workflow_revision_ref": {"id": second["id"]}, "workflow_ref": {"slug": "nobody"}}), 400),
        ] {
            let reply = retrieve(body.clone()).await;
            assert_eq!(reply.status.as_u16(), status, "{body}: {}", reply.text);
        }

        for nobody in [json!({"workflow_ref": {"slug": "nobody"}}), json!({"workflow_ref": {"slug": "greeter"}, "workflow_revision_ref": {"version": "9"}})] {
            assert_eq!(retrieve(nobody).await.expect(200), json!({"count": 0}));
        }

        let forked = test.post("/workflows/variants/fork", json!({"workflow_variant_ref": {"id": line}, "workflow_variant": {"slug": "greeter-try", "name": "Try"}})).await.expect(200);
        assert_eq!((&forked["workflow_variant"]["workflow_id"], &forked["workflow_variant"]["name"]), (&workflow["id"], &json!("Try")));
        assert_eq!(retrieve(json!({"workflow_ref": {"slug": "greeter"}})).await.expect(200), newest, "the oldest variant stays the default");

        let archived = test.post(&format!("/workflows/{id}/archive"), json!({})).await.expect(200);
        assert!(archived["workflow"]["deleted_at"].is_string());
        assert_eq!(retrieve(json!({"workflow_ref": {"slug": "greeter"}})).await.expect(200)["workflow_revision"]["version"], "2", "what is archived can be read");
        test.post("/workflows/invoke", json!({"references": {"workflow": {"slug": "greeter"}}})).await.expect(404);
        commit(test, &line, json!({"data": {}})).await.expect(400);
        assert_eq!(test.get(&format!("/workflows/{id}")).await.expect(200)["workflow"]["slug"], "greeter");
        assert_eq!(test.post("/workflows/query", json!({})).await.expect(200)["count"], 0);
        assert_eq!(test.post("/workflows/query", json!({"include_archived": true})).await.expect(200)["count"], 1);
        test.post(&format!("/workflows/{id}/unarchive"), json!({})).await.expect(200);
        assert_eq!(retrieve(json!({"workflow_ref": {"slug": "greeter"}})).await.expect(200), newest);
        let head = format!("/workflows/revisions/{}", newest["workflow_revision"]["id"].as_str().unwrap());
        test.post(&format!("{head}/archive"), json!({})).await.expect(200);
        assert_eq!(retrieve(json!({"workflow_ref": {"slug": "greeter"}})).await.expect(200)["workflow_revision"], second, "an archived revision is passed over");
        test.post(&format!("{head}/unarchive"), json!({})).await.expect(200);
        let main = format!("/workflows/variants/{}", line.as_str().unwrap());
        test.post(&format!("{main}/archive"), json!({})).await.expect(200);
        let detail = test.post("/workflows/invoke", json!({"references": {"workflow": {"slug": "greeter"}}})).await.detail(404);
        assert!(detail.contains("archived"), "a name does not lead to another line: {detail}");
        assert_eq!(retrieve(json!({"workflow_variant_ref": {"slug": "greeter-try"}})).await.expect(200)["workflow_revision"]["slug"], "greeter-try-2");
        test.post(&format!("{main}/unarchive"), json!({})).await.expect(200);
    }

    async fn words_change_and_lists_come_in_pages(test: &Test) {
        let mut ids = Vec::new();
        for slug in ["alpha", "beta", "gamma"] {
            ids.push(simple(test, slug, json!({"kind": "echo"})).await["id"].clone());
        }
        let path = format!("/workflows/{}", ids[0].as_str().unwrap());
        let changed = put(test, &path, json!({"workflow": {"id": ids[0], "name": "First", "description": "d"}})).await.expect(200);
        assert_eq!(changed["workflow"]["name"], "First");
        let changed = put(test, &path, json!({"workflow": {"meta": {"a": 1}}})).await.expect(200);
        assert_eq!((&changed["workflow"]["name"], &changed["workflow"]["meta"]), (&json!("First"), &json!({"a": 1})));
        put(test, &path, json!({"workflow": {"id": ids[1], "name": "x"}})).await.expect(400);
        put(test, &path, json!({"workflow": {"name": "  "}})).await.expect(422);
        put(test, "/workflows/nope", json!({"workflow": {"name": "x"}})).await.expect(422);

        let query = |body: Value| test.post("/workflows/query", body);
        let page = query(json!({"windowing": {"limit": 2}})).await.expect(200);
        assert_eq!(slugs(&page, "workflows"), ["gamma", "beta"]);
        let rest = query(json!({"windowing": {"limit": 2, "next": page["windowing"]["next"]}})).await.expect(200);
        assert_eq!((slugs(&rest, "workflows"), rest.get("windowing")), (vec!["alpha"], None));
        assert_eq!(slugs(&query(json!({"workflow": {"slug": "beta"}})).await.expect(200), "workflows"), ["beta"]);
        assert_eq!(slugs(&query(json!({"workflow": {"name": "FIRST"}})).await.expect(200), "workflows"), ["alpha"]);
        let named = query(json!({"workflow_refs": [{"slug": "alpha"}, {"id": ids[2]}, {"slug": "nobody"}, {"slug": "gamma"}]})).await.expect(200);
        assert_eq!(slugs(&named, "workflows"), ["gamma", "alpha"]);
        query(json!({"workflow_refs": [{}]})).await.expect(400);
        query(json!({"windowing": {"next": "x"}})).await.expect(422);

        let variants = test.post("/workflows/variants/query", json!({"workflow_refs": [{"slug": "alpha"}, {"slug": "beta"}]})).await.expect(200);
        assert_eq!(slugs(&variants, "workflow_variants"), ["beta", "alpha"]);
        let narrowed = json!({"workflow_refs": [{"slug": "alpha"}], "workflow_variant_refs": [{"slug": "alpha"}, {"slug": "beta"}]});
        assert_eq!(slugs(&test.post("/workflows/variants/query", narrowed).await.expect(200), "workflow_variants"), ["alpha"]);
        let revisions = |body: Value| test.post("/workflows/revisions/query", body);
        assert_eq!(slugs(&revisions(json!({"workflow_refs": [{"slug": "alpha"}]})).await.expect(200), "workflow_revisions"), ["alpha-1", "alpha-0"]);
        assert_eq!(slugs(&revisions(json!({"workflow_variant_refs": [{"slug": "beta"}], "windowing": {"limit": 1}})).await.expect(200), "workflow_revisions"), ["beta-1"]);
        assert_eq!(revisions(json!({"workflow_revision_refs": [{"slug": "gamma-1"}, {"slug": "gamma-7"}]})).await.expect(200)["count"], 1);
        assert_eq!(revisions(json!({"workflow_revision": {"workflow_id": ids[2]}})).await.expect(200)["count"], 2);
    }

    async fn a_commit_changes_what_it_says_or_nothing(test: &Test) {
        let made = simple(test, "w", json!({"kind": "echo", "parameters": {"model": "a", "old": {"x": 1, "y": 2}}})).await;
        let (line, base) = (&made["variant_id"], &made["revision_id"]);
        assert_eq!(made["version"], "1");
        let same = commit(test, line, json!({"data": {"kind": "echo", "parameters": {"model": "a", "old": {"x": 1, "y": 2}}}})).await.expect(200);
        assert_eq!((&same["status"], &same["workflow_revision"]["id"]), (&json!("no_change"), base));
        let delta = json!({"delta": {"set": {"parameters": {"model": "b", "new": [1]}}, "remove": ["parameters.old.x"]}, "base_revision_id": base});
        let updated = async || test.get(&format!("/workflows/{}", made["id"].as_str().unwrap())).await.expect(200)["workflow"]["updated_at"].take();
        let before = updated().await;
        test.clock.advance(std::time::Duration::from_mins(1));
        let changed = commit(test, line, delta.clone()).await.expect(200)["workflow_revision"].take();
        assert_eq!(changed["version"], "2");
        assert_eq!((updated().await == before, updated().await), (false, json!(test.clock.now().to_string())), "a version that is saved is a change");
        assert_eq!(changed["data"], json!({"kind": "echo", "parameters": {"model": "b", "old": {"y": 2}, "new": [1]}}));
        let conflict = commit(test, line, delta).await.expect(409);
        assert_eq!(conflict["detail"]["conflict"], json!({"code": "revision_conflict", "revision_id": changed["id"]}));
        for (fields, status, words) in [
            (json!({"data": {}, "delta": {"set": {}}}), 400, "not both"),
            (json!({}), 400, "has data already"),
            (json!({"delta": {"remove": ["nope"]}}), 422, "`nope` cannot be removed"),
            (json!({"delta": {"operations": []}}), 422, "operations"),
            (json!({"data": {"nope": 1}}), 422, "`data.nope` is not known"),
            (json!({"data": [1]}), 422, "must be an object"),
            (json!({"data": {"kind": "http"}}), 422, "needs `data.url`"),
            (json!({"data": {"kind": "http", "url": "file:///etc/passwd"}}), 422, "`data.url`"),
            (json!({"data": {"steps": [{"name": "a", "call": "nope"}]}}), 422, "`data.steps.0`"),
            (json!({"data": {"schemas": {"inputs": {"type": "nope"}}}}), 422, "`data.schemas.inputs`"),
        ] {
            let detail = commit(test, line, fields.clone()).await.detail(status);
            assert!(detail.contains(words), "{fields}: {detail}");
        }
        commit(test, &json!(uuid::Uuid::now_v7()), json!({"data": {}})).await.expect(404);
        assert_eq!(test.post("/workflows/revisions/log", json!({"workflow_revision": {"workflow_variant_id": line}})).await.expect(200)["count"], 3);
    }

    async fn what_steps_name_is_looked_up_when_they_are_saved(test: &Test) {
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        let line = simple(test, "w", json!({"kind": "echo"})).await["variant_id"].take();
        let schemas = json!({"inputs": {"type": "object", "properties": {"customer": {"type": "string"}}}});
        let of = |step: Value| {
            let mut whole = json!({"name": "find", "call": "workflow.variant.w"});
            whole.as_object_mut().unwrap().extend(step.as_object().unwrap().clone());
            json!({"schemas": schemas, "steps": [whole]})
        };
        for (data, words) in [
            (of(json!({"arguments": {"id": "{{ inputs.custmer }}"}})), "`data.steps.0.arguments/id`: `inputs.custmer`: "),
            (of(json!({"arguments": {"id": "{{ inputs.custmer }}"}})), "Did you mean `customer`?"),
            (of(json!({"arguments": {"id": "{{ inputs.customer | loower }}"}})), "there is no filter `loower`"),
            (of(json!({"when": "steps.fnd.ok"})), "there is no step `fnd`"),
            (json!({"steps": of(json!({}))["steps"], "result": "{{ steps.fnd.result }}"}), "there is no step `fnd`. Did you mean `find`?"),
            (of(json!({"call": "tools.natve.fake.MAKE_A_THING.main"})), "`data.steps.0.call`: there is no provider `natve`. Did you mean `native`?"),
            (of(json!({"call": "tools.native.fak.MAKE_A_THING.main"})), "native has no integration `fak`. Did you mean `fake`?"),
            (of(json!({"call": "tools.native.fake.MAKE_A_THNG.main"})), "fake has no action `MAKE_A_THNG`. Did you mean `MAKE_A_THING`?"),
            (of(json!({"call": "tools.native.fake.MAKE_A_THING.mian"})), "fake has no connection `mian`; there are: main. Did you mean `main`?"),
            (of(json!({"call": "tools.native.github.GET_A_USER.main"})), "github has no"),
            (of(json!({"call": "tools.agenta.discover_tool"})), "`discover_tool` is no op that a step can call. Did you mean `discover_tools`?"),
            (of(json!({"call": "workflow.variant.ww"})), "there is no workflow `ww`"),
            (of(json!({"call": "workflow.variant.w.9"})), "workflow `w` has no version 9"),
            (of(json!({"call": "workflow.environment.stagin.w"})), "there is no environment `stagin`. Did you mean `staging`?"),
        ] {
            let detail = commit(test, &line, json!({"data": data})).await.detail(422);
            assert!(detail.contains(words), "{data}: {detail}");
            let detail = test.post("/simple/workflows/", json!({"workflow": {"slug": "new", "data": data}})).await.detail(422);
            assert!(detail.contains(words), "{data}: {detail}");
        }
        for data in [
            of(json!({"call": "tools.native.fake.MAKE_A_THING.main", "arguments": {"title": "{{ inputs.customer | lower }}"}})),
            of(json!({"call": "workflow.environment.staging.w"})),
            of(json!({"call": "tools.composio.gmail.SEND.main"})),
            json!({"steps": of(json!({"arguments": {"id": "{{ inputs.whatever }}"}}))["steps"]}),
            json!({"steps": [{"name": "a", "call": embed("w", "parameters.call")}]}),
            json!({"url": "https://example.com", "parameters": {"prompt": "{{ inputs.custmer | loower }} {% if x %}", "call": "tools.native.fak.X.y"}}),
        ] {
            commit(test, &line, json!({"data": data})).await.expect(200);
        }
        simple(test, "again", json!({"steps": [{"name": "me", "call": "workflow.variant.again"}]})).await;
        let stored = test.post("/workflows/revisions/log", json!({"workflow_revision": {"workflow_variant_id": line}})).await.expect(200);
        assert_eq!(stored["count"], 8, "what was refused left nothing behind");
    }

    async fn a_commit_builds_on_what_is_not_archived(test: &Test) {
        let made = simple(test, "w", json!({"parameters": {"a": 1}})).await;
        let bad = commit(test, &made["variant_id"], json!({"data": {"parameters": {"bad": true}}})).await.expect(200)["workflow_revision"].take();
        test.post(&format!("/workflows/revisions/{}/archive", bad["id"].as_str().unwrap()), json!({})).await.expect(200);
        let stale = json!({"delta": {"set": {"parameters": {"b": 2}}}, "base_revision_id": bad["id"]});
        assert_eq!(commit(test, &made["variant_id"], stale).await.expect(409)["detail"]["conflict"]["revision_id"], made["revision_id"]);
        let next = json!({"delta": {"set": {"parameters": {"b": 2}}}, "base_revision_id": made["revision_id"]});
        let next = commit(test, &made["variant_id"], next).await.expect(200)["workflow_revision"].take();
        assert_eq!((&next["version"], &next["data"]), (&json!("3"), &json!({"parameters": {"a": 1, "b": 2}})));
    }

    async fn a_search_takes_every_letter_as_it_is(test: &Test) {
        for slug in ["a_b", "axb", "ab"] {
            simple(test, slug, json!({})).await;
        }
        for (text, expected) in [("a_b", vec!["a_b"]), ("_", vec!["a_b"]), ("%", vec![]), ("\\", vec![]), ("b", vec!["ab", "axb", "a_b"])] {
            let found = test.post("/workflows/query", json!({"workflow": {"name": text}})).await.expect(200);
            assert_eq!(slugs(&found, "workflows"), expected, "{text}");
        }
    }

    async fn edits_at_once_are_all_kept(test: &Test) {
        let made = simple(test, "w", json!({})).await;
        let path = format!("/workflows/{}", made["id"].as_str().unwrap());
        let edits = [json!({"name": "n"}), json!({"description": "d"}), json!({"tags": {"t": 1}}), json!({"meta": {"m": 1}}), json!({"flags": {"is_snippet": true}}), json!({"flags": {"is_evaluator": true}})];
        for reply in join_all(edits.into_iter().map(|edit| put(test, &path, json!({"workflow": edit})))).await {
            reply.expect(200);
        }
        let workflow = test.get(&path).await.expect(200)["workflow"].take();
        assert_eq!((&workflow["name"], &workflow["description"]), (&json!("n"), &json!("d")));
        assert_eq!((&workflow["tags"], &workflow["meta"]), (&json!({"t": 1}), &json!({"m": 1})));
        assert_eq!(workflow["flags"], json!({"is_application": false, "is_evaluator": true, "is_snippet": true}));
    }

    async fn slugs_are_clear_and_taken_once(test: &Test) {
        for (slug, status) in [("a.b", 422), ("a__b", 422), ("a b", 422), ("", 422), ("a\n", 422), ("__ag__mine", 400), ("fine", 200), ("fine", 409)] {
            let reply = test.post("/workflows/", json!({"workflow": {"slug": slug}})).await;
            assert_eq!(reply.status.as_u16(), status, "{slug:?}: {}", reply.text);
        }
        let taken = test.post("/simple/workflows/", json!({"workflow": {"slug": "fine", "data": {"kind": "echo"}}})).await.expect(409);
        assert_eq!(taken["detail"]["conflict"]["slug"], "fine");
        test.post("/workflows/", json!({"workflow": {"slug": "x", "name": " "}})).await.expect(422);
        test.post("/workflows/", json!({"workflow": {"name": "x"}})).await.expect(422);
        let other = simple(test, "other", json!({})).await["id"].take();
        test.post("/workflows/variants/", json!({"workflow_variant": {"workflow_id": other, "slug": "other"}})).await.expect(409);
        test.post("/workflows/variants/", json!({"workflow_variant": {"workflow_id": other, "slug": "o.ther"}})).await.expect(422);
        test.post("/workflows/variants/", json!({"workflow_variant": {"workflow_id": uuid::Uuid::now_v7(), "slug": "x"}})).await.expect(404);
        let elsewhere = test.key("elsewhere", Role::Owner, None).await;
        test.post_as(&elsewhere, "/workflows/", json!({"workflow": {"slug": "fine"}})).await.expect(200);
    }

    async fn another_projects_rows_are_unknown(test: &Test) {
        let made = simple(test, "mine", json!({"kind": "echo"})).await;
        let stranger = test.key("elsewhere", Role::Owner, None).await;
        let commit = json!({"workflow_revision": {"workflow_variant_id": made["variant_id"], "data": {}}});
        test.post_as(&stranger, "/workflows/revisions/commit", commit).await.expect(404);
        test.post_as(&stranger, "/workflows/variants/", json!({"workflow_variant": {"workflow_id": made["id"], "slug": "x"}})).await.expect(404);
        test.post_as(&stranger, "/workflows/variants/fork", json!({"workflow_variant": {"slug": "x"}, "workflow_variant_ref": {"id": made["variant_id"]}})).await.expect(400);
        for reference in [json!({"workflow_ref": {"slug": "mine"}}), json!({"workflow_revision_ref": {"id": made["revision_id"]}})] {
            assert_eq!(test.post_as(&stranger, "/workflows/revisions/retrieve", reference.clone()).await.expect(200), json!({"count": 0}));
        }
        test.post_as(&stranger, "/workflows/invoke", json!({"references": {"workflow": {"id": made["id"]}}})).await.expect(404);
        test.post_as(&stranger, "/workflows/revisions/resolve", json!({"workflow_revision": {"data": {"x": embed("mine", "kind")}}})).await.expect(400);
        assert_eq!(test.post_as(&stranger, "/workflows/query", json!({"workflow_refs": [{"id": made["id"]}]})).await.expect(200)["count"], 0);
    }

    async fn commits_at_once_take_versions_of_their_own(test: &Test) {
        let made = simple(test, "busy", json!({"kind": "echo"})).await;
        let commits = (0..20).map(|number| commit(test, &made["variant_id"], json!({"data": {"kind": "echo", "parameters": {"number": number}}})));
        let mut seen: Vec<u32> = join_all(commits)
            .await
            .into_iter()
            .map(|reply| reply.expect(200)["workflow_revision"]["version"].as_str().unwrap().parse().unwrap())
            .collect();
        seen.sort_unstable();
        assert_eq!(seen, (2..22).collect::<Vec<u32>>());
        let on_one_base = (0..5).map(|number| commit(test, &made["variant_id"], json!({"data": {"parameters": {"n": number}}, "base_revision_id": made["revision_id"]})));
        assert!(join_all(on_one_base).await.iter().all(|reply| reply.status == 409));
    }

    async fn embeds_are_put_in_place(test: &Test) {
        simple(test, "tone", json!({"parameters": {"text": "warm", "prompt": {"messages": [{"content": "be kind"}]}, "tool": {"name": "t", "type": "x"}, "k.ey": 7}})).await;
        let data = json!({"parameters": {
            "object": embed("tone", "parameters.text"),
            "token": "so @ag.embed[@ag.references[workflow.slug=tone], @ag.selector[path=parameters.text]]!",
            "snippet": "@{{workflow.slug=tone}}.",
            "sibling": {"@ag.embed": {"@ag.references": {"workflow": {"slug": "tone"}}, "@ag.selector": {"path": "parameters.tool"}}, "name": "mine"},
            "dot.ted/key": embed("tone", "$.parameters['k.ey']"),
        }});
        let answer = resolve(test, data).await.expect(200);
        let expected = json!({"object": "warm", "token": "so warm!", "snippet": "be kind.", "sibling": {"name": "mine", "type": "x"}, "dot.ted/key": 7});
        assert_eq!(answer["workflow_revision"]["data"]["parameters"], expected);
        let tone = json!({"workflow": {"slug": "tone"}});
        assert_eq!(answer["resolution_info"], json!({"references_used": vec![tone; 5], "depth_reached": 1, "embeds_resolved": 5, "errors": []}));

        simple(test, "left", json!({"parameters": {"v": embed("tone", "parameters.text")}})).await;
        simple(test, "right", json!({"parameters": {"v": embed("left", "parameters.v"), "w": embed("tone", "parameters.text")}})).await;
        let diamond = resolve(test, json!({"parameters": {"l": embed("left", "parameters.v"), "r": embed("right", "parameters")}})).await.expect(200);
        assert_eq!(diamond["workflow_revision"]["data"]["parameters"], json!({"l": "warm", "r": {"v": "warm", "w": "warm"}}));
        let stored = test.post("/workflows/revisions/resolve", json!({"workflow_ref": {"slug": "right"}})).await.expect(200);
        assert_eq!((&stored["workflow_revision"]["version"], &stored["workflow_revision"]["data"]["parameters"]["v"]), (&json!("1"), &json!("warm")));
        let retrieved = test.post("/workflows/revisions/retrieve", json!({"workflow_ref": {"slug": "left"}, "resolve": true})).await.expect(200);
        assert_eq!((&retrieved["workflow_revision"]["data"]["parameters"]["v"], &retrieved["resolution_info"]["embeds_resolved"]), (&json!("warm"), &json!(1)));
        let whole = test.post("/workflows/revisions/retrieve", json!({"workflow_ref": {"slug": "left"}})).await.expect(200);
        assert!(whole["workflow_revision"]["data"]["parameters"]["v"].is_object() && whole.get("resolution_info").is_none());

        let deployed = json!({"workflow_ref": {"slug": "tone"}, "environment_ref": {"slug": "staging"}});
        test.post("/workflows/revisions/deploy", deployed).await.expect(200);
        let through = json!({"v": {"@ag.embed": {"@ag.references": {"environment": {"slug": "staging"}}, "@ag.selector": {"key": "tone.revision", "path": "parameters.text"}}}});
        assert_eq!(resolve(test, through).await.expect(200)["workflow_revision"]["data"], json!({"v": "warm"}));
    }

    async fn data_is_checked_as_a_save_does_and_not_saved(test: &Test) {
        let check = async |data: Value| test.post("/workflows/check", json!({"workflow": {"slug": "mine", "data": data}})).await;
        let calling = |call: &str, result: &str| json!({"kind": "steps", "steps": [{"name": "a", "call": call, "arguments": {}}], "result": result});
        assert_eq!(check(calling("workflow.variant.mine", "{{ steps.a.ok }}")).await.expect(200), json!({"count": 1, "calls": ["workflow.variant.mine"]}));
        assert_eq!(check(json!({"kind": "echo"})).await.expect(200), json!({"count": 0, "calls": []}));
        for (data, wrong) in [
            (calling("workflow.variant.nobody", "{{ steps.a.ok }}"), "nobody"),
            (calling("workflow.variant.mine", "{{ steps.b.ok }}"), "steps.b"),
            (json!({"kind": "stepz"}), "data.kind"),
            (json!("steps"), "object"),
        ] {
            let detail = check(data).await.detail(422);
            assert!(detail.contains(wrong), "{detail}");
        }
        assert_eq!(test.post("/workflows/query", json!({})).await.expect(200)["count"], 0);
        let viewer = test.key("default", kernel::Role::Viewer, None).await;
        test.post_as(&viewer, "/workflows/check", json!({"workflow": {"data": {"kind": "echo"}}})).await.expect(403);
    }

    async fn embeds_cannot_grow_without_end(test: &Test) {
        simple(test, "link-0", json!({"parameters": {"v": "x".repeat(100_000)}})).await;
        let ten: Vec<Value> = (0..10).map(|_| embed("link-0", "parameters.v")).collect();
        simple(test, "link-1", json!({"parameters": {"v": ten}})).await;
        resolve(test, json!({"v": embed("link-1", "parameters.v")})).await.expect(200);
        let fifty: Vec<Value> = (0..50).map(|_| embed("link-0", "parameters.v")).collect();
        let detail = resolve(test, json!({"v": fifty})).await.detail(400);
        assert!(detail.contains("larger than 4194304 bytes"), "{detail}");
    }

    async fn embeds_that_cannot_be_are_named_with_their_place(test: &Test) {
        let one = simple(test, "one", json!({"parameters": {"x": 1}})).await;
        simple(test, "two", json!({"parameters": {"y": embed("one", "parameters")}})).await;
        commit(test, &one["variant_id"], json!({"data": {"parameters": {"x": embed("two", "parameters")}}})).await.expect(200);
        let cycle = test.post("/workflows/revisions/resolve", json!({"workflow_ref": {"slug": "one"}})).await.detail(400);
        assert!(cycle.contains("/parameters/x/y/x") && cycle.contains("embeds itself"), "{cycle}");
        let run = test.post("/workflows/invoke", json!({"references": {"workflow": {"slug": "one"}}})).await.expect(400);
        assert!(run["status"]["message"].as_str().unwrap().contains("embeds itself"), "{run}");

        simple(test, "link-0", json!({"parameters": {"v": "deep"}})).await;
        for number in 1..11 {
            simple(test, &format!("link-{number}"), json!({"parameters": {"v": embed(&format!("link-{}", number - 1), "parameters.v")}})).await;
        }
        let ten = resolve(test, json!({"v": embed("link-9", "parameters.v")})).await.expect(200);
        assert_eq!((&ten["workflow_revision"]["data"]["v"], &ten["resolution_info"]["depth_reached"]), (&json!("deep"), &json!(10)));
        let eleven = resolve(test, json!({"v": embed("link-10", "parameters.v")})).await.detail(400);
        assert!(eleven.contains("nested too deep") && eleven.contains("`/v`"), "{eleven}");
        let with = |options: Value| {
            let mut body = json!({"workflow_revision": {"data": {"v": embed("link-10", "parameters.v"), "w": embed("nobody", "x")}}});
            body.as_object_mut().unwrap().extend(options.as_object().unwrap().clone());
            test.post("/workflows/revisions/resolve", body)
        };
        let placed = with(json!({"error_policy": "placeholder", "max_depth": 11})).await.expect(200);
        assert_eq!(placed["workflow_revision"]["data"], json!({"v": "deep", "w": "<error:embed_not_found>"}));
        let kept = with(json!({"error_policy": "keep", "max_depth": 0})).await.expect(200);
        assert_eq!(kept["workflow_revision"]["data"]["w"], embed("nobody", "x"));
        for (options, status) in [(json!({"max_embeds": 1}), 400), (json!({"max_depth": 21}), 422), (json!({"error_policy": "hope"}), 422)] {
            with(options).await.expect(status);
        }
        for data in [json!({"v": embed("nobody", "x")}), json!({"v": embed("link-0", "nope")}), embed("link-0", "parameters"), json!({"v": {"@ag.embed": {"x": 1}}})] {
            resolve(test, data.clone()).await.expect(400);
        }
        test.post("/workflows/revisions/resolve", json!({"workflow_revision": {}})).await.expect(400);
    }
}

#[tokio::test]
async fn the_documents_examples_can_be_committed() {
    let test = Test::start(Database::Sqlite).await;
    let document = std::fs::read_to_string(repository().join("docs/workflows.md")).unwrap();
    let blocks = document.split("```json\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let examples: Vec<Value> =
        blocks.map(|block| serde_json::from_str::<Value>(block).unwrap()).filter(|block| block["kind"].is_string()).collect();
    for (integration, slug, data) in [
        ("hacker-news", "hacker-news-main", json!({})),
        ("slack", "slack-main", json!({"auth_scheme": "bearer"})),
        ("anthropic", "anthropic-main", json!({"auth_scheme": "api_key"})),
    ] {
        let connection = json!({"slug": slug, "provider_key": "native", "integration_key": integration, "data": data});
        test.post("/tools/connections/", json!({"connection": connection})).await.expect(200);
    }
    assert_eq!(examples.iter().map(|example| example["kind"].as_str().unwrap()).collect::<Vec<_>>(), ["echo", "steps", "http", "agent"]);
    test.post("/agents", json!({"name": "triager", "agent_type": "worker"})).await.expect(200);
    for example in examples {
        simple(&test, example["kind"].as_str().unwrap(), example.clone()).await;
    }
}
