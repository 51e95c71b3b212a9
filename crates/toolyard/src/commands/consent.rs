//! Before something that is in use goes away: what would stop, and whether that is meant.

use std::io::{BufRead, IsTerminal, Write};

use anyhow::bail;
use clap::Args;

#[derive(Clone, Copy, Debug, Args)]
pub(super) struct Consent {
    /// Do it without asking, also when something would stop
    #[arg(long)]
    pub(super) yes: bool,
}

impl Consent {
    /// Goes on when nothing would stop, or when a person says so. `deed` is such as `delete the connection github-main`.
    pub(super) fn ask(self, deed: &str, stops: &[String]) -> anyhow::Result<()> {
        if self.yes || stops.is_empty() {
            return Ok(());
        }
        let can_answer = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
        if !can_answer {
            bail!("to {deed} would stop what is in use: {}. Say --yes to do it", stops.join("; "));
        }
        eprintln!("To {deed} would stop:");
        for line in stops {
            eprintln!("  {line}");
        }
        eprint!("Do it? [y/N] ");
        std::io::stderr().flush()?;
        let mut answer = String::new();
        std::io::stdin().lock().read_line(&mut answer)?;
        if !matches!(answer.trim().to_ascii_lowercase().as_str(), "y" | "yes") {
            bail!("nothing was changed");
        }
        Ok(())
    }
}
