//! Rows and bodies of workflows, environments and the aliases of workflows, by the names of their operations.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::operations::Operation;
use super::rows::{World, text};

const FAMILIES: [(&str, &str); 4] =
    [("workflow", "workflows"), ("environment", "environments"), ("application", "applications"), ("evaluator", "evaluators")];

/// The family that a parameter names a row of.
pub fn family(parameter: &str) -> Option<(&'static str, &'static str)> {
    let levels = ["_id", "_variant_id", "_revision_id"];
    FAMILIES.into_iter().find(|(one, _)| parameter.strip_prefix(one).is_some_and(|level| levels.contains(&level)))
}

fn data(one: &str) -> Value {
    if one == "environment" { json!({"references": {}}) } else { json!({"kind": "echo"}) }
}

impl World {
    /// A new row of a history, by the name of a parameter.
    pub async fn part_of_history(&self, parameter: &str) -> String {
        let (one, many) = family(parameter).unwrap();
        let body = json!({one: {"slug": self.name(), "data": data(one)}});
        let made = self.test.post(&format!("/simple/{many}"), body).await.expect(200)[one].take();
        text(&made[&parameter[one.len() + 1..]])
    }

    /// A body that an operation of a history takes, if it is one.
    pub async fn history_body(&self, operation: &Operation, rows: &mut BTreeMap<String, String>) -> Option<Value> {
        let (one, many) =
            FAMILIES.into_iter().find(|(_, many)| operation.path[1..].trim_start_matches("simple/").split('/').next() == Some(*many))?;
        let rest = operation.path.split_once(many)?.1;
        let own = |level: &str| format!("{one}{level}");
        let name = self.name();
        let verb = operation.id.split('_').next()?;
        Some(match (verb, rest.split('/').nth(1).unwrap_or_default()) {
            ("create", "") => json!({one: {"slug": name}}),
            ("edit", "variants") => json!({own("_variant"): {"name": name}}),
            ("edit", "revisions") => json!({own("_revision"): {"name": name}}),
            ("edit", _) => json!({one: {"name": name}}),
            ("query", "revisions") => json!({own("_variant_refs"): [{"id": self.named(rows, &own("_variant_id"), operation).await}]}),
            ("query", _) => json!({own("_refs"): [{"id": self.named(rows, &own("_id"), operation).await}]}),
            ("create", "variants") => json!({own("_variant"): {own("_id"): self.named(rows, &own("_id"), operation).await, "slug": name}}),
            ("create", "revisions") => {
                let artifact = self.named(rows, &own("_id"), operation).await;
                let body = json!({own("_variant"): {own("_id"): artifact, "slug": name}});
                let variant = self.test.post(&format!("/{many}/variants"), body).await.expect(200)[own("_variant")]["id"].take();
                rows.insert(own("_variant_id"), text(&variant));
                json!({own("_revision"): {own("_variant_id"): variant}})
            }
            ("fork", _) => {
                let variant = self.named(rows, &own("_variant_id"), operation).await;
                json!({own("_variant"): {"slug": name}, own("_variant_ref"): {"id": variant}})
            }
            ("commit", _) => {
                let variant = self.named(rows, &own("_variant_id"), operation).await;
                json!({own("_revision"): {own("_variant_id"): variant, "data": data(one), "message": name}})
            }
            ("log", _) => json!({own("_revisions"): {own("_variant_id"): self.named(rows, &own("_variant_id"), operation).await}}),
            ("retrieve" | "resolve", _) => json!({own("_revision_ref"): {"id": self.named(rows, &own("_revision_id"), operation).await}}),
            ("deploy", _) => {
                let (flow, place) = (self.named(rows, &own("_id"), operation).await, self.named(rows, "environment_id", operation).await);
                json!({own("_ref"): {"id": flow}, "environment_ref": {"id": place}})
            }
            _ => return None,
        })
    }
}
