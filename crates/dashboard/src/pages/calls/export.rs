//! Calls as a file, page by page as the API gives them.

use std::io;

use axum::body::Body;
use axum::extract::Query;
use axum::response::IntoResponse;
use futures_util::stream;
use http::{StatusCode, header};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::filters::Asked;
use crate::path::Path;
use crate::refusal::{PageResult, Refusal};
use crate::visit::Visit;

/// How many calls a file holds at most.
const MOST: usize = 10_000;
const PAGE: usize = 500;
const COLUMNS: [&str; 20] = [
    "id",
    "created_at",
    "tool",
    "call_ref",
    "outcome",
    "duration_ms",
    "message",
    "via",
    "key_id",
    "key_name",
    "user_name",
    "client_name",
    "grant_id",
    "agent_id",
    "connection_id",
    "run_id",
    "step",
    "delivery_id",
    "approval_id",
    "end_user",
];

/// What a file is written as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Csv,
    Lines,
}

impl Format {
    fn of(word: Option<&str>) -> Result<Self, Refusal> {
        match word {
            None | Some("csv") => Ok(Self::Csv),
            Some("jsonl") => Ok(Self::Lines),
            Some(_) => Err(Refusal::new(StatusCode::BAD_REQUEST, "Calls can be exported as `csv` or as `jsonl`.")),
        }
    }

    fn media_type(self) -> &'static str {
        match self {
            Self::Csv => "text/csv; charset=utf-8",
            Self::Lines => "application/jsonl",
        }
    }

    fn ending(self) -> &'static str {
        match self {
            Self::Csv => "csv",
            Self::Lines => "jsonl",
        }
    }

    fn head(self) -> String {
        match self {
            Self::Csv => format!("{}\r\n", COLUMNS.join(",")),
            Self::Lines => String::new(),
        }
    }

    fn row(self, call: &Map<String, Value>) -> String {
        match self {
            Self::Csv => format!("{}\r\n", COLUMNS.map(|column| cell(call.get(column))).join(",")),
            Self::Lines => format!("{}\n", Value::Object(call.clone())),
        }
    }
}

#[derive(Debug, Deserialize)]
struct Answer {
    calls: Vec<Map<String, Value>>,
    cursor: Option<String>,
}

pub(super) async fn export(visit: Visit, Query(asked): Query<Asked>) -> PageResult {
    let format = Format::of(asked.format.as_deref())?;
    let path = asked.filtered(Path::new("/tools/calls")).with("limit", PAGE);
    // The first page comes before the answer begins, so that a refusal is a page and not a broken file.
    let first: Answer = visit.get(path.clone()).await?;
    let file = File { visit, path, format, written: 0, next: Next::Page(first) };
    let parts = stream::try_unfold(file, |mut file| async move { Ok::<_, io::Error>(file.part().await?.map(|part| (part, file))) });
    let name = format!("attachment; filename=\"calls-{}.{}\"", Timestamp::now().strftime("%Y-%m-%d"), format.ending());
    let headers = [
        (header::CONTENT_TYPE, format.media_type().to_owned()),
        (header::CONTENT_DISPOSITION, name),
        (header::CACHE_CONTROL, "no-store".to_owned()),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff".to_owned()),
    ];
    Ok((headers, Body::from_stream(parts)).into_response())
}

/// A file that is being written.
struct File {
    visit: Visit,
    path: Path,
    format: Format,
    written: usize,
    next: Next,
}

enum Next {
    Page(Answer),
    Cursor(String),
    End,
}

impl File {
    /// The next page of rows. A page that cannot be had breaks the download off, so that no file looks complete that is not.
    async fn part(&mut self) -> io::Result<Option<String>> {
        let page = match std::mem::replace(&mut self.next, Next::End) {
            Next::End => return Ok(None),
            Next::Page(page) => page,
            Next::Cursor(cursor) => {
                let page = self.visit.get::<Answer>(self.path.clone().with("cursor", cursor)).await;
                page.map_err(|refusal| io::Error::other(refusal.words))?
            }
        };
        let mut part = if self.written == 0 { self.format.head() } else { String::new() };
        let calls = &page.calls[..page.calls.len().min(MOST - self.written)];
        for call in calls {
            part.push_str(&self.format.row(call));
        }
        self.written += calls.len();
        if let Some(cursor) = page.cursor.filter(|_| self.written < MOST && !calls.is_empty()) {
            self.next = Next::Cursor(cursor);
        }
        Ok(Some(part))
    }
}

/// A cell of a table. Spreadsheets run what looks like a formula, so such a text gets an apostrophe in front.
fn cell(value: Option<&Value>) -> String {
    let text = match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) if text.starts_with(['=', '+', '-', '@', '\t', '\r']) => format!("'{text}"),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    };
    if text.contains(['"', ',', '\n', '\r']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn cells_are_quoted_and_run_nothing() {
        let written = |value: Value| cell(Some(&value));
        assert_eq!(written(json!("plain")), "plain");
        assert_eq!(written(json!("a, \"b\"\nc")), "\"a, \"\"b\"\"\nc\"");
        assert_eq!(written(json!("=1+1")), "'=1+1");
        assert_eq!(written(json!("@SUM(A1,\"x\")")), "\"'@SUM(A1,\"\"x\"\")\"");
        assert_eq!(["+1", "-1", "\tx"].map(|text| written(json!(text))), ["'+1", "'-1", "'\tx"]);
        // A number is no formula.
        assert_eq!(written(json!(-1.5)), "-1.5");
        assert_eq!((cell(None), written(Value::Null)), (String::new(), String::new()));
    }

    #[test]
    fn a_row_has_every_column() {
        let call = json!({"id": "1", "outcome": "ok", "more": true}).as_object().cloned().unwrap();
        let row = Format::Csv.row(&call);
        assert_eq!(row.matches(',').count(), Format::Csv.head().matches(',').count());
        assert!(row.starts_with("1,,,,ok,") && row.ends_with("\r\n"), "{row}");
        assert_eq!(Format::Lines.row(&call), "{\"id\":\"1\",\"outcome\":\"ok\",\"more\":true}\n");
    }
}
