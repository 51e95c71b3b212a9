// What needs a person, and how much is going on.
import { called } from "./calls.mjs";
import { connected } from "./connections.mjs";

const HOSTILE = '<img src=x onerror=alert(1)> "quoted"';
const FAILING = "tools.native.fake.FAIL_A_THING.main";

// A connection that cannot be used.
async function revoked(context) {
  const connection = await connected(context, `${HOSTILE} ${Math.random()}`);
  await context.api("POST", `/tools/connections/${connection.id}/revoke`, {});
  return connection;
}

// The part of the page with that heading.
const card = (page, title) => page.locator("section").filter({ has: page.getByRole("heading", { name: title, exact: true }) });

export async function prepare(context) {
  for (const code of [500, 503, 404]) await called(context, FAILING, { code });
  await revoked(context);
}

export const screens = ({ app }) => ({ day: app, week: `${app}?over=week` });

export const walks = {
  async "go to the connection that does not work"(page, context) {
    const { name, slug, id } = await revoked(context);
    await page.goto(context.app);
    const needs = card(page, "Connections that do not work");
    context.assert.match(await needs.getByRole("listitem").filter({ hasText: name }).textContent(), /revoked/);
    context.assert.equal(await page.locator("main img").count(), 0);
    await needs.getByRole("link", { name }).click();
    await page.waitForURL(new RegExp(id));
    await page.getByRole("heading", { name: slug, level: 1 }).waitFor();
  },

  async "go to the calls of a tool that fails"(page, context) {
    const call = await called(context, FAILING, { code: 404 });
    await page.goto(context.app);
    const needs = card(page, "Tools that fail");
    const words = await needs.getByRole("listitem").filter({ hasText: FAILING }).textContent();
    context.assert.ok(words.includes(`failed, the last with: ${call.message}`), words);
    await needs.getByRole("link", { name: FAILING }).click();
    await page.locator(`#call-${call.id}`).waitFor();
    context.assert.equal(await page.getByLabel("Tool").inputValue(), FAILING);
  },

  async "look at the last week"(page, { app, api, assert }) {
    const count = async () => (await api("GET", "/tools/calls/stats?since=7d")).calls;
    const before = await count();
    await page.goto(app);
    await page.getByRole("link", { name: "Last 7 days" }).click();
    await page.locator('a[aria-current="page"]', { hasText: "Last 7 days" }).waitFor();
    const shown = Number(await card(page, "Calls").locator(".figure").first().textContent());
    assert.ok(before > 0 && before <= shown && shown <= (await count()), `${shown} calls are shown`);
    await card(page, "Calls").getByRole("img", { name: /^\d+ calls?, \d+ errors?$/ }).waitFor();
  },
};

async function keys(page, { app }) {
  await page.goto(app);
  await page.keyboard.press("?");
  await page.getByRole("dialog", { name: "Keys" }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog", { name: "Keys" }).waitFor({ state: "hidden" });
  await page.keyboard.press("g");
  await page.keyboard.press("c");
  await page.waitForURL(`${app}/calls`);
  await page.keyboard.press("/");
  await page.locator("#tool:focus").waitFor();
}
keys.needsScripts = true;
walks["get about with keys"] = keys;
