//! The provider `composio`: its catalog, accounts, calls and search, against the stand-in.

use std::sync::Arc;
use std::time::Duration;

use composio_fake::{Fake, Fault, Kind, On};
use serde_json::{Value, json};

use crate::support::{Composed, Database, Test, answer_page, until, with_composio};

const GITHUB: &str = "/tools/catalog/providers/composio/integrations/github";
const ISSUE: &str = "tools.composio.github.CREATE_AN_ISSUE.main";

fn issue() -> Value {
    json!({"owner": "o", "repo": "r", "title": "t"})
}

with_composio! {
    async fn a_toolkit_is_used_like_any_other_integration(test: &Composed) {
        let provider = test.get("/tools/catalog/providers/composio").await.expect(200)["provider"].take();
        assert_eq!((&provider["name"], &provider["description"]), (&json!("Composio"), &json!("Third-party integrations via Composio")));
        let integration = test.get(GITHUB).await.expect(200)["integration"].take();
        assert_eq!((&integration["auth_schemes"], &integration["events_count"]), (&json!(["oauth"]), &json!(2)));
        let listed = test.get(&format!("{GITHUB}/actions?limit=100&categories=Issues")).await.expect(200);
        let keys: Vec<&str> = listed["actions"].as_array().unwrap().iter().map(|action| action["key"].as_str().unwrap()).collect();
        assert!(keys.contains(&"CREATE_AN_ISSUE") && !keys.contains(&"ISSUES_CREATE"), "deprecated tools are left out: {keys:?}");
        let action = test.get(&format!("{GITHUB}/actions/LIST_REPOSITORY_ISSUES")).await.expect(200)["action"].take();
        assert_eq!((&action["read_only"], &action["categories"]), (&json!(true), &json!(["Issues"])));
        assert!(test.get(&format!("{GITHUB}/actions/DELETE_A_REPOSITORY")).await.expect(200)["action"]["destructive"].as_bool().unwrap());
        assert_eq!(test.get(&format!("{GITHUB}/actions/NOPE")).await.detail(404), "Action not found");
        assert_eq!(test.get("/tools/catalog/providers/composio/integrations/nope").await.detail(404), "Integration not found");

        let connection = test.connect("github", "main").await;
        assert_eq!(connection["flags"], json!({"is_active": true, "is_valid": true}));
        let account = test.composio.accounts()[0]["id"].as_str().unwrap().to_owned();
        assert!(!connection.to_string().contains(&account), "a provider's account id is never shown");
        let made = Test::content(test.call(ISSUE, issue()).await);
        assert_eq!((&made["successful"], &made["data"]["title"]), (&json!(true), &json!("t")));
        let request = test.composio.requests().into_iter().find(|request| request.path.starts_with("/tools/execute/GITHUB")).unwrap();
        let body = request.body.unwrap();
        assert_eq!((&body["connected_account_id"], &body["arguments"]), (&json!(account), &issue()));
        assert_eq!(body["user_id"], test.composio.accounts()[0]["user_id"]);
        assert_eq!(request.headers["x-api-key"], test.composio.key());
        assert!(test.call(ISSUE, json!({"owner": "o"})).await.detail(400).contains("repo"));

        let config = json!({"type": "gateway", "provider": "composio", "integration": "github", "action": "CREATE_AN_ISSUE", "connection": "main"});
        let resolved = test.post("/tools/resolve", json!({"tools": [config]})).await.expect(200);
        assert_eq!(resolved["custom"][0]["call_ref"], ISSUE);

        test.delete(&format!("/tools/connections/{}", connection["id"].as_str().unwrap())).await.expect(204);
        until("the account is gone at Composio", async || test.composio.accounts().is_empty()).await;
        test.call(ISSUE, issue()).await.expect(404);
    }

    async fn names_of_tools_lead_back_to_composios(test: &Composed) {
        let made = test.ask_for("acme_crm", "crm", json!({})).await.expect(200)["connection"].take();
        assert_eq!(made["data"]["auth_scheme"], "api_key");
        let back = answer_page(made["data"]["redirect_url"].as_str().unwrap(), "answer=allow&subdomain=acme&api_key=k-12345678&generic_api_key=k-12345678").await;
        test.come_back(&back).await.expect_page(200);
        for (action, slug) in [("LIST_DEALS", "ACME_CRM_LIST_DEALS"), ("MERGE_CRM_CONTACTS", "MERGE_CRM_CONTACTS")] {
            test.composio.forget_requests();
            let _ = test.call(&format!("tools.composio.acme_crm.{action}.crm"), json!({"keep": "c1", "drop": "c2", "keep_id": "c1", "drop_id": "c2"})).await;
            let detail = test.get(&format!("/tools/catalog/providers/composio/integrations/acme_crm/actions/{action}")).await.expect(200);
            let required = detail["action"]["schemas"]["inputs"]["required"].as_array().cloned().unwrap_or_default();
            let arguments: Value = required.iter().map(|name| (name.as_str().unwrap().to_owned(), json!("c1"))).collect::<serde_json::Map<_, _>>().into();
            test.call(&format!("tools.composio.acme_crm.{action}.crm"), arguments).await.expect(200);
            assert!(test.asked().contains(&format!("POST /tools/execute/{slug}")), "{:?}", test.asked());
        }
        let said_no = test.call("tools.composio.acme_crm.SYNC_LEDGER.crm", json!({})).await.expect(200);
        assert_eq!(said_no["call"]["status"]["code"], "STATUS_CODE_ERROR", "{said_no}");
    }

    async fn every_way_to_connect(test: &Composed) {
        let free = test.ask_for("hackernews", "news", json!({})).await.expect(200)["connection"].take();
        assert_eq!((&free["flags"]["is_valid"], &free["data"]["no_auth"]), (&json!(true), &json!(true)));
        assert!(test.composio.accounts().is_empty() && test.composio.auth_configs().is_empty());
        let front = Test::content(test.call("tools.composio.hackernews.GET_FRONTPAGE.news", json!({})).await);
        assert_eq!(front["successful"], true);

        let key = test.ask_for("telegram", "bot", json!({"auth_scheme": "api_key"})).await.expect(200)["connection"].take();
        assert_eq!((&key["flags"]["is_valid"], &key["data"]["auth_scheme"]), (&json!(false), &json!("api_key")));
        assert!(test.call("tools.composio.telegram.GET_ME.bot", json!({})).await.detail(400).contains("not established"));
        let typed = test.ask_for("telegram", "typed", json!({"credentials": {"api_key": "x"}})).await.detail(422);
        assert!(typed.contains("leave `credentials` out"), "{typed}");
        assert!(test.ask_for("telegram", "other", json!({"auth_scheme": "oauth"})).await.detail(422).contains("no auth scheme 'oauth'"));

        let none = test.ask_for("orbit_desk", "desk", json!({})).await.detail(422);
        assert!(none.contains("has no managed OAuth configuration") && none.contains("oauth-app set composio/orbit_desk"), "{none}");
        let app = json!({"oauth_app": {"provider_key": "composio", "integration_key": "orbit_desk", "client_id": "own-id", "client_secret": "own-secret-123"}});
        test.post("/tools/oauth-apps", app).await.expect(200);
        let desk = test.connect("orbit_desk", "desk").await;
        assert_eq!(desk["flags"]["is_valid"], true);
        let sent = test.composio.requests().into_iter().rfind(|request| request.path == "/auth_configs" && request.method == "POST").unwrap();
        let sent = sent.body.unwrap();
        assert_eq!((&sent["auth_config"]["type"], &sent["auth_config"]["credentials"]["client_id"]), (&json!("use_custom_auth"), &json!("own-id")));

        // Connections of one toolkit share its auth config.
        test.connect("github", "one").await;
        test.connect("github", "two").await;
        let of_github = test.composio.auth_configs().into_iter().filter(|config| config["toolkit"]["slug"] == "github").count();
        assert_eq!((of_github, test.composio.accounts().iter().filter(|account| account["toolkit"]["slug"] == "github").count()), (1, 2));
    }

    async fn what_can_be_refused_is_refused_before_composio_is_asked(test: &Composed) {
        test.connect("github", "main").await;
        test.composio.forget_requests();
        test.ask_for("github", "main", json!({})).await.expect(409);
        test.ask_for("github", "a.b", json!({})).await.expect(422);
        test.ask_for("github", "x", json!({"auth_scheme": "magic"})).await.expect(422);
        assert_eq!(test.asked(), Vec::<String>::new());
        assert_eq!(test.ask_for("nope", "x", json!({})).await.detail(404), "Integration 'nope' not found");
    }

    async fn only_what_composio_says_makes_a_connection_valid(test: &Composed) {
        let made = test.ask_for("github", "main", json!({})).await.expect(200)["connection"].take();
        let one = format!("/tools/connections/{}", made["id"].as_str().unwrap());
        let is_valid = async || test.get(&one).await.expect(200)["connection"]["flags"]["is_valid"].clone();
        let link = test.composio.requests().into_iter().find(|request| request.path == "/connected_accounts/link").unwrap();
        let callback = link.body.unwrap()["callback_url"].as_str().unwrap().to_owned();
        let account = test.composio.accounts()[0]["id"].as_str().unwrap().to_owned();

        // The person came back too early, or somebody else's account is named.
        test.come_back(&format!("{callback}&status=success&connected_account_id={account}")).await.expect_page(400);
        test.composio.finish(&account);
        test.come_back(&format!("{callback}&status=success&connected_account_id=ca_other")).await.expect_page(400);
        assert_eq!(is_valid().await, false);
        test.come_back(&format!("{callback}&status=success&connected_account_id={account}")).await.expect_page(200);
        assert_eq!(is_valid().await, true);
        // An address is good once, and a revoked connection stays revoked.
        test.post(&format!("{one}/revoke"), json!({})).await.expect(200);
        test.come_back(&format!("{callback}&status=success&connected_account_id={account}")).await.expect_page(400);
        assert_eq!(is_valid().await, false);
        test.call(ISSUE, issue()).await.expect(400);

        let again = test.post(&format!("{one}/refresh"), json!({})).await.expect(200)["connection"].take();
        let denied = answer_page(again["data"]["redirect_url"].as_str().unwrap(), "answer=deny").await;
        test.come_back(&denied).await.expect_page(400);
        assert_eq!(is_valid().await, false);
        until("the account that was denied is gone", async || test.composio.accounts().len() == 1).await;
    }

    async fn an_account_that_works_is_used_though_nobody_came_back(test: &Composed) {
        let made = test.ask_for("github", "main", json!({})).await.expect(200)["connection"].take();
        test.call(ISSUE, issue()).await.expect(400);
        let account = test.composio.accounts()[0]["id"].as_str().unwrap().to_owned();
        test.composio.finish(&account);
        test.call(ISSUE, issue()).await.expect(200);
        let one = format!("/tools/connections/{}", made["id"].as_str().unwrap());
        assert_eq!(test.get(&one).await.expect(200)["connection"]["flags"]["is_valid"], true);

        let other = test.ask_for("github", "other", json!({})).await.expect(200)["connection"].take();
        let account = test.composio.accounts().into_iter().find(|found| found["id"] != account.as_str()).unwrap()["id"].as_str().unwrap().to_owned();
        let data = json!({"event_key": "GITHUB_COMMIT_EVENT", "trigger_config": {"owner": "o", "repo": "r"}});
        let subscribe = || test.post("/triggers/subscriptions/", json!({"subscription": {"connection_id": other["id"], "data": data}}));
        subscribe().await.expect(400);
        test.composio.finish(&account);
        subscribe().await.expect(200);
    }

    async fn a_refresh_never_breaks_what_works(test: &Composed) {
        let connection = test.connect("github", "main").await;
        let one = format!("/tools/connections/{}", connection["id"].as_str().unwrap());
        let old = test.composio.accounts()[0]["id"].clone();
        let quiet = test.post(&format!("{one}/refresh"), json!({})).await.expect(200)["connection"].take();
        assert_eq!((&quiet["flags"]["is_valid"], quiet["data"].get("redirect_url")), (&json!(true), None));

        let forced = test.post(&format!("{one}/refresh?force=true"), json!({})).await.expect(200)["connection"].take();
        assert_eq!(forced["flags"]["is_valid"], true);
        test.call(ISSUE, issue()).await.expect(200);
        // A second try takes the place of the first.
        let forced = test.post(&format!("{one}/refresh?force=true"), json!({})).await.expect(200)["connection"].take();
        until("the account of the first try is gone", async || test.composio.accounts().len() == 2).await;
        test.walk_through(forced["data"]["redirect_url"].as_str().unwrap()).await.expect_page(200);
        until("the old account is gone", async || test.composio.accounts().len() == 1).await;
        assert_ne!(test.composio.accounts()[0]["id"], old);
        test.call(ISSUE, issue()).await.expect(200);

        // An account that is gone at Composio is told by the first call, and asked for anew by a refresh.
        let now = test.composio.accounts()[0]["id"].as_str().unwrap().to_owned();
        test.composio.remove_account(&now);
        test.call(ISSUE, issue()).await.expect(400);
        let broken = test.get(&one).await.expect(200)["connection"].take();
        assert_eq!(broken["flags"]["is_valid"], false);
        assert!(broken["status"]["message"].as_str().unwrap().contains("any more"), "{broken}");
        let anew = test.post(&format!("{one}/refresh"), json!({})).await.expect(200)["connection"].take();
        test.walk_through(anew["data"]["redirect_url"].as_str().unwrap()).await.expect_page(200);
        test.call(ISSUE, issue()).await.expect(200);
    }

    async fn a_tool_that_is_newer_than_the_copy_is_found(test: &Composed) {
        test.get(GITHUB).await.expect(200);
        test.composio.add_toolkits(3, 4);
        let key = test.composio.requests().len();
        assert!(key > 0);
        let toolkits = test.yard.composio.as_ref().unwrap().status().toolkits;
        let listed = test.get("/tools/catalog/providers/composio/integrations?limit=1000").await.expect(200);
        assert_eq!(listed["total"], toolkits);
        let status = test.yard.composio.as_ref().unwrap().sync().await.unwrap();
        assert_eq!(status.toolkits, toolkits + 3);

        // Names that lead nowhere are asked for once.
        test.composio.forget_requests();
        for name in ["GITHUB_CREATE_AN_ISSUE", "ISSUES_CREATE", "NOPE", "a b", ".."] {
            for _ in 0..3 {
                let reply = test.get(&format!("{GITHUB}/actions/{}", name.replace(' ', "%20"))).await;
                assert_eq!(reply.status.as_u16(), 404, "{name}: {}", reply.text);
            }
        }
        assert!(test.asked().len() <= 8, "{:?}", test.asked());
        for key in ["categories", "GITHUB", "nope", "%2e%2e"] {
            for _ in 0..3 {
                test.get(&format!("/tools/catalog/providers/composio/integrations/{key}")).await.expect(404);
            }
        }
        assert!(test.asked().len() <= 12, "{:?}", test.asked());

        // One that is gone upstream is told as such, and the copy follows.
        test.connect("github", "main").await;
        test.composio.remove_tool("GITHUB_CREATE_AN_ISSUE");
        test.call(ISSUE, issue()).await.expect(424);
        test.yard.composio.as_ref().unwrap().sync().await.unwrap();
        test.call(ISSUE, issue()).await.expect(404);
    }

    async fn projects_do_not_see_each_others_accounts(test: &Composed) {
        test.connect("github", "main").await;
        let other = test.key("other", kernel::Role::Owner, None).await;
        test.call_as(&other, ISSUE, issue()).await.expect(404);
        let connection = json!({"slug": "main", "provider_key": "composio", "integration_key": "github"});
        test.post_as(&other, "/tools/connections/", json!({"connection": connection})).await.expect(200);
        let users: std::collections::BTreeSet<String> = test.composio.accounts().iter().map(|account| account["user_id"].to_string()).collect();
        assert_eq!(users.len(), 2);
    }

    async fn what_only_one_side_knows_is_put_right(test: &Composed) {
        let kept = test.connect("github", "kept").await;
        let lost = test.connect("slack", "lost").await;
        let find = |slug: &str| test.composio.accounts().into_iter().find(|account| account["toolkit"]["slug"] == slug).unwrap();
        let project = find("github")["user_id"].as_str().unwrap().to_owned();
        // Somebody left an account behind, and another one vanished.
        let config = find("github")["auth_config"]["id"].as_str().unwrap().to_owned();
        let orphan = test.ask_composio("POST", "/connected_accounts/link", json!({"auth_config_id": config, "user_id": project})).await;
        let foreign = test.ask_composio("POST", "/connected_accounts/link", json!({"auth_config_id": config, "user_id": "somebody else"})).await;
        test.composio.remove_account(find("slack")["id"].as_str().unwrap());
        let (first, _) = test.yard.tidy_composio().await.unwrap();
        assert_eq!((first.removed, first.invalidated), (0, 1), "what is young may belong to a request under way");
        test.clock.advance(Duration::from_mins(20));
        let (found, _) = test.yard.tidy_composio().await.unwrap();
        assert_eq!((found.removed, found.invalidated), (1, 0));
        let left: Vec<String> = test.composio.accounts().iter().map(|account| account["id"].as_str().unwrap().to_owned()).collect();
        assert!(!left.contains(&orphan["connected_account_id"].as_str().unwrap().to_owned()));
        assert!(left.contains(&foreign["connected_account_id"].as_str().unwrap().to_owned()));
        let valid = async |id: &Value| test.get(&format!("/tools/connections/{}", id.as_str().unwrap())).await.expect(200)["connection"]["flags"]["is_valid"].clone();
        assert_eq!((valid(&kept["id"]).await, valid(&lost["id"]).await), (json!(true), json!(false)));
    }

    async fn its_own_search_is_merged_and_replaced_when_it_fails(test: &Composed) {
        let ask = async |body: Value| test.post("/tools/discover", body).await.expect(200);
        let named = json!({"use_cases": ["create a github issue", "send a message to a slack channel"], "provider": "composio"});
        let found = ask(named.clone()).await;
        let first = &found["capabilities"][0];
        assert_eq!((&first["tool"]["action"], &first["tool"]["provider_action"]), (&json!("CREATE_AN_ISSUE"), &json!("GITHUB_CREATE_AN_ISSUE")), "{found:#}");
        assert_eq!(first["connection"]["state"], "needs_auth");
        assert_eq!(found["connections"][0]["connect"]["body"]["connection"]["provider_key"], "composio");
        assert_eq!(found["capabilities"].as_array().unwrap().len(), 2);
        let searches = || test.asked().iter().filter(|asked| asked.ends_with("COMPOSIO_SEARCH_TOOLS")).count();
        assert_eq!(searches(), 1);
        ask(named).await;
        assert_eq!(searches(), 1, "what it answered is remembered for a while");

        test.connect("github", "main").await;
        let ready = ask(json!({"use_cases": ["create a github issue"], "provider": "composio"})).await;
        assert_eq!((&ready["ready"], &ready["capabilities"][0]["tool"]["connection"]), (&json!(true), &json!("main")), "the state of connections is never remembered");
        ask(json!({"use_cases": ["list the issues of a github repository"]})).await;

        for kind in [Kind::Status(500), Kind::MalformedJson, Kind::WrongTypes, Kind::Refuse] {
            test.composio.fault(Fault { on: On::Path("COMPOSIO_SEARCH_TOOLS"), times: 5, kind });
            let text = format!("create a github issue about {kind:?}");
            let alone = ask(json!({"use_cases": [text], "provider": "composio"})).await;
            assert_eq!(alone["capabilities"][0]["tool"]["integration"], "github", "{kind:?}: {alone:#}");
            assert!(alone["notes"].to_string().contains("could not be asked"), "{kind:?}: {alone:#}");
            test.composio.clear_faults();
        }
    }
}

impl Composed {
    /// Something that happens at Composio without us.
    pub async fn ask_composio(&self, method: &str, path: &str, body: Value) -> Value {
        let egress = egress::Egress::new(egress::Config { allow: "127.0.0.1".parse().unwrap(), ..egress::Config::default() }).unwrap();
        let url = format!("{}{path}", self.composio.url()).parse().unwrap();
        let request = egress::Request::new(method.parse().unwrap(), url)
            .header("x-api-key".parse().unwrap(), self.composio.key().parse().unwrap())
            .header(http::header::CONTENT_TYPE, http::HeaderValue::from_static("application/json"))
            .body(body.to_string());
        let response = egress.send(request).await.unwrap();
        assert!(response.status.is_success(), "{}", String::from_utf8_lossy(&response.body));
        serde_json::from_slice(&response.body).unwrap()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_key_it_says_what_to_set() {
    let test = Test::start(Database::Sqlite).await;
    let said = "composio is not configured on this deployment. Set COMPOSIO_API_KEY to enable it.";
    for path in
        ["", "/integrations", "/categories", "/integrations/github", "/integrations/github/actions", "/integrations/github/actions/X"]
    {
        assert_eq!(test.get(&format!("/tools/catalog/providers/composio{path}")).await.detail(503), said, "{path}");
    }
    assert_eq!(test.get("/triggers/catalog/providers/composio/integrations/github/events").await.detail(503), said);
    assert_eq!(test.post("/tools/discover", json!({"use_cases": ["x"], "provider": "composio"})).await.detail(503), said);
    let connection = json!({"connection": {"slug": "a", "provider_key": "composio", "integration_key": "github"}});
    assert_eq!(test.post("/tools/connections/", connection).await.detail(503), said);
    assert_eq!(test.call("tools.composio.github.X.main", json!({})).await.detail(503), said);
    let config = json!({"type": "gateway", "provider": "composio", "integration": "github", "action": "X", "connection": "main"});
    assert_eq!(test.post("/tools/resolve", json!({"tools": [config]})).await.detail(503), said);
    let providers = test.get("/tools/catalog/providers").await.expect(200);
    assert!(!providers.to_string().contains("composio"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_start_without_composio_lists_what_the_last_one_knew() {
    let composio = Arc::new(Fake::start().await);
    let kept = tempfile::tempdir().unwrap();
    let first = Composed::quiet(Database::Sqlite, composio.clone(), |_| {}).await;
    first.yard.composio.as_ref().unwrap().sync().await.unwrap();
    let copy = kept.path().join("composio.catalog");
    std::fs::copy(first.yard.config.data_dir.join("composio.catalog"), &copy).unwrap();

    let down = |composio: &Fake| composio.fault(Fault { on: On::Path("/"), times: u32::MAX, kind: Kind::Status(503) });
    down(&composio);
    let empty = Composed::quiet(Database::Sqlite, composio.clone(), |_| {}).await;
    empty.yard.start_composio();
    let failed = empty.get("/tools/catalog/providers/composio/integrations").await.detail(502);
    assert!(failed.contains("503"), "{failed}");
    assert_eq!(empty.get("/tools/catalog/providers/native/integrations").await.expect(200)["count"], 20, "others do not wait");

    let knowing = Composed::quiet(Database::Sqlite, composio.clone(), |config| {
        std::fs::copy(&copy, config.data_dir.join("composio.catalog")).unwrap();
    })
    .await;
    knowing.yard.start_composio();
    assert_eq!(knowing.get(GITHUB).await.expect(200)["integration"]["key"], "github");
    knowing.get("/tools/catalog/providers/composio/integrations/nope").await.expect(404);
    let found = knowing
        .post("/triggers/discover", json!({"use_cases": ["when somebody pushes a commit to github"], "provider": "composio"}))
        .await
        .expect(200);
    assert_eq!(found["capabilities"][0]["event"]["event_key"], "GITHUB_COMMIT_EVENT", "{found:#}");

    // With another key, the copy is another's.
    let stranger = Composed::quiet(Database::Sqlite, composio.clone(), |config| {
        std::fs::copy(&copy, config.data_dir.join("composio.catalog")).unwrap();
        config.composio_api_key = Some("another key".to_owned());
    })
    .await;
    stranger.yard.start_composio();
    stranger.get(GITHUB).await.expect(502);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_key_that_composio_refuses_is_named_and_not_shown() {
    let composio = Arc::new(Fake::start().await);
    let test = Composed::quiet(Database::Sqlite, composio, |config| config.composio_api_key = Some("ak_wrong_secret".to_owned())).await;
    test.yard.start_composio();
    let detail = test.get(GITHUB).await.detail(424);
    assert!(detail.contains("API key") && !detail.contains("ak_wrong_secret"), "{detail}");
}
