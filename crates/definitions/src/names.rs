//! The names of tools in rules and in messages.

use catalog::Integration;
use kernel::{CallRef, suggest};
use workflows::{Retrieved, WorkflowError};

/// The name of a workflow in rules, however it is called.
pub fn workflow_name(found: &Retrieved) -> String {
    CallRef::Variant { slug: found.artifact.slug.clone(), version: None }.to_string()
}

/// The same, and the name of this revision.
pub fn workflow_names(found: &Retrieved) -> [String; 2] {
    let version = Some(found.revision.version.to_string());
    [workflow_name(found), CallRef::Variant { slug: found.artifact.slug.clone(), version }.to_string()]
}

/// A failure to find what a ref names says which ref that was.
pub fn about_workflow(target: &CallRef, error: WorkflowError) -> WorkflowError {
    match error {
        WorkflowError::NotFound(missing) => WorkflowError::NotFound(missing.asked_as(target)),
        other => other,
    }
}

/// The name of an action that its integration does not have, with the one that was meant, if one is near.
pub fn unknown_action(integration: &Integration, action: &str) -> String {
    let hint = suggest::did_you_mean(action, integration.actions.iter().map(|other| other.key.as_str()));
    with_hint(&[integration.provider, &integration.key, action], &hint)
}

/// What was looked for, and a sentence with what was meant, if there is one.
pub fn with_hint(parts: &[&str], hint: &str) -> String {
    let name = parts.join("/");
    if hint.is_empty() { name } else { format!("{name}.{hint}") }
}
