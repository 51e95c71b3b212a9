//! From what a tool of a server says to a result. Pure.

use calls::ToolResult;
use kernel::json::parse;
use kernel::{Budget, Scrubber};
use serde_json::{Value, json};

use crate::fault::ServerError;
use crate::wire::bounded;

const MAX_ERROR: usize = 2000;

/// Reads the result of `tools/call`: structured content where there is any; of a single text the text, or what it holds where that is an
/// object or a list; else the content as it is. The secrets that the server was given are taken out first.
pub(crate) fn read(mut result: Value, secrets: &Scrubber, budget: &Budget) -> Result<ToolResult, ServerError> {
    secrets.value(&mut result);
    if result.get("resultType").is_some_and(|kind| kind == "input_required") {
        return Err(ServerError::Rpc { code: 0, message: "the tool asks for more input, which nobody can give here".to_owned() });
    }
    let structured = result.get_mut("structuredContent").map(Value::take).filter(|structured| !structured.is_null());
    let content = match result.get_mut("content").map(Value::take) {
        Some(Value::Array(content)) => content,
        None | Some(_) if structured.is_some() => Vec::new(),
        None | Some(_) => return Err(ServerError::Unreadable("the result has no content".to_owned())),
    };
    let is_error = result.get("isError") == Some(&Value::Bool(true));
    let error = is_error.then(|| words(&content));
    Ok(ToolResult { data: data(structured, content, budget), error, status: None })
}

fn data(structured: Option<Value>, content: Vec<Value>, budget: &Budget) -> Value {
    let is_text = |block: &Value| block["type"] == "text";
    match structured {
        Some(structured) if content.iter().all(is_text) => structured,
        Some(structured) => {
            let others: Vec<Value> = content.into_iter().filter(|block| !is_text(block)).collect();
            json!({"structuredContent": structured, "content": others})
        }
        None => match content.as_slice() {
            [block] if is_text(block) => parsed(block["text"].as_str().unwrap_or_default(), budget),
            _ => Value::Array(content),
        },
    }
}

fn parsed(text: &str, budget: &Budget) -> Value {
    let is_whole = text.trim_start().starts_with(['{', '[']);
    let parsed = is_whole.then(|| parse(text.as_bytes(), budget).ok()).flatten();
    parsed.unwrap_or_else(|| text.into())
}

fn words(content: &[Value]) -> String {
    let texts: Vec<&str> = content.iter().filter_map(|block| block["text"].as_str()).collect();
    let words = bounded(&texts.join(" "), MAX_ERROR);
    if words.is_empty() { "the tool failed without a word".to_owned() } else { words }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(result: Value) -> Result<ToolResult, ServerError> {
        super::read(result, &Scrubber::default(), &Budget::default())
    }

    #[test]
    fn results_are_as_plain_as_they_can_be() {
        let text = |text: &str| json!({"type": "text", "text": text});
        let image = json!({"type": "image", "data": "aGk=", "mimeType": "image/png"});
        for (result, data) in [
            (json!({"content": [text("hello")]}), json!("hello")),
            (json!({"content": [text("{\"a\": 1}")]}), json!({"a": 1})),
            (json!({"content": [text(" [1]")]}), json!([1])),
            (json!({"content": [text("{broken")]}), json!("{broken")),
            (json!({"content": [text("7")]}), json!("7")),
            (json!({"content": [text("a"), text("b")]}), json!([text("a"), text("b")])),
            (json!({"content": [text("a"), image]}), json!([text("a"), image])),
            (json!({"content": [], "structuredContent": {"a": 1}}), json!({"a": 1})),
            (json!({"content": [text("{\"a\": 1}")], "structuredContent": {"a": 1}}), json!({"a": 1})),
            (
                json!({"content": [text("x"), image], "structuredContent": {"a": 1}}),
                json!({"structuredContent": {"a": 1}, "content": [image]}),
            ),
            (json!({"content": []}), json!([])),
        ] {
            assert_eq!(read(result.clone()).unwrap(), ToolResult::ok(data), "{result}");
        }
        let failed = read(json!({"content": [text("no such\nfile")], "isError": true})).unwrap();
        assert_eq!((failed.error.as_deref(), failed.data), (Some("no such file"), json!("no such\nfile")));
        for bad in [json!(7), json!(null), json!({}), json!({"resultType": "input_required"})] {
            assert!(read(bad.clone()).is_err(), "{bad}");
        }
    }
}
