//! Which tools an agent may use right now, and why not the others. One decision serves whoever lists tools and whoever calls one.

mod gather;
mod grants;
mod relevance;
mod select;
mod tool;

use definitions::config::ToolConfig;
use grants::Configured;
pub(crate) use grants::Grants;
pub use select::{Picked, Selection};
pub use tool::{GrantedTool, LeftOut};

use crate::{Agent, AgentRef};

/// Whose tools they are: an agent's, or those of something that names its tools itself.
#[derive(Clone, Debug)]
pub enum ToolOwner {
    Agent(AgentRef),
    Configs(Vec<ToolConfig>),
}

/// The tools of one agent at one moment.
#[derive(Debug)]
pub struct Toolset {
    /// The most preferred first, apps of equal priority in turn.
    pub tools: Vec<GrantedTool>,
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
