// Triggers: types, instances by user, and the webhook that their events come to, verified by the SDK.

import assert from "node:assert/strict";
import { createServer } from "node:http";

const CHANGED = "FAKE_THING_CHANGED";

// Where the webhook leads.
async function inbox() {
  const posts = [];
  const waiting = [];
  const server = createServer((request, response) => {
    const parts = [];
    request.on("data", (part) => parts.push(part));
    request.on("end", () => {
      const post = { headers: request.headers, body: Buffer.concat(parts).toString() };
      (waiting.shift() ?? ((one) => posts.push(one)))(post);
      response.writeHead(202).end();
    });
  });
  await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
  const next = () =>
    new Promise((found, failed) => {
      if (posts.length) return found(posts.shift());
      const late = setTimeout(() => failed(new Error("nothing came to the webhook")), 30_000);
      waiting.push((post) => (clearTimeout(late), found(post)));
    });
  return { url: `http://127.0.0.1:${server.address().port}/hooks`, next };
}

function verify(composio, { headers, body }, secret) {
  return composio.triggers.verifyWebhook({
    id: headers["webhook-id"],
    payload: body,
    signature: headers["webhook-signature"],
    timestamp: headers["webhook-timestamp"],
    secret,
  });
}

async function send(url, body, event) {
  const headers = { "content-type": "application/json", "webhook-id": event };
  const answer = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
  assert.equal(answer.status, 202, await answer.text());
}

async function types(composio) {
  const listed = await composio.triggers.listTypes({ toolkits: ["fake"] });
  assert.deepEqual(listed.items.map((kind) => kind.slug), [CHANGED, "FAKE_THING_MADE"]);
  const kind = await composio.triggers.getType(CHANGED);
  assert.equal(kind.toolkit.slug, "fake");
  assert.deepEqual(kind.config.required, ["box"]);
  const slugs = await composio.triggers.listEnum();
  for (const slug of [CHANGED, "WEBHOOK_RECEIVED", "GITHUB_ISSUE_OPENED"]) assert.ok(slugs.includes(slug), slug);
}

async function instances(yard, composio) {
  await yard.connect("alice", "sk-alice-12345");
  await yard.connect("bob", "sk-bob-12345");
  const create = (user, config) => composio.triggers.create(user, CHANGED, { triggerConfig: config });
  const made = await create("alice", { box: "a" });
  assert.deepEqual(await create("alice", { box: "a" }), made);
  const other = await create("bob", { box: "a" });
  assert.notEqual(other.triggerId, made.triggerId);
  const listed = await composio.triggers.listActive({ triggerIds: [made.triggerId] });
  assert.equal(listed.items.length, 1);
  assert.equal(listed.items[0].triggerName, CHANGED);
  assert.deepEqual(listed.items[0].triggerConfig, { box: "a" });
  const ofAccount = await composio.triggers.listActive({ connectedAccountIds: [listed.items[0].connectedAccountId] });
  assert.deepEqual(ofAccount.items.map((row) => row.id), [made.triggerId]);
  await composio.triggers.disable(made.triggerId);
  assert.equal((await composio.triggers.listActive({ triggerIds: [made.triggerId] })).items.length, 0);
  const disabled = await composio.triggers.listActive({ triggerIds: [made.triggerId], showDisabled: true });
  assert.ok(disabled.items[0].disabledAt);
  await composio.triggers.enable(made.triggerId);
  assert.equal((await composio.triggers.listActive({ triggerNames: [CHANGED] })).items.length, 2);
  assert.deepEqual(await composio.triggers.delete(made.triggerId), made);
  await assert.rejects(composio.triggers.delete(made.triggerId), { status: 404 });
  await assert.rejects(composio.triggers.create("alice", "FAKE_NOTHING", {}), { name: "ComposioTriggerTypeNotFoundError" });
  await assert.rejects(create("carol", { box: "a" }), { status: 400 });
  await assert.rejects(create("alice", { box: 7 }), { status: 400 });
}

async function events(composio) {
  const { url: webhookUrl, next } = await inbox();
  const hook = await composio.triggers.setWebhookSubscription({ webhookUrl });
  assert.equal(hook.version, "V3");
  const { triggerId } = await composio.triggers.create("alice", "WEBHOOK_RECEIVED", {});
  const raw = await composio.client.triggerInstances.listActive({ trigger_ids: [triggerId] });
  const address = raw.items[0].state.url;
  await send(address, { title: "hello" }, "e-1");
  const first = await next();
  const seen = await verify(composio, first, hook.secret);
  assert.equal(seen.version, "V3");
  assert.equal(seen.payload.id, triggerId, JSON.stringify(seen));
  assert.equal(seen.payload.userId, "alice");
  assert.equal(seen.payload.triggerSlug, "WEBHOOK_RECEIVED");
  assert.deepEqual(seen.payload.payload, { title: "hello" });
  await assert.rejects(verify(composio, { ...first, body: first.body.replace("hello", "other") }, hook.secret));
  for (const version of ["V2", "V1"]) {
    const changed = await composio.triggers.setWebhookSubscription({ webhookUrl, version });
    assert.equal(changed.id, hook.id);
    await send(address, { version }, version);
    const older = await verify(composio, await next(), hook.secret);
    assert.equal(older.version, version);
    assert.deepEqual(older.payload.payload, { version });
  }
  return seen.payload.triggerSlug;
}

export async function walk(yard) {
  const composio = yard.composio();
  await types(composio);
  await instances(yard, composio);
  return { event: await events(composio) };
}
