//! Connect links: the language of their pages, where they lead in the end, and whose sites may show them.

use axum::body::Body;
use http::{Method, Request};
use kernel::Role;
use serde_json::{Value, json};
use url::Url;

use crate::support::{Database, Fake, Oidc, Reply, Test, on_both};

const LINKS: &str = "/project/connect-links";

async fn allow(test: &Test, links: Value) -> Reply {
    test.request(Method::PUT, LINKS, Some(format!("ApiKey {}", test.owner)), Some(links)).await
}

fn asked(slug: &str, link: &Value) -> Value {
    let data = json!({"auth_scheme": "api_key"});
    json!({"connection": {"slug": slug, "provider_key": "native", "integration_key": "fake", "data": data, "link": link}})
}

/// The id of a new connection, and the path of its link.
async fn begin(test: &Test, slug: &str, link: Value) -> (String, String) {
    let made = test.post("/tools/connections", asked(slug, &link)).await.expect(200);
    let url: Url = made["connection"]["data"]["redirect_url"].as_str().unwrap().parse().unwrap();
    (made["connection"]["id"].as_str().unwrap().to_owned(), url.path().to_owned())
}

async fn open(test: &Test, path: &str, languages: &str) -> Reply {
    test.send(Request::get(path).header("accept-language", languages).body(Body::empty()).unwrap()).await
}

async fn submit(test: &Test, path: &str, form: String) -> Reply {
    test.send(Request::post(path).header("content-type", "application/x-www-form-urlencoded").body(Body::from(form)).unwrap()).await
}

fn policy(reply: &Reply) -> &str {
    reply.headers["content-security-policy"].to_str().unwrap()
}

on_both! {
    async fn a_page_is_in_the_language_of_its_link_or_of_the_browser(test: &Test) {
        let fake = Fake::start().await;
        let (_, path) = begin(test, "one", json!({})).await;
        for (languages, lang, words) in [
            ("de-AT,de;q=0.9,en;q=0.5", "de", "Fake verbinden"),
            ("fr", "fr", "Connecter Fake"),
            ("zh,es;q=0.4", "es", "Conectar Fake"),
            ("zh", "en", "Connect Fake"),
        ] {
            let page = open(test, &path, languages).await;
            assert!(page.text.contains(&format!("<html lang=\"{lang}\">")) && page.text.contains(words), "{languages}: {}", page.text);
        }
        let (_, path) = begin(test, "two", json!({"language": "fr"})).await;
        assert!(open(test, &path, "de").await.text.contains("Connecter Fake"), "the link decides");
        fake.answer_me(401);
        let refused = submit(test, &path, format!("base={}&api_key=wrong-key-1", fake.url)).await;
        assert!(refused.status == 422 && refused.text.contains("Fake a refusé les identifiants"), "{}", refused.text);
        fake.answer_me(200);
        let done = submit(test, &path, format!("base={}&api_key=right-key-1", fake.url)).await;
        assert!(done.status == 200 && done.text.contains("Fake est connecté en tant que ann."), "{}", done.text);
        assert!(open(test, &path, "de").await.text.contains("Der Link gilt nicht mehr"), "a link that is over has no language");
        for wrong in [json!({"language": "xx"}), json!({"language": "de-AT"}), json!({"langauge": "de"}), json!("de")] {
            test.post("/tools/connections", asked("three", &wrong)).await.expect(422);
        }
    }

    async fn people_return_only_where_the_project_allows(test: &Test) {
        let fake = Fake::start().await;
        let nowhere = test.post("/tools/connections", asked("main", &json!({"return_to": "https://app.example/done"}))).await.detail(422);
        assert!(nowhere.contains("/project/connect-links"), "{nowhere}");
        let links = json!({"return_to": ["https://app.example/done", "https://app.example/in/*"], "origins": ["https://App.example"]});
        let kept = allow(test, links).await.expect(200);
        assert_eq!(kept, json!({"return_to": ["https://app.example/done", "https://app.example/in/*"], "origins": ["https://app.example"]}));
        assert_eq!(test.get(LINKS).await.expect(200), kept);
        for wrong in [
            json!({"return_to": ["app.example"]}), json!({"return_to": ["https://*/x"]}), json!({"origins": ["https://a.example/x"]}),
            json!({"origins": ["*"]}), json!({"origins": ["https://a.example;script-src"]}), json!({"sites": []}), json!({"return_to": "x"}),
        ] {
            allow(test, wrong).await.expect(422);
        }
        assert_eq!(test.get(LINKS).await.expect(200), kept, "what is refused changes nothing");
        for wrong in ["https://evil.example/done", "https://app.example/done/x", "https://app.example@evil.example/done", "//app.example/done", "javascript:1"] {
            test.post("/tools/connections", asked("main", &json!({"return_to": wrong}))).await.expect(422);
        }
        assert_eq!(test.post("/tools/connections/query", json!({})).await.expect(200)["count"], 0, "nothing was made");

        let (id, path) = begin(test, "main", json!({"return_to": "https://app.example/in/a?x=%26#y"})).await;
        let done = submit(test, &path, format!("base={}&api_key=right-key-1", fake.url)).await;
        let next = format!("https://app.example/in/a?x=%26&status=success&connection_id={id}#y");
        let shown = done.text.replace("&#38;", "&");
        assert!(done.status == 200 && shown.contains(&format!("content=\"0; url={next}\"")) && shown.contains(&format!("href=\"{next}\"")), "{}", done.text);
        assert_eq!(done.headers["referrer-policy"], "no-referrer", "the ticket is told to nobody");
        // A new credential for the same account leads back as well.
        let again = test.post(&format!("/tools/connections/{id}/refresh?force=true&return_to=https://app.example/done&language=es"), json!({})).await.expect(200);
        let url: Url = again["connection"]["data"]["redirect_url"].as_str().unwrap().parse().unwrap();
        let page = open(test, url.path(), "en").await;
        assert!(page.text.contains("Conectar Fake") && page.text.contains("?decline=1"), "{}", page.text);
        let declined = submit(test, &format!("{}?decline=1", url.path()), String::new()).await;
        assert!(declined.status == 200 && declined.text.contains("status=failed"), "{}", declined.text);
        assert_eq!(test.get(&format!("/tools/connections/{id}")).await.expect(200)["connection"]["flags"]["is_valid"], true, "what works goes on");
        test.post(&format!("/tools/connections/{id}/refresh?force=true&return_to=https://evil.example/"), json!({})).await.expect(422);

        let viewer = test.key("default", Role::Viewer, None).await;
        test.get_as(&viewer, LINKS).await.expect(200);
        test.request(Method::PUT, LINKS, Some(format!("ApiKey {viewer}")), Some(json!({}))).await.expect(403);
        let stranger = test.key("stranger", Role::Owner, None).await;
        assert_eq!(test.get_as(&stranger, LINKS).await.expect(200), json!({"return_to": [], "origins": []}));
    }

    async fn only_sites_of_the_project_show_the_pages_and_are_told(test: &Test) {
        let fake = Fake::start().await;
        let (_, before) = begin(test, "before", json!({})).await;
        let page = open(test, &before, "en").await;
        assert!(policy(&page).contains("frame-ancestors 'none';"), "{}", policy(&page));
        allow(test, json!({"origins": ["https://app.example", "https://other.example:8443"]})).await.expect(200);
        let page = open(test, &before, "en").await;
        assert!(policy(&page).contains("frame-ancestors https://app.example https://other.example:8443;"), "{}", policy(&page));
        assert!(!page.text.contains("?decline=1"), "there is nowhere to go");
        let done = submit(test, &before, format!("base={}&api_key=right-key-1", fake.url)).await;
        assert!(policy(&done).contains("frame-ancestors https://app.example "), "{}", policy(&done));
        assert!(done.text.contains("[\"https://app.example\",\"https://other.example:8443\""), "{}", done.text);
        assert!(done.text.contains("postMessage") && done.text.contains("\"success\":true") && done.text.contains("window.close()"), "{}", done.text);
        // A ticket that is nobody's is shown in no frame.
        let unknown = open(test, "/connect/x", "en").await;
        assert!(policy(&unknown).contains("frame-ancestors 'none';") && !unknown.text.contains("app.example"));
        assert!(policy(&open(test, "/sign-in", "en").await).contains("frame-ancestors 'none';"), "other pages are in no frame");
    }

    async fn a_provider_sends_people_where_the_link_leads(test: &Test) {
        let app = json!({"oauth_app": {"integration_key": "oidc", "client_id": "yard", "client_secret": "yard-secret"}});
        let made = test.post("/tools/oauth-apps", app).await.expect(200);
        let oidc = Oidc::start(made["oauth_app"]["redirect_url"].as_str().unwrap(), 600).await;
        allow(test, json!({"return_to": ["https://app.example/*"]})).await.expect(200);
        let begin = async |slug: &str| {
            let data = json!({"auth_scheme": "oauth", "credentials": {"base": oidc.issuer}});
            let link = json!({"return_to": "https://app.example/done", "language": "de"});
            let body = json!({"connection": {"slug": slug, "provider_key": "native", "integration_key": "oidc", "data": data, "link": link}});
            let started = test.post("/tools/connections/", body).await.expect(200)["connection"].take();
            (started["id"].as_str().unwrap().to_owned(), started["data"]["redirect_url"].as_str().unwrap().to_owned())
        };
        let come_back = async |url: &Url| test.request(Method::GET, &format!("{}?{}", url.path(), url.query().unwrap()), None, None).await;
        let (id, authorize) = begin("main").await;
        let back = oidc.browse(&authorize, "ann", true).await;
        let others = |(name, value): (std::borrow::Cow<'_, str>, std::borrow::Cow<'_, str>)| (name != "iss").then(|| (name.into_owned(), value.into_owned()));
        let pairs: Vec<(String, String)> = back.query_pairs().filter_map(others).collect();
        let mut other = back.clone();
        other.query_pairs_mut().clear().extend_pairs(pairs).append_pair("iss", "https://evil.example");
        let refused = come_back(&other).await;
        assert!(refused.status == 400 && refused.text.contains("Nicht verbunden"), "whoever brings another's answer goes nowhere: {}", refused.text);
        let gone = come_back(&back).await;
        assert_eq!((gone.status.as_u16(), gone.headers["location"].to_str().unwrap()), (303, format!("https://app.example/done?status=success&connection_id={id}").as_str()));
        assert_eq!(come_back(&back).await.status, 400, "once");
        let (id, authorize) = begin("denied").await;
        let gone = come_back(&oidc.browse(&authorize, "ann", false).await).await;
        assert_eq!((gone.status.as_u16(), gone.headers["location"].to_str().unwrap()), (303, format!("https://app.example/done?status=failed&connection_id={id}").as_str()));
    }

    async fn a_session_leads_its_user_no_further_than_the_project_allows(test: &Test) {
        let session = json!({"session": {"end_user": "ann", "apps": ["fake"]}});
        let session = test.post("/sessions", session).await.expect(200)["session"].take();
        let (id, token) = (session["id"].as_str().unwrap(), session["token"].as_str().unwrap());
        let connect = async |return_to: &str| {
            let body = json!({"integration": "fake", "link": {"language": "es", "return_to": return_to}});
            test.request(Method::POST, &format!("/sessions/{id}/connect"), Some(format!("Bearer {token}")), Some(body)).await
        };
        connect("https://app.example/done").await.expect(422);
        allow(test, json!({"return_to": ["https://app.example/done"]})).await.expect(200);
        let begun = connect("https://app.example/done").await.expect(200);
        let url: Url = begun["redirect_url"].as_str().unwrap().parse().unwrap();
        assert!(open(test, url.path(), "en").await.text.contains("Conectar Fake"));
        connect("https://evil.example/").await.expect(422);
    }
}
