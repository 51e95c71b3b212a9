//! Schemas of a document as plain JSON Schema 2020-12: without references, within a size, and with nothing that a validator would
//! refuse. Rules that cannot be kept are left out, so that a schema never refuses what the service takes.

use std::cell::RefCell;
use std::collections::HashMap;

use kernel::schema::Schema;
use serde_json::{Value, json};

use crate::document::{At, Bundle};
use crate::keywords::{Keywords, both, closed, count, distinct, length, nullable, object, put_bounds, put_types, types};
use crate::text::brief;

/// Levels of schemas inside one another.
const MAX_LEVELS: usize = 9;
const MAX_DESCRIPTION: usize = 300;
const MAX_ENUM: usize = 250;
const MAX_REQUIRED: usize = 500;
const MAX_PATTERN: usize = 300;
/// Longer defaults and examples are not worth their room.
const MAX_EXAMPLE: usize = 120;
/// How often a schema may stand inside itself.
const MAX_TURNS: usize = 2;
/// How many schemas may stand inside one another in all; parts that are put together are not counted as levels.
const MAX_TRAIL: usize = 30;
const CUT: &str = "Nested further than is shown here.";

/// Who a schema is for: what is read only is no part of what is sent, and the other way round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Side {
    Sent,
    Received,
}

/// Makes schemas from those of a bundle.
#[derive(Debug)]
pub(crate) struct Schemas<'a> {
    bundle: &'a Bundle,
    /// Which regular expressions can be used; they repeat a lot.
    patterns: RefCell<HashMap<String, bool>>,
    /// What was made already; operations share much.
    made: RefCell<HashMap<(*const Value, Side, usize), Keywords>>,
}

impl<'a> Schemas<'a> {
    pub(crate) fn new(bundle: &'a Bundle) -> Self {
        Self { bundle, patterns: RefCell::default(), made: RefCell::default() }
    }

    /// The schema at a place, of about `size` bytes at most: what is nested deepest is left open first.
    pub(crate) fn plain(&self, at: At<'a>, side: Side, size: usize) -> Keywords {
        let at = if at.value.as_object().is_some_and(|keywords| keywords.len() == 1) { self.bundle.resolve(at).unwrap_or(at) } else { at };
        let place = (at.place(), side, size);
        if let Some(known) = self.made.borrow().get(&place) {
            return known.clone();
        }
        let made = self.within(at, side, size);
        self.made.borrow_mut().insert(place, made.clone());
        made
    }

    fn within(&self, at: At<'a>, side: Side, size: usize) -> Keywords {
        if let Some(whole) = self.attempt(at, side, size, MAX_LEVELS) {
            return whole;
        }
        let mut best = None;
        for levels in 0..MAX_LEVELS {
            match self.attempt(at, side, size, levels) {
                Some(fits) => best = Some(fits),
                None => break,
            }
        }
        best.unwrap_or_else(|| object(json!({"description": CUT})))
    }

    fn attempt(&self, at: At<'a>, side: Side, size: usize, levels: usize) -> Option<Keywords> {
        let mut walk = Walk { schemas: self, side, left: size, trail: Vec::new() };
        walk.schema(at, levels).ok()
    }

    fn can_use(&self, pattern: &str) -> bool {
        if pattern.len() > MAX_PATTERN {
            return false;
        }
        if let Some(&known) = self.patterns.borrow().get(pattern) {
            return known;
        }
        let usable = Schema::compile(&json!({"type": "string", "pattern": pattern})).is_ok();
        self.patterns.borrow_mut().insert(pattern.to_owned(), usable);
        usable
    }
}

/// It does not fit.
struct TooLarge;

struct Walk<'s, 'a> {
    schemas: &'s Schemas<'a>,
    side: Side,
    /// Bytes that may still be made.
    left: usize,
    /// The schemas that this one stands in.
    trail: Vec<*const Value>,
}

impl<'a> Walk<'_, 'a> {
    fn spend(&mut self, bytes: usize) -> Result<(), TooLarge> {
        self.left = self.left.checked_sub(bytes + 4).ok_or(TooLarge)?;
        Ok(())
    }

    fn schema(&mut self, at: At<'a>, levels: usize) -> Result<Keywords, TooLarge> {
        let beside = at.value.get("$ref").is_some().then_some(at.value);
        let Ok(at) = self.schemas.bundle.resolve(at) else { return Ok(object(json!({"description": "Its description is missing."}))) };
        let Some(keywords) = at.value.as_object() else { return Ok(Keywords::new()) };
        let turns = self.trail.iter().filter(|place| **place == at.place()).count();
        let mut made = if turns >= MAX_TURNS || self.trail.len() >= MAX_TRAIL {
            self.cut(keywords)?
        } else {
            self.trail.push(at.place());
            let made = self.keywords(at, keywords, levels);
            self.trail.pop();
            made?
        };
        if let Some(beside) = beside {
            if let Some(text) = beside["description"].as_str() {
                made.insert("description".to_owned(), brief(text, MAX_DESCRIPTION).into());
            }
            if beside["nullable"] == true {
                made = nullable(made);
            }
        }
        Ok(made)
    }

    /// A schema that says what kind of value it is, and no more.
    fn cut(&mut self, keywords: &Keywords) -> Result<Keywords, TooLarge> {
        let mut made = Keywords::new();
        put_types(keywords, &mut made);
        let text = keywords.get("description").and_then(Value::as_str).map(|text| brief(text, MAX_DESCRIPTION / 3));
        let text = text.filter(|text| !text.is_empty()).map_or_else(|| CUT.to_owned(), |text| format!("{} {CUT}", closed(&text)));
        self.spend(text.len() + 20)?;
        made.insert("description".to_owned(), text.into());
        Ok(made)
    }

    fn keywords(&mut self, at: At<'a>, keywords: &'a Keywords, levels: usize) -> Result<Keywords, TooLarge> {
        let nests = ["properties", "items", "prefixItems", "allOf", "anyOf", "oneOf"].iter().any(|keyword| keywords.contains_key(*keyword));
        if levels == 0 && nests {
            return self.cut(keywords);
        }
        let mut made = Keywords::new();
        put_types(keywords, &mut made);
        self.spend(16)?;
        for (keyword, value) in keywords {
            if let Some(value) = self.flat(keyword, value) {
                self.spend(keyword.len() + length(&value))?;
                made.insert(keyword.clone(), value);
            }
        }
        put_bounds(keywords, &mut made);
        self.object(at, keywords, levels, &mut made)?;
        self.array(at, keywords, levels, &mut made)?;
        made = self.combined(at, keywords, levels, made)?;
        if let Some(example) = self.example(keywords) {
            self.spend(length(&example) + 12)?;
            made.insert("examples".to_owned(), json!([example]));
        }
        Ok(if keywords.get("nullable") == Some(&Value::Bool(true)) { nullable(made) } else { made })
    }

    /// A keyword that holds no schemas, if it has its proper shape.
    fn flat(&self, keyword: &str, value: &Value) -> Option<Value> {
        match keyword {
            "description" => value.as_str().map(|text| brief(text, MAX_DESCRIPTION)).filter(|text| !text.is_empty()).map(Value::from),
            "enum" => value.as_array().filter(|list| !list.is_empty() && list.len() <= MAX_ENUM).map(|list| distinct(list).into()),
            "const" => Some(value.clone()),
            "default" if self.side == Side::Sent => (length(value) <= MAX_EXAMPLE).then(|| value.clone()),
            "format" => value.as_str().filter(|format| format.len() <= 40).map(Value::from),
            "pattern" => value.as_str().filter(|pattern| self.schemas.can_use(pattern)).map(Value::from),
            "minimum" | "maximum" => value.is_number().then(|| value.clone()),
            "multipleOf" => value.as_f64().filter(|number| *number > 0.0).map(|_| value.clone()),
            "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties" => count(value).map(Value::from),
            "uniqueItems" => value.as_bool().map(Value::from),
            _ => None,
        }
    }

    fn example(&self, keywords: &Keywords) -> Option<Value> {
        if self.side != Side::Sent || keywords.contains_key("enum") || keywords.contains_key("default") {
            return None;
        }
        let example = keywords.get("example").or_else(|| keywords.get("examples").and_then(|list| list.get(0)))?;
        (length(example) <= MAX_EXAMPLE && !example.is_null()).then(|| example.clone())
    }

    fn object(&mut self, at: At<'a>, keywords: &'a Keywords, levels: usize, made: &mut Keywords) -> Result<(), TooLarge> {
        let mut left_out = Vec::new();
        if let Some(properties) = keywords.get("properties").and_then(Value::as_object) {
            let mut kept = Keywords::new();
            for (name, property) in properties {
                if self.is_hidden(at.inner(property)) {
                    left_out.push(name.as_str());
                    continue;
                }
                self.spend(name.len())?;
                let property = self.schema(at.inner(property), levels.saturating_sub(1))?;
                kept.insert(name.clone(), property.into());
            }
            made.insert("properties".to_owned(), kept.into());
        }
        if let Some(required) = keywords.get("required").and_then(Value::as_array).filter(|required| required.len() <= MAX_REQUIRED) {
            let names = required.iter().filter(|name| name.as_str().is_some_and(|name| !left_out.contains(&name)));
            let names = distinct(&names.cloned().collect::<Vec<_>>());
            if !names.is_empty() {
                self.spend(length(&json!(names)))?;
                made.insert("required".to_owned(), names.into());
            }
        }
        match keywords.get("additionalProperties") {
            Some(Value::Bool(open)) => {
                made.insert("additionalProperties".to_owned(), (*open || !left_out.is_empty()).into());
            }
            Some(others @ Value::Object(_)) => {
                let others = self.schema(at.inner(others), levels.saturating_sub(1))?;
                made.insert("additionalProperties".to_owned(), others.into());
            }
            _ => {}
        }
        Ok(())
    }

    /// Whether a property is only for the other side.
    fn is_hidden(&self, at: At<'a>) -> bool {
        let keyword = if self.side == Side::Sent { "readOnly" } else { "writeOnly" };
        at.value[keyword] == true || self.schemas.bundle.resolve(at).is_ok_and(|found| found.value[keyword] == true)
    }

    fn array(&mut self, at: At<'a>, keywords: &'a Keywords, levels: usize, made: &mut Keywords) -> Result<(), TooLarge> {
        let tuple = keywords.get("prefixItems").or_else(|| keywords.get("items")).and_then(Value::as_array);
        if let Some(tuple) = tuple.filter(|tuple| !tuple.is_empty()) {
            let mut items = Vec::with_capacity(tuple.len());
            for item in tuple {
                items.push(Value::Object(self.schema(at.inner(item), levels.saturating_sub(1))?));
            }
            made.insert("prefixItems".to_owned(), items.into());
        }
        if let Some(items @ Value::Object(_)) = keywords.get("items") {
            let items = self.schema(at.inner(items), levels.saturating_sub(1))?;
            made.insert("items".to_owned(), items.into());
        } else if types(made).contains(&"array") {
            made.insert("items".to_owned(), json!({}));
        }
        Ok(())
    }

    /// Folds `allOf` in and keeps alternatives as `anyOf`: those that were cut may overlap where the original ones did not.
    fn combined(&mut self, at: At<'a>, keywords: &'a Keywords, levels: usize, mut made: Keywords) -> Result<Keywords, TooLarge> {
        for part in keywords.get("allOf").and_then(Value::as_array).into_iter().flatten() {
            let part = self.schema(at.inner(part), levels)?;
            made = both(made, part);
        }
        for union in ["anyOf", "oneOf"] {
            let Some(branches) = keywords.get(union).and_then(Value::as_array).filter(|branches| !branches.is_empty()) else { continue };
            let mut options: Vec<Value> = Vec::with_capacity(branches.len());
            for branch in branches {
                let branch = Value::Object(self.schema(at.inner(branch), levels.saturating_sub(1))?);
                if !options.contains(&branch) {
                    options.push(branch);
                }
            }
            made = match &mut options[..] {
                [Value::Object(only)] => both(made, std::mem::take(only)),
                _ => both(made, object(json!({"anyOf": options}))),
            };
        }
        Ok(made)
    }
}
