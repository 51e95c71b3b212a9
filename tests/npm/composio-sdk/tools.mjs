// Toolkits and tools: list, search, describe, run by user, several accounts, typed errors, providers.

import assert from "node:assert/strict";

import { OpenAIProvider } from "@composio/openai";
import { VercelProvider } from "@composio/vercel";

const GET = "FAKE_GET_A_THING";
const MAKE = "FAKE_MAKE_A_THING";
const THING = { owner: "o", path: "p" };

async function keyOf(yard, done) {
  assert.equal(done.successful, true, JSON.stringify(done));
  assert.equal(done.error, null);
  return yard.keyUsed();
}

async function browse(composio) {
  const toolkit = await composio.toolkits.get("fake");
  assert.equal(toolkit.slug, "fake");
  const modes = toolkit.authConfigDetails.map((detail) => detail.mode);
  for (const mode of ["API_KEY", "BASIC", "BEARER_TOKEN"]) assert.ok(modes.includes(mode), modes.join());
  const listed = await composio.toolkits.get({ limit: 1000 });
  assert.ok(listed.some((item) => item.slug === "googlecalendar"), "native toolkits are listed");
  assert.ok((await composio.toolkits.listCategories()).items.length > 3);
  await assert.rejects(composio.toolkits.get("no-such-toolkit"), { name: /ComposioToolkitNotFoundError|ComposioToolkitFetchError/ });
  return listed.length;
}

async function find(composio) {
  const tools = await composio.tools.getRawComposioTools({ toolkits: ["FAKE"] });
  assert.ok(tools.some((tool) => tool.slug === MAKE), "a toolkit that marks nothing as important lists all");
  const found = await composio.tools.getRawComposioTools({ search: "read a fake thing", limit: 3 });
  assert.equal(found[0].slug, GET);
  const named = await composio.tools.getRawComposioTools({ tools: [MAKE, "FAKE_NOTHING", GET] });
  assert.deepEqual(named.map((tool) => tool.slug), [MAKE, GET]);
  // Every schema of the catalog can be read: one that could not would make the list fail as a whole.
  const slugs = [];
  let cursor;
  do {
    const page = await composio.client.tools.list({ limit: 500, cursor });
    slugs.push(...page.items.map((tool) => tool.slug));
    cursor = page.next_cursor ?? undefined;
  } while (cursor);
  for (let start = 0; start < slugs.length; start += 100) {
    const part = slugs.slice(start, start + 100);
    const read = await composio.tools.getRawComposioTools({ tools: part });
    assert.equal(read.length, part.length);
  }
  const tool = await composio.tools.getRawComposioToolBySlug(GET);
  assert.ok(tool.tags.includes("readOnlyHint") && tool.availableVersions.includes(tool.version));
  await assert.rejects(composio.tools.getRawComposioToolBySlug("FAKE_NOTHING"), { name: "ComposioToolNotFoundError" });
  return { version: tool.version, tools: slugs.length };
}

async function execute(yard, composio, version) {
  await yard.connect(null, "sk-project-1");
  await yard.connect("bob", "sk-bob-12345");
  await yard.connect("alice", "sk-alice-old", "old");
  await yard.connect("alice", "sk-alice-new", "new");
  const run = (userId, more = {}) =>
    composio.tools.execute(GET, { userId, arguments: THING, dangerouslySkipVersionCheck: true, ...more });
  assert.equal(await keyOf(yard, await run("default")), "sk-project-1");
  assert.equal(await keyOf(yard, await run("bob")), "sk-bob-12345");
  assert.equal(await keyOf(yard, await run("alice")), "sk-alice-new");
  assert.equal(await keyOf(yard, await composio.tools.execute(GET, { userId: "alice", arguments: THING, version })), "sk-alice-new");
  const wrong = await run("alice", { arguments: { owner: "o" } });
  assert.ok(!wrong.successful && wrong.error.includes("path"), JSON.stringify(wrong));
  await assert.rejects(run("carol"), { name: "ComposioConnectedAccountNotFoundError" });
  return wrong.error;
}

async function providers(yard) {
  const openai = yard.composio({ provider: new OpenAIProvider() });
  const [tool] = await openai.tools.get("bob", { tools: [GET] });
  assert.equal(tool.function.name, GET);
  const call = { id: "1", type: "function", function: { name: GET, arguments: JSON.stringify(THING) } };
  const said = JSON.parse(await openai.provider.executeToolCall("bob", call));
  assert.equal(await keyOf(yard, said), "sk-bob-12345");
  const vercel = yard.composio({ provider: new VercelProvider() });
  const tools = await vercel.tools.get("alice", { tools: [GET] });
  const done = await tools[GET].execute(THING, { toolCallId: "1", messages: [] });
  assert.equal(await keyOf(yard, typeof done === "string" ? JSON.parse(done) : done), "sk-alice-new");
}

export async function walk(yard) {
  const composio = yard.composio();
  const toolkits = await browse(composio);
  const { version, tools } = await find(composio);
  const error = await execute(yard, composio, version);
  await providers(yard);
  await assert.rejects(yard.composio({ apiKey: "nonsense" }).tools.getRawComposioTools({ toolkits: ["fake"] }));
  return { toolkits, tools, version, error };
}
