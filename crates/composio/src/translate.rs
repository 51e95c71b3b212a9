//! Composio's answer to a search, as suggestions.

use std::collections::{BTreeSet, HashMap};

use discovery::{SuggestedTool, Suggestion};
use serde::Deserialize;
use serde_json::Value;

/// How many results are read for each use case that was asked about.
const MAX_RESULTS: usize = 7;
/// How many tools, toolkits, steps or pitfalls of one result are read.
const MAX_LIST: usize = 50;
const MAX_SCHEMAS: usize = 1_000;
const MAX_TEXT: usize = 2_000;
const MAX_SLUG: usize = 200;
const MAX_REASON: usize = 200;

/// Why a reply is no answer to a search.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed tool search response: {0}")]
pub struct Malformed(String);

impl Malformed {
    fn new(reason: impl ToString) -> Self {
        Self(cut(&reason.to_string(), MAX_REASON))
    }
}

/// What Composio found for one use case; fields that nothing is made of are not here.
#[derive(Default, Deserialize)]
struct Found<'a> {
    use_case: &'a str,
    index: Option<Value>,
    #[serde(borrow)]
    primary_tool_slugs: Vec<&'a str>,
    related_tool_slugs: Vec<&'a str>,
    toolkits: Vec<&'a str>,
    #[serde(default)]
    recommended_plan_steps: Vec<&'a str>,
    #[serde(default)]
    known_pitfalls: Vec<&'a str>,
    difficulty: Option<&'a str>,
}

#[derive(Deserialize)]
struct ToolSchema<'a> {
    /// Nothing is made of it, but an entry without one is none.
    #[serde(rename = "tool_slug")]
    _tool_slug: &'a str,
    toolkit: Option<&'a str>,
    description: Option<&'a str>,
    #[serde(skip)]
    input_schema: Option<&'a Value>,
}

/// What Composio suggests for each use case, in their order, from the reply of `COMPOSIO_SEARCH_TOOLS`.
pub fn translate(reply: &Value, use_cases: &[&str]) -> Result<Vec<Suggestion>, Malformed> {
    if reply["successful"] != true {
        return Err(Malformed::new(reply["error"].as_str().unwrap_or("it was not successful")));
    }
    let results = reply["data"]["results"].as_array().ok_or_else(|| Malformed::new("`data.results` is no list"))?;
    let results = results.iter().take(use_cases.len().saturating_mul(MAX_RESULTS));
    let results: Vec<Found<'_>> = results.map(found).collect::<Result<_, _>>()?;
    let schemas = schemas(&reply["data"])?;
    let toolkits = results.iter().flat_map(|result| result.toolkits.iter().take(MAX_LIST)).copied();
    let toolkits: BTreeSet<String> =
        toolkits.chain(schemas.values().filter_map(|schema| schema.toolkit)).map(str::to_ascii_lowercase).collect();
    let chosen = match_up(&results, use_cases);
    let suggest = |result: Option<usize>| result.map(|at| suggestion(&results[at], &schemas, &toolkits)).unwrap_or_default();
    Ok(chosen.into_iter().map(suggest).collect())
}

/// A search that failed names no tools, and takes nothing from the others.
fn found(result: &Value) -> Result<Found<'_>, Malformed> {
    if matches!(result["error"].as_str(), None | Some("")) {
        return read(result, "a result");
    }
    let use_case = result["use_case"].as_str().ok_or_else(|| Malformed::new("a result: `use_case` is no text"))?;
    Ok(Found { use_case, index: result.get("index").cloned(), ..Found::default() })
}

fn read<'a, T: Deserialize<'a>>(value: &'a Value, what: &str) -> Result<T, Malformed> {
    if !value.is_object() {
        return Err(Malformed::new(format!("{what} is no object")));
    }
    T::deserialize(value).map_err(|error| Malformed::new(format!("{what}: {error}")))
}

fn schemas(data: &Value) -> Result<HashMap<&str, ToolSchema<'_>>, Malformed> {
    let all = match data.get("tool_schemas") {
        None => return Ok(HashMap::new()),
        Some(all) => all.as_object().ok_or_else(|| Malformed::new("`data.tool_schemas` is no object"))?,
    };
    let schema = |(slug, value)| {
        let known: ToolSchema<'_> = read(value, "a tool's schema")?;
        let input_schema = value.get("input_schema").filter(|schema| schema.is_object());
        Ok((String::as_str(slug), ToolSchema { input_schema, ..known }))
    };
    all.iter().take(MAX_SCHEMAS).map(schema).collect()
}

/// The result of each use case: the one with its text, else the one with its number, else the one in its place.
fn match_up(results: &[Found<'_>], use_cases: &[&str]) -> Vec<Option<usize>> {
    let mut chosen: Vec<Option<usize>> = vec![None; use_cases.len()];
    let mut free: BTreeSet<usize> = (0..results.len()).collect();
    for (case, choice) in use_cases.iter().zip(&mut chosen) {
        *choice = free.iter().copied().find(|at| results[*at].use_case.trim() == case.trim());
        choice.map(|at| free.remove(&at));
    }
    let numbered = numbered(results, &chosen);
    for (place, choice) in chosen.iter_mut().enumerate().filter(|(_, choice)| choice.is_none()) {
        let at = numbered.as_ref().map_or(Some(place), |numbered| numbered.get(&place).copied());
        *choice = at.filter(|at| free.remove(at));
    }
    chosen
}

/// Which result each place has by number, where every result has another number and those that are matched have the right one. Numbers
/// start at 0 or at 1.
fn numbered(results: &[Found<'_>], matched: &[Option<usize>]) -> Option<HashMap<usize, usize>> {
    let numbers = results.iter().map(|result| usize::try_from(result.index.as_ref()?.as_u64()?).ok());
    let numbers: Vec<usize> = numbers.collect::<Option<_>>()?;
    let first = usize::from(!numbers.contains(&0));
    let places: HashMap<usize, usize> = numbers.iter().enumerate().map(|(at, number)| (number - first, at)).collect();
    let is_right = |(place, at): (usize, &Option<usize>)| at.is_none_or(|at| places.get(&place) == Some(&at));
    let is_consistent = places.len() == results.len() && matched.iter().enumerate().all(is_right);
    is_consistent.then_some(places)
}

fn suggestion(result: &Found<'_>, schemas: &HashMap<&str, ToolSchema<'_>>, toolkits: &BTreeSet<String>) -> Suggestion {
    let own: Vec<String> = result.toolkits.iter().take(MAX_LIST).map(|toolkit| toolkit.to_ascii_lowercase()).collect();
    let tools = |slugs: &[&str]| {
        let read = slugs.iter().filter(|slug| !slug.is_empty() && slug.len() <= MAX_SLUG).take(MAX_LIST);
        read.map(|slug| named(slug, &own, schemas.get(slug))).collect()
    };
    let texts = |texts: &[&str]| {
        let mut kept: Vec<String> = Vec::new();
        for text in texts.iter().filter(|text| !text.trim().is_empty()).take(MAX_LIST) {
            let text = in_our_names(&cut(text, MAX_TEXT), toolkits);
            if !kept.contains(&text) {
                kept.push(text);
            }
        }
        kept
    };
    Suggestion {
        primary: tools(&result.primary_tool_slugs),
        related: tools(&result.related_tool_slugs),
        plan_steps: texts(&result.recommended_plan_steps),
        pitfalls: texts(&result.known_pitfalls),
        difficulty: result.difficulty.filter(|difficulty| !difficulty.is_empty()).map(|difficulty| cut(difficulty, MAX_SLUG)),
    }
}

fn named(slug: &str, toolkits: &[String], schema: Option<&ToolSchema<'_>>) -> SuggestedTool {
    let (integration, action) = split(slug, toolkits.iter().map(String::as_str)).unwrap_or_else(|| {
        let (integration, action) = slug.split_once('_').unwrap_or((slug, slug));
        (integration.to_ascii_lowercase(), action)
    });
    SuggestedTool {
        integration,
        action: action.to_owned(),
        remote: slug.to_owned(),
        description: schema.and_then(|schema| schema.description).map(|description| cut(description, MAX_TEXT)),
        input_schema: schema.and_then(|schema| schema.input_schema).cloned(),
    }
}

/// The longest toolkit that a slug begins with, and what follows it.
fn split<'a, 'b>(slug: &'a str, toolkits: impl Iterator<Item = &'b str>) -> Option<(String, &'a str)> {
    let parts = toolkits.filter_map(|toolkit| {
        let (start, rest) = slug.split_at_checked(toolkit.len())?;
        let action = rest.strip_prefix('_').filter(|action| !action.is_empty())?;
        (!toolkit.is_empty() && start.eq_ignore_ascii_case(toolkit)).then_some((toolkit, action))
    });
    parts.max_by_key(|(toolkit, _)| toolkit.len()).map(|(toolkit, action)| (toolkit.to_owned(), action))
}

/// Slugs in a text, as Toolyard names the tools: `integration.ACTION`.
fn in_our_names(text: &str, toolkits: &BTreeSet<String>) -> String {
    let mut translated = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
        let in_word = rest.starts_with(is_word);
        let end = rest.find(|letter| is_word(letter) != in_word).unwrap_or(rest.len());
        let (run, after) = rest.split_at(end);
        match is_slug(run).then(|| split(run, toolkits.iter().map(String::as_str))).flatten() {
            Some((integration, action)) => translated.extend([&integration, ".", action]),
            None => translated.push_str(run),
        }
        rest = after;
    }
    translated
}

/// Capitals and digits in two parts or more, with `_` between them.
fn is_slug(word: &str) -> bool {
    let is_part = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
    word.contains('_') && word.starts_with(|first: char| first.is_ascii_uppercase()) && word.split('_').all(is_part)
}

fn cut(text: &str, most: usize) -> String {
    text.chars().take(most).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    /// A reply with every field that Composio is known to send, also those that nothing is made of.
    fn reply() -> Value {
        let tool = |toolkit: &str, slug: &str, description: &str| {
            let input_schema = json!({"type": "object", "required": ["id"], "properties": {"id": {"type": "string"}}});
            json!({"toolkit": toolkit, "tool_slug": slug, "description": description, "input_schema": input_schema,
                "output_schema": {"type": "object"}, "hasFullSchema": true})
        };
        json!({
            "successful": true,
            "error": null,
            "log_id": "log_1",
            "data": {
                "success": true,
                "error": null,
                "results": [
                    {
                        "index": 1,
                        "use_case": "plan a trip to the sea",
                        "primary_tool_slugs": ["TRAINLINE_FIND_JOURNEY", "TRAINLINE_NIGHT_FIND_BERTH"],
                        "related_tool_slugs": ["TRAINLINE_CANCEL_BOOKING", "weather_Forecast_Daily", "PING"],
                        "toolkits": ["trainline", "trainline_night"],
                        "recommended_plan_steps": [
                            "[Required] Look for journeys with TRAINLINE_FIND_JOURNEY, then TRAINLINE_NIGHT_FIND_BERTH.",
                            "",
                            "[Optional] Ask WEATHER_NOW; NOT_A_TOOL and _TRAINLINE_X, TRAINLINE_, xTRAINLINE_A stay, as do (TRAINLINE_a).",
                            "[Required] Look for journeys with TRAINLINE_FIND_JOURNEY, then TRAINLINE_NIGHT_FIND_BERTH.",
                        ],
                        "known_pitfalls": ["[TRAINLINE_CANCEL_BOOKING] Fees apply.", "  ", "[TRAINLINE_CANCEL_BOOKING] Fees apply."],
                        "difficulty": "medium",
                        "execution_guidance": "First the journey, then the berth.",
                        "reference_workbench_snippets": [{"description": "none", "code": "pass"}],
                        "memory": {"trainline": ["likes windows"]},
                        "cached_plan_usecase": "plan a trip",
                        "plan_id": "plan_1",
                    },
                    {
                        "index": 2,
                        "use_case": "water the plants",
                        "primary_tool_slugs": [],
                        "related_tool_slugs": [],
                        "toolkits": [],
                        "difficulty": null,
                    },
                    {"index": 3, "use_case": "sing", "error": "the search took too long"},
                ],
                "tool_schemas": {
                    "TRAINLINE_FIND_JOURNEY": tool("TRAINLINE", "TRAINLINE_FIND_JOURNEY", "Finds journeys."),
                    "TRAINLINE_CANCEL_BOOKING": tool("TRAINLINE", "TRAINLINE_CANCEL_BOOKING", "Cancels a booking."),
                    "TRAINLINE_NIGHT_FIND_BERTH": {"toolkit": "TRAINLINE_NIGHT", "tool_slug": "TRAINLINE_NIGHT_FIND_BERTH",
                        "description": null, "hasFullSchema": false,
                        "schemaRef": {"tool": "COMPOSIO_GET_TOOL_SCHEMAS", "args": {"tool_slugs": ["TRAINLINE_NIGHT_FIND_BERTH"]}, "message": "more"}},
                    "WEATHER_NOW": tool("WEATHER", "WEATHER_NOW", "Says how the weather is."),
                },
                "toolkit_connection_statuses": [{"toolkit": "trainline", "has_active_connection": true, "description": "trains", "status_message": "ok"}],
                "time_info": {"current_time_utc": "2031-01-01T00:00:00Z", "current_time_utc_epoch_seconds": 1_924_992_000, "message": "now"},
                "session": {"id": "abcd", "generate_id": true, "instructions": "keep it"},
                "next_steps_guidance": ["Connect, then run."],
            },
        })
    }

    const USE_CASES: [&str; 3] = ["plan a trip to the sea", "water the plants", "sing"];

    #[test]
    fn every_field_has_its_place() {
        let suggestions = translate(&reply(), &USE_CASES).unwrap();
        let tool = |named: &SuggestedTool| {
            json!({"integration": named.integration, "action": named.action, "remote": named.remote, "description": named.description,
                "input_schema": named.input_schema})
        };
        let shown = suggestions.iter().map(|suggestion| {
            let Suggestion { primary, related, plan_steps, pitfalls, difficulty } = suggestion;
            json!({"primary": primary.iter().map(tool).collect::<Vec<_>>(), "related": related.iter().map(tool).collect::<Vec<_>>(),
                "plan_steps": plan_steps, "pitfalls": pitfalls, "difficulty": difficulty})
        });
        insta::assert_json_snapshot!(shown.collect::<Vec<_>>());
    }

    #[test]
    fn what_is_missing_or_of_another_kind_is_malformed() {
        let refused = |pointer: &str, value: Option<Value>| {
            let mut reply = reply();
            let (parent, field) = pointer.rsplit_once('/').unwrap();
            let parent = reply.pointer_mut(parent).unwrap().as_object_mut().unwrap();
            match value {
                Some(value) => _ = parent.insert(field.to_owned(), value),
                None => _ = parent.remove(field).unwrap(),
            }
            translate(&reply, &USE_CASES).err().map(|error| error.to_string())
        };
        for field in ["use_case", "primary_tool_slugs", "related_tool_slugs", "toolkits"] {
            for value in [None, Some(json!(null)), Some(json!(7)), Some(json!([null]))] {
                let error = refused(&format!("/data/results/0/{field}"), value).unwrap();
                assert!(error.starts_with("malformed tool search response: a result: "), "{error}");
            }
        }
        for (pointer, value) in [
            ("/successful", None),
            ("/data", None),
            ("/data/results", None),
            ("/data/results", Some(json!({}))),
            ("/data/results/0/known_pitfalls", Some(json!(null))),
            ("/data/tool_schemas", Some(json!(null))),
            ("/data/tool_schemas/WEATHER_NOW", Some(json!("x"))),
            ("/data/tool_schemas/WEATHER_NOW/tool_slug", None),
        ] {
            assert!(refused(pointer, value).is_some(), "{pointer}");
        }
        for pointer in
            ["/data/results/0/known_pitfalls", "/data/results/0/difficulty", "/data/results/0/index", "/data/tool_schemas", "/error"]
        {
            assert_eq!(refused(pointer, None), None, "{pointer}");
        }
        let error = translate(&json!({"successful": false, "error": "no ".repeat(500), "data": {}}), &USE_CASES).unwrap_err().to_string();
        assert!(error.starts_with("malformed tool search response: no no") && error.len() < 300, "{error}");
    }

    /// Which result each use case got, by the slug that it names.
    fn matched(results: &[(&str, Option<u64>)], use_cases: &[&str]) -> Vec<Option<String>> {
        let result = |(at, (use_case, index)): (usize, &(&str, Option<u64>))| json!({"use_case": use_case, "index": index, "primary_tool_slugs": [format!("A_{at}")], "related_tool_slugs": [], "toolkits": ["a"]});
        let results: Vec<Value> = results.iter().enumerate().map(result).collect();
        let suggestions = translate(&json!({"successful": true, "data": {"results": results}}), use_cases).unwrap();
        suggestions.into_iter().map(|suggestion| suggestion.primary.into_iter().next().map(|named| named.action)).collect()
    }

    #[test]
    fn each_use_case_gets_its_own_result() {
        let got = |actions: [Option<&str>; 3]| actions.map(|action| action.map(str::to_owned)).to_vec();
        let cases = ["x", "y", "z"];
        assert_eq!(matched(&[("z", None), (" x ", None), ("y", None)], &cases), got([Some("1"), Some("2"), Some("0")]), "by text");
        assert_eq!(matched(&[("Z", Some(2)), ("X", Some(0))], &cases), got([Some("1"), None, Some("0")]), "by number from 0");
        assert_eq!(matched(&[("Z", Some(3)), ("x", Some(1))], &cases), got([Some("1"), None, Some("0")]), "by number from 1");
        assert_eq!(matched(&[("X", None), ("y", None)], &cases), got([Some("0"), Some("1"), None]), "by place");
        assert_eq!(
            matched(&[("X", Some(1)), ("y", Some(1))], &cases),
            got([Some("0"), Some("1"), None]),
            "numbers that repeat say nothing"
        );
        assert_eq!(
            matched(&[("y", Some(5)), ("Z", Some(1))], &cases),
            got([None, Some("0"), None]),
            "a place that is taken is not given twice"
        );
        assert_eq!(matched(&[], &cases), got([None, None, None]));
    }

    #[test]
    fn a_huge_reply_is_cut() {
        let slugs: Vec<String> = (0..500).map(|number| format!("A_{number}")).collect();
        let result = json!({"use_case": "x", "primary_tool_slugs": slugs, "related_tool_slugs": ["A_".repeat(500)], "toolkits": ["a"],
            "known_pitfalls": ["é".repeat(9_000)]});
        let suggestion = translate(&json!({"successful": true, "data": {"results": [result]}}), &["x"]).unwrap().remove(0);
        assert_eq!((suggestion.primary.len(), suggestion.related.len()), (MAX_LIST, 0));
        assert_eq!(suggestion.pitfalls[0].chars().count(), MAX_TEXT);
    }

    fn anything() -> impl Strategy<Value = Value> {
        let text = prop_oneof!["[A-Z_ab0é. ]{0,12}", "\\PC{0,8}"];
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            text.prop_map(Value::from)
        ];
        let keys = prop::sample::select(vec![
            "use_case",
            "index",
            "error",
            "primary_tool_slugs",
            "related_tool_slugs",
            "toolkits",
            "recommended_plan_steps",
            "known_pitfalls",
            "tool_slug",
            "toolkit",
            "description",
            "input_schema",
        ]);
        leaf.prop_recursive(3, 24, 6, move |inner| {
            let fields = prop::collection::vec((keys.clone(), inner.clone()), 0..6);
            let object = fields.prop_map(|fields| fields.into_iter().map(|(key, value)| (key.to_owned(), value)).collect());
            prop_oneof![prop::collection::vec(inner, 0..6).prop_map(Value::Array), object.prop_map(Value::Object)]
        })
    }

    proptest! {
        #[test]
        fn no_reply_is_too_odd(whole in anything(), odd in anything(), pointer in prop::sample::select(vec![
            "/successful", "/data", "/data/results", "/data/results/0", "/data/results/0/use_case", "/data/results/0/index",
            "/data/results/0/primary_tool_slugs", "/data/results/0/primary_tool_slugs/0", "/data/results/0/toolkits", "/data/results/0/toolkits/0",
            "/data/results/0/recommended_plan_steps/0", "/data/results/1/index", "/data/results/2/error", "/data/tool_schemas",
            "/data/tool_schemas/TRAINLINE_FIND_JOURNEY", "/data/tool_schemas/TRAINLINE_FIND_JOURNEY/toolkit",
        ])) {
            let mut reply = reply();
            *reply.pointer_mut(pointer).unwrap() = odd;
            for reply in [whole, reply] {
                if let Ok(suggestions) = translate(&reply, &USE_CASES) {
                    prop_assert_eq!(suggestions.len(), USE_CASES.len());
                }
            }
        }
    }
}
