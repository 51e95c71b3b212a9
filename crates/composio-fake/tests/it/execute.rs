//! Running tools and searching for them.

use serde_json::{Value, json};

use crate::support::World;

#[tokio::test]
async fn a_tool_runs_with_an_active_account_of_its_toolkit() {
    let world = World::new().await;
    let arguments = json!({"owner": "o", "repo": "r", "title": "A title"});
    let (status, refused) = world.run("GITHUB_CREATE_AN_ISSUE", json!({"user_id": "u", "arguments": arguments})).await;
    assert_eq!((status, &refused["error"]["code"]), (404, &json!(1810)));

    let github = world.account("github", "u").await;
    let by_user = json!({"user_id": "u", "arguments": arguments, "version": "20261020_00"});
    let by_account = json!({"connected_account_id": github, "arguments": arguments});
    let mut numbers = vec![];
    for body in [by_user, by_account] {
        let (status, done) = world.run("GITHUB_CREATE_AN_ISSUE", body).await;
        assert_eq!(
            (status, &done["successful"], &done["error"], &done["data"]["title"]),
            (200, &json!(true), &Value::Null, &json!("A title"))
        );
        assert!(done["log_id"].as_str().unwrap().starts_with("log_"));
        numbers.push(done["data"]["number"].clone());
    }
    assert_ne!(numbers[0], numbers[1]);

    let slack = world.account("slack", "u").await;
    for (body, status) in [
        (json!({"connected_account_id": slack, "arguments": arguments}), 400),
        (json!({"connected_account_id": github, "user_id": "somebody else", "arguments": arguments}), 404),
        (json!({"connected_account_id": "ca_none", "arguments": arguments}), 404),
        (json!({"arguments": arguments}), 400),
        (json!({"user_id": "u", "arguments": [1]}), 400),
        (json!({"user_id": "u", "arguments": {}, "text": "open an issue"}), 400),
        (json!({"user_id": "u", "arguments": arguments, "version": "19990101_00"}), 404),
    ] {
        assert_eq!(world.run("GITHUB_CREATE_AN_ISSUE", body.clone()).await.0, status, "{body}");
    }
    world.fake.expire(&github).await.unwrap();
    assert_eq!(world.run("GITHUB_CREATE_AN_ISSUE", json!({"connected_account_id": github, "arguments": arguments})).await.0, 422);
}

#[tokio::test]
async fn tools_fail_in_their_own_way() {
    let world = World::new().await;
    let github = world.account("github", "u").await;
    let (status, gone) = world.run("GITHUB_ISSUES_CREATE", json!({"connected_account_id": github, "arguments": {}})).await;
    assert_eq!((status, &gone["error"]["status"]), (410, &json!(410)));
    let (status, unknown) = world.run("GITHUB_NOPE", json!({"user_id": "u"})).await;
    assert_eq!((status, &unknown["error"]["code"]), (404, &json!(2401)));
    let (status, wrong) =
        world.run("GITHUB_CREATE_AN_ISSUE", json!({"user_id": "u", "arguments": {"owner": 7, "repo": "r", "title": "t"}})).await;
    assert_eq!((status, &wrong["successful"], &wrong["data"]), (200, &json!(false), &json!({})));
    assert!(wrong["error"].as_str().unwrap().contains("string"), "{wrong}");

    let config = world.auth_config("acme_crm", Some("API_KEY")).await;
    let link = world.link(&config, "u").await;
    world.fake.finish(link["connected_account_id"].as_str().unwrap());
    let (status, never) = world.run("ACME_CRM_SYNC_LEDGER", json!({"user_id": "u", "arguments": {}})).await;
    assert_eq!((status, &never["successful"], &never["error"]), (200, &json!(false), &json!("The ledger is closed for this period.")));

    let (status, open) = world.run("HACKERNEWS_GET_FRONTPAGE", json!({"arguments": {}})).await;
    assert_eq!((status, open["data"]["stories"].as_array().unwrap().len()), (200, 2));
}

#[tokio::test]
async fn an_auth_config_can_leave_only_some_tools() {
    let world = World::new().await;
    let github = world.account("github", "u").await;
    let config = world.fake.auth_configs()[0]["id"].as_str().unwrap().to_owned();
    let change = json!({"type": "default", "tool_access_config": {"tools_available_for_execution": ["GITHUB_GET_AN_ISSUE"]}});
    assert_eq!(world.patch(&format!("/auth_configs/{config}"), change).await.0, 200);
    let read = json!({"connected_account_id": github, "arguments": {"owner": "o", "repo": "r", "issue_number": 7}});
    assert_eq!(world.run("GITHUB_GET_AN_ISSUE", read).await.1["data"]["issue_number"], 7);
    assert_eq!(world.run("GITHUB_SEARCH_ISSUES", json!({"connected_account_id": github, "arguments": {"q": "x"}})).await.0, 403);
}

#[tokio::test]
async fn search_answers_every_use_case_with_tools_schemas_and_connections() {
    let world = World::new().await;
    world.account("github", "u").await;
    let queries = json!([{"use_case": "create a github issue"}, {"use_case": "read stories on hacker news"}, {"use_case": "zzz qqq"}]);
    let body = json!({"user_id": "u", "arguments": {"queries": queries, "session": {"generate_id": true}}});
    let (status, done) = world.run("COMPOSIO_SEARCH_TOOLS", body).await;
    assert_eq!((status, &done["successful"]), (200, &json!(true)));
    let data = &done["data"];
    let results = data["results"].as_array().unwrap();
    assert_eq!(results.iter().map(|result| &result["index"]).collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(results[0]["primary_tool_slugs"], json!(["GITHUB_CREATE_AN_ISSUE"]));
    assert_eq!(results[1]["toolkits"][0], "hackernews");
    assert_eq!((&results[2]["primary_tool_slugs"], &data["success"]), (&json!([]), &json!(false)));
    assert_eq!((&results[2]["error"].is_string(), &data["error"]), (&true, &json!("1 out of 3 searches failed")));
    assert!(
        !results[0]["recommended_plan_steps"].as_array().unwrap().is_empty()
            && !results[0]["known_pitfalls"].as_array().unwrap().is_empty()
    );

    for slug in results
        .iter()
        .flat_map(|result| [&result["primary_tool_slugs"], &result["related_tool_slugs"]])
        .flat_map(|list| list.as_array().unwrap())
    {
        let schema = &data["tool_schemas"][slug.as_str().unwrap()];
        assert_eq!(schema["hasFullSchema"].as_bool().unwrap(), schema["input_schema"].is_object(), "{slug}");
        assert_ne!(schema["hasFullSchema"].as_bool().unwrap(), schema["schemaRef"].is_object(), "{slug}");
    }
    assert_eq!(data["tool_schemas"]["GITHUB_CREATE_AN_ISSUE"]["toolkit"], "GITHUB");
    let ready = |toolkit: &str| {
        let statuses = data["toolkit_connection_statuses"].as_array().unwrap();
        statuses.iter().find(|status| status["toolkit"] == toolkit).unwrap()["has_active_connection"] == true
    };
    assert!(ready("github") && ready("hackernews"));
    assert!(data["session"]["id"].as_str().unwrap().starts_with("trs_") && data["time_info"]["current_time_utc_epoch_seconds"].is_i64());
    assert!(!data["next_steps_guidance"].as_array().unwrap().is_empty());

    let (status, wrong) = world.run("COMPOSIO_SEARCH_TOOLS", json!({"user_id": "u", "arguments": {"queries": []}})).await;
    assert_eq!((status, &wrong["successful"]), (200, &json!(false)));
}

#[tokio::test]
async fn a_session_searches_too() {
    let world = World::new().await;
    let (status, session) = world.post("/tool_router/session", json!({"user_id": "u"})).await;
    assert_eq!((status, &session["config_version"]), (201, &json!(1)));
    let path = format!("/tool_router/session/{}", session["session_id"].as_str().unwrap());
    assert_eq!(world.get(&path).await, session);
    let call = json!({"slug": "COMPOSIO_SEARCH_TOOLS", "arguments": {"queries": [{"use_case": "send an email"}]}});
    let (_, found) = world.post(&format!("{path}/execute_meta"), call).await;
    assert_eq!(found["data"]["results"][0]["primary_tool_slugs"], json!(["GMAIL_SEND_EMAIL"]));
    let (_, ran) = world.post(&format!("{path}/execute"), json!({"tool_slug": "HACKERNEWS_GET_FRONTPAGE", "arguments": {}})).await;
    assert_eq!(ran["result_type"], "completed");
}
