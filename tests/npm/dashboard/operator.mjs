// What the operator of the server does.
const HOSTILE = `<img src=x onerror=alert(1)> "it's"`;

export const isOperators = true;

// Asks the API as the operator.
async function admin({ url, operatorKey }, method, path, body) {
  const headers = { authorization: `Access ${operatorKey}`, "content-type": "application/json" };
  const reply = await fetch(url + path, { method, headers, body: body && JSON.stringify(body) });
  if (!reply.ok) throw new Error(`${method} ${path}: ${reply.status} ${await reply.text()}`);
  return reply.status === 204 ? null : reply.json();
}

const slugged = async (context, slug) => (await admin(context, "GET", "/admin/projects")).projects.find((project) => project.slug === slug);
const fresh = () => `walk-${Math.random().toString(36).slice(2)}`;

export async function prepare(context) {
  const { project } = await admin(context, "POST", "/admin/projects", { project: { slug: fresh(), name: HOSTILE } });
  await admin(context, "POST", "/admin/keys", { key: { project_id: project.id, name: HOSTILE, role: "viewer" } });
  return { made: project, root: `${context.url}/app/-/operator` };
}

export const screens = ({ root, made }) => ({
  projects: root,
  "one project": `${root}/projects/${made.id}`,
  status: `${root}/status`,
  "oauth apps": `${root}/oauth-apps`,
});

export const walks = {
  async "make a project, and delete it by typing its name"(page, context) {
    const { root, assert } = context;
    const slug = fresh();
    await page.goto(root);
    await page.getByLabel("Slug").fill(slug);
    await page.getByLabel("Name").fill(`Walk ${slug}`);
    await page.getByRole("button", { name: "Make the project" }).click();
    await page.getByRole("status").waitFor();
    assert.equal((await slugged(context, slug)).name, `Walk ${slug}`);
    const remove = async (typed) => {
      await page.getByText(`Delete Walk ${slug}`).click();
      await page.getByLabel(`Type ${slug} to delete it`).fill(typed);
      await page.getByRole("button", { name: "Delete the project and everything in it" }).click();
    };
    await remove("default");
    assert.match(await page.getByRole("alert").textContent(), /Nothing is deleted/);
    assert.ok(await slugged(context, slug));
    await remove(slug);
    await page.getByRole("status").waitFor();
    assert.equal(await slugged(context, slug), undefined);
  },

  async "a name that is taken is refused in words"(page, { root, made, assert }) {
    await page.goto(root);
    await page.getByLabel("Slug").fill(made.slug);
    await page.getByRole("button", { name: "Make the project" }).click();
    assert.ok((await page.getByRole("alert").textContent()).includes(made.slug));
    assert.equal(await page.getByLabel("Slug").inputValue(), made.slug);
  },

  async "a key of a project is shown once, works, and is revoked"(page, { root, url, made, assert }) {
    const name = `walk ${Math.random()}`;
    await page.goto(`${root}/projects/${made.id}`);
    await page.getByRole("textbox", { name: "Name" }).fill(name);
    await page.getByRole("button", { name: "Make the key" }).click();
    const secret = await page.getByRole("region", { name: `The key ${name}` }).locator(".copyable code").textContent();
    const status = async () => (await fetch(`${url}/tools/permissions`, { headers: { authorization: `Bearer ${secret}` } })).status;
    assert.equal(await status(), 200);
    await page.goto(`${root}/projects/${made.id}`);
    assert.ok(!(await page.content()).includes(secret), "it is shown once");
    await page.getByLabel(`Revoke ${name}`).click();
    await page.getByRole("row").filter({ hasText: name }).getByRole("button", { name: "Revoke the key" }).click();
    await page.getByRole("status").waitFor();
    assert.equal(await status(), 401);
  },

  async "keep and delete an OAuth app for all projects"(page, context) {
    const { root, assert } = context;
    const client = `client-${Math.random()} ${HOSTILE}`;
    const kept = async () => (await admin(context, "GET", "/admin/oauth-apps")).oauth_apps.find((oauth) => oauth.client_id === client);
    await page.goto(`${root}/oauth-apps`);
    await page.getByLabel("Integration").fill("linear");
    await page.getByLabel("Client id").fill(client);
    await page.getByLabel("Client secret").fill("hidden-value");
    await page.getByRole("button", { name: "Keep the app" }).click();
    await page.getByRole("status").waitFor();
    const row = page.getByRole("row").filter({ hasText: client });
    assert.ok((await row.textContent()).includes((await kept()).redirect_url));
    assert.ok(!(await page.content()).includes("hidden-value"));
    assert.equal(await page.locator("main img").count(), 0);
    await page.getByLabel("Delete the app for linear").click();
    await row.getByRole("button", { name: "Delete the app" }).click();
    await page.waitForURL(/told=deleted/);
    assert.equal(await kept(), undefined);
  },

  async "status shows what is set, and no secret"(page, { root, key, operatorKey, assert }) {
    await page.goto(`${root}/status`);
    const settings = page.getByRole("region", { name: "Settings in force" });
    assert.match(await settings.getByRole("row", { name: "listen" }).textContent(), /:\d+/);
    assert.match(await settings.getByRole("row", { name: "sealing_key" }).textContent(), /sealing_key\s*(not )?set/);
    const sent = await page.content();
    assert.ok(!sent.includes(key) && !sent.includes(operatorKey));
  },

  async "hostile text is shown and not run"(page, { root, made, assert }) {
    for (const address of [root, `${root}/projects/${made.id}`]) {
      await page.goto(address);
      assert.equal(await page.locator("main img").count(), 0);
      assert.ok((await page.locator("main").textContent()).includes("<img src=x onerror=alert(1)>"));
    }
  },
};
