//! What becomes of deliveries: which failures end them, when they are tried again, who called them off, and what is counted.

use std::time::Duration;

use http::Method;
use kernel::Role;
use serde_json::{Value, json};
use toolyard::config::read_service_timeout;

use crate::reserved::workflow;
use crate::support::{Database, Fake, Test, on_both, until};
use crate::triggers::{deliveries, http_target, send, settled, webhook};

async fn one(test: &Test, id: &Value) -> Value {
    test.get(&format!("/triggers/deliveries/{}", id.as_str().unwrap())).await.expect(200)["delivery"].take()
}

/// Waits until the one delivery of a webhook is in this state.
async fn in_state(test: &Test, hook: &Value, state: &str) -> Value {
    let filter = json!({"subscription_id": hook["id"]});
    until(state, async || deliveries(test, filter.clone()).await.iter().any(|found| found["state"] == state)).await;
    deliveries(test, filter).await.remove(0)
}

async fn metric(test: &Test, line: &str) -> String {
    let text = test.get("/metrics").await.text;
    let found = text.lines().find_map(|found| found.strip_prefix(line)).map(|value| value.trim().to_owned());
    found.unwrap_or_else(|| panic!("no {line} in {text}"))
}

on_both! {
    async fn events_and_deliveries_are_counted_over_time(test: &Test) {
        workflow(test, "echo", json!({"kind": "echo"})).await;
        let fine = webhook(test, "echo", json!({})).await;
        let fake = Fake::start().await;
        http_target(test, &fake, "target").await;
        let refused = webhook(test, "target", json!({})).await;
        fake.answer_target(&[422]);
        test.yard.triggers.start().await.unwrap();
        let hour = Duration::from_hours(1);
        send(test, fine["url"].as_str().unwrap(), &[], "{}").await.expect(202);
        settled(test, json!({}), 1).await;
        test.clock.advance(hour);
        for url in [&fine["url"], &refused["url"]] {
            send(test, url.as_str().unwrap(), &[], "{}").await.expect(202);
        }
        settled(test, json!({}), 3).await;
        test.clock.advance(Duration::from_secs(1));
        let stats = test.get("/triggers/stats?since=2h&buckets=2").await.expect(200);
        assert_eq!(stats["events"], 3);
        assert_eq!(stats["deliveries"], json!({"ready": 0, "leased": 0, "waiting": 0, "done": 2, "dead": 1, "cancelled": 0}));
        let now = test.clock.now();
        let part = |ago: u32, events: u64, dead: u64| json!({"from": now.minus(hour * ago).to_string(), "events": events, "dead": dead});
        assert_eq!(stats["buckets"], json!([part(2, 1, 0), part(1, 2, 1)]));
        assert_eq!((&stats["since"], &stats["until"]), (&part(2, 1, 0)["from"], &json!(now.to_string())));
        let usual = test.get("/triggers/stats").await.expect(200);
        assert_eq!((&usual["events"], usual["buckets"].as_array().unwrap().len()), (&json!(3), 24));
        let earlier = test.get("/triggers/stats?since=3d&until=2d&buckets=1").await.expect(200);
        assert_eq!((&earlier["events"], &earlier["deliveries"]["dead"]), (&json!(0), &json!(0)));
        for query in ["since=1h&until=2h", "since=now", "buckets=0", "buckets=201", "buckets=-1", "since=then", "from=1h"] {
            test.get(&format!("/triggers/stats?{query}")).await.expect(422);
        }
        let stranger = test.key("elsewhere", Role::Owner, None).await;
        assert_eq!(test.get_as(&stranger, "/triggers/stats").await.expect(200)["events"], 0);
        let status = test.admin(Method::GET, "/admin/status", None).await.expect(200);
        assert_eq!(status["queues"]["deliveries_dead"], 1);
    }

    async fn deliveries_that_have_not_ended_are_counted_apart(test: &Test) {
        workflow(test, "echo", json!({"kind": "echo"})).await;
        let hook = webhook(test, "echo", json!({})).await;
        for _ in 0..2 {
            send(test, hook["url"].as_str().unwrap(), &[], "{}").await.expect(202);
        }
        let data = json!({"event_key": "tick", "schedule": "0 0 1 1 *", "references": {"workflow": {"slug": "echo"}}});
        let clock = test.post("/triggers/schedules/", json!({"schedule": {"name": "s", "data": data}})).await.expect(200)["schedule"].take();
        test.post(&format!("/triggers/schedules/{}/run", clock["id"].as_str().unwrap()), json!({})).await.expect(200);
        let made = deliveries(test, json!({})).await;
        let first = made.iter().find(|delivery| delivery["subscription_id"] == hook["id"]).unwrap();
        test.post(&format!("/triggers/deliveries/{}/cancel", first["id"].as_str().unwrap()), json!({})).await.expect(200);
        test.clock.advance(Duration::from_secs(1));
        let stats = test.get("/triggers/stats").await.expect(200);
        assert_eq!(stats["deliveries"], json!({"ready": 2, "leased": 0, "waiting": 0, "done": 0, "dead": 0, "cancelled": 1}));
        let cancelled = deliveries(test, json!({"state": "cancelled"})).await;
        assert_eq!((cancelled.len(), &cancelled[0]["id"]), (1, &first["id"]));
        assert!(deliveries(test, json!({"state": "dead"})).await.is_empty());
    }

    async fn what_cannot_heal_is_not_tried_again(test: &Test) {
        test.yard.triggers.start().await.unwrap();
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        http_target(test, &fake, "target").await;
        let fails = |code: u16| json!([{"name": "a", "call": "tools.native.fake.FAIL_A_THING.main", "arguments": {"code": code}}]);
        let nested = json!([{"name": "a", "call": "workflow.variant.target"}]);
        let bad = json!([{"name": "a", "call": "tools.native.fake.FAIL_A_THING.main", "arguments": {"code": "{{ inputs.event.event_type }}"}}]);
        for (slug, steps, answer, code, state) in [
            ("gone", fails(404), 0, "404", "dead"),
            ("wrong", fails(422), 0, "422", "dead"),
            ("broken", fails(503), 0, "502", "ready"),
            ("busy", fails(429), 0, "424", "ready"),
            ("inner-wrong", nested.clone(), 422, "422", "dead"),
            ("inner-broken", nested, 503, "503", "ready"),
            ("bad-arguments", bad, 0, "400", "dead"),
        ] {
            workflow(test, slug, json!({"steps": steps})).await;
            let hook = webhook(test, slug, json!({})).await;
            fake.answer_target(&[answer]);
            send(test, hook["url"].as_str().unwrap(), &[], "{}").await.expect(202);
            until(slug, async || deliveries(test, json!({"subscription_id": hook["id"]})).await[0]["status"]["code"] != "102").await;
            let found = deliveries(test, json!({"subscription_id": hook["id"]})).await.remove(0);
            assert_eq!((&found["state"], &found["status"]["code"]), (&json!(state), &json!(code)), "{slug}: {found:#}");
            assert_eq!((&found["attempts_count"], found["next_attempt_at"].is_string()), (&json!(1), state == "ready"), "{slug}: {found:#}");
        }
    }

    async fn a_delivery_says_what_it_is_and_when_it_is_tried_again(test: &Test) {
        test.yard.triggers.start().await.unwrap();
        let fake = Fake::start().await;
        http_target(test, &fake, "target").await;
        let hook = webhook(test, "target", json!({})).await;
        fake.answer_target(&[503]);
        send(test, hook["url"].as_str().unwrap(), &[], "{}").await.expect(202);
        until("the first try", async || deliveries(test, json!({})).await[0]["status"]["code"] == "503").await;
        let listed = deliveries(test, json!({})).await.remove(0);
        assert_eq!((&listed["trigger_name"], &listed["workflow"]), (&json!("target"), &json!("target")), "{listed:#}");
        // The first wait is ten seconds at most, and half of it at least; the clock stands still.
        let next = listed["next_attempt_at"].as_str().unwrap();
        let wait = next.parse::<jiff::Timestamp>().unwrap().as_microsecond() - test.clock.now().micros();
        assert!((5_000_000..=10_000_000).contains(&wait), "{next}");
        assert_eq!(one(test, &listed["id"]).await["next_attempt_at"], next);
        test.clock.advance(Duration::from_mins(1));
        let done = settled(test, json!({}), 1).await.remove(0);
        assert_eq!((&done["state"], &done["next_attempt_at"]), (&json!("done"), &Value::Null));

        // A schedule has a name too, and a workflow that it names by a deployment.
        let data = json!({"event_key": "tick", "schedule": "0 0 1 1 *", "references": {"workflow": {"slug": "target"}}});
        let made = test.post("/triggers/schedules/", json!({"schedule": {"name": "yearly", "data": data}})).await.expect(200)["schedule"].take();
        let run = test.post(&format!("/triggers/schedules/{}/run", made["id"].as_str().unwrap()), json!({})).await.expect(200)["delivery"].take();
        assert_eq!((&run["trigger_name"], &run["workflow"]), (&json!("yearly"), &json!("target")));
    }

    async fn a_delivery_can_be_cancelled_until_it_has_ended(test: &Test) {
        test.yard.triggers.start().await.unwrap();
        let fake = Fake::start().await;
        http_target(test, &fake, "target").await;
        workflow(test, "slow", json!({"kind": "http", "url": format!("{}/slow", fake.url)})).await;
        let cancel = |id: &Value| format!("/triggers/deliveries/{}/cancel", id.as_str().unwrap());

        // One that waits for its next try.
        let hook = webhook(test, "target", json!({})).await;
        fake.answer_target(&[503]);
        send(test, hook["url"].as_str().unwrap(), &[], "{}").await.expect(202);
        until("the first try", async || deliveries(test, json!({"subscription_id": hook["id"]})).await[0]["status"]["code"] == "503").await;
        let id = deliveries(test, json!({"subscription_id": hook["id"]})).await[0]["id"].clone();
        let viewer = test.key("default", Role::Viewer, None).await;
        assert_eq!(test.post_as(&viewer, &cancel(&id), json!({})).await.status, 403);
        let other = test.key("other", Role::Owner, None).await;
        assert_eq!(test.post_as(&other, &cancel(&id), json!({})).await.status, 404);
        let gone = test.post(&cancel(&id), json!({})).await.expect(200)["delivery"].take();
        assert_eq!((&gone["state"], &gone["status"]["code"], &gone["next_attempt_at"]), (&json!("cancelled"), &json!("499"), &Value::Null));
        assert!(gone["cancelled_by_id"].is_string(), "{gone:#}");
        assert!(test.post(&cancel(&id), json!({})).await.detail(409).contains("has ended already"));
        assert_eq!(deliveries(test, json!({"state": "cancelled"})).await.len(), 1);
        assert_eq!(test.post("/triggers/deliveries/replay", json!({})).await.expect(200)["count"], 0, "nobody wanted it");

        // One that a service took and has not ended.
        let hook = webhook(test, "target", json!({})).await;
        fake.answer_target(&[202]);
        send(test, hook["url"].as_str().unwrap(), &[], "{}").await.expect(202);
        let waiting = in_state(test, &hook, "waiting").await;
        test.post(&cancel(&waiting["id"]), json!({})).await.expect(200);
        let complete = format!("/triggers/deliveries/{}/complete", waiting["id"].as_str().unwrap());
        test.post(&complete, json!({"status": {"code": 200}})).await.expect(409);

        // One that runs: the run is cut off, and the next of an ordered subscription goes on.
        let hook = webhook(test, "slow", json!({"ordered": true, "inputs_fields": {"ms": "$.event.attributes.ms"}})).await;
        for ms in [60_000, 0] {
            send(test, hook["url"].as_str().unwrap(), &[], &json!({"ms": ms}).to_string()).await.expect(202);
        }
        until("it runs", async || fake.seen_at("/slow").len() == 1).await;
        let running = in_state(test, &hook, "leased").await;
        let running = deliveries(test, json!({"subscription_id": hook["id"], "state": "leased"})).await.pop().unwrap_or(running);
        test.post(&cancel(&running["id"]), json!({})).await.expect(200);
        until("the next runs", async || fake.seen_at("/slow").len() == 2).await;
        until("the try is written", async || one(test, &running["id"]).await["attempts"][0]["code"] == "499").await;
        assert_eq!(one(test, &running["id"]).await["state"], "cancelled");
        assert_eq!(metric(test, "toolyard_trigger_deliveries_ended_total{state=\"cancelled\"}").await, "3");

        // What was cancelled can be run after all.
        test.clock.advance(Duration::from_hours(2));
        assert_eq!(fake.seen_at("/target").len(), 2, "the first was never tried again");
        test.post(&format!("/triggers/deliveries/{}/retry", id.as_str().unwrap()), json!({})).await.expect(200);
        until("it ran", async || one(test, &id).await["state"] == "done").await;
        assert_eq!(one(test, &id).await["cancelled_by_id"], Value::Null);
        assert!(test.post(&cancel(&id), json!({})).await.detail(409).contains("The delivery is done"));
    }

    async fn what_waits_and_what_died_is_counted(test: &Test) {
        workflow(test, "echo", json!({"kind": "echo"})).await;
        let hook = webhook(test, "echo", json!({})).await;
        let data = json!({"event_key": "tick", "schedule": "*/5 * * * *", "references": {"workflow": {"slug": "echo"}}});
        test.post("/triggers/schedules/", json!({"schedule": {"data": data}})).await.expect(200);
        assert_eq!(metric(test, "toolyard_trigger_queue_lag_seconds").await, "0.0");
        send(test, hook["url"].as_str().unwrap(), &[], "{}").await.expect(202);
        test.clock.advance(Duration::from_secs(330));
        assert_eq!(metric(test, "toolyard_trigger_queue_depth{state=\"due\"}").await, "1");
        assert_eq!(metric(test, "toolyard_trigger_queue_depth{state=\"waiting\"}").await, "0");
        assert_eq!(metric(test, "toolyard_trigger_queue_lag_seconds").await, "330.0");
        assert_eq!(metric(test, "toolyard_trigger_schedule_lag_seconds").await, "30.0");
        test.yard.triggers.start().await.unwrap();
        settled(test, json!({}), 2).await;
        // What ended can be read a moment before it is counted, while the disk takes it.
        until("two are counted", async || metric(test, "toolyard_trigger_deliveries_ended_total{state=\"done\"}").await == "2").await;
        assert_eq!(metric(test, "toolyard_trigger_queue_depth{state=\"due\"}").await, "0");
        assert_eq!(metric(test, "toolyard_trigger_schedule_lag_seconds").await, "0.0");
        let unbound = test.post("/triggers/subscriptions/", json!({"subscription": {"data": {"event_key": "WEBHOOK_RECEIVED"}}})).await.expect(200);
        send(test, unbound["subscription"]["url"].as_str().unwrap(), &[], "{}").await.expect(202);
        settled(test, json!({"state": "dead"}), 1).await;
        until("one is counted", async || metric(test, "toolyard_trigger_deliveries_ended_total{state=\"dead\"}").await == "1").await;
        let said = test.post("/triggers/deliveries/query", json!({"delivery": {"state": "canceled"}})).await.detail(422);
        assert!(said.contains("Did you mean `cancelled`?"), "{said}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_paused_server_keeps_events_and_runs_nothing() {
    for database in [Database::Sqlite, Database::Postgres] {
        let test = &Test::with(database, |config| config.triggers.paused = true).await;
        test.yard.triggers.start().await.unwrap();
        workflow(test, "echo", json!({"kind": "echo"})).await;
        let hook = webhook(test, "echo", json!({})).await;
        let data = json!({"event_key": "tick", "schedule": "*/5 * * * *", "references": {"workflow": {"slug": "echo"}}});
        test.post("/triggers/schedules/", json!({"schedule": {"data": data}})).await.expect(200);
        send(test, hook["url"].as_str().unwrap(), &[], "{}").await.expect(202);
        test.clock.advance(Duration::from_mins(6));
        // Longer than a running server takes to look.
        tokio::time::sleep(Duration::from_millis(1200)).await;
        let kept = deliveries(test, json!({})).await;
        assert_eq!((kept.len(), &kept[0]["state"], &kept[0]["attempts_count"]), (1, &json!("ready"), &json!(0)), "{kept:#?}");
        assert_eq!(test.get("/health").await.expect(200)["triggers"], "paused");
        assert_eq!(test.get("/ready").await.expect(200)["parts"]["triggers"], "paused");
        let said =
            test.post("/triggers/subscriptions/test?wait=1", json!({"subscription": {"data": {"event_key": "WEBHOOK_RECEIVED"}}})).await;
        assert!(said.detail(409).contains("paused"));
        let tick = "/admin/triggers/schedules/refresh?trigger_datetime=2027-01-15T08:06:00Z";
        assert_eq!(test.admin(Method::POST, tick, None).await.expect(200)["status"], "failure");
        assert_eq!(deliveries(test, json!({})).await.len(), 1);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn services_have_the_time_that_the_operator_gives_them() {
    let fake = Fake::start().await;
    for (setting, answer) in [("1", 424), ("30,fake=1", 424), ("1,native/fake=30", 200)] {
        let test = &Test::with(Database::Sqlite, |config| config.service_timeout = read_service_timeout(setting).unwrap()).await;
        test.connect_fake(&fake, "main").await;
        let reply = test.call("tools.native.fake.SLOWLY.main", json!({"ms": 1500})).await;
        assert_eq!(reply.status, answer, "{setting}: {}", reply.text);
    }
}
