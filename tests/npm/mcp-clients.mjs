// The official TypeScript clients against a server: node mcp-clients.mjs URL KEY PROGRAM. The old client begins with `initialize`, the new one
// finds the newest revision by itself; each over HTTP, and over stdio by way of PROGRAM. One line of JSON per client says what it saw.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";
import { Client as OldClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport as OldStdio } from "@modelcontextprotocol/sdk/client/stdio.js";
import { StreamableHTTPClientTransport as OldHttp } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { ElicitRequestSchema } from "@modelcontextprotocol/sdk/types.js";

const [url, key, program] = process.argv.slice(2);
const target = new URL(`${url}/mcp`);
const http = { requestInit: { headers: { Authorization: `Bearer ${key}` } } };
const stdio = { command: program, args: ["mcp", "--url", url], env: { ...process.env, TOOLYARD_KEY: key }, stderr: "inherit" };
const who = { name: "test", version: "1" };
const capabilities = { elicitation: {} };
const newest = { capabilities, versionNegotiation: { mode: "auto" } };

async function use(name, client, transport, handle) {
  let asked = 0;
  handle(client, async () => ((asked += 1), { action: "accept", content: {} }));
  await client.connect(transport);
  const tools = [];
  for (let cursor; ; ) {
    const page = await client.listTools(cursor ? { cursor } : undefined);
    tools.push(...page.tools);
    if (!(cursor = page.nextCursor)) break;
  }
  const call = (action, args) => client.callTool({ name: `tools__native__fake__${action}__main`, arguments: args });
  const read = await call("GET_A_THING", { owner: "o", path: "p" });
  const wrong = await call("GET_A_THING", {});
  const made = await call("MAKE_A_THING", { title: name });
  const version = client.getNegotiatedProtocolVersion?.() ?? transport.protocolVersion ?? null;
  const ofFake = tools.filter((tool) => tool.name.includes("__fake__")).length;
  console.log(JSON.stringify({ name, version, tools: ofFake, read: read.structuredContent, wrong: wrong.isError, made: made.structuredContent, asked }));
  await client.close();
}

const old = (client, answer) => client.setRequestHandler(ElicitRequestSchema, answer);
const current = (client, answer) => client.setRequestHandler("elicitation/create", answer);
await use("old-http", new OldClient(who, { capabilities }), new OldHttp(target, http), old);
await use("new-http", new Client(who, newest), new StreamableHTTPClientTransport(target, http), current);
await use("old-stdio", new OldClient(who, { capabilities }), new OldStdio(stdio), old);
await use("new-stdio", new Client(who, newest), new StdioClientTransport(stdio), current);
