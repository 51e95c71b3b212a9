//! Answers in JSON.

use std::io::{Error, Write};

use axum::response::{IntoResponse, Response};
use http::HeaderValue;
use http::header::CONTENT_TYPE;
use serde::Serialize;
use work::{LARGE, SMALL, in_place};

use super::ApiError;

/// A JSON answer. One that turns out to be large is written anew where it keeps no other request waiting.
#[derive(Clone, Copy, Debug)]
pub struct Json<T>(pub T);

impl<T: Serialize> IntoResponse for Json<T> {
    fn into_response(self) -> Response {
        let mut short = Short::default();
        let written = match serde_json::to_writer(&mut short, &self.0) {
            Err(_) if short.is_full => in_place(LARGE, move || serde_json::to_vec(&self.0)),
            written => written.map(|()| short.text),
        };
        match written {
            Ok(text) => ([(CONTENT_TYPE, HeaderValue::from_static("application/json"))], text).into_response(),
            Err(error) => ApiError::internal(&error.to_string()).into_response(),
        }
    }
}

/// A text that stays small.
#[derive(Debug, Default)]
struct Short {
    text: Vec<u8>,
    is_full: bool,
}

impl Write for Short {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.text.len() + bytes.len() > SMALL {
            self.is_full = true;
            return Err(Error::other("it is not small"));
        }
        self.text.extend_from_slice(bytes);
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
