//! What can go wrong with runs of agents.

use agents::AgentError;
use calls::CallError;
use kernel::seal::SealError;
use store::StoreError;
use work::WorkError;

/// A failure of this room. How a run itself fails is an end of the run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    #[error("Run not found")]
    NotFound,
    #[error("The run is {0} already.")]
    Ended(&'static str),
    #[error("{0}")]
    Invalid(String),
    #[error("This project has {0} agent runs that have not ended, which is as many as it may have. Cancel some, or wait until some end.")]
    TooMany(i64),
    #[error("This Idempotency-Key was used with another run.")]
    KeyReused,
    #[error("what a run holds does not open: {0}")]
    Sealed(#[from] SealError),
    #[error("what a run holds cannot be read: {0}")]
    Broken(String),
    #[error(transparent)]
    Agent(#[from] AgentError),
    #[error(transparent)]
    Call(#[from] CallError),
    #[error(transparent)]
    Work(#[from] WorkError),
    #[error(transparent)]
    Store(#[from] StoreError),
}
