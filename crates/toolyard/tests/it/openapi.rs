//! The document is the contract: it changes only on purpose.

use serde_json::Value;

use crate::support::{document, repository};

/// What is served was made from the code. `AGREE=1` makes it anew; what changed is then for people to read.
#[test]
fn the_document_is_as_agreed() {
    let file = repository().join("crates/server/openapi.json");
    let said = server::openapi().to_pretty_json().unwrap() + "\n";
    if std::env::var_os("AGREE").is_some() {
        std::fs::write(&file, &said).unwrap();
    }
    let agreed = std::fs::read_to_string(&file).unwrap();
    let differ = said.lines().zip(agreed.lines()).enumerate().find(|(_, (said, agreed))| said != agreed);
    assert!(said == agreed, "{differ:?}; hint: `AGREE=1 cargo nextest run the_document_is_as_agreed` writes it anew");
    let served: Value = serde_json::from_str(server::OPENAPI).unwrap();
    assert_eq!(served, serde_json::from_str::<Value>(&agreed).unwrap());
}

#[test]
fn operation_ids_are_unique_and_the_contracts_own() {
    let document = document();
    let operations = document["paths"].as_object().unwrap().values().flat_map(|methods| methods.as_object().unwrap().values());
    let mut ids: Vec<&str> = operations.map(|operation| operation["operationId"].as_str().unwrap()).collect();
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count);
    for id in [
        "list_tool_providers",
        "fetch_tool_provider",
        "list_tool_integrations",
        "list_tool_categories",
        "fetch_tool_integration",
        "list_tool_actions",
        "fetch_tool_action",
        "query_tool_connections",
        "create_tool_connection",
        "callback_tool_connection",
        "fetch_tool_connection",
        "delete_tool_connection",
        "refresh_tool_connection",
        "revoke_tool_connection",
        "call_tool",
        "query_trigger_connections",
        "create_trigger_connection",
        "list_trigger_events",
        "fetch_trigger_event",
    ] {
        assert!(ids.contains(&id), "{id}");
    }
}

#[test]
fn every_reference_in_the_document_leads_somewhere() {
    let document = document();
    fn walk(value: &Value, document: &Value) {
        match value {
            Value::Object(fields) => {
                if let Some(reference) = fields.get("$ref").and_then(Value::as_str) {
                    assert!(document.pointer(reference.trim_start_matches('#')).is_some(), "{reference}");
                }
                fields.values().for_each(|field| walk(field, document));
            }
            Value::Array(items) => items.iter().for_each(|item| walk(item, document)),
            _ => {}
        }
    }
    walk(&document, &document);
}

#[test]
fn every_parameter_stands_where_the_document_says() {
    let document = document();
    for (path, methods) in document["paths"].as_object().unwrap() {
        for (method, operation) in methods.as_object().unwrap() {
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                let name = parameter["name"].as_str().unwrap();
                let in_path = path.contains(&format!("{{{name}}}"));
                assert_eq!(parameter["in"] == "path", in_path, "{method} {path}: {name}");
                assert_eq!(parameter["required"] == true, in_path, "{method} {path}: {name}");
            }
        }
    }
}

/// Two types of one name would share one place in the document, and one of them would be described wrongly.
#[test]
fn every_body_has_a_name_of_its_own() {
    fn sources(folder: &std::path::Path, into: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                sources(&path, into);
            } else {
                into.push(std::fs::read_to_string(path).unwrap());
            }
        }
    }
    let mut files = Vec::new();
    sources(&repository().join("crates/server/src"), &mut files);
    let mut seen = std::collections::BTreeSet::new();
    for line in files.iter().flat_map(|text| text.lines()) {
        let Some(rest) = line.strip_prefix("pub struct ").or_else(|| line.strip_prefix("pub enum ")) else { continue };
        let name = rest.split(|c: char| !c.is_alphanumeric()).next().unwrap();
        assert!(seen.insert(name), "`{name}` is defined twice");
    }
    assert!(seen.len() > 50, "the sources are read");

    // Composio's API has a place of its own in the document.
    let mut files = Vec::new();
    sources(&repository().join("crates/composio-api/src"), &mut files);
    let lines: Vec<&str> = files.iter().flat_map(|text| text.lines()).collect();
    let mut named = std::collections::BTreeSet::new();
    for (number, line) in lines.iter().enumerate().filter(|(_, line)| line.starts_with("#[derive(") && line.contains("ToSchema")) {
        let item = lines[number..].iter().find(|line| line.starts_with("pub struct ") || line.starts_with("pub enum ")).unwrap();
        let name = lines[number + 1..].iter().take(4).find_map(|line| line.split_once("as = composio::")).map(|(_, name)| name);
        let is_page = item.starts_with("pub struct Page<");
        let name = name.map(|name| name.split(|c: char| !c.is_alphanumeric()).next().unwrap());
        assert!(name.is_some_and(|name| named.insert(name)) || is_page, "{line}\n{item}");
    }
}
