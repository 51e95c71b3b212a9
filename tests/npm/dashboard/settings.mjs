// What is set for a project: keys, members, secrets and the rest.
const HOSTILE = `<img src=x onerror=alert(1)> "it's"`;
// One red pixel.
const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAIAAACQd1PeAAAADElEQVR4nGP4z8AAAAMBAQDJ/pLvAAAAAElFTkSuQmCC";

// What answers to a key.
async function statusOf({ url }, secret, method, path, body) {
  const headers = { authorization: `Bearer ${secret}`, "content-type": "application/json" };
  return (await fetch(url + path, { method, headers, body: body && JSON.stringify(body) })).status;
}

export async function prepare({ api }) {
  await api("POST", "/keys", { key: { name: HOSTILE, permissions: ["view_tools"] } });
  await api("POST", "/people/invitations", { invitation: { email: "ann@example.com", role: "viewer" } });
  const slug = `walk-${Math.random().toString(36).slice(2)}`;
  const secret = { kind: "custom_secret", data: { secret: { format: "text", content: "hidden-value" } } };
  await api("POST", "/secrets", { slug, header: { description: `${HOSTILE} ${"long ".repeat(50)}` }, secret, hosts: ["api.example.com"] });
  await api("POST", "/tools/oauth-apps", { oauth_app: { integration_key: "github", client_id: HOSTILE, client_secret: "hidden-value" } });
  await learn({ api }, `read a fake thing ${HOSTILE}`);
  return { secret: slug };
}

// Finds a tool with a phrase, and calls it.
async function learn({ api }, phrase) {
  await api("POST", "/tools/discover", { use_cases: [phrase] });
  const call = { name: "tools.native.fake.GET_A_THING.main", arguments: { owner: "ann", path: "x" } };
  await api("POST", "/tools/call", { data: { id: "t1", type: "function", function: call } });
}

export const screens = ({ secret }) => ({
  keys: "/settings/keys",
  members: "/settings/members",
  secrets: "/settings/secrets",
  "one secret": `/settings/secrets/${secret}`,
  keeping: "/settings/keeping",
  branding: "/settings/branding",
  learned: "/settings/learned",
  grants: "/settings/grants",
  "oauth apps": "/settings/oauth-apps",
});

export const walks = {
  async "a narrowed key is shown once, works, and is revoked"(page, context) {
    const { app, assert } = context;
    const name = `walk ${Math.random()}`;
    await page.goto(`${app}/settings/keys`);
    await page.getByRole("textbox", { name: "Name" }).fill(name);
    await page.getByLabel("What it may do").selectOption({ label: "only what is ticked below" });
    await page.getByText("Permissions, one by one").click();
    await page.getByRole("checkbox", { name: "view_tools" }).check();
    await page.getByRole("button", { name: "Make the key" }).click();
    const made = page.getByRole("region", { name: `The key ${name}` });
    const secret = await made.locator(".copyable code").textContent();
    assert.equal(await statusOf(context, secret, "GET", "/tools/permissions"), 200);
    assert.equal(await statusOf(context, secret, "PUT", "/tools/permissions", { permissions: { rules: [] } }), 403);
    await page.goto(`${app}/settings/keys`);
    assert.ok(!(await page.content()).includes(secret), "it is shown once");
    await page.getByLabel(`Revoke ${name}`).click();
    await page.getByRole("row").filter({ hasText: name }).getByRole("button", { name: "Revoke the key" }).click();
    await page.getByRole("status").waitFor();
    assert.equal(await statusOf(context, secret, "GET", "/tools/permissions"), 401);
  },

  async "invite a member and take it back"(page, { app, api, assert }) {
    const email = `walk${Math.random().toString(36).slice(2)}@example.com`;
    await page.goto(`${app}/settings/members`);
    await page.getByLabel("E-mail address").fill(email);
    await page.getByLabel("Role", { exact: true }).last().selectOption("editor");
    await page.getByRole("button", { name: "Make a link" }).click();
    const made = page.getByRole("region", { name: `A link for ${email}` });
    const link = await made.locator(".copyable code").textContent();
    const state = async () => (await api("GET", "/people/invitations")).invitations.find((invitation) => invitation.email === email);
    assert.deepEqual([(await state()).role, (await state()).state], ["editor", "open"]);
    const opened = await page.context().newPage();
    await opened.goto(link);
    assert.match(await opened.locator("main").textContent(), /Default/);
    await page.goto(`${app}/settings/members`);
    assert.ok(!(await page.content()).includes(link), "it is shown once");
    await page.getByLabel(`Take back the invitation for ${email}`).click();
    await page.getByRole("row").filter({ hasText: email }).getByRole("button", { name: "Take the invitation back" }).click();
    await page.getByRole("status").waitFor();
    assert.equal((await state()).state, "revoked");
  },

  async "keep, change and delete a secret"(page, { app, api, assert }) {
    const slug = `walk-${Math.random().toString(36).slice(2)}`;
    const value = `value-${Math.random()}`;
    const kept = async () => (await api("GET", "/secrets")).find((secret) => secret.slug === slug);
    await page.goto(`${app}/settings/secrets`);
    await page.getByLabel("Name").fill("no such name!");
    await page.getByLabel("Value").fill(value);
    await page.getByRole("button", { name: "Keep the secret" }).click();
    assert.match(await page.getByRole("alert").textContent(), /slug|name/i);
    await page.getByLabel("Name").fill(slug);
    await page.getByLabel("Value").fill(value);
    await page.getByLabel("Description").fill(HOSTILE);
    await page.getByRole("button", { name: "Keep the secret" }).click();
    await page.getByRole("status").waitFor();
    assert.equal((await kept()).header.description, HOSTILE);
    assert.ok(!(await page.content()).includes(value), "it is never shown");
    await page.getByRole("link", { name: slug }).click();
    await page.getByLabel("Hosts").fill("api.example.com\nfiles.example.com:8443");
    await page.getByRole("button", { name: "Change the secret" }).click();
    await page.getByRole("status").waitFor();
    assert.deepEqual((await kept()).hosts, ["api.example.com", "files.example.com:8443"]);
    assert.ok(!(await page.content()).includes(value), "it is never shown");
    await page.getByLabel(`Delete ${slug}`).click();
    await page.getByRole("button", { name: "Delete the secret" }).click();
    await page.waitForURL(/told=deleted/);
    assert.equal(await kept(), undefined);
  },

  async "keep what calls were made with for some days"(page, { app, api, assert }) {
    const days = async () => (await api("GET", "/tools/calls/keeping")).days;
    const before = await days();
    await page.goto(`${app}/settings/keeping`);
    await page.getByLabel("Days", { exact: true }).fill("30");
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByText("are kept for 30 days").waitFor();
    assert.equal(await days(), 30);
    await api("PUT", "/tools/calls/keeping", { days: before });
  },

  async "keep records for a shorter time"(page, { app, api, assert }) {
    const kept = async () => (await api("GET", "/project/retention")).retention;
    const before = await kept();
    await page.goto(`${app}/settings/keeping`);
    await page.getByLabel("Calls, in days").fill("30");
    await page.getByRole("button", { name: "Save the times" }).click();
    await page.getByRole("status").waitFor();
    assert.deepEqual(await kept(), { ...before, call_days: 30 });
    await page.getByRole("row").filter({ hasText: "Calls" }).getByText("30 days").waitFor();
    await api("PUT", "/project/retention", before);
  },

  async "say how connect pages look"(page, { app, api, assert, browser }) {
    const logo = Buffer.from(PNG, "base64");
    await page.goto(`${app}/settings/branding`);
    await page.getByLabel("Name").fill(HOSTILE);
    await page.getByLabel("Colour of buttons").fill("#ffd500");
    await page.getByLabel("Logo", { exact: true }).setInputFiles({ name: "logo.png", mimeType: "image/png", buffer: logo });
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("status").waitFor();
    const kept = await api("GET", "/project/branding");
    assert.deepEqual(kept, { name: HOSTILE, accent: "#ffd500", logo: `data:image/png;base64,${PNG}` });
    // What was sent before stays, and what is refused is said.
    await page.getByLabel("Logo", { exact: true }).setInputFiles({ name: "logo.svg", mimeType: "image/svg+xml", buffer: Buffer.from("<svg/>") });
    await page.getByRole("button", { name: "Save" }).click();
    assert.match(await page.getByRole("alert").textContent(), /must be a PNG/);
    const slug = `branded-${Math.random().toString(36).slice(2)}`;
    const data = { auth_scheme: "api_key" };
    const made = await api("POST", "/tools/connections", { connection: { slug, provider_key: "native", integration_key: "fake", data } });
    const visitor = await browser.newPage();
    await visitor.goto(made.connection.data.redirect_url);
    assert.ok((await visitor.locator("main").textContent()).includes(HOSTILE));
    assert.equal(await visitor.getByRole("button").evaluate((button) => getComputedStyle(button).backgroundColor), "rgb(255, 213, 0)");
    assert.ok(await visitor.locator(".brand img").evaluate((image) => image.naturalWidth > 0), "the logo is shown");
    await visitor.close();
    await page.goto(`${app}/settings/branding`);
    await page.getByLabel("Show no logo").check();
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("status").waitFor();
    assert.equal((await api("GET", "/project/branding")).logo, undefined);
    await api("PUT", "/project/branding", {});
    await api("DELETE", `/tools/connections/${made.connection.id}`);
  },

  async "forget a learned phrase, and stop learning"(page, context) {
    const { app, api, assert } = context;
    const phrase = `get one thing from fake ${Math.random()}`;
    const has = async () => (await api("GET", "/tools/discover/learned")).use_cases.some((row) => row.use_case === phrase);
    await learn(context, phrase);
    await page.goto(`${app}/settings/learned`);
    await page.getByLabel(`Forget ${phrase}`).click();
    await page.getByRole("row").filter({ hasText: phrase }).getByRole("button", { name: "Forget the phrase" }).click();
    await page.getByRole("status").waitFor();
    assert.equal(await has(), false);
    await page.getByRole("button", { name: "Stop learning" }).click();
    await page.getByRole("button", { name: "Learn from calls" }).waitFor();
    assert.equal((await api("GET", "/tools/discover/learned")).learns, false);
    await page.getByRole("button", { name: "Learn from calls" }).click();
    await page.getByRole("button", { name: "Stop learning" }).waitFor();
    assert.equal((await api("GET", "/tools/discover/learned")).learns, true);
  },

  async "keep and delete an OAuth app"(page, { app, api, assert }) {
    const client = `client-${Math.random()}`;
    const kept = async () => (await api("GET", "/tools/oauth-apps")).oauth_apps.find((oauth) => oauth.client_id === client);
    await page.goto(`${app}/settings/oauth-apps`);
    await page.getByLabel("Integration").fill("linear");
    await page.getByLabel("Client id").fill(client);
    await page.getByLabel("Client secret").fill("hidden-value");
    await page.getByRole("button", { name: "Keep the app" }).click();
    await page.getByRole("status").waitFor();
    assert.ok((await page.getByRole("row").filter({ hasText: client }).textContent()).includes((await kept()).redirect_url));
    await page.getByLabel("Delete the app for linear").click();
    await page.getByRole("row").filter({ hasText: client }).getByRole("button", { name: "Delete the app" }).click();
    await page.waitForURL(/told=deleted/);
    assert.equal(await kept(), undefined);
  },

  async "no page shows a secret, and hostile text is not run"(page, { app, secret, assert }) {
    for (const path of ["keys", "secrets", `secrets/${secret}`, "learned", "oauth-apps"]) {
      await page.goto(`${app}/settings/${path}`);
      assert.equal(await page.locator("main img").count(), 0);
      assert.ok((await page.locator("main").textContent()).includes("<img src=x onerror=alert(1)>"), path);
      assert.ok(!(await page.content()).includes("hidden-value"), path);
    }
  },
};
