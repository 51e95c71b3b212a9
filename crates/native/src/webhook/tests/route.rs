//! Which events a request is.

use http::HeaderMap;
use serde_json::{Value, json};
use triggers::Judged;

use super::super::judge;
use super::{NOW, headers, post};
use crate::manifest::{Webhook, Webhooks};

fn webhooks(value: Value) -> Webhooks {
    serde_json::from_value(value).unwrap()
}

fn specs(webhooks: &[(&'static str, Value)]) -> Vec<(&'static str, Webhook)> {
    webhooks.iter().map(|(key, webhook)| (*key, serde_json::from_value(webhook.clone()).unwrap())).collect()
}

fn events(webhooks: &Webhooks, specs: &[(&'static str, Webhook)], headers: &HeaderMap, body: &Value) -> Vec<String> {
    let specs = specs.iter().map(|(key, webhook)| (*key, webhook));
    match judge(webhooks, specs, &post(headers, body.to_string().as_bytes()), None, NOW) {
        Ok(Judged::Event { keys, verified: None, .. }) => keys,
        other => panic!("{other:?}"),
    }
}

fn delivery_id(webhooks: &Webhooks, headers: &HeaderMap, body: &[u8]) -> String {
    match judge(webhooks, std::iter::empty(), &post(headers, body), None, NOW) {
        Ok(Judged::Event { id, .. }) => id,
        other => panic!("{other:?}"),
    }
}

#[test]
fn all_events_that_match_are_found() {
    let specs = specs(&[
        ("ANY", json!({})),
        ("ISSUE_OPENED", json!({"event": "issues", "match": {"/action": "opened"}})),
        ("ISSUE_CHANGED", json!({"event": "issues", "match": {"/action": ["opened", "edited"]}})),
        ("ISSUE_NOT_PULL", json!({"event": "issues", "match": {"/issue/pull_request": null}})),
        ("PUSH", json!({"event": "push"})),
    ]);
    let by_header = webhooks(json!({"event": {"header": "X-GitHub-Event"}}));
    for (kind, body, expected) in [
        ("issues", json!({"action": "opened"}), vec!["ANY", "ISSUE_OPENED", "ISSUE_CHANGED", "ISSUE_NOT_PULL"]),
        ("issues", json!({"action": "edited", "issue": {"pull_request": {}}}), vec!["ANY", "ISSUE_CHANGED"]),
        ("issues", json!({"action": ["opened"], "issue": {"pull_request": 1}}), vec!["ANY"]),
        ("push", json!({"action": "opened"}), vec!["ANY", "PUSH"]),
        ("Push", json!([]), vec!["ANY"]),
    ] {
        assert_eq!(events(&by_header, &specs, &headers(&[("x-github-event", kind)]), &body), expected, "{kind} {body}");
    }
    assert_eq!(events(&by_header, &specs, &headers(&[]), &json!(null)), ["ANY"]);
    assert_eq!(events(&webhooks(json!({})), &specs, &headers(&[("x-github-event", "push")]), &json!({})), ["ANY"]);
}

#[test]
fn the_kind_may_stand_in_the_body() {
    let specs = specs(&[("ONE", json!({"event": "1"})), ("CREATED", json!({"event": "created"}))]);
    let by_pointer = webhooks(json!({"event": {"pointer": "/event/type"}}));
    for (body, expected) in [
        (json!({"event": {"type": "created"}}), vec!["CREATED"]),
        (json!({"event": {"type": 1}}), vec!["ONE"]),
        (json!({"event": {"type": ["created"]}}), vec![]),
        (json!({"event": "created"}), vec![]),
        (json!("created"), vec![]),
    ] {
        assert_eq!(events(&by_pointer, &specs, &headers(&[]), &body), expected, "{body}");
    }
}

#[test]
fn a_retry_has_the_id_of_the_first_try() {
    let by_header = webhooks(json!({"id": {"header": "X-Id"}}));
    let by_pointer = webhooks(json!({"id": {"pointer": "/id"}}));
    let nowhere = webhooks(json!({}));
    let sent = headers(&[("x-id", "72d3162e")]);
    for (webhooks, headers_of, body, expected) in [
        (&by_header, &sent, r#"{"ok":true}"#, Some("72d3162e")),
        (&by_header, &headers(&[]), r#"{"ok":true}"#, Some("4062edaf750fb8074e7e83e0c9028c94e32468a8b6f1614774328ef045150f93")),
        (&by_header, &headers(&[("x-id", "é")]), "{}", None),
        (&by_pointer, &sent, r#"{"id":"evt_1"}"#, Some("evt_1")),
        (&by_pointer, &sent, r#"{"id":9007199254740993}"#, Some("9007199254740993")),
        (&by_pointer, &sent, r#"{"id":null}"#, None),
        (&by_pointer, &sent, r#"{"id":""}"#, None),
        (&by_pointer, &sent, r#"{"id":{}}"#, None),
        (&nowhere, &sent, r#"{"id":"evt_1"}"#, None),
    ] {
        let id = delivery_id(webhooks, headers_of, body.as_bytes());
        assert_eq!(id.len() == 64, expected.is_none_or(|id| id.len() == 64), "{body}");
        assert!(expected.is_none_or(|expected| expected == id), "{body}: {id}");
    }
    for odd in ["x".repeat(201), "a\u{0}b".to_owned()] {
        let body = json!({"id": odd}).to_string();
        let id = delivery_id(&by_pointer, &sent, body.as_bytes());
        assert!(id.len() == 64 && id != delivery_id(&nowhere, &sent, body.as_bytes()), "{id}");
    }
}
