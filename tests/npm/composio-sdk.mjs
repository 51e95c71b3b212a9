// Composio's TypeScript SDK, unmodified, against Toolyard: composio-sdk.mjs PART URL KEY FAKE_URL.
// Each part is a module of `composio-sdk` that exports `walk(yard)`. One line of JSON says what it saw.

import { Composio } from "@composio/core";

const [part, url, key, fake] = process.argv.slice(2);

async function native(method, path, body) {
  const headers = { authorization: `ApiKey ${key}`, "content-type": "application/json" };
  const answer = await fetch(url + path, { method, headers, body: body === undefined ? undefined : JSON.stringify(body) });
  if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${await answer.text()}`);
  return answer.json();
}

const yard = {
  url,
  key,
  fake,
  // A request to Toolyard's own API.
  native,
  composio: (options = {}) => new Composio({ apiKey: key, baseURL: url, allowTracking: false, disableVersionCheck: true, ...options }),
  // The key that the fake service was shown last; results do not repeat it, because it is a secret.
  keyUsed: async () => (await (await fetch(`${fake}/seen`)).json()).headers["x-api-key"],
  // An account of the fake service, by Toolyard's own API; the id of the connection.
  async connect(user, secret, alias) {
    const data = { auth_scheme: "api_key", credentials: { base: fake, api_key: secret } };
    const connection = { provider_key: "native", integration_key: "fake", data };
    Object.assign(connection, user === null ? { slug: "main" } : { end_user: user, alias });
    return (await native("POST", "/tools/connections", { connection })).connection.id;
  },
};

const { walk } = await import(`./composio-sdk/${part}.mjs`);
console.log(JSON.stringify((await walk(yard)) ?? {}));
process.exit(0);
