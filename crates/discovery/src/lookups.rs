//! Which action finds an id that another one needs.

use catalog::search::verbs::{self, Intent};
use catalog::{Action, Integration};
use serde_json::Value;

/// The required parameters of an action whose values another action finds, with that action: as the integration says, or, where it says so
/// of none, by their names. `issue_id` is found by "List issues".
pub(crate) fn required_lookups<'a>(integration: &'a Integration, action: &Action) -> Vec<(String, &'a Action)> {
    let required = required(action);
    if integration.actions.iter().any(|one| !one.lookups.is_empty()) {
        let said = action.lookups.iter().filter(|(name, _)| required.contains(name));
        return said.filter_map(|(name, finder)| Some((name.clone(), &**integration.action(finder)?))).collect();
    }
    required.into_iter().filter_map(|name| finder(integration, action, &name).map(|finder| (name, finder))).collect()
}

fn required(action: &Action) -> Vec<String> {
    let schema = action.input_schema.value();
    schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The plainest action that lists what the parameter is the id of, and can be called without it.
fn finder<'a>(integration: &'a Integration, action: &Action, parameter: &str) -> Option<&'a Action> {
    let thing = thing_of(action, parameter)?;
    let lists = |one: &&Action| {
        let words = words(&one.name);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let intents = verbs::declared(&words);
        one.read_only && one.key != action.key && (intents.has(Intent::List) || intents.has(Intent::Search)) && {
            let holds_thing = words.iter().any(|word| singular(word) == thing);
            let is_it = |needed: &String| needed == parameter || thing_of(one, needed).as_deref() == Some(thing.as_str());
            holds_thing && !required(one).iter().any(is_it)
        }
    };
    let all = integration.actions.iter().map(|one| &**one);
    all.filter(lists).min_by_key(|one| (required(one).len(), words(&one.name).len()))
}

/// What a parameter is the id of, as one singular word: its own name says so, or, where it is `id` alone, that of the action.
fn thing_of(action: &Action, parameter: &str) -> Option<String> {
    let mut own = words(parameter);
    if !matches!(own.pop()?.as_str(), "id" | "gid" | "uuid" | "key") {
        return None;
    }
    let named = own.pop().or_else(|| {
        let name = words(&action.name);
        name.into_iter().skip(1).find(|word| !matches!(word.as_str(), "a" | "an" | "the" | "one" | "by" | "id"))
    });
    named.map(|word| singular(&word).to_owned())
}

/// The lower-case words of a name: `petId` and `pet_id` alike.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before = ' ';
    for c in name.chars() {
        if !c.is_alphanumeric() || c.is_uppercase() && before.is_lowercase() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| c.is_alphanumeric()) {
            word.extend(c.to_lowercase());
        }
        before = c;
    }
    words.retain(|word| !word.is_empty());
    words
}

fn singular(word: &str) -> &str {
    word.strip_suffix('s').filter(|rest| rest.len() > 2 && !rest.ends_with('s')).unwrap_or(word)
}

#[cfg(test)]
mod tests {
    use catalog::Draft;
    use serde_json::json;

    use super::*;

    fn action(key: &str, name: &str, required: &[&str], read_only: bool) -> Action {
        let mut action = Action::new(key.to_owned(), name.to_owned(), String::new(), &json!({"type": "object", "required": required}));
        action.read_only = read_only;
        action
    }

    fn shop(told: bool) -> Integration {
        let mut actions = vec![
            action("list_orders_of_a_customer", "List orders of a customer", &["customerId"], true),
            action("list_orders", "List orders", &[], true),
            action("find_customers", "Find customers", &["query"], true),
            action("get_order", "Get an order", &["orderId"], true),
            action("refund_order", "Refund an order", &["order_id", "amount"], false),
            action("update_customer", "Update a customer", &["id"], false),
            action("delete_coupon", "Delete a coupon", &["coupon_id"], false),
        ];
        if told {
            actions[4].lookups = vec![("order_id".to_owned(), "get_order".to_owned()), ("note".to_owned(), "list_orders".to_owned())];
        }
        Integration::new("openapi", Draft { key: "shop".to_owned(), actions, ..Draft::default() })
    }

    fn found(integration: &Integration, key: &str) -> Vec<(String, String)> {
        let lookups = required_lookups(integration, integration.action(key).unwrap());
        lookups.into_iter().map(|(name, finder)| (name, finder.key.clone())).collect()
    }

    #[test]
    fn an_id_is_found_by_what_lists_its_thing() {
        let shop = shop(false);
        for (key, expected) in [
            ("refund_order", &[("order_id", "list_orders")][..]),
            ("get_order", &[("orderId", "list_orders")]),
            ("update_customer", &[("id", "find_customers")]),
            ("list_orders_of_a_customer", &[("customerId", "find_customers")]),
            ("delete_coupon", &[]),
            ("list_orders", &[]),
        ] {
            let expected: Vec<(String, String)> = expected.iter().map(|(name, by)| ((*name).to_owned(), (*by).to_owned())).collect();
            assert_eq!(found(&shop, key), expected, "{key}");
        }
    }

    #[test]
    fn what_an_integration_says_goes_before_names() {
        let shop = shop(true);
        assert_eq!(found(&shop, "refund_order"), [("order_id".to_owned(), "get_order".to_owned())]);
        assert!(found(&shop, "update_customer").is_empty());
    }
}
