//! `toolyard person` and `toolyard sessions`.

use serde_json::Value;
use tempfile::TempDir;
use tokio::io::AsyncWriteExt;

use super::PASSWORD;
use crate::binary::{Server, program, run, run_in};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn people_are_seen_to_from_a_shell() {
    let dir = TempDir::new().unwrap();
    let server = Server::start(dir.path(), |command| {
        command.env("TOOLYARD_SENTENCE_MODEL", "false");
    })
    .await;
    let say = async |args: &[&str]| run_in(dir.path(), &server.url, args).await;
    let (code, _, told) = say(&["person", "list"]).await;
    assert_eq!((code, told.trim()), (0, "there are no people; `toolyard person invite` makes a link for one"));
    let (code, link, told) = say(&["person", "invite", "Ada@Example.com", "--role", "owner", "--public-url", &server.url]).await;
    assert!(code == 0 && link.starts_with(&format!("{}/invitations/tyi_", server.url)), "{link}");
    assert!(told.contains("invites as owner to project default, once and for a week"), "{told}");
    assert_eq!(say(&["person", "invite", "nobody"]).await.0, 1);
    let (code, _, told) = say(&["person", "sign-in-link", "ada@example.com"]).await;
    assert!(code == 1 && told.contains("there is no person `ada@example.com`"), "{told}");

    // Ada joins in a browser.
    let path = link.trim().strip_prefix(&server.url).unwrap();
    let joined = server.join(path, PASSWORD).await;
    assert_eq!(joined, 303);
    let people: Value = serde_json::from_str(&say(&["person", "list", "--json"]).await.1).unwrap();
    assert_eq!((&people[0]["email"], &people[0]["projects"][0]["role"]), (&"ada@example.com".into(), &"owner".into()));
    assert_eq!(people[0]["signs_in_with"][0], "password");
    let sessions: Value = serde_json::from_str(&say(&["sessions", "--json"]).await.1).unwrap();
    assert_eq!((&sessions[0]["name"], &sessions[0]["method"]), (&"ada@example.com".into(), &"invitation".into()));
    assert_eq!(sessions[0]["address"], "127.0.0.1");

    let (code, _, told) = say(&["person", "role", "ada@example.com", "viewer"]).await;
    assert!(code == 1 && told.contains("only owner of the project"), "{told}");
    let (code, said, _) = say(&["sessions", "end", sessions[0]["id"].as_str().unwrap()]).await;
    assert!(code == 0 && said.starts_with("ended session "), "{said}");
    assert_eq!(say(&["sessions"]).await.2.trim(), "nobody is signed in");
    let (code, said, _) = say(&["person", "sign-in-link", "ada@example.com"]).await;
    assert!(code == 0 && said.contains("/sign-in/link/tyl_"), "{said}");

    // A password comes from stdin, so that nobody reads it in the list of processes.
    let mut command = program(dir.path());
    command.args(["person", "password", "ada@example.com"]).stdin(std::process::Stdio::piped());
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"another password\n").await.unwrap();
    let output = child.wait_with_output().await.unwrap();
    assert!(output.status.success() && String::from_utf8_lossy(&output.stdout).contains("signed out everywhere"), "{output:?}");
    let mut empty = program(dir.path());
    empty.args(["person", "password", "ada@example.com"]).stdin(std::process::Stdio::null());
    assert_eq!(run(empty).await.0, 1);

    assert_eq!(say(&["person", "disable", "ada@example.com"]).await.0, 0);
    let (code, _, told) = say(&["person", "sign-in-link", "ada@example.com"]).await;
    assert!(code == 1 && told.contains("is disabled"), "{told}");
    assert_eq!(say(&["person", "enable", "ada@example.com"]).await.0, 0);
}
