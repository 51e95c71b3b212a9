//! Runs of agents: a durable loop that asks a model, calls tools and waits for people. It must never know HTTP, how a model API is written
//! (`models` does), or which tools an agent may use (`agents` does).

mod events;

pub use events::{NumberedEvent, RunEvent, RunState};
