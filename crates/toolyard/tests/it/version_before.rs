//! A data directory that the version before made. Its rows are in `tests/data/version_before.sql`; its keys open nothing else.

use std::collections::BTreeMap;
use std::path::Path;

use calls::CallFilter;
use kernel::{Clock, Timestamp};
use serde_json::json;
use toolyard::config::{Config, Settings};
use toolyard::yard::Yard;
use workflows::{Family, Query};

const ROWS: &str = include_str!("../data/version_before.sql");
const SEALING_KEY: &str = "opc6qdnkUsEyDuoCUfN6JoNDprRGULWn74pNFA1JuGM=\n";
const OWNER_KEY: &str = "tyk_r7uQDsKbVDJrkEYzoYQE2MXwVolDBfim";

/// How many rows each table of the version before has.
fn counts(file: &Path) -> BTreeMap<String, i64> {
    let db = rusqlite::Connection::open(file).unwrap();
    let tables: Vec<String> =
        ROWS.lines().filter_map(|line| line.strip_prefix("CREATE TABLE ")?.split(' ').next()).map(str::to_owned).collect();
    assert!(tables.len() > 20, "{tables:?}");
    tables
        .into_iter()
        .map(|table| (table.clone(), db.query_row(&format!("select count(*) from {table}"), [], |row| row.get(0)).unwrap()))
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_of_the_version_before_opens_with_all_its_rows() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("toolyard.db");
    // Rows may stand before those that they refer to.
    rusqlite::Connection::open(&file).unwrap().execute_batch(&format!("pragma foreign_keys = off; {ROWS}")).unwrap();
    let words = r#"update artifacts set tags = '{"team":"red"}', flags = '{"is_application":true,"is_blue":true}' where slug = 'echo'"#;
    rusqlite::Connection::open(&file).unwrap().execute(words, []).unwrap();
    std::fs::write(dir.path().join("sealing.key"), SEALING_KEY).unwrap();
    let mut before = counts(&file);
    let settings = Settings { data_dir: Some(dir.path().to_owned()), ..Settings::default() };
    let mut config = Config::settle(settings, Settings::default()).unwrap();
    config.sentence_model = false;
    // A minute after the last row was written, so that none is too old to keep.
    let yard = Yard::open_at(config, Clock::fixed(Timestamp::from_micros(1_794_866_640_000_000))).await.unwrap();
    assert!(yard.first_key.is_none() && yard.db.pending().await.unwrap().is_empty());

    let scope = yard.accounts.authenticator().authenticate(OWNER_KEY).await.unwrap().expect("the key still opens its project");
    let connection = yard.connections.find(scope, "native", "brave-search", "main").await.unwrap().unwrap();
    let integration = yard.catalog.integration(scope.project, "native", "brave-search").unwrap();
    yard.connections.usable(&connection, &integration).await.expect("what was sealed is opened");
    let calls = yard.calls.records(scope.project, &CallFilter::default()).await.unwrap().calls;
    assert_eq!(calls.iter().map(|call| call.call_ref.as_str()).collect::<Vec<_>>(), ["workflow.variant.echo"]);
    let tagged = Query { tags: Some(json!({"team": "red"})), ..Query::default() };
    let applications = yard.workflows.query_artifacts(scope, Family::Application, &tagged).await.unwrap().rows;
    assert_eq!(applications.iter().map(|row| row.slug.as_str()).collect::<Vec<_>>(), ["echo"], "old tags and flags are found");
    let seen = Query { flags: json!({"is_custom": false}).as_object().cloned(), ..Query::default() };
    let revisions = yard.workflows.query_revisions(scope, Family::Workflow, &seen).await.unwrap().rows;
    assert_eq!(revisions.iter().map(|row| row.slug.as_str()).collect::<Vec<_>>(), ["echo-1"], "old revisions keep their slugs");
    assert_eq!((&revisions[0].artifact_slug, revisions[0].updated_at), (&"echo".to_owned(), revisions[0].created_at));
    yard.close().await;

    let mut after = counts(&file);
    // New migrations have run since, and other nodes than this one are forgotten.
    for changing in ["\"_sqlx_migrations\"", "_sqlx_migrations", "nodes"] {
        assert!(before.remove(changing) <= after.remove(changing).max(Some(1)));
    }
    assert_eq!(before, after);
}
