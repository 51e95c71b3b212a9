// Clients that nobody here wrote, from the address alone: a person lets them in by pressing the button, and turns them away again.
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { Client as OldClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as OldHttp } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const TOOL = { name: "tools__native__fake__GET_A_THING__main", arguments: { owner: "o", path: "p" } };
const PASSWORD = "correct horse battery";

// Somebody new with a role, signed in.
async function member(yard, role, options) {
  const email = `${role}${Math.random().toString(36).slice(2)}@example.com`;
  const { link } = await yard.api("POST", "/people/invitations", { invitation: { role, email } });
  const visitor = await yard.visitor(options);
  const { page } = visitor;
  await page.goto(link);
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Join" }).click();
  await page.waitForURL(/\/app/);
  return { ...visitor, email };
}

// A click does not wait for the page that it leads to.
const says = (page, text) => page.locator("main", { hasText: text }).waitFor();

// What a person does on the page that asks: reads, narrows, allows. The address that the browser was sent back to.
async function allow(yard, person, address, without = []) {
  const { page } = person;
  await page.goto(address);
  await yard.look(person, "the page that asks");
  for (const permission of without) await page.getByRole("checkbox", { name: permission }).uncheck();
  await page.getByRole("button", { name: "Allow", exact: true }).click();
  await page.waitForURL((now) => !now.href.startsWith(`${yard.url}/oauth`));
  return new URL(page.url());
}

// What an MCP client keeps between two starts.
class Memory {
  constructor(redirectUrl, scope) {
    this.redirectUrl = redirectUrl;
    this.clientMetadata = { client_name: "Desk <i>", redirect_uris: [redirectUrl], token_endpoint_auth_method: "none", scope };
  }
  state = () => "abc";
  clientInformation = () => this.client;
  saveClientInformation = (client) => void (this.client = client);
  tokens = () => this.kept;
  saveTokens = (kept) => void (this.kept = kept);
  redirectToAuthorization = (address) => void (this.address = address);
  saveCodeVerifier = (verifier) => void (this.verifier = verifier);
  codeVerifier = () => this.verifier;
  discoveryState = () => this.discovered;
  saveDiscoveryState = (discovered) => void (this.discovered = discovered);
}

const old = {
  make: () => new OldClient({ name: "test", version: "1" }),
  transport: (target, memory) => new OldHttp(target, { authProvider: memory }),
  finish: (transport, answer) => transport.finishAuth(answer.get("code")),
};
const current = {
  make: () => new Client({ name: "test", version: "1" }, { versionNegotiation: { mode: "auto" } }),
  transport: (target, memory) => new StreamableHTTPClientTransport(target, { authProvider: memory }),
  finish: (transport, answer) => transport.finishAuth(answer),
};

// Registers, is let in on the page, calls, renews its tokens, and is turned away on the person's account page.
async function official(yard, { make, transport, finish }, person) {
  const { assert, url } = yard;
  const { page } = person;
  const target = new URL(`${url}/mcp`);
  const memory = new Memory(yard.callback);
  const connect = async () => {
    const client = make();
    await client.connect(transport(target, memory));
    return client;
  };
  await assert.rejects(connect());
  await page.goto(memory.address.href);
  const said = await page.locator("main").textContent();
  for (const part of ["Desk <i>", person.email, new URL(yard.callback).origin, "the tools of the project (MCP)", "nobody has checked it"]) assert.ok(said.includes(part), `${part}: ${said}`);
  const answer = await allow(yard, person, memory.address.href);
  assert.equal(answer.searchParams.get("iss"), url);
  await finish(transport(target, memory), answer.searchParams);
  assert.equal(memory.kept.scope, "run_tools");
  const client = await connect();
  assert.notEqual((await client.callTool(TOOL)).isError, true);
  await client.close();

  const before = memory.kept.refresh_token;
  memory.kept = { ...memory.kept, access_token: "tya_expired" };
  const again = await connect();
  assert.notEqual((await again.callTool(TOOL)).isError, true);
  assert.notEqual(memory.kept.refresh_token, before);
  const [call] = (await yard.api("GET", "/tools/calls?limit=1")).calls;
  assert.deepEqual([call.via, call.client_name, call.user_name], ["client", "Desk <i>", person.email]);

  await page.goto(`${url}/account`);
  await yard.look(person, "the account with a client");
  await page.locator("form", { hasText: "Desk <i>" }).getByRole("button", { name: "Revoke" }).click();
  await page.getByRole("status").waitFor();
  await assert.rejects(again.callTool(TOOL));
  await again.close().catch(() => {});
}

// The page that asks, for a client that was registered by hand.
async function asked(yard, scope, more = {}) {
  const about = { client_name: "By hand", redirect_uris: [yard.callback], token_endpoint_auth_method: "none" };
  const made = await fetch(`${yard.url}/oauth/register`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(about) });
  const { client_id } = await made.json();
  const challenge = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM";
  const query = new URLSearchParams({ client_id, redirect_uri: yard.callback, response_type: "code", code_challenge: challenge, code_challenge_method: "S256", scope, state: "s", ...more });
  const redeem = async (answer) => {
    const body = new URLSearchParams({ grant_type: "authorization_code", client_id, code: answer.searchParams.get("code"), code_verifier: "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk" });
    return (await fetch(`${yard.url}/oauth/token`, { method: "POST", body })).json();
  };
  return { address: `${yard.url}/oauth/authorize?${query}`, redeem, client_id };
}

async function narrowed(yard, person) {
  const { assert } = yard;
  const { page } = person;
  const { address, redeem } = await asked(yard, "view_tools run_tools edit_tools edit_members");
  await page.goto(address);
  assert.match(await page.locator("main").textContent(), /what you cannot give: Invite and remove members/);
  const given = await redeem(await allow(yard, person, address, ["run_tools", "edit_tools"]));
  assert.equal(given.scope, "view_tools");
  const status = async (method, path, body) => (await fetch(yard.url + path, { method, body, headers: { authorization: `Bearer ${given.access_token}`, "content-type": "application/json" } })).status;
  assert.deepEqual([await status("GET", "/tools/calls"), await status("POST", "/tools/call", "{}")], [200, 403]);

  // Everything taken away is no answer; no is one.
  await page.goto(address);
  for (const box of await page.getByRole("checkbox").all()) await box.uncheck();
  await page.getByRole("button", { name: "Allow", exact: true }).click();
  assert.match(await page.getByRole("alert").textContent(), /Tick at least one/);
  await yard.look(person, "the page that asks again");
  await page.getByRole("button", { name: "Do not allow" }).click();
  await page.waitForURL(/error=access_denied/);
}

export default {
  async "the official TypeScript client of today"(yard) {
    await official(yard, current, await member(yard, "owner"));
  },

  async "the official TypeScript client of before, and a person without scripts"(yard) {
    await official(yard, old, await member(yard, "editor", { javaScriptEnabled: false }));
  },

  async "authlib and the official Python client"(yard) {
    const person = await member(yard, "owner");
    const python = spawn(yard.python, [yard.python_script, yard.url, yard.key, yard.callback]);
    python.stderr.pipe(process.stderr);
    const ended = new Promise((done) => python.on("exit", done));
    const seen = [];
    for await (const line of createInterface(python.stdout)) {
      const said = JSON.parse(line);
      if (!said.open) {
        seen.push(said);
      } else if (said.open.includes("/device")) {
        await person.page.goto(said.open);
        await yard.look(person, "the page for a device");
        await person.page.getByRole("button", { name: "Allow", exact: true }).click();
        await says(person.page, "The device is signed in");
        await yard.look(person, "a device that was let in");
        python.stdin.write("\n");
      } else {
        python.stdin.write(`${(await allow(yard, person, said.open)).href}\n`);
      }
    }
    yard.assert.equal(await ended, 0);
    const [library, mcp] = seen;
    yard.assert.deepEqual([library.called, library.rotated, library.active, library.after, library.used], [200, true, true, false, 200]);
    yard.assert.deepEqual([mcp.called, mcp.scope, mcp.asked_anew], [true, "run_tools", true]);
  },

  async "a person narrows what a client may do"(yard) {
    await narrowed(yard, await member(yard, "editor"));
  },

  async "the same without scripts"(yard) {
    await narrowed(yard, await member(yard, "editor", { javaScriptEnabled: false }));
  },

  async "a device is let in by the code that it shows"(yard) {
    const { client_id } = await asked(yard, "");
    for (const options of [{}, { javaScriptEnabled: false }]) {
      const person = await member(yard, "viewer", options);
      const { page } = person;
      const begun = await (await fetch(`${yard.url}/oauth/device`, { method: "POST", body: new URLSearchParams({ client_id, scope: "view_tools run_tools" }) })).json();
      await page.goto(`${yard.url}/device`);
      await yard.look(person, "the page for a code");
      await page.getByLabel("The code that your device shows").fill("BCDF-GHJK");
      await page.getByRole("button", { name: "Go on" }).click();
      await page.getByRole("alert").waitFor();
      await yard.look(person, "a code that no device shows");
      await page.getByLabel("The code that your device shows").fill(begun.user_code.toLowerCase().replace("-", " "));
      await page.getByRole("button", { name: "Go on" }).click();
      await says(page, "only if your device shows");
      await page.getByRole("button", { name: "Allow", exact: true }).click();
      await says(page, "The device is signed in");
      const body = new URLSearchParams({ grant_type: "urn:ietf:params:oauth:grant-type:device_code", client_id, device_code: begun.device_code });
      const given = await (await fetch(`${yard.url}/oauth/token`, { method: "POST", body })).json();
      yard.assert.equal(given.scope, "view_tools", "a viewer gives what a viewer has");
    }
  },

  async "an address that the client did not name leads nowhere"(yard) {
    const person = await member(yard, "viewer");
    const { address } = await asked(yard, "view_tools");
    for (const [name, value] of [["redirect_uri", "https://evil.example/"], ["redirect_uri", `${yard.callback}#x`], ["client_id", "tyc_unknown"]]) {
      const wrong = new URL(address);
      wrong.searchParams.set(name, value);
      await person.page.goto(wrong.href);
      yard.assert.ok(person.page.url().startsWith(yard.url));
      yard.assert.equal(await person.page.locator("h1").textContent(), "Nobody was let in");
      await yard.look(person, "a refusal");
    }
  },
};
