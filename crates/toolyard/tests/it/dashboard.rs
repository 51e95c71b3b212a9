//! The dashboard: who may see which page, and walks through all of it in a real browser (`tests/npm/dashboard.mjs`).

use std::collections::BTreeSet;
use std::path::Path;

use kernel::Role;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::process::Command;

use crate::binary::Server;
use crate::oauth_server::browser::{join, with_key, with_person};
use crate::support::{Browser, Database, Fake, Test, fake_connection, repository, sent_to};

/// A page or a form, as the dashboard's own source names it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Page {
    path: String,
    is_form: bool,
}

/// Every route in the source, so that a new page cannot be forgotten here.
fn pages() -> BTreeSet<Page> {
    let mut found = BTreeSet::new();
    let mut folders = vec![repository().join("crates/dashboard/src/pages")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                found.extend(routes_of(&path));
            }
        }
    }
    found
}

fn routes_of(file: &Path) -> Vec<Page> {
    let text = std::fs::read_to_string(file).unwrap();
    let mut pages = Vec::new();
    for route in text.split(".route(").skip(1) {
        let path = route.split('"').nth(1).unwrap().to_owned();
        let methods = route.split('"').nth(2).unwrap().split(".route(").next().unwrap();
        let methods = methods.split(';').next().unwrap().split("\n}").next().unwrap();
        if methods.contains("get(") {
            pages.push(Page { path: path.clone(), is_form: false });
        }
        if methods.contains("post(") {
            pages.push(Page { path, is_form: true });
        }
    }
    pages
}

/// The page of a project, with ids that are there nowhere.
fn address(page: &Page, project: &str) -> String {
    let path = page.path.replace("{project}", project);
    let mut filled = String::new();
    for part in path.split('/').filter(|part| !part.is_empty()) {
        filled.push('/');
        filled.push_str(if part.starts_with('{') { "01900000-0000-7000-8000-000000000000" } else { part });
    }
    format!("/app{filled}")
}

#[test]
fn the_pages_are_found() {
    let pages = pages();
    assert!(pages.len() > 80, "{}", pages.len());
    assert!(pages.contains(&Page { path: "/{project}/approvals/{approval}".to_owned(), is_form: true }), "{pages:?}");
}

#[tokio::test]
async fn whoever_is_not_signed_in_is_sent_to_sign_in() {
    let test = Test::start(Database::Sqlite).await;
    for page in pages() {
        let mut nobody = Browser::new(&test);
        let path = address(&page, "default");
        let reply = if page.is_form { nobody.post(&path, &[]).await } else { nobody.get(&path).await };
        assert!(reply.status == 303 && sent_to(&reply).starts_with("/sign-in?"), "{path}: {} {}", reply.status, reply.text);
    }
}

#[tokio::test]
async fn a_member_of_another_project_finds_nothing() {
    let test = Test::start(Database::Sqlite).await;
    let (mut stranger, user) = with_person(&test, "eve@example.com", "other", Role::Owner).await;
    let token = csrf(&stranger.get("/app/other").await.text);
    join(&test, user, "third", Role::Owner).await;
    for page in pages().into_iter().filter(|page| page.path != "/") {
        let path = address(&page, "default");
        let reply = if page.is_form { stranger.post(&path, &[("csrf", &token)]).await } else { stranger.get(&path).await };
        assert_eq!(reply.status, 404, "{path}: {}", reply.text);
    }
}

#[tokio::test]
async fn a_viewer_sees_pages_and_changes_nothing() {
    let test = Test::start(Database::Sqlite).await;
    let (mut viewer, _) = with_person(&test, "ada@example.com", "default", Role::Viewer).await;
    let token = csrf(&viewer.get("/app/default").await.text);
    // A live tail does not end.
    for page in pages().into_iter().filter(|page| !page.path.ends_with("/live")) {
        let path = address(&page, "default");
        let reply = if page.is_form { viewer.post(&path, &[("csrf", &token)]).await } else { viewer.get(&path).await };
        assert!(!reply.status.is_server_error(), "{path}: {} {}", reply.status, reply.text);
        let is_told = reply.headers.get("location").is_some_and(|to| to.to_str().unwrap().contains("told="));
        assert!(!is_told, "{path} told a viewer that it was done");
        assert!(!page.is_form || reply.status != 201, "{path}");
    }
}

#[tokio::test]
async fn a_form_of_another_page_is_refused() {
    let test = Test::start(Database::Sqlite).await;
    let mut owner = with_key(&test, &test.owner).await;
    let token = csrf(&owner.get("/app/default").await.text);
    for page in pages().into_iter().filter(|page| page.is_form) {
        let path = address(&page, "default");
        assert_eq!(owner.post(&path, &[]).await.status, 403, "{path} without a token");
        assert_eq!(owner.post(&path, &[("csrf", "wrong")]).await.status, 403, "{path} with a wrong token");
        owner.site = "cross-site";
        assert_eq!(owner.post(&path, &[("csrf", &token)]).await.status, 403, "{path} from elsewhere");
        owner.site = "same-origin";
    }
}

#[tokio::test]
async fn pages_run_nothing_but_our_own_files() {
    let test = Test::start(Database::Sqlite).await;
    let mut owner = with_key(&test, &test.owner).await;
    for page in pages().into_iter().filter(|page| !page.is_form && !page.path.ends_with("/live") && !page.path.ends_with("/export")) {
        let path = address(&page, "default");
        let reply = owner.get(&path).await;
        if reply.status == 303 {
            continue;
        }
        let policy = reply.headers["content-security-policy"].to_str().unwrap();
        assert!(
            policy.starts_with("default-src 'none'; style-src 'self'; script-src 'self';") && !policy.contains("unsafe"),
            "{path}: {policy}"
        );
        assert_eq!(reply.headers["cache-control"], "no-store", "{path}");
        assert!(!reply.text.contains(" style=\"") && !reply.text.contains("<style") && !reply.text.contains(" onclick="), "{path}");
        assert_eq!(reply.text.matches("<script").count(), 1, "{path}");
    }
}

#[tokio::test]
async fn styles_and_scripts_are_small_and_kept() {
    let test = Test::start(Database::Sqlite).await;
    let mut owner = with_key(&test, &test.owner).await;
    let page = owner.get("/app/default").await.text;
    let mut total = 0;
    for name in ["style.", "app."] {
        let start = page.find(&format!("/app/-/{name}")).unwrap();
        let path = page[start..].split('"').next().unwrap();
        let mut nobody = Browser::new(&test);
        let reply = nobody.get(path).await;
        assert!(reply.headers["cache-control"].to_str().unwrap().contains("immutable"), "{path}");
        total += reply.text.len();
    }
    assert!(total < 60_000, "{total} bytes before they are compressed");
}

fn csrf(page: &str) -> String {
    crate::support::hidden(page, "csrf")
}

/// What people do in a section, in Chromium: see the script.
async fn walk(section: &str) {
    let dir = TempDir::new().unwrap();
    let server = Server::start(dir.path(), |_| {}).await;
    let fake = Fake::start().await;
    let credentials = json!({"base": fake.url, "api_key": "sk-fake-123456"});
    server.post("/tools/connections/", fake_connection("main", &json!({"auth_scheme": "api_key", "credentials": credentials}))).await;
    let operator = std::fs::read_to_string(dir.path().join("data/operator.key")).unwrap();
    let mut command = Command::new("node");
    command.arg(repository().join("tests/npm/dashboard.mjs")).args([
        &server.url,
        &server.key,
        operator.trim(),
        &fake.url,
        "--only",
        section,
    ]);
    let output = command.current_dir(dir.path()).kill_on_drop(true).output().await.expect("node runs; `./test` installs it");
    let said = format!("{}\n{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{said}");
    let counts: Value = serde_json::from_str(said.lines().next().unwrap()).unwrap();
    assert!(counts["sections"] == 1 && counts["screens"].as_u64() > Some(0) && counts["walks"].as_u64() > Some(0), "{said}");
}

macro_rules! sections {
    ($($name:ident $section:literal),* $(,)?) => {
        const SECTIONS: &[&str] = &[$($section),*];

        $(#[tokio::test]
        async fn $name() {
            walk($section).await;
        })*
    };
}

sections! {
    people_walk_through_agents "agents",
    people_walk_through_approvals "approvals",
    people_walk_through_calls "calls",
    people_walk_through_the_catalog "catalog",
    people_walk_through_connections "connections",
    people_walk_through_deliveries "deliveries",
    people_walk_through_end_users "end_users",
    people_walk_through_the_first_page "home",
    people_walk_through_imports "imports",
    people_walk_through_members "members",
    people_walk_through_the_operators_pages "operator",
    people_walk_through_permissions "permissions",
    people_walk_through_settings "settings",
    people_walk_through_triggers "triggers",
    people_try_tools "try",
    people_walk_through_workflows "workflows",
}

#[test]
fn every_section_is_walked_through() {
    let files = std::fs::read_dir(repository().join("tests/npm/dashboard")).unwrap();
    let mut names: Vec<String> = files.map(|file| file.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned()).collect();
    names.sort();
    assert_eq!(names, SECTIONS);
}
