use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::connection::is_given_up;
use super::*;
use crate::{Db, args};

/// Counts so far that SQLite is busy for much longer than a thread may be.
const LONG: &str = "with recursive n(i) as (select 1 union all select i + 1 from n where i < 1000000) select count(*) as found from n";

async fn fresh() -> (TempDir, Db) {
    let dir = tempfile::tempdir().unwrap();
    let db = Db::open(&format!("sqlite://{}", dir.path().join("test.db").display())).await.unwrap();
    db.execute("create table notes (id integer primary key, text text not null unique)", []).await.unwrap();
    (dir, db)
}

async fn count(db: &Db) -> i64 {
    db.optional("select count(*) as found from notes", []).await.unwrap().unwrap().get("found").unwrap()
}

#[tokio::test]
async fn an_argument_goes_where_its_number_stands() {
    let (_dir, db) = fresh().await;
    let row = db.optional("select $3 as c, $1 as a, $2 as b, $1 as again where $2 is null", args!["a", Option::<i64>::None, 3_i64]).await;
    let row = row.unwrap().unwrap();
    let texts = ["a", "again"].map(|column| row.get::<String>(column).unwrap());
    assert_eq!((texts, row.get::<i64>("c").unwrap()), (["a".to_owned(), "a".to_owned()], 3));
    assert!(db.optional("select $2 as b", args!["only one"]).await.is_err());
}

#[tokio::test]
async fn a_transaction_that_is_dropped_leaves_nothing_and_lets_others_write() {
    let (_dir, db) = fresh().await;
    let mut tx = db.begin_durable().await.unwrap();
    tx.execute("insert into notes (text) values ($1)", args!["a"]).await.unwrap();
    assert_eq!(count(&db).await, 0, "nobody sees what is not committed");
    drop(tx);
    db.execute("insert into notes (text) values ($1)", args!["b"]).await.unwrap();
    let mut tx = db.begin().await.unwrap();
    tx.execute("insert into notes (text) values ($1)", args!["c"]).await.unwrap();
    tx.commit().await.unwrap();
    let again = db.execute("insert into notes (text) values ($1)", args!["c"]).await;
    assert!(matches!(again, Err(StoreError::Conflict)), "{again:?}");
    assert_eq!(count(&db).await, 2);
}

#[tokio::test]
async fn a_commit_whose_caller_went_away_is_made() {
    let (_dir, db) = fresh().await;
    let mut tx = db.begin_durable().await.unwrap();
    tx.execute("insert into notes (text) values ($1)", args!["a"]).await.unwrap();
    {
        let commit = std::pin::pin!(tx.commit());
        assert!(futures_util::future::poll_immediate(commit).await.is_none(), "it is on its way");
    }
    // The next one waits for it.
    db.execute("insert into notes (text) values ($1)", args!["b"]).await.unwrap();
    assert_eq!(count(&db).await, 2);
}

#[tokio::test]
async fn what_takes_long_is_done_on_another_thread() {
    let (_dir, db) = fresh().await;
    let Db::Sqlite(file) = &db else { unreachable!() };
    let brief = file.read_here(&Query::new(LONG, []).unwrap(), Want::First, Effort::Brief);
    assert!(brief.is_err_and(|error| is_given_up(&error)));
    assert_eq!(db.optional(LONG, []).await.unwrap().unwrap().get::<i64>("found").unwrap(), 1_000_000);

    let fill =
        "with recursive n(i) as (select 1 union all select i + 1 from n where i < 100000) insert into notes (text) select 'n' || i from n";
    assert_eq!(db.execute(fill, []).await.unwrap(), 100_000);
    assert_eq!(count(&db).await, 100_000);
}

/// On one thread: were the file waited for on it, nobody could let go of the file.
#[tokio::test]
async fn a_file_that_another_process_holds_is_waited_for_elsewhere() {
    let (dir, db) = fresh().await;
    let other = rusqlite::Connection::open(dir.path().join("test.db")).unwrap();
    for is_durable in [None, Some(false), Some(true)] {
        other.execute_batch("begin immediate").unwrap();
        let write = async {
            let text = format!("{is_durable:?}");
            match is_durable {
                None => drop(db.execute("insert into notes (text) values ($1)", args![text]).await.unwrap()),
                Some(is_durable) => {
                    let mut tx = if is_durable { db.begin_durable().await } else { db.begin().await }.unwrap();
                    tx.execute("insert into notes (text) values ($1)", args![text]).await.unwrap();
                    tx.commit().await.unwrap();
                }
            }
        };
        let release = async {
            tokio::time::sleep(Duration::from_millis(20)).await;
            other.execute_batch("commit").unwrap();
        };
        let both = async { tokio::join!(write, release) };
        tokio::time::timeout(Duration::from_secs(5), both).await.expect("it waits on the thread of everyone");
    }
    assert_eq!(count(&db).await, 3);
}

#[tokio::test]
async fn the_log_is_written_back_when_it_grew() {
    let (dir, db) = fresh().await;
    let big = vec![7_u8; 1 << 20];
    db.execute("create table blobs (value blob)", []).await.unwrap();
    for _ in 0..160 {
        db.execute("insert into blobs (value) values ($1)", args![big.as_slice()]).await.unwrap();
    }
    // Whoever comes next waits for the last checkpoint.
    db.execute("delete from notes", []).await.unwrap();
    let log = std::fs::metadata(dir.path().join("test.db-wal")).unwrap().len();
    assert!(log < 90 << 20, "the log holds {log} bytes");
    db.close().await;
    assert!(matches!(db.begin().await, Err(StoreError::Closed)));
    assert!(matches!(db.optional("select 1 as one", []).await, Err(StoreError::Closed)));
    // The last one out tidies up, which may be a checkpoint that was still under way.
    let deadline = Instant::now() + Duration::from_secs(10);
    while dir.path().join("test.db-wal").exists() {
        assert!(Instant::now() < deadline, "the log is left behind");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

#[test]
fn an_address_names_a_file() {
    for (address, file) in [
        ("sqlite:///var/a%20b.db", Some("/var/a b.db")),
        ("sqlite:a.db?mode=rwc", Some("a.db")),
        ("sqlite://", None),
        ("postgres://x/y", None),
    ] {
        assert_eq!(Db::file(address), file.map(Into::into), "{address}");
    }
}
