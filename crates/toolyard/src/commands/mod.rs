//! The command line.

mod admin;
mod agent;
mod approval;
mod bench;
mod call;
mod calls;
mod client;
mod compare;
mod composio;
mod connect;
mod consent;
mod discover;
mod environment;
mod follow;
mod grants;
mod import;
mod integrations;
mod login;
mod mcp;
mod names;
mod notices;
mod ops;
mod person;
mod print;
mod secret;
mod serve;
mod settings;
mod trigger;
mod typed;
mod usage;
mod users;
mod workflow;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{ArgMatches, CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::config::{self, Config, Settings};
use crate::yard;

const SETTINGS_ELSEWHERE: &str = "The server's settings are listed by `toolyard serve --help`; every command takes them, as flags, in the environment or in toolyard.toml.";

/// Tools, connections and triggers for agents, in one binary.
///
/// Without a command it starts the server.
#[derive(Debug, Parser)]
#[command(name = "toolyard", version, max_term_width = 100, after_help = SETTINGS_ELSEWHERE)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    /// Settings file [default: toolyard.toml, if it is there]
    #[arg(long, env = "TOOLYARD_CONFIG", global = true, value_name = "FILE", help_heading = "Server settings")]
    config: Option<PathBuf>,
    #[command(flatten)]
    settings: Settings,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Start the server (the default)
    Serve,
    /// Show the settings in force and where each comes from
    Config,
    /// List and show integrations; check manifest files
    Integrations(integrations::IntegrationsArgs),
    /// Import APIs as integrations of your own; list and remove them
    #[command(subcommand)]
    Import(import::ImportCommand),
    /// Connect an account
    Connect(connect::ConnectArgs),
    /// List, refresh, revoke and delete connections
    Connections(connect::ConnectionsArgs),
    /// Keep the OAuth apps that you registered at providers
    #[command(subcommand)]
    OauthApp(connect::OauthAppCommand),
    /// Find the tool or the event for what you want to do
    Discover(discover::DiscoverArgs),
    /// Call an action, or anything else by its ref
    Call(call::CallArgs),
    /// List calls: who called what, and how it ended; follow them
    Calls(calls::CallsArgs),
    /// List calls that wait for a person; approve and deny them
    Approval(approval::ApprovalArgs),
    /// Show and change which calls run, ask or are refused
    Permissions(approval::PermissionsArgs),
    /// List and call what an agent may ask of Toolyard itself
    Ops(ops::OpsArgs),
    /// List, change, deploy and run workflows
    Workflow(workflow::WorkflowArgs),
    /// List environments and what is deployed to them; archive them
    Environment(environment::EnvironmentArgs),
    /// Start workflows by events and clocks, and see what became of them
    Trigger(Box<trigger::TriggerArgs>),
    /// List and make agents, assign apps to them, see which tools they may use
    Agent(Box<agent::AgentArgs>),
    /// Serve the tools to an MCP client over stdin and stdout, from a running server
    Mcp(mcp::McpArgs),
    /// List, keep and delete named secrets; their values go in and never come out
    Secret(secret::SecretArgs),
    /// Sign in to a server in your browser, so that commands need no key
    Login(login::LoginArgs),
    /// Sign out again
    Logout(login::LogoutArgs),
    /// List and revoke what people let clients do
    Grants(grants::GrantsArgs),
    /// Show and change how the pages look on which people connect accounts
    Branding(settings::BrandingArgs),
    /// Show and change where connect links may lead, and whose sites may show their pages
    ConnectLinks(settings::ConnectLinksArgs),
    /// Show and change for how long the project keeps runs, calls and approvals
    Retention(settings::RetentionArgs),
    /// Show and change how many calls each end user may make
    UserLimits(settings::UserLimitsArgs),
    /// List and forget end users; open, list and close their sessions
    Users(users::UsersArgs),
    /// Bring the database up to date, or see whether it is
    Migrate {
        /// Change nothing; exit with 1 when there is something to do
        #[arg(long)]
        check: bool,
    },
    /// Create, list and delete projects
    #[command(subcommand)]
    Project(admin::ProjectCommand),
    /// Create, list and revoke keys; rotate the sealing key
    #[command(subcommand)]
    Key(admin::KeyCommand),
    /// List, invite and remove people; set passwords, make sign-in links
    #[command(subcommand)]
    Person(person::PersonCommand),
    /// List and end the sessions of people who are signed in
    Sessions(person::SessionsArgs),
    /// See to Composio: what it offers, where it sends events, what it signs with; compare its tools with those here
    #[command(subcommand)]
    Composio(composio::ComposioCommand),
    /// Print the OpenAPI document
    Openapi,
    /// Print a script that completes commands with the tab key
    Completions {
        /// bash, zsh, fish, elvish or powershell
        shell: clap_complete::Shell,
    },
    /// Measure this program on this machine
    #[command(subcommand)]
    Bench(bench::BenchCommand),
}

/// Commands that open the database themselves, and the settings that lead them there.
const LOCAL: [&str; 6] = ["migrate", "project", "key", "person", "sessions", "composio"];
const PLACES: [&str; 3] = ["config", "data_dir", "database_url"];

/// The command line. Every command takes every setting, but only `serve` shows them all, so that a command's own options can be found.
fn command() -> clap::Command {
    let command = Cli::command();
    let settings: Vec<clap::Arg> =
        command.get_arguments().filter(|arg| arg.is_global_set()).cloned().map(|arg| arg.hide_short_help(false)).collect();
    let places: Vec<clap::Arg> = settings.iter().filter(|arg| PLACES.contains(&arg.get_id().as_str())).cloned().collect();
    let command = command.mut_args(|arg| if arg.is_global_set() { arg.hide(true) } else { arg });
    let command = LOCAL.iter().fold(command, |command, name| command.mut_subcommand(*name, |local| local.args(places.clone())));
    command.mut_subcommand("serve", |serve| serve.args(settings))
}

/// Runs the command line and says in one line what went wrong.
pub fn run() -> ExitCode {
    let matches = command().get_matches();
    let cli = match Cli::from_arg_matches(&matches) {
        Ok(cli) => cli,
        Err(error) => error.exit(),
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&error.into()),
    };
    // Two TLS stacks share one provider; whoever comes first installs it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    match runtime.block_on(dispatch(cli, &matches)) {
        Ok(code) => code,
        Err(error) => fail(&error),
    }
}

fn fail(error: &anyhow::Error) -> ExitCode {
    let causes: Vec<String> = error.chain().map(ToString::to_string).collect();
    eprintln!("error: {}", causes.join(": ").replace('\n', " "));
    ExitCode::FAILURE
}

async fn dispatch(cli: Cli, matches: &ArgMatches) -> anyhow::Result<ExitCode> {
    let file = config::read_file(cli.config.as_deref())?;
    let config = Config::settle(cli.settings.clone(), file.clone())?.with_sources(matches);
    match cli.command.unwrap_or(Command::Serve) {
        Command::Serve => Box::pin(serve::serve(config)).await?,
        Command::Config => print::out(&config::describe(matches, &cli.settings, &file, &config)),
        Command::Integrations(args) => return Ok(code(integrations::run(config, args).await?)),
        Command::Import(command) => import::run(config, command).await?,
        Command::Connect(args) => connect::connect(config, args).await?,
        Command::Connections(args) => connect::connections(config, args).await?,
        Command::OauthApp(command) => connect::oauth_app(config, command).await?,
        Command::Discover(args) => return Ok(code(discover::run(config, args).await?)),
        Command::Call(args) => return Ok(code(call::call(config, args).await?)),
        Command::Calls(args) => calls::run(config, args).await?,
        Command::Approval(args) => approval::approval(config, args).await?,
        Command::Permissions(args) => approval::permissions(config, args).await?,
        Command::Ops(args) => return Ok(code(ops::run(config, args).await?)),
        Command::Workflow(args) => workflow::run(config, args).await?,
        Command::Environment(args) => environment::run(config, args).await?,
        Command::Trigger(args) => trigger::run(config, *args).await?,
        Command::Agent(args) => agent::run(config, *args).await?,
        Command::Mcp(args) => mcp::run(config, args).await?,
        Command::Secret(args) => secret::run(config, args).await?,
        Command::Login(args) => login::login(config, args).await?,
        Command::Logout(args) => login::logout(config, args).await?,
        Command::Grants(args) => grants::run(config, args).await?,
        Command::Branding(args) => settings::branding(&config, args).await?,
        Command::ConnectLinks(args) => settings::connect_links(&config, &args).await?,
        Command::Retention(args) => settings::retention(&config, &args).await?,
        Command::UserLimits(args) => settings::user_limits(&config, &args).await?,
        Command::Users(args) => users::run(config, args).await?,
        Command::Migrate { check } => return migrate(&config, check).await,
        Command::Project(command) => admin::project(config, command).await?,
        Command::Person(command) => person::person(config, command).await?,
        Command::Sessions(args) => person::sessions(config, args).await?,
        Command::Composio(command) => Box::pin(composio::run(config, command)).await?,
        Command::Key(command) => admin::key(config, command).await?,
        Command::Completions { shell } => print::out(&completions(shell)),
        Command::Bench(command) => Box::pin(bench::run(command)).await?,
        Command::Openapi => print::out(&pretty_document()?),
    }
    Ok(ExitCode::SUCCESS)
}

fn completions(shell: clap_complete::Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut command(), "toolyard", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

fn code(fine: bool) -> ExitCode {
    if fine { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

async fn migrate(config: &Config, check: bool) -> anyhow::Result<ExitCode> {
    let pending = if check && !store::Db::is_there(&config.database_url) {
        store::Db::all_migrations()
    } else {
        crate::files::ensure_dir(&config.data_dir)?;
        let db = yard::connect(config).await?;
        let pending = db.pending().await?;
        if !check {
            db.migrate().await?;
        }
        pending
    };
    for migration in &pending {
        print::out(&format!("{}  {}\n", if check { "pending" } else { "applied" }, migration.name));
    }
    if pending.is_empty() {
        print::out("the database is up to date\n");
    }
    Ok(code(!check || pending.is_empty()))
}

/// The OpenAPI document, for people.
fn pretty_document() -> anyhow::Result<String> {
    let document: serde_json::Value = serde_json::from_str(server::OPENAPI)?;
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}
