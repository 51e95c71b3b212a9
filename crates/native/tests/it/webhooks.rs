//! Requests that others signed, judged by the manifests that ship.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

use http::{HeaderMap, HeaderName, HeaderValue};
use native::manifest::{Algorithm, Manifest, Signature, Webhooks};
use native::{Native, built_in};
use serde::Deserialize;
use serde_json::{Value, json};
use triggers::ingress::standard_webhooks;
use triggers::{EventSource, Incoming, Judged, Refusal};

const NOW: i64 = 1_700_000_000;
const URL: &str = "https://toolyard.test/hooks/1";

#[derive(Deserialize)]
struct Vector {
    name: String,
    secret: String,
    /// What the manifest would say, for a provider that has none with webhooks.
    webhooks: Option<Value>,
    requests: Vec<Request>,
}

#[derive(Deserialize)]
struct Request {
    #[serde(default)]
    event: Option<String>,
    headers: BTreeMap<String, String>,
    body: String,
}

impl Request {
    fn headers(&self) -> HeaderMap {
        let one = |(name, value): (&String, &String)| {
            (HeaderName::from_bytes(name.as_bytes()).unwrap(), HeaderValue::from_bytes(value.as_bytes()).unwrap())
        };
        self.headers.iter().map(one).collect()
    }
}

fn post<'a>(headers: &'a HeaderMap, body: &'a str) -> Incoming<'a> {
    Incoming { method: "POST", url: URL, query: &[], headers, body: body.as_bytes() }
}

/// A manifest for a provider that the documentation describes.
fn documented(name: &str, webhooks: &Value) -> Manifest {
    let mut webhooks = webhooks.clone();
    webhooks["setup_help"] = json!("Paste it.");
    let manifest = json!({
        "key": name, "name": name, "description": "A provider.", "base_url": "https://example.com", "auth": [{"scheme": "none"}],
        "webhooks": webhooks,
    });
    serde_json::from_value(manifest).unwrap()
}

fn native(manifests: Vec<Manifest>) -> Native {
    Native::new(manifests.into_iter().map(Ok), egress::Egress::new(egress::Config::default()).unwrap()).unwrap()
}

#[test]
fn what_a_provider_signs_is_believed_and_nothing_else() {
    let vectors: Vec<Vector> = serde_json::from_str(include_str!("../vectors/requests.json")).unwrap();
    let mut manifests = built_in().unwrap();
    let signed: BTreeSet<(String, String)> = manifests
        .iter()
        .filter(|manifest| signature(manifest).is_some())
        .flat_map(|manifest| {
            manifest.events.iter().filter(|event| event.webhook.is_some()).map(|event| (manifest.key.clone(), event.key.clone()))
        })
        .collect();
    let tried: BTreeSet<(String, String)> = vectors
        .iter()
        .flat_map(|vector| vector.requests.iter().filter_map(|request| Some((vector.name.clone(), request.event.clone()?))))
        .collect();
    assert_eq!(signed, tried, "hint: run `tests/vectors/sign.py` again");
    manifests.retain(|manifest| !vectors.iter().any(|vector| vector.name == manifest.key && vector.webhooks.is_some()));
    manifests.extend(vectors.iter().filter_map(|vector| Some(documented(&vector.name, vector.webhooks.as_ref()?))));
    let signatures: BTreeMap<String, Signature> =
        manifests.iter().filter_map(|manifest| Some((manifest.key.clone(), signature(manifest)?.clone()))).collect();
    let native = native(manifests);

    for vector in &vectors {
        let (name, secret, signature) = (&vector.name, vector.secret.as_str(), &signatures[&vector.name]);
        let judge = |headers: &HeaderMap, body: &str, secret: Option<&str>, now| native.judge(name, &post(headers, body), secret, now);
        for request in &vector.requests {
            let (headers, body) = (request.headers(), request.body.as_str());
            let judged = judge(&headers, body, Some(secret), NOW).unwrap_or_else(|error| panic!("{name}: {error}"));
            let Judged::Event { verified: Some(verified), keys, id, payload } = judged else { panic!("{name}: {judged:?}") };
            assert!(request.event.as_ref().is_none_or(|event| keys.contains(event)), "{name} {:?}: {keys:?}", request.event);
            assert!(id == "id-1" || id.len() == 64, "{name}: {id}");
            assert_eq!(payload, serde_json::from_str::<Value>(body).unwrap());
            assert!(!verified.signature.contains(secret), "{name}");

            let refused = |headers: &HeaderMap, body: &str, secret, now| judge(headers, body, secret, now).err();
            let mut other = secret.to_owned();
            let last = other.pop().unwrap();
            other.push(if last == 'A' { 'B' } else { 'A' });
            assert!(refused(&headers, body, Some(&other), NOW).is_some(), "{name}");
            assert_eq!(refused(&headers, body, None, NOW), Some(Refusal::NoSecret), "{name}");
            if !matches!(signature.algorithm, Algorithm::Token | Algorithm::Basic) {
                assert_eq!(refused(&headers, &body.replace("true", "false"), Some(secret), NOW), Some(Refusal::Mismatch), "{name}");
            }
            if verified.timestamp.is_some() {
                let late = NOW + i64::from(signature.tolerance.unwrap_or(300)) + 1;
                assert_eq!(refused(&headers, body, Some(secret), late), Some(Refusal::Stale), "{name}");
            }
            if let Some(header) = &signature.header {
                let mut fewer = headers.clone();
                fewer.remove(header);
                assert_eq!(refused(&fewer, body, Some(secret), NOW), Some(Refusal::Missing(header.clone())), "{name}");
            }
        }
    }
}

fn signature(manifest: &Manifest) -> Option<&Signature> {
    manifest.webhooks.as_ref().and_then(|Webhooks { signature, .. }| signature.as_ref())
}

#[test]
fn handshakes_of_shipped_manifests_are_answered() {
    let native = native(built_in().unwrap());
    let headers = HeaderMap::new();
    let slack = native.judge("slack", &post(&headers, r#"{"type":"url_verification","challenge":"3eZb"}"#), None, NOW).unwrap();
    assert_eq!(slack, Judged::Handshake { answer: triggers::Answer::Text("3eZb".to_owned()), secret: None });
    let notion = native.judge("notion", &post(&headers, r#"{"verification_token":"secret_1"}"#), None, NOW).unwrap();
    assert!(matches!(notion, Judged::Handshake { secret: Some(secret), .. } if secret == "secret_1"));
    let again = native.judge("notion", &post(&headers, r#"{"verification_token":"secret_2"}"#), Some("secret_1"), NOW);
    assert_eq!(again, Err(Refusal::Missing("X-Notion-Signature".to_owned())));
}

#[test]
fn what_cannot_be_judged_is_refused() {
    let native = native(built_in().unwrap());
    let headers = HeaderMap::new();
    for nobody in ["gmail", "no-such-integration"] {
        assert!(matches!(native.judge(nobody, &post(&headers, "{}"), None, NOW), Err(Refusal::Scheme(_))), "{nobody}");
    }
    let unsigned = documented("unsigned", &json!({}));
    let native = self::native(vec![unsigned]);
    assert_eq!(native.judge("unsigned", &post(&headers, "a=b"), None, NOW), Err(Refusal::NotJson));
    assert!(matches!(native.judge("unsigned", &post(&headers, "[]"), None, NOW), Ok(Judged::Event { verified: None, .. })));
}

/// What `tests/npm/webhooks.mjs` prints.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Published {
    secret: String,
    github: Vec<Request>,
    standard_secret: String,
    standard: Request,
}

fn published() -> Published {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/npm/webhooks.mjs");
    let output = Command::new("node").arg(script).output().unwrap();
    assert!(output.status.success(), "{}; `./test` installs the packages", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The event that an example of GitHub's is, told by name and action alone.
fn github_event(name: &str, body: &Value) -> Option<&'static str> {
    let merged = body.pointer("/pull_request/merged") == Some(&Value::Bool(true));
    Some(match (name, body.get("action").and_then(Value::as_str)) {
        ("issues", Some("opened")) => "ISSUE_OPENED",
        ("issues", Some("closed")) => "ISSUE_CLOSED",
        ("issue_comment", Some("created")) => "ISSUE_COMMENT_CREATED",
        ("pull_request", Some("opened")) => "PULL_REQUEST_OPENED",
        ("pull_request", Some("closed")) if merged => "PULL_REQUEST_MERGED",
        ("push", None) => "COMMITS_PUSHED",
        ("release", Some("published")) => "RELEASE_PUBLISHED",
        ("workflow_run", Some("completed")) => "WORKFLOW_RUN_COMPLETED",
        ("star", Some("created")) => "REPOSITORY_STARRED",
        _ => return None,
    })
}

#[test]
fn github_s_own_examples_are_the_events_they_should_be() {
    let manifests = built_in().unwrap();
    let github = manifests.iter().find(|manifest| manifest.key == "github").unwrap();
    let mut missed: BTreeSet<String> =
        github.events.iter().filter(|event| event.webhook.is_some()).map(|event| event.key.clone()).collect();
    let native = native(manifests);
    let Published { secret, github, .. } = published();
    assert!(github.len() > 200, "{}", github.len());
    for request in &github {
        let headers = request.headers();
        let judged = native.judge("github", &post(&headers, &request.body), Some(&secret), NOW).unwrap();
        let Judged::Event { verified: Some(_), keys, id, payload } = judged else { panic!("{judged:?}") };
        let name = &request.headers["X-GitHub-Event"];
        let expected = github_event(name, &payload);
        assert_eq!(keys, Vec::from_iter(expected), "{name} {}", payload["action"]);
        assert_eq!(id, request.headers["X-GitHub-Delivery"]);
        missed.retain(|key| !keys.contains(key));
        assert_eq!(native.judge("github", &post(&headers, &request.body), Some("another"), NOW), Err(Refusal::Mismatch));
    }
    // The package has no closed issue and no merged pull request; the requests of `tests/vectors` do.
    assert_eq!(missed.into_iter().collect::<Vec<_>>(), ["ISSUE_CLOSED", "PULL_REQUEST_MERGED"]);
}

#[test]
fn standard_webhooks_as_its_library_signs() {
    let Published { standard_secret, standard, .. } = published();
    let headers = standard.headers();
    let verified = standard_webhooks(standard_secret.as_bytes(), &post(&headers, &standard.body), NOW).unwrap();
    assert_eq!((verified.id.as_deref(), verified.timestamp), (Some("msg_1"), Some(NOW)));
    let altered = standard.body.replace("Zoë", "Zoe");
    assert_eq!(standard_webhooks(standard_secret.as_bytes(), &post(&headers, &altered), NOW), Err(Refusal::Mismatch));
}
