//! JSON as a tree that can be folded.

use serde_json::Value;

use super::{Markup, escape};

/// Containers below this depth are closed at first.
const OPEN_DEPTH: usize = 2;
/// Longer texts are folded.
const SHORT: usize = 200;

pub(crate) fn json_tree(value: &Value) -> Markup {
    let mut html = String::from("<div class=\"json\">");
    write(&mut html, value, 0);
    html.push_str("</div>");
    Markup(html)
}

fn write(html: &mut String, value: &Value, depth: usize) {
    match value {
        Value::Object(object) if !object.is_empty() => {
            let entries = object.iter().map(|(name, value)| (name.clone(), value));
            container(html, entries, &format!("{{{}}}", object.len()), depth);
        }
        Value::Array(items) if !items.is_empty() => {
            let entries = items.iter().enumerate().map(|(at, value)| (at.to_string(), value));
            container(html, entries, &format!("[{}]", items.len()), depth);
        }
        Value::String(text) => string(html, text),
        other => html.push_str(&format!("<code class=\"value\">{}</code>", escape(&other.to_string()))),
    }
}

fn container<'a>(html: &mut String, entries: impl Iterator<Item = (String, &'a Value)>, summary: &str, depth: usize) {
    let open = if depth < OPEN_DEPTH { " open" } else { "" };
    html.push_str(&format!("<details{open}><summary>{summary}</summary><dl>"));
    for (name, value) in entries {
        html.push_str(&format!("<div><dt>{}</dt><dd>", escape(&name)));
        write(html, value, depth + 1);
        html.push_str("</dd></div>");
    }
    html.push_str("</dl></details>");
}

fn string(html: &mut String, text: &str) {
    if text.chars().count() > SHORT || text.contains('\n') {
        let start: String = text.lines().next().unwrap_or_default().chars().take(SHORT / 2).collect();
        html.push_str(&format!("<details><summary>{}…</summary><pre tabindex=\"0\">{}</pre></details>", escape(&start), escape(text)));
    } else {
        html.push_str(&format!("<code class=\"string\">{}</code>", escape(text)));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::json_tree;

    #[test]
    fn a_tree_holds_everything_and_runs_nothing() {
        let html = json_tree(&json!({"<a>": ["</pre><script>", 1, null, {}], "long": "x".repeat(300)})).to_string();
        assert!(html.contains("&lt;a&gt;") && html.contains("&lt;/pre&gt;&lt;script&gt;") && html.contains(&"x".repeat(300)), "{html}");
        assert!(!html.contains("<script>"), "{html}");
    }
}
