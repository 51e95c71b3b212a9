//! One tool of a toolset, and one that is not in it.

use std::borrow::Cow;
use std::collections::HashSet;

use definitions::format::{Format, function_name};
use definitions::{Tool, Verdict};
use kernel::CallRef;
use serde_json::Value;

use crate::{AppName, Reason};

/// A tool that the agent may use.
#[derive(Clone, Debug)]
pub struct GrantedTool {
    pub call_ref: CallRef,
    /// What a model calls it.
    pub name: String,
    pub app: Option<AppName>,
    /// The slug of the connection that it goes through.
    pub connection: Option<String>,
    /// `Allow` or `Ask`; what is denied is no tool.
    pub permission: Verdict,
    pub priority: i64,
    /// What there is to say about a connection that its service refuses.
    pub failure: Option<String>,
    /// What is behind it.
    pub tool: Tool,
    /// The name that the author gave it.
    pub(super) wished: Option<String>,
}

impl GrantedTool {
    /// What it does, and that it may not work now.
    pub fn description(&self) -> Cow<'_, str> {
        let description = self.tool.description();
        match &self.failure {
            Some(failure) => Cow::Owned(format!("{description} ({failure})")),
            None => Cow::Borrowed(description),
        }
    }

    /// The tool as a model API takes it.
    pub fn define(&self, format: Format) -> Value {
        self.tool.define(format, &self.name, &self.description())
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
pub(super) fn give_names(tools: &mut [GrantedTool]) {
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
