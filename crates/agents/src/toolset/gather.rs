//! Gathering what the decision needs: the agent, its rows, the connections, the workflows it names, the project's word.

use calls::CallError;
use definitions::config::ToolConfig;
use kernel::Scope;
use workflows::WorkflowError;

use super::{Configured, Grants, ToolOwner, Toolset};
use crate::{Agent, AgentError, AgentRef, Agents, Reason, store};

impl Agents {
    /// The tools that an agent may use right now.
    #[kernel::boxed]
    pub async fn toolset(&self, scope: Scope, agent: AgentRef) -> Result<Toolset, AgentError> {
        self.grants(scope, agent).await.map(Toolset::of)
    }

    /// The tools that somebody may use right now.
    #[kernel::boxed]
    pub async fn toolset_of(&self, scope: Scope, owner: &ToolOwner) -> Result<Toolset, AgentError> {
        self.grants_of(scope, owner).await.map(Toolset::of)
    }

    /// What decides about the tools of whoever has them. Configs without an agent are those of one that has nothing else.
    pub(crate) async fn grants_of(&self, scope: Scope, owner: &ToolOwner) -> Result<Grants, AgentError> {
        let configs = match owner {
            ToolOwner::Agent(agent) => return self.grants(scope, *agent).await,
            ToolOwner::Configs(configs) => configs,
        };
        let agent = Agent::of_configs(scope.project, configs.clone(), self.0.clock.now());
        let apps = self.apps(scope).await?;
        let policy = self.0.calls.project_policy(scope.project).await?;
        let configured = self.configured(scope, &agent).await?;
        Ok(Grants::new(agent, Vec::new(), apps, configured, &policy))
    }

    /// What decides about an agent's tools. Whoever lists them and whoever calls one asks here.
    pub(crate) async fn grants(&self, scope: Scope, agent: AgentRef) -> Result<Grants, AgentError> {
        let agent = self.find(scope, agent).await?;
        let rows = store::assignments::all(&self.0.db, scope.project, agent.id).await?;
        let apps = self.apps(scope).await?;
        let policy = self.0.calls.project_policy(scope.project).await?;
        let configured = self.configured(scope, &agent).await?;
        Ok(Grants::new(agent, rows, apps, configured, &policy))
    }

    async fn configured(&self, scope: Scope, agent: &Agent) -> Result<Vec<Configured>, AgentError> {
        let mut configured = Vec::with_capacity(agent.tool_configs.len());
        for config in &agent.tool_configs {
            let workflow = match config {
                ToolConfig::Reference(tool) => Some(match self.0.definitions.reference(scope, tool).await {
                    Ok(found) => Ok(found),
                    Err(error @ (WorkflowError::NotFound(_) | WorkflowError::NotDeployed { .. })) => {
                        Err(Reason::UnknownWorkflow(error.to_string()))
                    }
                    Err(other) => return Err(CallError::Workflow(other).into()),
                }),
                _ => None,
            };
            configured.push(Configured { config: config.clone(), workflow });
        }
        Ok(configured)
    }
}
