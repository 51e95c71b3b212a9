//! What goes wrong on request.

use std::time::{Duration, Instant};

use composio_fake::{Fault, Kind, On};
use http::Method;
use serde_json::{Value, json};

use crate::support::World;

const FRONT_PAGE: &str = "/tools/execute/HACKERNEWS_GET_FRONTPAGE";

#[tokio::test]
async fn a_fault_is_used_up_and_hits_only_what_it_is_for() {
    let world = World::new().await;
    world.fake.fault(Fault { on: On::Path("/tools/execute/"), times: 2, kind: Kind::Status(503) });
    assert_eq!(world.send(Method::GET, "/toolkits", None).await.0, 200);
    for status in [503, 503, 200] {
        let (seen, body) = world.post(FRONT_PAGE, json!({"arguments": {}})).await;
        assert_eq!((seen, body["error"]["slug"].as_str()), (status, (status == 503).then_some("HTTP_ServiceUnavailable")));
    }
    world.fake.fault(Fault { on: On::Request("POST", "/auth_configs"), times: 1, kind: Kind::Status(500) });
    assert_eq!(world.send(Method::GET, "/auth_configs", None).await.0, 200);
    assert_eq!(world.post("/auth_configs", json!({"toolkit": {"slug": "github"}})).await.0, 500);
    assert!(world.fake.auth_configs().is_empty(), "nothing was done");
    world.fake.fault(Fault { on: On::Path("/"), times: 9, kind: Kind::Status(500) });
    world.fake.clear_faults();
    assert_eq!(world.send(Method::GET, "/toolkits", None).await.0, 200);
}

#[tokio::test]
async fn rate_limits_come_with_headers_and_without_an_envelope() {
    let world = World::new().await;
    world.fake.fault(Fault { on: On::Path("/toolkits"), times: 1, kind: Kind::RateLimited { retry_after: 7 } });
    let (status, headers, body) = world.try_send(Method::GET, "/toolkits", None).await.unwrap();
    assert_eq!((status, &headers["retry-after"], &headers["x-ratelimit-remaining"]), (429, &"7".parse().unwrap(), &"0".parse().unwrap()));
    let body: Value = serde_json::from_str(&body).unwrap();
    assert!(body["message"].is_string() && body["error"].is_null());
    let (_, headers, _) = world.try_send(Method::GET, "/toolkits", None).await.unwrap();
    assert_eq!((&headers["x-ratelimit"], &headers["x-ratelimit-remaining"]), (&"2000".parse().unwrap(), &"1999".parse().unwrap()));
}

#[tokio::test]
async fn answers_come_late_broken_or_mistyped_after_the_work() {
    let world = World::new().await;
    world.fake.fault(Fault { on: On::Path("/toolkits"), times: 1, kind: Kind::Delay(Duration::from_millis(80)) });
    let begin = Instant::now();
    world.get("/toolkits").await;
    assert!(begin.elapsed() >= Duration::from_millis(80));

    world.fake.fault(Fault { on: On::Path("/auth_configs"), times: 1, kind: Kind::MalformedJson });
    let (status, _, text) = world.try_send(Method::POST, "/auth_configs", Some(json!({"toolkit": {"slug": "github"}}))).await.unwrap();
    assert_eq!((status, world.fake.auth_configs().len()), (201, 1));
    assert!(serde_json::from_str::<Value>(&text).is_err(), "{text}");

    world.fake.fault(Fault { on: On::Path("/tools/execute/"), times: 1, kind: Kind::WrongTypes });
    let (status, done) = world.post(FRONT_PAGE, json!({"arguments": {}})).await;
    assert_eq!((status, done), (200, json!({"data": [], "error": 0, "successful": "yes", "log_id": 7})));
}

#[tokio::test]
async fn the_connection_breaks_before_or_after_the_work() {
    let world = World::new().await;
    let order = json!({"toolkit": {"slug": "github"}});
    for (kind, done) in [(Kind::Refuse, 0), (Kind::LoseAnswer, 1)] {
        world.fake.forget_requests();
        world.fake.fault(Fault { on: On::Path("/auth_configs"), times: 1, kind });
        assert!(world.try_send(Method::POST, "/auth_configs", Some(order.clone())).await.is_err(), "{kind:?}");
        assert_eq!(world.fake.auth_configs().len(), done, "{kind:?}");
        let requests = world.fake.requests();
        assert_eq!((requests.len(), requests[0].status), (1, 0), "{kind:?}");
        assert_eq!(world.send(Method::GET, "/toolkits", None).await.0, 200, "a new connection works");
    }
}

#[tokio::test]
async fn requests_are_written_down() {
    let world = World::new().await;
    world.get("/tools?toolkit_slug=github&limit=1").await;
    world.post("/auth_configs", json!({"toolkit": {"slug": "nope"}})).await;
    let [list, create] = &world.fake.requests()[..] else { panic!("there are two") };
    assert_eq!((list.method.as_str(), list.path.as_str(), list.status), ("GET", "/tools", 200));
    assert_eq!(list.query, [("toolkit_slug".to_owned(), "github".to_owned()), ("limit".to_owned(), "1".to_owned())]);
    assert_eq!((&list.body, list.headers["x-api-key"].to_str().unwrap()), (&None, world.fake.key()));
    assert_eq!((create.status, &create.body), (404, &Some(json!({"toolkit": {"slug": "nope"}}))));
    world.fake.forget_requests();
    assert!(world.fake.requests().is_empty());
}

#[tokio::test]
async fn demos_control_it_over_http() {
    let world = World::new().await;
    let control = |path: &str| world.fake.url().replace("/api/v3.1", &format!("/fake{path}"));
    let post =
        async |path: &str, body: Value| world.client.post(control(path)).body(body.to_string()).send().await.unwrap().status().as_u16();
    assert_eq!(post("/faults", json!({"path": "/toolkits", "kind": "status", "status": 502})).await, 204);
    assert_eq!(post("/faults", json!({"path": "/toolkits", "kind": "nonsense"})).await, 400);
    assert_eq!(world.send(Method::GET, "/toolkits", None).await.0, 502);
    let account = world.account("github", "u").await;
    assert_eq!((post(&format!("/expire/{account}"), json!({})).await, post("/expire/ca_none", json!({})).await), (200, 404));
    assert_eq!(world.fake.accounts()[0]["status"], "EXPIRED");
    let text = world.client.get(control("/requests")).send().await.unwrap().text().await.unwrap();
    let requests: Value = serde_json::from_str(&text).unwrap();
    assert_eq!((&requests[0]["path"], &requests[0]["status"]), (&json!("/toolkits"), &json!(502)));
}

#[tokio::test]
async fn it_is_gone_when_it_is_dropped() {
    let World { fake, client } = World::new().await;
    let url = format!("{}/toolkits", fake.url());
    assert_eq!(client.get(&url).send().await.unwrap().status().as_u16(), 401);
    drop(fake);
    let begin = Instant::now();
    while client.get(&url).send().await.is_ok() {
        assert!(begin.elapsed() < Duration::from_secs(5), "it still answers");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}
