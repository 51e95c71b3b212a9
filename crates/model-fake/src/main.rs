//! The scripted model as a program, for demos.

use std::path::PathBuf;

use clap::Parser;
use model_fake::{ModelServer, Script, Turn};

/// A model on this machine that says what a script says.
#[derive(Debug, Parser)]
struct Args {
    /// Port to listen on; 0 takes a free one
    #[arg(long, default_value_t = 9911)]
    port: u16,
    /// A JSON file with a list of turns, such as [{"calls": [{"name": "weather", "arguments": {}}]}, {"text": "Done."}]; without it the
    /// model repeats what it is told
    #[arg(long)]
    script: Option<PathBuf>,
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let args = Args::parse();
    let script = match args.script {
        Some(file) => Script::turns(serde_json::from_slice::<Vec<Turn>>(&std::fs::read(file)?)?),
        None => Script::function(|conversation| Turn::say(format!("You said: {}", conversation.last_user()))),
    };
    let server = ModelServer::start_on(args.port, script, false).await?;
    println!("url: {}", server.url());
    tokio::signal::ctrl_c().await
}
