//! Toolkits, tools and trigger types as they are listed.

use http::Method;
use serde_json::{Value, json};

use crate::support::{World, pluck};

#[tokio::test]
async fn keys_paths_and_request_ids_are_checked_in_both_versions() {
    let world = World::new().await;
    let origin = world.fake.url().replace("/api/v3.1", "");
    for (version, with_slug) in [("v3.1", true), ("v3", false)] {
        for key in ["", "ak_other"] {
            let request =
                world.client.get(format!("{origin}/api/{version}/toolkits")).header("x-api-key", key).header("x-request-id", "req-1");
            let answer = request.send().await.unwrap();
            assert_eq!((answer.status().as_u16(), &answer.headers()["x-ratelimit-window-size"]), (401, &"60".parse().unwrap()));
            let body: Value = serde_json::from_str(&answer.text().await.unwrap()).unwrap();
            assert_eq!((&body["error"]["status"], &body["error"]["request_id"]), (&json!(401), &json!("req-1")));
            assert_eq!(body["error"]["slug"].is_string(), with_slug);
        }
        let request =
            world.client.get(format!("{origin}/api/{version}/tools/enum")).header("x-api-key", world.fake.key()).header("x-odd", "1");
        assert_eq!(request.send().await.unwrap().status().as_u16(), 200);
    }
    assert_eq!(world.send(Method::GET, "/nowhere", None).await.1["error"]["code"], 10404);
}

#[tokio::test]
async fn toolkits_are_filtered_sorted_and_cut_into_pages() {
    let world = World::new().await;
    let all = world.get("/toolkits?limit=100").await;
    let slugs = pluck(&all, "slug");
    assert_eq!(slugs, ["github", "slack", "slackbot", "gmail", "telegram", "hackernews", "notion", "acme_crm", "orbit_desk"]);
    assert_eq!((&all["total_items"], &all["next_cursor"]), (&json!(9), &Value::Null));

    let mut paged = vec![];
    let mut page = world.get("/toolkits?limit=4").await;
    loop {
        paged.extend(pluck(&page, "slug").into_iter().map(str::to_owned));
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        page = world.get(&format!("/toolkits?cursor={}", cursor.replace('=', "%3D"))).await;
    }
    assert_eq!(
        (paged, &page["current_page"], &page["total_pages"]),
        (slugs.iter().map(|&slug| slug.to_owned()).collect(), &json!(3), &json!(3))
    );

    for (query, expected) in [
        ("search=slackb", vec!["slackbot"]),
        ("category=email", vec!["gmail"]),
        ("managed_by=project", vec![]),
        ("type=custom", vec![]),
        ("type=native&limit=1", vec!["github"]),
        ("sort_by=alphabetically&limit=2", vec!["acme_crm", "github"]),
        ("managed_by=composio", vec!["github", "slack", "slackbot", "gmail", "notion"]),
    ] {
        assert_eq!(pluck(&world.get(&format!("/toolkits?{query}")).await, "slug"), expected, "{query}");
    }
    for query in ["search=gi", "sort_by=size", "managed_by=me", "type=odd", "limit=0", "cursor=!"] {
        assert_eq!(world.send(Method::GET, &format!("/toolkits?{query}"), None).await.0, 400, "{query}");
    }
    let (_, several) = world.post("/toolkits/multi", json!({"toolkits": ["gmail", "notion", "none"]})).await;
    assert_eq!(pluck(&several, "slug"), ["gmail", "notion"]);
    assert!(pluck(&world.get("/toolkits/categories").await, "id").contains(&"crm"));
}

#[tokio::test]
async fn a_toolkit_says_how_it_is_connected() {
    let world = World::new().await;
    let crm = world.get("/toolkits/acme_crm").await;
    let details = &crm["auth_config_details"][0];
    assert_eq!((&details["mode"], &crm["composio_managed_auth_schemes"]), (&json!("API_KEY"), &json!([])));
    let required = details["fields"]["connected_account_initiation"]["required"].as_array().unwrap();
    assert_eq!(required.iter().map(|field| &field["name"]).collect::<Vec<_>>(), ["subdomain", "generic_api_key"]);

    let gmail = world.get("/toolkits/gmail?version=latest").await;
    let modes: Vec<&Value> = gmail["auth_config_details"].as_array().unwrap().iter().map(|details| &details["mode"]).collect();
    assert_eq!((modes, &gmail["composio_managed_auth_schemes"]), (vec![&json!("OAUTH2"), &json!("BEARER_TOKEN")], &json!(["OAUTH2"])));

    assert_eq!(world.get("/toolkits/hackernews").await["auth_config_details"][0]["mode"], "NO_AUTH");
    assert_eq!(world.send(Method::GET, "/toolkits/nope", None).await.0, 404);
    assert_eq!(world.send(Method::GET, "/toolkits/gmail?version=19990101_00", None).await.0, 404);
}

#[tokio::test]
async fn tools_are_found_by_toolkit_slug_tag_and_words() {
    let world = World::new().await;
    for (query, expected) in [
        ("toolkit_slug=acme_crm", vec!["ACME_CRM_CREATE_CONTACT", "ACME_CRM_LIST_DEALS", "MERGE_CRM_CONTACTS", "ACME_CRM_SYNC_LEDGER"]),
        ("toolkit_slug=slack,slackbot&important=true", vec!["SLACK_SEND_MESSAGE", "SLACK_FIND_CHANNELS", "SLACKBOT_SEND_MESSAGE"]),
        ("tool_slugs=GMAIL_SEND_EMAIL,NO_SUCH,NOTION_CREATE_PAGE&toolkit_slug=github", vec!["GMAIL_SEND_EMAIL", "NOTION_CREATE_PAGE"]),
        ("tags=destructiveHint&toolkit_slug=github", vec!["GITHUB_DELETE_A_REPOSITORY"]),
        ("query=draft", vec!["GMAIL_CREATE_EMAIL_DRAFT"]),
        ("search=draft", vec!["GMAIL_CREATE_EMAIL_DRAFT"]),
        ("toolkit_slug=github&toolkit_versions[github]=19990101_00", vec![]),
    ] {
        assert_eq!(pluck(&world.get(&format!("/tools?{query}")).await, "slug"), expected, "{query}");
    }
    let with = world.get("/tools?toolkit_slug=github").await;
    let without = world.get("/tools?toolkit_slug=github&include_deprecated=false").await;
    assert_eq!((with["total_items"].as_u64(), without["total_items"].as_u64()), (Some(7), Some(6)));
    let old = world.get("/tools/GITHUB_ISSUES_CREATE").await;
    assert_eq!((&old["is_deprecated"], &old["deprecated"]["is_deprecated"]), (&json!(true), &json!(true)));

    let one = world.get("/tools/GITHUB_CREATE_AN_ISSUE?version=20260915_00").await;
    assert_eq!((&one["version"], &one["toolkit"]["slug"], &one["scopes"]), (&json!("20260915_00"), &json!("github"), &json!(["repo"])));
    assert_eq!(one["input_parameters"]["required"], json!(["owner", "repo", "title"]));
    let (status, unknown) = world.send(Method::GET, "/tools/GITHUB_NOPE", None).await;
    assert_eq!((status, &unknown["error"]["code"], &unknown["error"]["slug"]), (404, &json!(2401), &json!("Tool_ToolNotFound")));
    assert!(world.get("/tools/enum").await.as_array().unwrap().contains(&json!("MERGE_CRM_CONTACTS")));
}

#[tokio::test]
async fn every_schema_that_ships_is_one() {
    let world = World::new().await;
    world.fake.add_toolkits(3, 150);
    for tool in world.get("/tools?limit=1000").await["items"].as_array().unwrap() {
        for part in ["input_parameters", "output_parameters"] {
            jsonschema::meta::validate(&tool[part]).unwrap_or_else(|error| panic!("{}: {error}", tool["slug"]));
            jsonschema::validator_for(&tool[part]).unwrap();
        }
    }
    for kind in world.get("/triggers_types?limit=50").await["items"].as_array().unwrap() {
        for part in ["config", "payload"] {
            jsonschema::meta::validate(&kind[part]).unwrap_or_else(|error| panic!("{}: {error}", kind["slug"]));
        }
    }
}

#[tokio::test]
async fn the_catalog_grows_and_changes_behind_the_back() {
    let world = World::new().await;
    world.fake.add_toolkits(100, 130);
    world.fake.add_toolkits(200, 130);
    assert_eq!(world.get("/toolkits?limit=1").await["total_items"], 309);
    let events = world.get("/triggers_types?limit=1000").await;
    assert_eq!((events["items"].as_array().unwrap().len(), &events["total_items"]), (50, &json!(154)));
    let tools = world.get("/tools?limit=5000").await;
    assert_eq!((tools["items"].as_array().unwrap().len(), tools["total_items"].as_u64().unwrap() > 39_000), (1000, true));
    let slugs: std::collections::HashSet<Value> = world.get("/tools/enum").await.as_array().unwrap().iter().cloned().collect();
    assert_eq!(slugs.len() as u64, tools["total_items"].as_u64().unwrap(), "every slug is another");

    let before = world.get("/tools/GMAIL_SEND_EMAIL").await;
    assert!(world.fake.touch_tool("GMAIL_SEND_EMAIL"));
    let after = world.get("/tools/GMAIL_SEND_EMAIL").await;
    assert_ne!(before["version"], after["version"]);
    assert_ne!(before["input_parameters"], after["input_parameters"]);
    assert!(world.fake.remove_tool("GMAIL_SEND_EMAIL"));
    assert_eq!(world.send(Method::GET, "/tools/GMAIL_SEND_EMAIL", None).await.0, 404);
    assert!(!world.fake.remove_tool("GMAIL_SEND_EMAIL"));
}

#[tokio::test]
async fn trigger_types_are_listed_by_toolkit() {
    let world = World::new().await;
    let github = world.get("/triggers_types?toolkit_slugs=github&limit=1").await;
    assert_eq!((pluck(&github, "slug"), &github["total_items"]), (vec!["GITHUB_COMMIT_EVENT"], &json!(2)));
    assert_eq!(world.get("/triggers_types/GMAIL_NEW_GMAIL_MESSAGE").await["type"], "poll");
    assert_eq!(world.get("/triggers_types/list/enum").await.as_array().unwrap().len(), 4);
    assert_eq!(world.send(Method::GET, "/triggers_types/NOPE", None).await.0, 404);
}
