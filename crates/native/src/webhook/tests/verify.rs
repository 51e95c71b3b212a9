//! Published vectors and hostile requests.

use http::{HeaderMap, HeaderValue};
use serde_json::{Value, json};
use triggers::{Refusal, Verified};

use super::super::verify::{check, verify};
use super::{NOW, headers, post};
use crate::manifest::{Signature, Source};

const BODY: &[u8] = br#"{"ok":true}"#;

fn scheme(value: Value) -> Signature {
    serde_json::from_value(value).unwrap()
}

fn github() -> Signature {
    scheme(json!({"algorithm": "hmac-sha256", "header": "X-Hub-Signature-256", "prefix": "sha256="}))
}

fn stripe() -> Signature {
    let pairs = json!({"timestamp": "t", "signature": "v1"});
    scheme(json!({"algorithm": "hmac-sha256", "header": "Stripe-Signature", "signed": "{timestamp}.{body}", "pairs": pairs}))
}

#[test]
fn published_vectors() {
    struct Case {
        from: &'static str,
        scheme: Value,
        secret: &'static str,
        headers: &'static [(&'static str, &'static str)],
        body: &'static [u8],
        now: i64,
    }
    let cases = [
        Case {
            from: "GitHub",
            scheme: json!({"algorithm": "hmac-sha256", "header": "X-Hub-Signature-256", "prefix": "sha256="}),
            secret: "It's a Secret to Everybody",
            headers: &[("x-hub-signature-256", "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17")],
            body: b"Hello, World!",
            now: 0,
        },
        Case {
            from: "Slack",
            scheme: json!({"algorithm": "hmac-sha256", "header": "X-Slack-Signature", "prefix": "v0=", "signed": "v0:{timestamp}:{body}", "timestamp": "X-Slack-Request-Timestamp"}),
            secret: "8f742231b10e8888abcd99yyyzzz85a5",
            headers: &[
                ("x-slack-signature", "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503"),
                ("x-slack-request-timestamp", "1531420618"),
            ],
            body: b"token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c",
            now: 1_531_420_618,
        },
        Case {
            from: "Box",
            scheme: json!({"algorithm": "hmac-sha256", "header": "BOX-SIGNATURE-PRIMARY", "encoding": "base64", "signed": "{body}{timestamp}", "timestamp": "BOX-DELIVERY-TIMESTAMP", "tolerance": 600}),
            secret: "SamplePrimaryKey",
            headers: &[
                ("box-signature-primary", "6TfeAW3A1PASkgboxxA5yqHNKOwFyMWuEXny/FPD5hI="),
                ("box-delivery-timestamp", "2020-01-01T00:00:00-07:00"),
            ],
            body: br#"{"type":"webhook_event","webhook":{"id":"1234567890"},"trigger":"FILE.UPLOADED","source":{"id":"1234567890","type":"file","name":"Test.txt"}}"#,
            now: 1_577_862_600,
        },
        Case {
            from: "RFC 8032, test 2",
            scheme: json!({"algorithm": "ed25519", "header": "X-Signature"}),
            secret: "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c",
            headers: &[(
                "x-signature",
                "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00",
            )],
            body: b"r",
            now: 0,
        },
    ];
    for case in cases {
        let headers = headers(case.headers);
        let verified = verify(&scheme(case.scheme), None, case.secret.as_bytes(), &post(&headers, case.body), case.now);
        assert!(verified.is_ok(), "{}: {verified:?}", case.from);
    }
}

#[test]
fn one_right_signature_among_several_is_enough() {
    let right = "85876387ad9d6be57a04653bc0729da757049f58afb10ba6cac3bedaecf4fda3";
    let expected = Verified { timestamp: Some(NOW), signature: right.to_owned(), id: None };
    for (header, outcome) in [
        (format!("t=1700000000,v1={right}"), Ok(expected.clone())),
        (format!("t=1700000000,v1={},v1={right},v0=77", "0".repeat(64)), Ok(expected.clone())),
        (format!("t=1700000000, v1={}", right.to_uppercase()), Ok(expected)),
        (format!("t=1700000000,v0={right}"), Err(Refusal::Malformed("Stripe-Signature".to_owned()))),
        (format!("v1={right}"), Err(Refusal::Missing("timestamp".to_owned()))),
        (format!("t=soon,v1={right}"), Err(Refusal::Malformed("timestamp".to_owned()))),
        (format!("t=1699999999,v1={right}"), Err(Refusal::Mismatch)),
        (format!("t=1699999000,v1={right}"), Err(Refusal::Stale)),
    ] {
        let headers = headers(&[("stripe-signature", &header)]);
        assert_eq!(verify(&stripe(), None, b"whsec_test", &post(&headers, BODY), NOW), outcome, "{header}");
    }

    let hex = "8acaa0db0d2d37962d6f6743bddb6524e0cc042f7999858aa30e71634b5689ec";
    let zeros = "0".repeat(64);
    let pagerduty = scheme(json!({"algorithm": "hmac-sha256", "header": "X-PagerDuty-Signature", "prefix": "v1="}));
    for (header, believed) in [
        (format!("v1={zeros},v1={hex}"), true),
        (format!("v1={zeros}, v2=abc, v1={hex}"), true),
        (format!("v1={zeros} v1={hex}"), true),
        (format!("v2={hex}"), false),
        (format!("{}v1={hex}", format!("v1={zeros},").repeat(20)), false),
    ] {
        let headers = headers(&[("x-pagerduty-signature", &header)]);
        assert_eq!(verify(&pagerduty, None, b"hush", &post(&headers, BODY), NOW).is_ok(), believed, "{header}");
    }
    let lines = headers(&[("x-pagerduty-signature", &format!("v1={zeros}")), ("x-pagerduty-signature", &format!("v1={hex}"))]);
    assert!(verify(&pagerduty, None, b"hush", &post(&lines, BODY), NOW).is_ok());
}

#[test]
fn the_address_and_the_method_may_be_signed() {
    for (scheme_of, headers_of) in [
        (
            json!({"algorithm": "hmac-sha1", "header": "X-Trello-Webhook", "encoding": "base64", "signed": "{body}{url}"}),
            vec![("x-trello-webhook", "oBpzCK1hBBENEGYs/v/bjUQ5P3k=")],
        ),
        (
            json!({"algorithm": "hmac-sha256", "header": "X-Square", "encoding": "base64", "signed": "{url}{body}"}),
            vec![("x-square", "Fg4s/KMju56ikIzXzkFN1Sa+rvVMONSnT6jLkfGsgKA=")],
        ),
        (
            json!({"algorithm": "hmac-sha256", "header": "X-HubSpot-Signature-v3", "encoding": "base64", "signed": "{method}{url}{body}{timestamp}", "timestamp": "X-HubSpot-Request-Timestamp"}),
            vec![
                ("x-hubspot-signature-v3", "Y01ifcZf4p/OR8f1ds9pcvC6S7yrJoohYN/Dwge0BMQ="),
                ("x-hubspot-request-timestamp", "1700000000123"),
            ],
        ),
    ] {
        let (scheme, headers) = (scheme(scheme_of), headers(&headers_of));
        let here = post(&headers, BODY);
        assert!(verify(&scheme, None, b"hush", &here, NOW).is_ok(), "{scheme:?}");
        let elsewhere = triggers::Incoming { url: "https://toolyard.test/hooks/2", ..here };
        assert_eq!(verify(&scheme, None, b"hush", &elsewhere, NOW), Err(Refusal::Mismatch));
    }
}

#[test]
fn tokens_are_compared_whole_and_not_remembered() {
    let bearer = scheme(json!({"algorithm": "token", "header": "Authorization", "prefix": "Bearer "}));
    let basic = scheme(json!({"algorithm": "basic", "header": "Authorization"}));
    let inside = scheme(json!({"algorithm": "token", "pointer": "/token"}));
    for (scheme, header, body, outcome) in [
        (&bearer, "Bearer hush", "{}", Ok(())),
        (&bearer, "Bearer hus", "{}", Err(Refusal::Mismatch)),
        (&bearer, "Bearer hush, hush", "{}", Err(Refusal::Mismatch)),
        (&bearer, "hush", "{}", Err(Refusal::Malformed("Authorization".to_owned()))),
        (&bearer, "Bearer ", "{}", Err(Refusal::Mismatch)),
        (&basic, "Basic dG9vbHlhcmQ6aHVzaA==", "{}", Ok(())),
        (&basic, "basic Omh1c2g=", "{}", Ok(())),
        (&basic, "Basic aHVzaA==", "{}", Err(Refusal::Malformed("Authorization".to_owned()))),
        (&basic, "Bearer dG9vbHlhcmQ6aHVzaA==", "{}", Err(Refusal::Malformed("Authorization".to_owned()))),
        (&inside, "-", r#"{"token":"hush"}"#, Ok(())),
        (&inside, "-", r#"{"token":"nope"}"#, Err(Refusal::Mismatch)),
        (&inside, "-", r#"{"token":["hush"]}"#, Err(Refusal::Missing("/token".to_owned()))),
        (&inside, "-", "token=hush", Err(Refusal::Malformed("body".to_owned()))),
    ] {
        let headers = headers(&[("authorization", header)]);
        let verified = verify(scheme, None, b"hush", &post(&headers, body.as_bytes()), NOW);
        assert_eq!(verified.clone().map(|_| ()), outcome, "{header} {body}");
        assert!(verified.is_err() || verified.unwrap().signature.len() == 64);
    }
}

#[test]
fn hostile_headers_are_refused_quietly() {
    let long = "a".repeat(1_000_001);
    let huge = format!("sha256={long}");
    let many = "sha256=,".repeat(100_000);
    for value in ["", " ", "sha256=", "sha256=é", "é", "sha256=0", "sha256=zz", "=,;=", "sha256", &huge, &many, "sha256=\u{1f600}"] {
        let headers = headers(&[("x-hub-signature-256", value), ("stripe-signature", value), ("authorization", value)]);
        let incoming = post(&headers, b"\xff\xfe");
        for (scheme, id) in [
            (github(), None),
            (stripe(), Some(Source::Header("not a header name\n".to_owned()))),
            (scheme(json!({"algorithm": "token", "header": "Authorization"})), Some(Source::Pointer("/id".to_owned()))),
            (scheme(json!({"algorithm": "basic", "header": "Authorization"})), None),
            (scheme(json!({"algorithm": "ed25519", "header": "X-Hub-Signature-256", "key": "text"})), None),
            (scheme(json!({"algorithm": "token", "pointer": "/token"})), None),
            (scheme(json!({"algorithm": "hmac-sha256", "header": "\u{e9}\n"})), None),
        ] {
            assert!(verify(&scheme, id.as_ref(), b"\xff secret", &incoming, i64::MIN).is_err(), "{value:.20} {scheme:?}");
        }
    }
    let mut bytes = HeaderMap::new();
    bytes.insert("x-hub-signature-256", HeaderValue::from_bytes(b"sha256=\xff\xfe").unwrap());
    assert_eq!(verify(&github(), None, b"s", &post(&bytes, BODY), NOW), Err(Refusal::Malformed("X-Hub-Signature-256".to_owned())));
}

#[test]
fn a_scheme_is_checked_before_it_is_used() {
    let id = Source::Header("X-Id".to_owned());
    for (scheme_of, id, problem) in [
        (json!({"algorithm": "hmac-sha256", "header": "S"}), None, None),
        (json!({"algorithm": "hmac-sha256", "header": "S", "signed": "{id}.{body}"}), Some(&id), None),
        (
            json!({"algorithm": "hmac-sha256", "header": "S", "signed": "{id}.{body}"}),
            None,
            Some("`signed` holds an id, but `id` names no header"),
        ),
        (json!({"algorithm": "hmac-sha256"}), None, Some("needs either `header` or `pointer`")),
        (json!({"algorithm": "hmac-sha256", "pointer": "/s"}), None, Some("only a token may stand at a `pointer`")),
        (
            json!({"algorithm": "hmac-sha256", "header": "S", "timestamp": "T"}),
            None,
            Some("the timestamp is not part of `signed`, so it proves nothing"),
        ),
        (
            json!({"algorithm": "hmac-sha256", "header": "S", "signed": "{timestamp}{body}"}),
            None,
            Some("`signed` holds a timestamp, but nothing says where it stands"),
        ),
    ] {
        assert_eq!(check(&scheme(scheme_of), id).err().as_deref(), problem);
    }
}
