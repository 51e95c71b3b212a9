//! An embeddings API beside the sentence model: it decides the order once its vectors are there, and nobody waits for it.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use axum::{Json, Router};
use http::{HeaderMap, Method, StatusCode};
use kernel::Clock;
use serde_json::{Value, json};
use store::args;
use toolyard::yard::Yard;

use crate::support::{Database, Test, until};

const SENTENCE: &str = "send a message to my team";
const KEY: &str = "sk-embed-planted-5f21";

/// What the API does with a request.
#[derive(Clone, Debug)]
enum Mood {
    Fine,
    /// As the document says, with vectors of so many coordinates.
    Wide(usize),
    /// Refuses a batch that holds a sentence with this word.
    Refuses(&'static str),
    Says(u16, &'static str),
    Hangs,
}

/// An embeddings API, after OpenAI's document, to which everything about Telegram is the same and all else is another thing.
#[derive(Clone)]
struct FakeEmbeddings {
    url: String,
    state: Arc<Shared>,
}

struct Shared {
    mood: Mutex<Mood>,
    requests: Mutex<Vec<(HeaderMap, Value)>>,
}

impl FakeEmbeddings {
    async fn start(mood: Mood) -> Self {
        let state = Arc::new(Shared { mood: Mutex::new(mood), requests: Mutex::default() });
        let router = Router::new().route("/v1/embeddings", post(embed)).with_state(state.clone());
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/v1", listener.local_addr().unwrap());
        tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { url, state }
    }

    fn settings(&self) -> embeddings::Settings {
        embeddings::Settings { url: self.url.parse().unwrap(), model: "small".to_owned(), key: Some(KEY.to_owned().into()) }
    }

    fn change(&self, mood: Mood) {
        *self.state.mood.lock().unwrap() = mood;
    }

    /// Every sentence that it was sent.
    fn sentences(&self) -> Vec<String> {
        let requests = self.state.requests.lock().unwrap();
        let inputs = requests.iter().flat_map(|(_, body)| body["input"].as_array().unwrap());
        inputs.map(|input| input.as_str().unwrap().to_owned()).collect()
    }

    async fn yard(&self, database: Database) -> Test {
        let test = Test::with(database, |config| {
            (config.integrations_dir, config.sentence_model, config.egress_allow) = (None, true, String::new());
            config.embeddings = Some(self.settings());
        });
        let test = test.await;
        test.yard.start_embeddings();
        test
    }
}

async fn embed(State(state): State<Arc<Shared>>, headers: HeaderMap, Json(body): Json<Value>) -> Response {
    state.requests.lock().unwrap().push((headers, body.clone()));
    let inputs: Vec<&str> = body["input"].as_array().unwrap().iter().map(|input| input.as_str().unwrap()).collect();
    let mood = state.mood.lock().unwrap().clone();
    let width = match mood {
        Mood::Says(status, text) => {
            return (StatusCode::from_u16(status).unwrap(), [("location", "http://169.254.169.254/")], text).into_response();
        }
        Mood::Hangs => return std::future::pending().await,
        Mood::Refuses(word) if inputs.iter().any(|input| input.contains(word)) => {
            let error = json!({"error": {"message": "This model's maximum context length is 8 tokens", "type": "invalid_request_error"}});
            return (StatusCode::BAD_REQUEST, Json(error)).into_response();
        }
        Mood::Wide(width) => width,
        Mood::Fine | Mood::Refuses(_) => 4,
    };
    // The API may answer in any order; `index` says which is which.
    let data = inputs.iter().enumerate().rev().map(|(index, input)| {
        let mut embedding = vec![0.9; width];
        embedding[0] = if input.contains("Telegram") || *input == SENTENCE { 1.0 } else { -1.0 };
        json!({"object": "embedding", "index": index, "embedding": embedding})
    });
    let usage = json!({"prompt_tokens": 8, "total_tokens": 8});
    Json(json!({"object": "list", "data": data.collect::<Vec<_>>(), "model": body["model"], "usage": usage})).into_response()
}

async fn capability(test: &Test) -> Value {
    test.post("/tools/discover", json!({"use_cases": [SENTENCE], "debug": true})).await.expect(200)["capabilities"][0].take()
}

async fn integration(test: &Test) -> String {
    capability(test).await["tool"]["integration"].as_str().unwrap().to_owned()
}

fn counts(test: &Test) -> catalog::search::RemoteCounts {
    test.yard.catalog.remote_embedder().unwrap().counts()
}

async fn kept(db: &store::Db) -> i64 {
    db.optional("select count(*) as kept from sentence_vectors", args![]).await.unwrap().unwrap().get("kept").unwrap()
}

async fn until_the_api_decides(test: &Test) {
    until("the vectors of the API decide", async || integration(test).await == "telegram").await;
}

mod vectors_of_an_api_decide_the_order_and_are_asked_for_once {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn sqlite() {
        Box::pin(check(Database::Sqlite)).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn postgres() {
        Box::pin(check(Database::Postgres)).await;
    }

    async fn check(database: Database) {
        let api = FakeEmbeddings::start(Mood::Fine).await;
        let test = api.yard(database).await;
        let before = capability(&test).await;
        assert_ne!(before["tool"]["integration"], "telegram", "the first answer does not wait");
        until_the_api_decides(&test).await;
        let after = capability(&test).await;
        assert!((0.0..=1.0).contains(&after["confidence"].as_f64().unwrap()), "{after}");
        assert!(counts(&test).answered > 0 && counts(&test).failed == 0, "{:?}", counts(&test));
        let metrics = test.request(Method::GET, "/metrics", None, None).await.text;
        assert!(metrics.contains("toolyard_embeddings_requests_total{outcome=\"ok\"}"), "{metrics}");
        {
            let requests = api.state.requests.lock().unwrap();
            for (headers, body) in requests.iter() {
                assert_eq!((&body["model"], &body["encoding_format"]), (&json!("small"), &json!("float")));
                assert_eq!(headers["authorization"], format!("Bearer {KEY}"));
                assert!(body["input"].as_array().unwrap().len() <= 64);
            }
        }
        let sent = api.sentences();
        assert_eq!(sent.len(), sent.iter().collect::<BTreeSet<_>>().len(), "each sentence is sent once");
        let all = kept(&test.yard.db).await;
        assert_eq!(all, i64::try_from(sent.iter().filter(|sentence| *sentence != SENTENCE).count()).unwrap(), "questions are not kept");

        test.yard.close().await;
        let again = Yard::open_at(test.yard.config.clone(), test.clock.clone()).await.unwrap();
        again.start_embeddings();
        let project = again.accounts.authenticator().authenticate(&test.owner).await.unwrap().unwrap().project;
        again.catalog.warm(project);
        until("what is kept is read", async || again.catalog.indexed_sentences().iter().all(catalog::IndexedSentences::are_embedded)).await;
        assert_eq!(api.sentences().len(), sent.len(), "nothing is asked for twice");

        again.close().await;
        let month = Duration::from_hours(31 * 24);
        let later = Clock::fixed(test.clock.now().plus(month));
        let again = Yard::open_at(test.yard.config.clone(), later).await.unwrap();
        again.start_embeddings();
        until("what nobody used for a month is dropped", async || kept(&again.db).await == 0).await;
        again.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_api_that_fails_or_lies_changes_nothing_until_it_is_well() {
    let api = FakeEmbeddings::start(Mood::Hangs).await;
    let test = api.yard(Database::Sqlite).await;
    let usual = integration(&test).await;
    for mood in [
        Mood::Says(500, "{}"),
        Mood::Says(401, r#"{"error": {"message": "Incorrect API key provided"}}"#),
        Mood::Says(302, ""),
        Mood::Says(200, "<html>"),
        Mood::Says(200, r#"{"data": []}"#),
        Mood::Says(200, r#"{"data": [{"index": 0, "embedding": [1e300]}]}"#),
        Mood::Wide(5000),
    ] {
        let api = FakeEmbeddings::start(mood.clone()).await;
        let test = api.yard(Database::Sqlite).await;
        let answer = capability(&test).await;
        assert!(answer["tool"]["integration"] == *usual && answer.get("note").is_none(), "{mood:?}: {answer}");
        until("the failure is counted", async || counts(&test).failed > 0).await;
        assert_eq!((counts(&test).answered, kept(&test.yard.db).await), (0, 0), "{mood:?}");
        assert_eq!(integration(&test).await, usual, "{mood:?}");
        let metrics = test.request(Method::GET, "/metrics", None, None).await.text;
        assert!(metrics.contains("toolyard_embeddings_requests_total{outcome=\"failed\"} "), "{metrics}");
        if matches!(mood, Mood::Says(500, _)) {
            api.change(Mood::Fine);
            until_the_api_decides(&test).await;
        }
        test.yard.close().await;
    }
    assert_eq!(integration(&test).await, usual, "an API that hangs keeps nobody waiting");
    assert!(!api.sentences().is_empty() && counts(&test) == catalog::search::RemoteCounts::default());
    tokio::time::timeout(Duration::from_secs(10), test.yard.close()).await.expect("nor does it hold up the end");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_sentence_that_the_api_refuses_is_left_out() {
    let api = FakeEmbeddings::start(Mood::Refuses("invoice")).await;
    let test = api.yard(Database::Sqlite).await;
    until_the_api_decides(&test).await;
    assert!(counts(&test).failed > 0 && kept(&test.yard.db).await > 1000);
    test.yard.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_model_under_the_same_name_is_asked_for_everything_again() {
    let api = FakeEmbeddings::start(Mood::Wide(4)).await;
    let test = api.yard(Database::Sqlite).await;
    until_the_api_decides(&test).await;
    let all = kept(&test.yard.db).await;
    test.yard.close().await;
    let again = Yard::open_at(test.yard.config.clone(), test.clock.clone()).await.unwrap();
    again.db.execute("delete from sentence_vectors where hash = (select min(hash) from sentence_vectors)", args![]).await.unwrap();
    api.change(Mood::Wide(6));
    again.start_embeddings();
    let project = again.accounts.authenticator().authenticate(&test.owner).await.unwrap().unwrap().project;
    again.catalog.warm(project);
    until("all are of the new width", async || {
        let sql = "select count(*) as kept from sentence_vectors where octet_length(vector) = 6";
        again.db.optional(sql, args![]).await.unwrap().unwrap().get::<i64>("kept").unwrap() == all
    })
    .await;
    again.close().await;
}
