//! Made-up toolkits by the hundred, for tests of scale.

use std::ops::Range;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::catalog::{Auth, Category, Field, Fields, Tool, Toolkit, TriggerType};

const TRADES: [(&str, &str); 12] = [
    ("bakery", "orders and recipes of a bakery"),
    ("library", "books and loans of a library"),
    ("garage", "repairs and parts of a garage"),
    ("clinic", "visits and notes of a clinic"),
    ("school", "classes and marks of a school"),
    ("museum", "rooms and exhibits of a museum"),
    ("harbor", "ships and berths of a harbor"),
    ("farm", "fields and harvests of a farm"),
    ("hotel", "rooms and guests of a hotel"),
    ("theater", "plays and seats of a theater"),
    ("airport", "flights and gates of an airport"),
    ("studio", "songs and sessions of a studio"),
];

const VERBS: [(&str, &str, &str); 8] = [
    ("LIST", "List", "readOnlyHint"),
    ("GET", "Get", "readOnlyHint"),
    ("CREATE", "Create", "updateHint"),
    ("UPDATE", "Update", "updateHint"),
    ("DELETE", "Delete", "destructiveHint"),
    ("SEARCH", "Search", "readOnlyHint"),
    ("ARCHIVE", "Archive", "updateHint"),
    ("EXPORT", "Export", "readOnlyHint"),
];

const THINGS: [&str; 15] = [
    "order", "invoice", "customer", "report", "booking", "ticket", "payment", "shipment", "contract", "photo", "note", "task", "event",
    "price", "supplier",
];

/// How many of the optional arguments a tool has.
const SIZES: usize = 4;

pub(crate) fn toolkits(numbers: Range<usize>, tools_each: usize) -> impl Iterator<Item = Toolkit> {
    let shapes: Vec<Shape> = THINGS.into_iter().map(Shape::of).collect();
    numbers.map(move |number| toolkit(number, tools_each, &shapes))
}

/// What the tools on one kind of thing take and give.
struct Shape {
    thing: &'static str,
    inputs: [Fields; SIZES],
    output: Fields,
}

impl Shape {
    fn of(thing: &'static str) -> Self {
        Self { thing, inputs: std::array::from_fn(|size| Arc::new(input(thing, size))), output: Arc::new(output(thing)) }
    }
}

fn toolkit(number: usize, tools: usize, shapes: &[Shape]) -> Toolkit {
    let (trade, about) = TRADES[number % TRADES.len()];
    let slug = format!("{trade}{number}");
    Toolkit {
        name: format!("{}{} {number}", trade[..1].to_uppercase(), &trade[1..]),
        description: format!("Keeps the {about}, at branch {number}."),
        url: format!("https://{slug}.example"),
        categories: vec![Category { id: format!("trade-{}", number % 5), name: format!("Trades {}", number % 5) }],
        versions: vec!["20261101_00".to_owned()],
        auth: vec![auth(number)],
        tools: (0..tools).map(|index| tool(&slug, trade, index, shapes)).collect(),
        triggers: number.is_multiple_of(2).then(|| trigger(&slug, &shapes[number % shapes.len()])).into_iter().collect(),
        listed: true,
        slug,
    }
}

/// Two in three are OAuth, one in three wants a key.
fn auth(number: usize) -> Auth {
    let mut auth = Auth {
        mode: "OAUTH2".to_owned(),
        managed: true,
        scopes: vec!["all".to_owned()],
        account_required: vec![],
        account_optional: vec![],
    };
    if number % 3 == 2 {
        let field = Field {
            name: "generic_api_key".to_owned(),
            display_name: "API key".to_owned(),
            description: "From the settings.".to_owned(),
            secret: true,
            default: None,
        };
        auth = Auth { mode: "API_KEY".to_owned(), managed: false, scopes: vec![], account_required: vec![field], account_optional: vec![] };
    }
    auth
}

fn tool(toolkit: &str, trade: &str, index: usize, shapes: &[Shape]) -> Tool {
    let (verb, word, tag) = VERBS[index % VERBS.len()];
    let shape = &shapes[(index / VERBS.len()) % shapes.len()];
    let thing = shape.thing;
    let round = index / (VERBS.len() * shapes.len());
    let more = if round == 0 { String::new() } else { format!("_{round}") };
    Tool {
        slug: format!("{}_{verb}_{}{more}", toolkit.to_uppercase(), thing.to_uppercase()),
        name: format!("{word} {thing}"),
        description: format!("{word}s {thing} records of the {trade}."),
        tags: vec![tag.to_owned()],
        scopes: vec![],
        required: vec![format!("{thing}_id")],
        input: Arc::clone(&shape.inputs[index % SIZES]),
        output: Arc::clone(&shape.output),
        deprecated: false,
        fails: None,
    }
}

fn trigger(toolkit: &str, shape: &Shape) -> TriggerType {
    let thing = shape.thing;
    TriggerType {
        slug: format!("{}_{}_ADDED", toolkit.to_uppercase(), thing.to_uppercase()),
        name: format!("Added {thing}"),
        description: format!("Fires when somebody adds {thing} records."),
        instructions: "Name a label to hear of fewer.".to_owned(),
        kind: "poll".to_owned(),
        required: vec![],
        config: Map::from_iter([("label".to_owned(), json!({"type": "string", "description": "Only those with this label."}))]),
        payload: Map::clone(&shape.output),
    }
}

fn input(thing: &str, size: usize) -> Map<String, Value> {
    let mut input = Map::new();
    input.insert(format!("{thing}_id"), json!({"type": "string", "description": format!("Which {thing} it is about.")}));
    let extra = [
        ("note", json!({"type": "string", "description": "Words to keep with it."})),
        ("amount", json!({"type": "number", "minimum": 0, "description": "How much."})),
        ("urgent", json!({"type": "boolean", "default": false, "description": "Whether it cannot wait."})),
        ("labels", json!({"type": "array", "items": {"type": "string"}, "description": "Labels to find it by."})),
    ];
    input.extend(extra.into_iter().take(1 + size).map(|(name, schema)| (name.to_owned(), schema)));
    input
}

fn output(thing: &str) -> Map<String, Value> {
    Map::from_iter([(format!("{thing}_id"), json!({"type": "string"})), ("done".to_owned(), json!({"type": "boolean"}))])
}
