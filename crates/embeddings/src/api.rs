//! Asking an embeddings API as OpenAI documents it: texts in, a vector for each out.

use std::time::Duration;

use egress::{Egress, EgressError, Request, Response, Retry};
use http::{HeaderValue, Method, StatusCode, header};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;
use serde_json::json;
use sha2::{Digest, Sha256};
use url::Url;

use crate::vector::Vector;

/// A small machine takes its time for a batch.
const TIMEOUT: Duration = Duration::from_mins(1);
/// A batch of the widest vectors, written out.
const MAX_ANSWER: usize = 16 << 20;

/// Which API to ask, and for which model.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Where the API is, with or without `/embeddings` at its end.
    pub url: Url,
    pub model: String,
    pub key: Option<SecretString>,
}

/// What a sentence is kept under: a hash of the address, the model and the sentence.
pub(crate) type Hash = [u8; 32];

#[derive(Debug)]
pub(crate) struct Api {
    url: Url,
    model: String,
    key: Option<HeaderValue>,
    egress: Egress,
}

/// Why there are no vectors.
#[derive(Debug, thiserror::Error)]
pub enum EmbeddingsError {
    #[error("the key for the embeddings API cannot be sent; check `embeddings_key`")]
    Key,
    #[error("the embeddings API could not be reached: {0}")]
    Unreachable(#[from] EgressError),
    #[error("the embeddings API answered with status {0}")]
    Status(StatusCode),
    #[error("the embeddings API answered with something else than the vectors that were asked for: {0}")]
    Malformed(&'static str),
    #[error("vectors could not be kept: {0}")]
    Store(#[from] store::StoreError),
}

impl EmbeddingsError {
    /// Whether the API may take other sentences than these.
    pub(crate) fn is_about_the_sentences(&self) -> bool {
        matches!(self, Self::Status(StatusCode::BAD_REQUEST | StatusCode::PAYLOAD_TOO_LARGE | StatusCode::UNPROCESSABLE_ENTITY))
    }
}

#[derive(Deserialize)]
struct Answer {
    data: Vec<Embedding>,
}

#[derive(Deserialize)]
struct Embedding {
    index: usize,
    embedding: Vec<f32>,
}

impl Api {
    pub(crate) fn new(settings: Settings, egress: Egress) -> Result<Self, EmbeddingsError> {
        let Settings { mut url, model, key } = settings;
        let path = url.path().trim_end_matches('/');
        let path = if path.ends_with("/embeddings") { path.to_owned() } else { format!("{path}/embeddings") };
        url.set_path(&path);
        let key = key.map(|key| HeaderValue::from_str(&format!("Bearer {}", key.expose_secret()))).transpose();
        let mut key = key.map_err(|_| EmbeddingsError::Key)?;
        if let Some(key) = &mut key {
            key.set_sensitive(true);
        }
        Ok(Self { url, model, key, egress })
    }

    pub(crate) fn hash(&self, sentence: &str) -> Hash {
        let mut hash = Sha256::new();
        for part in [self.url.as_str(), &self.model, sentence] {
            hash.update(part.len().to_le_bytes());
            hash.update(part);
        }
        hash.finalize().into()
    }

    /// The vectors of the sentences, in their order, all of one width.
    pub(crate) async fn embed(&self, sentences: &[&str]) -> Result<Vec<Vector>, EmbeddingsError> {
        let body = json!({"model": self.model, "input": sentences, "encoding_format": "float"});
        let mut request = Request::new(Method::POST, self.url.clone())
            .header(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))
            .body(body.to_string())
            .timeout(TIMEOUT)
            .max_response(MAX_ANSWER)
            // Asking again does nothing twice.
            .retry(Retry::Keyed);
        if let Some(key) = &self.key {
            request = request.header(header::AUTHORIZATION, key.clone());
        }
        let response = self.egress.send(request).await?;
        if !response.status.is_success() {
            return Err(EmbeddingsError::Status(response.status));
        }
        let count = sentences.len();
        let read = tokio::task::spawn_blocking(move || read(&response, count)).await;
        read.unwrap_or(Err(EmbeddingsError::Malformed("it could not be read")))
    }
}

fn read(response: &Response, count: usize) -> Result<Vec<Vector>, EmbeddingsError> {
    let malformed = |why| Err(EmbeddingsError::Malformed(why));
    if response.truncated {
        return malformed("too many bytes");
    }
    let Ok(Answer { mut data }) = serde_json::from_slice(&response.body) else { return malformed("not what the API documents") };
    data.sort_by_key(|embedding| embedding.index);
    if !data.iter().map(|embedding| embedding.index).eq(0..count) {
        return malformed("not one vector for each sentence");
    }
    let vectors: Option<Vec<Vector>> = data.iter().map(|embedding| Vector::new(&embedding.embedding)).collect();
    match vectors {
        None => malformed("a vector without direction, or too wide"),
        Some(vectors) if vectors.windows(2).any(|pair| pair[0].width() != pair[1].width()) => malformed("vectors of several widths"),
        Some(vectors) => Ok(vectors),
    }
}

#[cfg(test)]
mod tests {
    use http::HeaderMap;

    use super::*;

    fn read_text(text: &str, count: usize) -> Result<usize, String> {
        let url = Url::parse("https://api.example/v1/embeddings").expect("an address");
        let body = text.to_owned().into();
        let response = Response { status: StatusCode::OK, headers: HeaderMap::new(), body, truncated: false, url };
        read(&response, count).map(|vectors| vectors[0].width()).map_err(|error| error.to_string())
    }

    #[test]
    fn only_the_vectors_that_were_asked_for_are_read() {
        let good = r#"{"object":"list","data":[{"object":"embedding","index":1,"embedding":[0,1]},{"object":"embedding","index":0,"embedding":[1,0.5]}],
            "model":"m","usage":{"prompt_tokens":2,"total_tokens":2}}"#;
        assert_eq!(read_text(good, 2), Ok(2));
        for (text, count) in [
            (good, 1),
            (good, 3),
            ("", 1),
            ("null", 1),
            ("[]", 1),
            (r#"{"data":[]}"#, 1),
            (r#"{"data":[{"index":0,"embedding":[]}]}"#, 1),
            (r#"{"data":[{"index":0,"embedding":[0,0]}]}"#, 1),
            (r#"{"data":[{"index":0,"embedding":[1e300,1]}]}"#, 1),
            (r#"{"data":[{"index":0,"embedding":["1"]}]}"#, 1),
            (r#"{"data":[{"index":0,"embedding":"AAAA"}]}"#, 1),
            (r#"{"data":[{"index":1,"embedding":[1]}]}"#, 1),
            (r#"{"data":[{"index":-1,"embedding":[1]}]}"#, 1),
            (r#"{"data":[{"index":0,"embedding":[1]},{"index":0,"embedding":[1]}]}"#, 2),
            (r#"{"data":[{"index":0,"embedding":[1]},{"index":1,"embedding":[1,2]}]}"#, 2),
        ] {
            assert!(read_text(text, count).is_err(), "{text}");
        }
    }
}
