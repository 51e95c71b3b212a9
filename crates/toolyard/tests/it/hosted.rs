//! The page where a person types a key.

use axum::body::Body;
use http::{Method, Request};
use serde_json::json;

use crate::support::{Database, Fake, Reply, Test, fake_connection, on_both};

async fn submit(test: &Test, path: &str, form: String) -> Reply {
    test.send(Request::post(path).header("content-type", "application/x-www-form-urlencoded").body(Body::from(form)).unwrap()).await
}

async fn link(test: &Test, slug: &str) -> (String, String) {
    let made = test.post("/tools/connections", fake_connection(slug, &json!({"auth_scheme": "api_key"}))).await.expect(200);
    let url: url::Url = made["connection"]["data"]["redirect_url"].as_str().unwrap().parse().unwrap();
    (made["connection"]["id"].as_str().unwrap().to_owned(), url.path().to_owned())
}

on_both! {
    async fn a_person_types_the_key_once(test: &Test) {
        let fake = Fake::start().await;
        let (id, path) = link(test, "main").await;
        let read = test.get(&format!("/tools/connections/{id}")).await;
        assert!(!read.text.contains("/connect/"), "the link is told only to whoever starts it");
        assert_eq!(read.expect(200)["connection"]["flags"]["is_valid"], false);
        let page = test.request(Method::GET, &path, None, None).await;
        assert_eq!((page.status.as_u16(), page.headers["cache-control"].to_str().unwrap()), (200, "no-store"));
        assert!(page.text.contains("Connect Fake") && page.text.contains("name=\"api_key\" type=\"password\""), "{}", page.text);

        fake.answer_me(401);
        let refused = submit(test, &path, format!("base={}&api_key=wrong-key-1", fake.url)).await;
        assert_eq!(refused.status, 422);
        assert!(refused.text.contains("refused the credential") && !refused.text.contains("wrong-key-1"), "{}", refused.text);
        assert!(submit(test, &path, "base=nowhere&api_key=k".to_owned()).await.text.contains("expected form"));

        fake.answer_me(200);
        let done = submit(test, &path, format!("base={}&team=%3Cb%3E&api_key=right-key-1", fake.url)).await;
        assert_eq!(done.status, 200, "{}", done.text);
        assert!(done.text.contains("Fake is connected as ann") && done.text.contains("\"success\":true"), "{}", done.text);
        assert_eq!(test.get(&format!("/tools/connections/{id}")).await.expect(200)["connection"]["flags"]["is_valid"], true);
        assert_eq!(submit(test, &path, format!("base={}&api_key=right-key-1", fake.url)).await.status, 400);
        assert_eq!(test.request(Method::GET, &path, None, None).await.status, 400);
    }

    async fn a_link_ends_and_belongs_to_its_row(test: &Test) {
        let fake = Fake::start().await;
        let form = format!("base={}&api_key=right-key-1", fake.url);
        let (_, expired) = link(test, "one").await;
        test.clock.advance(std::time::Duration::from_secs(3601));
        assert_eq!(submit(test, &expired, form.clone()).await.status, 400);
        let (id, deleted) = link(test, "two").await;
        test.delete(&format!("/tools/connections/{id}")).await.expect(204);
        assert_eq!(submit(test, &deleted, form.clone()).await.status, 400);
        let (id, replaced) = link(test, "three").await;
        test.post(&format!("/tools/connections/{id}/refresh"), json!({})).await.expect(200);
        assert_eq!(submit(test, &replaced, form.clone()).await.status, 400);
        for forged in ["/connect/x", "/connect/eyJwIjoiMSJ9.AAAA", &format!("{replaced}x")] {
            assert_eq!(submit(test, forged, form.clone()).await.status, 400, "{forged}");
        }
        assert!(fake.seen().is_empty(), "nothing was asked of the provider");
    }

    async fn a_working_connection_goes_on_while_the_key_is_changed(test: &Test) {
        let fake = Fake::start().await;
        let id = test.connect_fake(&fake, "main").await["id"].as_str().unwrap().to_owned();
        let forced = test.post(&format!("/tools/connections/{id}/refresh?force=true"), json!({})).await.expect(200);
        assert_eq!(forced["connection"]["flags"]["is_valid"], true);
        test.call("tools.native.fake.MAKE_A_THING.main", json!({"title": "x"})).await.expect(200);
        let url: url::Url = forced["connection"]["data"]["redirect_url"].as_str().unwrap().parse().unwrap();
        assert_eq!(submit(test, url.path(), format!("base={}&api_key=new-key-123", fake.url)).await.status, 200);
        test.call("tools.native.fake.MAKE_A_THING.main", json!({"title": "x"})).await.expect(200);
        assert_eq!(fake.seen().last().unwrap()["headers"]["x-api-key"], "new-key-123");
        fake.answer_me(401);
        test.post(&format!("/tools/connections/{id}/refresh"), json!({})).await.expect(422);
    }
}
