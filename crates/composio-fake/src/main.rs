//! The stand-in as a program, for demos.

use clap::Parser;
use composio_fake::Fake;

/// A stand-in for Composio on this machine.
#[derive(Debug, Parser)]
struct Args {
    /// Port to listen on; 0 takes a free one
    #[arg(long, default_value_t = 9900)]
    port: u16,
    /// How many made-up toolkits of 20 tools to add
    #[arg(long, default_value_t = 0)]
    toolkits: usize,
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let args = Args::parse();
    let fake = Fake::start_on(args.port).await?;
    fake.add_toolkits(args.toolkits, 20);
    println!("url: {}\nkey: {}\n", fake.url(), fake.key());
    println!("export COMPOSIO_API_URL={} COMPOSIO_API_KEY={}", fake.url(), fake.key());
    tokio::signal::ctrl_c().await
}
