//! `/tools/approvals` and `/tools/permissions`: calls that wait for a person.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use http::Method;
use kernel::Role;
use serde_json::{Value, json};
use sha2::Sha256;

use crate::reserved::workflow;
use crate::support::{Database, Fake, Test, call_body, on_both, until};
use crate::triggers::{send, settled, webhook};

const NOTICES: &str = "/tools/approvals/notices";
const MAKE: &str = "tools.native.fake.MAKE_A_THING.main";

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

pub async fn ask_before(test: &Test, pattern: &str, permission: &str) {
    let policy = json!({"permissions": {"rules": [{"pattern": pattern, "permission": permission}]}});
    test.request(Method::PUT, "/tools/permissions", Some(format!("ApiKey {}", test.owner)), Some(policy)).await.expect(200);
}

/// The id of the approval that a call waits for.
pub async fn waiting(test: &Test, key: &str, arguments: Value) -> String {
    let answer = test.call_as(key, MAKE, arguments).await.expect(202);
    assert_eq!(answer["approval"]["status"], "pending");
    answer["approval"]["id"].as_str().unwrap().to_owned()
}

pub async fn decide(test: &Test, id: &str, decision: &str) -> Value {
    test.post(&format!("/tools/approvals/{id}"), json!({"decision": decision, "note": "because"})).await.expect(200)["approval"].take()
}

/// A delivery that waits no more.
async fn until_over(test: &Test, delivery: &Value) -> Value {
    let path = format!("/triggers/deliveries/{}", delivery["id"].as_str().unwrap());
    for _ in 0..400 {
        let found = test.get(&path).await.expect(200)["delivery"].take();
        if matches!(found["state"].as_str(), Some("done" | "dead")) {
            return found;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    panic!("never over: {:#}", test.get(&path).await.text);
}

on_both! {
    async fn an_approved_call_goes_through_once(test: &Test) {
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        ask_before(test, "tools.native.fake.MAKE_*", "ask").await;
        let runner = test.key("default", Role::Annotator, None).await;
        let before = fake.seen().len();
        let id = waiting(test, &runner, json!({"title": "a", "labels": ["x"]})).await;
        assert_eq!(waiting(test, &runner, json!({"labels": ["x"], "title": "a"})).await, id, "the same call waits for the same word");
        assert_eq!(fake.seen().len(), before, "nothing runs while it waits");

        let listed = test.get("/tools/approvals?status=pending").await.expect(200);
        assert_eq!((&listed["count"], &listed["approvals"][0]["id"], &listed["approvals"][0]["arguments"]["title"]), (&json!(1), &json!(id), &json!("a")));
        test.post_as(&runner, &format!("/tools/approvals/{id}"), json!({"decision": "approve"})).await.expect(403);
        assert_eq!(decide(test, &id, "approve").await["note"], "because");
        test.post(&format!("/tools/approvals/{id}"), json!({"decision": "deny"})).await.expect(409);

        let made = Test::content(test.call_as(&runner, MAKE, json!({"labels": ["x"], "title": "a"})).await);
        assert_eq!(made["successful"], true);
        assert_eq!(fake.seen().len(), before + 1);
        assert_eq!(test.get(&format!("/tools/approvals/{id}")).await.expect(200)["approval"]["status"], "used");
        let second = waiting(test, &runner, json!({"title": "a", "labels": ["x"]})).await;
        assert_ne!(second, id, "an approval holds for one call");
        // What is not asked about runs as ever.
        test.call_as(&runner, "tools.native.fake.GET_A_THING.main", json!({"owner": "o", "path": "p"})).await.expect(200);
    }

    async fn an_approval_names_who_asks_and_why(test: &Test) {
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        ask_before(test, "tools.native.fake.MAKE_*(title=a*)", "ask").await;
        let agent = test.post("/agents", json!({"name": "a", "agent_type": "x", "tool_ids": ["fake"]})).await.expect(200);
        let answer = test.post("/agents/1/call", call_body(MAKE, &json!({"title": "about"}))).await.expect(202)["approval"].take();
        assert_eq!(answer["rule"], json!({"pattern": "tools.native.fake.MAKE_*(title=a*)", "permission": "ask"}));
        assert_eq!((&answer["agent_id"], answer["key_name"].is_string()), (&agent["public_id"], true), "{answer}");
        let id = answer["id"].as_str().unwrap();
        assert_eq!(test.get(&format!("/tools/approvals/{id}")).await.expect(200)["approval"], answer);
        assert_eq!(test.get("/tools/approvals").await.expect(200)["approvals"][0], answer);

        // Decided with a key of nobody, and by a person.
        assert_eq!(decide(test, id, "approve").await["decided_by_name"], answer["key_name"]);
        let accounts = &test.yard.accounts;
        let (project, user) = (accounts.find_project("default").await.unwrap().id, accounts.create_user("ada@example.com", Some("Ada".to_owned())).await.unwrap());
        accounts.set_member(project, user.id, Role::Owner, &accounts::Source::Invited).await.unwrap();
        let scope = accounts.acting(project, kernel::KeyId::new(), Some(user.id)).await.unwrap().unwrap();
        let id = waiting(test, &test.owner, json!({"title": "apart"})).await;
        test.yard.calls.decide(scope, id.parse().unwrap(), false, None).await.unwrap();
        let decided = test.get(&format!("/tools/approvals/{id}")).await.expect(200)["approval"].take();
        assert_eq!((&decided["decided_by_name"], decided.get("agent_id")), (&json!("Ada"), None), "{decided}");

        // Without a rule it is the default that asks, or the caller.
        let permissions = json!({"permissions": {"default": "ask"}});
        test.request(Method::PUT, "/tools/permissions", Some(format!("ApiKey {}", test.owner)), Some(permissions)).await.expect(200);
        assert!(test.call(MAKE, json!({"title": "b"})).await.expect(202)["approval"].get("rule").is_none());
    }

    async fn an_address_is_told_that_a_call_waits(test: &Test) {
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        ask_before(test, MAKE, "ask").await;
        let new = json!({"notice": {"kind": "webhook", "url": format!("{}/target", fake.url)}});
        let made = test.post(NOTICES, new).await.expect(200)["notice"].take();
        let (id, secret) = (made["id"].as_str().unwrap(), made["secret"].as_str().unwrap());
        let listed = test.get(NOTICES).await.expect(200);
        assert_eq!((&listed["notices"][0]["id"], listed["notices"][0].get("secret")), (&made["id"], None));

        let approval = waiting(test, &test.owner, json!({"title": "top secret title"})).await;
        until("somebody is told", async || fake.seen_at("/target").len() == 1).await;
        let post = fake.seen_at("/target").remove(0);
        let data = &post["body"]["data"];
        assert_eq!((&post["body"]["type"], &data["id"], &data["call_ref"]), (&json!("approval.created"), &json!(approval), &json!(MAKE)));
        assert!(data["url"].as_str().unwrap().ends_with(&format!("/app/default/approvals/{approval}")) && data["expires_at"].is_string(), "{post}");
        assert!(!post.to_string().contains("secret title"), "{post}");
        let signed = format!("{}.{}.{}", text(&post["headers"]["webhook-id"]), text(&post["headers"]["webhook-timestamp"]), post["body"]);
        let key = STANDARD.decode(secret.strip_prefix("whsec_").unwrap()).unwrap();
        let mut mac = Hmac::<Sha256>::new_from_slice(&key).unwrap();
        mac.update(signed.as_bytes());
        assert_eq!(text(&post["headers"]["webhook-signature"]), format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes())));

        // The same call waits for the same word, and nobody is told twice.
        waiting(test, &test.owner, json!({"title": "top secret title"})).await;
        let notice = async || test.get(NOTICES).await.expect(200)["notices"][0].clone();
        until("the end is written", async || notice().await["last_at"].is_string()).await;
        assert_eq!((notice().await.get("last_error"), fake.seen_at("/target").len()), (None, 1));

        // Three tries.
        fake.answer_target(&[500, 503, 500]);
        waiting(test, &test.owner, json!({"title": "b"})).await;
        until("it is given up", async || notice().await["last_error"] == "It answered with status 500.").await;
        assert_eq!(fake.seen_at("/target").len(), 4);
        let path = format!("{NOTICES}/{id}");
        assert_eq!(test.post(&format!("{path}/test"), Value::Null).await.expect(200), json!({"ok": true}));
        assert_eq!((notice().await.get("last_error"), &fake.seen_at("/target")[4]["body"]["data"]["test"]), (None, &json!(true)));
        fake.answer_target(&[404]);
        assert_eq!(test.post(&format!("{path}/test"), Value::Null).await.expect(200), json!({"ok": false, "message": "It answered with status 404."}));

        let ring = kernel::seal::KeyRing::parse(&std::fs::read_to_string(test.yard.config.data_dir.join("sealing.key")).unwrap()).unwrap();
        assert_eq!(calls::reseal(&test.yard.db, &kernel::seal::Sealer::new(ring.with_new_key())).await.unwrap(), 1);
        let viewer = test.key("default", Role::Viewer, None).await;
        test.get_as(&viewer, NOTICES).await.expect(200);
        test.post_as(&viewer, NOTICES, json!({"notice": {"kind": "webhook", "url": "https://example.com/"}})).await.expect(403);
        let stranger = test.key("elsewhere", Role::Owner, None).await;
        test.post_as(&stranger, &format!("{path}/test"), Value::Null).await.expect(404);
        test.delete(&path).await.expect(204);
        assert_eq!(test.delete(&path).await.detail(404), "Notice not found");
    }

    async fn a_notice_survives_a_stop_in_the_middle(test: &Test) {
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        ask_before(test, MAKE, "ask").await;
        test.post(NOTICES, json!({"notice": {"kind": "webhook", "url": format!("{}/target", fake.url)}})).await.expect(200);
        let left = async || test.yard.db.all("select approval_id from notices_to_send", store::args![]).await.unwrap().len();
        fake.answer_target(&[500, 500]);
        waiting(test, &test.owner, json!({"title": "a"})).await;
        until("the first try is made", async || !fake.seen_at("/target").is_empty()).await;
        test.yard.calls.drain().await;
        let tries = fake.seen_at("/target").len();
        assert!(tries < 3 && left().await == 1, "it stopped between two tries");
        assert_eq!(test.yard.calls.tell_what_is_left().await.unwrap(), 0, "the stopped server has it for a while");
        test.clock.advance(Duration::from_secs(61));
        assert_eq!(test.yard.calls.tell_what_is_left().await.unwrap(), 1);
        let posts = fake.seen_at("/target");
        assert!(posts.len() > tries && left().await == 0, "{posts:?}");
        assert!(posts.iter().all(|post| post["headers"]["webhook-id"] == posts[0]["headers"]["webhook-id"]), "its receiver knows a repetition");

        // Nobody has to be told of what was decided meanwhile.
        let id = waiting(test, &test.owner, json!({"title": "b"})).await;
        assert_eq!(left().await, 1);
        decide(test, &id, "deny").await;
        test.clock.advance(Duration::from_secs(61));
        assert_eq!(test.yard.calls.tell_what_is_left().await.unwrap(), 1);
        assert_eq!((fake.seen_at("/target").len(), left().await), (posts.len(), 0));
    }

    async fn a_tool_is_called_when_a_call_waits(test: &Test) {
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        ask_before(test, MAKE, "ask").await;
        let tool = |arguments: Value| json!({"notice": {"kind": "tool", "call_ref": "tools.native.fake.GET_A_THING.main", "arguments": arguments}});
        for (notice, status, words) in [
            (tool(json!({"owner": "{{ approval.call_reff }}", "path": "p"})), 422, "Did you mean `call_ref`?"),
            (tool(json!({"owner": "{{ call.id }}", "path": "p"})), 422, "there is only `approval`"),
            (tool(json!({"owner": "o"})), 400, "path"),
            (json!({"notice": {"kind": "tool", "call_ref": "tools.native.fake.NOPE.main"}}), 404, "Action not found"),
            (json!({"notice": {"kind": "tool", "call_ref": "tools.native.fake.GET_A_THING.other"}}), 404, "Connection not found"),
            (json!({"notice": {"kind": "tool", "call_ref": "workflow.variant.x"}}), 422, "an action through a connection"),
            (json!({"notice": {"kind": "tool", "call_ref": "nonsense"}}), 400, "Invalid tool slug format"),
            (json!({"notice": {"kind": "webhook", "url": "nonsense"}}), 422, "no address"),
            (json!({"notice": {"kind": "webhook", "url": "https://10.0.0.1/"}}), 422, "10.0.0.1"),
            (json!({"notice": {"kind": "webhook", "url": "https://example.com/", "call_ref": "x"}}), 422, "call_ref"),
            (json!({"notice": {"kind": "mail"}}), 422, "mail"),
        ] {
            let detail = test.post(NOTICES, notice.clone()).await.detail(status);
            assert!(detail.contains(words), "{notice}: {detail}");
        }
        let only_edit = test.key("default", Role::Owner, Some(vec![kernel::Permission::EditTools])).await;
        test.post_as(&only_edit, NOTICES, tool(json!({"owner": "o", "path": "p"}))).await.expect(403);
        test.post(NOTICES, tool(json!({"owner": "{{ approval.call_ref }}", "path": "{{ approval.id }}"}))).await.expect(200);
        let notice = async || test.get(NOTICES).await.expect(200)["notices"][0].clone();
        let approval = waiting(test, &test.owner, json!({"title": "a"})).await;
        until("the tool is called", async || notice().await["last_at"].is_string()).await;
        assert_eq!(notice().await.get("last_error"), None);
        assert_eq!(fake.seen_at(&format!("/echo/{MAKE}/files/{approval}")).len(), 1, "{:?}", fake.seen());

        // A notice that would have to ask is told nobody, and makes no question of its own.
        ask_before(test, "*", "ask").await;
        waiting(test, &test.owner, json!({"title": "b"})).await;
        until("it is refused", async || notice().await["last_error"].as_str().is_some_and(|error| error.contains("would have to ask"))).await;
        assert_eq!(test.get("/tools/approvals").await.expect(200)["count"], 2);

        // It acts as whoever saved it, who may be gone.
        let saver = test.key("default", Role::Owner, None).await;
        ask_before(test, MAKE, "ask").await;
        test.delete(&format!("{NOTICES}/{}", text(&notice().await["id"]))).await.expect(204);
        test.post_as(&saver, NOTICES, tool(json!({"owner": "o", "path": "p"}))).await.expect(200);
        let keys = test.yard.accounts.list_keys(None).await.unwrap();
        test.yard.accounts.revoke_key(keys.iter().find(|key| saver.starts_with(&key.hint)).unwrap().id).await.unwrap();
        let tested = test.post(&format!("{NOTICES}/{}/test", text(&notice().await["id"])), Value::Null).await.expect(200);
        assert!(tested["message"].as_str().unwrap().contains("revoked"), "{tested}");
        for number in 1..10 {
            test.post(NOTICES, json!({"notice": {"kind": "webhook", "url": format!("https://example.com/{number}")}})).await.expect(200);
        }
        let full = test.post(NOTICES, json!({"notice": {"kind": "webhook", "url": "https://example.com/"}})).await.detail(409);
        assert!(full.contains("may have 10 notices"), "{full}");
    }

    async fn a_plain_loop_goes_on_while_a_call_waits(test: &Test) {
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        ask_before(test, "*", "ask").await;
        test.post("/agents", json!({"name": "a", "agent_type": "x", "tool_ids": ["fake"]})).await.expect(200);
        let rename = json!({"arguments": {"name": "Ada"}, "context": {"workflow": {"artifact": {"id": uuid::Uuid::now_v7()}}}, "id": "t1"});
        let call = call_body(MAKE, &json!({"title": "a"}));
        for (path, body) in [("/tools/call", call.clone()), ("/agents/1/call", call), ("/tools/ops/rename_agent", rename)] {
            let answer = test.post(path, body).await.expect(202);
            let message = &answer["call"]["data"];
            assert_eq!((&message["role"], &message["tool_call_id"]), (&json!("tool"), &json!("t1")), "{path}: {answer}");
            assert_eq!(answer["call"]["status"]["code"], "STATUS_CODE_ERROR");
            let content: Value = serde_json::from_str(message["content"].as_str().unwrap()).unwrap();
            assert_eq!((&content["code"], &content["details"]["approval_id"]), (&json!("approval_required"), &answer["approval"]["id"]));
            assert!(content["message"].as_str().unwrap().contains("waits for a person") && content["next_step"].is_string(), "{content}");
        }
    }

    async fn an_approval_is_good_for_nothing_else(test: &Test) {
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        ask_before(test, "*", "ask").await;
        let runner = test.key("default", Role::Annotator, None).await;
        let other = test.key("default", Role::Annotator, None).await;
        let before = fake.seen().len();
        let id = waiting(test, &runner, json!({"title": "a"})).await;
        decide(test, &id, "approve").await;
        assert_ne!(waiting(test, &runner, json!({"title": "b"})).await, id, "other arguments");
        assert_ne!(waiting(test, &other, json!({"title": "a"})).await, id, "another key");
        test.call_as(&runner, "tools.native.fake.SLOWLY.main", json!({"ms": 0})).await.expect(202);
        test.clock.advance(Duration::from_hours(25));
        assert_ne!(waiting(test, &runner, json!({"title": "a"})).await, id, "after it expired");
        assert_eq!(fake.seen().len(), before);
        assert_eq!(test.get(&format!("/tools/approvals/{id}")).await.expect(200)["approval"]["status"], "expired");
        assert_eq!(test.get("/tools/approvals?status=expired").await.expect(200)["count"], 4);
        test.post(&format!("/tools/approvals/{id}"), json!({"decision": "approve"})).await.expect(409);
    }

    async fn twenty_calls_share_one_approval_and_one_goes_through(test: &Test) {
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        ask_before(test, MAKE, "ask").await;
        let id = waiting(test, &test.owner, json!({"title": "a"})).await;
        decide(test, &id, "approve").await;
        let calls = (0..20).map(|_| test.call(MAKE, json!({"title": "a"})));
        let replies = futures_util::future::join_all(calls).await;
        assert_eq!(replies.iter().filter(|reply| reply.status == 200).count(), 1);
        assert!(replies.iter().all(|reply| matches!(reply.status.as_u16(), 200 | 202)));
    }

    async fn a_denied_call_is_told_why(test: &Test) {
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        ask_before(test, MAKE, "ask").await;
        let id = waiting(test, &test.owner, json!({"title": "a"})).await;
        decide(test, &id, "deny").await;
        for _ in 0..2 {
            assert_eq!(test.call(MAKE, json!({"title": "a"})).await.detail(403), format!("The call of `{MAKE}` was denied: because"));
        }
        ask_before(test, MAKE, "deny").await;
        assert!(test.call(MAKE, json!({"title": "b"})).await.detail(403).contains("does not allow"));
    }

    async fn a_caller_may_be_stricter_and_never_looser(test: &Test) {
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        let with = |permission: &str| {
            let mut body = call_body(MAKE, &json!({"title": "a"}));
            body["data"]["permission"] = json!(permission);
            body
        };
        test.post("/tools/call", with("ask")).await.expect(202);
        test.post("/tools/call", with("deny")).await.expect(403);
        test.post("/tools/call", with("allow")).await.expect(200);
        test.post("/tools/call", with("maybe")).await.expect(422);
        for (pointer, name) in [("", "permission"), ("/data", "permision"), ("/data/function", "permission")] {
            let mut body = call_body(MAKE, &json!({"title": "a"}));
            body.pointer_mut(pointer).unwrap()[name] = json!("deny");
            assert!(test.post("/tools/call", body).await.expect(422).to_string().contains(&format!("unknown field `{name}`")), "{pointer}");
        }
        ask_before(test, MAKE, "ask").await;
        test.post("/tools/call", with("allow")).await.expect(202);
    }

    async fn a_rule_for_a_workflow_holds_however_it_is_run(test: &Test) {
        let made = test.post("/simple/workflows/", json!({"workflow": {"slug": "pay", "data": {"kind": "echo"}}})).await.expect(200);
        test.post("/workflows/revisions/deploy", json!({"workflow_ref": {"slug": "pay"}, "environment_ref": {"slug": "staging"}})).await.expect(200);
        ask_before(test, "workflow.variant.pay", "deny").await;
        for name in ["workflow.variant.pay", "workflow.variant.pay.1", "workflow.environment.staging.pay"] {
            test.call(name, json!({})).await.expect(403);
        }
        let run = |references: Value, inputs: Value| test.post("/workflows/invoke", json!({"references": references, "data": {"inputs": inputs}}));
        let id = &made["workflow"]["id"];
        for references in [json!({"workflow": {"slug": "pay"}}), json!({"workflow": {"id": id}}), json!({"workflow": {"slug": "pay"}, "environment": {"slug": "staging"}})] {
            run(references, json!({})).await.expect(403);
        }
        let dead = |delivery: &Value| {
            let said = delivery["status"]["message"].as_str().unwrap_or_default().contains("does not allow");
            assert!(delivery["state"] == "dead" && delivery["status"]["code"] == "403" && said, "{delivery:#}");
        };
        test.yard.triggers.start().await.unwrap();
        let hook = webhook(test, "pay", json!({})).await;
        send(test, hook["url"].as_str().unwrap(), &[], "{}").await.expect(202);
        dead(&settled(test, json!({"subscription_id": hook["id"]}), 1).await[0]);
        let data = json!({"event_key": "tick", "schedule": "*/5 * * * *", "references": {"workflow": {"slug": "pay"}}});
        let schedule = test.post("/triggers/schedules/", json!({"schedule": {"name": "s", "data": data}})).await.expect(200)["schedule"].take();
        test.post(&format!("/triggers/schedules/{}/run", schedule["id"].as_str().unwrap()), json!({})).await.expect(200);
        dead(&settled(test, json!({"schedule_id": schedule["id"]}), 1).await[0]);
        let agent = json!({"name": "clerk", "agent_type": "custom", "tool_configs": [{"type": "reference", "slug": "pay"}]});
        let agent = test.post("/agents", agent).await.expect(200);
        test.post(&format!("/agents/{}/call", agent["id"]), call_body("workflow.variant.pay", &json!({}))).await.expect(403);
        let over_mcp = crate::mcp::call(test, "workflow__variant__pay", json!({})).await;
        assert!(over_mcp["isError"] == true && over_mcp.to_string().contains("does not allow"), "{over_mcp}");
        workflow(test, "outer", json!({"steps": [{"name": "a", "call": "workflow.variant.pay"}]})).await;
        let outer = run(json!({"workflow": {"slug": "outer"}}), json!({})).await;
        assert!(outer.status == 424 && outer.text.contains("does not allow"), "{}", outer.text);
        let target = json!({"target": {"workflow_variant_id": made["workflow"]["variant_id"]}, "inputs": {"messages": [{"role": "user", "content": "hi"}]}});
        assert!(test.call("tools.agenta.test_run", target).await.detail(403).contains("does not allow"));
        assert_eq!(test.get("/workflows/runs").await.expect(200)["runs"].as_array().unwrap().iter().filter(|run| run["workflow_id"] == *id).count(), 0);
        ask_before(test, "workflow.environment.staging.pay", "ask").await;
        run(json!({"workflow": {"slug": "pay"}}), json!({})).await.expect(200);
        let staged = json!({"workflow": {"slug": "pay"}, "environment": {"slug": "staging"}});
        let waits = run(staged.clone(), json!({"n": 1})).await.expect(202)["approval"].take();
        assert_eq!((&waits["call_ref"], &waits["arguments"]["inputs"]), (&json!("workflow.variant.pay"), &json!({"n": 1})));
        decide(test, waits["id"].as_str().unwrap(), "approve").await;
        run(staged.clone(), json!({"n": 2})).await.expect(202);
        assert_eq!(run(staged, json!({"n": 1})).await.expect(200)["data"]["outputs"], json!({"n": 1}));
    }

    async fn a_triggered_run_waits_for_its_approval(test: &Test) {
        let fake = Fake::start().await;
        workflow(test, "pay", json!({"kind": "http", "url": format!("{}/target", fake.url)})).await;
        ask_before(test, "workflow.variant.pay", "ask").await;
        test.yard.triggers.start().await.unwrap();
        let hook = webhook(test, "pay", json!({})).await;
        let url = hook["url"].as_str().unwrap();
        let of = |event: &'static str| json!({"subscription_id": hook["id"], "event_id": event});
        send(test, url, &[("webhook-id", "one")], "{}").await.expect(202);
        send(test, url, &[("webhook-id", "two")], "{}").await.expect(202);
        let (one, two) = (settled(test, of("one"), 1).await.remove(0), settled(test, of("two"), 1).await.remove(0));
        for delivery in [&one, &two] {
            assert_eq!((&delivery["state"], &delivery["status"]["code"]), (&json!("waiting"), &json!("202")), "{delivery:#}");
            let path = format!("/triggers/deliveries/{}/complete", delivery["id"].as_str().unwrap());
            let reply = test.post(&path, json!({"status": {"code": 200}})).await;
            assert!(reply.status == 409 && reply.text.contains("waits for approval"), "{}", reply.text);
        }
        let approval = |delivery: &Value| delivery["data"]["approval_id"].as_str().unwrap().to_owned();
        assert_ne!(approval(&one), approval(&two), "each delivery is approved for itself");
        let asked = test.get(&format!("/tools/approvals/{}", approval(&one))).await.expect(200)["approval"].take();
        assert_eq!((&asked["call_ref"], &asked["arguments"]["delivery"]), (&json!("workflow.variant.pay"), &one["id"]));
        assert_eq!(fake.seen().len(), 0, "nothing runs while it waits");

        decide(test, &approval(&one), "approve").await;
        decide(test, &approval(&two), "deny").await;
        let one = until_over(test, &one).await;
        assert_eq!((&one["state"], &one["status"]["code"], &one["data"]["approval_id"]), (&json!("done"), &json!("200"), &Value::Null), "{one:#}");
        let two = until_over(test, &two).await;
        assert!(two["state"] == "dead" && two["status"]["code"] == "403" && two["status"]["message"].as_str().unwrap().contains("because"), "{two:#}");
        assert_eq!(fake.seen().len(), 1);

        // A retry is the same delivery, which somebody approved.
        test.post(&format!("/triggers/deliveries/{}/retry", one["id"].as_str().unwrap()), json!({})).await.expect(200);
        let one = until_over(test, &one).await;
        assert_eq!((&one["state"], &one["attempts_count"]), (&json!("done"), &json!(3)), "{one:#}");

        send(test, url, &[("webhook-id", "three")], "{}").await.expect(202);
        let three = settled(test, of("three"), 1).await.remove(0);
        assert_eq!(three["state"], "waiting");
        test.clock.advance(Duration::from_hours(25));
        let three = until_over(test, &three).await;
        assert_eq!((&three["state"], &three["status"]["message"]), (&json!("dead"), &json!("nobody approved the run in time")));
    }

    async fn a_triggered_run_goes_on_when_its_step_is_approved(test: &Test) {
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        ask_before(test, MAKE, "ask").await;
        let read = json!({"name": "read", "call": "tools.native.fake.GET_A_THING.main", "arguments": {"owner": "o", "path": "p"}});
        let make = json!({"name": "make", "call": MAKE, "arguments": {"title": "x"}});
        workflow(test, "steps", json!({"steps": [read, make]})).await;
        test.yard.triggers.start().await.unwrap();
        let hook = webhook(test, "steps", json!({})).await;
        let before = fake.seen().len();
        send(test, hook["url"].as_str().unwrap(), &[], "{}").await.expect(202);
        let waits = settled(test, json!({"subscription_id": hook["id"]}), 1).await.remove(0);
        assert_eq!((&waits["state"], fake.seen().len()), (&json!("waiting"), before + 1), "{waits:#}");
        decide(test, waits["data"]["approval_id"].as_str().unwrap(), "approve").await;
        let done = until_over(test, &waits).await;
        assert_eq!((&done["state"], fake.seen().len()), (&json!("done"), before + 2), "the first step is not made again: {done:#}");
    }

    async fn a_run_that_waits_is_made_again_under_its_key(test: &Test) {
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        ask_before(test, MAKE, "ask").await;
        let step = json!({"name": "a", "call": MAKE, "arguments": {"title": "x"}, "on_error": "continue"});
        for (slug, data) in [("inner", json!({"steps": [step]})), ("outer", json!({"steps": [{"name": "b", "call": "workflow.variant.inner"}]}))] {
            test.post("/simple/workflows/", json!({"workflow": {"slug": slug, "data": data}})).await.expect(200);
        }
        let call = || {
            let request = http::Request::post("/tools/call").header("authorization", format!("ApiKey {}", test.owner)).header("idempotency-key", "k");
            test.send(request.header("content-type", "application/json").body(call_body("workflow.variant.outer", &json!({})).to_string().into()).unwrap())
        };
        let before = fake.seen().len();
        let waits = call().await.expect(200);
        assert!(waits["call"]["status"]["message"].as_str().unwrap().contains("waits for approval"), "{waits}");
        let pending = test.get("/tools/approvals?status=pending").await.expect(200);
        decide(test, pending["approvals"][0]["id"].as_str().unwrap(), "approve").await;
        for _ in 0..2 {
            assert_eq!(call().await.expect(200)["call"]["status"]["code"], "STATUS_CODE_OK");
        }
        assert_eq!(fake.seen().len(), before + 1);
    }

    async fn bad_calls_ask_nobody(test: &Test) {
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        ask_before(test, "*", "ask").await;
        test.call(MAKE, json!({"title": 7})).await.expect(400);
        test.call("tools.native.fake.NOPE.main", json!({})).await.expect(404);
        test.call("workflow.variant.nope", json!({})).await.expect(404);
        assert_eq!(test.get("/tools/approvals").await.expect(200)["count"], 0);
    }

    async fn policies_are_checked(test: &Test) {
        for (policy, part) in [
            (json!([]), "must be an object"),
            (json!({"defaults": "ask"}), "`defaults`"),
            (json!({"default": "maybe"}), "`default`"),
            (json!({"rules": {}}), "`rules`"),
            (json!({"rules": [{"pattern": "*", "permission": "allow"}, {"pattern": "", "permission": "ask"}]}), "`rules.1`"),
            (json!({"rules": [{"pattern": "*", "permission": "deny", "permision": "ask"}]}), "Did you mean `permission`?"),
            (json!({"rules": [{"pattern": "hacker-news.*", "permission": "ask"}]}), "Did you mean `tools.native.hacker-news.*`?"),
            (json!({"rules": [{"pattern": "tools.native.fake.MAKE_THING.main", "permission": "ask"}]}), "Did you mean `tools.native.fake.MAKE_A_THING.main`?"),
            (json!({"rules": [{"pattern": "workflow.variant.nope", "permission": "ask"}]}), "no ref fits"),
        ] {
            let body = Some(json!({"permissions": policy}));
            let detail = test.request(Method::PUT, "/tools/permissions", Some(format!("ApiKey {}", test.owner)), body).await.detail(422);
            assert!(detail.contains(part), "{policy}: {detail}");
        }
        assert_eq!(test.get("/tools/permissions").await.expect(200)["permissions"], json!({"rules": []}));
        test.get("/tools/approvals?status=nope").await.expect(422);
    }

    async fn a_rule_outlives_what_it_names(test: &Test) {
        let made = test.post("/simple/workflows/", json!({"workflow": {"slug": "pay", "data": {"kind": "echo"}}})).await.expect(200);
        ask_before(test, "workflow.variant.pay", "ask").await;
        test.post(&format!("/workflows/{}/archive", made["workflow"]["id"].as_str().unwrap()), json!({})).await.expect(200);
        // A rule that is there can be changed and kept; a new one must fit something that is not connected, but is there.
        ask_before(test, "workflow.variant.pay", "deny").await;
        ask_before(test, "tools.native.github.CREATE_*", "deny").await;
    }
}
