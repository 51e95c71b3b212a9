// Workflows: written, versioned, deployed and run.
const HOSTILE = "<img src=x onerror=alert(1)>";
const unique = (word) => `${word}-${Math.random().toString(36).slice(2)}`;

const data = (summary) => ({
  kind: "steps",
  schemas: { inputs: { type: "object", properties: { title: { type: "string", description: HOSTILE }, size: { type: "integer" } }, required: ["title"] } },
  steps: [
    { name: "form", call: "tools.native.fake.FORM_A_THING.main", arguments: { amount: 1, meta: { title: "{{ inputs.title }}" } } },
    { name: "again", call: "tools.native.fake.FORM_A_THING.main", when: "inputs.size is defined", arguments: { amount: 2, meta: { was: "{{ steps.form.result | tojson }}" } } },
  ],
  result: { summary, title: "{{ inputs.title }}", again: "{{ steps.again.ok }}" },
});

async function workflow({ api }, rest) {
  const body = { slug: unique("flow"), name: `${HOSTILE} "flow"`, description: `${HOSTILE} ${"long ".repeat(60)}`, data: data(HOSTILE), ...rest };
  return (await api("POST", "/simple/workflows", { workflow: body })).workflow;
}

// A second version, and an environment of its own where the first is deployed.
async function versions(context) {
  const made = await workflow(context);
  await context.api("PUT", `/simple/workflows/${made.id}`, { workflow: { id: made.id, data: data("second") } });
  const environment = await deployed(context, made, "1");
  return { made, environment };
}

async function deployed({ api }, { slug }, version) {
  const { environment } = await api("POST", "/simple/environments", { environment: { slug: unique("place"), name: `${HOSTILE} place` } });
  await api("POST", "/workflows/revisions/deploy", { workflow_ref: { slug }, workflow_revision_ref: { version }, environment_ref: { slug: environment.slug } });
  return environment;
}

const outputs = async ({ api }, { slug }, environment) => {
  const references = { workflow: { slug }, environment: { slug: environment.slug } };
  return (await api("POST", "/workflows/invoke", { references, data: { inputs: { title: "x" } } })).data.outputs.summary;
};

export async function prepare(context) {
  const { made, environment } = await versions(context);
  const { meta } = await context.api("POST", "/workflows/invoke", { references: { workflow: { slug: made.slug } }, data: { inputs: { title: HOSTILE, size: 1 } } });
  const { workflow_revisions: revisions } = await context.api("POST", "/workflows/revisions/query", { workflow_refs: [{ id: made.id }] });
  return { made, environment, run: meta.run_id, revisions };
}

export const screens = ({ made, environment, run, revisions: [newest, older] }) => ({
  list: "/workflows",
  "with archived ones": "/workflows?archived=yes&name=zzzzzz",
  new: "/workflows/new",
  one: `/workflows/${made.id}`,
  edit: `/workflows/${made.id}/edit`,
  versions: `/workflows/${made.id}/versions`,
  difference: `/workflows/${made.id}/versions?from=${older.id}&to=${newest.id}`,
  "one version": `/workflows/${made.id}/versions/${older.id}`,
  "run it": `/workflows/${made.id}/run`,
  "run it with JSON": `/workflows/${made.id}/run?as=json`,
  runs: "/workflows/runs",
  "one run": `/workflows/runs/${run}`,
  environments: "/workflows/environments",
  "one environment": `/workflows/environments/${environment.id}`,
});

// The picture and the words follow what is typed, without a press of a button.
async function typing(page, { app, assert }) {
  await page.goto(`${app}/workflows/new`);
  const editor = page.getByLabel("Data");
  await editor.fill(JSON.stringify(data("typed")));
  await page.getByRole("status").getByText("It could be saved").waitFor();
  assert.equal(await page.getByRole("img").locator("g").count(), 3);
  await editor.fill(JSON.stringify({ kind: "steps", steps: [{ name: HOSTILE, call: "tools.native.fake.FORM_A_THNG.main" }] }));
  await page.getByRole("alert").waitFor();
  await editor.fill(JSON.stringify({ kind: "steps", steps: [{ name: "form", call: "tools.native.fake.FORM_A_THNG.main" }] }));
  await page.getByRole("alert").getByText("FORM_A_THING").waitFor();
  assert.equal(await page.locator("main img").count(), 0);
}
typing.needsScripts = true;

export const walks = {
  "see what is wrong while typing": typing,

  async "write one, with a mistake first, and a second version"(page, { app, api, assert }) {
    const slug = unique("written");
    await page.goto(`${app}/workflows`);
    await page.getByRole("link", { name: "New workflow" }).click();
    await page.getByLabel("Slug").fill(slug);
    await page.getByLabel("Name").fill(`${HOSTILE} ${slug}`);
    const editor = page.getByLabel("Data");
    await editor.fill('{\n  "kind": "steps",\n  oops\n}');
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("alert").getByText("Line 3, column").waitFor();
    assert.match(await editor.inputValue(), /oops/);
    await editor.fill(JSON.stringify({ kind: "steps", steps: [{ name: "form", call: "tools.native.fake.FORM_A_THNG.main" }] }));
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("alert").getByText("FORM_A_THING").waitFor();
    await editor.fill(JSON.stringify(data("first"), null, 2));
    await page.getByRole("button", { name: "Check" }).click();
    await page.getByRole("status").waitFor();
    assert.equal(await page.getByRole("img").locator("g").count(), 3);
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("heading", { name: slug }).waitFor();
    await page.getByRole("link", { name: "Edit", exact: true }).click();
    await editor.fill(JSON.stringify(data("second"), null, 2));
    await page.getByLabel("Message").fill(`${HOSTILE} second`);
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByRole("status").getByText("new version").waitFor();
    await page.getByRole("link", { name: "Versions" }).click();
    await page.getByLabel("Compare from version 1").check();
    await page.getByLabel("Compare to version 2").check();
    await page.getByRole("button", { name: "Compare" }).click();
    const difference = page.getByRole("region", { name: "Difference between version 1 and 2" });
    assert.match(await difference.locator("del").textContent(), /"summary": "first"/);
    assert.match(await difference.locator("ins").textContent(), /"summary": "second"/);
    assert.equal(await page.locator("main img").count(), 0);
    const { workflows } = await api("POST", "/simple/workflows/query", { workflow: { slug } });
    assert.equal(workflows[0].data.result.summary, "second");
  },

  async "a version that somebody saved meanwhile is not written over unasked"(page, context) {
    const made = await workflow(context);
    await page.goto(`${context.app}/workflows/${made.id}/edit`);
    await context.api("PUT", `/simple/workflows/${made.id}`, { workflow: { id: made.id, data: data("theirs") } });
    await page.getByLabel("Data").fill(JSON.stringify(data("mine")));
    await page.getByRole("button", { name: "Save", exact: true }).click();
    const now = async () => (await context.api("GET", `/simple/workflows/${made.id}`)).workflow.data.result.summary;
    const over = page.getByLabel("Save mine over it all the same");
    await over.waitFor();
    context.assert.equal(await now(), "theirs");
    await over.check();
    await page.getByRole("button", { name: "Save", exact: true }).click();
    await page.getByRole("status").waitFor();
    context.assert.equal(await now(), "mine");
  },

  async "deploy a version and roll back"(page, context) {
    const { made, environment } = await versions(context);
    await page.goto(`${context.app}/workflows/${made.id}/versions`);
    for (const [version, summary] of [["2", "second"], ["1", HOSTILE]]) {
      await page.getByRole("link", { name: `Deploy version ${version}` }).click();
      await page.getByLabel("Environment", { exact: true }).selectOption(environment.slug);
      await page.getByLabel("Message").fill(`${HOSTILE} now ${version}`);
      await page.getByRole("button", { name: "Deploy" }).click();
      await page.getByRole("status").getByText("Deployed.").waitFor();
      context.assert.equal(await outputs(context, made, environment), summary);
      await page.getByRole("link", { name: "Versions" }).click();
    }
    await page.goto(`${context.app}/workflows/environments/${environment.id}`);
    await page.getByRole("region", { name: "History" }).getByText(`${HOSTILE} now 1`).waitFor();
    context.assert.equal(await page.locator("main img").count(), 0);
  },

  async "make an environment, guard it, and take a deployment away"(page, context) {
    const { app, api, assert } = context;
    const slug = unique("env");
    await page.goto(`${app}/workflows/environments`);
    await page.locator("summary", { hasText: "New environment" }).click();
    await page.getByLabel("Slug").fill(slug);
    await page.getByRole("button", { name: "Make the environment" }).click();
    await page.getByRole("heading", { name: slug }).waitFor();
    await page.getByRole("button", { name: "Guard it" }).click();
    await page.getByRole("button", { name: "Open it" }).waitFor();
    const made = await workflow(context);
    const deploy = () => api("POST", "/workflows/revisions/deploy", { workflow_ref: { slug: made.slug }, environment_ref: { slug } });
    await assert.rejects(deploy(), /409/);
    await page.getByRole("button", { name: "Open it" }).click();
    await page.getByRole("button", { name: "Guard it" }).waitFor();
    await deploy();
    await page.reload();
    await page.getByLabel(`Take away ${made.slug}.revision`).click();
    await page.getByRole("button", { name: `Take ${made.slug} away` }).click();
    await page.getByText("Nothing is deployed here.").waitFor();
    await assert.rejects(outputs(context, made, { slug }), /404/);
  },

  async "run one with the form and look at the run"(page, { app, api, made, assert }) {
    await page.goto(`${app}/workflows/${made.id}`);
    await page.getByRole("link", { name: "Run", exact: true }).click();
    await page.getByLabel("title").fill(`${HOSTILE} ran`);
    await page.getByLabel("size").fill("many");
    await page.getByRole("button", { name: "Run" }).click();
    await page.getByRole("alert").waitFor();
    assert.equal(await page.getByLabel("title").inputValue(), `${HOSTILE} ran`);
    await page.getByLabel("size").fill("3");
    await page.getByRole("button", { name: "Run" }).click();
    await page.getByRole("heading", { name: "Steps" }).waitFor();
    const { run } = await api("GET", `/workflows/runs/${new URL(page.url()).pathname.split("/").at(-1)}`);
    assert.deepEqual([run.inputs, run.outputs.again], [{ title: `${HOSTILE} ran`, size: 3 }, true]);
    assert.equal(await page.locator("tbody tr").count(), 2);
    await page.locator("summary", { hasText: "Arguments" }).first().click();
    await page.locator("tbody").getByText(`${HOSTILE} ran`).first().waitFor();
    assert.equal(await page.locator("main img").count(), 0);
    await page.getByRole("link", { name: "Run it again" }).click();
    assert.equal(await page.getByLabel("title").inputValue(), `${HOSTILE} ran`);
  },

  async "find the runs of a workflow by how they ended"(page, context) {
    const { app, assert } = context;
    const made = await workflow(context, { data: { kind: "echo" } });
    for (const size of [1, 2]) await context.api("POST", "/workflows/invoke", { references: { workflow: { slug: made.slug } }, data: { inputs: { size } } });
    await page.goto(`${app}/workflows/runs`);
    await page.getByLabel("Workflow", { exact: true }).selectOption(made.id);
    await page.getByLabel("State").selectOption("succeeded");
    await page.getByRole("button", { name: "Show" }).click();
    await page.waitForURL(/state=succeeded/);
    assert.equal(await page.locator("tbody tr").count(), 2);
    await page.getByLabel("State").selectOption("failed");
    await page.getByRole("button", { name: "Show" }).click();
    await page.getByText("There are no such runs.").waitFor();
  },

  async "a run that fails says where"(page, context) {
    const steps = [{ name: "fail", call: "tools.native.fake.FAIL_A_THING.main", arguments: { code: 404 } }];
    const made = await workflow(context, { data: { kind: "steps", steps } });
    await page.goto(`${context.app}/workflows/${made.id}/run`);
    await page.getByRole("button", { name: "Run" }).click();
    await page.getByRole("heading", { name: "Steps" }).waitFor();
    context.assert.match(await page.locator("p.error").textContent(), /step `fail`/);
    context.assert.equal(await page.locator("dl.facts > dt:text-is('Code') + dd").textContent(), "404");
  },

  async "archive one and bring it back"(page, context) {
    const made = await workflow(context);
    const archived = async () => Boolean((await context.api("GET", `/simple/workflows/${made.id}`)).workflow.deleted_at);
    await page.goto(`${context.app}/workflows/${made.id}`);
    await page.locator("summary", { hasText: "Archive" }).click();
    await page.getByRole("button", { name: "Archive the workflow" }).click();
    await page.getByRole("status").waitFor();
    context.assert.equal(await archived(), true);
    await page.getByRole("button", { name: "Bring it back" }).click();
    await page.getByText("It is back as it was.").waitFor();
    context.assert.equal(await archived(), false);
  },
};
