//! Keys that act for certain agents: which, and that they reach no other.

use std::collections::HashMap;

use kernel::{AgentId, KeyId, ProjectId, Scope};

use crate::{Agent, AgentError, AgentRef, Agents, store};

impl Agents {
    /// The agents that somebody named, by name, number or id.
    #[kernel::boxed]
    pub async fn named(&self, project: ProjectId, names: &[String]) -> Result<Vec<AgentId>, AgentError> {
        if names.is_empty() {
            return Err(AgentError::Invalid("Name at least one agent.".to_owned()));
        }
        let known = store::agents::names(&self.0.db, project).await?;
        let one = |name: &String| {
            let meant: Option<AgentRef> = name.trim().parse().ok();
            let fits = |(id, number, called): &&(AgentId, i64, String)| match meant {
                _ if called == name => true,
                Some(AgentRef::Id(meant)) => *id == meant,
                Some(AgentRef::Number(meant)) => *number == meant,
                None => false,
            };
            let unknown = || catalog::Missing::new(name, known.iter().map(|(.., called)| called.as_str()));
            known.iter().find(fits).map(|(id, ..)| *id).ok_or_else(|| AgentError::Unknown(unknown()))
        };
        names.iter().map(one).collect()
    }

    /// Lets a key act for these agents. The key was made for agents, so until now it could do nothing.
    #[kernel::boxed]
    pub async fn bind_key(&self, project: ProjectId, key: KeyId, agents: &[AgentId]) -> Result<(), AgentError> {
        let mut tx = self.0.db.begin().await?;
        for agent in agents {
            store::keys::bind(&mut tx, project, key, *agent).await?;
        }
        Ok(tx.commit().await?)
    }

    /// The names of the agents that keys act for, by key.
    #[kernel::boxed]
    pub async fn of_keys(&self, project: Option<ProjectId>) -> Result<HashMap<KeyId, Vec<String>>, AgentError> {
        Ok(store::keys::names(&self.0.db, project).await?)
    }

    /// The agent, if the key may see it. To a key for other agents it is unknown.
    pub(crate) async fn seen(&self, scope: Scope, agent: Agent) -> Result<Agent, AgentError> {
        if scope.is_for_agents && !store::keys::is_bound(&self.0.db, scope.project, scope.key, agent.id).await? {
            return Err(AgentError::NotFound);
        }
        Ok(agent)
    }
}
