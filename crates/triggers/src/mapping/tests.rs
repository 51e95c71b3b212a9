use super::*;

fn context() -> Value {
    json!({
        "event": {
            "event_id": "e1",
            "event_type": "GITHUB_ISSUE",
            "attributes": {
                "issue": {"title": "Broken", "number": 7, "labels": [{"name": "bug"}, {"name": "ui"}], "assignee": null},
                "a/b": {"m~n": 1},
                "pull-request": true,
            },
        },
        "subscription": {"id": "s1", "name": "mine", "tags": {}},
        "scope": {"project_id": "p1"},
    })
}

fn apply(fields: Value) -> Mapped {
    Mapping::compile(&fields).unwrap().apply(&context(), &Budget::default()).unwrap()
}

#[test]
fn strings_select() {
    for (selector, expected) in [
        ("$.event.event_id", json!("e1")),
        ("$['event']['attributes']['pull-request']", json!(true)),
        ("$.event.attributes.issue.labels[0].name", json!("bug")),
        ("$.event.attributes.issue.labels[-1].name", json!("ui")),
        ("$.event.attributes.issue.labels[*].name", json!(["bug", "ui"])),
        ("$.event.attributes.issue.labels[?@.name == 'ui'].name", json!("ui")),
        ("$..title", json!("Broken")),
        ("$..name", json!(["bug", "ui", "mine"])),
        ("$.event.attributes.issue.assignee", json!(null)),
        ("$.subscription.tags", json!({})),
        ("/event/attributes/issue/number", json!(7)),
        ("/event/attributes/issue/labels/1/name", json!("ui")),
        ("/event/attributes/a~1b/m~0n", json!(1)),
        ("{{ event.attributes.issue.number }}", json!(7)),
        ("{{ event.attributes.issue.labels }}", json!([{"name": "bug"}, {"name": "ui"}])),
        ("#{{ event.attributes.issue.number }}: {{ event.attributes.issue.title }}", json!("#7: Broken")),
        ("/issues/{{ event.attributes.issue.number }}", json!("/issues/7")),
        ("${{ event.attributes.issue.number }}", json!("$7")),
        ("$$.event", json!("$.event")),
        ("$$$", json!("$$")),
        ("//event", json!("/event")),
        ("//", json!("/")),
        ("plain", json!("plain")),
        ("", json!("")),
        ("a $.b /c", json!("a $.b /c")),
    ] {
        let mapped = apply(json!({ "x": selector }));
        assert_eq!(mapped, Mapped { inputs: json!({ "x": expected }), missed: Vec::new() }, "{selector}");
    }
}

#[test]
fn shapes_are_kept() {
    let mapped = apply(json!({"$.key": {"list": ["$.event.event_id", 1, null, true, ["/scope/project_id"]]}, "empty": {}}));
    assert_eq!(mapped.inputs, json!({"$.key": {"list": ["e1", 1, null, true, ["p1"]]}, "empty": {}}));
}

#[test]
fn the_result_is_an_object() {
    assert_eq!(Mapping::default().apply(&context(), &Budget::default()).unwrap().inputs, context());
    assert_eq!(apply(json!("$")).inputs, context());
    assert_eq!(apply(json!("$.event.event_id")).inputs, json!({"value": "e1"}));
    assert_eq!(apply(json!("text")).inputs, json!({"value": "text"}));
    assert_eq!(apply(json!("$.event.attributes.issue.labels")).inputs["value"][1], json!({"name": "ui"}));
    let gone = apply(json!("$.gone"));
    assert_eq!(gone.inputs, json!({"value": null}));
    assert_eq!(gone.missed, [Miss { place: String::new(), selector: "$.gone".to_owned() }]);
}

#[test]
fn what_is_not_found_is_null_and_told() {
    let mapped =
        apply(json!({"a/b": ["$.gone", "$.scope"], "c": "/event/gone", "d": "{{ event.gone }}", "e": "$.event.attributes.issue.assignee"}));
    assert_eq!(mapped.inputs, json!({"a/b": [null, {"project_id": "p1"}], "c": null, "d": null, "e": null}));
    let missed: Vec<_> = mapped.missed.iter().map(|miss| (miss.place.as_str(), miss.selector.as_str())).collect();
    assert_eq!(missed, [("/a~1b/0", "$.gone"), ("/c", "/event/gone"), ("/d", "{{ event.gone }}")]);
}

#[test]
fn mistakes_are_found_when_reading() {
    for (fields, message) in [
        (json!([]), "inputs_fields: must be an object or a string"),
        (json!(null), "inputs_fields: must be an object or a string"),
        (json!("$.a["), "inputs_fields: `$.a[` is not a JSONPath: "),
        (json!({"a": ["$5 off"]}), "inputs_fields/a/0: `$5 off` is not a JSONPath: "),
        (json!({"a~b": "$.pull-request"}), "inputs_fields/a~0b: `$.pull-request` is not a JSONPath: "),
        (json!({"a": "$..a..b..c"}), "inputs_fields/a: `$..a..b..c` is not a JSONPath: more than two `..`; hint: write `$$` for a text"),
        (json!({"a": "/home/~me"}), "inputs_fields/a: `/home/~me` is not a JSON Pointer: `~` must be `~0` or `~1`; hint: write `//`"),
        (json!({"a": "ok {{ x }}", "b": {"c": "{{ x +"}}), "inputs_fields/b/c: "),
        (json!({"a": vec!["$"; 257]}), "inputs_fields/a/256: more than 256 selectors"),
    ] {
        let error = Mapping::compile(&fields).map(|_| ()).unwrap_err().to_string();
        assert!(error.starts_with(message), "{error}");
    }
}

#[test]
fn ten_levels_are_deep_enough() {
    let nested = |levels: usize| (0..levels).fold(json!("$.scope.project_id"), |inner, _| json!({ "a": inner }));
    assert_eq!(apply(nested(10)).inputs.pointer(&"/a".repeat(10)), Some(&json!("p1")));
    let error = Mapping::compile(&nested(11)).map(|_| ()).unwrap_err();
    assert_eq!(error, MappingError::Depth { place: "/a".repeat(11) });
}

#[test]
fn a_failing_template_names_its_place() {
    let mapping = Mapping::compile(&json!({"a": "$", "b": ["{{ event.event_id | length }}", "{{ scope | base64 }}"]})).unwrap();
    let error = mapping.apply(&context(), &Budget::default()).unwrap_err();
    assert!(matches!(&error, MappingError::Expression { place, .. } if place == "/b/1"), "{error}");
}

#[test]
fn large_results_are_refused() {
    let large = json!({"text": "x".repeat(100_000)});
    assert!(Mapping::compile(&json!({"a": vec!["$"; 40]})).unwrap().apply(&large, &Budget::default()).is_ok());
    let error = Mapping::compile(&json!({"a": vec!["$"; 50]})).unwrap().apply(&large, &Budget::default()).unwrap_err();
    assert_eq!(error, MappingError::Output { place: "/a/41".to_owned() });
    // Every level of a deep value holds all levels below it.
    let deep = (0..100).fold(json!("x".repeat(100_000)), |inner, _| json!({ "a": inner }));
    assert!(Mapping::compile(&json!("$..*")).unwrap().apply(&deep, &Budget::default()).is_err());
}

#[test]
fn a_mapping_is_as_much_work_as_its_budget() {
    let many = json!({"event": {"attributes": {"list": vec![json!({"a": 1}); 100_000]}}});
    let paths = |count: usize| Mapping::compile(&json!({"x": vec!["$..*..[?@.a==2]"; count]})).unwrap();
    assert!(paths(1).apply(&many, &Budget::default()).is_ok());
    let error = paths(16).apply(&many, &Budget::default()).unwrap_err();
    assert!(matches!(&error, MappingError::Costly { why: Exceeded::Steps(_), .. }), "{error}");
    let texts = Mapping::compile(&json!({"x": vec!["{{ event | tojson | length }}"; 250]})).unwrap();
    let short = Budget::new(kernel::Limits { time: std::time::Duration::ZERO, ..kernel::Limits::USUAL });
    let error = texts.apply(&many, &short).unwrap_err();
    assert!(matches!(&error, MappingError::Expression { place, reason } if place == "/x/0" && reason.contains("took longer")), "{error}");
}
