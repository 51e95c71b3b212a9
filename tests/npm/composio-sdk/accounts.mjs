// Auth configs and connected accounts: made, connected at once and by a link, waited for, told apart, changed, typed errors.

import assert from "node:assert/strict";

import { AuthScheme } from "@composio/core";

const GET = "FAKE_GET_A_THING";

async function page(url, form) {
  const body = form === undefined ? undefined : new URLSearchParams(form);
  const answer = await fetch(url, { method: body ? "POST" : "GET", body, redirect: "manual" });
  return answer.text();
}

async function keyOf(yard, composio, userId, more = {}) {
  const done = await composio.tools.execute(GET, { userId, arguments: { owner: "o", path: "p" }, dangerouslySkipVersionCheck: true, ...more });
  assert.equal(done.successful, true, JSON.stringify(done));
  return yard.keyUsed();
}

async function configs(yard, composio) {
  const made = await composio.authConfigs.create("fake", {
    type: "use_custom_auth",
    authScheme: "API_KEY",
    credentials: { base: yard.fake },
    name: "Ours",
  });
  assert.equal(made.authScheme, "API_KEY");
  assert.equal(made.isComposioManaged, false);
  const shown = await composio.authConfigs.get(made.id);
  assert.equal(shown.name, "Ours");
  assert.equal(shown.credentials.base, yard.fake);
  await composio.authConfigs.disable(made.id);
  assert.equal((await composio.authConfigs.get(made.id)).status, "DISABLED");
  await assert.rejects(composio.connectedAccounts.link("ann", made.id), { name: "ComposioFailedToCreateConnectedAccountLink" });
  await composio.authConfigs.enable(made.id);
  await composio.authConfigs.update(made.id, { type: "custom", credentials: { team: "gold" } });
  assert.equal((await composio.authConfigs.get(made.id)).credentials.team, "gold");
  assert.ok((await composio.authConfigs.list({ toolkit: "fake" })).items.some((item) => item.id === made.id));
  await assert.rejects(composio.authConfigs.get("ac_nothing"), /404|not found|There is no auth config/i);
  return made.id;
}

async function connect(yard, composio, config) {
  const request = await composio.connectedAccounts.initiate("ann", config, { config: AuthScheme.APIKey({ api_key: "sk-ann-12345" }) });
  const first = await request.waitForConnection(10_000);
  assert.equal(first.status, "ACTIVE");
  assert.equal(first.state.authScheme, "API_KEY", "the state fits what the SDK knows of it");
  assert.ok(!JSON.stringify(first).includes("sk-ann"), "secrets are masked");
  assert.equal(await keyOf(yard, composio, "ann"), "sk-ann-12345");
  await assert.rejects(composio.connectedAccounts.link("ann", config), { name: "ComposioMultipleConnectedAccountsError" });

  const link = await composio.connectedAccounts.link("ann", config, { callbackUrl: "https://app.example/done?x=1", allowMultiple: true, alias: "second" });
  assert.ok(link.redirectUrl.startsWith(`${yard.url}/connect/`), link.redirectUrl);
  assert.ok((await page(link.redirectUrl)).includes("api_key"));
  // The person comes while the program waits.
  const came = new Promise((resolve) => setTimeout(() => resolve(page(link.redirectUrl, { api_key: "sk-two-12345" })), 1500));
  const second = await link.waitForConnection(20_000);
  const next = new URL((await came).match(/href="([^"]+)"/)[1].replaceAll("&#38;", "&"));
  assert.deepEqual(Object.fromEntries(next.searchParams), { x: "1", status: "success", connected_account_id: second.id });
  assert.equal(second.alias, "second");
  assert.equal(await keyOf(yard, composio, "ann"), "sk-two-12345");

  const refusing = await composio.connectedAccounts.link("bob", config, { callbackUrl: "https://app.example/done" });
  await page(`${refusing.redirectUrl}?decline=1`, {});
  await assert.rejects(refusing.waitForConnection(10_000), { name: "ConnectionRequestFailedError" });
  await assert.rejects(composio.connectedAccounts.waitForConnection("ca_nothing", 5_000), { name: "ComposioConnectedAccountNotFoundError" });
  // The simplest way: whatever auth config there is.
  const authorized = await composio.toolkits.authorize("carl", "fake");
  assert.ok(authorized.redirectUrl.startsWith(yard.url), authorized.redirectUrl);
  return { first: first.id, second: second.id };
}

async function manage(yard, composio, config, { first, second }) {
  const accounts = await composio.connectedAccounts.list({ userIds: ["ann"], authConfigIds: [config], statuses: ["ACTIVE"] });
  assert.deepEqual(accounts.items.map((item) => item.id), [second, first]);
  await composio.connectedAccounts.disable(second);
  assert.equal((await composio.connectedAccounts.get(second)).isDisabled, true);
  assert.equal(await keyOf(yard, composio, "ann"), "sk-ann-12345");
  await composio.connectedAccounts.enable(second);
  assert.equal(await keyOf(yard, composio, "ann", { connectedAccountId: first }), "sk-ann-12345");
  await assert.rejects(keyOf(yard, composio, "bob", { connectedAccountId: first }), { name: "ComposioConnectedAccountNotFoundError" });
  await composio.connectedAccounts.delete(first);
  await assert.rejects(composio.connectedAccounts.get(first), /404|no connected account/i);
  await composio.authConfigs.delete(config);
  await assert.rejects(composio.connectedAccounts.get(second), /404|no connected account/i);
}

export async function walk(yard) {
  const composio = yard.composio();
  const config = await configs(yard, composio);
  const made = await connect(yard, composio, config);
  await manage(yard, composio, config, made);
  return { accounts: "walked" };
}
