//! Answers in JSON.

use std::io::{Error, Write};

use axum::response::{IntoResponse, Response};
use http::HeaderValue;
use http::header::CONTENT_TYPE;
use serde::Serialize;
use work::{LARGE, SMALL, in_place};

use super::ApiError;

/// The room for an answer to begin with.
const USUAL: usize = 256;

/// A JSON answer. One that turns out to be large is written anew where it keeps no other request waiting.
#[derive(Clone, Copy, Debug)]
pub struct Json<T>(pub T);

impl<T: Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> Response {
        let mut short = Text { bytes: Vec::with_capacity(USUAL), limit: SMALL, is_full: false };
        let written = match serde_json::to_writer(&mut short, &self.0) {
            Err(_) if short.is_full => in_place(LARGE, move || {
                let mut whole = Text { limit: usize::MAX, is_full: false, bytes: short.bytes };
                whole.bytes.clear();
                serde_json::to_writer(&mut whole, &self.0).map(|()| whole.bytes)
            }),
            written => written.map(|()| short.bytes),
        };
        match written {
            Ok(text) => ([(CONTENT_TYPE, HeaderValue::from_static("application/json"))], text).into_response(),
            Err(error) => ApiError::internal(&error.to_string()).into_response(),
        }
    }
}

/// A text that stays within a limit.
#[derive(Debug)]
struct Text {
    bytes: Vec<u8>,
    limit: usize,
    is_full: bool,
}

impl Write for Text {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if bytes.len() > self.limit - self.bytes.len() {
            self.is_full = true;
            return Err(Error::other("it is not small"));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn small_and_large_answers_are_written_the_same_way() {
        for length in [10, SMALL, 40 * SMALL] {
            let value = json!({"text": "\u{e9}\n".repeat(length)});
            let response = Json(&value).into_response();
            assert_eq!(response.headers()[CONTENT_TYPE], "application/json");
            let text = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
            assert!(text == value.to_string(), "{length}");
        }
    }
}
