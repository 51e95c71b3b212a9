//! Which tools an agent may use right now, and why not the others. One decision serves whoever lists tools and whoever calls one.

mod gather;
mod grants;
mod relevance;
mod select;
mod tool;

use std::collections::HashMap;

use kernel::CallRef;
use kernel::call_ref::CallRefError;
use serde_json::Value;
use tools::format::{Format, definition, function_name};
use tools::permission::Permission;

use grants::{Configured, Grants};
pub use select::{Picked, Selection};
pub use tool::{LeftOut, Tool};

use crate::{Agent, Reason};

/// The tools of one agent at one moment.
#[derive(Debug)]
pub struct Toolset {
    /// The most preferred first, apps of equal priority in turn.
    pub tools: Vec<Tool>,
    /// What is configured or assigned and cannot be used, with the reason.
    pub left_out: Vec<LeftOut>,
    grants: Grants,
    names: HashMap<String, CallRef>,
}

impl Toolset {
    pub(crate) fn of(grants: Grants) -> Self {
        let (mut tools, left_out) = grants.list();
        let mut names = tool::give_names(&mut tools);
        // What is left out keeps its name, so that a call of it is told why.
        for (name, target) in grants.wished() {
            names.entry(function_name(name)).or_insert(target);
        }
        Self { tools, left_out, grants, names }
    }

    pub fn agent(&self) -> &Agent {
        self.grants.agent()
    }

    /// Whether a call of this ref may be made, and with how much care.
    pub fn decide(&self, target: &CallRef) -> Result<Permission, Reason> {
        self.grants.decide(target)
    }

    /// What a name means: one of the toolset's own names, or a call ref as it is.
    pub fn target(&self, name: &str) -> Result<CallRef, CallRefError> {
        self.names.get(name).map_or_else(|| name.parse(), |target| Ok(target.clone())).map(grants::canonical)
    }

    /// The tool behind a ref, if the agent has it.
    pub fn tool(&self, target: &CallRef) -> Option<&Tool> {
        self.tools.iter().find(|tool| tool.call_ref == *target)
    }

    /// The tools that fit a prompt best, as many as the limit says. Tools that the prompt names are always there.
    pub fn select(&self, prompt: Option<&str>, limit: Option<usize>) -> Selection<'_> {
        select::select(&self.tools, prompt, limit)
    }
}

/// A tool as a model API takes it.
pub fn define(tool: &Tool, format: Format) -> Value {
    let (input, output) = (tool.input_schema(), tool.output_schema());
    let view = tools::format::ToolView {
        name: &tool.name,
        description: tool.description(),
        input_schema: &input,
        output_schema: output.as_ref(),
        read_only: tool.read_only,
        destructive: tool.destructive,
    };
    definition(format, &view)
}
