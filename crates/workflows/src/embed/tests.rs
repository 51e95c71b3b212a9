use std::collections::BTreeMap;
use std::sync::Mutex;

use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use serde_json::{Value, json};

use super::{EmbedError, EmbedLimits, EmbedRef, ErrorPolicy, Fetch, Key, Level, Resolved, contains_embed, resolve};
use crate::Family;

/// Data by the text of its reference, and what was asked for.
struct FakeFetch {
    data: BTreeMap<String, Value>,
    asked: Mutex<Vec<EmbedRef>>,
}

impl FakeFetch {
    fn new(data: Value) -> Self {
        Self { data: serde_json::from_value(data).unwrap(), asked: Mutex::default() }
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().iter().map(ToString::to_string).collect()
    }
}

impl Fetch for FakeFetch {
    fn fetch<'a>(&'a self, embed: &'a EmbedRef) -> BoxFuture<'a, Result<Option<Value>, String>> {
        async move {
            self.asked.lock().unwrap().push(embed.clone());
            let name = embed.to_string();
            if name.contains("broken") { Err("the shelf fell".to_owned()) } else { Ok(self.data.get(&name).cloned()) }
        }
        .boxed()
    }
}

fn shelf() -> FakeFetch {
    let tools = json!([{"name": "a"}, {"name": "b"}]);
    FakeFetch::new(json!({
        "workflow.slug=w": {
            "text": "hello", "n": 7, "nil": null, "obj": {"x": 1, "y": 2}, "a.b": "dotted", "a": {"b": "walked", "c.d": "inner"},
            "list": ["zero", "one"], "tools": tools, "parameters": {"prompt": {"messages": [{"content": "be kind"}]}, "tone": "warm"}
        },
        "workflow.slug=w, workflow_revision.version=3": {"text": "third"},
        "environment.slug=prod": {"parameters": {"prompt": {"messages": [{"content": "only"}]}}},
        "environment.slug=prod, key=app.revision": {"text": "deployed"},
        "workflow.slug=loop": {"x": {"@ag.embed": {"@ag.references": {"workflow": {"slug": "back"}}}}},
        "workflow.slug=back": {"y": "see @ag.embed[@ag.references[workflow.slug=loop]]"},
        "workflow.slug=self": {"parameters": {"prompt": {"messages": [{"content": "I am @{{workflow.slug=self}}"}]}, "a": "@{{workflow.slug=self,path=b}}", "b": "b"}},
        "workflow.slug=left": {"v": embed("w", "text")},
        "workflow.slug=right": {"v": "@ag.embed[@ag.references[workflow.slug=w], @ag.selector[path=text]]", "deep": embed("left", "v")},
    }))
}

fn embed(slug: &str, path: &str) -> Value {
    json!({"@ag.embed": {"@ag.references": {"workflow": {"slug": slug}}, "@ag.selector": {"path": path}}})
}

async fn run(value: Value, policy: ErrorPolicy) -> Result<Resolved, EmbedError> {
    resolve(value, &shelf(), EmbedLimits::default(), policy).await
}

async fn value_of(written: Value) -> Value {
    run(json!({"at": [written]}), ErrorPolicy::Exception).await.unwrap().value["at"][0].clone()
}

async fn failure_of(written: Value) -> EmbedError {
    run(json!({"a/b": [written]}), ErrorPolicy::Exception).await.unwrap_err()
}

#[tokio::test]
async fn the_three_forms_put_the_value_in_place() {
    let token = |selector: &str| json!(format!("<@ag.embed[@ag.references[workflow.slug=w], @ag.selector[{selector}]]>"));
    let cases = [
        (embed("w", "obj"), json!({"x": 1, "y": 2})),
        (embed("w", "nil"), json!(null)),
        (
            json!({"@ag.embed": {"@ag.references": {"workflow": {"slug": "w"}, "workflow_revision": {"version": 3}}}}),
            json!({"text": "third"}),
        ),
        (
            json!({"@ag.embed": {"@ag.references": {"environment": {"slug": "prod"}}, "@ag.selector": {"key": "app.revision", "path": "text"}}}),
            json!("deployed"),
        ),
        (token("path=text"), json!("<hello>")),
        (token("path=n"), json!("<7>")),
        (token("path=obj"), json!(r#"<{"x":1,"y":2}>"#)),
        (token("path=$['list'][1]"), json!("<one>")),
        (json!("@{{workflow.slug=w}}!"), json!("be kind!")),
        (json!("@{{ workflow_artifact.slug: w & path: tone }} é @{{workflow.slug=w, path=$.tone}}"), json!("warm é warm")),
        (json!("@{{workflow.slug=w, path=/tone}}"), json!("warm")),
        (json!("@{{environment.slug=prod}}"), json!("only")),
    ];
    for (written, wanted) in cases {
        assert!(contains_embed(&json!([written])), "{written}");
        assert_eq!(value_of(written.clone()).await, wanted, "{written}");
    }
}

#[tokio::test]
async fn the_fetcher_sees_typed_references() {
    let shelf = shelf();
    let value = json!({"a": "@{{environment_revision.id=e1, environment.slug=prod}} @{{application_variant.slug=v}}"});
    resolve(value, &shelf, EmbedLimits::default(), ErrorPolicy::Keep).await.unwrap();
    let mut asked = shelf.asked.lock().unwrap().clone();
    asked.sort();
    assert_eq!((asked[0].family, asked[0].level, &asked[0].key), (Family::Environment, Level::Revision, &Key::Only));
    assert_eq!((asked[1].family, asked[1].level, &asked[1].key), (Family::Application, Level::Variant, &Key::Own));
    assert_eq!(asked[0].to_string(), "environment.slug=prod, environment_revision.id=e1");
}

#[tokio::test]
async fn paths_are_followed_in_three_notations() {
    let found = [
        ("a.b", json!("dotted")),
        ("a.c.d", json!("inner")),
        ("list.1", json!("one")),
        ("/a/b", json!("walked")),
        ("/a.b", json!("dotted")),
        ("$.a.b", json!("walked")),
        ("$['a.b']", json!("dotted")),
        ("$.tools[*].name", json!(["a", "b"])),
        ("$.obj[*]", json!([1, 2])),
    ];
    for (path, wanted) in found {
        assert_eq!(value_of(embed("w", path)).await, wanted, "{path}");
    }
    assert_eq!(value_of(embed("w", "$")).await["n"], json!(7));
    for path in [
        "nope",
        "a.nope",
        "list.2",
        "list.+1",
        "list.",
        "text.0",
        "/nope",
        "$.nope",
        "$.list[9]",
        "$..b",
        "$.*",
        "$.list[-1]",
        "$.list[0:1]",
        "$x",
        "$[?(@.x)]",
    ] {
        let error = failure_of(embed("w", path)).await;
        assert!(matches!(&error, EmbedError::Path { place, .. } if place == "/a~1b/0"), "{path}: {error:?}");
    }
}

#[tokio::test]
async fn a_diamond_is_fetched_once_and_is_no_cycle() {
    let shelf = shelf();
    let value = json!({"l": embed("left", "v"), "r": embed("right", "$"), "w": embed("w", "n")});
    let resolved = resolve(value, &shelf, EmbedLimits::default(), ErrorPolicy::Exception).await.unwrap();
    assert_eq!(resolved.value, json!({"l": "hello", "r": {"v": "hello", "deep": "hello"}, "w": 7}));
    assert_eq!((resolved.count, resolved.depth), (7, 3));
    assert_eq!(shelf.asked().iter().filter(|name| *name == "workflow.slug=w").count(), 1);
    assert_eq!(shelf.asked().len(), 3);
}

#[tokio::test]
async fn a_reference_inside_itself_is_a_cycle() {
    let error = failure_of(embed("loop", "x")).await;
    assert_eq!(error, EmbedError::Circular { place: "/a~1b/0/y/x".into(), reference: "workflow.slug=back".into() });
    let error = failure_of(json!("@{{workflow.slug=self}}")).await;
    assert!(matches!(error, EmbedError::Circular { place, .. } if place == "/a~1b/0"));
    assert_eq!(value_of(json!("@{{workflow.slug=self, path=a}}")).await, json!("b"));
}

fn chain_of(length: usize) -> FakeFetch {
    let link = |n: usize| {
        (format!("workflow.slug={n}"), if n == length { json!({"v": "end"}) } else { json!({"v": embed(&(n + 1).to_string(), "v")}) })
    };
    FakeFetch::new((1..=length).map(link).collect())
}

#[tokio::test]
async fn depth_counts_chained_embeds() {
    let start = json!({"v": embed("1", "v")});
    let limits = EmbedLimits::default();
    let resolved = resolve(start.clone(), &chain_of(10), limits, ErrorPolicy::Exception).await.unwrap();
    assert_eq!((resolved.value, resolved.count, resolved.depth), (json!({"v": "end"}), 10, 10));
    let error = resolve(start.clone(), &chain_of(11), limits, ErrorPolicy::Exception).await.unwrap_err();
    assert_eq!(error, EmbedError::TooDeep { place: "/v".into(), limit: 10 });

    let none: EmbedLimits = serde_json::from_value(json!({"max_depth": 0})).unwrap();
    let shelf = chain_of(1);
    let error = resolve(start, &shelf, none, ErrorPolicy::Exception).await.unwrap_err();
    assert_eq!(error, EmbedError::TooDeep { place: "/v".into(), limit: 0 });
    assert!(shelf.asked().is_empty());
}

#[tokio::test]
async fn the_number_of_embeds_is_limited() {
    let value = |count: usize| json!({"v": vec!["@{{workflow.slug=w}}"; count]});
    assert_eq!(run(value(100), ErrorPolicy::Exception).await.unwrap().count, 100);
    let error = run(value(101), ErrorPolicy::Exception).await.unwrap_err();
    assert_eq!(error, EmbedError::TooMany { place: "/v/100".into(), limit: 100 });
}

#[tokio::test]
async fn members_beside_an_object_embed_are_laid_over_it() {
    let beside = |path: &str| {
        let mut written = embed("w", path);
        written["y"] = json!("@{{workflow.slug=w, path=tone}}");
        written["k.z"] = embed("w", "n");
        written
    };
    assert_eq!(value_of(beside("obj")).await, json!({"x": 1, "y": "warm", "k.z": 7}));
    let error = failure_of(beside("text")).await;
    assert_eq!((error.code(), error.place()), ("embed_malformed", "/a~1b/0"));

    let kept = run(json!({"v": beside("text")}), ErrorPolicy::Placeholder).await.unwrap().value;
    assert_eq!(kept, json!({"v": {"@ag.embed": "<error:embed_malformed>", "y": "warm", "k.z": 7}}));
}

#[tokio::test]
async fn keys_may_hold_dots_and_slashes() {
    let value = json!({"a.b": {"c/d": embed("w", "text"), "~": "@{{workflow.slug=w,path=tone}}"}});
    assert_eq!(run(value, ErrorPolicy::Exception).await.unwrap().value, json!({"a.b": {"c/d": "hello", "~": "warm"}}));
    let error = run(json!({"a.b": {"c/~d": embed("gone", "x")}}), ErrorPolicy::Exception).await.unwrap_err();
    assert_eq!(error, EmbedError::NotFound { place: "/a.b/c~1~0d".into(), reference: "workflow.slug=gone".into() });
}

#[tokio::test]
async fn the_policy_touches_only_the_embed_that_failed() {
    let text = "a @{{workflow.slug=gone}} b @{{workflow.slug=w}} c @{{workflow.slug=broken}} d @{{workflow.slug=w, path=nope}}";
    let value = json!({"text": text, "object": embed("gone", "x"), "loop": embed("back", "y")});

    let placed = run(value.clone(), ErrorPolicy::Placeholder).await.unwrap();
    let text = "a <error:embed_not_found> b be kind c <error:embed_fetch> d <error:embed_path>";
    let looped = r#"see {"x":{"y":"see <error:embed_circular>"}}"#;
    assert_eq!(placed.value["text"], json!(text));
    assert_eq!(placed.value["object"], json!("<error:embed_not_found>"));
    assert_eq!(placed.value["loop"], json!(looped));

    let kept = run(value.clone(), ErrorPolicy::Keep).await.unwrap().value;
    let text = "a @{{workflow.slug=gone}} b be kind c @{{workflow.slug=broken}} d @{{workflow.slug=w, path=nope}}";
    assert_eq!((&kept["text"], &kept["object"]), (&json!(text), &value["object"]));
    assert_eq!(serde_json::from_value::<ErrorPolicy>(json!("placeholder")).unwrap(), ErrorPolicy::Placeholder);
}

#[tokio::test]
async fn what_cannot_be_read_is_an_error_with_its_place() {
    let object = |description: Value| json!({"@ag.embed": description});
    let cases = [
        (object(json!({"@ag.selector": {"path": "x"}})), "embed_malformed"),
        (object(json!({"@ag.references": {"workflow": {}}})), "embed_malformed"),
        (object(json!({"@ag.references": ["w"]})), "embed_malformed"),
        (object(json!({"@ag.references": {"robot": {"slug": "w"}}})), "embed_malformed"),
        (object(json!({"@ag.references": {"workflow": {"versoin": "3"}}})), "embed_malformed"),
        (object(json!({"@ag.references": {"workflow": {"slug": "w"}, "workflow_artifact": {"slug": "v"}}})), "embed_malformed"),
        (object(json!({"@ag.references": {"workflow": {"slug": "w"}, "environment": {"slug": "e"}}})), "embed_mixed_families"),
        (json!("@ag.embed[hello]"), "embed_malformed"),
        (json!("@ag.embed[@ag.references[workflow.slug]]"), "embed_malformed"),
        (json!("@{{workflow.slug=w, evaluator.slug=e}}"), "embed_mixed_families"),
        (json!("@{{slug=w}}"), "embed_malformed"),
        (json!("@{{workflow.slug=broken}}"), "embed_fetch"),
    ];
    for (written, code) in cases {
        let error = failure_of(written.clone()).await;
        assert_eq!((error.code(), error.place()), (code, "/a~1b/0"), "{written}");
        assert!(error.to_string().contains("`/a~1b/0`"), "{error}");
    }
}

#[tokio::test]
async fn the_root_is_never_an_embed() {
    for value in [embed("w", "obj"), json!("@{{workflow.slug=w}}")] {
        for policy in [ErrorPolicy::Exception, ErrorPolicy::Placeholder, ErrorPolicy::Keep] {
            assert_eq!(run(value.clone(), policy).await.unwrap_err(), EmbedError::Root);
        }
    }
}

/// Writings that come near an embed without being one.
const PLAIN: [&str; 9] =
    ["", "é@", "@ag.embed", "@ag.embed[", "@ag.embed[]", "hi @{{name}}", "@{{a=b", "@{{a=b}", "@ag.embed[@ag.references[workflow.slug=w]"];

/// Any value without an embed; the seed decides its shape.
fn plain_value(seed: &mut u64, depth: usize) -> Value {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    let roll = usize::try_from(*seed >> 33).unwrap();
    let text = PLAIN[roll / 8 % PLAIN.len()];
    match roll % 8 {
        0 => json!(null),
        1 => json!(roll),
        2 | 3 => json!(text),
        4 => json!({"@ag.embed": {}, "beside": text}),
        5 => json!({"@ag.embed": text}),
        _ if depth == 0 => json!(true),
        6 => (0..roll % 5).map(|_| plain_value(seed, depth - 1)).collect(),
        _ => (0..roll % 5).map(|n| (format!("k.{n}/{text}"), plain_value(seed, depth - 1))).collect::<serde_json::Map<_, _>>().into(),
    }
}

#[tokio::test]
async fn a_value_without_embeds_comes_back_unchanged() {
    let shelf = shelf();
    for mut seed in 0..2000 {
        let value = plain_value(&mut seed, 5);
        assert!(!contains_embed(&value), "{value}");
        let resolved = resolve(value.clone(), &shelf, EmbedLimits { max_depth: 0, max_embeds: 0 }, ErrorPolicy::Exception).await.unwrap();
        assert_eq!(resolved.value.to_string(), value.to_string());
        assert_eq!((resolved.count, resolved.depth), (0, 0));
    }
    assert!(shelf.asked().is_empty());
}

#[tokio::test]
async fn an_unclosed_token_hides_none_that_follow() {
    let written =
        json!("@ag.embed[ @{{workflow.slug=w @{{workflow.slug=w}} @ag.embed[@ag.references[workflow.slug=w],@ag.selector[path=n]]");
    assert_eq!(value_of(written).await, json!("@ag.embed[ @{{workflow.slug=w be kind 7"));
}

/// Each link holds the next one this many levels down, without end.
struct Endless(usize);

impl Fetch for Endless {
    fn fetch<'a>(&'a self, embed_ref: &'a EmbedRef) -> BoxFuture<'a, Result<Option<Value>, String>> {
        let next = embed_ref.refs[&Level::Artifact].slug.clone().unwrap() + "i";
        async move { Ok(Some((0..self.0).fold(embed(&next, "$"), |value, _| json!([value])))) }.boxed()
    }
}

#[tokio::test]
async fn generous_limits_do_not_exhaust_the_stack() {
    let limits = EmbedLimits { max_depth: usize::MAX, max_embeds: usize::MAX };
    for levels in [0, 1, 120] {
        let task = tokio::spawn(async move { resolve(json!([embed("i", "$")]), &Endless(levels), limits, ErrorPolicy::Exception).await });
        let error = task.await.unwrap().unwrap_err();
        assert!(matches!(error, EmbedError::TooDeep { limit: 256, .. }), "{error}");
    }
}

#[tokio::test]
async fn unclosed_openings_are_read_in_one_go() {
    let openings = json!({"v": ["@ag.embed[".repeat(100_000), "@{{".repeat(100_000) + "}}"]});
    assert_eq!(run(openings.clone(), ErrorPolicy::Exception).await.unwrap().value, openings);
}

#[tokio::test]
async fn a_path_leads_through_an_embed_in_the_data() {
    let shelf = FakeFetch::new(json!({
        "workflow.slug=outer": {"parameters": {"inner": {"@ag.embed": {"@ag.references": {"workflow": {"slug": "inner"}}}}, "broken": embed("nobody", "x")}},
        "workflow.slug=inner": {"parameters": {"base": "found"}},
    }));
    for path in ["parameters.inner.parameters.base", "/parameters/inner/parameters/base", "$.parameters.inner.parameters['base']"] {
        let token = format!(
            "is @ag.embed[@ag.references[workflow.slug=outer], @ag.selector[path={path}]], twice @ag.embed[@ag.references[workflow.slug=outer], @ag.selector[path={path}]]"
        );
        let resolved = resolve(json!({"v": token}), &shelf, EmbedLimits::default(), ErrorPolicy::Exception).await.unwrap();
        assert_eq!(resolved.value["v"], "is found, twice found", "{path}");
        assert_eq!((resolved.count, resolved.depth, resolved.references.len()), (4, 2, 4));
        let named: Vec<Value> = resolved.references.iter().map(|reference| Value::Object(reference.entities())).collect();
        assert_eq!(named[..2], [json!({"workflow": {"slug": "inner"}}), json!({"workflow": {"slug": "outer"}})]);
    }
    let nowhere =
        resolve(json!({"v": embed("outer", "parameters.inner.nope")}), &shelf, EmbedLimits::default(), ErrorPolicy::Exception).await;
    assert!(matches!(nowhere, Err(EmbedError::Path { .. })), "{nowhere:?}");
    let kept = resolve(json!({"v": embed("outer", "parameters.broken")}), &shelf, EmbedLimits::default(), ErrorPolicy::Keep).await.unwrap();
    assert_eq!((kept.value["v"].clone(), kept.errors.len()), (embed("nobody", "x"), 1));
}
