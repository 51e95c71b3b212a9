//! Which tools an agent may use right now, and why not the others. One decision serves whoever lists tools and whoever calls one.

mod gather;
mod grants;
mod relevance;
mod select;
mod tool;

use serde_json::Value;
use tools::format::{Format, definition};

use grants::Configured;
pub(crate) use grants::Grants;
pub use select::{Picked, Selection};
pub use tool::{LeftOut, Tool};

use crate::Agent;

/// The tools of one agent at one moment.
#[derive(Debug)]
pub struct Toolset {
    /// The most preferred first, apps of equal priority in turn.
    pub tools: Vec<Tool>,
    /// What is configured or assigned and cannot be used, with the reason.
    pub left_out: Vec<LeftOut>,
    pub agent: Agent,
}

impl Toolset {
    pub(crate) fn of(grants: Grants) -> Self {
        let (tools, left_out) = grants.list();
        Self { tools, left_out, agent: grants.into_agent() }
    }

    /// The tools that fit a prompt best, as many as the limit says. Tools that the prompt names are always there.
    pub fn select(&self, prompt: Option<&str>, limit: Option<usize>) -> Selection<'_> {
        select::select(&self.tools, prompt, limit)
    }
}

/// A tool as a model API takes it.
pub fn define(tool: &Tool, format: Format) -> Value {
    let (input, output, description) = (tool.input_schema(), tool.output_schema(), tool.description());
    let view = tools::format::ToolView {
        name: &tool.name,
        description: &description,
        input_schema: &input,
        output_schema: output.as_ref(),
        read_only: tool.read_only,
        destructive: tool.destructive,
    };
    definition(format, &view)
}
