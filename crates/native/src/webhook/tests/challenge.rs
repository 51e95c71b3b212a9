//! Requests that only want an answer.

use serde_json::{Value, json};
use triggers::{Answer, Incoming, Refusal, Verified};

use super::super::challenge::answer;
use super::{URL, headers};
use crate::manifest::Challenge;

type Verdict = Result<Option<Verified>, Refusal>;

const SECRET: &[u8] = b"hush";

#[expect(clippy::unnecessary_wraps, reason = "it stands for what `verify` returns")]
fn proven() -> Verdict {
    Ok(Some(Verified { timestamp: None, signature: String::new(), id: None }))
}

fn unsigned() -> Verdict {
    Err(Refusal::Missing("X-Signature".to_owned()))
}

struct ActionRequest {
    challenge: Value,
    query: Vec<(String, String)>,
    headers: http::HeaderMap,
    body: Value,
}

impl ActionRequest {
    fn of(challenge: Value, body: Value) -> Self {
        Self { challenge, query: Vec::new(), headers: headers(&[]), body }
    }

    fn with_query(mut self, pairs: &[(&str, &str)]) -> Self {
        self.query = pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        self
    }

    fn answer(&self, verdict: &Verdict) -> Option<(Answer, Option<String>)> {
        let challenge: Challenge = serde_json::from_value(self.challenge.clone()).unwrap();
        let incoming = Incoming { method: "POST", url: URL, query: &self.query, headers: &self.headers, body: b"" };
        answer(&challenge, &incoming, &self.body, SECRET, verdict)
    }

    fn reply(&self, verdict: &Verdict) -> Option<Answer> {
        self.answer(verdict).map(|(answer, _)| answer)
    }
}

#[expect(clippy::unnecessary_wraps, reason = "an expected value has the type of what it is compared with")]
fn text(text: &str) -> Option<Answer> {
    Some(Answer::Text(text.to_owned()))
}

#[test]
fn slack_wants_its_value_back() {
    let challenge = json!({"match": {"/type": "url_verification"}, "reply": "/challenge"});
    let ask = ActionRequest::of(challenge.clone(), json!({"type": "url_verification", "challenge": "3eZbrw1a"}));
    assert_eq!(ask.reply(&proven()), text("3eZbrw1a"));
    assert_eq!(ask.reply(&Err(Refusal::NoSecret)), text("3eZbrw1a"));
    assert_eq!(ask.reply(&unsigned()), text("3eZbrw1a"));
    assert_eq!(ask.reply(&Err(Refusal::Mismatch)), None);
    assert_eq!(ask.reply(&Err(Refusal::Stale)), None);

    for other in [
        json!({"type": "event_callback", "challenge": "x"}),
        json!({"type": "url_verification"}),
        json!({"type": "url_verification", "challenge": ["x"]}),
        json!({"type": "url_verification", "challenge": "x".repeat(5000)}),
        json!(null),
        json!([]),
    ] {
        assert_eq!(ActionRequest::of(challenge.clone(), other).reply(&proven()), None);
    }
}

#[test]
fn some_want_json() {
    let monday = json!({"reply": "/challenge", "body": {"challenge": "{value}"}});
    assert_eq!(
        ActionRequest::of(monday.clone(), json!({"challenge": "abc"})).reply(&unsigned()),
        Some(Answer::Json(json!({"challenge": "abc"})))
    );
    assert_eq!(ActionRequest::of(monday, json!({"event": {}})).reply(&unsigned()), None);

    let discord = json!({"match": {"/type": 1}, "reply": "/type", "body": {"type": 1}});
    assert_eq!(ActionRequest::of(discord.clone(), json!({"type": 1})).reply(&proven()), Some(Answer::Json(json!({"type": 1}))));
    assert_eq!(ActionRequest::of(discord, json!({"type": 1})).reply(&Err(Refusal::Mismatch)), None);
}

#[test]
fn only_a_proven_sender_has_a_value_signed() {
    let zoom = json!({
        "match": {"/event": "endpoint.url_validation"},
        "reply": "/payload/plainToken",
        "body": {"plainToken": "{value}", "encryptedToken": "{hmac}"},
    });
    let ask = ActionRequest::of(zoom, json!({"event": "endpoint.url_validation", "payload": {"plainToken": "qgg8vlvZRS6UYooatFL8Aw"}}));
    let reply = json!({
        "plainToken": "qgg8vlvZRS6UYooatFL8Aw",
        "encryptedToken": "36517668f50730dfc6247803d9cc2b23e89a05172ec38cd1797466a23164362a",
    });
    assert_eq!(ask.reply(&proven()), Some(Answer::Json(reply)));
    assert_eq!(ask.reply(&unsigned()), None);
    assert_eq!(ask.reply(&Err(Refusal::NoSecret)), None);
}

#[test]
fn a_handshake_brings_the_secret_once() {
    let asana = json!({"reply": {"header": "X-Hook-Secret"}, "secret": true});
    let mut ask = ActionRequest::of(asana, json!(null));
    ask.headers = headers(&[("x-hook-secret", "b537207f")]);
    let expected = (Answer::Header { name: "X-Hook-Secret".to_owned(), value: "b537207f".to_owned() }, Some("b537207f".to_owned()));
    assert_eq!(ask.answer(&Err(Refusal::NoSecret)), Some(expected));
    for later in [proven(), unsigned(), Err(Refusal::Mismatch)] {
        assert_eq!(ask.answer(&later), None, "{later:?}");
    }

    let notion = ActionRequest::of(json!({"reply": "/verification_token", "secret": true}), json!({"verification_token": "secret_1"}));
    assert_eq!(notion.answer(&Err(Refusal::NoSecret)).unwrap().1.as_deref(), Some("secret_1"));
}

#[test]
fn the_value_may_stand_in_the_query() {
    let microsoft =
        ActionRequest::of(json!({"reply": {"query": "validationToken"}}), json!(null)).with_query(&[("validationToken", "a b<c>")]);
    assert_eq!(microsoft.reply(&unsigned()), text("a b<c>"));

    let meta = json!({"reply": {"query": "hub.challenge"}, "token": "hub.verify_token"});
    for (query, reply) in [
        (vec![("hub.mode", "subscribe"), ("hub.challenge", "1158201444"), ("hub.verify_token", "hush")], text("1158201444")),
        (vec![("hub.challenge", "1158201444"), ("hub.verify_token", "wrong")], None),
        (vec![("hub.challenge", "1158201444")], None),
        (vec![("hub.verify_token", "hush")], None),
    ] {
        assert_eq!(ActionRequest::of(meta.clone(), json!(null)).with_query(&query).reply(&unsigned()), reply, "{query:?}");
    }
}
