// Agents, what they may use, and how clients reach them.
const HOSTILE = "<img src=x onerror=alert(1)>";
const unique = (word) => `${word}-${Math.random().toString(36).slice(2)}`;

async function agent({ api }, name, rest) {
  return api("POST", "/agents", { name, agent_type: "research", description: `${HOSTILE} "quoted"`, ...rest });
}

const given = (config) => ({ tool_ids: [{ id: "fake", priority: 10, config }] });

export async function prepare(context) {
  const limits = given({ connection: "main", allow: ["GET_A_THING", "MAKE_A_THING"], deny: ["MAKE_A_THING"] });
  const full = await agent(context, unique(`${HOSTILE} "${"long".repeat(40)}"`), { ...limits, job_title: HOSTILE, tags: [HOSTILE], configuration: { [HOSTILE]: HOSTILE } });
  return { full, bare: await agent(context, unique("bare")) };
}

export const screens = ({ full, bare }) => ({
  list: "/agents",
  "none fits": "/agents?search=zzzzzz",
  new: "/agents/new",
  "clients of the project": "/agents/clients",
  "one with an app": `/agents/${full.id}`,
  "one without": `/agents/${bare.id}`,
  edit: `/agents/${full.id}/edit`,
  apps: `/agents/${bare.id}/apps`,
  "settings of an app": `/agents/${full.id}/apps/FAKE`,
  toolset: `/agents/${full.id}/toolset?prompt=read+a+thing`,
  history: `/agents/${full.id}/history`,
  clients: `/agents/${full.id}/clients`,
});

export const walks = {
  async "make an agent and give it an app with limits"(page, { app, api, assert }) {
    const name = unique(`${HOSTILE} reader`);
    await page.goto(`${app}/agents`);
    await page.getByRole("link", { name: "New agent" }).click();
    await page.getByLabel("Name").fill(name);
    await page.getByLabel("Type").fill("research");
    await page.getByLabel("Tags").fill("one, two");
    await page.getByRole("button", { name: "Make the agent" }).click();
    await page.getByRole("status").waitFor();
    const id = new URL(page.url()).pathname.split("/").at(-1);
    await page.getByRole("link", { name: "Give an app" }).click();
    await page.getByRole("link", { name: "Give Fake" }).click();
    await page.getByLabel("Calls").selectOption("ask");
    await page.getByLabel("Priority").fill("7");
    await page.getByLabel("Only GET_A_THING").check();
    await page.getByLabel("Not FAIL_A_THING").check();
    await page.getByRole("button", { name: "Give Fake" }).click();
    await page.getByRole("status").waitFor();
    const made = await api("GET", `/agents/${id}`);
    const [fake] = made.tools;
    assert.deepEqual([made.name, made.tags, fake.app_name, fake.priority], [name, ["one", "two"], "FAKE", 7]);
    assert.deepEqual([fake.configuration.permission, fake.configuration.allow, fake.configuration.deny], ["ask", ["GET_A_THING"], ["FAIL_A_THING"]]);
    assert.equal(await page.locator("main img").count(), 0);
  },

  async "what is wrong with an app's settings is told, and what was ticked stays"(page, context) {
    const { id } = await agent(context, unique("wrong"), given({}));
    await page.goto(`${context.app}/agents/${id}/apps/FAKE`);
    await page.getByLabel("Priority").fill("much");
    await page.getByLabel("Only SLOWLY").check();
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("alert").waitFor();
    context.assert.ok(await page.getByLabel("Only SLOWLY").isChecked());
    await page.getByLabel("Priority").fill("3");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("status").waitFor();
    context.assert.deepEqual((await context.api("GET", `/agents/${id}`)).tools[0].configuration.allow, ["SLOWLY"]);
  },

  async "see the tools for a prompt and what is left out"(page, { app, full, assert }) {
    await page.goto(`${app}/agents/${full.id}`);
    await page.getByLabel("Prompt").fill("read a thing");
    await page.getByRole("button", { name: "Show the tools" }).click();
    const tools = page.getByRole("region", { name: "Tools that are given" });
    assert.deepEqual(await tools.locator("tbody code").allTextContents(), ["tools.native.fake.GET_A_THING.main"]);
    const left = page.getByRole("region", { name: "What is left out" });
    await left.getByRole("row").filter({ hasText: "MAKE_A_THING" }).getByText("denied", { exact: true }).waitFor();
    await left.getByRole("row").filter({ hasText: "SLOWLY" }).getByText("not_allowed", { exact: true }).waitFor();
  },

  async "change an agent, take its app away and read its history"(page, context) {
    const { id } = await agent(context, unique("changed"), given({ access: "read_only" }));
    await page.goto(`${context.app}/agents/${id}/edit`);
    await page.getByLabel("Job title").fill(HOSTILE);
    await page.getByLabel("Status").selectOption("inactive");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("status").waitFor();
    await page.getByLabel("Take away Fake").click();
    await page.getByRole("button", { name: "Take Fake away" }).click();
    await page.getByText("Taken away.").waitFor();
    const now = await context.api("GET", `/agents/${id}`);
    context.assert.deepEqual([now.job_title, now.status, now.tools], [HOSTILE, "inactive", []]);
    await page.getByRole("link", { name: "History" }).click();
    const history = page.getByRole("region", { name: "History" });
    context.assert.ok((await history.locator("tbody tr").count()) >= 3);
    await history.locator("tr").filter({ hasText: "job_title" }).first().locator("summary", { hasText: "After" }).click();
    await history.getByText(HOSTILE).first().waitFor();
    context.assert.equal(await page.locator("main img").count(), 0);
  },

  async "somebody else's change is not written over"(page, context) {
    const { id } = await agent(context, unique("both"));
    await page.goto(`${context.app}/agents/${id}/edit`);
    await context.api("PUT", `/agents/${id}`, { job_title: "theirs" });
    await page.getByLabel("Job title").fill("mine");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("alert").waitFor();
    context.assert.equal((await context.api("GET", `/agents/${id}`)).job_title, "theirs");
  },

  async "set a client up"(page, { app, bare, assert }) {
    await page.goto(`${app}/agents/${bare.id}`);
    await page.getByRole("link", { name: "Set a client up" }).click();
    await page.getByText("has exactly the tools").waitFor();
    const blocks = await page.locator("pre code").allTextContents();
    assert.ok(blocks.length > 3 && blocks.some((block) => block.includes(`/mcp/agents/${bare.id}`)), blocks.join("\n"));
  },

  async "delete an agent"(page, context) {
    const name = unique("deleted");
    const { id } = await agent(context, name);
    await page.goto(`${context.app}/agents/${id}/edit`);
    await page.locator("summary", { hasText: `Delete ${name}` }).click();
    await page.getByRole("button", { name: "Delete the agent" }).click();
    await page.getByRole("status").waitFor();
    await context.assert.rejects(context.api("GET", `/agents/${id}`), /404/);
  },
};
