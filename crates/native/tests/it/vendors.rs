//! What was once wrong in the shipped manifests, held against their vendors' documents, stays right.

use catalog::auth::{AuthScheme, OAuth2};
use native::built_in;
use native::manifest::{EventSpec, Manifest, Pages};
use operations::{ActionSpec, Idempotency};
use serde_json::Value;

struct Shipped(Vec<Manifest>);

impl Shipped {
    fn manifest(&self, key: &str) -> &Manifest {
        self.0.iter().find(|manifest| manifest.key == key).unwrap_or_else(|| panic!("{key}"))
    }

    fn action(&self, manifest: &str, key: &str) -> &ActionSpec {
        let found = self.manifest(manifest).actions.iter().find(|action| action.key == key);
        found.unwrap_or_else(|| panic!("{manifest}.{key}"))
    }

    fn event(&self, manifest: &str, key: &str) -> &EventSpec {
        let found = self.manifest(manifest).events.iter().find(|event| event.key == key);
        found.unwrap_or_else(|| panic!("{manifest}.{key}"))
    }

    fn oauth(&self, manifest: &str) -> &OAuth2 {
        let schemes = &self.manifest(manifest).auth;
        schemes.iter().find_map(|scheme| if let AuthScheme::OAuth2(oauth) = scheme { Some(oauth) } else { None }).unwrap()
    }
}

fn shipped() -> Shipped {
    Shipped(built_in().unwrap())
}

#[test]
fn parameters_that_vendors_gave_up_or_never_had_are_gone() {
    let shipped = shipped();
    for (manifest, action, gone) in [
        ("anthropic", "CREATE_A_MESSAGE", "temperature"),
        ("anthropic", "LIST_FILES", "after_id"),
        ("asana", "LIST_PROJECTS", "team"),
        ("deepl", "LIST_LANGUAGES", "type"),
        ("openai", "CREATE_A_CHAT_COMPLETION", "seed"),
        ("paypal", "LIST_DISPUTES", "start_time"),
        ("paypal", "LIST_DISPUTES", "next_page_token"),
    ] {
        assert!(!shipped.action(manifest, action).params.contains_key(gone), "{manifest}.{action}: {gone}");
    }
    assert_eq!(shipped.action("asana", "CREATE_A_PROJECT").params["team"]["deprecated"], true);
    assert!(shipped.action("anthropic", "LIST_FILES").headers.is_empty(), "files left beta");
    assert_eq!(shipped.action("deepl", "LIST_LANGUAGES").request, "GET /v3/languages");
}

#[test]
fn values_are_those_that_vendors_take() {
    let shipped = shipped();
    let at = |manifest: &str, action: &str, pointer: &str| -> Value {
        let params = Value::Object(shipped.action(manifest, action).params.clone());
        params.pointer(pointer).unwrap_or_else(|| panic!("{manifest}.{action}{pointer}")).clone()
    };
    for (manifest, action, pointer, expected) in [
        ("box", "SEARCH_CONTENT", "/content_types/items/enum/4", Value::from("tags")),
        ("discord", "CREATE_A_CHANNEL", "/type/enum", Value::from(vec![0, 2, 4, 5, 13, 14, 15])),
        ("discord", "CREATE_AN_INVITE", "/max_age/maximum", Value::from(5_184_000)),
        ("open-meteo", "GET_RIVER_DISCHARGE", "/forecast_days/maximum", Value::from(366)),
        ("sentry", "QUERY_EVENTS", "/dataset/required", Value::from(true)),
        ("twilio", "LIST_VERIFY_SERVICES", "/page_size/maximum", Value::from(1000)),
    ] {
        assert_eq!(at(manifest, action, pointer), expected, "{manifest}.{action}{pointer}");
    }
    let message = shipped.action("intercom", "SEND_A_MESSAGE").body.as_ref().unwrap();
    assert_eq!(message["from"]["id"], "{{ admin_id | int }}", "a number there, a text everywhere else");
}

#[test]
fn replies_are_described_as_they_come() {
    let shipped = shipped();
    for (manifest, action, there, gone) in [
        ("box", "ASSIGN_A_TASK", "resolution_state", "status"),
        ("box", "LIST_FOLDER_COLLABORATORS", "entries", "total_count"),
        ("monday", "GET_ME", "kind", "is_admin"),
        ("pagerduty", "MERGE_INCIDENTS", "summary", "status"),
        ("resend", "ADD_A_CONTACT_TO_A_SEGMENT", "contact_id", "id"),
    ] {
        let output = shipped.action(manifest, action).output.as_ref().unwrap();
        assert!(output.contains_key(there) && !output.contains_key(gone), "{manifest}.{action}: {output:?}");
    }
}

#[test]
fn monday_is_asked_in_the_version_that_its_documents_are_written_for() {
    let shipped = shipped();
    let monday = shipped.manifest("monday");
    assert_eq!(monday.headers.get("API-Version").map(String::as_str), Some("2026-10"));
    for action in &monday.actions {
        let document = action.graphql.as_deref().unwrap_or_default();
        for gone in ["is_admin", "is_guest", " enabled"] {
            assert!(!document.contains(gone), "{}: {gone}", action.key);
        }
    }
    assert!(shipped.action("monday", "LIST_USERS").graphql.as_ref().unwrap().contains("$emails: [String!]"));
}

#[test]
fn a_default_connection_has_the_scopes_that_it_needs() {
    let shipped = shipped();
    for (manifest, scope) in [
        ("bitbucket", "repository:admin"),
        ("jira", "read:board-scope:jira-software"),
        ("jira", "read:sprint:jira-software"),
        ("jira", "write:sprint:jira-software"),
        ("jira", "read:project:jira"),
        ("microsoft-teams", "Team.Create"),
        ("microsoft-teams", "TeamMember.ReadWrite.All"),
        ("microsoft-teams", "ChannelMessage.ReadWrite"),
        ("sentry", "event:admin"),
    ] {
        assert!(shipped.oauth(manifest).scopes.iter().any(|known| known == scope), "{manifest}: {scope}");
    }
    // Those that only administrators or the largest plans can grant are asked for by name; the lint holds the rest.
    assert_eq!(shipped.oauth("linear").optional_scopes, ["admin"]);
    assert_eq!(shipped.oauth("figma").optional_scopes, ["file_variables:read"]);
    assert_eq!(shipped.action("github", "RUN_A_WORKFLOW").scopes, ["repo"]);
    assert_eq!(shipped.action("confluence", "LIST_PAGE_LABELS").scopes, ["read:page:confluence"]);
    assert_eq!(shipped.action("sentry", "LIST_TEAMS").scopes, ["org:read"]);
}

#[test]
fn figma_s_tokens_and_webflow_s_webhooks_go_by_their_own_rules() {
    let shipped = shipped();
    assert_eq!(shipped.oauth("figma").refresh_url.as_deref(), Some("https://api.figma.com/v1/oauth/refresh"));
    let webflow = shipped.manifest("webflow").webhooks.as_ref().and_then(|webhooks| webhooks.signature.as_ref()).unwrap();
    assert!(webflow.client_secret);
}

#[test]
fn lists_that_are_not_sorted_by_time_are_read_whole() {
    let shipped = shipped();
    for (manifest, event) in [
        ("airtable", "RECORD_ENTERED_VIEW"),
        ("asana", "PROJECT_CREATED"),
        ("asana", "TASK_ASSIGNED_TO_ME"),
        ("coda", "PAGE_ADDED"),
        ("coda", "ROW_ADDED"),
        ("datadog", "INCIDENT_DECLARED"),
        ("digitalocean", "DROPLET_CREATED"),
        ("freshdesk", "CONVERSATION_ADDED"),
        ("mattermost", "PUBLIC_CHANNEL_CREATED"),
        ("microsoft-teams", "TEAM_MEMBER_ADDED"),
        ("notion", "PAGE_COMMENT_ADDED"),
        ("onedrive", "FILE_ADDED"),
        ("onedrive", "FILE_CHANGED"),
        ("todoist", "PROJECT_ADDED"),
        ("todoist", "TASK_MATCHES_FILTER"),
        ("zoom", "MEETING_SCHEDULED"),
        ("zoom", "REGISTRANT_ADDED"),
    ] {
        assert!(shipped.event(manifest, event).poll.as_ref().unwrap().pages.is_some(), "{manifest}.{event}");
    }
    let pages = shipped.event("mattermost", "PUBLIC_CHANNEL_CREATED").poll.as_ref().unwrap().pages.as_ref();
    assert!(matches!(pages, Some(Pages::Page { first: 0, .. })), "its first page is page 0");
}

#[test]
fn services_that_take_a_key_get_one() {
    let shipped = shipped();
    let header = |name: &str| Some(format!("header {name}"));
    let place = |manifest: &str, action: &str| {
        let integration = shipped.manifest(manifest).idempotency.as_ref();
        shipped.action(manifest, action).idempotency(integration).map(|place| match place {
            Idempotency::Header(name) => format!("header {name}"),
            Idempotency::Param(name) => format!("param {name}"),
        })
    };
    for (manifest, action, expected) in [
        ("stripe", "CREATE_A_PAYMENT_INTENT", header("Idempotency-Key")),
        ("stripe", "LIST_CUSTOMERS", None),
        ("stripe", "DELETE_A_CUSTOMER", None),
        ("paypal", "CREATE_A_PAYOUT", header("PayPal-Request-Id")),
        ("paypal", "CAPTURE_AN_ORDER", header("PayPal-Request-Id")),
        ("paypal", "SEND_AN_INVOICE", None),
        ("square", "CREATE_A_PAYMENT", Some("param idempotency_key".to_owned())),
        ("resend", "SEND_AN_EMAIL", Some("param idempotency_key".to_owned())),
        ("resend", "SEND_A_BATCH", header("Idempotency-Key")),
        ("resend", "CREATE_A_CONTACT", None),
        ("zendesk", "CREATE_A_TICKET", header("Idempotency-Key")),
        ("shopify", "ADJUST_STOCK", Some("param idempotencyKey".to_owned())),
        ("outlook", "CREATE_AN_EVENT", Some("param transaction_id".to_owned())),
        ("discord", "SEND_A_MESSAGE", Some("param nonce".to_owned())),
        ("todoist", "CREATE_A_TASK", header("X-Request-Id")),
        ("slack", "SEND_A_MESSAGE", None),
    ] {
        assert_eq!(place(manifest, action), expected, "{manifest}.{action}");
    }
}
