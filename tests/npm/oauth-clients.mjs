// Clients that nobody here wrote, from the address alone: node oauth-clients.mjs URL KEY. `openid-client` goes through every way to tokens, the
// official MCP clients sign in, call, refresh and are turned away once they are revoked. One line of JSON per client says what it saw.
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { Client as OldClient } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport as OldHttp } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import * as oauth from "openid-client";
import { Person } from "./person.mjs";

const [url, key] = process.argv.slice(2);
const callback = "http://127.0.0.1:61234/callback";
const person = new Person(url, key);
const say = (seen) => console.log(JSON.stringify(seen));

async function library(name, metadata, auth) {
  const insecure = { algorithm: "oauth2", execute: [oauth.allowInsecureRequests] };
  const about = { client_name: name, redirect_uris: ["http://127.0.0.1/callback"], ...metadata };
  const config = await oauth.dynamicClientRegistration(new URL(url), about, auth, insecure);
  const verifier = oauth.randomPKCECodeVerifier();
  const state = oauth.randomState();
  const address = oauth.buildAuthorizationUrl(config, {
    redirect_uri: callback,
    scope: "view_tools run_tools",
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
    code_challenge_method: "S256",
    state,
  });
  const back = new URL(await person.allow(address.href));
  const first = await oauth.authorizationCodeGrant(config, back, { pkceCodeVerifier: verifier, expectedState: state });
  const use = async (token) => (await oauth.fetchProtectedResource(config, token, new URL(`${url}/tools/calls`), "GET")).status;
  const called = await use(first.access_token);
  const second = await oauth.refreshTokenGrant(config, first.refresh_token);
  const seen = await oauth.tokenIntrospection(config, second.access_token);
  await oauth.tokenRevocation(config, second.refresh_token);
  const after = await oauth.tokenIntrospection(config, second.access_token);

  const device = await oauth.initiateDeviceAuthorization(config, { scope: "view_tools" });
  const waiting = oauth.pollDeviceAuthorizationGrant(config, device);
  await person.allow(device.verification_uri_complete);
  const given = await waiting;
  say({ name, called, scope: first.scope, active: seen.active, aud: seen.aud, after: after.active, device: given.scope, used: await use(given.access_token) });
}

await library("openid-client public", { token_endpoint_auth_method: "none" }, oauth.None());
await library("openid-client confidential", { token_endpoint_auth_method: "client_secret_basic" });

// What an MCP client keeps between two starts.
class Memory {
  redirectUrl = callback;
  clientMetadata = { client_name: "MCP", redirect_uris: [callback], token_endpoint_auth_method: "none", grant_types: ["authorization_code", "refresh_token"] };
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

async function mcp(name, connect, finish) {
  const memory = new Memory();
  let refused = false;
  await connect(memory).catch(() => (refused = true));
  const resource = memory.address.searchParams.get("resource");
  const back = new URL(await person.allow(memory.address.href));
  await finish(memory, back.searchParams);
  const scope = memory.kept.scope;
  const client = await connect(memory);
  const call = async (client) => {
    const result = await client.callTool({ name: "tools__native__fake__GET_A_THING__main", arguments: { owner: "o", path: "p" } });
    return result.isError !== true;
  };
  const called = await call(client);
  await client.close();
  const before = memory.kept;
  memory.kept = { ...before, access_token: "tya_expired" };
  const again = await connect(memory);
  const refreshed = (await call(again)) && memory.kept.refresh_token !== before.refresh_token;
  const authorization = { Authorization: `ApiKey ${key}` };
  const { grants } = await (await fetch(`${url}/grants?active=true`, { headers: authorization })).json();
  await fetch(`${url}/grants/${grants[0].id}`, { method: "DELETE", headers: authorization });
  const revoked = await call(again).then(() => false, () => true);
  await again.close();
  say({ name, refused, scope, resource, called, refreshed, revoked });
}

const target = new URL(`${url}/mcp`);
const who = { name: "test", version: "1" };
const connecting = (make, transport) => async (memory) => {
  const client = make();
  await client.connect(transport(memory));
  return client;
};
const old = (memory) => new OldHttp(target, { authProvider: memory });
const current = (memory) => new StreamableHTTPClientTransport(target, { authProvider: memory });
await mcp("old", connecting(() => new OldClient(who), old), (memory, answer) => old(memory).finishAuth(answer.get("code")));
await mcp(
  "new",
  connecting(() => new Client(who, { versionNegotiation: { mode: "auto" } }), current),
  (memory, answer) => current(memory).finishAuth(answer),
);
