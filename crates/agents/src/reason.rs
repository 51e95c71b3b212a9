//! Why a tool cannot be used, in words and as a code.

use crate::AppName;

/// Why an app or a tool is out of an agent's reach.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    #[error("The agent is {0}; only an active agent uses tools.")]
    AgentNotActive(&'static str),
    #[error("{0} is not assigned to this agent.")]
    NotAssigned(AppName),
    #[error("{0} is switched off for this agent.")]
    SwitchedOff(AppName),
    #[error("There is no app {0}.")]
    UnknownApp(AppName),
    #[error("{0} is not connected.")]
    NotConnected(AppName),
    #[error("{0} waits for its authorization to be completed.")]
    Pending(AppName),
    #[error("The connection of {0} was revoked; connect it again.")]
    Disabled(AppName),
    #[error("The authorization of {app} failed; connect it again. Reason: {why}")]
    Failed { app: AppName, why: String },
    #[error("{app} has no connection `{connection}`, which the assignment names.")]
    NoSuchConnection { app: AppName, connection: String },
    #[error("{app} has no connection of the provider `{provider}`, which the assignment names.")]
    NoSuchProvider { app: AppName, provider: String },
    #[error("This agent uses {app} through `{used}`.")]
    OtherConnection { app: AppName, used: String },
    #[error("{0} is not in the catalog any more.")]
    NotInCatalog(AppName),
    #[error("{app} has no action `{action}`.")]
    UnknownAction { app: AppName, action: String },
    #[error("`{action}` is not among the actions of {app} that the assignment allows.")]
    NotAllowed { app: AppName, action: String },
    #[error("The assignment denies `{action}` of {app}.")]
    Denied { app: AppName, action: String },
    #[error("The assignment is read-only, and `{action}` of {app} changes something.")]
    ReadOnly { app: AppName, action: String },
    #[error("The agent's configuration denies `{0}`.")]
    DeniedByAgent(String),
    #[error("The project does not allow calls of `{0}`.")]
    DeniedByProject(String),
    #[error("`{0}` is not among the tools of this agent.")]
    NotATool(String),
    #[error("{0}")]
    UnknownWorkflow(String),
    #[error("{0}")]
    UnknownOp(String),
    #[error("A `{0}` tool runs at the runner, not here.")]
    RunsElsewhere(&'static str),
    #[error("It is number {rank} of {total} for this prompt, and the limit is {limit}.")]
    OverLimit { rank: usize, total: usize, limit: usize },
}

impl Reason {
    /// The reason for programs.
    pub fn code(&self) -> &'static str {
        match self {
            Self::AgentNotActive(_) => "agent_not_active",
            Self::NotAssigned(_) => "not_assigned",
            Self::SwitchedOff(_) => "switched_off",
            Self::UnknownApp(_) => "unknown_app",
            Self::NotConnected(_) => "not_connected",
            Self::Pending(_) => "pending",
            Self::Disabled(_) => "disabled",
            Self::Failed { .. } => "failed",
            Self::NoSuchConnection { .. } => "no_such_connection",
            Self::NoSuchProvider { .. } => "no_such_provider",
            Self::OtherConnection { .. } => "other_connection",
            Self::NotInCatalog(_) => "not_in_catalog",
            Self::UnknownAction { .. } => "unknown_action",
            Self::NotAllowed { .. } => "not_allowed",
            Self::Denied { .. } => "denied",
            Self::ReadOnly { .. } => "read_only",
            Self::DeniedByAgent(_) => "denied_by_agent",
            Self::DeniedByProject(_) => "denied_by_project",
            Self::NotATool(_) => "not_a_tool",
            Self::UnknownWorkflow(_) => "unknown_workflow",
            Self::UnknownOp(_) => "unknown_op",
            Self::RunsElsewhere(_) => "runs_elsewhere",
            Self::OverLimit { .. } => "over_limit",
        }
    }

    /// Whether what was asked for is not there at all.
    pub fn is_unknown(&self) -> bool {
        matches!(self, Self::UnknownAction { .. } | Self::UnknownWorkflow(_) | Self::UnknownOp(_) | Self::UnknownApp(_))
    }
}
