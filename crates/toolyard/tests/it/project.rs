//! What a project says of itself: how its connect pages look, and for how long it keeps its records.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::Method;
use kernel::Role;
use serde_json::{Value, json};

use crate::reserved::workflow;
use crate::support::{Database, Fake, Reply, Test, fake_connection, on_both};

const BRANDING: &str = "/project/branding";
const RETENTION: &str = "/project/retention";
const HOSTILE: &str = "<script>alert(1)</script> & Co";

async fn put(test: &Test, path: &str, body: Value) -> Reply {
    test.request(Method::PUT, path, Some(format!("ApiKey {}", test.owner)), Some(body)).await
}

fn png(side: u32) -> String {
    let bytes = [&b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR"[..], &side.to_be_bytes(), &side.to_be_bytes()].concat();
    format!("data:image/png;base64,{}", STANDARD.encode(bytes))
}

on_both! {
    async fn connect_pages_show_who_asks(test: &Test) {
        assert_eq!(test.get(BRANDING).await.expect(200), json!({}));
        let logo = png(64);
        let branding = json!({"name": HOSTILE, "accent": "#FFD500", "background": "#0c1630", "logo": logo});
        let kept = json!({"name": HOSTILE, "accent": "#ffd500", "background": "#0c1630", "logo": logo});
        assert_eq!(put(test, BRANDING, branding).await.expect(200), kept);
        assert_eq!(test.get(BRANDING).await.expect(200), kept);

        let made = test.post("/tools/connections/", fake_connection("main", &json!({"auth_scheme": "api_key"}))).await.expect(200);
        let link: url::Url = made["connection"]["data"]["redirect_url"].as_str().unwrap().parse().unwrap();
        let shown = async || test.request(Method::GET, link.path(), None, None).await;
        let page = shown().await;
        let policy = page.headers["content-security-policy"].to_str().unwrap().to_owned();
        assert!(policy.starts_with("default-src 'none';") && !policy.contains("unsafe"), "{policy}");
        for part in ["body { background: #0c1630; }", "button { background: #ffd500; color: #000000; }", &logo, "alert(1)"] {
            assert!(page.text.contains(part), "{part} is not in {}", page.text);
        }
        assert!(!page.text.contains("<script>alert"), "a name is text: {}", page.text);

        for (wrong, words) in [
            (json!({"accent": "red"}), "`red` is no colour"),
            (json!({"background": "#fff;} body{"}), "is no colour"),
            (json!({"name": "x".repeat(81)}), "80 characters"),
            (json!({"logo": "https://example.com/logo.png"}), "must be a PNG"),
            (json!({"logo": "data:image/svg+xml;base64,PHN2Zy8+"}), "must be a PNG"),
            (json!({"logo": "data:image/png;base64,PHN2Zy8+"}), "must be a PNG"),
            (json!({"logo": png(5000)}), "5000 by 5000"),
            (json!({"acent": "#ffffff"}), "Did you mean `accent`?"),
        ] {
            let told = put(test, BRANDING, wrong.clone()).await.detail(422);
            assert!(told.contains(words), "{wrong}: {told}");
        }
        assert_eq!(test.get(BRANDING).await.expect(200), kept, "what is refused changes nothing");
        let viewer = test.key("default", Role::Viewer, None).await;
        test.get_as(&viewer, BRANDING).await.expect(200);
        test.request(Method::PUT, BRANDING, Some(format!("ApiKey {viewer}")), Some(json!({}))).await.expect(403);
        let stranger = test.key("elsewhere", Role::Owner, None).await;
        assert_eq!(test.get_as(&stranger, BRANDING).await.expect(200), json!({}));

        assert_eq!(put(test, BRANDING, json!({"name": " "})).await.expect(200), json!({}));
        let plain = shown().await.text;
        assert!(!plain.contains("#ffd500") && !plain.contains(&logo) && plain.contains("Connect"), "{plain}");
    }

    async fn a_project_keeps_its_records_for_a_shorter_time(test: &Test) {
        let fake = Fake::start().await;
        test.connect_fake(&fake, "main").await;
        workflow(test, "say", json!({"kind": "echo"})).await;
        let deployment = json!({"run_days": 90, "call_days": 365, "approval_days": 90});
        assert_eq!(test.get(RETENTION).await.expect(200), json!({"retention": {}, "deployment": deployment}));
        for wrong in [json!({"run_days": 91}), json!({"call_days": 366}), json!({"approval_days": 1}), json!({"run_days": -1}), json!({"runs": 1})] {
            put(test, RETENTION, wrong).await.expect(422);
        }
        let told = put(test, RETENTION, json!({"run_days": 91})).await.detail(422);
        assert!(told.contains("`run_days` must be between 2 and 90"), "{told}");
        let editor = test.key("default", Role::Editor, None).await;
        test.request(Method::PUT, RETENTION, Some(format!("ApiKey {editor}")), Some(json!({}))).await.expect(403);

        let make = "tools.native.fake.MAKE_A_THING.main";
        crate::approvals::ask_before(test, make, "ask").await;
        let fill = async || {
            test.post("/workflows/invoke", json!({"references": {"workflow": {"slug": "say"}}})).await.expect(200);
            crate::approvals::waiting(test, &test.owner, json!({"title": "x"})).await;
        };
        let counts = async || {
            test.yard.forget().await.unwrap();
            let count = async |path: &str| test.get(path).await.expect(200)["count"].as_i64().unwrap();
            [count("/workflows/runs").await, count("/tools/calls").await, count("/tools/approvals").await]
        };
        let day = Duration::from_hours(24);
        fill().await;
        let [runs, calls, approvals] = counts().await;
        assert!((runs, approvals) == (1, 1) && calls >= 1, "{runs} {calls} {approvals}");
        test.clock.advance(day * 5);
        assert_eq!(counts().await, [runs, calls, approvals], "nothing is old by the deployment's word");
        put(test, RETENTION, json!({"run_days": 3})).await.expect(200);
        assert_eq!(counts().await, [0, calls, approvals]);
        put(test, RETENTION, json!({"call_days": 3, "approval_days": 5})).await.expect(200);
        assert_eq!(test.get(RETENTION).await.expect(200)["retention"], json!({"call_days": 3, "approval_days": 5}));
        assert_eq!(counts().await, [0, 0, approvals]);
        test.clock.advance(Duration::from_secs(1));
        assert_eq!(counts().await, [0, 0, 0]);
        fill().await;
        assert!(counts().await.iter().all(|count| *count >= 1), "what is new stays");
        let stranger = test.key("elsewhere", Role::Owner, None).await;
        assert_eq!(test.get_as(&stranger, RETENTION).await.expect(200)["retention"], json!({}));
    }
}
