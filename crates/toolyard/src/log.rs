//! Logs go to stderr: text for people on a terminal, JSON for machines.

use std::io::IsTerminal;

use anyhow::{Context, bail};
use kernel::suggest::did_you_mean;
use tracing_subscriber::EnvFilter;

use crate::config::{Config, LogFormat};

/// Starts logging.
pub fn start(config: &Config) -> anyhow::Result<()> {
    let filter = filter(&config.log)?;
    let terminal = std::io::stderr().is_terminal();
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match config.log_format {
        LogFormat::Text => builder.with_ansi(terminal).init(),
        LogFormat::Auto if terminal => builder.with_target(false).init(),
        LogFormat::Auto | LogFormat::Json => builder.json().flatten_event(true).init(),
    }
    Ok(())
}

const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];
/// What may stand alone for all that a part logs: our crates, and those that say something worth reading.
const PARTS: [&str; 29] = [
    "accounts",
    "agents",
    "calls",
    "catalog",
    "composio",
    "connections",
    "definitions",
    "discovery",
    "egress",
    "imports",
    "kernel",
    "mcp",
    "mcp_client",
    "native",
    "openapi",
    "operations",
    "sentences",
    "server",
    "store",
    "toolyard",
    "triggers",
    "workflows",
    "axum",
    "h2",
    "hyper",
    "hyper_util",
    "rustls",
    "sqlx",
    "tower_http",
];

/// Reads a filter. A word that is no level would pass for the name of a part that logs nothing, and the log would be empty.
fn filter(text: &str) -> anyhow::Result<EnvFilter> {
    for word in text.split(',').map(str::trim).filter(|word| !word.is_empty() && !word.contains(['=', '[', ':'])) {
        let is_level = LEVELS.iter().any(|level| word.eq_ignore_ascii_case(level)) || matches!(word, "0" | "1" | "2" | "3" | "4" | "5");
        if !is_level && !PARTS.contains(&word) {
            let nearest = did_you_mean(word, LEVELS.into_iter().chain(PARTS));
            bail!(
                "`{word}` in the log filter is neither a level ({}) nor PART=LEVEL, such as `triggers=debug`.{nearest}",
                LEVELS.join(", ")
            );
        }
    }
    EnvFilter::try_new(text).with_context(|| format!("`{text}` is not a log filter; write levels as `info` or `info,triggers=debug`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_that_would_log_nothing_is_refused() {
        for fine in ["info", "", "WARN", "debug,sqlx=warn", "triggers", "info,native::load=trace", "off", "3", "[request]=debug"] {
            assert!(filter(fine).is_ok(), "{fine}");
        }
        for (wrong, told) in
            [("inof", "Did you mean `info`?"), ("info,trigers", "Did you mean `triggers`?"), ("sqlx=loud", "is not a log filter")]
        {
            let error = filter(wrong).unwrap_err().to_string();
            assert!(error.contains(told), "{wrong}: {error}");
        }
    }
}
