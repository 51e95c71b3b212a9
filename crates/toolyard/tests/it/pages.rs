//! Pages for people: what they run, and what they show of an address that anybody can write.

use axum::body::Body;
use http::{Method, Request};

use crate::support::{Database, Reply, Test};

async fn page(test: &Test, path: &str) -> Reply {
    test.send(Request::get(path).header("accept", "text/html").body(Body::empty()).unwrap()).await
}

#[tokio::test]
async fn every_page_has_a_policy_that_runs_only_what_it_says() {
    let test = Test::start(Database::Sqlite).await;
    let mut nonces = std::collections::BTreeSet::new();
    for path in ["/sign-in", "/docs", "/connect/x", "/tools/connections/callback?state=x", "/tools/connections/callback/a?state=x"] {
        let page = page(&test, path).await;
        assert!(page.headers["content-type"].to_str().unwrap().starts_with("text/html"), "{path}");
        let policy = page.headers["content-security-policy"].to_str().unwrap().to_owned();
        assert!(policy.starts_with("default-src 'none';") && policy.contains("frame-ancestors 'none'"), "{path}: {policy}");
        assert!(!policy.contains("unsafe"), "{path}: {policy}");
        assert_eq!(
            (page.headers["x-content-type-options"].to_str().unwrap(), page.headers["cache-control"].to_str().unwrap()),
            ("nosniff", "no-store")
        );
        let nonce = policy.split("script-src 'nonce-").nth(1).unwrap().split('\'').next().unwrap().to_owned();
        for tag in ["<style", "<script"] {
            for opened in page.text.split(tag).skip(1) {
                assert!(opened.starts_with(&format!(" nonce=\"{nonce}\">")), "{path}: {tag}");
            }
        }
        assert!(!page.text.contains(" style=") && !page.text.contains(" onclick="), "{path}");
        assert!(nonces.insert(nonce), "a nonce is used once");
    }
    let docs = page(&test, "/docs").await;
    assert!(docs.headers["content-security-policy"].to_str().unwrap().contains("connect-src 'self'"), "it reads the document");
}

#[tokio::test]
async fn a_callback_without_a_state_of_ours_shows_nobodys_text() {
    let test = Test::start(Database::Sqlite).await;
    for name in ["error_description", "error_message", "error"] {
        for state in ["", "&state=", "&state=a.b"] {
            let page = test.request(Method::GET, &format!("/tools/connections/callback?{name}=Call+555-0100{state}"), None, None).await;
            assert!(page.status == 400 && !page.text.contains("555-0100"), "{name}{state}: {}", page.text);
        }
    }
}
