//! Tool definitions as model APIs accept them: OpenAI, Anthropic, Gemini and MCP. Pure: values in, values out.

mod gemini;
mod inline;
mod name;
mod schema;
mod types;
mod validate;

use std::fmt;
use std::str::FromStr;

use serde_json::{Map, Value, json};

pub use name::{NameCollision, NameTable, function_name, is_hashed};
pub use types::expand_types;
pub use validate::validate;

/// The most characters of a function's description that OpenAI accepts.
const OPENAI_DESCRIPTION: usize = 1024;

/// An API that takes tool definitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    OpenAi,
    Anthropic,
    Gemini,
    Mcp,
}

/// A name that is no format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a tool format: use `openai`, `anthropic`, `gemini` or `mcp`")]
pub struct UnknownFormat(String);

impl Format {
    /// Every format.
    pub const ALL: [Self; 4] = [Self::OpenAi, Self::Anthropic, Self::Gemini, Self::Mcp];

    /// The format's name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
            Self::Mcp => "mcp",
        }
    }

    /// Whether the API accepts a property of this name.
    fn accepts_key(self, key: &str) -> bool {
        let word = |extra: &[u8]| (1..=64).contains(&key.len()) && key.bytes().all(|b| b.is_ascii_alphanumeric() || extra.contains(&b));
        match self {
            Self::OpenAi | Self::Mcp => true,
            Self::Anthropic => word(b"_.-"),
            Self::Gemini => word(b"_") && !key.starts_with(|first: char| first.is_ascii_digit()),
        }
    }
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        Self::ALL.into_iter().find(|format| format.name() == name).ok_or_else(|| UnknownFormat(name.chars().take(40).collect()))
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a definition says about a tool.
#[derive(Clone, Copy, Debug)]
pub struct ToolView<'a> {
    /// A call ref or a function name.
    pub name: &'a str,
    pub description: &'a str,
    pub input_schema: &'a Value,
    pub output_schema: Option<&'a Value>,
    pub read_only: Option<bool>,
    pub destructive: Option<bool>,
}

/// The definition of a tool, ready to be sent to the API as it is.
pub fn definition(format: Format, tool: &ToolView<'_>) -> Value {
    let name = function_name(tool.name);
    let description = if tool.description.trim().is_empty() { tool.name } else { tool.description };
    match format {
        Format::OpenAi => {
            let description = shorten(description, OPENAI_DESCRIPTION);
            let parameters = schema::input(format, tool.input_schema);
            json!({"type": "function", "function": {"name": name, "description": description, "parameters": parameters}})
        }
        Format::Anthropic => json!({"name": name, "description": description, "input_schema": schema::input(format, tool.input_schema)}),
        Format::Gemini => gemini(&name, description, tool),
        Format::Mcp => mcp(&name, description, tool),
    }
}

/// Gemini refuses a root without properties, so a function without parameters leaves them out.
fn gemini(name: &str, description: &str, tool: &ToolView<'_>) -> Value {
    let mut definition = json!({"name": name, "description": description});
    let parameters = schema::gemini_input(tool.input_schema);
    if parameters.contains_key("properties") {
        definition["parameters"] = Value::Object(parameters);
    }
    definition
}

fn mcp(name: &str, description: &str, tool: &ToolView<'_>) -> Value {
    let mut definition = json!({"name": name, "description": description, "inputSchema": schema::input(Format::Mcp, tool.input_schema)});
    if let Some(output) = tool.output_schema.and_then(schema::output) {
        definition["outputSchema"] = output;
    }
    let hints = [("readOnlyHint", tool.read_only), ("destructiveHint", tool.destructive)];
    let hints: Map<String, Value> = hints.into_iter().filter_map(|(hint, value)| Some((hint.to_owned(), value?.into()))).collect();
    if !hints.is_empty() {
        definition["annotations"] = Value::Object(hints);
    }
    definition
}

/// At most `max` characters, cut at a word.
fn shorten(text: &str, max: usize) -> String {
    let Some((end, _)) = text.char_indices().nth(max) else {
        return text.to_owned();
    };
    // One character is for the ellipsis.
    let kept = &text[..text[..end].char_indices().next_back().map_or(0, |(last, _)| last)];
    let words = kept.rfind(char::is_whitespace).map_or(kept, |space| &kept[..space]);
    format!("{}…", words.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn view(input_schema: &Value) -> ToolView<'_> {
        let name = "tools.native.github.CREATE_AN_ISSUE.main";
        ToolView { name, description: "Opens an issue.", input_schema, output_schema: None, read_only: None, destructive: None }
    }

    /// The schema as the format gives it, once the definition is known to be valid.
    fn lowered(format: Format, input_schema: &Value) -> Value {
        let definition = definition(format, &view(input_schema));
        assert_eq!(validate(format, &definition), Ok(()), "{definition:#}");
        let pointer = match format {
            Format::OpenAi => "/function/parameters",
            Format::Anthropic => "/input_schema",
            Format::Gemini => "/parameters",
            Format::Mcp => "/inputSchema",
        };
        definition.pointer(pointer).cloned().unwrap_or_default()
    }

    /// A property as the format gives it.
    fn property(format: Format, schema: &Value) -> Value {
        lowered(format, &json!({"type": "object", "properties": {"p": schema}}))["properties"]["p"].clone()
    }

    #[test]
    fn a_long_chain_of_references_ends_in_a_free_form() {
        let next = |at: usize| {
            (format!("d{at}"), json!({"$ref": format!("#/$defs/d{}", at + 1), "type": "string", "description": format!("Part {at}.")}))
        };
        let definitions: Map<String, Value> = (0..8_000).map(next).collect();
        let schema = json!({"type": "object", "properties": {"p": {"$ref": "#/$defs/d0"}}, "$defs": definitions});
        for format in Format::ALL {
            let property = &lowered(format, &schema)["properties"]["p"];
            assert_eq!(property["description"], "Part 0.", "{property}");
        }
    }

    #[test]
    fn formats_have_names() {
        for format in Format::ALL {
            assert_eq!(format.to_string().parse(), Ok(format));
        }
        assert!("OpenAI".parse::<Format>().is_err());
    }

    #[test]
    fn definitions_have_the_shape_of_their_api() {
        let input = json!({"type": "object", "properties": {"title": {"type": "string"}}, "required": ["title"]});
        let output = json!({"type": "object", "properties": {"id": {"type": "integer"}}});
        let tool = ToolView { output_schema: Some(&output), read_only: Some(false), destructive: Some(true), ..view(&input) };
        let (name, description) = ("tools__native__github__CREATE_AN_ISSUE__main", "Opens an issue.");
        for (format, expected) in [
            (Format::OpenAi, json!({"type": "function", "function": {"name": name, "description": description, "parameters": input}})),
            (Format::Anthropic, json!({"name": name, "description": description, "input_schema": input})),
            (Format::Gemini, json!({"name": name, "description": description, "parameters": input})),
            (
                Format::Mcp,
                json!({"name": name, "description": description, "inputSchema": input,
                    "outputSchema": {"type": "object", "properties": {"id": {"type": ["integer", "null"]}}},
                    "annotations": {"readOnlyHint": false, "destructiveHint": true}}),
            ),
        ] {
            assert_eq!(definition(format, &tool), expected);
        }
    }

    #[test]
    fn a_tool_without_parameters_has_an_empty_object_except_for_gemini() {
        for schema in [json!({}), json!({"type": "object"}), json!(true), json!(null), json!({"type": "array"})] {
            for format in [Format::OpenAi, Format::Anthropic, Format::Mcp] {
                assert_eq!(lowered(format, &schema)["properties"], json!({}));
            }
            assert_eq!(lowered(Format::Gemini, &schema), Value::Null);
        }
    }

    #[test]
    fn an_output_that_is_no_object_stands_in_result() {
        let input = json!({});
        let list = json!({"type": "array", "items": {"type": "object", "required": ["id"], "properties": {"id": {"type": "integer"}}}});
        let items = json!({"type": ["object", "null"], "properties": {"id": {"type": ["integer", "null"]}}});
        for (output, expected) in [
            (list, Some(json!({"type": "object", "properties": {"result": {"type": ["array", "null"], "items": items}}}))),
            (json!({"type": "string"}), Some(json!({"type": "object", "properties": {"result": {"type": ["string", "null"]}}}))),
            (json!({"properties": {"a": {}}}), Some(json!({"type": "object", "properties": {"a": {}}}))),
            (json!({}), None),
        ] {
            let definition = definition(Format::Mcp, &ToolView { output_schema: Some(&output), ..view(&input) });
            assert_eq!(validate(Format::Mcp, &definition), Ok(()));
            assert_eq!(definition.get("outputSchema").cloned(), expected);
        }
    }

    #[test]
    fn long_descriptions_end_at_a_word_for_openai() {
        let (input, description) = (json!({}), "word ".repeat(300));
        let tool = ToolView { description: &description, ..view(&input) };
        let text = definition(Format::OpenAi, &tool)["function"]["description"].as_str().unwrap().to_owned();
        assert!(text.ends_with("word…") && (1015..=1024).contains(&text.chars().count()), "{text}");
        assert_eq!(definition(Format::Anthropic, &tool)["description"], description);
        assert_eq!(shorten("äöü", 3), "äöü");
        assert_eq!(shorten("äöüß", 3), "äö…");
    }

    #[test]
    fn references_are_inlined() {
        let schema = json!({
            "type": "object",
            "properties": {
                "here": {"$ref": "#/$defs/node", "description": "Mine"},
                "far": {"$ref": "https://example.com/schema.json"},
                "nowhere": {"$ref": "#/$defs/missing"},
                "self": {"$ref": "#"},
            },
            "$defs": {"node": {
                "type": "object", "description": "Theirs",
                "properties": {"child": {"$ref": "#/$defs/node"}, "all": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
            }},
        });
        let cut = json!({"type": "object", "description": "Theirs"});
        let expected = json!({
            "type": "object",
            "properties": {
                "here": {"description": "Mine", "type": "object", "properties": {"child": cut, "all": {"type": "array", "items": cut}}},
                "far": {"description": "Any value as `https://example.com/schema.json` defines it."},
                "nowhere": {"description": "Any value as `#/$defs/missing` defines it."},
                "self": {"type": "object"},
            },
        });
        for format in [Format::OpenAi, Format::Anthropic, Format::Mcp] {
            assert_eq!(lowered(format, &schema), expected);
        }
        assert_eq!(lowered(Format::Gemini, &schema)["properties"]["self"], json!({"type": "object"}));
    }

    #[test]
    fn a_deep_schema_becomes_free_form_and_a_huge_one_shallow() {
        let deep = (0..30).fold(json!({"type": "string"}), |inner, _| json!({"type": "object", "properties": {"p": inner}}));
        let names: Map<String, Value> = (0..20).map(|n| (format!("f{n}"), json!({"$ref": format!("#/$defs/d{n}")}))).collect();
        let wide: Map<String, Value> = (0..20).map(|n| (format!("d{n}"), json!({"type": "object", "properties": names}))).collect();
        let wide = json!({"type": "object", "properties": names, "$defs": wide});
        for format in Format::ALL {
            lowered(format, &deep);
            assert!(lowered(format, &wide).to_string().len() < 500_000);
        }
    }

    #[test]
    fn root_alternatives_become_one_object() {
        let schema = json!({
            "type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "not": {"required": ["z"]},
            "allOf": [{"properties": {"b": {"type": "integer"}}, "required": ["b"]}],
            "anyOf": [
                {"properties": {"c": {"type": "string"}}, "required": ["c", "e"]},
                {"properties": {"c": {"type": "integer"}, "d": {}}, "required": ["d", "e"]},
                {"type": "array"},
            ],
        });
        let root = lowered(Format::Anthropic, &schema);
        assert_eq!(root["properties"]["c"], json!({"anyOf": [{"type": "string"}, {"type": "integer"}]}));
        assert_eq!(root["required"], json!(["a", "b", "e"]));
        assert_eq!(root["description"], "Also needs `c` or `d`.");
        assert_eq!(lowered(Format::Gemini, &schema)["required"], json!(["a", "b"]), "`e` is not defined anywhere");
    }

    #[test]
    fn older_drafts_become_the_current_one() {
        for (old, new) in [
            (json!({"type": "string", "nullable": true}), json!({"type": ["string", "null"]})),
            (json!({"type": "number", "minimum": 0, "exclusiveMinimum": true}), json!({"type": "number", "exclusiveMinimum": 0})),
            (json!({"type": "array"}), json!({"type": "array", "items": {}})),
            (
                json!({"type": "array", "items": [{"type": "string"}]}),
                json!({"type": "array", "items": {}, "prefixItems": [{"type": "string"}]}),
            ),
            (json!({"type": "file", "required": true, "x-go": 1}), json!({"type": "string"})),
            (json!({"type": "any", "enum": [], "minItems": "1", "examples": {}}), json!({})),
            (json!({"oneOf": [{"type": "string"}, true]}), json!({"anyOf": [{"type": "string"}, {}]})),
            (json!({"type": "string", "not": {"const": "a"}}), json!({"type": "string", "not": {"const": "a"}})),
            (json!({"type": "string", "not": {"$ref": "#/nowhere"}}), json!({"type": "string"})),
        ] {
            assert_eq!(property(Format::OpenAi, &old), new);
        }
    }

    #[test]
    fn gemini_gets_its_subset() {
        let any = json!([{"type": "string"}, {"type": "number"}, {"type": "boolean"}, {"type": "object"}]);
        for (schema, expected) in [
            (json!({"type": ["string", "null"]}), json!({"type": "string", "nullable": true})),
            (
                json!({"type": ["string", "integer"], "description": "Id", "minLength": 1, "minimum": 2}),
                json!({"anyOf": [{"type": "string", "minLength": 1, "description": "Id"}, {"type": "integer", "minimum": 2}]}),
            ),
            (json!({"const": "a"}), json!({"type": "string", "enum": ["a"]})),
            (json!({"enum": ["a", "", null]}), json!({"type": "string", "nullable": true, "enum": ["a"]})),
            (json!({"type": "integer", "enum": [1, 2]}), json!({"type": "integer", "description": "One of: `1`, `2`."})),
            (json!({"type": "string", "format": "uri"}), json!({"type": "string"})),
            (json!({"type": "string", "format": "date-time"}), json!({"type": "string", "format": "date-time"})),
            (json!({"type": "integer", "exclusiveMinimum": 0}), json!({"type": "integer", "minimum": 1})),
            (json!({"type": "object", "additionalProperties": {"type": "string"}}), json!({"type": "object"})),
            (json!({"type": "object", "properties": {}, "required": ["x"]}), json!({"type": "object"})),
            (json!({"type": "array"}), json!({"type": "array", "items": {"anyOf": any}})),
            (json!({"oneOf": [{"type": "string"}, {"type": "null"}], "title": "T"}), json!({"type": "string", "nullable": true})),
            (
                json!({"description": "Who", "anyOf": [{"type": "string", "description": "Name."}, {"type": "boolean"}]}),
                json!({"anyOf": [{"type": "string", "description": "Who. Name."}, {"type": "boolean"}]}),
            ),
            (
                json!({"allOf": [{"type": "string", "minLength": 1}, {"minLength": 3, "maxLength": 9}]}),
                json!({"type": "string", "minLength": 3, "maxLength": 9}),
            ),
            (
                json!({"type": "object", "properties": {"a": {"type": "string"}}, "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}),
                json!({"type": "object", "description": "Also needs `a` or `b`.", "properties": {"a": {"type": "string"}}}),
            ),
        ] {
            assert_eq!(property(Format::Gemini, &schema), expected, "{schema}");
        }
    }

    #[test]
    fn keys_that_an_api_refuses_are_described_instead() {
        let schema = json!({
            "type": "object", "additionalProperties": false, "required": ["ok", "q[x]"],
            "properties": {"ok": {"type": "string"}, "q[x]": {"type": "string"}, "per-page": {"type": "integer"}},
        });
        assert_eq!(lowered(Format::OpenAi, &schema), schema);
        let anthropic = lowered(Format::Anthropic, &schema);
        assert_eq!(anthropic["description"], "Also takes `q[x]`. Needs `q[x]`.");
        assert_eq!((&anthropic["required"], anthropic.get("additionalProperties")), (&json!(["ok"]), None));
        assert_eq!(lowered(Format::Gemini, &schema)["properties"], json!({"ok": {"type": "string"}}));
    }

    #[test]
    fn the_check_finds_what_apis_refuse() {
        let name = "f";
        for (format, definition) in [
            (Format::OpenAi, json!({"name": name})),
            (Format::Anthropic, json!({"name": "a.b", "description": "d", "input_schema": {"type": "object", "properties": {}}})),
            (
                Format::Anthropic,
                json!({"name": name, "description": "d", "input_schema": {"type": "object", "properties": {}, "anyOf": [{}]}}),
            ),
            (Format::Anthropic, json!({"name": name, "description": "d", "input_schema": {"type": "object", "properties": {"a b": {}}}})),
            (Format::Mcp, json!({"name": name, "description": "d", "inputSchema": {"type": "object", "properties": {"a": {"$ref": "#"}}}})),
            (
                Format::Mcp,
                json!({"name": name, "description": "d", "inputSchema": {"type": "object", "properties": {"a": {"type": "array"}}}}),
            ),
            (Format::Gemini, json!({"name": name, "description": "d", "parameters": {"type": "object", "properties": {}}})),
            (Format::Gemini, json!({"name": name, "description": "d", "parameters": {"type": "object", "properties": {"a": {}}}})),
        ] {
            assert!(validate(format, &definition).is_err(), "{definition}");
        }
    }

    fn check_everywhere(name: &str, input_schema: &Value) {
        for format in Format::ALL {
            let tool = ToolView { name, ..view(input_schema) };
            assert_eq!(validate(format, &definition(format, &tool)), Ok(()), "{name} for {format}");
        }
    }

    #[test]
    fn the_operations_of_github_are_valid_everywhere() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/npm/node_modules/@octokit/openapi/generated/api.github.com.json");
        let text = std::fs::read(path).unwrap_or_else(|error| panic!("{path}: {error}; `./test` installs it"));
        let document: Value = serde_json::from_slice(&text).unwrap();
        let mut tool = json!({"type": "object", "components": document["components"]});
        let mut checked = 0;
        for operation in document["paths"].as_object().unwrap().values().flat_map(|path| path.as_object().unwrap().values()) {
            let Some(id) = operation["operationId"].as_str() else { continue };
            let mut properties = Map::new();
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                let reference = parameter["$ref"].as_str().and_then(|reference| document.pointer(reference.strip_prefix('#')?));
                let parameter = reference.unwrap_or(parameter);
                properties.insert(parameter["name"].as_str().unwrap().to_owned(), parameter["schema"].clone());
            }
            if let Some(body) = operation.pointer("/requestBody/content/application~1json/schema") {
                let mut alone = body.clone();
                alone["components"] = tool["components"].take();
                check_everywhere(id, &alone);
                tool["components"] = alone["components"].take();
            }
            tool["properties"] = Value::Object(properties);
            check_everywhere(id, &tool);
            checked += 1;
        }
        assert!(checked > 900, "{checked}");
    }
}
