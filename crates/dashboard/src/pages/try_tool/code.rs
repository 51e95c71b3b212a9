//! One call, written for programs. A key never stands in it: they read it from the environment.

use serde_json::{Map, Value, json};

use crate::ui::{Markup, code_block};

/// A call in one language.
#[derive(Debug)]
pub(super) struct Sample {
    pub(super) title: &'static str,
    pub(super) note: Option<String>,
    pub(super) code: Markup,
}

/// A call that is to be written.
#[derive(Debug)]
pub(super) struct WrittenCall<'a> {
    pub(super) url: &'a str,
    pub(super) call_ref: &'a str,
    /// Its name where MCP clients see it.
    pub(super) mcp_name: &'a str,
    pub(super) arguments: &'a Map<String, Value>,
}

pub(super) fn samples(call: &WrittenCall<'_>) -> Vec<Sample> {
    let sample = |title, note, code: String| Sample { title, note, code: code_block(&code) };
    vec![
        sample("curl", None, curl(call)),
        sample("Command line", None, command(call)),
        sample("Python", None, python(call)),
        sample("MCP", Some(format!("What a client sends as tools/call to {}/mcp.", call.url)), mcp(call)),
    ]
}

fn body(call: &WrittenCall<'_>) -> Value {
    json!({"data": {"id": "call-1", "type": "function", "function": {"name": call.call_ref, "arguments": call.arguments}}})
}

fn curl(call: &WrittenCall<'_>) -> String {
    let address = shell_word(&format!("{}/tools/call", call.url));
    let body = shell_word(&body(call).to_string());
    format!(
        "curl -X POST {address} \\\n  -H \"Authorization: ApiKey $TOOLYARD_KEY\" \\\n  -H \"Content-Type: application/json\" \\\n  -d {body}"
    )
}

fn command(call: &WrittenCall<'_>) -> String {
    let arguments = Value::Object(call.arguments.clone()).to_string();
    format!("toolyard call {} \\\n  --url {} \\\n  --args {}", shell_word(call.call_ref), shell_word(call.url), shell_word(&arguments))
}

fn python(call: &WrittenCall<'_>) -> String {
    let address = python_value(&format!("{}/tools/call", call.url).into(), 0);
    format!(
        "import json, os, urllib.request\n\n\
        body = {}\n\
        request = urllib.request.Request(\n    {address},\n    json.dumps(body).encode(),\n    \
        {{\"Authorization\": \"ApiKey \" + os.environ[\"TOOLYARD_KEY\"], \"Content-Type\": \"application/json\"}},\n)\n\
        print(json.load(urllib.request.urlopen(request)))",
        python_value(&body(call), 0)
    )
}

fn mcp(call: &WrittenCall<'_>) -> String {
    let message = json!({"name": call.mcp_name, "arguments": call.arguments});
    serde_json::to_string_pretty(&message).unwrap_or_default()
}

/// One word of a POSIX shell, which takes everything between single quotes as it is.
fn shell_word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:@%+=,".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) { text.to_owned() } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

/// A value as Python writes it. A text of JSON is one of Python too.
fn python_value(value: &Value, depth: usize) -> String {
    let (outer, inner) = ("    ".repeat(depth), "    ".repeat(depth + 1));
    match value {
        Value::Null => "None".to_owned(),
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Array(items) if !items.is_empty() => {
            let items: String = items.iter().map(|item| format!("{inner}{},\n", python_value(item, depth + 1))).collect();
            format!("[\n{items}{outer}]")
        }
        Value::Object(entries) if !entries.is_empty() => {
            let name = |name: &String| Value::from(name.as_str()).to_string();
            let entries: String =
                entries.iter().map(|(key, value)| format!("{inner}{}: {},\n", name(key), python_value(value, depth + 1))).collect();
            format!("{{\n{entries}{outer}}}")
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    /// Prints the last word of a command.
    const LAST: &str = "; for last; do :; done; printf %s \"$last\"";
    const HOSTILE: &str = "it's $HOME `id` \"q\" \\ !x\nnext; rm -rf é";

    fn call(arguments: &Map<String, Value>) -> WrittenCall<'_> {
        WrittenCall { url: "https://yard.example.com", call_ref: "tools.native.a.B.c", mcp_name: "tools__native__a__B__c", arguments }
    }

    fn hostile() -> Map<String, Value> {
        json!({"it's": HOSTILE, "on": true, "none": null, "list": [1, 2.5, []], "deep": {"a": {}}}).as_object().unwrap().clone()
    }

    #[test]
    fn words_of_a_shell_are_quoted_where_they_must_be() {
        assert_eq!(shell_word("tools.native.a.B.c-1"), "tools.native.a.B.c-1");
        assert_eq!(shell_word(""), "''");
        assert_eq!(shell_word("a b"), "'a b'");
        assert_eq!(shell_word("it's $X"), "'it'\\''s $X'");
    }

    #[test]
    fn a_shell_reads_back_what_was_typed() {
        let arguments = hostile();
        let script = curl(&call(&arguments)).replacen("curl", "set --", 1) + LAST;
        let output = Command::new("sh").arg("-c").arg(script).output().unwrap();
        assert_eq!(serde_json::from_slice::<Value>(&output.stdout).unwrap(), body(&call(&arguments)));
        let script = command(&call(&arguments)).replacen("toolyard", "set --", 1) + LAST;
        let output = Command::new("sh").arg("-c").arg(script).output().unwrap();
        assert_eq!(serde_json::from_slice::<Value>(&output.stdout).unwrap(), Value::Object(arguments));
    }

    #[test]
    fn values_are_written_as_python_writes_them() {
        assert_eq!(python_value(&json!([true, null, "a\n\"b\""]), 0), "[\n    True,\n    None,\n    \"a\\n\\\"b\\\"\",\n]");
        assert_eq!(python_value(&json!({"a": {"b": []}}), 0), "{\n    \"a\": {\n        \"b\": [],\n    },\n}");
    }

    #[test]
    fn every_sample_holds_the_call_and_no_key() {
        let arguments = hostile();
        let all = samples(&call(&arguments));
        assert_eq!(all.len(), 4);
        for sample in &all[..3] {
            let code = sample.code.to_string();
            assert!(code.contains("tools.native.a.B.c"), "{code}");
        }
        assert!(all[3].code.to_string().contains("tools__native__a__B__c"));
    }
}
