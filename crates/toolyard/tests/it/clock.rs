//! A clock that jumps: ahead, and back again.

use std::time::Duration;

use serde_json::{Value, json};
use store::args;

use crate::support::{Database, Test, on_both, until};

async fn next_of(test: &Test, path: &str) -> String {
    test.get(path).await.expect(200)["schedule"]["next_fire_at"].as_str().unwrap_or_default().to_owned()
}

on_both! {
    async fn schedules_go_on_after_the_clock_went_ahead_and_back(test: &Test) {
        test.post("/simple/workflows/", json!({"workflow": {"slug": "echo", "data": {"kind": "echo"}}})).await.expect(200);
        let data = json!({"event_key": "tick", "schedule": "*/5 * * * *", "references": {"workflow": {"slug": "echo"}}});
        let made = test.post("/triggers/schedules/", json!({"schedule": {"data": data}})).await.expect(200)["schedule"].take();
        let path = format!("/triggers/schedules/{}", made["id"].as_str().unwrap());
        let (before, planned) = (test.clock.now(), next_of(test, &path).await);
        test.yard.triggers.start().await.unwrap();
        test.clock.advance(Duration::from_hours(365 * 24));
        until("the year that never was is fired", async || next_of(test, &path).await.as_str() > "2028").await;
        test.clock.set(before);
        until("it waits for the slot that comes next", async || next_of(test, &path).await == planned).await;

        // A server that is started after the clock went back finds it too.
        test.yard.triggers.drain().await;
        let far = before.plus(Duration::from_hours(9000));
        test.yard.db.execute("update trigger_schedules set next_fire_at = $1, run_at = $1", args![far]).await.unwrap();
        assert_eq!(test.yard.triggers.replan(before).await.unwrap(), 1);
        assert_eq!(next_of(test, &path).await, planned);
        test.clock.advance(Duration::from_mins(6));
        let fired: usize = test.yard.triggers.fire_due(test.clock.now()).await.unwrap();
        assert_eq!(fired, 1, "and the slot runs when it comes");
        let runs = test.post("/triggers/deliveries/query", json!({"delivery": {"schedule_id": made["id"]}})).await.expect(200);
        let events: Vec<&Value> = runs["deliveries"].as_array().unwrap().iter().map(|run| &run["event_id"]).collect();
        assert!(events.windows(2).all(|pair| pair[0] != pair[1]), "no slot twice: {events:?}");
    }
}
