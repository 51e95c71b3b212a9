// What there is to connect to.
const HOSTILE = '<img src=x onerror=alert(1)> "quoted"';

const app = (integration, client_id) => ({ provider_key: "native", integration_key: integration, client_id, client_secret: "secret" });
const found = async ({ api }, integration) => (await api("GET", "/tools/oauth-apps")).oauth_apps.find((one) => one.integration_key === integration);

// An imported integration brings texts of its own.
async function imported({ api }) {
  const key = `walk-${Math.random().toString(36).slice(2)}`;
  const parameters = [{ name: "q", in: "query", description: HOSTILE, schema: { type: "string", default: HOSTILE } }];
  const get = { operationId: "listPets", summary: `List ${HOSTILE}`, description: `${HOSTILE} ${"long".repeat(150)}`, parameters, responses: {} };
  const document = { openapi: "3.0.3", info: { title: `Pets ${HOSTILE}`, version: "1", description: HOSTILE }, servers: [{ url: "https://pets.example.com" }], paths: { "/pets": { get } } };
  await api("POST", "/tools/imports/openapi", { import: { key, document: JSON.stringify(document) } });
  return key;
}

export async function prepare(context) {
  const { oauth_app: made } = await context.api("POST", "/tools/oauth-apps", { oauth_app: app("notion", HOSTILE) });
  return { made, pets: await imported(context) };
}

export const screens = ({ made, pets }) => ({
  list: "/catalog",
  searched: "/catalog?q=mail&category=communication",
  "nothing fits": "/catalog?q=nothing-of-the-kind",
  imported: "/catalog?provider=openapi",
  "an integration": "/catalog/native/fake",
  "a large integration": "/catalog/native/github",
  "an integration with an OAuth app": "/catalog/native/notion",
  "before the OAuth app is deleted": `/catalog/native/notion/oauth-app/${made.id}/delete`,
  "an imported integration": `/catalog/openapi/${pets}`,
  "an action": "/catalog/native/fake/actions/GET_A_THING",
  "an imported action": `/catalog/openapi/${pets}/actions/list_pets`,
  "an event": "/catalog/native/fake/events/THING_CHANGED",
});

export const walks = {
  async "search for an integration, open an action and try it"(page, { app, assert }) {
    await page.goto(`${app}/catalog`);
    await page.getByRole("searchbox", { name: "Search" }).fill("fake");
    await page.getByRole("button", { name: "Search" }).click();
    await page.waitForURL(/q=fake/);
    await page.getByRole("link", { name: "Fake", exact: true }).click();
    await page.getByRole("searchbox", { name: "Search the actions" }).fill("graphql");
    await page.getByRole("button", { name: "Search" }).click();
    await page.waitForURL(/q=graphql/);
    await page.getByRole("link", { name: "Query things", exact: true }).click();
    await page.getByRole("heading", { name: "Query things", level: 1 }).waitFor();
    const parameters = page.getByRole("region", { name: "Parameters" });
    assert.match(await parameters.getByRole("row").filter({ hasText: "How many" }).textContent(), /first\s*required\s*integer/);
    await page.getByRole("link", { name: "Try it" }).click();
    await page.waitForURL(/\/try\b.*QUERY_THINGS/);
  },

  async "keep an OAuth app and delete it"(page, context) {
    const old = await found(context, "gitlab");
    if (old) await context.api("DELETE", `/tools/oauth-apps/${old.id}`);
    const client = `${HOSTILE} ${Math.random()}`;
    await page.goto(`${context.app}/catalog/native/gitlab`);
    await page.getByLabel("Client id").fill(client);
    await page.getByLabel("Client secret").fill("top-secret-text");
    await page.getByLabel("Scopes").fill("read_user\nread_api");
    await page.getByRole("button", { name: "Keep the OAuth app" }).click();
    await page.getByRole("status").waitFor();
    const kept = await found(context, "gitlab");
    context.assert.deepEqual([kept.client_id, kept.scopes], [client, ["read_user", "read_api"]]);
    context.assert.ok(!(await page.content()).includes("top-secret-text"));
    await page.getByText(kept.redirect_url).first().waitFor();
    await page.getByRole("link", { name: "Delete the OAuth app" }).click();
    context.assert.equal((await found(context, "gitlab")).id, kept.id);
    await page.getByRole("button", { name: "Delete the OAuth app" }).click();
    await page.getByRole("status").waitFor();
    context.assert.equal(await found(context, "gitlab"), undefined);
  },

  async "connecting without an OAuth app leads to setting one up"(page, context) {
    const old = await found(context, "gitlab");
    if (old) await context.api("DELETE", `/tools/oauth-apps/${old.id}`);
    await page.goto(`${context.app}/catalog/native/gitlab`);
    const { redirect_url } = await context.api("GET", "/tools/oauth-apps/redirect/native/gitlab");
    await page.getByText(redirect_url).waitFor();
    await page.goto(`${context.app}/connections/new?provider=native&integration=gitlab&scheme=oauth2`);
    await page.getByRole("button", { name: "Connect", exact: true }).click();
    await page.getByRole("heading", { name: "Set up the OAuth app first" }).waitFor();
    await page.getByLabel("Client id").fill("client");
    await page.getByRole("button", { name: "Keep the OAuth app" }).click();
    await page.getByRole("status").waitFor();
    const kept = await found(context, "gitlab");
    context.assert.equal(kept.client_id, "client");
    await context.api("DELETE", `/tools/oauth-apps/${kept.id}`);
  },

  async "hostile text is shown and not run"(page, { app, pets, assert }) {
    for (const address of ["?provider=openapi", `/openapi/${pets}`, `/openapi/${pets}/actions/list_pets`, "/native/notion"]) {
      await page.goto(`${app}/catalog${address}`);
      assert.equal(await page.locator("main img").count(), 0, address);
      assert.ok((await page.locator("main").textContent()).includes(HOSTILE), address);
    }
  },
};
