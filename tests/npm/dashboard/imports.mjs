// Integrations that a project makes from an OpenAPI document.
const HOSTILE = '<img src=x onerror=alert(1)> "quoted"';

const unique = () => `walk-${Math.random().toString(36).slice(2)}`;

function pets(title) {
  const get = { operationId: "listPets", summary: HOSTILE, responses: {} };
  const post = { operationId: "addPet", requestBody: { content: { "text/csv": {} } }, responses: {} };
  return JSON.stringify({ openapi: "3.0.3", info: { title, version: "1" }, servers: [{ url: "https://pets.example.com" }], paths: { "/pets": { get, post } } });
}

const importPets = async ({ api }, key) => (await api("POST", "/tools/imports/openapi", { import: { key, document: pets(`Pets ${HOSTILE} ${"long".repeat(20)}`) } })).import;
const found = async ({ api }, key) => (await api("GET", "/tools/imports")).imports.find((one) => one.integration_key === key);

export async function prepare(context) {
  return { pets: await importPets(context, unique()) };
}

export const screens = ({ pets }) => ({
  list: "/imports",
  "new, from an address": "/imports/new",
  "new, from a document": "/imports/new?kind=document",
  "new, from an MCP server": "/imports/new?kind=mcp",
  one: `/imports/${pets.id}`,
  "before it is removed": `/imports/${pets.id}/remove`,
});

export const walks = {
  async "paste a document, look at the plan, import and remove it"(page, context) {
    const [key, title] = [unique(), `Pets ${HOSTILE}`];
    await page.goto(`${context.app}/imports`);
    await page.getByRole("link", { name: "New import" }).click();
    await page.getByRole("link", { name: /document/i }).click();
    await page.getByRole("textbox", { name: "Document" }).fill(pets(title));
    await page.getByLabel("Key", { exact: true }).fill(key);
    await page.getByRole("button", { name: "See the plan" }).click();
    await page.getByRole("heading", { name: title, level: 1 }).waitFor();
    context.assert.match(await page.locator("main").textContent(), /Nothing is written yet[^]*https:\/\/pets\.example\.com[^]*list_pets/);
    context.assert.equal(await found(context, key), undefined);
    await page.getByRole("button", { name: "Import", exact: true }).click();
    await page.getByRole("status").filter({ hasText: "Imported." }).waitFor();
    context.assert.equal((await found(context, key)).name, title);
    await page.getByRole("link", { name: "Remove the import" }).click();
    context.assert.ok(await found(context, key));
    await page.getByRole("button", { name: `Remove ${title}` }).click();
    await page.getByRole("status").filter({ hasText: "removed" }).waitFor();
    context.assert.equal(await found(context, key), undefined);
  },

  async "change something after the plan"(page, { app, assert }) {
    const document = pets("Pets to change");
    await page.goto(`${app}/imports/new?kind=document`);
    await page.getByRole("textbox", { name: "Document" }).fill(document);
    await page.getByRole("button", { name: "See the plan" }).click();
    await page.getByRole("button", { name: "Change something" }).click();
    assert.equal(await page.getByRole("textbox", { name: "Document" }).inputValue(), document);
  },

  async "what is no document is told in the API's words"(page, { app, assert }) {
    await page.goto(`${app}/imports/new?kind=document`);
    await page.getByRole("textbox", { name: "Document" }).fill(`</textarea>${HOSTILE}`);
    await page.getByRole("button", { name: "See the plan" }).click();
    await page.getByRole("alert").filter({ hasText: /document/i }).waitFor();
    assert.equal(await page.getByRole("textbox", { name: "Document" }).inputValue(), `</textarea>${HOSTILE}`);
    assert.equal(await page.locator("main img").count(), 0);
  },

  async "removing what is connected says what goes with it"(page, context) {
    const made = await importPets(context, unique());
    const connection = { slug: unique(), provider_key: "openapi", integration_key: made.integration_key, data: {} };
    await context.api("POST", "/tools/connections", { connection });
    await page.goto(`${context.app}/imports/${made.id}/remove`);
    await page.getByRole("listitem").filter({ hasText: connection.slug }).waitFor();
    await page.getByRole("button", { name: /and all of these/ }).click();
    await page.getByRole("status").waitFor();
    const { connections } = await context.api("POST", "/tools/connections/query", {});
    context.assert.ok(!connections.some((one) => one.slug === connection.slug));
  },

  async "hostile text is shown and not run"(page, { app, pets, assert }) {
    for (const address of ["/imports", `/imports/${pets.id}`, `/imports/${pets.id}/remove`]) {
      await page.goto(app + address);
      assert.equal(await page.locator("main img").count(), 0, address);
      assert.ok((await page.locator("main").textContent()).includes(HOSTILE), address);
    }
  },
};
