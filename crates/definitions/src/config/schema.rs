//! The JSON Schema of an agent's configuration, for editors and for `GET /tools/schema`. It describes the canonical shapes only; older
//! spellings are still read, but nobody should write them.

use serde_json::{Map, Value, json};

use super::{DEFAULT_PROVIDER, EMBED, KINDS, connection};

/// As `kernel::Slug` checks it.
const SLUG: &str = "^[A-Za-z0-9-]+(_[A-Za-z0-9-]+)*$";

/// The schema: draft 2020-12, without references to other documents.
pub fn json_schema() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Agent tool configuration",
        "description": "The parts of an agent's configuration that decide which tools it has and when they run. Other keys are open.",
        "type": "object",
        "properties": {
            "tools": {"type": ["array", "null"], "items": {"$ref": "#/$defs/tool"}},
            "mcps": {"type": ["array", "null"], "items": {"$ref": "#/$defs/mcp"}},
            "permissions": {"$ref": "#/$defs/plan"},
            "harness": closed(&[], json!({"kind": text(), "permissions": {"$ref": "#/$defs/rule_lists"}, "extras": {"type": ["object", "null"]}})),
            "runner": closed(&[], json!({"kind": text(), "permissions": {"$ref": "#/$defs/plan"}})),
            "sandbox": closed(&[], json!({"kind": text(), "permissions": {"type": ["object", "null"]}}))
        },
        "$defs": definitions()
    })
}

fn definitions() -> Value {
    let arms: Vec<Value> = KINDS.iter().chain(&["embed"]).map(|kind| json!({"$ref": format!("#/$defs/{kind}")})).collect();
    json!({
        "tool": {"oneOf": arms},
        "builtin": arm("builtin", &["name"], json!({"name": text()}), "Legacy. Built-in tools are always active; this does nothing."),
        "gateway": gateway(),
        "gateway_connection": connection::json_schema(),
        "code": code(),
        "client": arm("client", &["name"], json!({"name": text(), "description": note(), "input_schema": input_schema()}), "A tool that the caller's application fulfils."),
        "reference": reference(),
        "platform": arm("platform", &["op"], json!({"op": text()}), "An operation of the platform itself."),
        "embed": embed(),
        "permission": {"enum": ["allow", "ask", "deny", null], "default": null, "description": "Without one the plan of the run decides."},
        "plan": plan(),
        "rule": {"type": "string", "minLength": 1, "description": "`Name` or `Name(prefix:*)`; the prefix is that of the first string argument."},
        "rule_lists": rule_lists(),
        "slug": {"type": "string", "minLength": 1, "maxLength": 128, "pattern": SLUG},
        "mcp": mcp(),
        "mcp_tools": mcp_tools()
    })
}

fn gateway() -> Value {
    let properties = json!({
        "provider": {"type": "string", "minLength": 1, "default": DEFAULT_PROVIDER, "examples": ["native", "openapi", "mcp", "composio"]},
        "integration": text(),
        "action": text(),
        "connection": optional_text("The slug of the connection; `{integration}-main` if left out."),
        "name": optional_text("What the model calls the tool; `{integration}__{action}` if left out."),
        "input_schema": {"type": ["object", "null"], "description": "As discovery says it; not kept, the catalog's own is used."},
        "description": {"type": ["string", "null"], "description": "As discovery says it; not kept, the catalog's own is used."},
        "provider_action": {"type": ["string", "null"], "description": "As discovery says it; not kept."}
    });
    arm("gateway", &["integration", "action"], properties, "An action of an integration, through a connection.")
}

fn code() -> Value {
    let properties = json!({
        "name": text(),
        "description": note(),
        "runtime": {"enum": ["python", "node"], "default": "python"},
        "script": text(),
        "input_schema": input_schema(),
        "secrets": {"type": "array", "items": {"type": "string"}, "default": [], "description": "Names of secrets."}
    });
    arm("code", &["name", "script"], properties, "A script that the runner runs.")
}

fn reference() -> Value {
    let slug = json!({"$ref": "#/$defs/slug"});
    let absent = json!({"type": "null"});
    let properties = json!({
        "ref_by": {"enum": ["variant", "environment"], "default": "variant"},
        "slug": slug,
        "environment": {"anyOf": [slug, absent], "default": null},
        "version": {"anyOf": [slug, absent], "default": null},
        "name": optional_text("What the model calls the tool; the slug if left out."),
        "description": note(),
        "input_schema": input_schema()
    });
    let mut arm =
        arm("reference", &["slug"], properties, "A workflow: its newest or a pinned revision, or the one deployed in an environment.");
    arm["oneOf"] = json!([
        {"properties": {"ref_by": {"const": "variant"}, "environment": absent}},
        {"properties": {"ref_by": {"const": "environment"}, "environment": slug, "version": absent}, "required": ["ref_by", "environment"]}
    ]);
    arm
}

fn embed() -> Value {
    let named = closed(
        &[],
        json!({"id": {"type": ["string", "null"]}, "slug": {"type": ["string", "null"]}, "version": {"type": ["string", "null"]}}),
    );
    let references = json!({"type": "object", "minProperties": 1, "additionalProperties": named});
    let selector = closed(&[], json!({"key": note(), "path": note()}));
    let mut arm =
        closed(&[EMBED], json!({(EMBED): closed(&["@ag.references"], json!({"@ag.references": references, "@ag.selector": selector}))}));
    arm["description"] =
        "A tool that is kept in a workflow, an environment or elsewhere; it takes the place of the entry when tools are resolved.".into();
    arm
}

fn plan() -> Value {
    json!({
        "type": "object",
        "properties": {
            "default": {"enum": ["allow", "ask", "deny", "allow_reads", null], "default": "allow_reads"},
            "rules": {"type": "array", "items": {
                "type": "object",
                "properties": {"pattern": {"$ref": "#/$defs/rule"}, "permission": {"enum": ["allow", "ask", "deny"]}},
                "required": ["pattern", "permission"]
            }}
        }
    })
}

fn rule_lists() -> Value {
    let list = json!({"type": "array", "items": {"$ref": "#/$defs/rule"}});
    json!({"type": ["object", "null"], "properties": {"deny": list, "ask": list, "allow": list}})
}

fn mcp() -> Value {
    let name =
        json!({"type": "string", "minLength": 1, "maxLength": 128, "pattern": "^[A-Za-z0-9._-]+$", "not": {"const": "agenta-tools"}});
    let headers = json!({"type": "object", "additionalProperties": text(), "propertyNames": {"pattern": "\\S"}});
    let credentials = json!({"oneOf": [
        closed(&["type"], json!({"type": {"const": "none"}})),
        closed(&["type"], json!({"type": {"const": "header_secret_refs"}, "headers": headers}))
    ], "description": "Vault slugs by header name. A header may not be both public and secret."});
    let connection = json!({"type": {"const": "http"}, "url": text(), "headers": headers, "credentials": credentials});
    let policy = json!({"tools": {"$ref": "#/$defs/mcp_tools"}, "permission": {"$ref": "#/$defs/permission"}});
    closed(&["name", "connection"], json!({"name": name, "connection": closed(&["url"], connection), "policy": closed(&[], policy)}))
}

fn mcp_tools() -> Value {
    let names = |limit: &str, count: u8| json!({"type": "array", "items": {"type": "string"}, (limit): count});
    json!({"oneOf": [
        closed(&[], json!({"mode": {"const": "all"}, "names": names("maxItems", 0)})),
        closed(&["mode", "names"], json!({"mode": {"const": "include"}, "names": names("minItems", 1)}))
    ]})
}

/// An arm of the union: its own properties, and what every tool may say.
fn arm(kind: &str, required: &[&str], properties: Value, description: &str) -> Value {
    let mut all = json!({"type": {"const": kind}});
    let common = json!({
        "permission": {"$ref": "#/$defs/permission"},
        "render": {"type": ["object", "null"], "default": null, "description": "How a client shows a call; passed on unread."}
    });
    for (key, schema) in [properties, common].into_iter().flat_map(entries) {
        all[key] = schema;
    }
    let required: Vec<&str> = std::iter::once("type").chain(required.iter().copied()).collect();
    let mut arm = closed(&required, all);
    arm["description"] = description.into();
    arm
}

fn entries(object: Value) -> Map<String, Value> {
    match object {
        Value::Object(entries) => entries,
        _ => Map::new(),
    }
}

fn closed(required: &[&str], properties: Value) -> Value {
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

fn text() -> Value {
    json!({"type": "string", "minLength": 1})
}

fn optional_text(description: &str) -> Value {
    json!({"type": ["string", "null"], "minLength": 1, "default": null, "description": description})
}

fn note() -> Value {
    json!({"type": ["string", "null"], "default": null})
}

fn input_schema() -> Value {
    json!({"type": "object", "default": {"type": "object", "properties": {}}, "description": "The JSON Schema of the arguments."})
}

#[cfg(test)]
mod tests {
    use super::super::coerce;
    use super::*;

    /// As much of JSON Schema as the document uses, patterns aside.
    fn fits(root: &Value, schema: &Value, value: &Value) -> bool {
        let Some(keywords) = schema.as_object() else { return schema == &json!(true) };
        keywords.iter().all(|(keyword, rule)| keyword_fits(root, schema, keyword, rule, value))
    }

    fn keyword_fits(root: &Value, schema: &Value, keyword: &str, rule: &Value, value: &Value) -> bool {
        let count = |schemas: &Value| schemas.as_array().unwrap().iter().filter(|schema| fits(root, schema, value)).count();
        let limit = || usize::try_from(rule.as_u64().unwrap()).unwrap();
        match keyword {
            "$ref" => fits(root, root.pointer(rule.as_str().unwrap().trim_start_matches('#')).unwrap(), value),
            "oneOf" => count(rule) == 1,
            "anyOf" => count(rule) > 0,
            "not" => !fits(root, rule, value),
            "const" => rule == value,
            "enum" => rule.as_array().unwrap().contains(value),
            "type" => rule == type_of(value) || rule.as_array().is_some_and(|types| types.contains(&type_of(value).into())),
            "minProperties" => value.as_object().is_none_or(|fields| fields.len() >= limit()),
            "minLength" => value.as_str().is_none_or(|text| text.chars().count() >= limit()),
            "maxLength" => value.as_str().is_none_or(|text| text.chars().count() <= limit()),
            "minItems" => value.as_array().is_none_or(|items| items.len() >= limit()),
            "maxItems" => value.as_array().is_none_or(|items| items.len() <= limit()),
            "items" => value.as_array().is_none_or(|items| items.iter().all(|item| fits(root, rule, item))),
            "required" => {
                value.as_object().is_none_or(|fields| rule.as_array().unwrap().iter().all(|key| fields.contains_key(key.as_str().unwrap())))
            }
            "properties" => value
                .as_object()
                .is_none_or(|fields| fields.iter().all(|(key, field)| rule.get(key).is_none_or(|rule| fits(root, rule, field)))),
            "additionalProperties" => value
                .as_object()
                .is_none_or(|fields| fields.iter().all(|(key, field)| schema["properties"].get(key).is_some() || fits(root, rule, field))),
            "$schema" | "$defs" | "title" | "description" | "default" | "examples" | "pattern" | "propertyNames" => true,
            other => panic!("`{other}` is not checked here"),
        }
    }

    fn type_of(value: &Value) -> &'static str {
        match value {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number(_) => "number",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        }
    }

    fn valid(key: &str, value: &Value) -> bool {
        let schema = json_schema();
        fits(&schema, &schema, &json!({(key): value}))
    }

    #[test]
    fn what_is_accepted_fits_as_written_and_as_written_back() {
        for tool in [
            json!({"type": "builtin", "name": "read"}),
            json!({"type": "gateway", "integration": "github", "action": "X", "connection": "main", "name": null, "permission": null}),
            json!({"type": "gateway", "provider": "native", "integration": "github", "action": "X", "connection": "main", "permission": "ask"}),
            json!({"type": "gateway", "integration": "github", "action": "X", "input_schema": {}, "description": "", "provider_action": "X"}),
            json!({"type": "code", "name": "n", "script": "s", "runtime": "node", "secrets": ["a"], "render": {"kind": "connect"}}),
            json!({"type": "client", "name": "n", "description": "", "input_schema": {}}),
            json!({"type": "reference", "slug": "a"}),
            json!({"type": "reference", "slug": "a", "version": "1", "environment": null, "name": "n"}),
            json!({"type": "reference", "ref_by": "environment", "slug": "a", "environment": "prod", "version": null}),
            json!({"type": "platform", "op": "x", "permission": "deny"}),
            json!({"type": "gateway_connection", "connection": {"integration": "github"}}),
            json!({"type": "gateway_connection", "connection": {"provider": "native", "integration": "x", "slug": "main"}, "policy": {"permissions": {"tools": {"A": "ask"}}}}),
        ] {
            assert!(valid("tools", &json!([tool])), "{tool}");
            let back = serde_json::to_value(coerce(&tool).unwrap()).unwrap();
            assert!(valid("tools", &json!([back])), "{back}");
        }
    }

    #[test]
    fn an_embed_has_its_arm() {
        let source = json!({"workflow": {"slug": "kit"}});
        for (embed, fits) in [
            (json!({"@ag.references": source, "@ag.selector": {"path": "parameters.tool"}}), true),
            (json!({"@ag.references": source}), true),
            (json!({"@ag.references": {}}), false),
            (json!({"@ag.selector": {"path": "parameters.tool"}}), false),
            (json!({"@ag.references": source, "permission": "deny"}), false),
        ] {
            assert_eq!(valid("tools", &json!([{"@ag.embed": embed}])), fits, "{embed}");
        }
        assert!(!valid("tools", &json!([{"@ag.embed": {"@ag.references": source}, "permission": "deny"}])));
    }

    #[test]
    fn what_is_refused_does_not_fit() {
        for tool in [
            json!(null),
            json!({"type": "other", "name": "n"}),
            json!({"type": "builtin", "name": ""}),
            json!({"type": "builtin", "name": "read", "extra": 1}),
            json!({"type": "gateway", "integration": "github", "connection": "main"}),
            json!({"type": "gateway", "provider": null, "integration": "github", "action": "X", "connection": "main"}),
            json!({"type": "code", "name": "n", "script": "s", "runtime": "ruby"}),
            json!({"type": "client", "name": "n", "input_schema": null}),
            json!({"type": "reference", "slug": "a", "version": ""}),
            json!({"type": "reference", "slug": "a", "environment": "prod"}),
            json!({"type": "reference", "ref_by": "environment", "slug": "a"}),
            json!({"type": "reference", "ref_by": "environment", "slug": "a", "environment": "p", "version": "1"}),
            json!({"type": "platform", "op": "x", "permission": "maybe"}),
            json!({"type": "gateway_connection"}),
            json!({"type": "gateway_connection", "connection": {"integration": "x", "extra": 1}}),
            json!({"type": "gateway_connection", "connection": {"integration": "x"}, "permission": "deny"}),
            json!({"type": "gateway_connection", "connection": {"integration": "x"}, "policy": {"permissions": {"default": "never"}}}),
            json!({"type": "gateway_connection", "connection": {"integration": "x"}, "policy": {"permissions": {"tools": {"A": null}}}}),
        ] {
            assert!(!valid("tools", &json!([tool])), "{tool}");
            assert!(coerce(&tool).is_err(), "{tool}");
        }
    }

    #[test]
    fn servers_and_permissions_are_described() {
        let server = json!({"name": "docs", "connection": {"type": "http", "url": "https://x"}});
        let with = |pointer: &str, key: &str, value: Value| {
            let mut server = server.clone();
            server.pointer_mut(pointer).unwrap()[key] = value;
            json!([server])
        };
        let secret = json!({"type": "header_secret_refs", "headers": {"Authorization": "token"}});
        for (key, value, expected) in [
            ("tools", json!(null), true),
            ("mcps", json!([server]), true),
            ("mcps", with("/connection", "credentials", secret), true),
            ("mcps", with("/connection", "credentials", json!({"type": "none"})), true),
            ("mcps", with("/connection", "headers", json!({"X": ""})), false),
            ("mcps", with("/connection", "type", json!("stdio")), false),
            ("mcps", with("", "name", json!("agenta-tools")), false),
            ("mcps", with("", "policy", json!({"tools": {"mode": "include", "names": ["a"]}, "permission": "ask"})), true),
            ("mcps", with("", "policy", json!({"tools": {"mode": "all", "names": []}, "permission": null})), true),
            ("mcps", with("", "policy", json!({"tools": {"mode": "all", "names": ["a"]}})), false),
            ("mcps", with("", "policy", json!({"tools": {"mode": "include", "names": []}})), false),
            ("mcps", with("", "extra", json!(1)), false),
            ("permissions", json!({"default": "deny", "rules": [{"pattern": "Bash(rm:*)", "permission": "deny"}]}), true),
            ("permissions", json!({"default": "sometimes"}), false),
            ("runner", json!({"kind": "x", "permissions": {"default": "allow_reads"}}), true),
            ("runner", json!({"model": "x"}), false),
            ("harness", json!({"permissions": {"deny": ["Bash"], "allow": []}}), true),
            ("anything", json!(1), true),
        ] {
            assert_eq!(valid(key, &value), expected, "{key}: {value}");
        }
    }
}
