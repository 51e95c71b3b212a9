//! Waiting for one event without running anything. The page comes in two parts: what is waited for at once, and what came when it came.

use std::pin::Pin;
use std::time::Duration;

use askama::Template;
use axum::body::{Body, Bytes, to_bytes};
use axum::extract::Path as Segments;
use axum::response::Response;
use futures_util::{StreamExt as _, stream};
use http::StatusCode;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::model::{Subscription, SubscriptionAnswer, SubscriptionsAnswer, text};
use super::subscription_draft::Draft;
use super::subscription_form::show_again;
use super::watched::Watched;
use super::{SUBSCRIPTIONS, WEBHOOK_EVENT, subscription_page};
use crate::form::Form;
use crate::frame::{Frame, Section, show, show_refused};
use crate::path::Path;
use crate::refusal::{PageResult, Refusal};
use crate::ui;
use crate::visit::Visit;

const SHORTEST: u64 = 5;
const USUAL: u64 = 60;
const LONGEST: u64 = 300;
/// A test that is refused is refused by then; one that waits has its address.
const SETTLE: Duration = Duration::from_millis(700);
/// Where the page is cut in two. No text of others can hold it, since theirs is escaped.
const CUT: &str = "<!--cut-->";

#[derive(Debug, Deserialize)]
struct TestAnswer {
    delivery: Option<Caught>,
}

#[derive(Debug, Deserialize)]
struct Caught {
    #[serde(default)]
    data: Map<String, Value>,
}

/// What a test came to.
#[derive(Template)]
#[template(path = "subscription_test_outcome.html")]
enum Outcome {
    #[template(block = "caught")]
    Caught { event: Value, inputs: Value, missed: Vec<(String, String)> },
    #[template(block = "nothing")]
    Nothing { wait: u64 },
    #[template(block = "refused")]
    Refused { words: String },
}

/// The page that says what is waited for.
#[derive(Template)]
#[template(path = "subscription_test.html")]
struct TestPage {
    frame: Frame,
    event: String,
    wait: u64,
    address: Option<String>,
    back: String,
    /// What was typed, to make the trigger with; nothing where it is there already.
    make: Option<(String, Vec<(String, String)>)>,
}

type Waiting = Pin<Box<dyn Future<Output = Result<TestAnswer, Refusal>> + Send>>;

/// The body of a test: both the event and what the mapping makes of it come back as inputs.
fn with_event(mut subscription: Value) -> Value {
    let mapping = subscription["data"]["inputs_fields"].take();
    let both = if mapping.is_null() { json!({"event": "$.event", "inputs": "$"}) } else { json!({"event": "$.event", "inputs": mapping}) };
    subscription["data"]["inputs_fields"] = both;
    json!({"subscription": subscription})
}

fn outcome(answer: Result<TestAnswer, Refusal>, wait: u64) -> Outcome {
    match answer {
        Ok(TestAnswer { delivery: Some(mut caught) }) => {
            let mut inputs = caught.data.shift_remove("inputs").unwrap_or_default();
            Outcome::Caught { event: inputs["event"].take(), inputs: inputs["inputs"].take(), missed: missed(&caught.data) }
        }
        Ok(TestAnswer { delivery: None }) => Outcome::Nothing { wait },
        Err(refusal) => Outcome::Refused { words: refusal.words },
    }
}

/// Selectors that found nothing, with their places in the mapping that was typed.
fn missed(data: &Map<String, Value>) -> Vec<(String, String)> {
    let all = data.get("missed").and_then(Value::as_array).into_iter().flatten();
    let word = |miss: &Value, name: &str| miss[name].as_str().unwrap_or_default().to_owned();
    all.map(|miss| {
        let place = word(miss, "place");
        (place.strip_prefix("/inputs").map_or_else(|| place.clone(), str::to_owned), word(miss, "selector"))
    })
    .collect()
}

fn wait_of(form: &Form) -> u64 {
    form.text("wait").parse().unwrap_or(USUAL).clamp(SHORTEST, LONGEST)
}

fn begin(visit: &Visit, subscription: Value, wait: u64) -> Waiting {
    let visit = visit.clone();
    let asked = Path::new(SUBSCRIPTIONS).at("test").with("wait", wait);
    Box::pin(async move { visit.post(asked, with_event(subscription)).await })
}

/// Tries what stands in a form that is not saved yet.
pub(super) async fn test_draft(visit: Visit, form: Form) -> PageResult {
    let watched = Watched::typed(&visit, &form).await?;
    let body = match Draft::typed(&watched, &form).body(&watched, None) {
        Ok(body) => body,
        Err(refusal) => return show_again(&visit, watched, &form, &refusal).await,
    };
    let new = visit.page("triggers").at("new");
    let make = if watched.key() == WEBHOOK_EVENT { new.at("webhook") } else { new };
    let typed = form.0.iter().filter(|(name, _)| name != "csrf" && name != "wait").cloned().collect();
    let wait = wait_of(&form);
    let page = TestPage {
        frame: Frame::new(&visit, Section::Triggers, "Test"),
        event: watched.key().to_owned(),
        wait,
        address: None,
        back: visit.page("triggers").into(),
        make: Some((make.into(), typed)),
    };
    match run(&visit, page, body).await {
        Ok(response) => Ok(response),
        Err(refusal) => show_again(&visit, watched, &form, &refusal).await,
    }
}

#[derive(Template)]
#[template(path = "subscription_test_ask.html")]
struct AskPage {
    frame: Frame,
    subscription: Subscription,
    here: String,
    back: String,
    wait: u64,
    /// The secret is sealed, so that a test of a signed webhook needs it once more.
    needs_secret: bool,
}

pub(super) async fn ask(visit: Visit, Segments((_, id)): Segments<(String, String)>) -> PageResult {
    let subscription = visit.get::<SubscriptionAnswer>(Path::new(SUBSCRIPTIONS).at(&id)).await?.subscription;
    show_ask(&visit, subscription, USUAL, None)
}

fn show_ask(visit: &Visit, subscription: Subscription, wait: u64, refusal: Option<&Refusal>) -> PageResult {
    let page = subscription_page(visit, &subscription.id);
    let page = AskPage {
        frame: Frame::new(visit, Section::Triggers, format!("Test {}", subscription.title())).refused(refusal),
        here: page.clone().at("test").into(),
        back: page.into(),
        wait,
        needs_secret: subscription.is_webhook() && !text(&subscription.config(), "scheme").is_empty(),
        subscription,
    };
    show_refused(refusal, &page)
}

/// Tries a subscription as it is saved, at an address of the test's own.
pub(super) async fn test_saved(visit: Visit, Segments((_, id)): Segments<(String, String)>, form: Form) -> PageResult {
    let subscription = visit.get::<SubscriptionAnswer>(Path::new(SUBSCRIPTIONS).at(&id)).await?.subscription;
    let mut body = json!({"name": subscription.labels.name, "connection_id": subscription.connection_id, "data": subscription.data});
    if let Some(secret) = form.some("secret") {
        body["data"]["secret"] = secret.into();
    }
    let wait = wait_of(&form);
    let page = TestPage {
        frame: Frame::new(&visit, Section::Triggers, format!("Test {}", subscription.title())),
        event: subscription.event().to_owned(),
        wait,
        address: None,
        back: subscription_page(&visit, &id).into(),
        make: None,
    };
    match run(&visit, page, body).await {
        Ok(response) => Ok(response),
        Err(refusal) => show_ask(&visit, subscription, wait, Some(&refusal)),
    }
}

/// Begins the test, and shows the page once it is clear that it waits.
async fn run(visit: &Visit, mut page: TestPage, body: Value) -> PageResult {
    let wait = page.wait;
    let connection = body["connection_id"].as_str().map(str::to_owned);
    let mut waiting = begin(visit, body, wait);
    match tokio::time::timeout(SETTLE, &mut waiting).await {
        Ok(Err(refusal)) => Err(refusal),
        Ok(answer) => in_two_parts(show(&page)?, Box::pin(async move { answer }), wait).await,
        Err(_) => {
            page.address = address(visit, &page.event, connection.as_deref()).await;
            in_two_parts(show(&page)?, waiting, wait).await
        }
    }
}

/// Where the test expects its event: it has an address of its own while it lasts.
async fn address(visit: &Visit, event: &str, connection: Option<&str>) -> Option<String> {
    let asked = json!({"subscription": {"event_key": event, "connection_id": connection}, "windowing": {"limit": 50}});
    let found: SubscriptionsAnswer = visit.post(Path::new(SUBSCRIPTIONS).at("query"), asked).await.ok()?;
    found.subscriptions.into_iter().find(|row| row.flags.is_test).map(|row| row.url)
}

async fn in_two_parts(response: Response, waiting: Waiting, wait: u64) -> PageResult {
    let (parts, body) = response.into_parts();
    let cannot =
        |error: &dyn std::fmt::Display| Refusal::new(StatusCode::INTERNAL_SERVER_ERROR, format!("The page cannot be shown: {error}"));
    let html = to_bytes(body, usize::MAX).await.map_err(|error| cannot(&error))?;
    let html = String::from_utf8_lossy(&html);
    let (before, after) = html.split_once(CUT).unwrap_or((&html, ""));
    let (before, after) = (Bytes::from(before.to_owned()), after.to_owned());
    let rest = stream::once(async move {
        let shown = outcome(waiting.await, wait).render().unwrap_or_default();
        Bytes::from(shown + &after)
    });
    let body = Body::from_stream(stream::iter([before]).chain(rest).map(Ok::<_, std::convert::Infallible>));
    Ok(Response::from_parts(parts, body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_gets_the_event_and_the_inputs() {
        let body = with_event(json!({"data": {"inputs_fields": {"a": "$.event.x"}}}));
        assert_eq!(body["subscription"]["data"]["inputs_fields"], json!({"event": "$.event", "inputs": {"a": "$.event.x"}}));
        let data =
            json!({"inputs": {"event": {"x": 1}, "inputs": {"a": null}}, "missed": [{"place": "/inputs/a", "selector": "$.event.y"}]});
        let caught = TestAnswer { delivery: Some(serde_json::from_value(json!({"data": data})).unwrap()) };
        match outcome(Ok(caught), 5) {
            Outcome::Caught { event, inputs, missed } => {
                assert_eq!((event, inputs), (json!({"x": 1}), json!({"a": null})));
                assert_eq!(missed, [("/a".to_owned(), "$.event.y".to_owned())]);
            }
            _ => panic!("an event was caught"),
        }
    }

    #[test]
    fn a_wait_has_bounds() {
        let wait = |text: &str| wait_of(&Form(vec![("wait".to_owned(), text.to_owned())]));
        assert_eq!([wait(""), wait("1"), wait("90"), wait("9999"), wait("-3")], [USUAL, SHORTEST, 90, LONGEST, USUAL]);
    }
}
