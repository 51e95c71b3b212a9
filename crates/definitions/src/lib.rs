//! What tools are: an agent's tool configs, the specs that runners are given, definitions for model APIs, and the platform ops with what
//! binds them to a run. It must never know how a call is permitted, made or recorded, nor which tool fits a sentence.

pub mod config;
mod env;
mod error;
pub mod format;
mod names;
pub mod ops;
mod own_change;
mod resolve;
mod specs;
mod tool;
mod verdict;
mod whole;

use catalog::Catalog;
use connections::Connections;
use secrets::Secrets;
use workflows::Workflows;

pub use env::Env;
pub use error::ResolveError;
pub use names::{about_workflow, unknown_action, with_hint, workflow_name, workflow_names};
pub use own_change::OwnChange;
pub use resolve::{Callee, ModelDefinitions, Resolved, ResolvedConnection, ResolvedTool};
pub use specs::{Callback, Referenced, SpecSet, ToolCallback, ToolImplementation, ToolSpec};
pub use tool::{DescribedTool, Tool};
pub use verdict::{BUILT_INS, Verdict};
pub use whole::{ConnectedIntegration, ConnectedTool};

/// The tool definitions of a deployment.
#[derive(Clone, Debug)]
pub struct Definitions {
    catalog: Catalog,
    connections: Connections,
    workflows: Workflows,
    secrets: Secrets,
}

impl Definitions {
    pub fn new(catalog: Catalog, connections: Connections, workflows: Workflows, secrets: Secrets) -> Self {
        Self { catalog, connections, workflows, secrets }
    }
}
