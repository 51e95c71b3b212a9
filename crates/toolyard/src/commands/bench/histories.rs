//! The walks of a dashboard over ten thousand revisions: list, filter, page, archive, fork, compare, deploy, roll back.

use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use egress::Egress;
use futures_util::{StreamExt, TryStreamExt, stream};
use serde_json::{Value, json};

use super::report::{Report, Rounds};
use super::{Server, client, millis, percentile, send};

/// Workflows that are made at the same time.
const AT_ONCE: usize = 16;
/// How often a walk is taken before it counts.
const WARM_UP: usize = 20;
/// One revision in so many has the tag that is looked for.
const TAGGED: usize = 50;
/// Workflows that are deployed to one environment.
const DEPLOYED: usize = 20;

#[derive(Debug, Args)]
pub(crate) struct HistoriesArgs {
    /// Revisions that are stored
    #[arg(long, default_value_t = 10_000)]
    revisions: usize,
    /// Revisions of each workflow
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u16).range(3..=1000))]
    line: u16,
    #[command(flatten)]
    rounds: Rounds,
}

/// What is done, and what its figures are called.
#[derive(Clone, Copy)]
struct Walk {
    p50: &'static str,
    p99: &'static str,
    text: &'static str,
    often: usize,
    step: Step,
}

#[derive(Clone, Copy)]
enum Step {
    List,
    ListSimple,
    Search,
    Tagged,
    Flags,
    NextPage,
    Line,
    Archive,
    Fork,
    Compare,
    Log,
    Deploy,
    RollBack,
    Deployed,
}

macro_rules! walks {
    ($($name:literal $text:literal $step:ident $often:literal),* $(,)?) => {
        &[$(Walk { p50: concat!($name, "_p50_ms"), p99: concat!($name, "_p99_ms"), text: $text, often: $often, step: Step::$step }),*]
    };
}

const WALKS: &[Walk] = walks![
    "list" "list the newest 20 workflows" List 400,
    "list_simple" "the same with their data" ListSimple 400,
    "search" "search workflows by name" Search 400,
    "filter_tags" "20 revisions by a tag" Tagged 400,
    "filter_flags" "20 revisions by flags" Flags 400,
    "page" "a page of 20 revisions, from the middle" NextPage 400,
    "line" "the revisions of a workflow" Line 400,
    "log" "the log of a variant" Log 400,
    "compare" "compare two revisions" Compare 400,
    "archive" "archive and unarchive a revision" Archive 200,
    "fork" "fork a variant with its line" Fork 60,
    "deploy" "deploy a revision" Deploy 200,
    "roll_back" "roll back to the one before" RollBack 200,
    "deployed" "what is deployed" Deployed 400,
];

/// A workflow that walks go over.
struct Line {
    slug: String,
    variant: Value,
    newest: Value,
    earlier: Value,
}

pub(super) async fn run(args: HistoriesArgs) -> anyhow::Result<()> {
    let server = Server::start_on(args.rounds.database_url.as_deref(), |_| Ok(())).await?;
    let client = client()?;
    let length = usize::from(args.line);
    let workflows = (args.revisions / length).max(1);
    let lines = stream::iter((0..workflows).map(|number| make(&server, &client, number, length)));
    let lines: Vec<Line> = lines.buffer_unordered(AT_ONCE).try_collect().await?;
    let mut report = Report::default();
    for round in 0..args.rounds.repeat {
        for walk in WALKS {
            let mut times = Vec::with_capacity(walk.often);
            for number in 0..walk.often + WARM_UP {
                let took = walk.step.take(&server, &client, &lines, number, &format!("f{round}-{number}")).await?;
                if number >= WARM_UP {
                    times.push(took);
                }
            }
            report.add(walk.p50, format!("{}, p50", walk.text), "ms", millis(percentile(&mut times, 0.5)));
            report.add(walk.p99, format!("{}, p99", walk.text), "ms", millis(percentile(&mut times, 0.99)));
        }
    }
    report.print("histories", &args.rounds);
    Ok(())
}

/// A workflow with so many revisions, each a little different.
async fn make(server: &Server, client: &Egress, number: usize, length: usize) -> anyhow::Result<Line> {
    let slug = format!("bench-{number}");
    let data = |version: usize| json!({"uri": "agenta:builtin:chat:v0", "parameters": {"prompt": "You are a helpful agent. ".repeat(20), "version": version}});
    let body = json!({"workflow": {"slug": slug, "name": format!("Bench {number}"), "data": data(1)}});
    let made = send(client, server.post("/simple/workflows", &body)?).await?["workflow"].take();
    let (mut newest, mut earlier) = (made["revision_id"].clone(), Value::Null);
    for version in 2..length {
        let tags = json!({"suite": (number * length + version) % TAGGED});
        let revision =
            json!({"workflow_variant_id": made["variant_id"], "data": data(version), "message": format!("change {version}"), "tags": tags});
        let revision = send(client, server.post("/workflows/revisions/commit", &json!({"workflow_revision": revision}))?).await?;
        earlier = std::mem::replace(&mut newest, revision["workflow_revision"]["id"].clone());
    }
    Ok(Line { slug, variant: made["variant_id"].clone(), newest, earlier })
}

impl Step {
    /// Takes the step once; how long its requests took together.
    async fn take(self, server: &Server, client: &Egress, lines: &[Line], number: usize, fresh: &str) -> anyhow::Result<Duration> {
        let line = &lines[(number * 7) % lines.len()];
        let shipped = &lines[number % lines.len().min(DEPLOYED)];
        let deploy = |revision: &Value| json!({"workflow_revision_ref": {"id": revision}, "environment_ref": {"slug": "staging"}});
        let revision = line.newest.as_str().context("a revision has an id")?;
        let page = json!({"limit": 20});
        let requests = match self {
            Self::List => vec![("/workflows/query".to_owned(), json!({"windowing": page}))],
            Self::ListSimple => vec![("/simple/workflows/query".to_owned(), json!({"windowing": page}))],
            Self::Search => {
                vec![("/workflows/query".to_owned(), json!({"workflow": {"name": line.slug.replace('-', " ")}, "windowing": page}))]
            }
            Self::Tagged => {
                let filter = json!({"tags": {"suite": number % TAGGED}});
                vec![("/workflows/revisions/query".to_owned(), json!({"workflow_revision": filter, "windowing": page}))]
            }
            Self::Flags => {
                let filter = json!({"flags": {"is_chat": true, "is_custom": false}});
                vec![("/workflows/revisions/query".to_owned(), json!({"workflow_revision": filter, "windowing": page}))]
            }
            Self::NextPage => vec![("/workflows/revisions/query".to_owned(), json!({"windowing": {"limit": 20, "next": line.newest}}))],
            Self::Line => {
                vec![("/workflows/revisions/query".to_owned(), json!({"workflow_refs": [{"slug": line.slug}], "windowing": page}))]
            }
            Self::Log => vec![(
                "/workflows/revisions/log".to_owned(),
                json!({"workflow_revision": {"workflow_variant_id": line.variant, "depth": 20}}),
            )],
            Self::Compare => [&line.newest, &line.earlier]
                .map(|id| ("/workflows/revisions/retrieve".to_owned(), json!({"workflow_revision_ref": {"id": id}})))
                .into(),
            Self::Archive => ["archive", "unarchive"].map(|verb| (format!("/workflows/revisions/{revision}/{verb}"), json!({}))).into(),
            Self::Fork => {
                vec![(
                    "/workflows/variants/fork".to_owned(),
                    json!({"workflow_variant": {"slug": fresh}, "workflow_variant_ref": {"id": line.variant}}),
                )]
            }
            Self::Deploy => vec![("/workflows/revisions/deploy".to_owned(), deploy(&shipped.newest))],
            Self::RollBack => vec![("/workflows/revisions/deploy".to_owned(), deploy(&shipped.earlier))],
            Self::Deployed => {
                let references = json!({"workflow_ref": {"slug": shipped.slug}, "environment_ref": {"slug": "staging"}});
                vec![("/workflows/revisions/retrieve".to_owned(), references)]
            }
        };
        let mut took = Duration::ZERO;
        for (path, body) in requests {
            let request = server.post(&path, &body)?;
            let started = Instant::now();
            send(client, request).await?;
            took += started.elapsed();
        }
        Ok(took)
    }
}
