//! Events of Composio: triggers there, one address here, and what they tell of accounts.

use std::time::Duration;

use composio_fake::{Delivery, Fault, Kind, On, Version};
use serde_json::{Value, json};

use crate::reserved::workflow;
use crate::support::{Composed, Database, until, with_composio};
use crate::triggers::settled;

const COMMIT: &str = "GITHUB_COMMIT_EVENT";

fn watched(repo: &str) -> Value {
    json!({"owner": "o", "repo": repo})
}

impl Composed {
    async fn subscribe(&self, connection: &Value, config: Value) -> crate::support::Reply {
        let data = json!({"event_key": COMMIT, "trigger_config": config, "references": {"workflow": {"slug": "echo"}}});
        self.post("/triggers/subscriptions/", json!({"subscription": {"connection_id": connection["id"], "data": data}})).await
    }

    /// A connection to GitHub and a subscription to its commits.
    async fn watch(&self) -> (Value, Value) {
        self.yard.triggers.start().await.unwrap();
        workflow(self, "echo", json!({"kind": "echo"})).await;
        let connection = self.connect("github", "main").await;
        let subscription = self.subscribe(&connection, watched("r")).await.expect(200)["subscription"].take();
        (connection, subscription)
    }

    async fn subscription(&self, id: &Value) -> Value {
        self.get(&format!("/triggers/subscriptions/{}", id.as_str().unwrap())).await.expect(200)["subscription"].take()
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

with_composio! {
    async fn an_event_runs_a_workflow_once(test: &Composed) {
        let (_, subscription) = test.watch().await;
        let trigger = text(&subscription["trigger_id"]).to_owned();
        assert_eq!(test.composio.triggers()[0]["trigger_config"], watched("r"));
        let webhook = test.composio.webhooks().remove(0);
        assert_eq!(webhook["webhook_url"], format!("{}/triggers/composio/events", test.yard.config.public_url));
        assert_eq!(webhook["version"], "V3");

        assert_eq!(test.composio.emit(&trigger, json!({"sha": "a1"})).await, [202]);
        let done = settled(test, json!({"subscription_id": subscription["id"]}), 1).await;
        assert_eq!(done[0]["status"]["code"], "200", "{done:#?}");
        let event = test.get(&format!("/triggers/events/{}", text(&done[0]["event_row_id"]))).await.expect(200)["event"].take();
        assert_eq!((&event["event_type"], &event["attributes"]["sha"]), (&json!(COMMIT), &json!("a1")), "{event:#}");

        // Copies of one message, later copies of it, and other versions of the envelope.
        let twice = Delivery { id: Some("msg_twice".to_owned()), copies: 3, ..Delivery::default() };
        let statuses = test.composio.emit_with(&trigger, json!({"sha": "a2"}), twice.clone()).await;
        assert!(statuses.iter().all(|status| [202, 401].contains(status)), "{statuses:?}");
        let later = Delivery { timestamp_offset: 5, copies: 1, ..twice };
        assert_eq!(test.composio.emit_with(&trigger, json!({"sha": "a2"}), later).await, [401]);
        settled(test, json!({"subscription_id": subscription["id"]}), 2).await;
        for version in [Version::V1, Version::V2] {
            let delivery = Delivery { version, ..Delivery::default() };
            assert_eq!(test.composio.emit_with(&trigger, json!({"sha": format!("{version:?}")}), delivery).await, [202]);
        }
        settled(test, json!({"subscription_id": subscription["id"]}), 4).await;

        // Forged, old, and of a trigger that nobody has.
        for delivery in [
            Delivery { secret: Some("guessed".to_owned()), ..Delivery::default() },
            Delivery { timestamp_offset: -1000, ..Delivery::default() },
        ] {
            assert_eq!(test.composio.emit_with(&trigger, json!({}), delivery).await, [401]);
        }
        settled(test, json!({"subscription_id": subscription["id"]}), 4).await;

        test.delete(&format!("/triggers/subscriptions/{}", text(&subscription["id"]))).await.expect(204);
        assert!(test.composio.triggers().is_empty());
    }

    async fn a_copy_is_known_although_its_trigger_is_not(test: &Composed) {
        let (_, subscription) = test.watch().await;
        let forget = "update trigger_subscriptions set trigger_id = null where project_id is not null";
        test.yard.db.execute(forget, store::args![]).await.unwrap();
        let twice = Delivery { id: Some("msg_stranger".to_owned()), copies: 2, ..Delivery::default() };
        let mut statuses = test.composio.emit_with(text(&subscription["trigger_id"]), json!({}), twice.clone()).await;
        statuses.sort_unstable();
        assert_eq!(statuses, [202, 401]);
        // Signed again it is the same message for five minutes.
        let later = Delivery { timestamp_offset: 5, copies: 1, ..twice };
        assert_eq!(test.composio.emit_with(text(&subscription["trigger_id"]), json!({}), later.clone()).await, [401]);
        let forget = "update hub_signatures set seen_at = seen_at - 301000000";
        test.yard.db.execute(forget, store::args![]).await.unwrap();
        assert_eq!(test.composio.emit_with(text(&subscription["trigger_id"]), json!({}), later).await, [202]);
    }

    async fn two_configurations_are_two_subscriptions_and_the_same_one_is_taken(test: &Composed) {
        let (connection, first) = test.watch().await;
        let second = test.subscribe(&connection, watched("other")).await.expect(200)["subscription"].take();
        assert_ne!(first["trigger_id"], second["trigger_id"]);
        let taken = test.subscribe(&connection, watched("r")).await.expect(409);
        assert_eq!(taken["detail"]["conflict"]["subscription_id"], first["id"]);
        assert_eq!(test.composio.triggers().len(), 2);
        assert!(test.subscribe(&connection, json!({"owner": 7})).await.detail(422).contains("owner"));

        // Stopping and starting is told to Composio.
        let one = format!("/triggers/subscriptions/{}", text(&second["id"]));
        test.post(&format!("{one}/stop"), json!({})).await.expect(200);
        assert_eq!(test.composio.triggers().len(), 1);
        let started = test.post(&format!("{one}/start"), json!({})).await.expect(200)["subscription"].take();
        assert_eq!(test.composio.triggers().len(), 2);
        assert_eq!(test.composio.emit(text(&started["trigger_id"]), json!({"sha": "b"})).await, [202]);
        settled(test, json!({"subscription_id": second["id"]}), 1).await;
    }

    async fn composio_says_what_became_of_accounts_and_triggers(test: &Composed) {
        let (connection, subscription) = test.watch().await;
        let trigger = text(&subscription["trigger_id"]).to_owned();
        assert_eq!(test.composio.disable_trigger(&trigger).await, [202]);
        let off = test.subscription(&subscription["id"]).await;
        assert_eq!((&off["flags"]["is_valid"], &off["flags"]["is_active"]), (&json!(false), &json!(true)), "{off:#}");
        test.post(&format!("/triggers/subscriptions/{}/refresh", text(&subscription["id"])), json!({})).await.expect(200);
        assert_eq!(test.subscription(&subscription["id"]).await["flags"]["is_valid"], true);

        let account = text(&test.composio.accounts()[0]["id"]).to_owned();
        assert_eq!(test.composio.expire(&account).await.unwrap(), [202]);
        let expired = test.get(&format!("/tools/connections/{}", text(&connection["id"]))).await.expect(200)["connection"].take();
        assert_eq!(expired["flags"]["is_valid"], false);
        assert!(text(&expired["status"]["message"]).contains("expired"), "{expired:#}");
        test.call("tools.composio.github.LIST_COMMITS.main", json!({"owner": "o", "repo": "r"})).await.expect(400);
    }

    async fn another_account_takes_the_subscriptions_over(test: &Composed) {
        let (connection, subscription) = test.watch().await;
        let refresh = format!("/tools/connections/{}/refresh?force=true", text(&connection["id"]));
        let again = test.post(&refresh, json!({})).await.expect(200)["connection"].take();
        test.walk_through(text(&again["data"]["redirect_url"])).await.expect_page(200);
        until("the old account and its trigger are gone", async || test.composio.accounts().len() == 1).await;
        until("the subscription moves", async || test.subscription(&subscription["id"]).await["trigger_id"] != subscription["trigger_id"]).await;
        let moved = test.subscription(&subscription["id"]).await;
        assert_ne!(moved["trigger_id"], subscription["trigger_id"]);
        assert_eq!(moved["flags"], json!({"is_active": true, "is_valid": true, "is_test": false}));
        assert_eq!(test.composio.emit(text(&moved["trigger_id"]), json!({"sha": "c"})).await, [202]);
        settled(test, json!({"subscription_id": subscription["id"]}), 1).await;
    }

    async fn a_connection_that_goes_takes_its_triggers_along(test: &Composed) {
        let (connection, subscription) = test.watch().await;
        test.post(&format!("/tools/connections/{}/revoke", text(&connection["id"])), json!({})).await.expect(200);
        until("the trigger is gone", async || test.composio.triggers().is_empty()).await;
        let paused = test.subscription(&subscription["id"]).await;
        assert_eq!(paused["flags"]["is_active"], false);
        // Connected again, it watches again.
        let refresh = format!("/tools/connections/{}/refresh", text(&connection["id"]));
        let again = test.post(&refresh, json!({})).await.expect(200)["connection"].take();
        test.walk_through(text(&again["data"]["redirect_url"])).await.expect_page(200);
        until("it starts again", async || test.subscription(&subscription["id"]).await["flags"]["is_active"] == true).await;
        let back = test.subscription(&subscription["id"]).await;
        assert_eq!(test.composio.emit(text(&back["trigger_id"]), json!({"sha": "d"})).await, [202]);
        settled(test, json!({"subscription_id": subscription["id"]}), 1).await;
    }

    async fn a_project_that_goes_leaves_nothing_at_composio(test: &Composed) {
        test.watch().await;
        let project = text(&test.composio.accounts()[0]["user_id"]).to_owned();
        test.admin(http::Method::DELETE, &format!("/admin/projects/{project}"), None).await.expect(204);
        until("accounts and triggers are gone", async || test.composio.accounts().is_empty() && test.composio.triggers().is_empty()).await;
    }

    async fn a_secret_that_changes_loses_no_event(test: &Composed) {
        let (_, subscription) = test.watch().await;
        let trigger = text(&subscription["trigger_id"]).to_owned();
        let old = text(&test.composio.webhooks()[0]["secret"]).to_owned();
        test.yard.triggers.rotate_hub("composio").await.unwrap();
        let new = text(&test.composio.webhooks()[0]["secret"]).to_owned();
        assert_ne!(old, new);
        assert_eq!(test.composio.emit(&trigger, json!({"sha": "new"})).await, [202]);
        let on_its_way = Delivery { secret: Some(old.clone()), ..Delivery::default() };
        assert_eq!(test.composio.emit_with(&trigger, json!({"sha": "old"}), on_its_way.clone()).await, [202]);
        test.clock.advance(Duration::from_hours(25));
        let late = Delivery { timestamp_offset: 25 * 3600, ..on_its_way };
        until("the old secret ends", async || test.composio.emit_with(&trigger, json!({"sha": "late"}), late.clone()).await == [401]).await;

        // Somebody changed it at Composio: the first event that does not fit makes us ask.
        let id = text(&test.composio.webhooks()[0]["id"]).to_owned();
        test.ask_composio("POST", &format!("/webhook_subscriptions/{id}/rotate_secret"), json!({})).await;
        let fresh = Delivery { timestamp_offset: 25 * 3600, ..Delivery::default() };
        until("the new secret is known", async || test.composio.emit_with(&trigger, json!({"sha": "theirs"}), fresh.clone()).await == [202]).await;
        let secret = text(&test.composio.webhooks()[0]["secret"]).to_owned();
        let rows = test.yard.db.all("select secret from deployment_secrets", store::args![]).await.unwrap();
        assert!(rows.iter().all(|row| !String::from_utf8_lossy(&row.get::<Vec<u8>>("secret").unwrap()).contains(&secret)), "sealed");
    }

    async fn the_address_of_events_is_put_right(test: &Composed) {
        until("the webhook is there", async || !test.composio.webhooks().is_empty()).await;
        let id = text(&test.composio.webhooks()[0]["id"]).to_owned();
        let stale = json!({"webhook_url": "http://127.0.0.1:9/old", "enabled_events": ["composio.trigger.message"]});
        test.ask_composio("PATCH", &format!("/webhook_subscriptions/{id}"), stale).await;
        let other = Composed::quiet(Database::Sqlite, test.composio.clone(), |_| {}).await;
        let repaired = other.yard.triggers.ensure_hub("composio").await.unwrap().unwrap();
        assert!(repaired.contains("http://127.0.0.1:9/old"), "{repaired}");
        let webhook = test.composio.webhooks().remove(0);
        assert_eq!(webhook["webhook_url"], format!("{}/triggers/composio/events", other.yard.config.public_url));
        assert_eq!(webhook["enabled_events"].as_array().unwrap().len(), 3);
        assert_eq!(other.yard.triggers.ensure_hub("composio").await.unwrap(), None);
    }

    async fn a_fault_leaves_no_trigger_behind(test: &Composed) {
        let (connection, _) = test.watch().await;
        for (number, (kind, status)) in
            [(Kind::Status(400), 424), (Kind::Status(500), 502), (Kind::MalformedJson, 424), (Kind::WrongTypes, 424), (Kind::LoseAnswer, 424), (Kind::Refuse, 424)]
                .into_iter()
                .enumerate()
        {
            test.composio.fault(Fault { on: On::Path("/upsert"), times: 20, kind });
            let reply = test.subscribe(&connection, watched(&format!("r{number}"))).await;
            assert_eq!(reply.status.as_u16(), status, "{kind:?}: {}", reply.text);
            test.composio.clear_faults();
            assert_eq!(test.composio.triggers().len(), 1, "{kind:?}");
            let listed = test.get("/triggers/subscriptions/").await.expect(200);
            assert_eq!(listed["count"], 1, "{kind:?}");
        }
        // One answer that is lost is asked for again: the trigger is the same one.
        test.composio.fault(Fault { on: On::Path("/upsert"), times: 1, kind: Kind::LoseAnswer });
        test.subscribe(&connection, watched("kept")).await.expect(200);
        assert_eq!(test.composio.triggers().len(), 2);
    }

    async fn triggers_that_only_one_side_knows_are_put_right(test: &Composed) {
        let (_, subscription) = test.watch().await;
        let account = test.composio.accounts()[0]["id"].clone();
        let orphan = json!({"connected_account_id": account, "trigger_config": watched("orphan")});
        test.ask_composio("POST", &format!("/trigger_instances/{COMMIT}/upsert"), orphan).await;
        test.clock.advance(Duration::from_mins(20));
        let (_, tidied) = test.yard.tidy_composio().await.unwrap();
        assert_eq!((tidied.removed, tidied.invalidated), (1, 0));
        test.ask_composio("DELETE", &format!("/trigger_instances/manage/{}", text(&subscription["trigger_id"])), json!({})).await;
        let (_, tidied) = test.yard.tidy_composio().await.unwrap();
        assert_eq!((tidied.removed, tidied.restored, tidied.invalidated), (0, 1, 0));
        let restored = test.subscription(&subscription["id"]).await;
        assert_eq!(restored["flags"]["is_valid"], true);
        assert_eq!(restored["trigger_id"], test.composio.triggers()[0]["id"]);
    }

    async fn a_test_shares_the_trigger_of_a_live_subscription(test: &Composed) {
        let (connection, subscription) = test.watch().await;
        let trigger = text(&subscription["trigger_id"]).to_owned();
        let data = json!({"event_key": COMMIT, "trigger_config": watched("r")});
        let body = json!({"subscription": {"connection_id": connection["id"], "data": data}});
        let waiting = test.post("/triggers/subscriptions/test", body);
        let firing = async {
            for _ in 0..200 {
                tokio::time::sleep(Duration::from_millis(50)).await;
                if test.composio.requests().iter().filter(|request| request.path.ends_with("/upsert")).count() == 2 {
                    break;
                }
            }
            tokio::time::sleep(Duration::from_millis(300)).await;
            test.composio.emit(&trigger, json!({"sha": "t"})).await
        };
        let (captured, sent) = tokio::join!(waiting, firing);
        assert_eq!((captured.expect(200)["count"].clone(), sent), (json!(1), vec![202]));
        assert_eq!(test.composio.triggers().len(), 1, "the live subscription keeps its trigger");
        assert_eq!(test.composio.emit(&trigger, json!({"sha": "u"})).await, [202]);
    }
}
