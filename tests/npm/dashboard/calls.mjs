// What was called, by whom, and how it went.
import { readFileSync } from "node:fs";

const HOSTILE = '<img src=x onerror=alert(1)> "quoted"';

// Makes a call and gives back its row in the audit trail.
export async function called({ api, key, url }, name, args) {
  const body = { data: { id: "t1", type: "function", function: { name, arguments: args } } };
  await fetch(`${url}/tools/call`, {
    method: "POST",
    headers: { authorization: `ApiKey ${key}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const { calls } = await api("GET", "/tools/calls?limit=1");
  return calls[0];
}

const get = (context) => called(context, "tools.native.fake.GET_A_THING.main", { owner: HOSTILE, path: "long/".repeat(100), kind: HOSTILE });
const fail = (context) => called(context, "tools.native.fake.FAIL_A_THING.main", { code: 404 });
const refuse = (context) => called(context, `tools.native.fake.${HOSTILE}.main`, {});

export async function prepare(context) {
  await context.api("PUT", "/tools/calls/keeping", { days: 1 });
  return { kept: await get(context), failed: await fail(context), refused: await refuse(context) };
}

export const screens = ({ kept, failed, refused }) => ({
  list: "/calls",
  live: "/calls?live=1",
  filtered: "/calls?tool=tools.native.fake.*&outcome=error&since=24h",
  "nothing fits": "/calls?tool=tools.native.nothing.*",
  "one with its arguments": `/calls/${kept.id}`,
  "one that failed": `/calls/${failed.id}`,
  "one that was refused": `/calls/${refused.id}`,
});

export const walks = {
  async "filter by tool and outcome, and open one"(page, context) {
    const [ok, failed] = [await get(context), await fail(context)];
    await page.goto(`${context.app}/calls`);
    await page.getByLabel("Tool").fill("tools.native.fake.*");
    await page.getByLabel("Outcome").selectOption("error");
    await page.getByRole("button", { name: "Filter" }).click();
    await page.waitForURL(/outcome=error/);
    await page.locator(`#call-${failed.id}`).waitFor();
    context.assert.equal(await page.locator(`#call-${ok.id}`).count(), 0);
    await page.locator(`#call-${failed.id}`).getByRole("link").first().click();
    await page.getByRole("heading", { name: failed.tool, level: 1 }).waitFor();
    context.assert.match(failed.message, /^404: /);
    context.assert.ok((await page.locator("main").textContent()).includes(failed.message));
    await page.getByRole("link", { name: "calls of this tool" }).click();
    await page.locator(`#call-${failed.id}`).waitFor();
    context.assert.equal(await page.getByLabel("Tool").inputValue(), failed.tool);
    await page.getByRole("link", { name: "Show all" }).click();
    await page.locator(`#call-${ok.id}`).waitFor();
  },

  async "a filter that is wrong is told in the API's words"(page, { app }) {
    await page.goto(`${app}/calls?since=someday`);
    await page.getByRole("alert").filter({ hasText: "someday" }).waitFor();
  },

  async "download what is filtered as CSV"(page, context) {
    const refused = await refuse(context);
    await page.goto(`${context.app}/calls?outcome=failed`);
    const download = page.waitForEvent("download");
    await page.getByRole("link", { name: "CSV" }).click();
    const file = await download;
    context.assert.match(file.suggestedFilename(), /\.csv$/);
    const rows = readFileSync(await file.path(), "utf8").split("\r\n");
    context.assert.match(rows[0], /^id,created_at,tool,call_ref,outcome,/);
    const row = rows.find((line) => line.startsWith(refused.id));
    context.assert.ok(row.includes('"tools.native.fake.<img src=x onerror=alert(1)> ""quoted"".main"'), row);
    context.assert.ok(rows.slice(1, -1).every((line) => line.includes(",failed,")));
  },

  async "hostile text is shown and not run"(page, { app, kept, refused, assert }) {
    for (const address of ["/calls", `/calls/${refused.id}`, `/calls/${kept.id}`]) {
      await page.goto(app + address);
      assert.equal(await page.locator("main img").count(), 0, address);
      assert.ok((await page.locator("main").textContent()).includes("<img src=x onerror=alert(1)>"), address);
    }
  },
};

async function live(page, context) {
  await page.goto(`${context.app}/calls`);
  await page.getByRole("link", { name: "Watch live" }).click();
  const pause = page.getByRole("button", { name: "Pause" });
  await pause.waitFor();
  const first = await refuse(context);
  await page.locator(`#call-${first.id}.new`).waitFor();
  context.assert.equal(await page.locator("main img").count(), 0);
  await pause.click();
  const second = await fail(context);
  await page.getByRole("button", { name: "Go on (1)" }).waitFor();
  context.assert.equal(await page.locator(`#call-${second.id}`).count(), 0);
  await page.getByRole("button", { name: "Go on (1)" }).click();
  await page.locator(`#call-${second.id}`).waitFor();
  context.assert.equal(await page.locator("#calls > tr").first().getAttribute("id"), `call-${second.id}`);
  await page.getByRole("link", { name: "Stop" }).click();
  await page.getByRole("link", { name: "Watch live" }).waitFor();
}
live.needsScripts = true;
walks["watch calls come in, and pause"] = live;
