//! The paths that a proxy in front must know.

use std::io::Write;
use std::process::{Command, Stdio};

use http::Method;

use crate::support::{Database, Test, document, repository};

#[tokio::test]
async fn metrics_are_at_one_path_only() {
    let test = Test::start(Database::Sqlite).await;
    assert_eq!(test.request(Method::GET, "/metrics", None, None).await.status, 200);
    for path in [
        "/api/metrics",
        "/preview/metrics",
        "/api/preview/metrics",
        "/api/api/metrics",
        "/metrics/",
        "/api/metrics/",
        "//metrics",
        "/%6detrics",
    ] {
        assert_eq!(test.request(Method::GET, path, None, None).await.status, 404, "{path}");
    }
}

/// The expression that the page for operators gives for `/admin`.
fn documented() -> String {
    let text = std::fs::read_to_string(repository().join("docs/operations.md")).unwrap();
    text.lines().find(|line| line.starts_with("^(") && line.contains("/admin")).expect("the expression is on a line of its own").to_owned()
}

/// Those that an extended regular expression fits.
fn fitting(expression: &str, paths: &[String]) -> Vec<String> {
    let mut grep = Command::new("grep").args(["-E", expression]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    grep.stdin.take().unwrap().write_all(paths.join("\n").as_bytes()).unwrap();
    String::from_utf8(grep.wait_with_output().unwrap().stdout).unwrap().lines().map(str::to_owned).collect()
}

#[tokio::test]
async fn admin_answers_at_the_paths_that_the_documents_name_and_at_no_others() {
    let test = Test::start(Database::Sqlite).await;
    let mounts = ["/api", "/preview", "/API", "/x", "/", "/."];
    let mut prefixes = vec![String::new()];
    for depth in 0..3 {
        let longest: Vec<String> = prefixes.iter().filter(|prefix| prefix.matches('/').count() >= depth).cloned().collect();
        prefixes.extend(longest.iter().flat_map(|prefix| mounts.map(|mount| format!("{prefix}{mount}"))));
    }
    prefixes.sort();
    prefixes.dedup();
    let ends = ["/admin/projects", "/admin/projects/", "/%61dmin/projects", "/ADMIN/projects"];
    let paths: Vec<String> = prefixes.iter().flat_map(|prefix| ends.map(|end| format!("{prefix}{end}"))).collect();
    let mut answered = Vec::new();
    for path in &paths {
        match test.request(Method::GET, path, None, None).await.status.as_u16() {
            401 => answered.push(path.clone()),
            404 => {}
            other => panic!("{path}: {other}"),
        }
    }
    assert!(answered.len() > 10, "{answered:?}");
    assert_eq!(answered, fitting(&documented(), &paths));
    let document = document();
    for (path, methods) in document["paths"].as_object().unwrap() {
        let for_operators = methods.as_object().unwrap().values().any(|operation| !operation["security"][0]["operator"].is_null());
        assert_eq!(for_operators, path.starts_with("/admin/"), "{path}");
    }
}
