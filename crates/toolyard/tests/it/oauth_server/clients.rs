//! Clients: registration and its bounds, documents at addresses, secrets.

use base64::engine::general_purpose::STANDARD;
use std::time::Duration;

use super::*;
use crate::support::{Database, on_both};

async fn try_register(test: &Test, body: Value) -> Reply {
    test.request(Method::POST, "/oauth/register", None, Some(body)).await
}

on_both! {
    async fn what_cannot_be_taken_is_refused_and_leaves_nothing(test: &Test) {
        for (change, expected) in [
            (json!({"redirect_uris": []}), "invalid_redirect_uri"),
            (json!({"redirect_uris": ["http://client.example/cb"]}), "invalid_redirect_uri"),
            (json!({"redirect_uris": ["https://user@client.example/cb"]}), "invalid_redirect_uri"),
            (json!({"redirect_uris": ["javascript:alert(1)"]}), "invalid_redirect_uri"),
            (json!({"redirect_uris": ["https://client.example/cb#x"]}), "invalid_redirect_uri"),
            (json!({"redirect_uris": "https://client.example/cb"}), "invalid_client_metadata"),
            (json!({"redirect_uris": [1]}), "invalid_client_metadata"),
            (json!({"grant_types": ["client_credentials"]}), "invalid_client_metadata"),
            (json!({"response_types": ["token"]}), "invalid_client_metadata"),
            (json!({"token_endpoint_auth_method": "tls_client_auth"}), "invalid_client_metadata"),
            (json!({"scope": "root"}), "invalid_scope"),
            (json!({"client_uri": "javascript:alert(1)"}), "invalid_client_metadata"),
        ] {
            let mut body = json!({"client_name": "x", "redirect_uris": [CALLBACK]});
            body.as_object_mut().unwrap().extend(change.as_object().unwrap().clone());
            assert_eq!(error(try_register(test, body).await, 400), expected, "{change}");
        }
        for body in [json!([]), json!("x"), json!(null)] {
            assert_eq!(error(try_register(test, body).await, 400), "invalid_client_metadata");
        }
        assert_eq!(try_register(test, json!({"client_name": "x".repeat(100_000)})).await.status, 413);
        let none = test.yard.db.optional("select count(*) as found from oauth_clients", []).await.unwrap().unwrap();
        assert_eq!(none.get::<i64>("found").unwrap(), 0);
    }

    async fn one_address_registers_so_many_and_unused_ones_go(test: &Test) {
        let kept = register(test, "kept").await;
        let mut browser = with_key(test, &test.owner).await;
        tokens(test, &mut browser, &kept, &[]).await;
        for _ in 1..20 {
            register(test, "more").await;
        }
        let body = json!({"redirect_uris": [CALLBACK]});
        assert_eq!(error(try_register(test, body.clone()).await, 429), "too_many_clients");
        test.clock.advance(Duration::from_hours(1));
        try_register(test, body).await.expect(201);
        test.clock.advance(Duration::from_hours(25));
        test.yard.forget().await.unwrap();
        let left = test.yard.db.all("select id from oauth_clients", []).await.unwrap();
        let left: Vec<String> = left.iter().map(|row| row.get("id").unwrap()).collect();
        assert_eq!(left, [kept]);
    }

    async fn a_secret_proves_the_client_and_is_not_mixed_up(test: &Test) {
        let secret_client = async || {
            let made = try_register(test, json!({"client_name": "Web", "redirect_uris": [CALLBACK]})).await.expect(201);
            assert_eq!((&made["token_endpoint_auth_method"], &made["client_secret_expires_at"]), (&json!("client_secret_basic"), &json!(0)));
            (text(&made["client_id"]).to_owned(), text(&made["client_secret"]).to_owned())
        };
        let ((client, secret), (other, other_secret)) = (secret_client().await, secret_client().await);
        let public_client = register(test, "Desk").await;
        let mut browser = with_key(test, &test.owner).await;
        let code = consent(&mut browser, &client, &[]).await;
        let basic = |id: &str, secret: &str| Some(format!("Basic {}", STANDARD.encode(format!("{id}:{secret}"))));
        let fields = [("grant_type", "authorization_code"), ("code", code.as_str()), ("code_verifier", VERIFIER)];
        let attempt = async |more: &[(&str, &str)], header: Option<String>| {
            let all: Vec<(&str, &str)> = fields.iter().chain(more).copied().collect();
            post_with(test, "/oauth/token", &all, header).await
        };
        for (more, header) in [
            (vec![("client_id", client.as_str())], None),
            (vec![("client_id", &client), ("client_secret", "wrong")], None),
            (vec![("client_id", &client), ("client_secret", &other_secret)], None),
            (vec![], basic(&client, "wrong")),
            (vec![], basic(&client, "")),
            (vec![], basic("nobody", &secret)),
            (vec![("client_id", &public_client), ("client_secret", &secret)], None),
            (vec![], Some(format!("Bearer {}", test.owner))),
        ] {
            let reply = attempt(&more, header.clone()).await;
            assert_eq!(reply.headers["www-authenticate"], "Basic realm=\"toolyard\"");
            assert_eq!(error(reply, 401), "invalid_client", "{more:?} {header:?}");
        }
        for (more, header) in [(vec![("client_id", other.as_str())], basic(&client, &secret)), (vec![("client_secret", secret.as_str())], basic(&client, &secret)), (vec![], None)] {
            assert_eq!(error(attempt(&more, header).await, 400), "invalid_request");
        }
        assert_eq!(error(attempt(&[], basic(&other, &other_secret)).await, 400), "invalid_grant", "the code of another client");
        let given = attempt(&[], basic(&client, &secret)).await.expect(200);
        let renew = [("grant_type", "refresh_token"), ("refresh_token", text(&given["refresh_token"])), ("client_id", &client)];
        assert_eq!(error(post(test, "/oauth/token", &renew).await, 401), "invalid_client");
        post(test, "/oauth/token", &[renew[0], renew[1], renew[2], ("client_secret", &secret)]).await.expect(200);
    }

    async fn documents_at_odd_addresses_are_not_read(test: &Test) {
        let mut browser = with_key(test, &test.owner).await;
        for id in [
            "https://127.0.0.1/client.json",
            "https://[::1]/client.json",
            "https://10.0.0.1/client.json",
            "https://169.254.169.254/latest/meta-data",
            "https://localhost/client.json",
            "https://client.example",
            "https://client.example/",
            "https://user@client.example/c",
            "https://client.example/c#x",
            "https://client.example/a/../c",
            "https://CLIENT.example/c",
            "http://client.example/c",
        ] {
            browser.get(&authorize_url(id, &[])).await.expect_page(400);
        }
        assert_eq!(error(post(test, "/oauth/device", &[("client_id", "https://client.example/c")]).await, 401), "invalid_client");
    }

    async fn requests_of_the_wrong_shape_are_refused(test: &Test) {
        let client = register(test, "Desk").await;
        for (fields, status, expected) in [
            (vec![("client_id", client.as_str())], 400, "invalid_request"),
            (vec![("client_id", &client), ("grant_type", "password"), ("username", "a"), ("password", "b")], 400, "unsupported_grant_type"),
            (vec![("client_id", &client), ("grant_type", "authorization_code")], 400, "invalid_request"),
            (vec![("client_id", &client), ("grant_type", "refresh_token")], 400, "invalid_request"),
            (vec![("client_id", &client), ("grant_type", "refresh_token"), ("refresh_token", "x"), ("refresh_token", "y")], 400, "invalid_request"),
            (vec![("client_id", "\0"), ("grant_type", "refresh_token")], 401, "invalid_client"),
            (vec![("grant_type", "refresh_token")], 400, "invalid_request"),
        ] {
            assert_eq!(error(post(test, "/oauth/token", &fields).await, status), expected, "{fields:?}");
        }
        let json_body = test.request(Method::POST, "/oauth/token", None, Some(json!({"grant_type": "refresh_token"}))).await;
        assert_eq!(error(json_body, 400), "invalid_request");
        let huge = "x".repeat(20_000);
        for path in ["/oauth/token", "/oauth/revoke", "/oauth/introspect", "/oauth/device"] {
            assert_eq!(post(test, path, &[("client_id", &client), ("token", &huge)]).await.status, 413, "{path}");
            if path != "/oauth/device" {
                assert_eq!(error(post(test, path, &[("client_id", &client)]).await, 400), "invalid_request", "{path}");
            }
            assert_eq!(error(post(test, path, &[("client_id", "tyc_unknown"), ("token", "x")]).await, 401), "invalid_client", "{path}");
        }
    }
}
