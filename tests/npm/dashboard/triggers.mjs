// Webhooks, events of integrations and schedules.
import { createHmac } from "node:crypto";
import { deliver, echo, unique, until, webhook } from "./deliveries.mjs";

const HOSTILE = "<img src=x onerror=alert(1)>";
const MAPPING = '{"title": "$.event.attributes.title"}';

async function schedule({ api, workflow }, name) {
  const data = { event_key: "SCHEDULE", schedule: "0 9 * * mon-fri", timezone: "Europe/Berlin", references: { workflow: { slug: workflow } } };
  return (await api("POST", "/triggers/schedules", { schedule: { name, description: HOSTILE, data } })).schedule;
}

async function send(url, body, secret) {
  const text = JSON.stringify(body);
  const headers = { "content-type": "application/json", "x-hub-signature-256": `sha256=${createHmac("sha256", secret).update(text).digest("hex")}` };
  return (await fetch(url, { method: "POST", headers, body: text })).status;
}

export async function prepare(context) {
  const workflow = await echo(context);
  const name = `${HOSTILE} "${"long".repeat(50)}"`;
  const config = { inputs_fields: { title: "$.event.attributes.title", hostile: HOSTILE }, trigger_config: { id_path: "$.id" }, ordered: true };
  const subscription = await webhook(context, name, workflow, config);
  await deliver(context, subscription, { title: HOSTILE });
  return { workflow, subscription, schedule: await schedule({ ...context, workflow }, name) };
}

export const screens = ({ subscription, schedule: { id } }) => ({
  list: "/triggers",
  "none fits": "/triggers?search=zzzzzz",
  new: "/triggers/new",
  "events of an integration": "/triggers/new?provider=native&integration=fake",
  "new event": "/triggers/new?provider=native&integration=fake&event=THING_CHANGED",
  "new webhook": "/triggers/new/webhook",
  "new schedule": "/triggers/new/schedule",
  webhook: `/triggers/subscriptions/${subscription.id}`,
  "edit webhook": `/triggers/subscriptions/${subscription.id}/edit`,
  "test webhook": `/triggers/subscriptions/${subscription.id}/test`,
  "delete webhook": `/triggers/subscriptions/${subscription.id}/delete`,
  schedule: `/triggers/schedules/${id}`,
  "edit schedule": `/triggers/schedules/${id}/edit`,
  "delete schedule": `/triggers/schedules/${id}/delete`,
});

export const walks = {
  async "make a webhook, send it a signed event and see it"(page, { app, api, workflow, assert }) {
    const name = unique(`${HOSTILE} hook`);
    await page.goto(`${app}/triggers`);
    await page.getByRole("link", { name: "New trigger" }).click();
    await page.getByRole("link", { name: "Webhook", exact: true }).click();
    await page.getByLabel("Name").fill(name);
    await page.getByLabel("scheme").selectOption("hmac_sha256");
    await page.getByLabel("Secret").fill("s3cret of the walk");
    await page.getByLabel("Workflow").selectOption(workflow);
    await page.getByLabel("Mapping").fill(MAPPING);
    await page.getByRole("button", { name: "Make the trigger" }).click();
    await page.getByRole("heading", { name: `${name} is made` }).waitFor();
    const address = await page.locator("dd code").first().textContent();
    assert.equal(await send(address, { title: HOSTILE }, "wrong"), 401);
    assert.equal(await send(address, { title: HOSTILE }, "s3cret of the walk"), 202);
    await page.getByRole("link", { name: "Go to the trigger" }).click();
    const id = page.url().split("/").at(-1);
    const { data } = await until(api, { subscription_id: id }, ({ state }) => state === "done");
    assert.deepEqual(data.inputs, { title: HOSTILE });
    await page.reload();
    await page.getByRole("row").filter({ hasText: "done" }).getByRole("link").first().click();
    await page.getByRole("heading", { name: `Delivery of ${name}` }).waitFor();
    assert.equal(await page.locator("main img").count(), 0);
  },

  async "what is wrong with a webhook is told, and what was typed stays"(page, { app, assert }) {
    await page.goto(`${app}/triggers/new/webhook`);
    await page.getByLabel("Name").fill(HOSTILE);
    await page.getByLabel("scheme").selectOption("token");
    await page.getByRole("button", { name: "Make the trigger" }).click();
    await page.getByRole("alert").getByText("secret").waitFor();
    await page.getByLabel("Secret").fill("s3cret");
    await page.getByLabel("Mapping").fill('{"title": "$.evnt"}');
    await page.getByRole("button", { name: "Make the trigger" }).click();
    await page.getByRole("alert").getByText("evnt").waitFor();
    assert.deepEqual([await page.getByLabel("Name").inputValue(), await page.getByLabel("scheme").inputValue()], [HOSTILE, "token"]);
    assert.equal(await page.locator("main img").count(), 0);
  },

  async "watch an event of an integration"(page, { app, api, workflow, assert }) {
    const box = unique("box");
    const { connections } = await api("POST", "/triggers/connections/query", {});
    await page.goto(`${app}/triggers/new`);
    await page.getByLabel("Integration").fill("fake");
    await page.getByRole("button", { name: "Search" }).click();
    await page.getByRole("link", { name: "Fake", exact: true }).click();
    await page.getByRole("link", { name: "Thing changed" }).click();
    await page.getByLabel("Name").fill(box);
    await page.getByLabel("Connection").selectOption(connections.find(({ slug }) => slug === "main").id);
    await page.getByLabel("box").fill(box);
    await page.getByLabel("Workflow").selectOption(workflow);
    await page.getByRole("button", { name: "Make the trigger" }).click();
    await page.getByRole("heading", { name: box }).waitFor();
    const { subscriptions } = await api("POST", "/triggers/subscriptions/query", { subscription: { name: box } });
    const made = subscriptions.find(({ name }) => name === box);
    assert.deepEqual([made.data.event_key, made.data.trigger_config, made.flags.is_active], ["THING_CHANGED", { box }, true]);
    await api("DELETE", `/triggers/subscriptions/${made.id}`);
  },

  async "pause, resume, revoke, edit and delete a webhook"(page, context) {
    const { api, app, assert } = context;
    const { id } = await webhook(context, unique("hook"), context.workflow);
    const told = async () => {
      await page.getByRole("status").waitFor();
      return (await api("GET", `/triggers/subscriptions/${id}`)).subscription;
    };
    await page.goto(`${app}/triggers/subscriptions/${id}`);
    await page.getByRole("button", { name: "Pause" }).click();
    await page.getByRole("button", { name: "Resume" }).waitFor();
    assert.equal((await told()).flags.is_active, false);
    await page.getByRole("button", { name: "Resume" }).click();
    await page.getByRole("button", { name: "Pause" }).waitFor();
    assert.equal((await told()).flags.is_active, true);
    await page.locator("summary", { hasText: "Revoke" }).click();
    await page.getByRole("button", { name: "Revoke" }).click();
    await page.getByRole("button", { name: "Make it valid again" }).click();
    await page.getByRole("button", { name: "Resume" }).waitFor();
    assert.equal((await told()).flags.is_valid, true);
    await page.getByRole("link", { name: "Edit" }).click();
    await page.getByLabel("Description").fill(HOSTILE);
    await page.getByLabel("Mapping").fill(MAPPING);
    await page.getByRole("button", { name: "Save" }).click();
    const saved = await told();
    assert.deepEqual([saved.description, saved.data.inputs_fields], [HOSTILE, JSON.parse(MAPPING)]);
    await page.getByRole("link", { name: "Delete" }).click();
    await page.getByRole("link", { name: "Keep it" }).click();
    await page.getByRole("link", { name: "Delete" }).click();
    await page.getByRole("button", { name: "Delete" }).click();
    assert.ok((await told()).deleted_at);
    assert.equal(await page.locator("main img").count(), 0);
  },

  async "make a schedule after a look at its times"(page, { app, api, workflow, assert }) {
    const name = unique("mornings");
    await page.goto(`${app}/triggers/new/schedule`);
    await page.getByLabel("Name").fill(name);
    await page.getByLabel("Times", { exact: false }).first().fill("@daily");
    await page.getByRole("button", { name: "Show the next ten times" }).click();
    await page.getByRole("alert").waitFor();
    await page.getByLabel("Times", { exact: false }).first().fill("30 9 * * mon-fri");
    await page.getByLabel("Time zone").fill("Europe/Berlin");
    await page.getByRole("button", { name: "Show the next ten times" }).click();
    const times = page.getByRole("region", { name: "Its next ten times" }).locator("tbody tr");
    await times.first().waitFor();
    assert.equal(await times.count(), 10);
    assert.match(await times.first().textContent(), /09:30/);
    await page.getByLabel("Workflow").selectOption(workflow);
    await page.getByRole("button", { name: "Make the schedule" }).click();
    await page.getByRole("status").waitFor();
    const id = new URL(page.url()).pathname.split("/").at(-1);
    const { schedule: made } = await api("GET", `/triggers/schedules/${id}`);
    assert.deepEqual([made.name, made.data.schedule, made.data.timezone, made.flags.is_active], [name, "30 9 * * mon-fri", "Europe/Berlin", true]);
  },

  async "run, pause, resume, edit and delete a schedule"(page, context) {
    const { api, app, assert } = context;
    const { id } = await schedule(context, unique("mornings"));
    const now = async () => (await api("GET", `/triggers/schedules/${id}`)).schedule;
    await page.goto(`${app}/triggers/schedules/${id}`);
    await page.getByRole("button", { name: "Run now" }).click();
    await page.getByRole("heading", { name: "Delivery of" }).waitFor();
    await until(api, { schedule_id: id }, ({ state }) => state === "done");
    await page.goto(`${app}/triggers/schedules/${id}`);
    await page.getByRole("button", { name: "Pause" }).click();
    await page.getByRole("button", { name: "Resume" }).waitFor();
    assert.equal((await now()).flags.is_active, false);
    await page.getByRole("button", { name: "Resume" }).click();
    await page.getByRole("button", { name: "Pause" }).waitFor();
    assert.equal((await now()).flags.is_active, true);
    await page.getByRole("link", { name: "Edit" }).click();
    await page.locator("summary", { hasText: "More about its times" }).click();
    await page.getByLabel("Jitter in seconds").fill("30");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("status").waitFor();
    assert.equal((await now()).data.jitter_seconds, 30);
    await page.getByRole("link", { name: "Delete" }).click();
    await page.getByRole("button", { name: "Delete" }).click();
    await page.getByRole("status").waitFor();
    assert.ok((await now()).deleted_at);
  },

  async "a test waits for an event"(page, context) {
    const { id } = await webhook(context, unique("tested"), context.workflow, { inputs_fields: JSON.parse(MAPPING) });
    await page.goto(`${context.app}/triggers/subscriptions/${id}`);
    await page.getByRole("link", { name: "Test" }).click();
    await page.getByLabel("Seconds to wait").fill("30");
    await page.getByRole("button", { name: "Wait for an event" }).click({ noWaitAfter: true });
    const address = await page.getByText("The test has an address of its own").locator("code").textContent();
    context.assert.equal(await send(address, { title: HOSTILE }, "any"), 202);
    await page.getByRole("status").getByText("An event came.").waitFor();
    await page.getByRole("heading", { name: "Inputs" }).waitFor();
    context.assert.equal(await page.getByText(HOSTILE).count() > 0, true);
    context.assert.equal(await page.locator("main img").count(), 0);
    context.assert.deepEqual((await context.api("POST", "/triggers/deliveries/query", { delivery: { subscription_id: id } })).deliveries, []);
  },
};
