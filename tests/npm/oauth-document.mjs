// An MCP client whose id is the address of a document about it: node oauth-document.mjs URL KEY CERTIFICATE PRIVATE_KEY. The documents are served
// here, for `localhost`; those that must not be taken too. One line of JSON says what became of each.
import { readFileSync } from "node:fs";
import { createServer } from "node:https";
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { Person } from "./person.mjs";

const [url, key, cert, secret] = process.argv.slice(2);
const callback = "http://127.0.0.1:61234/callback";
let asked = 0;
const server = createServer({ cert: readFileSync(cert), key: readFileSync(secret) }, (request, response) => {
  asked += 1;
  const here = `https://localhost:${server.address().port}`;
  const document = { client_id: here + request.url, client_name: "Documented", redirect_uris: ["http://127.0.0.1/callback"], token_endpoint_auth_method: "none" };
  const json = (body, type = "application/json") => response.writeHead(200, { "content-type": type }).end(JSON.stringify(body));
  if (request.url === "/client.json") return json(document);
  if (request.url === "/other.json") return json({ ...document, client_id: `${here}/client.json` });
  if (request.url === "/secret.json") return json({ ...document, client_secret: "s" });
  if (request.url === "/large.json") return json({ ...document, padding: "x".repeat(64 << 10) });
  if (request.url === "/page.json") return json(document, "text/html");
  if (request.url === "/moved.json") return response.writeHead(302, { location: "/client.json" }).end();
  if (request.url === "/slow.json") return;
  response.writeHead(404).end();
});
await new Promise((ready) => server.listen(0, "127.0.0.1", ready));
const here = `https://localhost:${server.address().port}`;
const person = new Person(url, key);
const seen = {};
for (const name of ["other", "secret", "large", "page", "moved", "slow", "missing"]) {
  const query = new URLSearchParams({ client_id: `${here}/${name}.json`, redirect_uri: callback, response_type: "code" });
  seen[name] = await person.allow(`${url}/oauth/authorize?${query}`).then(() => "taken", (error) => error.message.match(/document cannot be used: ([^<]+)/)?.[1] ?? error.message);
}
const provider = {
  clientMetadataUrl: `${here}/client.json`,
  redirectUrl: callback,
  clientMetadata: { client_name: "unused", redirect_uris: [callback] },
  clientInformation: () => provider.client,
  saveClientInformation: (client) => void (provider.client = client),
  tokens: () => provider.kept,
  saveTokens: (kept) => void (provider.kept = kept),
  redirectToAuthorization: (address) => void (provider.address = address),
  saveCodeVerifier: (verifier) => void (provider.verifier = verifier),
  codeVerifier: () => provider.verifier,
  discoveryState: () => provider.discovered,
  saveDiscoveryState: (discovered) => void (provider.discovered = discovered),
};
const transport = () => new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { authProvider: provider });
await new Client({ name: "test", version: "1" }).connect(transport()).catch(() => {});
const before = asked;
const back = new URL(await person.allow(provider.address.href));
await transport().finishAuth(back.searchParams);
const client = new Client({ name: "test", version: "1" });
await client.connect(transport());
seen.tools = (await client.listTools()).tools.length > 0;
seen.id = provider.address.searchParams.get("client_id") === `${here}/client.json`;
seen.read = asked - before;
await client.close();
console.log(JSON.stringify(seen));
server.close();
server.closeAllConnections();
