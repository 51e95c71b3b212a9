//! What led to a call, besides the key that it is made with.

use crate::{AgentId, DeliveryId, RunId};

/// The agent, the run and its step, and the delivery that a call is made for, as far as there are any.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Origin {
    pub agent: Option<AgentId>,
    pub run: Option<RunId>,
    /// The name of the step of that run.
    pub step: Option<String>,
    pub delivery: Option<DeliveryId>,
}
