// Walks through the dashboard as people do, in a real browser.
//   node dashboard.mjs URL KEY OPERATOR_KEY FAKE_URL [--only SECTION] [--screenshots DIR]
// The project has a connection `main` to a service `fake` at FAKE_URL that shows what it was sent.
// Each file in `dashboard/` is a section: `prepare` makes its rows through the API, `screens` are its pages, `walks` what people do there.
// A screen is a path in the project, or a whole address. `isOperators` of a section signs in as the operator.
import assert from "node:assert/strict";
import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { parseArgs } from "node:util";
import { openBrowser, watch } from "./browser.mjs";

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { only: { type: "string" }, screenshots: { type: "string" } },
});
const [url, key, operatorKey, fake] = positionals;
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const WIDE = { width: 1280, height: 900 };
const NARROW = { width: 390, height: 800 };
const project = "default";

async function api(method, path, body) {
  const headers = { authorization: `ApiKey ${key}`, ...(body && { "content-type": "application/json" }) };
  const reply = await fetch(url + path, { method, headers, body: body && JSON.stringify(body) });
  const text = await reply.text();
  const answer = text ? JSON.parse(text) : null;
  if (!reply.ok) throw new Error(`${method} ${path}: ${reply.status} ${text}`);
  return answer;
}

const browser = await openBrowser();
const owner = await signIn(key);
const operator = await signIn(operatorKey);
let signedIn = owner;
const context = { url, key, operatorKey, fake, browser, api, project, app: `${url}/app/${project}`, assert };
const counts = { sections: 0, screens: 0, walks: 0 };
const failures = [];

for (const name of sections()) {
  const section = await import(`./dashboard/${name}.mjs`);
  signedIn = section.isOperators ? operator : owner;
  const rows = (await section.prepare?.(context)) ?? {};
  const here = { ...context, ...rows };
  counts.sections += 1;
  const tab = await openTab({});
  for (const [title, path] of Object.entries(section.screens(here))) await screen(`${name}: ${title}`, tab, path.startsWith("/") ? context.app + path : path);
  await tab.close();
  if (values.screenshots) continue;
  for (const [title, walk] of Object.entries(section.walks ?? {})) {
    await walked(`${name}: ${title}`, {}, (page) => walk(page, here));
    if (!walk.needsScripts) await walked(`${name}: ${title}, without scripts`, { javaScriptEnabled: false }, (page) => walk(page, here));
  }
}
await browser.close();
for (const failure of failures) console.error(failure);
console.log(JSON.stringify({ ...counts, failures: failures.length }));
process.exit(failures.length ? 1 : 0);

function sections() {
  const names = readdirSync(new URL("./dashboard/", import.meta.url)).filter((file) => file.endsWith(".mjs")).map((file) => file.slice(0, -4));
  return values.only ? names.filter((name) => name === values.only) : names.sort();
}

// Signs in with a key, once; every page begins with such a session.
async function signIn(key) {
  const fresh = await browser.newContext();
  const page = await fresh.newPage();
  await page.goto(`${url}/`);
  assert.match(page.url(), /\/sign-in\?/, "the front page leads to the sign-in");
  await page.getByText("With a key").click();
  await page.getByLabel("Key").fill(key);
  await page.locator("details").getByRole("button", { name: "Sign in" }).click();
  await page.waitForURL(/\/app(\/|$)/);
  const state = await fresh.storageState();
  await fresh.close();
  return state;
}

// A page in a browser where somebody is signed in, and what it must not have done.
async function openTab(options) {
  const fresh = await browser.newContext({ storageState: signedIn, viewport: WIDE, ...options });
  fresh.setDefaultTimeout(60_000);
  const page = await fresh.newPage();
  return { page, problems: watch(page), close: () => fresh.close() };
}

// One thing that is done on a page; whatever goes wrong is kept for the end.
async function attempt(title, { page, problems }, work) {
  problems.length = 0;
  try {
    await work(page);
    assert.deepEqual(problems, []);
    counts.walks += 1;
  } catch (error) {
    failures.push(`FAILED ${title} at ${page.url()}\n${error.stack}\n`);
  }
}

// What people do begins in a browser of its own.
async function walked(title, options, work) {
  const tab = await openTab(options);
  await attempt(title, tab, work);
  await tab.close();
}

// A page as it is seen: by axe in light and its colours again in dark, on a phone without a bar to scroll sideways; and as it is sent, for who
// runs no scripts.
async function screen(title, tab, address) {
  counts.screens += 1;
  await attempt(title, tab, async (page) => {
    await page.emulateMedia({ colorScheme: "light" });
    await page.setViewportSize(WIDE);
    const reply = await page.goto(address);
    assert.equal(reply.status(), 200);
    const sent = await reply.text();
    assert.equal(sent.match(/<h1[ >]/g)?.length, 1, "one heading, before any script");
    if (values.screenshots) await photograph(page, `${title} light`);
    await page.evaluate(AXE);
    assert.equal(await violations(page, {}), "");
    await page.emulateMedia({ colorScheme: "dark" });
    if (values.screenshots) await photograph(page, `${title} dark`);
    assert.equal(await violations(page, { runOnly: ["color-contrast"] }), "", "in dark");
    await page.setViewportSize(NARROW);
    if (values.screenshots) await photograph(page, `${title} phone`);
    const overflow = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    assert.ok(overflow <= 0, `${overflow} pixels too wide for a phone`);
  });
}

async function violations(page, options) {
  const found = await page.evaluate((options) => globalThis.axe.run(options), options);
  return found.violations.map((rule) => `${rule.id}: ${rule.help}\n${rule.nodes.map((node) => `  ${node.html}\n  ${node.failureSummary}`).join("\n")}`).join("\n");
}

async function photograph(page, title) {
  mkdirSync(values.screenshots, { recursive: true });
  await page.screenshot({ path: `${values.screenshots}/${title.replace(/[^\w]+/g, "-")}.png`, fullPage: true });
}
