//! JSON Schema checks. The only module that names the validator.

mod cost;
mod unfold;

use std::collections::BTreeSet;
use std::fmt;

use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

use crate::json::size;

/// How many violations are reported at once.
const MAX_VIOLATIONS: usize = 8;
/// How large one regular expression may become, how far it may be tried at one text, and how many different ones a schema may hold.
const MAX_PATTERN: usize = 128 << 10;
const MAX_TRIES: usize = 10_000;
const MAX_PATTERNS: usize = 100;
/// Patterns that look around or back take up to the square of a text's length: how much of that one check may be.
const MAX_LOOKING: usize = 4_000_000;
/// As much work as reading this many bytes: applying one schema once, and making a regular expression.
const APPLICATION: usize = 16;
const PATTERN: usize = 16 << 10;

/// A compiled JSON Schema.
pub struct Schema {
    validator: Validator,
    /// Nothing for a schema whose checks are as long as the value.
    cost: Option<cost::Cost>,
    /// How many patterns there are, if some of them look around or back.
    looking: usize,
}

impl fmt::Debug for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Schema")
    }
}

/// A document that is not a JSON Schema.
#[derive(Debug, thiserror::Error)]
#[error("not a valid JSON Schema: {0}")]
pub struct SchemaError(String);

/// Why a value was not taken.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// What is wrong with the value, in one line.
    #[error("{0}")]
    Value(String),
}

/// One place where a value breaks its schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// JSON Pointer into the value; empty for the value itself.
    pub path: String,
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.path.is_empty() { f.write_str(&self.message) } else { write!(f, "`{}`: {}", self.path, self.message) }
    }
}

impl Violation {
    fn whole(message: &str) -> Self {
        Self { path: String::new(), message: message.to_owned() }
    }

    /// All of them in one line.
    pub fn join(violations: &[Self]) -> String {
        let texts: Vec<String> = violations.iter().map(ToString::to_string).collect();
        texts.join("; ")
    }
}

impl Schema {
    /// Compiles a schema. References to other documents are refused: nothing here reads files or the network.
    pub fn compile(schema: &Value) -> Result<Self, SchemaError> {
        let known = unfold::check(schema).map_err(SchemaError)?;
        let cost = known.map(|known| cost::Cost::of(schema, &known)).transpose().map_err(SchemaError)?;
        let mut patterns = BTreeSet::new();
        collect_patterns(schema, &mut patterns);
        if patterns.len() > MAX_PATTERNS {
            return Err(SchemaError(format!("it holds more than {MAX_PATTERNS} regular expressions")));
        }
        let options = || jsonschema::options().should_validate_formats(false);
        let linear = PatternOptions::regex().size_limit(MAX_PATTERN).dfa_size_limit(MAX_PATTERN);
        if let Ok(validator) = options().with_pattern_options(linear).build(schema) {
            return Ok(Self { validator, cost, looking: 0 });
        }
        let limits = PatternOptions::fancy_regex().size_limit(MAX_PATTERN).dfa_size_limit(MAX_PATTERN).backtrack_limit(MAX_TRIES);
        let validator = options().with_pattern_options(limits).build(schema).map_err(|error| SchemaError(error.to_string()))?;
        Ok(Self { validator, cost, looking: patterns.len() })
    }

    /// About how much work a check is, in bytes to look at; what is more than `most` is not counted to its end.
    pub fn weigh(&self, value: &Value, most: usize) -> usize {
        let size = size(value, most);
        if size >= most {
            return size;
        }
        let applications = self.cost.as_ref().map_or(0, |cost| cost.of_check(value).unwrap_or(0));
        let looking = if self.looking > 0 { squares(value).saturating_mul(self.looking) } else { 0 };
        size.saturating_add(looking).saturating_add(usize::try_from(applications).unwrap_or(most).saturating_mul(APPLICATION)).min(most)
    }

    /// Checks a value; the violations are in document order and never repeat the whole value.
    pub fn check(&self, value: &Value) -> Result<(), Vec<Violation>> {
        if self.cost.as_ref().is_some_and(|cost| cost.of_check(value).is_none()) {
            return Err(vec![Violation::whole("it is too much work to check against its schema: nested too deeply, or too large")]);
        }
        if self.looking > 0 && squares(value).saturating_mul(self.looking) > MAX_LOOKING {
            return Err(vec![Violation::whole("its texts are too long for the regular expressions in its schema")]);
        }
        if self.validator.is_valid(value) {
            return Ok(());
        }
        Err(self
            .validator
            .iter_errors(value)
            .take(MAX_VIOLATIONS)
            .map(|error| Violation { path: error.instance_path().to_string(), message: shorten(error.masked().to_string()) })
            .collect())
    }
}

/// About how much work it is to compile a schema, in bytes to look at; what is more than `most` is not counted to its end.
pub fn weigh(schema: &Value, most: usize) -> usize {
    let size = size(schema, most);
    if size >= most {
        return size;
    }
    let mut patterns = BTreeSet::new();
    collect_patterns(schema, &mut patterns);
    patterns.len().saturating_mul(PATTERN).saturating_add(size).min(most)
}

/// Checks a value against a schema that is used only this once.
pub fn check(schema: &Value, value: &Value) -> Result<(), CheckError> {
    Schema::compile(schema)?.check(value).map_err(|violations| CheckError::Value(Violation::join(&violations)))
}

fn collect_patterns<'a>(value: &'a Value, into: &mut BTreeSet<&'a str>) {
    match value {
        Value::Object(fields) => {
            into.extend(fields.get("pattern").and_then(Value::as_str));
            into.extend(
                fields.get("patternProperties").and_then(Value::as_object).into_iter().flatten().map(|(pattern, _)| pattern.as_str()),
            );
            fields.values().for_each(|field| collect_patterns(field, into));
        }
        Value::Array(items) => items.iter().for_each(|item| collect_patterns(item, into)),
        _ => {}
    }
}

/// The squares of the lengths of all texts, names included.
fn squares(value: &Value) -> usize {
    let square = |text: &str| text.len().saturating_mul(text.len());
    match value {
        Value::String(text) => square(text),
        Value::Array(items) => items.iter().map(squares).fold(0, usize::saturating_add),
        Value::Object(fields) => {
            fields.iter().map(|(name, field)| square(name).saturating_add(squares(field))).fold(0, usize::saturating_add)
        }
        _ => 0,
    }
}

fn shorten(mut message: String) -> String {
    const MAX: usize = 300;
    if message.len() > MAX {
        let end = (0..=MAX).rev().find(|&end| message.is_char_boundary(end)).unwrap_or(0);
        message.truncate(end);
        message.push('…');
    }
    message
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn violations_name_their_place() {
        let schema = Schema::compile(&json!({
            "type": "object",
            "properties": {"title": {}, "labels": {"type": "array", "items": {"type": "string"}}},
            "required": ["title"],
            "additionalProperties": false
        }))
        .unwrap();
        assert_eq!(schema.check(&json!({"title": "x"})), Ok(()));
        let violations = schema.check(&json!({"labels": ["a", 7], "more": 1})).unwrap_err();
        let texts: Vec<String> = violations.iter().map(ToString::to_string).collect();
        assert!(texts.iter().any(|text| text.starts_with("`/labels/1`")), "{texts:?}");
        assert!(texts.iter().any(|text| text.contains("\"title\"")), "{texts:?}");
        assert!(texts.iter().any(|text| text.contains("more")), "{texts:?}");
    }

    #[test]
    fn a_schema_that_reaches_outside_is_refused() {
        assert!(Schema::compile(&json!({"$ref": "https://example.com/schema.json"})).is_err());
        assert!(Schema::compile(&json!({"type": "nonsense"})).is_err());
    }

    #[test]
    fn regular_expressions_have_a_size() {
        let with = |pattern: &str| Schema::compile(&json!({"properties": {"a": {"pattern": pattern}}}));
        assert!(with(r"^[\w.-]{1,100}$").is_ok());
        for bomb in [r"((\w{1,100}){1,100}){1,100}", r"^\p{L}{1,300}$", r"(?!x)(\p{L}{1,90}){1,90}"] {
            let started = std::time::Instant::now();
            assert!(with(bomb).is_err(), "{bomb}");
            assert!(started.elapsed() < std::time::Duration::from_secs(2), "{bomb}");
        }
        let many = |count: usize| {
            let named = |at: usize| (format!("^{at}"), json!({"pattern": format!("{at}$")}));
            Schema::compile(&json!({"patternProperties": (0..count).map(named).collect::<serde_json::Map<_, _>>()}))
        };
        assert!(many(MAX_PATTERNS / 2).is_ok());
        assert!(many(MAX_PATTERNS / 2 + 1).is_err());
        let slow = with(r"^(a|a)*\1b$").unwrap();
        assert!(slow.check(&json!({"a": format!("{}!", "a".repeat(60))})).is_err());
    }

    #[test]
    fn regular_expressions_that_look_around_take_short_texts() {
        let with = |pattern: &str| Schema::compile(&json!({"properties": {"a": {"pattern": pattern}}})).unwrap();
        let slow = with("(?=a)(a+)+b");
        assert!(slow.check(&json!({"a": "aaab"})).is_ok());
        let started = std::time::Instant::now();
        let long = slow.check(&json!({"a": "a".repeat(40_000)})).unwrap_err();
        assert!(long[0].message.contains("too long"), "{long:?}");
        assert!(started.elapsed() < std::time::Duration::from_secs(2));
        assert!(slow.check(&json!({"a": "a".repeat(500)})).is_err());
        let linear = with(r"^(a+)+\d$");
        assert!(linear.check(&json!({"a": "a".repeat(400_000) + "1"})).is_ok());
        assert!(linear.check(&json!({"a": "a".repeat(400_000)})).is_err());
    }

    #[test]
    fn a_check_is_weighed_by_what_it_takes() {
        let plain = Schema::compile(&json!({"properties": {"a": {"type": "string"}}})).unwrap();
        assert!(plain.weigh(&json!({"a": "text"}), 1000) < 100);
        assert_eq!(plain.weigh(&json!({"a": "x".repeat(2000)}), 1000), 1000);
        let twice = json!({"items": {"$ref": "#/$defs/a"}});
        let tree = Schema::compile(&json!({"$defs": {"a": {"allOf": [twice, twice]}}, "$ref": "#/$defs/a"})).unwrap();
        let nested = (0..12).fold(json!([]), |inner, _| json!([inner]));
        assert!(tree.weigh(&nested, 1 << 20) > 10_000, "a short value, looked at again and again");
        let looking = Schema::compile(&json!({"pattern": "(?=a)(a+)+b"})).unwrap();
        assert_eq!(looking.weigh(&json!("a".repeat(500)), 100_000), 100_000);
        assert!(weigh(&json!({"properties": {"a": {"pattern": "a"}}}), 1 << 20) > PATTERN);
    }

    #[test]
    fn a_value_is_told_from_its_schema() {
        let schema = json!({"required": ["a", "b"]});
        assert!(check(&schema, &json!({"a": 1, "b": 2})).is_ok());
        assert!(matches!(check(&schema, &json!({})), Err(CheckError::Value(said)) if said.matches("; ").count() == 1));
        assert!(matches!(check(&json!({"type": "nonsense"}), &json!({})), Err(CheckError::Schema(_))));
    }
}
