//! Signing in with an identity provider that we did not write: `oidc-provider` from npm.

use http::Method;
use kernel::{Clock, Role};
use serde_json::{Value, json};
use store::args;
use url::Url;

use super::{PASSWORD, person, project_id};
use crate::support::{Browser, Database, Oidc, Reply, Test, sent_to};

const OURS: &str = "http://127.0.0.1:8665";

fn callback(name: &str) -> String {
    format!("{OURS}/sign-in/with/{name}/callback")
}

fn provider(name: &str, oidc: &Oidc, client: &str, rules: &Value) -> people::oidc::ProviderConfig {
    let config = json!({"name": name, "label": format!("The {name}"), "issuer": oidc.issuer, "client_id": client, "client_secret": "yard-secret",
        "scopes": ["groups"], "rules": rules});
    serde_json::from_value(config).unwrap()
}

async fn start(database: Database, providers: Vec<people::oidc::ProviderConfig>) -> Test {
    // A real provider goes by the real time.
    Test::at(database, Clock::system(), |config| {
        config.sign_in.providers = providers;
        // An issuer is the operator's word, so it may be private without being named twice.
        config.egress_allow = String::new();
    })
    .await
}

/// The way to a provider and back to us, with the provider's answer changed on the way if wanted.
async fn sign_in(browser: &mut Browser<'_>, oidc: &Oidc, name: &str, login: &str, change: impl Fn(&mut Url)) -> Reply {
    let away = sent_to(&browser.get(&format!("/sign-in/with/{name}?return_to=/docs")).await);
    let mut back = oidc.browse(&away, login, true).await;
    assert!(back.as_str().starts_with(&callback(name)), "{back}");
    change(&mut back);
    browser.site = "cross-site";
    let reply = browser.get(&back[url::Position::BeforePath..]).await;
    browser.site = "same-origin";
    reply
}

async fn person_at(oidc: &Oidc, sub: &str, claims: &Value) {
    let query =
        url::form_urlencoded::Serializer::new(String::new()).append_pair("sub", sub).append_pair("claims", &claims.to_string()).finish();
    oidc.control(&format!("person?{query}")).await;
}

fn refused(reply: &Reply, words: &str) {
    assert!(reply.status == 400 && reply.text.contains(words), "{} {}", reply.status, reply.text);
}

fn set(url: &mut Url, name: &str, value: Option<&str>) {
    let mut pairs: Vec<(String, String)> = url.query_pairs().into_owned().filter(|(known, _)| known != name).collect();
    pairs.extend(value.map(|value| (name.to_owned(), value.to_owned())));
    url.query_pairs_mut().clear().extend_pairs(pairs);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn groups_decide_at_each_sign_in() {
    for (database, client) in [(Database::Sqlite, "yard-basic"), (Database::Postgres, "yard-curve")] {
        let oidc = Oidc::start(&callback("corp"), 60).await;
        let rules = json!([
            {"group": "eng", "project": "default", "role": "editor"},
            {"group": "ops", "project": "other", "role": "viewer"},
            {"group": "eng", "project": "never-made", "role": "owner"},
        ]);
        let test = start(database, vec![provider("corp", &oidc, client, &rules)]).await;
        let other = project_id(&test, "other").await;
        person_at(&oidc, "ada", &json!({"groups": ["eng", "ops"]})).await;

        let mut ada = Browser::new(&test);
        let page = ada.get("/sign-in").await;
        assert!(page.text.contains("Continue with The corp"), "{}", page.text);
        assert_eq!(sent_to(&sign_in(&mut ada, &oidc, "corp", "ada", |_| {}).await), "/docs");
        let me = ada.me().await.expect(200);
        let roles = |me: &Value| {
            let one = |one: &Value| format!("{} {}", one["project_slug"].as_str().unwrap(), one["role"].as_str().unwrap());
            let mut all: Vec<String> = me["projects"].as_array().unwrap().iter().map(one).collect();
            all.sort();
            all
        };
        assert_eq!((&me["email"], roles(&me)), (&json!("ada@example.com"), vec!["default editor".to_owned(), "other viewer".to_owned()]));
        assert_eq!(ada.get("/people/sessions").await.expect(200)["sessions"][0]["method"], "provider:corp");

        // What the provider says next time counts; what people gave by hand stays.
        let user = test.yard.accounts.user_by_email("ada@example.com").await.unwrap();
        person_at(&oidc, "ada", &json!({"groups": ["ops"]})).await;
        assert_eq!(sent_to(&sign_in(&mut ada, &oidc, "corp", "ada", |_| {}).await), "/docs");
        assert_eq!(roles(&ada.me().await.expect(200)), ["other viewer"]);
        test.yard.accounts.set_member(other, user, Role::Owner, &accounts::Source::Invited).await.unwrap();
        person_at(&oidc, "ada", &json!({"groups": []})).await;
        assert_eq!(sent_to(&sign_in(&mut ada, &oidc, "corp", "ada", |_| {}).await), "/docs");
        assert_eq!(roles(&ada.me().await.expect(200)), ["other owner"]);

        // Somebody whom no rule knows leaves no trace.
        refused(&sign_in(&mut Browser::new(&test), &oidc, "corp", "mallory", |_| {}).await, "does not belong to any project");
        assert_eq!(test.yard.accounts.list_users().await.unwrap().len(), 1);

        // Disabled here; disabled there.
        test.yard.people.set_disabled(user, true).await.unwrap();
        ada.me().await.expect(401);
        refused(&sign_in(&mut ada, &oidc, "corp", "ada", |_| {}).await, "That did not work.");
        test.yard.people.set_disabled(user, false).await.unwrap();
        person_at(&oidc, "ada", &json!({"disabled": true})).await;
        let away = sent_to(&ada.get("/sign-in/with/corp").await);
        let back = oidc.browse(&away, "ada", true).await;
        let reply = ada.get(&back[url::Position::BeforePath..]).await;
        assert_eq!(reply.status, 400, "{} {}", reply.text, back);
        ada.me().await.expect(401);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_that_the_provider_rotates_are_fetched_again() {
    let oidc = Oidc::start(&callback("corp"), 60).await;
    let rules = json!([{"domain": "example.com", "project": "default", "role": "viewer"}]);
    let test = start(Database::Sqlite, vec![provider("corp", &oidc, "yard-basic", &rules)]).await;
    let mut ada = Browser::new(&test);
    assert_eq!(sent_to(&sign_in(&mut ada, &oidc, "corp", "ada", |_| {}).await), "/docs");
    oidc.control("rotate-keys").await;
    assert_eq!(sent_to(&sign_in(&mut ada, &oidc, "corp", "ada", |_| {}).await), "/docs");
    // Signing out ends our session, and the provider is not asked.
    let page = ada.get("/account").await;
    sent_to(&ada.answer("/sign-out", &page, &[]).await);
    ada.me().await.expect(401);
    // A provider that fails is no failure of ours.
    oidc.control("fail-token?status=500&times=1").await;
    refused(&sign_in(&mut ada, &oidc, "corp", "ada", |_| {}).await, "could not be asked who you are");
    let away = sent_to(&ada.get("/sign-in/with/corp").await);
    let declined = oidc.browse(&away, "ada", false).await;
    refused(&ada.get(&declined[url::Position::BeforePath..]).await, "it was declined");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answers_that_are_not_ours_are_refused() {
    let both = format!("{},{}", callback("one"), callback("two"));
    let (one, two) = (Oidc::start(&both, 60).await, Oidc::start(&both, 60).await);
    let rules = json!([{"everyone": true, "project": "default", "role": "viewer"}]);
    let test =
        start(Database::Sqlite, vec![provider("one", &one, "yard-basic", &rules), provider("two", &two, "yard-basic", &rules)]).await;
    let mut ada = Browser::new(&test);
    let exchanges = async |oidc: &Oidc| oidc.counters().await["code_exchanges"].as_u64().unwrap();

    // The answer of one provider at the address of the other, and with the name of the other.
    let mixed = sign_in(&mut ada, &one, "one", "ada", |url| url.set_path("/sign-in/with/two/callback")).await;
    refused(&mixed, "was not started here");
    refused(&sign_in(&mut ada, &one, "one", "ada", |url| set(url, "iss", Some(&two.issuer))).await, "from another provider");
    refused(&sign_in(&mut ada, &one, "one", "ada", |url| set(url, "iss", None)).await, "from another provider");
    assert_eq!((exchanges(&one).await, exchanges(&two).await), (0, 0), "no code was sent anywhere");

    // Another state, none, and one of another browser: somebody else's account is not slipped under.
    refused(&sign_in(&mut ada, &one, "one", "ada", |url| set(url, "state", Some("tyo_x"))).await, "was not started here");
    refused(&sign_in(&mut ada, &one, "one", "ada", |url| set(url, "state", None)).await, "was not started here");
    let mut eve = Browser::new(&test);
    let away = sent_to(&eve.get("/sign-in/with/one").await);
    let back = one.browse(&away, "eve", true).await;
    let path = &back[url::Position::BeforePath..];
    refused(&ada.get(path).await, "was not started here");
    ada.me().await.expect(401);
    assert_eq!(sent_to(&eve.get(path).await), "/app", "in the browser where it began it is good");

    // Once.
    refused(&eve.get(path).await, "was not started here");
    // A code of another sign-in does not fit the verifier of this one.
    let mut other = Browser::new(&test);
    let away = sent_to(&other.get("/sign-in/with/one").await);
    let stolen = one.browse(&away, "eve", true).await;
    let code = stolen.query_pairs().find(|(name, _)| name == "code").unwrap().1.into_owned();
    refused(&sign_in(&mut ada, &one, "one", "ada", |url| set(url, "code", Some(&code))).await, "invalid_grant");
    refused(&sign_in(&mut ada, &one, "one", "ada", |url| set(url, "code", None)).await, "it sent no code");
    ada.me().await.expect(401);

    // Looking at the address does not use it up, and nobody is led away.
    let away = sent_to(&ada.get("/sign-in/with/one?return_to=https://evil.example/").await);
    let back = one.browse(&away, "ada", true).await;
    let path = &back[url::Position::BeforePath..];
    let head = test.request(Method::HEAD, path, None, None).await;
    assert_eq!(head.status, 405);
    assert_eq!(sent_to(&ada.get(path).await), "/app");

    // An attempt that took too long.
    let away = sent_to(&ada.get("/sign-in/with/one").await);
    let back = one.browse(&away, "ada", true).await;
    test.yard.db.execute("update sign_in_attempts set created_at = created_at - 900000000", args![]).await.unwrap();
    refused(&ada.get(&back[url::Position::BeforePath..]).await, "started too long ago");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn accounts_are_tied_by_verified_addresses_alone() {
    let oidc = Oidc::start(&callback("corp"), 60).await;
    let test = start(Database::Sqlite, vec![provider("corp", &oidc, "yard-basic", &json!([]))]).await;
    // Somebody claimed the address before, with a password of theirs.
    let user = person(&test, "ada@example.com", Some(("default", Role::Viewer))).await;
    let mut claimant = Browser::new(&test);
    sent_to(&claimant.sign_in(&[("email", "ada@example.com"), ("password", PASSWORD)]).await);

    person_at(&oidc, "ada", &json!({"email_verified": false})).await;
    let mut ada = Browser::new(&test);
    refused(&sign_in(&mut ada, &oidc, "corp", "ada", |_| {}).await, "There is an account with this address");
    claimant.me().await.expect(200);

    person_at(&oidc, "ada", &json!({"email_verified": true})).await;
    assert_eq!(sent_to(&sign_in(&mut ada, &oidc, "corp", "ada", |_| {}).await), "/docs");
    assert_eq!(ada.me().await.expect(200)["user_id"], json!(user));
    claimant.me().await.expect(401);
    assert_eq!(Browser::new(&test).sign_in(&[("email", "ada@example.com"), ("password", PASSWORD)]).await.status, 400);

    // Later it is the subject that counts, not the address.
    person_at(&oidc, "ada", &json!({"email": "renamed@example.com"})).await;
    assert_eq!(sent_to(&sign_in(&mut ada, &oidc, "corp", "ada", |_| {}).await), "/docs");
    assert_eq!(ada.me().await.expect(200)["user_id"], json!(user));

    // An invitation lets in whom no rule knows, and the account is theirs before they join.
    let made = test.post("/people/invitations", json!({"invitation": {"role": "editor"}})).await.expect(200);
    let link: Url = made["link"].as_str().unwrap().parse().unwrap();
    let mut bob = Browser::new(&test);
    let page = bob.get(link.path()).await;
    assert!(page.text.contains("Continue with The corp"), "{}", page.text);
    let to: String = url::form_urlencoded::byte_serialize(link.path().as_bytes()).collect();
    let away = sent_to(&bob.get(&format!("/sign-in/with/corp?return_to={to}")).await);
    let back = oidc.browse(&away, "bob", true).await;
    assert_eq!(sent_to(&bob.get(&back[url::Position::BeforePath..]).await), link.path());
    assert_eq!(sent_to(&bob.submit(link.path(), &[]).await), "/app");
    assert_eq!(bob.me().await.expect(200)["projects"][0]["role"], "editor");
}
