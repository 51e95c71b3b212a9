// Accounts that tools act with.
const HOSTILE = '<img src=x onerror=alert(1)> "quoted"';

const unique = () => `walk-${Math.random().toString(36).slice(2)}`;

export async function connected({ api, fake }, name = HOSTILE) {
  const data = { auth_scheme: "api_key", credentials: { base: fake, api_key: "sk-walk-123456" } };
  const connection = { slug: unique(), provider_key: "native", integration_key: "fake", name, description: `${HOSTILE} ${"long".repeat(100)}`, data };
  return (await api("POST", "/tools/connections", { connection })).connection;
}

async function waiting({ api }) {
  const connection = { slug: unique(), provider_key: "native", integration_key: "fake", data: { auth_scheme: "api_key" } };
  return (await api("POST", "/tools/connections", { connection })).connection;
}

const read = async ({ api }, id) => (await api("GET", `/tools/connections/${id}`)).connection;

export async function prepare(context) {
  const revoked = await connected(context);
  await context.api("POST", `/tools/connections/${revoked.id}/revoke`, {});
  return { connection: await connected(context), revoked, open: await waiting(context) };
}

export const screens = ({ connection, revoked, open }) => ({
  list: "/connections",
  "what needs attention": "/connections?state=attention",
  "nothing fits": "/connections?q=nothing-of-the-kind",
  "choose a service": "/connections/new",
  "choose a way": "/connections/new?integration=fake",
  "type a key": "/connections/new?integration=fake&scheme=api_key",
  "sign in with OAuth": "/connections/new?integration=github&scheme=oauth2",
  one: `/connections/${connection.id}`,
  "one that is revoked": `/connections/${revoked.id}`,
  "one that waits": `/connections/${open.id}`,
  "before it is revoked": `/connections/${connection.id}/revoke`,
  "before it is deleted": `/connections/${connection.id}/delete`,
});

async function fill(page, { fake }, slug) {
  await page.getByLabel("Slug").fill(slug);
  await page.getByLabel("Base").fill(fake);
  await page.getByLabel("Key *").fill("sk-walk-123456");
}

const find = async ({ api }, slug) => (await api("POST", "/tools/connections/query", {})).connections.find((one) => one.slug === slug);

export const walks = {
  async "connect an account with a key"(page, context) {
    const slug = unique();
    await page.goto(`${context.app}/connections`);
    await page.getByRole("link", { name: "Connect an account" }).click();
    await page.getByLabel("Which service?").fill("fake");
    await page.getByRole("button", { name: "Search" }).click();
    await page.getByRole("link", { name: "Fake", exact: true }).click();
    await page.getByRole("link", { name: "API key" }).click();
    await fill(page, context, slug);
    await page.getByRole("button", { name: "Connect", exact: true }).click();
    await page.getByRole("status").filter({ hasText: "Connected." }).waitFor();
    const made = await find(context, slug);
    context.assert.ok(made.flags.is_valid && page.url().includes(made.id));
    await page.getByText(made.meta.account.label, { exact: true }).waitFor();
  },

  async "a wrong credential is told in the API's words"(page, context) {
    const slug = unique();
    await page.goto(`${context.app}/connections/new?integration=fake&scheme=api_key`);
    await fill(page, context, slug);
    await page.getByLabel("Base").fill("http://127.0.0.1:1");
    await page.getByRole("button", { name: "Connect", exact: true }).click();
    await page.getByRole("alert").filter({ hasText: "could not be reached" }).waitFor();
    await page.getByLabel("Base").fill(HOSTILE);
    await page.getByLabel("Key *").fill("sk-walk-123456");
    await page.getByRole("button", { name: "Connect", exact: true }).click();
    await page.getByRole("alert").filter({ hasText: "`base` does not have the expected form" }).waitFor();
    context.assert.deepEqual(
      [await page.getByLabel("Slug").inputValue(), await page.getByLabel("Base").inputValue(), await page.getByLabel("Key *").inputValue()],
      [slug, HOSTILE, ""],
    );
    context.assert.equal(await find(context, slug), undefined);
  },

  async "somebody else types the credential at a link"(page, context) {
    const slug = unique();
    await page.goto(`${context.app}/connections/new?integration=fake&scheme=api_key`);
    await page.getByLabel("Slug").fill(slug);
    await page.getByRole("button", { name: "Make a link for somebody else" }).click();
    await page.getByRole("heading", { name: `One more step for ${slug}` }).waitFor();
    context.assert.equal((await find(context, slug)).flags.is_valid, false);
    await finish(page, context);
    context.assert.equal((await find(context, slug)).flags.is_valid, true);
  },

  async "rename"(page, context) {
    const { id } = await connected(context, "before");
    const name = `${HOSTILE} ${Math.random()}`;
    await page.goto(`${context.app}/connections/${id}`);
    await page.getByLabel("Name").fill(name);
    await page.getByLabel("Description").fill("for the walk");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("status").filter({ hasText: "Saved." }).waitFor();
    const kept = await read(context, id);
    context.assert.deepEqual([kept.name, kept.description], [name, "for the walk"]);
    context.assert.equal(await page.getByLabel("Name").inputValue(), name);
  },

  async "revoke, and connect again by a link"(page, context) {
    const { id, slug } = await connected(context);
    await page.goto(`${context.app}/connections/${id}`);
    await page.getByRole("link", { name: "Revoke" }).click();
    context.assert.equal((await read(context, id)).flags.is_valid, true);
    await page.getByRole("button", { name: `Revoke ${slug}` }).click();
    await page.getByRole("status").filter({ hasText: "Revoked." }).waitFor();
    context.assert.equal((await read(context, id)).flags.is_valid, false);
    await page.getByRole("button", { name: "Reconnect" }).click();
    await page.getByRole("heading", { name: `One more step for ${slug}` }).waitFor();
    await finish(page, context);
    context.assert.equal((await read(context, id)).flags.is_valid, true);
  },

  async "delete"(page, context) {
    const { id, slug } = await connected(context);
    await page.goto(`${context.app}/connections/${id}`);
    await page.getByRole("link", { name: "Delete" }).click();
    await page.getByRole("link", { name: "Leave it as it is" }).click();
    context.assert.equal((await read(context, id)).slug, slug);
    await page.getByRole("link", { name: "Delete" }).click();
    await page.getByRole("button", { name: `Delete ${slug}` }).click();
    await page.getByRole("status").waitFor();
    context.assert.equal(await find(context, slug), undefined);
  },

  async "hostile text is shown and not run"(page, { app, connection, assert }) {
    for (const address of ["/connections", `/connections/${connection.id}`]) {
      await page.goto(app + address);
      assert.equal(await page.locator("main img").count(), 0, address);
      assert.ok((await page.locator("main").textContent()).includes(HOSTILE), address);
    }
  },
};

// Goes to where the credential is typed, and types it.
async function finish(page, { fake }) {
  await page.getByRole("link", { name: "Go there now" }).click();
  await page.getByLabel("Base").fill(fake);
  await page.getByLabel("Key").fill("sk-walk-654321");
  await page.getByRole("button").click();
  await page.getByText(/connected/i).first().waitFor();
}

async function filterWhileTyping(page, { app, connection, revoked }) {
  await page.goto(`${app}/connections`);
  await page.getByLabel("Filter").fill(connection.slug);
  await page.getByRole("link", { name: revoked.slug }).waitFor({ state: "hidden" });
  await page.getByRole("link", { name: connection.slug }).waitFor();
}
filterWhileTyping.needsScripts = true;
walks["filter while typing"] = filterWhileTyping;
