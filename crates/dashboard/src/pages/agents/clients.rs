//! How to set clients up, for one agent or for the project as a whole.

use askama::Template;
use axum::extract::Path as Segments;
use serde_json::{Value, json};

use super::{Agent, tabs};
use crate::frame::{Frame, Link, Section, show};
use crate::refusal::PageResult;
use crate::ui;
use crate::visit::Visit;

/// Where the reader puts a key of the project.
const KEY: &str = "YOUR_KEY";

/// How one client is set up: what to do, and blocks to copy with a word about each.
#[derive(Debug)]
struct Client {
    name: &'static str,
    steps: &'static str,
    blocks: Vec<(&'static str, String)>,
}

#[derive(Template)]
#[template(path = "agent_clients.html")]
struct ClientsPage {
    frame: Frame,
    all: String,
    tabs: Vec<Link>,
    /// Absent for the project as a whole.
    agent: Option<Agent>,
    address: String,
    is_public: bool,
    clients: Vec<Client>,
}

pub(super) async fn of_project(visit: Visit) -> PageResult {
    let address = format!("{}/mcp", visit.public_url);
    let frame = Frame::new(&visit, Section::Agents, "Clients of the project");
    show_clients(&visit, frame, Vec::new(), None, address)
}

pub(super) async fn of_agent(visit: Visit, Segments((_, id)): Segments<(String, String)>) -> PageResult {
    let agent = Agent::read(&visit, &id).await?;
    let address = format!("{}/mcp/agents/{}", visit.public_url, agent.id);
    let frame = Frame::new(&visit, Section::Agents, format!("Clients of {}", agent.name));
    show_clients(&visit, frame, tabs(&visit, &id, "clients"), Some(agent), address)
}

fn show_clients(visit: &Visit, frame: Frame, tabs: Vec<Link>, agent: Option<Agent>, address: String) -> PageResult {
    let name = agent.as_ref().map_or_else(|| "toolyard".to_owned(), |agent| format!("toolyard-{}", agent.id));
    let clients = clients(&name, &address);
    let is_public = address.starts_with("https://");
    show(&ClientsPage { frame, all: visit.page("agents").into(), tabs, agent, address, is_public, clients })
}

fn clients(name: &str, address: &str) -> Vec<Client> {
    let bearer = format!("Bearer {KEY}");
    let with_key = json!({"url": address, "headers": {"Authorization": bearer}});
    let typed = json!({"type": "http", "url": address});
    let typed_with_key = json!({"type": "http", "url": address, "headers": {"Authorization": bearer}});
    vec![
        Client {
            name: "Claude",
            steps: "In claude.ai or Claude Desktop: Settings, Connectors, Add custom connector. Paste the address, then Add, Connect and Allow.",
            blocks: vec![
                ("The address", address.to_owned()),
                ("Claude Code; then /mcp and Authenticate", format!("claude mcp add --transport http {name} {address}")),
            ],
        },
        Client {
            name: "ChatGPT",
            steps: "Settings, Apps & Connectors, Advanced: switch developer mode on. Create: paste the address, choose OAuth, then Create and Allow.",
            blocks: vec![("The address", address.to_owned())],
        },
        Client {
            name: "Cursor",
            steps: "Put this into .cursor/mcp.json, then Settings, MCP, Connect and Allow.",
            blocks: vec![
                ("With a sign-in", servers("mcpServers", name, &json!({"url": address}))),
                ("With a key", servers("mcpServers", name, &with_key)),
            ],
        },
        Client {
            name: "VS Code",
            steps: "Run the command MCP: Add Server, choose HTTP and paste the address; or put this into .vscode/mcp.json.",
            blocks: vec![("With a sign-in", servers("servers", name, &typed)), ("With a key", servers("servers", name, &typed_with_key))],
        },
        Client {
            name: "OpenAI SDK",
            steps: "The Responses API calls the tools by itself; the address must be one that it can reach.",
            blocks: vec![("Python", openai(name, address))],
        },
        Client {
            name: "Anthropic SDK",
            steps: "The Messages API calls the tools by itself; the address must begin with https and be one that it can reach.",
            blocks: vec![("Python", anthropic(name, address))],
        },
        Client {
            name: "curl",
            steps: "Any other client speaks Streamable HTTP. These list the tools and call one.",
            blocks: vec![
                ("List", curl(address, "tools/list", None)),
                ("Call", curl(address, "tools/call", Some(json!({"name": "NAME", "arguments": {}})))),
            ],
        },
    ]
}

fn servers(outer: &str, name: &str, server: &Value) -> String {
    serde_json::to_string_pretty(&json!({outer: {name: server}})).unwrap_or_default()
}

fn openai(name: &str, address: &str) -> String {
    format!(
        r#"from openai import OpenAI

answer = OpenAI().responses.create(
    model="YOUR_MODEL",
    input="What can you do here?",
    tools=[{{
        "type": "mcp",
        "server_label": "{name}",
        "server_url": "{address}",
        "headers": {{"Authorization": "Bearer {KEY}"}},
        "require_approval": "never",
    }}],
)
print(answer.output_text)"#
    )
}

fn anthropic(name: &str, address: &str) -> String {
    format!(
        r#"from anthropic import Anthropic

answer = Anthropic().beta.messages.create(
    model="YOUR_MODEL",
    max_tokens=1000,
    messages=[{{"role": "user", "content": "What can you do here?"}}],
    mcp_servers=[{{"type": "url", "name": "{name}", "url": "{address}", "authorization_token": "{KEY}"}}],
    tools=[{{"type": "mcp_toolset", "mcp_server_name": "{name}"}}],
    betas=["mcp-client-2025-11-20"],
)
print(answer.content)"#
    )
}

fn curl(address: &str, method: &str, params: Option<Value>) -> String {
    let mut message = json!({"jsonrpc": "2.0", "id": 1, "method": method});
    if let Some(params) = params {
        message["params"] = params;
    }
    format!(
        "curl -X POST {address} \\\n  -H 'Authorization: Bearer {KEY}' \\\n  -H 'Content-Type: application/json' \\\n  -H 'Accept: application/json, text/event-stream' \\\n  -d '{message}'"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_client_is_led_to_the_same_address() {
        let address = "https://yard.example.com/mcp/agents/7";
        for client in clients("toolyard-7", address) {
            assert!(client.blocks.iter().all(|(_, block)| block.contains(address)), "{}", client.name);
        }
    }

    #[test]
    fn settings_files_are_json() {
        let text = servers("mcpServers", "yard", &json!({"url": "https://a/mcp"}));
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), json!({"mcpServers": {"yard": {"url": "https://a/mcp"}}}));
    }

    #[test]
    fn a_call_has_its_parameters() {
        let text = curl("https://a/mcp", "tools/call", Some(json!({"name": "X"})));
        assert!(text.ends_with(r#"-d '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"X"}}'"#), "{text}");
    }
}
