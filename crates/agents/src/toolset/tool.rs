//! One tool of a toolset, and one that is not in it.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use catalog::{Action, Integration};
use kernel::CallRef;
use serde_json::Value;
use tools::format::function_name;
use tools::permission::Permission;

use crate::{AppName, Reason};

/// A tool that the agent may use.
#[derive(Clone, Debug)]
pub struct Tool {
    pub call_ref: CallRef,
    /// What a model calls it.
    pub name: String,
    pub app: Option<AppName>,
    /// The slug of the connection that it goes through.
    pub connection: Option<String>,
    pub read_only: Option<bool>,
    pub destructive: Option<bool>,
    /// `Allow` or `Ask`; what is denied is no tool.
    pub permission: Permission,
    pub priority: i64,
    /// What there is to say about a connection that its service refuses.
    pub failure: Option<String>,
    pub(super) shape: Shape,
    /// The name that the author gave it.
    pub(super) wished: Option<String>,
}

/// Where a tool's words and schemas are.
#[derive(Clone, Debug)]
pub(super) enum Shape {
    Action(Arc<Integration>, Arc<Action>),
    Described { title: String, description: String, input_schema: Value },
}

impl Tool {
    /// What it does, and that it may not work now.
    pub fn description(&self) -> Cow<'_, str> {
        let description = match &self.shape {
            Shape::Action(_, action) => &action.description,
            Shape::Described { description, .. } => description,
        };
        match &self.failure {
            Some(failure) => Cow::Owned(format!("{description} ({failure})")),
            None => Cow::Borrowed(description),
        }
    }

    /// The name for people.
    pub fn title(&self) -> &str {
        match &self.shape {
            Shape::Action(_, action) => &action.name,
            Shape::Described { title, .. } => title,
        }
    }

    pub fn input_schema(&self) -> Value {
        match &self.shape {
            Shape::Action(_, action) => action.input_schema.value(),
            Shape::Described { input_schema, .. } => input_schema.clone(),
        }
    }

    pub fn output_schema(&self) -> Option<Value> {
        match &self.shape {
            Shape::Action(_, action) => action.output_schema.as_ref().map(kernel::json::Document::value),
            Shape::Described { .. } => None,
        }
    }

    /// The integration and the action, where the tool is one.
    pub fn action(&self) -> Option<(&Integration, &Action)> {
        match &self.shape {
            Shape::Action(integration, action) => Some((integration, action)),
            Shape::Described { .. } => None,
        }
    }
}

/// What is not in a toolset, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// A call ref, or what was configured where there is none.
    pub tool: String,
    pub app: Option<AppName>,
    pub reason: Reason,
}

/// Gives every tool a name of its own: its author's where that is free, else one made from its ref.
pub(super) fn give_names(tools: &mut [Tool]) {
    for tool in tools.iter_mut() {
        tool.name = function_name(&tool.call_ref.to_string());
    }
    if tools.iter().all(|tool| tool.wished.is_none()) {
        return;
    }
    let mut taken: HashSet<String> = tools.iter().filter(|tool| tool.wished.is_none()).map(|tool| tool.name.clone()).collect();
    for tool in tools {
        if let Some(wished) = tool.wished.as_deref().map(function_name) {
            if !taken.contains(&wished) {
                tool.name = wished;
            }
            taken.insert(tool.name.clone());
        }
    }
}
