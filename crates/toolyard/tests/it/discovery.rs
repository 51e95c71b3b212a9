//! Discovery: the right tool or event for a sentence, with the state of its connection.

use std::collections::{BTreeMap, HashSet};

use http::Method;
use kernel::Role;
use kernel::schema::Schema;
use proptest::strategy::{Strategy, ValueTree};
use proptest::string::string_regex;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use crate::support::{Database, Fake, Test, document, on_both};

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

/// Only what we ship, found by meaning too.
async fn shipped() -> Test {
    Test::with(Database::Sqlite, |config| (config.integrations_dir, config.sentence_model) = (None, true)).await
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
    assert!(cases.len() + nonsense.len() >= 1000 && nonsense.len() >= 150, "{}", cases.len());
    assert!(cases.iter().filter(|case| case.is_event).count() * 4 >= cases.len());
    assert!((cases.iter().filter(|case| !case.names_app).count() + nonsense.len()) * 2 >= cases.len() + nonsense.len());
    let manifests = native::built_in().unwrap();
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
    share("tool", 86);
    share("integration", 94);
    share("kind", 97);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_fits_nothing_is_told_so() {
    let test = shipped().await;
    let (_, nonsense) = cases();
    for path in ["/tools/discover", "/triggers/discover"] {
        let (mut told, mut sure) = (0, Vec::new());
        for some in nonsense.chunks(50) {
            let answer = test.post(path, json!({"use_cases": some})).await.expect(200);
            assert_eq!(answer["ready"], json!(false), "{path}");
            for capability in answer["capabilities"].as_array().unwrap() {
                let note = capability["note"].as_str().unwrap_or_default();
                if note.starts_with("Nothing fits this use case.") || note.contains("too vague") {
                    told += 1;
                    assert_eq!(capability["confidence"], 0.0, "{path}: {capability}");
                    assert!(["tool", "event", "trigger"].iter().all(|key| capability.get(key).is_none()), "{path}: {capability}");
                    assert!(capability["alternatives"].as_array().unwrap().len() <= 4, "{path}: {capability}");
                } else if capability["confidence"].as_f64().is_some_and(|confidence| confidence >= 0.8) {
                    sure.push(capability["use_case"].to_string());
                }
            }
        }
        assert!(told * 100 >= nonsense.len() * 80, "{path}: {told}");
        assert!(sure.len() <= 1, "{path}: {sure:?}");
    }
}

/// The documented schema of an answer.
pub fn documented(name: &str) -> Schema {
    let document = document();
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
        let name = |tool: &Value| (tool["integration"].clone(), tool["action"].clone());
        assert!(name(alternative) != name(&act["tool"]) && alternative["score"].as_f64().unwrap() > 0.0, "{alternative}");
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
        test.post("/tools/discover", json!({"use_cases": ["zorp the quuxes, a thing"], "limit_alternatives": 50})).await.expect(200);
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
        let forgotten = jargon(test).await;
        let example = |capability: &Value| capability["reasons"]["example"].as_f64().unwrap_or_default();
        assert!(example(&forgotten) < example(&now), "only that it is called often is left: {forgotten}");
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

/// What somebody asked, and every answer that is right: a tool, an event after `@`, `vague`, `nothing`, or an app that has none after `!`.
const QUESTIONS: &[(&str, &str)] = &[
    ("trigger a build on vercel", "vercel.CREATE_A_DEPLOYMENT !vercel"),
    ("find all open invoices older than 30 days", "stripe.LIST_INVOICES paypal.SEARCH_INVOICES paypal.LIST_INVOICES square.LIST_INVOICES"),
    ("summarize unread mail every morning", "gmail.SEARCH_MESSAGES outlook.SEARCH_MESSAGES outlook.LIST_MESSAGES"),
    ("listen for new messages in a slack support channel", "@slack.NEW_MESSAGE_IN_A_CHANNEL @slack.MESSAGE_POSTED"),
    ("issue", "vague"),
    ("new", "vague"),
    ("do it", "vague"),
    ("look at the weather forecast", "open-meteo.GET_THE_FORECAST"),
    ("search for a customer in stripe", "stripe.SEARCH_CUSTOMERS stripe.LIST_CUSTOMERS"),
    ("list all github issues", "github.LIST_REPOSITORY_ISSUES github.SEARCH_ISSUES_AND_PULL_REQUESTS"),
    ("show my slack channels", "slack.LIST_CHANNELS"),
    ("which pull requests are open on bitbucket", "bitbucket.LIST_PULL_REQUESTS"),
    ("how many tickets are open in zendesk", "zendesk.LIST_TICKETS zendesk.SEARCH"),
    ("who is on call in pagerduty", "pagerduty.LIST_ONCALLS"),
    ("check my google calendar for tomorrow", "google-calendar.LIST_EVENTS google-calendar.QUERY_FREE_BUSY"),
    ("find contacts in hubspot", "hubspot.SEARCH_CONTACTS"),
    ("read a google doc", "google-docs.GET_A_DOCUMENT"),
    ("view the logs of a vercel deployment", "vercel.GET_DEPLOYMENT_LOGS"),
    ("create an invoice in stripe", "stripe.CREATE_AN_INVOICE"),
    ("send a message on slack", "slack.SEND_A_MESSAGE"),
    ("send an email with gmail", "gmail.SEND_AN_EMAIL"),
    ("append a row to google sheets", "google-sheets.APPEND_VALUES"),
    ("create a card in trello", "trello.CREATE_A_CARD"),
    ("delete a file in dropbox", "dropbox.DELETE_A_FILE_OR_FOLDER"),
    ("schedule a zoom meeting", "zoom.CREATE_A_MEETING"),
    ("translate a text with deepl", "deepl.TRANSLATE_TEXT"),
    ("refund a payment in square", "square.REFUND_A_PAYMENT"),
    ("merge a pull request on github", "github.MERGE_A_PULL_REQUEST"),
    ("trigger a build on netlify", "netlify.TRIGGER_A_BUILD"),
    ("restart a droplet on digitalocean", "digitalocean.RUN_A_DROPLET_ACTION"),
    ("send an sms with twilio", "twilio.SEND_AN_SMS"),
    ("send an sms with github", "!github"),
    ("translate a text with trello", "!trello"),
    ("when an issue is opened on github", "@github.ISSUE_OPENED"),
    ("when a payment fails in stripe", "@stripe.PAYMENT_FAILED"),
    ("on new row in google sheets", "@google-sheets.ROW_ADDED"),
    ("whenever a form is submitted on typeform", "@typeform.RESPONSE_SUBMITTED"),
    ("watch for new files in dropbox", "@dropbox.FILE_ADDED"),
    ("listen for mentions of our bot in slack", "@slack.APP_MENTIONED"),
    ("notify me when a deal is won in hubspot", "@hubspot.DEAL_WON"),
    ("when a new lead comes in to salesforce, create a task in asana", "@salesforce.LEAD_CREATED"),
    ("post to slack when a sentry issue appears", "@sentry.ISSUE_CREATED"),
    ("github", "vague"),
    ("boil an egg", "nothing"),
    ("sing me a lullaby", "nothing"),
    ("asdf qwerty blub", "nothing"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn questions_that_are_easy_to_get_wrong_are_answered_right() {
    let test = shipped().await;
    let texts: Vec<&str> = QUESTIONS.iter().map(|(text, _)| *text).collect();
    let answer = discover(&test, &texts).await;
    let mut wrong = Vec::new();
    for ((text, right), capability) in QUESTIONS.iter().zip(answer["capabilities"].as_array().unwrap()) {
        let note = capability["note"].as_str().unwrap_or_default();
        let (found, is_event) = first(capability);
        let got = match capability.get("tool").or_else(|| capability.get("trigger")) {
            None if note.contains("vague") => "vague".to_owned(),
            None if note.starts_with("Nothing fits") => "nothing".to_owned(),
            None => format!("!{note}"),
            Some(_) if is_event => format!("@{found}"),
            Some(_) => found,
        };
        let says_other_app = got.starts_with('!') && note.starts_with("The app that this names has nothing");
        if !right.split(' ').any(|one| one == got || one.starts_with('!') && says_other_app) {
            wrong.push(format!("{text} -> {got}, not {right}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Questions about everything that an action changes, made from its name: "create an issue" becomes "find an issue".
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_question_about_anything_is_answered_with_a_change() {
    let test = shipped().await;
    let manifests = native::built_in().unwrap();
    let reads: HashSet<String> = manifests
        .iter()
        .flat_map(|app| app.actions.iter().filter(|action| action.is_read_only()).map(move |action| format!("{}.{}", app.key, action.key)))
        .collect();
    let ways = ["find", "show me", "list all", "search for", "which is", "get", "read", "look up"];
    // "Add or remove labels" holds a change whatever it begins with, and "list a product" may be an offer.
    let object = |action: &str, way: &str| {
        let object = action.split_once(' ')?.1;
        let has_another_verb = ["or ", "and ", "to "].iter().any(|join| object.starts_with(join));
        let object = object.strip_prefix("a ").or(object.strip_prefix("an ")).filter(|_| way == "list all").unwrap_or(object);
        (!has_another_verb).then(|| object.to_owned())
    };
    let changes =
        manifests.iter().flat_map(|app| app.actions.iter().filter(|action| !action.is_read_only()).map(move |action| (app, action)));
    let questions: Vec<String> = changes
        .zip(ways.iter().cycle())
        .filter_map(|((app, action), way)| Some(format!("{way} {} in {}", object(&action.name, way)?, app.name)))
        .collect();
    assert!(questions.len() > 500, "{}", questions.len());
    let mut wrong = Vec::new();
    for some in questions.chunks(50) {
        for capability in discover(&test, &some.iter().map(String::as_str).collect::<Vec<_>>()).await["capabilities"].as_array().unwrap() {
            let tools = capability.get("tool").into_iter().chain(capability["alternatives"].as_array().unwrap());
            for tool in tools {
                let name = format!("{}.{}", tool["integration"].as_str().unwrap(), tool["action"].as_str().unwrap());
                if !reads.contains(&name) {
                    wrong.push(format!("{} -> {name}", capability["use_case"].as_str().unwrap()));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
