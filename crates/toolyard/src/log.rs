//! Logs go to stderr: text for people on a terminal, JSON for machines.

use std::io::IsTerminal;

use anyhow::Context;
use tracing_subscriber::EnvFilter;

use crate::config::{Config, LogFormat};

/// Starts logging.
pub fn start(config: &Config) -> anyhow::Result<()> {
    let filter = EnvFilter::try_new(&config.log).with_context(|| format!("`{}` is not a log filter", config.log))?;
    let terminal = std::io::stderr().is_terminal();
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match config.log_format {
        LogFormat::Text => builder.with_ansi(terminal).init(),
        LogFormat::Auto if terminal => builder.with_target(false).init(),
        LogFormat::Auto | LogFormat::Json => builder.json().flatten_event(true).init(),
    }
    Ok(())
}
