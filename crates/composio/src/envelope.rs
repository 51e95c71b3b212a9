//! The envelope around an event from Composio: its webhooks V1, V2 and V3, and what the development bridge sends.

use http::HeaderMap;
use kernel::json::plain_text;
use serde_json::Value;

/// What a message is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum EnvelopeKind {
    Trigger,
    AccountExpired,
    TriggerDisabled,
    /// Nothing that anybody here waits for.
    Other,
}

/// A message, whichever version it was written in.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Envelope {
    pub(crate) kind: EnvelopeKind,
    /// The trigger instance, `ti_...`.
    pub(crate) trigger_id: Option<String>,
    /// The same for every retry of one event.
    pub(crate) event_id: Option<String>,
    /// The trigger type, in upper case.
    pub(crate) trigger_slug: Option<String>,
    /// The connected account, `ca_...`.
    pub(crate) account_id: Option<String>,
    pub(crate) attributes: Value,
}

/// Reads a message; what it does not say is left out.
pub(crate) fn read_envelope(headers: &HeaderMap, body: &Value) -> Envelope {
    let kind = kind(body);
    let trigger_id = trigger_id(&kind, body);
    Envelope {
        event_id: event_id(headers, body, trigger_id.as_deref()),
        trigger_slug: trigger_slug(body),
        account_id: account_id(&kind, body),
        attributes: attributes(body),
        trigger_id,
        kind,
    }
}

/// V1 has no type, and the type of V2 is the slug of the trigger.
fn kind(body: &Value) -> EnvelopeKind {
    match body.pointer("/type").and_then(Value::as_str) {
        Some("composio.trigger.message") => EnvelopeKind::Trigger,
        Some("composio.connected_account.expired") => EnvelopeKind::AccountExpired,
        Some("composio.trigger.disabled") => EnvelopeKind::TriggerDisabled,
        Some(other) if other.starts_with("composio.") => EnvelopeKind::Other,
        _ if trigger_id(&EnvelopeKind::Trigger, body).is_some() => EnvelopeKind::Trigger,
        _ => EnvelopeKind::Other,
    }
}

fn trigger_id(kind: &EnvelopeKind, body: &Value) -> Option<String> {
    let pointers: &[_] = match kind {
        EnvelopeKind::Trigger => &["/metadata/trigger_id", "/metadata/nano_id", "/data/trigger_nano_id", "/trigger_id", "/data/trigger_id"],
        EnvelopeKind::TriggerDisabled => &["/metadata/trigger_id", "/data/trigger_id", "/data/id"],
        EnvelopeKind::AccountExpired | EnvelopeKind::Other => &[],
    };
    id(body, pointers, "ti_")
}

fn account_id(kind: &EnvelopeKind, body: &Value) -> Option<String> {
    let pointers: &[_] = match kind {
        EnvelopeKind::AccountExpired => &["/data/id", "/metadata/connected_account_id"],
        _ => &[
            "/metadata/connected_account_id",
            "/data/connected_account_id",
            "/data/connection_nano_id",
            "/data/connection_id",
            "/connection_id",
        ],
    };
    id(body, pointers, "ca_")
}

/// The first id with the prefix, or else the first: V2 has two of each, and its documentation and its messages do not agree on which is which.
fn id(body: &Value, pointers: &[&str], prefix: &str) -> Option<String> {
    let found = || pointers.iter().filter_map(|pointer| text(body, pointer));
    found().find(|id| id.starts_with(prefix)).or_else(|| found().next())
}

/// A message that repeats its trigger's id must not pass for a retry of the one before it.
fn event_id(headers: &HeaderMap, body: &Value, trigger_id: Option<&str>) -> Option<String> {
    let sent = headers.get("webhook-id").and_then(|id| id.to_str().ok()).map(str::trim).filter(|id| !id.is_empty()).map(str::to_owned);
    [text(body, "/metadata/id"), text(body, "/id"), sent, text(body, "/log_id"), text(body, "/metadata/log_id")]
        .into_iter()
        .flatten()
        .find(|id| trigger_id != Some(id.as_str()))
}

fn trigger_slug(body: &Value) -> Option<String> {
    let pointers = ["/metadata/trigger_slug", "/trigger_name", "/type", "/data/trigger_name"];
    let mut slugs = pointers.iter().filter_map(|pointer| text(body, pointer)).filter(|slug| !slug.starts_with("composio."));
    slugs.next().map(|slug| slug.to_uppercase())
}

fn attributes(body: &Value) -> Value {
    let given = |name| body.get(name).filter(|value| !value.is_null());
    given("payload").or_else(|| given("data")).cloned().unwrap_or(Value::Null)
}

fn text(body: &Value, pointer: &str) -> Option<String> {
    body.pointer(pointer).and_then(plain_text)
}

#[cfg(test)]
mod tests {
    use http::{HeaderName, HeaderValue};
    use serde_json::json;

    use super::*;

    fn headers(pairs: &[(&str, &str)]) -> HeaderMap {
        let one = |(name, value): &(&str, &str)| {
            (HeaderName::from_bytes(name.as_bytes()).unwrap(), HeaderValue::from_bytes(value.as_bytes()).unwrap())
        };
        pairs.iter().map(one).collect()
    }

    #[expect(clippy::unnecessary_wraps, reason = "an expected value has the type of what it is compared with")]
    fn some(text: &str) -> Option<String> {
        Some(text.to_owned())
    }

    fn trigger(event_id: &str, attributes: Value) -> Envelope {
        Envelope {
            kind: EnvelopeKind::Trigger,
            trigger_id: some("ti_1"),
            event_id: some(event_id),
            trigger_slug: some("GITHUB_COMMIT_EVENT"),
            account_id: some("ca_1"),
            attributes,
        }
    }

    #[test]
    fn every_version_says_the_same() {
        let time = "2026-01-15T10:30:00Z";
        let v3 = json!({
            "id": "msg_body", "timestamp": time, "type": "composio.trigger.message",
            "metadata": {"log_id": "log_1", "trigger_slug": "GITHUB_COMMIT_EVENT", "trigger_id": "ti_1", "connected_account_id": "ca_1", "auth_config_id": "ac_1", "user_id": "u"},
            "data": {"sha": "a1", "id": "not-ours"},
        });
        assert_eq!(
            read_envelope(&headers(&[("webhook-id", "msg_head")]), &v3),
            trigger("msg_body", json!({"sha": "a1", "id": "not-ours"}))
        );

        let v2_data = json!({"sha": "a1", "connection_id": "uuid", "connection_nano_id": "ca_1", "trigger_nano_id": "ti_1", "trigger_id": "uuid", "user_id": "u"});
        let v2 = json!({"type": "github_commit_event", "timestamp": time, "log_id": "log_1", "data": v2_data});
        assert_eq!(read_envelope(&headers(&[("webhook-id", "msg_head")]), &v2), trigger("msg_head", v2_data.clone()));
        assert_eq!(read_envelope(&headers(&[]), &v2), trigger("log_1", v2_data));

        let documented =
            json!({"sha": "a1", "connection_id": "ca_1", "connection_nano_id": "cn_1", "trigger_nano_id": "tn_1", "trigger_id": "ti_1"});
        let v2 = json!({"type": "github_commit_event", "timestamp": time, "log_id": "log_1", "data": documented});
        assert_eq!(read_envelope(&headers(&[]), &v2), trigger("log_1", documented));

        let v1 = json!({"trigger_name": "github_commit_event", "trigger_id": "ti_1", "connection_id": "ca_1", "payload": {"sha": "a1"}, "log_id": "log_1"});
        assert_eq!(read_envelope(&headers(&[("webhook-id", "é")]), &v1), trigger("log_1", json!({"sha": "a1"})));

        let bridge = json!({
            "metadata": {"id": "evt_0a", "trigger_id": "ti_1", "trigger_slug": "GITHUB_COMMIT_EVENT", "connected_account_id": "ca_1"},
            "payload": {"sha": "a1"},
        });
        assert_eq!(read_envelope(&headers(&[("webhook-id", "msg_head")]), &bridge), trigger("evt_0a", json!({"sha": "a1"})));

        let nano = json!({"metadata": {"id": "evt_0a", "nano_id": "ti_1", "trigger_slug": "github_commit_event", "connected_account_id": "ca_1"}, "payload": {}});
        assert_eq!(read_envelope(&headers(&[]), &nano), trigger("evt_0a", json!({})));
    }

    #[test]
    fn a_trigger_id_is_never_taken_for_an_event_id() {
        let body = json!({"metadata": {"id": "ti_1", "trigger_id": "ti_1"}, "log_id": "log_1", "payload": {}});
        assert_eq!(read_envelope(&headers(&[]), &body).event_id, some("log_1"));
        assert_eq!(read_envelope(&headers(&[("webhook-id", "msg_1")]), &body).event_id, some("msg_1"));
    }

    #[test]
    fn life_cycle_events_name_their_object() {
        let expired = json!({
            "id": "evt_1", "type": "composio.connected_account.expired", "timestamp": "2026-02-06T12:00:00.000Z",
            "metadata": {"project_id": "pr_1", "org_id": "ok_1"},
            "data": {"id": "ca_1", "toolkit": {"slug": "gmail"}, "status": "EXPIRED"},
        });
        let envelope = read_envelope(&headers(&[]), &expired);
        assert_eq!((envelope.kind, envelope.trigger_id, envelope.account_id), (EnvelopeKind::AccountExpired, None, some("ca_1")));
        assert_eq!((envelope.event_id, envelope.trigger_slug), (some("evt_1"), None));

        let disabled = json!({
            "id": "msg_1", "type": "composio.trigger.disabled", "metadata": {"project_id": "pr_1"},
            "data": {"id": "ti_1", "connected_account_id": "ca_1", "trigger_name": "GMAIL_NEW_GMAIL_MESSAGE", "disabled_reason": "connection_expired"},
        });
        let envelope = read_envelope(&headers(&[]), &disabled);
        assert_eq!((envelope.kind, envelope.trigger_id, envelope.account_id), (EnvelopeKind::TriggerDisabled, some("ti_1"), some("ca_1")));
        assert_eq!((envelope.event_id, envelope.trigger_slug), (some("msg_1"), some("GMAIL_NEW_GMAIL_MESSAGE")));
    }

    #[test]
    fn what_is_not_an_envelope_reads_as_nothing() {
        for body in [
            json!({"type": "composio.connected_account.activated", "metadata": {"trigger_id": "ti_1"}}),
            json!({"type": "something"}),
            json!({"type": 7}),
            json!({}),
            json!([]),
            json!("text"),
            json!(null),
        ] {
            let envelope = read_envelope(&headers(&[]), &body);
            assert_eq!(envelope.kind, EnvelopeKind::Other, "{body}");
            assert_eq!((envelope.trigger_id, envelope.event_id, envelope.attributes), (None, None, Value::Null));
        }
    }
}
