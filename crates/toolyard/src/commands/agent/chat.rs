//! `toolyard agent chat`: talk to an agent in the terminal, see its tools at work, and decide about its calls in place.

use std::io::{BufRead, IsTerminal};
use std::thread;

use anyhow::{Context, bail};
use clap::Args;
use egress::Opened;
use http::{HeaderMap, HeaderValue, Method, header};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use uuid::Uuid;

use super::super::client::{Client, Remote, words};
use super::super::integrations::text;
use super::super::print;
use crate::config::Config;

/// The longest line of a stream that is read.
const MAX_LINE: usize = 8 << 20;
/// How much of arguments and results is shown.
const SHOWN: usize = 400;

#[derive(Debug, Args)]
pub(super) struct ChatArgs {
    /// Slug of a workflow of kind agent
    name: String,
    /// Go on with this session [default: a new one]
    #[arg(long, value_name = "ID")]
    session: Option<String>,
    /// Talk to what is deployed there
    #[arg(long, value_name = "SLUG")]
    environment: Option<String>,
    #[command(flatten)]
    remote: Remote,
}

/// How a run ended for whoever follows it.
enum Heard {
    Ended,
    /// The run waits, and nobody is there to decide.
    LeftWaiting,
}

pub(super) async fn run(config: &Config, args: ChatArgs) -> anyhow::Result<()> {
    let client = Client::new(config, &args.remote)?.doing(format!("talking to {}", args.name));
    let session = args.session.unwrap_or_else(|| format!("chat-{}", Uuid::now_v7()));
    let mut references = json!({"workflow": {"slug": args.name}});
    if let Some(environment) = args.environment {
        references["environment"] = json!({"slug": environment});
    }
    let mut chat = Chat { client, references, session, lines: lines(), is_terminal: std::io::stdin().is_terminal() };
    chat.prompt("> ");
    while let Some(line) = chat.lines.recv().await {
        let said = line.trim();
        if matches!(said, "/exit" | "/quit") {
            break;
        }
        if !said.is_empty()
            && let Heard::LeftWaiting = chat.say(said).await?
        {
            break;
        }
        chat.prompt("> ");
    }
    if chat.is_terminal {
        eprintln!("go on with: toolyard agent chat {} --session {}", args.name, chat.session);
    }
    Ok(())
}

/// The lines of the standard input; a thread of its own reads them, because reading cannot be stopped.
fn lines() -> mpsc::Receiver<String> {
    let (send, lines) = mpsc::channel(1);
    thread::spawn(move || {
        for line in std::io::stdin().lock().lines().map_while(Result::ok) {
            if send.blocking_send(line).is_err() {
                break;
            }
        }
    });
    lines
}

struct Chat {
    client: Client,
    references: Value,
    session: String,
    lines: mpsc::Receiver<String>,
    is_terminal: bool,
}

impl Chat {
    fn prompt(&self, text: &str) {
        if self.is_terminal {
            print::out(text);
        }
    }

    /// Says something to the agent, and follows it to its answer. Ctrl-C cancels the run.
    async fn say(&mut self, said: &str) -> anyhow::Result<Heard> {
        let body = json!({"references": self.references, "session_id": self.session, "data": {"inputs": {"message": said}}});
        let headers = HeaderMap::from_iter([(header::ACCEPT, HeaderValue::from_static("text/event-stream"))]);
        let mut opened = self.client.open(Method::POST, "/workflows/invoke", headers, Some(body.to_string())).await?;
        let is_stream = opened.headers.get(header::CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"text/event-stream"));
        if !is_stream {
            bail!("{}", refusal(&mut opened).await);
        }
        let run = opened
            .headers
            .get("x-ag-run-id")
            .and_then(|id| id.to_str().ok())
            .context("the server does not say which run it is")?
            .to_owned();
        let mut reader = Reader { opened, buffer: Vec::new() };
        loop {
            let event = tokio::select! {
                event = reader.next() => event?,
                _ = tokio::signal::ctrl_c() => {
                    self.client.post(&format!("/workflows/runs/{run}/cancel"), &json!({})).await?;
                    print::out("\n(cancelled)\n");
                    return Ok(Heard::Ended);
                }
            };
            let Some(event) = event else { bail!("the stream of run {run} broke off; `toolyard workflow runs` shows how it stands") };
            if let Some(heard) = self.hear(&event).await? {
                return Ok(heard);
            }
        }
    }

    async fn hear(&mut self, event: &Value) -> anyhow::Result<Option<Heard>> {
        match event["type"].as_str().unwrap_or_default() {
            "TEXT_MESSAGE_CONTENT" => print::out(event["delta"].as_str().unwrap_or_default()),
            "TEXT_MESSAGE_END" | "TOOL_CALL_END" => print::out("\n"),
            "TOOL_CALL_START" => print::out(&format!("→ {} ", text(event, "toolCallName"))),
            "TOOL_CALL_ARGS" => print::out(&short(&text(event, "delta"))),
            "TOOL_CALL_RESULT" => {
                let mark = if event["metadata"]["isError"] == true { "✗" } else { "←" };
                print::out(&format!("{mark} {}\n", short(&text(event, "content"))));
            }
            "CUSTOM" if event["name"] == "approval_needed" => return self.decide(&event["value"]).await,
            "RUN_ERROR" => {
                print::out(&format!("the run failed: {}\n", text(event, "message")));
                return Ok(Some(Heard::Ended));
            }
            "RUN_FINISHED" => {
                if event["result"]["stop_reason"] == "limit" {
                    print::out("(the run has used up what it may use)\n");
                }
                if event["outcome"]["type"] == "cancelled" {
                    print::out("(cancelled)\n");
                }
                return Ok(Some(Heard::Ended));
            }
            _ => {}
        }
        Ok(None)
    }

    /// Asks whoever types whether a call may be made.
    async fn decide(&mut self, asked: &Value) -> anyhow::Result<Option<Heard>> {
        let url = text(asked, "url");
        print::out(&format!("? {} {}\n", text(asked, "toolName"), short(&asked["arguments"].to_string())));
        print::out("  allow this call? [y/N] ");
        let answer = tokio::select! {
            line = self.lines.recv() => line,
            _ = tokio::signal::ctrl_c() => None,
        };
        let Some(answer) = answer else {
            print::out(&format!("\nthe run waits; decide at {url}\n"));
            return Ok(Some(Heard::LeftWaiting));
        };
        let decision = if matches!(answer.trim().to_lowercase().as_str(), "y" | "yes") { "approve" } else { "deny" };
        if !self.is_terminal {
            print::out(&format!("{}\n", answer.trim()));
        }
        let decided = self.client.post(&format!("/tools/approvals/{}", text(asked, "approvalId")), &json!({"decision": decision})).await;
        if let Err(error) = decided {
            print::out(&format!("  {error:#}; decide at {url}\n"));
        }
        Ok(None)
    }
}

/// What a server says that does not stream.
async fn refusal(opened: &mut Opened) -> String {
    let mut body = Vec::new();
    while let Ok(Some(part)) = opened.chunk().await {
        body.extend_from_slice(&part);
        if body.len() > MAX_LINE {
            break;
        }
    }
    words(&serde_json::from_slice(&body).unwrap_or(Value::Null), opened.status)
}

/// Reads the values of a stream whose events are one line each.
struct Reader {
    opened: Opened,
    buffer: Vec<u8>,
}

impl Reader {
    async fn next(&mut self) -> anyhow::Result<Option<Value>> {
        loop {
            while let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                if let Some(value) = line.strip_prefix(b"data: ").and_then(|data| serde_json::from_slice(data).ok()) {
                    return Ok(Some(value));
                }
            }
            match self.opened.chunk().await.context("the stream broke off")? {
                Some(part) if self.buffer.len() + part.len() <= MAX_LINE => self.buffer.extend_from_slice(&part),
                Some(_) => bail!("the server sent a line that is too long"),
                None => return Ok(None),
            }
        }
    }
}

fn short(text: &str) -> String {
    let plain: String = text.chars().take(SHOWN).map(|character| if character.is_control() { ' ' } else { character }).collect();
    if text.chars().nth(SHOWN).is_some() { format!("{plain}…") } else { plain }
}
