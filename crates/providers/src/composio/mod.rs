//! Composio as a provider.

pub mod translate;
