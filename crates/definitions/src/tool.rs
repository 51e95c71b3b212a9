//! A callable tool, whoever lists it.

use std::sync::Arc;

use catalog::{Action, Integration};
use kernel::json::Document;
use serde_json::Value;

use crate::format::{Format, ToolView, definition};

/// What is behind a name that can be called. The schemas of an action are read when somebody looks at them.
#[derive(Clone, Debug)]
pub enum Tool {
    Action(Arc<Integration>, Arc<Action>),
    /// A workflow or a platform op.
    Described(DescribedTool),
}

/// A tool that is no action, as it was described.
#[derive(Clone, Debug)]
pub struct DescribedTool {
    pub title: String,
    pub description: String,
    pub input_schema: Value,
    pub read_only: Option<bool>,
}

impl Tool {
    /// The name for people.
    pub fn title(&self) -> &str {
        match self {
            Self::Action(_, action) => &action.name,
            Self::Described(tool) => &tool.title,
        }
    }

    pub fn description(&self) -> &str {
        match self {
            Self::Action(_, action) => &action.description,
            Self::Described(tool) => &tool.description,
        }
    }

    pub fn input_schema(&self) -> Value {
        match self {
            Self::Action(_, action) => action.input_schema.value(),
            Self::Described(tool) => tool.input_schema.clone(),
        }
    }

    fn output_schema(&self) -> Option<Value> {
        self.action().and_then(|(_, action)| action.output_schema.as_ref().map(Document::value))
    }

    /// Whether it only reads, where that is known.
    pub fn read_only(&self) -> Option<bool> {
        match self {
            Self::Action(_, action) => Some(action.read_only),
            Self::Described(tool) => tool.read_only,
        }
    }

    /// Whether it may destroy something, where that is known.
    pub fn destructive(&self) -> Option<bool> {
        self.action().map(|(_, action)| action.destructive)
    }

    /// The integration and the action, where the tool is one.
    pub fn action(&self) -> Option<(&Integration, &Action)> {
        match self {
            Self::Action(integration, action) => Some((integration, action)),
            Self::Described(_) => None,
        }
    }

    /// The definition of the tool for a model API, under a name and with a description that say more than its own.
    pub fn define(&self, format: Format, name: &str, description: &str) -> Value {
        let (input, output) = (self.input_schema(), self.output_schema());
        let view = ToolView {
            name,
            description,
            input_schema: &input,
            output_schema: output.as_ref(),
            read_only: self.read_only(),
            destructive: self.destructive(),
        };
        definition(format, &view)
    }
}
