//! A provider that searches for itself, beside our own search.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use catalog::auth::{AuthScheme, Credentials};
use catalog::{Action, Catalog, Draft, Integration, Provider, Source};
use discovery::{Discover, Discovery, DiscoveryError, FindError, Finder, SuggestedTool, Suggestion};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use kernel::{ProjectId, Role, Scope};
use serde_json::{Value, json};

use crate::discovery::documented;
use crate::support::{Database, Test};

/// Integrations by key, each with whether it needs an account and its actions.
type Shelf = &'static [(&'static str, bool, &'static [(&'static str, &'static str)])];

const HOUSE: Shelf = &[
    ("garage", false, &[("WASH", "Wash a car")]),
    ("bakery", true, &[("BAKE", "Bake a cake"), ("ICE", "Ice a cake"), ("CUT", "Cut a cake"), ("SELL", "Sell a cake")]),
];
const GUILD: Shelf = &[
    ("oven", false, &[("HEAT", "Heat dough"), ("COOL", "Let it cool")]),
    ("cellar", true, &[("STORE", "Store wine"), ("FETCH", "Fetch a bottle of wine"), ("DRINK", "Drink wine")]),
    ("bakery", true, &[("BAKE", "Use the big one")]),
];

#[derive(Debug)]
struct Shop(&'static str, Shelf);

impl Source for Shop {
    fn provider(&self) -> Provider {
        Provider { key: self.0, name: if self.0 == "guild" { "The Guild" } else { "House" }, description: "for tests" }
    }

    fn integrations(&self, _: ProjectId) -> Vec<Arc<Integration>> {
        let integration = |(key, needs_account, actions): &(&str, bool, &[(&str, &str)])| {
            let action = |(action, name): &(&str, &str)| {
                let mut made = Action::new((*action).to_owned(), (*name).to_owned(), (*name).to_owned(), &json!({"type": "object"}));
                made.remote = (self.0 == "guild").then(|| remote(key, action));
                made
            };
            Arc::new(Integration::new(
                self.0,
                Draft {
                    key: (*key).to_owned(),
                    name: (*key).to_owned(),
                    auth: if *needs_account { vec![AuthScheme::ApiKey(Credentials::default())] } else { Vec::new() },
                    actions: actions.iter().map(action).collect(),
                    ..Draft::default()
                },
            ))
        };
        self.1.iter().map(integration).collect()
    }

    fn integration(&self, project: ProjectId, key: &str) -> Option<Arc<Integration>> {
        self.integrations(project).into_iter().find(|integration| integration.key == key)
    }

    fn edition(&self, _: ProjectId) -> u64 {
        0
    }
}

fn remote(integration: &str, action: &str) -> String {
    format!("{integration}_{action}").to_uppercase()
}

fn named(name: &&str) -> SuggestedTool {
    let (integration, action) = name.split_once('.').unwrap();
    let (integration, action) = (integration.to_owned(), action.to_owned());
    SuggestedTool { remote: remote(&integration, &action), integration, action, description: None, input_schema: None }
}

/// A tool that the catalog does not list yet, with the schema that came along.
fn described(name: &str) -> SuggestedTool {
    let schema = json!({"type": "object", "properties": {"degrees": {"type": "integer"}}});
    SuggestedTool { description: Some("Broil it.".to_owned()), input_schema: Some(schema), ..named(&name) }
}

fn suggestion(primary: &[&str], related: &[&str]) -> Suggestion {
    Suggestion {
        primary: primary.iter().map(named).collect(),
        related: related.iter().map(named).collect(),
        plan_steps: vec!["Ask the master.".to_owned(), String::new(), "Ask the master.".to_owned()],
        pitfalls: vec!["Hands burn.".to_owned()],
        difficulty: Some("easy".to_owned()),
    }
}

/// Says what it was told to say, and keeps what it was asked.
#[derive(Debug, Default)]
struct Guild {
    says: HashMap<&'static str, Suggestion>,
    fails: Option<&'static str>,
    asked: Mutex<Vec<(Vec<String>, Duration)>>,
}

impl Finder for Guild {
    fn provider(&self) -> &'static str {
        "guild"
    }

    fn find<'a>(&'a self, _: ProjectId, use_cases: &'a [&'a str], within: Duration) -> BoxFuture<'a, Result<Vec<Suggestion>, FindError>> {
        self.asked.lock().unwrap().push((use_cases.iter().map(|case| (*case).to_owned()).collect(), within));
        let said = use_cases.iter().map_while(|case| self.says.get(case).cloned()).collect();
        let answer = self.fails.map_or(Ok(said), |reason| Err(FindError(reason.to_owned())));
        async move { answer }.boxed()
    }
}

impl Guild {
    fn says(says: impl IntoIterator<Item = (&'static str, Suggestion)>) -> Arc<Self> {
        Arc::new(Self { says: says.into_iter().collect(), ..Self::default() })
    }

    fn asked(&self) -> Vec<(Vec<String>, Duration)> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

/// Tools of two providers, one of which searches for itself.
struct Market {
    test: Test,
    discovery: Discovery,
    scope: Scope,
}

impl Market {
    async fn open(guild: &Arc<Guild>) -> Self {
        let test = Test::start(Database::Sqlite).await;
        let catalog = Catalog::new(vec![Arc::new(Shop("house", HOUSE)), Arc::new(Shop("guild", GUILD))]);
        let yard = &test.yard;
        let finders: Vec<Arc<dyn Finder>> = vec![guild.clone()];
        let discovery = Discovery::new(discovery::Parts {
            db: yard.db.clone(),
            clock: test.clock.clone(),
            catalog,
            connections: yard.connections.clone(),
            workers: yard.workers.clone(),
            addresses: Arc::new(server::addresses::DiscoveryAddresses),
            finders,
            recent_calls: Arc::new(calls::NewestCalls::new(yard.db.clone())),
        });
        let scope = Self::scope(&test, &test.owner).await;
        Self { test, discovery, scope }
    }

    async fn scope(test: &Test, key: &str) -> Scope {
        test.yard.accounts.authenticator().authenticate(key).await.unwrap().unwrap()
    }

    async fn ask(&self, provider: Option<&str>, use_cases: &[&str]) -> Value {
        let request = Discover {
            use_cases: use_cases.iter().map(|case| (*case).to_owned()).collect(),
            provider: provider.map(str::to_owned),
            alternatives: 3,
            debug: true,
        };
        let answer = serde_json::to_value(self.discovery.discover(self.scope, &request).await.unwrap()).unwrap();
        assert_eq!(documented("DiscoveredTools").check(&answer), Ok(()));
        let answered: Vec<&str> = answer["capabilities"].as_array().unwrap().iter().map(|one| one["use_case"].as_str().unwrap()).collect();
        assert_eq!(answered, use_cases, "one capability per use case, in their order");
        answer
    }
}

/// The tool and the alternatives of a capability, the tool with its provider.
fn names(capability: &Value) -> Vec<String> {
    let name = |one: &Value| format!("{}.{}", one["integration"].as_str().unwrap(), one["action"].as_str().unwrap());
    let tool = capability.get("tool").map(|tool| format!("{}:{}", tool["provider"].as_str().unwrap(), name(tool)));
    tool.into_iter().chain(capability["alternatives"].as_array().unwrap().iter().map(name)).collect()
}

const BAKE: &str = "bake a cake";

#[tokio::test]
async fn a_tool_that_can_be_used_now_comes_before_one_that_cannot() {
    let guild = Guild::says([(BAKE, suggestion(&["oven.GONE", "oven.HEAT"], &["cellar.STORE", "oven.HEAT"]))]);
    let market = Market::open(&guild).await;
    let answer = market.ask(None, &["wash a car", BAKE, BAKE]).await;
    assert_eq!(guild.asked(), [(vec![BAKE.to_owned()], Duration::from_secs(20))], "only what our own answer leaves open, once");

    let [wash, bake, again] = answer["capabilities"].as_array().unwrap().as_slice() else { panic!("{answer}") };
    assert_eq!(
        (names(wash), &wash["connection"]["state"], wash.get("difficulty")),
        (vec!["house:garage.WASH".to_owned()], &json!("ready"), None)
    );
    assert_eq!(names(bake)[..3], ["guild:oven.HEAT", "cellar.STORE", "bakery.BAKE"], "{bake}");
    assert_eq!((&bake["difficulty"], &bake["tool"]["provider_action"]), (&json!("easy"), &json!("OVEN_HEAT")));
    assert_eq!((&bake["suggested_by"], bake.get("score")), (&json!("guild"), None));
    assert_eq!((&bake["alternatives"][0]["provider_action"], bake["alternatives"][2].get("suggested_by")), (&json!("CELLAR_STORE"), None));
    assert_eq!((bake, answer["ready"].as_bool()), (again, Some(true)));
    let steps = answer["guidance"]["plan_steps"].as_array().unwrap();
    assert_eq!(steps.iter().filter(|step| *step == "Ask the master.").count(), 1);
    assert_eq!((&steps[0], &answer["guidance"]["pitfalls"]), (&json!("Ask the master."), &json!(["Hands burn."])));
    assert_eq!(answer["notes"], json!([]));
    let apps: Vec<&Value> = answer["connections"].as_array().unwrap().iter().map(|one| &one["integration"]).collect();
    assert_eq!(apps, ["garage", "oven", "cellar", "bakery"]);

    let other = market.test.key("other", Role::Owner, None).await;
    let elsewhere = Market { scope: Market::scope(&market.test, &other).await, ..market };
    elsewhere.ask(None, &[BAKE]).await;
    assert_eq!(guild.asked(), [], "what was said a moment ago is known");
}

#[tokio::test]
async fn a_suggestion_that_is_no_readier_is_an_alternative() {
    let guild = Guild::says([(BAKE, suggestion(&["cellar.STORE", "bakery.BAKE"], &["oven.COOL"]))]);
    let market = Market::open(&guild).await;
    let answer = market.ask(None, &[BAKE]).await;
    let bake = &answer["capabilities"][0];
    assert_eq!(names(bake)[..3], ["house:bakery.BAKE", "cellar.STORE", "bakery.BAKE"], "{bake}");
    assert_eq!(bake["alternatives"][1]["provider"], "guild", "our own does not hide the provider's of the same name: {bake}");
    assert_eq!((bake.get("difficulty"), bake.get("suggested_by")), (None, None));
    assert!(!answer["guidance"].to_string().contains("Ask the master."), "a plan for other tools does not help: {answer}");
}

#[tokio::test]
async fn a_suggestion_answers_where_we_find_nothing() {
    let guild = Guild::says([("frobnicate", suggestion(&["cellar.DRINK"], &[])), ("zorp", suggestion(&["gone.GONE"], &["oven.HEAT"]))]);
    let market = Market::open(&guild).await;
    let answer = market.ask(None, &["frobnicate", "zorp", "quux"]).await;
    assert_eq!(names(&answer["capabilities"][0]), ["guild:cellar.DRINK"]);
    assert_eq!(answer["capabilities"][0].get("note"), None);
    for nothing in &answer["capabilities"].as_array().unwrap()[1..] {
        let note = nothing["note"].as_str().unwrap();
        assert!(note.starts_with("Nothing fits this use case."), "{nothing}");
        assert_eq!(nothing, &json!({"use_case": nothing["use_case"], "alternatives": [], "confidence": 0.0, "note": note}));
    }
    assert_eq!(answer["ready"], false);
}

#[tokio::test]
async fn a_suggestion_that_is_not_listed_yet_is_used_as_it_was_described() {
    let told = Suggestion { primary: vec![described("oven.BROIL"), described("nowhere.BROIL")], ..Suggestion::default() };
    let market = Market::open(&Guild::says([("frobnicate the roast", told)])).await;
    for _ in 0..2 {
        let answer = market.ask(None, &["frobnicate the roast"]).await;
        let tool = &answer["capabilities"][0]["tool"];
        assert_eq!(names(&answer["capabilities"][0]), ["guild:oven.BROIL"], "an integration that nobody lists cannot be connected");
        assert_eq!((&tool["description"], &tool["provider_action"]), (&json!("Broil it."), &json!("OVEN_BROIL")));
        assert!(tool["input_schema"]["properties"]["degrees"].is_object(), "{tool}");
    }
}

#[tokio::test]
async fn a_provider_that_is_named_leads_with_its_own_search() {
    let wine = "fetch a bottle of wine";
    let guild = Guild::says([(wine, suggestion(&["cellar.STORE", "oven.HEAT"], &["cellar.STORE", "cellar.FETCH"]))]);
    let market = Market::open(&guild).await;
    let answer = market.ask(Some("guild"), &[wine, "heat dough"]).await;
    assert_eq!(guild.asked(), [(vec![wine.to_owned(), "heat dough".to_owned()], Duration::from_secs(20))], "also what is ready");
    let [fetch, heat] = answer["capabilities"].as_array().unwrap().as_slice() else { panic!("{answer}") };
    assert_eq!(names(fetch), ["guild:cellar.STORE", "oven.HEAT", "cellar.FETCH", "cellar.DRINK"], "{fetch}");
    let found = &fetch["alternatives"][1];
    assert!(found["suggested_by"] == "guild" && found["score"].as_f64().unwrap() > 0.0, "our own evidence stays: {found}");
    assert_eq!(names(heat)[0], "guild:oven.HEAT", "it said nothing to this one: {heat}");

    market.ask(Some("house"), &[BAKE]).await;
    let request = Discover { use_cases: vec!["zorp".to_owned()], provider: None, alternatives: 3, debug: false };
    market.discovery.discover_events(market.scope, &request).await.unwrap();
    assert_eq!(guild.asked(), [], "not for another provider, and not for events");
}

#[tokio::test]
async fn a_search_that_fails_leaves_ours_and_a_note() {
    let guild = Arc::new(Guild { fails: Some("it answered 502"), ..Guild::default() });
    let market = Market::open(&guild).await;
    let note = "The Guild's search could not be asked (it answered 502); these are Toolyard's own results.";
    let answer = market.ask(None, &[BAKE, "wash a car"]).await;
    assert_eq!((names(&answer["capabilities"][0])[0].as_str(), &answer["notes"]), ("house:bakery.BAKE", &json!([note])));
    let answer = market.ask(Some("guild"), &["heat dough"]).await;
    assert_eq!((names(&answer["capabilities"][0])[0].as_str(), &answer["notes"]), ("guild:oven.HEAT", &json!([note])));
    assert_eq!(guild.asked().len(), 2, "a failure is not remembered");
    for provider in [None, Some("guild".to_owned())] {
        let request = Discover { use_cases: vec!["zorp the quux".to_owned()], provider, alternatives: 3, debug: false };
        let failed = market.discovery.discover(market.scope, &request).await.unwrap_err();
        assert!(matches!(&failed, DiscoveryError::Search(_)), "{failed}");
        assert_eq!(failed.to_string(), "The Guild's search could not be asked (it answered 502), and nothing else fits.");
    }
}
