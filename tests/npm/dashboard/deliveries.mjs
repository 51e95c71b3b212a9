// What came in and what became of it.
import { setTimeout as pause } from "node:timers/promises";

const HOSTILE = "<img src=x onerror=alert(1)>";

export const unique = (word) => `${word}-${Math.random().toString(36).slice(2)}`;

// A workflow that gives its inputs back.
export async function echo({ api }) {
  const { workflow } = await api("POST", "/simple/workflows", { workflow: { slug: unique("echo"), data: { kind: "echo" } } });
  return workflow.slug;
}

// A plain webhook. Without a workflow, what comes to it is dead at once.
export async function webhook({ api }, name, workflow, rest) {
  const data = { event_key: "WEBHOOK_RECEIVED", ...(workflow && { references: { workflow: { slug: workflow } } }), ...rest };
  const { subscription } = await api("POST", "/triggers/subscriptions", { subscription: { name, data } });
  return subscription;
}

// Sends an event, and waits until its delivery has ended.
export async function deliver({ api }, subscription, body, states = ["done", "dead"]) {
  const event = unique("event");
  const headers = { "content-type": "application/json", "webhook-id": event };
  const reply = await fetch(subscription.url, { method: "POST", headers, body: JSON.stringify(body) });
  if (reply.status !== 202) throw new Error(`${reply.status} ${await reply.text()}`);
  return until(api, { event_id: event, subscription_id: subscription.id }, (delivery) => states.includes(delivery.state));
}

// The newest delivery that fits, once it is as it should be.
export async function until(api, delivery, isSo) {
  const end = Date.now() + 10_000;
  for (;;) {
    const [newest] = (await api("POST", "/triggers/deliveries/query", { delivery })).deliveries;
    if (newest && isSo(newest)) return newest;
    if (Date.now() > end) throw new Error(`not in time: ${JSON.stringify(newest)}`);
    await pause(50);
  }
}

async function bind({ api }, subscription, workflow) {
  const data = { ...subscription.data, references: { workflow: { slug: workflow } } };
  await api("PUT", `/triggers/subscriptions/${subscription.id}`, { subscription: { ...subscription, data } });
}

export async function prepare(context) {
  const workflow = await echo(context);
  const good = await webhook(context, `${HOSTILE} "good"`, workflow);
  const bad = await webhook(context, `${HOSTILE} 'bad'`);
  const body = { title: `${HOSTILE} ${"long".repeat(100)}`, [HOSTILE]: ['"', "'"] };
  return { workflow, good, done: await deliver(context, good, body), dead: await deliver(context, bad, body) };
}

export const screens = ({ good, done, dead }) => ({
  list: "/deliveries",
  dead: "/deliveries?status=dead",
  "of one trigger": `/deliveries?trigger=${good.id}&code=200&since=2h`,
  none: "/deliveries?event=none",
  live: "/deliveries?live=1",
  "one that is done": `/deliveries/${done.id}`,
  "one that is dead": `/deliveries/${dead.id}`,
  "run again what failed": "/deliveries/replay",
});

export const walks = {
  async "find one among many"(page, context) {
    const name = unique("found");
    const subscription = await webhook(context, name, context.workflow);
    const delivery = await deliver(context, subscription, {});
    await page.goto(`${context.app}/deliveries`);
    await page.getByLabel("Trigger").selectOption(subscription.id);
    await page.getByLabel("Code").fill("200");
    await page.getByRole("button", { name: "Filter" }).click();
    await page.waitForURL(/code=200/);
    context.assert.deepEqual(await page.locator("tbody tr").evaluateAll((rows) => rows.map((row) => row.id)), [`delivery-${delivery.id}`]);
    await page.getByRole("navigation", { name: "By state" }).getByRole("link", { name: "dead", exact: false }).click();
    await page.getByText("No delivery fits.").waitFor();
    context.assert.equal(await page.getByLabel("Trigger").inputValue(), subscription.id);
  },

  async "a time that cannot be read is told"(page, { app }) {
    await page.goto(`${app}/deliveries`);
    await page.getByLabel("Since").fill("the day of days");
    await page.getByRole("button", { name: "Filter" }).click();
    await page.getByRole("alert").getByText("the day of days").waitFor();
  },

  async "see the event, the attempts and the run of one"(page, { app, api, done, assert }) {
    await page.goto(`${app}/deliveries/${done.id}`);
    const main = page.locator("main");
    assert.equal(await main.locator("img").count(), 0);
    assert.ok((await main.textContent()).includes(HOSTILE));
    assert.equal(await main.getByRole("table").getByRole("row").count(), 2);
    await page.getByText("Body as it came").click();
    assert.equal(JSON.parse(await main.locator("pre:visible").last().textContent()).title.slice(0, HOSTILE.length), HOSTILE);
    await page.getByRole("link", { name: "See the run" }).click();
    await page.getByRole("heading", { name: "Outputs" }).waitFor();
    const { delivery } = await api("GET", `/triggers/deliveries/${done.id}`);
    assert.ok(page.url().endsWith(delivery.data.result.run_id));
  },

  async "run a dead one again once its trigger is mended"(page, context) {
    const subscription = await webhook(context, unique("mended"));
    const { id } = await deliver(context, subscription, { title: "again" });
    await bind(context, subscription, context.workflow);
    await page.goto(`${context.app}/deliveries/${id}`);
    await page.getByRole("button", { name: "Run again" }).click();
    await page.getByRole("status").waitFor();
    await until(context.api, { subscription_id: subscription.id }, (delivery) => delivery.state === "done");
    await page.reload();
    context.assert.equal(await page.getByRole("table").locator("tbody tr").count(), 2);
    await page.getByRole("heading", { name: "Outputs" }).waitFor();
  },

  async "run all dead ones of a trigger again"(page, context) {
    const subscription = await webhook(context, unique("all"));
    const first = await deliver(context, subscription, { n: 1 });
    const second = await deliver(context, subscription, { n: 2 });
    await bind(context, subscription, context.workflow);
    await page.goto(`${context.app}/deliveries?status=dead&trigger=${subscription.id}`);
    await page.getByRole("link", { name: "Run all of these again" }).click();
    await page.getByText("2 deliveries are dead and fit.").waitFor();
    await page.getByRole("button", { name: "Run them again" }).click();
    await page.getByRole("status").getByText("2").waitFor();
    for (const { event_id } of [first, second]) await until(context.api, { event_id }, (delivery) => delivery.state === "done");
  },

  async "cancel one that is to be tried again"(page, context) {
    const data = { kind: "steps", steps: [{ name: "fail", call: "tools.native.fake.FAIL_A_THING.main", arguments: { code: 503 } }] };
    const { workflow } = await context.api("POST", "/simple/workflows", { workflow: { slug: unique("fail"), data } });
    const subscription = await webhook(context, unique("cancelled"), workflow.slug);
    const event = await deliver(context, subscription, {}, ["ready"]);
    const { id } = await until(context.api, { event_id: event.event_id }, (delivery) => delivery.state === "ready" && delivery.attempts_count > 0);
    await page.goto(`${context.app}/deliveries/${id}`);
    await page.locator("summary", { hasText: "Cancel" }).click();
    await page.getByRole("button", { name: "Cancel the delivery" }).click();
    await page.getByRole("status").waitFor();
    const { delivery } = await context.api("GET", `/triggers/deliveries/${id}`);
    context.assert.equal(delivery.state, "cancelled");
  },

  async "try another mapping"(page, { app, done, assert }) {
    await page.goto(`${app}/deliveries/${done.id}`);
    const mapping = page.getByLabel("Mapping", { exact: true });
    await mapping.fill('{"oops"');
    await page.getByRole("button", { name: "Try it" }).click();
    await page.getByRole("alert").waitFor();
    assert.equal(await mapping.inputValue(), '{"oops"');
    await mapping.fill('{"said": "It is {{ event.attributes.title }}", "gone": "$.event.attributes.nope"}');
    await page.getByRole("button", { name: "Try it" }).click();
    await page.getByText(`It is ${HOSTILE}`).first().waitFor();
    assert.equal(await page.locator(".notice li").textContent(), "$.event.attributes.nope at /gone");
    assert.equal(await page.locator("main img").count(), 0);
  },
};

async function liveTail(page, context) {
  await page.goto(`${context.app}/deliveries`);
  await page.getByRole("link", { name: "Live", exact: true }).click();
  await page.getByRole("button", { name: "Pause" }).waitFor();
  const subscription = await webhook(context, `${HOSTILE} ${unique("live")}`, context.workflow);
  const first = await deliver(context, subscription, {});
  await page.locator(`#delivery-${first.id}`).getByText("done").waitFor();
  await page.getByRole("button", { name: "Pause" }).click();
  const second = await deliver(context, subscription, {});
  await page.getByRole("button", { name: /^Go on \(/ }).waitFor();
  context.assert.equal(await page.locator(`#delivery-${second.id}`).count(), 0);
  await page.getByRole("button", { name: /^Go on/ }).click();
  await page.locator(`#delivery-${second.id}`).waitFor();
  context.assert.equal(await page.locator("main img").count(), 0);
}
liveTail.needsScripts = true;
walks["watch them as they come"] = liveTail;
