// Sessions of the tool router: made, changed and ended; search, meta tools, accounts, the fence, the MCP address, a provider.

import assert from "node:assert/strict";

import { VercelProvider } from "@composio/vercel";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

const GET = "FAKE_GET_A_THING";
const MAKE = "FAKE_MAKE_A_THING";
const THING = { owner: "o", path: "p" };
const META = ["COMPOSIO_SEARCH_TOOLS", "COMPOSIO_GET_TOOL_SCHEMAS", "COMPOSIO_MULTI_EXECUTE_TOOL", "COMPOSIO_MANAGE_CONNECTIONS"];

const names = (tools) => tools.map((tool) => tool.function.name);

async function connects(yard, composio) {
  const session = await composio.create("carol", { toolkits: ["FAKE"] });
  assert.deepEqual(names(await session.tools()), META);
  const state = (await session.toolkits()).items.find((item) => item.slug === "fake");
  assert.equal(state.connection?.isActive ?? false, false);
  await assert.rejects(session.execute(GET, THING), (error) => /1803|no connected account/i.test(JSON.stringify(error) + error.message + error.cause));
  const request = await session.authorize("fake", { callbackUrl: `${yard.url}/health` });
  assert.ok(request.redirectUrl.startsWith(yard.url) && request.id.startsWith("ca_"), JSON.stringify(request));
  await yard.connect("carol", "sk-carol-123456");
  const done = await session.execute(GET, THING);
  assert.equal(done.error ?? null, null);
  assert.equal(await yard.keyUsed(), "sk-carol-123456");
  const connected = (await session.toolkits({ isConnected: true })).items;
  assert.deepEqual(connected.map((item) => [item.slug, item.connection.isActive]), [["fake", true]]);
  return session;
}

async function uses(session) {
  const found = await session.search({ query: "read a fake thing" });
  assert.equal(found.results[0].primaryToolSlugs[0], GET, JSON.stringify(found));
  assert.equal(found.toolSchemas[GET].inputSchema.type, "object");
  assert.equal(found.toolkitConnectionStatuses[0].hasActiveConnection, true);
  const several = await session.execute("COMPOSIO_MULTI_EXECUTE_TOOL", {
    tools: [{ tool_slug: GET, arguments: THING }, { tool_slug: GET, arguments: {} }],
  });
  assert.ok(several.error, JSON.stringify(several));
  assert.deepEqual(several.data.results.map((one) => one.response.successful), [true, false]);
  const managed = await session.execute("COMPOSIO_MANAGE_CONNECTIONS", { toolkits: ["fake"] });
  assert.equal(managed.data.results.fake.status, "active");
  const wrong = await session.execute(GET, {});
  assert.match(wrong.error, /owner/);
}

async function fences(yard, composio) {
  await yard.connect("bob", "sk-bob-123456");
  const session = await composio.create("bob", { toolkits: { enable: ["fake"] }, tools: { fake: [GET] }, preload: { tools: [GET] } });
  assert.deepEqual(names(await session.tools()), [...META, GET]);
  await assert.rejects(session.execute(MAKE, { title: "x" }), (error) => /403|outside/.test(JSON.stringify(error) + error.message + error.cause));
  await assert.rejects(composio.create("bob", { toolkits: ["no-such-toolkit"] }));
  const [stolen] = (await composio.connectedAccounts.list({ userIds: ["carol"] })).items;
  await assert.rejects(session.execute(GET, THING, { account: stolen.id }));
  await assert.rejects(composio.create("bob", { connectedAccounts: { fake: stolen.id } }));
  await session.update({ tags: { enable: ["readOnlyHint"] } });
  const again = await composio.use(session.sessionId);
  assert.deepEqual(again.config.tags?.enabled ?? again.config.tags?.enable, ["readOnlyHint"]);
  // A null removes a block; this SDK takes none, so it is sent without it.
  const headers = { "x-api-key": yard.key, "content-type": "application/json" };
  const body = JSON.stringify({ tags: null, tools: null });
  const patched = await fetch(`${yard.url}/api/v3.1/tool_router/session/${session.sessionId}`, { method: "PATCH", headers, body });
  assert.equal(patched.status, 200);
  const done = await again.execute(MAKE, { title: "x" });
  assert.equal(done.error ?? null, null, JSON.stringify(done));
  return session;
}

async function speaks(yard, composio) {
  const session = await composio.create("carol", { toolkits: ["fake"], preload: { tools: [GET] }, mcp: true });
  assert.equal(session.mcp.headers["x-api-key"], yard.key);
  const client = new Client({ name: "test", version: "1" }, { versionNegotiation: { mode: "auto" } });
  await client.connect(new StreamableHTTPClientTransport(new URL(session.mcp.url), { requestInit: { headers: session.mcp.headers } }));
  const listed = (await client.listTools()).tools.map((tool) => tool.name);
  assert.deepEqual(listed, [...META, GET]);
  const done = await client.callTool({ name: GET, arguments: THING });
  assert.equal(await yard.keyUsed(), "sk-carol-123456");
  await assert.rejects(client.callTool({ name: MAKE + "_X", arguments: {} }));
  await client.close();
  return listed.length;
}

async function withVercel(yard) {
  const composio = yard.composio({ provider: new VercelProvider() });
  const session = await composio.create("carol", { toolkits: ["fake"], preload: { tools: [GET] } });
  const tools = await session.tools();
  const done = await tools[GET].execute(THING, { toolCallId: "1", messages: [] });
  const text = typeof done === "string" ? done : JSON.stringify(done);
  assert.match(text, /headers/);
  assert.equal(await yard.keyUsed(), "sk-carol-123456");
}

export async function walk(yard) {
  const composio = yard.composio();
  await uses(await connects(yard, composio));
  const fenced = await fences(yard, composio);
  await withVercel(yard);
  const listed = await speaks(yard, composio);
  assert.equal((await fenced.delete()).deleted, true);
  await assert.rejects(composio.use(fenced.sessionId));
  return { listed };
}
