//! Discovery: the right tool or event for a sentence, with the state of its connection.

use std::collections::{BTreeMap, HashSet};

use http::Method;
use kernel::Role;
use kernel::schema::Schema;
use proptest::strategy::{Strategy, ValueTree};
use proptest::string::string_regex;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use crate::support::{Database, Fake, Test, on_both};

/// A use case and every right answer to it.
struct Case {
    text: &'static str,
    answers: Vec<&'static str>,
    is_event: bool,
    names_app: bool,
}

const USE_CASES: &str = include_str!("../data/use_cases.tsv");

fn cases() -> (Vec<Case>, Vec<&'static str>) {
    let (mut cases, mut nonsense, mut section) = (Vec::new(), Vec::new(), "");
    for line in USE_CASES.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        match (line.strip_prefix('['), line.split_once('\t')) {
            (Some(title), _) => section = title.trim_end_matches(']'),
            (None, Some((text, answers))) => cases.push(Case {
                text,
                answers: answers.split(" | ").collect(),
                is_event: section.starts_with("events"),
                names_app: !section.ends_with("no app"),
            }),
            (None, None) => nonsense.push(line),
        }
    }
    (cases, nonsense)
}

/// Only what we ship.
async fn shipped() -> Test {
    Test::with(Database::Sqlite, |config| config.integrations_dir = None).await
}

async fn discover(test: &Test, use_cases: &[&str]) -> Value {
    test.post("/tools/discover", json!({"use_cases": use_cases, "debug": true})).await.expect(200)
}

/// The tool, or the event where there is one, as `integration.KEY`.
fn first(capability: &Value) -> (String, bool) {
    let (found, key) = match capability.get("trigger") {
        Some(trigger) => (trigger, "event_key"),
        None => (&capability["tool"], "action"),
    };
    (
        format!("{}.{}", found["integration"].as_str().unwrap_or("-"), found[key].as_str().unwrap_or("-")),
        capability.get("trigger").is_some(),
    )
}

#[test]
fn the_set_is_large_mixed_and_not_the_examples_of_the_manifests() {
    let (cases, nonsense) = cases();
    assert!(cases.len() >= 300 && nonsense.len() >= 15, "{}", cases.len());
    assert!(cases.iter().filter(|case| case.is_event).count() * 3 >= cases.len());
    assert!(cases.iter().filter(|case| !case.names_app).count() * 3 >= cases.len());
    let manifests = providers::native::built_in().unwrap();
    let examples: HashSet<String> = manifests
        .iter()
        .flat_map(|manifest| {
            let actions = manifest.actions.iter().flat_map(|action| &action.use_cases);
            actions.chain(manifest.events.iter().flat_map(|event| &event.use_cases))
        })
        .map(|example| example.to_lowercase())
        .collect();
    let copied: Vec<&str> = cases.iter().map(|case| case.text).filter(|text| examples.contains(&text.to_lowercase())).collect();
    assert!(copied.is_empty(), "{copied:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_right_tool_or_event_comes_first() {
    let test = shipped().await;
    let (cases, _) = cases();
    let mut right: BTreeMap<&str, usize> = BTreeMap::new();
    let mut wrong = Vec::new();
    for chunk in cases.chunks(50) {
        let answer = discover(&test, &chunk.iter().map(|case| case.text).collect::<Vec<_>>()).await;
        for (case, capability) in chunk.iter().zip(answer["capabilities"].as_array().unwrap()) {
            assert_eq!(capability["use_case"], case.text);
            let (found, is_event) = first(capability);
            let integration = |name: &str| name.split('.').next().unwrap_or_default().to_owned();
            let same_integration = case.answers.iter().any(|answer| integration(answer) == integration(&found));
            let is_right = case.answers.contains(&found.as_str());
            *right.entry("tool").or_default() += usize::from(is_right);
            *right.entry("integration").or_default() += usize::from(same_integration);
            *right.entry("kind").or_default() += usize::from(is_event == case.is_event);
            if !is_right {
                wrong.push(format!("{} -> {found}, not {}", case.text, case.answers[0]));
            }
        }
    }
    let report = format!("{right:?} of {}\n{}", cases.len(), wrong.join("\n"));
    let share = |what: &str, percent: usize| assert!(right[what] * 100 >= cases.len() * percent, "{what}: {report}");
    share("tool", 90);
    share("integration", 97);
    share("kind", 98);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nonsense_finds_nothing() {
    let test = shipped().await;
    let (_, nonsense) = cases();
    for path in ["/tools/discover", "/triggers/discover"] {
        let answer = test.post(path, json!({"use_cases": nonsense})).await.expect(200);
        assert_eq!((&answer["ready"], &answer["connections"]), (&json!(false), &json!([])), "{path}");
        for capability in answer["capabilities"].as_array().unwrap() {
            let note = capability["note"].as_str().unwrap();
            assert!(note.starts_with("Nothing fits this use case."), "{path}: {capability}");
            assert_eq!(capability, &json!({"use_case": capability["use_case"], "alternatives": [], "note": note}), "{path}");
        }
    }
}

/// The documented schema of an answer.
pub fn documented(name: &str) -> Schema {
    let document = serde_json::to_value(server::openapi()).unwrap();
    Schema::compile(&json!({"$ref": format!("#/components/schemas/{name}"), "components": document["components"]})).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn any_text_gets_an_answer_as_documented() {
    let test = shipped().await;
    let mut runner = TestRunner::deterministic();
    let mut cases: Vec<String> = ["\\PC{1,80}", "[a-z]{1,8}( [a-z]{1,8}){0,30}", "[\\p{Han}\\p{Cyrillic}\\p{Arabic} ]{1,60}"]
        .iter()
        .flat_map(|pattern| (0..13).map(|_| string_regex(pattern).unwrap().new_tree(&mut runner).unwrap().current()).collect::<Vec<_>>())
        .filter(|case| !case.trim().is_empty())
        .collect();
    cases.push("send a message to slack ".repeat(10_000 / 24));
    cases.push("🦀".repeat(2_500));
    for case in
        ["créer un ticket github", "nouvelle facture payée", "发送电子邮件", "when a new email arrives 📧", "github", "a", "\u{0}\u{202e}x"]
    {
        cases.push(case.to_owned());
    }
    for (path, schema) in [("/tools/discover", "DiscoveredTools"), ("/triggers/discover", "DiscoveredEvents")] {
        let schema = documented(schema);
        for (debug, limit) in [(false, 0), (true, 3), (true, 1000)] {
            let answer = test.post(path, json!({"use_cases": cases, "debug": debug, "limit_alternatives": limit})).await.expect(200);
            assert_eq!(schema.check(&answer), Ok(()), "{path}");
            let answered: Vec<&str> =
                answer["capabilities"].as_array().unwrap().iter().map(|one| one["use_case"].as_str().unwrap()).collect();
            assert_eq!(answered, cases.iter().map(|case| case.trim()).collect::<Vec<_>>(), "{path}");
        }
        for many in [json!(vec!["send a message"; 51]), json!(["x".repeat(20_001)])] {
            test.post(path, json!({"use_cases": many})).await.expect(422);
        }
        for nothing in [json!([]), json!(["", " \n\t"]), json!("send a message"), json!([null]), json!([7])] {
            test.post(path, json!({"use_cases": nothing})).await.expect(422);
        }
        for provider in ["nope", "agenta", ""] {
            test.post(path, json!({"use_cases": ["send a message"], "provider": provider})).await.expect(422);
        }
        let detail = test.post(path, json!({"use_cases": ["send a message"], "provider": "natve"})).await.detail(422);
        assert!(detail.contains("Did you mean `native`?"), "{detail}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_says_what_to_do_next() {
    let test = shipped().await;
    let answer = discover(&test, &["close issue 42 on github", "when a github issue is opened", "look at the weather forecast"]).await;
    let [act, wait, free] = answer["capabilities"].as_array().unwrap().as_slice() else { panic!("{answer}") };
    assert_eq!((&act["tool"]["action"], &act["connection"]["state"]), (&json!("UPDATE_AN_ISSUE"), &json!("needs_auth")));
    assert!(act.get("trigger").is_none() && act.get("note").is_none(), "{act}");
    for alternative in act["alternatives"].as_array().unwrap() {
        assert!(alternative["action"] != act["tool"]["action"] && alternative["score"].as_f64().unwrap() > 0.0, "{alternative}");
    }
    assert!(act["confidence"].as_f64().unwrap() > 0.5 && act["reasons"]["app"].as_f64().unwrap() > 0.0, "{act}");
    assert_eq!((&wait["trigger"]["event_key"], &wait["connection"]["state"]), (&json!("ISSUE_OPENED"), &json!("needs_auth")));
    assert!(wait["note"].as_str().unwrap().starts_with("This reads like an event"), "{wait}");
    assert_eq!(
        (&free["tool"]["action"], &free["connection"]),
        (&json!("GET_THE_FORECAST"), &json!({"state": "ready", "slug": "open-meteo-main"}))
    );
    assert_eq!(answer["ready"], false);

    let steps: Vec<&str> = answer["guidance"]["plan_steps"].as_array().unwrap().iter().map(|step| step.as_str().unwrap()).collect();
    let place = |step: &str| steps.iter().position(|known| known.starts_with(step)).unwrap_or_else(|| panic!("{step}: {steps:?}"));
    assert!(place("Connect GitHub") < place("Call github.LIST_REPOSITORY_ISSUES to find `issue_number`"));
    assert!(place("Call github.LIST_REPOSITORY_ISSUES") < place("Call github.UPDATE_AN_ISSUE."));
    assert!(place("Connect GitHub") < place("Subscribe to github.ISSUE_OPENED"));
    let pitfalls = answer["guidance"]["pitfalls"].to_string();
    assert!(pitfalls.contains("needs the scope `repo`") && pitfalls.contains("5000 requests in 3600 seconds"), "{pitfalls}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waits_is_answered_with_an_event_and_no_tool() {
    let test = shipped().await;
    let (cases, _) = cases();
    let waiting: Vec<&str> = cases.iter().filter(|case| case.is_event).map(|case| case.text).collect();
    for some in waiting.chunks(50) {
        for capability in discover(&test, some).await["capabilities"].as_array().unwrap() {
            if capability.get("trigger").is_some() {
                assert_eq!((capability.get("tool"), &capability["alternatives"]), (None, &json!([])), "{capability}");
            }
        }
    }
    let answer = discover(&test, &["listen for new messages in a slack support channel"]).await;
    let listen = &answer["capabilities"][0];
    assert_eq!((&listen["trigger"]["integration"], listen.get("tool")), (&json!("slack"), None), "{listen}");
    assert!(listen["trigger"]["event_key"].as_str().unwrap().contains("MESSAGE"), "{listen}");
    let steps = answer["guidance"]["plan_steps"].to_string();
    assert!(steps.contains("Subscribe to slack.") && !steps.contains("Call "), "{steps}");

    let answer = discover(&test, &["post a message to slack when an issue is opened on github"]).await;
    let both = &answer["capabilities"][0];
    assert_eq!((&both["trigger"]["event_key"], &both["tool"]["integration"]), (&json!("ISSUE_OPENED"), &json!("slack")), "{both}");
    let answer = discover(&test, &["trigger a build"]).await;
    let act = &answer["capabilities"][0];
    assert!(act.get("trigger").is_none() && act.get("tool").is_some(), "{act}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_says_too_little_gets_alternatives_and_what_to_add() {
    let test = shipped().await;
    let vague = ["issue", "new", "do it", "github", "send", "create new", "issues", "email", "all"];
    for path in ["/tools/discover", "/triggers/discover"] {
        let answer = test.post(path, json!({"use_cases": vague, "debug": true})).await.expect(200);
        assert_eq!(answer["ready"], false);
        for capability in answer["capabilities"].as_array().unwrap() {
            assert!(["tool", "event", "trigger"].iter().all(|key| capability.get(key).is_none()), "{path}: {capability}");
            assert!(capability["note"].as_str().unwrap().contains("vague"), "{path}: {capability}");
            let sure = capability["alternatives"].as_array().unwrap().iter().any(|other| other["confidence"].as_f64().unwrap() > 0.5);
            assert!(!sure, "{path}: {capability}");
        }
    }
    let answer = discover(&test, &vague).await;
    assert!(answer["capabilities"][0]["alternatives"].as_array().unwrap().len() == 3, "{answer}");
    let clear = ["github issues", "send email", "new email", "list issues", "close the issue"];
    for capability in discover(&test, &clear).await["capabilities"].as_array().unwrap() {
        assert!(capability.get("tool").is_some() || capability.get("trigger").is_some(), "{capability}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_is_of_the_app_that_was_named_or_says_that_it_has_none() {
    let test = shipped().await;
    for (sentence, app) in [("trigger a build on vercel", "vercel"), ("send an sms with github", "github")] {
        let answer = discover(&test, &[sentence]).await;
        let capability = &answer["capabilities"][0];
        match capability.get("tool") {
            Some(tool) => assert_eq!(tool["integration"], app, "{capability}"),
            None => assert!(capability["note"].as_str().unwrap().contains("has nothing that clearly fits"), "{capability}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_only_finds_is_never_answered_with_a_change() {
    let test = shipped().await;
    let me = test.yard.accounts.authenticator().authenticate(&test.owner).await.unwrap().unwrap();
    let reads = |tool: &Value| {
        let (integration, action) = (tool["integration"].as_str().unwrap(), tool["action"].as_str().unwrap());
        test.yard.catalog.action(me.project, "native", integration, action).unwrap().read_only
    };
    for sentence in [
        "find all open invoices older than 30 days",
        "list overdue tasks",
        "search messages about the launch",
        "show my unread notifications",
        "fetch the newest leads",
    ] {
        let answer = discover(&test, &[sentence]).await;
        let capability = &answer["capabilities"][0];
        assert!(capability.get("tool").is_some_and(reads), "{sentence}: {capability}");
    }
    let answer = discover(&test, &["find all open invoices older than 30 days"]).await;
    assert!(answer["capabilities"][0]["tool"]["action"].as_str().unwrap().contains("INVOICE"), "{answer}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_done_again_and_again_gets_a_schedule() {
    let test = shipped().await;
    let answer = discover(&test, &["summarize unread mail every morning"]).await;
    let capability = &answer["capabilities"][0];
    let action = capability["tool"]["action"].as_str().unwrap_or_default();
    assert!(action.contains("MESSAGES") && (action.contains("SEARCH") || action.contains("LIST")), "{capability}");
    let steps: Vec<&str> = answer["guidance"]["plan_steps"].as_array().unwrap().iter().map(|step| step.as_str().unwrap()).collect();
    assert!(steps.last().unwrap().contains("POST /triggers/schedules/") && steps.last().unwrap().contains("0 8 * * *"), "{steps:?}");
}

const LEARNED: &str = "/tools/discover/learned";

/// The first tool for a use case of which the catalog knows no word.
async fn jargon(test: &Test) -> Value {
    discover(test, &["zorp the quuxes, a thing"]).await["capabilities"][0].take()
}

on_both! {
    async fn a_use_case_that_led_to_a_call_is_remembered(test: &Test) {
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        let make = || test.call("tools.native.fake.MAKE_A_THING.main", json!({"title": "T"}));
        make().await.expect(200);
        let before = test.post("/tools/discover", json!({"use_cases": ["zorp the quuxes, a thing"], "limit_alternatives": 50})).await.expect(200);
        assert_ne!(before["capabilities"][0]["tool"]["action"], "MAKE_A_THING");
        assert_eq!(test.get(LEARNED).await.expect(200), json!({"count": 0, "learns": true, "use_cases": []}), "nothing led to the first call");

        test.call("tools.native.fake.FAIL_A_THING.main", json!({"code": 404})).await.expect(200);
        let other = test.key("other", Role::Owner, None).await;
        test.call_as(&other, "tools.native.fake.MAKE_A_THING.main", json!({"title": "T"})).await.expect(404);
        make().await.expect(200);
        make().await.expect(200);
        let learned = learned(test, 1).await;
        let row = &learned["use_cases"][0];
        assert_eq!((&row["use_case"], &row["action"], &row["uses"]), (&json!("zorp the quuxes, a thing"), &json!("MAKE_A_THING"), &json!(1)));
        let now = jargon(test).await;
        assert_eq!(now["tool"]["action"], "MAKE_A_THING", "{now}");
        assert!(now["reasons"]["example"].as_f64().unwrap() > 0.0, "{now}");
        let elsewhere = test.post_as(&other, "/tools/discover", json!({"use_cases": ["zorp the quuxes, a thing"]})).await.expect(200);
        assert_ne!(elsewhere["capabilities"][0]["tool"]["action"], "MAKE_A_THING", "projects do not learn from each other");
        assert_eq!(test.get_as(&other, LEARNED).await.expect(200)["count"], 0);

        let owner = Some(format!("ApiKey {}", test.owner));
        test.request(Method::PUT, LEARNED, owner.clone(), Some(json!({"learns": false}))).await.expect(200);
        assert_ne!(jargon(test).await["tool"]["action"], "MAKE_A_THING", "it is not looked at while learning is off");
        make().await.expect(200);
        assert_eq!((&test.get(LEARNED).await.expect(200)["learns"], &learned["count"]), (&json!(false), &json!(1)));
        test.request(Method::PUT, LEARNED, owner, Some(json!({"learns": true}))).await.expect(200);
        assert_eq!(jargon(test).await["tool"]["action"], "MAKE_A_THING");

        let id = row["id"].as_str().unwrap();
        test.request(Method::DELETE, &format!("{LEARNED}/{id}"), Some(format!("ApiKey {other}")), None).await.expect(404);
        test.delete(&format!("{LEARNED}/{id}")).await.expect(204);
        test.delete(&format!("{LEARNED}/{id}")).await.expect(404);
        assert_ne!(jargon(test).await["tool"]["action"], "MAKE_A_THING");
        assert_eq!(test.delete(LEARNED).await.expect(200), json!({"count": 0}));
    }
}

/// What was learned, once there is so much of it: a call does not wait for it.
async fn learned(test: &Test, count: usize) -> Value {
    for _ in 0..200 {
        let learned = test.get(LEARNED).await.expect(200);
        if learned["count"] == count {
            return learned;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    panic!("not learned")
}
