//! How far references unfold. A validator follows them by recursion, and every way to the same place anew: a long chain would take its
//! stack, and a few kilobytes of branches more time than there is. Both are known beforehand.

use std::cell::Cell;

use serde_json::{Map, Value};

/// How many schemas may speak of one and the same value, one inside the other.
const MAX_DEPTH: usize = 24;
/// How many may be looked at for one value, and how many for all places of the document together.
const MAX_STEPS: usize = 5_000;
const MAX_STEPS_IN_ALL: usize = 500_000;
/// How many targets may be looked through for all references together.
const MAX_LOOKS: usize = 5_000_000;

const REFERENCES: [&str; 3] = ["$ref", "$dynamicRef", "$recursiveRef"];

/// Refuses a schema whose references lead too far; nothing is known of one without any.
pub(super) fn check(root: &Value) -> Result<Option<Known<'_>>, String> {
    let mut known = Known { resources: vec![(String::new(), root)], looks: Cell::new(MAX_LOOKS), ..Known::default() };
    known.collect(root);
    if known.references == 0 {
        return Ok(None);
    }
    let mut in_all = 0;
    for start in &known.objects {
        in_all += known.unfold(start)?.len();
        if in_all > MAX_STEPS_IN_ALL {
            return Err(tangled());
        }
    }
    Ok(Some(known))
}

fn tangled() -> String {
    "its references branch too much; write it with fewer of them".to_owned()
}

/// What can be referred to.
#[derive(Default)]
pub(super) struct Known<'a> {
    objects: Vec<&'a Value>,
    references: usize,
    /// The document and the parts with an id, by the last word of their ids.
    resources: Vec<(String, &'a Value)>,
    anchors: Vec<(&'a str, &'a Value)>,
    looks: Cell<usize>,
}

impl<'a> Known<'a> {
    /// The schemas that speak of the value of `start`, itself included, as often as a validator would look at each.
    pub(super) fn unfold(&self, start: &'a Value) -> Result<Vec<&'a Map<String, Value>>, String> {
        let mut unfolding = Unfolding { known: self, trail: Vec::new(), seen: Vec::new() };
        unfolding.follow_reference(start, 0)?;
        Ok(unfolding.seen)
    }

    fn collect(&mut self, value: &'a Value) {
        match value {
            Value::Object(fields) => {
                self.objects.push(value);
                let text = |keyword: &str| fields.get(keyword).and_then(Value::as_str);
                self.references += REFERENCES.into_iter().filter(|keyword| text(keyword).is_some()).count();
                self.resources.extend(["$id", "id"].into_iter().filter_map(text).map(|id| (last_word(id), value)));
                self.anchors.extend(["$anchor", "$dynamicAnchor"].into_iter().filter_map(text).map(|name| (name, value)));
                fields.values().for_each(|field| self.collect(field));
            }
            Value::Array(items) => items.iter().for_each(|item| self.collect(item)),
            _ => {}
        }
    }

    /// Everything that a reference could mean. Which it is takes its base; that it is one of these is enough here.
    fn targets(&self, reference: &str) -> Result<Vec<&'a Value>, String> {
        let left = self.looks.get().checked_sub(self.resources.len() + self.anchors.len());
        self.looks.set(left.ok_or_else(tangled)?);
        let (base, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let (word, fragment) = (last_word(base), decoded(fragment));
        let resources = self.resources.iter().filter(|(own, _)| base.is_empty() || *own == word).map(|(_, value)| *value);
        let targets: Vec<&Value> = if fragment.is_empty() || fragment.starts_with('/') {
            resources.filter_map(|resource| resource.pointer(&fragment)).collect()
        } else {
            self.anchors.iter().filter(|(name, _)| *name == fragment).map(|(_, value)| *value).collect()
        };
        // Another document is the validator's business: it knows those of JSON Schema and refuses all else.
        if targets.is_empty() && !base.starts_with("http") {
            return Err(format!("`{}` refers to nothing in it", reference.chars().take(80).collect::<String>()));
        }
        Ok(targets)
    }
}

struct Unfolding<'k, 'a> {
    known: &'k Known<'a>,
    /// The targets on the way here: a validator stops where it comes round.
    trail: Vec<&'a Value>,
    seen: Vec<&'a Map<String, Value>>,
}

impl<'a> Unfolding<'_, 'a> {
    fn follow(&mut self, schema: &'a Map<String, Value>, depth: usize) -> Result<(), String> {
        self.seen.push(schema);
        if self.seen.len() > MAX_STEPS {
            return Err(tangled());
        }
        if depth > MAX_DEPTH {
            return Err(format!("its references lead through more than {MAX_DEPTH} schemas in a row"));
        }
        for (keyword, value) in schema {
            match (keyword.as_str(), value) {
                ("allOf" | "anyOf" | "oneOf", Value::Array(parts)) => {
                    parts.iter().filter_map(Value::as_object).try_for_each(|part| self.follow(part, depth + 1))?;
                }
                ("not" | "if" | "then" | "else", Value::Object(part)) => self.follow(part, depth + 1)?,
                ("dependentSchemas" | "dependencies", Value::Object(parts)) => {
                    parts.values().filter_map(Value::as_object).try_for_each(|part| self.follow(part, depth + 1))?;
                }
                (keyword, Value::String(reference)) if REFERENCES.contains(&keyword) => {
                    for target in self.known.targets(reference)? {
                        self.follow_reference(target, depth + 1)?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn follow_reference(&mut self, target: &'a Value, depth: usize) -> Result<(), String> {
        let Some(schema) = target.as_object().filter(|_| !self.trail.iter().any(|known| std::ptr::eq(*known, target))) else {
            return Ok(());
        };
        self.trail.push(target);
        self.follow(schema, depth)?;
        self.trail.pop();
        Ok(())
    }
}

fn last_word(id: &str) -> String {
    decoded(id.split('#').next().unwrap_or_default().rsplit('/').next().unwrap_or_default())
}

/// A part of an address without its percent signs.
fn decoded(text: &str) -> String {
    if !text.contains('%') {
        return text.to_owned();
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, more @ ..] = rest {
        let hex = more.get(..2).filter(|_| *first == b'%').and_then(|hex| std::str::from_utf8(hex).ok());
        if let Some(byte) = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            bytes.push(byte);
            rest = &more[2..];
        } else {
            bytes.push(*first);
            rest = more;
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::Schema;
    use super::*;

    /// A chain of definitions, each with the next put into `link`.
    fn chain(length: usize, link: impl Fn(Value) -> Value) -> Value {
        let next = |at: usize| (format!("d{at}"), link(json!({"$ref": format!("#/$defs/d{}", at + 1)})));
        let mut definitions: Map<String, Value> = (0..length).map(next).collect();
        definitions.insert(format!("d{length}"), json!({"type": "string"}));
        json!({"$ref": "#/$defs/d0", "$defs": definitions})
    }

    #[test]
    fn references_that_would_take_the_stack_or_all_time_are_refused() {
        let links: [fn(Value) -> Value; 4] =
            [|next| next, |next| json!({"allOf": [next]}), |next| json!({"not": next}), |next| json!({"dependentSchemas": {"a": next}})];
        for link in links {
            assert!(Schema::compile(&chain(8, link)).is_ok());
            assert!(Schema::compile(&chain(6000, link)).is_err());
        }
        assert!(Schema::compile(&chain(20, |next| json!({"oneOf": [next, next]}))).is_err(), "a million ways");
        let encoded = chain(6000, |next| json!({"$ref": next["$ref"].as_str().unwrap().replace("/d", "/%64")}));
        assert!(Schema::compile(&encoded).is_err());
        let by_anchor = chain(6000, |next| {
            let next: usize = next["$ref"].as_str().unwrap()[9..].parse().unwrap();
            json!({"$anchor": format!("a{}", next - 1), "$ref": format!("#a{next}")})
        });
        assert!(Schema::compile(&by_anchor).is_err());
        let by_id = chain(6000, |next| {
            let next: usize = next["$ref"].as_str().unwrap()[9..].parse().unwrap();
            json!({"$id": format!("https://example.com/a{}", next - 1), "$ref": format!("a{next}")})
        });
        assert!(Schema::compile(&by_id).is_err());
    }

    #[test]
    fn references_are_looked_up_only_so_often() {
        let anchors: Map<String, Value> = (0..4000).map(|at| (format!("d{at}"), json!({"$anchor": format!("a{at}")}))).collect();
        let references: Map<String, Value> = (0..4000).map(|at| (format!("p{at}"), json!({"$ref": format!("#a{at}")}))).collect();
        let started = std::time::Instant::now();
        assert!(Schema::compile(&json!({"$defs": anchors, "properties": references})).is_err());
        assert!(started.elapsed() < std::time::Duration::from_secs(2));
    }

    #[test]
    fn schemas_as_they_are_written_pass() {
        assert!(Schema::compile(&chain(600, |next| json!({"properties": {"next": next}}))).is_ok(), "every value is another");
        let kinds: Map<String, Value> =
            (0..60).map(|at| (format!("k{at}"), json!({"allOf": [{"$ref": "#/$defs/any"}, {"type": "object"}]}))).collect();
        let all: Vec<Value> = kinds.keys().map(|kind| json!({"$ref": format!("#/$defs/{kind}")})).collect();
        let mut family = json!({"$defs": kinds, "properties": {"a": {"$ref": "#/$defs/any"}}});
        family["$defs"]["any"] = json!({"oneOf": all});
        assert!(Schema::compile(&family).is_ok(), "a parent of children that name their parent");
        let tree = json!({"$id": "Node", "type": "object", "properties": {"nodes": {"type": "array", "items": {"$ref": "Node"}}}});
        assert!(Schema::compile(&tree).is_ok());
        assert!(Schema::compile(&json!({"$ref": "https://json-schema.org/draft/2020-12/schema"})).is_ok());
    }

    #[test]
    fn the_deepest_value_fits_the_stack_with_the_longest_chain() {
        let mut schema = chain(MAX_DEPTH / 2 - 2, |next| json!({"anyOf": [next]}));
        let last = format!("d{}", MAX_DEPTH / 2 - 2);
        schema["$defs"][last] = json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}}, "additionalProperties": false});
        let value = (0..crate::json::MAX_DEPTH).fold(json!({"b": 1}), |inner, _| json!({"a": inner}));
        let small = std::thread::Builder::new().stack_size(2 << 20);
        let checked = small.spawn(move || Schema::compile(&schema).unwrap().check(&value).is_err()).unwrap();
        assert!(checked.join().unwrap());
    }
}
